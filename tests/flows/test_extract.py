from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.extract import Attempt, Extracted, extract
from taiwa.kernel import JsonSchema, RefusalError, Response, Runtime, ShapeError, assistant, system, user
from taiwa.kernel.values import Finish
from taiwa.models.scripted import EVERY_ABILITY, script
from taiwa.shape import Shape
from tests.flows.driving import Drive


@dataclass(frozen=True)
class Order:
    drink: str
    cups: int


ORDER = Shape(Order)
GOOD = '{"drink": "tea", "cups": 2}'
BAD = '{"drink": "tea", "cups": "two"}'
WORSE = '{"drink": 1, "cups": "two"}'


def test_an_answer_becomes_a_value_of_the_type(drive: Drive) -> None:
    done = drive(lambda: extract(ORDER, "Two teas, please."), script(GOOD))

    assert done.value == Extracted(Order("tea", 2), (Attempt(GOOD),))
    assert done.shown == ""


def test_the_prompt_shows_the_type_in_its_one_system_message(drive: Drive) -> None:
    model = script(GOOD)

    drive(lambda: extract(ORDER, (system("You take orders."), user("Two teas."))), model)

    first, *rest = model.requests[0].messages
    assert first.role == "system"
    assert first.text.startswith("You take orders.")
    assert ORDER.render() in first.text
    assert rest == [user("Two teas.")]


@pytest.mark.parametrize("able", [True, False])
def test_the_schema_goes_along_only_where_the_server_takes_it(drive: Drive, able: bool) -> None:
    model = script(GOOD, abilities=EVERY_ABILITY if able else EVERY_ABILITY - {"json_schema"})

    drive(lambda: extract(ORDER, "Two teas."), model)

    assert model.requests[0].constraint == (JsonSchema(ORDER.schema(), "Order") if able else None)


def test_faults_go_back_to_the_model_with_its_answer(drive: Drive) -> None:
    model = script(BAD, GOOD)

    done = drive(lambda: extract(ORDER, "Two teas."), model)

    first, second = model.requests
    assert done.value.value == Order("tea", 2)
    assert [attempt.text for attempt in done.value.attempts] == [BAD, GOOD]
    assert second.messages[:-2] == first.messages
    assert second.messages[-2] == assistant(BAD)
    assert "$.cups" in second.messages[-1].text
    assert second.constraint == first.constraint


def test_only_the_last_bad_answer_is_sent_back(drive: Drive) -> None:
    model = script("no order", WORSE, GOOD)

    drive(lambda: extract(ORDER, "Two teas.", repairs=2), model)

    said = [message.text for message in model.requests[2].messages]
    assert "no order" not in said
    assert WORSE in said
    assert len(said) == len(model.requests[1].messages)


def test_after_the_last_repair_the_error_holds_every_attempt(drive: Drive) -> None:
    with pytest.raises(ShapeError, match=r"no Order could be read in 2 attempts: \$\.cups") as caught:
        drive(lambda: extract(ORDER, "Two teas."), script(WORSE, BAD))

    assert caught.value.attempts == (WORSE, BAD)
    assert caught.value.text == BAD
    assert len(caught.value.diagnostics) == 1


def test_a_repair_that_changes_nothing_is_not_repeated(drive: Drive) -> None:
    model = script(BAD, BAD, GOOD)

    with pytest.raises(ShapeError):
        drive(lambda: extract(ORDER, "Two teas.", repairs=5), model)

    assert len(model.requests) == 2


@pytest.mark.parametrize("finish", ["length", "interrupted"])
def test_an_answer_that_was_broken_off_is_not_asked_for_again(drive: Drive, finish: Finish) -> None:
    model = script(Response(assistant(GOOD), finish), GOOD)

    with pytest.raises(ShapeError, match="1 attempt: the answer was"):
        drive(lambda: extract(ORDER, "Two teas."), model)

    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "doubtful", ['{"drink": tea, "cups": 2}', '{"drink": "tea", "cups": 2', '{"drink": "tea", "cups": 1, "cups": 2}']
)
def test_what_could_only_be_guessed_is_asked_for_again(drive: Drive, doubtful: str) -> None:
    done = drive(lambda: extract(ORDER, "Two teas."), script(doubtful, GOOD))

    assert [attempt.text for attempt in done.value.attempts] == [doubtful, GOOD]


def test_a_refusal_is_no_bad_answer(drive: Drive) -> None:
    model = script(Response(assistant("I will not."), "refusal"), GOOD)

    with pytest.raises(RefusalError):
        drive(lambda: extract(ORDER, "Two teas."), model)

    assert len(model.requests) == 1


def test_the_users_words_are_no_template(drive: Drive) -> None:
    model = script(GOOD)

    drive(lambda: extract(ORDER, "{type} {faults} {0}"), model)

    assert model.requests[0].messages[-1].text == "{type} {faults} {0}"


@given(st.lists(st.sampled_from([BAD, WORSE, "nothing", "[]", "{"]), max_size=6), st.integers(0, 4))
def test_there_is_never_more_than_one_call_beyond_the_repairs(answers: list[str], repairs: int) -> None:
    model = script(*answers, *[GOOD] * 6)

    with suppress(ShapeError):
        Runtime(model).run(extract(ORDER, "Two teas.", repairs=repairs))

    assert len(model.requests) <= repairs + 1
