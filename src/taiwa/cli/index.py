"""`taiwa index`: reading a folder of documents, and looking at what is indexed."""

from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taiwa.cli.indexing import as_whom, brought_up_to_date, index_of, open_library
from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table, tell
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.retrieve import Index, Library
    from taiwa.retrieve.refresh import Refreshed
    from taiwa.retrieve.values import Listed, Summary

__all__ = ["index"]

SHOWN = 20
"""Problems that are listed after indexing; the rest is counted."""


class OrFolder(click.Group):
    """A group whose first word may be a folder instead of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the hidden command `folder` in front of what is no command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args.insert(0, "folder")
        return super().parse_args(ctx, args)


@click.group(cls=OrFolder, subcommand_metavar="FOLDER [--name NAME] | COMMAND [ARGS]...")
def index() -> None:
    """Read the documents of FOLDER, so that they can be found: Markdown, text, HTML, PDF, DOCX, CSV.

    Run it again after changes: only what is new, changed or gone is done, and an interrupted run goes on where it was.
    A folder that is called like a command is written ./list.

    \b
    taiwa index ~/handbook
    taiwa index ~/handbook --name handbook --language german
    taiwa index ~/handbook --dense ~/models/all-MiniLM-L6-v2
    taiwa index handbook --dense http://127.0.0.1:8080/v1#bge-m3
    taiwa index list
    taiwa index show handbook
    taiwa find "how many days of leave" --in handbook
    """


@index.command("folder", hidden=True)
@click.argument("folder", metavar="FOLDER")
@click.option("--name", default="", metavar="NAME", help="What to call the index; the folder's own name otherwise.")
@click.option("--language", default="english", show_default=True, help="The language whose words are stemmed.")
@click.option(
    "--dense", metavar="DIR|ENDPOINT|off", help="Find by meaning too, with this model, if a check shows a gain."
)
@click.option("--dense-force", is_flag=True, help="Find by meaning too, whatever the check shows.")
@flags("json", "store")
def folder_(shared: Flags, folder: str, name: str, language: str, dense: str | None, dense_force: bool) -> None:
    """Read the documents of FOLDER, or of the folder of an index."""
    from taiwa.cli.indexdense import choose, dense_row, learn, print_dense, wished

    wish, settings = wished(dense, dense_force), shared.settings()
    with open_library(shared) as library:
        before = library.names()
        found = _known(library, folder) or index_of(library, folder, name, language.lower())
        try:
            opened = choose(found, wish, settings)
        except TaiwaError:
            if found.name not in before:
                library.drop(found.name)
            raise
        done = brought_up_to_date(found)
        if not shared.as_json:
            _print_refreshed(found.summary(None), done)
        made = learn(found, opened, wish, settings)
        if shared.as_json:
            emit({**_refreshed(found.summary(None), done), "dense": dense_row(found), "vectors_made": made})
        else:
            print_dense(found, made)


def _contents(summary: "Summary") -> str:
    passages = ngettext("{n} passage", "{n} passages", summary.passages)
    return ngettext("{n} document", "{n} documents", summary.documents) + ", " + passages


def _print_refreshed(summary: "Summary", done: "Refreshed") -> None:
    parts = [f"{count} {what}" for count, what in _counts(done) if count]
    say_line(f"{summary.name}: {_contents(summary)} (files: {', '.join(parts) or 'none'}; {done.seconds:.1f} s)")
    if done.problems:
        shown = done.problems[:SHOWN]
        table(("not read", "why"), [(problem.path, problem.why) for problem in shown])
        if len(done.problems) > SHOWN:
            tell(
                _(
                    "… and {count} more: taiwa index show {name}",
                    count=f"{len(done.problems) - SHOWN:,}",
                    name=summary.name,
                )
            )
    if done.others:
        kinds = ", ".join(f"{suffix} ({count})" for suffix, count in sorted(done.others.items()))
        tell(f"left out, of other kinds: {kinds}")


# The help of the group shows what a folder may be given; it is parsed there.
for option in (each for each in folder_.params if isinstance(each, click.Option)):
    shown = copy(option)
    shown.expose_value = False
    index.params.append(shown)


@index.command("list")
@as_whom
@flags("json", "store")
def list_(shared: Flags, who: tuple[str, ...]) -> None:
    """List the indexes, with what everybody may see of them."""
    with open_library(shared) as library:
        found = [library.index(name).summary(who) for name in library.names()]
    if shared.as_json:
        emit([_summary(each) for each in found])
        return
    if not found:
        tell("there is no index yet: make one with `taiwa index FOLDER`")
        return
    rows = [
        (each.name, f"{each.documents:,}", f"{each.passages:,}", f"{each.problems:,}", _when(each.at_us), each.root)
        for each in found
    ]
    table(("index", "documents", "passages", "not read", "changed", "folder"), rows, frozenset({1, 2, 3}))


@index.command("show")
@click.argument("name")
@click.option("--all", "keeper", is_flag=True, help="Everything, as the keeper of the index sees it.")
@as_whom
@flags("json", "store")
def show_(shared: Flags, name: str, keeper: bool, who: tuple[str, ...]) -> None:
    """Show the documents of the index NAME: size, passages, who may see them, and what could not be read."""
    from taiwa.cli.indexdense import dense_row, print_dense

    with open_library(shared) as library:
        found = library.index(name)
        summary, documents = found.summary(None if keeper else who), found.documents(None if keeper else who)
        if shared.as_json:
            files: list[Json] = [_document(each) for each in documents]
            emit({**_summary(summary), "dense": dense_row(found, keeper=keeper), "files": files})
            return
        say_line(f"{summary.name}  {summary.root}", "bold")
        say_line(_contents(summary) + ", " + ngettext("{n} character", "{n} characters", summary.characters))
        say_line(f"analyzer {summary.analyzer}, changed {_when(summary.at_us)}")
        print_dense(found, keeper=keeper)
    rows = [(each.path, f"{each.passages:,}", _seen_by(each), each.known.problem or each.title) for each in documents]
    if rows:
        say_line("")
        table(("document", "passages", "for", "title, or why it was not read"), rows, frozenset({1}))


@index.command("drop")
@click.argument("name")
@flags("json", "store")
def drop_(shared: Flags, name: str) -> None:
    """Delete the index NAME; the documents themselves stay as they are."""
    with open_library(shared) as library:
        library.drop(name)
    if shared.as_json:
        emit({"dropped": name})
    else:
        say_line(f"dropped {name}")


def _known(library: "Library", word: str) -> "Index | None":
    """The index of that name, where there is no such folder."""
    return library.index(word) if not Path(word).is_dir() and word in library.names() else None


def _counts(done: "Refreshed") -> list[tuple[int, str]]:
    return [(done.added, "new"), (done.changed, "changed"), (done.removed, "gone"), (done.same, "as before")]


def _seen_by(listed: "Listed") -> str:
    return " and ".join(" or ".join(clause) or "nobody" for clause in listed.known.audience) or "everybody"


def _when(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _refreshed(summary: "Summary", done: "Refreshed") -> dict[str, Json]:
    problems: list[Json] = [{"path": each.path, "why": each.why} for each in done.problems]
    return {
        **_summary(summary), "added": done.added, "changed": done.changed, "removed": done.removed, "same": done.same,
        "seconds": round(done.seconds, 3),
        "problems": problems, "others": dict[str, Json](done.others or {}),
    }  # fmt: skip


def _summary(summary: "Summary") -> dict[str, Json]:
    return {
        "index": summary.name, "folder": summary.root, "analyzer": summary.analyzer, "documents": summary.documents,
        "passages": summary.passages, "characters": summary.characters, "not_read": summary.problems,
    }  # fmt: skip


def _document(listed: "Listed") -> dict[str, Json]:
    known = listed.known
    audience: list[Json] = [list[Json](clause) for clause in known.audience]
    return {
        "path": listed.path, "title": listed.title, "passages": listed.passages, "characters": listed.characters,
        "bytes": known.size, "sha256": known.digest, "versions": listed.versions, "reader": known.reader,
        "audience": audience, "problem": known.problem,
    }  # fmt: skip
