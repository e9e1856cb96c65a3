"""Values of the dialogue before retrieval: assessment, user profile, acts, situation, decision and options."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Evidence, Message, Passage
from taiwa.kernel.serialization import value

Level: TypeAlias = Literal[1, 2, 3, 4, 5]
"""How true a statement is: 1 certainly, 5 certainly not."""


@value(tag="policy-condition")
class Condition:
    """A comparison of a score with a threshold, which is a number or its name: `clarity >= unclear`."""

    score: str
    sign: str
    level: str


@value(tag="policy-case")
class PolicyCase:
    """One case of a policy: an act (`ask`, `search`, `hand over`, `advise`) if all conditions hold, and the question to ask."""

    conditions: tuple[Condition, ...]
    act: str
    question: str = ""


@value(tag="policy-function")
class PolicyFunction:
    """A function that the model may choose: the fields that it fills in, and the scores that the choice implies."""

    name: str
    about: str
    fields: tuple[str, ...]
    implies: tuple[tuple[str, float], ...] = ()


@value(tag="policy-table")
class PolicyTable:
    """A policy of a file: names of scores and questions, thresholds, functions, cases in order, and sections of the prompts."""

    name: str
    scores: tuple[str, ...]
    questions: tuple[str, ...]
    thresholds: tuple[tuple[str, float], ...] = ()
    functions: tuple[PolicyFunction, ...] = ()
    cases: tuple[PolicyCase, ...] = ()
    prompts: tuple[tuple[str, str], ...] = ()


AssessmentSource: TypeAlias = Literal["typed", "functions"]
"""A typed answer, or the choice of a function."""

SCORES = ("clarity", "is_question", "is_consultation", "in_internal_docs", "ask_person")

QUESTIONS = ("ask_missing_info", "res_consultation", "ask_user_meta_info")

P_FALSE = (0.05, 0.45, 0.65, 0.8, 0.95)
"""Probability that a statement is false, by the level that a model wrote."""


@value(tag="assessment")
class Assessment:
    """The scores of statements, 1 (true) to 5 (false), and the possible clarifying questions, by name.

    `reply` is a clarifying question of a model that answered in words instead.
    """

    scores: tuple[tuple[str, float], ...] = ()
    questions: tuple[tuple[str, str], ...] = ()
    source: AssessmentSource = "typed"
    reply: str = ""

    def score(self, name: str) -> float:
        """Return a score; 1 if it was not assessed."""
        return float(dict(self.scores).get(name, 1))

    def question(self, name: str) -> str:
        """Return a clarifying question, "" if there is none."""
        return dict(self.questions).get(name, "")

    def probability_at_least(self, name: str, level: float) -> float:
        """Return the probability that a score is at least `level`, that is, that the statement is not true enough.

        >>> Assessment((("clarity", 4),)).probability_at_least("clarity", 2)
        0.8
        """
        if level <= 1:
            return 1.0
        # P_FALSE holds for a threshold of 2; another threshold shifts the scale. Between levels it is linear.
        shifted = min(max(self.score(name) - (level - 2), 1.0), 5.0)
        low = int(shifted)
        high = min(low + 1, 5)
        return P_FALSE[low - 1] + (P_FALSE[high - 1] - P_FALSE[low - 1]) * (shifted - low)


Verdict: TypeAlias = Literal["good", "bad", "should_have_asked", "should_not_have_asked"]
"""Feedback on the last act: right, wrong, a clarifying question was missing, a clarifying question was not needed."""

VERDICTS: dict[str, Verdict] = {
    "should_have_asked": "should_have_asked", "should_not_have_asked": "should_not_have_asked",
    "good": "good", "+": "good", "👍": "good", "良い": "good", "よい": "good", "好": "good",
    "bad": "bad", "-": "bad", "👎": "bad", "悪い": "bad", "不好": "bad",
    "ask": "should_have_asked", "聞いて": "should_have_asked", "应该问": "should_have_asked",
    "noask": "should_not_have_asked", "聞かないで": "should_not_have_asked", "不该问": "should_not_have_asked",
}  # fmt: skip


def parse_verdict(text: str) -> Verdict:
    """Parse a verdict as users write it: `good`, `bad`, `should have asked`, `noask`, 👍 …

    Raises:
        InputError: the verdict is unknown.
    """
    plain = text.strip().strip("/").casefold()
    spelling = plain.replace("-", "_").replace(" ", "_") if len(plain) > 1 else plain
    verdict = VERDICTS.get(spelling) or VERDICTS.get(plain)
    if verdict is None:
        raise InputError(f"unknown verdict {text[:40]!r}; choose one of {', '.join(get_args(Verdict))}")
    return verdict


@value(tag="thresholds")
class Thresholds:
    """Scores from which a statement counts, and how readily to ask for clarification.

    - `unclear`: a dialogue is unclear if its score of clarity is at least this.
    - `question`, `consultation`, `documented`, `ask_person`: the statement counts as true up to this score.
    - `eagerness`: 0 asks least, 1 most. `max_questions`: the most clarifying questions in a row.
    - `weak_evidence`, `strong_evidence`: probability of an answer in the documents below which the evidence is weak, and from
      which it is strong.
    """

    unclear: float = 2
    question: float = 2
    consultation: float = 2
    documented: float = 2
    ask_person: float = 1
    eagerness: float = 0.5
    max_questions: int = 2
    weak_evidence: float = 0.25
    strong_evidence: float = 0.75


PRIOR = 2.0

MIN_TOLERANCE, MAX_TOLERANCE = 0.1, 0.9
"""Bounds of the learned tolerance: feedback can neither force clarifying questions nor rule them out."""

MAX_EVENTS = 24.0
"""Weight of all feedback together, in events, so that the tolerance can change again."""

MIN_UNCLEAR, MAX_UNCLEAR = 1.5, 4.0
"""Bounds within which feedback moves the threshold `unclear`."""

EVIDENCE: dict[tuple[Verdict, bool], tuple[float, float]] = {
    ("good", True): (1.0, 0.0),
    ("bad", True): (0.0, 1.0),
    ("good", False): (0.0, 0.25),  # a right answer is weak evidence about a question that was not asked
    ("bad", False): (0.5, 0.0),  # and a wrong one may have other reasons
    ("should_have_asked", False): (1.0, 0.0),
    ("should_have_asked", True): (1.0, 0.0),
    ("should_not_have_asked", True): (0.0, 1.0),
    ("should_not_have_asked", False): (0.0, 1.0),
}
"""By verdict and whether the act was a clarifying question: what it adds to the counts of welcome and unwelcome questions."""


@value(tag="ask-tolerance")
class AskTolerance:
    """How welcome clarifying questions are: a Beta distribution of the probability that one is."""

    welcome: float = PRIOR
    unwelcome: float = PRIOR

    @property
    def mean(self) -> float:
        """The expected probability, within bounds; 0.5 before any feedback.

        >>> AskTolerance().mean, AskTolerance(2, 200).mean
        (0.5, 0.1)
        """
        return min(max(self.welcome / (self.welcome + self.unwelcome), MIN_TOLERANCE), MAX_TOLERANCE)

    def after(self, verdict: Verdict, asked: bool) -> "AskTolerance":
        """Return the distribution after one verdict; `asked` says whether the act was a clarifying question."""
        good, bad = EVIDENCE[verdict, asked]
        welcome, unwelcome = self.welcome - PRIOR + good, self.unwelcome - PRIOR + bad
        scale = min(1.0, MAX_EVENTS / max(welcome + unwelcome, 1e-9))
        return AskTolerance(PRIOR + welcome * scale, PRIOR + unwelcome * scale)


@value(tag="feedback")
class Feedback:
    """A verdict on an act: `asked` says whether the act was a clarifying question, `decision` identifies it."""

    verdict: Verdict
    asked: bool = False
    decision: str = ""


@value(tag="user-profile")
class UserProfile:
    """A user: `facts` are what is known of them by name (department, office …), `tolerance` is learned from feedback."""

    name: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    language: str = ""
    thresholds: Thresholds = Thresholds()
    tolerance: AskTolerance = AskTolerance()

    @property
    def effective_thresholds(self) -> Thresholds:
        """The thresholds with `unclear` moved by feedback, within bounds."""
        shift = (0.5 - self.tolerance.mean) * 4
        if not shift:
            return self.thresholds
        unclear = self.thresholds.unclear
        low, high = min(MIN_UNCLEAR, unclear), max(MAX_UNCLEAR, unclear)
        return replace(self.thresholds, unclear=min(max(unclear + shift, low), high))


ANONYMOUS_USER = UserProfile()


def learn_from_feedback(profile: UserProfile, feedback: Iterable[Feedback]) -> UserProfile:
    """Return a profile with the tolerance that all of its feedback teaches, oldest first; the former tolerance is dropped.

    >>> learn_from_feedback(ANONYMOUS_USER, [Feedback("should_not_have_asked", True)] * 3).tolerance.mean
    0.2857142857142857
    """
    tolerance = AskTolerance()
    for each in feedback:
        tolerance = tolerance.after(each.verdict, each.asked)
    return replace(profile, tolerance=tolerance)


AdviceKind: TypeAlias = Literal["greeting", "thanks", "farewell", "command", "chat", "consultation"]
"""The kinds of replies that need no document."""

Route: TypeAlias = Literal["", "greeting", "thanks", "farewell", "command", "person", "just_answer", "none", "topic"]
"""Classes of texts recognised by their words alone: `none` rejects all offered options, `person` asks for a human, and
`topic` announces a question on a subject without asking it."""


@value(tag="option")
class Option:
    """One possible meaning: its label, the number and the keys of the passages about it, and the beginning of the best one."""

    label: str
    count: int = 1
    preview: str = ""
    passages: tuple[str, ...] = ()


@value(tag="ask")
class Ask:
    """Ask a clarifying question. `case` is the row of the published table that decided, 0 for other policies."""

    question: str
    case: int = 0
    options: tuple[Option, ...] = ()


@value(tag="search")
class Search:
    """Answer from the documents. `assumption` states what is assumed instead of asking again."""

    case: int = 0
    options: tuple[Option, ...] = ()
    assumption: str = ""


@value(tag="hand-over")
class HandOver:
    """Hand the case over to a human."""


@value(tag="advise")
class Advise:
    """Reply without a search."""

    kind: AdviceKind


Act: TypeAlias = Ask | Search | HandOver | Advise


@value(tag="clarification-state")
class ClarificationState:
    """The clarifying questions since the last answer.

    `rounds` counts them, `asked` holds their texts and labels, `passage_keys` the passages found at the last of them and
    `offered` its options. `declined`: the user wants no more questions.
    """

    rounds: int = 0
    asked: tuple[str, ...] = ()
    passage_keys: tuple[str, ...] = ()
    offered: tuple[Option, ...] = ()
    declined: bool = False

    def after(self, act: Act, passage_keys: tuple[str, ...]) -> "ClarificationState":
        """Return the state after an act: one more question, or a fresh state."""
        if not isinstance(act, Ask):
            return ClarificationState()
        asked = (*self.asked, act.question, *(option.label for option in act.options))
        return ClarificationState(self.rounds + 1, asked, passage_keys, act.options)


@value(tag="first-search")
class FirstSearch:
    """What a first search found: the keys of its passages, what they could be about as `options`, and the share of all scores that the
    best option has. `evidence` is None if the retriever cannot measure it.
    """

    passage_keys: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    top_share: float = 0.0
    evidence: Evidence | None = None


@value(tag="wording")
class Wording:
    """How the program words its own sentences: by a version of the `dialogue` catalogue (0: the present one), and the language of the
    user's environment.
    """

    catalogue_version: int = 0
    locale: str = ""


@value(tag="situation")
class Situation:
    """Everything that a decision depends on.

    - `dialogue`: the texts of the user, oldest first.
    - `assessment`: None if no model assessed the dialogue. `found`: empty if the policy decides before a search.
    - `max_questions`: the most clarifying questions in a row for any policy; None for the policy's own bound.
    - `table`: the policy of a file, which decides instead of the named one if it has cases.
    """

    dialogue: tuple[str, ...]
    assessment: Assessment | None = None
    profile: UserProfile = ANONYMOUS_USER
    clarification: ClarificationState = ClarificationState()
    found: FirstSearch = FirstSearch()
    route: Route = ""
    max_questions: int | None = None
    wording: Wording = Wording()
    table: PolicyTable | None = None


@value(tag="decision")
class Decision:
    """An act with the policy that chose it, the reasons, and all its inputs.

    `decide(decision.policy, decision.situation)` returns it again. `numbers` are the probabilities and costs that were compared.
    """

    policy: str
    act: Act
    reasons: tuple[str, ...]
    situation: Situation
    numbers: tuple[tuple[str, float], ...] = ()


Policy: TypeAlias = Callable[[Situation], Decision]


@value(tag="handover-case")
class HandoverCase:
    """What a human needs to take over: the dialogue, what was searched and found, and what is missing."""

    dialogue: tuple[Message, ...]
    query: str
    searched: tuple[str, ...]
    passages: tuple[Passage, ...]
    missing: tuple[str, ...]
    user: str = ""
    reasons: tuple[str, ...] = ()


AssessBy: TypeAlias = Literal["documents", "auto", "typed", "functions", "no-model"]
"""How a dialogue is assessed; with `documents` and `no-model` they alone decide, and with `no-model` no model answers either."""

ASSESS_BY: tuple[AssessBy, ...] = get_args(AssessBy)

NOT_ASSESSED = ("documents", "no-model")


@value(tag="clarify-options")
class ClarifyOptions:
    """Options of the dialogue before retrieval.

    - `policy`: when to ask for clarification, one of `POLICIES`; `max_questions` limits any policy (None: its own limit).
    - `assess_by`: how a model assesses the dialogue; `documents` and `no-model` use none, and rewrite nothing.
    - `k`: number of passages for the answer.
    - `catalogue_version` and `locale`: those of `Wording`.
    - `table`: the policy of a file, with its prompts and thresholds; it replaces `policy`.
    """

    policy: str = "look_first"
    max_questions: int | None = None
    assess_by: AssessBy = "auto"
    k: int = 5
    catalogue_version: int = 0
    locale: str = ""
    table: PolicyTable | None = None
