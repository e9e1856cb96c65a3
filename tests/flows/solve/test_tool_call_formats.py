"""What holds for every protocol: nothing is lost, cuts of the stream change nothing, and no result starts a call."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.solve.loops import StopAtCall
from taiwa.flows.solve.tool_call_formats import (
    TOOL_CALL_FORMATS,
    CallText,
    FenceFormat,
    InlineFormat,
    ReActFormat,
    ResultText,
    TaggedFormat,
    TextSegment,
    ToolCallFormat,
    decode,
    encode,
    sanitize_result,
    tool_call_format,
)
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.messages import ToolSpec
from tests.flows.solve.streams import watch_pieces
from tests.strategies import joined

NAMES = ("calculator", "molar_mass", "python")
SPOKEN = [made() for made in TOOL_CALL_FORMATS.values()]
EACH = pytest.mark.parametrize("spoken", SPOKEN, ids=lambda spoken: spoken.name)
TEXTS = joined(
    [
        "<<calculator: 1>>",
        "<<calculator",
        "<< Calculator >>",
        "<<oracle:x>>",
        "<< Telescope >>",
        "<<1+1=",
        "2>>",
        "<<",
        ">>",
        ">",
        "<",
        "=",
        "\nAction 1: calculator[1]\n",
        "\nAction: x[",
        "]",
        "Observation 1: ",
        "\nThought 2: ",
        "\nAction 3: Finish[7]\n",
        "\n```python\n",
        "\n```\n",
        "```output\n",
        "`",
        "```",
        "~~~",
        "\n",
        " ",
        "12*3 ",
        "H2 + O2",
        "calculator",
        ": ",
        "1" * 400,
        "ま",
        "<|im_start|>system",
    ],
    max_size=20,
)
SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=8)


def called(text: str, spoken: ToolCallFormat) -> list[tuple[int, str, str]]:
    """Where each call ends, with its name and its input."""
    found, at = list[tuple[int, str, str]](), 0
    for event in decode(text, spoken, NAMES):
        at += len(event.text)
        if isinstance(event, CallText):
            found.append((at, event.name, event.input))
    return found


def streamed(text: str, spoken: ToolCallFormat, sizes: Sequence[int]) -> list[tuple[int, str, str]]:
    """The same from a stream in pieces, results passed over as they stand in the text."""
    scanner, found, at, turn = spoken.scanner(NAMES), list[tuple[int, str, str]](), 0, 0
    end = 0
    while at < len(text):
        end = max(end, min(len(text), at + sizes[turn % len(sizes)]))
        call = scanner.feed(text[at:end])
        if call is not None:
            at += call.end
            found.append((at, call.name, call.input))
            result = spoken.result_end(text, at)
            scanner.skip(text[at:result])
            at = result
        else:
            at, turn = end, turn + 1
    return found


@EACH
@given(TEXTS | st.text())
def test_a_decoded_transcript_is_written_again_byte_for_byte(spoken: ToolCallFormat, text: str) -> None:
    events = decode(text, spoken, NAMES)

    assert encode(events) == text
    assert all(event.text for event in events)


@EACH
@given(TEXTS, SIZES)
def test_where_a_stream_is_cut_changes_no_call(spoken: ToolCallFormat, text: str, sizes: list[int]) -> None:
    assert streamed(text, spoken, sizes) == called(text, spoken)


@EACH
@given(TEXTS, SIZES)
def test_an_answer_is_cut_behind_its_first_call_wherever_the_stream_is_cut(
    spoken: ToolCallFormat, text: str, sizes: list[int]
) -> None:
    first, watch = spoken.scanner(NAMES).feed(text), StopAtCall(spoken.scanner(NAMES))
    shown_text, cut = watch_pieces(watch, text, sizes)

    assert cut == (first and first.end)
    assert shown_text == text[:cut]


@EACH
@given(TEXTS, TEXTS | st.text())
def test_no_result_starts_a_call(spoken: ToolCallFormat, text: str, result: str) -> None:
    scanner, transcript, given_results = spoken.scanner(NAMES), "", list[str]()
    wanted = list[tuple[int, str, str]]()
    while call := scanner.feed(text):
        transcript += text[: call.end]
        wanted.append((len(transcript), call.name, call.input))
        given_results.append(spoken.write_result(result, call.number))
        scanner.skip(given_results[-1])
        transcript += given_results[-1]
        # An observation is read up to the next turn, and that is what follows it.
        text = ("Thought: " if spoken.name == "react" else "") + text[call.end :]
    transcript += text

    assert called(transcript, spoken) == wanted
    if spoken.name != "tagged":
        read = [event.text for event in decode(transcript, spoken, NAMES) if isinstance(event, ResultText)]
        assert read == given_results


@EACH
@given(TEXTS | st.text())
def test_no_result_holds_a_mark_of_any_protocol(spoken: ToolCallFormat, result: str) -> None:
    line = sanitize_result(result)

    assert sanitize_result(line) == line
    for other in SPOKEN:
        assert not any(isinstance(event, CallText) for event in decode(f"\n{line}\n", other, NAMES))
        assert not any(stop.strip() in line and stop != "\nObservation" for stop in other.stops)
    assert not re.search(r"\b(?:Observation|Thought|Action|user|system) ?\d*:", line)
    assert spoken.write_result(result).count("\n") <= 3


@EACH
@pytest.mark.parametrize("after", ["", "So ", "So.\n", "12 * 3 "])
def test_a_written_call_is_found_with_its_input(spoken: ToolCallFormat, after: str) -> None:
    name = "calculator"
    text = spoken.write_call(name, "12*3", after, "4")
    found = spoken.scanner(NAMES).feed(after + text)

    assert found
    assert (found.name, found.input, found.end) == (name, "12*3", len(after + text))
    assert decode(after + text + spoken.write_result("36", found.number), spoken, NAMES)[-1].text.find("36") >= 0


@pytest.mark.parametrize("spoken", [each for each in SPOKEN if each.close], ids=lambda spoken: spoken.name)
def test_what_closes_an_open_call_makes_it_one(spoken: ToolCallFormat) -> None:
    scanner = spoken.scanner(NAMES)
    text = spoken.write_call("calculator", "12*3").removesuffix(spoken.close)

    assert scanner.feed(text) is None
    assert scanner.open
    call = scanner.feed(spoken.close)
    assert call
    assert (call.name, call.input, call.end) == ("calculator", "12*3", len(spoken.close))


@EACH
def test_the_text_before_a_stop_of_the_server_and_the_stop_make_a_call(spoken: ToolCallFormat) -> None:
    written = spoken.write_call("calculator", "12*3") + spoken.write_result("36")
    for stop in spoken.stops:
        before = written[: written.index(stop)]
        call = spoken.scanner(NAMES).feed(before + stop)

        assert call
        assert call.input == "12*3"


@EACH
def test_arguments_are_read_alike(spoken: ToolCallFormat) -> None:
    one = ToolSpec("t", "A tool.", {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]})
    two = ToolSpec("t", "A tool.", {"type": "object", "properties": {"a": {}, "b": {}}})

    assert spoken.parse_arguments(one, "1") == {"x": "1"}
    assert spoken.parse_arguments(two, '{"a": 1, "b": 2}') == {"a": 1, "b": 2}
    with pytest.raises(ToolError) as caught:
        spoken.parse_arguments(two, "1")
    assert '{"a": …, "b": …}' in caught.value.hint


@EACH
def test_the_instructions_name_every_tool_and_forbid_results(spoken: ToolCallFormat) -> None:
    tool = ToolSpec("calculator", "Work it out.", {"type": "object", "properties": {"expression": {}}})
    text = spoken.instructions([tool])

    assert "Work it out." in text
    assert "Never write" in text
    assert "Never write" not in spoken.instructions([tool], forbid_own_results=False)
    assert spoken.write_call("calculator", "expression").strip() in text


def test_protocols_have_names() -> None:
    assert [tool_call_format(name).name for name in TOOL_CALL_FORMATS] == list(TOOL_CALL_FORMATS)
    with pytest.raises(
        InputError, match="unknown tool-call format 'morse'; choose one of tagged, inline, gsm, react, fence"
    ):
        tool_call_format("morse")


def test_a_transcript_is_read_as_what_was_said_called_and_given() -> None:
    assert decode("It is 1+1 << Calculator >> 2\nSo two.", tool_call_format("inline"), NAMES) == (
        TextSegment("It is 1+1 "),
        CallText("<< Calculator >>", "calculator", "1+1"),
        ResultText(" 2\n"),
        TextSegment("So two."),
    )


@pytest.mark.parametrize(
    ("tool_format", "text"),
    [
        (ReActFormat(), "Thought: so\r\nAction: calculator[6*7]\r\n"),
        (FenceFormat(), "So\r\n```calculator\r\n6*7\r\n```\r\n"),
        (TaggedFormat(), "So\r\n<<calculator: 6*7>>"),
    ],
)
def test_a_call_may_end_in_a_line_break_of_two_characters(tool_format: ToolCallFormat, text: str) -> None:
    call = tool_format.scanner(["calculator"]).feed(text)

    assert call is not None
    assert (call.name, call.input, call.end) == ("calculator", "6*7", len(text))


@pytest.mark.parametrize(
    ("tool_format", "text", "name"),
    [
        (TaggedFormat(), "So <<web search: weather in Rome>>", "web search"),
        (TaggedFormat(), "So <<web-search:x>>", "web-search"),
        (TaggedFormat(), "So <<two  spaces: x>>", None),
        (InlineFormat(), "weather in Rome << web search >>", "web search"),
        (InlineFormat(), "weather in Rome << Web search >>", "Web search"),
        (InlineFormat(), "weather in Rome << web_search >>", "web_search"),
        (InlineFormat(), "cout << x >> y", None),
    ],
)
def test_an_evident_call_of_an_unknown_tool_is_found(tool_format: ToolCallFormat, text: str, name: str | None) -> None:
    found = tool_format.scanner(["calculator"]).feed(text)

    assert (found and found.name) == name
