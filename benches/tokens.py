"""Tokens of fifty turns under each prompt layout, with a real vocabulary, the real flow, and a model that follows the reply
format.

The apps have the fields that Monadic Chat published for `chat` (topics, language, confidence, ambiguity). User texts have 40
tokens, answers 150; every turn has one new topic, and a summary of old turns has 120. What is counted is what the codec sends.
Price units: fresh input 1, input from a prefix cache 0.1, output 6. A cache holds the longest prefix that a request shares with
any earlier one, from 1,024 tokens on, in steps of 128; storing it costs nothing.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from random import Random

from benches.measure import Subject
from taiwa.apps.catalog import load_app
from taiwa.conversation.app import App, ReplyMode, WindowPolicy
from taiwa.conversation.history import Conversation, begin
from taiwa.conversation.turn_prompt import format_reply
from taiwa.flows.turn import say
from taiwa.kernel.messages import Request
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json
from taiwa.models.providers import resolve
from taiwa.models.scripted import scripted_model

TURNS = 50
USER, ANSWER, SUMMARY = 40, 150, 120
LEAST, STEP = 1_024, 128
FRESH, CACHED, OUTPUT = 1.0, 0.1, 6.0
TOPICS = (
    "maple garden train morning temple ticket river autumn bridge market season castle island harbour valley".split()
)
WORDS = "the a one we you they go come see take make find know think early late warm cold near far new old and but or".split()
FIFO = WindowPolicy(max_size=11, keep=10)
"""The published layout: ten turns in every prompt, one dropped every turn."""
FIELDS = ("topics", "confidence", "ambiguity", "language")


@cache
def encoder() -> Callable[[str], list[int]]:
    """The vocabulary: tekken, as shipped with mistral_common."""
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    tokenizer = MistralTokenizer.v3(is_tekken=True).instruct_tokenizer.tokenizer
    return lambda text: tokenizer.encode(text, bos=False, eos=False)


@cache
def filler(tokens: int, seed: int) -> str:
    """Return words with exactly `count` tokens in total."""
    chance, text = Random(seed), "Well"
    while (count := len(encoder()(text))) < tokens:
        text += f" {chance.choice(WORDS + TOPICS if tokens - count > 2 else ['now'])}"
    return text


def topic(turn: int) -> str:
    """Return a new topic for every turn."""
    return f"{TOPICS[turn % len(TOPICS)]} in {TOPICS[(turn * 7 + turn // len(TOPICS)) % len(TOPICS)]} {turn}"


def noted(turn: int) -> dict[str, Json]:
    """Return what the model writes in a turn besides its answer."""
    return {"topics": [topic(turn)], "confidence": 0.9, "ambiguity": 0.1}


def app(reply: ReplyMode, keep: WindowPolicy, *fields: str) -> App:
    """Return the built-in chat with another reply mode, window and choice of fields."""
    chat = load_app("chat").with_params({})
    kept = tuple(field for field in chat.fields if not fields or field.name in fields)
    examples = tuple(
        replace(each, delta={name: held for name, held in each.delta.items() if not fields or name in fields})
        for each in chat.examples
        if isinstance(each.delta, dict)
    )
    source = replace(chat.source, params={"bench": [reply, repr(keep), *fields]})
    return replace(chat, source=source, window=keep, reply=reply, fields=kept, examples=examples)


@dataclass(frozen=True)
class Layout:
    """A layout. `extra` is what the model writes in every turn besides the fields of `noted`."""

    app: App
    extra: dict[str, Json]

    def written(self, conversation: Conversation, turn: int) -> str:
        """Return a well-formed reply: an environment repeats all fields, a delta contains only new values."""
        new = noted(turn) | self.extra
        answer = filler(ANSWER, turn)
        if self.app.reply == "environment":
            held = conversation.state["topics"]
            assert isinstance(held, list)
            whole: dict[str, Json] = {"response": answer} | new | {"topics": [*held, *new["topics"]]}  # type: ignore[misc]
            return f"<JSON>\n{json.dumps(whole, ensure_ascii=False)}\n</JSON>"
        return format_reply(self.app, answer, new)


class PrefixCache:
    """A provider's cache: the prefixes of earlier requests, by hash."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def shared(self, tokens: list[int]) -> int:
        """Return the number of cached tokens of a request, and cache all of its prefixes."""
        names = list(self._names(tokens))
        held = next((place for place, name in reversed(names) if name in self._known), 0)
        self._known.update(name for _, name in names)
        return held if held >= LEAST else 0

    def _names(self, tokens: list[int]) -> Iterator[tuple[int, bytes]]:
        name = blake2b(digest_size=16)
        for place in range(STEP, len(tokens) + 1, STEP):
            name.update(repr(tokens[place - STEP : place]).encode())
            yield place, name.digest()


def sent(request: Request) -> list[int]:
    """Return the tokens of the messages as the codec writes them, each after a start token."""
    codec = resolve("http://127.0.0.1/v1#bench").codec
    assert codec is not None
    tokens: list[int] = []
    for message in json.loads(codec.encode(replace(request, constraint=None)).body)["messages"]:
        tokens += [-1 - ("system", "user", "assistant").index(message["role"]), *encoder()(message["content"])]
    return tokens


@dataclass
class Bill:
    """The tokens of a conversation."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0

    @property
    def units(self) -> float:
        """Return their cost."""
        return FRESH * (self.prompt - self.cached) + CACHED * self.cached + OUTPUT * self.completion


def talk(layout: Layout, turns: int = TURNS) -> Bill:
    """Run a conversation, including summaries of old turns."""
    conversation, bill, held = begin(layout.app), Bill(), PrefixCache()
    for turn in range(turns):
        replies = [layout.written(conversation, turn)]
        if folds(conversation):
            replies.insert(0, filler(SUMMARY, turn))
        model = scripted_model(*replies)
        said, conversation = Runtime(model).run(say(filler(USER, turn))(conversation))
        assert not said.warnings, said.warnings
        conversation = replace(conversation, new_nodes=())
        for request, reply in zip(model.requests, replies, strict=True):
            tokens = sent(request)
            bill.prompt += len(tokens)
            bill.cached += held.shared(tokens)
            bill.completion += len(encoder()(reply))
    return bill


def folds(conversation: Conversation) -> bool:
    """Return true if the next turn first requests a summary."""
    window = conversation.app.window
    return window.summarize and window.max_size is not None and len(conversation.turns) >= window.max_size


def layouts(*fields: str, extra: dict[str, Json]) -> dict[str, Layout]:
    """Return the layouts, the published one first."""
    ways: dict[str, tuple[ReplyMode, WindowPolicy]] = {
        "environment, FIFO of 10 turns (as published)": ("environment", FIFO),
        "json, FIFO of 10 turns": ("json", FIFO),
        "text+delta, FIFO of 10 turns": ("text+delta", FIFO),
        "text+delta, all turns": ("text+delta", WindowPolicy()),
        "text+delta, grow to 20, then drop to 10": ("text+delta", WindowPolicy(max_size=20, keep=10)),
        "text+delta, grow to 20, then summarise to 10": (
            "text+delta",
            WindowPolicy(max_size=20, keep=10, summarize=True),
        ),
    }
    return {name: Layout(app(reply, keep, *fields), extra) for name, (reply, keep) in ways.items()}


def compared(subject: Subject, what: str, ways: dict[str, Layout], turns: int = TURNS) -> dict[str, float]:
    """Record the cost of each layout, and return each as a fraction of the first."""
    bills = {name: talk(layout, turns) for name, layout in ways.items()}
    first = next(iter(bills.values())).units
    for name, bill in bills.items():
        share = f"prompt {bill.prompt:,}, cached {bill.cached / bill.prompt:.0%}, completion {bill.completion:,}"
        subject.row(f"{what}: {name}", bill.units, "units", f"{bill.units / first:.2f} times the first; {share}")
    return {name: bill.units / first for name, bill in bills.items()}


def main() -> None:
    assert len(encoder()(filler(USER, 1))) == USER
    subject = Subject(
        "tokens",
        "price of a conversation in units (tokens of the tekken vocabulary): fresh input 1, cached input 0.1, output 6",
        peers=("mistral_common",),
    )
    published = layouts(*FIELDS, extra={})
    parts = compared(subject, f"{TURNS} turns", published)
    for name in tuple(parts)[-2:]:
        subject.target(f"{TURNS} turns: {name}, against environment", parts[name], 0.5, "x")
    compared(subject, "150 turns", published, 150)
    whole: dict[str, Json] = {"summary": filler(100, 1)}
    compared(
        subject,
        f"{TURNS} turns, a summary of 100 tokens anew in each",
        layouts(extra=whole),
    )
    subject.write()
