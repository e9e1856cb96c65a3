"""An answer from documents as a value: claims, each with the words of a passage that carry it, or marked as carried by none."""

from typing import Literal

from taiwa.flows.acts import key_of
from taiwa.kernel.records import value
from taiwa.kernel.values import Passage

__all__ = ["Answer", "Citation", "Claim", "citation"]


@value(tag="citation")
class Citation:
    """Words that stand in a source from the character offset `start` to `end`.

    `number` is how the answer refers to the passage; `passage` names it for good, whatever it is listed under.
    """

    number: int
    passage: str
    source: str
    words: str
    start: int
    end: int
    heading: tuple[str, ...] = ()
    page: int = 0


def citation(passage: Passage, start: int, end: int, number: int) -> Citation:
    """Cite a part of a passage; the offsets are within it."""
    begin = passage.start + start
    return Citation(
        number, key_of(passage), passage.source, passage.text[start:end], begin, passage.start + end,
        passage.heading, passage.page,
    )  # fmt: skip


@value(tag="claim")
class Claim:
    """One statement of an answer; without a citation nothing in the passages carries it."""

    text: str
    citations: tuple[Citation, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether words of a passage carry it."""
        return bool(self.citations)


@value(tag="answer")
class Answer:
    """What the documents say on a question.

    `documented` says whether they answer it at all; where they do not, `missing` may say what was not there. `source` says who
    worded the claims: a model (`generated`), or the passages themselves (`extractive`). `refused` counts references that led nowhere: to a number that no
    passage has, or to words that do not stand there.
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
        """One citation for each passage that is cited, by their numbers."""
        first = {each.number: each for each in reversed(self.citations)}
        return tuple(first[number] for number in sorted(first))

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations, as they come."""
        return tuple(each for claim in self.claims for each in claim.citations)

    @property
    def text(self) -> str:
        """The claims with the numbers of what carries them."""
        lines: list[str] = []
        for claim in self.claims:
            numbers = dict.fromkeys(each.number for each in claim.citations)
            lines.append(" ".join((claim.text, "".join(f"[{number}]" for number in numbers))).strip())
        return "\n".join(lines)
