"""What commands that look into documents share: the library, the indexes that were named, and a folder read on the way."""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from taiwa.cli.options import Flags
from taiwa.cli.screen import errors, plain, tell
from taiwa.kernel.errors import ConflictError, InputError

if TYPE_CHECKING:
    from taiwa.retrieval import Index, Library
    from taiwa.retrieval.ingest import Progress, RefreshReport
    from taiwa.settings import Settings

__all__ = ["as_whom", "bar", "brought_up_to_date", "chosen", "index_of", "named_in", "open_library"]

C = TypeVar("C", bound=Callable[..., Any])

WAIT = 600.0
"""Seconds that a command waits for another process that is indexing the same."""
MOST_NAMES = 1_000


def as_whom(command: C) -> C:
    """Give a command the option that says for whom it looks."""
    words = "For whom to look: user:ann, group:hr; without it, what everybody may see."
    return click.option("--as", "who", metavar="NAME", multiple=True, help=words)(command)


def named_in(command: C) -> C:
    """Give a command the option that says where it looks."""
    words = "An index, or a folder, which is indexed first; all indexes without it."
    return click.option("--in", "places", metavar="FOLDER|INDEX", multiple=True, help=words)(command)


@contextmanager
def open_library(shared: Flags) -> "Generator[Library]":
    """Open the library that stands beside the store, or on the same server."""
    from taiwa.retrieval import Library

    store = shared.settings().store
    place = store.with_name(f"{store.stem}-library.db") if isinstance(store, Path) else store
    with Library.open(place) as library:
        yield library


def chosen(library: "Library", places: Iterable[str], settings: "Settings") -> "list[Index]":
    """Return the indexes of names and folders, all without any; a folder is read first.

    They are asked by meaning too where that was chosen and shown to help.

    Raises:
        InputError: a word names neither an index nor a folder, or there is no index at all.
    """
    from taiwa.models.http_api.embeddings import by_meaning

    found = [_place(library, place, settings) for place in dict.fromkeys(places)] or [
        by_meaning(library.index(name), settings) for name in library.names()
    ]
    if not found:
        raise InputError("there is no index yet: make one with `taiwa index FOLDER`, or name a folder with --in")
    return found


def _place(library: "Library", place: str, settings: "Settings") -> "Index":
    from taiwa.models.http_api.embeddings import by_meaning, caught_up

    # As with commands, a folder that is called like an index is written ./name.
    if place in library.names():
        return by_meaning(library.index(place), settings)
    if not Path(place).is_dir():
        raise InputError(f"{place!r} is neither an index nor a folder: see `taiwa index list`")
    index = index_of(library, place)
    for problem in brought_up_to_date(index).problems:
        tell(f"{problem.path}: {problem.why}")
    found = by_meaning(index, settings)
    if trouble := caught_up(found):
        tell(trouble, "yellow")
    return found


def index_of(library: "Library", folder: str, name: str = "", language: str = "english") -> "Index":
    """Return the index of a folder, a new one under a free name if there is none.

    Raises:
        ConflictError: the name asked for is that of another folder's index.
        InputError: the folder has an index of another name or language.
    """
    known = library.of(folder)
    if known is not None:
        if name and name != known.name:
            raise InputError(f"{folder} has the index {known.name!r} already: `taiwa index drop` it to name it anew")
        return known
    if name:
        return library.make(folder, name, language)
    base = Path(folder).resolve().name or "root"
    for number in range(1, MOST_NAMES):
        free = base if number == 1 else f"{base}-{number}"
        if free in library.names():
            continue
        try:
            return library.make(folder, free, language)
        except ConflictError:
            # Another process was quicker; if it makes the same, that one will do.
            if (made := library.of(folder)) is not None:
                return made
    raise ConflictError(f"{MOST_NAMES} indexes are called like {base!r}: choose another --name")


def brought_up_to_date(index: "Index") -> "RefreshReport":
    """Read what changed in an index's folder, with a bar on a terminal."""
    try:
        waiting = index.backend.writing(0.0)
        with waiting:
            pass
    except ConflictError:
        tell(f"another process is indexing {index.name!r}: waiting for it")
    with bar() as moved:
        return index.refresh(WAIT, moved)


@contextmanager
def bar() -> "Generator[Progress]":
    """Show how far something is, on a terminal."""
    from rich import progress
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with progress.Progress(*columns, console=errors(), transient=True, disable=not errors().is_terminal) as shown:
        task = shown.add_task("", total=None)

        def moved(done: int, whole: int, what: str) -> None:
            shown.update(task, completed=done, total=whole, description=plain(what[-40:]))

        yield moved
