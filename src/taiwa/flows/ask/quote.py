"""Quoting documents: which words of a text count, whether a claim restates a sentence, and which sentences answer a question.

A claim is supported if it restates a sentence: it has the words of the sentence, without a gap, from its beginning to the
end of a clause that is at least half of it, and in their order but for one part that may come first; only its subject may come from
a heading. Function words, inflections, and the spelling of numbers may differ. A claim in other words may be true as well, but only
understanding could tell: it is shown as the model's own words (decision 0048).
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import groupby, pairwise, takewhile
from typing import NamedTuple, Protocol, TypeAlias
from unicodedata import name, normalize

from taiwa.flows.ask.ask_result import CITATION_NUMBER, Answer, Claim, make_citation, safe_line
from taiwa.kernel.messages import Message, Passage, Regex, passage_key
from taiwa.kernel.text import fold, sentence_spans, sentences, table_cells, terms, without_thousands

# --- words ------------------------------------------------------------------------------------------------------------

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

GROUPED = re.compile(r"(?<=\d)[\u00a0\u2009\u202f'’](?=\d{3}(?!\d))")
"""A mark between thousands other than a comma, before `fold` makes spaces of it."""

CONTINENTAL = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")
"""A number whose points can only be marks between thousands; those of 12.500 may be not."""

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
    rf"|(?P<number>\d+(?:[.,:/]\d+)*)(?:(?P<scale>[十百千万萬億亿]+(?:\d+[十百千万萬億亿]*)*)|(?:st|nd|rd|th)\b)?|(?P<han_number>[{HAN_NUMBER}]+)"
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


BORDER = r"(?:(?<![0-9A-Za-z_À-ɏ])|(?![0-9A-Za-z_À-ɏ]))"
"""A place that is not within a word of Latin letters."""


def holds(words: str, text: str) -> bool:
    """Whether a text holds words, in their order: numbers by value, words by their stems.

    >>> holds("1200", "It costs 1,200 euros."), holds("20", "It costs 1,200 euros."), holds("Two nights", "for two night")
    (True, False, True)
    >>> holds("a", "Nara, Bahía"), holds("a", "Take plan A."), holds("の", "奈良の宿")
    (False, True, True)
    """
    wanted = [token.text for token in tokens(words)]
    if not wanted:  # signs or function words alone
        plain, given = (" ".join(fold(each).split()) for each in (words, text))
        return bool(plain) and re.search(BORDER + re.escape(plain) + BORDER, given) is not None
    read = [token.text for token in tokens(text)]
    return any(read[at : at + len(wanted)] == wanted for at in range(len(read) - len(wanted) + 1))


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
    folded = CURRENCY.sub(r"\2\1", OBLIGATION.sub("", fold(GROUPED.sub("", text)).translate(SAME)))
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
    if CONTINENTAL.fullmatch(number):
        number = number.replace(".", "").replace(",", ".")
    plain = without_thousands(number)
    if scale and re.fullmatch(r"\d+(?:\.\d+)?", plain):
        parts_of_scale = re.findall(r"([\d.]+)(\D*)", plain + scale)
        whole = sum((Decimal(part) * _han("一" + unit) for part, unit in parts_of_scale), Decimal())
        return f"{whole.normalize():f}"
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


# --- claims -----------------------------------------------------------------------------------------------------------

MIN_WORDS = 3
"""What counts in the shortest claim: `12 days` says nothing by itself, though a list may contain it."""


def supports(claim: str, sentence: str, heading: str = "") -> bool:
    """Whether a claim restates a sentence that stands under a heading.

    >>> supports("Ten days are paid.", "10 days are paid, and more on request."), supports("90 days are paid.", "10 days are paid.")
    (True, False)
    >>> supports("It is open on Mondays.", "Closed on Mondays."), supports("犬は入れます。", "犬は入れません")
    (False, False)
    >>> supports("The late fee is 20 cents per item.", "20 cents per item.", "Late fees"), supports("A card costs 20 cents.", "20 cents.", "Fees")
    (True, False)
    """
    wanted, given = [token.text for token in tokens(claim)], tokens(sentence)
    starts = [*(at for at, token in enumerate(given) if token.begins), len(given)]
    clauses = [
        tuple(token.text for token in given[start:end])
        for start in starts
        for end in range(start + 1, len(given) + 1)
        if _is_statement(given, start, end, next(at for at in starts if at >= end))
    ]
    above = {token.text for token in tokens(heading) if token.text != NEGATION}
    subject = len([*takewhile(lambda word: word in above and not word[0].isdigit(), wanted)])
    return len(wanted) >= MIN_WORDS and any(
        _says(clause, tuple(wanted[at:])) for at in range(subject + 1) for clause in clauses
    )


def _is_statement(given: list[Token], start: int, end: int, stop: int) -> bool:
    """Whether the words up to the end of a clause are most of their sentence, which does not continue with a negation."""
    if end == stop:
        return True
    return given[end - 1].ends and given[end].text != NEGATION and 2 * (end - start) >= stop - start


def _says(clause: tuple[str, ...], claim: tuple[str, ...]) -> bool:
    """Whether a claim has the words of a clause, of which one part may have moved to the front if that swaps no numbers."""
    if len(clause) != len(claim):
        return False
    moved = len(clause) if sum(word[0].isdigit() for word in clause) < 2 else 1
    return any(clause[at:] + clause[:at] == claim for at in range(moved))


# --- sentences of passages -------------------------------------------------------------------------------------------

PASSAGES_READ = 3
"""The passages that the model reads: reading is most of the time on a CPU, and of the questions with an answer in the documents
the first three hold it for all 52 of the handbook."""

NOT_FOUND = "NOT FOUND"
"""What a model writes, by its instructions, if the passages do not answer."""

SPACE_BEFORE_END = re.compile(r"\s+(?=[.!?。！？]\Z)")

MAX_QUOTED = 3

MIN_SHARE = 0.8
"""Share of the best score that a passage needs to be quoted."""

HEADING_TERM = 0.4
"""Factor for a term of the headings: the whole passage is about it."""

HISTORY_TERM = 0.4
"""Factor for a term of the history: it helped to find the passage; within it the question's own terms decide."""

LINKING = 0.6
"""Factor for a part with a link, which refers to another document."""

AFFIRMED = 0.6
"""Factor for a part without a negation, if the question has one: it may say the opposite."""

MAX_PAIR_CHARACTERS = 240

MARK = re.compile(r"(?:[-*+•・]|\d{1,3}[.)]|>)\s+")

RULE = re.compile(r"[\s|:+-]*-{2,}[\s|:+-]*")

HEADING = re.compile(r"#{1,6}\s")

LINKED = re.compile(r"\]\([^)]*\)")

EMPHASIS = re.compile(r"\*+|`+")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a passage with its offsets, its score for the question, its text without markup, and whether it may answer."""

    start: int
    end: int
    score: float
    text: str
    answers: bool = True


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, a list item or a table row; `head` is the header of the table, and `lead` the line that announces the list or table.

    Such a line has itself `below` it what it announces: the end of that, and its text if the line ends with a colon.
    """

    start: int
    end: int
    head: str = ""
    lead: str = ""
    below: tuple[int, str] = (0, "")


class Cited:
    """The claims with a citation, in order, and the numbers of their passages."""

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.spans: list[tuple[Passage, Span]] = []
        self.numbers: dict[str, int] = {}

    @property
    def answers(self) -> bool:
        """Whether the first claim may answer."""
        return any(span.answers for _, span in self.spans[:1])

    def add(self, text: str, passage: Passage, span: Span) -> Claim:
        """Add a claim that words of a passage support."""
        number = self.numbers.setdefault(passage_key(passage), len(self.numbers) + 1)
        self.spans.append((passage, span))
        return self.claims.setdefault(text, Claim(text, (make_citation(passage, span.start, span.end, number),)))

    def add_quotation(self, passage: Passage, span: Span) -> None:
        """Add a sentence of a passage, unless it is cited already."""
        if not any(one is passage and other.start < span.end and span.start < other.end for one, other in self.spans):
            self.add(safe_line(span.text, passage.text), passage, span)


class TermWeights(Protocol):
    """How text becomes terms: an analyzer of documents."""

    def weigh(self, query: str, history: Sequence[Message] = ()) -> Mapping[str, float]:
        """Return the terms of a question and of the turns before it, with their weights."""

    def terms(self, text: str) -> Iterable[str]:
        """Return the terms of a text."""

    def content(self, text: str) -> Sequence[str]:
        """Return the terms that say what a question is about, without words that fit any subject; () if that is unknown."""


HAN_PAIR = re.compile(f"{HAN}{{2}}")
DENSE_PAIR = re.compile(r"[\u3005\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]{2}")


def is_pair(term: str) -> bool:
    """Whether a term is a pair of Chinese, Japanese or Korean characters."""
    return DENSE_PAIR.fullmatch(term) is not None


def has_term(term: str, terms: AbstractSet[str]) -> bool:
    """Whether a term is among others; of a pair of Chinese characters, which mean something alone, both may stand apart.

    >>> has_term("养猫", {"猫", "饲", "养", "饲养"}), has_term("养蛇", {"猫", "饲", "养", "饲养"}), has_term("レー", {"ー", "レ"})
    (True, False, False)
    """
    return term in terms or (HAN_PAIR.fullmatch(term) is not None and all(character in terms for character in term))


def held_share(content: Sequence[str], terms: AbstractSet[str]) -> float:
    """Return the share of the content of a question that is among the terms, 0 to 1; 0 if there is no content.

    A pair of characters that overlaps one that is there, and is not there itself, is probably not a word, and is not counted.

    >>> held_share(("养猫", "猫费", "费用", "押金"), {"养猫", "费用"})
    0.6666666666666666
    """
    held = [has_term(term, terms) for term in content]
    is_part = [
        not held[at]
        and any(
            0 <= near < len(content) and held[near] and _overlaps(content, min(at, near)) for near in (at - 1, at + 1)
        )
        for at in range(len(content))
    ]
    counted = len(content) - sum(is_part)
    return sum(held) / counted if counted else 0.0


def _overlaps(content: Sequence[str], at: int) -> bool:
    one, other = content[at], content[at + 1]
    return is_pair(one) and is_pair(other) and one[1] == other[0]


Weights: TypeAlias = Mapping[str, float]


def extractive(
    query: str, passages: Sequence[Passage], history: Sequence[Message] = (), term_weights: TermWeights | None = None
) -> Answer:
    """Answer with sentences of the passages; each claim is a quotation, and so supported.

    >>> leave = Passage("leave.md", "# Leave\\nEverybody has ten days. Ask your lead first.", 1.0)
    >>> [claim.text for claim in extractive("how many days are there?", [leave]).claims]
    ['Everybody has ten days.']
    """
    found = Cited()
    for passage, span in best_spans(query, passages, history, term_weights or PLAIN):
        found.add(safe_line(span.text, passage.text), passage, span)
    claims = tuple(found.claims.values())
    return Answer(query, claims, tuple(passages), documented=found.answers, source="extractive")


def best_spans(
    query: str, passages: Sequence[Passage], history: Sequence[Message], weights: TermWeights
) -> list[tuple[Passage, Span]]:
    """Return the best parts of the best passages, each text once; a question with a negation is answered by one first."""
    found = spans(query, passages, history, weights)
    if is_negative(query):
        found.sort(key=lambda each: not is_negative(each[1].text))
    best = max((passage.score for passage, _ in found), default=0.0)
    good: dict[str, tuple[Passage, Span]] = {}
    for passage, span in found:
        if passage.score >= MIN_SHARE * best:
            good.setdefault(span.text, (passage, span))
    return [*good.values()][:MAX_QUOTED]


def spans(
    query: str, passages: Sequence[Passage], history: Sequence[Message], term_weights: TermWeights
) -> list[tuple[Passage, Span]]:
    """Return the best part of each passage that has content of the question: one or two sentences, an item or a row.

    If only the headings have, the first sentences are its best part.
    """
    question = term_weights.weigh(query)
    weights = question
    if history:
        weighed = term_weights.weigh(query, history)
        weights = {term: weight if term in question else weight * HISTORY_TERM for term, weight in weighed.items()}
    units = [tuple(_units(passage)) for passage in passages]
    unit_terms = [
        [frozenset(term_weights.terms(passage.text[unit.start : unit.end] + unit.head)) for unit in each]
        for passage, each in zip(passages, units, strict=True)
    ]
    counts = Counter(term for each in unit_terms for terms in each for term in terms if term in weights)
    number = sum(map(len, units))
    rare = {term: weights[term] * math.log1p((number - count + 0.5) / (count + 0.5)) for term, count in counts.items()}
    above = [frozenset(term_weights.terms("\n".join((each.title, *each.heading)))) for each in passages]
    # "and is that allowed?" is about the history
    content = tuple(question) if history else tuple(term_weights.content(query)) or tuple(question)
    held = [
        frozenset(term for term in content if any(has_term(term, terms) for terms in (over, *inside)))
        for over, inside in zip(above, unit_terms, strict=True)
    ]
    own = frozenset[str]().union(*held)
    if not own and not history:  # words that fit any subject do not answer it
        return []
    # If content of the question occurs anywhere, a passage with only terms of the history does not answer it.
    own = frozenset(term for term in own if len(term) > 1) or own  # 給 of 給与 is in 有給休暇 too
    asks_not = is_negative(query)
    found: list[tuple[Passage, Span]] = []
    for at, passage in enumerate(passages):
        if own.isdisjoint(held[at]) and own:
            continue
        inner = {term: weight * (HEADING_TERM if term in above[at] else 1.0) for term, weight in rare.items()}
        telling = {term for term in held[at] if not IS_HAN(term)} or held[at]
        asked = _asked_for(passage.text, units[at], telling, term_weights)
        unit_terms[at] = [
            terms | frozenset(term_weights.terms(unit.lead)) if unit.lead.endswith(COLONS) and unit in asked else terms
            for unit, terms in zip(units[at], unit_terms[at], strict=True)
        ]
        best = _best(passage.text, units[at], unit_terms[at], inner, asks_not=asks_not)
        if best is None and any(has_term(term, above[at]) for term in own):
            best = _first(passage.text, units[at])
        # Words that the passage lacks may ask for a row that is not there: names of columns and announcements are no answer then.
        if best is not None:
            lacks = held_share(content, above[at].union(*unit_terms[at])) < 1
            answers = not lacks or any(each.start < best.end and best.start < each.end for each in asked)
            found.append((passage, replace(_with_rows(passage.text, units[at], best, asked), answers=answers)))
    return found


def _with_rows(text: str, units: Sequence[_Unit], span: Span, asked: AbstractSet[_Unit]) -> Span:
    """Return all rows of its table in the place of one that was not asked for: the table answers, or does not."""
    first = next(at for at, each in enumerate(units) if each.start == span.start)
    if not units[first].head or units[first] in asked:
        return span
    stop = first + 1
    while first and _in_one_table(text, units[first - 1], units[first]):
        first -= 1
    while stop < len(units) and _in_one_table(text, units[stop - 1], units[stop]):
        stop += 1
    end, words = _below(text, units, range(first, stop), shown=True)
    return replace(span, start=units[first].start, end=end, text=words)


def _in_one_table(text: str, one: _Unit, other: _Unit) -> bool:
    """Whether two successive units, of which one is a row, are rows of one table: no heading or header is between them."""
    return (one.head, one.lead) == (other.head, other.lead) and not text[one.end : other.start].strip()


def _asked_for(
    text: str, units: Sequence[_Unit], terms: AbstractSet[str], term_weights: TermWeights
) -> frozenset[_Unit]:
    """Return the units that may answer though the question has words that are nowhere: sentences that announce nothing, and
    rows and items with one of the terms that not all of their table or list has.
    """
    found: set[_Unit] = set()
    for (head, lead), group in groupby(units, key=lambda each: (each.head, each.lead)):
        own = [(unit, frozenset(term_weights.terms(text[unit.start : unit.end]))) for unit in group]
        common = frozenset.intersection(*(each for _, each in own)) if len(own) > 1 else frozenset[str]()
        found.update(
            unit
            for unit, each in own
            if not unit.below[0] and (not (head or lead) or any(has_term(term, each - common) for term in terms))
        )
    return frozenset(found)


def _best(
    text: str, units: Sequence[_Unit], unit_terms: Sequence[frozenset[str]], rare: Weights, *, asks_not: bool
) -> Span | None:
    """Return the best unit or pair of short neighbours; `asks_not`: the question has a negation."""
    best: Span | None = None
    for at, unit in enumerate(units):
        for last in range(at, min(at + 2, len(units))):
            joined = last > at
            if joined and not _neighbours(text, unit, units[last]):
                continue
            score = sum(rare.get(term, 0.0) for term in unit_terms[at] | unit_terms[last])
            score /= 1 + 0.15 * joined + (units[last].end - unit.start) / 1_500
            if LINKED.search(text, unit.start, units[last].end):
                score *= LINKING
            if asks_not and not is_negative(f"{unit.lead} {text[unit.start : units[last].end]}"):
                score *= AFFIRMED
            if score > 0 and (best is None or score > best.score * 1.0001):
                best = _span(text, unit, units[last], score)
    return best


def _first(text: str, units: Sequence[_Unit]) -> Span | None:
    """Return the first unit, with the next one if both are short neighbours."""
    if not units:
        return None
    last = units[1] if len(units) > 1 and _neighbours(text, units[0], units[1]) else units[0]
    return _span(text, units[0], last, 0.0)


def _span(text: str, unit: _Unit, last: _Unit, score: float) -> Span:
    below, words = last.below if last.below[1] else (last.end, "")
    return Span(unit.start, below, score, f"{_plain(text, unit, last.end)} {words}".strip())


def _neighbours(text: str, one: _Unit, other: _Unit) -> bool:
    """Whether two units are short sentences of one paragraph."""
    between = text[one.end : other.start].strip(" ")
    return not one.head and not other.head and "\n" not in between and other.end - one.start <= MAX_PAIR_CHARACTERS


def _plain(text: str, unit: _Unit, end: int) -> str:
    """Return a part that needs no context: a row with the names of its columns, an item with the line above the list."""
    part = text[unit.start : end]
    if not unit.head:
        return " ".join(EMPHASIS.sub("", f"{unit.lead} {part}").split())
    names, cells = _cells(unit.head), _cells(part)
    if len(names) != len(cells):
        return " · ".join(cells)
    pairs = zip(names[1:], cells[1:], strict=True)
    return " · ".join((cells[0], *(f"{name}: {cell}" if name else cell for name, cell in pairs)))


def _cells(row: str) -> list[str]:
    return [EMPHASIS.sub("", cell).strip() for cell in table_cells(row)]


def _units(passage: Passage) -> Iterator[_Unit]:
    """Divide a passage into table rows, list items and sentences, without headings and rules.

    A passage that begins within a table has the names of its columns as its last heading.
    """
    text, at, lead = passage.text, 0, ""
    head = f"| {passage.heading[-1]} |" if passage.heading and " | " in passage.heading[-1] else ""
    lines = text.splitlines(keepends=True)
    found: list[_Unit] = []
    for number, line in enumerate(lines):
        start, at = at, at + len(line)
        plain = line.strip()
        if plain.startswith("|"):
            if RULE.fullmatch(plain):
                continue
            below = lines[number + 1].strip() if number + 1 < len(lines) else ""
            if below.startswith("|") and RULE.fullmatch(below):
                head = plain
                lead = (
                    lead
                    if lead.endswith(COLONS) or any(len(word) > 1 for word in word_set(head) & word_set(lead))
                    else ""
                )
                continue
            begin = start + line.index("|")
            found.append(_Unit(begin, begin + len(plain), head or "|", lead))
            continue
        head = ""
        if HEADING.match(plain):
            lead = ""
        elif plain and not RULE.fullmatch(plain):
            units = [*sentence_units(text, start + len(line) - len(line.lstrip()), start + len(line.rstrip()))]
            if MARK.match(plain):
                lead = lead if lead.endswith(COLONS) else ""
                found += (replace(each, lead=lead) for each in units)
            else:
                found += units
                lead = text[units[-1].start : units[-1].end] if units else ""
    stops = [*range(1, len(found) + 1)]  # where the units with the lead of each end
    for number in reversed(range(len(found) - 1)):
        if found[number].lead == found[number + 1].lead:
            stops[number] = stops[number + 1]
    for number, unit in enumerate(found, 1):
        words = text[unit.start : unit.end]
        if number < len(found) and found[number].lead == words:
            announced = range(number, stops[number])
            yield replace(unit, below=_below(text, found, announced, shown=words.endswith(COLONS)))
        else:
            yield unit


COLONS = (":", "：")


def _below(text: str, units: Sequence[_Unit], announced: range, *, shown: bool) -> tuple[int, str]:
    words = ""
    for unit in (units[at] for at in announced) if shown else ():
        more = f"{words}; {_plain(text, replace(unit, lead=''), unit.end)}".removeprefix("; ")
        if len(more) > MAX_QUOTATION_CHARS:
            return unit.start, f"{words} …"
        words = more
    return units[announced[-1]].end, words


def place_of(words: str, passages: Sequence[Passage]) -> tuple[Passage, int, int] | None:
    """Return the first sentence, list item or table row of passages that holds words, by its offsets; None if none does."""
    for passage in passages:
        for unit in _units(passage):
            if holds(words, passage.text[unit.start : unit.end]):
                return passage, unit.start, unit.end
    return None


def restated(statement: str, passage: Passage) -> Span | None:
    """Return the sentence, or the pair of sentences, of a passage that a statement restates."""
    text, heading = passage.text, "\n".join((passage.title, *passage.heading))
    units = tuple(_units(passage))
    for last in (0, 1):
        for unit, end in zip(units, units[last:], strict=False):
            plain = _plain(text, unit if is_negative(unit.lead) else replace(unit, lead=""), end.end)
            if (unit is end or _neighbours(text, unit, end)) and supports(statement, plain, heading):
                return Span(unit.start, end.end, 1.0, plain)
    return None


def sentence_units(text: str, start: int, end: int) -> Iterator[_Unit]:
    """Yield the sentences of a line, without its bullet or number."""
    mark = MARK.match(text, start, end)
    for begin, stop in sentence_spans(text, mark.end() if mark else start, end):
        yield _Unit(begin, stop)


class PlainTerms:
    """Plain words, for a retriever without an analyzer."""

    def weigh(self, query: str, history: Sequence[Message] = ()) -> dict[str, float]:
        """Weigh earlier turns of the user half."""
        weights = {term: 0.5 for message in history if message.role == "user" for term in terms(message.text)}
        return weights | dict.fromkeys(terms(query), 1.0)

    def terms(self, text: str) -> Iterable[str]:
        """Return the words of a text."""
        return terms(text)

    def content(self, text: str) -> tuple[str, ...]:  # noqa: ARG002  (the signature of `TermWeights`)
        """Return nothing: any word may say what a question is about."""
        return ()


PLAIN = PlainTerms()


MAX_QUOTATION_CHARS = 600


def quotable(passages: Sequence[Passage]) -> dict[str, tuple[Passage, Span]]:
    """Return the sentences, items and rows of the passages that a model reads, as they are quoted, with their places.

    >>> [*quotable([Passage("leave.md", "# Leave\\nEverybody has **ten** days. Ask your lead.")])]
    ['Everybody has ten days.', 'Ask your lead.']
    """
    found: dict[str, tuple[Passage, Span]] = {}
    for passage in passages[:PASSAGES_READ]:
        for unit in _units(passage):
            text = safe_line(_plain(passage.text, unit, unit.end), passage.text)
            if any(map(str.isalnum, text)) and len(text) <= MAX_QUOTATION_CHARS:
                found.setdefault(text, (passage, Span(unit.start, unit.end, 1.0, text)))
    return found


def quotation_mask(quotations: Iterable[str]) -> Regex:
    """Return the constraint of an answer of one to three of these sentences, each on a line, or of none."""
    one = "|".join(re.escape(each) for each in quotations)
    return Regex(rf"{NOT_FOUND}|(?:{one})(?:\n(?:{one})){{0,{MAX_QUOTED - 1}}}")


def read_quotations(query: str, text: str, passages: Sequence[Passage]) -> Answer:
    """Return the answer of a model that was asked for quotations; anything else in it is dropped.

    >>> read_quotations("", "Ask your lead. Ten days. Go.", [Passage("a.md", "Ten days. Ask your lead.")]).claims[1].text
    'Ten days.'
    """
    known, found = quotable(passages), Cited()
    alike = {tuple(token.text for token in tokens(each)): each for each in reversed(known)}

    def quotation(words: str) -> str | None:
        return words if words in known else alike.get(tuple(token.text for token in tokens(words)))

    for line in text.splitlines():
        plain = SPACE_BEFORE_END.sub(
            "", " ".join(CITATION_NUMBER.sub("", MARK.sub("", line.strip())).split()).strip('"“”「」')
        )
        parts = [plain] if quotation(plain) else sentences(plain)
        for quoted in filter(None, map(quotation, parts)):
            if len(found.claims) < MAX_QUOTED:
                passage, span = known[quoted]
                found.add(quoted, passage, span)
    claims = tuple(found.claims.values())
    return Answer(query, claims, tuple(passages), documented=bool(claims), doubted=not claims)
