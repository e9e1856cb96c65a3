"""Index folders of documents, look at indexes, and find passages: index, find."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import (
    CommonOptions,
    Group,
    common_options,
    index_option,
    principal_option,
    require_query,
)
from taiwa.cli.output import (
    bracketed,
    console,
    format_place,
    print_item,
    print_json,
    print_line,
    print_notice,
    print_result,
    print_rows,
    progress_bar,
    table,
)
from taiwa.i18n import _, ngettext
from taiwa.kernel.attachments import path_kind
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import plain, truncate
from taiwa.operations.result_json import format_time, refreshed_to_json, to_json

if TYPE_CHECKING:
    from taiwa.operations.documents import Reporter
    from taiwa.operations.results import EmbeddingsResult, MarkedPassage
    from taiwa.retrieval.ingest import Progress, RefreshReport
    from taiwa.retrieval.types import DocumentListing, IndexSummary

SHOWN = 20
"""The number of problems listed after indexing; the rest is counted."""
Marks = tuple[tuple[int, int], ...]
LINES = 3
NARROWEST = 40
SMALL = 0.1
BEFORE = 0.2
"""The share of an excerpt before the match."""


class OrFolder(Group):
    """A group whose first argument may be a folder instead of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the hidden command `folder` before an argument that is not a command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args.insert(0, "folder")
        return super().parse_args(ctx, args)


@click.group(cls=OrFolder, subcommand_metavar="FOLDER [--name NAME] | COMMAND [ARGS]...")
def index() -> None:
    """Index the documents of FOLDER: Markdown, text, HTML, PDF, DOCX, CSV, JSON Lines.

    Run it again after changes: only new, changed and deleted files are processed, and an interrupted run is continued.
    If a folder has the name of a command, write ./list.

    \b
    taiwa index ~/handbook
    taiwa index ~/handbook --name handbook --language german
    taiwa index ~/handbook --embeddings ~/models/all-MiniLM-L6-v2
    taiwa index handbook --embeddings http://127.0.0.1:8080/v1#bge-m3
    taiwa index list
    taiwa index show handbook
    taiwa find "how many days of leave" --in handbook
    """


@index.command("folder", hidden=True)
@click.argument("folder", metavar="FOLDER")
@click.option("--name", default="", metavar="NAME", help="Name a new index.  [default: the folder's name]")
@click.option("--language", default="", help="Stem the words of this language in a new index.  [default: english]")
@click.option(
    "--embeddings",
    metavar="DIR|ENDPOINT|off",
    help="Also search with embeddings of this model.",
)
@common_options("as_json", "store")
def folder_(common: CommonOptions, folder: str, name: str, language: str, embeddings: str | None) -> None:
    """Index the documents of FOLDER, or refresh an index.

    \b
    taiwa index folder ~/handbook
    """
    from taiwa.operations import documents

    if embeddings is not None and not embeddings.strip():
        raise InputError("--embeddings requires the folder of a model, an endpoint (http://HOST:PORT/v1#NAME), or off")
    settings = common.settings()
    options = documents.IndexOptions(folder, name, language, (embeddings or "").strip())
    made: dict[str, Json] = {}
    with documents.open_library(settings, writing=True) as library:
        for step in documents.index_folder(library, settings, options, reporter()):
            if isinstance(step, tuple):
                summary, done = step
                made |= refreshed_to_json(summary, done)
                if not common.as_json:
                    _print_refreshed(summary, done)
            else:
                made |= {"embeddings": to_json(step), "vectors_made": 0 if step is None else step.made}
                if not common.as_json:
                    _print_embeddings(step)
    if common.as_json:
        print_json(made)


def _contents(summary: "IndexSummary") -> str:
    passages = ngettext("{n} passage", "{n} passages", summary.passages)
    return ngettext("{n} document", "{n} documents", summary.documents) + ", " + passages


def _print_refreshed(summary: "IndexSummary", done: "RefreshReport") -> None:
    counts = ((done.added, "new"), (done.changed, "changed"), (done.removed, "gone"), (done.same, "as before"))
    parts = [f"{count} {what}" for count, what in counts if count]
    print_line(f"{summary.name}: {_contents(summary)} (files: {', '.join(parts) or 'none'}; {done.seconds:.1f} s)")
    if done.problems:
        shown = done.problems[:SHOWN]
        table((_("file"), _("problem")), [(problem.path, problem.why) for problem in shown])
        if len(done.problems) > SHOWN:
            more = f"{len(done.problems) - SHOWN:,}"
            print_notice(_("… and {count} more: taiwa index show {name}", count=more, name=summary.name))
    if done.others:
        kinds = ", ".join(f"{suffix} ({count})" for suffix, count in sorted(done.others.items()))
        print_notice(f"skipped, of other types: {kinds}")


# The help of the group shows the options of the hidden command; they are parsed there.
for option in (each for each in folder_.params if isinstance(each, click.Option)):
    shown = copy(option)
    shown.expose_value = False
    index.params.append(shown)


@index.command("list")
@click.option("--caller", default="", metavar="NAME", help="List those of this caller of `taiwa serve`.")
@principal_option
@common_options("as_json", "store")
def list_(common: CommonOptions, audience: tuple[str, ...], caller: str) -> None:
    """List the indexes, with the numbers of documents that everyone may see.

    \b
    taiwa index list
    """
    from taiwa.operations.documents import open_library

    with open_library(common.settings(), reading=True) as library:
        found = tuple(library.index(name).summary(audience) for name in library.names(caller))
    rows = [
        (
            each.name, f"{each.documents:,}", f"{each.passages:,}", f"{each.problems:,}", format_time(each.at_us),
            each.root,
        )
        for each in found
    ]  # fmt: skip
    heads = (_("index"), _("documents"), _("passages"), _("not read"), _("changed"), _("folder"))
    none = _("there are no indexes yet; create one with `taiwa index FOLDER`")
    print_rows(found, heads, rows, frozenset({1, 2, 3}), as_json=common.as_json, none=none)


@index.command("show")
@click.argument("name")
@click.option("--all", "is_owner", is_flag=True, help="Show everything, as the owner of the index sees it.")
@click.option("--access", "shows_access", is_flag=True, help="Show the access rules, and who may see each document.")
@principal_option
@common_options("as_json", "store")
def show_(common: CommonOptions, name: str, is_owner: bool, shows_access: bool, audience: tuple[str, ...]) -> None:
    """Show the documents of the index NAME: size, passages, audience, and what could not be read.

    \b
    taiwa index show handbook
    """
    from taiwa.operations.documents import embeddings_of, open_library

    is_owner = is_owner or shows_access
    with open_library(common.settings(), reading=True) as library:
        found = library.index(name)
        rules = found.rules() if shows_access else ()
        principals = None if is_owner else audience
        summary, documents = found.summary(principals), found.documents(principals)
        embeddings = embeddings_of(found, is_owner=is_owner)
        if common.as_json:
            access: dict[str, Json] = {"rules": to_json(rules)} if shows_access else {}
            print_json({
                **to_json(summary), "embeddings": to_json(embeddings), **access, "files": to_json(documents),
            })  # fmt: skip
            return
        print_line(f"{summary.name}  {summary.root}", "bold")
        print_line(_contents(summary) + ", " + ngettext("{n} character", "{n} characters", summary.characters))
        print_line(f"analyzer {summary.analyzer}, changed {format_time(summary.at_us)}")
        _print_embeddings(embeddings)
    if rules:
        print_line("")
        lines = [(each.where, each.pattern, " or ".join(each.names) or "no one", f"{each.files:,}") for each in rules]
        table((_("rule"), _("matches"), "for", _("files")), lines, frozenset({3}))
    elif shows_access:
        print_line(_("no access rules: everyone sees each document without `access:` in its front matter"))
    rows = [(each.path, f"{each.passages:,}", _seen_by(each), each.known.problem or each.title) for each in documents]
    if rows:
        print_line("")
        table((_("document"), _("passages"), "for", _("title, or why it was not read")), rows, frozenset({1}))


@index.command("remove")
@click.argument("name")
@common_options("as_json", "store")
def remove(common: CommonOptions, name: str) -> None:
    """Delete the index NAME; the documents themselves stay.

    \b
    taiwa index remove handbook
    """
    from taiwa.operations.documents import open_library

    with open_library(common.settings()) as library:
        library.drop(name)
    print_item({"index": name, "removed": True}, f"removed {name}", as_json=common.as_json)


def _seen_by(listed: "DocumentListing") -> str:
    return " and ".join(" or ".join(clause) or "no one" for clause in listed.known.audience) or "everyone"


def _print_embeddings(found: "EmbeddingsResult | None") -> None:
    """Print the embeddings of an index."""
    if found is None:
        return
    new = f" ({found.made:,} new)" if found.made else ""
    vectors = "" if found.vectors is None else f", {found.vectors:,} vectors{new}"
    print_line(f"embeddings: {found.meaning.model}{vectors}, from {found.meaning.place}")


@click.command()
@click.argument("query", required=False)
@index_option
@principal_option
@click.option(
    "-k", "limit", type=click.IntRange(1, 1000), default=5, show_default=True, help="Show at most this many passages."
)
@common_options("as_json", "store")
def find(
    common: CommonOptions, query: str | None, indexes: tuple[str, ...], audience: tuple[str, ...], limit: int
) -> None:
    """Find the passages that best match QUERY; without QUERY, or with `-`, it is the piped text. No model is called.

    \b
    taiwa find "days of leave" --in ~/handbook
    taiwa find 有給休暇の申請 --in handbook -k 3
    taiwa find "travel expenses" --json | jq .path
    """
    from taiwa.operations import documents

    query = require_query(query, "find takes a QUERY, or piped text")
    settings = common.settings()
    with documents.open_library(settings, creating=any(map(path_kind, indexes))) as library:
        found = documents.find(library, settings, documents.FindOptions(query, indexes, audience, limit), reporter())
    for trouble in found.warnings:
        print_notice(trouble, "yellow")
    if common.as_json:
        print_result(found)
    elif not found.passages:
        print_notice(f"no visible passage contains a word of {truncate(query, 80)!r}")
    else:
        print_passages(found.passages)


def print_passages(found: "tuple[MarkedPassage, ...]") -> None:
    """Print passages: score and location on one line, then an excerpt."""
    width = max(console().width - 4, NARROWEST) if sys.stdout.isatty() else 96
    for number, each in enumerate(found, start=1):
        passage = each.passage
        if number > 1:
            print_line("")
        # Fused scores of two rankings are small.
        score = f"{passage.score:.2f}" if passage.score >= SMALL else f"{passage.score:.4f}"
        print_line(f"{number}. {format_place(passage.source, passage.heading, passage.page)}  {score}", "bold")
        _print_excerpt(*cut(passage.text, each.marks, width * LINES), width)


def cut(text: str, marks: Marks, cells: int) -> tuple[str, Marks]:
    """Cut out the part with the most matches, at most `cells` wide, on one line; a wide character takes two cells.

    >>> bracketed(*cut("一二三四五六七八九十", ((5, 6),), 9))
    '…五[六]七…'
    """
    from rich.cells import cell_len

    line = "".join(" " if sign.isspace() else sign for sign in plain(text))
    if cell_len(line) <= cells:
        return line, marks
    start = _begin(marks, len(line), cells)
    while start and cell_len(line[start:]) < cells - 2:
        start -= 1
    end, room = start, cells - 2
    while end < len(line) and (room := room - cell_len(line[end])) >= 0:
        end += 1
    before, after = "…" if start else "", "…" if end < len(line) else ""
    shift = len(before) - start
    inside = (
        (max(first, start) + shift, min(last, end) + shift) for first, last in marks if first < end and last > start
    )
    return before + line[start:end] + after, tuple(inside)


def _begin(marks: Marks, length: int, cells: int) -> int:
    """Return the start of the part with the most matches, with a little text before it."""
    if not marks:
        return 0
    reach = cells // 2
    best = max(marks, key=lambda mark: sum(end - start for start, end in marks if mark[0] <= start < mark[0] + reach))
    return max(min(best[0] - int(cells * BEFORE / 2) - 1, length - 1), 0)


def _print_excerpt(text: str, marks: Marks, width: int) -> None:
    """Print an excerpt, with matches in colour or in brackets."""
    from rich.text import Text

    colours = sys.stdout.isatty()
    shown = Text(text if colours else bracketed(text, marks))
    for start, end in marks if colours else ():
        shown.stylize("bold yellow", start, end)
    for line in shown.wrap(console(), width):
        line.rstrip()
        if colours:
            console().print(Text("   ") + line)
        else:
            print_line(f"   {line.plain}")


@contextmanager
def progress() -> "Generator[Progress]":
    """Show a progress bar on a terminal."""
    with progress_bar(None) as update:
        yield lambda done, whole, what: update(completed=done, total=whole, description=plain(what[-40:]))


def reporter() -> "Reporter":
    """Return the function that prints the progress of indexing."""
    from taiwa.operations.documents import Reporter

    return Reporter(print_notice, lambda text: print_notice(text, "yellow"), progress)
