"""The OpenAI SDK: one object (its default), or a stream. Nothing is stored."""

import os

from openai import AsyncOpenAI

from benches.peers import Begin, Message

MODEL = os.environ.get("BENCH_MODEL", "with-delta")
STREAM = os.environ.get("BENCH_STREAM") == "1"


class Sdk:
    """A conversation as a list of messages."""

    def __init__(self, client: AsyncOpenAI, opening: str) -> None:
        self._client = client
        self._messages: list[Message] = [{"role": "system", "content": opening}]

    async def say(self, text: str) -> str:
        self._messages.append({"role": "user", "content": text})
        said = await (self._streamed() if STREAM else self._whole())
        self._messages.append({"role": "assistant", "content": said})
        return said

    async def _whole(self) -> str:
        answer = await self._client.chat.completions.create(model=MODEL, messages=self._messages)  # type: ignore[arg-type]
        return answer.choices[0].message.content or ""

    async def _streamed(self) -> str:
        words: list[str] = []
        events = await self._client.chat.completions.create(
            model=MODEL, messages=self._messages, stream=True, stream_options={"include_usage": True}  # type: ignore[arg-type]
        )  # fmt: skip
        async for event in events:
            words += [choice.delta.content or "" for choice in event.choices]
        return "".join(words)


def open_talks(address: str, opening: str) -> Begin:
    client = AsyncOpenAI(base_url=address, api_key="none", max_retries=0)
    return lambda: Sdk(client, opening)
