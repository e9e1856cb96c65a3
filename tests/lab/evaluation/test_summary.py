"""Counting rows: failures count, replaced rows cost, pairs are those that both settings measured."""

from taiwa.kernel.ledger import Spent
from taiwa.kernel.values import Usage
from taiwa.lab.evaluation.intervals import Paired, Share
from taiwa.lab.evaluation.rows import Fault, Row
from taiwa.lab.evaluation.summary import added, bill, by_setting, counted, failures, paired, right


def row(setting: str, name: str, right: bool | None = True, **found: object) -> Row:
    """A row with a verdict; None for one that failed."""
    if right is None:
        return Row(setting, name, spent=Spent(1), error=Fault("timeout", "late"))
    return Row(
        setting,
        name,
        "k",
        {"right": right, **found},
        Spent(2, 1, Usage(100, 10, 60), cost=5, cost_at_most=5, seconds=0.5),
    )


A = [row("a", "1"), row("a", "2", False), row("a", "3", None), row("a", "4")]
B = [row("b", "1", False), row("b", "2"), row("b", "3"), row("b", "4", False)]


def test_a_row_that_failed_is_not_right_and_counts() -> None:
    assert right(A, "right") == Share(2, 4)


def test_pairs_are_the_items_that_both_settings_measured() -> None:
    assert paired(A, B, "right") == Paired(2, 1, 3)
    assert paired(B, A, "right") == Paired(1, 2, 3)


def test_settings_keep_their_order_and_strangers_come_last() -> None:
    assert list(by_setting([*B, *A, row("z", "1")], ("a", "b", "none"))) == ["a", "b", "z"]


def test_words_and_counts_are_added_up() -> None:
    rows = [
        row("a", "1", errors={"x": 2}, by="line"),
        row("a", "2", errors={"x": 1, "y": 5}, by=""),
        row("a", "3", None),
    ]

    assert counted(rows, "errors") == {"y": 5, "x": 3}
    assert counted(rows, "by") == {"line": 1}
    assert added([row("a", "1", calls=2), row("a", "2", calls=3), row("a", "3", None)], "calls") == 5
    assert failures(rows) == {"timeout": 1}


def test_a_bill_holds_what_replaced_rows_cost_and_counts_their_time_to_nobody() -> None:
    found = bill(B, [row("b", "1", False)])

    assert (found["requests"], found["input_tokens"], found["cached_tokens"], found["output_tokens"]) == (
        10,
        500,
        300,
        50,
    )
    assert found["cost"] == 25e-9
    assert (found["wall_ms"], found["ms_per_item"]) == (2000, 500.0)


def test_what_a_server_did_not_tell_is_not_zero() -> None:
    cut = Row("a", "1", spent=Spent(1, 0, Usage(), 1, None, 0.1, Usage(40, 9), 7))

    found = bill([cut])

    assert (found["input_tokens"], found["output_tokens"], found["cost"]) == (None, None, None)
    assert (found["tokens_at_most"], found["cost_at_most"]) == (49, 7e-9)
