"""Indexes and libraries as a program uses them: find, weigh what was found, keep up with a folder."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from taiwa.kernel.errors import InputError
from taiwa.kernel.values import Message, Passage
from taiwa.postgres.address import Server, is_server
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.evidence import LOOKED_AT, Evidence, judge
from taiwa.retrieve.fusion import dangling, weigh
from taiwa.retrieve.ranks import DEEP, reciprocal_ranks
from taiwa.retrieve.refresh import Progress, Refreshed, refresh
from taiwa.retrieve.seam import Shelf, Shelves
from taiwa.retrieve.values import Feedback, Listed, Summary, Who

__all__ = ["NOBODY", "Index", "Library", "Near", "Within"]

NOBODY: Who = frozenset()
"""Somebody unknown: sees what everybody may see."""
LONGEST_NAME = 100


class Near(NamedTuple):
    """Passages by their nearness in meaning, and the name of the model that says so."""

    model: str
    passages: tuple[Passage, ...]


class Index:
    """One index: a retriever over the passages of a folder's documents.

    `trouble` is why the last question was answered by words alone, where it was not meant to be.
    """

    trouble: str = ""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def __repr__(self) -> str:
        return f"Index({self.name!r})"

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.shelf.name

    @property
    def root(self) -> str:
        """The folder that it is made from."""
        return self.shelf.root

    @property
    def analyzer(self) -> Analyzer:
        """What turns texts and questions into terms."""
        return self.shelf.analyzer

    def find(
        self, query: str, k: int = 5, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages that `who` may see and that share a term with the question, best first.

        Earlier turns of a dialogue count too, less and less with their age.
        """
        return self.by_words(query, k, who, history)

    def by_words(
        self, query: str, k: int = 5, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages that share a term with the question, whatever else the index is asked by."""
        return self.shelf.search(weigh(self.analyzer, query, history), k, frozenset(who))

    def near(self, query: str, k: int, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()) -> "Near | None":
        """Return passages that are near to the question in meaning; None where only words are looked at."""
        del query, k, who, history
        return None

    def evidence(self, query: str, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()) -> Evidence:
        """Measure how much there is on a question."""
        names = frozenset(who)
        weights = weigh(self.analyzer, query, history)
        counts = self.shelf.counts(tuple(weights), names)
        found = self.shelf.search(weights, LOOKED_AT, names)
        return judge(self.analyzer, weights, found, counts, dangling(self.analyzer, query, history))

    def passage(self, id: str, who: Iterable[str] = NOBODY) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return a passage by its id, if that version is still there and `who` may see it."""
        return self.shelf.passage(id, frozenset(who))

    def refresh(self, wait: float = 0.0, progress: Progress | None = None) -> Refreshed:
        """Read what changed in the folder.

        Raises:
            ConflictError: another process indexes here, and did not end within `wait` seconds.
            InputError: the folder is not there, or the index has none.
            ConfigError: the rules of access cannot be understood.
        """
        return refresh(self.shelf, wait, progress)

    def documents(self, who: Iterable[str] | None = NOBODY) -> tuple[Listed, ...]:
        """List documents by path; None is the keeper of the index, who may see all."""
        return self.shelf.documents(None if who is None else frozenset(who))

    def summary(self, who: Iterable[str] | None = NOBODY) -> Summary:
        """Describe the index as far as `who` may see it."""
        return self.shelf.summary(None if who is None else frozenset(who))

    def tell(self, feedback: Feedback) -> None:
        """Keep what a person said of a passage."""
        self.shelf.tell(feedback)


class Within:
    """What `find(query, k)` is over: some indexes, asked for somebody, within a dialogue. It fits the effect `Retrieve`."""

    def __init__(self, indexes: Iterable[Index], who: Iterable[str] = NOBODY, history: Sequence[Message] = ()) -> None:
        self.indexes = tuple(indexes)
        self.who = frozenset(who)
        self.history = tuple(history)

    def after(self, history: Sequence[Message]) -> "Within":
        """Return the same within a dialogue that has gone so far."""
        return Within(self.indexes, self.who, history)

    def find(self, query: str, k: int = 5) -> tuple[Passage, ...]:
        """Return at most k passages, best first. The source of a passage names its index where there are several.

        What has no vectors counts in meaning as it does by words, so that it is neither ahead nor behind for that.
        """
        near = [index.near(query, max(k, DEEP), self.who, self.history) if k > 0 else None for index in self.indexes]
        deep = k if all(each is None for each in near) else max(k, DEEP)
        words: list[tuple[Passage, bool]] = []
        by_model: dict[str, list[Passage]] = {}
        for index, by_meaning in zip(self.indexes, near, strict=True):
            words += (
                (each, by_meaning is None)
                for each in self._named(index, index.by_words(query, deep, self.who, self.history))
            )
            if by_meaning is not None:
                by_model.setdefault(by_meaning.model, []).extend(self._named(index, by_meaning.passages))
        words.sort(key=lambda each: -each[0].score)
        if not by_model:
            return tuple(passage for passage, _ in words[: max(k, 0)])
        meanings = [sorted(found, key=lambda passage: -passage.score) for found in by_model.values()]
        alone = [passage if wordy else None for passage, wordy in words]
        return reciprocal_ranks(([passage for passage, _ in words], alone, *meanings), k)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Why the last question was answered by words alone, where it was not meant to be."""
        return tuple(dict.fromkeys(index.trouble for index in self.indexes if index.trouble))

    def _named(self, index: Index, found: Iterable[Passage]) -> Iterator[Passage]:
        several = len(self.indexes) > 1
        return (replace(each, source=f"{index.name}/{each.source}") if several else each for each in found)

    def passage(self, id: str) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return a passage by its id, from whichever index has it."""
        found = (index.passage(id, self.who) for index in self.indexes)
        return next((passage for passage in found if passage is not None), None)

    def evidence(self, query: str) -> Evidence:
        """Measure how much there is on a question: that of the index which has most."""
        measured = [index.evidence(query, self.who, self.history) for index in self.indexes]
        return max(measured, key=lambda each: (each.top, each.coverage), default=Evidence())


class Library:
    """All indexes of a place."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    @classmethod
    def open(cls, place: str | Path | Server) -> "Library":
        """Open the library of a file, which is made if it is not there, or of a PostgreSQL server.

        Raises:
            InputError: the address of the server is none.
        """
        if isinstance(place, Server) or is_server(place):
            from taiwa.retrieve.server import ServerShelves

            return cls(ServerShelves(_server(place)))
        from taiwa.retrieve.local import LocalShelves  # SQLite is loaded when it is needed

        return cls(LocalShelves(place))

    def __enter__(self) -> "Library":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._shelves.close()

    def names(self) -> tuple[str, ...]:
        """Name every index."""
        return self._shelves.names()

    def index(self, name: str) -> Index:
        """Return an index.

        Raises:
            InputError: there is none of that name.
        """
        return Index(self._shelves.open(name))

    def of(self, folder: str | Path) -> Index | None:
        """Return the index of a folder, if there is one."""
        root = str(Path(folder).resolve())
        return next((index for index in map(self.index, self.names()) if index.root == root), None)

    def make(self, folder: str | Path, name: str = "", language: str = "english") -> Index:
        """Return a new index of a folder, which is still empty; `refresh` fills it. Words are stemmed for the language.

        Raises:
            InputError: there is no such folder, or the name cannot be one.
            ConflictError: there is an index of that name.
        """
        root = Path(folder).resolve()
        if not root.is_dir():
            raise InputError(f"there is no folder {folder}: is the disk there, and the name right?")
        return self.make_empty(_checked(name or root.name or "root"), str(root), language)

    def make_empty(self, name: str, root: str = "", language: str = "english") -> Index:
        """Return a new index of no folder, whose documents come from elsewhere.

        Raises:
            ConflictError: there is an index of that name.
        """
        return Index(self._shelves.create(_checked(name), root, Analyzer(language)))

    def drop(self, name: str) -> None:
        """Delete an index; the documents themselves stay as they are.

        Raises:
            InputError: there is none of that name.
        """
        self._shelves.drop(name)

    def within(self, names: Iterable[str] = (), who: Iterable[str] = NOBODY, history: Sequence[Message] = ()) -> Within:
        """Return the retriever over some indexes, or over all."""
        return Within([self.index(name) for name in (tuple(names) or self.names())], who, history)

    def find(
        self, query: str, k: int = 5, who: Iterable[str] = NOBODY, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages from all indexes, best first."""
        return self.within((), who, history).find(query, k)


def _checked(name: str) -> str:
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
        raise InputError(
            f"an index cannot be called {name!r}: one line of at most {LONGEST_NAME} characters, without `/`"
        )
    return name.strip()


def _server(place: object) -> Server:
    try:
        return place if isinstance(place, Server) else Server.read(str(place))
    except ValueError as error:
        raise InputError(f"the library {error}") from None
