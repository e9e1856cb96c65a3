"""Line breaks on a terminal, also between the characters of Japanese and Chinese."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from taiwa.cli.line_breaks import CLOSING, OPENING, wrap
from tests.strategies import joined

TEXTS = joined([*"あ。、」「（）っー漢字aB ", "word", "http://127.0.0.1:8080/v1", "  ", "長い文"], max_size=60)


def lines(text: str, width: int) -> list[str]:
    return [line.plain for line in wrap(Text(text), width)]


@given(TEXTS, st.integers(2, 40))
def test_every_line_fits_and_nothing_is_lost(text: str, width: int) -> None:
    broken = lines(text, width)

    assert max(map(cell_len, broken)) <= width
    assert "".join("".join(broken).split()) == "".join(text.split())


def test_no_line_begins_with_a_full_stop_or_ends_with_an_opening_bracket() -> None:
    text = "はい、「日本語」で答えます。これはとても長い文章なので、折り返しが必要になります。（かっこ）もです。" * 3
    for width in range(12, 60):
        for line in lines(text, width):
            assert line[0] not in CLOSING
            assert line[-1] not in OPENING


def test_words_stay_whole_and_line_ends_stay() -> None:
    assert lines("one two three\n\n  four five", 10) == ["one two", "three", "", "  four", "five"]
    assert lines("plain・http://127.0.0.1:9133/v1#drip・plain-19", 32) == [
        "plain・",
        "http://127.0.0.1:9133/v1#drip・",
        "plain-19",
    ]
    assert lines("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]
