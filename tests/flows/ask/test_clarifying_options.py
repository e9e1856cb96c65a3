"""Options from the headings and titles of passages."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.decide_search_or_clarify import MAX_OPTIONS, group_options, top_share
from taiwa.kernel.messages import Passage, passage_key

PAID = Passage("leave.md", "Paid leave is 20 days.", 3.0, 0, ("Leave", "Paid leave"), title="Leave")
SICK = Passage("leave.md", "Sick leave needs a note.", 2.0, 90, ("Leave", "Sick leave"), title="Leave")
TRIP = Passage("travel.md", "Trains are booked by you.", 1.0, 0, ("Travel", "Trains"), title="Travel")


def test_headings_of_one_document_are_options_with_counts_and_a_preview() -> None:
    more = replace(PAID, text="Ask two weeks before.", start=40, score=1.0)

    found = group_options((PAID, SICK, more))

    assert [(option.label, option.count, option.preview) for option in found] == [
        ("Paid leave", 2, "Paid leave is 20 days."),
        ("Sick leave", 1, "Sick leave needs a note."),
    ]
    assert found[0].passages == (passage_key(PAID), passage_key(more))


def test_titles_are_options_where_the_documents_differ() -> None:
    assert [option.label for option in group_options((PAID, SICK, TRIP))] == ["Leave", "Travel"]


def test_a_document_without_a_title_goes_by_its_source() -> None:
    plain = (Passage("a.txt", "x", 1.0), Passage("b.txt", "y", 2.0))

    assert [option.label for option in group_options(plain)] == ["b.txt", "a.txt"]


@pytest.mark.parametrize("found", [(), (PAID,), (PAID, replace(PAID, start=50, text="Other words."))])
def test_passages_under_one_heading_have_no_options(found: tuple[Passage, ...]) -> None:
    assert group_options(found) == ()
    assert top_share(found, ()) == 1.0


def test_copies_of_one_text_are_one_thing() -> None:
    copy = replace(PAID, source="old/leave.md", title="Leave (old)", text="paid  leave is 20 DAYS.")

    assert group_options((PAID, copy)) == ()


def test_a_repeated_passage_adds_no_option() -> None:
    first, again = Passage("a", "x", 1.0, title="t"), Passage("a", "y", 1.0)
    other = Passage("a", "z", 2.0, 7, title="t")

    assert group_options((first, again)) == ()
    assert group_options((first, again, other)) == ()
    found = (first, again, Passage("b", "z", 1.0))
    assert [option.passages for option in group_options(found)] == [(passage_key(first),), (passage_key(found[2]),)]
    assert top_share(found, group_options(found)) == 0.5


def test_the_share_of_the_best_option_is_returned() -> None:
    assert top_share((PAID, SICK), group_options((PAID, SICK))) == pytest.approx(0.6)


PASSAGES = st.lists(
    st.builds(
        Passage, st.sampled_from("abc"), st.text(max_size=5), st.floats(0, 9), st.integers(0, 99),
        st.lists(st.sampled_from(["", "x", "y", "z"]), max_size=3).map(tuple), title=st.sampled_from(["", "t", "x"]),
    ),
    max_size=12,
)  # fmt: skip


@given(PASSAGES)
def test_options_divide_what_was_found(found: list[Passage]) -> None:
    options = group_options(found)
    named = [name for option in options for name in option.passages]

    assert len(options) != 1
    assert len(options) <= MAX_OPTIONS
    assert set(named) <= set(map(passage_key, found))
    assert all(option.count == len(option.passages) for option in options)
    assert len({option.label.casefold() for option in options}) == len(options)
    assert 0 <= top_share(found, options) <= 1 + 1e-9
