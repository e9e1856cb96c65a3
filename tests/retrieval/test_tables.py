"""Tables: what is a header, what is a row, and that every format gives the same table."""

from collections.abc import Sequence

import pytest

from taiwa.retrieval.chunks import split_into_chunks
from taiwa.retrieval.read_html import sections
from taiwa.retrieval.read_text import read_table
from taiwa.retrieval.readers import read_document
from taiwa.retrieval.tables import aligned_tables, guess_header, table_text
from tests.retrieval.documents import docx, pdf

ROWS = [
    ["Grade", "Hotel limit", "Meals"],
    ["G4", "120 EUR", "40 EUR"],
    ["G5", "150 EUR", ""],
    ["G6", "180 EUR", "60 EUR"],
]
WRITTEN = table_text(ROWS[0], ROWS[1:])


def html(rows: list[list[str]], cell: str = "td") -> bytes:
    lines = ("".join(f"<{cell}>{each}</{cell}>" for each in row) for row in rows)
    return f"<h1>Travel</h1><p>Limits:</p><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table><p>End.</p>".encode()


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (docx("Limits:", ROWS, "End."), "docx"),
        (html(ROWS), "html"),
        (pdf("Limits:\n" + "\n".join("\t".join(row) for row in ROWS) + "\nEnd."), "pdf"),
        ("\n".join(",".join(row) for row in ROWS).encode(), "table"),
    ],
)
def test_a_table_of_every_format_is_one_of_markdown(raw: bytes, kind: str) -> None:
    reading = read_document(raw, kind, 100_000)

    assert WRITTEN in reading.text
    assert kind == "table" or reading.text.rstrip().endswith("End.")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("name,phone\nAnn,12\nBob,13\n", "| name | phone |"),
        ("名前\t内線\n佐藤\t12\n", "| 名前 | 内線 |"),
        ('"first, last";age\n"a;b";1\n', "| first, last | age |"),
        (",name\n0,Ann\n1,Bob\n", "|  | name |"),
        ("name,score,score\nAnn,1,2\n", "| name | score | score |"),
        ("region,2023,2024\nNorth,10,12\n", "| region | 2023 | 2024 |"),
        ("shop,1,2,3\nNorth,10,12,14\n", "| shop | 1 | 2 | 3 |"),
        ("1,2\n3,4\n", "|  |  |"),
        ("Ann,33\nBob,41\n", "|  |  |"),
        ("G4,120 EUR,x\nG5,150 EUR,y\n", "|  |  |  |"),
        ("only one row,here\n", "only one row,here"),
        ("a\nb\n", "a"),
        ('name,note\nAnn,"two\nlines, a | b"\n', "| name | note |"),
    ],
)
def test_the_first_row_of_a_csv_file_is_its_header_unless_it_looks_like_the_others(text: str, first: str) -> None:
    assert read_table(text).text.splitlines()[0] == first


def test_a_pair_of_columns_without_marks_is_no_table_with_a_header() -> None:
    assert guess_header([["Name", "Ann"], ["Room", "twelve"]])[0] == []
    assert guess_header([["Who", "Days"], ["new", "10"], ["old", "12"]])[0] == ["Who", "Days"]


@pytest.mark.parametrize(
    ("page", "table"),
    [
        (
            "<table><thead><tr><th rowspan=2>City</th><th colspan=2>Limit</th></tr><tr><th>Hotel</th><th>Meals</th></tr></thead>"
            "<tr><td>Rome</td><td>90</td><td>30</td></tr></table>",
            "| City | Limit Hotel | Limit Meals |\n| --- | --- | --- |\n| Rome | 90 | 30 |",
        ),
        (
            "<table><tr><th>Area<th>City<th>Limit<tr><td rowspan=2>South<td>Rome<td>90<tr><td>Bari<td>80</table>",
            "| Area | City | Limit |\n| --- | --- | --- |\n| South | Rome | 90 |\n| South | Bari | 80 |",
        ),
        ("<table><tr><th>Name<td>Ann<tr><th>Age<td>33</table>", "|  |  |\n| --- | --- |\n| Name | Ann |\n| Age | 33 |"),
        ("<table><tr><td><h2>News</h2>first<td>menu<tr><td>more<td>x</table>", ""),
        (
            "<table><tr><td><table><tr><td>a<td>b<td>c<tr><td>1<td>2<td>3</table><td>side<tr><td>x<td>y</table>",
            "| a | b | c |",
        ),
        ("<table><tr><td>one<td>row</table>", ""),
        (f"<table><tr><td>a<td>{'b' * 2_000}<tr><td>c<td>d</table>", ""),
        ("<table><tr>" + "<td>x" * 5_000 + "<tr><td>x" * 5_000 + "</table>", ""),
    ],
)
def test_a_table_that_arranges_a_page_is_text(page: str, table: str) -> None:
    text = sections(page + "<p>behind").text

    assert text.rstrip().endswith("behind")
    assert table in text if table else "---" not in text


def test_later_pieces_of_a_long_table_know_its_columns() -> None:
    rows = [[f"name {number}", f"room {number}", "free"] for number in range(200)]

    chunks = split_into_chunks(
        read_table("\n".join(map(",".join, [["name", "room", "note"], *rows])).replace("\x00", ""))
    )

    assert len(chunks) > 2
    assert chunks[0].heading == ()
    assert {chunk.heading for chunk in chunks[1:]} == {("name | room | note",)}


def test_text_behind_a_table_is_not_under_its_columns() -> None:
    text = f"{table_text(['a', 'b', 'c'], [['x', 'y', 'z']])}\n\n" + "Plain words of a paragraph. " * 60

    chunks = split_into_chunks(read_document(text.encode(), "markdown", 10_000))

    assert all(chunk.heading == () for chunk in chunks)


def test_a_cell_that_goes_on_below_belongs_to_its_row() -> None:
    lines = [
        [(0, 30, "City"), (100, 130, "Note"), (200, 230, "Limit")],
        [(0, 30, "Rome"), (100, 150, "only with"), (210, 230, "90")],
        [(100, 150, "receipt")],
        [(212, 230, "EUR")],
        [(0, 30, "Bari"), (100, 120, "no"), (205, 230, "80")],
        [(0, 230, "A paragraph behind the table")],
    ]

    ((first, last, table),) = aligned_tables(lines)

    assert (first, last) == (0, 5)
    assert "| Rome | only with receipt | 90 EUR |" in table


def test_a_name_that_goes_on_below_belongs_to_its_row_where_its_next_word_had_no_room() -> None:
    lines = [
        [(0, 40, "Team"), (100, 130, "Limit")],
        [(0, 80, "Research and"), (110, 130, "90")],
        [(0, 70, "Development")],
        [(0, 25, "Sales"), (110, 130, "80")],
        [(0, 40, "Abroad")],
        [(0, 35, "Export"), (110, 130, "70")],
        [(0, 75, "Imports and"), (110, 130, "60")],
        [(0, 40, "Customs")],
        [(0, 230, "A paragraph behind the table")],
    ]

    (_, last, table), *_ = aligned_tables(lines)

    assert last == 4, "a heading in the table, whose word had room above, is not a part of a name"
    assert "| Research and Development | 90 |" in table


def test_numbers_on_the_right_stand_below_a_name_on_the_left() -> None:
    lines = [
        [(0, 30, "City"), (100, 160, "Limit a night")],
        *[[(0, 30, f"City {number}"), (150, 165, f"{number}0")] for number in (7, 8, 9)],
    ]

    ((_, _, table),) = aligned_tables(lines)

    assert table.splitlines()[0] == "| City | Limit a night |"


@pytest.mark.parametrize("marks", ["•••", ["1.", "2.", "3."], ["(a)", "(b)", "(c)"]])
def test_the_items_of_a_list_are_no_rows(marks: Sequence[str]) -> None:
    assert not [*aligned_tables([[(0, 8, mark), (30, 200, "words of an item")] for mark in marks])]


def test_words_that_only_stand_apart_are_no_table() -> None:
    apart = [[(0, 40, "some"), (60 + 30 * number, 90 + 30 * number, "words")] for number in range(4)]

    assert not [*aligned_tables(apart)]
