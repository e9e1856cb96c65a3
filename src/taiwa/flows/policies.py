"""Policies: pure functions from a situation to a decision, by name.

`never` and `always` are what others are measured against; `article` and `functions` are those of the article "Dialogue flow that understands the user's intention for a generative bot
with RAG" (DevelopersIO, 2023); `look_first` measures what the documents hold before it judges.
"""

from collections.abc import Mapping
from functools import partial

from taiwa.flows.acts import Ask, Decision, Look, Policy, Situation, sentences
from taiwa.flows.assessment import Assessment
from taiwa.flows.lookfirst import look_first
from taiwa.flows.person import Thresholds
from taiwa.kernel.errors import InputError

__all__ = ["ARTICLE", "POLICIES", "always", "article", "decide", "never", "policy_article", "policy_named"]

ARTICLE = Thresholds()


def policy_article(assessment: Assessment, thresholds: Thresholds = ARTICLE) -> Ask | Look:
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
        return Look(3)
    if consultation and assessment.in_internal_docs <= thresholds.documented:
        return Look(4)
    if consultation and assessment.res_consultation:
        return Ask(assessment.res_consultation, 5)
    return Look(6)


def article(situation: Situation, name: str = "article") -> Decision:
    """Decide by the article's table, which knows no last round; a bound that somebody set holds all the same.

    Without an assessment its missing scores count as 1, as the table has it.
    """
    act = policy_article(situation.assessment or Assessment(), situation.person.limits)
    reasons: tuple[str, ...] = (f"case_{act.case}",)
    bound, thread = situation.bound, situation.thread
    if isinstance(act, Ask) and bound is not None and (thread.settled or thread.rounds >= bound):
        act, reasons = Look(act.case), (*reasons, "declined" if thread.settled else "rounds")
    return Decision(name, act, reasons, situation)


def never(situation: Situation) -> Decision:
    """Never ask back: look, whatever was said."""
    return Decision("never", Look(options=situation.options), ("never",), situation)


def always(situation: Situation) -> Decision:
    """Ask back once before every answer; no more where that is declined, or no round may be had."""
    thread = situation.thread
    if thread.rounds or thread.settled or situation.bound == 0:
        return Decision("always", Look(options=situation.options), ("rounds",), situation)
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
