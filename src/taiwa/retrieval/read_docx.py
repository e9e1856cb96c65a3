"""The text of a DOCX, which is read as HTML."""

import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from importlib import import_module
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat
from xml.sax.saxutils import escape

from taiwa.kernel.wording import Wording
from taiwa.retrieval.read_html import sections
from taiwa.retrieval.types import ParsedDocument, UnreadableError

MOST_UNPACKED = 256 << 20
MOST_ENTRIES = 10_000


def read_docx(raw: bytes) -> ParsedDocument:
    """Read a DOCX; its `doubt` says how much of the text was found, if that is little."""
    mammoth: Any = import_module("mammoth")

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            entries = packed.infolist()
            if len(entries) > MOST_ENTRIES or sum(entry.file_size for entry in entries) > MOST_UNPACKED:
                raise UnreadableError(f"unpacks to more than {MOST_UNPACKED >> 20} MB")
            parts = {entry.filename: packed.read(entry) for entry in entries if WORD_PART.fullmatch(entry.filename)}
            written = sum(len(text) for part in parts.values() for text in WRITTEN.findall(part))
            if any(map(UNUSUAL.search, parts.values())):
                raw = _rewritten(packed, parts)
        # Pictures are neither read nor followed.
        html = mammoth.convert_to_html(io.BytesIO(raw), convert_image=mammoth.images.img_element(_no_picture)).value
    except zipfile.BadZipFile:
        raise UnreadableError(Wording("broken or encrypted: not a DOCX that can be opened")) from None
    for place, part in parts.items():
        if around := AROUND.fullmatch(place):
            stretches = PARAGRAPH_EDGE.split(_readable(part))
            lines = (b"".join(WRITTEN.findall(stretch)).decode("utf-8", "replace") for stretch in stretches)
            # A number alone is that of a page.
            beside = "".join(f"<p>{line}</p>" for line in lines if any(map(str.isalpha, line)) and line not in html)
            html = f"{beside}{html}" if around[1] == "header" else f"{html}{beside}"
    html = BACK_FROM_NOTE.sub("", NOTE_MARK.sub(lambda mark: mark[1].translate(RAISED), str(html)))
    reading = sections(html)
    size = len(reading.text.encode())
    few = f"only {size / written:.0%} of its text was found; it will be read again" if 4 * size < written else ""
    return replace(reading, doubt=few)


WORD_PART = re.compile(r"word/\w+\.xml")
AROUND = re.compile(r"word/(header|footer)\d*\.xml")
"""What stands above or below the text of each page, which mammoth leaves out."""

# These patterns take linear time: a tag or an element ends where another like it starts, so no stretch is searched twice.
PARAGRAPH_EDGE = re.compile(rb"</?w:p[ >]")
WRITTEN = re.compile(rb"<\w+:t(?: [^<>]*)?>([^<]*)")
DRAWING = re.compile(
    rb"<w:drawing>(?:(?!</?w:drawing>|<w:txbx).)*<w:txbxContent>(?:(?!</?w:drawing>).)*</w:drawing>", re.DOTALL
)
TEXT_BOX = re.compile(rb"<w:txbxContent>[^<]*(?:<(?!/?w:txbxContent>)[^<]*)*</w:txbxContent>")
FORMULA = re.compile(rb"<m:oMath(?: [^<>]*)?>[^<]*(?:<(?!/?m:oMath[ >])[^<]*)*</m:oMath>")
UNUSUAL = re.compile(rb"<\w+:(?:rt|fldSimple|oMath|vanish|txbxContent)[ />]")
REWRITTEN = tuple(
    (re.compile(old, re.DOTALL), new)
    for old, new in (
        (rb"<(\w+):rt(?: [^<>]*)?>[^<]*(?:<(?!/?\1:rt[ >])[^<]*)*</\1:rt>", b""),  # a reading above characters
        (rb"</?\w+:(?:ruby|rubyBase|fldSimple)(?: [^<>]*)?>", b""),
        # hidden text
        (rb"<(\w+):r(?: [^<>]*)?><\1:rPr>(?:(?!</\1:rPr>|<\1:r(?:PrChange|[ >])|<\1:vanish */>).)*<\1:vanish */>(?:(?!<\1:r[ >]).)*?</\1:r>", b""),
        # text boxes without a copy for older programs
        (rb"<mc:Choice [^<>]*>((?:(?!</?mc:Choice[ >]).)*)</mc:Choice>\s*(?=</mc:AlternateContent>)", rb"<mc:Fallback>\1</mc:Fallback>"),
    )
)  # fmt: skip
"""What mammoth leaves out, or shows against its purpose, and what it reads in its place."""
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
NOTE_MARK = re.compile(r'<sup><a href="#(?:foot|end)note-[^"]*"[^>]*>\[(\d+)\]</a></sup>')
"""The mark of a note: in brackets it would be read as a citation."""
BACK_FROM_NOTE = re.compile(r' ?<a href="#(?:foot|end)note-ref-[^"]*">↑</a>')


ONE_TERM = re.compile(r"[\w.^]*|\([^()]*\)|\[[^\[\]]*\]|\|[^|]*\|")
ACCENTS = {"acc": "\u0302", "bar": "\u0305"}
INDEXED = ("nary", "sSub", "sSup", "sSubSup", "limLow", "limUpp")


def _formula_text(formula: re.Match[bytes]) -> bytes:
    """Return a run of text with a formula on one line: fractions as `a/b`, powers as `a^b`, indices as `a_b`."""
    tree = ElementTree.TreeBuilder()
    # Not a parser of ElementTree, which wants the prefixes declared: they are so outside of the formula.
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = tree.start, tree.end, tree.data
    try:
        # It has no document type, and so no entities.
        parser.Parse(formula[0], True)
        text = _line_of(tree.close())
    except (expat.ExpatError, RecursionError):
        text = " ".join(unescape(re.sub(rb"<[^>]*>", b" ", formula[0]).decode("utf-8", "replace")).split())
    return f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'.encode()


def _line_of(node: ElementTree.Element) -> str:
    kind = _name(node)
    if kind == "t":
        return node.text or ""
    properties = [each for each in node if each.tag == f"m:{kind}Pr"]
    marks = {_name(mark): mark.get("m:val", "") for each in properties for mark in each}
    parts = [(_name(part), _line_of(part)) for part in node if not _name(part).endswith(("Pr", "del"))]
    texts = [text for _, text in parts]
    inner = dict(parts)
    if kind == "f":
        return "/".join(map(_one_term, texts))
    if kind == "d":
        return marks.get("begChr", "(") + marks.get("sepChr", "|").join(texts) + marks.get("endChr", ")")
    if kind == "rad":
        return f"√{f'[{degree}]' if (degree := inner.get('deg')) else ''}({inner.get('e', '')})"
    if kind in ("m", "eqArr"):
        return "; ".join(texts)
    if kind == "mr":
        return ", ".join(texts)
    if kind == "func":
        return f"{inner.get('fName', '')} {inner.get('e', '')}".replace(" (", "(")
    if kind in ACCENTS:
        return "".join(texts) + marks.get("chr", ACCENTS[kind])
    if kind in INDEXED:
        head, tail = (
            (marks.get("chr", "∫"), f" {inner.get('e', '')}") if kind == "nary" else (_one_term(inner.get("e", "")), "")
        )
        limits = (
            (sign, inner.get(name))
            for name, sign in (("sub", "_"), ("sup", "^"), ("lim", "_" if kind == "limLow" else "^"))
        )
        return head + "".join(f"{sign}{_one_term(limit)}" for sign, limit in limits if limit) + tail
    return "".join(texts)


def _name(node: ElementTree.Element) -> str:
    return node.tag.rpartition(":")[2]


def _one_term(text: str) -> str:
    return text if ONE_TERM.fullmatch(text) else f"({text})"


def _rewritten(packed: zipfile.ZipFile, parts: Mapping[str, bytes]) -> bytes:
    """Return a DOCX that mammoth reads completely."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as plain:
        for entry in packed.infolist():
            if (part := parts.get(entry.filename)) is not None:
                part = DRAWING.sub(
                    lambda drawing: b"<w:pict>%b</w:pict>" % b"".join(TEXT_BOX.findall(drawing[0])), _readable(part)
                )
                plain.writestr(entry.filename, part)
            elif entry.filename.endswith((".xml", ".rels")):
                plain.writestr(entry.filename, packed.read(entry))
    return out.getvalue()


def _readable(part: bytes) -> bytes:
    for old, new in REWRITTEN:
        part = old.sub(new, part)
    return FORMULA.sub(_formula_text, part)


def _no_picture(_: object) -> dict[str, str]:
    return {}
