"""A zero on the command line is a number like any other, not a missing one."""

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.cli.test_main import EVERY

PRICES = {"*": {"input": "1", "output": "1"}}
SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'


def asks_nothing_back(taiwa: Taiwa, _server: ModelServer, _place: Place) -> bool:
    asked = taiwa("ask", "I have a question about leave.", "--policy", "always").code
    return (
        asked,
        taiwa("ask", "I have a question about leave.", "--policy", "always", "--max-questions", "0").code != 3,
    ) == (3, True)


def shows_no_examples(taiwa: Taiwa, server: ModelServer, _place: Place) -> bool:
    server()
    words = ("solve", "1+1?", "--dry-run", "--json", "--tool-format", "tagged")
    some, none = (len(taiwa.ok(*words, *more).json["body"]["messages"]) for more in ((), ("--shots", "0")))
    return (some > 2, none) == (True, 2)


def calls_no_tool(taiwa: Taiwa, server: ModelServer, _place: Place) -> bool:
    server("<<calculator: 1+1>>", "Therefore, the answer is 3.", "3")
    done = taiwa("solve", "1+1?", "--max-tool-calls", "0", "--tool-mode", "stop", "--json").json
    return bool(done["ending"] == "calls" and done["calls"] == [])


def repairs_nothing(taiwa: Taiwa, server: ModelServer, place: Place) -> bool:
    server('{"a": "x"}', '{"a": 1}')
    file = place.folder / "schema.json"
    file.write_text(SCHEMA)
    return taiwa("extract", str(file), "one", "--max-repairs", "0").code == 1 and len(server.requests) == 1


def is_sent(member: str, option: str) -> Callable[[Taiwa, ModelServer, Place], bool]:
    def check(taiwa: Taiwa, server: ModelServer, _place: Place) -> bool:
        server("A", capabilities={server.model: {"seed": True}})
        taiwa.ok("generate", "Hi", option, "0")
        return bool(server.requests[0].get(member) == 0)

    return check


def keeps_no_move(taiwa: Taiwa, server: ModelServer, _place: Place) -> bool:
    server("A")
    taiwa.ok("say", "Hi")
    taiwa.ok("undo")
    return bool(
        [taiwa.ok("gc", "--dry-run", "--json", *more).json["nodes"] for more in ((), ("--keep", "0"))] == [0, 1]
    )


def rounds_to_whole_numbers(taiwa: Taiwa, server: ModelServer, _place: Place) -> bool:
    server("<<calculator: 7/2>>", "Therefore, the answer is 4.")
    done = taiwa("solve", "7/2?", "--round", "0", "--tool-mode", "stop", "--json").json
    return bool(done["calls"][0]["text"] == "4")


def is_sent_by(*words: str, before: tuple[str, ...] = ()) -> Callable[[Taiwa, ModelServer, Place], bool]:
    """A command sends the temperature 0, after another command if there is one."""

    def check(taiwa: Taiwa, server: ModelServer, place: Place) -> bool:
        server("A", '{"a": 1}' if words[0] == "extract" else "B")
        files = {"schema.json": SCHEMA, "rows.txt": "Hi\n"}
        for name, text in files.items():
            (place.folder / name).write_text(text)
        if before:
            taiwa.ok(*before)
        named = [str(place.folder / word) if word in files else word for word in words]
        taiwa(*named, "--temperature", "0", input="Hi\n" if words[0] == "chat" else "")
        return bool(server.requests[-1].get("temperature") == 0)

    return check


def takes_a_free_port(_taiwa: Taiwa, _server: ModelServer, _place: Place) -> bool:
    from taiwa.server.serve import bind

    bound = bind("127.0.0.1", 0)
    with bound:
        return bool(bound.getsockname()[1] > 0)


EFFECTS: dict[tuple[str, str], Callable[[Taiwa, ModelServer, Place], bool]] = {
    ("ask", "--max-questions"): asks_nothing_back,
    ("solve", "--shots"): shows_no_examples,
    ("solve", "--max-tool-calls"): calls_no_tool,
    ("solve", "--round"): rounds_to_whole_numbers,
    ("extract", "--max-repairs"): repairs_nothing,
    ("generate", "--temperature"): is_sent("temperature", "--temperature"),
    ("generate", "--seed"): is_sent("seed", "--seed"),
    ("gc", "--keep"): keeps_no_move,
    ("say", "--temperature"): is_sent_by("say", "Hi"),
    ("edit", "--temperature"): is_sent_by("edit", "1", "Ho", before=("say", "Hi")),
    ("retry", "--temperature"): is_sent_by("retry", before=("say", "Hi")),
    ("batch", "--temperature"): is_sent_by("batch", "plain", "rows.txt", "--mode", "map"),
    ("extract", "--temperature"): is_sent_by("extract", "schema.json", "one"),
    ("chat", "--temperature"): is_sent_by("chat", "plain"),
    ("solve", "--temperature"): is_sent_by("solve", "1+1?"),
    ("ask", "--temperature"): is_sent_by("ask", "How many days of leave are there?"),
    ("serve", "--port"): takes_a_free_port,
    ("ui", "--port"): takes_a_free_port,
}
DEFAULT_IS_ZERO = {("solve", "--seed")}
MEASURED = {("eval reason", "--max-tool-calls"), ("eval extract", "--max-repairs")}
"""Options of evaluations, which hand them on as `solve` and `extract` do."""


def takes_zero(option: click.Parameter) -> bool:
    kind = option.type
    if isinstance(kind, (click.IntRange, click.FloatRange)):
        return (kind.min is None or kind.min <= 0) and not kind.min_open
    return kind in (click.INT, click.FLOAT)


def test_every_option_that_takes_a_zero_is_tried() -> None:
    found = {
        (name, max(option.opts, key=len))
        for name, command in EVERY.items()
        for option in command.params
        if isinstance(option, click.Option) and takes_zero(option)
    }

    assert found == set(EFFECTS) | DEFAULT_IS_ZERO | MEASURED


@pytest.mark.parametrize(("option", "effect"), EFFECTS.items(), ids=[" ".join(option) for option in EFFECTS])
def test_a_zero_has_its_effect(
    taiwa: Taiwa,
    model_server: ModelServer,
    place: Place,
    option: tuple[str, str],
    effect: Callable[[Taiwa, ModelServer, Place], bool],
) -> None:
    assert effect(taiwa, model_server, place)


def test_a_cost_limit_of_zero_allows_no_call_that_costs(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("A", prices=PRICES)

    assert taiwa("say", "Hi", "--max-cost", "0").code == 1
    assert model_server.requests == []


def test_a_cost_limit_of_zero_in_the_settings_holds_too(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server("A", prices=PRICES, max_cost="0")

    assert taiwa("say", "Hi").code == 1
    assert json.dumps([*model_server.requests]) == "[]"
