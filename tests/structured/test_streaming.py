import json
import sys
from itertools import pairwise
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from taiwa.kernel.errors import OutputValidationError
from taiwa.kernel.serialization import Json
from taiwa.structured import OutputType, ParseResult, PartialParser, PartialUpdate

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)
ANY = OutputType(Any)


class Item(BaseModel):
    name: str
    count: int = Field(ge=1)


class Basket(BaseModel):
    note: str
    items: list[Item]


def chopped(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def fed(output_type: OutputType[Any], pieces: list[str]) -> tuple[PartialParser[Any], list[PartialUpdate]]:
    stream = PartialParser(output_type)
    return stream, [change for piece in pieces for change in stream.feed(piece)]


def replayed(changes: list[PartialUpdate]) -> Json:
    """Build the value from the changes alone, as a listener on the other side of a wire would."""
    root: dict[Any, Any] = {}
    for change in changes:
        here = root
        for part in ("root", *change.path)[:-1]:
            here = here.setdefault(part, {})
        last = ("root", *change.path)[-1]
        if change.closed:
            here[last] = change.value
        else:
            here[last] = here.get(last, "") + change.value
    return root.get("root")


@given(OBJECTS, st.lists(st.integers(0, 10_000), max_size=8), st.sampled_from([None, 1]), st.booleans())
def test_the_last_view_is_the_value_for_any_division_into_pieces(
    data: Json, cuts: list[int], indent: int | None, escaped: bool
) -> None:
    text = f"So:\n{json.dumps(data, indent=indent, ensure_ascii=escaped)}\nDone."

    stream, changes = fed(ANY, chopped(text, cuts))

    assert stream.view == data
    assert stream.closed
    assert stream.open == ()
    assert replayed(changes) == data
    assert stream.finish().value == data


@given(OBJECTS, st.integers(0, 10_000), st.lists(st.integers(0, 10_000), max_size=8))
def test_a_view_does_not_depend_on_the_division_into_pieces(data: Json, end: int, cuts: list[int]) -> None:
    text = json.dumps(data)[: end % 200]

    whole, _ = fed(ANY, [text])
    cut, _ = fed(ANY, chopped(text, cuts))

    assert cut.view == whole.view
    assert cut.open == whole.open


def agrees(view: Json, value: Json) -> bool:
    """A view says nothing that the value does not: fewer keys and items, strings that go on."""
    if isinstance(view, dict) and isinstance(value, dict):
        return all(key in value and agrees(inner, value[key]) for key, inner in view.items())
    if isinstance(view, list) and isinstance(value, list):
        return len(view) <= len(value) and all(agrees(one, other) for one, other in zip(view, value, strict=False))
    if isinstance(view, str) and isinstance(value, str):
        return value.startswith(view)
    return view == value


@given(OBJECTS)
def test_every_view_is_a_beginning_of_the_value(data: Json) -> None:
    stream = PartialParser(ANY)

    for char in json.dumps(data):
        stream.feed(char)

        assert stream.view is None or agrees(stream.view, data)


def test_numbers_and_constants_appear_when_they_are_closed_and_strings_grow() -> None:
    views = []
    stream = PartialParser(ANY)
    for piece in ('{"n": 12', "3", ', "ok": tr', "ue", ', "s": "a', "b\\u00", 'e9"', "}"):
        stream.feed(piece)
        views.append(json.dumps(stream.view, ensure_ascii=False))

    assert views == [
        "{}", "{}",
        '{"n": 123}', '{"n": 123}',
        '{"n": 123, "ok": true, "s": "a"}', '{"n": 123, "ok": true, "s": "ab"}',
        '{"n": 123, "ok": true, "s": "abé"}', '{"n": 123, "ok": true, "s": "abé"}',
    ]  # fmt: skip


def test_a_label_appears_when_it_is_complete() -> None:
    stream = PartialParser(OutputType.fields("Drink", {"size": Literal["small", "large"] | None, "name": str}))
    views = []
    for piece in ('{"size": "la', 'rge"', ', "name": "t'):
        stream.feed(piece)
        views.append(dict(cast("dict[str, Any]", stream.view)))

    assert views == [{}, {"size": "large"}, {"size": "large", "name": "t"}]


def test_values_beside_the_open_path_are_complete() -> None:
    stream = PartialParser(OutputType(Basket))

    opened = []
    for piece in ('{"note": "x', '", "items": [', '{"name": "a"', ", ", '"count": 2', "}, ", "]}"):
        stream.feed(piece)
        opened.append(stream.open)

    assert opened == [
        ("note",), ("items", 0), ("items", 0), ("items", 0), ("items", 0, "count"), ("items", 1), ()
    ]  # fmt: skip


def test_an_item_of_a_list_is_checked_as_soon_as_it_is_complete() -> None:
    stream = PartialParser(OutputType(Basket))

    first = stream.feed('{"note": "x", "items": [{"name": "a", "count": 1}, {"name": "b", "count": 0}')
    second = stream.feed(", {")

    diagnostics = {change.path: change.diagnostics for change in first if isinstance(change.value, dict)}
    assert diagnostics == {
        ("items", 0): (),
        ("items", 1): ("$.items[1].count = 0: must be integer, >= 1",),
    }
    assert second == ()


def test_the_view_of_a_wrapped_type_is_bare() -> None:
    stream = PartialParser(OutputType(list[int]))

    changes = stream.feed('{"value": [1, 2, "x"]}')

    assert stream.view == [1, 2, "x"]
    assert [change.path for change in changes] == [(0,), (1,), (2,), ()]
    assert [change.diagnostics for change in changes if change.diagnostics] == [('$[2] = "x": must be integer',)]


@pytest.mark.parametrize(
    "head",
    [
        '<think>Perhaps {"note": "no"}?</think>',
        "[THINK] [1, 2] [/THINK]\n",
        "The {basket} of [those] items [see above]:\n```json\n",
        "<thin air> ",
        "\ufeff",
    ],
)
def test_thinking_and_prose_are_skipped(head: str) -> None:
    text = head + '{"note": "x", "items": []}'

    stream, _ = fed(OutputType(Basket), list(text))

    assert stream.view == {"note": "x", "items": []}
    assert stream.finish().value == Basket(note="x", items=[])


def test_malformed_json_keeps_its_view_and_is_parsed_at_the_end() -> None:
    stream = PartialParser(OutputType(Basket))

    stream.feed('{"note": "x", \'items\': []}')

    assert stream.view == {"note": "x"}
    assert stream.closed
    assert stream.finish() == OutputType(Basket).parse('{"note": "x", \'items\': []}')


def test_a_cut_answer_fails_at_the_end() -> None:
    stream = PartialParser(OutputType(Basket))
    stream.feed('{"note": "x", "items": [')

    with pytest.raises(OutputValidationError, match="ends before the value does"):
        stream.finish()


def test_a_bare_scalar_has_a_value_only_at_the_end() -> None:
    stream = PartialParser(OutputType(int))

    stream.feed("4")
    stream.feed("2")

    assert stream.view is None
    assert stream.finish() == ParseResult(42)


def calls(pieces: list[str]) -> int:
    """Count the calls that a stream makes: a measure of work that does not depend on the machine."""
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    stream = PartialParser(ANY)
    sys.setprofile(counted)
    try:
        for piece in pieces:
            stream.feed(piece)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "unit", ['{"a": [1, "two", {"b": null}]}, ', '"' + "x" * 28 + '", ', "[" * 40 + "]" * 40 + ", ", "[{", '{"a', "\\"]
)
def test_the_work_grows_linearly_with_the_length(unit: str) -> None:
    texts = ["[" + unit * count for count in (100, 200)]

    once, twice = (calls([text[at : at + 16] for at in range(0, len(text), 16)]) for text in texts)

    assert twice < 2.2 * once + 200
