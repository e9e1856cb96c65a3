"""A model that assesses dialogues but writes no text: the passages are quoted."""

from collections.abc import Iterator

import pytest

from taiwa.apps.catalog import load_text
from taiwa.conversation.history import begin
from taiwa.flows.ask.answer import answer_or_quote
from taiwa.flows.ask.ask_result import AskTurnOptions
from taiwa.flows.ask.clarify_then_retrieve import ClarifyOptions, ask
from taiwa.flows.ask.prompts import load_prompts
from taiwa.flows.turn import Reply, say
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Notice,
    Passage,
    Request,
    StreamEnd,
    TextDelta,
    assistant,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.retrieval import InMemoryRetriever
from tests.flows.ask.scored import written

TRAINS = Passage("travel.md", "Trains are booked by yourself.", heading=("Trains",), page=4, id="p3")
LEAVE = Passage("leave.md", "Everybody has 20 days.", heading=("Leave",), id="p1")
SHELF = InMemoryRetriever((TRAINS, LEAVE))
APP = load_text("---\ntaiwa: 1\ndocuments: {}\n---\nBe brief.", "ask.md", "ask").with_params({})
REWRITES = load_prompts("en").sections["rewrite_one"][:60]


class Judge:
    """Scores every statement alike and rewrites, and writes nothing else."""

    name = "judge"
    capabilities: frozenset[Capability] = frozenset({"json_schema"})

    def __init__(self, level: int = 1, lacks: str = "words") -> None:
        self.level, self.lacks = level, lacks

    def stream(self, request: Request) -> Iterator[Chunk]:
        if request.constraint is None and not request.messages[0].text.startswith(REWRITES):
            raise UnsupportedError("not learnt", capability=self.lacks)
        yield TextDelta("who books trains for others" if request.constraint is None else written(*[self.level] * 5))
        yield StreamEnd()


def turn(model: Judge, text: str) -> tuple[Reply, list[Notice]]:
    reply, notes = Reply(""), list[Notice]()
    asking = AskTurnOptions(ClarifyOptions(assess_by="typed"))
    for event in Runtime(model, retriever=SHELF).stream(say(text, documents=asking)(begin(APP))):
        if isinstance(event, Notice):
            notes.append(event)
        elif not isinstance(event, TextDelta):
            reply, _ = event.value
    return reply, notes


def test_passages_are_quoted_for_a_model_that_only_assesses() -> None:
    reply, notes = turn(Judge(), "who books trains")
    assert reply.text.startswith("Trains are booked by yourself. [1]")
    assert reply.documents is not None
    assert reply.documents.to_json()["source"] == "extractive"
    assert reply.documents.scores["source"] == "typed"
    assert [note.text for note in notes if note.code == "answer"] == [
        "the model writes no answers; quoting the passages instead"
    ]


def test_advice_that_a_model_cannot_write_is_a_fixed_sentence() -> None:
    reply, _ = turn(Judge(5), "zzz")
    assert reply.text


def test_the_query_is_the_rewritten_one() -> None:
    dialogue = (user("who books trains"), assistant("Oneself."), user("and trains for others?"))
    found = Runtime(Judge(), retriever=SHELF).run(ask(dialogue, ClarifyOptions(assess_by="typed")))
    assert found.answer is not None
    assert (found.answer.source, found.answer.query) == ("extractive", "who books trains for others")


def test_another_missing_capability_is_still_an_error() -> None:
    with pytest.raises(UnsupportedError, match="not learnt"):
        Runtime(Judge(lacks="json_schema.depth")).run(answer_or_quote("who books trains", [TRAINS]))
    assert Runtime(Judge()).run(answer_or_quote("who books trains", [TRAINS])).source == "extractive"
