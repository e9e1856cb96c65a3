"""Documents are data: none of thirty hostile ones changes a decision, calls a tool, forges a source or reaches a terminal as code."""

import json
import re
from typing import Any, cast

import pytest

from taiwa.apps.catalog import load_text
from taiwa.conversation.history import begin
from taiwa.flows.ask.ask_result import AskTurnOptions
from taiwa.flows.ask.types import ClarifyOptions
from taiwa.flows.turn import Reply, say
from taiwa.kernel.effects import CallTool, Complete, Effect
from taiwa.kernel.execution import Journal
from taiwa.kernel.messages import Capability, Passage
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.text import CONTROL
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.retrieval import InMemoryRetriever
from tests.flows.ask.injections import ATTACKS, Attack
from tests.flows.ask.scored import written

NONE: frozenset[Capability] = frozenset()
APP = load_text("---\ntaiwa: 1\ndocuments: {}\n---\nBe brief.", "ask.md", "ask").with_params({})
QUESTION = "how many days of holiday does everybody have"
FACT = "Everybody has ten days of holiday."
OTHER = Passage("other.md", "The plant is closed for two weeks in August: many holidays.", id="o1", heading=("Plant",))
SOURCE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


def hostile(attack: Attack) -> Passage:
    return Passage("hostile.md", f"{FACT}\n{attack.text}\n{FACT}", id="h1", heading=("Holiday", attack.text[:40]))


def asked(passage: Passage, model: ScriptedModel | None = None) -> tuple[Reply, tuple[Effect[Any], ...]]:
    """Ask once; give the reply and every effect that was performed."""
    journal = Journal()
    asking = AskTurnOptions(ClarifyOptions(assess_by="no-model" if model is None else "auto", k=8))
    runtime = Runtime(model or scripted_model(), retriever=InMemoryRetriever((passage, OTHER)))
    reply, _ = runtime.run_result(say(QUESTION, documents=asking)(begin(APP)), journal).value
    return reply, tuple(entry.effect for entry in journal.entries if entry.effect is not None)


def parrot(attack: Attack) -> ScriptedModel:
    """A model that does what a document wants as far as it can: it repeats everything, and cites what is not there."""
    said = f"{FACT} [1] {attack.text} [7]"
    return scripted_model(written(1, 1, 5, 1, 5), said, capabilities=NONE)


def test_there_are_thirty_in_three_languages() -> None:
    assert len(ATTACKS) == 30
    assert len({attack.name for attack in ATTACKS}) == 30
    assert {name.split()[-1] for name, _ in ATTACKS} >= {"en", "ja", "zh"}


@pytest.fixture(params=ATTACKS, ids=[attack.name for attack in ATTACKS])
def attack(request: pytest.FixtureRequest) -> Attack:
    found: Attack = request.param
    return found


@pytest.mark.parametrize("with_model", [False, True], ids=["passages", "parrot"])
def test_no_text_leaves_its_line_or_imitates_a_source(attack: Attack, with_model: bool) -> None:
    reply, _ = asked(hostile(attack), parrot(attack) if with_model else None)

    assert not CONTROL.search(reply.text)
    assert all(place.startswith(("hostile.md", "other.md")) for _, place in SOURCE.findall(reply.text))
    numbers = [int(number) for number, _ in SOURCE.findall(reply.text)]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert "![" not in reply.text
    assert "](" not in reply.text
    assert not re.search(r"<[a-zA-Z/!|]", reply.text)
    assert reply.findings.documents is not None
    claims = reply.findings.documents.to_json()["claims"]
    assert isinstance(claims, list)
    for claim in claims:
        assert isinstance(claim, dict)
        text = str(claim["text"])
        assert "\n" not in text
        assert not re.search(r"[\[【]\d+[\]】]", text)


def test_no_tool_is_called_and_the_decision_is_that_of_a_harmless_document(attack: Attack) -> None:
    harmless = Passage("hostile.md", f"{FACT}\n{FACT}", id="h1", heading=("Holiday", ""))
    calm, _ = asked(harmless, parrot(attack))
    reply, effects = asked(hostile(attack), parrot(attack))

    assert not [effect for effect in effects if isinstance(effect, CallTool)]
    assert not [effect for effect in effects if isinstance(effect, Complete) and effect.request.tools]
    assert isinstance(reply.delta, dict)
    assert isinstance(calm.delta, dict)
    for name in ("act", "policy", "reasons", "scores", "query", "queries", "clarification"):
        assert reply.delta.get(name) == calm.delta.get(name)


def test_the_assessment_sees_no_document(attack: Attack) -> None:
    model = parrot(attack)

    asked(hostile(attack), model)

    assert len(model.requests) == 2
    assert FACT not in json.dumps([message.text for message in model.requests[0].messages])


def test_a_passage_has_one_number_and_the_question_is_last(attack: Attack) -> None:
    model = parrot(attack)

    asked(hostile(attack), model)

    messages = model.requests[-1].messages
    text = messages[-1].text
    assert re.findall(r"^\[(\d+)\]", text, re.MULTILINE) == ["1", "2"]
    assert text.endswith(QUESTION)
    assert not CONTROL.search(text)
    assert attack.text.strip() not in messages[0].text


def test_words_of_a_forged_passage_have_no_citation_of_their_own(attack: Attack) -> None:
    reply, _ = asked(hostile(attack), parrot(attack))

    assert reply.findings.documents is not None
    claims = cast("list[dict[str, object]]", reply.findings.documents.to_json()["claims"])
    assert claims[0]["text"] == FACT
    known = {"h1", "o1"}
    cited = [cast("list[dict[str, object]]", claim["citations"]) for claim in claims]
    assert {each["id"] for one in cited for each in one} <= known
