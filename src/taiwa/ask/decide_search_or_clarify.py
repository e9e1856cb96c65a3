"""When to ask back: look_first, article, functions, never, always; what could be meant."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from taiwa.ask.dialogue_text import last_words, user_texts
from taiwa.ask.small_talk import numbered
from taiwa.ask.types import (
    Act,
    Advise,
    Ask,
    Assessment,
    Decision,
    HandOver,
    Option,
    Policy,
    Search,
    Situation,
    Thresholds,
    sentences,
)
from taiwa.ask.write_clarifying_question import DOMINANT
from taiwa.i18n import Translate
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Evidence

__all__ = ["POLICIES", "answerable", "article", "decide", "look_first", "policy_article", "policy_named"]


NAME = "look_first"

RATIO = 9.0
"""How much more a miss costs than a needless question at the eager end of the knob; at the other end it is the reverse."""

OFFSET, COVERAGE, SPREAD = -3.9, 5.9, 16.0
"""Logistic weights of the evidence, fitted to questions with and without the passages that answer them (decision 0019).

The best score adds nothing to how much of the question is covered and how far the scores spread.
"""

UNMEASURED = 0.5

CHANGED = 0.5
"""Two results are alike from this part of shared passages on: a second question after the same result would be no help."""

POINTING_SURELY = 2

SURELY = 0.9
"""How likely what is wanted is unclear, where a rule says so."""


def answerable(evidence: Evidence | None, found: int) -> float:
    """Return the chance that the documents answer, by what a first look measured.

    >>> answerable(None, 0), answerable(None, 3)
    (0.0, 0.5)
    """
    if not found:
        return 0.0
    if evidence is None:
        return UNMEASURED
    return 1 / (1 + math.exp(-(OFFSET + COVERAGE * evidence.coverage + SPREAD * evidence.nqc)))


def look_first(situation: Situation) -> Decision:
    """Decide by the evidence, then by expected cost; total: every situation has a decision."""
    view = _PolicyInput(situation)
    act, reasons = view.decide()
    return Decision(NAME, act, reasons, situation, view.numbers)


@dataclass
class _PolicyInput:
    """A situation with what follows from it."""

    situation: Situation

    @cached_property
    def limits(self) -> Thresholds:
        return self.situation.person.limits

    @cached_property
    def assessment(self) -> Assessment | None:
        return self.situation.assessment

    @cached_property
    def sentence(self) -> Translate:
        return sentences(self.situation)

    @cached_property
    def answerable(self) -> float:
        return answerable(self.situation.evidence, len(self.situation.found))

    @cached_property
    def unresolved_references(self) -> tuple[str, ...]:
        """Words that point at nothing, where that alone is reason to ask: two of them, or one in the first turn."""
        evidence = self.situation.evidence
        words = () if evidence is None else evidence.unresolved_references
        first = len(user_texts(self.situation.dialogue)) == 1
        return words if len(words) >= POINTING_SURELY or (words and first) else ()

    @cached_property
    def unclear(self) -> float:
        """The chance that it is not clear what is wanted. Without a model only words that point at nothing tell."""
        told = 0.0 if self.assessment is None else self.assessment.unlikely("clarity", self.limits.unclear)
        return max(told, SURELY) if self.unresolved_references or self.situation.route == "none" else told

    @cached_property
    def costs(self) -> tuple[float, float]:
        """What an answer to another question costs, and what a needless question back does."""
        patience = self.situation.person.patience.mean
        miss = RATIO ** (2 * min(max(self.limits.asking, 0.0), 1.0) - 1)
        return miss, (1 - patience) / patience * (1 + self.situation.thread.rounds)

    @property
    def wants_asking(self) -> bool:
        miss, ask = self.costs
        return self.unclear * miss > (1 - self.unclear) * ask

    @property
    def numbers(self) -> tuple[tuple[str, float], ...]:
        miss, ask = self.costs
        named = {"unclear": self.unclear, "answerable": self.answerable, "cost_of_missing": miss, "cost_of_asking": ask}
        return tuple((name, round(number, 4)) for name, number in named.items())

    def true(self, name: str, limit: float) -> bool | None:
        """Whether a statement counts as true; None where nobody scored."""
        return None if self.assessment is None else float(getattr(self.assessment, name)) <= limit

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """Options that were not put to the user before."""
        asked = self.situation.thread.asked
        fresh = tuple(each for each in self.situation.options if each.label not in asked)
        return fresh if len(fresh) > 1 else ()

    @cached_property
    def refusal(self) -> str:
        """Why no question may be asked any more; empty where one may."""
        thread = self.situation.thread
        if thread.settled or self.situation.route == "just_answer":
            return "declined"
        bound = self.situation.bound
        if thread.rounds >= (self.limits.rounds if bound is None else bound):
            return "rounds"
        if thread.rounds and self.situation.route != "none" and _alike(thread.found, self.situation.found) >= CHANGED:
            return "nothing_changed"
        return ""

    def question(self, *texts: str) -> Ask | None:
        """Return the best question that was not asked yet: options that were found, else one of the texts."""
        spoken = self.spoken(*texts)
        if not self.options:
            return spoken
        again = (
            self.sentence("Several things still match. Which of these do you mean?")
            if self.situation.thread.rounds
            else self.sentence("Which of these do you mean?")
        )
        return Ask(again if spoken is None else spoken.question, options=self.options)

    def spoken(self, *texts: str) -> Ask | None:
        """Return the first of some questions that was not asked yet."""
        asked = self.situation.thread.asked
        return next((Ask(text) for text in texts if text and text not in asked), None)

    def missing(self) -> tuple[str, ...]:
        """The texts that ask for what is missing, best first."""
        found = self.assessment or Assessment()
        pointing = (
            self.sentence("What does “{words}” refer to?", words=", ".join(self.unresolved_references))
            if self.unresolved_references
            else ""
        )
        other = (
            self.sentence("Could you say more precisely what you want to know?")
            if self.situation.route == "none"
            else ""
        )
        return (found.ask_missing_info, found.ask_user_meta_info, pointing, other)

    def decide(self) -> tuple[Act, tuple[str, ...]]:
        for step in (self.by_route, self.by_number, self.by_wish, self.by_nothing, self.by_kind, self.by_cost):
            found = step()
            if found is not None:
                return found
        return Search(options=self.options), ("clear",)

    def by_route(self) -> tuple[Act, tuple[str, ...]] | None:
        route = self.situation.route
        if route in ("greeting", "thanks", "farewell", "command"):
            return Advise(route), (f"route_{route}",)
        return (HandOver(), ("asked_for_person",)) if route == "person" else None

    def by_number(self) -> tuple[Act, tuple[str, ...]] | None:
        """A number that no option has is a slip: the same are offered again."""
        offered = self.situation.thread.offered
        if (
            self.situation.route != "none"
            or not offered
            or self.refusal
            or not numbered(last_words(self.situation.dialogue))
        ):
            return None
        return Ask(self.sentence("Which of these do you mean?"), options=offered), ("no_such_option",)

    def by_wish(self) -> tuple[Act, tuple[str, ...]] | None:
        """Who wants an answer gets one, with what is assumed."""
        if self.refusal != "declined":
            return None
        return self.given_up(), ("declined",)

    def by_nothing(self) -> tuple[Act, tuple[str, ...]] | None:
        """Nothing was found: ask for other words, else hand over what better goes to a person, else say so."""
        if self.situation.found:
            return None
        if self.true("is_question", self.limits.question) is False and not self.consults:
            return Advise("chat"), ("nothing_found", "neither")
        texts = (*self.missing(), *((self.assessment or Assessment()).res_consultation,))
        words = last_words(self.situation.dialogue)
        asked = self.question(
            *texts,
            self.sentence(
                "I found nothing about “{words}”. Could you put it differently?", words=" ".join(words.split())[:60]
            ),
        )
        wanted = self.assessment is None or self.wants_asking or self.consults
        if asked is not None and not self.refusal and wanted:
            return asked, ("nothing_found",)
        if self.situation.thread.rounds or self.true("ask_person", self.limits.person):
            return HandOver(), ("nothing_found", self.refusal or "better_asked_of_person")
        return Search(), ("nothing_found",)

    @property
    def consults(self) -> bool:
        """A consultation and no question; where both are true, the documents decide, as for a question."""
        consultation = self.true("is_consultation", self.limits.consultation)
        return bool(consultation) and self.true("is_question", self.limits.question) is False

    def by_kind(self) -> tuple[Act, tuple[str, ...]] | None:
        """Judge what was found by the kind of the wish."""
        if self.assessment is None or self.answerable >= self.limits.strong:
            return None
        question = self.true("is_question", self.limits.question)
        if not question and not self.true("is_consultation", self.limits.consultation):
            # Neither a question nor a consultation, as a correction is: what the documents hold decides.
            return (Advise("chat"), ("neither",)) if self.answerable < self.limits.weak else None
        if self.answerable >= self.limits.weak:
            return None
        if self.consults and not self.refusal:
            asked = self.spoken(self.assessment.res_consultation)
            if asked is not None:
                return asked, ("consultation", "weak_evidence")
        if self.true("ask_person", self.limits.person):
            return HandOver(), ("weak_evidence", "better_asked_of_person")
        return (Advise("consultation"), ("consultation", "weak_evidence")) if self.consults else None

    def by_cost(self) -> tuple[Act, tuple[str, ...]] | None:
        if not self.wants_asking:
            return None
        why = ("unresolved_references",) if self.unresolved_references else ("unclear",)
        if (
            self.situation.focus >= DOMINANT
            and self.answerable >= self.limits.strong
            and not self.unresolved_references
        ):
            return Search(), (*why, "one_answer")  # whichever is meant, the answer is the same
        asked = self.question(*self.missing())
        if asked is not None and not self.refusal:
            return asked, (*why, "options" if asked.options else "words")
        if self.situation.thread.rounds and self.answerable < self.limits.weak:
            return HandOver(), (*why, "weak_evidence", self.refusal or "nothing_to_ask")
        return self.given_up(), (*why, self.refusal or "nothing_to_ask")

    def given_up(self) -> Search:
        """Answer all the same, and say what is assumed."""
        options = self.situation.options
        assumption = self.sentence("assuming “{words}”", words=options[0].label) if options else ""
        return Search(options=options, assumption=assumption)


def _alike(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Which part of two results is shared (Jaccard)."""
    both = set(one) | set(other)
    return len(set(one) & set(other)) / len(both) if both else 1.0


ARTICLE = Thresholds()


def policy_article(assessment: Assessment, thresholds: Thresholds = ARTICLE) -> Ask | Search:
    """Decide as the article's table does; `ask_person` decides nothing there.

    >>> policy_article(Assessment(clarity=3, is_question=1, is_consultation=5, ask_missing_info="Which leave?")).case
    2
    """
    question = assessment.is_question <= thresholds.question
    consultation = assessment.is_consultation <= thresholds.consultation
    if assessment.clarity >= thresholds.unclear:
        if consultation and assessment.res_consultation:
            return Ask(assessment.res_consultation, 1)
        if question and assessment.ask_missing_info:
            return Ask(assessment.ask_missing_info, 2)
        return Search(3)
    if consultation and assessment.in_internal_docs <= thresholds.documented:
        return Search(4)
    if consultation and assessment.res_consultation:
        return Ask(assessment.res_consultation, 5)
    return Search(6)


def article(situation: Situation, name: str = "article") -> Decision:
    """Decide by the article's table, which knows no last round; a bound that somebody set holds all the same.

    Without an assessment its missing scores count as 1, as the table has it.
    """
    act = policy_article(situation.assessment or Assessment(), situation.person.limits)
    reasons: tuple[str, ...] = (f"case_{act.case}",)
    bound, thread = situation.bound, situation.thread
    if isinstance(act, Ask) and bound is not None and (thread.settled or thread.rounds >= bound):
        act, reasons = Search(act.case), (*reasons, "declined" if thread.settled else "rounds")
    return Decision(name, act, reasons, situation)


def never(situation: Situation) -> Decision:
    """Never ask back: look, whatever was said."""
    return Decision("never", Search(options=situation.options), ("never",), situation)


def always(situation: Situation) -> Decision:
    """Ask back once before every answer; no more where that is declined, or no round may be had."""
    thread = situation.thread
    if thread.rounds or thread.settled or situation.bound == 0:
        return Decision("always", Search(options=situation.options), ("rounds",), situation)
    sentence = sentences(situation)
    question = (
        sentence("Which of these do you mean?")
        if situation.options
        else sentence("Could you say more precisely what you want to know?")
    )
    return Decision("always", Ask(question, options=situation.options), ("always",), situation)


POLICIES: Mapping[str, Policy] = {
    "look_first": look_first,
    "article": article,
    "functions": partial(article, name="functions"),
    "never": never,
    "always": always,
}


def policy_named(name: str) -> Policy:
    """Return a policy by its name.

    Raises:
        InputError: there is none of that name.
    """
    if name not in POLICIES:
        raise InputError(f"{name!r} is no policy: choose {', '.join(POLICIES)}")
    return POLICIES[name]


def decide(name: str, situation: Situation) -> Decision:
    """Decide by the policy of a name; the same situation always gives the same decision."""
    return policy_named(name)(situation)
