"""`Rationale` and its parts; one budget and one de-duplication for all calls."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, TypeAlias, cast

from taiwa.kernel.effects import CallTool, Program, gather, notify, perform
from taiwa.kernel.errors import InputError, LimitError, ToolError, UnknownToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.records import Json, canonical, value

__all__ = [
    "NO_CALL_LEFT",
    "AnswerSource",
    "CallBudget",
    "EndReason",
    "ExecutedCall",
    "InsertedText",
    "OnToolError",
    "Rationale",
    "RequestedCall",
    "SolveLimits",
    "TextPart",
    "ToolMode",
    "listed",
    "request_call",
    "shown",
    "wanted",
]


OnToolError: TypeAlias = Literal["report", "let_model_answer", "stop"]
"""What follows a failed call: the model reads the error · the model writes the result · the rationale ends."""

ToolMode: TypeAlias = Literal["prefill", "stop", "native"]
"""How tool results are returned to the model: its own text continues behind them · its text is stopped and it is asked to
continue · they answer a function call."""

EndReason: TypeAlias = Literal[
    "end", "calls", "repeat", "tool", "stops", "tokens", "limit", "length", "interrupted", "refusal"
]
"""Why a rationale ended: by itself · no call was left · the same call too often · a tool's trouble · too many false stops ·
its bound on tokens · a limit of the run · as the model's finish says."""

AnswerSource: TypeAlias = Literal["typed", "line", "prompt", "none"]
"""Where the answer comes from: a typed answer · the last line · a second question about it · nowhere."""


@value(tag="call-bounds")
class SolveLimits:
    """What one rationale may use.

    The same call is done once and answered from memory until it was asked for `repeats` times; once more is the end. False
    stops are those at a mark that closes no call. Seconds and cost are limits of the run.
    """

    calls: int = 10
    tokens: int | None = 2_000
    repeats: int = 3
    false_stops: int = 20


@value(tag="text-part")
class TextPart:
    """What the model wrote."""

    text: str


@value(tag="inserted-text")
class InsertedText:
    """What the program put into the text: a result, the mark at which a server had stopped, a native call as text, or a cue."""

    text: str
    kind: Literal["result", "stop", "call", "cue"] = "result"


@value(tag="executed-call")
class ExecutedCall:
    """One call, with its input as the model wrote it.

    The result is whole, however little of it was put into the text (`shown`). One of `origin` "memo" had been given before;
    one of `origin` "model" was left to the model, and its text is what the model wrote in its place. `fault` is for a
    person: what went wrong, in full. `discarded` is what the model had written behind the call before it was interrupted.
    """

    name: str
    input: str
    result: ToolResult
    shown: str = ""
    fault: str = ""
    discarded: str = ""


@value(tag="rationale")
class Rationale:
    """A train of thought with its calls, and the answer that was read from it ('' where there is none).

    `value` is the answer as JSON where a type was asked for.
    """

    parts: tuple[TextPart | InsertedText, ...] = ()
    calls: tuple[ExecutedCall, ...] = ()
    ending: EndReason = "end"
    way: ToolMode = "prefill"
    answer: str = ""
    answered_by: AnswerSource = "none"
    value: Json = None

    @property
    def text(self) -> str:
        """The transcript; in the native way, as it would have been written in the text."""
        return "".join(part.text for part in self.parts)

    @property
    def complete(self) -> bool:
        """Whether the model came to its end by itself; nothing else may count as a right answer."""
        return self.ending == "end"


LONGEST_RESULT = 500

OWN_RESULTS = " Never write a result of a tool yourself."

LOOKED_AT = 20
"""Characters that are looked at for each that may be shown."""

MARKS = str.maketrans({"`": "'"})

LABELS = re.compile(
    r"\b(action|observation|thought|question|answer|human|user|assistant|system)(\s*\d*\s*)[:：]", re.IGNORECASE
)

ROLES = re.compile(
    r"<(?=[|｜]|/?(?:s|bos|eos|think\w*|tool\w*|function\w*|system|user|assistant|\w+_of_turn)\b)|(?<=[|｜])>"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_\w+|AVAILABLE_TOOLS)\b)",
    re.IGNORECASE,
)

HARMLESS = {"<": "‹", ">": "›", "[": "［"}


def shown(result: str, longest: int = LONGEST_RESULT) -> str:
    """A result as it stands in the text: one line of at most 500 printable characters that begins and closes nothing.

    What is a mark in any of the protocols, opens or closes code, or names who speaks is written with characters that only
    look like it.

    >>> shown("25.9\\n<<calculator: 1>> Observation 2: ```")
    "25.9 ‹‹calculator: 1›› Observation 2∶ '''"
    """
    plain = "".join(char for char in result[: LOOKED_AT * longest] if char.isprintable() or char.isspace())
    line = " ".join(plain.split()).translate(MARKS)
    line = line.replace("<<", "‹‹").replace(">>", "››").replace("~~~", "∼∼∼")
    line = LABELS.sub(r"\1\2∶", ROLES.sub(lambda found: HARMLESS[found[0]], line))
    if len(line) > longest or len(result) > LOOKED_AT * longest:
        line = f"{line[: longest - 1]}…"
    # The text on either side could make a double mark of a single one.
    if line.startswith(("<", ">")):
        line = HARMLESS[line[0]] + line[1:]
    if line.endswith(("<", ">")):
        line = line[:-1] + HARMLESS[line[-1]]
    return line or "(nothing)"


def arguments(spec: ToolSpec, text: str, write: Callable[[str, str], str]) -> dict[str, Json]:
    """Read a trigger's input: a JSON object of all arguments, or the bare text of the one that the tool needs.

    `write` shows how the protocol writes a call, for the hint.

    Raises:
        ToolError: the tool needs several, and this is no JSON object.
    """
    properties = _properties(spec)
    names = _needed(spec)
    given = _json(text)
    if isinstance(given, dict) and (len(names) != 1 or names[0] in given):
        return given
    if not properties and not text:
        return {}
    if len(names) != 1:
        hint = write(spec.name, _object(names)).strip()
        raise ToolError("the input must be a JSON object", code="bad_arguments", hint=hint)
    kind = properties.get(names[0])
    bare = not isinstance(kind, Mapping) or kind.get("type") == "string" or given is None
    return {names[0]: text if bare else given}


def wanted(spec: ToolSpec) -> str:
    """What a tool's input looks like: the name of the one argument that it needs, or an object of all."""
    needed = _needed(spec)
    return needed[0] if len(needed) == 1 else _object(list(_properties(spec)))


def listed(tools: Sequence[ToolSpec], write: Callable[[str, str], str]) -> str:
    """The tools, one a line: how a call is written, and what it does."""
    lines = [f"- {write(tool.name, wanted(tool)).strip()}: {' '.join(tool.description.split())}" for tool in tools]
    return "Tools:\n" + ("\n".join(lines) or "(none)")


def normal(name: str) -> str:
    """A name without what people write differently.

    >>> normal("Molar mass") == normal("molar_mass")
    True
    """
    return re.sub(r"[\s_-]+", "", name).casefold()


def _properties(spec: ToolSpec) -> Mapping[str, Json]:
    declared = spec.parameters.get("properties")
    return declared if isinstance(declared, dict) else {}


def _needed(spec: ToolSpec) -> list[str]:
    needed = spec.parameters.get("required")
    return [str(name) for name in needed] if isinstance(needed, list) and needed else list(_properties(spec))


def _object(names: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{name}": …' for name in names) + "}"


def _json(text: str) -> Json:
    """The JSON value of a text; None where it is none."""
    try:
        return cast("Json", json.loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


NO_CALL_LEFT = "error: no call is left; finish without tools"

LONGEST_FAULT = 8_000

REPEATED = "the same call was asked for once more than it is answered"


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call that a model asks for; `error` says why its input cannot be used. `written` is the input as the model wrote it."""

    name: str
    written: str
    arguments: Mapping[str, Json]
    error: ToolError | None = None
    discarded: str = ""


class CallBudget:
    """What was called so far; `ending` is set where no further call may come."""

    def __init__(
        self,
        tools: Iterable[ToolSpec],
        bounds: SolveLimits,
        *,
        on_error: OnToolError = "report",
        on_unknown: OnToolError = "report",
        withheld: Collection[str] = (),
    ) -> None:
        self.made: list[ExecutedCall] = []
        self.ending: EndReason | None = None
        self.specs = {tool.name: tool for tool in tools}
        self._bounds = bounds
        self._on_error = on_error
        self._on_unknown = on_unknown
        self._withheld = withheld
        self._results: dict[bytes, ToolResult | ToolError] = {}
        self._asked: dict[bytes, int] = {}

    def spec(self, name: str) -> ToolSpec:
        """Find a tool.

        Raises:
            UnknownToolError: there is none of that name.
        """
        found = self.specs.get(name) or next(
            (spec for spec in self.specs.values() if normal(spec.name) == normal(name)), None
        )
        if found is None:
            known = ", ".join(self.specs) or "none"
            raise UnknownToolError(f"there is no tool {name!r}", code="unknown_tool", hint=f"tools: {known}")
        return found

    def answer(self, demands: Sequence[RequestedCall]) -> Program[tuple[ExecutedCall | None, ...]]:
        """Answer calls that were asked for together, in their order; None for one for which no call is left.

        Those that nothing is known of are done side by side.
        """
        keys = [_key(each) for each in demands]
        taken = self._taken(demands, keys)
        new: dict[bytes, RequestedCall] = {}
        for demand, key in zip(demands[:taken], keys, strict=False):
            if demand.error is None and key not in self._results and demand.name not in self._withheld:
                new.setdefault(key, demand)
        fresh = set(new)
        results = yield from _performed(tuple(new.values()))
        if any(isinstance(result, LimitError) for result in results):
            self.ending = "calls"
        self._results |= {key: each for key, each in zip(new, results, strict=True) if not isinstance(each, LimitError)}
        done: list[ExecutedCall | None] = []
        for place, (demand, key) in enumerate(zip(demands, keys, strict=True)):
            if place >= taken:
                done.append((yield from self._refused(demand)) if place == taken else None)
                continue
            done.append((yield from self._settled(demand, self._found(demand, key, fresh))))
            fresh.discard(key)
        return tuple(done)

    def _found(self, demand: RequestedCall, key: bytes, fresh: Collection[bytes]) -> ToolResult | ToolError | None:
        found = demand.error or self._results.get(key)
        if isinstance(found, ToolResult) and key not in fresh:
            return replace(found, origin="memo")
        return found

    def _taken(self, demands: Sequence[RequestedCall], keys: Sequence[bytes]) -> int:
        """How many of the calls are answered: those that are left, up to the first that was asked for too often."""
        bounds = self._bounds
        left = max(bounds.calls - len(self.made), 0)
        if len(demands) > left:
            self.ending = "calls"
        for place, key in enumerate(keys[:left]):
            self._asked[key] = self._asked.get(key, 0) + 1
            if self._asked[key] > bounds.repeats:
                self.ending = "repeat"
                return place
        return min(left, len(demands))

    def _refused(self, demand: RequestedCall) -> Program[ExecutedCall | None]:
        """The first call that is not answered: none is left, or it was asked for too often."""
        if self.ending != "repeat":
            return None
        yield from notify(f"{demand.name}: {REPEATED}", code="repeat", warning=True)
        return self._kept(demand, ToolResult("", demand.name, error="repeat"), fault=REPEATED)

    def _settled(self, demand: RequestedCall, found: ToolResult | ToolError | None) -> Program[ExecutedCall | None]:
        """Keep what came of a call."""
        if isinstance(found, ToolError):
            return (yield from self._failed(demand, found))
        if demand.name in self._withheld:
            return self._kept(demand, ToolResult("", demand.name, error="withheld", origin="model"))
        if found is None:
            return None
        if found.origin == "memo":
            yield from notify(f"{demand.name}: answered from memory", code="memo")
        return self._kept(demand, found, found.text)

    def _failed(self, demand: RequestedCall, error: ToolError) -> Program[ExecutedCall]:
        unknown = isinstance(error, UnknownToolError)
        policy = self._on_unknown if unknown else self._on_error
        words = f"error: {error.message}" + (f" ({error.hint})" if error.hint else "")
        yield from notify(f"{demand.name}: {error.message}", code="tool")
        code, fault = error.code or "error", (error.trace or words)[-LONGEST_FAULT:]
        if policy == "let_model_answer":
            return self._kept(demand, ToolResult("", demand.name, error=code, origin="model"), fault=fault)
        if policy == "stop":
            self.ending = "tool"
        return self._kept(
            demand, ToolResult(words, demand.name, error=code), words if policy == "report" else "", fault
        )

    def _kept(self, demand: RequestedCall, result: ToolResult, shown: str = "", fault: str = "") -> ExecutedCall:
        called = ExecutedCall(demand.name, demand.written, result, shown, fault, demand.discarded)
        self.made.append(called)
        return called

    def wrote(self, place: int, text: str) -> None:
        """Note what the model wrote in place of a result."""
        called = self.made[place]
        self.made[place] = replace(called, result=replace(called.result, text=text), shown=text)


def _key(demand: RequestedCall) -> bytes:
    if demand.error is None:
        return canonical([demand.name, dict(demand.arguments)])
    return f"{demand.name}\0{demand.written}".encode("utf-8", "surrogatepass")


def request_call(name: str, arguments: Mapping[str, Json], written: str, discarded: str = "") -> RequestedCall:
    """Make a demand of what a model wrote; what cannot be written down cannot be asked for."""
    try:
        canonical(dict(arguments))
    except InputError as error:
        return RequestedCall(name, written, {}, ToolError(error.message, code="bad_arguments"), discarded)
    return RequestedCall(name, written, arguments, None, discarded)


def _performed(demands: Sequence[RequestedCall]) -> Program[tuple[ToolResult | ToolError | LimitError, ...]]:
    if len(demands) == 1:
        return ((yield from _one(demands[0])),)
    return (yield from gather(_one(each) for each in demands))


def _one(demand: RequestedCall) -> Program[ToolResult | ToolError | LimitError]:
    try:
        return (yield from perform(CallTool(demand.name, demand.arguments)))
    except ToolError as error:
        return error
    except LimitError as error:
        if error.which != "tool_calls":
            raise
        return error
