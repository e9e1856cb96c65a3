import re
from typing import Annotated, Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.serialization import canonical
from taiwa.structured import OutputType, parse_notation, render_notation
from taiwa.structured.type_notation import NAME, fits
from tests.laws.properties import values
from tests.strategies import json_values

NAMES = st.text("abcé名_", min_size=1, max_size=4).filter(str.isidentifier)
KEYS = st.one_of(NAMES, st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=5))
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=6)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def bounded(word: str, low: int, high: int) -> str:
    low, high = sorted((low, high))
    return f"{word}({low}..{high})" if word == "int" else f"{word}(min {low}, max {high})"


def an_object(pairs: dict[str, tuple[str, bool]]) -> str:
    written = [
        f"{key if re.fullmatch(NAME, key) else quoted(key)}{'?' if optional else ''}: {inner}"
        for key, (inner, optional) in pairs.items()
    ]
    return "{" + ", ".join(written) + "}"


SCALARS = st.one_of(
    st.sampled_from(["str", "int", "float", "bool", "any", "int(1..)", "int(..9)", "float(0.5..1.5)", "str(max 80)"]),
    st.builds(bounded, st.sampled_from(["int", "str"]), st.integers(0, 99), st.integers(0, 99)),
    TEXTS.map(quoted),
)
NOTATIONS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda part: f"list[{part}]"),
        inner.map(lambda part: f"dict[str, {part}]"),
        inner.filter(lambda part: not part.endswith("null") and part != "any").map(lambda part: f"{part} | null"),
        st.dictionaries(KEYS, st.tuples(inner, st.booleans()), max_size=3).map(an_object),
    ),
    max_leaves=5,
)


@given(NOTATIONS)
def test_rendering_is_the_inverse_of_parsing(text: str) -> None:
    annotation = parse_notation(text)

    assert render_notation(annotation) == text


@given(st.text("strinfloadctbunyl[]{}()|,:?.\"'0123456789 -\\é", max_size=40))
def test_any_text_is_a_type_or_an_input_error(text: str) -> None:
    try:
        annotation = parse_notation(text)
    except InputError:
        return

    written = render_notation(annotation)
    assert render_notation(parse_notation(written)) == written


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("int(1..5)", 5, 6),
        ("float(..0.5)", 0.5, 0.6),
        ("str(max 3)", "日本語", "four"),
        ("list[int](min 1, max 2)", [1], []),
        ('"a" | "b" | null', None, "c"),
        ("dict[str, list[int | null]]", {"x": [1, None]}, {"x": ["1"]}),
        ("{name: str, note?: str}", {"name": "n"}, {"name": "n", "other": 1}),
        ("{名: bool}", {"名": True}, {}),
    ],
)
def test_a_notation_validates_its_values(text: str, good: Any, bad: Any) -> None:
    annotation = parse_notation(text)
    adapter = TypeAdapter(annotation)

    adapter.validate_python(good, strict=True)
    assert fits(annotation, good)
    assert not fits(annotation, bad)
    with pytest.raises(ValidationError):
        adapter.validate_python(bad, strict=True)


@given(NOTATIONS, st.data())
def test_what_fits_is_valid_and_stays_as_it_is(text: str, drawn: st.DataObject) -> None:
    annotation = parse_notation(text)
    output_type = OutputType.fields("Any", {"x": annotation}, frozenset("x"))
    data = drawn.draw(json_values | values(output_type).map(lambda made: made["x"]))

    if fits(annotation, data):
        assert canonical(output_type.validate({"x": data})) == canonical({"x": data})


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("int", True),
        ("int", 1.0),
        ("int", 2**60),
        ("float", float("nan")),
        ("float", False),
        ("str", "\ud83d"),
        ("any", []),
        ("list[str]", ("a",)),
        ("dict[str, int]", {1: 1}),
        ("{a: int}", {"a": 1, "\ud83d": 1}),
        ('"a"', ["a"]),
    ],
)
def test_what_is_invalid_or_hard_to_say_does_not_fit(text: str, data: Any) -> None:
    assert not fits(parse_notation(text), data)


def test_a_key_in_decomposed_kana_needs_no_quotes() -> None:
    assert render_notation(parse_notation("{カ\u3099: str}")) == "{カ\u3099: str}"


def test_a_mapping_is_an_object_and_its_null_the_type_of_null() -> None:
    annotation = parse_notation({"name": "str", "note?": {"text": "str(max 80)", "gone": None}})

    assert render_notation(annotation) == "{name: str, note?: {text: str(max 80), gone: null}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected a type"),
        ("list[", "column 6: expected a type"),
        ("list of str", "column 6: expected `[`"),
        ("int(5..1)", "no value lies between 5 and 1"),
        ("int(1.5..2)", "column 5: expected a whole number, not '1.5'"),
        ("{a int}", "column 4: expected `:` and a type, or `?`, not 'int'"),
        ("{a: int, a: str}", "column 10: expected another field name"),
        ("str)", "column 4: expected the end"),
        ("dict[int, str]", "column 6: expected `str`"),
        ("{a: int; b}", "column 8: expected `,` or `}`"),
        ("{1: int}", "column 2: expected a field name or `}`"),
        ("bool(1..2)", "bool does not take bounds"),
        ("int(..)", "expected bounds such as 1..5"),
        ("str(max)", "column 8: expected a number"),
        ("float(1e999..)", "expected a smaller number"),
        ("str(max -1)", "expected a size of 0 or more"),
        ("__import__('os')", "column 1: expected a type"),
        ("str" + " " * 1000, "1003 characters, at most 1000"),
        ("list[" * 20 + "int" + "]" * 20, "nested deeper than 16"),
        ("{a: " * 20 + "int" + "}" * 20, "nested deeper than 16"),
        ("(" * 400, "nested deeper than 16"),
    ],
)
def test_an_invalid_notation_is_reported_with_column_and_expectation(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_notation(text)

    assert message in str(caught.value)


def test_an_invalid_notation_in_a_mapping_is_reported_with_its_field() -> None:
    with pytest.raises(InputError) as caught:
        parse_notation({"person": {"age": "integer"}})

    assert "of person.age, column 1" in str(caught.value)


@pytest.mark.parametrize("mapping", [{1: "int"}, {"": "int"}, {"a": 5}, {"a": ["int"]}, {"a": "int", "a?": "int"}])
def test_a_mapping_without_types_is_an_input_error(mapping: Any) -> None:
    with pytest.raises(InputError, match="type notation"):
        parse_notation(mapping)


def test_a_mapping_is_bounded_in_depth_and_size() -> None:
    deep: dict[str, Any] = {"x": "int"}
    for _ in range(20):
        deep = {"x": deep}

    with pytest.raises(InputError, match="nested deeper than 16"):
        parse_notation(deep)
    with pytest.raises(InputError, match="more than 10000 characters"):
        parse_notation({f"field{number}": "str" for number in range(2000)})


def test_a_type_that_the_notation_cannot_express_is_refused() -> None:
    for annotation in (set[int], Annotated[int, Field(gt=1)], Literal["\x00"]):
        with pytest.raises(InputError, match="cannot express"):
            render_notation(annotation)


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("name: str", {"name": "Aiko"}, {"name": 3}),
        ("age:int", {"age": 3}, {"age": "3"}),
        ("age: integer, ok: boolean", {"age": 3, "ok": True}, {"age": "3", "ok": True}),
        ("tags: list[str]: the words", {"tags": ["a"]}, {"tags": "a"}),
        ("any: list", {"any": [1, "a"]}, {"any": 1}),
        ("label: spam|ham", {"label": "ham"}, {"label": "eggs"}),
        ("label spam | ham | null: the kind", {"label": None}, {"label": "the kind"}),
        ("at: {x: int, y: int}", {"at": {"x": 1, "y": 2}}, {"at": "x"}),
    ],
)
def test_a_type_may_follow_the_colon_of_a_field(text: str, good: Any, bad: Any) -> None:
    output_type = OutputType.of(text)

    assert output_type.validate(good) == good
    with pytest.raises(OutputValidationError):
        output_type.validate(bad)


def test_what_is_not_a_type_after_the_colon_of_a_field_describes_it() -> None:
    schema = OutputType.of("bio: one sentence in EUR|USD, price: float: in EUR, at: see http://x").schema()

    described = {name: part.get("description") for name, part in cast("dict[str, Any]", schema["properties"]).items()}
    assert described == {"bio": "one sentence in EUR|USD", "price": "in EUR", "at": "see http://x"}


@pytest.mark.parametrize("text", ["tags: list[foo]", "age: int|nul", "age: int(5", "at: {x: foo}"])
def test_a_mistake_in_the_type_of_a_field_is_not_its_description(text: str) -> None:
    with pytest.raises(InputError, match="type notation"):
        OutputType.of(text)
