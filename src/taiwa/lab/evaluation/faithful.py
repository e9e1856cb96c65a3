"""What is counted of one rationale: its calls, who wrote their results, and whether the model kept to them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from taiwa.flows.protocol import Call, Protocol, decode
from taiwa.flows.rationale import Called, Rationale, Said, Spliced
from taiwa.kernel.records import Json
from taiwa.lab.evaluation.scoring import exact, near

__all__ = ["counted_of"]

PLAIN = r"-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"
RESULT = re.compile(rf"(?P<number>{PLAIN})(?:\s*%|\s+[^\s0-9+=→>-][^+=→>]*)?", re.IGNORECASE)
"""A result that is one number, perhaps with its unit."""
NUMBER = re.compile(rf"(?<![A-Za-z0-9_.)\]}}])(?:{PLAIN})(?![A-Za-z0-9])", re.IGNORECASE)
TRUNCATED = frozenset({"length", "tokens", "limit"})


def counted_of(found: Rationale, gold: str, protocol: Protocol, names: Iterable[str]) -> dict[str, Json]:
    """Everything that is counted of a rationale, as JSON; only one that came to its end can be right."""
    done = [called for called in found.calls if called.result.origin != "model"]
    heeded, restated = list(_following(found)), [one for one in done if _number(one)]
    last = _number(restated[-1]) if restated else ""
    errors = Counter(called.result.error for called in found.calls if called.result.error not in ("", "withheld"))
    return {
        "answer": found.answer, "gold": gold, "answered_by": found.answered_by, "ending": found.ending, "way": found.way,
        "right": found.complete and exact(found.answer, gold), "near": found.complete and near(found.answer, gold),
        "calls": len(found.calls), "called": dict(Counter(called.name for called in found.calls)),
        "tool_errors": dict(errors), "model_written": len(found.calls) - len(done),
        "memo": sum(called.result.origin == "memo" for called in found.calls),
        "next_of": len(heeded), "next_kept": sum(kept for kept, _ in heeded), "used": sum(used for _, used in heeded),
        "last_of": int(bool(last and found.answer)), "last_kept": int(bool(last) and near(found.answer, last)),
        "unanswered": int(not found.answer), "truncated": int(found.ending in TRUNCATED),
        "false_stops": _false_stops(found, protocol, names), "text": found.text,
    }  # fmt: skip


def _number(called: Called) -> str:
    """The number that a call gave; '' for one that failed, or that gave something else."""
    text = RESULT.fullmatch(called.result.text.strip())
    return text["number"].replace(",", "") if text and not called.result.error else ""


def _following(found: Rationale) -> Iterator[tuple[bool, bool]]:
    """For every numeric result behind which the model wrote a number: whether the next one, and any of them, is the result."""
    results = iter([called for called in found.calls if called.shown and called.result.origin != "model"])
    for place, part in enumerate(found.parts):
        if not (isinstance(part, Spliced) and part.kind == "result"):
            continue
        called = next(results, None)
        number = "" if called is None else _number(called)
        written = [each.replace(",", "") for each in NUMBER.findall(_words_behind(found, place))]
        if number and written:
            yield near(written[0], number), any(near(each, number) for each in written)


def _words_behind(found: Rationale, place: int) -> str:
    """What the model wrote behind a part, up to the next result."""
    words: list[str] = []
    for part in found.parts[place + 1 :]:
        if isinstance(part, Spliced) and part.kind == "result":
            break
        if isinstance(part, Said):
            words.append(part.text)
    return "".join(words)


def _false_stops(found: Rationale, protocol: Protocol, names: Iterable[str]) -> int:
    """Marks that were put back and closed no call."""
    ends: set[int] = set()
    at = 0
    for event in decode(found.text, protocol, names):
        at += len(event.text)
        if isinstance(event, Call):
            ends.add(at)
    at = count = 0
    for part in found.parts:
        at += len(part.text)
        count += isinstance(part, Spliced) and part.kind == "stop" and at not in ends
    return count
