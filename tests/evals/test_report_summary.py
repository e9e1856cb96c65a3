"""Counting rows: failures count, replaced rows cost, pairs are those that both settings measured."""

from taiwa.evals.report import (
    PairedComparison,
    Proportion,
    compare_settings,
    count_errors,
    count_field,
    group_by_setting,
    share_marked,
    sum_field,
    usage_and_cost,
)
from taiwa.evals.run import EvalRow, RowError
from taiwa.kernel.messages import Usage
from taiwa.kernel.usage_limits import RunUsage


def row(setting: str, name: str, share_marked: bool | None = True, **found: object) -> EvalRow:
    """A row with a verdict; None for one that failed."""
    if share_marked is None:
        return EvalRow(setting, name, spent=RunUsage(1), error=RowError("timeout", "late"))
    return EvalRow(
        setting,
        name,
        "k",
        {"right": share_marked, **found},
        RunUsage(2, 1, Usage(100, 10, 60), cost=5, max_cost=5, seconds=0.5),
    )


A = [row("a", "1"), row("a", "2", False), row("a", "3", None), row("a", "4")]
B = [row("b", "1", False), row("b", "2"), row("b", "3"), row("b", "4", False)]


def test_a_row_that_failed_is_not_right_and_counts() -> None:
    assert share_marked(A, "right") == Proportion(2, 4)


def test_pairs_are_the_items_that_both_settings_measured() -> None:
    assert compare_settings(A, B, "right") == PairedComparison(2, 1, 3)
    assert compare_settings(B, A, "right") == PairedComparison(1, 2, 3)


def test_settings_keep_their_order_and_strangers_come_last() -> None:
    assert list(group_by_setting([*B, *A, row("z", "1")], ("a", "b", "none"))) == ["a", "b", "z"]


def test_words_and_counts_are_added_up() -> None:
    rows = [
        row("a", "1", errors={"x": 2}, by="line"),
        row("a", "2", errors={"x": 1, "y": 5}, by=""),
        row("a", "3", None),
    ]

    assert count_field(rows, "errors") == {"y": 5, "x": 3}
    assert count_field(rows, "by") == {"line": 1}
    assert sum_field([row("a", "1", calls=2), row("a", "2", calls=3), row("a", "3", None)], "calls") == 5
    assert count_errors(rows) == {"timeout": 1}


def test_a_bill_holds_what_replaced_rows_cost_and_counts_their_time_to_nobody() -> None:
    found = usage_and_cost(B, [row("b", "1", False)])

    assert (found["requests"], found["input_tokens"], found["cached_tokens"], found["output_tokens"]) == (
        10,
        500,
        300,
        50,
    )
    assert found["cost"] == 25e-9
    assert (found["wall_ms"], found["ms_per_item"]) == (2000, 500.0)


def test_what_a_server_did_not_tell_is_not_zero() -> None:
    cut = EvalRow("a", "1", spent=RunUsage(1, 0, Usage(), 1, None, 0.1, Usage(40, 9), 7))

    found = usage_and_cost([cut])

    assert (found["input_tokens"], found["output_tokens"], found["cost"]) == (None, None, None)
    assert (found["tokens_at_most"], found["max_cost"]) == (49, 7e-9)
