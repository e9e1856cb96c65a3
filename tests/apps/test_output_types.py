"""The type of the answers of an app, in every notation that names or writes one."""

import json
from pathlib import Path

import pytest

from taiwa.apps.catalog import check, load, load_source, load_unchanged, own_code
from taiwa.apps.output_types import is_schema
from taiwa.conversation.app import App
from taiwa.conversation.code_files import confirm_file, load_function
from taiwa.kernel.errors import ConfigError, OutputValidationError
from taiwa.kernel.serialization import Json
from taiwa.sessions.repository import Repository
from taiwa.store import Store

SCHEMA: dict[str, Json] = {
    "type": "object",
    "title": "Order",
    "properties": {"drink": {"enum": ["tea", "it's coffee"]}, "cups": {"type": "integer"}},
    "required": ["drink", "cups"],
    "additionalProperties": False,
}
TYPESCRIPT = 'export interface Order {\n  drink: "tea" | "it\'s coffee"; // what to drink\n  cups: number;\n}\n'
CODE = """\
from dataclasses import dataclass


class Shop:
    @dataclass
    class Order:
        drink: str
        cups: int

        def __post_init__(self):
            if self.cups > 10:
                raise ValueError("at most ten cups")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of a type, that is not the current one."""
    monkeypatch.setenv("TAIWA_CONFIG", str(tmp_path / "config" / "config.yaml"))
    folder = tmp_path / "shop"
    (folder / "types").mkdir(parents=True)
    (folder / "types" / "the order.json").write_text(json.dumps(SCHEMA))
    (folder / "order.ts").write_text(TYPESCRIPT)
    (folder / "order.py").write_text(CODE)
    return folder


def app_file(folder: Path, answer: str) -> Path:
    path = folder / "desk.md"
    path.write_text(f"---\ntaiwa: 1\nanswer: {answer}\nabout: Take orders\n---\nTake an order.\n")
    return path


def accepts(app: App, value: Json) -> bool:
    assert app.output_type is not None
    try:
        app.output_type.validate(value)
    except OutputValidationError:
        return False
    return True


@pytest.mark.parametrize(
    "answer",
    [
        "order.ts:Order",
        "types/the order.json",
        "'types/the order.json'",
        ">\n  types/the order.json\n",
        '\'{"title": "Order", "properties": {"drink": {"enum": ["tea"]}, "cups": {"type": "integer"}}, "required": ["cups"], "additionalProperties": false}\'',
        '{ title: Order, properties: { drink: { enum: [tea] }, cups: { type: integer } }, required: [cups], additionalProperties: false }',
        "|\n  interface Order { drink: string; cups: number }\n",
        "drink, cups int",
        "drink, cups int, type? str",
        '{ drink: \'"tea"\', cups: int, "items?": "list[str]" }',
        '\'{"drink": str, "cups": int}\'',
        "order.py:Shop.Order",
    ],
)  # fmt: skip
def test_a_type_in_any_notation_is_that_of_the_answers_and_a_part_of_the_stored_app(folder: Path, answer: str) -> None:
    path = app_file(folder, answer)
    for file in own_code(path):
        confirm_file(file)

    assert check(path) == ()
    app = load(path)
    for each in folder.rglob("*.[tjp][sy]*"):
        each.unlink()
    stored = load_source(app.source)

    for known in (app, stored):
        assert accepts(known, {"drink": "tea", "cups": 2})
        assert not accepts(known, {"drink": "tea", "cups": "two"})
        assert not accepts(known, {"drink": "tea", "cups": 2, "milk": True})
        assert (known.about, known.body, known.answer) == ("Take orders", "Take an order.", app.answer)


def test_code_of_a_stored_app_checks_where_it_is_confirmed_and_its_schema_is_known_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = app_file(folder, "order.py:Shop.Order")
    for file in own_code(path):
        confirm_file(file)
    app = load(path)

    stored = load_source(app.source)
    with Store.open(":memory:") as store:
        here = Repository(store).with_type(stored)
        monkeypatch.setenv("TAIWA_CONFIG", str(folder / "elsewhere" / "config.yaml"))
        load_function.cache_clear()
        with pytest.raises(ConfigError, match=r"order\.py .* was not confirmed here"):
            Repository(store).with_type(stored)

    assert (stored.answer, stored.answer_code) == (app.answer, app.answer_code)
    for known, allowed in ((app, [2]), (here, [2]), (stored, [2, 12])):
        assert [cups for cups in (2, 12, "two") if accepts(known, {"drink": "tea", "cups": cups})] == allowed


def test_a_comment_of_a_file_without_code_names_no_code(folder: Path) -> None:
    comment = f"order.py@{'a' * 32}:Shop.Order"
    (folder / "order.json").write_text(json.dumps({"$comment": comment, "properties": {"cups": {"type": "integer"}}}))

    app = load(app_file(folder, "order.json"))

    assert (app.answer_code, load_source(app.source).answer_code) == ("", "")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("gone.json", "gone.json: No such file or directory; a path begins at the folder of the app"),
        ("types.json", "types.json is a folder"),
        ("broken.json", "broken.json is not JSON: "),
        ("number.json", "number.json is not a JSON Schema; it must hold an object"),
        ("wrong.json", "wrong.json: "),
        ("order.ts:Ordr", "order.ts:1:1: the text does not declare 'Ordr'; did you mean Order?"),
        ("'order.ts:'", "order.ts:1:1: the text does not declare ''"),
        ("broken.ts:Order", "broken.ts:1:"),
        ("gone.ts:Order", "gone.ts: No such file or directory"),
        ("gone.py:Order", "the file gone.py was not found next to the app"),
        ("order.py:Shop.Order", "run `taiwa apps confirm`"),
        ("shop.order:Order", "an app imports no module; name the file: shop/order.py:Order"),
        ("large.json", "characters as JSON Schema, at most 32,768; leave out what an answer does not need"),
        ('\'{"type": "object", "required": ["a"}\'', "the type is not JSON: "),
    ],
)
def test_a_type_that_cannot_be_read_is_one_line_with_its_place(folder: Path, answer: str, message: str) -> None:
    (folder / "order.py").write_text(f"{CODE}# not confirmed\n")
    (folder / "types.json").mkdir()
    (folder / "broken.json").write_text('{"type": ')
    (folder / "number.json").write_text("3")
    (folder / "wrong.json").write_text('{"type": "object", "properties": 3}')
    (folder / "broken.ts").write_text("interface Order {{")
    (folder / "large.json").write_text(json.dumps({"enum": [f"tea {n}" for n in range(5_000)]}))
    path = app_file(folder, answer)

    (problem,) = check(path)

    assert problem.line == 3
    assert message in f"{problem.message}; {problem.hint}"
    assert "\n" not in problem.message
    with pytest.raises(ConfigError, match=r"desk\.md:3: "):
        load(path)


@pytest.mark.parametrize("answer", ["order.ts:Order", "types/the order.json"])
def test_a_server_reads_the_type_again_when_its_file_has_changed(folder: Path, answer: str) -> None:
    path = app_file(folder, answer)
    before = load_unchanged(str(path))

    for file in (folder / "order.ts", folder / "types" / "the order.json"):
        file.write_text(file.read_text().replace("tea", "cocoa"))
    after = load_unchanged(str(path))

    assert [accepts(app, {"drink": "cocoa", "cups": 2}) for app in (before, after)] == [False, True]
    assert before.hash != after.hash


@pytest.mark.parametrize(
    ("table", "is_one"),
    [
        ({"type": "string"}, True), ({"type": ["string", "null"]}, True), ({"enum": ["a"]}, True), ({"const": 1}, True),
        ({"items": {"type": "string"}}, True), ({"$ref": "#/$defs/a", "$defs": {"a": {}}}, True),
        ({"type": "str"}, False), ({"items": "list[str]", "enum": "str"}, False), ({"name": "str"}, False),
    ],
)  # fmt: skip
def test_a_table_is_a_schema_or_fields(table: dict[str, Json], is_one: bool) -> None:
    assert is_schema(table) is is_one
