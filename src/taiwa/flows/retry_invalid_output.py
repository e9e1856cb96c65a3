"""Repair policy, attempts, patches of single places."""

import json
import re
from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from typing import Any, Literal, TypeAlias, cast

from taiwa.flows.output_modes import OutputMode, TypedResponse
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.messages import Enforcement, FinishReason, Message, ToolResult, Usage, assistant, user
from taiwa.kernel.records import Json, value
from taiwa.kernel.text import estimate_tokens
from taiwa.structured import Fix, OutputType, ParseOptions, PartialParser

__all__ = [
    "ONCE",
    "STRICTLY",
    "Attempt",
    "Form",
    "RepairPolicy",
    "check_repair",
    "loosely",
    "patch_places",
    "patch_wanted",
    "patched",
    "place_of",
    "read_path",
    "repair_messages",
    "stop_reason",
    "unfinished",
]


Path: TypeAlias = tuple[str | int, ...]

STEP = re.compile(r"\.(?P<name>[^\W\d]\w*)|\[(?P<index>\d{1,9})\]|\[(?P<key>\"(?:[^\"\\]|\\.)*\")\]")


def read_path(text: str) -> Path | None:
    """Read a path as diagnostics write it; None where it is none.

    >>> read_path('$.items[5]["odd key"]')
    ('items', 5, 'odd key')
    """
    found, end = _leading(text)
    return found if end == len(text) else None


def place_of(line: str) -> str:
    """Take the path from the beginning of a line of diagnostics; empty where the line is about the whole answer.

    >>> place_of("$.cups = 0: must be integer, 1..9")
    '$.cups'
    """
    found, end = _leading(line)
    return line[:end] if found and line.startswith((" = ", ": "), end) else ""


def patched(data: Json, patch: dict[str, Json], places: Iterable[str]) -> Json:
    """Give the data with the patch applied; None where a path is not there or leads to none of the faulty places."""
    faulty, whole = [read_path(place) or () for place in places], deepcopy(data)
    for text, new in patch.items():
        path = read_path(text)
        if not path or not any(_related(path, each) for each in faulty) or not _put(whole, path, deepcopy(new)):
            return None
    return whole if patch else None


def _leading(text: str) -> tuple[Path | None, int]:
    if not text.startswith("$"):
        return None, 0
    path: list[str | int] = []
    at = 1
    while found := STEP.match(text, at):
        if found["key"] is not None:
            try:
                path.append(json.loads(found["key"]))
            except ValueError:
                return None, at
        else:
            path.append(found["name"] if found["index"] is None else int(found["index"]))
        at = found.end()
    return tuple(path), at


def _related(path: Path, other: Path) -> bool:
    """Whether one of two paths leads through the other."""
    return all(one == two for one, two in zip(path, other, strict=False))


def _put(data: Json, path: Path, value: Json) -> bool:
    """Set the value at a path whose container is there; a key may be new, an item may not."""
    here = data
    for step in path[:-1]:
        inner = _inside(here, step)
        if inner is None:
            return False
        here = inner
    match here, path[-1]:
        case dict(), str(key):
            here[key] = value
        case list(), int(index) if index < len(here):
            here[index] = value
        case _:
            return False
    return True


def _inside(data: Json, step: str | int) -> Json:
    if isinstance(data, dict) and isinstance(step, str):
        return data.get(step)
    return data[step] if isinstance(data, list) and isinstance(step, int) and step < len(data) else None


Form: TypeAlias = Literal["whole", "patch", "invalid_patch"]
"""What an answer was asked to be; a patch is unusable where it is no JSON object of known paths."""

MOST_ROUNDS = 3

MOST_PATCHED = 5

BROKEN_OFF: dict[FinishReason, str] = {"interrupted": "it was interrupted", "cut": "it was cut off"}

STRICTLY = ParseOptions(guess=False)

MORE = re.compile(r"… and (\d+) more\Z")

FAULTY = "{whose} does not have the wanted type:\n{faults}\n{wish}"

WHOLE = "Reply only with the corrected JSON, whole, and nothing else."

CALL = "Call {name} again, with all of its arguments."

PATCH = """\
Reply only with one JSON object that gives each of these paths its corrected value, as in {{{example}: …}}, and nothing else. \
All the rest stays as it is."""


@value(tag="repair-policy")
class RepairPolicy:
    """How much may be done about an answer that cannot be read.

    - `rounds`: how often a bad answer is sent back, 0 to 3; each is one call, and one more where a patch was unusable.
    - `budget_tokens`: the most tokens, read and written, of all attempts together. `budget_cost`: their most cost, in
      billionths of the currency unit. Both are checked before a call, with the size of its prompt.
    - `patch_above`: from how many tokens on a bad answer is corrected by a patch; None never.
    - `guess`: take what could be read only by a guess, instead of sending it back.
    """

    rounds: int = 1
    budget_tokens: int | None = None
    budget_cost: int | None = None
    patch_above: int | None = 300
    guess: bool = False


ONCE = RepairPolicy()


@value(tag="attempt")
class Attempt:
    """One answer as the model wrote it: what was mended, what is wrong, how it was asked for and what it cost.

    No diagnostics means that it was taken. `usage` None means that the server did not say. `downgrades` say why a better
    mode was given up before this answer, and `enforcement` what of the type the decoder held.
    """

    text: str
    diagnostics: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    finish: FinishReason = "stop"
    usage: Usage | None = None
    mode: OutputMode = "prompt"
    form: Form = "whole"
    downgrades: tuple[str, ...] = ()
    enforcement: Enforcement | None = None


def check_repair(repair: RepairPolicy) -> None:
    """See that a policy can be followed.

    Raises:
        InputError: it cannot.
    """
    if not 0 <= repair.rounds <= MOST_ROUNDS:
        raise InputError(f"a repair has 0 to {MOST_ROUNDS} rounds, not {repair.rounds}")
    for name in ("budget_tokens", "budget_cost", "patch_above"):
        bound = getattr(repair, name)
        if bound is not None and bound < 0:
            raise InputError(f"{name} of a repair cannot be negative: {bound}")


def stop_reason(repair: RepairPolicy, attempts: tuple[Attempt, ...]) -> str:
    """Say why the last attempt, which failed, is not sent back; empty where it is."""
    last, whole = attempts[-1], tuple(each for each in attempts if each.form != "invalid_patch")
    if last.finish == "refusal":
        return "the model refused"
    if last.finish in BROKEN_OFF:
        return BROKEN_OFF[last.finish]
    if sum(each.finish == "length" for each in attempts) > 1:
        return "it was cut off at the length limit again"
    if last.form == "invalid_patch":
        return ""
    if any(set(last.diagnostics) == set(each.diagnostics) for each in whole[:-1]):
        return "the repair changed nothing"
    if len(whole) > 1 and _is_located(last) and _is_located(whole[-2]) and _count(last) > _count(whole[-2]):
        return "the repair made it worse"
    return "no round of repair is left" if len(whole) > repair.rounds else ""


def _is_located(attempt: Attempt) -> bool:
    """Whether the attempt was JSON with faults in places."""
    return bool(place_of(attempt.diagnostics[0]))


def _count(attempt: Attempt) -> int:
    more = MORE.match(attempt.diagnostics[-1])
    return len(attempt.diagnostics) + (int(more[1]) - 1 if more else 0)


def repair_messages(
    answer: TypedResponse, text: str, faults: tuple[str, ...], function: str, mode: OutputMode
) -> tuple[Message, ...]:
    """Send the whole of a bad answer back: as the result of its call where it was one, else as a turn.

    `text` is the answer as it stands now, which a patch may have changed; `mode` is how the next one is asked for.
    """
    wish = WHOLE if mode in ("native", "prompt") else CALL.format(name=function)
    call = answer.call
    if call is None or mode != answer.mode or call.arguments != text or not isinstance(_json(text), dict):
        return assistant(text), user(_faulty("Your answer", faults, wish))
    result = ToolResult(_faulty("The call", faults, wish), call.name, call.id, error="bad_arguments")
    return Message("assistant", (call,)), Message("tool", (result,))


def patch_places(repair: RepairPolicy, answer: TypedResponse, text: str, faults: tuple[str, ...]) -> tuple[str, ...]:
    """Give the places that a patch is to correct; none where the whole answer is better asked for again."""
    if repair.patch_above is None or answer.response.finish == "length" or estimate_tokens(text) <= repair.patch_above:
        return ()
    places = tuple(dict.fromkeys(place_of(line) for line in faults))
    return places if len(places) <= MOST_PATCHED and all(places) else ()


def patch_wanted(text: str, faults: tuple[str, ...]) -> tuple[Message, ...]:
    """Send a bad answer back for a patch."""
    example = json.dumps(place_of(faults[0]), ensure_ascii=False)
    return assistant(text), user(_faulty("Your answer", faults, PATCH.format(example=example)))


def _faulty(whose: str, faults: tuple[str, ...], wish: str) -> str:
    return FAULTY.format(whose=whose, faults="\n".join(faults), wish=wish)


def loosely(text: str) -> Json:
    """Read the JSON of a text, whatever its type; None where there is none without a guess."""
    try:
        return cast("Json", _any().parse(text, STRICTLY).value)
    except OutputValidationError:
        return None


def unfinished(text: str) -> Json:
    """Read what there is of the JSON of a text that was cut off; None where there is none."""
    stream = PartialParser(_any())
    stream.feed(text)
    return stream.view


@cache
def _any() -> OutputType[Any]:
    return OutputType(Any)


def _json(text: str) -> Json:
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found
