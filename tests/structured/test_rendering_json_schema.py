import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter

from taiwa.structured import OutputType


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(9, ge=0, le=9, description="lives left")


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str = Field(min_length=2, max_length=5)


class Tree(BaseModel):
    value: int
    kids: list["Tree"] = Field([], max_length=3)


class Order(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    cat: Cat = Field(description="the first cat")
    pair: tuple[int, str]
    note: str | None = None
    tree: Tree | None = None


ORDER = OutputType(Order)
VALUE = Order.model_validate(
    {
        "pet": {"kind": "dog", "name": "Rex"},
        "cat": {"kind": "cat"},
        "pair": [1, "x"],
        "tree": {"value": 1, "kids": [{"value": 2}]},
    }
)


def accepts(schema: dict[str, Any], data: Any) -> bool:
    return Draft202012Validator(schema).is_valid(data)


@pytest.mark.parametrize(
    "annotation", [Order, Tree, list[Cat | Dog], int | None, dict[str, Tree], Literal["a", 1, True]]
)
def test_a_schema_strict_or_not_is_json_schema_of_draft_2020_12(annotation: Any) -> None:
    for schema in (OutputType(annotation).schema(), OutputType(annotation).strict_schema().schema):
        Draft202012Validator.check_schema(schema)


def closed(schema: Any) -> Any:
    """Return a schema of pydantic in which a class has no keys but its own."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(part) for key, part in schema.items()}
    return inner | ({"additionalProperties": False} if "properties" in schema else {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from(["cat", "dog", "x", "toolong"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["kind", "lives", "name", "value", "kids"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(JSON, st.sampled_from([Cat, Dog, Tree, Cat | Dog, dict[str, Tree | int]]))
def test_the_plain_dialect_is_equivalent_to_the_schema_of_pydantic(data: Any, annotation: Any) -> None:
    ours = OutputType(annotation).schema()

    assert accepts(ours, data) == accepts(closed(TypeAdapter(annotation).json_schema()), data)


def test_keywords_that_strict_mode_lacks_become_descriptions_and_are_reported() -> None:
    native = ORDER.strict_schema()

    assert native.unsupported == ()
    assert native.relaxed == ("$.pair: prefixItems", "#Cat.lives: default", "#Dog.name: minLength", "#Dog.name: maxLength", "#Tree.kids: default")  # fmt: skip
    text = json.dumps(native.schema)
    assert "2..5 chars" in text
    assert "lives left; default 9" in text
    assert "minLength" not in text


def objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for part in schema for found in objects(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + [found for part in schema.values() for found in objects(part)]


def test_every_object_of_strict_mode_requires_all_of_its_keys() -> None:
    for each in objects(ORDER.strict_schema().schema):
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])


def test_nulls_for_omitted_keys_of_strict_mode_are_dropped() -> None:
    answer = {
        "pet": {"kind": "cat", "lives": None},
        "cat": {"kind": "cat", "lives": None},
        "pair": [1, "x"],
        "note": None,
        "tree": None,
    }
    assert accepts(ORDER.strict_schema().schema, answer)

    result = ORDER.parse(json.dumps(answer))

    assert result.value.cat.lives == 9
    assert {fix.code for fix in result.fixes} == {"null-for-omitted"}
    assert not result.guessed


def test_a_union_at_the_top_is_wrapped_for_strict_mode_only() -> None:
    output_type: OutputType[Any] = OutputType(Cat | Dog)
    native = output_type.strict_schema()

    assert native.schema["required"] == ["value"]
    assert not output_type.wrapped
    assert output_type.parse('{"value": {"kind": "cat", "lives": 3}}').value == Cat(kind="cat", lives=3)


def test_what_strict_mode_cannot_express_is_reported_as_unsupported() -> None:
    assert OutputType(dict[str, int]).strict_schema().unsupported == ("$: keys that the type does not name",)
    assert OutputType.fields("F", {"a": Any}).strict_schema().unsupported == ("$.a: any value",)


def test_a_dumped_value_is_valid_under_the_schema() -> None:
    assert accepts(ORDER.schema(), ORDER.dump(VALUE))


def test_references_to_the_root_of_a_wrapped_list_are_moved() -> None:
    output_type = OutputType.from_json_schema({"type": "array", "items": {"$ref": "#"}})

    assert output_type.wrapped
    assert accepts(output_type.schema(), {"value": [[], [[]]]})
    assert not accepts(output_type.schema(), {"value": [[], [1]]})
