"""The text of a file: a byte order mark, the declared encoding and strict UTF-8 are tried before any guess."""

import re
from typing import TYPE_CHECKING

from taiwa.retrieval.types import UnreadableError

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch


BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
)  # fmt: skip
UTF_16 = ("utf_16_le", "utf_16_be")
GUESSES = ["cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1252", *UTF_16]
"""Without this list charset-normalizer mistook half of the French samples and 48 of 68 EUC-JP samples of 20 characters."""
SAMPLE_BYTES = 1 << 16
NOT_ASCII = re.compile(rb"[\x80-\xff][^\n]*\n?")
STRAY = 4
"""Control codes allowed in a text file."""
BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
IDEOGRAPH = re.compile("[\u4e00-\u9fff]")


def decode(raw: bytes, declared: str = "") -> str:
    """Return the text of a file with `\\n` for every line ending; `declared` is the encoding that the file declares.

    Raises:
        UnreadableError: the bytes are not text.
    """
    text = _decode(raw, declared)
    if len(BINARY.findall(text[:SAMPLE_BYTES])) > STRAY + len(text[:SAMPLE_BYTES]) // 100:
        raise UnreadableError("not a text file")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(raw: bytes, declared: str) -> str:
    for mark, encoding in BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return _strict(raw, encoding) or raw.decode(encoding, errors="replace").lstrip("\ufeff")
    sample = raw[:SAMPLE_BYTES]
    wide = sample.count(0) * 10 > len(sample)  # UTF-16 without a byte order mark: zeros are valid UTF-8 too
    likely = (("iso2022_jp_ext" if b"\x1b$" in raw else ""), *(() if wide else ("utf-8", declared)))
    for encoding in likely:
        if encoding and (text := _strict(raw, encoding)) is not None:
            return text
    text = raw.decode("utf-8", errors="replace")
    if not wide and text.count("\ufffd") * 50 < len(text) - len(text.encode("ascii", errors="ignore")):
        return text  # UTF-8 with an invalid sequence
    del text
    return raw.decode(_guess(sample if wide else _telling_lines(raw)), errors="replace")


def _strict(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _telling_lines(raw: bytes) -> bytes:
    """Return the first lines that are not ASCII, wherever they are; only these depend on the encoding."""
    lines: list[bytes] = []
    size = end = 0
    for rest in NOT_ASCII.finditer(raw):
        lines.append(raw[raw.rfind(b"\n", end, rest.start()) + 1 or end : rest.end()])
        size, end = size + len(lines[-1]), rest.end()
        if size > SAMPLE_BYTES:
            break
    return b"".join(lines[: -1 if size > SAMPLE_BYTES else None] or lines)[:SAMPLE_BYTES]


def _guess(sample: bytes) -> str:
    """Guess the encoding of some bytes; cp1252, which accepts anything, if nothing else fits."""
    from charset_normalizer import from_bytes

    def is_unlikely(match: "CharsetMatch") -> bool:
        return match.encoding in UTF_16 or (match.encoding == "cp949" and bool(IDEOGRAPH.search(str(match))))

    # Equal scores are common for a few characters: Korean is written without ideographs, and few files are UTF-16 without a mark.
    best = min(from_bytes(sample, cp_isolation=GUESSES), key=is_unlikely, default=None)
    return "cp1252" if best is None else best.encoding
