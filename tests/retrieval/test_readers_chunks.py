"""Pieces are cut out of a text and never rewritten: nothing is lost, and none is too large."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from taiwa.retrieval.chunks import _size, split_into_chunks
from taiwa.retrieval.read_text import read_markdown
from taiwa.retrieval.types import Heading, ParsedDocument

SENTENCES = st.sampled_from(
    [
        "Words of a sentence. ",
        "有給休暇は十日です。",
        "\n\n",
        "\n",
        "# Heading\n",
        "x" * 300,
        "あ" * 200,
        "！？",
        "\u3000",
    ]
)


@given(st.lists(st.one_of(SENTENCES, st.text(max_size=20)), max_size=30), st.integers(20, 400), st.data())
def test_pieces_are_the_text_in_order_without_loss_and_bounded(
    parts: list[str], room: int, data: st.DataObject
) -> None:
    text = "".join(parts)
    places = st.lists(st.integers(0, max(len(text) - 1, 0)), max_size=4, unique=True).map(sorted)
    pages, heads = data.draw(places), data.draw(places)
    reading = ParsedDocument(text, "", tuple(Heading(at, 1 + at % 3, f"h{at}") for at in heads), tuple(pages))

    pieces = split_into_chunks(reading, room)

    assert all(text[piece.start : piece.start + len(piece.text)] == piece.text for piece in pieces)
    ends = [0, *(piece.start + len(piece.text) for piece in pieces)]
    between = [text[end : piece.start] for end, piece in zip(ends, pieces, strict=False)] + [text[ends[-1] :]]
    assert not "".join(between).strip()
    assert all(first.start + len(first.text) <= second.start for first, second in pairwise(pieces))
    assert all(_size(piece.text, 0, len(piece.text)) <= room or len(piece.text) == 1 for piece in pieces)


@given(st.text(max_size=400))
def test_any_markdown_is_cut_without_loss(text: str) -> None:
    given_text = text.replace("\r", "\n")

    assert "".join("".join(piece.text.split()) for piece in split_into_chunks(ParsedDocument(given_text))) == "".join(
        given_text.split()
    )


def test_a_piece_knows_the_headings_above_it_and_its_page() -> None:
    text = "# Leave\n\nTen days.\n\n## Sick\n\nTell us.\n\n# Meetings\n\nOn Monday.\n"
    reading = read_markdown(text)

    pieces = split_into_chunks(ParsedDocument(reading.text, "", reading.headings, (0, text.index("Tell"))))

    assert [(piece.heading, piece.page) for piece in pieces] == [
        (("Leave",), 1), (("Leave", "Sick"), 1), (("Leave", "Sick"), 2), (("Meetings",), 2),
    ]  # fmt: skip


def test_paragraphs_that_fit_stay_together_and_long_ones_part_at_sentences() -> None:
    text = "短い段落。\n\nもう一つ。\n\n" + "これは長い文です。" * 40

    pieces = split_into_chunks(ParsedDocument(text), 200)

    assert pieces[0].text.startswith("短い段落。\n\nもう一つ。")
    assert all(piece.text.endswith("。") for piece in pieces)


def test_only_headings_of_the_document_itself_open_a_section() -> None:
    text = "---\ntitle: 'The rules'\n---\nIntro\n=====\n\n```\n# no\n```\n\n> # quoted\n\n### **Deep** [link](x) `code` ###\n"

    reading = read_markdown(text)

    assert reading.title == "The rules"
    assert [(each.level, each.words) for each in reading.headings] == [(1, "Intro"), (3, "Deep link code")]
    assert all(reading.text[each.start :].lstrip("#= ").startswith(("Intro", "**Deep")) for each in reading.headings)
    assert "title" not in reading.text
    assert len(reading.text) == len(text)
