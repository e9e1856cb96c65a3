"""Typed answers from a genuine llama.cpp server: a model of noise, which its grammar holds to a type all the same."""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from taiwa.flows.extract import ExtractError, RepairPolicy, extract
from taiwa.flows.plans import Api, Plan
from taiwa.flows.route import NeedsClarification, Routed, route
from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Program
from taiwa.kernel.messages import Sampling
from taiwa.kernel.runtime import Runtime
from taiwa.models.http_api.client import HttpModel
from taiwa.models.providers import resolve
from taiwa.structured import OutputType
from tests.peers.llama import KEY, LlamaServer

SHORT = Sampling(max_tokens=400)


class Drink(BaseModel):
    name: Literal["tea", "coffee", "cocoa"]
    cups: Annotated[int, Field(ge=1, le=9)]
    iced: bool = False


class Order(BaseModel):
    drinks: Annotated[list[Drink], Field(min_length=1, max_length=3)]
    note: Annotated[str, Field(max_length=8)] | None = None


@pytest.fixture(scope="module")
def model(llama: LlamaServer) -> Iterator[HttpModel]:
    with HttpModel(resolve("llamacpp:tiny", base_urls={"llamacpp": llama.base_url}), KEY) as made:
        yield made


@pytest.mark.parametrize("words", ["A tea.", "コーヒーを三杯", "", "{" * 20])
def test_noise_has_the_type_at_the_first_attempt(model: HttpModel, words: str) -> None:
    found = Runtime(model).run(extract(OutputType(Order), f"Order: {words}", sampling=SHORT))

    assert isinstance(found.value, Order)
    (attempt,) = found.attempts
    assert (attempt.mode, attempt.fixes) == ("native", ())
    assert found.usage is not None


def test_both_drivers_get_the_same_value(model: HttpModel) -> None:
    def program() -> Program[Any]:
        return extract(OutputType(Order), "Three teas.", sampling=SHORT)

    assert Runtime(model).run(program()).value == asyncio.run(AsyncRuntime(model).run(program())).value


def test_a_list_and_a_number_are_wrapped_on_the_wire(model: HttpModel) -> None:
    drinks = Runtime(model).run(
        extract(OutputType(list[Literal["a", "b"]]), "Some.", sampling=SHORT, repair=RepairPolicy(0))
    )
    number = Runtime(model).run(extract(OutputType(Annotated[int, Field(ge=0, le=99)]), "How many?", sampling=SHORT))

    assert set(drinks.value) <= {"a", "b"}
    assert 0 <= number.value <= 99


def test_without_a_grammar_noise_is_no_value_and_the_error_has_all_of_it(model: HttpModel) -> None:
    with pytest.raises(ExtractError) as caught:
        Runtime(model).run(extract(OutputType(Order), "A tea.", mode="prompt", sampling=Sampling(max_tokens=20)))

    assert [each.finish for each in caught.value.tries] == ["length"]
    assert caught.value.reason == "raise max_tokens, which is 20"
    assert caught.value.usage is not None
    assert caught.value.usage.output_tokens == 20


def test_a_schema_that_the_server_does_not_take_gives_way_to_another_mode(model: HttpModel) -> None:
    many = OutputType(Annotated[list[Drink], Field(min_length=90_000, max_length=100_000)])

    with pytest.raises(ExtractError) as caught:
        Runtime(model).run(extract(many, "Many.", sampling=Sampling(max_tokens=20), repair=RepairPolicy(0)))

    (attempt,) = caught.value.tries
    assert attempt.mode in ("tool", "prompt")
    assert attempt.downgrades[0].startswith("native: ")


def test_a_route_is_held_to_its_targets(model: HttpModel) -> None:
    found = Runtime(model).run(route({"order": Order, "count": Annotated[int, Field(ge=0, le=9)]}, "…", sampling=SHORT))

    assert isinstance(found, (Routed, NeedsClarification))


def test_a_program_is_held_to_the_functions_of_its_api(model: HttpModel) -> None:
    class Till:
        def add(self, x: Annotated[int, Field(ge=0, le=99)], y: Annotated[int, Field(ge=0, le=99)] = 1) -> int:
            """Add."""
            return x + y

    api = Api(Till, undeclared="read")

    try:
        plan = Runtime(model).run(extract(api, "Add one and two.", sampling=SHORT, repair=RepairPolicy(0))).value
    except ExtractError as error:
        # A grammar cannot know which steps there are: a reference is all that can be wrong, or the length.
        wrong = [line for each in error.tries for line in each.diagnostics]
        assert all(
            "must refer to an earlier step" in line or "length limit" in line or "gives no result" in line
            for line in wrong
        )
    else:
        assert isinstance(plan, Plan)
