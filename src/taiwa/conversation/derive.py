"""Fields that the program computes: the model is never asked to count."""

import unicodedata
from collections.abc import Callable

from taiwa.kernel.records import Json, value

__all__ = ["DERIVED", "Derived", "Moment", "language_of", "tokens_of"]


@value
class Moment:
    """What a derived field may look at: the number of this turn, its texts and the value so far."""

    turn: int
    user: str
    answer: str
    before: Json


@value
class Derived:
    """A computed field: its type, its first value, its next value."""

    type: str
    start: Json
    next: Callable[[Moment], Json]
    about: str


MOST_CHARACTERS = 2_000
"""How much of a text is looked at to tell its language."""
SCRIPTS = {"HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CJK": "zh", "CYRILLIC": "ru", "ARABIC": "ar",
           "HEBREW": "he", "GREEK": "el", "THAI": "th", "DEVANAGARI": "hi", "LATIN": "latin"}  # fmt: skip
LATIN_WORDS = {
    "en": frozenset("the and of to is in that it you for with was are this what how can do please i my".split()),
    "fr": frozenset("le la les de des et un une est que dans pour vous je ne pas sur avec".split()),
    "de": frozenset("der die das und ist ich nicht ein eine zu mit wie auf für sie es was".split()),
    "es": frozenset("el los las que y en un una es por con para no como mi del qué cómo".split()),
    "pt": frozenset("o os as que e em um uma é por com para não como meu do da você".split()),
    "it": frozenset("il lo gli che e di un una è per con non come mi del della sono".split()),
}


def language_of(text: str) -> str:
    """Name the language of a text by its script, Latin ones by their common words: an ISO 639-1 code, or 'und'.

    Words that tell nothing are taken for English, unless they have letters that English has not.

    >>> language_of("今日は、元気ですか"), language_of("你好吗"), language_of("How are you?")
    ('ja', 'zh', 'en')
    """
    counts: dict[str, int] = {}
    text = unicodedata.normalize("NFKC", text[:MOST_CHARACTERS])
    for letter in text:
        if letter.isalpha():
            script = SCRIPTS.get(unicodedata.name(letter, "").split(" ")[0], "")
            counts[script] = counts.get(script, 0) + 1
    if not counts:
        return "und"
    if counts.get("ja", 0) * 10 >= sum(counts.values()):
        return "ja"
    script = max(counts, key=lambda name: counts[name])
    if script != "latin":
        return script or "und"
    words = {word.strip(".,;:!?\"'()¿¡").casefold() for word in text.split()}
    known = {name: len(words & common) for name, common in LATIN_WORDS.items()}
    if not any(known.values()):
        return "en" if text.isascii() else "und"
    return max(known, key=lambda name: (known[name], name == "en"))


def tokens_of(text: str) -> int:
    """Estimate tokens without a tokenizer: about four Latin characters, or one and a half of CJK, to a token."""
    wide = sum(1 for letter in text if unicodedata.east_asian_width(letter) in "WF")
    return -(-(len(text) - wide) // 4) + -(-wide * 2 // 3)


def _whole(before: Json) -> int:
    return before if isinstance(before, int) else 0


DERIVED: dict[str, Derived] = {
    "turn_count": Derived("int", 0, lambda moment: moment.turn, "how many turns there were"),
    "language": Derived("str", "und", lambda moment: language_of(moment.user), "the language of the last utterance"),
    "tokens": Derived(
        "int",
        0,
        lambda moment: _whole(moment.before) + tokens_of(moment.user) + tokens_of(moment.answer),
        "about how many tokens were said",
    ),
    "characters": Derived(
        "int",
        0,
        lambda moment: _whole(moment.before) + len(moment.user) + len(moment.answer),
        "how many characters were said",
    ),
}
