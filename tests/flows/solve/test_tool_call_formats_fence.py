import pytest

from taiwa.flows.solve.tool_call_formats import CallMatch, CallText, FenceFormat, ResultText, TextSegment, decode
from taiwa.kernel.messages import ToolSpec

NAMES = ("python", "calculator")


def first(text: str) -> tuple[str, str] | None:
    found = FenceFormat().scanner(NAMES).feed(text)
    return (found.name, found.input) if found else None


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("```python\nprint(1)\n```\n", ("python", "print(1)")),
        ("So:\n```Python \nx = '''\n\n'''\n```\nand", ("python", "x = '''\n\n'''")),
        ("~~~~calculator\n~~~\n1\n~~~~~\n", ("calculator", "~~~\n1")),
        ("```python\n```\n", ("python", "")),
        ("```js\nx\n```\n```python\ny\n```\n", ("python", "y")),
        ("  ```python\n  x\n  ```\n", ("python", "  x")),
    ],
)
def test_a_block_in_the_name_of_a_tool_is_a_call(text: str, call: tuple[str, str]) -> None:
    assert first(text) == call


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```",
        "```python\nprint(1)\n",
        "```js\nx\n```\n",
        "```\npython\n```\n",
        "````\n```python\nx\n```\n````\n",
        "see ```python\nx\n```\n",
        "```python title\nx\n```\n",
        f"```python\n{'x' * 20_001}\n```\n",
    ],
)
def test_any_other_block_is_only_code(text: str) -> None:
    assert first(text) is None


def test_a_block_whose_last_line_could_go_on_is_open() -> None:
    scanner = FenceFormat().scanner(NAMES)
    scanner.feed("```python\nx")
    assert not scanner.open
    scanner.feed("\n```")
    assert scanner.open
    assert scanner.feed("\n") == CallMatch("python", "x", 1, 16)
    assert not scanner.open


def test_a_recorded_output_is_the_block_behind_the_call() -> None:
    text = "A.\n```python\nx\n```\n```output\n1\n2\n```\nB."

    assert decode(text, FenceFormat(), NAMES) == (
        TextSegment("A.\n"),
        CallText("```python\nx\n```\n", "python", "x"),
        ResultText("```output\n1\n2\n```\n"),
        TextSegment("B."),
    )


@pytest.mark.parametrize("rest", ["", "B.", "```output", "``` output\n1\n```\n"])
def test_without_output_there_is_no_result(rest: str) -> None:
    events = decode(f"```python\nx\n```\n{rest}", FenceFormat(), NAMES)

    assert [type(event) for event in events] == [CallText, *([TextSegment] if rest else [])]


def test_an_output_that_is_cut_off_lasts_to_the_end() -> None:
    assert decode("```python\nx\n```\n```output\n1\n2", FenceFormat(), NAMES)[-1] == ResultText("```output\n1\n2")


def test_a_call_and_its_result_are_blocks_on_lines_of_their_own() -> None:
    protocol = FenceFormat()
    written = protocol.write_call("calculator", "1+1", "So") + protocol.write_result("2\n```\nmore")

    assert written == "\n```calculator\n1+1\n```\n```output\n2 ''' more\n```\n"
    assert protocol.write_call("calculator", "1+1", "So\n").startswith("```")


def test_other_marks_may_name_a_tool() -> None:
    found = FenceFormat(aliases=(("py", "python"),)).scanner(["python"]).feed("```PY\nx\n```\n")

    assert found
    assert found.name == "python"


def test_the_instructions_show_a_block_for_every_tool() -> None:
    tool = ToolSpec("python", "Run  code.", {"type": "object", "properties": {"code": {}}})

    assert FenceFormat().instructions([tool]).endswith("Tools:\n\nRun code.\n```python\ncode\n```\n")
