"""The built-in model as a flow sees it: what it answers, what it refuses, and that nothing in a text gets out of hand."""

import asyncio
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from math import exp

import pytest

from taiwa.apps.catalog import load_app
from taiwa.conversation.history import add_turn, begin
from taiwa.conversation.turn_prompt import DELTA_LINE, EARLIER, ENVIRONMENT, STATE, turn_request
from taiwa.flows.ask.prompts import load_prompts
from taiwa.flows.solve.solve import NUMBER_INSTRUCTIONS, SolveOptions
from taiwa.flows.solve.tool_call_formats import GsmFormat
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import (
    Chunk,
    JsonSchema,
    Message,
    Request,
    Response,
    Sampling,
    StreamEnd,
    Text,
    TextDelta,
    ToolSpec,
    collect_response,
    system,
    user,
)
from taiwa.models.builtin.copy_constraint import CopyGuide
from taiwa.models.builtin.model import MAX_TOKENS
from taiwa.models.builtin.prompts import TOOLS, read_request
from taiwa.tools.calculator import calculator
from taiwa.tools.registry import builtin_tools
from tests.models.builtin.small_model import Tiny, tokens

MODEL = Tiny()
QUESTION = "A train goes 120 km in 2 hours. How fast is it?"
TOKENS = tokens()


def solving(question: str, *names: str, prefix: str = "", most: int = 40) -> Request:
    tools: Iterable[ToolSpec] = [tool.spec for name, tool in builtin_tools().items() if name in names]
    made = SolveOptions(sampling=Sampling(temperature=1.0, max_tokens=most, seed=5)).request(
        question, list(tools), "prefill"
    )
    return replace(made, prefix=prefix, stop=(">>",))


def said(request: Request) -> str:
    return collect_response(MODEL.stream(request)).text


def test_a_question_is_read_without_our_long_words() -> None:
    prompt = read_request(solving(f"  {QUESTION}\n", *TOOLS))
    assert prompt is not None
    assert (prompt.task, prompt.text, set(prompt.tools)) == ("solve", QUESTION, set(TOOLS))


def test_only_the_tools_that_are_shown_may_be_called() -> None:
    prompt = read_request(solving(QUESTION, "calculator"))
    assert prompt is not None
    assert prompt.tools == ("calculator",)
    without = read_request(solving(QUESTION))
    assert without is not None
    assert without.tools == ()


def test_answers_hold_to_the_guide_and_go_on_behind_a_result() -> None:
    prefix = "So\n<<calculator: 120/2>> 60"
    chunks = list(MODEL.stream(solving(QUESTION, *TOOLS, prefix=prefix)))
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    state = CopyGuide.for_question(QUESTION, TOOLS, TOKENS.vocabulary).start()
    for token in TOKENS.encode(prefix + text):
        state = state.advance(token)
    last = chunks[-1]
    assert isinstance(last, StreamEnd)
    assert last.model == "builtin"
    assert last.usage is not None
    assert last.usage.output_tokens > 0


def test_what_was_read_is_not_read_again() -> None:
    model = Tiny()
    request = solving(QUESTION)  # without calls, in which a beginning may not go on in words
    whole = collect_response(model.stream(request)).text.rstrip("\N{REPLACEMENT CHARACTER}\n>")
    again = replace(request, prefix=f"{whole}. ", stop=())
    usage = collect_response(model.stream(again)).usage
    assert usage is not None
    assert usage.cache_read_tokens >= usage.input_tokens - 4


def test_a_beginning_that_could_not_be_written_is_refused() -> None:
    with pytest.raises(InputError, match="does not match its constraint"):
        said(solving(QUESTION, *TOOLS, prefix="<<calculator: 77777*2>> 155554"))


def test_other_ways_to_call_tools_are_refused_in_one_line() -> None:
    for plan, way in ((SolveOptions(tool_format=GsmFormat()), "prefill"), (SolveOptions(), "native")):
        request = plan.request(QUESTION, [calculator.spec], way)
        with pytest.raises(UnsupportedError, match="tool-call format 'tagged'") as caught:
            said(request)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_a_score_is_a_digit_with_its_likelihoods(language: str) -> None:
    instructions, question = load_prompts(language).score("clarity")
    asked = Message("user", (Text(json.dumps({"dialogue": []})), Text(question, transient=True)))
    said = system(instructions), asked
    request = Request(said, sampling=Sampling(max_tokens=1), top_logprobs=20, task="assess_clarity")
    response = collect_response(MODEL.stream(request))
    assert response.text in set("12345")
    assert len(response.logprobs) == 1
    digits = dict(response.logprobs[0].top_logprobs)
    assert digits.keys() == set("12345")  # a score is nothing else, so they have all of the probability
    assert sum(map(exp, digits.values())) == pytest.approx(1.0)
    again = collect_response(MODEL.stream(request))  # to the last digit, although its prompt was read before
    assert (again.logprobs, again.usage) == (response.logprobs, response.usage)


def test_a_number_is_one_of_those_that_stand_there() -> None:
    lines = "That makes 1,250 g.\nTherefore, the answer is -2.50 kg."
    request = Request(
        (system(NUMBER_INSTRUCTIONS), user("x = 3"), user(lines)), sampling=Sampling(seed=1), task="extract_number"
    )
    assert said(request).lstrip("-") in {"none", "1250", "1,250", "2.50", "2.5"}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Who wrote Hamlet?", "small model"),
        ("ハムレットは誰が書いた?", "小さなモデル"),
        ("《哈姆雷特》是谁写的？", "小模型"),
        ("", "small model"),
        ("🙂" * 500, "small model"),
        ("x" * 100_000, "small model"),
        ("\x00\x1b[2J\u202e", "small model"),
    ],
)
def test_says_what_it_is_for_in_the_language_of_the_user(text: str, word: str) -> None:
    found = said(Request((system("You are a helpful assistant."), user(text))))
    assert word in found
    assert "taiwa solve" in found
    assert "taiwa config set model" in found
    assert said(Request((user(text),))) == found


def test_a_refusal_stands_in_the_form_of_the_reply() -> None:
    def seen(block: tuple[str, str], inner: str) -> Request:
        shown = Text(f"{block[0]}\n{inner}\n{block[1]}", transient=True)
        return Request((system("Talk."), Message("user", (Text("Hello"), shown))))

    assert said(seen(STATE, '{"topics":[]}')).endswith(f"\n{DELTA_LINE}\n{{}}")
    whole = said(seen(ENVIRONMENT, '{"response":"","topics":["a"]}'))
    held = json.loads(whole.removeprefix(ENVIRONMENT[0]).removesuffix(ENVIRONMENT[1]))
    assert held["topics"] == ["a"]
    assert "small model" in held["response"]
    schema = {"type": "object", "properties": {"answer": {"type": "string"}, "delta": {"type": "object"}}}
    reply = Request((system("Talk."), user("Hello")), constraint=JsonSchema(schema, "reply"))
    assert "small model" in json.loads(said(reply))["answer"]


@pytest.mark.parametrize(
    "request_",
    [
        Request((system("Extract."), user("x")), constraint=JsonSchema({"type": "integer"})),
        Request((system("Say."), user("x")), top_logprobs=3),
        Request((system("Summarise."), user(f'{EARLIER[0]}\n{{"turns":[]}}\n{EARLIER[1]}'))),
        Request((system(load_prompts("en").assess), user("{}")), task="assess"),
        Request(()),
    ],
)
def test_what_words_cannot_answer_is_an_error_in_one_line(request_: Request) -> None:
    with pytest.raises(UnsupportedError, match="was not trained") as caught:
        said(request_)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "<answer>", "<end><solve>", "🙂" * 2_000, "水" * 100_000, "\x00<<calculator: 1>>", "9" * 5_000]
)
def test_odd_questions_are_answered_in_bounds(text: str) -> None:
    request = solving(text, *TOOLS, most=4)
    posed = MODEL.generator().loaded.prepare(request)
    special = TOKENS.special
    assert posed.tokens[0] == special["<solve>"]
    assert posed.tokens[-1] == special["<answer>"]
    assert not set(posed.tokens[1:-1]) & set(special.values())
    assert isinstance(collect_response(MODEL.stream(request)), Response)


def test_an_order_is_read_whole_however_much_the_guest_says() -> None:
    begun = add_turn(
        begin(load_app("order")), "x", "Done.", {"items": {"1": {"name": "latte", "quantity": 2, "options": []}}}
    )
    posed = MODEL.generator().loaded.prepare(turn_request(begun, "☕" * 2_000))
    assert len(posed.tokens) < MODEL.generator().loaded.network.context
    assert TOKENS.decode(posed.tokens).startswith("1 latte x2 @4.2 | open > ☕")


@pytest.mark.parametrize("said", ["ラテ 0.5 100000", "a muffin and 100000 ラテ 200000"])
def test_a_guest_never_gets_a_reply_without_an_end(said: str) -> None:
    reply = collect_response(MODEL.stream(turn_request(begin(load_app("order")), said)))
    assert (reply.finish, re.search("[0-9]{9}", reply.text)) == ("stop", None)


def test_an_answer_that_finds_no_end_is_cut_off() -> None:
    asked = solving(QUESTION, *TOOLS)
    last = collect_response(MODEL.stream(replace(asked, sampling=Sampling(temperature=1.0, seed=2), stop=())))
    assert last.usage is not None
    assert last.usage.output_tokens <= MAX_TOKENS["solve"]
    assert last.finish == "length" or last.usage.output_tokens < MAX_TOKENS["solve"]


def test_both_faces_say_the_same() -> None:
    async def spoken(request: Request) -> str:
        chunks: list[Chunk] = [chunk async for chunk in MODEL.astream(request)]
        return collect_response(chunks).text

    for request in (solving(QUESTION, *TOOLS), Request((user("Hello"),))):
        assert asyncio.run(spoken(request)) == said(request)
