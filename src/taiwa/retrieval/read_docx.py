"""The text of a DOCX, which is read as HTML."""

import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

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
    html = BACK_FROM_NOTE.sub("", NOTE_MARK.sub(lambda mark: mark[1].translate(RAISED), str(html)))
    html = ONE_TERM.sub(r"\1", ONE_TERM.sub(r"\1", html)).replace(GROUP, "(").replace(GROUP_END, ")")
    reading = sections(html)
    found = len(reading.text.encode())
    few = f"only {found / written:.0%} of its text was found; it will be read again" if 4 * found < written else ""
    return replace(reading, doubt=few)


WORD_PART = re.compile(r"word/\w+\.xml")
WRITTEN = re.compile(rb"<\w+:t(?: [^>]*)?>([^<]*)")
GROUP, GROUP_END = "\ufdd0", "\ufdd1"
"""Around a part of a formula that has brackets only if it needs them."""
ONE_TERM = re.compile(rf"{GROUP}([\w.^]*|\([^(){GROUP}{GROUP_END}]*\)){GROUP_END}")
DRAWING = re.compile(
    rb"<w:drawing>(?:(?!</?w:drawing>|<w:txbx).)*<w:txbxContent>(?:(?!</?w:drawing>).)*</w:drawing>", re.DOTALL
)
TEXT_BOX = re.compile(rb"<w:txbxContent>.*?</w:txbxContent>", re.DOTALL)
UNUSUAL = re.compile(rb"<\w+:(?:rt|fldSimple|oMath|vanish|txbxContent)[ />]")
REWRITTEN = tuple(
    (re.compile(old, re.DOTALL), new)
    for old, new in (
        (rb"<(\w+):rt(?: [^>]*)?>.*?</\1:rt>", b""),  # a reading above characters
        (rb"</?\w+:(?:ruby|rubyBase|fldSimple)(?: [^>]*)?>", b""),
        # hidden text
        (rb"<(\w+):r(?: [^>]*)?><\1:rPr>(?:(?!</\1:rPr>|<\1:rPrChange).)*<\1:vanish */>(?:(?!<\1:r[ >]).)*?</\1:r>", b""),
        # formulas
        (rb"<m:(\w+Pr)(?: [^>]*)?>.*?</m:\1>", b""),
        (rb"</m:num>", rb"\g<0><w:r><w:t>/</w:t></w:r>"),
        (rb"<m:sup>", rb"<w:r><w:t>^</w:t></w:r>\g<0>"),
        (rb"<m:(?:num|den|sup)>", f"<w:r><w:t>{GROUP}</w:t></w:r>".encode()),
        (rb"</m:(?:num|den|sup)>", f"<w:r><w:t>{GROUP_END}</w:t></w:r>".encode()),
        (rb"<m:d>", b"<w:r><w:t>(</w:t></w:r>"),
        (rb"</m:d>", b"<w:r><w:t>)</w:t></w:r>"),
        (rb"<(/?)m:([rt])(?: [^>]*)?>", rb"<\1w:\2>"),
        (rb"</?m:\w+(?: [^>]*)?>", b""),
        # text boxes without a copy for older programs
        (rb"<mc:Choice [^>]*>((?:(?!</?mc:Choice[ >]).)*)</mc:Choice>\s*(?=</mc:AlternateContent>)", rb"<mc:Fallback>\1</mc:Fallback>"),
    )
)  # fmt: skip
"""What mammoth leaves out, or shows against its purpose, and what it reads in its place."""
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
NOTE_MARK = re.compile(r'<sup><a href="#(?:foot|end)note-[^"]*"[^>]*>\[(\d+)\]</a></sup>')
"""The mark of a note: in brackets it would be read as a citation."""
BACK_FROM_NOTE = re.compile(r' ?<a href="#(?:foot|end)note-ref-[^"]*">↑</a>')


def _rewritten(packed: zipfile.ZipFile, parts: Mapping[str, bytes]) -> bytes:
    """Return a DOCX that mammoth reads completely."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as plain:
        for entry in packed.infolist():
            if (part := parts.get(entry.filename)) is not None:
                for old, new in REWRITTEN:
                    part = old.sub(new, part)
                part = DRAWING.sub(
                    lambda drawing: b"<w:pict>%b</w:pict>" % b"".join(TEXT_BOX.findall(drawing[0])), part
                )
                plain.writestr(entry.filename, part)
            elif entry.filename.endswith((".xml", ".rels")):
                plain.writestr(entry.filename, packed.read(entry))
    return out.getvalue()


def _no_picture(_: object) -> dict[str, str]:
    return {}
