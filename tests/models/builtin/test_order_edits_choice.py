"""The choice between what the network wrote to a guest and what the guest's words mean; and turns of the model that ships."""

import json
from dataclasses import replace

import pytest

from taiwa.apps.catalog import load_app
from taiwa.conversation.history import Conversation, add_turn, begin
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.messages import Response, collect_response
from taiwa.kernel.serialization import Json
from taiwa.models.builtin.line_check import CALL_END
from taiwa.models.builtin.model import BuiltinModel
from taiwa.models.builtin.order_app import DELTA_LINE
from taiwa.models.builtin.order_edits import CERTAIN, choose_reply
from taiwa.tools.calculator import calculator
from tests.models.builtin.small_model import Tiny

LOADED = Tiny().load()
APP = load_app("order")
LATTES: dict[str, Json] = {"name": "latte", "size": "grande", "quantity": 2, "options": ["oat milk"]}
BAGEL: dict[str, Json] = {"name": "bagel", "quantity": 1, "options": []}


def choose(meant: dict[str, float], faults: float = 0.0) -> str:
    prompt = (LOADED.tokens.special["<desk>"], *LOADED.encode("a latte"), LOADED.tokens.special["<answer>"])
    return choose_reply(LOADED.network, LOADED.tokens, prompt, "first", faults, meant)


def test_the_reply_of_the_network_stays_where_no_words_can_be_read() -> None:
    assert choose({}) == "first"
    assert choose({}, faults=99.0) == "first"


def test_the_only_meaning_wins_whatever_the_network_prefers() -> None:
    assert choose({"one two three four five six": CERTAIN}) == "one two three four five six"


def test_the_network_chooses_among_several_meanings() -> None:
    long = "one two three four five six seven eight nine ten"

    assert choose({long: 0.1, "one": 0.1}, faults=99.0) == "one"
    assert choose({long: 0.1, "first": 0.1}) == "first"


def test_faults_speak_against_the_reply_of_the_network() -> None:
    assert choose({"the other": 1.0}, faults=1_000.0) == "the other"


def test_a_reply_that_is_too_long_to_be_read_is_not_chosen() -> None:
    assert choose({"one " * 2_000: 1.0, "two": 1.0}, faults=1_000.0) == "two"


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


@pytest.mark.parametrize(
    "said", ["-3 teas", "1/2 bagel", "0.5 lattes", "0 teas", "150 bagels", "ラテを-3個", "マフィンを0個ください"]
)
def test_a_count_that_cannot_be_ordered_changes_nothing(said: str) -> None:
    answer, delta = turn(ORDERED, said)

    assert answer in ("All right. What shall I change?", "かしこまりました。何を変更しますか?")
    assert delta == {}


@pytest.mark.parametrize(
    ("said", "delta"),
    [
        ("make all two lattes venti", {"items": {"1": {**LATTES, "size": "venti"}}}),
        ("cancel the bagel and make the lattes iced", {"items": {"1": {**LATTES, "options": ["oat milk", "iced"]}, "2": None}}),
        ("ベーグルを三つにしてください", {"items": {"2": {**BAGEL, "quantity": 3}}}),
        ("贝果不要了", {"items": {"2": None}}),
    ],
)  # fmt: skip
def test_what_the_words_mean_is_what_changes(said: str, delta: Json) -> None:
    assert turn(ORDERED, said)[1] == delta


def test_the_last_change_is_undone_and_then_the_one_before() -> None:
    conversation = add_turn(begin(APP), "lattes and a bagel", "Anything else?", {"items": {"1": LATTES, "2": BAGEL}})
    for said in ("make the lattes venti", "remove the bagel"):
        conversation = add_turn(conversation, said, *turn(conversation, said))

    assert turn(conversation, "sorry, undo that") == ("1 bagel. Anything else?", {"items": {"2": BAGEL}})
    conversation = add_turn(conversation, "undo that", *turn(conversation, "undo that"))
    assert turn(conversation, "取り消して") == (
        "グランデのラテ2つ(オーツミルク)に変更しました。ほかにはいかがですか?",
        {"items": {"1": LATTES}},
    )
