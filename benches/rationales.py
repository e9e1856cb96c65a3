"""Input tokens of rationales with tool calls, with a real vocabulary: the cost of a request after every call, and the savings by
caches.

The questions are the bundled worked examples, each answered as written, with other examples as shots. The model is scripted; what
is counted is the input that a server receives. A local server keeps what it has read of the previous request; a provider's cache
holds the prefixes of earlier requests, from 1,024 tokens on, in steps of 128.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benches.measure import Subject
from benches.tokens import PrefixCache, encoder
from taiwa.apps.examples import (
    ExampleCall,
    WorkedExample,
    built_in_examples,
    evaluate_parts,
    render,
    results,
    select_examples,
)
from taiwa.flows.solve.rationale import ToolMode
from taiwa.flows.solve.solve import SolveOptions, solve
from taiwa.flows.solve.tool_call_formats import tool_call_format
from taiwa.kernel.messages import Message, Request, Response, Text, ToolCall
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json, canonical, record
from taiwa.models.scripted import scripted_model
from taiwa.tools.registry import builtin_tools

SHOTS = (0, 5, 20)
WAYS: tuple[ToolMode, ...] = ("prefill", "stop", "native")
MOST_TIMES = 1.05
TAGGED = tool_call_format("tagged")
RESULT_OF = results(builtin_tools().values(), TAGGED)


@dataclass
class Bill:
    """Input tokens of all questions: of all requests, of the last request of each, of cached prefixes, and of prefixes shared
    with the previous request of the same question.
    """

    questions: int = 0
    requests: int = 0
    tokens: int = 0
    once: int = 0
    local: int = 0
    provider: int = 0
    repeated: int = 0


def replies(worked: WorkedExample, way: ToolMode) -> Iterator[str | Response]:
    """Yield the model's replies for an example: the text up to and including each call, and the text after the last."""
    words = ""
    for part in evaluate_parts(worked, RESULT_OF):
        if isinstance(part, str):
            words += part
        elif way == "native":
            yield called(words, part)
            words = ""
        else:
            yield words + TAGGED.write_call(part.tool, part.input, words)
            words = ""
    yield words or "Done."


def called(words: str, step: ExampleCall) -> Response:
    """Return a function call."""
    arguments = TAGGED.parse_arguments(builtin_tools()[step.tool].spec, step.input)
    call = ToolCall(step.tool, canonical(arguments).decode())
    spoken = (Text(words),) if words else ()
    return Response(Message("assistant", (*spoken, call)), "tool_calls")


def shots(worked: WorkedExample, number: int) -> tuple[Message, ...]:
    """Return other examples, in the same order for every question, without the question itself."""
    chosen = [each for each in select_examples(built_in_examples(), len(built_in_examples())) if each.id != worked.id][
        :number
    ]
    return tuple(message for each in chosen for message in render(each, TAGGED, RESULT_OF))


def sent(request: Request) -> list[int]:
    """Return the tokens of a request: tools and messages in order, each after a start token, and the prefix."""
    tokens: list[int] = []
    for tool in request.tools:
        tokens += encoder()(
            json.dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        )
    for message in request.messages:
        tokens.append(-1)
        for part in message.parts:
            tokens += encoder()(part.text if isinstance(part, Text) else written(record(part)))
    return [*tokens, -2, *encoder()(request.prefix)] if request.prefix else tokens


def written(part: Json) -> str:
    return json.dumps(part, ensure_ascii=False)


def shared(one: list[int], other: list[int]) -> int:
    """Return the length of the longest common prefix of two requests."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def answered(questions: Iterable[WorkedExample], way: ToolMode, number: int) -> Bill:
    """Answer all questions in sequence."""
    bill, held, before = Bill(), PrefixCache(), list[int]()
    specs = [tool.spec for tool in builtin_tools().values()]
    for worked in questions:
        model = scripted_model(*replies(worked, way))
        program = solve(
            worked.question, specs, SolveOptions(tool_mode=way, shots=shots(worked, number), answer_by=("line",))
        )
        found = Runtime(model, tools=tuple(builtin_tools().values())).run(program)
        assert len(found.calls) == sum(isinstance(part, ExampleCall) for part in worked.parts), (worked.id, found)
        bill.questions += 1
        for turn, request in enumerate(model.requests):
            tokens = sent(request)
            bill.repeated += shared(before, tokens) if turn else 0
            bill.requests += 1
            bill.tokens += len(tokens)
            bill.local += shared(before, tokens)
            bill.provider += held.shared(tokens)
            before = tokens
        bill.once += len(before)
    return bill


def main() -> None:
    subject = Subject(
        "rationales",
        "input tokens of a question answered with tool calls (tekken vocabulary)",
        peers=("mistral_common",),
    )
    for number in SHOTS:
        for way in WAYS:
            bill = answered(built_in_examples(), way, number)
            what, each = f"{number} shots, {way}", bill.questions
            note = (
                f"{bill.requests / each:.1f} requests a question, {bill.tokens / bill.once:.2f} times its last request"
            )
            subject.row(f"{what}: sent", bill.tokens / each, "tokens", note)
            left = (bill.tokens - bill.local) / each
            subject.row(
                f"{what}: not cached by a local server", left, "tokens", f"{left / (bill.tokens / each):.0%} of it"
            )
            left = (bill.tokens - bill.provider) / each
            subject.row(
                f"{what}: not in a provider's cache", left, "tokens", f"{left / (bill.tokens / each):.0%} of it"
            )
            times = (bill.tokens - bill.repeated) / bill.once
            subject.target(
                f"{what}: tokens read in all requests of a question, against its last request", times, MOST_TIMES, "x"
            )
    subject.write()
