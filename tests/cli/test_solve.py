"""`taiwa solve`: a question reasoned out with the real tools, over the real wire, kept in a real store."""

import json
import re
import signal
import sys
from pathlib import Path
from threading import Event
from typing import get_args

import pytest

from taiwa.cli.solve import ENDINGS, TOOL_FORMATS, TOOL_MODES
from taiwa.flows.solve import tool_call_formats
from taiwa.flows.solve.rationale import EndReason, ToolMode
from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.peers.faults import DONE, Scene, event, raw, speech, status
from tests.peers.llama import KEY, LlamaServer

QUESTION = "What do three moles of carbon dioxide weigh?"
FIRST = "One mole weighs:\n<<molar_mass: CO2>> 45 g/mol, or so"
SECOND = "Three of them:\n<<calculator: 3 × 44.009>>"
LAST = "Therefore, the answer is 132.027 g."
TEXT = (
    "One mole weighs:\n<<molar_mass: CO2>> 44.009 g/mol\nThree of them:\n<<calculator: 3 × 44.009>> 132.027\n"
    "Therefore, the answer is 132.027 g."
)


def no_tools(model_server: ModelServer, *answers: object) -> ModelServer:
    """A server that can neither continue a text nor call functions."""
    return model_server(*answers, capabilities={model_server.model: {"prefix": False, "tools": False}})  # type: ignore[arg-type]


def test_a_rationale_comes_with_its_results_and_the_answer_last(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, FIRST, SECOND, LAST)

    done = taiwa.ok("solve", QUESTION)

    assert done.out == f"{TEXT}\n\n132.027\n"
    assert done.err == ""
    assert model_server.requests[0]["messages"][-1]["content"] == QUESTION


def test_instructions_temperature_files_and_piped_text_belong_to_a_question(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    no_tools(model_server, "The answer is 9.")
    (tmp_path / "train.txt").write_text("It leaves at nine.")

    done = taiwa.ok(
        "solve", "When does it leave?", "--system", "Be brief.", "--temperature", "0.3", "--tools", "none", "--shots", "0",
        "-f", str(tmp_path / "train.txt"), input="From platform 2.\n",
    )  # fmt: skip

    request = model_server.requests[0]
    assert done.lines[-1] == "9"
    assert [message["content"] for message in request["messages"]] == [
        "Be brief.",
        "When does it leave?\n\nIt leaves at nine.\n\nFrom platform 2.",
    ]
    assert request["temperature"] == 0.3


@pytest.mark.parametrize(
    ("question", "call", "result"),
    [
        ("What percentage of N2O5 is N?", "<<molar_mass: N2O5>>", "108 g/mol"),
        ("What percentage of N2O5 is N?", "<<calculator: 28/108*100>>", "25.93"),
        ("7 mol for 6?", "<<calculator: 7/6>>", "1.17"),
        ("And less?", "<<calculator: -0.005>>", "-0.01"),
        ("Half?", "<<calculator: 1/2>>", "0.5"),
    ],
)
def test_the_tools_give_what_the_paper_prints(
    taiwa: Taiwa, model_server: ModelServer, question: str, call: str, result: str
) -> None:
    no_tools(model_server, f"{call}", "That is the answer: 1.")

    done = taiwa.ok("solve", question, "--weights", "integer", "--round", "2", "--shots", "0")

    assert f"{call} {result}\n" in done.out


def test_worked_examples_show_the_chosen_weights_and_decimals(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, "The answer is 4.", "The answer is 4.")

    taiwa.ok("solve", "2 + 2?", "--shots", "12")
    taiwa.ok("solve", "2 + 2?", "--shots", "12", "--weights", "integer", "--round", "1")

    exact, school = (str(request["messages"]) for request in model_server.requests)
    assert exact != school
    assert re.findall(r"<<molar_mass: \w+>> \d+ g/mol", school)
    assert not re.findall(r"<<(?:calculator|molar_mass): [^>]+>> -?\d+\.\d\d", school)
    assert re.findall(r"<<(?:calculator|molar_mass): [^>]+>> -?\d+\.\d\d", exact)


@pytest.mark.parametrize(("by", "answer", "requests"), [("auto", "4", 1), ("line", "4", 1), ("prompt", "5", 2)])
def test_the_answer_is_taken_from_where_it_was_asked_for(
    taiwa: Taiwa, model_server: ModelServer, by: str, answer: str, requests: int
) -> None:
    no_tools(model_server, "The answer is 4.", "5")

    done = taiwa.ok("solve", "2 + 2?", "--shots", "0", "--answer-by", by)

    assert done.out.splitlines()[-1] == answer
    assert len(model_server.requests) == requests


def test_built_in_worked_examples_are_shown_and_correct(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, "The answer is 4.", "The answer is 4.")

    taiwa.ok("solve", "2 + 2?")
    taiwa.ok("solve", "2 + 2?", "--shots", "2")

    five, two = (request["messages"] for request in model_server.requests)
    assert [message["role"] for message in five] == ["system", *["user", "assistant"] * 5, "user"]
    assert two[1:5] == five[1:5]
    assert all("\nAnswer: " in message["content"] for message in five[2::2])
    assert any("<<calculator: " in message["content"] for message in five[2::2])


def test_another_seed_shows_other_examples(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, "4.", "4.")

    taiwa.ok("solve", "2 + 2?", "--shots", "3")
    taiwa.ok("solve", "2 + 2?", "--shots", "3", "--seed", "1")

    one, other = (request["messages"][1]["content"] for request in model_server.requests)
    assert one != other


def test_examples_call_no_tool_that_is_not_offered(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, "4.", "4.")

    taiwa.ok("solve", "2 + 2?", "--tools", "calculator", "--shots", "6")
    taiwa.ok("solve", "2 + 2?", "--tools", "none", "--shots", "30")

    only, none = (str(request["messages"]) for request in model_server.requests)
    assert "<<calculator: " in only
    assert "molar_mass" not in only
    assert "<<" not in none


def test_tools_are_given_one_by_one_as_to_say(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    (place.folder / "solve_prices.py").write_text(
        'from taiwa import tool\n\n\n@tool\ndef price(item: str) -> str:\n    """The price of an item."""\n    return "7 euros"\n'
    )
    price = f"{place.folder}/solve_prices.py:price"
    no_tools(model_server, "<<price: a cup>>", LAST, LAST)

    alone = taiwa.ok("solve", QUESTION, "--tool", price, "--json").json
    taiwa.ok("solve", QUESTION, "--tools", "calculator", "--tool", price, "--tool", "molar_mass", "--shots", "0")

    assert "7 euros" in str(alone)
    both = str(model_server.requests[-1]["messages"])
    assert all(name in both for name in ("calculator", "price", "molar_mass"))
    assert "calculator" not in str(model_server.requests[0]["messages"])


def test_for_programs_everything_is_one_object(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, FIRST, SECOND, LAST)

    found = taiwa.ok("solve", QUESTION, "--json").json

    assert found["text"] == TEXT
    assert (found["answer"], found["answered_by"], found["ending"], found["tool_mode"]) == (
        "132.027",
        "line",
        "end",
        "stop",
    )
    assert found["calls"][0] | {"value": None} == {
        "tool": "molar_mass", "input": "CO2", "text": "44.009 g/mol", "value": None, "origin": "tool", "error": "",
    }  # fmt: skip
    assert (found["usage"]["requests"], found["usage"]["calls_without_usage"], found["usage"]["output_tokens"]) == (
        3,
        2,
        3,
    )
    assert set(found) == {
        "answer", "answered_by", "ending", "tool_mode", "calls", "max_cost",
        "session", "node", "parent", "text", "value", "delta", "findings", "state_read", "warnings", "usage", "cost", "seconds",
    }  # fmt: skip


def test_a_server_that_calls_functions_is_asked_natively_and_without_examples(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    call = {"index": 0, "id": "c9", "function": {"name": "calculator", "arguments": '{"expression": "6 × 7"}'}}
    asks = raw(_head(), event({"tool_calls": [call]}), event({}, finish="tool_calls"), DONE)
    model_server(asks, "The answer is 42.", capabilities={model_server.model: {"prefix": False, "tools": True}})

    found = taiwa.ok("solve", "Six times seven?", "--json").json

    assert (found["tool_mode"], found["answer"]) == ("native", "42")
    assert found["calls"][0]["text"] == "42"
    assert next(tool["function"]["name"] for tool in model_server.requests[0]["tools"]) == "calculator"
    assert [message["role"] for message in model_server.requests[1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]


def test_examples_are_native_in_native_tool_mode(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("The answer is 42.", capabilities={model_server.model: {"tools": True}})

    taiwa.ok("solve", "Six times seven?", "--tool-format", "native", "--shots", "4")

    messages = model_server.requests[0]["messages"]
    called = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    assert called
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == called
    assert "<<" not in str(messages)


@pytest.mark.parametrize(
    ("name", "asks"),
    [
        ("tagged", "<<calculator: 6 × 7>>"),
        ("inline", "6 × 7 << Calculator >>"),
        ("gsm", "6 × 7 = <<6 × 7="),
        ("react", "Action 1: calculator[6 × 7]\n"),
        ("fence", "```calculator\n6 × 7\n```\n"),
    ],
)
def test_calls_have_the_chosen_tool_format(taiwa: Taiwa, model_server: ModelServer, name: str, asks: str) -> None:
    no_tools(model_server, asks, "The answer is 42.")

    found = taiwa.ok("solve", "Six times seven?", "--tool-format", name, "--json").json

    assert [(call["tool"], call["input"], call["text"]) for call in found["calls"]] == [("calculator", "6 × 7", "42")]
    assert found["answer"] == "42"


def test_the_choices_are_the_tool_formats_and_tool_modes_of_the_library() -> None:
    assert (*tool_call_formats.TOOL_CALL_FORMATS, "native") == TOOL_FORMATS
    assert set(TOOL_MODES) == {"auto", *get_args(ToolMode)}
    assert set(get_args(EndReason)) - set(ENDINGS) == {"end"}


def test_v_shows_the_calls_and_the_bill(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, "<<calculator: 1/0>>", "<<guess: 1>>", "No tool does it.", LAST)

    done = taiwa.ok("solve", QUESTION, "-v")

    assert "call 1: calculator: 1/0 → error: division by zero [division_by_zero]" in done.err
    assert "call 2: guess: 1 → error: unknown tool 'guess'" in done.err
    assert done.err.splitlines()[-1].startswith("stop · answer: line · 4 calls · at most ")


def test_trace_shows_what_happened_with_times_and_tokens(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, FIRST, SECOND, LAST)

    done = taiwa.ok("solve", QUESTION, "--trace")

    events = [line.split()[2] for line in done.err.splitlines()]
    assert [name for name in events if name in ("tool_mode", "model", "tool", "end")] == [
        "tool_mode", "model", "tool", "model", "tool", "model", "end",
    ]  # fmt: skip
    assert "7 in (4 cached) + 3 out" in done.err
    assert "molar_mass: CO2 → 44.009 g/mol" in done.err
    assert done.out.endswith("\n132.027\n")


def test_a_trace_tells_failed_calls_whole(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    (place.folder / "mine.py").write_text(
        'from taiwa import tool\n\n\n@tool\ndef boom(x: str) -> str:\n    """Boom."""\n    return 1 // 0\n'
    )
    no_tools(model_server, "<<boom: a>>", "<<calculator: 1/0>>", "<<guess: 1>>", LAST)
    done = taiwa.ok("solve", QUESTION, "--tools", f"calculator,{place.folder}/mine.py:boom", "--trace")

    events = [line.split()[2] for line in done.err.splitlines()]
    assert [name for name in events if name in ("tool", "failure")] == ["tool", "failure", "tool", "failure", "failure"]
    assert "boom: a → boom failed" in done.err
    assert "ZeroDivisionError" not in str(model_server.requests)


def test_what_it_cost_is_on_the_bill(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, FIRST, SECOND, LAST)

    taiwa.ok("solve", QUESTION)

    assert taiwa.ok("cost", "--json").json[0]["requests"] == 3


def test_a_failed_call_of_the_model_leaves_its_bill_and_its_words(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, FIRST, status(500))

    done = taiwa("solve", QUESTION, "--trace")

    assert done.code == 1
    assert done.out == "One mole weighs:\n<<molar_mass: CO2>> 44.009 g/mol\n"
    assert "molar_mass: CO2 → 44.009 g/mol" in done.err
    assert taiwa.ok("cost", "--json").json[0]["requests"] >= 1


def test_the_question_may_come_from_standard_input(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, "答えは25です。")

    assert taiwa.ok("solve", "-", input="りんご5個ずつ5箱？\n").out == "答えは25です。\n\n25\n"
    assert model_server.last_message() == "りんご5個ずつ5箱？"


def test_without_an_answer_it_failed(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, "I cannot say.", "Answer: none")

    done = taiwa("solve", QUESTION)

    assert (done.code, done.out) == (1, "I cannot say.\nAnswer: none\n")
    assert done.err == "no answer was found in the text\n"


def test_a_rationale_that_reached_the_limit_of_calls_is_a_failure(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, "<<calculator: 1+1>>", "<<calculator: 2+2>>", "The answer is 4.")

    done = taiwa("solve", QUESTION, "--max-tool-calls", "1", "--json")

    assert done.code == 1
    assert (done.json["ending"], len(done.json["calls"])) == ("calls", 1)
    assert "limit of tool calls was reached" in done.err


@pytest.mark.parametrize(("policy", "code"), [("report", 0), ("let-model-answer", 0), ("stop", 1)])
def test_the_reaction_to_a_failed_call_can_be_chosen(
    taiwa: Taiwa, model_server: ModelServer, policy: str, code: int
) -> None:
    no_tools(model_server, "<<calculator: 1/0>>", "\nAnswer: 0", *["Answer: 0"] * (policy == "report"))

    done = taiwa("solve", QUESTION, "--on-error", policy, "--json")

    assert done.code == code
    assert (done.json["calls"][0]["origin"] == "model") == (policy == "let-model-answer")


def test_a_typed_answer_is_printed_as_json(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    (place.folder / "mass.json").write_text(
        '{"title": "Mass", "type": "object", "properties": {"g": {"type": "number"}}}'
    )
    no_tools(model_server, 'So:\nAnswer: {"g": 132.027}')

    done = taiwa.ok("solve", QUESTION, "--type", str(place.folder / "mass.json"))

    assert json.loads(done.out.partition("\n\n")[2]) == {"g": 132.027}


def test_an_answer_that_does_not_have_its_type_gives_a_warning_and_fails(
    taiwa: Taiwa, model_server: ModelServer, place: Place
) -> None:
    (place.folder / "mass.json").write_text(
        '{"title": "Mass", "type": "object", "properties": {"g": {"type": "number"}}}'
    )
    no_tools(model_server, "The answer is 132.027.", "no", "no")

    done = taiwa("solve", QUESTION, "--type", str(place.folder / "mass.json"))

    assert done.code == 1
    assert done.lines[-1] == "132.027"
    assert "no Mass could be read" in done.err


SHOTS = """\
Q: What is a dozen dozens?
A: 12 x 12 = << Calculator >> 145

Therefore, 145.
"""


def test_own_worked_examples_are_shown_and_checked(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    path = place.folder / "shots.txt"
    path.write_text(SHOTS, encoding="utf-8")
    no_tools(model_server, "6 x 7 << Calculator >>", "The answer is 42.")

    done = taiwa.ok("solve", "Six times seven?", "--tool-format", "inline", "--examples", str(path))

    assert model_server.requests[0]["messages"][2]["content"] == "12 x 12 = << Calculator >> 145\n\nTherefore, 145."
    assert done.err == f"{path}:1: calculator: 12 x 12 returns 144, but the example has 145\n"


def test_a_dry_run_shows_the_request_and_calls_nothing(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server)

    shown = taiwa.ok("solve", QUESTION, "--dry-run")
    data = taiwa.ok("solve", QUESTION, "--dry-run", "--json").json

    assert QUESTION in shown.out
    assert "<<calculator: " in shown.out
    assert data["tokens"] > 100
    assert model_server.seen == []


def test_a_cost_limit_ends_a_rationale_and_keeps_its_text(taiwa: Taiwa, model_server: ModelServer) -> None:
    able = {model_server.model: {"prefix": False, "tools": False}}
    model_server(FIRST, SECOND, capabilities=able, prices={"*": {"input": "0", "output": "1"}})

    done = taiwa("solve", QUESTION, "--max-cost", "0.00002", "--json")

    assert done.code == 1
    assert (done.json["ending"], done.json["text"]) == ("limit", TEXT.partition("Three")[0])
    assert done.json["cost"] is None
    assert done.json["max_cost"] > 0
    assert "a limit was reached" in done.err
    assert len(model_server.seen) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((" ",), "the text is empty"),
        (("?", "--tools", "calculater"), "unknown tool 'calculater'"),
        (("?", "--shots", "100"), "got 100"),
        (("?", "--examples", "none.txt"), "none.txt: No such file"),
        (("?", "--examples", "shots.txt", "--shots", "2"), "shots must be at most 1"),
        (("?", "--examples", "odd.yaml"), "worked example 1 ('How many?') cannot be evaluated: expected a number"),
        (
            ("?", "--tool-format", "native", "--tool-mode", "stop"),
            "--tool-format native requires --tool-mode native, not stop",
        ),
        (("?", "--type", "Order"), "module:Type, or fields such as"),
        (("?", "--tool-format", "morse"), "'morse' is not one of"),
        (("?", "--max-tool-calls", "-1"), "-1 is not in the range"),
        (("?", "--mcp-server", "no-such-program-at-all"), "did not start"),
    ],
)
def test_bad_input_is_an_error_of_one_line(
    taiwa: Taiwa,
    model_server: ModelServer,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    complaint: str,
) -> None:
    monkeypatch.chdir(place.folder)
    Path("shots.txt").write_text(SHOTS.replace("145", "144"), encoding="utf-8")
    Path("odd.yaml").write_text("- question: How many?\n  parts:\n    - calculator: 1 +\n", encoding="utf-8")
    no_tools(model_server)

    done = taiwa("solve", *arguments)

    assert done.code == 2
    assert complaint in done.err
    assert done.err.count("\n") == 1
    assert model_server.seen == []


def test_an_unsupported_tool_mode_is_an_error(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server)

    done = taiwa("solve", QUESTION, "--tool-mode", "native")

    assert done.code == 2
    assert "does not support tool mode 'native'" in done.err
    assert model_server.seen == []


def test_on_a_terminal_calls_and_results_are_coloured(model_server: ModelServer, place: Place) -> None:
    from tests.cli.terminal import Terminal

    no_tools(model_server, "<<calculator: 6 × 7>>", "<<calculator: 1/0>>", "The answer is 42.")

    with Terminal(place.environment(), "solve", QUESTION) as terminal:
        terminal.end()

    shown = terminal.raw.decode()
    assert "\x1b[36m<<calculator: 6 × 7>>\x1b[0m" in shown
    assert "\x1b[32m 42" in shown
    assert "\x1b[31m error: division by zero" in shown


def test_a_key_ends_the_answer_and_keeps_what_was_paid(taiwa: Taiwa, model_server: ModelServer) -> None:
    begun = Event()

    async def long(scene: Scene) -> None:
        begun.set()
        await speech("Three of them weigh a lot more than one of them does. " * 40, gap=0.05)(scene)

    no_tools(model_server, FIRST, long)
    process = taiwa.fork("solve", QUESTION)
    assert begun.wait(300)

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)

    assert process.returncode == 130
    assert b"stopped; `taiwa cost` lists the calls that were paid for" in err
    assert b"Traceback" not in err + out
    assert taiwa.ok("cost", "--json").json[0]["requests"] == 2


def test_tools_of_a_foreign_server_are_mounted(taiwa: Taiwa, model_server: ModelServer) -> None:
    pytest.importorskip("mcp")
    no_tools(model_server, "Let me see: <<taiwa_calculator: 6 × 7>>", "The answer is 42.")
    words = ("solve", "Six times seven?", "--json", "--shots", "0")
    server = ("--mcp-server", f"{sys.executable} -m taiwa mcp --tools calculator")

    refused = taiwa(*words, *server)
    no_tools(model_server, "Let me see: <<taiwa_calculator: 6 × 7>>", "The answer is 42.")
    found = taiwa.ok(*words, *server, "--trust-mcp").json

    assert refused.code == 2
    assert "approval is required for taiwa_calculator" in refused.err
    assert (found["calls"][0]["tool"], found["calls"][0]["text"]) == ("taiwa_calculator", "42")


def _head() -> bytes:
    from tests.peers.faults import head

    return head()


# A genuine server


@pytest.mark.parametrize("way", ["prefill", "stop"])
def test_the_limits_hold_for_a_real_server_that_writes_noise(
    taiwa: Taiwa, place: Place, llama: LlamaServer, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv("LLAMACPP_API_KEY", KEY)
    place.set(model="llamacpp:tiny", base_urls={"llamacpp": llama.base_url})

    done = taiwa("solve", "2 + 2?", "--tool-mode", way, "--max-tokens", "40", "--shots", "1", "--json")

    assert done.code in (0, 1)
    assert done.json["usage"]["output_tokens"] <= 40 + 40
    assert (done.json["tool_mode"], len(done.json["calls"])) == (way, 0)
    assert taiwa.ok("cost", "--json").json[0]["requests"] >= 1


def test_documents_are_looked_up_in_the_middle_of_a_rationale(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "leave.md").write_text("# Leave\n\nThree years of work give 14 days of leave.\n")
    no_tools(model_server, "<<search_documents: days of leave after three years>>", "So the answer is 14.")

    done = taiwa.ok("solve", "How many days?", "--tools", "none", "--in", str(tmp_path / "handbook"))

    assert "[1] leave.md › Leave: # Leave Three years of work give 14 days of leave." in done.out
    assert done.out.endswith("\n14\n")


def test_a_conversation_goes_on_and_is_known_to_the_other_commands(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(
        model_server, "It is <<calculator: 6 × 7>>", "\nAnswer: 42", "Half is <<calculator: 42 / 2>>", "\nAnswer: 21",
        "A third is <<calculator: 42 / 3>>", "\nAnswer: 14", "Once more.\nAnswer: 14",
    )  # fmt: skip
    taiwa.ok("solve", "6 × 7?", "--round", "1", "--shots", "0")

    second = taiwa.ok("solve", "-c", "And half of it?", "--json").json
    edited = taiwa.ok("edit", "2", "And a third of it?", "--json").json
    taiwa.ok("retry")
    taiwa.ok("undo")

    assert (second["answer"], second["session"]) == ("21", "solve-1")
    assert "= 14" in edited["text"] or "14" in edited["text"]
    assert "6 × 7?" in str(model_server.requests[2]["messages"])
    assert "It is <<calculator: 6 × 7>> 42" in str(model_server.requests[2]["messages"])
    assert taiwa.ok("log", "solve-1", "--json").json
    kept = taiwa("solve", "-c", "More?", "--round", "2")
    assert (kept.code, "an existing conversation keeps its tools" in kept.err) == (2, True)
    taiwa.ok("fork", "other")
    assert taiwa.ok("replay", "solve-1").code == 0


def test_the_conversation_of_another_app_is_not_solved_in(taiwa: Taiwa, model_server: ModelServer) -> None:
    no_tools(model_server, "Hello.")
    taiwa.ok("say", "Hi")

    assert "has the app 'plain', not 'solve'" in taiwa("solve", "-c", "6 × 7?").err
