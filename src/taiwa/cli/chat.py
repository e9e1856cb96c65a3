"""`taiwa chat`: a conversation, line by line."""

import sys

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import tell
from taiwa.i18n import _

__all__ = ["chat"]


@click.command()
@click.argument("app", default="")
@flags("model", "params", "session", "go_on", "json", "verbose", "max_cost", "no_log", "strict", "store")
def chat(shared: Flags, app: str) -> None:
    """Talk with APP (chat when none is named), line by line. /help shows what else can be done there.

    Ctrl-C stops an answer and keeps what came of it. From a pipe, each line is said; --json prints one line per turn.

    \b
    taiwa chat
    taiwa chat translate -p target_lang=English
    taiwa chat -c                      go on with the latest conversation
    taiwa chat -s novel-2              go on with that one, or begin it
    printf '%s\\n' Hello /state | taiwa chat
    """
    from taiwa.cli.keyboard import Keyboard, Pipe, history_of
    from taiwa.cli.opening import mention, open_talk
    from taiwa.cli.repl import Repl
    from taiwa.cli.slash import SLASHES
    from taiwa.cli.stopping import Stopper
    from taiwa.talk.opening import open_voice

    live = sys.stdin.isatty() and sys.stdout.isatty() and not shared.as_json
    stopper = Stopper()
    talk = open_talk(shared, app, interrupts="keep" if live else "raise", observers=(stopper.watch,))
    lines = (
        Keyboard(history_of(talk.desk.store.path), {name: slash.help for name, slash in SLASHES.items()})
        if live
        else Pipe()
    )
    repl = Repl(talk, lines, stopper, as_json=shared.as_json, verbose=shared.verbose)
    repl.voice_of = lambda asking: open_voice(None, shared.settings(), asking)
    if live:
        tell(
            _(
                "{app} · {model} · {session}   /help lists the commands, Ctrl-D quits",
                app=talk.app.name,
                model=talk.voice.model.name,
                session=talk.session,
            )
        )
        if not shared.verbose:
            mention(shared.settings(), talk.voice)
    repl.run()
    if live and not repl.talk.conversation.fresh and not shared.no_log:
        tell(_("saved as {session}; continue with: taiwa chat -s {session}", session=repl.talk.session))
    if not live and repl.failed:
        raise click.exceptions.Exit(1)
