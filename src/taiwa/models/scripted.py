"""A model that plays a written script: the fake for tests and demonstrations."""

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from threading import Lock
from typing import TypeAlias, get_args

from taiwa.kernel.errors import ModelError
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Request,
    Response,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    Usage,
    assistant,
)

__all__ = ["EVERY_ABILITY", "Entry", "ScriptedModel", "scripted_model"]

Entry: TypeAlias = str | Response | Exception | Callable[[Request], str | Response]
"""One answer: its words, the whole response, an error to raise, or a function of the request that gives either of the first two."""

EVERY_ABILITY: frozenset[Capability] = frozenset(get_args(Capability))


class ScriptedModel:
    """Answers in the order of its script, in pieces of `chunk` characters; `requests` holds what it was asked.

    Words given as a plain string end at the first stop string of the request when the model has the ability `stop`, as
    they would behind a real server; a `Response` is played as it is.
    """

    def __init__(
        self,
        entries: tuple[Entry, ...],
        name: str,
        capabilities: frozenset[Capability],
        chunk: int,
        usage: Usage | None,
    ) -> None:
        self.name = name
        self.capabilities = capabilities
        self.requests: list[Request] = []
        self._entries = entries
        self._chunk = chunk
        self._usage = usage
        self._turn = count()
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"Scripted({self.name!r}, {len(self.requests)} of {len(self._entries)} answers given)"

    def stream(self, request: Request) -> Iterator[Chunk]:
        """Play the next answer.

        Raises:
            ModelError: the script is exhausted; or the error that stands in the script.
        """
        yield from self._play(self._respond(request), request)

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        """As `stream`; other tasks may run between two chunks."""
        # Imported here: a blocking program pays nothing for the event loop.
        from asyncio import sleep

        for chunk in self._play(self._respond(request), request):
            await sleep(0)
            yield chunk

    def _respond(self, request: Request) -> str | Response:
        with self._lock:
            turn = next(self._turn)
            self.requests.append(request)
        if turn >= len(self._entries):
            asked = next((message.text for message in reversed(request.messages)), "")
            raise ModelError(
                f"the script of {self.name!r} is exhausted: it has {len(self._entries)} answers and was asked for "
                f"answer {turn + 1} ({asked[-60:]!r}); add one",
                request=request.digest,
            )
        entry = self._entries[turn]
        if isinstance(entry, Exception):
            raise entry
        return entry if isinstance(entry, (str, Response)) else entry(request)

    def _play(self, answer: str | Response, request: Request) -> Iterator[Chunk]:
        response = self._spoken(answer, request) if isinstance(answer, str) else answer
        for part in response.message.parts:
            if isinstance(part, (Text, Thinking)):
                kind = TextDelta if isinstance(part, Text) else ThinkingDelta
                for start in range(0, len(part.text), self._chunk):
                    yield kind(part.text[start : start + self._chunk])
        calls = response.message.tool_calls
        yield StreamEnd(response.finish, response.stop, response.usage, response.model, calls, response.logprobs)

    def _spoken(self, words: str, request: Request) -> Response:
        """Make a plain answer, cut before the earliest stop string of the request."""
        heard = [(words.index(stop), stop) for stop in request.stop if stop and stop in words]
        if heard and "stop" in self.capabilities:
            end, stop = min(heard)
            return Response(assistant(words[:end]), stop=stop, usage=self._usage, model=self.name)
        return Response(assistant(words), usage=self._usage, model=self.name)


def scripted_model(
    *entries: Entry,
    name: str = "scripted",
    capabilities: frozenset[Capability] = EVERY_ABILITY,
    chunk: int = 7,
    usage: Usage | None = None,
) -> ScriptedModel:
    """Write a script; `usage` is what each plain answer reports, and None says nothing.

    >>> from taiwa.kernel.messages import collect_response, user
    >>> model = scripted_model("Hello", "Bye")
    >>> fold(model.stream(Request((user("Hi"),)))).text
    'Hello'
    """
    return ScriptedModel(entries, name, capabilities, chunk, usage)
