"""Indexes and libraries as a program uses them: search, dialogue-weighted queries, evidence, rank fusion, and a retriever in memory."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import filterfalse
from pathlib import Path
from statistics import pstdev
from typing import Any, NamedTuple, TypeAlias
from unicodedata import normalize

from taiwa.kernel.errors import ConfigError, ConflictError, InputError, StoreError
from taiwa.kernel.messages import Evidence, Message, Passage
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.backend import IndexBackend, LibraryBackend
from taiwa.retrieval.ingest import Progress, RefreshReport, RuleListing, list_rules, refresh
from taiwa.retrieval.types import DocumentListing, IndexSummary, PassageFeedback, Principals, TermCounts
from taiwa.sql import PostgresUrl, is_postgres_url

# What has no spaces between words, or glues endings to them: kana, Chinese characters, Hangul.
CJK = r"\u3005\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
TERM = re.compile(rf"(?P<cjk>[{CJK}]+)|(?:(?![{CJK}])\w)+")


class InMemoryRetriever:
    """A retriever over the given passages.

    The score is the fraction of the query that a passage contains, 0 to 1, weighted by inverse document frequency. Of two
    passages that contain the same, the shorter comes first.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = tuple((passage, frozenset(terms(passage.text))) for passage in passages)
        self._holders = Counter(term for _, own in self._passages for term in own)

    def __repr__(self) -> str:
        return f"InMemoryRetriever({len(self._passages)} passages)"

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that share a term with the query, best first."""
        weights = {term: self._weight(term) for term in terms(query)}
        whole = math.fsum(weights.values())
        hits: list[tuple[float, int, Passage]] = []
        for passage, own in self._passages:
            if shared := math.fsum(weight for term, weight in weights.items() if term in own):
                hits.append((-shared / whole, len(own), replace(passage, score=shared / whole)))
        hits.sort(key=lambda hit: hit[:2])
        return tuple(passage for _, _, passage in hits[: max(k, 0)])

    def _weight(self, term: str) -> float:
        return math.log1p(len(self._passages) / (1 + self._holders[term]))


def terms(text: str) -> Iterator[str]:
    """Split text into terms: lower-case words, and pairs of neighbouring Chinese characters or kana.

    >>> list(terms("Tokyo 東京タワー、駅"))
    ['tokyo', '東京', '京タ', 'タワ', 'ワー', '駅']
    """
    for run in TERM.finditer(normalize("NFKC", text).casefold()):
        word = run[0]
        if run["cjk"] and len(word) > 1:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word


EASE = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke, Buettcher 2009)."""
FUSION_DEPTH = 50
"""Passages of each ranking that are fused."""


def reciprocal_ranks(rankings: Iterable[Sequence[Passage | None]], k: int) -> tuple[Passage, ...]:
    """Fuse rankings by reciprocal rank, at most k passages; the score is the sum of 1 / (60 + rank).

    None occupies a rank without being a passage.
    """
    scores: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for ranking in rankings:
        for rank, passage in enumerate(ranking, start=1):
            if passage is not None:
                scores[passage.id] = scores.get(passage.id, 0.0) + 1 / (EASE + rank)
                passages.setdefault(passage.id, passage)
    best = sorted(scores, key=lambda one: -scores[one])[: max(k, 0)]
    return tuple(replace(passages[one], score=scores[one]) for one in best)


EARLIER = 0.5
FADING = 0.7
"""An earlier turn of the user's counts half, and each one before it 0.7 of that."""
SUBJECT = 0.8
"""The turn that names what a pronoun of the question means counts at least this much: the last one without a pronoun of its own,
and the first one where it is short, because it mostly names the subject.

nDCG@10 of this, of the decay alone, and of all user turns joined: CANARD .530, .402, .526; CAsT .832, .825, .764; iKAT .628, .628,
.515; MTRAG .528, .539, .394, where the subject changes within a dialogue.
"""
SHORT = 5
"""The most terms of a first turn that names a subject and asks nothing more."""
ANSWERED = 0.05
"""What the last answer said counts for little, and finds what the user calls `it`."""
MOST_TERMS = 128
"""Terms that are asked for; what weighs least is left out."""

POINTING = re.compile(
    r"\b(?:this|that|these|those)\s+(?P<noun>[a-z]{3,})|"
    r"\b(?P<pronoun>it|its|they|them|their|he|him|his|she|her|hers|this|that|these|those|the same|the former|the latter)\b|"
    r"(?P<ja>(?:これ|それ|あれ)(?:ら)?|(?:この|その|あの)(?=[\u4e00-\u9fff\u30a1-\u30fa])|(?:彼女|彼)(?:ら)?(?=[はがをにのも])|同じ(?:もの|やつ))|"
    r"(?P<zh>这(?:个|些|种|项)?|那(?:个|些|种|项)?|[它他她](?:们)?|其(?=[\u4e00-\u9fff]))",
    re.IGNORECASE,
)
EMPTY = re.compile(
    r"\b(?:is|was|does|would)\s+it\s+(?:possible|allowed|ok|okay|necessary|true|take|cost|matter)\b|"
    r"\bit\s+(?:is|was|takes|seems)\b|\b(?:so|such|now)\s+that\b|\bthat\s+(?:is|are|was|were|can|will|has|have|i|we|you|the|a)\b|"
    r"それ(?:では|で|から|とも|ぞれ|ほど|なら)|これ(?:から|まで)|その(?:ほか|他|まま|うち|後)|このたび|那么|这样|那样|其他|其中|其实|尤其|其余",
    re.IGNORECASE,
)
"""Expressions that look like references and are not."""


def weight_terms(analyzer: Analyzer, query: str, history: Sequence[Message] = ()) -> dict[str, float]:
    """Return the terms of a question with their weights: 1 per occurrence in the question, less for earlier turns.

    >>> from taiwa.kernel.messages import user
    >>> weight_terms(Analyzer(), "and on Sunday?", [user("opening hours on Monday")])
    {'sunday': 1.0, 'open': 0.5, 'hour': 0.5, 'monday': 0.5}
    >>> weight_terms(Analyzer(), "Who approves it?", [user("a hotel in Dublin"), user("How long in advance?")])
    {'approv': 1.0, 'advanc': 0.8, 'hotel': 0.8, 'dublin': 0.8}
    """
    weights = {term: float(times) for term, times in Counter(analyzer.asked(query)).items()}
    questions = [message.text for message in history if message.role == "user"]
    answers = [message.text for message in history if message.role == "assistant"]
    for age, text in enumerate(reversed(questions)):
        _add(weights, analyzer.asked(text), EARLIER * FADING**age)
    if questions and _has_reference(query):
        _add(weights, analyzer.asked(next(filterfalse(_has_reference, reversed(questions)), questions[0])), SUBJECT)
        if len(first := analyzer.asked(questions[0])) <= SHORT:
            _add(weights, first, SUBJECT)
    if answers:
        _add(weights, analyzer.asked(answers[-1]), ANSWERED)
    heaviest = sorted(weights, key=lambda term: -weights[term])[:MOST_TERMS]
    return weights if len(heaviest) == len(weights) else {term: weights[term] for term in heaviest}


def _has_reference(text: str) -> bool:
    return POINTING.search(EMPTY.sub(" ", text)) is not None


def _add(weights: dict[str, float], terms: Sequence[str], weight: float) -> None:
    """Take the maximum weight of a term: a topic of every turn must not outweigh the current question."""
    for term in terms:
        weights[term] = max(weights.get(term, 0.0), weight)


def unresolved_references(analyzer: Analyzer, query: str, history: Sequence[Message] = ()) -> tuple[str, ...]:
    """Return the references of a question without an antecedent: `that form` where no form was mentioned.

    Any history resolves a pronoun, and so do terms before it in the question.
    """
    text = EMPTY.sub(lambda expression: " " * len(expression[0]), query)
    before = {term for message in history for term in analyzer.terms(message.text)}
    references: list[str] = []
    for pointing in POINTING.finditer(text):
        own = [term for term in analyzer.asked(text[: pointing.start()]) if term not in ASKING]
        noun = pointing["noun"]
        known = before | set(own)
        resolved = bool(set(analyzer.terms(noun)) & known) if noun else bool(known)
        if not resolved:
            references.append(" ".join(pointing[0].split()))
    return tuple(references)


ASKING = frozenset(
    "what when where which who whom whose why how do doe did can could should would will may is are wa be have has ha i my me "
    "we you tell show explain pleas about and but or on in of to for with "
    "long much mani often far old big soon late earli high".split()
)
"""Terms that ask and name nothing."""


LOOKED_AT = 10
COVERING = 5
SATURATION = 2.2
"""What a term's frequency multiplies its weight by at most in BM25 with k1 = 1.2."""


def judge(
    analyzer: Analyzer,
    weights: Mapping[str, float],
    passages: Sequence[Passage],
    counts: TermCounts,
    points: tuple[str, ...] = (),
) -> Evidence:
    """Measure the evidence for a weighted question in the best passages."""
    rare = {term: weight * _idf(counts, term) for term, weight in weights.items()}
    mass = math.fsum(rare.values())
    unknown = tuple(term for term in weights if not counts.holders.get(term))
    if not passages or mass <= 0:
        return Evidence(counts.passages, len(passages), unknown=unknown, unresolved_references=points)
    ideal = SATURATION * mass
    texts = ("\n".join((each.title, *each.heading, "", each.text)) for each in passages[:COVERING])
    covered = [frozenset(analyzer.terms(text)) for text in texts]
    coverage = max(math.fsum(weight for term, weight in rare.items() if term in terms) for terms in covered) / mass
    scores = [passage.score for passage in passages[:LOOKED_AT]]
    top, spread = min(scores[0] / ideal, 1.0), min(pstdev(scores) / ideal, 1.0)
    return Evidence(counts.passages, len(passages), min(coverage, 1.0), top, spread, unknown, points)


def _idf(counts: TermCounts, term: str) -> float:
    holders = counts.holders.get(term, 0)
    return math.log1p((counts.passages - holders + 0.5) / (holders + 0.5))


NO_PRINCIPALS: Principals = frozenset()
"""An unknown user, who sees public documents."""
LONGEST_NAME = 100
Fits: TypeAlias = Callable[[str, str], bool]
"""Whether a document, given by its index and its path, is to be searched."""
FILTERED_DEPTH = 10_000
"""The best passages among which those of documents that fit are looked for."""


class NearPassages(NamedTuple):
    """Passages by their nearness in meaning, and the name of the model that says so."""

    model: str
    passages: tuple[Passage, ...]


class Index:
    """One index: a retriever over the passages of a folder's documents.

    `trouble` is why the last search used words alone although the index has an embedder.
    """

    trouble: str = ""

    def __init__(self, backend: IndexBackend) -> None:
        self.backend = backend
        self.name, self.root, self.analyzer = backend.name, backend.root, backend.analyzer
        """The name of the index, the folder that it is made from, and what turns texts and questions into terms."""

    def __repr__(self) -> str:
        return f"Index({self.name!r})"

    def find(
        self, query: str, k: int = 5, principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages that `principals` may see, best first.

        Passages share a term with the question, or are near to it in meaning where such a search is used. Earlier turns of a
        dialogue count too, less and less with their age.
        """
        near = self.near(query, max(FUSION_DEPTH, k), principals, history) if k > 0 else None
        if near is None:
            return self.by_words(query, k, principals, history)
        return reciprocal_ranks((self.by_words(query, max(FUSION_DEPTH, k), principals, history), near.passages), k)

    def by_words(
        self, query: str, k: int = 5, principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages that share a term with the question, whatever else the index is asked by."""
        return self.backend.search(weight_terms(self.analyzer, query, history), k, frozenset(principals))

    def near(
        self, query: str, k: int, principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> "NearPassages | None":
        """Return passages that are near to the question in meaning; None where only words are looked at."""
        del query, k, principals, history
        return None

    def evidence(
        self,
        query: str,
        principals: Iterable[str] = NO_PRINCIPALS,
        history: Sequence[Message] = (),
        fits: Fits | None = None,
    ) -> Evidence:
        """Measure the evidence on a question, in the documents that fit."""
        names = frozenset(principals)
        weights = weight_terms(self.analyzer, query, history)
        counts = self.backend.counts(tuple(weights), names)
        passages = self.backend.search(weights, LOOKED_AT if fits is None else FILTERED_DEPTH, names)
        if fits is not None:
            passages = tuple(each for each in passages if fits(self.name, each.source))[:LOOKED_AT]
        return judge(self.analyzer, weights, passages, counts, unresolved_references(self.analyzer, query, history))

    def passage(self, id: str, principals: Iterable[str] = NO_PRINCIPALS) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return a passage by its id, if that version is still there and `principals` may see it."""
        return self.backend.passage(id, frozenset(principals))

    def refresh(self, wait: float = 0.0, progress: Progress | None = None) -> RefreshReport:
        """Read what changed in the folder.

        Raises:
            ConflictError: another process held the writer lock for `wait` seconds.
            InputError: the folder does not exist, or the index has none.
            ConfigError: the access rules are invalid.
        """
        return refresh(self.backend, wait, progress)

    def catch_up(self, wait: float = 1.0, progress: Progress | None = None) -> str:
        """Read what changed in the folder before a search; return why the index must be used as it is, or ""."""
        if not self.root:
            return ""
        try:
            self.refresh(wait, progress)
        except ConflictError:
            why = "another process is indexing its folder"
        except (ConfigError, InputError, StoreError) as error:
            why = error.message
        else:
            return ""
        return f"{self.name}: searched as it was indexed before, since {why}"

    def rules(self) -> tuple[RuleListing, ...]:
        """List the access rules of the folder as they are now; none without a folder.

        Raises:
            ConfigError: the access rules are invalid.
            InputError: the folder does not exist.
        """
        return list_rules(self.root) if self.root else ()

    def documents(self, principals: Iterable[str] | None = NO_PRINCIPALS) -> tuple[DocumentListing, ...]:
        """List documents by path; None stands for the owner of the index, who may see all."""
        return self.backend.documents(None if principals is None else frozenset(principals))

    def summary(self, principals: Iterable[str] | None = NO_PRINCIPALS) -> IndexSummary:
        """Summarize what the principals may see of the index."""
        return self.backend.summary(None if principals is None else frozenset(principals))

    def add_feedback(self, feedback: PassageFeedback) -> None:
        """Store a user's judgement of a passage."""
        self.backend.add_feedback(feedback)


class ScopedRetriever:
    """Several indexes with fixed principals and history, as a retriever for the effect `Retrieve`; `fits` restricts their documents."""

    def __init__(
        self,
        indexes: Iterable[Index],
        principals: Iterable[str] = NO_PRINCIPALS,
        history: Sequence[Message] = (),
        fits: Fits | None = None,
    ) -> None:
        self.indexes = tuple(indexes)
        self.principals = frozenset(principals)
        self.history = tuple(history)
        self.fits = fits

    def after(self, history: Sequence[Message]) -> "ScopedRetriever":
        """Return the same with another history."""
        return ScopedRetriever(self.indexes, self.principals, history, self.fits)

    def find(self, query: str, k: int = 5) -> tuple[Passage, ...]:
        """Return at most k passages, best first. The source of a passage names its index where there are several.

        Passages without vectors count in the vector ranking as they do by words, so that they gain and lose nothing.
        """
        depth = max(k, FUSION_DEPTH if self.fits is None else FILTERED_DEPTH)
        near = [index.near(query, depth, self.principals, self.history) if k > 0 else None for index in self.indexes]
        deep = k if self.fits is None and all(each is None for each in near) else depth
        words: list[tuple[Passage, bool]] = []
        by_model: dict[str, list[Passage]] = {}
        for index, by_meaning in zip(self.indexes, near, strict=True):
            found = self._named(index, index.by_words(query, deep, self.principals, self.history))
            words += ((each, by_meaning is None) for each in found)
            if by_meaning is not None:
                by_model.setdefault(by_meaning.model, []).extend(self._named(index, by_meaning.passages))
        words.sort(key=lambda each: -each[0].score)
        if not by_model:
            return tuple(passage for passage, _ in words[: max(k, 0)])
        meanings = [sorted(passages, key=lambda passage: -passage.score) for passages in by_model.values()]
        alone = [passage if wordy else None for passage, wordy in words]
        return reciprocal_ranks(([passage for passage, _ in words], alone, *meanings), k)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Why the last search used words alone although the index has an embedder."""
        return tuple(dict.fromkeys(index.trouble for index in self.indexes if index.trouble))

    def _named(self, index: Index, passages: Iterable[Passage]) -> Iterable[Passage]:
        if (fits := self.fits) is not None:
            passages = [each for each in passages if fits(index.name, each.source)]
        if len(self.indexes) == 1:
            return passages
        return (replace(each, source=f"{index.name}/{each.source}") for each in passages)

    def passage(self, id: str) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return a passage by its id, from whichever index has it."""
        passages = (index.passage(id, self.principals) for index in self.indexes)
        return next((passage for passage in passages if passage is not None), None)

    def evidence(self, query: str) -> Evidence:
        """Measure the evidence on a question, of the index that has most."""
        measured = [index.evidence(query, self.principals, self.history, self.fits) for index in self.indexes]
        return max(measured, key=lambda each: (each.top, each.coverage), default=Evidence())


class Library:
    """All indexes of a place."""

    def __init__(self, backend: LibraryBackend[Any]) -> None:
        self._backend = backend

    @classmethod
    def open(cls, place: str | Path | PostgresUrl, *, readonly: bool = False) -> "Library":
        """Open the library of a file, created on first use, or of a PostgreSQL server.

        With `readonly` nothing is written at the place, which need not be writable; a file that is missing is an empty library.

        Raises:
            InputError: the URL of the server is invalid.
        """
        if isinstance(place, PostgresUrl) or is_postgres_url(place):
            from taiwa.retrieval.postgres import PostgresLibraryBackend

            return cls(PostgresLibraryBackend(_server(place), readonly=readonly))
        from taiwa.retrieval.sqlite import SqliteLibraryBackend

        return cls(SqliteLibraryBackend(place, readonly=readonly))

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._backend.close()

    def names(self, owner: str | None = "") -> tuple[str, ...]:
        """Return the names of the indexes of an owner: "" is the command line, and callers of a server have theirs; None is all."""
        return self._backend.names(owner)

    def index(self, name: str) -> Index:
        """Return an index.

        Raises:
            InputError: no index has that name.
        """
        return Index(self._backend.open(name))

    def find_by_folder(self, folder: str | Path) -> Index | None:
        """Return the index of a folder, if there is one."""
        root = str(Path(folder).resolve())
        return next((index for index in map(self.index, self.names(None)) if index.root == root), None)

    def create(self, folder: str | Path, name: str = "", language: str = "english", owner: str = "") -> Index:
        """Return a new index of a folder, or of one file, still empty; `refresh` fills it. Words are stemmed for the language.

        Raises:
            InputError: the folder does not exist, or the name is invalid.
            ConflictError: an index of that name exists.
        """
        root = Path(folder).resolve()
        if not root.exists():
            raise InputError(f"folder {folder} not found")
        return self.create_empty(_checked(name or root.name or "root"), str(root), language, owner)

    def create_empty(self, name: str, root: str = "", language: str = "english", owner: str = "") -> Index:
        """Return a new index of no folder, whose documents come from elsewhere.

        Raises:
            ConflictError: an index of that name exists.
        """
        return Index(self._backend.create(_checked(name), root, Analyzer(language), owner))

    def drop(self, name: str) -> None:
        """Delete an index; the documents themselves stay as they are.

        Raises:
            InputError: no index has that name.
        """
        self._backend.drop(name)

    def scoped(
        self, names: Iterable[str] = (), principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> ScopedRetriever:
        """Return the retriever over some indexes, or over all."""
        return ScopedRetriever([self.index(name) for name in (tuple(names) or self.names())], principals, history)


def _checked(name: str) -> str:
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
        form = f"one line of at most {LONGEST_NAME} characters, without `/`"
        raise InputError(f"an index cannot be called {name!r}: {form}")
    return name.strip()


def _server(place: object) -> PostgresUrl:
    try:
        return place if isinstance(place, PostgresUrl) else PostgresUrl.parse(str(place))
    except ValueError as error:
        raise InputError(f"the library {error}") from None


@dataclass(frozen=True, slots=True)
class IndexScope:
    """The indexes of one caller.

    - `owner`: whose own ones they are; "" is the command line.
    - `served`: names of further ones; None stands for all of the command line, which only its own owner gets.
    - `uploads`: the folder of uploaded documents. `principals`: for whom documents are searched beside those that an app names.
    """

    owner: str = ""
    served: tuple[str, ...] | None = None
    uploads: str = ""
    principals: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether it is that of the command line itself."""
        return not self.owner and self.served is None

    def names(self, library: Library) -> tuple[str, ...]:
        """Return the names of the indexes."""
        own = library.names(self.owner)
        if self.served is None:
            return own
        there = set(library.names(None))
        uploaded = (name for name in own if self.has_uploads(library.index(name).root))
        return tuple(dict.fromkeys([*(name for name in self.served if name in there), *uploaded]))

    def has_uploads(self, root: str) -> bool:
        """Whether a folder is one of uploaded documents."""
        return bool(self.uploads and root) and Path(root).is_relative_to(self.uploads)
