"""Requests of the asking flows, as the flows themselves make them, read as a task and one line."""

import json
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.ask.assess_question import assess
from taiwa.ask.rewrite import INSTRUCTIONS, SINGLE, rewrite_queries
from taiwa.ask.types import SCORES
from taiwa.kernel import Capability, Request, Runtime, assistant, system, user
from taiwa.kernel.messages import Chunk, Message, StreamEnd, TextDelta, TokenLogprob
from taiwa.models.builtin.prompt_text import plain
from taiwa.models.builtin.requests import LONGEST, asking, compact

REWRITE = INSTRUCTIONS["en"].format(what=SINGLE["en"][0], lines=SINGLE["en"][1])
ABILITIES: frozenset[Capability] = frozenset({"logprobs", "json_schema"})
DIALOGUE = (user("Is there parking at the Ostrel site?"), assistant("Yes."), user("And what does it cost?"))
LINE = "|u| Is there parking at the Ostrel site? |a| Yes. |u| And what does it cost?"


class Listener:
    """Answers everything alike, and keeps what it was read as."""

    name = "listener"
    capabilities = ABILITIES

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def stream(self, request: Request) -> Iterator[Chunk]:
        self.asked.append(request)
        told = (TokenLogprob("3", -0.1, (("3", -0.1),)),) if request.top_logprobs else ()
        yield TextDelta('{"ask_missing_info":"For whom?"}')
        yield StreamEnd(logprobs=told)

    @property
    def read(self) -> list[tuple[str, str] | None]:
        return [asking(request) for request in self.asked]


def test_each_score_is_a_task_of_its_own_over_one_line() -> None:
    listener = Listener()
    found = Runtime(listener).run(assess(DIALOGUE, needs_questions=lambda _: True))
    assert listener.read == [*((f"assess.{name}", LINE) for name in SCORES), ("back", LINE)]
    assert (found.clarity, found.ask_missing_info) == (3, "For whom?")


@pytest.mark.parametrize("words", ["Where?", "費用はいくらですか", "那要多少钱？"])
@pytest.mark.parametrize("several", [True, False])
def test_rewriting_is_known_in_every_language(words: str, *, several: bool) -> None:
    listener = Listener()
    Runtime(listener).run(rewrite_queries((user("Oss?"), user(words)), multiple=several))
    assert listener.read == [("rewrite", f"|u| Oss? |u| {plain(words)}")]


def test_rewriting_shows_the_assistant_where_the_flow_does() -> None:
    listener = Listener()
    Runtime(listener).run(rewrite_queries(DIALOGUE, context="all"))
    assert listener.read == [("rewrite", LINE)]


def test_what_is_known_of_a_person_comes_first() -> None:
    listener = Listener()
    Runtime(listener).run(assess(DIALOGUE, by="labels", about=(("site", "Oss"),), earlier=("keys",)))
    assert listener.read[0] == ("assess.clarity", f"|p| site: Oss |e| keys {LINE}")


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (user("hi"),),
        (system("You are kind."), user("hi")),
        (system("You are kind."), assistant("hi")),
    ],
)
def test_other_requests_are_not_taken(messages: Sequence[Message]) -> None:
    assert asking(Request(tuple(messages))) is None


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text()), max_size=6), st.text(), st.text())
def test_the_line_is_plain_bounded_and_no_text_poses_as_a_turn(
    turns: list[tuple[str, str]], name: str, fact: str
) -> None:
    line = compact(turns, person={name: fact}, earlier=[fact])
    assert plain(line) == line
    assert len(line) <= LONGEST + 20
    assert line.count("|") <= 2 * (len(turns) + 2)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_material_is_read(held: object) -> None:
    found = asking(Request((system(REWRITE), user(json.dumps(held))), task="rewrite_query"))
    assert found is not None
    assert found[0] == "rewrite"


def test_the_end_of_a_long_dialogue_is_kept() -> None:
    turns = [("user", f"turn {number} " + "word " * 70) for number in range(9)]
    line = compact([*turns, ("user", "and the last?")])
    assert line.endswith("|u| and the last?")
    assert "turn 8" in line
    assert "turn 0" not in line
