"""Real files of every format: their words, headings and pages; and what cannot be read says why."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from taiwa.extras import install_command
from taiwa.isolation import IsolatedProcess, ProcessLimits
from taiwa.kernel.serialization import Json
from taiwa.retrieval import read_docx, read_text, readers
from taiwa.retrieval.read_html import sections
from taiwa.retrieval.readers import IsolatedReader, document_format, read_document, reader_name
from taiwa.retrieval.types import ParsedDocument, UnreadableError
from tests.retrieval.documents import docx, pdf
from tests.steps import lines_run

PAGE = b"""<!doctype html><html><head><title>The handbook</title><script>var leave = "never";</script></head><body>
<nav><a href="/">Start</a><a href="/x">Menu</a></nav>
<h1 id="leave">Leave</h1><p>Everybody has <b>ten days</b> of leave &amp; may take them at any time of the year.</p>
<h2>Sick leave</h2><p>Tell your lead on the first morning.</p>
<table><tr><th>Who</th><th>Days</th></tr><tr><td>new</td><td>10</td></tr></table>
<footer>(c) us</footer></body></html>"""


@pytest.fixture(scope="module")
def apart() -> Iterator[IsolatedReader]:
    with closing(IsolatedReader()) as one:
        yield one


def parsed(raw: bytes, kind: str) -> ParsedDocument:
    return read_document(raw, kind, 100_000)


def words(reading: ParsedDocument) -> list[tuple[int, str]]:
    return [(heading.level, heading.words) for heading in reading.headings]


def refusal(apart: IsolatedReader, raw: bytes, kind: str) -> str:
    with pytest.raises(UnreadableError) as caught:
        apart.read(raw, kind)
    return caught.value.message


def test_a_pdf_gives_its_text_page_by_page_with_its_outline() -> None:
    raw = pdf(
        "Leave\nTen days a year.",
        "Expenses (travel)\nKeep receipts.",
        outline=(("Leave", 0), ("Expenses", 1)),
        title="Rules",
    )

    reading = parsed(raw, "pdf")

    assert reading.title == "Rules"
    assert words(reading) == [(1, "Leave"), (1, "Expenses")]
    assert len(reading.pages) == 2
    assert "Ten days a year." in reading.text[: reading.pages[1]]
    assert reading.text[reading.headings[1].start :].startswith("Expenses (travel)")


def test_a_japanese_pdf_gives_its_characters() -> None:
    assert "有給休暇は十日です。" in parsed(pdf("有給休暇は十日です。"), "pdf").text


@pytest.mark.parametrize(
    ("raw", "kind", "why"),
    [
        (pdf("secret", password="open sesame"), "pdf", "encrypted: it needs a password"),
        (pdf("", ""), "pdf", "no text layer"),
        (b"%PDF-1.4 and nothing more", "pdf", "broken"),
        (b"", "pdf", "broken"),
        (pdf("x" * 50)[:200], "pdf", "broken"),
        (b"PK\x03\x04 no archive", "docx", "broken or encrypted"),
        (docx("words")[:-30], "docx", "broken or encrypted"),
        (docx(), "docx", "no text"),
        (b"<html><body><script>x</script></body></html>", "html", "no text"),
        (b"\x00\x01\x02\x03\x04\x05" * 50, "text", "not a text file"),
        (b" \n ", "markdown", "no text"),
    ],
)
def test_what_cannot_be_read_says_why(apart: IsolatedReader, raw: bytes, kind: str, why: str) -> None:
    assert refusal(apart, raw, kind).startswith(why)


def test_a_docx_gives_its_headings_and_text() -> None:
    raw = docx(("Heading1", "休暇"), "有給は十日。", ("Heading2", "Sick leave"), "Tell <your> lead & rest.")

    reading = parsed(raw, "docx")

    assert words(reading) == [(1, "休暇"), (2, "Sick leave")]
    assert reading.title == "休暇"
    assert "Tell <your> lead & rest." in reading.text


def test_characters_with_a_reading_above_them_are_one_word() -> None:
    page = "<p><ruby>山田<rp>(</rp><rt>やまだ</rt><rp>)</rp></ruby>部長。<ruby>漢<rt>かん<rb>字<rt>じ</ruby>です。</p><p>終わり</p>"

    assert parsed(docx("{山田|やまだ}部長は三階。"), "docx").text.strip() == "山田部長は三階。"
    assert sections(page).text.split() == ["山田部長。漢字です。", "終わり"]


def test_a_fragment_of_the_text_is_read_again_and_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = IsolatedProcess.ask

    def counting(self: Any, *given: Any) -> dict[str, Json]:
        asked.append("")
        return ask(self, *given)

    monkeypatch.setattr(IsolatedProcess, "ask", counting)

    with closing(IsolatedReader()) as reader:
        whole, few = reader.read(pdf("ten days"), "pdf"), reader.read(pdf("1", "2"), "pdf")

    assert whole.doubt == ""
    assert few.doubt.startswith("fewer than 4 characters of text a page")
    assert few.chunks
    assert len(asked) == 3


def test_a_docx_whose_reader_loses_its_text_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = docx("Everybody has ten days of leave a year.")
    monkeypatch.setattr(read_docx, "sections", lambda _: ParsedDocument("Every"))

    assert parsed(raw, "docx").doubt.startswith("only 13% of its text")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<m:t>x</m:t>", "x^2·1/12"),
        ('<m:t xml:space="preserve">x </m:t>', "(x )^2·1/12"),
        ('<m:t xmlns:m="m">x</m:t>', "x^2·1/12"),
        ("<m:t> 3:4</m:t>", "( 3:4)^2·1/12"),
        ("<m:t>a&lt;b</m:t>", "(a<b)^2·1/12"),
        (f"{'<m:e>' * 3000}<m:t>a&lt;b &amp; c</m:t>{'</m:e>' * 3000}", "a<b & c 2 · 1 12"),
    ],
)
def test_a_formula_of_a_docx_is_read_whatever_its_text_and_attributes(written: str, read: str) -> None:
    power = f"<m:sSup><m:e><m:r>{written}</m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    twelfth = "<m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>12</m:t></m:r></m:den></m:f>"
    formula = f"<m:oMath>{power}<m:r><m:t>·</m:t></m:r>{twelfth}</m:oMath>"

    reading = parsed(docx(f"<w:p><w:r><w:t>Rate: </w:t></w:r>{formula}</w:p>"), "docx")

    assert reading.text.strip() == f"Rate: {read}"


def test_the_words_around_a_box_in_the_header_of_a_docx_are_read() -> None:
    box = "<w:pict><w:txbxContent><w:p><w:r><w:t>Boxed</w:t></w:r></w:p></w:txbxContent></w:pict>"
    header = f"<w:hdr><w:p ><w:r><w:t>Before</w:t></w:r><w:r>{box}</w:r><w:r><w:t>After</w:t></w:r></w:p></w:hdr>"

    reading = parsed(docx("Body", extra={"word/header1.xml": header.encode()}), "docx")

    assert reading.text.split() == ["Before", "Boxed", "After", "Body"]


def test_a_web_page_gives_its_text_and_headings_without_its_menus() -> None:
    reading = parsed(PAGE, "html")

    assert reading.title == "The handbook"
    assert words(reading) == [(1, "Leave"), (2, "Sick leave")]
    assert "ten days of leave & may" in reading.text.replace("**", "")
    assert "Menu" not in reading.text
    assert "never" not in reading.text


@pytest.mark.parametrize(
    "page",
    [
        "<title>T</title><p>the text of it",
        "<html><head><title>T</title><body><p>the text of it",
        "<html><head><title>T</title><p>the text of it",
        "<title>T</title><nav>the text of it</nav>",
        "<title>T</title><p>the<br>text <i>of</i>\n it<script>x</p>",
        "<title>T</title><div><div>the text<svg><text>no</text></svg> of it</div>",
    ],
)
def test_a_page_that_leaves_out_what_may_be_left_out_is_read(page: str) -> None:
    reading = sections(page)

    assert reading.title == "T"
    assert reading.text.split() == ["the", "text", "of", "it"]


def test_a_web_page_in_an_old_encoding_says_so_itself() -> None:
    raw = '<meta charset="Shift_JIS"><p>出張の費用は、領収書とともに申請してください。</p>'.encode("cp932")

    assert "領収書とともに" in parsed(raw, "html").text


def test_an_archive_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_docx, "MOST_UNPACKED", 1 << 20)
    bomb = tmp_path / "bomb.docx"
    bomb.write_bytes(docx("words", extra={"word/media/image1.png": bytes(2 << 20)}))

    answer = readers.entry({})({"kind": "docx", "path": str(bomb)}, 1_000)

    assert answer == {"problem": "unpacks to more than 1 MB"}
    assert bomb.stat().st_size < 10_000


def test_a_picture_that_lies_elsewhere_is_not_fetched() -> None:
    page = b'<p>words enough to be found here</p><img src="file:///etc/passwd"><link href="http://127.0.0.1:9/x.css">'

    assert "root:" not in parsed(page, "html").text


def test_what_takes_too_long_is_ended_and_the_next_file_is_read() -> None:
    with closing(IsolatedReader(ProcessLimits(seconds=0.2, characters=10_000_000))) as quick:
        assert refusal(quick, b"<b>" * 3_000_000, "html").startswith("takes longer than 0.2 seconds")
    with closing(IsolatedReader()) as next_one:
        assert next_one.read(PAGE, "html").chunks[-1].heading == ("Leave", "Sick leave")


def test_more_text_than_is_allowed_is_refused() -> None:
    with closing(IsolatedReader(ProcessLimits(characters=10))) as strict:
        assert refusal(strict, b"<p>eleven characters</p>", "html") == "more than 10 characters of text"
        assert refusal(strict, b"eleven characters", "text") == "more than 10 characters of text"


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    reader_name.cache_clear()
    monkeypatch.setitem(sys.modules, "mammoth", None)
    monkeypatch.setattr("taiwa.retrieval.readers.find_spec", lambda name: None)
    try:
        with closing(IsolatedReader()) as bare:
            assert install_command("docs") in refusal(bare, docx("words"), "docx")
            assert bare.read(PAGE, "html").title == "The handbook"
    finally:
        reader_name.cache_clear()


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a/b.MD", "markdown"), ("x.tsv", "table"), ("x.htm", "html"), ("x.exe", None), ("README", None), (".md", None)],
)
def test_a_kind_is_told_by_the_end_of_the_name(path: str, kind: str | None) -> None:
    assert document_format(path) == kind


def test_the_entry_answers_in_json() -> None:
    answer: dict[str, Json] = readers.entry({})({"kind": "pdf", "path": "/no/such/file"}, 10)

    assert "problem" in answer


def test_the_title_of_a_drawing_is_none_of_the_page() -> None:
    reading = sections("<title>VPN</title><svg><title>Menu</title></svg><p>Use it.</p><svg><title>Close</title></svg>")

    assert (reading.title, reading.text.strip()) == ("VPN", "Use it.")
    assert sections("<svg><title>Menu</title></svg><h1>VPN</h1>").title == "VPN"


@pytest.mark.parametrize(
    ("raw", "kind", "why"),
    [
        (b"\xff" * 2_000_001, "text", "more than 500,000 characters of text"),
        (b"\xff" * 1_900_000, "markdown", "more than 500,000 characters of text"),
        (b'"' * 600_000, "table", "more than 500,000 characters of text"),
        (b'<a b="' * 300_000, "html", "needs too much memory to read"),
    ],
)
def test_a_file_made_to_exhaust_its_reader_is_refused_and_the_next_one_is_read(raw: bytes, kind: str, why: str) -> None:
    with closing(IsolatedReader(ProcessLimits(20.0, 64, 500_000))) as bounded:
        assert refusal(bounded, raw, kind) in (why, "makes its reader fail: it is broken, or needs too much memory")
        assert bounded.read(PAGE, "html").title == "The handbook"


@pytest.mark.parametrize(
    "opening", ["<!-- ", "<!--", "<meta ", "<meta name=", "<meta name='", "<![CDATA[", "<a b=", "<?", "<!x "]
)
def test_a_page_of_openings_that_are_never_closed_is_read_in_proportion_to_its_size(opening: str) -> None:
    few, many = (lines_run(read_document, opening.encode() * count, "html", 9_000_000) for count in (4_000, 32_000))

    assert many <= 10 * few


def test_a_text_of_too_many_lines_is_read_without_its_headings(apart: IsolatedReader) -> None:
    few, many = (apart.read(b"# a\n" * count, "markdown").chunks for count in (10, read_text.MOST_LINES + 1))

    assert [chunk.heading for chunk in few] == [("a",)] * 10
    assert {chunk.heading for chunk in many} == {()}
    assert sum(len(chunk.text) for chunk in many) > 3 * read_text.MOST_LINES


def test_one_process_reads_many_files_of_every_format(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    original = IsolatedProcess.__init__

    def counting(self: IsolatedProcess, *arguments: Any) -> None:
        started.append(arguments[0])
        original(self, *arguments)

    monkeypatch.setattr(IsolatedProcess, "__init__", counting)
    files = [
        (b"# a", "markdown"),
        (b"a", "text"),
        (b"a,b\n1,2", "table"),
        (PAGE, "html"),
        (b" ", "text"),
        (docx("a"), "docx"),
    ]
    with closing(IsolatedReader()) as one:
        for raw, kind in files * 3:
            if raw.strip():
                one.read(raw, kind)
            else:
                refusal(one, raw, kind)

    assert started == ["taiwa.retrieval.readers:entry"]


@pytest.mark.parametrize("text", ["a😀\ud800b", "東" * 9, "\x00\x1b\x7f"])
def test_any_character_comes_back_from_the_process(apart: IsolatedReader, text: str) -> None:
    raw = text.encode("utf-8", "replace")

    assert apart.read(b"x" * 900 + raw, "text").chunks[0].text == "x" * 900 + raw.decode()
