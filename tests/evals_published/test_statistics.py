"""Figures: against plain definitions, and what must hold of them whatever comes in."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.dialogue.statistics import auc, bootstrap_f1, brier, calibration_error, f1, mean_cost, operating_point
from taiwa.evals.report import bootstrap_mean, ndcg, quantile, recall, reciprocal_rank

SCORED = st.lists(st.tuples(st.sampled_from((0.0, 0.25, 0.5, 0.9)), st.booleans()), max_size=30)


@given(SCORED)
def test_the_area_is_the_part_of_pairs_in_order(pairs: list[tuple[float, bool]]) -> None:
    high = [score for score, label in pairs if label]
    low = [score for score, label in pairs if not label]

    found = auc([score for score, _ in pairs], [label for _, label in pairs])

    if not high or not low:
        assert found is None
        return
    wins = [(one > other) + 0.5 * (one == other) for one in high for other in low]
    assert found is not None
    assert found[0] == pytest.approx(sum(wins) / len(wins))
    assert 0 <= found[1][0] <= found[0] <= found[1][1] <= 1


@given(SCORED, st.sampled_from((0.0, 0.05, 0.3)))
def test_a_cut_never_asks_more_clear_turns_than_allowed(pairs: list[tuple[float, bool]], most: float) -> None:
    found = operating_point([score for score, _ in pairs], [label for _, label in pairs], most)

    assert found.false.count <= most * found.false.of
    assert found.recall.of == sum(label for _, label in pairs)
    assert found.precision.of == found.precision.count + found.false.count


def test_a_cut_takes_equal_scores_together() -> None:
    found = operating_point([0.9, 0.9, 0.9, 0.1], [True, True, False, False], 0.05)

    assert (found.recall.count, found.false.count) == (0, 0)
    assert operating_point([0.9, 0.8, 0.1, 0.1], [True, True, False, False]).recall.count == 2


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_never_and_always_asking_cost_what_is_missed_and_what_is_needless(labels: list[bool]) -> None:
    share = sum(labels) / len(labels)

    assert mean_cost([False] * len(labels), labels, 3) == pytest.approx(3 * share)
    assert mean_cost([True] * len(labels), labels, 3) == pytest.approx(1 - share)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_probabilities_are_judged_between_nought_and_one(pairs: list[tuple[float, bool]]) -> None:
    chances, labels = [chance for chance, _ in pairs], [label for _, label in pairs]

    assert 0 <= (brier(chances, labels) or 0) <= 1
    assert 0 <= (calibration_error(chances, labels) or 0) <= 1
    assert calibration_error([float(label) for label in labels], labels) == 0


def test_f1_weighs_what_was_asked_against_what_had_to_be() -> None:
    asked, labels = [True, True, False, False], [True, False, True, False]

    assert f1(asked, labels) == 0.5
    low, high = bootstrap_f1(asked * 10, labels * 10) or (0, 0)
    assert low < 0.5 < high


@given(st.lists(st.sampled_from("abcdef"), max_size=8), st.sets(st.sampled_from("abcdef"), min_size=1))
def test_rankings_are_worth_no_more_than_the_best_one(found: list[str], relevant: set[str]) -> None:
    right = sorted(relevant)

    assert 0 <= ndcg(found, right, 5) <= 1 + 1e-12
    assert ndcg(right, right, 10) == pytest.approx(1)
    assert 0 <= recall(found, right, 5) <= 1
    assert reciprocal_rank([*right, *found], right) == 1


def test_a_gain_falls_with_its_place() -> None:
    assert ndcg(["x", "y", "a"], ["a"], 10) == pytest.approx(1 / math.log2(4))
    assert ndcg(["x", "y", "a"], ["a"], 2) == 0
    assert reciprocal_rank(["x", "y"], ["a"]) == 0


def test_draws_of_the_same_values_are_the_same() -> None:
    values = [0.0, 1.0] * 20

    assert bootstrap_mean(values) == bootstrap_mean(values)
    assert bootstrap_mean([]) is None
    assert (quantile([3.0, 1.0, 2.0]), quantile([])) == (2.0, None)
