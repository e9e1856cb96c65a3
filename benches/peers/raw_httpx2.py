"""httpx2 alone, hand-written: a stream read line by line, or one JSON object. Nothing is stored."""

import json
import os

import httpx2

from benches.peers import Begin, Message

MODEL = os.environ.get("BENCH_MODEL", "with-delta")
STREAM = os.environ.get("BENCH_STREAM", "1") == "1"


class Raw:
    """A conversation as a list of messages."""

    def __init__(self, client: httpx2.AsyncClient, url: str, opening: str) -> None:
        self._client = client
        self._url = url
        self._messages: list[Message] = [{"role": "system", "content": opening}]

    async def say(self, text: str) -> str:
        self._messages.append({"role": "user", "content": text})
        said = await (self._streamed() if STREAM else self._whole())
        self._messages.append({"role": "assistant", "content": said})
        return said

    async def _streamed(self) -> str:
        body = {"model": MODEL, "messages": self._messages, "stream": True, "stream_options": {"include_usage": True}}
        words: list[str] = []
        async with self._client.stream("POST", self._url, json=body) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    choices = json.loads(line[6:])["choices"]
                    words += [choice["delta"].get("content") or "" for choice in choices]
        return "".join(words)

    async def _whole(self) -> str:
        answer = await self._client.post(self._url, json={"model": MODEL, "messages": self._messages})
        said: str = answer.json()["choices"][0]["message"]["content"]
        return said


def open_talks(address: str, opening: str) -> Begin:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx2.AsyncClient(limits=limits, timeout=60, trust_env=False)
    return lambda: Raw(client, f"{address}/chat/completions", opening)
