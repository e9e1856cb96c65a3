"""Answers as claims with citations: written by a model and compared with the passages.

What is shown as supported are the words of the documents: a sentence of a model counts only if it restates a sentence of a
passage (`quote.supports`). Any other one is marked as the model's own words (`check_answer`).
"""

import json
import re
from collections.abc import Iterator, Sequence

from taiwa.flows.ask.ask_result import CITATION_NUMBER, Answer, Claim, safe_line
from taiwa.flows.ask.dialogue import REPLY_LANGUAGES, turns
from taiwa.flows.ask.prompts import load_prompts
from taiwa.flows.ask.quote import (
    EMPHASIS,
    HEADING,
    NOT_FOUND,
    PASSAGES_READ,
    PLAIN,
    SPACE_BEFORE_END,
    Cited,
    Span,
    TermWeights,
    best_spans,
    place_of,
    restated,
    sentence_units,
    spans,
)
from taiwa.kernel.effects import Complete, HideOutput, Program, perform
from taiwa.kernel.errors import RefusalError
from taiwa.kernel.messages import Message, Passage, Request, RequestHints, Response, Sampling, system, user
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import defuse, strip_control

MAX_CLAIMS = 6

TURNS_READ = 4
"""The messages before the question that the model reads."""

MAX_ANSWER_TOKENS = 200
MARKS_BEHIND = re.compile(r"([.!?。！？])\s*((?:\[\d{1,3}\]\s*)+)")
"""Numbers of passages after the end of a sentence."""

WHOLE_SENTENCES = re.compile(r".*(?:(?:[。！？]|[.!?](?!\d))+(?:\s*\[\d{1,3}\])*|\n)", re.DOTALL)

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
    request = Request(messages, sampling=Sampling(max_tokens=MAX_ANSWER_TOKENS), hints=RequestHints(opening=1))
    response = yield from perform(Complete(request, HideOutput))
    return read_answer(query, response, passages, history)


def read_answer(
    query: str,
    response: Response,
    passages: Sequence[Passage],
    history: Sequence[Message] = (),
    term_weights: TermWeights | None = None,
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
    asked = f"{prompts.sections['question']} {one_line(query)}"
    return prompts.answer(language), f"{passages_text(passages[:PASSAGES_READ], asked)}\n\n{asked}"


def passages_text(passages: Sequence[Passage], asked: str, *, numbered: bool = True) -> str:
    """Return the passages that a model reads before what is `asked`, with whose label none of their lines begins.

    Without numbers a small model copies none.
    """
    label = re.compile(
        rf"^(?=\s*{re.escape(re.split('[:：]', asked, maxsplit=1)[0])}\s*[:：])", re.MULTILINE | re.IGNORECASE
    )
    read = (_passage_text(f"[{number}] " if numbered else "", each) for number, each in enumerate(passages, 1))
    return "\n\n".join(label.sub("> ", each) for each in read)


def _passage_text(mark: str, passage: Passage) -> str:
    """Return a passage as text behind its mark; nothing in it looks like the number of a passage, a call or a mark of the prompt."""
    text = CITATION_NUMBER.sub(lambda number: f"({number[0][1:-1]})", strip_control(passage.text)).strip()
    return defuse(f"{mark}{_heading(passage)}\n{text}")


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
    term_weights: TermWeights | None = None,
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
    found = Cited()
    own: list[str] = []
    headings = {one_line(each) for passage in read for each in (_heading(passage), passage.title, *passage.heading)}
    for statement, numbers in _statements(text, "\n".join(passage.text for passage in passages)):
        if statement in headings:  # small models copy them
            continue
        cited = [read[number - 1] for number in numbers if 1 <= number <= len(read)]
        for passage in dict.fromkeys((*cited, *read)):
            if span := restated(statement, passage):
                found.add(statement, passage, span)
                break
        else:
            own.append(statement)
    if not found.claims:
        for passage, span in best_spans(query, passages, history, weights):
            found.add_quotation(passage, span)
        nearest = spans("\n".join((query, *own)), read, history, weights)
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
    found, lines, fenced = Cited(), list[str](), False
    above = {one_line(each) for passage in passages for each in (_heading(passage), *passage.heading)}
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith(FENCE)
        if one_line(HEADING.sub("", CITATION_NUMBER.sub("", line).strip())) in above:  # small models copy them
            continue
        lines.append(line if fenced or "`" in line else _cited_line(line, passages, found))
    return "\n".join(lines).strip(), Answer(query, tuple(found.claims.values()), tuple(passages))


FENCE = "```"


def _cited_line(line: str, passages: Sequence[Passage], found: Cited) -> str:
    plain = MARKS_BEHIND.sub(r" \2\1 ", line).rstrip() if CITATION_NUMBER.search(line) else line
    written, at = "", 0
    for unit in sentence_units(plain, 0, len(plain)):
        sentence = plain[unit.start : unit.end]
        shown = SPACE_BEFORE_END.sub("", " ".join(CITATION_NUMBER.sub("", sentence).split()))
        claim = safe_line(EMPHASIS.sub("", shown))
        for passage in passages:
            if any(map(str.isalnum, claim)) and (span := restated(claim, passage)):
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
    found, own = Cited(), list[Claim]()
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


def _statements(text: str, sources: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the sentences of an answer, each once and safe to show, with the numbers of the passages that it names."""
    seen: set[str] = set()
    for each in text.splitlines():
        line = MARKS_BEHIND.sub(r" \2\1 ", HEADING.sub("", each.strip()))
        for unit in sentence_units(line, 0, len(line)):
            sentence = line[unit.start : unit.end]
            shown = safe_line(EMPHASIS.sub("", sentence).strip(), sources)
            shown = SPACE_BEFORE_END.sub("", shown)
            if any(map(str.isalnum, shown)) and shown not in seen and len(seen) < MAX_CLAIMS:
                seen.add(shown)
                yield (
                    shown,
                    [int(number) for mark in CITATION_NUMBER.findall(sentence) for number in DIGITS.findall(mark)],
                )
