import asyncio
import gzip
import json
import logging
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from taiwa.kernel.effects import Complete, perform
from taiwa.kernel.errors import (
    AuthenticationError,
    ConfigError,
    LimitError,
    ModelError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    TimeoutError,
)
from taiwa.kernel.messages import (
    FailedAttempt,
    Notice,
    Request,
    RequestHints,
    Sampling,
    StreamEnd,
    TextDelta,
    ToolSpec,
    Usage,
    collect_response,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import Billing, RunUsage, UsageLimits
from taiwa.models.http_api import client
from taiwa.models.http_api.client import HttpModel, RetryPolicy
from taiwa.models.http_api.pace import Pace, PaceLimits
from taiwa.models.http_api.provider_interface import RequestLimits
from taiwa.models.providers import resolve
from tests.models.conftest import Face, Sleeps
from tests.peers.faults import (
    CERTIFICATE,
    Act,
    FaultServer,
    Scene,
    body_of,
    drip,
    event,
    head,
    raw,
    silence,
    speech,
    status,
    together,
    words,
)

KEY = "canary-0123456789-key"
ASK = Request((user("hello"),))
PATIENT = RequestLimits(connect=300.0, first_byte=300.0, between=300.0, total=600.0)
HASTY = RequestLimits(connect=300.0, first_byte=0.25, between=0.25, total=600.0)
STALLING = replace(HASTY, first_byte=300.0)


@pytest.fixture
def model(faults: FaultServer, sleeps: Sleeps) -> Iterator[HttpModel]:
    with model_at(faults.base_url, sleeps) as made:
        yield made


@pytest.fixture
def hasty(faults: FaultServer, sleeps: Sleeps) -> Iterator[HttpModel]:
    """A model that is given up after a quarter of a second of silence."""
    with model_at(faults.base_url, sleeps, HASTY) as made:
        yield made


def model_at(url: str, sleeps: Sleeps, limits: RequestLimits = PATIENT) -> HttpModel:
    key = None if ".invalid" in url else KEY  # none is sent there over plain HTTP
    return HttpModel(resolve(f"{url}#test-model"), key, limits=limits, clock=sleeps.clock)


def error_of(face: Face, model: HttpModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        face.ask(model, ASK)
    assert "\n" not in str(caught.value)
    assert KEY not in f"{caught.value!r} {caught.value.record()}"
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return caught.value


# --- what arrives -----------------------------------------------------------------------------------------------------


def test_an_answer_arrives_whole_with_its_usage(face: Face, model: HttpModel, faults: FaultServer) -> None:
    faults.plays(speech("こんにちは, world"))

    answer = face.ask(model, ASK)

    assert (answer.text, answer.finish, answer.model) == ("こんにちは, world", "stop", "test-model")
    assert answer.usage == Usage(input_tokens=7, output_tokens=3, cache_read_tokens=4)


def test_calls_are_logged_without_their_key(
    face: Face, model: HttpModel, faults: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    faults.plays(status(503), speech("Hello."))

    with caplog.at_level(logging.DEBUG, "taiwa.models.http"):
        face.ask(model, Request((user("Hi"),)))

    texts = [record.getMessage() for record in caplog.records if record.name == "taiwa.models.http"]
    assert [text.split(",")[-1].split(" after")[0].strip() for text in texts] == [
        "attempt 1",
        "failed",
        "attempt 2",
        "answered",
    ]
    assert KEY not in caplog.text


def test_a_call_that_arrives_as_text_is_a_function_call_only_if_its_tool_was_offered(
    face: Face, faults: FaultServer, sleeps: Sleeps
) -> None:
    written = '```json\n{"name": "look_up", "arguments": {"word": "tea"}}\n```'
    tool = ToolSpec("look_up", "Look up a word.", {"type": "object", "properties": {"word": {"type": "string"}}})
    faults.plays(speech(written), speech(written))

    target = resolve("llamacpp:test-model", base_urls={"llamacpp": faults.base_url})
    with HttpModel(target, KEY, limits=PATIENT, clock=sleeps.clock) as model:
        offered, other = face.ask(model, replace(ASK, tools=(tool,))), face.ask(model, ASK)

    assert [(call.name, call.arguments) for call in offered.message.tool_calls] == [("look_up", '{"word": "tea"}')]
    assert (offered.text, offered.finish, other.text, other.finish) == ("", "tool_calls", written, "stop")


def test_a_call_in_a_file_that_the_model_repeats_is_text(face: Face, faults: FaultServer, sleeps: Sleeps) -> None:
    written = '```json\n{"name": "look_up", "arguments": {"word": "tea"}}\n```'
    tool = ToolSpec("look_up", "Look up a word.", {"type": "object", "properties": {"word": {"type": "string"}}})
    faults.plays(status(503), speech(f"It says:\n{written}"))

    with HttpModel(resolve("llamacpp:test-model", base_urls={"llamacpp": faults.base_url}), KEY, limits=PATIENT, clock=sleeps.clock) as model:  # fmt: skip
        answer = face.ask(model, Request((user("Read it.", [written.encode()]),), tools=(tool,)))

    assert (answer.text, answer.finish) == (f"It says:\n{written}", "stop")


def test_a_server_gets_the_path_the_key_and_no_more_than_it_needs(
    face: Face, model: HttpModel, faults: FaultServer
) -> None:
    faults.plays(speech("x"))

    face.ask(model, ASK)

    seen = faults.seen[0]
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.headers == {
        "host": faults.url.removeprefix("http://"),
        "user-agent": "taiwa",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "authorization": f"Bearer {KEY}",
        "content-type": "application/json",
        "content-length": str(len(seen.body)),
    }


def test_words_are_given_out_as_they_come(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(silence(head(), words("one")))

    chunks = model.stream(ASK)

    assert next(chunks) == TextDelta("one")
    chunks.close()


@pytest.mark.parametrize("where", [1, 2])
def test_a_character_cut_between_two_packets_stays_whole(
    face: Face, model: HttpModel, faults: FaultServer, where: int
) -> None:
    whole = head() + body_of("対話")
    cut = whole.index("対".encode()) + where
    faults.plays(raw(whole[:cut], whole[cut:], gap=0.02))

    assert face.ask(model, ASK).text == "対話"


def test_a_slow_answer_is_waited_for_as_long_as_each_wait_is_short(
    face: Face, model: HttpModel, faults: FaultServer
) -> None:
    faults.plays(speech("slow and steady", wait=0.15, gap=0.05))

    assert face.ask(model, ASK).text == "slow and steady"


def test_usage_that_the_server_does_not_tell_is_unknown_and_not_zero(
    face: Face, model: HttpModel, faults: FaultServer
) -> None:
    faults.plays(speech("x", usage=False))

    assert face.ask(model, ASK).usage is None


@pytest.mark.parametrize(
    "act",
    [
        raw(head(10_000) + body_of("all there")),
        raw(head() + body_of("all there").replace(b"data: [DONE]\n\n", b"")),
        silence(head() + body_of("all there")),
        raw(head(len(body_of("all there")) - 5) + body_of("all there")),
    ],
    ids=["a length too long", "no [DONE]", "never closed", "a length too short by the last word"],
)
def test_a_complete_answer_counts_whatever_its_connection_then_does(
    face: Face, model: HttpModel, faults: FaultServer, act: Act
) -> None:
    faults.plays(act)

    assert face.ask(model, ASK).text == "all there"


def test_what_comes_after_the_end_is_not_waited_for(face: Face, model: HttpModel, faults: FaultServer) -> None:
    faults.plays(drip(words("and more ") * 100, 0.01, head() + body_of("that is all")))
    assert face.ask(model, ASK).text == "that is all"


def test_a_reader_that_stops_at_the_end_leaves_a_connection_that_can_be_used_again(
    model: HttpModel, faults: FaultServer
) -> None:
    faults.plays(speech("x", gap=0.01))

    for _ in range(3):
        chunks = model.stream(ASK)
        next(chunk for chunk in chunks if isinstance(chunk, StreamEnd))
        chunks.close()

    assert len({seen.connection for seen in faults.seen}) == 1


def test_a_chunk_that_comes_twice_is_passed_on_twice(face: Face, model: HttpModel, faults: FaultServer) -> None:
    faults.plays(raw(head() + words("ha") * 2 + event({}, finish="stop")))

    assert face.ask(model, ASK).text == "haha"


def test_an_answer_packed_against_our_wish_is_unpacked(face: Face, model: HttpModel, faults: FaultServer) -> None:
    packed = gzip.compress(body_of("unpacked"))
    faults.plays(raw(head(len(packed), content_encoding="gzip") + packed, close=False))

    assert face.ask(model, ASK).text == "unpacked"


# --- what is tried again ----------------------------------------------------------------------------------------------


def test_a_rate_limit_is_waited_out_as_the_server_asks(
    face: Face, model: HttpModel, faults: FaultServer, sleeps: Sleeps
) -> None:
    faults.plays(status(429, b'{"error": {"message": "slow down"}}', retry_after="2"), speech("now"))

    assert face.ask(model, ASK).text == "now"
    assert sleeps.slept == [2.0]


@pytest.mark.parametrize("code", [503, 529])
def test_a_server_that_does_not_begin_to_answer_is_asked_again(
    face: Face, model: HttpModel, faults: FaultServer, sleeps: Sleeps, code: int
) -> None:
    faults.plays(status(code), status(code, retry_after="1"), speech("now"))

    assert face.ask(model, ASK).text == "now"
    assert sleeps.slept == [0.25, 1.0]
    assert len({seen.body for seen in faults.seen}) == 1


def test_a_server_that_stays_in_trouble_is_given_up(face: Face, model: HttpModel, faults: FaultServer) -> None:
    faults.plays(status(503, b'{"error": {"message": "loading the model"}}'))

    error = error_of(face, model)

    assert isinstance(error, OverloadedError)
    assert error.status == 503
    assert error.request == ASK.digest
    assert "loading the model" in str(error)
    assert "(tried 3 times)" in str(error)
    assert len(faults.seen) == 3


def test_a_wait_longer_than_the_calls_time_is_told_and_not_begun(
    face: Face, model: HttpModel, faults: FaultServer, sleeps: Sleeps
) -> None:
    faults.plays(status(429, retry_after="3600"))

    error = error_of(face, model)

    assert isinstance(error, RateLimitError)
    assert error.retry_after == 3600
    assert "at most 600 s are waited in all (timeout)" in error.message
    assert sleeps.slept == []


def test_a_wait_that_a_single_attempt_does_not_allow_is_not_put_down_to_its_length(
    face: Face, faults: FaultServer, sleeps: Sleeps
) -> None:
    faults.plays(status(429, retry_after="2"))
    target = resolve(f"{faults.base_url}#test-model")

    with HttpModel(target, KEY, limits=PATIENT, retry=RetryPolicy(1), clock=sleeps.clock) as model:
        error = error_of(face, model)

    assert "are waited in all" not in error.message
    assert sleeps.slept == []


def test_a_rate_limit_is_waited_for_as_often_as_the_time_of_the_call_allows(
    face: Face, model: HttpModel, faults: FaultServer, sleeps: Sleeps
) -> None:
    faults.plays(*[status(429, retry_after="9")] * 7, speech("at last"))

    assert face.ask(model, ASK).text == "at last"
    assert sleeps.slept == [9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 15.0]


def test_calls_wait_for_the_requests_of_the_last_minute(face: Face, faults: FaultServer, sleeps: Sleeps) -> None:
    faults.plays(*[speech("x")] * 5)
    target = resolve(f"{faults.base_url}#test-model")
    pace, clock = Pace(PaceLimits(requests=2)), replace(sleeps.clock, now=lambda: sum(sleeps.slept))
    with HttpModel(target, KEY, limits=PATIENT, pace=pace, clock=clock) as model:
        for _ in range(5):
            face.ask(model, ASK)

    assert sum(sleeps.slept) == 120.0


def test_calls_wait_for_the_tokens_of_the_last_minute(face: Face, faults: FaultServer, sleeps: Sleeps) -> None:
    faults.plays(*[speech("x")] * 4)  # ten tokens each
    target = resolve(f"{faults.base_url}#test-model")
    pace = Pace(PaceLimits(tokens=300))
    with HttpModel(target, KEY, limits=PATIENT, pace=pace, clock=sleeps.clock) as model:
        for _ in range(4):
            face.ask(model, ASK)

    assert sum(sleeps.slept) == 0.0  # the answers were shorter than expected


def test_a_server_that_says_do_not_retry_is_obeyed(face: Face, model: HttpModel, faults: FaultServer) -> None:
    faults.plays(status(503, x_should_retry="false"), speech("too late"))

    assert isinstance(error_of(face, model), OverloadedError)


OVERLOADED = b'{"error": {"type": "overloaded_error", "message": "overloaded"}}'
MAYBE_CHARGED = {
    "500": status(500),
    "502": status(502),
    "504": status(504),
    "a connection lost without an answer": raw(b""),
    "a connection lost after the head": raw(head(1000)),
    "a connection lost after a comment": raw(head(1000) + b": a comment\n\n"),
    "a failure inside an answer": raw(head(len(OVERLOADED), "application/json") + OVERLOADED, close=False),
}


@pytest.mark.parametrize("act", MAYBE_CHARGED.values(), ids=MAYBE_CHARGED)
def test_a_call_that_may_have_been_charged_is_not_repeated(
    face: Face, model: HttpModel, faults: FaultServer, sleeps: Sleeps, act: Act
) -> None:
    faults.plays(act, speech("again"))

    error = error_of(face, model)

    assert "may have been charged" in error.message
    assert "--retry-paid" in error.message
    assert error.may_be_charged
    assert (len(faults.seen), sleeps.slept) == (1, [])


@pytest.mark.parametrize("act", MAYBE_CHARGED.values(), ids=MAYBE_CHARGED)
def test_with_consent_a_call_that_may_have_been_charged_is_repeated_and_counted(
    model: HttpModel, faults: FaultServer, act: Act
) -> None:
    model.retry = RetryPolicy(retry_paid=True)
    faults.plays(act, act, speech("again"))

    chunks = list(model.stream(ASK))

    assert collect_response(chunks).text == "again"
    assert len([chunk for chunk in chunks if isinstance(chunk, FailedAttempt)]) == 2
    assert len(faults.seen) == 3


@pytest.mark.parametrize(
    "act", [status(429, b"{}"), status(503), status(400, b"{}"), status(401, b"{}")], ids=["429", "503", "400", "401"]
)
def test_a_refused_call_is_not_on_the_bill(model: HttpModel, faults: FaultServer, act: Act) -> None:
    faults.plays(act)

    with pytest.raises(ModelError) as caught:
        Runtime(model).run(perform(Complete(ASK)))

    assert isinstance(caught.value.spent, RunUsage)
    assert caught.value.spent.calls_without_usage == 0
    assert caught.value.spent.cost == 0


def test_a_server_that_is_not_there_is_not_on_the_bill(sleeps: Sleeps) -> None:
    model = HttpModel(resolve("http://127.0.0.1:1/v1#m"), clock=sleeps.clock)

    with pytest.raises(OverloadedError) as caught:
        Runtime(model).run(perform(Complete(ASK)))

    assert isinstance(caught.value.spent, RunUsage)
    assert caught.value.spent.calls_without_usage == 0
    assert sleeps.slept == []


def test_a_kept_connection_that_a_local_server_closed_is_replaced_once(
    model: HttpModel, faults: FaultServer, sleeps: Sleeps
) -> None:
    faults.plays(speech("one"), raw(), speech("two"), raw(), raw(), speech("never asked"))

    assert [collect_response(model.stream(ASK)).text for _ in range(2)] == ["one", "two"]
    with pytest.raises(OverloadedError, match="hung up"):
        list(model.stream(ASK))

    assert len(faults.seen) == 5


def test_every_attempt_that_may_have_been_charged_is_on_the_bill(model: HttpModel, faults: FaultServer) -> None:
    model.retry = RetryPolicy(retry_paid=True)
    limited = replace(ASK, sampling=Sampling(max_tokens=5))
    faults.plays(status(504), status(504), speech("again"))

    spent = (
        Runtime(model, billing=Billing(lambda _, usage: usage.output_tokens))
        .run_result(perform(Complete(limited)))
        .spent
    )

    assert (spent.requests, spent.calls_without_usage, spent.cost) == (3, 2, None)
    assert spent.estimated.output_tokens == 10
    assert spent.max_cost == 10 + spent.usage.output_tokens


def test_a_failed_call_that_may_have_been_charged_is_on_the_bill(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(status(504))

    with pytest.raises(OverloadedError) as caught:
        Runtime(model).run(perform(Complete(ASK)))

    assert isinstance(caught.value.spent, RunUsage)
    assert (caught.value.spent.requests, caught.value.spent.calls_without_usage) == (1, 1)
    assert caught.value.spent.cost is None


def test_a_limit_on_the_cost_holds_between_the_attempts_of_one_call(model: HttpModel, faults: FaultServer) -> None:
    model.retry = RetryPolicy(retry_paid=True)
    limited = replace(ASK, sampling=Sampling(max_tokens=5))
    faults.plays(status(504), speech("never asked"))
    runtime = Runtime(model, billing=Billing(lambda _, usage: usage.output_tokens), limits=UsageLimits(cost=5))

    with pytest.raises(LimitError, match="limit on cost"):
        runtime.run(perform(Complete(limited)))

    assert len(faults.seen) == 1


def test_a_document_of_the_server_costs_nothing_and_is_fetched_again(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(status(502), raw(b""), status(200, b"{}"))

    assert model.fetch("models") == b"{}"


def test_a_wait_is_announced_before_it_begins(model: HttpModel, faults: FaultServer, sleeps: Sleeps) -> None:
    faults.plays(status(429, b'{"error": {"message": "slow down"}}', retry_after="8"), speech("now"))

    first, *_ = model.stream(ASK)

    assert isinstance(first, Notice)
    assert first.code == "waiting"
    assert first.seconds == 8.0
    assert re.search(r"slow down.* \(at most \d+ s in all\)$", first.text)
    assert str(first) == f"waiting 8 s: {first.text}"


def test_the_silence_of_a_server_is_announced(
    model: HttpModel, faults: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "SILENT_SECONDS", 0.01)
    faults.plays(speech("at last", wait=0.3))

    first, *rest = model.stream(ASK)

    assert isinstance(first, Notice)
    assert "has not begun to answer" in first.text
    assert collect_response(rest).text == "at last"


def test_nothing_is_tried_again_after_the_first_word(
    face: Face, model: HttpModel, faults: FaultServer, sleeps: Sleeps
) -> None:
    busy = b'data: {"error": {"type": "overloaded_error", "message": "overloaded"}}\n\n'
    faults.plays(raw(head() + words("I will") + busy), speech("never asked"))

    error = error_of(face, model)

    assert isinstance(error, OverloadedError)
    assert (len(faults.seen), sleeps.slept) == (1, [])


def test_a_call_that_the_server_may_still_work_on_is_not_sent_twice(
    face: Face, hasty: HttpModel, faults: FaultServer, sleeps: Sleeps
) -> None:
    faults.plays(silence())

    error = error_of(face, hasty)

    assert isinstance(error, TimeoutError)
    assert "within 0.25 s" in str(error)
    assert len(faults.seen) <= 1  # on a busy machine the time may be over before the server has read the request
    assert sleeps.slept == []


def test_a_kept_connection_that_the_server_closed_meanwhile_does_no_harm(
    face: Face, model: HttpModel, faults: FaultServer
) -> None:
    ends = raw(head(len(body_of("one"))) + body_of("one"), close=True)
    faults.plays(ends, ends, speech("three"))

    texts: list[str] = []
    for _ in range(3):
        texts.append(face.ask(model, ASK).text)
        assert len(texts) == 3 or faults.seen[-1].ended.wait(300)

    assert texts == ["one", "one", "three"]


BUSY = b'data: {"error": {"type": "overloaded_error", "message": "overloaded"}}\n\n'

# --- what fails -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "kind", "words_of_it"),
    [
        (status(401, f'{{"error": {{"message": "bad key {KEY}"}}}}'.encode()), AuthenticationError, "taiwa keys set"),
        (status(403, b"{}"), AuthenticationError, "taiwa keys set"),
        (status(404, b'{"error": {"message": "no such route"}}'), ModelError, "/v1"),
        (status(400, f'{{"error": {{"message": "odd {KEY}"}}}}'.encode()), ModelError, "does not accept the request"),
        (status(307, location="http://elsewhere.example/v1"), ModelError, "elsewhere.example"),
        (raw(head() + words("I will")), ProtocolError, "in the middle"),
        (raw(head() + words("対話").partition("話".encode()[1:])[0]), ProtocolError, "in the middle"),
        (raw(head(5000) + words("I will")), ProtocolError, "broke off in the middle"),
        (silence(head() + words("I will") + BUSY), OverloadedError, "cannot answer now"),
        (raw(head() + b"data: {broken\n\n"), ProtocolError, "not JSON"),
        (raw(head() + b"data: {" + KEY.encode() + b"\n\n"), ProtocolError, "not JSON"),
        (raw(head() + b"data: " + KEY.encode() + b"\n\n"), ProtocolError, "in the middle"),
        (raw(head() + b"hello, this is a telnet server\n\n"), ProtocolError, "not whole JSON"),
        (raw(head(kind="text/html") + b"<html><title>Log in</title>"), ProtocolError, "text/html"),
        (raw(head(kind="image/png") + b"\x89PNG"), ProtocolError, "image/png"),
        (raw(head(content_encoding="br") + b"\x00"), ProtocolError, "packed"),
        (raw(head(content_encoding="gzip") + b"not gzip"), ProtocolError, "packed"),
        (raw(b"220 smtp.example ESMTP\r\n\r\n"), ProtocolError, "does not speak HTTP"),
        (raw(b""), OverloadedError, "hung up"),
        (raw(head(0)), ProtocolError, "empty answer"),
    ],
)
def test_every_failure_is_one_of_ours_and_says_what_to_do(
    face: Face, model: HttpModel, faults: FaultServer, act: Act, kind: type[ModelError], words_of_it: str
) -> None:
    faults.plays(act)

    error = error_of(face, model)

    assert isinstance(error, kind)
    assert words_of_it in str(error)
    assert faults.url.removeprefix("http://") in str(error)


@pytest.mark.parametrize(
    ("limits", "before", "complaint"),
    [
        (STALLING, head() + words("I will"), "stalled for 0.25 s in the middle"),
        (HASTY, head(), "no answer from 127.0.0.1"),
    ],
)
def test_a_server_that_falls_silent_is_given_up(
    face: Face, faults: FaultServer, sleeps: Sleeps, limits: RequestLimits, before: bytes, complaint: str
) -> None:
    faults.plays(silence(before))

    with model_at(faults.base_url, sleeps, limits) as model:
        error = error_of(face, model)

    assert isinstance(error, TimeoutError)
    assert complaint in str(error)
    assert len(faults.seen) == 1


def test_an_answer_in_one_piece_may_take_the_time_of_the_whole_call(
    face: Face, hasty: HttpModel, faults: FaultServer
) -> None:
    faults.plays(speech("Late.", wait=0.5))

    assert face.ask(hasty, replace(ASK, hints=RequestHints(whole=True))).text == "Late."


@pytest.mark.parametrize("complaint", ["This model only support stream mode", "must be set for non-streaming calls"])
def test_a_server_that_only_streams_is_asked_for_a_stream_and_remembered(
    face: Face, model: HttpModel, faults: FaultServer, complaint: str
) -> None:
    refused = status(400, json.dumps({"error": {"message": complaint}}).encode())
    faults.plays(refused, speech("Yes."), speech("Yes."))

    answers = [face.ask(model, replace(ASK, hints=RequestHints(whole=True))).text for _ in range(2)]

    bodies: list[Any] = [seen.json for seen in faults.seen]
    assert answers == ["Yes.", "Yes."]
    assert [(body["stream"], "stream_options" in body) for body in bodies] == [
        (False, False),
        (True, True),
        (True, True),
    ]


async def bomb(scene: Scene) -> None:
    """Send a stream that is small until it is unpacked."""
    await raw(head(content_encoding="gzip") + packed())(scene)


@cache
def packed() -> bytes:
    return gzip.compress(b": " + b"\n" * 2**27)


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (drip(b": " + b"x" * 2**20 + b"\n\n", 0, head()), "more than 64 MiB"),
        (drip(b" " * 2**20, 0, head(kind="application/json"), b'{"text": "'), "more than 64 MiB"),
        (bomb, "more than 64 MiB"),
        (drip(b"x" * 2**20, 0, head(code=400)), "does not accept"),
    ],
    ids=["comments", "one JSON object", "a packed bomb", "an endless complaint"],
)
def test_no_server_can_fill_the_memory(
    face: Face, faults: FaultServer, sleeps: Sleeps, act: Act, complaint: str
) -> None:
    faults.plays(act)
    with model_at(faults.base_url, sleeps, RequestLimits()) as model:
        error = error_of(face, model)

    assert complaint in str(error)


def test_the_time_for_a_whole_call_ends_it_even_while_words_come(
    face: Face, faults: FaultServer, sleeps: Sleeps
) -> None:
    faults.plays(drip(words("more "), 0.05, head()))
    with model_at(faults.base_url, sleeps, RequestLimits(total=0.4)) as model:
        error = error_of(face, model)

    assert isinstance(error, TimeoutError)
    assert "0.4 s" in str(error)


def test_a_server_that_drips_its_head_cannot_hold_a_call(face: Face, hasty: HttpModel, faults: FaultServer) -> None:
    faults.plays(drip(b"x-more: y\r\n", 0.03, b"HTTP/1.1 200 OK\r\n"))

    error = error_of(face, hasty)

    assert isinstance(error, TimeoutError)
    assert "within 0.25 s" in str(error)


def test_a_server_that_is_not_there_is_named_with_its_address(face: Face, sleeps: Sleeps) -> None:
    with model_at("http://127.0.0.1:1/v1", sleeps) as model:
        error = error_of(face, model)

    assert isinstance(error, OverloadedError)
    assert str(error) == ("nothing listens at 127.0.0.1:1: is the server running at http://127.0.0.1:1/v1?")
    assert sleeps.slept == []


def test_a_provider_that_is_not_running_is_named(face: Face, sleeps: Sleeps) -> None:
    target = resolve("ollama:qwen3", base_urls={"ollama": "http://127.0.0.1:1/v1"})
    with HttpModel(target, clock=sleeps.clock) as model:
        error = error_of(face, model)

    assert str(error) == "nothing listens at 127.0.0.1:1: is the Ollama server running at http://127.0.0.1:1/v1?"
    assert sleeps.slept == []


def test_a_host_that_does_not_exist_is_told_so(face: Face, sleeps: Sleeps) -> None:
    with model_at("http://no-such-host.invalid/v1", sleeps) as model:
        assert "unknown host no-such-host.invalid" in str(error_of(face, model))


def test_tls_spoken_to_a_server_without_it_is_named(face: Face, faults: FaultServer, sleeps: Sleeps) -> None:
    with model_at(faults.base_url.replace("http:", "https:"), sleeps) as model:
        error = error_of(face, model)

    assert isinstance(error, ProtocolError)
    assert "does not speak TLS" in str(error)


def test_a_certificate_that_nobody_vouches_for_is_refused_and_a_trusted_one_is_not(
    face: Face, sleeps: Sleeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(tls=True) as server:
        server.plays(speech("in secret"))
        with model_at(server.base_url, sleeps) as model:
            error = error_of(face, model)
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        with model_at(server.base_url, sleeps) as model:
            answers = [face.ask(model, ASK).text for _ in range(2)]

    assert isinstance(error, ProtocolError)
    assert "is not trusted" in str(error)
    assert answers == ["in secret", "in secret"]


def test_over_tls_too_a_stall_ends_and_a_closed_iterator_hangs_up(
    face: Face, sleeps: Sleeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with FaultServer(tls=True) as server, model_at(server.base_url, sleeps, STALLING) as model:
        server.plays(silence(head() + words("I will")))

        assert "stalled" in str(error_of(face, model))
        server.plays(silence(head() + words("I will")))
        assert face.begin(model, ASK, lambda: server.seen[0].closed.wait(300))


# --- where keys go ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["two\nlines", "with space", "鍵", "caf\xe9", "nul\0"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(faults: FaultServer, key: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        HttpModel(replace(resolve("openai:gpt-4.1"), base_url=faults.base_url), key)

    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [f"http://{KEY}@host/v1", f"http://host/v1?key={KEY}", f"http://host/v1#{KEY}", "ftp://host/v1", "host/v1", "http://",
     "http://[::1", "http://host:99999/", "http://host/\n", "http://" + "x" * 70 + ".example"],
)  # fmt: skip
def test_a_base_url_that_is_none_is_refused_without_showing_what_it_hides(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^the base URL ") as caught:
        HttpModel(replace(resolve("openai:gpt-4.1"), base_url=url))

    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("http://[::1]:8080/v1/", "[::1]:8080", "/v1/chat/completions"),
        ("https://bücher.example:443", "xn--bcher-kva.example", "/chat/completions"),
        ("http://host/a b/ü", "host", "/a%20b/%C3%BC/chat/completions"),
    ],
)
def test_an_address_is_written_as_the_wire_wants_it(url: str, host: str, path: str) -> None:
    target = replace(resolve("openai:gpt-4.1"), base_url=url)

    model = HttpModel(target)
    http = model._http_request("POST", model.codec.encode(ASK))

    assert dict(http.headers)[b"Host"] == host.encode()
    assert http.url.target == path.encode()


def test_a_redirect_is_not_followed(face: Face, model: HttpModel, faults: FaultServer) -> None:
    faults.plays(status(302, location=f"{faults.url}/elsewhere"), speech("followed"))

    error = error_of(face, model)

    assert "302" in str(error)
    assert [seen.path for seen in faults.seen] == ["/v1/chat/completions"]


def test_a_proxy_is_used_for_strangers_and_never_for_this_machine(
    face: Face, faults: FaultServer, sleeps: Sleeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", faults.url)
    monkeypatch.setenv("no_proxy", "free.invalid")
    faults.plays(speech("by proxy"))

    with model_at("http://model.invalid/v1", sleeps) as strange:
        assert face.ask(strange, ASK).text == "by proxy"
    assert faults.seen[0].path == "http://model.invalid/v1/chat/completions"

    for url in ("http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://free.invalid/v1"):
        with model_at(url, sleeps) as local:
            assert isinstance(error_of(face, local), OverloadedError)


def test_a_proxy_that_cannot_be_reached_is_named_in_place_of_the_server(
    face: Face, sleeps: Sleeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    with model_at("http://model.invalid/v1", sleeps) as strange:
        error = error_of(face, strange)

    assert "the proxy on the way to model.invalid fails" in str(error)


def test_a_proxy_of_a_kind_that_cannot_be_used_is_told(
    face: Face, sleeps: Sleeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "socks5://someone:secret@127.0.0.1:1")

    with model_at("http://model.invalid/v1", sleeps) as model, pytest.raises(ConfigError, match="socks5") as caught:
        face.ask(model, ASK)

    assert "secret" not in str(caught.value)


def test_the_key_is_in_no_log_and_no_repr(
    face: Face, model: HttpModel, faults: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    faults.plays(status(503, KEY.encode(), "text/plain"), speech("x"))
    with caplog.at_level(logging.DEBUG):
        face.ask(model, ASK)

    assert caplog.records
    assert KEY not in caplog.text
    assert KEY not in f"{model!r} {vars(model)}"


# --- connections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [b"", head(), head() + words("I will")], ids=["no byte", "a head", "words"])
def test_an_interrupt_ends_the_wait_of_a_blocking_call_and_closes_its_connection(
    model: HttpModel, faults: FaultServer, before: bytes
) -> None:
    faults.plays(silence(before))

    def press_when_asked() -> None:
        end = time.monotonic() + 300
        while not faults.seen and time.monotonic() < end:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(press_when_asked)
        # Closed as the runtime does: pressed between two chunks, the error would keep the iterator until garbage is collected.
        with pytest.raises(KeyboardInterrupt), closing(model.stream(ASK)) as chunks:
            collect_response(chunks)

        assert faults.seen[0].closed.wait(300)


def test_an_interrupt_while_a_blocking_call_begins_leaves_no_call_behind(
    model: HttpModel, faults: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.plays(silence(head()))
    loop = client._background_loop()
    schedule = loop.call_soon_threadsafe

    def interrupted(callback: Callable[[], object]) -> None:
        monkeypatch.undo()
        schedule(callback)
        raise KeyboardInterrupt

    async def unfinished() -> set[asyncio.Task[object]]:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        return (await asyncio.wait(others, timeout=300))[1] if others else set()

    monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collect_response(model.stream(ASK))

    assert not asyncio.run_coroutine_threadsafe(unfinished(), loop).result()


def test_many_calls_at_once_share_their_connections_with_the_next_ones(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(speech("x", wait=0.1))

    async def twice() -> None:
        for _ in range(2):
            await asyncio.gather(*(whole() for _ in range(40)))

    async def whole() -> None:
        assert [chunk async for chunk in model.astream(Request((user("one of many"),)))]

    asyncio.run(twice())

    many = [seen for seen in faults.seen if b"one of many" in seen.body]  # not the late call of an interrupted test
    assert len(many) == 80
    assert len({seen.connection for seen in many}) <= 40


def test_closing_the_iterator_closes_the_connection_at_once(face: Face, model: HttpModel, faults: FaultServer) -> None:
    faults.plays(silence(head() + words("I will")))

    assert face.begin(model, ASK, lambda: faults.seen[0].closed.wait(300))


def test_cancelling_the_task_closes_the_connection_at_once(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(silence(head() + words("I will")))

    async def cancelled() -> bool:
        begun = asyncio.Event()

        async def read() -> None:
            async for _ in model.astream(ASK):
                begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await asyncio.to_thread(faults.seen[0].closed.wait, 300)

    assert asyncio.run(cancelled())


def test_a_call_is_cancelled_before_its_first_byte_too(model: HttpModel, faults: FaultServer) -> None:
    arrived = threading.Event()

    async def hold(scene: Scene) -> None:
        arrived.set()
        await silence()(scene)

    async def cancelled() -> bool:
        async with aclosing(model.astream(ASK)) as chunks:
            task = asyncio.ensure_future(anext(chunks))
            await asyncio.to_thread(arrived.wait, 300)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return await asyncio.to_thread(faults.seen[0].closed.wait, 300)

    faults.plays(hold)

    assert asyncio.run(cancelled())


def test_calls_one_after_another_share_one_connection(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(speech("x"))

    async def thrice() -> None:
        for _ in range(3):
            assert [chunk async for chunk in model.astream(ASK)]

    for _ in range(3):
        collect_response(model.stream(ASK))
    asyncio.run(thrice())

    assert len({seen.connection for seen in faults.seen[:3]}) == 1
    assert len({seen.connection for seen in faults.seen[3:]}) == 1


def test_one_model_serves_one_event_loop_after_another(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(speech("x"))

    async def twice() -> None:
        for _ in range(2):
            assert [chunk async for chunk in model.astream(ASK)]

    for _ in range(3):
        asyncio.run(twice())

    assert len({seen.connection for seen in faults.seen}) == 3


def test_an_event_loop_that_is_simply_dropped_does_no_harm(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(speech("x"))

    async def once() -> str:
        return collect_response([chunk async for chunk in model.astream(ASK)]).text

    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(once()) == "x"
    loop.run_until_complete(model.aclose())
    loop.close()

    assert asyncio.run(once()) == "x"


def test_a_hundred_asynchronous_calls_at_once_all_answer(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(together(100, speech("here")))  # one after the other would never get an answer

    async def one() -> str:
        return collect_response([chunk async for chunk in model.astream(ASK)]).text

    async def hundred() -> list[str]:
        return await asyncio.gather(*(one() for _ in range(100)))

    assert asyncio.run(hundred()) == ["here"] * 100


def test_many_threads_share_one_model(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(speech("here", wait=0.05))

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda _: collect_response(model.stream(ASK)).text, range(60)))

    assert answers == ["here"] * 60
    assert len({seen.connection for seen in faults.seen}) <= 20


def test_a_child_process_does_not_write_into_its_parents_connections(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(speech("x"))
    collect_response(model.stream(ASK))

    client._forget_background_loop()  # as after a fork
    collect_response(model.stream(ASK))

    assert len({seen.connection for seen in faults.seen}) == 2


def test_a_blocking_call_can_be_made_inside_an_event_loop(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(speech("x"))

    async def blocking() -> str:
        return collect_response(model.stream(ASK)).text

    assert asyncio.run(blocking()) == "x"


def test_every_chunk_before_a_failure_is_given_out(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(raw(head() + words("one two three")))
    texts: list[str] = []

    with pytest.raises(ProtocolError, match="in the middle"):
        texts.extend(chunk.text for chunk in model.stream(ASK) if isinstance(chunk, TextDelta))

    assert "".join(texts) == "one two three"


def test_a_closed_model_opens_anew(model: HttpModel, faults: FaultServer) -> None:
    faults.plays(speech("x"))
    collect_response(model.stream(ASK))
    model.close()

    assert collect_response(model.stream(ASK)).text == "x"
    assert len({seen.connection for seen in faults.seen}) == 2


def test_the_module_is_imported_without_httpx2() -> None:
    code = "import sys, taiwa.models.http_api.client; assert not {'httpx2', 'httpcore2', 'h11', 'anyio'} & set(sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True)
