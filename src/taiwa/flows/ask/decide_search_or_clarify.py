"""Policies: when to ask a clarifying question, and when to search. All are pure functions from a situation to a decision.

- `look_first`: compare the expected costs of a clarifying question and of an answer to another question, by scores and evidence.
- `article`, `functions`: the published table, with scores of a typed answer or of a choice of functions.
- `never`, `always`: bounds for comparison.

The options of a clarifying question come from the titles and headings of the passages found, without a model. Retrieval has applied
access control to the passages, so an option shows nothing that the user may not see.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import takewhile
from operator import ge, gt, le, lt

from taiwa.flows.ask.dialogue import is_option_number, reply_language
from taiwa.flows.ask.prompts import shipped_policy
from taiwa.flows.ask.types import (
    Act,
    Advise,
    Ask,
    Assessment,
    Condition,
    Decision,
    HandOver,
    Option,
    Policy,
    PolicyTable,
    Search,
    Situation,
    Thresholds,
)
from taiwa.i18n import Translate, dialogue_catalogue
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Evidence, Passage, passage_key
from taiwa.kernel.text import fold, truncate

Choice = tuple[Act, tuple[str, ...]]
"""An act and its reasons."""

MAX_COST_RATIO = 9.0
"""Cost of a miss over that of a needless question with the greatest eagerness; with the least it is the reciprocal."""

OFFSET, COVERAGE, SPREAD = -3.9, 5.9, 16.0
"""Logistic weights of the evidence, fitted to questions with and without the passages that answer them (decision 0019).

The best score adds nothing to the coverage of the question and the spread of the scores.
"""

P_UNMEASURED = 0.5

UNCHANGED = 0.5
"""Share of common passages from which two results count as the same: a second question would not help either."""

P_UNRESOLVED = 0.9
"""Probability that a question is unclear if a reference in it is unresolved, or if all options were rejected."""


def decide(name: str, situation: Situation) -> Decision:
    """Decide by a policy; the same situation always gives the same decision.

    Raises:
        InputError: the policy is unknown.
    """
    return (policy_named(name) if situation.table is None else table_policy(situation.table))(situation)


def table_policy(table: PolicyTable) -> Policy:
    """Return the policy of a file: its cases, or `look_first` with its thresholds if it has none."""
    return partial(by_table, table=table, name=table.name) if table.cases else look_first


def policy_named(name: str) -> Policy:
    """Return a policy by its name.

    Raises:
        InputError: the policy is unknown.
    """
    if name not in POLICIES:
        raise InputError(f"unknown policy {name!r}; choose one of {', '.join(POLICIES)}")
    return POLICIES[name]


def answerable(evidence: Evidence | None, found: int) -> float:
    """Return the probability that the documents answer, from the evidence and the number of passages of a first search.

    >>> answerable(None, 0), answerable(None, 3)
    (0.0, 0.5)
    """
    if not found:
        return 0.0
    if evidence is None:
        return P_UNMEASURED
    return 1 / (1 + math.exp(-(OFFSET + COVERAGE * evidence.coverage + SPREAD * evidence.nqc)))


def look_first(situation: Situation) -> Decision:
    """Decide by the evidence, then by expected cost; every situation has a decision."""
    view = _PolicyInput(situation)
    act, reasons = view.decide()
    miss, ask = view.costs
    numbers = {"unclear": view.unclear, "answerable": view.answerable, "cost_of_missing": miss, "cost_of_asking": ask}
    rounded = tuple((name, round(number, 4)) for name, number in numbers.items())
    name = "look_first" if situation.table is None else situation.table.name
    return Decision(name, act, reasons, situation, rounded)


def sentences(situation: Situation) -> Translate:
    """Return the program's own sentences in the language to reply in."""
    language = reply_language(situation.dialogue, situation.profile.language, situation.wording.locale)
    return dialogue_catalogue(language, situation.wording.catalogue_version)


@dataclass
class _PolicyInput:
    """A situation, and what `look_first` derives from it."""

    situation: Situation

    def decide(self) -> Choice:
        """Apply the rules in order; the first that decides wins."""
        rules = (
            self.by_route, self.by_unknown_number, self.by_declined, self.by_reply, self.by_topic, self.by_empty_result,
            self.by_weak_evidence, self.by_cost,
        )  # fmt: skip
        choices = (rule() for rule in rules)
        return next((choice for choice in choices if choice is not None), (Search(options=self.options), ("clear",)))

    def by_route(self) -> Choice | None:
        """Answer small talk, and hand over on request."""
        route = self.situation.route
        if route in ("greeting", "thanks", "farewell", "command"):
            return Advise(route), (f"route_{route}",)
        return (HandOver(), ("asked_for_person",)) if route == "person" else None

    def by_unknown_number(self) -> Choice | None:
        """Offer the same options again after an invalid number."""
        offered = self.situation.clarification.offered
        rejected = self.situation.route == "none" and is_option_number(self.said)
        if not offered or not rejected or self.no_question_because:
            return None
        return Ask(self.sentence("Which of these do you mean?"), options=offered), ("no_such_option",)

    def by_declined(self) -> Choice | None:
        """Answer a user who declined further questions, and state the assumption."""
        return (self.search_with_assumption(), ("declined",)) if self.no_question_because == "declined" else None

    def by_reply(self) -> Choice | None:
        """Ask the user with the text of a model that wrote text instead of an assessment."""
        asked = self.new_text(self.assessment.reply if self.assessment else "")
        return (asked, ("model_asked",)) if asked is not None and not self.no_question_because else None

    def by_topic(self) -> Choice | None:
        """Ask a user who announced a question on a subject, but did not ask it."""
        if self.situation.route != "topic" or self.no_question_because:
            return None
        open_question = self.sentence("Could you say more precisely what you want to know?")
        asked = self.new_question() or self.new_text(open_question)
        return None if asked is None else (asked, ("topic", "options" if asked.options else "words"))

    def by_empty_result(self) -> Choice | None:
        """If nothing was found, ask for other words, else hand over to a human who can answer, else report it."""
        if self.situation.found.passage_keys:
            return None
        if self.is_true("is_question", self.thresholds.question) is False and not self.is_pure_consultation:
            return Advise("chat"), ("nothing_found", "neither")
        words = " ".join(self.said.split())[:60]
        question = self.new_question(
            *self.questions_for_missing(),
            (self.assessment or Assessment()).question("res_consultation"),
            self.sentence("I found nothing about “{words}”. Could you put it differently?", words=words),
        )
        useful = self.assessment is None or self.asking_is_cheaper or self.is_pure_consultation
        if question is not None and not self.no_question_because and useful:
            return question, ("nothing_found",)
        if self.situation.clarification.rounds or self.is_true("ask_person", self.thresholds.ask_person):
            return HandOver(), ("nothing_found", self.no_question_because or "better_asked_of_person")
        return Search(), ("nothing_found",)

    def by_weak_evidence(self) -> Choice | None:
        """If the evidence is not strong, decide by whether the user asks a question, seeks advice, or does neither."""
        if self.assessment is None or self.answerable >= self.thresholds.strong_evidence:
            return None
        is_weak = self.answerable < self.thresholds.weak_evidence
        question = self.is_true("is_question", self.thresholds.question)
        if not question and not self.is_true("is_consultation", self.thresholds.consultation):
            # Neither a question nor a consultation, such as a correction: the documents decide.
            return (Advise("chat"), ("neither",)) if is_weak else None
        if not is_weak:
            return None
        if self.is_pure_consultation and not self.no_question_because:
            asked = self.new_text(self.assessment.question("res_consultation"))
            if asked is not None:
                return asked, ("consultation", "weak_evidence")
        if self.is_true("ask_person", self.thresholds.ask_person):
            return HandOver(), ("weak_evidence", "better_asked_of_person")
        return (Advise("consultation"), ("consultation", "weak_evidence")) if self.is_pure_consultation else None

    def by_cost(self) -> Choice | None:
        """Ask for clarification if its expected cost is lower than that of misunderstanding the question."""
        if not self.asking_is_cheaper:
            return None
        why = "unresolved_references" if self.unresolved_references else "unclear"
        is_strong = self.answerable >= self.thresholds.strong_evidence
        if self.situation.found.top_share >= DOMINANT and is_strong and not self.unresolved_references:
            return Search(), (why, "one_answer")  # every meaning has the same answer
        question = self.new_question(*self.questions_for_missing())
        if question is not None and not self.no_question_because:
            return question, (why, "options" if question.options else "words")
        reason = self.no_question_because or "nothing_to_ask"
        if self.situation.clarification.rounds and self.answerable < self.thresholds.weak_evidence:
            return HandOver(), (why, "weak_evidence", reason)
        return self.search_with_assumption(), (why, reason)

    @property
    def said(self) -> str:
        """The last text of the user."""
        return "".join(self.situation.dialogue[-1:])

    @cached_property
    def thresholds(self) -> Thresholds:
        return table_thresholds(self.situation, self.situation.table)

    @cached_property
    def assessment(self) -> Assessment | None:
        return self.situation.assessment

    @cached_property
    def sentence(self) -> Translate:
        return sentences(self.situation)

    @cached_property
    def answerable(self) -> float:
        return answerable(self.situation.found.evidence, len(self.situation.found.passage_keys))

    @cached_property
    def unresolved_references(self) -> tuple[str, ...]:
        """Unresolved references that alone are a reason to ask: two of them, or one in the first turn."""
        evidence = self.situation.found.evidence
        references = () if evidence is None else evidence.unresolved_references
        enough = 1 if len(self.situation.dialogue) == 1 else 2
        return references if len(references) >= enough else ()

    @cached_property
    def unclear(self) -> float:
        """The probability that the question is unclear; without a model only references and rejected options raise it."""
        assessment = self.assessment
        scored = 0.0 if assessment is None else assessment.probability_at_least("clarity", self.thresholds.unclear)
        raised = bool(self.unresolved_references) or self.situation.route in ("none", "topic")
        return max(scored, P_UNRESOLVED) if raised else scored

    @cached_property
    def costs(self) -> tuple[float, float]:
        """The costs of an answer to another question, and of a needless clarifying question."""
        tolerance = self.situation.profile.tolerance.mean
        miss = MAX_COST_RATIO ** (2 * min(max(self.thresholds.eagerness, 0.0), 1.0) - 1)
        return miss, (1 - tolerance) / tolerance * (1 + self.situation.clarification.rounds)

    @property
    def asking_is_cheaper(self) -> bool:
        miss, ask = self.costs
        return self.unclear * miss > (1 - self.unclear) * ask

    def is_true(self, name: str, threshold: float) -> bool | None:
        """Whether a statement counts as true; None without an assessment."""
        return None if self.assessment is None else self.assessment.score(name) <= threshold

    @property
    def is_pure_consultation(self) -> bool:
        """Whether the user seeks advice without asking a question; if both are true, the documents decide."""
        consultation = self.is_true("is_consultation", self.thresholds.consultation)
        return bool(consultation) and self.is_true("is_question", self.thresholds.question) is False

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """Options that were not offered before."""
        asked = self.situation.clarification.asked
        fresh = tuple(option for option in self.situation.found.options if option.label not in asked)
        return fresh if len(fresh) > 1 else ()

    @cached_property
    def no_question_because(self) -> str:
        """The reason why no question may be asked any more; empty if one may."""
        situation, clarification = self.situation, self.situation.clarification
        if clarification.declined or situation.route == "just_answer":
            return "declined"
        bound = self.thresholds.max_questions if situation.max_questions is None else situation.max_questions
        if clarification.rounds >= bound:
            return "rounds"
        if clarification.rounds and situation.route != "none":
            before, now = set(clarification.passage_keys), set(situation.found.passage_keys)
            union = before | now
            if (len(before & now) / len(union) if union else 1.0) >= UNCHANGED:  # Jaccard
                return "nothing_changed"
        return ""

    def new_question(self, *texts: str) -> Ask | None:
        """Return the best question that was not asked before: the options found, else one of the texts."""
        asked = self.new_text(*texts)
        if not self.options or (asked is not None and asked.question == self.question_about_user):
            return asked  # passages do not answer a question about the user
        if asked is not None:
            question = asked.question
        elif self.situation.clarification.rounds:
            question = self.sentence("Several things still match. Which of these do you mean?")
        else:
            question = self.sentence("Which of these do you mean?")
        return Ask(question, options=self.options)

    def new_text(self, *texts: str) -> Ask | None:
        """Return the first of some questions that was not asked before."""
        asked = self.situation.clarification.asked
        return next((Ask(text) for text in texts if text and text not in asked), None)

    def questions_for_missing(self) -> tuple[str, ...]:
        """The questions for what is missing, best first; those not needed are empty."""
        assessment, references, other = self.assessment or Assessment(), "", ""
        if self.unresolved_references:
            words = ", ".join(self.unresolved_references)
            references = self.sentence("What does “{words}” refer to?", words=words)
        if self.situation.route == "none":
            other = self.sentence("Could you say more precisely what you want to know?")
        return assessment.question("ask_missing_info"), self.question_about_user, references, other

    @cached_property
    def question_about_user(self) -> str:
        """The question for a fact about the user; empty if their profile has that fact."""
        question = "" if self.assessment is None else self.assessment.question("ask_user_meta_info")
        known = (name.casefold() for name, _ in self.situation.profile.facts)
        return "" if any(name in question.casefold() for name in known) else question

    def search_with_assumption(self) -> Search:
        """Answer without another question, and state what is assumed."""
        options = self.situation.found.options
        assumption = self.sentence("assuming “{words}”", words=options[0].label) if options else ""
        return Search(options=options, assumption=assumption)


DEFAULT_THRESHOLDS = Thresholds()

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {"<=": le, ">=": ge, "<": lt, ">": gt}


def choose_case(
    table: PolicyTable, assessment: Assessment, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> tuple[Act, int]:
    """Return the act and the number of the first case of a table whose conditions hold; without one, search (0).

    A case that asks holds only if the model wrote its question. The names of thresholds are those of `thresholds` and of the table.

    >>> scores = ("clarity", 3), ("is_question", 1), ("is_consultation", 5)
    >>> lacking = Assessment(scores, (("ask_missing_info", "Which leave?"),))
    >>> choose_case(shipped_policy("article"), lacking)
    (Ask(question='Which leave?', case=2, options=()), 2)
    """
    levels: dict[str, float] = dict(table.thresholds) | asdict(thresholds)

    acts: dict[str, Act] = {"hand over": HandOver(), "advise": Advise("consultation")}

    def holds(condition: Condition) -> bool:
        level = levels[condition.level] if condition.level in levels else float(condition.level)
        return COMPARISONS[condition.sign](assessment.score(condition.score), level)

    for number, case in enumerate(table.cases, 1):
        question = assessment.question(case.question)
        if (question or case.act != "ask") and all(map(holds, case.conditions)):
            if case.act == "ask":
                return Ask(question, number), number
            return (Search(number) if case.act == "search" else acts[case.act]), number
    return Search(), 0


def table_thresholds(situation: Situation, table: PolicyTable | None) -> Thresholds:
    """Return the thresholds of the user, moved by feedback; those of a table replace the defaults."""
    profile = situation.profile
    if table is not None and profile.thresholds == Thresholds():
        own = {name: level for name, level in table.thresholds if name in Thresholds.__dataclass_fields__}
        profile = replace(profile, thresholds=replace(profile.thresholds, **own))  # type: ignore[arg-type]
    return profile.effective_thresholds


def by_table(situation: Situation, table: PolicyTable, name: str) -> Decision:
    """Decide by a table, which does not bound the number of questions; `max_questions` of the situation does.

    Without an assessment its missing scores count as 1. A model that answered in words asks with them.
    """
    assessment = situation.assessment or Assessment()
    act, number = choose_case(table, assessment, table_thresholds(situation, table))
    reasons: tuple[str, ...] = (f"case_{number}",)
    if assessment.reply:
        act, reasons = Ask(assessment.reply), ("model_asked",)
    bound, clarification = situation.max_questions, situation.clarification
    if isinstance(act, Ask) and bound is not None and (clarification.declined or clarification.rounds >= bound):
        act, reasons = Search(act.case), (*reasons, "declined" if clarification.declined else "rounds")
    return Decision(name, act, reasons, situation)


def article(situation: Situation, name: str = "article") -> Decision:
    """Decide by the article's table."""
    return by_table(situation, shipped_policy("article"), name)


def never(situation: Situation) -> Decision:
    """Search in every situation."""
    return Decision("never", Search(options=situation.found.options), ("never",), situation)


def always(situation: Situation) -> Decision:
    """Ask for clarification once before every answer, unless the user declined questions or none are allowed."""
    clarification = situation.clarification
    if clarification.rounds or clarification.declined or situation.max_questions == 0:
        return Decision("always", Search(options=situation.found.options), ("rounds",), situation)
    sentence = sentences(situation)
    question = sentence("Could you say more precisely what you want to know?")
    if situation.found.options:
        question = sentence("Which of these do you mean?")
    return Decision("always", Ask(question, options=situation.found.options), ("always",), situation)


POLICIES: Mapping[str, Policy] = {
    "look_first": look_first, "article": article, "functions": partial(article, name="functions"), "never": never,
    "always": always,
}  # fmt: skip


MAX_OPTIONS = 4

PREVIEW_CHARACTERS = 80

DOMINANT = 0.8
"""Share of all scores from which one group of passages counts as what is meant, without a choice."""


def group_options(found: Sequence[Passage]) -> tuple[Option, ...]:
    """Group passages by the first title or heading in which they differ; the best group comes first.

    There are at least two options, or none: passages with the same text, or all under one heading, leave no choice.

    >>> leave = [Passage("leave.md", "a", 2.0, heading=("Paid",)), Passage("leave.md", "b", 1.5, 9, heading=("Sick",))]
    >>> [option.label for option in group_options(leave)]
    ['Paid', 'Sick']
    """
    distinct = _distinct(found)
    paths = [_path(passage) for passage in distinct]
    folded_paths = [[_folded(step) for step in path] for path in paths]
    depth = len(list(takewhile(lambda steps: len(set(steps)) == 1, zip(*folded_paths, strict=False))))
    groups: dict[str, list[Passage]] = {}
    labels: dict[str, str] = {}
    for passage, path in zip(distinct, paths, strict=True):
        label = path[min(depth, len(path) - 1)]
        folded = _folded(label)
        labels.setdefault(folded, label)
        groups.setdefault(folded, []).append(passage)
    if len(groups) < 2:
        return ()
    ranked = sorted(groups, key=lambda name: -sum(passage.score for passage in groups[name]))
    return tuple(_option(labels[name], groups[name]) for name in ranked[:MAX_OPTIONS])


def narrow_options(found: Sequence[Passage], options: Sequence[Option]) -> tuple[Option, ...]:
    """Return the options within the best one if it has at least half of the passages; else the options themselves.

    >>> leave = [Passage("leave.md", "a", 3.0, heading=("Paid",)), Passage("leave.md", "b", 2.0, 9, heading=("Sick",))]
    >>> found = [*leave, Passage("pay.md", "c", 1.0)]
    >>> [option.label for option in group_options(found)], [option.label for option in narrow_options(found, group_options(found))]
    (['leave.md', 'pay.md'], ['Paid', 'Sick'])
    """
    inner = [passage for passage in found if options and passage_key(passage) in options[0].passages]
    return (len(inner) * 2 >= len(found) and group_options(inner)) or tuple(options)


def top_share(found: Sequence[Passage], options: Sequence[Option]) -> float:
    """Return the share of all scores that the best option has, 0 to 1; 1 if there are no options."""
    # Of several passages with one key the first counts.
    scores = {passage_key(passage): max(passage.score, 0.0) for passage in reversed(found)}
    whole = sum(scores.values())
    if not options or whole <= 0:
        return 1.0
    return max(sum(scores.get(name, 0.0) for name in option.passages) for option in options) / whole


def _distinct(found: Iterable[Passage]) -> list[Passage]:
    """Return the passages without repeated texts and keys, so that every option has passages of its own."""
    seen: set[object] = set()
    distinct: list[Passage] = []
    for passage in found:
        names = {("text", _folded(passage.text)), ("key", passage_key(passage))}
        if not names & seen:
            distinct.append(passage)
        seen |= names
    return distinct


def _path(passage: Passage) -> tuple[str, ...]:
    """Return the title and headings of a passage, outermost first; a heading that repeats the title is omitted."""
    title = passage.title or passage.source
    headings = [each for each in passage.heading if each.strip() and _folded(each) != _folded(title)]
    return (title, *headings)


def _option(label: str, passages: Sequence[Passage]) -> Option:
    words = " ".join(passages[0].text.split())
    label, preview = " ".join(label.split())[:PREVIEW_CHARACTERS], truncate(words, PREVIEW_CHARACTERS)
    return Option(label, len(passages), preview, tuple(map(passage_key, passages)))


def _folded(text: str) -> str:
    return " ".join(fold(text).split())
