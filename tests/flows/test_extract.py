from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.extract import Attempt, ExtractError, RepairPolicy, TypedAnswer, extract
from taiwa.kernel.effects import WatchResult
from taiwa.kernel.errors import LimitError, OutputValidationError, RefusalError, TaiwaError, restore_error
from taiwa.kernel.messages import FinishReason, JsonSchema, Response, TextDelta, Usage, assistant, system, user
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import record, restore
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.scripted import ALL_CAPABILITIES, scripted_model
from taiwa.structured import Fix, OutputType
from tests.flows.driving import Drive


@dataclass(frozen=True)
class Order:
    drink: str
    cups: int


ORDER = OutputType(Order)
GOOD = '{"drink": "tea", "cups": 2}'
BAD = '{"drink": "tea", "cups": "two"}'
WORSE = '{"drink": 1, "cups": "two"}'


def test_an_answer_becomes_a_value_of_the_type(drive: Drive) -> None:
    done = drive(lambda: extract(ORDER, "Two teas, please."), scripted_model(GOOD))

    assert done.value == TypedAnswer(Order("tea", 2), (Attempt(GOOD, mode="native"),))
    assert done.shown == ""


def test_the_prompt_shows_the_type_in_its_one_system_message(drive: Drive) -> None:
    model = scripted_model(GOOD)

    drive(lambda: extract(ORDER, (system("You take orders."), user("Two teas."))), model)

    first, *rest = model.requests[0].messages
    assert first.role == "system"
    assert first.text.startswith("You take orders.")
    assert ORDER.render() in first.text
    assert rest == [user("Two teas.")]


@pytest.mark.parametrize("able", [True, False])
def test_the_schema_goes_along_only_where_the_server_takes_it(drive: Drive, able: bool) -> None:
    model = scripted_model(GOOD, capabilities=ALL_CAPABILITIES if able else frozenset())

    drive(lambda: extract(ORDER, "Two teas."), model)

    assert model.requests[0].constraint == (JsonSchema(ORDER.schema(), "Order") if able else None)


def test_what_was_mended_for_free_is_noted_and_costs_no_call(drive: Drive) -> None:
    model = scripted_model("Here you are:\n```json\n{'drink': 'tea', 'cups': 2,}\n```")

    done = drive(lambda: extract(ORDER, "Two teas."), model)

    assert done.value.value == Order("tea", 2)
    assert {fix.code for fix in done.value.attempts[0].fixes} >= {"trailing-comma"}
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "doubtful", ['{"drink": tea, "cups": 2}', '{"drink": "tea", "cups": 2', '{"drink": "tea", "cups": 1, "cups": 2}']
)
def test_what_could_only_be_guessed_is_asked_for_again(drive: Drive, doubtful: str) -> None:
    done = drive(lambda: extract(ORDER, "Two teas."), scripted_model(doubtful, GOOD))

    assert [attempt.text for attempt in done.value.attempts] == [doubtful, GOOD]


def test_a_guess_is_taken_where_the_policy_allows_it(drive: Drive) -> None:
    done = drive(
        lambda: extract(ORDER, "Two teas.", repair=RepairPolicy(guess=True)),
        scripted_model('{"drink": tea, "cups": 2}'),
    )

    (attempt,) = done.value.attempts
    assert done.value.value == Order("tea", 2)
    assert any(fix.level == "guess" for fix in attempt.fixes)


def test_a_refusal_is_no_bad_answer(drive: Drive) -> None:
    model = scripted_model(Response(assistant("I will not."), "refusal"), GOOD)

    with pytest.raises(RefusalError):
        drive(lambda: extract(ORDER, "Two teas."), model)

    assert len(model.requests) == 1


def test_a_refusal_to_repair_keeps_what_there_was(drive: Drive) -> None:
    model = scripted_model(BAD, Response(assistant("I will not."), "refusal"))

    with pytest.raises(ExtractError, match="the model refused") as caught:
        drive(lambda: extract(ORDER, "Two teas."), model)

    assert caught.value.best == {"drink": "tea", "cups": "two"}
    assert [each.finish for each in caught.value.tries] == ["stop", "refusal"]


def test_the_users_words_are_no_template(drive: Drive) -> None:
    model = scripted_model(GOOD)

    drive(lambda: extract(ORDER, "{type} {faults} {0}"), model)

    assert model.requests[0].messages[-1].text == "{type} {faults} {0}"


def test_the_error_holds_every_attempt_the_best_value_and_the_bill(drive: Drive) -> None:
    model = scripted_model(WORSE, BAD, usage=Usage(100, 20))

    with pytest.raises(ExtractError, match=r"no Order could be read in 2 attempts: \$\.cups") as caught:
        drive(lambda: extract(ORDER, "Two teas."), model)

    error = caught.value
    assert error.attempts == (WORSE, BAD)
    assert [len(each.diagnostics) for each in error.tries] == [2, 1]
    assert error.text == BAD
    assert error.best == {"drink": "tea", "cups": "two"}
    assert error.usage == Usage(200, 40)
    assert error.reason == "no round of repair is left"
    assert isinstance(error, OutputValidationError)


def test_the_bill_of_the_run_is_on_the_error_of_either_driver(drive: Drive) -> None:
    with pytest.raises(TaiwaError) as caught:
        drive(lambda: extract(ORDER, "Two teas."), scripted_model(WORSE, BAD, usage=Usage(100, 20)))

    assert getattr(caught.value.spent, "usage", None) == Usage(200, 40)


def test_a_total_is_unknown_when_one_attempt_did_not_say(drive: Drive) -> None:
    done = drive(
        lambda: extract(ORDER, "Two teas."),
        scripted_model(Response(assistant(BAD), usage=Usage(9, 9)), Response(assistant(GOOD))),
    )

    assert done.value.usage is None


def test_of_a_text_that_was_cut_off_the_error_keeps_what_was_there(drive: Drive) -> None:
    cut = Response(assistant('{"drink": "green te'), "length")

    with pytest.raises(ExtractError, match="cut off at the length limit") as caught:
        drive(lambda: extract(ORDER, "Two teas.", repair=RepairPolicy(rounds=0)), scripted_model(cut))

    assert caught.value.best == {"drink": "green te"}
    assert caught.value.tries[0].finish == "length"


@pytest.mark.parametrize("finish", ["length", "interrupted", "cut"])
def test_a_text_that_was_cut_off_is_no_success_even_where_it_reads_well(drive: Drive, finish: FinishReason) -> None:
    with pytest.raises(ExtractError):
        drive(
            lambda: extract(ORDER, "Two.", repair=RepairPolicy(rounds=0)),
            scripted_model(Response(assistant(GOOD), finish)),
        )


def test_a_limit_that_ends_a_repair_loses_nothing_of_what_was_paid_for() -> None:
    model = scripted_model(BAD, GOOD, usage=Usage(10, 10))

    with pytest.raises(ExtractError, match="the limit on requests is reached") as caught:
        Runtime(model, limits=UsageLimits(requests=1)).run(extract(ORDER, "Two teas."))

    assert isinstance(caught.value.__cause__, LimitError)
    assert caught.value.attempts == (BAD,)
    assert caught.value.best == {"drink": "tea", "cups": "two"}


def test_a_limit_before_the_first_answer_is_a_limit() -> None:
    with pytest.raises(LimitError):
        Runtime(scripted_model(GOOD), limits=UsageLimits(requests=0)).run(extract(ORDER, "Two teas."))


def test_a_person_may_watch_the_answer_come() -> None:
    class Loud:
        def feed(self, text: str) -> WatchResult:
            return WatchResult(text)

        def close(self) -> WatchResult:
            return WatchResult()

    events = Runtime(scripted_model(GOOD)).stream(extract(ORDER, "Two.", watch=Loud))
    shown = [event.text for event in events if isinstance(event, TextDelta)]

    assert "".join(shown) == GOOD


def test_what_an_extraction_gives_can_be_kept_and_read_back() -> None:
    attempts = (Attempt(BAD, ("$.cups",), (Fix("fence", 0, "safe"),), usage=Usage(1, 2), downgrades=("native: no",)),)

    assert restore(record(attempts)) == attempts


def test_an_error_that_was_kept_still_says_what_it_said() -> None:
    with pytest.raises(ExtractError) as caught:
        Runtime(scripted_model(WORSE, BAD)).run(extract(ORDER, "Two teas."))

    revived: Any = restore_error(caught.value.record())

    assert isinstance(revived, ExtractError)
    assert (str(revived), revived.attempts, revived.reason) == (
        str(caught.value), caught.value.attempts, caught.value.reason,
    )  # fmt: skip
    assert revived.tries == ()


ANSWERS = st.sampled_from([BAD, WORSE, "nothing", "[]", "{", '{"drink": "tea"}', GOOD])
FINISHES: st.SearchStrategy[FinishReason] = st.sampled_from(
    ["stop", "stop", "stop", "length", "refusal", "interrupted"]
)


@given(st.lists(st.tuples(ANSWERS, FINISHES), max_size=8), st.integers(0, 3), st.integers(0, 20) | st.none())
def test_no_extraction_asks_more_often_than_its_policy_allows(
    answers: list[tuple[str, FinishReason]], rounds: int, patch_above: int | None
) -> None:
    model = scripted_model(*(Response(assistant(text), finish) for text, finish in answers), *[GOOD] * 8)
    value = None

    with suppress(OutputValidationError, RefusalError):
        value = Runtime(model).run(extract(ORDER, "Two.", repair=RepairPolicy(rounds, patch_above=patch_above))).value

    assert len(model.requests) <= rounds + 2
    assert value in (None, Order("tea", 2))
    if value is not None:
        finishes = [finish for _, finish in answers]
        assert [*finishes, *["stop"] * 8][len(model.requests) - 1] == "stop"
