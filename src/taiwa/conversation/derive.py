"""Fields that the program computes: the model is never asked to count."""

import re
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
SCRIPTS = {
    "ja": re.compile(r"[\u3041-\u30fa\u30fd-\u30ff\u31f0-\u31ff]"),
    "zh": re.compile(r"[\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]"),
    "ko": re.compile(r"[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]"),
    "ru": re.compile(r"[\u0400-\u052f]"),
    "ar": re.compile(r"[\u0620-\u064a\u0671-\u06d3]"),
    "he": re.compile(r"[\u05d0-\u05ea]"),
    "el": re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]"),
    "th": re.compile(r"[\u0e01-\u0e4e]"),
    "hi": re.compile(r"[\u0900-\u0963]"),
    "latin": re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]"),
}
LETTER = re.compile(r"[^\W\d_]")
WIDE = re.compile(r"[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6"
                  r"\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f900-\U0001faff\U00020000-\U0003fffd]")  # fmt: skip
"""Characters that fill two cells: Chinese, Japanese, Korean, emoji."""
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
    text = unicodedata.normalize("NFKC", text[:MOST_CHARACTERS])
    letters = len(LETTER.findall(text))
    if not letters:
        return "und"
    if not text.isascii():
        counts = {name: len(script.findall(text)) for name, script in SCRIPTS.items()}
        script = "ja" if counts["ja"] * 10 >= letters else max(counts, key=lambda name: counts[name])
        if script != "latin":
            return script if script == "ja" or counts[script] * 2 >= letters else "und"
    words = {word.strip(".,;:!?\"'()¿¡").casefold() for word in text.split()}
    known = {name: len(words & common) for name, common in LATIN_WORDS.items()}
    if not any(known.values()):
        return "en" if text.isascii() else "und"
    return max(known, key=lambda name: (known[name], name == "en"))


def tokens_of(text: str) -> int:
    """Estimate tokens without a tokenizer: about four Latin characters, or one and a half of CJK, to a token."""
    wide = 0 if text.isascii() else len(WIDE.findall(text))
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
