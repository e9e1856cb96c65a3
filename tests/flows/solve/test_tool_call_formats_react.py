import pytest

from taiwa.flows.solve.tool_call_formats import CallMatch, CallText, ReActFormat, ResultText, TextSegment, decode
from taiwa.kernel.messages import ToolSpec

NAMES = ("calculator", "molar_mass", "search")


def first(text: str) -> CallMatch | None:
    return ReActFormat().scanner(NAMES).feed(text)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("Thought 1: hm.\nAction 1: Search[Paramore]\n", ("search", "Paramore", "1")),
        ("Action: calculator[1+1]\n", ("calculator", "1+1", "")),
        ("Action 12: Molar mass[ [Fe(CN)6]4- ]  \n", ("molar_mass", "[Fe(CN)6]4-", "12")),
        ("  Action 2 : search[a]\nObservation", ("search", "a", "2")),
        ("Action 3：search[東京]\n", ("search", "東京", "3")),
        ("Action 3: Telescope[moon]\n", ("Telescope", "moon", "3")),
        ("Action 3: search[]\n", ("search", "", "3")),
    ],
)
def test_an_action_is_a_whole_line(text: str, call: tuple[str, str, str]) -> None:
    found = first(text)

    assert found
    assert (found.name, found.input, found.number) == call
    assert not found.final


@pytest.mark.parametrize(
    "text",
    [
        "Action 1: search[x]",
        "Action 1: search[x] on another site\n",
        "Action 1: \n\nsearch[x]\n",
        "Action 1: search\n",
        "My Action 1: search[x]\n",
        "```\nAction 1: search[x]\n```\n",
        f"{'x' * 3000}Action 1: search[x]\n",
        f"Action 1: search[{'x' * 1001}]\n",
    ],
)
def test_what_only_looks_like_an_action_is_none(text: str) -> None:
    assert first(text) is None
    scanner = ReActFormat().scanner(NAMES)
    assert [found for char in text if (found := scanner.feed(char))] == []


def test_a_line_that_could_still_go_on_is_open() -> None:
    scanner = ReActFormat().scanner(NAMES)
    scanner.feed("Action 1: search[x]")

    assert scanner.open
    assert scanner.feed("\nObservation") == CallMatch("search", "x", 1, 20, "1")


def test_the_last_action_is_no_tool_and_brings_the_answer() -> None:
    assert first("Action 4: finish[42]\n") == CallMatch("Finish", "42", 21, 21, "4", True)
    owned = ReActFormat().scanner(["finish"]).feed("Action 4: Finish[42]\n")
    assert owned == CallMatch("finish", "42", 21, 21, "4")


def test_an_observation_lasts_until_the_next_turn() -> None:
    text = "Action 1: Search[x]\nObservation 1: a\n\nb [1]\nThought 2: c\nAction 2: Finish[b]\nObservation 2: right"

    assert decode(text, ReActFormat(), NAMES) == (
        CallText("Action 1: Search[x]\n", "search", "x"),
        ResultText("Observation 1: a\n\nb [1]\n"),
        TextSegment("Thought 2: c\n"),
        CallText("Action 2: Finish[b]\n", "Finish", "b", final=True),
        ResultText("Observation 2: right"),
    )


def test_an_action_without_an_observation_has_no_result() -> None:
    assert decode("Action: search[x]\nThought: c", ReActFormat(), NAMES) == (
        CallText("Action: search[x]\n", "search", "x"),
        TextSegment("Thought: c"),
    )


@pytest.mark.parametrize(
    ("after", "mark", "written"),
    [
        ("Thought 2: so", "2", "\nAction 2: search[x]\nObservation 2: y\n"),
        ("Thought: so\n", "", "Action: search[x]\nObservation: y\n"),
    ],
)
def test_a_call_and_its_result_are_lines_with_one_number(after: str, mark: str, written: str) -> None:
    protocol = ReActFormat()

    assert protocol.write_call("search", "x", after, mark) + protocol.write_result("y", mark) == written


def test_aliases_name_tools() -> None:
    found = ReActFormat(aliases=(("Wiki", "search"),)).scanner(["search"]).feed("Action: wiki[x]\n")

    assert found
    assert found.name == "search"


def test_the_instructions_name_tools_and_the_last_action() -> None:
    tool = ToolSpec("search", "Find.", {"type": "object", "properties": {"query": {}}})
    text = ReActFormat(finish="Answer").instructions([tool])

    assert "Answer[answer]" in text
    assert text.endswith("Tools:\n- Action: search[query]: Find.")
