"""The strict form of a specification, and calls as strict function calling writes them."""

from typing import Literal

from taiwa.kernel.records import Json
from taiwa.tools import builtin_tools, molar_mass, strict, tool


@tool
def search(query: str, limit: int = 10, place: str | None = None, order: Literal["new", "old"] = "new") -> str:
    """Search."""
    return f"{query}/{limit}/{place}/{order}"


def closed(schema: Json) -> bool:
    """Whether every object of a schema is closed and requires all of its properties."""
    if isinstance(schema, list):
        return all(map(closed, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if isinstance(properties, dict):
        whole = schema.get("additionalProperties") is False and schema.get("required") == list(properties)
        return whole and all(map(closed, properties.values()))
    return "default" not in schema and all(map(closed, schema.values()))


def test_every_built_in_tool_has_a_strict_form() -> None:
    for each in builtin_tools().values():
        assert closed(dict(strict(each.spec).parameters)), each


def test_what_may_be_left_out_may_be_null_instead() -> None:
    parameters = strict(search.spec).parameters

    assert parameters["required"] == ["query", "limit", "place", "order"]
    properties = parameters["properties"]
    assert isinstance(properties, dict)
    assert properties["query"] == {"type": "string"}
    assert properties["limit"] == {"type": ["integer", "null"]}
    order = properties["order"]
    assert isinstance(order, dict)
    assert order["anyOf"] == [{"enum": ["new", "old"], "type": "string"}, {"type": "null"}]


def test_null_is_read_as_left_out() -> None:
    said = search.call({"query": "x", "limit": None, "place": None, "order": None})

    assert said == search.call({"query": "x"})
    assert molar_mass.call({"formula": "H2O", "weights": None}) == molar_mass.call({"formula": "H2O"})


def test_the_loose_form_stays_as_it_is() -> None:
    before = dict(search.spec.parameters)

    strict(search.spec)

    assert dict(search.spec.parameters) == before
