"""Who asks: what is known of them, how they want to be asked, and what their feedback has taught.

Everything here is a value or a pure function. What is learnt is worked out from the feedback itself, so it can be shown,
explained and taken back.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value

__all__ = ["NOBODY", "Feedback", "Patience", "Person", "Thresholds", "Verdict", "learn", "read_verdict"]

Verdict: TypeAlias = Literal["good", "bad", "should_have_asked", "should_not_have_asked"]
"""What a person says of the last act: right · wrong · a question back was missing · one was too many."""

FLOOR, CEILING = 0.1, 0.9
"""How far feedback can move patience: nobody is asked always, or never again."""
MOST_EVIDENCE = 24.0
"""Feedback counts as at most so many events, so that what is learnt can change again."""
PRIOR = 2.0
EASIEST, HARDEST = 1.5, 4.0
"""Between which scores the threshold of unclear can come to lie."""
LESSONS: dict[tuple[Verdict, bool], tuple[float, float]] = {
    ("good", True): (1.0, 0.0),
    ("bad", True): (0.0, 1.0),
    ("good", False): (0.0, 0.25),  # an answer that was right says little about a question that was not asked
    ("bad", False): (0.5, 0.0),  # and a wrong one may be wrong for other reasons
    ("should_have_asked", False): (1.0, 0.0),
    ("should_have_asked", True): (1.0, 0.0),
    ("should_not_have_asked", True): (0.0, 1.0),
    ("should_not_have_asked", False): (0.0, 1.0),
}
"""By verdict and whether the act was a question back: what it adds to questions that were welcome, and unwelcome."""
SPELLINGS: dict[str, Verdict] = {
    "should_have_asked": "should_have_asked", "should_not_have_asked": "should_not_have_asked",
    "good": "good", "+": "good", "👍": "good", "良い": "good", "よい": "good", "好": "good",
    "bad": "bad", "-": "bad", "👎": "bad", "悪い": "bad", "不好": "bad",
    "ask": "should_have_asked", "聞いて": "should_have_asked", "应该问": "should_have_asked",
    "noask": "should_not_have_asked", "聞かないで": "should_not_have_asked", "不该问": "should_not_have_asked",
}  # fmt: skip


@value(tag="thresholds")
class Thresholds:
    """From which scores on something counts, and how eager to ask.

    `unclear`: a dialogue is unclear from this score of clarity on. `question`, `consultation`, `documented`, `person`: up to
    this score the statement counts as true. `asking`: 0 asks back least, 1 most. `rounds`: the most questions back in a row.
    `weak`, `strong`: below and above which chance of an answer in the documents the evidence counts as weak and strong.
    """

    unclear: float = 2
    question: float = 2
    consultation: float = 2
    documented: float = 2
    person: float = 1
    asking: float = 0.5
    rounds: int = 2
    weak: float = 0.25
    strong: float = 0.75


@value(tag="ask-tolerance")
class Patience:
    """How welcome questions back are: a Beta distribution over the chance that one is."""

    welcome: float = PRIOR
    unwelcome: float = PRIOR

    @property
    def mean(self) -> float:
        """The expected chance, within bounds; 0.5 where nothing was learnt.

        >>> Patience().mean, Patience(2, 200).mean
        (0.5, 0.1)
        """
        return min(max(self.welcome / (self.welcome + self.unwelcome), FLOOR), CEILING)

    def after(self, verdict: Verdict, asked: bool) -> "Patience":
        """Learn from one verdict on an act."""
        good, bad = LESSONS[verdict, asked]
        welcome, unwelcome = self.welcome - PRIOR + good, self.unwelcome - PRIOR + bad
        scale = min(1.0, MOST_EVIDENCE / max(welcome + unwelcome, 1e-9))
        return Patience(PRIOR + welcome * scale, PRIOR + unwelcome * scale)


@value(tag="feedback")
class Feedback:
    """What somebody said of an act: `asked` says whether it was a question back, `decision` which one it was."""

    verdict: Verdict
    asked: bool = False
    decision: str = ""


@value(tag="user-profile")
class Person:
    """Somebody who asks: `facts` are what is known of them (department, office …), by name."""

    name: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    language: str = ""
    thresholds: Thresholds = Thresholds()
    patience: Patience = Patience()

    @property
    def limits(self) -> Thresholds:
        """The thresholds as feedback has moved them, within bounds."""
        shift = (0.5 - self.patience.mean) * 4
        if not shift:
            return self.thresholds
        low, high = min(EASIEST, self.thresholds.unclear), max(HARDEST, self.thresholds.unclear)
        return replace(self.thresholds, unclear=min(max(self.thresholds.unclear + shift, low), high))


NOBODY = Person()


def learn(person: Person, feedback: Iterable[Feedback]) -> Person:
    """Return a person as all their feedback has made them, oldest first; what was learnt before is forgotten.

    >>> learn(NOBODY, [Feedback("should_not_have_asked", True)] * 3).patience.mean
    0.2857142857142857
    """
    patience = Patience()
    for each in feedback:
        patience = patience.after(each.verdict, each.asked)
    return replace(person, patience=patience)


def read_verdict(text: str) -> Verdict:
    """Read a verdict as a person writes it: `good`, `bad`, `should have asked`, `noask`, 👍 …

    Raises:
        InputError: it is none.
    """
    plain = text.strip().strip("/").casefold()
    named = plain.replace("-", "_").replace(" ", "_") if len(plain) > 1 else plain
    found = SPELLINGS.get(named) or SPELLINGS.get(plain)
    if found is None:
        raise InputError(f"{text[:40]!r} is no verdict: say {', '.join(get_args(Verdict))}")
    return found
