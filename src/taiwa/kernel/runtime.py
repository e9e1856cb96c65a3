"""What both drivers share: which edge answers which effect."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeGuard, TypeVar, cast

from taiwa.kernel.effects import Abilities, CallTool, Complete, Effect, Measure, Program, Quote, Retrieve
from taiwa.kernel.errors import ConfigError, ToolError, UnknownToolError
from taiwa.kernel.foreign import Foreign
from taiwa.kernel.journal import Journal
from taiwa.kernel.ledger import Ledger, Limits, Price
from taiwa.kernel.protocols import Following, Measuring, Retriever, Tool
from taiwa.kernel.session import Observer, Session
from taiwa.kernel.values import Ability, Evidence, Message, Passage, ToolResult

__all__ = ["BaseRuntime", "Handler", "Interrupts"]

M = TypeVar("M")
T = TypeVar("T")
Handler: TypeAlias = Callable[[Any], Any]
Interrupts = Literal["raise", "keep"]


@dataclass(eq=False)
class BaseRuntime(Generic[M]):
    """The edges and limits of a run. A handler given for an effect class takes precedence over the edges.

    `width` bounds how many programs of a gather are performed at a time; `interrupts` says what a KeyboardInterrupt does
    to an answer that is streaming: `keep` ends it with what it has, `raise` ends the run.
    """

    model: M | None = None
    _: KW_ONLY
    tools: Iterable[Tool] = ()
    retriever: Retriever | None = None
    handlers: Mapping[type[Effect[Any]], Handler] = field(default_factory=dict[type[Effect[Any]], Handler])
    observers: Iterable[Observer] = ()
    limits: Limits | None = None
    price: Price | None = None
    width: int = 16
    interrupts: Interrupts = "raise"

    def __post_init__(self) -> None:
        self.width = max(self.width, 1)
        self._tools = {tool.spec.name: tool for tool in self.tools}
        edges: dict[type[Effect[Any]], Handler] = {
            Abilities: self._abilities,
            CallTool: self._call_tool,
            Measure: self._measure,
            Quote: self._quote,
            Retrieve: self._retrieve,
        }
        self._handlers = edges | dict(self.handlers)
        self._observers = tuple(self.observers)

    def session(self, program: Program[T], journal: Journal | None) -> Session[T]:
        """Begin a run."""
        name = str(getattr(self.model, "name", ""))
        return Session(program, Ledger(self.limits or Limits(), name, self.price), journal, self._observers)

    def streams(self, effect: Effect[Any]) -> TypeGuard[Complete]:
        """Say whether an effect is answered by the model's stream and not by a handler."""
        return isinstance(effect, Complete) and Complete not in self._handlers

    def handler(self, effect: Effect[Any]) -> Handler:
        """Find who answers an effect.

        Raises:
            ConfigError: nobody does.
        """
        found = self._handlers.get(type(effect))
        if found is None:
            raise ConfigError(f"nothing handles {type(effect).__name__}: give the runtime `handlers={{...}}` for it")
        return found

    def the_model(self) -> M:
        """Return the model.

        Raises:
            ConfigError: there is none.
        """
        if self.model is None:
            raise ConfigError("this program asks a model and the runtime has none: give `model=`")
        return self.model

    def _abilities(self, _: Abilities) -> frozenset[Ability]:
        nothing: frozenset[Ability] = frozenset()
        return cast("frozenset[Ability]", getattr(self.the_model(), "abilities", nothing))

    def _call_tool(self, effect: CallTool) -> ToolResult:
        tool = self._tools.get(effect.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            raise UnknownToolError(f"there is no tool {effect.name!r}", code="unknown_tool", hint=f"tools: {known}")
        with Foreign(effect.name):
            result = cast("object", tool.call(effect.arguments))  # foreign code: it may give anything
        if not isinstance(result, ToolResult):
            trace = f"{effect.name} gave a {type(result).__name__} and no ToolResult"
            raise ToolError(f"{effect.name} failed", code="internal", trace=trace)
        return result

    def _quote(self, effect: Quote) -> int | None:
        name = str(getattr(self.model, "name", ""))
        return None if self.price is None else self.price(name, effect.usage)

    def _retrieve(self, effect: Retrieve) -> tuple[Passage, ...]:
        return self._retriever_after(effect.history).find(effect.query, effect.k)

    def _measure(self, effect: Measure) -> Evidence | None:
        retriever = self._retriever_after(effect.history)
        return retriever.evidence(effect.query) if isinstance(retriever, Measuring) else None

    def _retriever_after(self, history: tuple[Message, ...]) -> Retriever:
        retriever = self.retriever
        if retriever is None:
            raise ConfigError("this program looks up passages and the runtime has no `retriever=`")
        return retriever.after(history) if history and isinstance(retriever, Following) else retriever
