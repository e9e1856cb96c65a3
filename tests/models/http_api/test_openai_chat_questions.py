"""The decision wire, on bytes and against a server of it on this machine."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given

from taiwa.kernel.errors import AuthenticationError, InputError, ModelError, ProtocolError, UnsupportedError
from taiwa.kernel.messages import (
    ChoiceQuestion,
    Questions,
    Request,
    ScaleQuestion,
    Usage,
    YesNoQuestion,
    assistant,
    collect_response,
    user,
)
from taiwa.models.http_api.client import HttpModel
from taiwa.models.providers import resolve
from tests.models.conftest import Face
from tests.models.pieces import PLACES, cut
from tests.peers.decider import KEY, DecisionServer
from tests.peers.llama import KEY as LLAMA_KEY
from tests.peers.llama import LlamaServer

LEVELS = ("plain", "rather plain", "half plain", "rather dark", "dark")
ASKED = Questions(
    (
        ("clarity", ScaleQuestion("How clear is it?", LEVELS)),
        ("kind", ChoiceQuestion("What is it?", (("question", "asks for facts"), ("thanks", "")))),
        ("urgent", YesNoQuestion("Is it urgent?", yes="today")),
    )
)
ASK = Request((user("休暇について教えて"),), constraint=ASKED)
DECIDES = {"decisions": True}


@pytest.fixture(scope="module")
def server() -> Iterator[DecisionServer]:
    with DecisionServer({"clarity": (0, 9, 0, 0, 0), "kind": (4, 0), "urgent": (5, 0)}) as made:
        yield made


@pytest.fixture
def model(server: DecisionServer) -> Iterator[HttpModel]:
    server.raw = None
    name = f"{server.base_url}#decider"
    with HttpModel(resolve(name, overrides={name: DECIDES}), KEY) as made:
        yield made


def body(request: Request) -> dict[str, object]:
    call = resolve("vllm:x", overrides={"vllm:x": DECIDES}).codec.encode(request)
    assert call.path == "systemone"
    written: dict[str, object] = json.loads(call.body)
    return written


def test_questions_are_written_as_the_wire_has_them() -> None:
    assert body(ASK) == {
        "model": "x",
        "state": "休暇について教えて",
        "questions": {
            "clarity": {"type": "score", "instructions": "How clear is it?", "criteria": list(LEVELS)},
            "kind": {
                "type": "choice",
                "instructions": "What is it?",
                "criteria": {"question": "asks for facts", "thanks": None},
            },
            "urgent": {"type": "noul", "instructions": "Is it urgent?", "criteria": {"true": "today"}},
        },
    }


def test_a_question_of_yes_or_no_needs_no_criteria() -> None:
    asked = body(replace(ASK, constraint=Questions((("ok", YesNoQuestion("Is it?")),))))

    assert asked["questions"] == {"ok": {"type": "noul", "instructions": "Is it?"}}


def test_of_several_messages_the_state_names_who_spoke() -> None:
    asked = body(replace(ASK, messages=(user("Leave?"), assistant("Which?"))))

    assert asked["state"] == [{"role": "user", "content": "Leave?"}, {"role": "assistant", "content": "Which?"}]


@pytest.mark.parametrize(
    "questions",
    [
        Questions(()),
        Questions(tuple((str(n), YesNoQuestion("?")) for n in range(129))),
        Questions((("a", ScaleQuestion("?", ("one",))),)),
        Questions((("a", ScaleQuestion("?", tuple("abcdefghijk"))),)),
        Questions((("a", ChoiceQuestion("?", ())),)),
        Questions((("a", ChoiceQuestion("?", tuple((str(n), "") for n in range(256)))),)),
    ],
)
def test_what_the_wire_has_no_room_for_is_told_before_it_is_sent(questions: Questions) -> None:
    with pytest.raises(InputError):
        body(replace(ASK, constraint=questions))


@pytest.mark.parametrize("name", ["vllm:x", "openai:gpt-4o", "anthropic:claude-sonnet-4-5"])
def test_a_model_that_is_not_known_to_decide_is_not_asked_to(name: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        resolve(name).codec.encode(ASK)

    assert caught.value.capability == "decisions"


def test_a_server_answers_every_question_with_probabilities(face: Face, model: HttpModel) -> None:
    answer = face.ask(model, ASK)

    found = json.loads(answer.text)
    assert list(found) == ["clarity", "kind", "urgent"]
    assert found["clarity"]["score"] == pytest.approx(1, abs=0.01)
    assert found["kind"]["choice"] == "question"
    assert found["urgent"]["noul"] < 0.01
    assert answer.finish == "stop"
    assert answer.model == "decider"
    assert answer.usage is not None
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens == 0


def test_what_the_server_refuses_is_an_error_of_ours(face: Face, model: HttpModel) -> None:
    bad = replace(ASK, constraint=Questions((("a", YesNoQuestion("")),)))

    with pytest.raises(ModelError, match="instructions"):
        face.ask(model, bad)


def test_a_wrong_key_is_refused(server: DecisionServer, model: HttpModel) -> None:
    with HttpModel(model.target, "canary-other-key") as other, pytest.raises(AuthenticationError):
        collect_response(other.stream(ASK))


@pytest.mark.parametrize("raw", [b"{}", b'{"answers": []}', b'{"answers"', b"[]"])
def test_a_reply_that_is_none_of_the_wire_is_told(server: DecisionServer, model: HttpModel, raw: bytes) -> None:
    server.raw = raw

    with pytest.raises(ProtocolError):
        collect_response(model.stream(ASK))


def test_a_chat_server_that_decides_nothing_says_so(llama: LlamaServer) -> None:
    name = f"{llama.base_url}#tiny"

    with (
        HttpModel(resolve(name, overrides={name: DECIDES}), LLAMA_KEY) as model,
        pytest.raises(ModelError, match="not a decision model") as caught,
    ):
        collect_response(model.stream(ASK))

    assert caught.value.status == 501


@given(PLACES)
def test_a_reply_is_read_in_any_pieces(places: list[int]) -> None:
    reply = json.dumps(
        {"model": "m", "answers": {"a": {"type": "noul", "noul": 0.5}}, "usage": {"input_tokens": 3}}
    ).encode()
    decoder = resolve("vllm:x").codec.decoder("application/json")

    chunks = [chunk for piece in cut(reply, places) for chunk in decoder.feed(piece)] + decoder.close()

    read = collect_response(chunks)
    assert json.loads(read.text) == {"a": {"type": "noul", "noul": 0.5}}
    assert read.usage == Usage(3)
