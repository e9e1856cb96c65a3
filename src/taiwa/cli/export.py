"""Export and import conversations: export, import."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import CommonOptions, common_options, complete_session, confirm, output_option, read_whole
from taiwa.cli.output import print_item, print_notice
from taiwa.i18n import _, ngettext, user_language
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from taiwa.operations.export import export as export_conversation
from taiwa.operations.files import write_file

if TYPE_CHECKING:
    from taiwa.operations.message_lists import MessageList
    from taiwa.sessions.repository import Repository

FORMATS = {".jsonl": "jsonl", ".md": "md", ".html": "html"}


@click.command()
@click.argument("revision", required=False, default="", shell_complete=complete_session)
@output_option("Write a file; its suffix sets the format.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "md", "html", "verifiable", "openai", "anthropic", "sharegpt"]),
    help="Set the format; import reads jsonl and the messages of openai, anthropic and sharegpt, and verifiable is HTML whose script checks every hash.",
)
@click.option("--calls", is_flag=True, help="Include the bill of each turn (jsonl).")
@click.option("--no-app", is_flag=True, help="Leave out the app; only a store that has it can import the file (jsonl).")
@click.option("--no-attachments", is_flag=True, help="Leave out the bytes of attachments (jsonl) and images (html).")
@click.option(
    "--otel", is_flag=True, help="Write the spans of its turns for OpenTelemetry (OTLP JSON lines), without texts."
)
@click.option("--otel-endpoint", metavar="URL", help="Send the spans to this OpenTelemetry collector.")
@click.option("--otel-content", is_flag=True, help="Include the texts of messages, tools and passages in the spans.")
@common_options("session", "store")
def export(
    common: CommonOptions,
    revision: str,
    output: Path | None,
    form: str | None,
    calls: bool,
    no_app: bool,
    no_attachments: bool,
    *,
    otel: bool,
    otel_endpoint: str | None,
    otel_content: bool,
) -> None:
    """Write the conversation at REVISION as JSONL (for import), Markdown, one HTML page, or messages of other programs.

    \b
    taiwa export chat-1 > chat-1.jsonl
    taiwa export chat-1 -o chat-1.html
    taiwa export chat-1 --format openai > messages.json
    taiwa export chat-1 --otel > spans.jsonl
    """
    repository, revision = common.repository(reading=True), common.place(revision)
    if otel or otel_endpoint is not None:
        if form or calls or no_app or no_attachments or (output is not None and otel_endpoint is not None):
            raise InputError("--otel goes with -o or --otel-endpoint, and with --otel-content, not with other options")
        _export_spans(repository, revision, output, otel_endpoint, content=otel_content)
        return
    if otel_content:
        raise InputError("--otel-content requires --otel or --otel-endpoint")
    form = form or (_format_of(output) if output else "jsonl")
    if form == "verifiable" and output is None:  # its texts may contain control codes
        raise InputError("--format verifiable requires a file: -o FILE.html")
    _write(_exported(repository, revision, form, calls=calls, app=not no_app, attachments=not no_attachments), output)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    write_file(output, text, private=True)
    print_notice(_("written to {path}", path=output))


def _export_spans(
    repository: "Repository", revision: str, output: Path | None, endpoint: str | None, *, content: bool
) -> None:
    """Write the spans of a conversation, or send them to a collector."""
    from taiwa.operations.otel import Collector, otlp_lines

    collector = None if endpoint is None else Collector(endpoint)
    lines = tuple(otlp_lines(repository, revision, content=content))
    if not lines:
        raise InputError("cannot export spans: the journal of these turns is not in this store")
    if collector is not None:
        count = collector.send(lines)
        print_notice(ngettext("{n} turn sent", "{n} turns sent", count))
    else:
        _write("".join(f"{line}\n" for line in lines), output)


def save(repository: "Repository", revision: str, path: Path) -> None:
    """Write a conversation to a file, in the format of its suffix.

    Raises:
        InputError: the suffix is unknown, or the file cannot be written.
    """
    write_file(path, _exported(repository, revision, _format_of(path)), private=True)


def _exported(repository: "Repository", revision: str, form: str, **included: bool) -> str:
    return export_conversation(repository, revision, form, language=user_language(), title="", **included)


def _format_of(path: Path) -> str:
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; use one of {', '.join(FORMATS)}")
    return FORMATS[path.suffix]


@click.command("import")
@click.argument("file")
@click.argument("name", required=False)
@click.option("--trust", is_flag=True, help="Trust its app, after showing what it names and asking.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@common_options("as_json", "store")
def import_(common: CommonOptions, file: str, name: str | None, trust: bool, yes: bool) -> None:
    """Read an exported conversation from FILE (`-` for standard input): check every hash, and import all of it or nothing.

    A list of messages in the form of OpenAI, Anthropic or ShareGPT is imported as a conversation of the app plain; each of
    several lists, or lines, is a conversation.

    It does not become the latest conversation. The model, tools and documents of an imported app are used only after
    you trust it, here or with taiwa apps trust.

    \b
    taiwa import chat-1.jsonl
    taiwa import chat-1.jsonl chat-from-home
    taiwa import messages.json
    """
    from taiwa.cli.apps import UNCONFIRMED, print_untrusted
    from taiwa.operations.apps import untrusted_apps
    from taiwa.operations.message_lists import read_message_lists

    settings = common.settings()
    repository = common.repository(settings)
    text = read_whole(file)
    if (lists := read_message_lists(text)) is not None:
        _import_messages(repository, lists, name or "", as_json=common.as_json)
        return
    here = repository.import_lines(text.split("\n"), name)  # `splitlines` splits at more than line feeds
    sessions: list[Json] = [ref.name for ref in repository.store.refs.list() if ref.tip == here.tip]
    line = ngettext(
        "{names}: {n} turn, every hash is right", "{names}: {n} turns, every hash is right",
        here.count, names=", ".join(map(str, sessions)),
    )  # fmt: skip
    item: dict[str, Json] = {"node": here.tip, "turns": here.count, "sessions": sessions}
    trusted = repository.store.nodes.is_trusted(here.app.hash)
    if not trusted and (apps := untrusted_apps(repository, settings, here.app.hash)):
        if not common.as_json and (trust or apps[0].lines()):
            print_untrusted(apps)
        if trust:
            confirm("trust it?", UNCONFIRMED, yes=yes)
            repository.trust(here.app.hash)
        elif apps[0].lines():
            print_notice(
                _("this is ignored until you trust the app: taiwa apps trust {app}", app=here.app.name), "yellow"
            )
    print_item(item | {"trusted": trusted or trust}, line, as_json=common.as_json)


def _import_messages(repository: "Repository", lists: "Sequence[MessageList]", name: str, *, as_json: bool) -> None:
    """Import lists of messages, and print their names."""
    from taiwa.operations.message_lists import import_message_lists

    done = import_message_lists(repository, lists, name)
    count = sum(here.count for here in done.values())
    line = ngettext("{names}: {n} turn", "{names}: {n} turns", count, names=", ".join(done))
    print_item({"sessions": [*done], "turns": count}, line, as_json=as_json)
