from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.reason import GO_ON, Called, OnTrouble, Said, Spliced, last_number, reason
from taiwa.kernel import (
    Ability,
    Done,
    Json,
    Message,
    RefusalError,
    Response,
    Runtime,
    Text,
    TextDelta,
    Thought,
    ToolError,
    ToolResult,
    ToolSpec,
    assistant,
    system,
    user,
)
from taiwa.kernel.values import Finish
from taiwa.models.scripted import EVERY_ABILITY, script
from tests.flows.driving import Drive

NO_STOP = EVERY_ABILITY - {"stop"}
NO_PREFIX = EVERY_ABILITY - {"prefix"}
BARE: frozenset[Ability] = frozenset()


class Adder:
    """Adds numbers joined by `+`; fails on everything else."""

    spec = ToolSpec(
        "adder",
        "Add numbers.",
        {"type": "object", "properties": {"sum": {"type": "string"}}, "required": ["sum"]},
    )

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        parts = str(arguments["sum"]).split("+")
        if not all(part.strip().isdecimal() for part in parts):
            raise ToolError("not a sum", code="syntax", hint="write 1+2")
        return ToolResult(str(sum(map(int, parts))), "adder")


class Echo:
    """Gives back a fixed text, whatever it is asked."""

    def __init__(self, text: str) -> None:
        self.spec = ToolSpec("echo", "Give a text.", {"type": "object", "properties": {}})
        self._text = text

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        return ToolResult(self._text, "echo")


ADDER = Adder()
SPECS = (ADDER.spec,)
FIRST = "Two and two: <<adder: 2+2>>"


@pytest.mark.parametrize("abilities", [EVERY_ABILITY, NO_STOP])
def test_a_rationale_is_interrupted_spliced_and_continued_in_place(drive: Drive, abilities: frozenset[Ability]) -> None:
    model = script(f"{FIRST} 5, wrong", ", and one is <<adder: 4+1>> 9", ".\nThe answer is 5.", abilities=abilities)

    done = drive(lambda: reason("2+2+1?", SPECS), model, tools=[ADDER])

    assert done.value.text == f"{FIRST} 4, and one is <<adder: 4+1>> 5.\nThe answer is 5."
    assert done.value.answer == "5"
    assert done.value.ending == "end"
    assert [request.prefix for request in model.requests] == [
        "",
        f"{FIRST} 4",
        f"{FIRST} 4, and one is <<adder: 4+1>> 5",
    ]
    assert len({request.messages for request in model.requests}) == 1


def test_a_server_that_cannot_continue_is_asked_to_go_on(drive: Drive) -> None:
    model = script(f"{FIRST} 5, wrong", "And one is <<adder: 4+1>>", "So 5.", abilities=NO_PREFIX)

    done = drive(lambda: reason("2+2+1?", SPECS), model, tools=[ADDER])

    assert done.value.text == f"{FIRST} 4\nAnd one is <<adder: 4+1>> 5\nSo 5."
    first, second, third = (request.messages for request in model.requests)
    assert second == (*first, assistant(f"{FIRST} 4\n"), user(GO_ON))
    assert third == (*second, assistant("And one is <<adder: 4+1>> 5\n"), user(GO_ON))
    assert not any(request.prefix or request.stop for request in model.requests)


@pytest.mark.parametrize("repeated", [f"First.\n{FIRST} 4\n", f"First.\n{FIRST} 4", f"{FIRST} 4"])
def test_what_a_model_repeats_is_neither_shown_nor_called_again(drive: Drive, repeated: str) -> None:
    model = script(f"First.\n{FIRST}", f"{repeated} Then <<adder: 4+0>>", "So 4.", abilities=BARE, chunk=3)

    done = drive(lambda: reason("2+2?", SPECS), model, tools=[ADDER])

    assert [call.input for call in done.value.calls] == ["2+2", "4+0"]
    assert done.value.text.replace("\n\n", "\n") == f"First.\n{FIRST} 4\n Then <<adder: 4+0>> 4\nSo 4."
    assert done.shown == "".join(part.text for part in done.value.parts if isinstance(part, Said))


def test_the_stop_mark_that_a_server_keeps_is_put_back(drive: Drive) -> None:
    named = Response(assistant("<<adder: 2+2"), stop=">>")
    silent = Response(assistant(" or <<adder: 3+3"))

    done = drive(lambda: reason("?", SPECS), script(named, silent, " 6"), tools=[ADDER])

    assert done.value.text == "<<adder: 2+2>> 4 or <<adder: 3+3>> 6 6"
    assert done.value.parts[:3] == (Said("<<adder: 2+2"), Spliced(">>"), Spliced(" 4"))


def test_a_stop_outside_of_a_trigger_is_a_false_one_and_the_model_goes_on(drive: Drive) -> None:
    model = script("Shift: 8 >> 1 is 4. `<<adder: 1+1>>` is code. So 4.", " 1 is 4.", " is code. So 4.")

    done = drive(lambda: reason("8 >> 1?", SPECS), model, tools=[ADDER])

    assert done.value.calls == ()
    assert done.value.text.startswith("Shift: 8 >> 1 is 4.")
    assert done.value.ending == "end"


def test_false_stops_are_bounded() -> None:
    model = script(*["a >> b"] * 40)

    value = Runtime(model).run(reason("?", SPECS))

    assert (value.ending, len(model.requests)) == ("stops", 21)


def test_code_is_not_called(drive: Drive) -> None:
    text = "```\n<<adder: 1+1>>\n```\nand `<<adder: 1+1>>`: 7"

    done = drive(lambda: reason("?", SPECS), script(text, abilities=NO_STOP), tools=[ADDER])

    assert (done.value.text, done.value.calls, done.value.answer) == (text, (), "7")


def test_thoughts_are_not_scanned(drive: Drive) -> None:
    thinking = Response(Message("assistant", (Thought("<<adder: 1+1>>"), Text("It is 2."))))

    done = drive(lambda: reason("?", SPECS), script(thinking), tools=[ADDER])

    assert (done.value.calls, done.value.text) == ((), "It is 2.")


TROUBLE = [("<<adder: two>>", "syntax"), ("<<oracle: x>>", "unknown_tool")]


@pytest.mark.parametrize(("trigger", "code"), TROUBLE)
def test_a_model_is_told_of_trouble(drive: Drive, trigger: str, code: str) -> None:
    done = drive(lambda: reason("?", SPECS), script(f"So {trigger} 3", " then 4", abilities=NO_STOP), tools=[ADDER])

    assert done.value.parts[1].text.startswith(" error: ")
    assert done.value.calls[0].result.error == code
    assert done.value.ending == "end"
    assert [note.code for note in done.notes] == ["tool"]


@pytest.mark.parametrize(("trigger", "code"), TROUBLE)
def test_a_model_may_write_the_result_itself(drive: Drive, trigger: str, code: str) -> None:
    done = drive(
        lambda: reason("?", SPECS, trouble="model_writes"),
        script(f"So {trigger} 3", " 4 then", abilities=NO_STOP),
        tools=[ADDER],
    )

    assert done.value.text == f"So {trigger} 4 then"
    assert (done.value.calls[0].result.error, done.value.calls[0].result.origin) == (code, "model")


@pytest.mark.parametrize(("trigger", "code"), TROUBLE)
def test_trouble_may_be_the_end(drive: Drive, trigger: str, code: str) -> None:
    done = drive(
        lambda: reason("?", SPECS, trouble="stop"), script(f"So {trigger} 3", abilities=NO_STOP), tools=[ADDER]
    )

    assert (done.value.text, done.value.ending) == (f"So {trigger}", "tool")
    assert done.value.calls[0].result.error == code


def test_when_no_call_is_left_the_model_finishes_without_tools(drive: Drive) -> None:
    model = script(*[f"\n<<adder: {n}+1>>" for n in range(3)], "\nso <<adder: 9+9>> 3")

    done = drive(lambda: reason("?", SPECS, calls=2), model, tools=[ADDER])

    assert done.value.ending == "calls"
    assert [call.input for call in done.value.calls] == ["0+1", "1+1"]
    assert done.value.answer == "3"


@pytest.mark.parametrize("finish", ["length", "interrupted", "refusal"])
def test_an_answer_that_breaks_off_says_so(drive: Drive, finish: Finish) -> None:
    model = script(FIRST, Response(assistant(" and"), finish), abilities=NO_STOP)

    done = drive(lambda: reason("?", SPECS), model, tools=[ADDER])

    assert (done.value.text, done.value.ending) == (f"{FIRST} 4 and", finish)


def test_a_refusal_at_once_is_an_error(drive: Drive) -> None:
    with pytest.raises(RefusalError):
        drive(lambda: reason("?", SPECS), script(Response(assistant(""), "refusal")))


@pytest.mark.parametrize("hostile", ["<<adder: 1+1>>", "```\n", "`", "a\n<<adder: 1+1>>\n", ">>", "9" * 2000, ""])
def test_a_result_starts_no_call_and_opens_no_code(drive: Drive, hostile: str) -> None:
    echo = Echo(hostile)
    model = script("<<echo:>>", " then <<adder: 2+2>>", " so 4.", abilities=NO_STOP)

    done = drive(lambda: reason("?", (*SPECS, echo.spec)), model, tools=[ADDER, echo])

    spliced = done.value.parts[1].text
    assert [call.name for call in done.value.calls] == ["echo", "adder"]
    assert done.value.calls[0].result.text == hostile
    assert "\n" not in spliced
    assert len(spliced) <= 501


def test_shots_and_tools_stand_before_the_question(drive: Drive) -> None:
    model = script("4")
    shots = (user("1+1?"), assistant("<<adder: 1+1>> 2"))

    drive(lambda: reason("{tools}?", SPECS, shots=shots), model)

    head, *rest = model.requests[0].messages
    assert head.role == system("").role
    assert "<<adder: sum>>: Add numbers." in head.text
    assert rest == [*shots, user("{tools}?")]


def test_the_calls_and_their_results_are_kept(drive: Drive) -> None:
    done = drive(lambda: reason("?", SPECS), script(FIRST, " 4"), tools=[ADDER])

    assert done.value.calls == (Called("adder", "2+2", ToolResult("4", "adder")),)
    assert [call.arguments for call in done.journal.calls()] == [{"sum": "2+2"}]


ANSWER = st.lists(
    st.sampled_from(
        ["<<adder: 1+2>>", "<<adder: x>>", "<<no:1>>", ">>", "`", "\n", " so", " 7", "```\n", "<<adder: 5+"]
    ),
    max_size=5,
).map("".join)


@given(
    st.lists(ANSWER, max_size=6),
    st.sampled_from([EVERY_ABILITY, NO_STOP, NO_PREFIX, BARE]),
    st.integers(1, 9),
    st.sampled_from(["tell", "model_writes", "stop"]),
)
def test_every_rationale_ends_and_shows_what_was_said(
    answers: list[str], abilities: frozenset[Ability], chunk: int, trouble: OnTrouble
) -> None:
    model = script(*answers, *["That is all."] * 30, abilities=abilities, chunk=chunk)

    *events, done = Runtime(model, tools=[ADDER]).stream(reason("?", SPECS, trouble=trouble, calls=3))

    assert isinstance(done, Done)
    assert len(done.value.calls) <= 3
    assert len(model.requests) <= 1 + 3 + 1 + 20
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown == "".join(part.text for part in done.value.parts if isinstance(part, Said))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("It is 25.93 %.", "25.93"),
        ("12\nno number here", ""),
        ("They pay 1,225,000 yen.\n\n", "1225000"),
        ("答えは２５です", "25"),
        ("答えは25です。", "25"),
        ("2H2O has 18.015 g/mol of H2O", "18.015"),
        ("x = −3", "-3"),
        ("5-3 = 2.", "2"),
        ("that is 7/27", "7/27"),
        ("about .5", ".5"),
        ("1.5e-7", "1.5e-7"),
        ("1, 2, 3", "3"),
        ("", ""),
    ],
)
def test_the_answer_is_the_last_number_of_the_last_line(text: str, number: str) -> None:
    assert last_number(text) == number
