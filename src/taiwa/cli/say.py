"""`taiwa say`: one turn."""

import click

from taiwa.cli.options import Flags, flags
from taiwa.kernel.errors import InputError

__all__ = ["say"]


@click.command()
@click.argument("words", nargs=-1, metavar="[APP] TEXT")
@flags("model", "params", "session", "go_on", "json", "verbose", "dry_run", "max_cost", "no_log", "strict", "store")
def say(shared: Flags, words: tuple[str, ...]) -> None:
    """Say TEXT and print the answer; `-` reads it from standard input.

    One word is the text, two are an app and the text. Without -c or -s a new conversation begins.

    \b
    taiwa say "What is a monad?"
    taiwa say translate -p target_lang=English "文(sentence)です。"
    taiwa say -c "And shorter?"             go on with the latest conversation
    git diff | taiwa say code -             the text from standard input
    taiwa say --dry-run -c "What if?"       the exact request, its size, and no call
    """
    from taiwa.cli.hear import hear
    from taiwa.cli.opening import open_talk, read_text, start
    from taiwa.cli.requests import show_request

    if len(words) not in (1, 2):
        raise InputError('say takes a text, or an app and a text: taiwa say [APP] "TEXT" (quote the text)')
    app, text = ("", words[0]) if len(words) == 1 else words
    text = read_text(text)
    if shared.dry_run:
        from taiwa.models.findings import probed

        chosen = shared.settings()
        _, conversation = start(shared.desk(), shared, app)
        model = chosen.model or conversation.app.model
        show_request(conversation, text, probed(model, chosen) if model else None, as_json=shared.as_json)
        return
    talk = open_talk(shared, app)
    hear(talk.stream(text), as_json=shared.as_json, verbose=shared.verbose)
