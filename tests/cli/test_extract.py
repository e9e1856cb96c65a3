"""`taiwa extract`: typed values from the command line, over the real wire, kept in a real store."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.peers.faults import status

MODULE = """
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field


class Drink(BaseModel):
    name: str
    size: Literal["small", "large"] = "small"


class Order(BaseModel):
    drinks: Annotated[list[Drink], Field(min_length=1)]


Names = list[str]


class Menu:
    @dataclass
    class Entry:
        name: str
"""
GOOD = '{"drinks": [{"name": "latte", "size": "large"}]}'
BAD = '{"drinks": [{"name": "latte", "size": "huge"}]}'
ORDER = {"drinks": [{"name": "latte", "size": "large"}]}


@pytest.fixture
def shop(place: Place, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of types in the current folder; every test has one of its own."""
    name = f"shop_{place.folder.name.replace('-', '_')}"
    (place.folder / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(place.folder)
    monkeypatch.setattr("sys.path", [str(place.folder), *sys.path])
    return name


@pytest.fixture
def lines(place: Place) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = place.folder / "lines.txt"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_a_text_becomes_a_value_in_json(taiwa: Taiwa, model_server: ModelServer, shop: str) -> None:
    model_server(GOOD)

    done = taiwa.ok("extract", f"{shop}:Order", "A large latte.")

    assert done.json == ORDER
    assert done.err == ""
    assert model_server.last_message() == "A large latte."


def test_a_list_comes_without_the_wrapping_of_the_wire(taiwa: Taiwa, model_server: ModelServer, shop: str) -> None:
    model_server('{"value": ["Ann", "Bo"]}')

    assert taiwa.ok("extract", f"{shop}:Names", "Ann and Bo").json == ["Ann", "Bo"]


def test_a_type_within_a_class_and_a_schema_in_a_file_are_types(
    taiwa: Taiwa, model_server: ModelServer, shop: str, place: Place
) -> None:
    model_server('{"name": "tea"}', '{"mood": "good"}')
    (place.folder / "mood.json").write_text(json.dumps({"type": "object", "properties": {"mood": {"enum": ["good"]}}}))

    assert taiwa.ok("extract", f"{shop}:Menu.Entry", "tea").json == {"name": "tea"}
    assert taiwa.ok("extract", "mood.json", "Nice day!").json == {"mood": "good"}


def test_a_bad_answer_is_repaired_and_v_shows_how_and_for_how_much(
    taiwa: Taiwa, model_server: ModelServer, shop: str
) -> None:
    model_server(BAD, GOOD)

    done = taiwa.ok("extract", f"{shop}:Order", "A large latte.", "-v")

    assert done.json == ORDER
    assert "invalid" in done.err
    assert '$.drinks[0].size = "huge": must be "small" or "large"' in done.err
    assert "attempt 2" in done.err
    assert done.err.splitlines()[-1].partition(" · ")[2].startswith("2 calls")


def test_without_rounds_a_bad_answer_is_an_error_of_one_line(
    taiwa: Taiwa, model_server: ModelServer, shop: str
) -> None:
    model_server(BAD, GOOD)

    done = taiwa("extract", f"{shop}:Order", "A large latte.", "--max-repairs", "0")

    assert done.code == 1
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert "no Order could be read in 1 attempt: $.drinks[0].size" in done.err


def test_a_failure_with_verbose_prints_its_attempts_and_its_bill(
    taiwa: Taiwa, model_server: ModelServer, shop: str
) -> None:
    model_server(BAD, BAD)

    done = taiwa("extract", f"{shop}:Order", "A large latte.", "-v")

    assert done.code == 1
    assert "attempt 2" in done.err
    assert "2 calls" in done.err


def test_for_programs_everything_is_one_line_of_json(taiwa: Taiwa, model_server: ModelServer, shop: str) -> None:
    model_server(BAD, f"Here: {GOOD}")

    done = taiwa.ok("extract", f"{shop}:Order", "A large latte.", "--json")

    assert done.json["value"] == ORDER
    assert [each["diagnostics"] == [] for each in done.json["attempts"]] == [False, True]
    assert done.json["usage"]["requests"] == 2


def test_the_text_may_come_from_standard_input(taiwa: Taiwa, model_server: ModelServer, shop: str) -> None:
    model_server(GOOD)

    taiwa.ok("extract", f"{shop}:Order", "-", input="大きいラテ\n")

    assert model_server.last_message() == "大きいラテ"


def test_a_guess_is_accepted_only_with_the_option(taiwa: Taiwa, model_server: ModelServer, shop: str) -> None:
    doubtful = '{"drinks": [{"name": latte, "size": "large"}]}'
    model_server(doubtful, doubtful)

    assert taiwa("extract", f"{shop}:Order", "A latte.", "--max-repairs", "0").code == 1
    assert taiwa.ok("extract", f"{shop}:Order", "A latte.", "--max-repairs", "0", "--guess").json == ORDER


def test_a_dry_run_shows_the_request_and_calls_nothing(taiwa: Taiwa, model_server: ModelServer, shop: str) -> None:
    model_server(GOOD)

    shown = taiwa.ok("extract", f"{shop}:Order", "A large latte.", "--dry-run")

    assert "type Order = {" in shown.out
    assert "A large latte." in shown.out
    assert model_server.seen == []


def test_what_it_cost_is_on_the_bill(taiwa: Taiwa, model_server: ModelServer, shop: str) -> None:
    model_server(BAD, GOOD)

    taiwa.ok("extract", f"{shop}:Order", "A large latte.")

    assert taiwa.ok("cost", "--json").json[0]["requests"] == 2


@pytest.mark.parametrize("mode", ["tool", "native"])
def test_the_mode_may_be_chosen(taiwa: Taiwa, model_server: ModelServer, shop: str, mode: str) -> None:
    model_server(GOOD, capabilities={model_server.model: {"json_schema": True, "tools": True}})

    taiwa.ok("extract", f"{shop}:Order", "A latte.", "--mode", mode)

    assert ("tools" in model_server.requests[0], "response_format" in model_server.requests[0]) == (
        mode == "tool",
        mode == "native",
    )


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("Order", "module:Type, or fields such as"),
        ("nowhere:Order", "module 'nowhere' not found"),
        ("{shop}:Ordr", "has no 'Ordr'; did you mean 'Order'?"),
        ("{shop}:Menu.Nothing", "has no 'Nothing'"),
        ("missing.json", "missing.json: No such file"),
        ("broken.json", "broken.json is not JSON"),
        ("list.json", "is not a JSON Schema; it must hold an object"),
        ("odd.json", "odd.json: not a JSON Schema"),
        ("raising:Order", "cannot import raising: RuntimeError: no luck"),
        ("leaving:Order", "cannot import leaving: SystemExit"),
        ("wrong:Order", "cannot import wrong: SyntaxError"),
        ("needing:Order", "cannot import needing: ModuleNotFoundError: No module named 'absent_of_course'"),
        ("threads:Lock", "cannot be an output type"),
    ],
)
def test_an_unknown_type_is_an_error_of_one_line(
    taiwa: Taiwa, model_server: ModelServer, shop: str, place: Place, target: str, complaint: str
) -> None:
    model_server(GOOD)
    for name, text in {
        "broken.json": "{", "list.json": "[]", "odd.json": '{"type": "nonsense"}',
        "raising.py": "raise RuntimeError('no\\nluck')", "leaving.py": "raise SystemExit(0)", "wrong.py": "def",
        "needing.py": "import absent_of_course", "threads.py": "import threading\nclass Lock:\n    def __init__(self, x): ...",
    }.items():  # fmt: skip
        (place.folder / name).write_text(text)

    done = taiwa("extract", target.format(shop=shop), "A latte.")

    assert done.code == 2
    assert done.err.count("\n") == 1
    assert complaint in done.err
    assert model_server.seen == []


@pytest.mark.parametrize("arguments", [(), ("text", "--file", "x"), ("text", "--resume"), ("text", "-o", "x.jsonl")])
def test_a_text_or_a_file_is_needed_and_not_both(
    taiwa: Taiwa, model_server: ModelServer, shop: str, arguments: tuple[str, ...]
) -> None:
    model_server(GOOD)

    assert taiwa("extract", f"{shop}:Order", *arguments).code == 2


def test_an_empty_text_costs_nothing(taiwa: Taiwa, model_server: ModelServer, shop: str) -> None:
    model_server(GOOD)

    done = taiwa("extract", f"{shop}:Order", " ")

    assert done.code == 2
    assert "the text is empty" in done.err
    assert model_server.seen == []


# Conversations


def test_c_goes_on_with_the_type_and_other_commands_know_the_conversation(
    taiwa: Taiwa, model_server: ModelServer, shop: str
) -> None:
    more = '{"drinks": [{"name": "latte", "size": "large"}, {"name": "tea"}]}'
    model_server(GOOD, more, GOOD, more)

    taiwa.ok("extract", f"{shop}:Order", "A large latte.")
    second = taiwa.ok("extract", "-c", "And a tea.", "--json").json
    piped = taiwa.ok("extract", "-s", "extract-1", "--json", input="No tea.\n").json

    assert (second["session"], second["value"]["drinks"][1]["name"]) == ("extract-1", "tea")
    assert [message["content"] for message in model_server.requests[1]["messages"][1:]] == [
        "A large latte.", json.dumps(json.loads(GOOD)), "And a tea."
    ]  # fmt: skip
    assert (piped["value"], piped["delta"]) == (ORDER, {})
    taiwa.ok("undo")
    assert json.loads(taiwa.ok("retry").out) == json.loads(more)
    assert all(row["problem"] == "" for row in taiwa.ok("replay", "extract-1", "--json").json)


def test_another_type_may_be_given_to_a_conversation(taiwa: Taiwa, model_server: ModelServer, shop: str) -> None:
    model_server(GOOD, '{"value": ["latte"]}', '{"value": ["latte", "tea"]}')
    taiwa.ok("extract", f"{shop}:Order", "A large latte.")

    assert taiwa.ok("extract", "-c", f"{shop}:Names", "Only names.").json == ["latte"]
    assert taiwa.ok("extract", "-c", "And a tea.").json == ["latte", "tea"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("-c", "text", "--mode", "tool"), "has its parameters"),
        (("-s", "new", "text"), "extract takes a TYPE and a TEXT"),
        (("-s", "talk", "text"), "has the app 'plain', not 'extract'"),
        (("-c", "'a int'", "--file", "x"), "extract takes a TYPE and a TEXT"),
    ],
)
def test_what_a_conversation_cannot_take_is_an_error_of_one_line(
    taiwa: Taiwa, model_server: ModelServer, shop: str, arguments: tuple[str, ...], complaint: str
) -> None:
    model_server("Hello.", GOOD)
    taiwa.ok("say", "-s", "talk", "Hi")
    taiwa.ok("extract", f"{shop}:Order", "A large latte.")

    done = taiwa("extract", *arguments)

    assert (done.code, done.err.count("\n")) == (2, 1)
    assert complaint in done.err
    assert len(model_server.seen) == 2


def test_an_empty_file_is_an_empty_text(taiwa: Taiwa, model_server: ModelServer, tmp_path: Path) -> None:
    model_server()
    (tmp_path / "empty.txt").touch()

    done = taiwa("extract", "name str", "-f", str(tmp_path / "empty.txt"))

    assert (done.code, done.err) == (2, "taiwa: the text is empty\n")


# Batches


def test_every_line_of_a_file_gives_a_row_in_order(
    taiwa: Taiwa, model_server: ModelServer, shop: str, lines: Callable[[str], str]
) -> None:
    model_server(GOOD, '{"drinks": [{"name": "tea"}]}')

    done = taiwa.ok("extract", f"{shop}:Order", "--file", lines("A latte.\n\nTea.\n"), "-j", "1")

    assert [(row["index"], row["text"]) for row in done.rows] == [(1, "A latte."), (3, "Tea.")]
    assert [row["value"]["drinks"][0]["name"] for row in done.rows] == ["latte", "tea"]
    assert [row["attempts"] for row in done.rows] == [1, 1]


def test_a_row_that_fails_has_its_error_and_stops_nothing(
    taiwa: Taiwa, model_server: ModelServer, shop: str, lines: Callable[[str], str]
) -> None:
    model_server(BAD, BAD, GOOD)

    done = taiwa("extract", f"{shop}:Order", "--file", lines("One.\nTwo.\n"), "-j", "1", "-v")

    first, second = done.rows
    assert done.code == 1
    assert (first["value"], first["error"]["type"]) == (None, "extraction")
    assert first["error"]["best"] == json.loads(BAD)
    assert [each["text"] for each in first["attempts"]] == [BAD, BAD]
    assert second["value"] == ORDER


def test_with_strict_a_line_that_cannot_be_read_stops_before_anything_is_sent(
    taiwa: Taiwa, model_server: ModelServer, shop: str, tmp_path: Path
) -> None:
    model_server(GOOD)
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"text": "a tea"}\n{"words": 1}\n', encoding="utf-8")

    for more in ((), ("--dry-run",)):
        stopped = taiwa("extract", f"{shop}:Order", "--file", str(lines), "--strict", *more)

        assert (stopped.code, stopped.out, model_server.requests) == (2, "", [])
        assert f'{lines}: line 2 has no "text"' in stopped.err
    assert taiwa("extract", f"{shop}:Order", "a tea", "--strict").code == 2


def test_resume_pays_for_no_row_twice(
    taiwa: Taiwa, model_server: ModelServer, shop: str, lines: Callable[[str], str], place: Place
) -> None:
    out, file = str(place.folder / "rows.jsonl"), lines("One.\nTwo.\n")
    model_server(GOOD, BAD, BAD)
    first = taiwa("extract", f"{shop}:Order", "--file", file, "-j", "1", "-o", out)
    model_server('{"drinks": [{"name": "cocoa"}]}')

    second = taiwa.ok("extract", f"{shop}:Order", "--file", file, "-j", "1", "-o", out, "--resume", "--json")

    rows = [json.loads(line) for line in Path(out).read_text().splitlines()]
    assert first.code == 1
    assert [row["value"]["drinks"][0]["name"] for row in rows] == ["latte", "cocoa"]
    assert len(model_server.seen) == 1
    assert (second.json["done"], second.json["kept"]) == (1, 1)


def test_the_keys_of_a_row_that_is_kept_have_their_order(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[[str], str]
) -> None:
    model_server('{"name": "Ann", "age": 3}')
    words = ("extract", "name, age: int", "--file", lines("One.\n"))

    first = taiwa.ok(*words).out

    assert taiwa.ok(*words, "--resume").out == first


def test_another_type_repair_policy_or_mode_is_sent_again(
    taiwa: Taiwa, model_server: ModelServer, shop: str, lines: Callable[[str], str]
) -> None:
    file = lines("One.\n")
    model_server(GOOD, GOOD, '{"value": ["a"]}')
    taiwa.ok("extract", f"{shop}:Order", "--file", file)

    taiwa.ok("extract", f"{shop}:Order", "--file", file, "--resume", "--max-repairs", "2")
    taiwa.ok("extract", f"{shop}:Names", "--file", file, "--resume")

    assert len(model_server.seen) == 3


def test_a_cost_limit_ends_a_batch_and_what_was_paid_for_is_kept(
    taiwa: Taiwa, model_server: ModelServer, shop: str, lines: Callable[[str], str]
) -> None:
    model_server(GOOD, GOOD, prices={"*": {"input": 0, "output": 1000}})

    done = taiwa("extract", f"{shop}:Order", "--file", lines("One.\nTwo.\nThree.\n"), "-j", "1", "--max-cost", "0.018")

    assert done.code == 1
    assert len(done.rows) == 1
    assert "limit on cost" in done.err


def test_an_unreachable_server_is_reported_once(
    taiwa: Taiwa, model_server: ModelServer, shop: str, lines: Callable[[str], str]
) -> None:
    model_server(status(401, b'{"error": {"message": "who are you"}}'))

    done = taiwa("extract", f"{shop}:Order", "--file", lines("One.\nTwo.\n"), "-j", "1")

    assert done.code != 0
    assert len(model_server.seen) == 1


def test_a_dry_run_of_a_file_counts(
    taiwa: Taiwa, model_server: ModelServer, shop: str, lines: Callable[[str], str]
) -> None:
    model_server(GOOD)

    done = taiwa.ok("extract", f"{shop}:Order", "--file", lines("One.\nTwo.\n"), "--dry-run", "--json")

    assert (done.json["rows"], done.json["bad"]) == (2, 0)
    assert model_server.seen == []


@pytest.mark.parametrize("text", [(), ("Bob is 5",)])
def test_a_type_as_an_option_is_answered_with_the_place_of_the_type(taiwa: Taiwa, text: tuple[str, ...]) -> None:
    done = taiwa("extract", "--type", "name, age int", *text)

    assert (done.code, done.out) == (2, "")
    assert "TYPE is the first argument: taiwa extract 'name, age int' TEXT" in done.err


@pytest.mark.parametrize(("above", "lines"), [("", 0), ("Staff 2024\n\n", 2), ("sep=;\n", 1), ("\n", 1)])
def test_a_row_of_a_table_is_sent_with_the_names_of_its_columns(
    taiwa: Taiwa, model_server: ModelServer, place: Place, above: str, lines: int
) -> None:
    model_server('{"age": 33}', '{"age": 41}')
    file = place.folder / "people.csv"
    file.write_text(f'\ufeff{above}full name;age;\n"Ann;\nLee";33;x\n;;\nBob;41;\n', encoding="utf-8")

    done = taiwa.ok("extract", "age int", "--file", str(file), "-j", "1")

    assert [(row["index"], row["text"], row["value"]) for row in done.rows] == [
        (lines + 3, "full name: Ann;\nLee\nage: 33\nx", {"age": 33}),
        (lines + 5, "full name: Bob\nage: 41", {"age": 41}),
    ]
    assert len(model_server.requests) == 2


def test_a_column_of_texts_is_sent_without_its_name_and_the_rows_are_written_as_json(
    taiwa: Taiwa, place: Place, model_server: ModelServer
) -> None:
    model_server('{"age": 3}')
    file = place.folder / "people.csv"
    file.write_text("id,text\nh7,Ann is 3.\nh8,\n")

    refused = taiwa("extract", "age int", "--file", str(file), "-o", str(place.folder / "out.csv"))
    (row,) = taiwa.ok("extract", "age int", "--file", str(file)).rows

    assert (row["id"], row["text"], row["value"]) == ("h7", "Ann is 3.", {"age": 3})
    assert (refused.code, "the rows are written as lines of JSON; name the file out.jsonl" in refused.err) == (2, True)


def test_a_table_of_a_spreadsheet_is_read_in_its_encoding(
    taiwa: Taiwa, place: Place, model_server: ModelServer
) -> None:
    model_server('{"age": 3}')
    file = place.folder / "people.tsv"
    file.write_bytes("id\t名前\tage\r\nh7\t花子\t3\r\n".encode("utf-16"))

    (row,) = taiwa.ok("extract", "age int", "--file", str(file)).rows

    assert (row["id"], row["text"]) == ("h7", model_server.last_message())
    assert model_server.last_message() == "id: h7\n名前: 花子\nage: 3"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"a,b\n\xff,2\n", "cannot be read as a table in UTF-8: "),
        (b'a,b\n"' + b"x" * 9_000_000 + b'",2\n', "a line is longer than 8,000,000 characters"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line(raw: bytes, why: str, taiwa: Taiwa, place: Place) -> None:
    file = place.folder / "people.csv"
    file.write_bytes(raw)

    refused = taiwa("extract", "age int", "--file", str(file))

    assert refused.code == 2
    assert refused.err.startswith(f"taiwa: {file}: {why}")
