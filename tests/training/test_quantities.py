"""Problems of quantities: what they say, what is calculated, and that both belong together."""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from random import Random

import pytest

from taiwa.models.builtin.copy_constraint import find_numbers
from taiwa.models.builtin.tokenizer import normalize_text
from taiwa.tools.calculator import calculate, calculator
from taiwa.tools.units import unit_conversion
from tests.steps import lines_run
from training.builtin.quantities import CONSTANTS, MAKERS, MISSING, REFUSAL, SHARES
from training.builtin.quantities.telling import Ask, Teller, Thing
from training.builtin.quantities.words import invented, several
from training.builtin.quantities.working import NUMBER, solved
from training.builtin.samples import Sample, choose

CALL = re.compile(r"<<calculator: ([^<>]*)>> (\S+)|<<unit_conversion: ([^<>]*)>> (\S+)")
LAST = re.compile(r"Therefore, the answer is (-?[0-9.]+(?:e-?[0-9]+)?)(?: (\S.*))?\.")


def drawn(count: int, seed: int = 1) -> list[Sample]:
    random = Random(seed)
    return [choose(random, SHARES) for _ in range(count)]


def calls_of(text: str) -> list[tuple[str, str]]:
    """What is asked of the calculator and of the converter, and the numbers that they give."""
    return [(found[1] or found[3], found[2] or found[4]) for found in CALL.finditer(text)]


def worked(asked: str) -> str:
    return unit_conversion(asked).text.partition(" ")[0] if " to " in asked else calculator(asked).text


@cache
def samples() -> list[Sample]:
    return drawn(800)


@cache
def solutions() -> list[Sample]:
    return [each for each in samples() if each.task == "solve" and each.kind not in ("refused", "missing")]


def test_a_seed_gives_the_same_samples_again():
    assert drawn(60) == samples()[:60]
    assert drawn(60, seed=2) != samples()[:60]


@pytest.mark.parametrize("kind", SHARES)
def test_every_kind_can_be_drawn(kind: str):
    random = Random(kind)
    for _ in range(6):
        sample = SHARES[kind].draw(random)
        assert sample.task == ("number" if kind == "number" else "solve")
        assert 0 < len(sample.prompt) <= 1_200
        assert 0 < len(sample.text) <= 350


def test_prompts_are_in_the_form_that_the_model_reads():
    assert [each.prompt for each in samples() if normalize_text(each.prompt) != each.prompt] == []


def test_nothing_of_a_template_is_left():
    assert [
        each.prompt for each in solutions() if re.search(r"[{}|@]|  |\[| ,|\bNone\b", each.prompt.replace(" , ", " "))
    ] == []


def test_results_are_those_of_the_calculator_and_the_last_one_is_the_answer():
    for sample in solutions():
        calls = calls_of(sample.text)
        assert calls
        assert all(worked(expression) == result for expression, result in calls)
        last = LAST.fullmatch(sample.text.splitlines()[-1])
        assert last
        assert last[1] == calls[-1][1]


def test_a_call_has_only_numbers_of_the_question_earlier_results_and_constants():
    for sample in solutions():
        known = find_numbers(sample.prompt) | CONSTANTS
        for expression, result in calls_of(sample.text):
            assert not set(NUMBER.findall(expression)) - known, sample
            known |= {result}


def test_results_count_less_than_words():
    for sample in solutions():
        for before, span in zip(sample.answer, sample.answer[1:], strict=False):
            assert (span.weight < 1) == before.text.endswith(">>")


def test_what_cannot_be_worked_out_is_answered_so():
    assert {each.text for each in samples() if each.kind == "refused"} == {REFUSAL}
    assert {each.text for each in samples() if each.kind == "missing"} == {MISSING}
    kept = [each for each in samples() if each.task == "solve"]
    assert 0.03 < sum(each.text in (REFUSAL, MISSING) for each in kept) / len(kept) < 0.09


def test_a_quarter_is_speed_distance_and_time():
    moving = sum(SHARES[kind].weight for kind in MAKERS if kind.startswith(("motion", "trains")))
    assert 0.22 < moving / sum(share.weight for share in SHARES.values()) < 0.3


def test_numbers_are_the_ones_that_the_lines_state():
    numbers = [each for each in samples() if each.task == "number"]
    assert any(each.text == "none" for each in numbers)
    for sample in numbers:
        if sample.text == "none":
            assert not re.search(r"answer is -?[0-9]", sample.prompt)
        else:
            assert sample.text in sample.prompt.replace(",", "")


def test_questions_seldom_begin_alike():
    assert len({" ".join(each.prompt.lower().split()[:8]) for each in samples()}) > 0.95 * len(samples())


def test_a_draw_takes_little_work():
    random = Random(3)
    assert lines_run(lambda: [choose(random, SHARES) for _ in range(100)]) < 100 * 20_000


TABLE: list[tuple[str, Callable[[str], bool], Fraction]] = [
    ("motion.speed", lambda text: text.endswith("*18/5"), Fraction(18, 5)),
    ("motion.distance", lambda text: "*5/18*" in text, Fraction(5, 18)),
]


@pytest.mark.parametrize(("kind", "has", "factor"), TABLE)
def test_speeds_are_converted_by_their_factor(kind: str, has: Callable[[str], bool], factor: Fraction):
    random = Random(5)
    texts = [calls_of(SHARES[kind].draw(random).text)[0][0] for _ in range(200)]
    found = [text for text in texts if has(text)]
    assert found
    for text in found:
        assert calculate(text) == calculate(text.replace("*18/5", "").replace("*5/18", "")) * factor


def test_a_later_step_takes_up_the_result_of_an_earlier_one():
    text = "".join(span.text for span in solved((("Add.", "2+3"), ("Multiply.", "@1*4")), "eggs"))
    assert text == "Add.\n<<calculator: 2+3>> 5\nMultiply.\n<<calculator: 5*4>> 20\nTherefore, the answer is 20 eggs."


def test_a_thing_is_named_once_wherever_its_clause_stands():
    for seed in range(40):
        ask = Ask(("{S} runs 5 km",), ("how fast is {S}~how fast {S} is",), ("{S's} speed",))
        text = Teller(Random(seed)).ask(ask, {"S": Thing("an ostrich", ("it",))}).lower()
        assert text.count("ostrich") == 1


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("a apple and a hour", "An apple and an hour"),
        ("it is 8 A and a 18 km way", "It is 8 A and an 18 km way"),
        ("a uniform , a one-way street .", "A uniform, a one-way street."),
        ("it takes she long to he", "It takes her long to him"),
        ("yes[|]. no?  so", "Yes. No? So"),
    ],
)
def test_articles_capitals_and_blanks_are_put_right(template: str, text: str):
    assert Teller(Random(1)).say(template) == text


def test_invented_words_can_be_said_and_are_many():
    teller = Teller(Random(1))
    words = [invented(teller) for _ in range(500)]
    assert len(set(words)) > 480
    assert all(re.fullmatch("[a-z]{3,20}", word) for word in words)
    assert several("cherry") == "cherries"
