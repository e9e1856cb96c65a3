"""Requests about a dialogue, as the programs make them, rewritten as a task and one line."""

import json
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.assess_question import assess
from taiwa.flows.ask.rewrite import Queries, rewrite_queries
from taiwa.flows.ask.types import SCORES
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Message,
    Request,
    StreamEnd,
    TextDelta,
    TokenLogprob,
    assistant,
    system,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.models.builtin.model import BuiltinModel
from taiwa.models.builtin.prompts import MAX_DIALOGUE_SIZE, format_dialogue, read_request
from taiwa.models.builtin.tokenizer import normalize_text

ABILITIES: frozenset[Capability] = frozenset({"logprobs", "json_schema"})
DIALOGUE = (user("Is there parking at the Ostrel site?"), assistant("Yes."), user("And what does it cost?"))
LINE = "|u| Is there parking at the Ostrel site? |a| Yes. |u| And what does it cost?"


class RecordingModel:
    """Gives the same answer to every request, and records the prompts."""

    name = "recording"
    capabilities = ABILITIES

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def stream(self, request: Request) -> Iterator[Chunk]:
        self.requests.append(request)
        logprobs = (TokenLogprob("3", -0.1, (("3", -0.1),)),) if request.top_logprobs else ()
        yield TextDelta('{"ask_missing_info":"For whom?"}')
        yield StreamEnd(logprobs=logprobs)

    @property
    def prompts(self) -> list[tuple[str, str, str] | None]:
        prompts = [read_request(request) for request in self.requests]
        return [prompt and (prompt.task, prompt.output, prompt.text) for prompt in prompts]


def test_each_score_is_a_request_of_its_own_over_one_line() -> None:
    model = RecordingModel()
    found = Runtime(model).run(assess(DIALOGUE, needs_questions=lambda _: True))
    assert model.prompts == [*(("assess", name, LINE) for name in SCORES), None]
    assert (found.clarity, found.ask_missing_info) == (3, "For whom?")


def test_a_query_that_cannot_be_rewritten_is_the_last_text() -> None:
    """The words of the dialogue weigh in the first search, so nothing is lost, and nothing needs to be said."""
    found = Runtime(BuiltinModel()).run(rewrite_queries((user("Oss?"), user("Where?"))))
    assert found == Queries("Where?")


def test_facts_about_the_user_come_first() -> None:
    model = RecordingModel()
    Runtime(model).run(assess(DIALOGUE, by="labels", about=(("site", "Oss"),), earlier=("keys",)))
    assert model.prompts[0] == ("assess", "clarity", f"|p| site: Oss |e| keys {LINE}")


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (user("hi"),),
        (system("You are kind."), user("hi")),
        (system("You are kind."), assistant("hi")),
    ],
)
def test_other_requests_are_not_recognised(messages: Sequence[Message]) -> None:
    assert read_request(Request(tuple(messages))) is None


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text()), max_size=6), st.text(), st.text())
def test_the_line_is_normalized_and_bounded_and_a_text_cannot_imitate_a_turn(
    turns: list[tuple[str, str]], name: str, fact: str
) -> None:
    line = format_dialogue(turns, user={name: fact}, earlier=[fact])
    assert normalize_text(line) == line
    assert len(line) <= MAX_DIALOGUE_SIZE + 20
    assert line.count("|") <= 2 * (len(turns) + 2)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_becomes_a_prompt(data: object) -> None:
    found = read_request(Request((system("Judge."), user(json.dumps({"dialogue": data}))), task="assess_clarity"))
    assert found is not None
    assert (found.task, found.output) == ("assess", "clarity")


def test_the_end_of_a_long_dialogue_is_kept() -> None:
    turns = [("user", f"turn {number} " + "word " * 70) for number in range(9)]
    line = format_dialogue([*turns, ("user", "and the last?")])
    assert line.endswith("|u| and the last?")
    assert "turn 8" in line
    assert "turn 0" not in line
