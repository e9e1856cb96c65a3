"""One call that chooses among types, or asks a clarifying question."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from taiwa.flows.extract import ExtractError, RepairPolicy, extract
from taiwa.flows.plans import Api, Plan, PlannedCall, reads
from taiwa.flows.route import NeedsClarification, Routed, Routes, route
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.messages import JsonSchema
from taiwa.kernel.serialization import Json
from taiwa.models.scripted import scripted_model
from taiwa.structured import OutputType, ParseOptions
from tests.flows.driving import Drive


@dataclass
class Order:
    """Things to drink."""

    drink: str
    cups: int


@dataclass
class Booking:
    people: int


class Sums:
    @reads
    def add(self, a: float, b: float) -> float:
        """Add two numbers."""
        return a + b


RAW = OutputType.from_json_schema(
    {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}
)
TARGETS: dict[str, object] = {
    "order": Order, "bookings": list[Booking], "count": int, "sums": Api(Sums), "mood": RAW,
}  # fmt: skip
ADD: Json = {"@steps": [{"@func": "add", "@args": [1, 2]}]}


def to(name: str, content: Json) -> str:
    return json.dumps({"to": name, "content": content})


@pytest.mark.parametrize(
    ("answer", "way"),
    [
        (to("order", {"drink": "tea", "cups": 2}), Routed("order", Order("tea", 2))),
        (to("bookings", [{"people": 2}]), Routed("bookings", [Booking(2)])),
        (to("bookings", {"value": [{"people": 2}]}), Routed("bookings", [Booking(2)])),
        (to("count", 7), Routed("count", 7)),
        (to("sums", ADD), Routed("sums", Plan((PlannedCall("add", (1, 2), 0),)))),
        (to("mood", {"mood": "good"}), Routed("mood", {"mood": "good"})),
        ('{"to": "none", "question": "For how many?"}', NeedsClarification("For how many?")),
        ("Sure:\n```json\n{'to': 'count', 'content': 7,}\n```", Routed("count", 7)),
    ],
)
def test_one_call_gives_a_value_of_the_type_that_was_meant(drive: Drive, answer: str, way: object) -> None:
    model = scripted_model(answer)

    done = drive(lambda: route(TARGETS, "…"), model)

    assert done.value == way
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (to("tea", 1), '$.to = "tea": must be "order", "bookings", "count", "sums", "mood" or "none"'),
        ('{"to": "order"}', "$.content: missing (Order)"),
        ('{"to": "none"}', "$.question: missing (string, a short question back, in the user's language)"),
        ('{"to": "none", "question": " "}', "$.question: missing (string, a short question back, in the user's language)"),
        (to("order", {"drink": "tea", "cups": "two"}), '$.content.cups = "two": must be integer'),
        (to("sums", {"@steps": [{"@func": "mul", "@args": []}]}),
         '$.content["@steps"][0]["@func"] = "mul": must be unknown or one of add'),
        (to("count", "x\n2. now"), '$.content = "x\\n2. now": must be integer'),
    ],
)  # fmt: skip
def test_a_fault_has_its_place_in_the_whole_answer(answer: str, fault: str) -> None:
    with pytest.raises(OutputValidationError) as caught:
        Routes(TARGETS).parse(answer, ParseOptions())

    assert caught.value.diagnostics == (fault,)


def test_a_bad_answer_is_sent_back_and_a_large_one_can_be_patched(drive: Drive) -> None:
    bad = to("order", {"drink": "tea", "cups": "two"})
    whole = scripted_model(bad, to("order", {"drink": "tea", "cups": 2}))
    patch = scripted_model(bad, '{"$.content.cups": 2}')

    first = drive(lambda: route(TARGETS, "…"), whole)
    second = drive(lambda: route(TARGETS, "…", repair=RepairPolicy(patch_above=0)), patch)

    assert first.value == second.value == Routed("order", Order("tea", 2))


def test_the_model_sees_every_target_and_the_way_out(drive: Drive) -> None:
    model = scripted_model(to("count", 1))

    drive(lambda: route(TARGETS, "…"), model)

    shown = model.requests[0].messages[0].text
    for line in ('to: "order";', "// Things to drink.", "content: Booking[];", 'to: "none";', "add: { // Add two numbers.",
                 "content: any; // a SumsProgram, see below"):  # fmt: skip
        assert line in shown


def test_the_schema_admits_what_can_be_read_and_nothing_else() -> None:
    routes = Routes(TARGETS)
    output_type = OutputType.from_json_schema(routes.schema())

    for good in (
        to("order", {"drink": "tea", "cups": 2}), to("bookings", [{"people": 2}]), to("sums", ADD),
        '{"to": "none", "question": "?"}',
    ):  # fmt: skip
        output_type.parse(good)
    for bad in (to("order", [{"people": 2}]), to("tea", 1), '{"to": "none"}', to("sums", [])):
        with pytest.raises(OutputValidationError):
            output_type.validate(json.loads(bad))


def test_types_of_one_name_are_told_apart(drive: Drive) -> None:
    def another() -> Any:
        @dataclass
        class Item:
            size: int

        @dataclass
        class Basket:
            items: list[Item]

        return Basket

    @dataclass
    class Item:
        name: str

    @dataclass
    class Shelf:
        items: list[Item]

    routes = Routes({"shelf": Shelf, "basket": another()})
    output_type = OutputType.from_json_schema(routes.schema())

    output_type.validate({"to": "shelf", "content": {"items": [{"name": "a"}]}})
    output_type.validate({"to": "basket", "content": {"items": [{"size": 1}]}})
    with pytest.raises(OutputValidationError):
        output_type.validate({"to": "basket", "content": {"items": [{"name": "a"}]}})
    assert "type Item = {\n  name" in routes.render()
    assert "type Item2 = {\n  size" in routes.render()


def test_types_that_are_used_twice_are_shown_once() -> None:
    shown = Routes({"one": list[Order], "two": dict[str, Order]}).render()

    assert shown.count("type Order = ") == 1
    assert "Order2" not in shown


def test_the_attempts_are_there_for_who_asks_for_them(drive: Drive) -> None:
    done = drive(lambda: extract(Routes(TARGETS), "…"), scripted_model("no", to("count", 1)))

    assert [bool(each.diagnostics) for each in done.value.attempts] == [True, False]


def test_without_an_answer_that_can_be_read_the_error_has_all_that_was_said(drive: Drive) -> None:
    with pytest.raises(ExtractError, match="no Route could be read") as caught:
        drive(lambda: route(TARGETS, "…", repair=RepairPolicy(0)), scripted_model("I would rather talk."))

    assert caught.value.attempts == ("I would rather talk.",)


@pytest.mark.parametrize("targets", [{}, {"none": Order}])
def test_a_route_needs_targets_beside_none(targets: dict[str, object]) -> None:
    with pytest.raises(InputError, match="targets must not be empty"):
        Routes(targets)


def test_a_server_that_is_able_gets_the_schema(drive: Drive) -> None:
    model = scripted_model(to("count", 1))

    drive(lambda: route(TARGETS, "…"), model)

    assert model.requests[0].constraint == JsonSchema(Routes(TARGETS).schema(), "Route")
