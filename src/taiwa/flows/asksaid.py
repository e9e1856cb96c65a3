"""What came of a question as text: an answer with its sources, a question back with its options, or what else was done.

Plain text, one block after another, in the language of the user. Words of documents and models stand in their own lines, with
nothing in them that could begin another.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from taiwa.flows.acts import Advise, Ask, Case, HandOver, Kind, Look, Option, key_of
from taiwa.flows.clarify import Turn
from taiwa.flows.material import CONTROL
from taiwa.flows.quoting import TAG
from taiwa.flows.sourced import Answer, Citation, Claim
from taiwa.i18n import Translate, gettext_noop

__all__ = ["place_of", "said"]

ADVICE: Mapping[Kind, str] = {
    "greeting": gettext_noop("Hello. What would you like to know?"),
    "thanks": gettext_noop("You are welcome."),
    "farewell": gettext_noop("Goodbye."),
    "command": gettext_noop("There is nothing to stop or change here. What would you like to know?"),
    "chat": gettext_noop("I look things up in documents. What would you like to know?"),
    "consultation": gettext_noop("The documents do not help with this; please speak to someone responsible."),
}
"""What is said where nothing is looked up."""
INDENT = "    "
HEADING = re.compile(r"\s*#{1,6} [^\n]*\n")
SNIPPET = 300
"""Characters of a passage that are shown around what was quoted."""
BEFORE = 80
GAP = re.compile(r"\s+|(?<=[。！？])")


def place_of(cited: Citation, sentence: Translate) -> str:
    """Where a citation stands: path, headings, page.

    >>> from taiwa.i18n import dialogue_catalogue
    >>> place_of(Citation(1, "a#0", "a.pdf", "w", 0, 1, ("Leave", "Sick"), 3), dialogue_catalogue("en"))
    'a.pdf › Leave › Sick, page 3'
    """
    page = ", " + sentence("page {number}", number=cited.page) if cited.page else ""
    return _line(" › ".join((cited.source, *cited.heading))) + page


def said(turn: Turn[Answer], sentence: Translate, also: Sequence[Option] = (), *, weak: bool = False) -> str:
    """Write what came of a turn; `also` could be meant as well, and `weak` says that there was little on the question."""
    act = turn.act
    if isinstance(act, Ask):
        hint = (sentence("(reply with a number, in your own words, or “just answer”)"),) if act.options else ()
        return "\n".join((_line(act.question), *_options(act.options), *hint))
    if isinstance(act, HandOver):
        case = turn.clarified.case
        return "\n".join(
            (sentence("This question needs a human. The case so far:"), *(_case(case, sentence) if case else ()))
        )
    if isinstance(act, Advise):
        return sentence(ADVICE[act.kind])
    blocks = [*_blocks(act, turn.answer, sentence, weak)]
    if also:
        blocks.append(
            "\n".join((sentence("There is more about this. Please say which one you mean:"), *_options(also)))
        )
    return "\n\n".join(blocks)


def _blocks(act: Look, answer: Answer | None, sentence: Translate, weak: bool) -> Iterator[str]:
    if answer is None or not answer.passages:
        yield sentence("The documents that you may see contain nothing about this.")
        return
    if act.assumption:
        yield _line(f"({act.assumption})")
    if not answer.documented:
        yield sentence("The documents do not say.")
    elif weak and answer.by == "passages":
        yield sentence("The documents may not cover this. The closest passages are:")
    if answer.claims:
        yield "\n".join(_claim(claim, sentence) for claim in answer.claims)
    if answer.missing:
        yield sentence("Not in the documents: {text}", text=_line(answer.missing))
    if answer.sources:
        yield "\n".join(_sources(answer, sentence))


def _claim(claim: Claim, sentence: Translate) -> str:
    numbers = "".join(f"[{number}]" for number in dict.fromkeys(each.number for each in claim.citations))
    return _line(claim.text) + " " + (numbers or sentence("(not supported by any passage)"))


def _sources(answer: Answer, sentence: Translate) -> Iterator[str]:
    """Path, headings, page and a snippet of each passage that is cited; what is quoted stands in brackets."""
    held = {cited.number: cited for cited in answer.sources}
    quoted = {number: [each for each in answer.citations if each.number == number] for number in held}
    texts = {key_of(passage): passage for passage in answer.passages}
    for number, cited in held.items():
        yield f"[{number}] {place_of(cited, sentence)}"
        passage = texts[cited.passage]
        marks = [(each.start - passage.start, each.end - passage.start) for each in quoted[number]]
        yield INDENT + _snippet(passage.text, marks)


def _snippet(text: str, marks: Sequence[tuple[int, int]]) -> str:
    """A part of a passage around its first mark, on one line, with what is quoted in brackets; its heading is said already."""
    heading = HEADING.match(text)
    first = min(start for start, _ in marks)
    top = min(heading.end() if heading else 0, first)
    begin = top if len(text) - top <= SNIPPET else max(first - BEFORE, top)
    if top < begin < first:
        gap = GAP.search(text, begin, first)
        begin = gap.end() if gap else begin
    end = min(begin + SNIPPET, len(text))
    shown, at = "", begin
    for start, stop in _merged(marks):
        if start < end:
            shown += f"{text[at:start]}⟦{text[start : min(stop, end)]}⟧"
            at = min(stop, end)
    return _line(("…" if begin > top else "") + shown + text[at:end] + ("…" if end < len(text) else ""))


def _merged(marks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Marks in order, those that touch as one."""
    held: tuple[int, int] | None = None
    for start, end in sorted(marks):
        if held is not None and start <= held[1]:
            held = (held[0], max(held[1], end))
            continue
        if held is not None:
            yield held
        held = (start, end)
    if held is not None:
        yield held


def _options(options: Sequence[Option]) -> Iterator[str]:
    for number, option in enumerate(options, 1):
        yield _line(f"{INDENT}{number}. {option.label} ({option.count})", INDENT)


def _case(case: Case, sentence: Translate) -> Iterator[str]:
    yield INDENT + sentence("searched for: {text}", text=_line(case.query))
    if case.missing:
        yield INDENT + sentence("missing: {text}", text=_line(", ".join(case.missing)))
    for passage in case.passages:
        yield INDENT + _line("· " + " › ".join((passage.source, *passage.heading)))
    if case.owner:
        yield INDENT + sentence("responsible: {text}", text=_line(case.owner))


def _line(text: str, indent: str = "") -> str:
    """One line, without what is not seen, and with nothing that a reader of Markdown or HTML would load or run."""
    return indent + TAG.sub("‹", " ".join(CONTROL.sub("", text).split()).replace("![", "! [").replace("](", "] ("))
