"""Retrieval, quotation and clarification on the bundled handbook: sixty questions with the places of their answers.

A question is a row with `id`, `language`, `kind`, `turns` (of the user and the assistant in alternation), `ask` (whether a
clarifying question is expected), `gold` (places that hold an answer) and, for restricted documents, `who`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from taiwa.apps.catalog import HANDBOOK
from taiwa.flows.ask.consult import Clarified, clarify, other_meanings
from taiwa.flows.ask.quote import TermWeights, extractive
from taiwa.flows.ask.types import Ask, ClarifyOptions
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Passage, assistant, user
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json, value
from taiwa.retrieval import Index, Library, ScopedRetriever

__all__ = [
    "QUESTIONS",
    "Gold",
    "HandbookAnswer",
    "HandbookCounts",
    "Question",
    "ask_handbook",
    "count_answers",
    "measure_handbook",
    "read_questions",
]

QUESTIONS = Path(__file__).with_name("handbook.jsonl")
DEPTH = 10


@value
class Gold:
    """A place that holds an answer: the document, the heading it stands under, and words of it."""

    source: str
    heading: str
    words: str

    def within(self, passage: Passage) -> bool:
        """Return whether a passage contains it."""
        return passage.source == self.source and passage.heading[-1:] == (self.heading,) and self.words in passage.text


@value
class Question:
    """A question to the handbook."""

    id: str
    language: str
    kind: str
    turns: tuple[str, ...]
    ask: bool
    gold: tuple[Gold, ...] = ()
    who: tuple[str, ...] = ()

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages before the last."""
        return tuple(assistant(text) if at % 2 else user(text) for at, text in enumerate(self.turns[:-1]))


@value
class HandbookAnswer:
    """The result of a question without a model: the rank of an answer (0: not found), whether a quotation contains it,
    whether a clarifying question was asked, and whether options were offered beside the answer.
    """

    question: Question
    rank: int
    quoted: bool
    asked: bool
    offered: bool


@value
class HandbookCounts:
    """Counts for a kind or language: of the questions with an answer, those found first, in three, in ten, and quoted; of
    all questions, those that led to a clarifying question, those with options, and those where a clarifying question is expected.
    """

    name: str
    questions: int
    first: int
    three: int
    ten: int
    quoted: int
    asked: int
    offered: int
    should_ask: int


def read_questions(path: Path = QUESTIONS) -> tuple[Question, ...]:
    """Read the questions.

    Raises:
        InputError: a row is not a question.
    """
    found: list[Question] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found.append(_read_question(json.loads(line)))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path.name}:{number}: not a question ({error})") from None
    return tuple(found)


def ask_handbook(index: Index, rows: Iterable[Question], reader: TermWeights) -> tuple[HandbookAnswer, ...]:
    """Ask every question without a model."""
    return tuple(_ask(index, row, reader) for row in rows)


def measure_handbook() -> tuple[HandbookCounts, ...]:
    """Index the bundled handbook in a temporary folder, ask every question, and count."""
    with TemporaryDirectory() as folder, Library.open(Path(folder) / "library.db") as library:
        index = library.create(HANDBOOK, "handbook")
        index.refresh()
        return count_answers(ask_handbook(index, read_questions(), index.analyzer))


def count_answers(asked: Sequence[HandbookAnswer]) -> tuple[HandbookCounts, ...]:
    """Count by language, by kind, and in total."""
    languages = dict.fromkeys(each.question.language for each in asked)
    kinds = dict.fromkeys(each.question.kind for each in asked)
    parts = [
        (name, [each for each in asked if name in (each.question.language, each.question.kind)])
        for name in (*languages, *kinds)
    ]
    return tuple(_counts(name, rows) for name, rows in (*parts, ("all", asked)))


def _counts(name: str, rows: Sequence[HandbookAnswer]) -> HandbookCounts:
    answerable = [each for each in rows if each.question.gold]
    ranks = [each.rank for each in answerable]
    return HandbookCounts(
        name,
        len(answerable),
        sum(rank == 1 for rank in ranks),
        sum(0 < rank <= 3 for rank in ranks),
        sum(rank > 0 for rank in ranks),
        sum(each.quoted for each in answerable),
        sum(each.asked for each in rows),
        sum(each.offered for each in rows),
        sum(each.question.ask for each in rows),
    )


def _ask(index: Index, row: Question, reader: TermWeights) -> HandbookAnswer:
    found = index.find(row.turns[-1], DEPTH, row.who, row.history)
    rank = next((at for at, passage in enumerate(found, 1) if any(gold.within(passage) for gold in row.gold)), 0)
    quoted = extractive(row.turns[-1], found, row.history, reader).citations
    places = {(each.source, gold.words) for each in quoted for gold in row.gold if gold.words in each.words}
    held = any((gold.source, gold.words) in places for gold in row.gold)
    runtime = Runtime(retriever=ScopedRetriever([index], row.who))
    decided = runtime.run(_clarify_program(row))
    return HandbookAnswer(row, rank, held, isinstance(decided.act, Ask), bool(other_meanings(decided, row.turns[-1])))


def _clarify_program(row: Question) -> Program[Clarified]:
    return clarify(row.turns[-1], ClarifyOptions(assess_by="no-model"), earlier=row.history)


def _read_question(row: Mapping[str, Json]) -> Question:
    golds = cast("list[dict[str, str]]", row["gold"])
    return Question(
        str(row["id"]),
        str(row["language"]),
        str(row["kind"]),
        tuple(map(str, cast("list[Json]", row["turns"]))),
        bool(row["ask"]),
        tuple(Gold(each["source"], each["heading"], each["words"]) for each in golds),
        tuple(map(str, cast("list[Json]", row.get("who", [])))),
    )
