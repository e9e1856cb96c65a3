"""What is drawn of the order desk as its runtime reads it: the delta follows from the reply, and little speaks against what is right."""

import json
from itertools import pairwise
from random import Random

import pytest

from taiwa.models.builtin.line_check import CALL_START
from taiwa.models.builtin.model import DATA
from taiwa.models.builtin.order_app import DELTA_LINE, Order
from taiwa.models.builtin.order_reply import after_sum, likeliest_changes, read_reply, sum_of, weigh, write_delta
from training.builtin.desk import SHARES
from training.builtin.desk.lexicon import lexicon
from training.builtin.desk.prompts import read_prompt
from training.builtin.samples import choose

Drawn = tuple[Order, str, str, str]


@pytest.fixture(scope="module")
def drawn() -> list[Drawn]:
    """Orders with what a guest says, the reply, and its delta."""
    found: list[Drawn] = []
    for seed in range(600):
        sample = choose(Random(seed), SHARES)
        place = read_prompt(sample.prompt)
        reply, _, delta = sample.text.partition(DELTA_LINE)
        if place is not None:
            found.append((place[0], place[2], reply, delta))
    return found


def test_nearly_every_prompt_can_be_read(drawn: list[Drawn]) -> None:
    assert len(drawn) > 590


def test_the_delta_of_every_draw_follows_from_its_reply(drawn: list[Drawn]) -> None:
    for order, said, reply, delta in drawn:
        changes = likeliest_changes(order, said, reply)
        assert changes is not None, reply
        assert write_delta(order, read_reply(reply), changes) == delta


def test_every_sum_and_what_is_said_behind_it_follow_too(drawn: list[Drawn]) -> None:
    sums = [each for each in drawn if CALL_START in each[2]]
    assert len(sums) > 50
    for order, said, reply, _ in sums:
        head, _, call = reply.partition(CALL_START)
        changes = likeliest_changes(order, said, head)
        expression, _, rest = call.removeprefix("calculator: ").partition(">> ")
        assert changes is not None
        assert sum_of(order, changes) == expression
        number = rest.partition("d" if rest.isascii() else "ド")[0].strip()
        assert after_sum(order, reply.removesuffix(rest) + number) == rest.removeprefix(number)


def test_little_speaks_against_what_is_right(drawn: list[Drawn]) -> None:
    faulty = [each for each in drawn if weigh(each[0], each[1], each[2].partition(CALL_START)[0])]

    assert len(faulty) < len(drawn) * 0.12


def test_much_speaks_against_the_reply_to_another_guest(drawn: list[Drawn]) -> None:
    shifted = pairwise(drawn)
    found = [weigh(one[0], one[1], other[2].partition(CALL_START)[0]) > 0 for one, other in shifted if other[3] != "{}"]

    assert sum(found) > len(found) * 0.9


def test_the_wordings_that_ship_are_those_of_the_draws() -> None:
    assert json.loads((DATA / "wordings.json").read_text("utf-8")) == json.loads(json.dumps(lexicon()))
