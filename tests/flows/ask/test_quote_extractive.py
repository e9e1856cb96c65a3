"""Answers without a model: which part of a passage is taken, and that it stands there word for word."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.quote import PLAIN, PlainTerms, extractive, spans
from taiwa.kernel.messages import Message, Passage, assistant, user

TABLE = """\
## Hotels

Prices are for one night.

| City | Limit |
|---|---|
| London | 190 |
| **Leeds** | 120 |
"""


def best(query: str, text: str, *heading: str) -> str:
    found = spans(query, (Passage("a.md", text, 1.0, heading=heading),), (), PLAIN)
    return "".join(span.text for _, span in found)


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("how long are breaks", "Work begins at 9. Breaks are long. Go home.", "Breaks are long."),
        ("休憩は何分", "始業は九時です。休憩は六十分です。残業はありません。", "休憩は六十分です。"),
        ("午休多久", "九点上班。午休一小时。不加班。", "午休一小时。"),
        ("which is the second one", "- the first item\n- the second one\n- third", "the second one"),
        ("limit in London", TABLE, "London · Limit: 190"),
        ("limit in Leeds", TABLE, "Leeds · Limit: 120"),
        ("limit in Rome", "| a | b |\n|---|---|\n| Rome \\| Bari | 90 |", "Rome | Bari · b: 90"),
        ("quantum", "Nothing of it.", ""),
    ],
)
def test_the_part_that_holds_most_of_the_question_is_taken(query: str, text: str, found: str) -> None:
    assert best(query, text) == found


def test_what_the_heading_says_already_counts_less() -> None:
    text = "Leave is good.\n\nAsk two weeks ahead."

    assert best("weeks of leave", text) == "Leave is good."
    assert best("weeks of leave", text, "Leave") == "Ask two weeks ahead."


def test_a_passage_whose_heading_alone_answers_is_quoted_from_its_beginning() -> None:
    text = "# Pets\nCats are allowed. Dogs need consent. Birds too."

    assert best("pets", text, "Pets") == "Cats are allowed. Dogs need consent."
    assert best("pets", "# Pets\n", "Pets") == ""
    assert best("snakes", text, "Pets") == ""


def test_neighbours_that_share_the_question_are_read_together() -> None:
    assert best("lost badge front desk", "A badge was lost. Go to the front desk. Bye.") == (
        "A badge was lost. Go to the front desk."
    )


def test_what_was_said_before_helps_and_the_question_decides() -> None:
    passage = Passage("a.md", "Hotels in Dublin: 195. Meals: 48.", 1.0)

    ((_, span),) = spans("and meals?", (passage,), (user("hotels in Dublin"), assistant("195.")), PLAIN)

    assert "Meals: 48." in span.text


def test_a_single_character_of_a_new_word_does_not_hold_on_to_the_old_topic() -> None:
    class Characters(PlainTerms):
        def weigh(self, query: str, history: Sequence[Message] = ()) -> dict[str, float]:
            earlier = {term: 0.5 for turn in history for term in self.terms(turn.text)}
            return earlier | dict.fromkeys(self.terms(query), 1.0)

        def terms(self, text: str) -> list[str]:
            return [*text, *map("".join, pairwise(text))]

    leave = Passage("g.md", "年次有給休暇は二十日です。", 9.0, heading=("休暇",), id="a")
    salary = Passage("g.md", "給与は毎月二十五日に支払います。", 5.0, heading=("給与",), id="b")

    answer = extractive("給与は?", [leave, salary], [user("年次有給休暇は何日ですか")], Characters())

    assert [claim.text for claim in answer.claims] == ["給与は毎月二十五日に支払います。"]


def test_weak_neighbours_and_repetitions_are_left_out() -> None:
    found = (
        Passage("a.md", "Ten days of leave.", 4.0),
        Passage("b.md", "Ten days of leave.", 3.9),
        Passage("c.md", "A leave of days.", 1.0),
    )

    answer = extractive("days of leave", found)

    assert [claim.text for claim in answer.claims] == ["Ten days of leave."]
    assert answer.source == "extractive"
    assert answer.passages == found


def test_nothing_found_is_nothing_documented() -> None:
    assert not extractive("leave", ()).documented


@given(st.text("ab。. \n|-#*1が", max_size=80), st.text("ab1が ", min_size=1, max_size=8))
def test_every_claim_is_a_quotation(text: str, query: str) -> None:
    for claim in extractive(query, (Passage("a.md", text, 1.0, start=7),)).claims:
        (cited,) = claim.citations
        assert text[cited.start - 7 : cited.end - 7] == cited.words
        assert cited.words.strip()


def test_a_row_of_a_later_piece_of_a_table_has_the_names_of_its_columns() -> None:
    assert best("limit in Rome", "| Rome | 90 |\n| Bari | 80 |\n", "Hotels", "City | Limit") == "Rome · Limit: 90"
    assert best("limit in Rome", "Rome has no limit.\n", "Hotels", "City | Limit") == "Rome has no limit."


@pytest.mark.parametrize(
    ("before", "between"),
    [
        ("Limits in spring:\n\n", "\nWe close on Mondays.\n\nLimits in autumn:\n\n"),
        ("Limits:\n\n", "\nLimits:\n\n"),
        ("## Spring\n\n", "\n## Autumn\n\n"),
    ],
)
@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("| name | limit |\n|---|---|\n", "Leeds hotel · limit: 120; York hotel · limit: 130"),
        ("", "Leeds hotel · 120; York hotel · 130"),
    ],
)
def test_the_rows_that_are_quoted_together_are_of_one_table(before: str, between: str, names: str, found: str) -> None:
    rows = "| Leeds hotel | 120 |\n| York hotel | 130 |"
    others = rows.replace("hotel", "hotel by the sea")
    for text in (
        f"{before}{names}{rows}\n{between}{names}{others}\n",
        f"{before}{names}{others}\n{between}{names}{rows}\n",
    ):
        ((_, span),) = spans("hotel of Bath", (Passage("a.md", text, 1.0),), (), PLAIN)

        assert (span.text, text[span.start : span.end]) == (found, rows)
