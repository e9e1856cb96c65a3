"""What dialogues are looked up in: an index for each set, made where it is first asked, with our own analyzer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from taiwa.kernel.values import Evidence, Message, Passage
from taiwa.lab.asking.sample import ReadSet
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.index import LOOKED_AT, Index, Library, judge, unresolved_references, weight_terms
from taiwa.retrieval.types import Batch, Chunk, Document, FileFacts

__all__ = ["Corpora", "Finder"]

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Finder:
    """An index within a dialogue, without some passages: they are as if nobody had written them, but that terms are counted
    with them. It fits the effects `Retrieve` and `Measure`.
    """

    index: Index
    passages: Mapping[str, Passage]
    without: frozenset[str] = NOBODY
    history: tuple[Message, ...] = ()

    def after(self, history: Sequence[Message]) -> "Finder":
        """Return the same within a dialogue that has gone so far."""
        return Finder(self.index, self.passages, self.without, tuple(history))

    def find(self, query: str, k: int = 5) -> tuple[Passage, ...]:
        """Return at most k passages, best first."""
        return self._search(weight_terms(self.index.analyzer, query, self.history), k)

    def evidence(self, query: str) -> Evidence:
        """Measure how much there is on a question."""
        analyzer = self.index.analyzer
        weights = weight_terms(analyzer, query, self.history)
        counts = self.index.backend.counts(tuple(weights), NOBODY)
        return judge(
            analyzer,
            weights,
            self._search(weights, LOOKED_AT),
            counts,
            unresolved_references(analyzer, query, self.history),
        )

    def _search(self, weights: Mapping[str, float], k: int) -> tuple[Passage, ...]:
        found = self.index.backend.search(weights, k + len(self.without), NOBODY)
        return tuple(self._known(each) for each in found if each.source not in self.without)[:k]

    def _known(self, found: Passage) -> Passage:
        """A passage under the name that its set gives it."""
        known = self.passages[found.source]
        return Passage(known.source, found.text, found.score, 0, known.heading, known.page, known.title, known.id)


@dataclass
class Corpora:
    """The passages of all sets. Indexes lie in a folder of their own, which goes away with the process."""

    sets: Mapping[str, tuple[Passage, ...]]
    language: str = "english"
    _open: dict[str, tuple[Index, Mapping[str, Passage]]] = field(
        default_factory=dict[str, "tuple[Index, Mapping[str, Passage]]"], init=False, repr=False
    )
    _place: "tuple[TemporaryDirectory[str], Library] | None" = field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, sets: Iterable[ReadSet], language: str = "english") -> "Corpora":
        """The passages of some sets.

        Raises:
            InputError: words of that language cannot be stemmed.
        """
        Analyzer(language)  # said before anything is measured
        return cls({each.name: each.passages for each in sets}, language)

    def __getstate__(self) -> dict[str, object]:
        """Indexes stay here; another machine makes its own."""
        return {**self.__dict__, "_open": {}, "_place": None}

    @property
    def digest(self) -> str:
        """What names all passages."""
        whole = sha256(self.language.encode())
        for name, passages in self.sets.items():
            whole.update(f"\0{name}\0".encode())
            for passage in passages:
                whole.update(f"{passage.id}\0{passage.title}\0{passage.text}\0".encode("utf-8", "replace"))
        return whole.hexdigest()[:32]

    def finder(self, name: str, without: Iterable[str] = (), history: Sequence[Message] = ()) -> Finder:
        """Return what finds passages for a set."""
        index, known = self._index(name)
        return Finder(index, known, frozenset(without), tuple(history))

    def _index(self, name: str) -> tuple[Index, Mapping[str, Passage]]:
        if name not in self._open:
            if self._place is None:
                folder = TemporaryDirectory(prefix="taiwa-eval-")
                self._place = folder, Library.open(Path(folder.name) / "library.db")
            index = self._place[1].make_empty(name.replace("/", "-"), language=self.language)
            index.backend.commit(Batch(tuple(map(_document, self.sets[name]))))
            index.backend.settle()
            self._open[name] = index, {passage.id: passage for passage in self.sets[name]}
        return self._open[name]

    def close(self) -> None:
        """Let go of all indexes."""
        if self._place is not None:
            folder, library = self._place
            self._place, self._open = None, {}
            library.close()
            folder.cleanup()


def _document(passage: Passage) -> Document:
    return Document(
        passage.id, passage.title, FileFacts("", 0, 0, ""), (Chunk(passage.text, 0, passage.heading, passage.page),)
    )
