"""Options of answers: instructions, sampling, tools and a type, which a conversation keeps; and texts from files."""

from pathlib import Path

import pytest

from taiwa.conversation.app import restore_options
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from tests.cli.conftest import ModelServer, Place, Taiwa

TOOL = '''\
import taiwa


@taiwa.tool
def price(item: str) -> str:
    """Return the price of an item."""
    return "4.20"
'''
NOT_TEXT = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def test_a_conversation_keeps_its_options_until_others_are_given(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("Arr.", "Arr again.", "Colder.")
    taiwa.ok("say", "-s", "k", "--system", "Answer like a pirate.", "--temperature", "0.5", "--max-tokens", "9", "Hi")
    taiwa.ok("say", "-c", "Again")
    taiwa.ok("say", "-c", "--temperature", "0", "Once more")

    first, second, third = model_server.requests
    assert first["messages"][0] == {"role": "system", "content": "Answer like a pirate."}
    assert (first["temperature"], first["max_tokens"]) == (0.5, 9)
    assert second["messages"][0] == first["messages"][0]
    assert (second["temperature"], second["max_tokens"]) == (0.5, 9)
    assert (third["temperature"], third["max_tokens"]) == (0, 9)
    assert third["messages"][0] == first["messages"][0]


COSTLY = {"*": {"input": 1, "output": 1}}
"""An answer costs 0.00001."""


@pytest.mark.parametrize(
    "command", [("say", "-c", "Again"), ("retry",), ("edit", "1", "Hi"), ("rerun", "-o", "other"), ("chat", "-c")]
)
def test_a_conversation_keeps_its_limit_of_cost(
    command: tuple[str, ...], taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server("One.", "Two.", prices=COSTLY)
    taiwa.ok("say", "-s", "k", "--max-cost", "1", "Hi")
    taiwa.place.set(model=model_server.model, prices=COSTLY, max_cost=0)

    done = taiwa.ok(*command, input="Hi\n/cost\n")

    assert len(model_server.requests) == 2
    assert command[0] != "chat" or "0.00001 USD" in done.out
    assert command[0] != "chat" or "at most 1 USD" in done.out


def test_a_kept_limit_is_changed_lifted_and_shown(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("One.", "Two.", "Three.", "Four.", prices=COSTLY)
    taiwa.ok("say", "-s", "k", "Hi")
    refused = [
        taiwa("say", "-c", "--max-cost", "0", "Again").code,
        taiwa("chat", "-c", "--max-cost", "0", input="A").code,
    ]
    taiwa.ok("say", "-c", "--max-cost", "0.5", "Again")
    assert "--max-cost 0.5" in taiwa.ok("log", "k").out
    assert "options: --max-cost 0.5" in taiwa.ok("show", "k").out
    taiwa.ok("say", "-c", "--max-cost", "none", "Again")

    assert refused == [1, 1]
    assert taiwa.ok("show", "k", "--json").json["options"] == {}


def test_a_limit_that_came_with_an_import_counts_only_for_a_trusted_app(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server("One.", "Two.", prices=COSTLY, max_cost=0.5)
    taiwa.ok("say", "-s", "k", "--max-cost", "9", "Hi")
    file, other = tmp_path / "k.jsonl", ("--store", str(tmp_path / "other.db"))
    taiwa.ok("export", "k", "-o", str(file))
    imported = taiwa.ok("import", str(file), *other)

    assert "max cost: 9" in imported.out
    assert "at most 0.5 USD" in taiwa.ok("chat", "-s", "k", *other, input="/cost\n").out
    taiwa.ok("apps", "trust", "k", "--yes", *other)
    assert "at most 9 USD" in taiwa.ok("chat", "-s", "k", *other, input="/cost\n").out


def test_options_of_a_turn_are_committed_with_it_and_undone_with_it(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("One.", "Two.", "Three.")
    taiwa.ok("say", "-s", "k", "Hi")
    taiwa.ok("say", "-c", "--system", "Be brief.", "Again")
    taiwa.ok("undo")
    taiwa.ok("say", "-c", "Again")

    assert next(message["role"] for message in model_server.requests[1]["messages"]) == "system"
    assert next(message["role"] for message in model_server.requests[2]["messages"]) == "user"
    assert taiwa.ok("replay", "k").err == ""
    assert taiwa.ok("fsck").out.endswith("every hash is right\n")


def test_a_failed_turn_leaves_the_options_as_they_were(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("One.")
    taiwa.ok("say", "-s", "k", "Hi")
    tip = taiwa.ok("show", "k", "--json").json["node"]

    assert taiwa("say", "-c", "--system", "Be brief.", "Again").code == 1
    assert taiwa.ok("show", "k", "--json").json["node"] == tip


@pytest.mark.parametrize("command", [("retry",), ("edit", "1", "Hi"), ("rerun", "-o", "other")])
def test_the_options_hold_for_retry_edit_and_rerun(
    command: tuple[str, ...], taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server("One.", "Two.")
    taiwa.ok("say", "-s", "k", "--system", "Be brief.", "--temperature", "0.7", "Hi")

    taiwa.ok(*command)

    assert model_server.requests[1]["messages"] == model_server.requests[0]["messages"]
    assert model_server.requests[1]["temperature"] == 0.7


def test_retry_with_another_option_changes_it_from_there_on(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("One.", "Two.", "Three.")
    taiwa.ok("say", "-s", "k", "Hi")
    taiwa.ok("retry", "--system", "Be brief.")
    taiwa.ok("say", "-c", "On")

    assert [row["user"] for row in taiwa.ok("log", "k", "--json").json if row["kind"] == "turn"] == ["Hi", "On"]
    assert model_server.requests[2]["messages"][0]["content"] == "Be brief."
    assert taiwa.ok("replay", "k").code == 0


def test_an_exported_conversation_takes_its_options_along(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server("One.", "Two.")
    taiwa.ok("say", "-s", "k", "--system", "Be brief.", "--temperature", "0.7", "Hi")
    file = tmp_path / "k.jsonl"
    taiwa.ok("export", "k", "-o", str(file))
    other = ("--store", str(tmp_path / "other.db"))

    taiwa.ok("import", str(file), *other)
    taiwa.ok("say", "-s", "k", "On", *other)

    assert model_server.requests[1]["messages"][0]["content"] == "Be brief."
    assert model_server.requests[1]["temperature"] == 0.7


@pytest.mark.parametrize(
    "parts",
    [
        {"sampling": {"~": "sampling", "temperature": "hot"}},
        {"sampling": {"~": "sampling", "temperature": 3}},
        {"sampling": {"~": "sampling", "top_p": 2}},
        {"sampling": {"~": "sampling", "max_tokens": 0}},
        {"sampling": None},
        {"tools": "x"},
        {"tools": [1]},
        {"schema": []},
        {"schema": {"~": "json-schema", "schema": 3}},
        {"constraint": "a"},
        {"constraint": {"~": "json-schema", "schema": 3}},
        {"client_tools": [{"~": "tool-spec", "name": "a", "description": "", "parameters": 1}]},
        {"client_tools": ["a"]},
        {"stop": [1]},
        {"top_logprobs": -1},
        {"request": {"~": "sampling"}},
        {"request": {"~": "answer-options", "tools": ["calculator"]}},
        {"request": {"~": "answer-options", "request": {"~": "answer-options"}}},
        {"tool_files": [1]},
        {"limits": {"~": "usage-limits", "cost": -1}},
        {"limits": {"~": "usage-limits", "seconds": "x"}},
        {"request": {"~": "answer-options", "limits": {"~": "usage-limits", "cost": 1}}},
        {"other": 1},
        {"~": "sampling"},
        {"~": "unknown"},
    ],
)
def test_a_damaged_option_of_an_import_is_refused(parts: dict[str, Json]) -> None:
    with pytest.raises(InputError, match="options of the app cannot be read"):
        restore_options({"~": "answer-options", **parts})


@pytest.mark.parametrize("data", [{"temperature": 1}, [1], 3, "x", {}])
def test_what_is_not_a_record_of_options_is_refused(data: Json) -> None:
    with pytest.raises(InputError, match="options of the app cannot be read"):
        restore_options(data)


def test_options_of_an_imported_app_that_names_tools_wait_for_trust(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server("One.", "Two.")
    taiwa.ok("say", "-s", "k", "--tool", "calculator", "Hi")
    file = tmp_path / "k.jsonl"
    taiwa.ok("export", "k", "-o", str(file))
    other = ("--store", str(tmp_path / "other.db"))
    taiwa.ok("import", str(file), *other)

    refused = taiwa("say", "-s", "k", "--temperature", "1", "On", *other)

    assert refused.code == 2
    assert "taiwa apps trust plain" in refused.err


def test_instructions_are_for_an_app_without_any(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server()

    refused = taiwa("say", "translate", "-p", "target_lang=English", "--system", "Be brief.", "文")

    assert refused.code == 2
    assert "has its own instructions" in refused.err
    assert not model_server.requests


def test_instructions_are_no_template(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("One.")

    taiwa.ok("say", "--system", "Say {{PROMPT}} and {{x}}.", "Hi")

    assert model_server.requests[0]["messages"][0]["content"] == "Say {{PROMPT}} and {{x}}."


@pytest.fixture
def shop(taiwa: Taiwa, model_server: ModelServer, tmp_path: Path) -> Path:
    """A file with a tool, which the conversation k has called."""
    file = tmp_path / f"shop_{tmp_path.name}.py"  # modules of one process have different names
    file.write_text(TOOL)
    model_server("It costs <<price: latte>>", " dollars.", *["One."] * 6)
    assert "4.20" in taiwa.ok("say", "-s", "k", "--tool", f"{file}:price", "What is a latte?").out
    assert "call: price, result 4.20, " in taiwa.ok("show", "k").out
    return file


@pytest.mark.parametrize(
    "command", [("say", "-c", "And a tea?"), ("retry",), ("edit", "1", "A tea?"), ("rerun", "-o", "x")]
)
def test_a_conversation_goes_on_with_the_tools_of_a_file_of_its_user(
    command: tuple[str, ...], shop: Path, taiwa: Taiwa, model_server: ModelServer
) -> None:
    taiwa.ok(*command)

    assert "price" in model_server.requests[-1]["messages"][0]["content"]
    assert "--tool price" in taiwa.ok("show", "k").out


def test_a_file_of_tools_that_changed_is_to_be_named_again(shop: Path, taiwa: Taiwa) -> None:
    shop.write_text(TOOL + "raise SystemExit('run')\n")
    changed = taiwa("say", "-c", "And a tea?")
    shop.unlink()
    gone = taiwa("say", "-c", "And a tea?")

    assert (changed.code, gone.code) == (2, 2)
    assert f"has changed; to use it as it is now: --tool {shop}:price" in changed.err
    assert "is gone; name its file: --tool FILE.py:price" in gone.err


def test_a_store_of_somebody_else_makes_no_file_run(shop: Path, taiwa: Taiwa) -> None:
    (taiwa.place.config.parent / "tools.json").unlink()

    refused = taiwa("say", "-c", "And a tea?")

    assert refused.code == 2
    assert "--tool FILE.py:price" in refused.err


def test_an_answer_of_a_type_is_json_on_one_line(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server('```json\n{"name": "Ann", "age": 7}\n```', '{"name": "Bo", "age": 8}', "Text.")

    assert taiwa.ok("say", "--schema", "name, age int", "Invent a person").json == {"name": "Ann", "age": 7}
    assert taiwa.ok("say", "-c", "Another").json == {"name": "Bo", "age": 8}
    assert taiwa.ok("say", "-c", "--schema", "none", "In words").out == "Text.\n"
    assert "type Answer" in model_server.requests[0]["messages"][0]["content"]
    assert model_server.requests[2]["messages"][0]["role"] == "user"


def test_a_type_keeps_the_order_of_its_fields_in_later_turns_and_in_a_replay(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server(*['{"name": "Ann", "age": 7}'] * 2)

    taiwa.ok("say", "--schema", "name, age int", "Invent a person")
    taiwa.ok("say", "-c", "Another")

    first, second = (request["messages"][0]["content"] for request in model_server.requests)
    assert first.index("name: string") < first.index("age: number")
    assert second == first
    assert "every state has its recorded hash" in taiwa.ok("replay").out


def test_an_answer_that_is_not_of_the_type_is_sent_back_once_and_then_refused(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server('{"name": "Ann"}', '{"name": "Ann", "age": "old"}')

    refused = taiwa("say", "-s", "k", "--schema", "name, age int", "Invent a person")

    assert refused.code == 1
    assert "age" in refused.err
    assert len(model_server.requests) == 2
    assert taiwa("show", "k").code == 2


@pytest.mark.parametrize("source", ["file.json", "file.py:Person", "name, age int, bio?: one sentence"])
def test_a_type_comes_from_a_file_or_a_line(
    source: str, taiwa: Taiwa, model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.json").write_text(
        '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}'
    )
    (tmp_path / "file.py").write_text(
        "import pydantic\n\n\nclass Person(pydantic.BaseModel):\n    name: str\n    age: int\n"
    )
    model_server('{"name": "Ann", "age": 7}', '{"name": "Ann", "age": 7}')

    assert taiwa.ok("say", "--schema", source, "Invent a person").json == {"name": "Ann", "age": 7}
    assert taiwa.ok("extract", source, "Ann is 7").json == {"name": "Ann", "age": 7}


@pytest.mark.parametrize("source", ["name int int, x", ", ,", "a, a", "schema.jsn"])
def test_a_type_that_cannot_be_read_is_one_line(source: str, taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server()

    refused = taiwa("say", "--schema", source, "Hi")

    assert refused.code == 2
    assert len(refused.err.splitlines()) == 1
    assert not model_server.requests


def test_texts_of_files_stand_behind_the_prompt(taiwa: Taiwa, model_server: ModelServer, tmp_path: Path) -> None:
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_text("first\n")
    other.write_bytes("日本語の文章です。\n".encode("euc_jp"))
    model_server("A.", "B.", "C.", "D.")

    taiwa.ok("say", "-f", str(one), "Sum up:")
    taiwa.ok("say", "-f", str(one), "-f", str(other), "Compare:")
    taiwa.ok("say", "-f", str(one), "-f", "-", "Compare:", input="piped\n")
    taiwa.ok("say", "-f", str(one))

    assert model_server.last_message(0) == "Sum up:\n\nfirst"
    assert model_server.last_message(1) == f"Compare:\n\n{one}:\nfirst\n\n{other}:\n日本語の文章です。"
    assert model_server.last_message(2) == f"Compare:\n\n{one}:\nfirst\n\n-:\npiped"
    assert model_server.last_message(3) == "first"


@pytest.mark.parametrize("raw", [NOT_TEXT, b"%PDF-1.7\n" + b"text " * 50, b"PK\x03\x04"])
def test_a_file_that_is_not_text_is_refused_in_one_line(
    raw: bytes, taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    file = tmp_path / "picture"
    file.write_bytes(raw)
    model_server()

    refused = taiwa("say", "-f", str(file), "What is it?")

    assert refused.code == 2
    assert refused.err.startswith(f"taiwa: {file} is not a text file")
    assert len(refused.err.splitlines()) == 1


def test_a_batch_takes_the_options_too(taiwa: Taiwa, model_server: ModelServer, place: Place, tmp_path: Path) -> None:
    rows = tmp_path / "rows.txt"
    rows.write_text("one\n")
    model_server("A.")

    taiwa.ok("batch", "plain", str(rows), "--mode", "map", "--system", "Be brief.", "--temperature", "0.3")

    assert model_server.requests[0]["messages"][0]["content"] == "Be brief."
    assert model_server.requests[0]["temperature"] == 0.3


def test_extract_takes_a_pipe_a_file_and_instructions(taiwa: Taiwa, model_server: ModelServer, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("two teas")
    model_server('{"drink": "tea", "count": 2}', '{"drink": "tea", "count": 2}')

    taiwa.ok("extract", "drink, count int", input="two teas\n")
    taiwa.ok("extract", "drink, count int", "-f", str(file), "--system", "Drinks are in English.", "--max-tokens", "50")

    assert model_server.last_message(0) == model_server.last_message(1) == "two teas"
    assert model_server.requests[1]["messages"][0]["content"].startswith("Drinks are in English.")
    assert model_server.requests[1]["max_tokens"] == 50
    assert taiwa("extract", "drink, count int").code == 2


def test_generate_joins_the_prompt_and_what_is_piped(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("A.")

    taiwa.ok("generate", "Sum up:", input="text\n")

    assert model_server.last_message(0) == "Sum up:\n\ntext"
