"""Writing conversations out and reading them in."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, inert, plain, say_line, tell
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.talk.desk import Desk

__all__ = ["export", "import_", "save", "written"]

FORMS = {".jsonl": "jsonl", ".md": "md", ".html": "html"}


@click.command()
@click.argument("revision", required=False, default="")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file; its ending says the form."
)
@click.option("--format", "form", type=click.Choice(["jsonl", "md", "html"]), help="jsonl can be read back by import.")
@click.option("--calls", is_flag=True, help="Write the bill of each turn along (jsonl).")
@flags("store")
def export(shared: Flags, revision: str, output: Path | None, form: str | None, calls: bool) -> None:
    """Write the conversation at REVISION as JSONL (for import), Markdown or one HTML page.

    \b
    taiwa export chat-1 > chat-1.jsonl
    taiwa export chat-1 -o chat-1.html
    """
    desk = shared.desk()
    form = form or (_form(output) if output else "jsonl")
    text = written(desk, revision, form, calls=calls)
    if output is None:
        click.echo(text, nl=False)
        return
    _write(output, text)
    tell(_("written to {path}", path=output))


def save(desk: "Desk", revision: str, path: Path) -> None:
    """Write a conversation to a file, in the form that its ending says.

    Raises:
        InputError: the ending says none, or the file cannot be written.
    """
    _write(path, written(desk, revision, _form(path)))


def _form(path: Path) -> str:
    if path.suffix not in FORMS:
        raise InputError(f"{path}: the ending says no form; take .jsonl, .md or .html")
    return FORMS[path.suffix]


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def written(desk: "Desk", revision: str, form: str, *, calls: bool = False) -> str:
    """A conversation in one of the forms."""
    from taiwa.cli.pages import as_html, as_markdown

    if form == "jsonl":
        return "".join(f"{inert(line)}\n" for line in desk.store.export(revision, calls=calls))
    stops = tuple(desk.walk(desk.store.resolve(revision)))
    return plain(as_markdown(stops, revision) if form == "md" else as_html(stops, revision))


@click.command("import")
@click.argument("file")
@click.argument("name", required=False)
@flags("json", "store")
def import_(shared: Flags, file: str, name: str | None) -> None:
    """Read an exported conversation from FILE (`-` for standard input): all or nothing, every hash checked.

    \b
    taiwa import chat-1.jsonl
    taiwa import chat-1.jsonl chat-from-home
    """
    from taiwa.cli.opening import decoded, read_file

    desk = shared.desk()
    text = decoded(sys.stdin.buffer.read(), "standard input") if file == "-" else read_file(Path(file))
    here = desk.import_lines(text.split("\n"), name)  # a text may hold what `splitlines` takes for the end of a line
    tip = here.tip
    sessions: list[Json] = [ref.name for ref in desk.store.refs.list() if ref.tip == tip]
    if shared.as_json:
        emit({"node": tip, "turns": here.count, "sessions": sessions})
    else:
        say_line(
            ngettext(
                "{names}: {n} turn, every hash is right",
                "{names}: {n} turns, every hash is right",
                here.count,
                names=", ".join(map(str, sessions)),
            )
        )
