"""The completions protocol: one text goes out as it is, and its continuation comes back."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.solve.solve import SolveOptions, solve
from taiwa.flows.solve.tool_call_formats import TaggedFormat
from taiwa.kernel.errors import ConfigError, InputError, ProtocolError, UnsupportedError
from taiwa.kernel.messages import (
    Chunk,
    JsonSchema,
    Message,
    Regex,
    Request,
    Sampling,
    StreamEnd,
    Text,
    TextDelta,
    ToolSpec,
    Usage,
    assistant,
    collect_response,
    system,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.openai_chat import DEFAULT_MAX_TOKENS, TURN_STOP, TextCompletions, prompt
from taiwa.models.providers import open_model, resolve
from taiwa.settings import load
from taiwa.tools.registry import builtin_tools
from tests.peers.faults import FaultServer, head, raw


class PlainFormat(TaggedFormat):
    """The format for a prompt that shows by examples how calls are written."""

    def instructions(self, tools: Sequence[ToolSpec], *, forbid_own_results: bool = True) -> str:
        return ""


LITERAL = "Q: If there are 3 cars and 2 more arrive, how many are there?\nA:"
ASK = Request((user(LITERAL),))


def codec(name: str = "http://127.0.0.1:1/v1#base?wire=completions") -> TextCompletions:
    found = resolve(name).codec
    assert isinstance(found, TextCompletions)
    return found


def body(request: Request, name: str = "http://127.0.0.1:1/v1#base?wire=completions") -> dict:
    call = codec(name).encode(request)
    assert call.path == "completions"
    return json.loads(call.body)


def event(text: str, finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "text": text, "finish_reason": finish, **more}
    return b"data: " + json.dumps({"model": "base-1", "choices": [choice]}).encode() + b"\n\n"


USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}\n\ndata: [DONE]\n\n'


def decode(*pieces: bytes) -> list[Chunk]:
    decoder = codec().decoder("text/event-stream")
    chunks = [chunk for piece in pieces for chunk in decoder.feed(piece)]
    return [*chunks, *decoder.close()]


def test_a_literal_prompt_is_sent_byte_for_byte() -> None:
    sent = body(ASK)

    assert sent["prompt"] == LITERAL
    assert (sent["model"], sent["stream"], sent["max_tokens"]) == ("base", True, DEFAULT_MAX_TOKENS)
    assert "messages" not in sent
    assert "stop" not in sent


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(st.characters(exclude_categories=["Cs"])))
def test_the_prefix_of_the_answer_ends_the_prompt(text: str, prefix: str) -> None:
    assert prompt(Request((user(text),), prefix=prefix)) == text + prefix


def test_instructions_stand_before_the_text_without_a_name() -> None:
    assert prompt(Request((system("Be brief."), user("Hi")))) == "Be brief.\n\nHi"


def test_turns_of_a_dialogue_have_names_and_a_stop() -> None:
    request = Request((system("Be brief."), user("Hi"), assistant("Hello."), user("Bye")), prefix="See")

    sent = body(request)

    assert sent["prompt"] == "Be brief.\n\nUser: Hi\n\nAssistant: Hello.\n\nUser: Bye\n\nAssistant: See"
    assert sent["stop"] == [TURN_STOP]


def test_sampling_stops_and_logprobs_have_their_fields() -> None:
    sampling = Sampling(0.5, 0.9, 7, 3)

    sent = body(Request((user("x"),), stop=("\n\n",), sampling=sampling, top_logprobs=2), "vllm:base?wire=completions")

    assert (sent["temperature"], sent["top_p"], sent["max_tokens"], sent["seed"]) == (0.5, 0.9, 7, 3)
    assert (sent["stop"], sent["logprobs"]) == (["\n\n"], 2)


@pytest.mark.parametrize(
    "request_",
    [
        Request((user("x"),), tools=(ToolSpec("t", "", {}),)),
        Request((user("x"),), constraint=JsonSchema({"type": "object"})),
        Request((user("x"),), stop=("a", "b", "c", "d", "e")),
    ],
    ids=["tools", "schema", "stops"],
)
def test_what_the_protocol_lacks_is_refused(request_: Request) -> None:
    with pytest.raises(UnsupportedError):
        body(request_)


def test_a_request_without_a_message_is_refused() -> None:
    with pytest.raises(InputError, match="no message"):
        body(Request(()))


def test_a_server_with_grammars_takes_a_constraint() -> None:
    sent = body(Request((user("x"),), constraint=Regex("[ab]{2}")), "llamacpp:base?wire=completions")

    assert "grammar" in sent


def test_a_stream_is_read_with_its_usage_and_its_end() -> None:
    chunks = decode(event(" There are"), event(" 5.", "stop", stop_reason="\n\n"), USAGE)

    *_, end = chunks
    assert collect_response(chunks).text == " There are 5."
    assert isinstance(end, StreamEnd)
    assert (end.finish, end.stop, end.usage, end.model) == ("stop", "\n\n", Usage(9, 4), "base-1")


def test_an_answer_in_one_piece_is_read() -> None:
    whole = {
        "choices": [{"text": " 5.", "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    }

    chunks = decode(json.dumps(whole).encode())

    assert collect_response(chunks).text == " 5."
    assert collect_response(chunks).finish == "length"


def test_an_answer_in_the_form_of_chat_completions_is_read_and_one_without_a_text_is_none() -> None:
    assert collect_response(decode(b'{"choices": [{"message": {"content": "5"}}]}')).text == "5"
    with pytest.raises(ProtocolError, match="without a message or text"):
        decode(b'{"choices": [{"index": 0}]}')


def test_log_probabilities_are_read_in_both_forms() -> None:
    legacy = {"tokens": [" 5", "."], "token_logprobs": [-0.1, None], "top_logprobs": [{" 5": -0.1, " 6": -2.0}, None]}
    chat = {"content": [{"token": " 5", "logprob": -0.1, "top_logprobs": []}]}

    [first] = collect_response(decode(event(" 5.", "stop", logprobs=legacy))).decoding.logprobs
    [other] = collect_response(decode(event(" 5", "stop", logprobs=chat))).decoding.logprobs

    assert (first.token, first.logprob, first.top_logprobs) == (" 5", -0.1, ((" 5", -0.1), (" 6", -2.0)))
    assert (other.token, other.logprob) == (" 5", -0.1)


@pytest.mark.parametrize("name", ["openai:gpt-3.5-turbo-instruct", "openai:davinci-002"])
def test_models_without_chat_use_the_protocol_by_themselves(name: str) -> None:
    assert isinstance(resolve(name).codec, TextCompletions)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("anthropic:claude-sonnet-4-5?wire=completions", "Anthropic has no completions protocol"),
        ("gguf:x.gguf?wire=messages", "unknown wire 'messages'; choose one of chat, completions"),
    ],
)
def test_a_model_without_the_protocol_is_refused(name: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        open_model(resolve(name), load({}, {"HOME": "/"}, Path("/none/config.yaml")))


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


def test_solving_continues_the_literal_text_behind_each_result(server: FaultServer) -> None:
    calculator = builtin_tools()["calculator"]
    first = event(" 3 + 2 = <<calculator: 3 + 2") + event(">> 6, no", "stop") + USAGE
    server.plays(raw(head() + first), raw(head() + event("The answer is 5.", "stop") + USAGE))
    model = HttpModel(resolve(f"{server.base_url}#base?wire=completions"))
    options = SolveOptions(system="", tool_format=PlainFormat())

    done = Runtime(model, tools=[calculator]).run(solve(LITERAL, [calculator.spec], options))

    assert [seen.path for seen in server.seen] == ["/v1/completions"] * 2
    prompts = [json.loads(seen.body)["prompt"] for seen in server.seen]
    assert prompts == [LITERAL, f"{LITERAL} 3 + 2 = <<calculator: 3 + 2>> 5\n"]
    assert (done.tool_mode, done.text) == ("prefill", " 3 + 2 = <<calculator: 3 + 2>> 5\nThe answer is 5.")


def test_a_text_is_shown_as_it_comes(server: FaultServer) -> None:
    server.plays(raw(head() + event(" one") + event(" two", "stop") + USAGE))

    chunks = list(HttpModel(resolve(f"{server.base_url}#base?wire=completions")).stream(ASK))

    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == " one two"


def test_the_parts_of_a_message_are_apart_as_on_the_chat_wire() -> None:
    message = Message("system", (Text("Be brief."), Text("<state>\n{}", transient=True)))

    assert prompt(Request((message, user("Hi")))) == "Be brief.\n\n<state>\n{}\n\nHi"
