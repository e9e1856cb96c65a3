"""Answers as claims with citations: written by a model and compared with the passages, or sentences of the passages alone.

What is shown as supported are the words of the documents: a sentence of a model counts only if it restates a sentence of a
passage (`check_citations.supports`). Any other one is marked as the model's own words (`check_answer`).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

from taiwa.flows.ask.check_citations import supports
from taiwa.flows.ask.prompts import load_prompts
from taiwa.flows.ask.read_dialogue import REPLY_LANGUAGES, turns
from taiwa.flows.ask.safe_text import CITATION_NUMBER, safe_line
from taiwa.flows.ask.words import HAN, holds, is_negative, tokens
from taiwa.kernel.effects import Complete, HideOutput, Program, perform
from taiwa.kernel.errors import RefusalError
from taiwa.kernel.messages import Message, Passage, Regex, Request, Response, Sampling, passage_key, system, user
from taiwa.kernel.serialization import Json
from taiwa.kernel.serialization import value as value_class
from taiwa.kernel.text import defuse, sentence_spans, strip_control, table_cells, terms


@value_class(tag="citation")
class Citation:
    """The words of a source from the character offset `start` to `end`.

    `number` refers to the passage within the answer; `passage` is its permanent key.
    """

    number: int
    passage: str
    source: str
    words: str
    start: int
    end: int
    heading: tuple[str, ...] = ()
    page: int = 0


def make_citation(passage: Passage, start: int, end: int, number: int) -> Citation:
    """Cite a part of a passage; the offsets `start` and `end` are within it."""
    begin = passage.start + start
    return Citation(
        number, passage_key(passage), passage.source, passage.text[start:end], begin, passage.start + end,
        passage.heading, passage.page,
    )  # fmt: skip


@value_class(tag="claim")
class Claim:
    """One statement of an answer; without citations it is the model's own words."""

    text: str
    citations: tuple[Citation, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether words of a passage support it."""
        return bool(self.citations)

    @property
    def numbers(self) -> str:
        """The numbers of its citations, each once: `[1][3]`."""
        return "".join(f"[{number}]" for number in dict.fromkeys(each.number for each in self.citations))


AnswerSource: TypeAlias = Literal["generated", "extractive"]


@value_class(tag="answer")
class Answer:
    """An answer from documents.

    `documented` is false if they do not answer the question. `source`: a model wrote the answer (`generated`), or it is sentences of
    the passages alone (`extractive`). `doubted`: the model that read the passages found no answer in them.
    """

    query: str
    claims: tuple[Claim, ...] = ()
    passages: tuple[Passage, ...] = ()
    documented: bool = True
    source: AnswerSource = "generated"
    doubted: bool = False

    @property
    def sources(self) -> tuple[Citation, ...]:
        """The first citation of each cited passage, by number."""
        first = {each.number: each for each in reversed(self.citations)}
        return tuple(first[number] for number in sorted(first))

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations in the order of the claims."""
        return tuple(each for claim in self.claims for each in claim.citations)

    @property
    def text(self) -> str:
        """The claims, one per line, with the numbers of the passages that support them."""
        return "\n".join(f"{claim.text} {claim.numbers}".strip() for claim in self.claims)


MAX_CLAIMS = 6

PASSAGES_READ = 3
"""The passages that the model reads: reading is most of the time on a CPU, and of the questions with an answer in the documents
the first three hold it for all 52 of the handbook."""

TURNS_READ = 4
"""The messages before the question that the model reads."""

MAX_ANSWER_TOKENS = 200
NOT_FOUND = "NOT FOUND"
"""What a model writes, by its instructions, if the passages do not answer."""

MARKS_BEHIND = re.compile(r"([.!?。！？])\s*((?:\[\d{1,3}\]\s*)+)")
"""Numbers of passages after the end of a sentence."""

WHOLE_SENTENCES = re.compile(r".*(?:(?:[。！？]|[.!?](?!\d))+(?:\s*\[\d{1,3}\])*|\n)", re.DOTALL)

SPACE_BEFORE_END = re.compile(r"\s+(?=[.!?。！？]\Z)")

DIGITS = re.compile(r"\d+")


def answer_with_citations(
    query: str,
    passages: Sequence[Passage],
    *,
    language: str = "",
    own_prompts: Sequence[tuple[str, str]] = (),
    history: Sequence[Message] = (),
) -> Program[Answer]:
    """Answer a query from the first passages, in a language (en, ja, zh, or that of the query), in one call; `own_prompts` may replace
    the prompt.

    Without passages no model is called.

    Raises (when run):
        RefusalError: the model refused to answer.
    """
    if not passages:
        return Answer(query, documented=False)
    instructions, asked = answer_material(query, passages, language, own_prompts)
    messages = (system(instructions), *turns(history)[-TURNS_READ:], user(asked))
    request = Request(messages, sampling=Sampling(max_tokens=MAX_ANSWER_TOKENS))
    response = yield from perform(Complete(request, HideOutput))
    return read_answer(query, response, passages, history)


def read_answer(
    query: str,
    response: Response,
    passages: Sequence[Passage],
    history: Sequence[Message] = (),
    term_weights: "TermWeights | None" = None,
) -> Answer:
    """Check the response of a model by `check_answer`.

    Raises:
        RefusalError: the model refused to answer.
    """
    if response.finish == "refusal":
        raise RefusalError("the model refused to answer")
    text = response.text
    if response.finish == "length":  # the last sentence is cut off
        whole = WHOLE_SENTENCES.match(text)
        text = text if whole is None else whole[0]
    return check_answer(query, text, passages, history, term_weights)


def answer_material(
    query: str, passages: Sequence[Passage], language: str = "", own_prompts: Sequence[tuple[str, str]] = ()
) -> tuple[str, str]:
    """Return the instructions for an answer from passages alone, and what the model reads: numbered passages and the question."""
    prompts = load_prompts(language if language in REPLY_LANGUAGES else "en").replaced_by(own_prompts)
    return prompts.answer(language), passages_text(passages, f"{prompts.sections['question']} {one_line(query)}")


def passages_text(passages: Sequence[Passage], asked: str) -> str:
    """Return the passages that a model reads, each under its number, and what is asked, which begins with a label."""
    label = re.compile(
        rf"^(?=\s*{re.escape(re.split('[:：]', asked, maxsplit=1)[0])}\s*[:：])", re.MULTILINE | re.IGNORECASE
    )
    read = (_passage_text(number, each) for number, each in enumerate(passages[:PASSAGES_READ], 1))
    return "\n\n".join((*(label.sub("> ", each) for each in read), asked))


def _passage_text(number: int, passage: Passage) -> str:
    """Return a passage as text under its number; no other text in it looks like a number, a call or a mark of the prompt."""
    text = CITATION_NUMBER.sub(lambda mark: f"({mark[0][1:-1]})", strip_control(passage.text)).strip()
    return defuse(f"[{number}] {_heading(passage)}\n{text}")


def _heading(passage: Passage) -> str:
    return " › ".join(map(one_line, passage.heading or filter(None, (passage.title,))))


def one_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return " ".join(strip_control(text).split())


def check_answer(
    query: str,
    text: str,
    passages: Sequence[Passage],
    history: Sequence[Message] = (),
    term_weights: "TermWeights | None" = None,
) -> Answer:
    """Check the answer of a model sentence by sentence.

    A sentence that restates a passage cites it; any other one follows without a citation. If none can, the sentences of the
    passages that are quoted without a model come first, and the one that is nearest to the answer.

    >>> leave = Passage("leave.md", "Everybody has **ten** days. Ask your lead.")
    >>> answer = check_answer("how many?", "Everybody has 10 days [1]. Ask anybody. [1]", (leave,))
    >>> [(claim.text, claim.numbers) for claim in answer.claims]
    [('Everybody has 10 days.', '[1]'), ('Ask anybody.', '')]
    """
    if text.strip().upper().startswith(NOT_FOUND):
        return Answer(query, (), tuple(passages), documented=False, doubted=True)
    weights = term_weights or PLAIN
    read = tuple(passages[:PASSAGES_READ])
    found = _Findings()
    own: list[str] = []
    headings = {one_line(each) for passage in read for each in (_heading(passage), passage.title, *passage.heading)}
    for statement, numbers in _statements(text, "\n".join(passage.text for passage in passages)):
        if statement in headings:  # small models copy them
            continue
        cited = [read[number - 1] for number in numbers if 1 <= number <= len(read)]
        for passage in dict.fromkeys((*cited, *read)):
            if span := _support(statement, passage):
                found.add(statement, passage, span)
                break
        else:
            own.append(statement)
    if not found.claims:
        for passage, span in _best_spans(query, passages, history, weights):
            found.add_quotation(passage, span)
        nearest = _spans_of("\n".join((query, *own)), read, history, weights)
        if nearest:
            found.add_quotation(*max(nearest, key=lambda each: each[1].score))
    claims = (*found.claims.values(), *map(Claim, own))
    return Answer(query, claims, tuple(passages), documented=bool(claims))


def cite_reply(query: str, text: str, passages: Sequence[Passage]) -> tuple[str, Answer]:
    """Put the numbers of passages after the sentences of a reply that restate them, and remove all others.

    Nothing else in the reply changes. Its claims are these sentences alone. Code keeps what looks like a number of a passage.

    >>> leave = Passage("leave.md", "Everybody has **ten** days a year. Ask your lead.")
    >>> cite_reply("how many?", "Gladly [1]. Everybody has 10 days a year.", (leave,))[0]
    'Gladly. Everybody has 10 days a year. [1]'
    """
    found, lines, fenced = _Findings(), list[str](), False
    above = {one_line(each) for passage in passages for each in (_heading(passage), *passage.heading)}
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith(FENCE)
        if one_line(HEADING.sub("", CITATION_NUMBER.sub("", line).strip())) in above:  # small models copy them
            continue
        lines.append(line if fenced or "`" in line else _cited_line(line, passages, found))
    return "\n".join(lines).strip(), Answer(query, tuple(found.claims.values()), tuple(passages))


FENCE = "```"


def _cited_line(line: str, passages: Sequence[Passage], found: "_Findings") -> str:
    plain = MARKS_BEHIND.sub(r" \2\1 ", line).rstrip() if CITATION_NUMBER.search(line) else line
    written, at = "", 0
    for unit in _sentences(plain, 0, len(plain)):
        sentence = plain[unit.start : unit.end]
        shown = SPACE_BEFORE_END.sub("", " ".join(CITATION_NUMBER.sub("", sentence).split()))
        claim = safe_line(EMPHASIS.sub("", shown))
        for passage in passages:
            if any(map(str.isalnum, claim)) and (span := _support(claim, passage)):
                shown = f"{shown} {found.add(claim, passage, span).numbers}"
                break
        written += plain[at : unit.start] + shown
        at = unit.end
    return written + plain[at:]


def cite_value(query: str, value: Json, passages: Sequence[Passage]) -> Answer:
    """Cite the sentences of passages that hold the texts and numbers of a value; each is a claim of its own.

    >>> leave = Passage("leave.md", "Everybody has ten days. In Dublin it is twelve.")
    >>> [(claim.text, claim.numbers) for claim in cite_value("", {"days": 12, "who": "anybody"}, (leave,)).claims]
    [('days: 12', '[1]'), ('who: anybody', '')]
    """
    found, own = _Findings(), list[Claim]()
    for path, part in values_in(value):
        words = part if isinstance(part, str) else json.dumps(part)
        text = f"{path}: {words}" if path else words
        if (place := place_of(words, passages)) is None:
            own.append(Claim(text))
        else:
            passage, start, end = place
            found.add(text, passage, Span(start, end, 1.0, words))
    return Answer(query, (*found.claims.values(), *own), tuple(passages))


def values_in(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the texts and numbers of a value with their paths, such as `items.0.name`."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from values_in(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from values_in(part, f"{path}.{at}" if path else str(at))
    elif value is not None and not isinstance(value, bool):
        yield path, value


MAX_QUOTATION_CHARS = 600


def quotable(passages: Sequence[Passage]) -> "dict[str, tuple[Passage, Span]]":
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
    """Return the answer of a model that was asked for quotations; a line that is none is dropped."""
    known, found = quotable(passages), _Findings()
    alike = {tuple(token.text for token in tokens(each)): each for each in reversed(known)}
    for line in text.splitlines():
        plain = SPACE_BEFORE_END.sub(
            "", " ".join(CITATION_NUMBER.sub("", MARK.sub("", line.strip())).split()).strip('"“”「」')
        )
        quotation = plain if plain in known else alike.get(tuple(token.text for token in tokens(plain)))
        if quotation is not None and len(found.claims) < MAX_QUOTED:
            passage, span = known[quotation]
            found.add(quotation, passage, span)
    claims = tuple(found.claims.values())
    return Answer(query, claims, tuple(passages), documented=bool(claims), doubted=not claims)


class _Findings:
    """The claims with a citation, in order, and the numbers of their passages."""

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.spans: list[tuple[Passage, Span]] = []
        self.numbers: dict[str, int] = {}

    def add(self, text: str, passage: Passage, span: "Span") -> Claim:
        """Add a claim that words of a passage support."""
        number = self.numbers.setdefault(passage_key(passage), len(self.numbers) + 1)
        self.spans.append((passage, span))
        return self.claims.setdefault(text, Claim(text, (make_citation(passage, span.start, span.end, number),)))

    def add_quotation(self, passage: Passage, span: "Span") -> None:
        """Add a sentence of a passage, unless it is cited already."""
        if not any(one is passage and other.start < span.end and span.start < other.end for one, other in self.spans):
            self.add(safe_line(span.text, passage.text), passage, span)


def _statements(text: str, sources: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the sentences of an answer, each once and safe to show, with the numbers of the passages that it names."""
    seen: set[str] = set()
    for each in text.splitlines():
        line = MARKS_BEHIND.sub(r" \2\1 ", HEADING.sub("", each.strip()))
        for unit in _sentences(line, 0, len(line)):
            sentence = line[unit.start : unit.end]
            shown = safe_line(EMPHASIS.sub("", sentence).strip(), sources)
            shown = SPACE_BEFORE_END.sub("", shown)
            if any(map(str.isalnum, shown)) and shown not in seen and len(seen) < MAX_CLAIMS:
                seen.add(shown)
                yield (
                    shown,
                    [int(number) for mark in CITATION_NUMBER.findall(sentence) for number in DIGITS.findall(mark)],
                )


def _support(statement: str, passage: Passage) -> "Span | None":
    """Return the sentence, or the pair of sentences, of a passage that a statement restates."""
    text, heading = passage.text, "\n".join((passage.title, *passage.heading))
    units = tuple(_units(passage))
    for last in (0, 1):
        for unit, end in zip(units, units[last:], strict=False):
            plain = _plain(text, unit, end.end)
            if (unit is end or _neighbours(text, unit, end)) and supports(statement, plain, heading):
                return Span(unit.start, end.end, 1.0, plain)
    return None


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
class TermWeights:
    """How text becomes terms: `weigh` the terms of a question and of the turns before it; list the `terms` of a text.

    `content` lists the terms that say what a question is about, without words that fit any subject; by default all of it.
    """

    weigh: Callable[[str, Sequence[Message]], Mapping[str, float]]
    terms: Callable[[str], Iterable[str]]
    content: Callable[[str], Sequence[str]] = lambda _: ()

    def terms_of(self, passage: Passage) -> frozenset[str]:
        """Return the terms of a passage with its title and headings."""
        return frozenset(self.terms("\n".join((passage.title, *passage.heading, passage.text))))


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


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a passage with its offsets, its score for the question, and its text without markup."""

    start: int
    end: int
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, a list item or a table row; `head` is the header of the table."""

    start: int
    end: int
    head: str = ""


Weights: TypeAlias = Mapping[str, float]


def extractive(
    query: str, passages: Sequence[Passage], history: Sequence[Message] = (), term_weights: "TermWeights | None" = None
) -> Answer:
    """Answer with sentences of the passages; each claim is a quotation, and so supported.

    >>> leave = Passage("leave.md", "# Leave\\nEverybody has ten days. Ask your lead first.", 1.0)
    >>> [claim.text for claim in extractive("how many days are there?", [leave]).claims]
    ['Everybody has ten days.']
    """
    found = _Findings()
    for passage, span in _best_spans(query, passages, history, term_weights or PLAIN):
        found.add(safe_line(span.text, passage.text), passage, span)
    claims = tuple(found.claims.values())
    return Answer(query, claims, tuple(passages), documented=bool(claims), source="extractive")


def _best_spans(
    query: str, passages: Sequence[Passage], history: Sequence[Message], weights: "TermWeights"
) -> Iterator[tuple[Passage, Span]]:
    """Yield the best parts of the best passages, each text once; a question with a negation is answered by one first."""
    found = _spans_of(query, passages, history, weights)
    if is_negative(query):
        found.sort(key=lambda each: not is_negative(each[1].text))
    best = max((passage.score for passage, _ in found), default=0.0)
    texts: set[str] = set()
    for passage, span in found:
        if passage.score >= MIN_SHARE * best and len(texts) < MAX_QUOTED and span.text not in texts:
            texts.add(span.text)
            yield passage, span


def _spans_of(
    query: str, passages: Sequence[Passage], history: Sequence[Message], weights: TermWeights
) -> list[tuple[Passage, Span]]:
    pairs = zip(passages, spans(query, passages, history, weights), strict=True)
    return [(passage, span) for passage, span in pairs if span is not None]


def spans(
    query: str, passages: Sequence[Passage], history: Sequence[Message], term_weights: TermWeights
) -> tuple[Span | None, ...]:
    """Return the best part of each passage: one or two sentences, an item or a row; None if it has no content of the question.

    If only the headings have, the first sentences are its best part.
    """
    question = term_weights.weigh(query, ())
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
        return tuple(None for _ in passages)
    # If content of the question occurs anywhere, a passage with only terms of the history does not answer it.
    own = frozenset(term for term in own if len(term) > 1) or own  # 給 of 給与 is in 有給休暇 too
    asks_not = is_negative(query)
    found: list[Span | None] = []
    for at, passage in enumerate(passages):
        if own.isdisjoint(held[at]) and own:
            found.append(None)
            continue
        inner = {term: weight * (HEADING_TERM if term in above[at] else 1.0) for term, weight in rare.items()}
        best = _best(passage.text, units[at], unit_terms[at], inner, asks_not=asks_not)
        if best is None and any(has_term(term, above[at]) for term in own):
            best = _first(passage.text, units[at])
        found.append(best)
    return tuple(found)


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
            if asks_not and not is_negative(text[unit.start : units[last].end]):
                score *= AFFIRMED
            if score > 0 and (best is None or score > best.score * 1.0001):
                best = Span(unit.start, units[last].end, score, _plain(text, unit, units[last].end))
    return best


def _first(text: str, units: Sequence[_Unit]) -> Span | None:
    """Return the first unit, with the next one if both are short neighbours."""
    if not units:
        return None
    last = units[1] if len(units) > 1 and _neighbours(text, units[0], units[1]) else units[0]
    return Span(units[0].start, last.end, 0.0, _plain(text, units[0], last.end))


def _neighbours(text: str, one: _Unit, other: _Unit) -> bool:
    """Whether two units are short sentences of one paragraph."""
    between = text[one.end : other.start].strip(" ")
    return not one.head and not other.head and "\n" not in between and other.end - one.start <= MAX_PAIR_CHARACTERS


def _plain(text: str, unit: _Unit, end: int) -> str:
    """Return a part without its context: a row with the names of its columns, a sentence without emphasis."""
    part = text[unit.start : end]
    if not unit.head:
        return " ".join(EMPHASIS.sub("", part).split())
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
    text, at = passage.text, 0
    head = f"| {passage.heading[-1]} |" if passage.heading and " | " in passage.heading[-1] else ""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        start, at = at, at + len(line)
        plain = line.strip()
        if plain.startswith("|"):
            if RULE.fullmatch(plain):
                continue
            below = lines[number + 1].strip() if number + 1 < len(lines) else ""
            if below.startswith("|") and RULE.fullmatch(below):
                head = plain
                continue
            begin = start + line.index("|")
            yield _Unit(begin, begin + len(plain), head or "|")
            continue
        head = ""
        if plain and not HEADING.match(plain) and not RULE.fullmatch(plain):
            yield from _sentences(text, start + len(line) - len(line.lstrip()), start + len(line.rstrip()))


def place_of(words: str, passages: Sequence[Passage]) -> tuple[Passage, int, int] | None:
    """Return the first sentence, list item or table row of passages that holds words, by its offsets; None if none does."""
    for passage in passages:
        for unit in _units(passage):
            if holds(words, passage.text[unit.start : unit.end]):
                return passage, unit.start, unit.end
    return None


def _sentences(text: str, start: int, end: int) -> Iterator[_Unit]:
    mark = MARK.match(text, start, end)
    for begin, stop in sentence_spans(text, mark.end() if mark else start, end):
        yield _Unit(begin, stop)


def _weigh(query: str, history: Sequence[Message]) -> dict[str, float]:
    weights = {term: 0.5 for message in history if message.role == "user" for term in terms(message.text)}
    return weights | dict.fromkeys(terms(query), 1.0)


PLAIN = TermWeights(_weigh, terms)
"""Plain words, for a retriever without an analyzer."""
