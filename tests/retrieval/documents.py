"""Real documents, made byte by byte: PDF with pages, cells, outline, Japanese or a password, and DOCX with headings and tables."""

import hashlib
import io
import re
import zipfile
from xml.sax.saxutils import escape

PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def pdf(*pages: str, outline: tuple[tuple[str, int], ...] = (), title: str = "", password: str = "") -> bytes:
    """A PDF with one text per page, where a tab goes to the next column; `outline` is (words, page from 0); with a password it cannot be read without it."""
    objects: dict[int, bytes] = {}
    count = len(pages)
    first_page, first_text, first_mark = 10, 10 + count, 10 + 2 * count
    for number, text in enumerate(pages):
        content = _content(text)
        objects[first_page + number] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {first_text + number} 0 R"
            "/Resources<</Font<</F1 3 0 R/F2 4 0 R>>>>>>"
        ).encode()
        objects[first_text + number] = b"<</Length %d>>stream\n%s\nendstream" % (len(content), content)
    for number, (words, page) in enumerate(outline):
        beside = f"/Next {first_mark + number + 1} 0 R" if number + 1 < len(outline) else ""
        beside += f"/Prev {first_mark + number - 1} 0 R" if number else ""
        spelled = words.encode("utf-16-be").hex()
        objects[first_mark + number] = (
            f"<</Title<FEFF{spelled}>/Parent 8 0 R/Dest[{first_page + page} 0 R/Fit]{beside}>>".encode()
        )
    kids = " ".join(f"{first_page + number} 0 R" for number in range(count))
    marks = f"/First {first_mark} 0 R/Last {first_mark + len(outline) - 1} 0 R/Count {len(outline)}" if outline else ""
    objects |= {
        1: b"<</Type/Catalog/Pages 2 0 R/Outlines 8 0 R>>",
        2: f"<</Type/Pages/Kids[{kids}]/Count {count}>>".encode(),
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        4: b"<</Type/Font/Subtype/Type0/BaseFont/HeiseiMin-W3/Encoding/UniJIS-UCS2-H/DescendantFonts[5 0 R]>>",
        5: b"<</Type/Font/Subtype/CIDFontType0/BaseFont/HeiseiMin-W3/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)"
        b"/Supplement 2>>/DW 1000/FontDescriptor 6 0 R>>",
        6: b"<</Type/FontDescriptor/FontName/HeiseiMin-W3/Flags 4/FontBBox[0 -200 1000 900]/ItalicAngle 0/Ascent 700"
        b"/Descent -200/CapHeight 700/StemV 80>>",
        7: b"<</Title(%s)>>" % title.encode(),
        8: f"<</Type/Outlines{marks}>>".encode(),
    }
    if password:
        objects[9] = _locked(password)
    return _written(objects, bool(password))


def _content(text: str) -> bytes:
    lines: list[bytes] = [b"BT /F1 12 Tf 50 780 Td 16 TL"]
    for number, line in enumerate(text.splitlines()):
        if "\t" in line:
            for column, cell in enumerate(line.split("\t")):
                lines.append(b"1 0 0 1 %d %d Tm (%s) Tj" % (50 + 120 * column, 780 - 16 * number, cell.encode()))
            lines.append(b"1 0 0 1 50 %d Tm" % (780 - 16 * (number + 1)))
        elif line.isascii():
            plain = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode()
            lines.append(b"/F1 12 Tf (%s) Tj T*" % plain)
        else:
            lines.append(b"/F2 12 Tf <%s> Tj T*" % line.encode("utf-16-be").hex().encode())
    return b"\n".join([*lines, b"ET"])


def _locked(password: str) -> bytes:
    """The standard security handler, revision 2: enough to be asked for the password."""
    padded = (password.encode() + PADDING)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    key = hashlib.md5(padded + owner + (0xFFFFFFFC).to_bytes(4, "little") + b"0123456789abcdef").digest()[:5]
    user = _rc4(key, PADDING)
    return b"<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P -4>>" % (owner.hex().encode(), user.hex().encode())


def _rc4(key: bytes, given: bytes) -> bytes:
    box, j, out = list(range(256)), 0, bytearray()
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    i = j = 0
    for byte in given:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


def _written(objects: dict[int, bytes], locked: bool) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places: dict[int, int] = {}
    for number, body in sorted(objects.items()):
        places[number] = out.tell()
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    size, begin = max(objects) + 1, out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % size)
    for number in range(1, size):
        out.write(b"%010d 00000 %s \n" % (places.get(number, 0), b"n" if number in places else b"f"))
    lock = b"/Encrypt 9 0 R/ID[<%s><%s>]" % ((b"0123456789abcdef".hex().encode(),) * 2) if locked else b""
    out.write(b"trailer<</Size %d/Root 1 0 R/Info 7 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (size, lock, begin))
    return out.getvalue()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


RUBY = re.compile(r"\{(.*?)\|(.*?)\}")


def _run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def _ruby(base: str, reading: str) -> str:
    parts = f"<w:rt>{_run(reading)}</w:rt><w:rubyBase>{_run(base)}</w:rubyBase>"
    return f'<w:r><w:ruby><w:rubyPr><w:hps w:val="10"/></w:rubyPr>{parts}</w:ruby></w:r>'


OTHER_SPACES = " ".join(
    f'xmlns:{prefix}="{name}"'
    for prefix, name in {
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    }.items()
)


def drawn_pdf(lines: list[tuple[int, int, str]], page: str = "", objects: dict[int, str] | None = None) -> bytes:
    """A PDF of one page with texts at their places; `page` are more entries of the page, `objects` those that they name, from 6."""
    content = "".join(f"1 0 0 1 {x} {y} Tm ({text}) Tj " for x, y, text in lines)
    stream = f"BT /F1 10 Tf {content}ET".encode("cp1252")
    return _written(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]{page}/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>".encode(),
            4: b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
            5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
            **{number: each.encode() for number, each in (objects or {}).items()},
        },
        locked=False,
    )


def docx(*paragraphs: tuple[str, str] | str | list[list[str]], extra: dict[str, bytes] | None = None) -> bytes:
    """A DOCX; a paragraph is its text, in which `{base|reading}` is ruby, or (style, text) with a style like Heading1, or a table, or XML."""
    body: list[str] = []
    for given in paragraphs:
        if isinstance(given, str) and given.startswith("<w:"):
            body.append(given)
            continue
        if isinstance(given, list):
            rows = ("".join(f"<w:tc><w:p>{_run(escape(cell))}</w:p></w:tc>" for cell in row) for row in given)
            body.append(f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>")
            continue
        style, text = given if isinstance(given, tuple) else ("", given)
        dress = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        spelled = RUBY.sub(lambda ruby: f"</w:t></w:r>{_ruby(ruby[1], ruby[2])}<w:r><w:t>", escape(text))
        body.append(f"<w:p>{dress}{_run(spelled)}</w:p>")
    kinds = "http://schemas.openxmlformats.org/package/2006/content-types"
    links = "http://schemas.openxmlformats.org/package/2006/relationships"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{kinds}"><Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{links}"><Relationship Id="r1" Type="{office}" Target="word/document.xml"/>'
        "</Relationships>",
        "word/document.xml": f'<w:document xmlns:w="{WORD}" {OTHER_SPACES}><w:body>{"".join(body)}</w:body></w:document>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            packed.writestr(name, text)
        for name, raw in (extra or {}).items():
            packed.writestr(name, raw)
    return out.getvalue()
