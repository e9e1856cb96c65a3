"""Tokens of fifty turns under each layout, with a real vocabulary, real flows and a model that writes answers of fixed length.

The app is the built-in `chat`: utterances of 40 tokens, answers of 150, a new topic and a new confidence every turn, and a
summary field of 40 tokens that changes every fifth turn; no provider is asked. Price units: fresh input 1, input read
from a prefix cache 0.1, output 6. The cached share is the longest common beginning with the request before, from 1,024
tokens on, in steps of 128.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

from benches.measure import Subject
from taiwa.apps.catalogue import find
from taiwa.conversation.app import App, Keep, ReplyMode
from taiwa.conversation.history import Conversation, begin
from taiwa.flows.chat import say
from taiwa.kernel import Limits, Runtime
from taiwa.kernel.values import Request
from taiwa.models.scripted import script

TURNS = 50
WORDS = (
    "maple",
    "garden",
    "train",
    "early",
    "morning",
    "temple",
    "ticket",
    "river",
    "quiet",
    "autumn",
    "bridge",
    "market",
)


@cache
def encoder() -> Callable[[str], list[int]]:
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    tokenizer = MistralTokenizer.v3(is_tekken=True).instruct_tokenizer.tokenizer
    return lambda text: tokenizer.encode(text, bos=False, eos=False)


def filler(tokens: int, seed: int) -> str:
    """Words that are about so many tokens."""
    text, number = "", seed
    while len(encoder()(text)) < tokens:
        text += f"{WORDS[number % len(WORDS)]} "
        number += 5
    return text.strip()


def app(reply: ReplyMode, keep: Keep) -> App:
    """The built-in chat with another reply mode and window."""
    chat = find("chat").opened({})
    return replace(chat, source=replace(chat.source, params={"bench": f"{reply} {keep}"}), keep=keep, reply=reply)


def environment(here: Conversation, number: int) -> str:
    """The whole object, written anew."""
    topics = [*here.state["topics"], f"topic number {number}"]  # type: ignore[misc]  # a list[str] by its field
    written = {
        "response": filler(150, number),
        "topics": topics,
        "summary": filler(40, number // 5),
        "confidence": 0.9,
        "ambiguity": 0.1,
    }
    return f"<JSON>\n{json.dumps(written)}\n</JSON>"


def delta(_: Conversation, number: int) -> str:
    """The answer, and what changed."""
    changed: dict[str, object] = {"topics": [f"topic number {number}"], "confidence": 0.9}
    if number % 5 == 0:
        changed["summary"] = filler(40, number // 5)
    return f"{filler(150, number)}\n@@delta\n{json.dumps(changed)}"


def flat(request: Request) -> list[int]:
    return encoder()("\n".join(f"<{message.role}> {message.text}" for message in request.messages))


def shared(one: list[int], other: list[int]) -> int:
    """Tokens that a cache has of a request, after the one before it."""
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return same // 128 * 128 if same >= 1024 else 0


def talk(made: App, write: Callable[[Conversation, int], str]) -> tuple[int, int, int]:
    """Prompt, completion and cached tokens of fifty turns, summaries included."""
    here, prompt, completion, cached = begin(made), 0, 0, 0
    last: list[int] = []
    for number in range(TURNS):
        model = script(filler(120, number), write(here, number)) if folds(here) else script(write(here, number))
        _, here = Runtime(model, limits=Limits()).run(say(filler(40, number))(here))
        here = replace(here, fresh=())
        for request in model.requests:
            tokens = flat(request)
            prompt, cached, last = prompt + len(tokens), cached + shared(last, tokens), tokens
        completion += sum(len(encoder()(text)) for text in _said(model.requests, write, here, number))
    return prompt, completion, cached


def folds(here: Conversation) -> bool:
    keep = here.app.keep
    return keep.fold == "summary" and keep.grow is not None and len(here.turns) >= keep.grow


def _said(
    requests: Iterable[Request], write: Callable[[Conversation, int], str], here: Conversation, number: int
) -> list[str]:
    before = replace(here, state=here.state | {"topics": here.state["topics"][:-1]})  # type: ignore[index]  # as above
    summaries = [filler(120, number)] * (len(tuple(requests)) - 1)
    return [*summaries, write(before, number)]


def main() -> None:
    subject = Subject(
        "tokens", "tokens of 50 turns (tekken vocabulary); price units: fresh input 1, cached 0.1, output 6"
    )
    layouts = {
        "environment, last 10 turns (as first published)": (app("environment", Keep(10, 9)), environment),
        "text+delta, last 10 turns": (app("text+delta", Keep(10, 9)), delta),
        "text+delta, all turns": (app("text+delta", Keep()), delta),
        "text+delta, grow to 20 then drop to 10": (app("text+delta", Keep(20, 10)), delta),
        "text+delta, grow to 20 then fold to 10": (app("text+delta", Keep(20, 10, "summary")), delta),
    }
    costs: dict[str, float] = {}
    for name, (made, write) in layouts.items():
        prompt, completion, cached = talk(made, write)
        costs[name] = prompt - cached + 0.1 * cached + 6 * completion
        note = f"prompt {prompt:,}, of them cached {cached / prompt:.0%}, completion {completion:,}"
        subject.row(name, costs[name], "units", note)
    first, *_, drop, fold = costs.values()
    subject.target("grow/to with drop against environment", drop / first, 0.5, "x")
    subject.target("grow/to with summary against environment", fold / first, 0.5, "x")
    subject.write()
