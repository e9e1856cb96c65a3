"""The calls that the codecs find in recorded texts are those that a plain reading of the record finds, one by one."""

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from taiwa.flows.solve.rationale import SolveLimits
from taiwa.flows.solve.solve import SolveOptions, solve
from taiwa.flows.solve.tool_call_formats import (
    CallText,
    FenceFormat,
    GsmFormat,
    InlineFormat,
    ReActFormat,
    ResultText,
    ScanEvent,
    TaggedFormat,
    TextSegment,
    ToolCallFormat,
    decode,
    encode,
)
from taiwa.kernel.messages import Capability, Request, ToolResult, ToolSpec
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json
from taiwa.models.scripted import ALL_CAPABILITIES, scripted_model


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    text = (folder / "replay_tools" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def solutions(folder: Path) -> list[str]:
    parts = [part for row in rows(folder, "gsm8k_gpt3_calculator") for part in row.values()]
    return [part["solution"] for part in parts if isinstance(part, dict)]


def calls(events: tuple[ScanEvent, ...]) -> list[tuple[str, str]]:
    return [(event.name, event.input) for event in events if isinstance(event, CallText)]


def results(events: tuple[ScanEvent, ...]) -> list[str]:
    return [event.text for event in events if isinstance(event, ResultText)]


def test_the_calculator_calls_of_gsm8k(shared_data: Path) -> None:
    for text in solutions(shared_data):
        events = decode(text, GsmFormat(), ())
        closed = [call for call, after in pairwise(events) if isinstance(after, ResultText)]
        wanted = re.findall(r"<<([^<>=\n]+)=([^<>\n]*>>)", text)

        assert encode(events) == text
        assert [call.input for call in closed if isinstance(call, CallText)] == [given.strip() for given, _ in wanted]
        assert results(events) == [result for _, result in wanted]


@pytest.mark.parametrize("name", ["tora_tora-70b-v1.0_gsm8k", "tora_tora-code-34b-v1.0_gsm8k"])
def test_the_programs_of_tora(shared_data: Path, name: str) -> None:
    texts = [text for row in rows(shared_data, name) for text in row["code"]]
    for text in texts:
        events = decode(text, FenceFormat(), ["python"])

        assert encode(events) == text
        assert calls(events) == [
            ("python", code) for code in re.findall(r"^```python\n(.*?)\n```\n", text, re.DOTALL | re.MULTILINE)
        ]
        assert results(events) == re.findall(r"^```output\n.*?\n```\n?", text, re.DOTALL | re.MULTILINE)
    assert texts


def test_the_actions_of_react(shared_data: Path) -> None:
    odd = 0
    for row in rows(shared_data, "react_fever_text-davinci-002"):
        events = decode(row["raw"], ReActFormat(), ["Search", "Lookup"])
        written = [step["action"] for step in row["steps"]]
        lines = [f"Action {place}: {each}" for place, each in enumerate(written, 1)]
        wanted = [
            each
            for each, line in zip(written, lines, strict=True)
            if re.fullmatch(r"\w+\[[^\n]*\]", each) and line in row["raw"].splitlines()
        ]

        assert encode(events) == row["raw"]
        assert [f"{event.name}[{event.input}]" for event in events if isinstance(event, CallText)] == [
            re.sub(r"\[\s*(.*?)\s*\]$", r"[\1]", each) for each in wanted
        ]
        assert len(results(events)) == len(wanted)
        odd += len(written) - len(wanted)
    assert odd


@pytest.mark.parametrize("numbered", [True, False])
def test_an_action_ends_where_its_line_ends(shared_data: Path, numbered: bool) -> None:
    for row in rows(shared_data, "reflexion_react_hotpotqa"):
        raw = row["raw"] if numbered else re.sub(r"^(Action|Observation) \d+:", r"\1:", row["raw"], flags=re.MULTILINE)
        events = decode(raw, ReActFormat(), ["search", "lookup"])
        lines = re.findall(r"^Action(?: \d+)?: .*\n", raw, re.MULTILINE)

        assert encode(events) == raw
        assert [event.text for event in events if isinstance(event, CallText)] == lines
        assert [event.final for event in events if isinstance(event, CallText)] == ["Finish[" in line for line in lines]


def test_the_actions_of_fireact_are_answered_in_the_next_message(shared_data: Path) -> None:
    for row in rows(shared_data, "fireact_ft-gpt-3.5_hotpotqa"):
        for message in row["traj"]:
            if message["role"] == "assistant":
                scanner = ReActFormat().scanner(["search"])
                assert scanner.feed(message["content"]) is None
                assert scanner.open
                call = scanner.feed(ReActFormat().close)
                assert call
                assert message["content"].endswith(f"[{call.input}]")


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        (TaggedFormat(), r"<<calculator: \1>>\2"),
        (InlineFormat(), r" = \1 << Calculator >> \2\n"),
        (GsmFormat(), r"<<\1=\2>>"),
    ],
)
def test_the_same_solutions_in_another_protocol_have_the_same_calls(
    shared_data: Path, spoken: ToolCallFormat, written: str
) -> None:
    """What real models calculate survives the other ways to write it, the words around it included."""
    form, checked = re.compile(r"<<([-+*/().0-9]*[0-9)])=([^<>\n]*)>>"), 0
    for text in solutions(shared_data)[::4]:
        found = calls(decode(form.sub(written, text), spoken, ["calculator"]))
        wanted = [("calculator", each) for each, _ in form.findall(text)]
        if "<<" not in form.sub("", text):
            assert found == wanted
            checked += len(wanted)
    assert checked > 500


def test_words_of_real_solutions_hold_no_call_of_another_protocol(shared_data: Path) -> None:
    for text in solutions(shared_data):
        for spoken in (TaggedFormat(), InlineFormat(), ReActFormat(), FenceFormat()):
            assert decode(text, spoken, ["calculator", "python"]) == (TextSegment(text),)


class Recorded:
    """Gives the recorded results in turn, whatever it is asked."""

    def __init__(self, name: str, results: list[str]) -> None:
        self.spec = ToolSpec(name, "Look it up.", {"type": "object", "properties": {"input": {"type": "string"}}})
        self._results = results

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        return ToolResult(self._results.pop(0), self.spec.name)


def given(text: str, spoken: ToolCallFormat) -> tuple[str, str] | None:
    """What a result says and how we put it in; None where it stands there in a form that we never write."""
    bare = re.sub(r"\A```output\n|\AObservation \d+: |>>\Z|\n```\n\Z", "", text).strip()
    mark = re.match(r"Observation (\d+):", text)
    return (bare, spoken.write_result(bare, mark[1] if mark else "")) if bare else None


def as_put_in(text: str, spoken: ToolCallFormat, names: list[str]) -> tuple[str, list[str]]:
    """A recorded text up to its last action, with every result as it would be put in; and what the results say."""
    events, said, before = decode(text, spoken, names), list[str](), set[str]()
    written = list[str]()
    for event, after in zip(events, (*events[1:], None), strict=True):
        if isinstance(event, CallText) and event.final:
            return "".join([*written, event.text]), said
        # A call of before is answered from memory, and a call without a recorded result ends what can be played.
        if isinstance(event, CallText) and (event.input in before or not isinstance(after, ResultText)):
            break
        if isinstance(event, CallText):
            before.add(event.input)
        found = given(event.text, spoken) if isinstance(event, ResultText) else None
        said += [found[0]] if found else []
        written.append(found[1] if found else event.text)
    return "".join(written), said


CORPORA: list[tuple[ToolCallFormat, list[str], str]] = [
    (GsmFormat("search"), ["search"], "gsm8k_gpt3_calculator"),
    (FenceFormat(), ["python"], "tora_tora-70b-v1.0_gsm8k"),
    (ReActFormat(), ["search"], "reflexion_react_hotpotqa"),
    (ReActFormat(), ["search"], "react_fever_text-davinci-002"),
]


@pytest.mark.parametrize(("spoken", "names", "corpus"), CORPORA, ids=lambda each: each if isinstance(each, str) else "")
@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize("capabilities", [ALL_CAPABILITIES, ALL_CAPABILITIES - {"stop"}], ids=["stops", "no stops"])
def test_a_model_that_writes_a_recorded_text_is_interrupted_where_the_record_was(
    shared_data: Path,
    spoken: ToolCallFormat,
    names: list[str],
    corpus: str,
    chunk: int,
    capabilities: frozenset[Capability],
) -> None:
    """It goes on to the end each time, recorded results included, and what comes out is the record."""
    texts = solutions(shared_data)[::20] if corpus.startswith("gsm") else recorded_texts(rows(shared_data, corpus)[::4])
    for text in texts:
        wanted, said = as_put_in(text.replace("Lookup[", "Search["), spoken, names)
        model = scripted_model(
            *[lambda asked, wanted=wanted: rest(wanted, asked)] * 20, chunk=chunk, capabilities=capabilities
        )
        tool = Recorded(names[0], [*said])
        program = solve(
            "?",
            [tool.spec],
            SolveOptions(tool_format=spoken, tool_mode="prefill", answer_by=(), limits=SolveLimits(max_tool_calls=20)),
        )
        found = Runtime(model, tools=[tool]).run(program)

        assert found.text == wanted
        assert [call.result.text for call in found.calls] == said
    assert texts


def recorded_texts(given: list[dict[str, Any]]) -> list[str]:
    return [text for row in given for text in (row["code"] if "code" in row else [row["raw"]])]


def rest(wanted: str, asked: Request) -> str:
    assert wanted.startswith(asked.prefix)
    return wanted[len(asked.prefix) :]
