"""The draws of the order desk: the same for the same seed, in the form of the runtime, and such that they move an order rightly."""

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from taiwa import constraints
from taiwa.apps.catalog import load_app
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.conversation.history import Conversation, add_turn, begin
from taiwa.conversation.replies import parse_reply
from taiwa.conversation.turn_prompt import format_reply, turn_request
from taiwa.flows.solve.tool_call_formats import sanitize_result
from taiwa.kernel.serialization import Json
from taiwa.models.builtin.order_app import Order, OrderLine, grammar, options
from taiwa.models.builtin.prompts import read_request
from taiwa.models.builtin.tokenizer import normalize_text
from taiwa.tools.calculator import calculator
from training.builtin.desk import LANGUAGES, SHARES
from training.builtin.desk.english import phrase
from training.builtin.desk.foreign import DISHES
from training.builtin.desk.japanese_words import ADDED, NOUNS, SHOWN, SIZE_WORDS
from training.builtin.desk.menu import MENU
from training.builtin.desk.references import named_alone, reference
from training.builtin.desk.scene import scene
from training.builtin.desk.wishes import wish
from training.builtin.samples import Sample, choose

APP = load_app("order")
CALL = re.compile(r"<<calculator: (.+?)>> ([\d.]+)")
LINE = re.compile(r"(\d+) (.+?) x(\d+) @([\d.]+)(?: (.+))?")


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return [choose(Random(seed), SHARES) for seed in range(500)]


def order_of(prompt: str) -> tuple[Order, str, str]:
    """The order, the question and the utterance that a prompt tells."""
    head, _, utterance = prompt.partition(" > ")
    lines, status, asked = [*head.split(" | "), ""][:3]
    found = []
    for text in lines.split("; ") if lines != "-" else ():
        match = LINE.fullmatch(text)
        assert match is not None, text
        name = max((name for name in MENU if match[2] == name or match[2].startswith(f"{name} ")), key=len)
        size = match[2].removeprefix(name).strip()
        found.append(
            OrderLine(int(match[1]), name, size, int(match[3]), tuple((match[5] or "").split(", ")) if match[5] else ())
        )
    return Order(tuple(found), status), asked, utterance


def begun(order: Order, asked: str) -> Conversation:
    """A conversation that has come to an order and to a question."""
    items: dict[str, Json] = {
        str(line.number): {
            "name": line.name,
            **({"size": line.size} if line.size else {}),
            "quantity": line.quantity,
            "options": list(line.options),
        }
        for line in order.lines
    }
    return add_turn(begin(APP), "x", f"x. {asked}", {"items": items, "status": order.status})


def test_a_seed_gives_its_sample_again(samples: list[Sample]) -> None:
    again = [choose(Random(seed), SHARES) for seed in range(500)]

    assert again == samples


def test_every_draw_is_one_of_the_desk_in_the_form_of_the_runtime(samples: list[Sample]) -> None:
    assert {sample.task for sample in samples} == {"desk"}
    assert all(normalize_text(sample.prompt) == sample.prompt and len(sample.prompt) <= 1_200 for sample in samples)


@pytest.mark.parametrize("name", list(SHARES))
def test_every_kind_of_draw_is_let_through_and_moves_the_order(name: str) -> None:
    for seed in range(12):
        sample = SHARES[name].draw(Random(seed))
        order, asked, utterance = order_of(sample.prompt)
        conversation = begun(order, asked)

        read = parse_reply(APP, sample.text)
        assert read.problems == ()
        assert read.delta is not None
        assert format_reply(APP, read.answer, read.delta) == sample.text
        assert constraints.compile(grammar(tuple(line.number for line in order.lines)), Vocabulary.of_bytes()).accepts(
            sample.text.encode()
        )

        after = add_turn(conversation, utterance, read.answer, read.delta)
        found = read_request(turn_request(after, "x"))
        assert found is not None, sample
        known = {line.number for line in order.lines}
        items = read.delta.get("items", {})
        assert isinstance(items, dict)
        assert all(items[number] is not None or int(number) in known for number in items)


def test_the_runtime_reads_the_prompt_that_was_drawn(samples: list[Sample]) -> None:
    for sample in samples[:60]:
        order, asked, utterance = order_of(sample.prompt)
        found = read_request(turn_request(begun(order, asked), utterance))

        assert found is not None
        assert found.text == sample.prompt


def test_sums_are_those_of_the_calculator_and_of_the_whole_order(samples: list[Sample]) -> None:
    sums = [(sample, match) for sample in samples if (match := CALL.search(sample.text))]

    assert len(sums) > 20
    for sample, match in sums:
        assert sanitize_result(calculator(match[1]).text) == match[2]
        assert [span.text for span in sample.answer if span.weight < 1] == [f" {match[2]}"]
        order, _, _ = order_of(sample.prompt)
        read = parse_reply(APP, sample.text)
        state = add_turn(begun(order, ""), "x", read.answer, read.delta).state["items"]
        assert isinstance(state, dict)
        terms = [
            f"{line['quantity']}*{MENU[str(line['name'])].price}"
            for _, line in sorted(state.items(), key=lambda each: int(each[0]))
            if isinstance(line, dict)
        ]
        assert match[1].split("+") == terms


def test_the_languages_have_their_shares(samples: list[Sample]) -> None:
    counted = Counter(sample.kind.rpartition(".")[2] for sample in samples)

    assert set(counted) == set(LANGUAGES)
    assert 0.5 < counted["en"] / len(samples) < 0.7


def test_every_draw_of_a_kind_is_another(samples: list[Sample]) -> None:
    orders = [sample.prompt for sample in samples if sample.kind.startswith("order")]

    assert len(set(orders)) > 0.97 * len(orders)


def test_every_dish_size_and_option_can_be_said_in_japanese() -> None:
    assert set(NOUNS) == set(MENU)
    assert {option for option in options() if option not in ADDED} == set(SHOWN)
    assert all(len(forms) > 0 for forms in SIZE_WORDS.values())
    assert all(name in MENU for dishes in DISHES.values() for name in dishes)


def test_words_for_a_wish_never_lose_any_of_it() -> None:
    random = Random(7)
    for _ in range(300):
        wished = wish(random)
        _, after = phrase(random, wished)
        assert sorted(extra.text for extra in after.extras) == sorted(extra.text for extra in wished.extras)
        assert replace(after, size="", extras=()) == replace(wished, size="", extras=())


def test_a_name_stands_for_a_line_only_where_it_is_the_only_one() -> None:
    random = Random(3)
    for _ in range(200):
        place = scene(random, "en", least=2)
        line = place.lines[0]
        said = reference(random, "en", place.order, line)
        if not named_alone(place.order, line) and not line.size and not line.options:
            assert re.fullmatch(r"the first (one|item)|(number|line|item) \d+", said)
