"""The calls of one rationale: under one count, each done once, and what a failure leads to."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from taiwa.flows.calling import normal
from taiwa.flows.rationale import Bounds, Called, Ending, OnTrouble
from taiwa.kernel.effects import CallTool, Program, gather, perform, tell
from taiwa.kernel.errors import InputError, LimitError, ToolError, UnknownToolError
from taiwa.kernel.records import Json, canonical
from taiwa.kernel.values import ToolResult, ToolSpec

__all__ = ["NO_CALL_LEFT", "Calls", "Demand", "demanded"]

NO_CALL_LEFT = "error: no call is left; finish without tools"
LONGEST_FAULT = 8_000
REPEATED = "the same call was asked for once more than it is answered"


@dataclass(frozen=True, slots=True)
class Demand:
    """A call that a model asks for; `error` says why its input cannot be used. `written` is the input as the model wrote it."""

    name: str
    written: str
    arguments: Mapping[str, Json]
    error: ToolError | None = None
    discarded: str = ""


class Calls:
    """What was called so far; `ending` is set where no further call may come."""

    def __init__(
        self,
        tools: Iterable[ToolSpec],
        bounds: Bounds,
        *,
        on_error: OnTrouble = "report",
        on_unknown: OnTrouble = "report",
        withheld: Collection[str] = (),
    ) -> None:
        self.made: list[Called] = []
        self.ending: Ending | None = None
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

    def answer(self, demands: Sequence[Demand]) -> Program[tuple[Called | None, ...]]:
        """Answer calls that were asked for together, in their order; None for one for which no call is left.

        Those that nothing is known of are done side by side.
        """
        keys = [_key(each) for each in demands]
        taken = self._taken(demands, keys)
        new: dict[bytes, Demand] = {}
        for demand, key in zip(demands[:taken], keys, strict=False):
            if demand.error is None and key not in self._results and demand.name not in self._withheld:
                new.setdefault(key, demand)
        fresh = set(new)
        results = yield from _performed(tuple(new.values()))
        if any(isinstance(result, LimitError) for result in results):
            self.ending = "calls"
        self._results |= {key: each for key, each in zip(new, results, strict=True) if not isinstance(each, LimitError)}
        done: list[Called | None] = []
        for place, (demand, key) in enumerate(zip(demands, keys, strict=True)):
            if place >= taken:
                done.append((yield from self._refused(demand)) if place == taken else None)
                continue
            done.append((yield from self._settled(demand, self._found(demand, key, fresh))))
            fresh.discard(key)
        return tuple(done)

    def _found(self, demand: Demand, key: bytes, fresh: Collection[bytes]) -> ToolResult | ToolError | None:
        found = demand.error or self._results.get(key)
        if isinstance(found, ToolResult) and key not in fresh:
            return replace(found, origin="memo")
        return found

    def _taken(self, demands: Sequence[Demand], keys: Sequence[bytes]) -> int:
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

    def _refused(self, demand: Demand) -> Program[Called | None]:
        """The first call that is not answered: none is left, or it was asked for too often."""
        if self.ending != "repeat":
            return None
        yield from tell(f"{demand.name}: {REPEATED}", code="repeat", warning=True)
        return self._kept(demand, ToolResult("", demand.name, error="repeat"), fault=REPEATED)

    def _settled(self, demand: Demand, found: ToolResult | ToolError | None) -> Program[Called | None]:
        """Keep what came of a call."""
        if isinstance(found, ToolError):
            return (yield from self._failed(demand, found))
        if demand.name in self._withheld:
            return self._kept(demand, ToolResult("", demand.name, error="withheld", origin="model"))
        if found is None:
            return None
        if found.origin == "memo":
            yield from tell(f"{demand.name}: answered from memory", code="memo")
        return self._kept(demand, found, found.text)

    def _failed(self, demand: Demand, error: ToolError) -> Program[Called]:
        unknown = isinstance(error, UnknownToolError)
        policy = self._on_unknown if unknown else self._on_error
        words = f"error: {error.message}" + (f" ({error.hint})" if error.hint else "")
        yield from tell(f"{demand.name}: {error.message}", code="tool")
        code, fault = error.code or "error", (error.trace or words)[-LONGEST_FAULT:]
        if policy == "let_model_answer":
            return self._kept(demand, ToolResult("", demand.name, error=code, origin="model"), fault=fault)
        if policy == "stop":
            self.ending = "tool"
        return self._kept(
            demand, ToolResult(words, demand.name, error=code), words if policy == "report" else "", fault
        )

    def _kept(self, demand: Demand, result: ToolResult, shown: str = "", fault: str = "") -> Called:
        called = Called(demand.name, demand.written, result, shown, fault, demand.discarded)
        self.made.append(called)
        return called

    def wrote(self, place: int, text: str) -> None:
        """Note what the model wrote in place of a result."""
        called = self.made[place]
        self.made[place] = replace(called, result=replace(called.result, text=text), shown=text)


def _key(demand: Demand) -> bytes:
    if demand.error is None:
        return canonical([demand.name, dict(demand.arguments)])
    return f"{demand.name}\0{demand.written}".encode("utf-8", "surrogatepass")


def demanded(name: str, arguments: Mapping[str, Json], written: str, discarded: str = "") -> Demand:
    """Make a demand of what a model wrote; what cannot be written down cannot be asked for."""
    try:
        canonical(dict(arguments))
    except InputError as error:
        return Demand(name, written, {}, ToolError(error.message, code="bad_arguments"), discarded)
    return Demand(name, written, arguments, None, discarded)


def _performed(demands: Sequence[Demand]) -> Program[tuple[ToolResult | ToolError | LimitError, ...]]:
    if len(demands) == 1:
        return ((yield from _one(demands[0])),)
    return (yield from gather(_one(each) for each in demands))


def _one(demand: Demand) -> Program[ToolResult | ToolError | LimitError]:
    try:
        return (yield from perform(CallTool(demand.name, demand.arguments)))
    except ToolError as error:
        return error
    except LimitError as error:
        if error.which != "tool_calls":
            raise
        return error
