"""Completions (`POST /v1/completions`), for older clients: a prompt is a message of the user, and the answer is a text."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from secrets import token_hex
from time import time

from starlette.requests import Request
from starlette.responses import Response as HttpResponse

from taiwa.kernel.messages import Message, Response, Text, TextDelta, TokenLogprob
from taiwa.kernel.serialization import Json
from taiwa.server.http_responses import ApiError, SendNow, error_to_json, event, invalid
from taiwa.server.request import Fields, caller_of, interpret, read_body, state_of
from taiwa.server.runs import LiveRun
from taiwa.server.wire_interface import Route, Wire
from taiwa.server.wires.answer_request import MOST_LOGPROBS, Extend, answer, response_of
from taiwa.server.wires.chat_completions import FINISH, ChatRequest, read_request, write_usage
from taiwa.sessions.commit_turn import TurnResult

MOST_ANSWERS = 64
"""The most answers of one request: prompts times `n`."""


def read_prompts(body: Fields, most_messages: int, most_choices: int) -> ChatRequest:
    """Read a request as one of Chat Completions for its first prompt, with the other prompts.

    Raises:
        ApiError: a prompt is one of tokens, there are too many, or a field asks for what a chat cannot give.
    """
    number = body.count("n") or 1
    asks_for = {name: body.data.get(name) for name in ("suffix", "echo")}
    asks_for["best_of"] = (body.count("best_of") or 1) > number
    for name, asked_for in asks_for.items():
        if asked_for:
            raise body.error(name, "is not supported by this server", "unsupported_parameter")
    prompts = body.texts("prompt", or_one=True)
    if not prompts:
        raise body.missing("prompt")
    if len(prompts) * number > MOST_ANSWERS:
        raise invalid("prompt", f"a request can have at most {MOST_ANSWERS} answers (prompts times n)", "invalid_value")
    data = {name: each for name, each in body.data.items() if name not in ("prompt", *asks_for)}
    if (alternatives := body.count("logprobs", 0, MOST_LOGPROBS)) is not None:
        data |= {"logprobs": True, "top_logprobs": alternatives}
    asked = read_request(
        Fields({**data, "messages": [{"role": "user", "content": prompts[0]}]}), most_messages, most_choices
    )
    return replace(asked, others=tuple((Message("user", (Text(each),)),) for each in prompts[1:]))


async def create(request: Request) -> HttpResponse:
    """Answer prompts, as one object or as a stream."""
    state = state_of(request)
    state.runs.check_room(caller_of(request))
    limits, body = state.options.limits, await read_body(request)
    asked = await interpret(request, partial(read_prompts, body, limits.messages, limits.choices))
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
            self._choice(index, result.continuation, response_of(result)) for index, result in enumerate(results)
        ]
        usage = write_usage(results)
        return self._object(choices) | ({} if usage is None else {"usage": usage})

    async def stream(self, run: LiveRun, extend: Extend, send_now: SendNow) -> AsyncGenerator[bytes]:  # noqa: ARG002
        """Yield the parts of the response."""
        results: list[TurnResult] = []
        written: set[int] = set()
        async for each in run.follow():
            match each.event:
                case ApiError():
                    yield event(error_to_json(each.event))
                    return
                case TextDelta(text):
                    written.add(each.index)
                    yield event(self._object([self._choice(each.index, text)]))
                case TurnResult():
                    results.append(each.event)
                    text = "" if each.index in written else each.event.continuation
                    yield event(self._object([self._choice(each.index, text, response_of(each.event))]))
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

    def _choice(self, index: int, text: str, response: Response | None = None) -> Json:
        """Write a piece of an answer, or with its response the end."""
        choice: dict[str, Json] = {"index": index, "text": text, "logprobs": None, "finish_reason": None}
        if response is not None:
            choice["finish_reason"] = FINISH[response.finish]
            if (most := self._asked.top_logprobs) is not None and response.decoding.logprobs:
                choice["logprobs"] = _write_logprobs(response.decoding.logprobs, most)
        return choice


def _write_logprobs(found: Sequence[TokenLogprob], most: int) -> Json:
    """Write log probabilities as this protocol does: a list for each field, and positions in the answer."""
    return {
        "tokens": [each.token for each in found],
        "token_logprobs": [each.logprob for each in found],
        "top_logprobs": [dict(each.top_logprobs[:most]) for each in found],
        "text_offset": [*accumulate((len(each.token) for each in found[:-1]), initial=0)],
    }


wire = Wire("completions", (Route("/v1/completions", create, repeats=True),), error_to_json)
