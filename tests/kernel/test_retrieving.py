"""What programs may ask of a retriever, and what becomes of it where the retriever can do less."""

import asyncio
from dataclasses import dataclass, field

import pytest

from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Retrieve, perform
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Evidence, Found, Message, Passage, user
from taiwa.kernel.runtime import Runtime

SAID = (user("leave?"),)


@dataclass
class Plain:
    """Finds, and can do nothing else."""

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        return (Passage("a", query),)[:k]


@dataclass
class Whole(Plain):
    """Follows a dialogue and measures."""

    history: tuple[Message, ...] = field(default=())

    def after(self, history: tuple[Message, ...]) -> "Whole":
        return Whole(history)

    def find_with_evidence(self, query: str, k: int) -> Found:
        return Found(self.find(query, k), Evidence(passages=len(self.history), found=1))

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        return (Passage("a", " ".join((*(each.text for each in self.history), query))),)


LOOK_UP = Retrieve("nursing", 3, SAID)


def test_a_contextual_retriever_gets_the_history_and_measures_once() -> None:
    found = Runtime(retriever=Whole()).run(perform(LOOK_UP))

    assert found == Found((Passage("a", "leave? nursing"),), Evidence(passages=1, found=1))


def test_both_drivers_ask_alike() -> None:
    found = asyncio.run(AsyncRuntime(retriever=Whole()).run(perform(LOOK_UP)))

    assert found == Runtime(retriever=Whole()).run(perform(LOOK_UP))


def test_a_retriever_that_only_finds_is_asked_for_the_query_alone() -> None:
    assert Runtime(retriever=Plain()).run(perform(LOOK_UP)) == Found((Passage("a", "nursing"),))


def test_without_a_retriever_nothing_can_be_found() -> None:
    with pytest.raises(ConfigError, match="retriever"):
        Runtime().run(perform(Retrieve("nursing")))


def test_a_lookup_without_history_keeps_its_name() -> None:
    from taiwa.kernel.serialization import digest, record

    assert record(Retrieve("q", 3)) == {"~": "retrieve", "query": "q", "k": 3}
    assert digest(Retrieve("q")) != digest(Retrieve("q", history=SAID))
