"""Decode text files in the usual encodings: a byte order mark, what the file declares and strict UTF-8 come before any guess."""

import re
from typing import TYPE_CHECKING

from taiwa.retrieve.reading.reading import UnreadableError

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch

__all__ = ["decode"]

MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
WIDE = ("utf_16_le", "utf_16_be")
GUESSES = ["cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1252", *WIDE]
"""Without this list charset-normalizer mistook half of the French samples and 48 of 68 EUC-JP samples of 20 characters."""
SAMPLE_BYTES = 1 << 16
STRAY = 4
"""Control codes that may stand in a text file, however short it is."""
BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
NOT_ASCII = re.compile("[^\x00-\x7f]")
IDEOGRAPH = re.compile("[\u4e00-\u9fff]")


def decode(raw: bytes, declared: str = "") -> str:
    """Return the text of a file with `\\n` for every line ending; `declared` is the encoding that the file names itself.

    Raises:
        UnreadableError: the bytes are not text.
    """
    text = _decode(raw, declared)
    if len(BINARY.findall(text[:SAMPLE_BYTES])) > STRAY + len(text[:SAMPLE_BYTES]) // 100:
        raise UnreadableError("not a text file")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(raw: bytes, declared: str) -> str:
    for mark, encoding in MARKS:
        if raw.startswith(mark):
            return _strict(raw, encoding) or raw.decode(encoding, errors="replace").lstrip("\ufeff")
    sample = raw[:SAMPLE_BYTES]
    wide = sample.count(0) * 10 > len(sample)  # UTF-16 without a mark: zeros are valid UTF-8, too
    likely = (("iso2022_jp_ext" if b"\x1b$" in raw else ""), *(() if wide else ("utf-8", declared)))
    for encoding in likely:
        if encoding and (text := _strict(raw, encoding)) is not None:
            return text
    text = raw.decode("utf-8", errors="replace")
    if not wide and text.count("\ufffd") * 50 < len(NOT_ASCII.findall(text)):
        return text  # UTF-8 with a broken place
    return raw.decode(_guess(sample if wide or len(raw) <= SAMPLE_BYTES else _whole_lines(sample)), errors="replace")


def _strict(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _whole_lines(sample: bytes) -> bytes:
    """Cut a sample at a line end, so that no character is cut."""
    return sample[: sample.rfind(b"\n") + 1] or sample


def _guess(sample: bytes) -> str:
    """Name the encoding of some bytes; cp1252, in which anything is a text, where nothing else fits."""
    from charset_normalizer import from_bytes

    def is_unlikely(match: "CharsetMatch") -> bool:
        return match.encoding in WIDE or (match.encoding == "cp949" and bool(IDEOGRAPH.search(str(match))))

    # Equal scores are common for a few characters: Korean is written without ideographs, and few files are UTF-16 without a mark.
    best = min(from_bytes(sample, cp_isolation=GUESSES), key=is_unlikely, default=None)
    return "cp1252" if best is None else best.encoding
