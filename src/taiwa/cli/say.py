"""Turns and the moves between them: say, retry, edit, resume, replay, rerun, undo, redo, fork, switch."""

import sys
from typing import TYPE_CHECKING, Literal

import click

from taiwa.cli.options import (
    ANSWERS,
    COMMON_OPTIONS,
    SHOWN,
    CommonOptions,
    ask_param,
    common_options,
    complete_session,
    open_app,
    open_session,
    read_params,
    read_prompt,
    turn_options,
)
from taiwa.cli.output import (
    bill_line,
    print_item,
    print_kept_apart,
    print_line,
    print_notice,
    print_preview,
    print_result,
    print_stream,
    table,
)
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.kernel.attachments import Attachment
    from taiwa.sessions.repository import Repository

USAGE = 'say takes a text, or an app and a text: taiwa say [APP] "TEXT" (quote the text)'


@click.command()
@click.argument("words", nargs=-1, metavar="[APP] TEXT")
@common_options(*COMMON_OPTIONS)
def say(common: CommonOptions, words: tuple[str, ...]) -> None:
    """Send TEXT and print the answer. Text that is piped in follows TEXT, after an empty line; `-` stands for it alone.

    One argument is the text, or an app if it names one and text is piped in or given by -f; two are an app and the text.
    Without -c or -s a new conversation is created. A conversation keeps its model and the options --system, --temperature, --max-tokens, --tool, --schema and --max-cost until others are given.

    \b
    taiwa say "What is a monad?"
    taiwa say --system "Answer like a pirate." "Where is the treasure?"
    taiwa say -f a.py -f b.py "What differs?"
    taiwa say --schema 'name, age int' "Invent a person."
    taiwa say --tool calculator "What is 12% of 8,900?"
    taiwa say translate -p target_lang=English "文(sentence)です。"
    taiwa say -c "And shorter?"             continue the latest conversation
    taiwa say -a cat.png "What is this?"    attach an image, a PDF or a text file
    git diff | taiwa say "Sum this up:"     send the prompt and the piped text
    git diff | taiwa say code               send the piped text to an app
    taiwa say --dry-run -c "What if?"       print the request and its size, send nothing
    """
    has_text = bool(common.fragments or common.attachments) or not sys.stdin.isatty()
    app, prompt = _app_and_prompt(words, has_text=has_text)
    attachments = common.read_attachments()
    text = read_prompt(prompt, common.fragments)
    if not app and not common.continue_latest and text != prompt and _is_app(prompt):
        app, text = prompt, text.removeprefix(f"{prompt}\n\n")
    if not words and not text and not attachments:
        raise InputError(USAGE)
    if common.dry_run:
        _preview(common, app, text, attachments)
        return
    print_stream(open_session(common, app).stream(text, attachments), **common.shown())


def _app_and_prompt(words: tuple[str, ...], *, has_text: bool) -> tuple[str, str]:
    """Split the arguments of `say`; a last `-` behind a prompt adds nothing, since piped text is read anyway."""
    if (len(words) == 3 and words[2] == "-") or (
        len(words) == 2 and words[1] == "-" and any(map(str.isspace, words[0]))
    ):
        words = words[:-1]
    if len(words) > 2 or not (words or has_text):
        raise InputError(USAGE)
    return ("", words[0] if words else "") if len(words) < 2 else (words[0], words[1])


def _is_app(word: str) -> bool:
    from taiwa.apps.catalog import apps

    return any(app.name == word for app in apps())


def _preview(common: CommonOptions, app: str, text: str, attachments: "tuple[Attachment, ...]") -> None:
    from taiwa.operations.say import SayOptions, find_or_create_session, preview_turn, target_of

    settings = common.settings()
    repository = common.repository(settings)
    options = SayOptions(app, common.session, common.continue_latest, read_params(common.params), common.answers())
    repository.tools.update({tool.spec.name: tool for tool in common.tools()})
    session, conversation = find_or_create_session(repository, options, ask_param())
    tools = [tool.spec for tool in repository.tools_of(conversation.app)]
    target = target_of(repository, settings, conversation, session)
    conversation = repository.with_attachments(conversation)
    print_preview(preview_turn(conversation, text, tools, target, attachments), as_json=common.as_json)


@click.command()
@click.argument("name", default="", shell_complete=complete_session)
@common_options("session", "model", *ANSWERS, *SHOWN, "max_cost", "retry_paid", "strict", "store")
def retry(common: CommonOptions, name: str) -> None:
    """Send the text of the last turn, of the conversation NAME, again, from the same state; the new answer replaces the old one.

    \b
    taiwa retry                          the old answer stays in the log: taiwa undo, taiwa log
    taiwa retry chat-1 -m openai:gpt-x
    """
    from dataclasses import replace

    common = replace(common, session=name or common.session)
    session = open_session(common, latest=True)
    print_stream(session.stream_retry(), **common.shown())


@click.command()
@click.argument("revision", shell_complete=complete_session)
@click.argument("text")
@click.option("--fork", "name", metavar="NAME", help="Answer on a new branch and leave the conversation unchanged.")
@common_options(
    "session", "model", *ANSWERS, "fragments", "attachments", "attach_as_text", *SHOWN, "max_cost", "retry_paid",
    "strict", "store",
)  # fmt: skip
def edit(common: CommonOptions, revision: str, text: str, name: str | None) -> None:
    """Go back to the turn at REVISION and send TEXT instead; later turns stay in the log.

    Its attachments stay, unless -a gives others.

    \b
    taiwa edit 2 "I meant the other one"           turn 2 of the latest conversation, as taiwa log counts
    taiwa edit chat-1:2 "What if not?" --fork what-if
    """
    from dataclasses import replace

    from taiwa.operations.say import find_turn

    session_name, turns = find_turn(common.repository(), common.place(revision))
    session = open_session(replace(common, session=session_name))
    attachments = common.read_attachments() or None
    text = read_prompt(text, common.fragments)
    session = session.fork(name) if name else session
    print_stream(session.stream_edit(text, turn=-turns, attachments=attachments), **common.shown())


@click.command()
@click.argument("name", default="", shell_complete=complete_session)
@common_options("session", "model", "tool_names", *SHOWN, "max_cost", "retry_paid", "store")
def resume(common: CommonOptions, name: str) -> None:
    """Finish a turn that was cut off, of the conversation NAME; calls that were answered are not paid for again.

    \b
    taiwa resume
    taiwa resume chat-1
    """
    from taiwa.operations.say import open_interrupted

    settings = common.settings()
    session, others = open_interrupted(
        common.repository(settings), settings, turn_options(common, settings), name or common.session
    )
    interrupted = session.name
    print_stream(session.stream_resume() or (), **common.shown())
    print_kept_apart(session, interrupted)
    if others:
        print_notice(f"turns of {', '.join(others)} were cut off too; finish them with taiwa resume NAME")


@click.command()
@click.argument("revision", required=False, default="", shell_complete=complete_session)
@common_options("session", "as_json", "verbose", "store", verbose="List the nodes with their results.")
def replay(common: CommonOptions, revision: str) -> None:
    """Repeat a conversation from its recorded calls and check every hash. No model is called.

    \b
    taiwa replay
    taiwa replay chat-1:3 -v
    """
    from taiwa.sessions.replay import replay_history

    rows = tuple(replay_history(common.repository(reading=True), common.place(revision)))
    wrong = [row for row in rows if row.difference]
    if common.as_json:
        print_result(rows)
    elif common.verbose or wrong:
        lines = [(str(row.turn), row.hash[:12], row.kind, str(row.calls), row.difference or "ok") for row in rows]
        table(("turn", "node", "kind", "calls", "result"), lines, frozenset({0, 3}))
    if wrong:
        raise CorruptError(
            ngettext(
                "{n} turn does not end where it did; the program or an app has changed since",
                "{n} turns do not end where they did; the program or an app has changed since",
                len(wrong),
            )
        )
    if not common.as_json:
        nodes = ngettext("{n} node", "{n} nodes", len(rows))
        answers = ngettext("{n} recorded answer", "{n} recorded answers", sum(row.calls for row in rows))
        print_line(
            _("{nodes}, {answers}, 0 model calls: every state has its recorded hash", nodes=nodes, answers=answers)
        )


@click.command()
@click.argument("revision", required=False, default="", shell_complete=complete_session)
@click.option("-o", "--as", "name", metavar="NAME", required=True, help="Name the new conversation.")
@click.option("--app", metavar="APP", default="", help="Use another app.")
@common_options("session", "model", "params", "as_json", "verbose", "max_cost", "retry_paid", "strict", "store")
def rerun(common: CommonOptions, revision: str, name: str, app: str) -> None:
    """Send every text of a conversation to a model again, on a new branch NAME; compare with taiwa diff.

    With --json each turn is one line of JSON.

    \b
    taiwa rerun chat-1 -m openai:gpt-x -o other && taiwa diff chat-1 other
    taiwa rerun chat-1 --app tutor -p level=2 -o with-tutor
    """
    from taiwa.operations.say import model_of, with_own_limits
    from taiwa.sessions.session import rerun as run_again

    if common.params and not app:
        raise InputError("-p requires --app; the present app has its parameters")
    settings = common.settings()
    repository = common.repository(settings)
    before = common.place(revision) or repository.session()
    other = open_app(app, common.params) if app else None
    conversation = repository.at(before)
    priced_model = model_of(repository, settings, conversation, repository.store.refs.session_of(before))
    turns = with_own_limits(turn_options(common, settings), settings, conversation)
    for turn in run_again(repository, before, name, priced_model, other, turns):
        if common.as_json:
            print_result(turn)
        else:
            print_line(turn.text)
        for warning in turn.warnings:
            print_notice(warning, "yellow")
        if common.verbose:
            print_notice(f"{turn.session} {turn.node[:12]} · {bill_line(turn.spent)}")
    print_notice(f"compare them: taiwa diff {before} {name}")


@click.command()
@click.argument("session_and_turns", nargs=-1, metavar="[NAME] [TURNS]", shell_complete=complete_session)
@common_options("session", "as_json", "store")
def undo(common: CommonOptions, session_and_turns: tuple[str, ...]) -> None:
    """Take back the last turn of the conversation NAME, or TURNS of them: message, state and window together.

    redo restores them.

    \b
    taiwa undo            take back the last turn of the latest conversation
    taiwa undo chat-1 3   take back three turns of chat-1
    """
    _move(common, session_and_turns, "undo", _("back to turn {turn}"))


def _move(common: CommonOptions, words: tuple[str, ...], way: Literal["undo", "redo"], where: str) -> None:
    """Undo or redo what is given: the name of a conversation, a number of turns, or both; a number alone counts turns.

    Raises:
        UsageError: it is neither.
    """
    session = common.session
    if words and not words[0].isdecimal():
        if session not in ("", words[0]):
            raise click.UsageError(f"two conversations are given: {session!r} and {words[0]!r}")
        session, words = words[0], words[1:]
    if len(words) > 1 or any(not word.isdecimal() or int(word) < 1 for word in words):
        raise click.UsageError(f"give a number of turns, at least 1, not {' '.join(words)!r}")
    repository = common.repository()
    session = repository.session(session)
    (repository.store.undo if way == "undo" else repository.store.redo)(session, int(words[0]) if words else 1)
    _print_position(repository, session, where, as_json=common.as_json)


@click.command()
@click.argument("session_and_turns", nargs=-1, metavar="[NAME] [TURNS]", shell_complete=complete_session)
@common_options("session", "as_json", "store")
def redo(common: CommonOptions, session_and_turns: tuple[str, ...]) -> None:
    """Restore the turn of the conversation NAME that was taken back, or TURNS of them.

    \b
    taiwa redo            restore the turn that was taken back last
    taiwa redo chat-1     restore that of chat-1
    """
    _move(common, session_and_turns, "redo", _("forward to turn {turn}"))


@click.command()
@click.argument("revision", shell_complete=complete_session)
@click.argument("name", required=False)
@common_options("session", "as_json", "store")
def fork(common: CommonOptions, revision: str, name: str | None) -> None:
    """Create the branch NAME at REVISION and make it the current conversation.

    With one argument the latest conversation is forked under that name. Neither branch can change the other.

    \b
    taiwa fork plan-b               fork the latest conversation at its last turn
    taiwa fork chat-1:2 plan-b      fork chat-1 behind its second turn
    """
    where, called = ("", revision) if name is None else (revision, name)
    where = common.place(where)
    repository = common.repository()
    repository.fork(where, called)
    _print_position(repository, called, _("now on {session}, turn {turn}"), as_json=common.as_json)


@click.command()
@click.argument("name", shell_complete=complete_session)
@common_options("as_json", "store")
def switch(common: CommonOptions, name: str) -> None:
    """Make NAME the current conversation, which -c and other commands use.

    \b
    taiwa switch chat-1
    """
    repository = common.repository()
    tip = repository.store.refs.tip(name)
    repository.store.refs.move(name, tip, tip, "switch")
    _print_position(repository, name, _("now on {session}, turn {turn}"), as_json=common.as_json)


@click.command()
@click.argument("name", shell_complete=complete_session)
@click.argument("new")
@common_options("as_json", "store")
def rename(common: CommonOptions, name: str, new: str) -> None:
    """Give the conversation NAME the name NEW; its turns, costs and history stay.

    \b
    taiwa rename chat-1 monads
    """
    repository = common.repository()
    repository.store.refs.rename(name, new)
    _print_position(repository, new, _("{name} is now {session}", name=name, session=new), as_json=common.as_json)


def _print_position(repository: "Repository", session: str, text: str, *, as_json: bool) -> None:
    here = repository.at(session)
    item: Json = {"session": session, "node": here.tip, "turn": here.count, "state": here.state}
    print_item(item, text.format(session=session, turn=here.count), as_json=as_json)
