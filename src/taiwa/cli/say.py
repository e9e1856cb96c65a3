"""Turns: say, batch, retry, edit, resume, rerun. Moves between turns that call no model are in `store`.

Options that several commands have, all those of `say` among them, are declared in `taiwa.cli.options`.
"""

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from taiwa.cli.options import (
    ANSWERS,
    CALLS,
    MOST_OF_TEXT,
    SHOWN,
    CommonOptions,
    ask_param,
    common_options,
    complete_session,
    mention_passed_over,
    open_app,
    open_session,
    preview,
    read_params,
    require_prompt,
    row_options,
    turn_options,
)
from taiwa.cli.output import (
    NOT_ANSWERED,
    bill_line,
    exit_if_refused,
    one_line,
    print_item,
    print_json,
    print_kept_apart,
    print_line,
    print_notice,
    print_result,
    print_skipped,
    print_stream,
    progress_bar,
    progress_text,
)
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import InputError
from taiwa.kernel.text import inert

if TYPE_CHECKING:
    from taiwa.conversation.app import App
    from taiwa.operations.batch import BatchMode, BatchOptions, BatchPreview, Counts, OnRow
    from taiwa.sessions.batch import BatchRow


USAGE = 'say takes a text, or an app and a text: taiwa say [APP] "TEXT" (quote the text)'


@click.command()
@click.argument("words", nargs=-1, metavar="[APP] TEXT")
@common_options()
def say(common: CommonOptions, words: tuple[str, ...]) -> None:
    """Send TEXT and print the answer. Piped text is appended to TEXT after an empty line; `-` stands for the piped text alone.

    One argument is the text, or an app if it names one and text is piped in or given by -f; two are an app and the text.
    Without -c or -s a new conversation is created. A conversation keeps its model and the options --system, --temperature,
    --max-tokens, --tool, --type and --max-cost until others are given. --in and --state set up a new one, which
    `taiwa apps save` can keep as an app.

    \b
    taiwa say "What is a monad?"
    taiwa say --system "Answer like a pirate." "Where is the treasure?"
    taiwa say -f a.py -f b.py "What differs?"
    taiwa say --type 'name, age int' "Invent a person."
    taiwa say --tool calculator "What is 12% of 8,900?"
    taiwa say --mcp-server "npx some-server" "Who is on duty tonight?"
    taiwa say --in handbook --state 'days int' "Three days of leave, please."
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
    text = require_prompt(prompt if words else None, USAGE, common.fragments, attachments)
    if not app and not common.continue_latest and text != prompt and _is_app(prompt):
        app, text = prompt, text.removeprefix(f"{prompt}\n\n")
    common, made = app_of_options(common, app)
    if common.dry_run:
        preview(common, made, text, attachments)
        return
    session = open_session(common, made)
    if common.session or common.continue_latest:
        mention_passed_over(session)
    exit_if_refused(print_stream(session.stream(text, attachments), **common.shown()))


def app_of_options(common: CommonOptions, app: str) -> "tuple[CommonOptions, str | App]":
    """Return the other options, and the app that `--in` and `--state` make; without these two, what was given.

    Raises:
        InputError: an app or an existing conversation is named too, the fields are invalid, or the documents are not found.
    """
    if not (common.indexes or common.state):
        return common, app
    if app or common.continues:
        what = f"the app {app!r}" if app else "the conversation"
        raise InputError(
            f"--in and --state set up a new conversation, and {what} has its own documents and state; leave them out"
        )
    from taiwa.cli.index import reporter
    from taiwa.operations.apps import make_app
    from taiwa.operations.documents import index_documents

    made = make_app(common.indexes, common.state, common.system or "")
    if common.indexes:
        index_documents(common.settings(), common.indexes, reporter())
    return replace(common, system=None), made


def _app_and_prompt(words: tuple[str, ...], *, has_text: bool) -> tuple[str, str]:
    """Split the arguments of `say`; a `-` after a prompt has no effect, since piped text is read anyway."""
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


@click.command()
@click.argument("name", default="", shell_complete=complete_session)
@common_options("session", "model", *ANSWERS, *CALLS, *SHOWN, "max_cost", "retry_paid", "strict", "store")
def retry(common: CommonOptions, name: str) -> None:
    """Send the text of the last turn of the conversation NAME again, from the same state; the new answer replaces the old one.

    \b
    taiwa retry                          the old answer stays in the log: taiwa undo, taiwa log
    taiwa retry chat-1 -m openai:gpt-x
    """
    common = replace(common, session=name or common.session)
    session = open_session(common, latest=True)
    mention_passed_over(session)
    exit_if_refused(print_stream(session.stream_retry(), **common.shown()))


@click.command()
@click.argument("revision", shell_complete=complete_session)
@click.argument("text", required=False)
@click.option("--fork", "name", metavar="NAME", help="Answer on a new branch and leave the conversation unchanged.")
@common_options(
    "session", "model", *ANSWERS, *CALLS, "fragments", "attachments", "attach_as_text", *SHOWN, "max_cost", "retry_paid",
    "strict", "store",
)  # fmt: skip
def edit(common: CommonOptions, revision: str, text: str | None, name: str | None) -> None:
    """Go back to the turn at REVISION and send TEXT instead; later turns stay in the log.

    Its attachments stay, unless -a gives others. Piped text is appended to TEXT after an empty line; without TEXT, or with
    `-`, it stands alone.

    \b
    taiwa edit 2 "I meant the other one"           turn 2 of the latest conversation, as taiwa log counts
    taiwa edit chat-1:2 "What if not?" --fork what-if
    """
    from taiwa.operations.open_session import find_turn

    if any(map(str.isspace, revision)):  # the text, without a turn before it
        raise InputError('edit takes the number of a turn and a text: taiwa edit 2 "TEXT"')
    session_name, turns = find_turn(common.repository(), common.place(revision))
    session = open_session(replace(common, session=session_name))
    attachments = common.read_attachments() or None
    text = require_prompt(
        text, "edit takes a TEXT, piped text, or a file (-f, -a)", common.fragments, attachments or ()
    )
    if name:
        session = session.fork(name)
    else:
        mention_passed_over(session)
    exit_if_refused(print_stream(session.stream_edit(text, turn=-turns, attachments=attachments), **common.shown()))


@click.command()
@click.argument("name", default="", shell_complete=complete_session)
@click.option("--discard", is_flag=True, help="Drop the turn instead; its calls stay on the bill.")
@common_options("session", "model", "tool_names", *CALLS, *SHOWN, "max_cost", "retry_paid", "store")
def resume(common: CommonOptions, name: str, discard: bool) -> None:
    """Finish the turn of the conversation NAME that was cut off last; answered calls are not paid for again.

    If the conversation has moved since, the turn becomes a branch of it.

    \b
    taiwa resume
    taiwa resume chat-1
    taiwa resume chat-1 --discard
    """
    from taiwa.operations.open_session import discard_interrupted, open_interrupted

    settings = common.settings()
    repository, name = common.repository(settings), name or common.session
    if discard:
        run = discard_interrupted(repository, name)
        text = _("discarded a turn of {session}: {text}", session=run.ref, text=one_line(run.text, MOST_OF_TEXT))
        print_item({"session": run.ref, "text": run.text}, text, as_json=common.as_json)
        return
    session, others = open_interrupted(repository, settings, turn_options(common, settings), name)
    interrupted = session.name
    turn = print_stream(session.stream_resume(), **common.shown())
    print_kept_apart(session, interrupted)
    if others:
        print_notice(f"turns of {', '.join(others)} were cut off too; finish them with taiwa resume NAME")
    exit_if_refused(turn)


@click.command()
@click.argument("revision", required=False, default="", shell_complete=complete_session)
@click.option("-o", "--as", "name", metavar="NAME", required=True, help="Name the new conversation.")
@click.option("--app", metavar="APP", default="", help="Use another app.")
@common_options(
    "session", "model", "params", "approve", "as_json", "verbose", "max_cost", "retry_paid", "strict", "store"
)
def rerun(common: CommonOptions, revision: str, name: str, app: str) -> None:
    """Send every text of a conversation to a model again, on a new branch NAME; compare with taiwa diff.

    With --json each turn is one line of JSON.

    \b
    taiwa rerun chat-1 -m openai:gpt-x -o other && taiwa diff chat-1 other
    taiwa rerun chat-1 --app tutor -p level=2 -o with-tutor
    """
    from taiwa.operations.open_session import model_of, with_own_limits
    from taiwa.sessions.session import rerun as run_again

    if common.params and not app:
        raise InputError("-p requires --app; the current app keeps its parameters")
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


# --- batches ----------------------------------------------------------------------------------------------------------
FAILED, INTERRUPTED = 1, 130


@click.command()
@click.argument("app_and_file", nargs=-1, required=True, metavar="[APP] FILE")
@click.option(
    "--mode", type=click.Choice(["map", "fold"]), default="map", show_default=True,
    help="Run each row in its own conversation (map), or all rows in one (fold).",
)  # fmt: skip
@row_options
@common_options(
    "model", "params", *ANSWERS, *CALLS, "session", "as_json", "verbose", "dry_run", "max_cost", "retry_paid",
    "requests_per_minute", "tokens_per_minute", "no_store", "strict", "store",
)  # fmt: skip
def batch(
    common: CommonOptions,
    app_and_file: tuple[str, ...],
    mode: "BatchMode",
    width: int,
    resume: bool,
    output: Path | None,
    max_failures: int,
) -> None:
    """Send every line of FILE (`-` for standard input) to APP, by default plain; print one line of JSON per row, in the order of the file.

    A line is a text, or JSON: {"text": …, "id": …, "params": {…}, "attachments": ["cat.png"]}; a row of a
    table in CSV is sent with the names of its columns. A row that fails has an "error" and does not stop the batch; the
    exit code is then 1, and 4 if the model refused a row. With --strict, a line that cannot be read stops it
    before anything is sent. With -o, --json prints a summary. A fold is stored as the conversation -s NAME (default:
    APP-FILE).

    \b
    taiwa batch lines.txt -j 8 -o answers.jsonl
    taiwa batch translate lines.txt --mode fold -p target_lang=English -o out.jsonl
    taiwa batch linguistic sentences.jsonl -j 16 -o out.jsonl --max-cost 0.50
    taiwa batch linguistic sentences.jsonl -j 16 -o out.jsonl --resume
    taiwa batch linguistic sentences.jsonl --dry-run
    """
    from taiwa.operations.batch import BatchOptions

    if len(app_and_file) > 2:
        raise click.UsageError(f"expected an app and a file, got {len(app_and_file)} arguments")
    app, file = ("plain", *app_and_file)[-2:]
    options = BatchOptions(
        app, mode, read_params(common.params), common.session, width, resume, common.answers(), max_failures
    )
    run_batch(common, file, options, output)


def run_batch(
    common: CommonOptions, file: str, options: "BatchOptions", output: Path | None, *, shorten: bool = False
) -> None:
    """Run a batch of the rows of a file, or preview it; `shorten` is that of `_write_rows`.

    Raises:
        InputError: `common.strict`, and a row cannot be read. Exit: not every row was answered.
    """
    from taiwa.operations.batch import open_rows, preview_turns, run_turns

    with open_rows(file) as rows:
        unreadable = rows.unreadable()
        if unreadable and common.strict:
            raise InputError(unreadable[0])
        settings = common.settings()
        if common.dry_run:
            more = "" if options.mode == "map" else ", and before each row the texts of the rows before it"
            _print_preview(preview_turns(settings, options, rows), as_json=common.as_json, more=more)
            return
        print_skipped(unreadable)
        settings = common.with_first_model(settings)
        repository, turns = common.repository(settings), turn_options(common, settings, asks=False)

        def run(on_row: "OnRow") -> "Counts":
            return run_turns(repository, settings, turns, options, rows, on_row, ask=ask_param())

        _write_rows(common, output, rows.count, run, resume=options.resume, shorten=shorten)


def _print_preview(preview: "BatchPreview", *, as_json: bool, more: str = "") -> None:
    """Print what a batch would send."""
    for number, message in preview.errors:
        print_notice(f"{number}: {message}", "yellow")
    if as_json:
        print_json({"rows": preview.rows, "bad": len(preview.errors), "tokens": preview.tokens})
        return
    print_line(
        ngettext(
            "{n} row can be sent, {bad} cannot; about {tokens} tokens to read",
            "{n} rows can be sent, {bad} cannot; about {tokens} tokens to read",
            preview.rows,
            bad=len(preview.errors),
            tokens=f"{preview.tokens:,}",
        )
        + more
    )


def _write_rows(
    common: CommonOptions, output: Path | None, count: int, run: "Callable[[OnRow], Counts]", *,
    resume: bool, shorten: bool = False,
) -> None:  # fmt: skip
    """Run a batch: write its rows as they come, and print its summary. `shorten` replaces lists of attempts by their number.

    Raises:
        Exit: not every row was answered.
    """
    from taiwa.operations.result_json import to_json

    # Without a bar where the rows themselves are on the terminal.
    with _opened(output, resume=resume) as out, progress_bar(count, is_shown=not out.isatty()) as update:

        def write(row: "BatchRow", counts: "Counts") -> None:
            written: Any = to_json(row)
            if shorten and "attempts" in written:
                written["attempts"] = len(written["attempts"])
            out.write(f"{inert(json.dumps(written, ensure_ascii=False))}\n")
            out.flush()
            update(advance=1, description=progress_text(_("rows"), counts.failed, counts.spent.cost))

        counts = run(write)
    _print_summary(common, output, counts)
    if counts.stopped or counts.failed:
        raise click.exceptions.Exit(INTERRUPTED if counts.stopped == "interrupted" else FAILED)
    if counts.refused:
        raise click.exceptions.Exit(NOT_ANSWERED)


def _print_summary(common: CommonOptions, output: Path | None, counts: "Counts") -> None:
    why = _reason(counts)
    if output is not None and common.as_json:
        from taiwa.operations.result_json import cost_of, usage_to_json

        print_json({
            "session": counts.session or None, "done": counts.done, "failed": counts.failed, "kept": counts.kept,
            "refused": counts.refused, "usage": usage_to_json(counts.spent), "cost": cost_of(counts.spent.cost),
            "stopped": why or None,
        })  # fmt: skip
        return
    print_notice(
        ngettext(
            "{n} row answered, {failed} failed, {kept} kept from before",
            "{n} rows answered, {failed} failed, {kept} kept from before",
            counts.done,
            failed=counts.failed,
            kept=counts.kept,
        ),
        "red" if counts.failed else "dim",
    )
    if counts.refused:
        print_notice(ngettext("the model refused {n} row", "the model refused {n} rows", counts.refused), "yellow")
    print_notice(bill_line(counts.spent))
    if why:
        print_notice(_("stopped: {why}; finished rows are saved, --resume continues", why=why), "yellow")


def _reason(counts: "Counts") -> str:
    """Say why a batch stopped early."""
    if counts.stopped == "interrupted":
        return _("interrupted")
    if counts.stopped == "cost":
        return _("the cost limit was reached ({why})", why=counts.reason)
    if counts.stopped == "failing":
        return ngettext(
            "{n} row failed ({error})",
            "{n} consecutive rows failed for the same reason ({error})",
            counts.streak.rows,
            error=counts.reason,
        )
    return ""


@contextmanager
def _opened(output: Path | None, *, resume: bool) -> Generator[TextIO]:
    """Open the file of rows; an existing one is only overwritten when a batch is resumed."""
    if output is None:
        yield sys.stdout
        return
    if output.suffix.lower() in (".csv", ".tsv"):
        raise InputError(f"{output}: the rows are written as lines of JSON; name the file {output.stem}.jsonl")
    try:
        # A lone surrogate is written as its escape, which means the same in JSON.
        out = output.open("w" if resume else "x", encoding="utf-8", errors="backslashreplace", newline="\n")
    except FileExistsError:
        raise InputError(f"{output} already exists; --resume continues it, or choose another name") from None
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from None
    with out:
        yield out
