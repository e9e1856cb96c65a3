"""Further readings of an order: the likeliest without a fault, never many, and the same every time."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

from taiwa.apps.catalog import load_app
from taiwa.conversation.history import Conversation, add_turn, begin
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.messages import Response, collect_response
from taiwa.kernel.serialization import Json
from taiwa.models.builtin.line_check import CALL_END
from taiwa.models.builtin.model import BuiltinModel
from taiwa.models.builtin.order_app import DELTA_LINE
from taiwa.models.builtin.order_search import READINGS, search_reply
from taiwa.tools.calculator import calculator
from tests.models.builtin.small_model import Tiny

LOADED = Tiny().load()
APP = load_app("order")
LATTES: dict[str, Json] = {"name": "latte", "size": "grande", "quantity": 2, "options": ["oat milk"]}
BAGEL: dict[str, Json] = {"name": "bagel", "quantity": 1, "options": []}


def search(
    judge: Callable[[str], float], begun: Callable[[str], float] = lambda _: 0.0, proposed: Iterable[str] = ()
) -> str:
    prompt = (LOADED.tokens.special["<desk>"], *LOADED.encode("a latte"), LOADED.tokens.special["<answer>"])
    return search_reply(LOADED.network, LOADED.tokens, prompt, "the answer", judge, begun, proposed)


def judged() -> list[str]:
    found: list[str] = []

    def judge(text: str) -> float:
        found.append(text)
        return 1.0

    assert search(judge) in found
    return found


def test_a_reply_without_a_fault_is_not_read_again() -> None:
    assert search(lambda _: 0.0) == "the answer"


def test_not_many_replies_are_read_and_the_same_ones_every_time() -> None:
    found = judged()

    assert found == judged()
    assert len(set(found)) > 2
    assert len(found) <= READINGS


def test_the_first_one_without_a_fault_is_taken() -> None:
    third = judged()[2]

    assert search(lambda text: float(text != third)) == third


def test_the_fewest_faults_win_in_the_end() -> None:
    last = judged()[-1]

    assert search(lambda text: 1.0 if text == last else 1_000.0) == last


def test_what_begins_with_a_fault_is_read_later() -> None:
    second = judged()[1]
    found: list[str] = []

    def judge(text: str) -> float:
        found.append(text)
        return 1.0

    search(judge, lambda text: 1_000.0 * second.startswith(text))

    assert found[1] != second


def test_a_reply_that_is_proposed_is_taken_where_no_reading_is_without_a_fault() -> None:
    assert search(lambda _: 100.0, proposed=["the", "the answer is the answer"]) == "the"


def turn(conversation: Conversation, said: str) -> tuple[str, Json]:
    """The reply of the model that ships, and its delta."""
    text = ""
    while True:
        request = replace(turn_request(conversation, said), prefix=text, stop=(CALL_END,))
        response: Response = collect_response(MODEL.stream(request))
        text += response.text
        if response.stop != CALL_END:
            break
        text += f"{CALL_END} {calculator(text.rpartition(': ')[2]).text}"
    answer, _, delta = text.partition(DELTA_LINE)
    return answer, json.loads(delta)


MODEL = BuiltinModel()
ORDERED = add_turn(begin(APP), "x", "Anything else?", {"items": {"1": LATTES, "2": BAGEL}})


def test_the_model_that_ships_changes_the_line_that_it_names() -> None:
    assert turn(ORDERED, "make the bagel toasted") == (
        "Now: 1 bagel (toasted). Anything else?",
        {"items": {"2": {**BAGEL, "options": ["toasted"]}}},
    )


def test_the_sum_is_that_of_the_order() -> None:
    assert turn(ORDERED, "no thanks, that's all") == (
        "The total is <<calculator: 2*4.2+1*2.8>> 11.2 dollars. Thank you!",
        {"status": "confirmed"},
    )


def test_a_text_of_the_caller_stops_a_reply() -> None:
    request = replace(turn_request(ORDERED, "make the bagel toasted"), stop=("bagel",))
    response = collect_response(MODEL.stream(request))

    assert (response.text, response.stop) == ("Now: 1 ", "bagel")
