"""The evaluation of retrieval on a user's own questions: the ranking quality and the latency of an index.

A question is a row with `id`, `question`, `relevant` (ids of passages) and, optionally, `history`: earlier messages with `role`
and `content`. Passages are rows with `id`, `text` and, optionally, `title`, or the documents of a folder.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from taiwa.evals.data import Fields, Item, Skipped, read_fields, usable
from taiwa.evals.report import (
    FAILED_COLUMN,
    HEAD_COLUMNS,
    Column,
    Report,
    SetReport,
    bootstrap_mean,
    decimal,
    decimal_with_interval,
    interval_json,
    mean,
    ndcg,
    number_field,
    quantile,
    recall,
    reciprocal_rank,
    rounded,
    set_report,
)
from taiwa.evals.run import EvalRow, Evaluation, Job, Measurement, ModelTask
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Evidence, Found, Message, Passage, assistant, user
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.index import LOOKED_AT, Index, Library, judge
from taiwa.retrieval.ingest import Folder
from taiwa.retrieval.readers import IsolatedReader, document_format
from taiwa.retrieval.types import Batch, Chunk, Document, FileFacts

Turns = tuple[tuple[str, str], ...]
NO_PRINCIPALS: frozenset[str] = frozenset()
DEPTH = 10
QUESTION_ALONE, QUESTION_IN_DIALOGUE = "question", "question in its dialogue"
METRICS = ("ndcg5", "ndcg10", "recall5", "recall10", "rr")
SUFFIXES = ("_questions", "_dialogs", "_tasks", "_rewrites")
INTERVALS = "Intervals at 95 %: Wilson's for shares, DeLong's for AUC, of 1,000 draws of the questions for the others."


@value
class DialogueSample:
    """A dialogue up to a message of the user, by role (`user` or `assistant`) and text, with its labels.

    `ask`: whether people judged that it requires a clarifying question; None if unknown. `rewrite` is a stand-alone form of
    the last message written by a person. `relevant` are the ids of passages that answer it, `answers` correct answers;
    `answerable` says whether the documents contain one. `replies` are the user's replies to clarifying questions. `returned`
    are passages that earlier turns already returned, which are excluded from the search.
    """

    id: str
    turns: Turns
    ask: bool | None = None
    rewrite: str = ""
    relevant: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    answerable: bool | None = None
    replies: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """The turns as messages."""
        return tuple((user if role == "user" else assistant)(text) for role, text in self.turns)

    @property
    def last(self) -> str:
        """The last message of the user."""
        return self.turns[-1][1]

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages before the last."""
        return self.dialogue[:-1]

    @property
    def excluded(self) -> tuple[str, ...]:
        """The passages that the dialogue has already returned and that are not relevant again."""
        return tuple(name for name in self.returned if name not in self.relevant)


@value
class QuestionSet:
    """A file of questions or dialogues: its name, its format, the SHA-256 of its bytes, and its passages."""

    name: str
    format: str
    digest: str
    samples: tuple[DialogueSample, ...]
    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


def sample_item(sample: DialogueSample, kind: str, gold: str) -> Item:
    """Return a sample as an item of an evaluation; its id is unique among all sets."""
    return Item(f"{kind}/{sample.id}", sample.last, gold, kind, more=json.loads(json.dumps(asdict(sample))))


def read_sample(item: Item) -> DialogueSample:
    """Return the sample of an item."""
    return DialogueSample(**{name: _with_tuples(part) for name, part in item.more.items()})


def _with_tuples(part: Json) -> Any:  # noqa: ANN401  (the type of a field)
    return tuple(map(_with_tuples, part)) if isinstance(part, list) else part


def passage_of(name: str, text: str, title: str = "", heading: tuple[str, ...] = ()) -> Passage:
    """Return a passage that is a document of its own."""
    return Passage(name, text, title=title, heading=heading, id=name)


def unique_passages(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Return passages without duplicate ids."""
    return tuple({passage.id: passage for passage in passages}.values())


def read_passages(path: Path, skipped: Skipped = None) -> tuple[Passage, ...]:
    """Read passages: rows with `id` (or `_id`, `document_id`), `text` and optionally `title`, or a folder of documents.

    Rows of another form are added to `skipped` if it is a list.

    Raises:
        InputError: the file or folder cannot be read or is empty.
    """
    if path.is_dir():
        return read_folder(path)

    def read(row: Fields) -> Passage:
        name = next((name for name in ("id", "_id", "document_id") if name in row), "id")
        return passage_of(row.text(name), row.text("text"), row.text("title", ""))

    return unique_passages(usable(read_fields(path, skipped)[1], read, skipped))


def read_folder(path: Path) -> tuple[Passage, ...]:
    """Read the documents of a folder as passages, split as an index splits them.

    Raises:
        InputError: no document can be read.
    """
    folder = Folder(path)
    passages: list[Passage] = []
    with closing(IsolatedReader()) as reader:
        for file in folder.files():
            if (kind := document_format(file.path)) is None:
                continue
            document = reader.read(folder.read(file.path), kind)
            for each in document.chunks:
                name = f"{file.path}#{each.start}"
                passages.append(Passage(name, each.text, 0.0, 0, each.heading, each.page, document.title, name))
    if not passages:
        raise InputError(f"{path} holds no document that can be read")
    return tuple(passages)


def set_name(path: Path) -> str:
    """Return the name of the set in a file."""
    return path.stem.removesuffix("_questions")


def sibling_file(path: Path, ending: str = "_passages.jsonl") -> Path | None:
    """Return the file next to a file of questions that holds its passages; None if there is none."""
    stems = {path.stem, *(path.stem.removesuffix(each) for each in SUFFIXES)}
    return next((each for stem in sorted(stems) if (each := path.with_name(f"{stem}{ending}")).is_file()), None)


def read_question_sets(
    paths: Sequence[Path], passages: Sequence[Path] = (), *, only: Sequence[str] = (), strict: bool = True
) -> tuple[QuestionSet, ...]:
    """Read files of questions, each a set; without `passages`, `NAME_passages.jsonl` next to each file is used.

    With `only`, the sets of other names are not read. Rows of another form are left out unless `strict`.

    Raises:
        InputError: a set of `only` is unknown, or a file cannot be used; the message names file, line and field.
    """
    names = [set_name(path) for path in paths]
    if unknown := next((name for name in only if name not in names), None):
        raise InputError(f"--only: unknown set {unknown!r}; choose among {', '.join(names)}")
    paths = [path for path, name in zip(paths, names, strict=True) if not only or name in only]
    unread: Skipped = None if strict else []
    shared = unique_passages(passage for path in passages for passage in read_passages(path, unread))
    sets: list[QuestionSet] = []
    for path in paths:
        skipped: Skipped = None if strict else []
        digest, rows = read_fields(path, skipped)
        samples = tuple(usable(rows, _read_question, skipped))
        beside = None if shared else sibling_file(path)
        known = shared if beside is None else read_passages(beside, skipped)
        if not known:
            raise InputError(f"{path}: no passages; pass --passages or add {set_name(path)}_passages.jsonl next to it")
        left = (*(unread or ()), *(skipped or ()))
        sets.append(QuestionSet(set_name(path), "questions", digest, samples, known, skipped=left))
    return named_sets(sets)


def _read_question(row: Fields) -> DialogueSample:
    history = row.parts("history") if "history" in row else ()
    turns = tuple((each.text("role"), each.text("content")) for each in history)
    return DialogueSample(row.text("id"), (*turns, ("user", row.text("question"))), relevant=row.texts("relevant"))


def named_sets(sets: Iterable[QuestionSet]) -> tuple[QuestionSet, ...]:
    """Check that set names and ids are unique, and drop relevant ids without a passage.

    Raises:
        InputError: two sets have one name, or two rows of a set have one id.
    """
    named: dict[str, QuestionSet] = {}
    for one in sets:
        if one.name in named:
            raise InputError(f"two files are called {one.name}; rename one to tell their rows apart")
        seen: set[str] = set()
        for sample in one.samples:
            if sample.id in seen:
                raise InputError(f"{one.name}: duplicate id {sample.id!r}")
            seen.add(sample.id)
        there = {passage.id for passage in one.passages}
        samples = tuple(
            replace(each, relevant=tuple(filter(there.__contains__, each.relevant))) for each in one.samples
        )
        named[one.name] = replace(one, samples=samples)
    return tuple(named.values())


def digest_of_sets(sets: Sequence[QuestionSet]) -> str:
    """Return the SHA-256 of the data of several sets; of a single one, that of its file."""
    if len(sets) == 1:
        return sets[0].digest
    return sha256("".join(each.digest for each in sets).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Finder:
    """An index as retriever and evidence source within a dialogue, with some passages excluded.

    Excluded passages still count in the statistics of terms.
    """

    index: Index
    passages: Mapping[str, Passage]
    without: frozenset[str] = NO_PRINCIPALS
    history: tuple[Message, ...] = ()

    def after(self, history: Sequence[Message]) -> "Finder":
        """Return the finder within a dialogue with this history."""
        return Finder(self.index, self.passages, self.without, tuple(history))

    def find(self, query: str, k: int = 5) -> tuple[Passage, ...]:
        """Return at most k passages, best first."""
        return self._search(self.index.analyzer.weigh(query, self.history), k)

    def evidence(self, query: str) -> Evidence:
        """Return the evidence for a question."""
        analyzer = self.index.analyzer
        weights = analyzer.weigh(query, self.history)
        counts = self.index.backend.counts(tuple(weights), NO_PRINCIPALS)
        references = analyzer.unresolved_references(query, self.history)
        return judge(analyzer, weights, self._search(weights, LOOKED_AT), counts, references)

    def find_with_evidence(self, query: str, k: int = 5) -> Found:
        """Return at most k passages, best first, and the evidence."""
        return Found(self.find(query, k), self.evidence(query))

    def _search(self, weights: Mapping[str, float], k: int) -> tuple[Passage, ...]:
        hits = self.index.backend.search(weights, k + len(self.without), NO_PRINCIPALS)
        # With the id and source that the set gives a passage.
        known = ((self.passages[hit.source], hit) for hit in hits if hit.source not in self.without)
        return tuple(replace(passage, text=hit.text, score=hit.score, start=0) for passage, hit in known)[:k]


@dataclass
class Corpora:
    """The passages of all sets, indexed at first use in a temporary folder."""

    sets: Mapping[str, tuple[Passage, ...]]
    language: str = "english"
    _open: dict[str, tuple[Index, Mapping[str, Passage]]] = field(
        default_factory=dict[str, "tuple[Index, Mapping[str, Passage]]"], init=False, repr=False
    )
    _library: "tuple[TemporaryDirectory[str], Library] | None" = field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, sets: Iterable[QuestionSet], language: str = "english") -> "Corpora":
        """Return the passages of sets.

        Raises:
            InputError: the language has no stemmer.
        """
        Analyzer(language)  # raise before anything is measured
        return cls({each.name: each.passages for each in sets}, language)

    def __getstate__(self) -> dict[str, object]:
        """Leave out the indexes; a worker builds its own."""
        return {**self.__dict__, "_open": {}, "_library": None}

    @property
    def digest(self) -> str:
        """A digest of language and passages."""
        whole = sha256(self.language.encode())
        for name, passages in self.sets.items():
            whole.update(f"\0{name}\0".encode())
            for passage in passages:
                whole.update(f"{passage.id}\0{passage.title}\0{passage.text}\0".encode("utf-8", "replace"))
        return whole.hexdigest()[:32]

    def finder(self, name: str, without: Iterable[str] = (), history: Sequence[Message] = ()) -> Finder:
        """Return the finder of a set."""
        if name not in self._open:
            if self._library is None:
                folder = TemporaryDirectory(prefix="taiwa-eval-")
                self._library = folder, Library.open(Path(folder.name) / "library.db")
            index = self._library[1].create_empty(name.replace("/", "-"), language=self.language)
            index.backend.commit(Batch(tuple(map(_document, self.sets[name]))))
            index.backend.update_derived()
            self._open[name] = index, {passage.id: passage for passage in self.sets[name]}
        index, known = self._open[name]
        return Finder(index, known, frozenset(without), tuple(history))

    def close(self) -> None:
        """Close and delete the indexes."""
        if self._library is not None:
            folder, library = self._library
            self._library, self._open = None, {}
            library.close()
            folder.cleanup()


def _document(passage: Passage) -> Document:
    chunk = Chunk(passage.text, 0, passage.heading, passage.page)
    return Document(passage.id, passage.title, FileFacts("", 0, 0, ""), (chunk,))


@dataclass
class CorpusTask(ModelTask):
    """Base of tasks over sets with passages. Without `model_settings` and `given_model` no model is used."""

    corpora: Corpora

    @property
    def options(self) -> Mapping[str, Json]:
        """Everything that a measurement depends on besides setting, item and model."""
        return {"passages": self.corpora.digest}


@dataclass
class RetrievalTask(CorpusTask):
    """The task of `retrieve`: questions alone and, if there are `dialogues`, with their history."""

    dialogues: bool = False
    name: str = "retrieve"

    @property
    def settings(self) -> tuple[str, ...]:
        """The questions alone, and in their dialogues if there are any."""
        return (QUESTION_ALONE, QUESTION_IN_DIALOGUE) if self.dialogues else (QUESTION_ALONE,)

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:  # noqa: ARG002  (the signature of a task)
        """Retrieve for one question."""
        sample = read_sample(job.item)
        finder = self.corpora.finder(job.item.kind, sample.excluded)
        if job.setting == QUESTION_IN_DIALOGUE:
            finder = finder.after(sample.history)
        finder.find(sample.last, 1)  # open the index and stem its words outside of the measured time
        begun = perf_counter()
        passages = finder.find(sample.last, DEPTH)
        taken = (perf_counter() - begun) * 1000
        return Measurement({**ranking_scores(passages, sample), "find_ms": round(taken, 4)})


def retrieval_items(sets: Sequence[QuestionSet], *, rewritten: bool = False) -> tuple[Item, ...]:
    """Return the samples with relevant passages; with `rewritten` only those with a history and a human rewrite."""
    return tuple(
        sample_item(sample, one.name, sample.rewrite)
        for one in sets
        for sample in one.samples
        if sample.relevant and (not rewritten or (len(sample.turns) > 1 and sample.rewrite))
    )


def ranking_scores(passages: Sequence[Passage], sample: DialogueSample) -> dict[str, Json]:
    """Return the metrics of one ranking."""
    names, right = [each.id for each in passages], sample.relevant
    return {
        "ndcg5": ndcg(names, right, 5), "ndcg10": ndcg(names, right, DEPTH), "recall5": recall(names, right, 5),
        "recall10": recall(names, right, DEPTH), "rr": reciprocal_rank(names[:DEPTH], right), "found": len(names),
    }  # fmt: skip


def ranking_line(rows: Sequence[EvalRow]) -> dict[str, Json]:
    """Return the mean metrics of rankings with intervals; a failed row counts as an empty ranking."""
    line: dict[str, Json] = {}
    for name in METRICS:
        values = [number_field(row, name) for row in rows]
        shown = "mrr" if name == "rr" else name
        line |= {shown: rounded(mean(values)), f"{shown}_interval": interval_json(bootstrap_mean(values))}
    return line


def _retrieval_line(rows: Sequence[EvalRow]) -> dict[str, Json]:
    taken = [number_field(row, "find_ms") for row in rows if "find_ms" in row.found]
    none = sum(row.found.get("found") == 0 for row in rows)
    figures = {"p50_ms": rounded(quantile(taken)), "p99_ms": rounded(quantile(taken, 0.99)), "none_found": none}
    return ranking_line(rows) | figures


RANKING_COLUMNS = (
    *HEAD_COLUMNS,
    Column("nDCG@5", decimal_with_interval("ndcg5"), figure=True),
    Column("nDCG@10", decimal_with_interval("ndcg10"), figure=True),
    Column("recall@5", decimal("recall5"), figure=True, main=False),
    Column("recall@10", decimal_with_interval("recall10"), figure=True),
    Column("MRR@10", decimal_with_interval("mrr"), figure=True, main=False),
)
P50, P99 = Column("p50 ms", decimal("p50_ms", 2)), Column("p99 ms", decimal("p99_ms", 2), main=False)
RETRIEVAL_COLUMNS = (*RANKING_COLUMNS, P50, P99, FAILED_COLUMN)
RETRIEVAL_REPORT = SetReport(_retrieval_line, RETRIEVAL_COLUMNS, "ndcg10", "nDCG@10, %", (INTERVALS,))


def retrieval_report(evaluation: Evaluation, notes: Sequence[str] = ()) -> Report:
    """Return the report of the rows measured so far; sets without dialogues have one line."""
    dialogues = {item.kind for item in evaluation.data.items if read_sample(item).history}
    report = set_report(evaluation, RETRIEVAL_REPORT, notes=notes)
    shown = [line for line in report.lines if line["setting"] != QUESTION_IN_DIALOGUE or line["set"] in dialogues]
    return replace(report, lines=tuple(shown))
