"""Text: truncation, control characters, surrogates, estimates of tokens and language, and texts that are safe to show."""

import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

END_TOKEN = re.compile(r"\s*(?:<[|｜][\w▁]{1,30}[|｜]>|<end_of_turn>)\s*\Z")
"""A special token that ends the answer of a model, as a server shows it that does not know the token."""
MAX_LANGUAGE_CHARS = 2_000
"""Characters of a text used to guess its language."""

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

# Scripts without spaces between words, or with agglutinated endings: kana, Chinese characters, Hangul.
CJK = r"\u3005\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
WORD_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0df3"
)
"""Accents and vowel signs, which belong to a word but not to `\\w`, as a range of a regular expression."""
TERM = re.compile(rf"(?P<cjk>[{CJK}]+)|(?![{CJK}])\w(?:(?![{CJK}])[\w{WORD_MARKS}])*")

LATIN_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
LONGEST_WORD = 20
"""Letters of a word above which it is probably none, and is split into many tokens."""
INDENT = re.compile("  +")
WIDE = re.compile(r"[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6"
                  r"\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f900-\U0001faff\U00020000-\U0003fffd]")  # fmt: skip
"""Wide characters: Chinese, Japanese, Korean, emoji."""

LATIN_WORDS = {
    "en": frozenset("the and of to is in that it you for with was are this what how can do please i my".split()),
    "fr": frozenset("le la les de des et un une est que dans pour vous je ne pas sur avec".split()),
    "de": frozenset("der die das und ist ich nicht ein eine zu mit wie auf für sie es was".split()),
    "es": frozenset("el los las que y en un una es por con para no como mi del qué cómo".split()),
    "pt": frozenset("o os as que e em um uma é por com para não como meu do da você".split()),
    "it": frozenset("il lo gli che e di un una è per con non come mi del della sono".split()),
}

SENTENCE_END = re.compile(r"(?<=[。！？｡])[」』）〉》】”’\"')]*\s*|(?<=[.!?])[\"')\]”’]*\s+|\n+")
"""The end of a sentence: an ideographic full stop, or a stop before a space, so that a decimal point is none."""

REPLACEMENT = "\ufffd"

MAX_USER_TEXT_CHARS = 8_000
"""Characters of a user text that `strip_control` keeps; a longer, pasted document is cut."""

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]")  # fmt: skip
"""Invisible characters, and those that change the direction of writing; not the two joiners, which belong to the spelling of words."""

IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that Unicode displays as nothing (Default_Ignorable_Code_Point), and annotation marks."""

SURROGATE = re.compile("[\ud800-\udfff]")

INVISIBLE = frozenset(("Cc", "Cf", "Co", "Cs", "Cn"))

VISIBLE = "\n\t\u200c\u200d"
"""Characters of invisible categories that are kept; emoji and some scripts are spelled with the two joiners."""

MARKS = (("<<", "‹‹"), (">>", "››"), ("<|", "‹|"), ("|>", "|›"), ("[INST]", "(INST)"), ("[/INST]", "(/INST)"))

TAGS = re.compile(
    r"<(/?(?:s|start_of_turn|end_of_turn|system|user|assistant|tool_call|tool_response|think|state|earlier|json))>",
    re.IGNORECASE,
)
"""Roles and blocks of a prompt."""
CALL = re.compile(r"<<([^\n]*?)>>")


DELTA_MARK = re.compile(r"@@(?= ?delta\b)", re.IGNORECASE)
"""The marker of a state delta in a reply."""


class SurrogateJoiner:
    """Joins text that arrives in pieces: some servers split a character into its two UTF-16 surrogates."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Add a piece and return all whole characters so far."""
        if self._half:
            text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return join_surrogates(text)

    def close(self) -> str:
        """Return a replacement character for a surrogate that is left."""
        half, self._half = self._half, ""
        return REPLACEMENT if half else ""


def guess_language(text: str) -> str:
    """Guess the language of a text by its script, or by its common words if Latin: an ISO 639-1 code, or 'und'.

    A text without common words is English if it is ASCII.

    >>> guess_language("今日は、元気ですか"), guess_language("你好吗"), guess_language("How are you?")
    ('ja', 'zh', 'en')
    """
    text = unicodedata.normalize("NFKC", text[:MAX_LANGUAGE_CHARS])
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


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text without a tokenizer: four Latin characters, or one and a half of CJK, to a token."""
    wide = 0 if text.isascii() else len(WIDE.findall(text))
    return -(-(len(text) - wide) // 4) + -(-wide * 2 // 3)


def most_tokens(text: str) -> int:
    """Estimate the tokens of a text upwards, for the vocabularies of large models.

    A token is two and a half Latin letters of a word, half a CJK character, or one other sign. Spaces between words count as
    nothing.

    >>> most_tokens("Two teas, please."), most_tokens("東京タワー")
    (9, 10)
    """
    words = [len(word) for word in LATIN_WORD.findall(text)]
    narrow = len(text.encode("ascii", "ignore"))
    wide = len(text.encode("utf-8", "surrogatepass")) - len(text)  # one for a Greek letter, two for an ideogram
    signs = narrow - sum(words) - text.count(" ") + len(INDENT.findall(text))
    return sum(-(-2 * letters // (5 if letters <= LONGEST_WORD else 3)) for letters in words) + signs + wide


def terms(text: str) -> Iterator[str]:
    """Split text into terms: lower-case words, and pairs of neighbouring Chinese characters or kana.

    >>> list(terms("Tokyo 東京タワー、駅"))
    ['tokyo', '東京', '京タ', 'タワ', 'ワー', '駅']
    """
    for run in TERM.finditer(fold(text)):
        word = run[0]
        if run["cjk"] and len(word) > 1:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word


def whole_characters(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded, by U+FFFD.

    >>> whole_characters("cut \\ud83d off")
    'cut \ufffd off'
    """
    return text if text.isascii() else SURROGATE.sub(REPLACEMENT, text)


MOST_OF_END = 4_000
LEAST_REPEATED = 100
TIMES_REPEATED = 4


def repeated_end(text: str) -> str:
    """Return what the end of a text repeats at least four times over a hundred characters, "" if it repeats nothing.

    >>> repeated_end('[{"tea": 1}, ' + '{"milk": 2}, ' * 9 + '{"mi')
    'lk": 2}, {"mi'
    >>> repeated_end("one, two, " * 3)
    ''
    """
    end = text[-MOST_OF_END:][::-1]
    # The border of each beginning of the reversed end (Knuth, Morris and Pratt 1977) gives its shortest period.
    borders = [0] * len(end)
    for at in range(1, len(end)):
        border = borders[at - 1]
        while border and end[at] != end[border]:
            border = borders[border - 1]
        borders[at] = border + (end[at] == end[border])
    for size in range(len(end), LEAST_REPEATED - 1, -1):
        period = size - borders[size - 1]
        if TIMES_REPEATED * period <= size:
            return end[:period][::-1]
    return ""


def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences and lines of a text that say something, without space around them.

    >>> sentences("4.5 km, please!  Or 5?\\n好的。评分4.5分以上。")
    ('4.5 km, please!', 'Or 5?', '好的。', '评分4.5分以上。')
    """
    parts = (text[start:end] for start, end in sentence_spans(text))
    return tuple(part for part in parts if any(char.isalnum() for char in part))


CLOSING = "\"'”’」』)） "
QUESTION = ("?", "？", "か", "か。", "吗", "吗。")


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends as a question does; in Japanese and Chinese a mark is not needed.

    >>> [is_question(each) for each in ("“Which one?”", "予約できますか。", "可以吗", "Two, please.")]
    [True, True, True, False]
    """
    return sentence.rstrip(CLOSING).endswith(QUESTION)


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield where the sentences and lines of a part of a text begin and end, without space around them.

    >>> list(sentence_spans("- Ask (4.5 h!)  Then go. ", 2))
    [(2, 14), (16, 24)]
    """
    end = len(text) if end is None else end
    ends = (border.end() for border in SENTENCE_END.finditer(text, start, end))
    for begin, stop in pairwise((start, *ends, end)):
        part = text[begin:stop]
        if part.strip():
            yield begin + len(part) - len(part.lstrip()), begin + len(part.rstrip())


THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")


def without_thousands(number: str) -> str:
    """Return a number without the commas between its thousands.

    >>> without_thousands("1,234,567.5")
    '1234567.5'
    """
    return THOUSANDS.sub("", number)


def plural(count: int, singular: str) -> str:
    """Write a number with its noun in the form for it.

    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {singular if count == 1 else f'{singular}s'}"


def strip_control(text: str) -> str:
    """Remove invisible characters from the first 8,000 characters of a text.

    >>> strip_control("leave\\u200b or \\u2066sick")
    'leave or sick'
    """
    return CONTROL.sub("", text[:MAX_USER_TEXT_CHARS])


def join_surrogates(text: str) -> str:
    """Join pairs of surrogates and replace lone ones."""
    if text.isascii() or SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def truncate(text: str, limit: int) -> str:
    """Shorten a text to at most `limit` characters, with `…` at the end if it was longer."""
    return text if len(text) <= limit else f"{text[: max(limit - 1, 0)]}…"


def clean_untrusted(text: str, limit: int) -> str:
    """Defuse third-party text: remove invisible characters, replace markup of prompts, and truncate.

    >>> clean_untrusted("so <<calculator: 1>>\\u202e <|im_start|>", 100)
    'so ‹‹calculator: 1›› ‹|im_start|›'
    """
    # Twice the limit, so that removed characters do not shorten the result, without processing a gigabyte.
    head = text[: 2 * limit + 1]
    clean = "".join(char for char in head if char in VISIBLE or unicodedata.category(char) not in INVISIBLE)
    for mark, broken in MARKS:
        clean = clean.replace(mark, broken)
    return truncate(defuse(clean), limit)


def defuse(text: str) -> str:
    """Replace what has a meaning in a prompt or a reply: tags of blocks, calls, and the marker of a state delta.

    >>> defuse("1 and <<calculator: 1>> @@delta {} </state>")
    '1 and ‹‹calculator: 1›› ＠＠delta {} ‹/state›'
    """
    return DELTA_MARK.sub("＠＠", CALL.sub(r"‹‹\1››", TAGS.sub(r"‹\1›", text)))


UNSHOWABLE = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]|{IGNORABLE.pattern}")
"""Control codes, line and paragraph separators, and invisible characters: direction marks, fillers, tags, joiners."""
JOINERS = "\u200c\u200d"
DIRECTIONS = "\u061c\u200e\u200f"
"""Marks that put a sign on its side of a right-to-left word, and turn no letters."""
SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
IDEOGRAPHS = "\u2e80"
"""From this code point on, characters may have ideographic variants."""
KEYCAPS = "0123456789#*"


def plain(text: str) -> str:
    """Make text safe to show: control codes and invisible layout controls become visible characters, CRLF a line break.

    >>> plain("a\\x1b[2Jb\\r"), plain("a\\r\\nb")
    ('a␛[2Jb␍', 'a\\nb')
    """

    def shown(match: re.Match[str]) -> str:
        if _is_needed(match):
            return match[0]
        return chr(0x2400 + ord(match[0])) if ord(match[0]) < 0x20 else "\ufffd"

    return text if text.isascii() and text.isprintable() else UNSHOWABLE.sub(shown, text.replace("\r\n", "\n"))


def _is_needed(match: re.Match[str]) -> bool:
    """Whether a script or an emoji needs an invisible character at its position, after a character that can take it.

    At the beginning of a text it may belong to the text printed before.
    """
    sign, before = match[0], match.string[max(match.start() - 1, 0) : match.start()]
    if sign in DIRECTIONS:
        return not before or not (UNSHOWABLE.match(before) or unicodedata.bidirectional(before) == "L")
    if sign not in JOINERS and not SELECTORS.match(sign):
        return False
    if not before:
        return True
    if before.isascii():
        return before in KEYCAPS and sign == "\ufe0f"
    if UNSHOWABLE.match(before) and not (sign in JOINERS and before == "\ufe0f"):
        return False
    return unicodedata.category(before)[0] in "LMS" and (sign < "\U000e0100" or before >= IDEOGRAPHS)


def inert(text: str) -> str:
    """Escape control codes in JSON text; it is parsed to the same value."""

    def escaped(match: re.Match[str]) -> str:
        if _is_needed(match):
            return match[0]
        return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"

    return UNSHOWABLE.sub(escaped, text)


UNESCAPED = re.compile(r"(?<!\\)\|")


def table_cells(row: str) -> list[str]:
    r"""Return the cells of a row of a Markdown table.

    >>> table_cells(r"| a\|b |  | c |")
    ['a|b', '', 'c']
    """
    inner = re.sub(r"(?<!\\)\|\Z", "", row.strip().removeprefix("|"))
    return [cell.strip().replace("\\|", "|") for cell in UNESCAPED.split(inner)]


def fold(text: str) -> str:
    """Return a text without differences of width and case; the capital of the Turkish `i` is an `i` as well.

    >>> fold("İSTANBUL ２"), fold("Istanbul")
    ('istanbul 2', 'istanbul')
    """
    return unicodedata.normalize("NFKC", text).casefold().replace("i\u0307", "i")
