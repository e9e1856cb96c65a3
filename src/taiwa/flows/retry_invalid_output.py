"""Repair of an invalid answer: the policy, the attempts, and the messages that request it whole or as a patch."""

import json
import re
from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from operator import eq
from typing import Any, Literal, TypeAlias, cast

from taiwa.flows.output_modes import OutputMode, TypedResponse
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.messages import Enforcement, FinishReason, Message, ToolResult, Usage, assistant, user
from taiwa.kernel.records import Json, value
from taiwa.kernel.text import estimate_tokens
from taiwa.structured import Fix, OutputType, ParseOptions, PartialParser

Path: TypeAlias = tuple[str | int, ...]

STEP = re.compile(r"\.(?P<name>[^\W\d]\w*)|\[(?P<index>\d{1,9})\]|\[(?P<key>\"(?:[^\"\\]|\\.)*\")\]")


def read_path(text: str) -> Path | None:
    """Parse a path as diagnostics write it; return None for any other text.

    >>> read_path('$.items[5]["odd key"]')
    ('items', 5, 'odd key')
    """
    found, end = _leading(text)
    return found if end == len(text) else None


def path_of_line(line: str) -> str:
    """Return the path at the start of a line of diagnostics; '' where the line is about the whole answer.

    >>> path_of_line("$.cups = 0: must be integer, 1..9")
    '$.cups'
    """
    found, end = _leading(line)
    return line[:end] if found and line.startswith((" = ", ": "), end) else ""


def apply_patch(data: Json, patch: dict[str, Json], places: Iterable[str]) -> Json:
    """Return the data with the patch applied; None where a path does not exist or does not lead to a faulty place."""
    faulty, whole = [read_path(place) or () for place in places], deepcopy(data)
    for text, new in patch.items():
        path = read_path(text)
        # A path and a faulty place are related where one is a prefix of the other.
        if not path or not any(all(map(eq, path, each)) for each in faulty) or not _put(whole, path, deepcopy(new)):
            return None
    return whole if patch else None


def _leading(text: str) -> tuple[Path | None, int]:
    if not text.startswith("$"):
        return None, 0
    path: list[str | int] = []
    at = 1
    while match := STEP.match(text, at):
        if match["key"] is not None:
            try:
                path.append(json.loads(match["key"]))
            except ValueError:
                return None, at
        else:
            path.append(match["name"] if match["index"] is None else int(match["index"]))
        at = match.end()
    return tuple(path), at


def _put(data: Json, path: Path, value: Json) -> bool:
    """Set the value at a path whose container exists; a key may be new, an item may not."""
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


AnswerForm: TypeAlias = Literal["whole", "patch", "invalid_patch"]
"""What was requested; a patch is invalid where it is not a JSON object of the requested paths."""

MAX_ROUNDS = 3

MAX_PATCHED = 5

BROKEN_OFF: dict[FinishReason, str] = {"interrupted": "it was interrupted", "cut": "it was cut off"}

NO_GUESS = ParseOptions(guess=False)

MORE = re.compile(r"… and (\d+) more\Z")

FAULTY = "{whose} does not have the wanted type:\n{faults}\n{request}"

WHOLE = "Reply only with the corrected JSON, whole, and nothing else."

CALL = "Call {name} again, with all of its arguments."

PATCH = """\
Reply only with one JSON object that gives each of these paths its corrected value, as in {{{example}: …}}, and nothing else. \
All the rest stays as it is."""


@value(tag="repair-policy")
class RepairPolicy:
    """Limits of the repair of an invalid answer.

    - `rounds`: how often an invalid answer is sent back, 0 to 3; each is one request, and one more where a patch was invalid.
    - `budget_tokens`: the most input and output tokens of all attempts. `budget_cost`: their highest cost, in
      billionths of the currency unit. Both are checked before a request, with the size of its prompt.
    - `patch_above`: the tokens above which an invalid answer is corrected by a patch; None for never.
    - `guess`: accept a value that could be parsed only by a guess, instead of sending the answer back.
    """

    rounds: int = 1
    budget_tokens: int | None = None
    budget_cost: int | None = None
    patch_above: int | None = 300
    guess: bool = False

    def check(self) -> None:
        """Check the values.

        Raises:
            InputError: a value is out of range.
        """
        if not 0 <= self.rounds <= MAX_ROUNDS:
            raise InputError(f"rounds must be 0 to {MAX_ROUNDS}, got {self.rounds}")
        for name in ("budget_tokens", "budget_cost", "patch_above"):
            limit = getattr(self, name)
            if limit is not None and limit < 0:
                raise InputError(f"{name} must not be negative, got {limit}")


DEFAULT_REPAIR = RepairPolicy()


@value(tag="attempt")
class Attempt:
    """One answer as the model wrote it: its fixes, its faults, how it was requested, and its usage.

    It was accepted if it has no diagnostics. `usage` is None where the server did not report it. `downgrades` say why a better
    mode was given up before this answer, and `enforcement` what of the type the decoder enforced.
    """

    text: str
    diagnostics: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    finish: FinishReason = "stop"
    usage: Usage | None = None
    mode: OutputMode = "prompt"
    form: AnswerForm = "whole"
    downgrades: tuple[str, ...] = ()
    enforcement: Enforcement | None = None


def stop_reason(repair: RepairPolicy, attempts: tuple[Attempt, ...]) -> str:
    """Return why the last, invalid attempt is not sent back; '' where it is."""
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
    """Return whether the attempt was JSON whose faults have paths."""
    return bool(path_of_line(attempt.diagnostics[0]))


def _count(attempt: Attempt) -> int:
    more = MORE.match(attempt.diagnostics[-1])
    return len(attempt.diagnostics) + (int(more[1]) - 1 if more else 0)


def repair_messages(
    answer: TypedResponse, text: str, faults: tuple[str, ...], function: str, mode: OutputMode
) -> tuple[Message, ...]:
    """Return the messages that send an invalid answer back: as the result of its function call, else as a turn.

    `text` is the answer with patches applied; `mode` is the mode of the next request.
    """
    request = WHOLE if mode in ("native", "prompt") else CALL.format(name=function)
    call = answer.call
    if call is None or mode != answer.mode or call.arguments != text or not isinstance(_json(text), dict):
        return assistant(text), user(_faulty("Your answer", faults, request))
    result = ToolResult(_faulty("The call", faults, request), call.name, call.id, error="bad_arguments")
    return Message("assistant", (call,)), Message("tool", (result,))


def patch_places(repair: RepairPolicy, answer: TypedResponse, text: str, faults: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths that a patch has to correct; none where the whole answer is requested again."""
    if repair.patch_above is None or answer.response.finish == "length" or estimate_tokens(text) <= repair.patch_above:
        return ()
    places = tuple(dict.fromkeys(path_of_line(line) for line in faults))
    return places if len(places) <= MAX_PATCHED and all(places) else ()


def patch_messages(text: str, faults: tuple[str, ...]) -> tuple[Message, ...]:
    """Return the messages that request a patch of an invalid answer."""
    example = json.dumps(path_of_line(faults[0]), ensure_ascii=False)
    return assistant(text), user(_faulty("Your answer", faults, PATCH.format(example=example)))


def _faulty(whose: str, faults: tuple[str, ...], request: str) -> str:
    return FAULTY.format(whose=whose, faults="\n".join(faults), request=request)


def parse_json(text: str) -> Json:
    """Parse the JSON in a text, of any type, without guessing; return None where there is none."""
    try:
        return cast("Json", _any().parse(text, NO_GUESS).value)
    except OutputValidationError:
        return None


def parse_partial_json(text: str) -> Json:
    """Parse the JSON in a text that was cut off, as far as it goes; return None where there is none."""
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
