"""Everyday quantities in three languages: what is asked, that the tools give the answers, and that the model's guide lets them be written."""

import re
from functools import cache
from random import Random

import pytest

from taiwa.models.builtin.confidence import fits
from taiwa.models.builtin.copy_constraint import CONVERTED, CopyGuide
from taiwa.models.builtin.prompts import TOOLS
from taiwa.models.builtin.tokenizer import builtin_tokens, normalize_text
from taiwa.tools.registry import builtin_tools
from tests.steps import lines_run
from training.builtin.everyday import KINDS, SHARES
from training.builtin.everyday.measuring import units
from training.builtin.everyday.telling import LANGUAGES, SAID
from training.builtin.everyday.unanswerable import MISMATCH, UNKNOWN
from training.builtin.overlap import KEYS, Overlap
from training.builtin.quantities.others import MISSING
from training.builtin.samples import Sample

CALL = re.compile(r"<<(\w+): ([^<>]*)>> ([^\n]*)")
COUNT = 300
REFUSED = {"unknown unit": UNKNOWN, "mismatch": MISMATCH, "lacking": MISSING}


@cache
def drawn(kind: str) -> tuple[Sample, ...]:
    random = Random(kind)
    return tuple(SHARES[kind].draw(random) for _ in range(COUNT))


@pytest.mark.parametrize("kind", SHARES)
def test_hardly_a_draw_comes_twice(kind: str) -> None:
    prompts = [each.prompt for each in drawn(kind)]

    assert len({*prompts}) > (0.8 if kind == "lacking" else 0.97) * COUNT


@pytest.mark.parametrize("kind", SHARES)
def test_prompts_are_whole_and_in_the_form_that_the_model_reads(kind: str) -> None:
    for sample in drawn(kind):
        assert normalize_text(sample.prompt) == sample.prompt
        assert not re.search(r"[{}|‹›]", sample.prompt), sample.prompt
        assert 0 < len(sample.text) <= 350


@pytest.mark.parametrize("kind", KINDS)
def test_the_tools_give_the_results_and_the_last_one_is_the_answer(kind: str) -> None:
    for sample in drawn(kind)[:60]:
        calls = CALL.findall(sample.text)
        assert [builtin_tools()[name](given).text for name, given, _ in calls] == [result for _, _, result in calls]
        assert f"Therefore, the answer is {calls[-1][2].split(' ')[0]}" in sample.text
        assert fits(sample.prompt, sample.text), sample


@pytest.mark.parametrize("kind", SHARES)
def test_the_guide_of_the_model_lets_every_answer_be_written(kind: str) -> None:
    tokens = builtin_tokens()
    for sample in drawn(kind)[:12]:
        state = CopyGuide.for_question(sample.prompt, TOOLS, tokens.vocabulary).start()
        for token in tokens.encode(sample.text):
            state = state.advance(token)
        assert state.is_final


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_worked_out_is_said_in_one_sentence(kind: str) -> None:
    assert {each.text for each in drawn(kind)} == {REFUSED[kind]}


def test_every_kind_is_said_in_many_ways_in_each_language() -> None:
    for code in LANGUAGES:
        for section in ("unit", "temperature", "discount", "split", "change", "total", "ph acid"):
            choices = sum(line.count("|") + 1 for line in SAID[code][section])
            assert choices >= 15, (code, section)


def test_every_unit_can_be_converted_by_the_tool_and_is_known_to_the_guide() -> None:
    for sort in units().values():
        for one in sort:
            assert one.name in CONVERTED
            assert builtin_tools()["unit_conversion"](f"3 {one.name} to {sort[0].name}").text


def test_hardly_a_draw_shares_a_run_with_the_questions_that_measure_it() -> None:
    """Those that do are left out when the model learns."""
    measured_by = Overlap.of_folders(KEYS)
    shared = sum(bool(measured_by.shared(each)) for kind in SHARES for each in drawn(kind))

    assert shared < 0.001 * COUNT * len(SHARES)


def test_a_draw_takes_little_work() -> None:
    random = Random(3)

    assert (
        lines_run(lambda: [SHARES[kind].draw(random) for kind in SHARES for _ in range(4)]) < 4 * len(SHARES) * 20_000
    )
