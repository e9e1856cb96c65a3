"""The tools alone, without a model: exercises worked by them, questions that a formula decides, recorded calculations."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from taiwa.flows.protocol import protocol
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolResult
from taiwa.lab.evaluation.intervals import Share
from taiwa.lab.evaluation.readers import read_rows
from taiwa.lab.evaluation.scoring import near, number
from taiwa.lab.evaluation.summary import interval_of
from taiwa.lab.exercises import KINDS, work
from taiwa.lab.oracle import decide, verdict
from taiwa.tools.catalogue import builtin

__all__ = ["Asked", "Score", "score"]

RECORDED = re.compile(r"<<(?P<expression>[^<>=]*)=(?P<result>[^<>]*)>>")
EQUATIONS = frozenset({"balance", "balance_error"})
LEFT = "needs a model"
"""The kind of a question that no formula decides."""
Row = Mapping[str, Json]


@value
class Asked:
    """What the tools were asked, what came out, and what is right; a wrong label is no fault of theirs."""

    id: str
    kind: str
    verdict: Literal["right", "wrong", "label_error", "undecided"]
    got: str = ""
    gold: str = ""
    error: str = ""


@dataclass
class Score:
    """How much the tools get right of what they can be asked."""

    asked: list[Asked] = field(default_factory=list[Asked])

    @property
    def share(self) -> Share:
        """The right ones of all that could be decided, wrong labels included."""
        decided = [each for each in self.asked if each.verdict != "undecided"]
        return Share(sum(each.verdict == "right" for each in decided), len(decided))

    def of(self, verdict: str) -> list[Asked]:
        """Those with a verdict."""
        return [each for each in self.asked if each.verdict == verdict]

    def told(self) -> dict[str, Json]:
        """The score as JSON."""
        share = self.share
        kinds: dict[str, list[Asked]] = {}
        for each in self.asked:
            kinds.setdefault(each.kind, []).append(each)
        by_kind: list[Json] = [
            {"kind": kind, "n": len(those), "right": sum(each.verdict == "right" for each in those)}
            for kind, those in kinds.items()
        ]
        misses: list[Json] = [
            {"id": each.id, "kind": each.kind, "got": each.got, "gold": each.gold, "error": each.error or None}
            for each in self.of("wrong")
        ]
        return {
            "n": share.of, "right": share.count, "accuracy": share.share, "interval": interval_of(share),
            "undecided": len(self.of("undecided")), "label_errors": [each.id for each in self.of("label_error")],
            "misses": misses, "kinds": by_kind,
        }  # fmt: skip


def score(path: Path) -> Score:
    """Ask the tools all that a file holds: exercises with `kind`, `input` and `gold`, or questions with their answers.

    Raises:
        InputError: the file or a row of it cannot be used.
    """
    found = Score()
    for count, (line, row) in enumerate(read_rows(path)[1]):
        name = row.get("id", count)
        found.asked += _asked(row, str(name), f"{path}:{line}")
    if not found.asked:
        raise InputError(f"{path} holds nothing that the tools could be asked")
    return found


def _asked(row: Row, name: str, where: str) -> Iterator[Asked]:
    if "input" in row:
        yield _exercise(row, name, where)
        return
    question, answer = row.get("question"), row.get("answer", row.get("gold"))
    if not isinstance(question, str) or answer is None or isinstance(answer, (bool, list, dict)):
        field = "question" if not isinstance(question, str) else "answer"
        raise InputError(f"{where}: the field {field!r} is missing; an exercise has 'kind', 'input' and 'gold'")
    recorded = list(RECORDED.finditer(answer)) if isinstance(answer, str) else []
    for place, each in enumerate(recorded, 1):
        yield _calculation(f"{name}:{place}", each["expression"], each["result"])
    if not recorded:
        yield _question(name, question, str(answer))


def _exercise(row: Row, name: str, where: str) -> Asked:
    kind, gold = row.get("kind"), row.get("gold")
    if isinstance(gold, bool) or not isinstance(gold, (str, int, float)):
        raise InputError(f"{where}: the field 'gold' is no answer: a number or a text is")
    text = str(gold)
    if kind in KINDS and kind not in EQUATIONS and not text.startswith("ERROR") and number(text) is None:
        raise InputError(f"{where}: the field 'gold' is no number: {text[:40]!r}")
    try:
        done = work({**row, "id": name}, _call)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: the field 'input' does not fit the kind {kind!r} ({error})") from None
    return Asked(name, str(kind), "right" if done.right else "wrong", done.got, done.gold, done.error)


def _calculation(name: str, expression: str, result: str) -> Asked:
    try:
        got = str(_call("calculator", expression).value)
    except ToolError as error:
        return Asked(name, "calculation", "wrong", "", result, error.message)
    return Asked(name, "calculation", "right" if near(got, result) else "wrong", got, result)


def _question(name: str, question: str, answer: str) -> Asked:
    found = decide(question)
    if found is None:
        return Asked(name, LEFT, "undecided", "", answer)
    return Asked(name, "decided by a formula", verdict(found, answer), found.answer, answer)


def _call(name: str, text: str) -> ToolResult:
    """The door that a model's text goes through."""
    tool = builtin()[name]
    return tool.call(protocol("tagged").arguments(tool.spec, text))
