"""When a bad answer is sent back, in which form, and when that is no use any more.

Mends that cost nothing come first: they are part of reading. What still has no value is sent back with what is wrong with
it, and only the last bad answer: earlier ones are dropped, so that the cost of a round does not grow.
"""

import json
import re
from functools import cache
from typing import Any, Literal, TypeAlias, cast

from taiwa.conversation.derive import tokens_of
from taiwa.flows.modes import Answered, Mode
from taiwa.flows.patches import place_of
from taiwa.kernel.errors import InputError, ShapeError
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import Enforcement, Finish, Message, ToolResult, Usage, assistant, user
from taiwa.shape import Fix, Rules, Shape, Stream

__all__ = [
    "ONCE", "STRICTLY", "Attempt", "Form", "Repair", "check_repair", "loosely", "patch_places", "patch_wanted", "sent_back",
    "stopped", "unfinished",
]  # fmt: skip

Form: TypeAlias = Literal["whole", "patch", "invalid_patch"]
"""What an answer was asked to be; a patch is unusable where it is no JSON object of known paths."""

MOST_ROUNDS = 3
MOST_PATCHED = 5
BROKEN_OFF: dict[Finish, str] = {"interrupted": "it was interrupted", "cut": "it was cut off"}
STRICTLY = Rules(guess=False)
MORE = re.compile(r"… and (\d+) more\Z")
FAULTY = "{whose} does not have the wanted type:\n{faults}\n{wish}"
WHOLE = "Reply only with the corrected JSON, whole, and nothing else."
CALL = "Call {name} again, with all of its arguments."
PATCH = """\
Reply only with one JSON object that gives each of these paths its corrected value, as in {{{example}: …}}, and nothing else. \
All the rest stays as it is."""


@value(tag="repair-policy")
class Repair:
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


ONCE = Repair()


@value(tag="attempt")
class Attempt:
    """One answer as the model wrote it: what was mended, what is wrong, how it was asked for and what it cost.

    No diagnostics means that it was taken. `usage` None means that the server did not say. `downgrades` say why a better
    mode was given up before this answer, and `enforcement` what of the type the decoder held.
    """

    text: str
    diagnostics: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    finish: Finish = "stop"
    usage: Usage | None = None
    mode: Mode = "prompt"
    form: Form = "whole"
    downgrades: tuple[str, ...] = ()
    enforcement: Enforcement | None = None


def check_repair(repair: Repair) -> None:
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


def stopped(repair: Repair, attempts: tuple[Attempt, ...]) -> str:
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


def sent_back(answer: Answered, text: str, faults: tuple[str, ...], function: str, mode: Mode) -> tuple[Message, ...]:
    """Send the whole of a bad answer back: as the result of its call where it was one, else as a turn.

    `text` is the answer as it stands now, which a patch may have changed; `mode` is how the next one is asked for.
    """
    wish = WHOLE if mode in ("native", "prompt") else CALL.format(name=function)
    call = answer.call
    if call is None or mode != answer.mode or call.arguments != text or not isinstance(_json(text), dict):
        return assistant(text), user(_faulty("Your answer", faults, wish))
    result = ToolResult(_faulty("The call", faults, wish), call.name, call.id, error="bad_arguments")
    return Message("assistant", (call,)), Message("tool", (result,))


def patch_places(repair: Repair, answer: Answered, text: str, faults: tuple[str, ...]) -> tuple[str, ...]:
    """Give the places that a patch is to correct; none where the whole answer is better asked for again."""
    if repair.patch_above is None or answer.response.finish == "length" or tokens_of(text) <= repair.patch_above:
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
        return cast("Json", _any().read(text, STRICTLY).value)
    except ShapeError:
        return None


def unfinished(text: str) -> Json:
    """Read what there is of the JSON of a text that was cut off; None where there is none."""
    stream = Stream(_any())
    stream.feed(text)
    return stream.view


@cache
def _any() -> Shape[Any]:
    return Shape(Any)


def _json(text: str) -> Json:
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found
