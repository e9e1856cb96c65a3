"""Bytes of a text file as text, in whichever of the usual encodings it is.

Marks at the beginning and strict UTF-8 decide almost every file. What is left is tried in each of the old encodings, and
the one whose result looks like its language wins: common characters count for it, rare and odd ones against it.
"""

import re

from taiwa.retrieve.reading.reading import UnreadableError

__all__ = ["decode"]

MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
STRAY = 4
"""Control codes that may stand in a text file, however short it is."""
SAMPLE = 1 << 16
"""Bytes that are looked at to tell old encodings apart."""
JAPANESE = "のにはをたがでてとしれさいるかなもう。、日本人年大一中時上分生間行国会出者手的事社月場見合"
SIMPLIFIED = "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运假费请每天员工公司需，。"
TRADITIONAL = "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實，。"
KOREAN = "이다는의에을를가은하고로지니기사한도리자대나정시인보일제과해전부수서아어상원장게라주구여성동면그생무공회방안연오비조신문발경용국관소만스들것있년월간내위세신계당물치모입출요까거저말습되와유금감휴규실중약재급신청업직근차반학분결산교육명예식및등총락십바"
EVERY = frozenset(JAPANESE + SIMPLIFIED + TRADITIONAL)
COMMON = {
    "cp932": frozenset(JAPANESE), "euc_jp": frozenset(JAPANESE), "gb18030": frozenset(SIMPLIFIED),
    "big5": frozenset(TRADITIONAL), "euc_kr": frozenset(KOREAN), "utf-16-le": EVERY, "utf-16-be": EVERY,
}  # fmt: skip
OLD = ("cp932", "euc_jp", "gb18030", "big5", "euc_kr", "utf-16-le", "utf-16-be")
KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\u30fc]")
HANGUL = re.compile("[\uac00-\ud7a3]")
WIDE = re.compile("[^\x00-\x7f]")
ODD = re.compile("[\uff61-\uff9f\ue000-\uf8ff\u0080-\u009f\u2500-\u257f\u0370-\u03ff\u0400-\u04ff]")
BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
USUAL = {
    "cp932": ("euc_jp", 0xB0, 0xCF), "euc_jp": ("euc_jp", 0xB0, 0xCF), "gb18030": ("gb2312", 0xB0, 0xD7),
    "big5": ("big5", 0xA4, 0xC6),
}  # fmt: skip
"""Where a national standard puts the characters of its first, usual level: an encoding, and from which to which lead byte."""
LEAST = 0.25
"""Below this, none of the encodings of East Asia explains the bytes."""


def decode(raw: bytes, declared: str = "") -> str:
    """Return the text of a file, every line ending in one character; `declared` is what the file says of itself.

    Raises:
        UnreadableError: the bytes are no text.
    """
    text = _decoded(raw, declared)
    if len(BINARY.findall(text[:SAMPLE])) > STRAY + len(text[:SAMPLE]) // 100:
        raise UnreadableError("not a text file")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(raw: bytes, declared: str) -> str:
    for mark, encoding in MARKS:
        if raw.startswith(mark):
            return _strict(raw, encoding) or raw.decode(encoding, errors="replace").lstrip("\ufeff")
    if b"\x1b$" in raw and (text := _strict(raw, "iso2022_jp_ext")) is not None:
        return text
    half = _halves(raw[:SAMPLE])
    for encoding in (half, "utf-8", declared):
        if encoding and (text := _strict(raw, encoding)) is not None:
            return text
    likeness = {encoding: _likeness(raw[:SAMPLE], encoding) for encoding in OLD}
    best = max(OLD, key=likeness.__getitem__)
    if likeness[best] >= LEAST:
        return raw.decode(best, errors="replace")
    # Mostly UTF-8 with a broken place, or the encoding of western Europe.
    if (text := raw.decode("utf-8", errors="replace")).count("\ufffd") * 50 < len(WIDE.findall(text)):
        return text
    return raw.decode("cp1252", errors="replace")


def _strict(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _halves(sample: bytes) -> str:
    """UTF-16 without a mark: every other byte of its spaces, line ends and figures is zero."""
    if b"\x00" not in sample or len(sample) < 4:
        return ""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if max(even, odd) * 40 < len(sample) or min(even, odd) * 4 > max(even, odd):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def _likeness(sample: bytes, encoding: str) -> float:
    """How much the bytes look like a language of the encoding, 1 at most; the end of a sample may cut a character."""
    text = sample.decode(encoding, errors="replace")
    wide = WIDE.findall(text.rstrip("\ufffd"))
    if not wide:
        return 0.0
    broken = wide.count("\ufffd")
    common = COMMON[encoding]
    good = sum(sign in common for sign in wide)
    kana = KANA.findall(text) if encoding not in {"gb18030", "big5", "euc_kr"} else []
    if (
        encoding == "euc_kr"
    ):  # its syllables are where other encodings have their usual characters: rare ones say nothing
        usual = 0.5 * sum(sign not in common for sign in HANGUL.findall(text))
    else:
        usual = sum(sign not in common and _is_usual(sign, encoding) for sign in wide)
    points = good + 0.8 * len(kana) + 0.4 * usual - len(ODD.findall(text)) - 20 * broken
    return points / len(wide) - 0.01 * OLD.index(encoding)


def _is_usual(sign: str, encoding: str) -> bool:
    if encoding not in USUAL:
        return False
    standard, first, last = USUAL[encoding]
    return first <= sign.encode(standard, errors="ignore")[:1].rjust(1, b"\0")[0] <= last
