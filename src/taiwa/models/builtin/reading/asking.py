"""Dialogues to be assessed, asked back on or rewritten, as the built-in model reads them.

A dialogue is one line: `|u|` stands before what the user says and `|a|` before what the assistant says, and what is known of
the person (`|p|`) or was said in other dialogues (`|e|`) comes first. The sign itself is taken out of what anybody said, so
that no text can pose as another turn.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from taiwa.kernel.records import Json
from taiwa.kernel.values import Request
from taiwa.models.builtin.plain import plain
from taiwa.models.builtin.reading.marks import spoken

__all__ = ["TOLD", "asking", "compact"]

TOLD: Mapping[str, str] = {
    "assess_clarity": "assess.clarity",
    "assess_is_question": "assess.is_question",
    "assess_is_consultation": "assess.is_consultation",
    "assess_in_internal_docs": "assess.in_internal_docs",
    "assess_ask_person": "assess.ask_person",
    "clarify_question": "back",
    "rewrite_query": "rewrite",
}
"""What the model is told, by the task of a request: a control token, and the score that is asked for."""

LONGEST = 900
"""How much of a dialogue is read, counted in Latin letters; a Chinese or Japanese character counts twice."""
LONGEST_USER, LONGEST_OTHER = 420, 200
LONGEST_FRONT = 160
GAP = " ... "
ROLES = {"user": "|u|", "assistant": "|a|"}


def asking(request: Request) -> tuple[str, str] | None:
    """Read a request of the asking flows as what the model is told to do and a short prompt; None where it is none of them."""
    task = TOLD.get(request.task)
    last = request.messages[-1] if request.messages else None
    if task is None or last is None or last.role != "user":
        return None
    held = _json(spoken(last))
    if task == "rewrite":
        return task, compact(_turns(held))
    if not isinstance(held, dict):
        return None
    return task, compact(_turns(held.get("dialogue")), person=held.get("person"), earlier=held.get("earlier"))


def compact(turns: Sequence[tuple[str, str]], *, person: Json = None, earlier: Json = None) -> str:
    """Write a dialogue on one line, its end first of all; turns are pairs of a role and what was said.

    >>> compact([("user", "Is there parking?"), ("assistant", "Yes | no."), ("user", "Where?")], person={"site": "Oss"})
    '|p| site: Oss |u| Is there parking? |a| Yes / no. |u| Where?'
    """
    front = "".join(_front(person, earlier))
    room = LONGEST - _size(front)
    kept: list[str] = []
    for role, text in reversed(turns):
        longest = LONGEST_USER if role == "user" else LONGEST_OTHER
        line = f"{ROLES.get(role, '|a|')} {_shortened(_inert(text), longest)}"
        room -= _size(line) + 1
        if room < 0 and kept:
            break
        kept.append(line)
    return plain(front + " ".join(reversed(kept)))


def _front(person: Json, earlier: Json) -> Iterator[str]:
    if isinstance(person, dict) and person:
        facts = "; ".join(f"{_inert(name)}: {_inert(_worded(fact))}" for name, fact in person.items())
        yield f"|p| {_shortened(facts, LONGEST_FRONT)} "
    if isinstance(earlier, list) and earlier:
        yield f"|e| {_shortened(' / '.join(_inert(_worded(each)) for each in earlier), LONGEST_FRONT)} "


def _inert(text: str) -> str:
    return plain(text).replace("|", "/")


def _worded(given: Json) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _size(text: str) -> int:
    return len(text) if text.isascii() else sum(1 if sign < "\u2e80" else 2 for sign in text)


def _shortened(text: str, longest: int) -> str:
    """Leave out the middle of what is too long: what is wanted stands at an end."""
    if _size(text) <= longest:
        return text
    half = longest * len(text) // _size(text) // 2
    return f"{text[:half].rstrip()}{GAP}{text[-half:].lstrip()}"


def _json(text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _turns(held: Json) -> list[tuple[str, str]]:
    """The turns of a JSON list: texts of the user, or objects with a role and a text."""
    found: list[tuple[str, str]] = []
    for each in held if isinstance(held, list) else ():
        if isinstance(each, str):
            found.append(("user", each))
        elif isinstance(each, dict):
            found.append((str(each.get("role", "user")), str(each.get("text", ""))))
    return found
