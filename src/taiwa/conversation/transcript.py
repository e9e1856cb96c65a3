"""The content address of a history: what clients that keep no ids resend with every request.

An address covers the turns from the first one, and ignores what clients change on the way: white space, reasoning, ids of calls,
system messages, and how the text of one role is divided into messages.
"""

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter

from taiwa.kernel.attachments import Attachment
from taiwa.kernel.messages import Message, Text, ToolCall, ToolResult
from taiwa.kernel.records import COMPACT, DIGEST_BYTES, parse_json, value

START = "0" * 2 * DIGEST_BYTES
"""The address of the empty history."""
EMPTY: list[object] = ["", [], [], []]
REASONING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


@value(tag="transcript")
class Transcript:
    """Where a client's turn stands: its app, and the address of the history before it."""

    app: str
    address: str = START


def split_turns(messages: Sequence[Message]) -> tuple[tuple[tuple[Message, ...], ...], tuple[Message, ...]]:
    """Divide a history into its turns, each with its answer last, and the messages that are still to be answered."""
    turns: list[tuple[Message, ...]] = []
    begun: list[Message] = []
    for message in messages:
        begun.append(message)
        if message.role == "assistant":
            turns.append(tuple(begun))
            begun = []
    return tuple(turns), tuple(begun)


def turn_digest(messages: Iterable[Message]) -> str:
    """Return the digest of a turn, 32 hex characters; equal for turns that differ only in what clients change."""
    groups = (_normal(role, group) for role, group in groupby(messages, attrgetter("role")) if role != "system")
    return _hashed(COMPACT.encode([each for each in groups if each[1:] != EMPTY]))


def next_address(address: str, digest: str) -> str:
    """Return the address of a history with one more turn, by the digest of the turn."""
    return _hashed(address + digest)


def _hashed(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()


def _normal(role: str, messages: Iterable[Message]) -> list[object]:
    texts, calls, results, files = list[str](), list[object](), list[str](), list[str]()
    for message in messages:
        for part in message.parts:
            if isinstance(part, Text):
                texts.append(part.text)
            elif isinstance(part, ToolCall):
                calls.append([part.name, _normal_json(part.arguments)])
            elif isinstance(part, ToolResult):
                results.append(_collapsed(part.text))
            elif isinstance(part, Attachment):
                files.append(part.sha256)
    text = " ".join(texts)
    if role == "assistant" and "<think>" in text:
        text = REASONING.sub("", text)
    return [role, _collapsed(text), calls, results, sorted(files)]


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _normal_json(text: str) -> object:
    try:
        return json.dumps(parse_json(text), sort_keys=True)
    except ValueError:
        return _collapsed(text)
