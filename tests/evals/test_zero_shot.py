import pytest

from taiwa.evals.reasoning import STEP_BY_STEP, THEREFORE, zero_shot
from taiwa.kernel.errors import RefusalError, UnsupportedError
from taiwa.kernel.messages import Capability, Response, Usage, assistant, user
from taiwa.models.scripted import ALL_CAPABILITIES, scripted_model
from tests.flows.driving import Drive
from tests.flows.solve.abacus import BARE


def test_the_cues_stand_in_the_model_s_own_text(drive: Drive) -> None:
    model = scripted_model(" Two and two make four.", " 4.", capabilities=ALL_CAPABILITIES)

    done = drive(lambda: zero_shot("2+2?"), model)

    assert done.value.text == f"{STEP_BY_STEP} Two and two make four.\n{THEREFORE} 4."
    assert (done.value.answer, done.value.answered_by, done.value.tool_mode) == ("4", "prompt", "prefill")
    assert [request.prefix for request in model.requests] == [
        STEP_BY_STEP,
        f"{STEP_BY_STEP} Two and two make four.\n{THEREFORE}",
    ]
    assert model.requests[0].messages == model.requests[1].messages == (user("2+2?"),)


def test_a_server_that_cannot_continue_reads_the_cues_in_the_conversation(drive: Drive) -> None:
    model = scripted_model("Two and two make four.", "4\nThat is 2 times 2.", capabilities=BARE)

    done = drive(lambda: zero_shot("2+2?"), model)

    first, second = (request.messages for request in model.requests)
    assert first == (user(f"2+2?\n\n{STEP_BY_STEP}"),)
    assert second == (*first, assistant("Two and two make four."), user(THEREFORE))
    assert (done.value.answer, done.value.tool_mode) == ("4", "stop")
    assert done.transcript == done.value.text


@pytest.mark.parametrize("capabilities", [ALL_CAPABILITIES, BARE])
def test_an_answer_at_once_is_one_request(drive: Drive, capabilities: frozenset[Capability]) -> None:
    model = scripted_model("4.", capabilities=capabilities)

    done = drive(lambda: zero_shot("2+2?", steps=False), model)

    (request,) = model.requests
    assert (request.messages, request.prefix, done.value.text) == ((user("2+2?"),), "", "4.")
    assert done.value.answer == "4"


def test_an_answer_from_the_question_alone_is_read_from_its_last_line(drive: Drive) -> None:
    done = drive(lambda: zero_shot("2+2?", steps=False), scripted_model("2 and 2 are added.\nThat makes 4."))

    assert done.value.answer == "4"


def test_what_breaks_off_has_no_answer(drive: Drive) -> None:
    done = drive(lambda: zero_shot("2+2?"), scripted_model(Response(assistant("It is 4"), "length")))

    assert (done.value.ending, done.value.answer, done.value.complete) == ("length", "", False)


def test_a_thought_is_bounded_and_its_answer_may_take_a_few_tokens_more(drive: Drive) -> None:
    model = scripted_model(Response(assistant(" Four."), usage=Usage(5, 37)), " 4.", capabilities=ALL_CAPABILITIES)

    done = drive(lambda: zero_shot("2+2?", tokens=40), model)

    assert [request.sampling.max_tokens for request in model.requests] == [40, 20]
    assert done.value.answer == "4"


def test_a_thought_that_reaches_its_bound_says_so(drive: Drive) -> None:
    found = Response(assistant("It is 4"), "length", usage=Usage(5, 7))

    assert drive(lambda: zero_shot("2+2?", tokens=8), scripted_model(found)).value.ending == "tokens"


def test_a_way_may_be_asked_for(drive: Drive) -> None:
    done = drive(lambda: zero_shot("2+2?", tool_mode="stop"), scripted_model("4", "4", capabilities=ALL_CAPABILITIES))

    assert done.value.tool_mode == "stop"
    with pytest.raises(UnsupportedError):
        drive(lambda: zero_shot("2+2?", tool_mode="prefill"), scripted_model("4", capabilities=BARE))


def test_a_refusal_at_once_is_an_error(drive: Drive) -> None:
    with pytest.raises(RefusalError):
        drive(lambda: zero_shot("?"), scripted_model(Response(assistant(""), "refusal")))
