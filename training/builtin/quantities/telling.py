"""Composable wordings: alternatives, things that are named once and then called `it`, facts and questions.

A template has alternatives, `[one|another|]`, which may be nested, and slots, `{d}`. A slot that holds a `Thing` is written in
full at its first mention and shorter later, in whatever order the sentences end up.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from training.builtin.noise import number_words

__all__ = ["FIND", "GIVEN", "TELL", "WHAT", "Ask", "Slots", "Teller", "Thing"]

INNER = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{([A-Za-z]\w*)('s)?\}")
DEEPEST = 8
ARTICLE = re.compile(r"(?:\b(a)|(?<![0-9] )\b(A))n? (?=[A-Za-z0-9])")
OWNED = re.compile(r"^(?:the|\{\w+\}|\{\w+'s\}) ")
VOWEL = re.compile(r"(?!(?:one|once|uni|use|usu|eu|ut)(?!nd))(?:[aeiouAEIOU]|hour|honest|heir|8|11(?!\d)|18(?!\d))")
START = re.compile(r"(?:^|(?<=[.?!] ))[a-z]")
OBJECT = re.compile(
    r"\b(to|of|for|by|with|from|at|on|past|gives?|gave|hands?|brings?|brought|sends?|sent|lends?|lent|takes?|took|costs?) (he|she)\b"
)
DOUBLED = re.compile(r" {2,}| (?=[,;.?!](?:\s|$))")
FIND = """[find|find|calculate|calculate|work out|determine|compute|give|tell me|state|figure out|evaluate|obtain|get|
please find|please calculate|please give|please work out|I need|I want|we need|I am looking for|we are looking for|show|
I'd like to know|I would like to know|help me find|help me calculate|let us find|you have to find|the task is to find|
try to find|use this to find|from this, find|with this, calculate|now find|now calculate|then find|hence find|estimate|
I have to find|she wants to know|he asks for|report|name|write down|deduce|derive|establish|come up with]"""
WHAT = """[what is|what is|what is|what is|what's|what was|what will be|what would be|what must be|what should be|can you find|
can you calculate|can you give me|can you work out|could you find|could you work out|could you calculate|do you know|
how do I find|how can I work out|how do we get|would you calculate|will you work out|so what is|then what is|now what is]"""
TELL = """[tell me|tell us|work out|find out|find|calculate|determine|say|figure out|I wonder|I want to know|I need to know|
we want to know|let me know|I'd like to know|please tell me|please work out|compute|show|decide|write|state|estimate|
she asks|he asks|they ask|the question is|it is asked|help me work out]"""
KNOW = """[can you tell me|could you tell me|do you know|can you work out|can you say|could you work out|can you calculate|
would you know|can anybody tell|who can tell|any idea|will you tell me]"""
GIVEN = "[given that|if|if|if|suppose|assuming|assume that|provided that|knowing that|say|imagine|when|let us say|supposing]"
WHEN = "[if|if|if|when|given that|knowing that|assuming|provided that|supposing that|in case]"
KNOWN = "[given|known|data|we have|facts|I have|here is what I know|what is given|we know|values|input|measurements]"
SOUGHT = "[find|wanted|unknown|to find|calculate|asked|required|determine|needed|question|target|looking for|compute]"


@dataclass(slots=True)
class Thing:
    """A referent: its first mention, its later mentions, and its possessive."""

    first: str
    again: tuple[str, ...]
    whose: str = "its"
    said: int = field(default=0, init=False)

    def call(self, random: Random, *, owning: bool) -> str:
        """Return the next mention."""
        self.said += 1
        if self.said == 1:
            return self.first + ("'s" if owning else "")
        if owning:
            return self.whose
        return random.choice(self.again)


Slots: TypeAlias = Mapping[str, str | Thing]


@dataclass(frozen=True, slots=True)
class Ask:
    """The parts of a question.

    - `facts`: clauses that state what is given, in lower case and without a full stop.
    - `wh`: what is asked, as a direct and an indirect question: `how far does {S} go~how far {S} goes`.
    - `np`: what is asked, as a noun phrase: `the distance`.
    - `whole`: complete questions. `brief`: the given values in their shortest form, `speed {v}`.
    - `unit`: the unit in which the answer is requested, or "". `loose`: the facts may be reordered.
    """

    facts: Sequence[str] = ()
    wh: Sequence[str] = ()
    np: Sequence[str] = ()
    whole: Sequence[str] = ()
    brief: Sequence[str] = ()
    unit: str = ""
    loose: bool = True


class Teller:
    """A writer of one problem, with one random generator and one style throughout."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._digits = 1.0 if random.random() < 0.75 else 0.35

    def pick(self, *options: str) -> str:
        """Choose one of the options."""
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        """Return true with the given probability."""
        return self.random.random() < share

    def whole(self, low: int, high: int, step: int = 1) -> int:
        """Draw a whole number from `low` to `high`, a multiple of `step`."""
        return self.random.randint(-(-low // step), high // step) * step

    def decimal(self, low: float, high: float, places: int = 1) -> str:
        """Draw a number with up to `places` decimals, formatted."""
        text = f"{self.random.uniform(low, high):.{places}f}"
        return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"

    def number(self, number: int | str) -> str:
        """Write a number in the style of this question: 1500, 1,500 or in words; decimals stay in digits."""
        text = str(number)
        if not text.isdigit():
            return text
        value = int(text)
        words = number_words(self.random, value, self._digits if value <= 100 or not value % 100 else 1.0)
        return str(value) if words.endswith("dozen") and value > 12 else words

    def measure(self, number: int | str) -> str:
        """Write a number before a unit: never `a couple of` or `a dozen`."""
        text = self.number(number)
        return str(number) if text.startswith(("a ", "half ")) else text

    def say(self, template: str, slots: Slots | None = None) -> str:
        """Expand a template and normalise capitals, articles and spaces."""
        text = self.expanded(template, slots or {})
        text = DOUBLED.sub(lambda found: " " if found[0].isspace() and len(found[0]) > 1 else "", text).strip()
        text = ARTICLE.sub(
            lambda found: (found[1] or found[2]) + ("n " if VOWEL.match(text, found.end()) else " "), text
        )
        text = OBJECT.sub(lambda found: f"{found[1]} {'him' if found[2] == 'he' else 'her'}", text)
        return START.sub(lambda found: found[0].upper(), text)

    def expanded(self, template: str, slots: Slots, depth: int = 0) -> str:
        """Expand a template without normalising it."""
        text = template.replace("\n", "")
        choice = self.random.choice
        while "[" in text:
            text = INNER.sub(lambda found: choice(found[1].split("|")), text)
        if "{" not in text or depth > DEEPEST:
            return text

        def filled(found: re.Match[str]) -> str:
            value = slots[found[1]]
            owning = found[2] is not None
            told = value.call(self.random, owning=owning) if isinstance(value, Thing) else value + "'s" * owning
            return self.expanded(told, slots, depth + 1) if "[" in told or "{" in told else told

        return SLOT.sub(filled, text)

    def ask(self, ask: Ask, slots: Slots) -> str:
        """Write a question."""
        layouts: list[tuple[float, str]] = []
        if ask.whole:
            layouts.append((3, "whole"))
        if ask.facts and ask.wh:
            layouts += [
                (4, "facts wh"),
                (2, "if facts wh"),
                (1.5, "wh if facts"),
                (1.2, "facts tell"),
                (0.5, "wh facts"),
            ]
        if ask.facts and ask.np:
            layouts += [(2.5, "facts np"), (0.8, "given facts np"), (1, "np if facts")]
        if ask.brief and ask.np:
            layouts.append((1.2, "brief"))
        layout = self.random.choices([name for _, name in layouts], [weight for weight, _ in layouts])[0]
        return self.say(self._laid(layout, ask), slots)

    def _laid(self, layout: str, ask: Ask) -> str:
        choice = self.random.choice
        inside, behind = self._unit(ask.unit)
        if layout == "whole":
            whole = choice(ask.whole)
            mark = whole[-1] if whole[-1] in "?." else ""
            return f"{whole.rstrip('?.')}{inside}{mark or '[?|?|?|]'}{behind}"
        if layout == "brief":
            return self._brief(ask) + behind
        facts = list(ask.facts)
        if ask.loose:
            self.random.shuffle(facts)
        told = self._sentences(facts)
        joined = choice((" and ", " and ", ", and ", ", ", " while ")).join(facts)
        if "np" in layout:
            verb, mark = (FIND, ".") if self.chance(0.55) else (WHAT, "?")
            sought = f"{verb} {choice(ask.np)}{inside}"
            if layout == "facts np":
                return f"{told} {sought}{mark}{behind}"
            if layout == "np if facts":
                return f"{sought} {WHEN} {joined}{mark}{behind}"
            return f"{GIVEN} {joined}, {sought}{mark}{behind}"
        direct, _, indirect = choice(ask.wh).partition("~")
        if layout == "facts tell" and indirect:
            verb, mark = (TELL, ".") if self.chance(0.6) else (KNOW, "?")
            return f"{told} {verb} {indirect}{inside}{mark}{behind}"
        return {
            "if facts wh": f"{GIVEN} {joined}, [then |]{direct}{inside}?{behind}",
            "wh if facts": f"{direct}{inside} {WHEN} {joined}?{behind}",
            "wh facts": f"{direct}{inside}? {told}{behind}",
        }.get(layout, f"{told} [|||||so |now |then |]{direct}{inside}?{behind}")

    def _sentences(self, facts: Sequence[str]) -> str:
        text = facts[0]
        for fact in facts[1:]:
            text += self.random.choice((". ", ". ", ". ", " and ", ", and ", ", ", "; ")) + fact
        return text + "."

    def _unit(self, unit: str) -> tuple[str, str]:
        """Return where to name the requested unit: in the question clause, or after it."""
        if not unit:
            return "", ""
        if self.chance(0.7):
            return self.random.choice(
                (
                    f" in {unit}",
                    f" in {unit}",
                    f" in {unit}",
                    f" ({unit})",
                    f", in {unit}",
                    f" [expressed|measured] in {unit}",
                )
            ), ""
        return "", (
            f" [[Give|State|Write|Express|Report|Show] [the answer|your answer|it|the result|that]|"
            f"[The answer|The result|It] should be|Answer|[I want|I need|We want] [it|the answer]] in {unit}."
        )

    def _brief(self, ask: Ask) -> str:
        given = list(ask.brief)
        self.random.shuffle(given)
        sought = OWNED.sub("", self.random.choice(ask.np))
        unit = f" [in {ask.unit}|({ask.unit})]" if ask.unit else ""
        sign = self.random.choice((" ", ": ", " = ", " is ", " of "))
        parts = self.random.choice((", ", "; ", ", ", " and ")).join(
            part.replace(" {", sign + "{", 1) for part in given
        )
        return self.random.choice(
            (
                f"{KNOWN}: {parts}. {SOUGHT}: {sought}{unit}[.|?|]",
                f"{parts}. {FIND} the {sought}{unit}.",
                f"{parts}, {sought}{unit}?",
                f"{parts}; {WHAT} the {sought}{unit}?",
                f"{sought}{unit} [for|with|given|from] {parts}?",
                f"{FIND} the {sought}{unit} [for|with|given|from] {parts}.",
                f"{WHAT} the {sought}{unit} [for|with|given|from] {parts}?",
            )
        )
