"""What a runtime needs of the edges. Structural: there is nothing to inherit."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Protocol, runtime_checkable

from taiwa.kernel.records import Json
from taiwa.kernel.values import Ability, Chunk, Evidence, Message, Passage, Request, ToolResult, ToolSpec

__all__ = ["AsyncModel", "Following", "Measuring", "Model", "Retriever", "Tool"]


class Model(Protocol):
    """A language model behind a blocking call."""

    @property
    def name(self) -> str:
        """The name a person would give it: `openai:gpt-x`, `http://127.0.0.1:8080/v1#qwen`."""
        ...

    @property
    def abilities(self) -> frozenset[Ability]:
        """What its server can do."""
        ...

    def stream(self, request: Request) -> Iterator[Chunk]:
        """Answer in chunks, the last one `Finished`; closing the iterator cancels the call.

        Raises:
            ModelError: the call failed.
        """
        ...


class AsyncModel(Protocol):
    """The same model behind an asynchronous call."""

    @property
    def name(self) -> str:
        """As `Model.name`."""
        ...

    @property
    def abilities(self) -> frozenset[Ability]:
        """As `Model.abilities`."""
        ...

    def astream(self, request: Request) -> AsyncIterator[Chunk]:
        """As `Model.stream`; cancelling the task cancels the call."""
        ...


class Tool(Protocol):
    """Something a program can call by name."""

    @property
    def spec(self) -> ToolSpec:
        """How a model sees it."""
        ...

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Do it.

        Raises:
            ToolError: the arguments are wrong or the tool failed; this is what a model may read.
        """
        ...


@runtime_checkable
class Retriever(Protocol):
    """A source of passages."""

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages, best first."""
        ...


@runtime_checkable
class Following(Protocol):
    """A retriever that can weigh what was said before a query."""

    def after(self, history: tuple[Message, ...]) -> Retriever:
        """Return the retriever for what is said next."""
        ...


@runtime_checkable
class Measuring(Protocol):
    """A retriever that can say how much there is on a query."""

    def evidence(self, query: str) -> Evidence:
        """Measure it."""
        ...
