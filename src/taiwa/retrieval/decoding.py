"""The text of a file: a byte order mark, the declared encoding and strict UTF-8 are tried before any guess."""

import re

from taiwa.kernel.wording import Wording
from taiwa.retrieval.types import UnreadableError

BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
)  # fmt: skip
UTF_16 = ("utf_16_le", "utf_16_be")
GUESSES = ["cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1252", "cp1251", "koi8_r", *UTF_16]
"""Without this list charset-normalizer mistook half of the French samples and 48 of 68 EUC-JP samples of 20 characters."""
SAMPLE_BYTES = 1 << 16
NOT_ASCII = re.compile(rb"[\x80-\xff][^\n]*\n?")
STRAY = 4
"""Control codes allowed in a text file."""
BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
COMPARED = 4_000
"""Characters by which guesses are compared."""
SIGNS = bytes(range(0xA1, 0xA4))
USUAL = {
    **dict.fromkeys(("cp932", "euc_jp"), ("euc_jp", SIGNS + b"\xa4\xa5" + bytes(range(0xB0, 0xD0)))),
    "gb18030": ("gb2312", SIGNS + bytes(range(0xB0, 0xD8))), "cp949": ("euc_kr", SIGNS + bytes(range(0xB0, 0xC9))),
    "big5": ("big5", bytes(range(0xA1, 0xC7))),
}  # fmt: skip
"""A codec for each guess, and the first bytes in it of the signs and the characters of the first level, which almost all text uses."""


def decode(raw: bytes, declared: str = "") -> str:
    """Return the text of a file with `\\n` for every line ending; `declared` is the encoding that the file declares.

    Raises:
        UnreadableError: the bytes are not text.
    """
    text = _decode(raw, declared)
    if len(BINARY.findall(text[:SAMPLE_BYTES])) > STRAY + len(text[:SAMPLE_BYTES]) // 100:
        raise UnreadableError(Wording("not a text file"))
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

    # Equal scores are common for a few characters.
    found = from_bytes(sample, cp_isolation=GUESSES)
    best = min(found, key=lambda match: _strangeness(match.encoding, str(match)[:COMPARED]), default=None)
    return "cp1252" if best is None else best.encoding


def _strangeness(encoding: str, text: str) -> float:
    """Return in tenths how many of the characters that are not ASCII seldom stand in a text of an encoding.

    >>> _strangeness("cp949", "뭆뱰롌궼"), _strangeness("cp1252", "Êëþ÷ ëåæèò"), _strangeness("cp932", "担当者は")
    (1.0, 1.0, -0.1)
    """
    if encoding in UTF_16:  # few files are UTF-16 without a mark
        return 2.0
    if encoding not in USUAL:
        words: list[str] = re.findall(r"[^\W\d_]+", text)
        foreign = [(word, count) for word in words if (count := sum(each > "\x7f" for each in word))]
        total = sum(count for _, count in foreign)
        is_latin = encoding == "cp1252"
        strange = sum(count for word, count in foreign if not (_is_latin(word) if is_latin else _is_cyrillic(word)))
        return round(strange / max(total, 1), 1)
    codec, leads = USUAL[encoding]
    wide = [each for each in text if each > "\x7f"]
    strange = sum(not (lead := each.encode(codec, "ignore")[:1]) or lead not in leads for each in wide)
    kana = 0.3 * sum("\u3041" <= each <= "\u30fc" for each in wide) if codec == "euc_jp" else 0.0
    return round((strange - kana) / max(len(wide), 1), 1)


def _is_latin(word: str) -> bool:
    return len(word) == 1 or any(each <= "\x7f" for each in word)


def _is_cyrillic(word: str) -> bool:
    return len(word) > 1 and all("\u0400" <= each <= "\u04ff" for each in word) and word in (
        word.lower(), word.upper(), word.title()
    )  # fmt: skip
