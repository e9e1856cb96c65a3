"""Completions (`POST /v1/completions`), for older clients: a prompt is a message of the user, and the answer is a text."""

from collections.abc import AsyncGenerator
from functools import partial
from secrets import token_hex
from time import time

from starlette.requests import Request
from starlette.responses import Response

from taiwa.kernel.messages import TextDelta
from taiwa.kernel.serialization import Json
from taiwa.server.http_responses import ApiError, SendNow, error_to_json, event, invalid
from taiwa.server.request import Fields, caller_of, interpret, read_body, state_of
from taiwa.server.runs import LiveRun
from taiwa.server.wire_interface import Route, Wire
from taiwa.server.wires.answer_request import Extend, answer, response_of
from taiwa.server.wires.chat_completions import FINISH, ChatRequest, read_request, write_usage
from taiwa.sessions.commit_turn import TurnResult

UNSUPPORTED = ("suffix", "echo", "logprobs")


def read_prompt(body: Fields) -> Fields:
    """Return the body of Chat Completions for a prompt.

    Raises:
        ApiError: there are several prompts, it is one of tokens, or a field asks for what a chat cannot give.
    """
    for name in UNSUPPORTED:
        if body.data.get(name):
            raise body.error(name, "is not supported by this server", "unsupported_parameter")
    prompts = body.texts("prompt", or_one=True)
    if len(prompts) != 1:
        raise invalid("prompt", "prompt must be one text; send a request for each", "invalid_value")
    data = {name: each for name, each in body.data.items() if name not in ("prompt", "best_of", *UNSUPPORTED)}
    message: Json = {"role": "user", "content": prompts[0]}
    return Fields({**data, "messages": [message]})


async def create(request: Request) -> Response:
    """Answer a prompt, as one object or as a stream."""
    state = state_of(request)
    state.runs.check_room(caller_of(request))
    limits, body = state.options.limits, read_prompt(await read_body(request))
    asked = await interpret(request, partial(read_request, body, limits.messages, limits.choices))
    return await answer(request, asked, _Reply(asked))


class _Reply:
    """Writes the answers of one request."""

    protocol = "Completions"

    def __init__(self, asked: ChatRequest) -> None:
        self._asked = asked
        self.id = f"cmpl-{token_hex(12)}"
        self._created = int(time())

    def whole(self, results: list[TurnResult]) -> dict[str, Json]:
        """Return the whole response."""
        choices = [
            self._choice(index, result.continuation, FINISH[response_of(result).finish])
            for index, result in enumerate(results)
        ]
        usage = write_usage(results)
        return self._object(choices) | ({} if usage is None else {"usage": usage})

    async def stream(self, run: LiveRun, extend: Extend, send_now: SendNow) -> AsyncGenerator[bytes]:  # noqa: ARG002
        """Yield the parts of the response."""
        results: list[TurnResult] = []
        async for each in run.follow():
            match each.event:
                case ApiError():
                    yield event(error_to_json(each.event))
                    return
                case TextDelta(text):
                    yield event(self._object([self._choice(each.index, text, None)]))
                case TurnResult():
                    results.append(each.event)
                    reason = FINISH[response_of(each.event).finish]
                    yield event(self._object([self._choice(each.index, "", reason)]))
                case _:
                    pass
        extension = await extend(results)
        usage: dict[str, Json] = {"usage": write_usage(results)} if self._asked.include_usage else {}
        if usage or extension:
            yield event(self._object([]) | usage | extension)
        yield b"data: [DONE]\n\n"

    def _object(self, choices: list[Json]) -> dict[str, Json]:
        head: dict[str, Json] = {"id": self.id, "object": "text_completion", "created": self._created}
        return head | {"model": self._asked.model, "choices": choices}

    @staticmethod
    def _choice(index: int, text: str, reason: str | None) -> Json:
        return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}


wire = Wire("completions", (Route("/v1/completions", create, repeats=True),), error_to_json)
