"""What conversations weigh in memory: 1,000 of 20 messages of 200 characters, each library's own objects."""

from benches.measure import Subject, fresh

CODE = """
import gc, sys, tracemalloc, random
chance = random.Random(1)
def text(): return "".join(chance.choices("abcdefghij klmno", k=200))
{setup}
gc.collect(); tracemalloc.start()
kept = [{make} for _ in range(1000)]
gc.collect(); print(tracemalloc.get_traced_memory()[0] / 1e6)
"""
TAIWA = """
from taiwa.apps.catalogue import find
from taiwa.conversation.history import begin, take
from dataclasses import replace
app = find("translate").opened({"target_lang": "English"})
start = begin(app)
def conversation():
    here = start
    for _ in range(10):
        here = replace(take(here, text(), text(), {}), fresh=())
    return here
"""
PEERS: dict[str, tuple[str, str]] = {
    "taiwa: Conversation": (TAIWA, "conversation()"),
    "dicts": ("", '[{"role": "user" if n % 2 == 0 else "assistant", "content": text()} for n in range(20)]'),
    "pydantic-ai: ModelMessage": (
        "from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart",
        "[ModelRequest([UserPromptPart(text())]) if n % 2 == 0 else ModelResponse([TextPart(text())]) for n in range(20)]",
    ),
    "langchain: BaseMessage": (
        "from langchain_core.messages import AIMessage, HumanMessage",
        "[HumanMessage(text()) if n % 2 == 0 else AIMessage(text()) for n in range(20)]",
    ),
    "openai: ChatCompletionMessage": (
        "from openai.types.chat import ChatCompletionMessage",
        '[ChatCompletionMessage(role="assistant", content=text()) for n in range(20)]',
    ),
}


def main() -> None:
    subject = Subject(
        "memory", "MB of Python objects for 1,000 conversations of 20 messages of 200 characters (text alone: 4 MB)"
    )
    weights: dict[str, float] = {}
    for name, (setup, make) in PEERS.items():
        weights[name] = subject.row(name, float(fresh(CODE.format(setup=setup, make=make))), "MB")
    subject.target("1,000 conversations of 20 messages", weights["taiwa: Conversation"], 8, "MB")
    subject.write()
