"""Types written in TypeScript: what they accept, what a model is shown of them, and where they are refused."""

import json
import re
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ConfigError, OutputValidationError
from taiwa.structured import OutputType
from taiwa.structured.from_typescript import MAX_CHARS, TypeScriptError, schema_from_typescript

SHOP = """\
// What a shop sells.

interface Named {
  name: string; // as on the menu
}

// one drink
export interface Drink extends Named {
  kind: "drink";
  size?: Size;
  /** how many,
   * never 0 */
  quantity: number;
  syrups: Array<"vanilla" | "caramel">;
}

type Size = "tall" | "grande" | 12;

export type Order = {
  items: (Drink | Unknown)[],
  notes?: Record<string, string | null>;
  at: { x: number, y: number } & Named;
  pair: [number, boolean];
  parent?: Order;
};

type Unknown = { kind: 'unknown'; text: string };

export const sizes = ["tall", "grande"];
"""
DRINK = {"kind": "drink", "name": "latte", "size": "tall", "quantity": 1, "syrups": ["vanilla"]}
ORDER = {"items": [DRINK, {"kind": "unknown", "text": "?"}], "at": {"x": 0, "y": 1.5, "name": "a"}, "pair": [1, True]}


def test_a_type_is_shown_as_it_is_written_with_its_comments() -> None:
    assert (
        OutputType.from_typescript(SHOP, "Order").render()
        == """\
type Order = {
  items: (Drink | Unknown)[];
  notes?: Record<string, string | null>;
  at: {
    x: number;
    y: number;
    name: string; // as on the menu
  };
  pair: [number, boolean];
  parent?: Order;
};

type Drink = { // one drink
  name: string; // as on the menu
  kind: "drink";
  size?: "tall" | "grande" | 12;
  quantity: number; // how many, never 0
  syrups: ("vanilla" | "caramel")[];
};

type Unknown = {
  kind: "unknown";
  text: string;
};"""
    )


def test_numbers_stay_as_the_answer_writes_them() -> None:
    quantities = [
        cast("Any", OutputType.from_typescript(SHOP, "Drink").parse(json.dumps(DRINK | {"quantity": quantity})).value)[
            "quantity"
        ]
        for quantity in (1, 1.0, 2.5)
    ]

    assert [repr(quantity) for quantity in quantities] == ["1", "1.0", "2.5"]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"items": [DRINK | {"sise": "tall"}]}, "$.items[0].sise"),
        ({"items": [DRINK | {"size": "small"}]}, "$.items[0].size"),
        ({"items": [{"kind": "drink", "quantity": 1, "syrups": []}]}, "$.items[0].name: missing"),
        ({"items": [{"kind": "tea"}]}, '$.items[0].kind = "tea"'),
        ({"notes": {"a": 1}}, "$.notes.a"),
        ({"pair": [1]}, "$.pair: has 1"),
        ({"at": {"x": 1, "y": 2}}, "$.at.name: missing"),
        ({"parent": {}}, "$.parent.items: missing"),
        ({"size": 12}, "$.size = 12: no key here"),
    ],
)
def test_an_answer_is_judged_as_the_compiler_would(change: dict[str, Any], line: str) -> None:
    output_type = OutputType.from_typescript(SHOP, "Order")

    assert output_type.parse(json.dumps(ORDER)).value == ORDER
    with pytest.raises(OutputValidationError) as caught:
        output_type.parse(json.dumps(ORDER | change))
    assert any(each.startswith(line) for each in caught.value.diagnostics)


def test_optional_and_undefined_mean_that_a_key_may_be_missing() -> None:
    output_type = OutputType.from_typescript('type A = { a?: string; b: number | undefined; "c d": null }', "A")

    assert output_type.parse('{"c d": null}').value == {"c d": None}
    assert output_type.render() == 'type A = {\n  a?: string;\n  b?: number;\n  "c d": null;\n};'


def test_enums_of_literals_and_members_of_other_types_are_read() -> None:
    text = """
    // How large it is
    export enum Size { Small = "small", Large = "large", "x-l" = 3 }
    declare const enum Level { Low = -1, /* high */ High = 1 }
    interface Item { name: string; size?: Size }
    type A = { size: Size; low: Level.Low; field: keyof Item; name: Item["name"]; either: Item["name" | "size"] };
    """
    output_type = OutputType.from_typescript(text, "A")
    value = {"size": "large", "low": -1, "field": "size", "name": "tea", "either": 3}

    assert output_type.parse(json.dumps(value)).value == value
    for key, wrong in {"size": "huge", "low": 1, "field": "sise", "name": 3, "either": 4}.items():
        with pytest.raises(OutputValidationError):
            output_type.parse(json.dumps({**value, key: wrong}))
    assert '"small" | "large" | 3' in output_type.render()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type A = { x: string", "line 1, column 12: not TypeScript"),
        ("type A = {\n  when: Date }", "line 2, column 9: unknown type Date; JSON has no dates; write string"),
        ("type A = { o: Ordr }\ntype Order = {}", "line 1, column 15: unknown type Ordr; did you mean Order?"),
        ("type A = { é: Map<string, number> }", "column 15: Map<…> is not supported; JSON has no maps"),
        ("type A = { f(x: number): void }", "column 12: method signature is not supported; functions are declared"),
        ("type A = { f: () => void }", "column 15: function type is not supported"),
        ("type A<T> = T[]", "column 7: generic types are not supported"),
        ("type A = B<string>; type B<T> = T", "column 10: B<…> is not supported"),
        ("type A = string extends B ? 1 : 2", "conditional type is not supported; write the type that it gives"),
        ("type A = keyof B", "column 16: unknown type B; declare it in the same text"),
        ("type A = keyof typeof sizes", "type query is not supported; write the values as a union of literals"),
        ("type A = keyof string", "string is not an object type"),
        ("type A = Partial<B>; type B = { x: 1 }", "Partial<…> is not supported; write the members with `?`"),
        ("enum A { B = 1 << 2 }", "column 14: 1 << 2 is computed; write a string or a number"),
        ("type A = B.Y; enum B { X = 'x' }", "column 10: B has no member Y; it has X"),
        ("interface A extends B {} enum B { X = 'x' }", "B is an enum and not an object type"),
        ("type A = typeof sizes", "type query is not supported; write the values as a union of literals"),
        ("type A = `a${string}`", "template literal type is not supported; write string"),
        ("type A = B['x']; type B = { y: 1 }", "column 12: B has no member 'x'; it has y"),
        ("type A = B[number]; type B = string[]", "string[] is not an object type"),
        ("type A = bigint", "unknown type bigint; write number"),
        ("type A = [number, ...string[]]", "tuples have a fixed length"),
        ("interface A extends B {}\ntype B = string", "line 2, column 10: string is not an object type"),
        ("interface A extends B {}\ninterface B extends A {}", "line 2, column 21: A extends itself"),
        ("type A = B; type B = A | string", "A refers to itself"),
        ("type A = 1; type A = 2", "A is declared twice"),
        ("type A = { a: 1, a: 2 }", "a is declared twice"),
        ('type A = "\\ud800"', "half a character"),
        ("enum A { B }", 'column 10: B has no value; write B = "…", as it stands in JSON'),
        ("class A {}", "does not declare 'A'; it declares no type"),
        ("type Order = {}", "does not declare 'A'; it declares Order"),
        ("type A = \ud800", "line 1, column 10: half a character (U+D800)"),
        ("/" * (MAX_CHARS + 1), "131,073 characters, at most 131,072"),
        (f"type A = {'[' * 80}1{']' * 80}", "nested deeper than 64"),
    ],
)
def test_what_json_has_no_type_for_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(TypeScriptError) as caught:
        OutputType.from_typescript(text, "A")

    assert message in caught.value.message
    assert (
        caught.value.message
        == f"TypeScript, line {caught.value.line}, column {caught.value.column}: {caught.value.reason}"
    )


def test_without_its_extra_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)

    with pytest.raises(ConfigError, match="needs the extra typescript; install it with"):
        OutputType.from_typescript("type A = string", "A")


def test_what_the_type_does_not_refer_to_is_left_alone() -> None:
    text = "import { X } from './x';\nenum E { A }\nclass C {}\ntype Other<T> = T;\ntype A = string;"

    assert schema_from_typescript(text, "A") == {"type": "string"}


PIECES = st.sampled_from(
    "type A = interface A { } [ ] ( ) < > | & ; : ? , = => \"a\" 'b' 1 -1 `t` // /* */ \n string number undefined null Array Record "
    "Order extends readonly keyof typeof ... é 😀 \ud800 \0 \\".split(" ")
)


@given(st.lists(PIECES, max_size=40).map(" ".join))
def test_any_text_gives_a_type_or_an_error_with_its_place(text: str) -> None:
    place = (1, 1)
    try:
        OutputType.from_typescript(f"type A = {text}", "A").render()
    except TypeScriptError as error:
        place = (error.line, error.column)

    assert min(place) >= 1


@pytest.fixture(scope="module")
def published(shared_data: Path) -> dict[str, dict[str, Any]]:
    lines = (shared_data / "typechat_schemas.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["domain"]: row for row in map(json.loads, lines)}


def test_the_published_schemas_of_typechat_are_read_but_for_those_of_functions(
    published: dict[str, dict[str, Any]], shared_data: Path
) -> None:
    types: dict[str, Any] = {}
    for domain, row in published.items():
        if row["kind"] == "object":
            types[domain] = OutputType.from_typescript(row["typescript"], row["root"])
        else:
            with pytest.raises(TypeScriptError, match=r"taiwa\.Api"):
                OutputType.from_typescript(row["typescript"], row["root"].split()[-1])
    rows = map(json.loads, (shared_data / "typechat_inputs.jsonl").read_text(encoding="utf-8").splitlines())
    expected = [row for row in rows if "expected" in row and row["domain"] in types]

    assert len(types) >= 8
    assert expected
    for row in expected:
        assert types[row["domain"]].validate(row["expected"]) == row["expected"]
        with pytest.raises(OutputValidationError):
            types[row["domain"]].validate(row["expected"] | {"excess": 1})


def test_numbers_and_booleans_that_python_takes_for_equal_are_both_shown() -> None:
    text = "interface A { v: 1 | -2 | true | null; w: 0 | false | string | null }"

    shown = OutputType.from_typescript(text, "A").render()

    assert re.search(r"v: .*\btrue\b", shown)
    assert re.search(r"w: .*\bfalse\b", shown)
    assert re.search(r"v: .*\b1\b", shown)
