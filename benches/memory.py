"""The memory of conversations: 1,000 conversations with 20 messages of 200 characters, in each library's own objects.

Python's count of allocated memory (tracemalloc) and the growth of the process, in fresh processes.
"""

import json

from benches.measure import Subject, fresh, median

CONVERSATIONS = 1_000
ROUNDS = 3
CODE = """
import gc, json, random, sys, tracemalloc
traced = sys.argv[1] == "traced"
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
chance = random.Random(1)
letters = "abcdefghij klmno"
def text(): return "".join(chance.choices(letters, k=200))
{setup}
kept = [{make} for _ in range(3)]  # what is made once is made before the clock starts
kept.clear(); gc.collect()
if traced: tracemalloc.start()
before = resident()
kept = [{make} for _ in range({conversations})]
gc.collect()
print(json.dumps((tracemalloc.get_traced_memory()[0] if traced else resident() - before) / 1e6))
"""
OWN = """
from dataclasses import replace
from taiwa.apps.catalog import load_app
from taiwa.conversation.history import add_turn, begin
app = load_app("{app}").with_params({params})
start = begin(app)
def conversation():
    built = start
    for turn in range(10):
        built = replace(add_turn(built, text(), text(), {delta}), new_nodes=())
    return built
"""
CHAT = '{"topics": [f"topic {turn}"], "confidence": 0.9, "ambiguity": 0.1}'
PAIRS = "[message for _ in range(10) for message in ({user}, {answer})]"
OWN_PLAIN = "taiwa: Conversation (of `translate`, empty state)"
DICTS = PAIRS.format(user='{"role": "user", "content": text()}', answer='{"role": "assistant", "content": text()}')
STATE = '{"topics": [f"topic {turn}" for turn in range(10)], "confidence": 0.9, "ambiguity": 0.1}'
DELTAS = '[{"topics": [f"topic {turn}"], "confidence": 0.9, "ambiguity": 0.1} for turn in range(10)]'
PEERS: dict[str, tuple[str, str]] = {
    "the texts alone": ("", "[text() for _ in range(20)]"),
    OWN_PLAIN: (OWN.format(app="translate", params='{"target_lang": "English"}', delta="{}"), "conversation()"),
    "dicts": ("", DICTS),
    "pydantic-ai: ModelMessage": (
        "from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart",
        PAIRS.format(user="ModelRequest([UserPromptPart(text())])", answer="ModelResponse([TextPart(text())])"),
    ),
    "openai: ChatCompletionMessage": (
        "from openai.types.chat import ChatCompletionMessage",
        '[ChatCompletionMessage(role="assistant", content=text()) for _ in range(20)]',
    ),
    "langchain: BaseMessage": (
        "from langchain_core.messages import AIMessage, HumanMessage",
        PAIRS.format(user="HumanMessage(text())", answer="AIMessage(text())"),
    ),
    "taiwa: Conversation of `chat`, with ten deltas and the resulting state": (
        OWN.format(app="chat", params="{}", delta=CHAT),
        "conversation()",
    ),
    "dicts with the same deltas and state": (
        "",
        f'{{"messages": {DICTS}, "deltas": {DELTAS}, "state": {STATE}}}',
    ),
}


def weigh(setup: str, make: str, how: str) -> float:
    """Return the MB of the conversations, in a fresh process."""
    code = CODE.replace("{setup}", setup).replace("{make}", make).replace("{conversations}", str(CONVERSATIONS))
    weight: float = json.loads(fresh(code, arguments=(how,)))
    return weight


def main() -> None:
    subject = Subject(
        "memory",
        f"MB of Python objects for {CONVERSATIONS:,} conversations of 20 messages of 200 characters",
        peers=("pydantic-ai-slim", "openai", "langchain-core"),
    )
    weights: dict[str, float] = {}
    ours = 0.0
    for name, (setup, make) in PEERS.items():
        weights[name] = weigh(setup, make, "traced")
        grown = median([weigh(setup, make, "resident") for _ in range(ROUNDS)])
        own = "taiwa" in name
        subject.row(name, weights[name], "MB", f"the process grew by {grown:.1f} MB", ours=0.0 if own else ours)
        ours = weights[name] if own else ours
    subject.target(f"{CONVERSATIONS:,} conversations of 20 messages", weights[OWN_PLAIN], 8, "MB")
    subject.write()
