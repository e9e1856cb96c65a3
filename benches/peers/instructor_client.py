"""instructor over the OpenAI SDK: an answer validated against a pydantic model. Nothing is stored."""

import instructor
from openai import AsyncOpenAI
from pydantic import BaseModel

from benches.peers import Begin, Message


class Reply(BaseModel):
    """The same fields that taiwa's `chat` requests."""

    answer: str
    topics: list[str]
    confidence: float
    ambiguity: float


class Typed:
    """A conversation as a list of messages."""

    def __init__(self, client: instructor.AsyncInstructor, opening: str) -> None:
        self._client = client
        self._messages: list[Message] = [{"role": "system", "content": opening}]

    async def say(self, text: str) -> str:
        self._messages.append({"role": "user", "content": text})
        reply = await self._client.chat.completions.create(
            model="plain", messages=self._messages, response_model=Reply, max_retries=0  # type: ignore[arg-type]
        )  # fmt: skip
        self._messages.append({"role": "assistant", "content": reply.answer})
        return reply.answer


def open_talks(address: str, opening: str) -> Begin:
    client = instructor.from_openai(AsyncOpenAI(base_url=address, api_key="none", max_retries=0))
    return lambda: Typed(client, opening)
