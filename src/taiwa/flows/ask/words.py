"""The words and numbers that count of a text: without function words and inflections, numbers by their value, negations marked."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import name, normalize

from taiwa.kernel.text import fold

SAME = str.maketrans({
    **dict.fromkeys("‘’‚‛′`´", "'"), **dict.fromkeys("“”„‟″«»", '"'), **dict.fromkeys("‐‑‒–—―−", "-"), "…": "...",
})  # fmt: skip

NEGATION = "¬"

HAN_DIGITS = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}

HAN_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}

HAN_NUMBER = "".join((*HAN_DIGITS, *HAN_UNITS))

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"

ENGLISH = {word: number for number, word in enumerate(ONES.split())} | {
    word: 10 * ten for ten, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}

FUNCTION_WORDS = frozenset(
    """a an the is are was were be been am it its there this that these those of and or to in on at for as with by has have had do does
    did you your we our us i my he his she her they their who which""".split()
)
"""Words that a claim may add or leave out."""

FUNCTION_CHARACTERS = frozenset("的了是也")

LIGHT_KANA = frozenset(
    "です でし ます まし ませ ない なか なく ある あり いる いま いて おり なり なる する しま して した され でき くだ こと もの ため よう とき".split()
)
"""Beginnings of auxiliaries and formal nouns, which a claim may add or leave out."""

CURRENCY = re.compile(r"([$€£¥₩₹])\s?(\d[\d.,]*\d|\d)")

SPACED = re.compile(r"[\s\W]")

INFLECTION = re.compile(r"(?<=\w{3})(?:'s|'|ies|ied|ys|es|ed|ing|s|e|y)\Z")

OBLIGATION = re.compile(
    r"な(?:ければ|いと|くては|きゃ)(?:な(?:りません|らな[いか])|いけ(?:ません|な[いか]))|かもしれ(?:ません|ない)"
)

KANA_NEGATION = re.compile("ません|ない|なかっ|なく|ずに|[わらかさたれえけせ]ず(?![つかれに])|ぬ")

HAN = r"[\u3005\u3400-\u9fff\uf900-\ufaff]"
IS_HAN = re.compile(HAN).fullmatch

HAN_NEGATION = re.compile("[不没沒無无未非勿别]")

QUESTION_OF_NEGATION = re.compile(
    r"(?:^|(?<=[.!?;,] ))\w+n['’]t\b|ま(?:せん|せんでした)か|ない(?:です|でしょう)?か|(.)[不没]\1|有没有", re.IGNORECASE
)
"""A negation that only asks."""

KANA_PART = re.compile("(から|まで|より|だけ|のみ|しか)|でき|[はがをにのもでとへや]")
"""Limits, which count, and particles, which separate words."""

TOKEN = re.compile(
    rf"(?P<stop>[.;!?。；！？\n]+(?!\d))|(?P<pause>[,:、，：()·|]+(?!\d)|—)"
    rf"|(?P<negation>\b(?:not|no|never|none|nobody|nothing|neither|nor|without|nicht|kein\w*|nie|ohne|ne|pas|jamais|sans)\b|n't\b"
    r"|(?<=can)not\b|(?<![\w)\]])-(?=\d))"
    rf"|(?P<number>\d+(?:[.,:/]\d+)*)(?:(?P<scale>[十百千万萬億亿]+)|(?:st|nd|rd|th)\b)?|(?P<han_number>[{HAN_NUMBER}]+)"
    r"|(?P<english>\b(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[ -](?:one|two|three|four|five|six|seven|eight|nine)\b)"
    r"|(?P<kana>[\u3041-\u309f]+)|(?P<katakana>[\u30a1-\u30ff]+)"
    rf"|(?P<han>{HAN})"
    r"|(?P<sign>[$€£¥₩₹¢%‰°])|(?P<word>(?:(?!can(?:not|'t)|\w+n't)[^\W\d_]+|[^\W\d_]+?(?=n't|not\b))(?:'s\b|'\b)?)"
)


class Token(NamedTuple):
    """A word, number or character that counts: whether it begins a sentence, and whether it ends a clause."""

    text: str
    begins: bool
    ends: bool = False


def holds(words: str, text: str) -> bool:
    """Whether a text holds words, in their order: numbers by value, words by their stems.

    >>> holds("1200", "It costs 1,200 euros."), holds("20", "It costs 1,200 euros."), holds("Two nights", "for two night")
    (True, False, True)
    """
    wanted = [token.text for token in tokens(words)]
    if not wanted:  # signs or function words alone
        plain = _plain(words)
        return bool(plain) and plain in _plain(text)
    given = [token.text for token in tokens(text)]
    return any(given[at : at + len(wanted)] == wanted for at in range(len(given) - len(wanted) + 1))


def word_set(text: str) -> frozenset[str]:
    """Return the words and numbers that count of a text; of a clause in Chinese characters also each pair of neighbours.

    >>> sorted(word_set("The two nights, in a quiet room")), sorted(word_set("高档的酒店，2人"))
    (['2', 'night', 'quiet', 'room'], ['2', '人', '店', '档', '档酒', '酒', '酒店', '高', '高档'])
    """
    found = [token for token in tokens(text) if token.text != NEGATION]
    near = (
        one.text + other.text
        for one, other in pairwise(found)
        if not one.ends and IS_HAN(one.text) and IS_HAN(other.text)
    )
    return frozenset((*(token.text for token in found), *near))


@lru_cache(512)  # a question is compared with each sentence of its passages, and these with it again
def is_negative(text: str) -> bool:
    """Whether a text has a negation that does not only ask.

    >>> is_negative("Where are dogs not allowed?"), is_negative("Aren't dogs allowed?"), is_negative("犬は入れません。")
    (True, False, True)
    """
    plain = QUESTION_OF_NEGATION.sub(" ", OBLIGATION.sub("", normalize("NFKC", text)))
    return NEGATION in (token.text for token in tokens(plain)) or HAN_NEGATION.search(plain) is not None


def _plain(text: str) -> str:
    return " ".join(fold(text).split())


def tokens(text: str) -> list[Token]:
    """Return what counts of a text, in its order.

    >>> [token.text for token in tokens("The £5,000 aren't paid for twenty-five days, 第三十回まで")]
    ['5000', 'pound', '¬', 'paid', '25', 'day', '第', '30', '回', 'まで']
    """
    found: list[Token] = []
    begins = True
    for kind, part in _parts(text):
        if kind in ("stop", "pause"):
            begins = begins or kind == "stop"
            if found:
                found[-1] = found[-1]._replace(ends=True)
            continue
        found.append(Token(part, begins))
        begins = False
    if found:
        found[-1] = found[-1]._replace(ends=True)
    return found


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the normal form of each word, number and sign, and each boundary of a clause."""
    folded = CURRENCY.sub(r"\2\1", OBLIGATION.sub("", fold(text).translate(SAME)))
    for match in TOKEN.finditer(folded):
        kind, part = str(match.lastgroup), match[0]
        if number := match["number"]:
            yield "number", _decimal(number, match["scale"] or "")
        elif kind == "han_number":
            yield "number", str(_han(part))
        elif kind == "english" or part in ENGLISH:
            yield "number", str(sum(ENGLISH[word] for word in re.split("[ -]", part)))
        elif kind == "kana":
            follows = bool(match.start()) and not SPACED.match(folded, match.start() - 1)
            yield from (("kana", each) for each in _kana(part, follows=follows))
        elif kind == "sign":
            yield "word", name(part).lower().removesuffix(" sign")
        elif kind == "negation":
            yield kind, NEGATION
        elif part not in FUNCTION_WORDS and part not in FUNCTION_CHARACTERS:
            yield kind, INFLECTION.sub("", part) if kind == "word" else part


def _kana(run: str, *, follows: bool) -> Iterator[str]:
    """Yield the beginnings of the words of a run of hiragana, its negations and limits; if it `follows` a word, it begins with an inflection."""
    for part in filter(None, KANA_PART.split(f"ー{run}" if follows else run)):
        if KANA_PART.fullmatch(part) or (len(part) > 1 and part[:2] not in LIGHT_KANA and not part.startswith("ー")):
            yield part[:2]
        yield from (NEGATION for _ in KANA_NEGATION.finditer(part))


def _decimal(number: str, scale: str) -> str:
    plain = re.sub(r",(?=\d{3}(?!\d))", "", number)
    if scale and re.fullmatch(r"\d+(?:\.\d+)?", plain):
        return f"{Decimal(plain) * _han('一' + scale):f}".removesuffix(".0")
    parts = re.split("([:/,])", re.sub(r"(\.\d*?)0+\Z", r"\1", plain).rstrip("."))
    return "".join(part.lstrip("0") or "0" if part.isdigit() else part for part in parts)


def _han(text: str) -> int:
    if not set(text) & HAN_UNITS.keys():
        return int("".join(str(HAN_DIGITS[digit]) for digit in text))
    total = section = digit = 0
    for each in text:
        unit = HAN_UNITS.get(each)
        if unit is None:
            digit = 10 * digit + HAN_DIGITS[each]
        elif unit < 10_000:
            section, digit = section + (digit or 1) * unit, 0
        else:
            total, section, digit = total + (section + digit or 1) * unit, 0, 0
    return total + section + digit
