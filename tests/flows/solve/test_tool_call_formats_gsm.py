import pytest

from taiwa.flows.solve.tool_call_formats import CallText, GsmFormat, ResultText, TextSegment, decode
from taiwa.kernel.messages import ToolSpec


def inputs(text: str) -> list[str]:
    return [event.input for event in decode(text, GsmFormat(), ()) if isinstance(event, CallText)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("16 - 3 = <<16-3=", ["16-3"]),
        ("16 - 3 = <<16-3=13>>13 and 13 * 2 = $<<13*2=26>>26", ["16-3", "13*2"]),
        ("<<A+4=4+4=8>>8", ["A+4"]),
        ("<<<1+1=2>>", ["1+1"]),
        ("`<<1+1=2>>`", []),
        ("```\n<<1+1=2>>\n```", []),
        ("x << 3 = y", []),
        ("cat <<EOF > a=b", []),
        ("<<1+1\n=2>>", []),
        ("<<=2>>", []),
        (f"<<{'1' * 1001}=", []),
    ],
)
def test_a_call_ends_with_its_equals_sign(text: str, found: list[str]) -> None:
    assert inputs(text) == found


def test_a_recorded_result_ends_with_the_closing_mark_on_its_line() -> None:
    assert decode("a <<1+1=2>>2\nb <<3*3=9 fries.\n", GsmFormat(), ()) == (
        TextSegment("a "),
        CallText("<<1+1=", "calculator", "1+1"),
        ResultText("2>>"),
        TextSegment("2\nb "),
        CallText("<<3*3=", "calculator", "3*3"),
        TextSegment("9 fries.\n"),
    )


def test_no_result_reaches_into_the_next_call() -> None:
    assert inputs("<<1+1=2 and <<2+2=4>>") == ["1+1", "2+2"]


def test_a_call_and_its_result_are_written_as_in_the_corpus() -> None:
    protocol = GsmFormat()

    assert protocol.write_call("calculator", "12*3") + protocol.write_result("36") == "<<12*3=36>>"


def test_only_the_one_tool_is_explained() -> None:
    tools = [ToolSpec(name, "Does.", {"type": "object", "properties": {"x": {}}}) for name in ("calculator", "other")]

    assert GsmFormat().instructions(tools).endswith("Tools:\n- <<x=: Does.")
