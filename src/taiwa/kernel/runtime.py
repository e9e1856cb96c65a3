"""What both drivers share: which edge answers which effect."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from taiwa.kernel.effects import Abilities, CallTool, Effect, Program, Retrieve
from taiwa.kernel.errors import ConfigError, UnknownToolError
from taiwa.kernel.journal import Journal
from taiwa.kernel.ledger import Ledger, Limits, Price
from taiwa.kernel.protocols import Retriever, Tool
from taiwa.kernel.session import Observer, Session
from taiwa.kernel.values import Ability, Passage, ToolResult

__all__ = ["BaseRuntime", "Handler", "Interrupts"]

M = TypeVar("M")
T = TypeVar("T")
Handler: TypeAlias = Callable[[Any], Any]
Interrupts = Literal["raise", "keep"]


class BaseRuntime(Generic[M]):
    """The edges and limits of a run. A handler given for an effect class takes precedence over the edges."""

    def __init__(
        self,
        model: M | None = None,
        *,
        tools: Iterable[Tool] = (),
        retriever: Retriever | None = None,
        handlers: Mapping[type[Effect[Any]], Handler] | None = None,
        observers: Iterable[Observer] = (),
        limits: Limits | None = None,
        price: Price | None = None,
        width: int = 16,
        interrupts: Interrupts = "raise",
    ) -> None:  # fmt: skip
        self.model = model
        self.tools = {tool.spec.name: tool for tool in tools}
        self.retriever = retriever
        edges: dict[type[Effect[Any]], Handler] = {}
        edges[Abilities] = self._abilities
        edges[CallTool] = self._call_tool
        edges[Retrieve] = self._retrieve
        self.handlers: Mapping[type[Effect[Any]], Handler] = edges | dict(handlers or {})
        self.observers = tuple(observers)
        self.limits = limits or Limits()
        self.price = price
        self.width = max(width, 1)
        self.interrupts = interrupts

    def session(self, program: Program[T], journal: Journal | None) -> Session[T]:
        """Begin a run."""
        name = str(getattr(self.model, "name", ""))
        return Session(program, Ledger(self.limits, name, self.price), journal, self.observers)

    def handler(self, effect: Effect[Any]) -> Handler:
        """Find who answers an effect.

        Raises:
            ConfigError: nobody does.
        """
        found = self.handlers.get(type(effect))
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
        tool = self.tools.get(effect.name)
        if tool is None:
            known = ", ".join(sorted(self.tools)) or "none"
            raise UnknownToolError(f"there is no tool {effect.name!r}", code="unknown_tool", hint=f"tools: {known}")
        return tool.call(effect.arguments)

    def _retrieve(self, effect: Retrieve) -> tuple[Passage, ...]:
        if self.retriever is None:
            raise ConfigError("this program looks up passages and the runtime has no `retriever=`")
        return self.retriever.find(effect.query, effect.k)
