"""A model that answers from a script, for tests and demonstrations."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias, get_args

from taiwa.kernel.errors import ModelError, check_argument, check_list
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Message,
    Request,
    Response,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    Usage,
    assistant,
)
from taiwa.kernel.text import plural

Answer: TypeAlias = str | ToolCall | Response
Entry: TypeAlias = Answer | Exception | Callable[[Request], Answer]
"""One answer: its text, a tool call, the whole response, an error to raise, or a function of the request that returns an answer."""

ALL_CAPABILITIES: frozenset[Capability] = frozenset(get_args(Capability)) - {"local", "small"}


@dataclass(eq=False, repr=False)
class ScriptedModel:
    """Returns the answers of its script in order, in chunks of `chunk` characters, and records the `requests`.

    A plain text ends at the first stop string of the request if the model has the capability `stop`, as with a real server;
    a `Response` is returned unchanged.
    """

    entries: tuple[Entry, ...]
    name: str
    capabilities: frozenset[Capability]
    chunk: int
    usage: Usage | None
    requests: list[Request] = field(default_factory=list[Request])
    _lock: Lock = field(default_factory=Lock)

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r}, {len(self.requests)} of {len(self.entries)} answers used)"

    def stream(self, request: Request) -> Iterator[Chunk]:
        """Yield the next answer.

        Raises:
            ModelError: the script is exhausted; or the error in the script.
        """
        yield from self._play(self._next(request), request)

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        """As `stream`; other tasks may run between two chunks."""
        from asyncio import sleep  # imported here, so that a blocking program does not load asyncio

        for chunk in self._play(self._next(request), request):
            await sleep(0)
            yield chunk

    def _next(self, request: Request) -> Answer:
        with self._lock:
            turn = len(self.requests)
            self.requests.append(request)
        if turn >= len(self.entries):
            last = next((message.text for message in reversed(request.messages)), "")
            raise ModelError(
                f"the script of {self.name!r} is exhausted: it has {plural(len(self.entries), 'answer')}, and "
                f"answer {turn + 1} was requested ({last[-60:]!r}); add one",
                request=request.digest,
            )
        entry = self.entries[turn]
        if isinstance(entry, Exception):
            raise entry
        return entry if isinstance(entry, (str, ToolCall, Response)) else entry(request)

    def _play(self, answer: Answer, request: Request) -> Iterator[Chunk]:
        response = answer if isinstance(answer, Response) else self._respond_with(answer, request)
        for part in response.message.parts:
            if isinstance(part, (Text, Thinking)):
                kind = TextDelta if isinstance(part, Text) else ThinkingDelta
                for start in range(0, len(part.text), self.chunk):
                    yield kind(part.text[start : start + self.chunk])
            if isinstance(part, Thinking) and part.data is not None:
                yield ThinkingDelta("", part)
        message = response.message
        blocks = message.thinking if message.signed_thinking else ()
        yield StreamEnd(
            response.finish, response.stop, response.usage, response.model, message.tool_calls, response.decoding,
            blocks,
        )  # fmt: skip

    def _respond_with(self, text: str | ToolCall, request: Request) -> Response:
        """Build a tool call, or a plain answer that is cut before the earliest stop string of the request."""
        if isinstance(text, ToolCall):
            message = Message("assistant", (text,))
            return Response(message, finish="tool_calls", usage=self.usage, model=self.name)
        found = [(text.index(stop), stop) for stop in request.stop if stop and stop in text]
        end, stop = min(found) if found and "stop" in self.capabilities else (len(text), None)
        return Response(assistant(text[:end]), stop=stop, usage=self.usage, model=self.name)


def scripted_model(
    *entries: Entry,
    name: str = "scripted",
    capabilities: frozenset[Capability] = ALL_CAPABILITIES,
    chunk: int = 7,
    usage: Usage | None = None,
) -> ScriptedModel:
    """Build a model that answers with `entries` in order; `usage` is reported with each plain answer.

    >>> from taiwa.kernel.messages import collect_response, user
    >>> model = scripted_model("Hello", "Bye")
    >>> collect_response(model.stream(Request((user("Hi"),)))).text
    'Hello'
    """
    allowed = (str, ToolCall, Response, Exception, Callable)
    check_list("answers", entries, allowed, "texts, tool calls, responses, errors or functions")
    return ScriptedModel(entries, name, capabilities, chunk, usage)


@dataclass(eq=False, repr=False)
class FunctionModel(ScriptedModel):
    """Answers every request by a function of it, and records the `requests`."""

    def _next(self, request: Request) -> Answer:
        self.requests.append(request)
        answer = self.entries[0]
        assert callable(answer), "function_model passes a function"
        return answer(request)


def function_model(
    answer: Callable[[Request], Answer],
    *,
    name: str = "function",
    capabilities: frozenset[Capability] = ALL_CAPABILITIES,
    chunk: int = 7,
    usage: Usage | None = None,
) -> FunctionModel:
    """Build a model that answers every request by a function of it; `usage` is reported with each plain answer.

    >>> from taiwa.kernel.messages import collect_response, user
    >>> loud = function_model(lambda request: request.messages[-1].text.upper())
    >>> collect_response(loud.stream(Request((user("Hi"),)))).text
    'HI'
    """
    check_argument("answer", answer, Callable, "a function of the request")
    return FunctionModel((answer,), name, capabilities, chunk, usage)
