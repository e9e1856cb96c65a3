"""Turns of the app `order`, as the conversation itself asks for them, read as one line and a grammar."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa import constraints
from taiwa.apps.catalog import load_app
from taiwa.constraints.allowed_tokens import MatcherGuide
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.conversation.history import add_turn, begin, edit_state
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.messages import Request, system, user
from taiwa.kernel.serialization import Json
from taiwa.models.builtin.order_app import MENU, Order, OrderLine, format_order, grammar, last_question, order_before
from taiwa.models.builtin.prompts import BuiltinPrompt, read_request
from taiwa.models.builtin.tokenizer import normalize_text

APP = load_app("order")
LATTE: Json = {"name": "latte", "size": "grande", "quantity": 2, "options": ["oat milk", "iced"]}
BAGEL: Json = {"name": "bagel", "quantity": 1, "options": []}
BYTES = Vocabulary.of_bytes()


def asked(delta: Json, answer: str = "Anything else?", said: str = "And a tea") -> Request:
    return turn_request(add_turn(begin(APP), "x", answer, delta), said)


def held(*numbers: int) -> MatcherGuide:
    return constraints.compile(grammar(numbers), BYTES)


def test_the_app_and_the_model_have_the_same_menu() -> None:
    lines = APP.instructions.partition("The menu, in dollars:")[2].replace("\n  ", " ").strip().splitlines()
    written = {
        (entry.strip(), price)
        for line in lines
        for group, price in re.findall(r"(.+?) (\d\.\d\d)(?:; |$)", line.partition(": ")[2])
        for entry in group.split(",")
    }

    assert {(entry.rpartition(" ")[0], price) for entry, price in written} == {
        (name, f"{float(price):.2f}") for name, price in MENU.items()
    }
    assert MENU["americano"] == "3"
    assert MENU["latte macchiato"] == "4.4"


def test_a_turn_is_read_as_the_order_the_question_and_what_is_said() -> None:
    found = read_request(asked({"items": {"1": LATTE, "3": BAGEL}}, "2 grande lattes. Anything else?"))

    line = "1 latte grande x2 @4.2 oat milk, iced; 3 bagel x1 @2.8 | open | Anything else? > And a tea"
    lines = (OrderLine(1, "latte", "grande", 2, ("oat milk", "iced")), OrderLine(3, "bagel", "", 1))
    assert found == BuiltinPrompt("desk", line, grammar=grammar((1, 3)), order=Order(lines), before=Order())


def test_a_first_turn_is_read_without_the_examples() -> None:
    found = read_request(turn_request(begin(APP), "Hi!"))

    assert found == BuiltinPrompt("desk", "- | open > Hi!", grammar=grammar(()), order=Order())


def test_lines_stand_in_their_order_although_a_changed_one_is_the_newest_in_the_state() -> None:
    conversation = add_turn(begin(APP), "x", "y", {"items": {"1": BAGEL, "2": BAGEL}})
    conversation = add_turn(conversation, "x", "y", {"items": {"1": LATTE}})

    found = read_request(turn_request(conversation, "x"))

    assert found is not None
    assert found.text.startswith("1 latte grande x2 @4.2 oat milk, iced; 2 bagel x1")


@pytest.mark.parametrize(
    "item",
    [
        {"name": "pizza", "quantity": 1, "options": []},
        {"name": "latte", "quantity": 1, "options": ["in a boot"]},
        {"name": "latte", "size": "huge", "quantity": 1, "options": []},
    ],
)
def test_an_order_that_is_not_from_this_menu_is_not_read(item: Json) -> None:
    assert read_request(asked({"items": {"1": item}})) is None
    assert read_request(asked({"items": {"first": BAGEL}})) is None


def test_a_copy_of_the_app_with_another_menu_is_not_read() -> None:
    request = turn_request(begin(APP), "Hi!")
    other = request.messages[0].text.replace("bagel", "pizza")

    assert read_request(Request((system(other), *request.messages[1:]))) is None


def test_a_request_without_a_state_is_not_read() -> None:
    assert read_request(Request(())) is None
    assert read_request(Request((system(APP.instructions), user("Hi!")))) is None


def test_an_order_that_is_too_long_is_not_read() -> None:
    lines = tuple(OrderLine(number, "ham and cheese sandwich", "", 1, ("cut in half",)) for number in range(1, 30))

    assert format_order(Order(lines), "x") is None


@given(st.text(max_size=3_000), st.text(max_size=200))
def test_what_is_said_poses_as_nothing_else(said: str, answer: str) -> None:
    line = format_order(Order((OrderLine(1, "bagel", "", 1),)), said, last_question(answer)) or ""

    assert line.count(">") == 1
    assert line.startswith("1 bagel x1 @2.8 | open")
    assert line.count("|") <= 2
    assert normalize_text(line) == line


@pytest.mark.parametrize(
    "reply",
    [
        "Hello!\n@@delta\n{}",
        'ラテ2つですね。\n@@delta\n{"items":{"3":{"name":"latte","quantity":2,"options":["no foam","2 vanilla syrup"]}}}',
        'Off.\n@@delta\n{"items":{"1":null,"2":{"name":"bagel","size":"small","quantity":12,"options":[]}},"status":"open"}',
        'The total is <<calculator: 2*4.2+1*2.8>> 11.2 dollars.\n@@delta\n{"status":"confirmed"}',
    ],
)
def test_a_reply_to_an_order_of_two_lines_is_let_through(reply: str) -> None:
    assert held(1, 2).accepts(reply.encode())


@pytest.mark.parametrize(
    "reply",
    [
        "Hello!",
        'x\n@@delta\n{"items":{}}',
        'x\n@@delta\n{"items":{"3":null}}',
        'x\n@@delta\n{"items":{"4":{"name":"latte","quantity":1,"options":[]}}}',
        'x\n@@delta\n{"items":{"3":{"name":"pizza","quantity":1,"options":[]}}}',
        'x\n@@delta\n{"items":{"3":{"name":"latte","quantity":0,"options":[]}}}',
        'x\n@@delta\n{"items":{"3":{"name":"latte","quantity":1,"options":["2 iced"]}}}',
        'x <<calculator: 2*9.99>> 19.98\n@@delta\n{"status":"confirmed"}',
        'x <<search: cats>> none\n@@delta\n{"status":"confirmed"}',
        'x\n@@delta\n{"status":"paid"}',
    ],
)
def test_a_reply_that_no_order_of_two_lines_has_is_not(reply: str) -> None:
    assert not held(1, 2).accepts(reply.encode())


def test_a_removed_line_leaves_its_number_unused() -> None:
    first = 'x\n@@delta\n{"items":{"1":null}}'

    assert held(1, 4).accepts(first.encode())
    assert not held(4).accepts(first.encode())


ONE, TWO = OrderLine(1, "latte", "grande", 2, ("oat milk", "iced")), OrderLine(2, "bagel", "", 1)


def replied(**delta: Json) -> str:
    return f"Good.\n@@delta\n{json.dumps(delta)}"


ADDED = [("lattes", replied(items={"1": LATTE})), ("a bagel", replied(items={"2": BAGEL}))]


def test_the_order_before_its_last_change_is_that_of_the_turns() -> None:
    assert order_before(ADDED, Order((ONE, TWO))) == Order((ONE,))
    assert order_before([*ADDED, ("thanks", replied())], Order((ONE, TWO))) == Order((ONE,))
    assert order_before([*ADDED, ("no lattes", replied(items={"1": None}))], Order((TWO,))) == Order((ONE, TWO))
    confirmed = [*ADDED, ("that's all", replied(status="confirmed"))]
    assert order_before(confirmed, Order((ONE, TWO), "confirmed")) == Order((ONE, TWO))


def test_a_change_that_was_undone_is_not_undone_again() -> None:
    undone = [*ADDED, ("undo that", replied(items={"2": None}))]

    assert order_before(undone, Order((ONE,))) == Order()
    assert order_before([*undone, ("undo that", replied(items={"1": None}))], Order()) is None


@pytest.mark.parametrize(
    "turns",
    [
        [],
        ADDED[1:],
        [*ADDED, ("a pizza", replied(items={"3": {"name": "pizza", "quantity": 1, "options": []}}))],
        [("lattes", "Good."), ("a bagel", "Good.\n@@delta\n[]"), ("a tea", "Good.\n@@delta\n{")],
    ],
)
def test_turns_that_do_not_lead_to_the_order_tell_nothing(turns: list[tuple[str, str]]) -> None:
    assert order_before(turns, Order((ONE, TWO))) is None


def test_the_turns_of_a_conversation_tell_what_its_order_was() -> None:
    conversation = add_turn(begin(APP), "lattes", "2 grande lattes.", {"items": {"1": LATTE}})
    conversation = add_turn(conversation, "a bagel", "1 bagel.", {"items": {"2": BAGEL}})

    found = read_request(turn_request(conversation, "undo that"))

    assert found is not None
    assert (found.order, found.before) == (Order((ONE, TWO)), Order((ONE,)))


def test_a_state_that_was_edited_has_no_order_before() -> None:
    conversation = add_turn(begin(APP), "lattes", "2 grande lattes.", {"items": {"1": LATTE}})
    found = read_request(turn_request(edit_state(conversation, {"items": {"1": LATTE, "2": BAGEL}}), "undo that"))

    assert found is not None
    assert found.before is None
