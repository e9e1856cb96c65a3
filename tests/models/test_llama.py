"""The real codecs and edges against a genuine llama.cpp server: its tokenizer, stream, grammar, cache and keys."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Complete, Program, perform
from taiwa.kernel.errors import AuthenticationError, ModelError, UnsupportedError
from taiwa.kernel.execution import RunResult
from taiwa.kernel.messages import (
    JsonSchema,
    Message,
    Request,
    Response,
    Sampling,
    StreamEnd,
    Text,
    TextDelta,
    assistant,
    collect_response,
    system,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.models.http_api.api_keys import Secret
from taiwa.models.http_api.capabilities import ProbeReport
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.probe_server import probe
from taiwa.models.providers import check_key, resolve, resolve_permissive
from taiwa.settings import Settings, load
from tests.models.conftest import Face
from tests.peers.llama import KEY, LlamaServer

SHORT = Sampling(max_tokens=24)
ASK = Request((system("Answer."), user("こんにちは, tell me a story")), sampling=SHORT)


@pytest.fixture(scope="module")
def settings(llama: LlamaServer) -> Settings:
    addresses = {"llamacpp": llama.base_url, "vllm": llama.base_url}
    return load({"base_urls": addresses}, {"HOME": "/"}, Path("/none/config.yaml"))


@pytest.fixture(scope="module")
def model(settings: Settings) -> Iterator[HttpModel]:
    with HttpModel(resolve("llamacpp:tiny", base_urls=settings.models.base_urls), KEY) as made:
        yield made


def test_an_answer_streams_with_its_bill_and_name(face: Face, model: HttpModel) -> None:
    answer = face.ask(model, ASK)

    assert answer.finish == "length"
    assert answer.model == "tiny"
    assert answer.text
    assert answer.usage is not None
    assert answer.usage.output_tokens == 24
    assert answer.usage.input_tokens > len("こんにちは".encode())


def test_the_words_of_an_answer_come_before_its_one_end(model: HttpModel) -> None:
    chunks = list(model.stream(ASK))

    assert all(isinstance(chunk, TextDelta) for chunk in chunks[:-1])
    assert len(chunks) > 1
    assert isinstance(chunks[-1], StreamEnd)
    assert sum(isinstance(chunk, StreamEnd) for chunk in chunks) == 1


def test_one_request_has_one_answer_on_both_faces(model: HttpModel) -> None:
    async def asynchronous() -> Response:
        return collect_response([chunk async for chunk in model.astream(ASK)])

    assert asyncio.run(asynchronous()).message == collect_response(model.stream(ASK)).message


def test_a_stop_string_ends_the_answer_and_is_no_part_of_it(face: Face, model: HttpModel) -> None:
    whole = face.ask(model, ASK).text
    stop = whole[6:9]

    answer = face.ask(model, replace(ASK, stop=(stop,)))

    assert answer.finish == "stop"
    assert answer.text == whole[: whole.index(stop)]


def test_an_answer_that_was_begun_is_gone_on_with_and_its_beginning_not_repeated(face: Face, model: HttpModel) -> None:
    whole = face.ask(model, ASK).text

    rest = face.ask(model, replace(ASK, prefix=whole[:8], sampling=Sampling(max_tokens=8))).text

    assert whole.startswith(whole[:8] + rest[:6])


def test_the_beginning_that_two_requests_share_is_read_from_the_cache(face: Face, model: HttpModel) -> None:
    long = Request((system("Remember. " * 40), user(f"first {face}")), sampling=SHORT)
    face.ask(model, long)

    answer = face.ask(model, replace(long, messages=(*long.messages, assistant("Yes."), user("second"))))

    assert answer.usage is not None
    assert answer.usage.cache_read_tokens > 200


def test_a_schema_holds_even_a_model_that_knows_nothing(face: Face, model: HttpModel) -> None:
    schema = {
        "type": "object",
        "properties": {"clarity": {"type": "integer", "minimum": 1, "maximum": 5}, "act": {"enum": ["ask", "look"]}},
        "required": ["clarity", "act"],
        "additionalProperties": False,
    }

    answer = face.ask(model, replace(ASK, constraint=JsonSchema(schema), sampling=Sampling(max_tokens=400)))

    found = json.loads(answer.text)
    assert list(found) == ["clarity", "act"]
    assert 1 <= found["clarity"] <= 5
    assert found["act"] in ("ask", "look")


def test_a_seed_repeats_an_answer_and_another_seed_does_not(face: Face, model: HttpModel) -> None:
    def say(seed: int) -> str:
        return face.ask(model, replace(ASK, sampling=Sampling(1.0, None, 24, seed))).text

    assert say(1) == say(1) != say(2)


def test_a_conversation_of_all_roles_and_scripts_is_taken(face: Face, model: HttpModel) -> None:
    messages = (
        system("簡潔に。"),
        user("你好 👋"),
        assistant("Ünï"),
        Message("user", (Text("a"), Text("b", transient=True))),
    )

    assert face.ask(model, Request(messages, sampling=SHORT)).finish == "length"


def test_a_request_longer_than_the_model_can_read_is_told_so(face: Face, model: HttpModel) -> None:
    with pytest.raises(ModelError, match="longer than the model's context length: 'tiny'") as caught:
        face.ask(model, Request((user("word " * 10_000),)))

    assert caught.value.status == 400


def test_a_schema_that_the_server_does_not_know_is_told_and_not_tried_again(face: Face, model: HttpModel) -> None:
    with pytest.raises(UnsupportedError, match="does not take this schema") as caught:
        face.ask(model, replace(ASK, constraint=JsonSchema({"type": "nonsense"})))

    assert caught.value.status == 400


def test_a_wrong_key_is_refused_and_not_shown(face: Face, model: HttpModel) -> None:
    with HttpModel(model.target, "canary-wrong-key") as wrong, pytest.raises(AuthenticationError) as caught:
        face.ask(wrong, ASK)

    assert "canary" not in str(caught.value)


def test_a_key_is_checked_by_one_cheap_call(model: HttpModel) -> None:
    check_key(model.target, Secret(KEY))
    with pytest.raises(AuthenticationError):  # llama.cpp lists its models without a key
        check_key(model.target, Secret("canary-wrong-key"))


def test_a_closed_iterator_frees_the_server(face: Face, model: HttpModel, llama: LlamaServer) -> None:
    def busy() -> bool:
        request = urllib.request.Request(f"{llama.url}/slots", headers={"authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(request) as answer:
            return any(slot["is_processing"] for slot in json.load(answer))

    def is_free() -> bool:
        end = time.monotonic() + 300
        while busy() and time.monotonic() < end:
            time.sleep(0.01)
        return not busy()

    endless = replace(ASK, sampling=Sampling(max_tokens=6000))
    chunks = model.stream(endless)
    next(chunks)
    assert busy()
    chunks.close()

    assert is_free()
    assert face.begin(model, endless, is_free)


def test_more_calls_than_the_server_has_slots_all_answer(model: HttpModel) -> None:
    async def one(number: int) -> str:
        request = Request((user(f"number {number}"),), sampling=Sampling(max_tokens=8))
        return collect_response([chunk async for chunk in model.astream(request)]).text

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(24)))

    assert all(asyncio.run(all_of_them()))


def test_a_program_has_one_outcome_and_one_bill_on_both_drivers(model: HttpModel) -> None:
    def twice() -> Program[tuple[str, str]]:
        first = yield from perform(Complete(ASK))
        second = yield from perform(Complete(replace(ASK, messages=(*ASK.messages, first.message, user("more")))))
        return first.text, second.text

    def bill(program: RunResult[tuple[str, str]]) -> tuple[int, int]:
        return program.spent.requests, program.spent.usage.output_tokens

    async def asynchronous() -> RunResult[tuple[str, str]]:
        events = [event async for event in AsyncRuntime(model).stream(twice())]
        return next(event for event in events if isinstance(event, RunResult))

    blocking = next(event for event in Runtime(model).stream(twice()) if isinstance(event, RunResult))
    other = asyncio.run(asynchronous())

    assert blocking.value == other.value
    assert bill(blocking) == bill(other) == (2, 48)


def test_a_probe_finds_what_this_server_is_known_to_hold_and_to_drop(settings: Settings) -> None:
    with HttpModel(resolve_permissive("llamacpp:tiny", settings), KEY) as wide:
        report = probe(wide)

    found = {finding.name: finding.verdict for finding in report.findings}
    assert report.server == "llamacpp"
    enforced = {name.removeprefix("schema.") for name, verdict in found.items() if verdict == "enforced"}
    assert {"enum", "const", "required", "integer bounds", "items bounds", "pattern", "$ref"} <= enforced
    assert not {"uniqueItems", "number bounds", "multipleOf"} & enforced
    for name in ("stop", "prefix", "seed", "usage", "cached tokens", "logprobs"):
        assert (name, found[name]) == (name, "enforced")
    assert report.capabilities["json_schema"] is True
    assert report.requests <= 30


def test_a_probe_finds_a_constraint_in_another_servers_words_to_be_dropped(settings: Settings) -> None:
    with HttpModel(resolve_permissive("vllm:tiny", settings), KEY) as wide:
        report: ProbeReport = probe(wide)

    assert report.capabilities["json_schema"] is False
    assert report.capabilities["regex"] is False
    assert not [each.name for each in report.findings if each.name.startswith("schema.") and each.verdict == "enforced"]


def test_a_text_is_continued_over_the_completions_protocol(settings: Settings) -> None:
    target = resolve("llamacpp:tiny?wire=completions", base_urls=settings.models.base_urls)
    ask = Request((user("once upon"),), sampling=Sampling(0.0, None, 12), top_logprobs=2)
    with HttpModel(target, KEY) as model:
        whole = collect_response(model.stream(ask))
        rest = collect_response(model.stream(replace(ask, prefix=whole.text[:20])))

    assert whole.usage is not None
    assert whole.usage.output_tokens == 12
    assert len(whole.decoding.logprobs) == 12
    assert rest.text.startswith(whole.text[20:24])


def test_the_same_server_answers_by_responses_and_by_messages(face: Face, settings: Settings) -> None:
    for wire in ("responses", "messages"):
        target = resolve(f"llamacpp:tiny?wire={wire}", base_urls=settings.models.base_urls)
        with HttpModel(target, KEY) as model:
            answer = face.ask(model, ASK)

        # On /v1/responses this server calls an answer completed that its limit has cut.
        assert answer.finish == ("stop" if wire == "responses" else "length")
        assert answer.text
        assert answer.usage is not None
        assert answer.usage.output_tokens == 24
