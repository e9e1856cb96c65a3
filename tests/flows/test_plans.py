"""Programs over an API: what is asked of the model, what is checked before anything runs, and how they are carried out."""

import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Annotated, Any, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, Field

from taiwa.flows.extract import extract
from taiwa.flows.plans import (
    Api,
    CallOutcome,
    Confirm,
    Plan,
    PlannedCall,
    PlanResult,
    execute_plan,
    reads,
    references,
    writes,
)
from taiwa.kernel.effects import CallTool, Program, notify
from taiwa.kernel.errors import ConfigError, InputError, OutputValidationError, ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json, record, restore
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.scripted import scripted_model
from taiwa.structured import OutputType
from tests.flows.apis import BOUNDED, KINDS, random_api, random_steps
from tests.flows.driving import Drive


@dataclass
class Drink:
    name: str
    cents: int


class Shop(Protocol):
    """A coffee shop."""

    @reads
    def find(self, name: Annotated[str, Field(max_length=20)]) -> Drink:
        """Find a drink on the menu."""
        ...

    @reads
    def cents(self, drinks: list[Drink], cups: Annotated[int, Field(ge=1)] = 1) -> int:
        """Say what drinks cost."""
        ...

    def pay(self, cents: int) -> str:
        """Take the money."""
        ...


class Counter:
    """A shop that remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def find(self, name: str) -> Drink:
        self.asked.append(f"find {name}")
        return Drink(name, 100 * len(name))

    def cents(self, drinks: list[Drink], cups: int = 1) -> int:
        self.asked.append(f"cents {len(drinks)}")
        return sum(drink.cents for drink in drinks) * cups

    def pay(self, cents: int) -> str:
        self.asked.append(f"pay {cents}")
        if cents > 100_000:
            raise ToolError("no card takes so much", code="too_much")
        return f"receipt for {cents}"


SHOP = Api(Shop)


def step(function: str, *arguments: Json) -> Json:
    return {"@func": function, "@args": list(arguments)}


def ref(number: int) -> Json:
    return {"@ref": number}


def steps(*given: Json) -> Json:
    return {"@steps": list(given)}


TWO_TEAS = steps(
    step("find", "tea"), step("find", "cake"), step("cents", [ref(0), ref(1)], 2), step("pay", ref(2))
)  # fmt: skip


def faults(data: Json, api: Api = SHOP) -> tuple[str, ...]:
    with pytest.raises(OutputValidationError) as caught:
        api.validate(data)
    return caught.value.diagnostics


# What the model is shown


def test_a_model_sees_functions_with_their_constraints_defaults_results_and_effects() -> None:
    shown = SHOP.render()

    for line in (
        "type Shop = { // A coffee shop.",
        "find: { // Find a drink on the menu.",
        "name: string; // max 20 chars",
        "cups?: number; // integer, >= 1; default 1",
        "pay: { // Take the money.; changes something",
        "returns: Drink;",
        "type Drink = {",
    ):
        assert line in shown


def test_a_parameter_may_be_called_like_what_the_text_calls_the_result() -> None:
    class Odd:
        @reads
        def f(self, returns: int) -> str:
            """Do."""
            raise NotImplementedError

    assert "returns_: string" in Api(Odd).render()


def test_the_schema_fixes_names_and_numbers_of_arguments_and_lets_references_stand_where_a_result_fits() -> None:
    output_type = OutputType.from_json_schema(SHOP.schema())

    for good in (TWO_TEAS, steps(), steps(step("unknown", "to sing")), steps(step("cents", []))):
        output_type.validate(good)
    for bad in (
        steps(step("fnd", "tea")), steps(step("find")), steps(step("find", "tea", 1)), steps(step("cents", ref(0))),
        steps(step("cents", [{"name": "tea"}])), steps(step("unknown")), {"@steps": [{"@func": "find"}]},
    ):  # fmt: skip
        with pytest.raises(OutputValidationError):
            output_type.validate(bad)


# What is checked


def test_a_program_becomes_a_plan_of_calls() -> None:
    plan = SHOP.validate(TWO_TEAS)

    assert plan.calls[2] == PlannedCall("cents", ([ref(0), ref(1)], 2), 2)
    assert [call.function for call in plan.calls] == ["find", "find", "cents", "pay"]
    assert restore(record(plan)) == plan


def test_a_call_within_an_argument_comes_before_the_call_and_references_still_lead_where_they_did() -> None:
    plan = SHOP.validate(steps(step("find", "tea"), step("cents", [step("find", "cake"), ref(0)]), step("pay", ref(1))))

    assert plan.calls == (
        PlannedCall("find", ("tea",), 0), PlannedCall("find", ("cake",), 1), PlannedCall("cents", ([ref(1), ref(0)],), 1),
        PlannedCall("pay", (ref(2),), 2),
    )  # fmt: skip


def test_what_the_api_cannot_do_is_told() -> None:
    plan = SHOP.validate(steps(step("find", "tea"), step("unknown", "sing a song")))

    assert plan.unknown == ("sing a song",)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (steps(step("fnd", "tea")), '$["@steps"][0]["@func"] = "fnd": must be unknown or one of cents, find, pay'),
        (steps(step("find")), '$["@steps"][0]["@args"]: has 0, must be the arguments of find(name)'),
        (steps(step("cents", [], 1, 2)), '$["@steps"][0]["@args"]: has 3, must be the arguments of cents(drinks, cups?)'),
        (steps(step("find", 3)), '$["@steps"][0]["@args"][0] = 3: must be string, max 20 chars'),
        (steps(step("cents", [{"name": "a"}])), '$["@steps"][0]["@args"][0][0].cents: missing (integer)'),
        (
            steps(step("find", "tea"), step("pay", ref(0))),
            '$["@steps"][1]["@args"][0]: find gives an object Drink; must be integer',
        ),
        (
            steps(step("find", "tea"), step("cents", [{"name": ref(0), "cents": 1}])),
            '$["@steps"][1]["@args"][0][0].name: find gives an object Drink; must be string',
        ),
        (
            steps(step("find", "tea"), step("cents", [ref(0), {"name": 1, "cents": 1}])),
            '$["@steps"][1]["@args"][0][1].name = 1: must be string',
        ),
        (
            steps(step("pay", ref(0))),
            '$["@steps"][0]["@args"][0] = {"@ref": 0}: must refer to an earlier step: none, for this is the first',
        ),
        (
            steps(step("find", "tea"), step("pay", ref(-1))),
            '$["@steps"][1]["@args"][0] = {"@ref": -1}: must refer to an earlier step: 0 to 0',
        ),
        (
            steps(step("unknown", "a"), step("pay", ref(0))),
            '$["@steps"][1]["@args"][0] = {"@ref": 0}: step 0 gives no result',
        ),
        (
            steps(step("pay", step("unknown", "a"))),
            '$["@steps"][0]["@args"][0] = {"@func": "unknown", "@args": ["a"]}: gives no result',
        ),
        (
            steps(step("pay", {"@ref": True})),
            '$["@steps"][0]["@args"][0] = {"@ref": true}: must be {"@ref": number of a step} and nothing else',
        ),
        (
            steps(step("find", "tea"), step("pay", {"@ref": 0, "x": 1})),
            '$["@steps"][1]["@args"][0] = {"@ref": 0, "x": 1}: must be {"@ref": number of a step} and nothing else',
        ),
        (steps(step("unknown")), '$["@steps"][0]["@args"] = []: must be one string: what the API cannot do'),
        (steps(*[step("find", "a")] * 101), '$["@steps"]: has 101, must be at most 100 steps'),
        (steps({"@func": 1}), '$["@steps"][0] = {"@func": 1}: must be {"@func": name, "@args": [arguments]}'),
        (steps({"@func": "find", "@args": "tea"}), '$["@steps"][0]["@args"] = "tea": must be a list'),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_place_before_anything_runs(data: Json, fault: str) -> None:
    assert faults(data) == (fault,)


@pytest.mark.parametrize("data", [None, [], "steps", {"@steps": "abc"}, {"@steps": ["abc"]}, {}])
def test_what_is_no_list_of_steps_is_a_fault(data: Json) -> None:
    assert faults(data)


def test_all_faults_are_told_at_once_and_many_are_counted() -> None:
    assert len(faults(steps(step("find", 1), step("fnd", "a")))) == 2
    assert faults(steps(*[step("find", at) for at in range(20)]))[-1] == "… and 8 more"


def test_a_fault_is_sent_back_to_the_model(drive: Drive) -> None:
    model = scripted_model(json.dumps(steps(step("pay", "much"))), json.dumps(TWO_TEAS))

    done = drive(lambda: extract(SHOP, "Two teas and cake."), model)

    assert done.value.value == SHOP.validate(TWO_TEAS)
    assert '$["@steps"][0]["@args"][0] = "much": must be integer' in model.requests[1].messages[-1].text


def test_a_program_in_prose_is_read(drive: Drive) -> None:
    done = drive(lambda: extract(SHOP, "Two."), scripted_model(f"Here you are:\n```json\n{json.dumps(TWO_TEAS)}\n```"))

    assert len(done.value.value.calls) == 4


# How it is carried out


def confirmed(answer: bool, asked: list[Confirm] | None = None) -> dict[Any, Any]:
    def confirm(effect: Confirm) -> bool:
        if asked is not None:
            asked.append(effect)
        return answer

    return {Confirm: confirm}


def run(data: Json, *, dry: bool = False, answer: bool = True, shop: Counter | None = None) -> PlanResult:
    tools = SHOP.bind(shop or Counter())
    return Runtime(tools=tools, handlers=confirmed(answer)).run(execute_plan(SHOP, SHOP.validate(data), dry=dry))


def test_results_flow_from_call_to_call() -> None:
    outcome = run(TWO_TEAS)

    assert {each.status for each in outcome.calls} == {"done"}
    assert outcome.result == "receipt for 1400"
    assert outcome.calls[2] == CallOutcome(
        SHOP.validate(TWO_TEAS).calls[2], "done",
        {"drinks": [{"name": "tea", "cents": 300}, {"name": "cake", "cents": 400}], "cups": 2}, 1400,
    )  # fmt: skip


@dataclass
class Priced:
    name: str
    cents: int
    stock: int


@dataclass
class Named:
    name: str


class Shelf:
    @reads
    def top(self) -> list[Priced]:
        return [Priced("tea", 300, 2)]

    @reads
    def label(self, drinks: list[Named]) -> str:
        return ", ".join(drink.name for drink in drinks)


def test_a_result_with_more_keys_than_the_next_call_takes_fits_and_a_literal_with_more_does_not() -> None:
    api = Api(Shelf)

    outcome = Runtime(tools=api.bind(Shelf())).run(
        execute_plan(api, api.validate(steps(step("top"), step("label", ref(0)))))
    )

    assert outcome.result == "tea"
    assert outcome.calls[1].arguments == {"drinks": [{"name": "tea"}]}
    with pytest.raises(OutputValidationError, match="no key here"):
        api.validate(steps(step("label", [{"name": "tea", "stock": 2}])))


def test_a_program_has_one_outcome_on_both_drivers_and_from_its_journal(drive: Drive) -> None:
    shop = Counter()

    done = drive(
        lambda: execute_plan(SHOP, SHOP.validate(steps(step("find", "tea"), step("cents", [ref(0)])))),
        tools=SHOP.bind(shop),
    )

    assert done.value.result == 300
    assert shop.asked == ["find tea", "cents 1"]


def test_what_writes_is_confirmed_with_the_arguments_that_it_will_get() -> None:
    asked: list[Confirm] = []

    Runtime(tools=SHOP.bind(Counter()), handlers=confirmed(True, asked)).run(
        execute_plan(SHOP, SHOP.validate(TWO_TEAS))
    )

    assert asked == [Confirm("pay", {"cents": 1400}, "Take the money.")]


def test_what_is_not_confirmed_is_not_called_nor_what_comes_after_it() -> None:
    shop = Counter()

    outcome = run(steps(step("pay", 5), step("find", "tea")), answer=False, shop=shop)

    assert [each.status for each in outcome.calls] == ["declined", "skipped"]
    assert shop.asked == []
    with pytest.raises(ToolError, match="did not finish: pay declined"):
        _ = outcome.result


def test_where_nobody_confirms_nothing_writes() -> None:
    shop = Counter()

    with pytest.raises(ConfigError, match="no handler for effect Confirm"):
        Runtime(tools=SHOP.bind(shop)).run(execute_plan(SHOP, SHOP.validate(steps(step("pay", 5)))))

    assert shop.asked == []


def test_a_dry_run_reads_and_shows_what_it_would_write() -> None:
    shop = Counter()

    outcome = run(TWO_TEAS, dry=True, shop=shop)

    assert [each.status for each in outcome.calls] == ["done", "done", "done", "dry_run"]
    assert outcome.calls[3].arguments == {"cents": 1400}
    assert "pay 1400" not in shop.asked


def test_in_a_dry_run_what_needs_a_result_of_writing_is_shown_with_its_reference() -> None:
    outcome = run(steps(step("pay", 1), step("find", ref(0))), dry=True)

    assert [each.status for each in outcome.calls] == ["dry_run", "dry_run"]
    assert outcome.calls[1].arguments == {"name": ref(0)}


def test_after_a_failure_nothing_more_is_called_and_what_was_done_is_told() -> None:
    shop = Counter()

    outcome = run(steps(step("find", "tea"), step("pay", 999_999), step("pay", 1)), shop=shop)

    assert [each.status for each in outcome.calls] == ["done", "failed", "skipped"]
    assert outcome.calls[1].error == "no card takes so much"
    assert shop.asked == ["find tea", "pay 999999"]


def test_a_limit_on_calls_ends_a_program_like_a_failure() -> None:
    runtime = Runtime(tools=SHOP.bind(Counter()), limits=UsageLimits(tool_calls=1))

    outcome = runtime.run(execute_plan(SHOP, SHOP.validate(steps(step("find", "a"), step("cents", [ref(0)])))))

    assert [each.status for each in outcome.calls] == ["done", "failed"]
    assert "limit on tool calls" in outcome.calls[1].error


def test_what_the_api_cannot_do_is_not_begun() -> None:
    shop = Counter()

    with pytest.raises(InputError, match="cannot do what was requested: sing"):
        run(steps(step("find", "tea"), step("unknown", "sing")), shop=shop)

    assert shop.asked == []


def test_an_empty_program_does_nothing() -> None:
    assert run(steps()) == PlanResult(())


def test_a_plan_of_another_api_is_refused() -> None:
    for plan in (Plan((PlannedCall("fly", (), 0),)), Plan((PlannedCall("find", (ref(0),), 0),))):
        with pytest.raises(InputError, match="does not belong to Shop"):
            Runtime().run(execute_plan(SHOP, plan))


def test_independent_calls_run_side_by_side_and_writes_between_them_do_not() -> None:
    together = threading.Barrier(2, timeout=300)
    order: list[str] = []

    class Slow(Counter):
        def find(self, name: str) -> Drink:
            if name != "last":
                together.wait()
            order.append("find")
            return super().find(name)

        def pay(self, cents: int) -> str:
            order.append("pay")
            return super().pay(cents)

    run(steps(step("find", "a"), step("find", "b"), step("pay", 1), step("find", "last")), shop=Slow())

    assert order == ["find", "find", "pay", "find"]


def test_a_result_of_another_type_than_was_said_is_a_failure_and_goes_nowhere() -> None:
    def liar(_: CallTool) -> ToolResult:
        return ToolResult("", value="free")

    program = execute_plan(SHOP, SHOP.validate(steps(step("cents", []), step("pay", ref(0)))))
    outcome = Runtime(handlers={CallTool: liar, **confirmed(True)}).run(program)

    assert [each.status for each in outcome.calls] == ["failed", "skipped"]


def test_what_only_a_validator_knows_is_found_before_the_function_is_called() -> None:
    def even(number: int) -> int:
        if number % 2:
            raise ValueError("must be even")
        return number

    class Halves:
        @reads
        def one(self) -> int:
            """Give one."""
            return 1

        @reads
        def half(self, number: Annotated[int, AfterValidator(even)]) -> int:
            """Halve."""
            raise AssertionError(number)

    api = Api(Halves)
    outcome = Runtime(tools=api.bind(Halves())).run(
        execute_plan(api, api.validate(steps(step("one"), step("half", ref(0)))))
    )

    assert outcome.calls[1].status == "failed"
    assert "must be even" in outcome.calls[1].error


def test_a_result_that_looks_like_a_reference_is_no_reference() -> None:
    class Sly:
        @reads
        def give(self) -> dict[str, int]:
            """Give."""
            return {"@ref": 0}

        @reads
        def take(self, given: dict[str, int]) -> str:
            """Take."""
            return json.dumps(given)

    api = Api(Sly)
    plan = api.validate(steps(step("give"), step("take", ref(0))))

    assert Runtime(tools=api.bind(Sly())).run(execute_plan(api, plan)).result == '{"@ref": 0}'


# APIs that cannot be used


def untyped(self: object, number) -> int: ...  # type: ignore[no-untyped-def]
def unending(self: object, number: int): ...  # type: ignore[no-untyped-def]
def starred(self: object, *numbers: int) -> int: ...
def positional(self: object, number: int, /) -> int: ...
async def later(self: object) -> int: ...
def disordered(self: object, *, a: int = 1, b: int) -> int: ...
def strange(self: object, thread: threading.Thread) -> int: ...
def lost(self: object, thing: "Nowhere") -> int: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (untyped, "'number' needs a type"), (unending, "'return' needs a type"), (starred, "ordinary parameter"),
        (positional, "ordinary parameter"), (later, "asynchronous"), (disordered, "come last"),
        (strange, "cannot be an output type"), (lost, "cannot be read"),
    ],
)  # fmt: skip
def test_a_function_that_no_program_could_call_is_named(function: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Api(type("Bad", (), {"f": function}))


@pytest.mark.parametrize("name", ["unknown", "größe"])
def test_a_name_that_no_function_may_have_is_refused(name: str) -> None:
    def f(self: object) -> int: ...  # type: ignore[empty-body]

    with pytest.raises(InputError, match="invalid function name"):
        Api(type("Bad", (), {name: f}))


def test_an_api_needs_a_function_and_an_implementation_all_of_them() -> None:
    with pytest.raises(InputError, match="no public functions"):
        Api(type("Empty", (), {}))
    with pytest.raises(InputError, match="has no function find"):
        SHOP.bind(object())


def test_an_api_may_be_a_module_and_inherit_and_have_static_functions() -> None:
    def double(number: int) -> int:
        """Double."""
        return 2 * number

    class Base:
        @staticmethod
        @reads
        def half(number: float) -> float:
            """Halve."""
            return number / 2

    class Derived(Base):
        @writes
        def note(self, text: str) -> None:
            """Note."""

    module = ModuleType("numbers_of_a_test")
    double.__module__ = module.__name__
    vars(module)["double"] = double

    assert list(Api(module).functions) == ["double"]
    assert [(each.name, each.access) for each in Api(Derived).functions.values()] == [
        ("half", "read"),
        ("note", "write"),
    ]
    assert Api(Base).bind(Base())[0].call({"number": 3}).value == 1.5


def test_what_is_not_declared_is_taken_to_write_unless_that_is_said() -> None:
    class Plain:
        def f(self) -> int:
            """Do."""
            return 1

    assert Api(Plain).functions["f"].access == "write"
    assert Api(Plain, undeclared="read").functions["f"].access == "read"


def test_a_bound_function_says_of_itself_what_a_model_must_know_and_no_more() -> None:
    find, cents, pay = (tool.spec for tool in SHOP.bind(Counter()))

    assert (find.name, find.description, find.parameters["required"]) == ("find", "Find a drink on the menu.", ["name"])
    assert list(cents.parameters["$defs"]) == ["Drink"]  # type: ignore[call-overload]
    assert "$defs" not in pay.parameters


@pytest.mark.parametrize("arguments", [{}, {"name": 3}, {"name": "tea", "more": 1}])
def test_a_bound_function_checks_its_arguments(arguments: dict[str, Json]) -> None:
    with pytest.raises(ToolError) as caught:
        SHOP.bind(Counter())[0].call(arguments)

    assert caught.value.code == "bad_arguments"


def test_a_bound_function_that_fails_tells_a_model_nothing_of_why() -> None:
    class Broken(Counter):
        def find(self, name: str) -> Drink:
            raise OSError("disk of the bank")

        def cents(self, drinks: list[Drink], cups: int = 1) -> int:
            return "free"  # type: ignore[return-value]

    find, cents, _ = SHOP.bind(Broken())
    with pytest.raises(ToolError, match=r"^find failed$"):
        find.call({"name": "tea"})
    with pytest.raises(ToolError, match=r"^cents returned a value of another type than declared$"):
        cents.call({"drinks": []})


# Laws


def carried(api: Any, plan: Plan, results: dict[str, list[Json]]) -> PlanResult:
    def answer(effect: CallTool) -> ToolResult:
        return ToolResult("", value=results[effect.name][len(json.dumps(record(effect.arguments))) % 3])

    def program() -> Program[PlanResult]:
        yield from notify("begun")
        return (yield from execute_plan(api, plan))

    return Runtime(handlers={CallTool: answer, **confirmed(True)}, limits=UsageLimits(None, None)).run(program())


@settings(max_examples=40)
@given(st.randoms(use_true_random=False))
def test_a_checked_program_never_fails_by_type_and_refers_backwards_only(random: Random) -> None:
    made = random_api(random)
    results = {name: [make(random) for _ in range(3)] for name, make in made.results.items()}
    for _ in range(6):
        try:
            plan = made.api.validate(random_steps(random, made))
        except OutputValidationError:
            continue
        for at, call in enumerate(plan.calls):
            assert all(0 <= other < at for each in call.arguments for other in references(each))
        if not plan.unknown:
            outcome = carried(made.api, plan, results)
            assert {each.status for each in outcome.calls} <= {"done"}, [each.error for each in outcome.calls]


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_what_a_checked_program_can_still_break_is_a_bound_and_it_breaks_before_the_call(random: Random) -> None:
    made = random_api(random, KINDS + 3 * BOUNDED)
    results = {name: [make(random) for _ in range(3)] for name, make in made.results.items()}
    for _ in range(6):
        try:
            plan = made.api.validate(random_steps(random, made))
        except OutputValidationError:
            continue
        if not plan.unknown:
            failed = [each for each in carried(made.api, plan, results).calls if each.status == "failed"]
            assert all(
                ">= " in each.error or "> " in each.error or "..9" in each.error or "min " in each.error
                for each in failed
            )


def test_enough_random_programs_pass_the_check_for_the_law_to_mean_something() -> None:
    random = Random(7)
    plans: list[Plan] = []
    for _ in range(40):
        made = random_api(random)
        for _ in range(10):
            try:
                plans.append(made.api.validate(random_steps(random, made)))
            except OutputValidationError:
                continue

    linked = [plan for plan in plans if any(list(references(each)) for call in plan.calls for each in call.arguments)]
    assert len(plans) > 100
    assert len(linked) > 20


JUNK: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["@steps", "@func", "@args", "@ref", "name"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JUNK)
def test_no_data_breaks_the_check(data: Json) -> None:
    for given_ in (data, {"@steps": data}, {"@steps": [data]}, {"@steps": [{"@func": "cents", "@args": [data]}]}):
        with suppress(OutputValidationError):
            SHOP.validate(given_)
