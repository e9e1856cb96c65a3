"""How likely tokens were: asked for, read, and told by a genuine llama.cpp server."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Decoding, Request, Response, Sampling, TokenLogprob, collect_response, user
from taiwa.kernel.serialization import record, restore
from taiwa.models.http_api.client import HttpModel
from taiwa.models.providers import resolve
from taiwa.models.scripted import scripted_model
from tests.models.conftest import Face
from tests.models.http_api.test_openai_chat_responses import read, sse, whole
from tests.peers.llama import KEY, LlamaServer

ASK = Request((user("hi"),), sampling=Sampling(max_tokens=2), top_logprobs=5)


def row(token: str, logprob: Any, *top: tuple[str, Any]) -> dict[str, Any]:
    told = [{"token": other, "logprob": number} for other, number in top]
    return {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": told}


@pytest.fixture(scope="module")
def model(llama: LlamaServer) -> Iterator[HttpModel]:
    with HttpModel(resolve("llamacpp:tiny", base_urls={"llamacpp": llama.base_url}), KEY) as made:
        yield made


def test_a_real_server_tells_the_likeliest_tokens_of_every_place(face: Face, model: HttpModel) -> None:
    answer = face.ask(model, ASK)

    assert "".join(each.token for each in answer.decoding.logprobs) == answer.text
    assert len(answer.decoding.logprobs) == 2
    for each in answer.decoding.logprobs:
        assert len(each.top_logprobs) == 5
        assert each.top_logprobs[0] == (each.token, each.logprob)
        numbers = [number for _, number in each.top_logprobs]
        assert numbers == sorted(numbers, reverse=True)
        assert sum(map(math.exp, numbers)) <= 1 + 1e-6


def test_log_probabilities_are_only_returned_on_request(face: Face, model: HttpModel) -> None:
    assert face.ask(model, replace(ASK, top_logprobs=0)).decoding.logprobs == ()


def test_no_more_alternatives_are_requested_than_every_server_returns() -> None:
    body = json.loads(resolve("openai:gpt-4o").codec.encode(replace(ASK, top_logprobs=99)).body)

    assert body["logprobs"] is True
    assert body["top_logprobs"] == 20


@pytest.mark.parametrize("name", ["mistral:x", "anthropic:claude-sonnet-4-5", "openai:o4-mini"])
def test_a_server_without_log_probabilities_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        resolve(name).codec.encode(ASK)

    assert caught.value.capability == "logprobs"


def test_log_probabilities_of_a_stream_are_joined() -> None:
    def event(text: str, *rows: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": list(rows)}}]}

    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    answer = read(sse(event("a", row("a", -0.1, ("b", -2))), event("bc", row("b", -1), row("c", -2)), end))

    assert answer.decoding.logprobs == (
        TokenLogprob("a", -0.1, (("b", -2.0),)),
        TokenLogprob("b", -1.0),
        TokenLogprob("c", -2.0),
    )


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (None, ()),
        ({"content": None}, ()),
        ({"content": [row("a", None), row("b", "x"), row("c", True), "d"]}, ()),
        ({"content": [row("a", -1, ("b", None), ("c", -3))]}, (TokenLogprob("a", -1.0, (("c", -3.0),)),)),
        ({"content": [row("a", float("-inf")), row("b", 0.001)]}, (TokenLogprob("a", -9999.0), TokenLogprob("b", 0.0))),
    ],
)
def test_what_is_broken_is_left_out(told: Any, kept: tuple[TokenLogprob, ...]) -> None:
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "stop", "logprobs": told}

    assert read(json.dumps({"model": "m", "choices": [choice]}).encode()).decoding.logprobs == kept


def test_an_answer_without_them_reads_as_before() -> None:
    assert read(whole({"content": "x"})).decoding.logprobs == ()


def test_a_script_plays_them_and_a_record_keeps_them() -> None:
    answer = collect_response(
        scripted_model(
            Response(collect_response([]).message, decoding=Decoding((TokenLogprob("1", -0.5, (("1", -0.5),)),)))
        ).stream(ASK)
    )

    assert answer.decoding.logprobs[0].top_logprobs == (("1", -0.5),)
    assert restore(record(answer)) == answer


def test_a_request_that_asks_for_none_keeps_its_name() -> None:
    assert record(replace(ASK, top_logprobs=0)) == record(Request(ASK.messages, sampling=ASK.sampling))
    assert ASK.digest != replace(ASK, top_logprobs=0).digest
