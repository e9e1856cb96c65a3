"""A value is written as JSON and read back; its digest names it on every machine."""

import json
from dataclasses import FrozenInstanceError, field
from hashlib import blake2b
from inspect import signature
from types import MappingProxyType
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.messages import Decoding, Enforcement, Request, Response, Text, ToolResult, Usage, user
from taiwa.kernel.serialization import DIGEST_BYTES, Json, canonical, canonical_record, digest, record, restore, value
from tests.strategies import effects, json_values, messages, requests, responses, shuffled, texts


@given(st.one_of(messages, requests, responses, effects, json_values))
def test_what_is_revived_equals_what_was_recorded(item: object) -> None:
    written = record(item)

    assert restore(written) == item


@given(st.one_of(requests, responses, json_values))
def test_a_record_survives_being_text(item: object) -> None:
    through = json.loads(canonical(record(item)))

    assert restore(through) == item
    assert canonical(through) == canonical(record(item))


@given(st.data(), json_values)
def test_the_order_of_keys_makes_no_difference_to_a_digest(choices: st.DataObject, item: Json) -> None:
    other = choices.draw(shuffled(item))

    assert digest(ToolResult("", value=other)) == digest(ToolResult("", value=item))


@given(st.one_of(messages, requests, responses, effects, json_values))
def test_a_digest_is_that_of_the_canonical_record_also_the_second_time(item: object) -> None:
    known = blake2b(canonical(record(item)), digest_size=DIGEST_BYTES).hexdigest()

    assert [digest(item), digest(item)] == [known, known]


@given(json_values, json_values)
def test_different_json_has_different_digests(left: Json, right: Json) -> None:
    same = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)

    assert (digest(left) == digest(right)) is same


def test_lists_tuples_and_objects_that_look_like_records_stay_apart() -> None:
    items: list[object] = [
        (),
        [],
        ("a",),
        ["a"],
        {"~": "text"},
        {"~": "list", "of": ["a"]},
        Text(""),
        {},
        frozenset({"a"}),
    ]

    names = [digest(item) for item in items]

    assert len(set(names)) == len(items)
    assert [restore(record(item)) for item in items] == items


def test_a_field_equal_to_its_default_does_not_change_the_digest() -> None:
    @value(tag="before")
    class Before:
        name: str

    @value(tag="after")
    class After:
        name: str
        added: tuple[str, ...] = ()

    old, new = record(Before("a")), record(After("a"))

    assert isinstance(old, dict)
    assert isinstance(new, dict)
    assert {**old, "~": ""} == {**new, "~": ""}


def test_fields_that_become_a_group_are_recorded_as_before() -> None:
    response = Response(user("a"), decoding=Decoding(enforcement=Enforcement("grammar")))
    written = record(response)

    assert isinstance(written, dict)
    assert written["enforcement"] == {"~": "enforcement", "method": "grammar"}
    assert restore(written) == response
    assert canonical_record(response).encode() == canonical(written)
    with pytest.raises(CorruptError, match=r"its enforcement is a str"):
        restore(written | {"enforcement": "a"})


def test_digests_are_the_same_as_on_every_other_machine() -> None:
    request = Request((user("こんにちは"),), stop=("\n",))

    assert request.digest == "64a0321c29b9c58d34dcc31c13ab053e"


@given(texts, texts)
def test_half_a_character_is_refused(before: str, after: str) -> None:
    with pytest.raises(InputError, match=r"half a character \(U\+D83D\)"):
        digest(user(f"{before}\ud83d{after}"))


def test_half_a_character_in_a_key_is_refused() -> None:
    with pytest.raises(InputError, match="half a character"):
        digest({"\udc00": 1})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_cannot_say_is_refused(number: float) -> None:
    with pytest.raises(InputError, match="not a JSON value"):
        digest({"n": [number]})


def test_a_key_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(InputError, match="must be strings, got 1"):
        record({1: "a"})


def test_an_object_that_is_not_a_value_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="a complex cannot be recorded; make its class a @value with a tag"):
        record({"z": (1j,)})


@pytest.mark.parametrize(
    "damaged",
    [{"~": "NoSuchValue"}, {"~": "text"}, {"~": "text", "text": "a", "more": 1}, {"~": 3}, {"~": "list", "of": 1}],
)
def test_a_record_that_fits_no_class_is_corrupt(damaged: Json) -> None:
    with pytest.raises(CorruptError):
        restore(damaged)


def test_a_read_only_mapping_is_recorded_as_an_object() -> None:
    frozen = MappingProxyType({"a": (1,)})

    assert restore(record(frozen)) == {"a": (1,)}


def test_a_text_of_a_class_of_its_own_is_recorded_as_text() -> None:
    class Name(str):
        __slots__ = ()

    assert record((Name("a"), True, 1)) == ["a", True, 1]


def test_two_classes_of_one_tag_are_refused_when_the_second_is_made() -> None:
    first = type("Spending", (), {"__module__": "taiwa.kernel.elsewhere", "__annotations__": {"tokens": int}})

    with pytest.raises(TypeError, match=r"the tag 'usage' of taiwa\.kernel\.elsewhere\.Spending is used by .*\.Usage"):
        value(tag="usage")(first)

    assert restore(record(Usage(1))) == Usage(1)


def test_classes_of_one_name_live_side_by_side_under_tags_of_their_own() -> None:
    made = type("Usage", (), {"__module__": "taiwa.elsewhere", "__annotations__": {"tokens": int}})
    one = value(tag="usage-elsewhere")(made)

    assert restore(record(one(3))) == one(3)  # type: ignore[call-arg]
    assert restore(record(Usage(1))) == Usage(1)


def test_the_tags_of_containers_are_refused() -> None:
    with pytest.raises(TypeError, match="the tag 'list'"):
        value(tag="list")(type("Listing", (), {}))


@pytest.mark.parametrize(
    "data",
    [
        {"~": "text", "text": ["a"]},
        {"~": "text", "text": None},
        {"~": "text", "text": "a", "transient": {}},
        {"~": "message", "role": "user", "parts": "abc"},
        {"~": "message", "role": "user", "parts": ["abc"]},
        {"~": "message", "role": {}, "parts": []},
        {"~": "message", "role": "nobody", "parts": []},
        {"~": "response", "message": {"~": "list", "of": []}},
        {"~": "response", "message": {"parts": []}},
        {"~": "usage", "input_tokens": "1"},
        {"~": "text-delta", "text": 1},
    ],
)
def test_a_record_whose_part_is_of_another_type_is_damaged(data: Json) -> None:
    with pytest.raises(CorruptError, match=r"a record of '[a-z-]+' does not fit"):
        restore(data)


def test_a_value_of_many_fields_is_frozen_and_has_their_defaults() -> None:
    @value
    class Wide:
        a: str
        b: str
        c: str = "c"
        d: list[str] = field(default_factory=list[str])
        e: int = field(default_factory=int, init=False)
        f: tuple[str, ...] = field(default_factory=tuple[str, ...], init=False)

    wide = Wide("a", b="b")

    assert (type(wide), repr(wide).partition("Wide(")[2]) == (Wide, "a='a', b='b', c='c', d=[], e=0, f=())")
    assert wide == Wide("a", "b", "c", [])
    assert str(signature(Wide)) == "(a: str, b: str, c: str = 'c', d: list[str] = <factory>) -> None"
    with pytest.raises(FrozenInstanceError):
        cast("Any", wide).a = "b"
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'b'"):
        cast("Any", Wide)("a")
