"""How well the handbook that comes along is found, quoted and asked back about: sixty questions with the places of their answers.

A question is a row with `id`, `language`, `kind`, `turns` (the user's and the answers to them, in turn), `ask` (whether a person
would ask back), `gold` (places that hold an answer) and, where it is for some readers only, `who`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from taiwa.apps.catalogue import HANDBOOK
from taiwa.flows.acts import Ask
from taiwa.flows.askturn import other_meanings
from taiwa.flows.clarify import Clarified, ClarifyOptions, clarify
from taiwa.flows.extractive import Reader, extractive
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json, value
from taiwa.kernel.run import Runtime
from taiwa.kernel.values import Message, Passage, assistant, user
from taiwa.retrieve import Index, Within

__all__ = ["QUESTIONS", "Asked", "Gold", "Question", "Share", "ask_handbook", "questions", "shares"]

QUESTIONS = HANDBOOK.with_name("worked") / "handbook.jsonl"
DEEPEST = 10


@value
class Gold:
    """A place that holds an answer: the document, the heading it stands under, and words of it."""

    source: str
    heading: str
    words: str

    def within(self, passage: Passage) -> bool:
        """Whether a passage holds it."""
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
        """What was said before."""
        return tuple(assistant(text) if at % 2 else user(text) for at, text in enumerate(self.turns[:-1]))


@value
class Asked:
    """What came of a question without a model: at which rank an answer was found (0: not), whether words that were quoted
    hold it, whether it was asked back, and whether something to choose from was offered beside the answer.
    """

    question: Question
    rank: int
    quoted: bool
    asked: bool
    offered: bool


@value
class Share:
    """Of so many questions of a kind or language that have an answer: found first, among three, among ten, and quoted; of all
    of them, asked back, offered a choice, and how many a person would ask back.
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


def questions(path: Path = QUESTIONS) -> tuple[Question, ...]:
    """Read the questions.

    Raises:
        InputError: a row is none.
    """
    found: list[Question] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found.append(_question(json.loads(line)))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path.name}:{number}: no question ({error})") from None
    return tuple(found)


def ask_handbook(index: Index, rows: Iterable[Question], reader: Reader) -> tuple[Asked, ...]:
    """Ask every question, without a model."""
    return tuple(_asked(index, row, reader) for row in rows)


def shares(asked: Sequence[Asked]) -> tuple[Share, ...]:
    """Count by language, by kind, and in all."""
    languages = dict.fromkeys(each.question.language for each in asked)
    kinds = dict.fromkeys(each.question.kind for each in asked)
    parts = [
        (name, [each for each in asked if name in (each.question.language, each.question.kind)])
        for name in (*languages, *kinds)
    ]
    return tuple(_share(name, rows) for name, rows in (*parts, ("all", asked)))


def _share(name: str, rows: Sequence[Asked]) -> Share:
    answerable = [each for each in rows if each.question.gold]
    ranks = [each.rank for each in answerable]
    return Share(
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


def _asked(index: Index, row: Question, reader: Reader) -> Asked:
    found = index.find(row.turns[-1], DEEPEST, row.who, row.history)
    rank = next((at for at, passage in enumerate(found, 1) if any(gold.within(passage) for gold in row.gold)), 0)
    quoted = extractive(row.turns[-1], found, row.history, reader).citations
    places = {(each.source, gold.words) for each in quoted for gold in row.gold if gold.words in each.words}
    held = any((gold.source, gold.words) in places for gold in row.gold)
    runtime = Runtime(retriever=Within([index], row.who))
    decided = runtime.run(_decided(row))
    return Asked(row, rank, held, isinstance(decided.act, Ask), bool(other_meanings(decided, row.turns[-1])))


def _decided(row: Question) -> Program[Clarified]:
    return clarify((*row.history, user(row.turns[-1])), ClarifyOptions(assess_by="no-model"))


def _question(row: Mapping[str, Json]) -> Question:
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
