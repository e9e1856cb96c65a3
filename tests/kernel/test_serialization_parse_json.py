import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.serialization import Json, count_at, item_at, items_at, parse_json, text_at
from taiwa.kernel.text import SurrogateJoiner, join_surrogates
from tests.models.pieces import PLACES, cut

ANSWER: Json = {"a": {"text": "x", "count": 3, "list": [1], "none": None}, "b": [{"text": "y"}]}


def joined(*pieces: str) -> str:
    joiner = SurrogateJoiner()
    return "".join(joiner.feed(piece) for piece in pieces) + joiner.close()


def test_what_is_there_is_found() -> None:
    assert text_at(ANSWER, "a", "text") == "x"
    assert count_at(ANSWER, "a", "count") == 3
    assert items_at(ANSWER, "a", "list") == [1]
    assert item_at(ANSWER, "a", "none") is None


@pytest.mark.parametrize("path", [("a", "none", "deeper"), ("b", "text"), ("c",), ("a", "text", "deeper")])
def test_what_is_absent_or_of_another_type_counts_as_nothing(path: tuple[str, ...]) -> None:
    assert item_at(ANSWER, *path) is None
    assert text_at(ANSWER, *path) == ""
    assert items_at(ANSWER, *path) == []
    assert count_at(ANSWER, *path) is None


@pytest.mark.parametrize(
    ("given_count", "count"),
    [
        (0, 0),
        (7, 7),
        (7.0, 7),
        (7.5, None),
        (-1, None),
        (True, None),
        ("7", 7),
        ("-7", None),
        ("seven", None),
        (1e400, None),
    ],
)
def test_a_count_is_a_whole_number_from_zero_up(given_count: Json, count: int | None) -> None:
    assert count_at({"n": given_count}, "n") == count


def test_bytes_that_are_not_utf8_are_read_with_replacements() -> None:
    assert parse_json(b'"a\xffb"') == "a\ufffdb"


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "{'a': 1}"])
def test_what_is_not_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@given(st.text(), PLACES)
def test_halves_of_characters_are_joined_wherever_the_text_is_cut(text: str, places: list[int]) -> None:
    units = text.encode("utf-16-le")
    halves = "".join(chr(int.from_bytes(units[place : place + 2], "little")) for place in range(0, len(units), 2))

    whole = joined(*cut(halves, places))

    assert whole == text
    assert join_surrogates(halves) == text


@given(st.text(st.characters(categories=("L", "Cs"))), PLACES)
def test_no_half_character_ever_comes_out(text: str, places: list[int]) -> None:
    whole = joined(*cut(text, places))

    assert whole == join_surrogates(text)
    whole.encode("utf-8")


def test_a_half_that_stays_alone_is_replaced() -> None:
    assert joined("a\ud83d") == "a\ufffd"
    assert joined("\ud83d", "a") == "\ufffda"
    assert joined("\ude00a") == "\ufffda"
    assert joined("\ud83d", "", "\ude00") == "😀"
