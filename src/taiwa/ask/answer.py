"""Answers as claims with citations. `check_answer` looks up each quotation of a model word for word (`check_citations`)."""

import json
from collections.abc import Sequence
from typing import Literal

from taiwa.ask.check_citations import clean_untrusted, find_quotation, supports
from taiwa.ask.prompts import load_prompts
from taiwa.ask.read_dialogue import REPLY_LANGUAGES
from taiwa.flows.extract import extract
from taiwa.kernel.effects import Program, notify
from taiwa.kernel.messages import Message, Passage, Sampling, passage_key, system, user
from taiwa.kernel.records import Json, value
from taiwa.kernel.text import strip_control
from taiwa.structured import OutputType


@value(tag="citation")
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


@value(tag="claim")
class Claim:
    """One statement of an answer; without citations no passage supports it."""

    text: str
    citations: tuple[Citation, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether words of a passage support it."""
        return bool(self.citations)


@value(tag="answer")
class Answer:
    """An answer from documents.

    `documented` is false if they do not answer the question; then `missing` may name what they lack. `source`: a model worded the
    claims (`generated`), or they are sentences of the passages (`extractive`). `refused` counts quotations with an
    unknown number, with words that the passage does not contain, or with words that do not support the claim.
    """

    query: str
    claims: tuple[Claim, ...] = ()
    passages: tuple[Passage, ...] = ()
    documented: bool = True
    missing: str = ""
    source: Literal["generated", "extractive"] = "generated"
    refused: int = 0

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
        lines: list[str] = []
        for claim in self.claims:
            numbers = dict.fromkeys(each.number for each in claim.citations)
            lines.append(" ".join((claim.text, "".join(f"[{number}]" for number in numbers))).strip())
        return "\n".join(lines)


MAX_CLAIMS = 20


@value(tag="quotation")
class Quotation:
    """Words of a passage, which is identified by its number."""

    passage: int
    words: str


@value(tag="statement")
class Statement:
    """One fact with the words that support it."""

    text: str
    quotations: tuple[Quotation, ...] = ()


@value(tag="answer-output")
class AnswerOutput:
    """The typed answer of a model."""

    in_documents: bool
    statements: tuple[Statement, ...] = ()
    missing: str = ""


def answer_with_citations(
    query: str,
    passages: Sequence[Passage],
    *,
    language: str = "",
    instructions: str = "",
    own_prompts: Sequence[tuple[str, str]] = (),
    sampling: Sampling = Sampling(),
) -> Program[Answer]:
    """Answer a query from passages, in a language (en, ja, zh, or that of the query); `instructions` are added to the prompt,
    which `own_prompts` may replace.

    Without passages no model is called.

    Raises (when run):
        OutputValidationError: the answer could not be read.
        RefusalError: the model refused to answer.
    """
    if not passages:
        return Answer(query, documented=False)
    messages = request_messages(query, passages, language, instructions, own_prompts)
    typed = yield from extract(OutputType(AnswerOutput), messages, sampling=sampling, task="answer_with_citations")
    output = typed.value
    answer = check_answer(query, output, tuple(passages))
    if answer.refused:
        total = sum(len(statement.quotations) for statement in output.statements)
        text = f"{answer.refused} of {total} quotations are not in their passages or do not support their statements"
        yield from notify(text, code="citation", warning=True)
    return answer


def request_messages(
    query: str,
    passages: Sequence[Passage],
    language: str = "",
    instructions: str = "",
    own_prompts: Sequence[tuple[str, str]] = (),
) -> tuple[Message, ...]:
    """Return the messages to the model: instructions, then question and passages as one line of JSON."""
    prompts = load_prompts(language if language in REPLY_LANGUAGES else "en").replaced_by(own_prompts)
    prompt = prompts.answer(language)
    numbered: list[Json] = [_passage_json(number, passage) for number, passage in enumerate(passages, 1)]
    material = json.dumps({"question": strip_control(query), "passages": numbered}, ensure_ascii=False)
    return system("\n\n".join(filter(None, (prompt, instructions.strip())))), user(material)


def check_answer(query: str, output: AnswerOutput, passages: tuple[Passage, ...]) -> Answer:
    """Look up the quotations of a model; those that do not stand in their passage, or do not support their claim, are refused.

    >>> leave = Passage("leave.md", "Everybody has **ten** days.")
    >>> quotations = Quotation(1, "ten days"), Quotation(7, "ten days")
    >>> output = AnswerOutput(True, (Statement("Ten.", quotations), Statement("Or 20.", quotations[:1])))
    >>> answer = check_answer("how many?", output, (leave,))
    >>> [(claim.text, claim.supported) for claim in answer.claims], answer.refused, answer.citations[0].words
    ([('Ten.', True), ('Or 20.', False)], 2, 'ten** days')
    """
    sources = "\n".join(passage.text for passage in passages)
    numbers: dict[int, int] = {}
    claims: list[Claim] = []
    refused = 0
    for statement in output.statements[:MAX_CLAIMS]:
        text = clean_untrusted(statement.text, sources)
        citations = [_check_quotation(each, text, passages, sources, numbers) for each in statement.quotations]
        refused += citations.count(None)
        if text:
            claims.append(Claim(text, tuple(dict.fromkeys(each for each in citations if each is not None))))
    documented = bool(claims) and (output.in_documents or any(claim.supported for claim in claims))
    missing = "" if output.in_documents and claims else clean_untrusted(output.missing, sources)
    return Answer(query, tuple(claims), passages, documented, missing, refused=refused)


def _check_quotation(
    quotation: Quotation, claim: str, passages: tuple[Passage, ...], sources: str, numbers: dict[int, int]
) -> Citation | None:
    """Return the citation of a quotation, None if it is refused; `numbers` renumbers passages in the order of the answer."""
    at = quotation.passage
    if not 1 <= at <= len(passages):
        return None
    passage = passages[at - 1]
    span = find_quotation(quotation.words, passage.text)
    heading = " ".join((passage.title, *passage.heading))
    if span is None or not supports(claim, quotation.words, heading, sources):
        return None
    return make_citation(passage, *span, numbers.setdefault(at, len(numbers) + 1))


def _passage_json(number: int, passage: Passage) -> Json:
    parts: dict[str, Json] = {
        "passage": number,
        "source": strip_control(passage.source),
        "heading": " › ".join(strip_control(each) for each in passage.heading),
        "text": strip_control(passage.text),
    }
    return {name: part for name, part in parts.items() if part}
