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
            if any(map(READING.search, parts.values())):
                raw = _without_readings(packed, parts)
        # Pictures are neither read nor followed.
        html = mammoth.convert_to_html(io.BytesIO(raw), convert_image=mammoth.images.img_element(_no_picture)).value
    except zipfile.BadZipFile:
        raise UnreadableError(Wording("broken or encrypted: not a DOCX that can be opened")) from None
    reading = sections(str(html))
    found = len(reading.text.encode())
    few = f"only {found / written:.0%} of its text was found; it will be read again" if 4 * found < written else ""
    return replace(reading, doubt=few)


WORD_PART = re.compile(r"word/\w+\.xml")
WRITTEN = re.compile(rb"<\w+:t(?: [^>]*)?>([^<]*)")
READING = re.compile(rb"<(\w+):rt(?: [^>]*)?>.*?</\1:rt>", re.DOTALL)
AROUND_READING = re.compile(rb"</?\w+:(?:ruby|rubyBase)(?: [^>]*)?>")


def _without_readings(packed: zipfile.ZipFile, parts: Mapping[str, bytes]) -> bytes:
    """Return a DOCX without the readings above its characters: mammoth leaves out these characters together with them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as plain:
        for entry in packed.infolist():
            if (part := parts.get(entry.filename)) is not None:
                plain.writestr(entry.filename, AROUND_READING.sub(b"", READING.sub(b"", part)))
            elif entry.filename.endswith((".xml", ".rels")):
                plain.writestr(entry.filename, packed.read(entry))
    return out.getvalue()


def _no_picture(_: object) -> dict[str, str]:
    return {}
