"""Scenes: an utterance, its meaning and its clarity. These are the latent variables from which samples are made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from training.builtin.asking.names import Slots
from training.builtin.asking.wording import expand, fill, listed, pick
from training.builtin.noise import noisy, noisy_ja

__all__ = ["ASKING", "Scene", "Scores", "Stage", "Wish"]

ASKING = frozenset(
    """what which who whom whose when where why how is are am was were do does did can could may must should will would has have
    what's who's until by up under on to for with""".split()
)
"""The first words of a question."""
STARTS, ENDS = ("in ", "for "), ("の場合", "的话")
QUESTIONS_JA = ("か", "の", "っけ")
PLURALS = {"is": "are", "does": "do", "has": "have", "was": "were"}
JOINT = {"en": ("", " "), "ja": ("、", ""), "zh": (",", "")}
"""The text after and before a condition."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The five scores, from 1 (most true) to 5 (least)."""

    clarity: int
    is_question: int = 1
    is_consultation: int = 5
    in_internal_docs: int = 1
    ask_person: int = 5


@dataclass(slots=True)
class Scene:
    """A dialogue and its labels."""

    language: str
    turns: list[tuple[str, str]]
    scores: Scores
    person: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Wish:
    """A question and its parts. `shape` has placeholders for the thing, its pronouns and the condition."""

    shape: str
    thing: str
    pronouns: tuple[str, str, str]
    condition: str = ""

    def whole(self, stage: "Stage") -> str:
        """Return the question with the thing named."""
        own = {"en": "'s", "ja": "の", "zh": "的"}[stage.language]
        return self._text(stage, (self.thing, self.thing, self.thing + own), self.condition)

    def pointing(self, stage: "Stage", *, condition: bool = False) -> str:
        """Return the question with a pronoun for the thing."""
        return self._text(stage, self.pronouns, self.condition if condition else "")

    def _text(self, stage: "Stage", names: tuple[str, str, str], condition: str) -> str:
        many = self.pronouns[0] == "they"
        behind, before = JOINT[stage.language]
        verbs = {one: several if many else one for one, several in PLURALS.items()}
        shape = self.shape if "{c}" in self.shape or not condition else stage.placed(self.shape)
        put = "" if not condition else before + condition + behind
        return fill(shape, {"X": names[0], "x": names[1], "p": names[2], "c": put, **verbs})


class Stage:
    """The language, random generator and names of one sample."""

    def __init__(self, random: Random, language: str) -> None:
        self.random, self.language = random, language
        self.slots = Slots(random, language)
        self.level = random.choice((0.0, 0.0, 0.05, 0.1, 0.15))

    def chance(self, part: float) -> bool:
        """Return true with the given probability."""
        return self.random.random() < part

    def line(self, name: str) -> tuple[str, ...]:
        """Return a random line of a section with choices made and names filled in."""
        return tuple(self.made(part) for part in pick(self.random, self.language, name))

    def words(self, name: str, more: Mapping[str, str] | None = None) -> str:
        """Return a random template of a section whose lines are alternatives."""
        text = expand(self.random, self.random.choice(listed(self.language, name)))
        text = self.random.choice(text.split("|")) if "|" in text else text
        return self.made(text, more)

    def options(self, name: str, more: Mapping[str, str] | None = None) -> str:
        """Return a random template of a section whose top-level alternatives are separated by bars."""
        line = self.random.choice(listed(self.language, name))
        return self.made(self.random.choice(divided(line)), more)

    def made(self, text: str, more: Mapping[str, str] | None = None) -> str:
        """Choose alternatives and fill in names. Placeholders of the request stay open."""
        chosen = expand(self.random, text)
        return fill(fill(chosen, more) if more else chosen, self.slots)

    def placed(self, shape: str) -> str:
        """Add the placeholder of a condition: after the question in English, before it in other languages."""
        return shape + "{c}" if self.language == "en" else "{c}" + shape

    def condition(self, said: str) -> dict[str, str]:
        """Return the long and short form of a condition: `in Oss` and `Oss`, `パートの場合` and `パート`."""
        short = said
        for start in STARTS:
            short = short.removeprefix(start)
        for end in ENDS:
            short = short.removesuffix(end)
        return {"c": said, "b": short}

    def joined(self, one: str, other: str) -> str:
        """Join two parts, with a space if the language uses spaces."""
        return f"{one} {other}" if self.language == "en" else one + other

    def said(self, text: str, keep: tuple[str, ...] = ()) -> str:
        """Return the text as a user might type it."""
        text = self.finished(text)
        known = tuple(word for made in (*self.slots.made, *keep) for word in (made, *made.split()))
        if self.language == "en":
            text = noisy(self.random, text, self.level, known)
        elif self.language == "ja":
            text = noisy_ja(self.random, text, self.level, known)
        elif self.chance(self.level * 3):
            text = text.rstrip("?。")
        return text

    def finished(self, text: str) -> str:
        """Return the text with an initial capital and final punctuation."""
        text = " ".join(text.split()) if self.language == "en" else text.strip()
        if self.language == "en":
            text = text[:1].upper() + text[1:]
            last = text.rpartition(". ")[2].casefold().split()
            if text.endswith((".", "?", "!", ":")) or len(last) < 3:
                return text
            asking = last[0].strip(",") in ASKING or last[1] in ("which", "what")
            return text + ("?" if asking else "." if len(last) > 5 else "")
        if text.endswith(("?", "。", "!", "…")):
            return text
        if self.language == "zh":
            return text + ("?" if text.endswith(tuple("吗呢么谁哪少天里")) else "")
        return text + ("?" if text.endswith(QUESTIONS_JA) and self.chance(0.4) else "")


def divided(line: str) -> tuple[str, ...]:
    """Split a line at its top-level bars."""
    parts, depth, start = list[str](), 0, 0
    for at, sign in enumerate(line):
        depth += (sign == "[") - (sign == "]")
        if sign == "|" and depth == 0:
            parts.append(line[start:at])
            start = at + 1
    return (*parts, line[start:])
