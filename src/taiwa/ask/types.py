"""Acts (Ask, Search, HandOver, Advise), assessment, situation, decision, user profile."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from taiwa.ask.dialogue_text import reply_language
from taiwa.i18n import Translate, dialogue_catalogue
from taiwa.kernel.effects import Effect
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Evidence, Message, Passage
from taiwa.kernel.records import value

__all__ = [
    "NOBODY",
    "SCORES",
    "Act",
    "AdviceKind",
    "Advise",
    "Ask",
    "AskTolerance",
    "Assessment",
    "AssessmentOutput",
    "ClarificationState",
    "ClarifyingQuestions",
    "Decision",
    "EarlierTurn",
    "Feedback",
    "HandOver",
    "HandoverCase",
    "Level",
    "Option",
    "Policy",
    "Route",
    "Search",
    "SearchEarlierSessions",
    "Situation",
    "Source",
    "Thresholds",
    "UserProfile",
    "Verdict",
    "learn_from_feedback",
    "read_verdict",
    "sentences",
]


Level: TypeAlias = Literal[1, 2, 3, 4, 5]
"""1 is most true, 5 least."""

Source: TypeAlias = Literal["typed", "functions", "labels", "decisions"]
"""Written as a typed answer · by the choice of a function · read from probabilities of labels · from the decision wire."""

SCORES = ("clarity", "is_question", "is_consultation", "in_internal_docs", "ask_person")

SURENESS = (0.05, 0.45, 0.65, 0.8, 0.95)
"""How likely a statement is taken to be false when a model writes 1 to 5 and nobody knows how sure it was."""


@value(tag="assessment-output")
class AssessmentOutput:
    """What a model makes of a dialogue. Missing scores count as 1."""

    clarity: Level = 1
    is_question: Level = 1
    is_consultation: Level = 1
    in_internal_docs: Level = 1
    ask_person: Level = 1
    ask_missing_info: str = ""
    res_consultation: str = ""
    ask_user_meta_info: str = ""


@value(tag="clarifying-questions")
class ClarifyingQuestions:
    """Questions back to the user, empty where there is no need."""

    ask_missing_info: str = ""
    res_consultation: str = ""
    ask_user_meta_info: str = ""


@value(tag="assessment")
class Assessment:
    """Five scores, 1 most true and 5 least, and what could be asked back.

    A score is a whole number where a model wrote it, and the expected one where it was read from probabilities. `chances`
    holds these by name, level 1 first, and `confidence` how sure each was: 1 where one level had it all, 0 where all were alike.
    """

    clarity: float = 1
    is_question: float = 1
    is_consultation: float = 1
    in_internal_docs: float = 1
    ask_person: float = 1
    ask_missing_info: str = ""
    res_consultation: str = ""
    ask_user_meta_info: str = ""
    source: Source = "typed"
    chances: tuple[tuple[str, tuple[float, ...]], ...] = ()
    confidence: tuple[tuple[str, float], ...] = ()

    @property
    def sureness(self) -> float | None:
        """How sure the least sure score was; None where nobody told."""
        return min((each for _, each in self.confidence), default=None)

    def unlikely(self, name: str, level: float) -> float:
        """Say how likely a score is at least so high, that is, the statement not true enough.

        >>> Assessment(clarity=4).unlikely("clarity", 2)
        0.8
        """
        chances = dict(self.chances).get(name)
        if chances is not None:
            return min(sum(each for at, each in enumerate(chances, 1) if at >= level), 1.0)
        score = float(getattr(self, name))
        if level <= 1:
            return 1.0
        shifted = min(max(score - (level - 2), 1.0), 5.0)
        low = int(shifted)
        high = min(low + 1, 5)
        return SURENESS[low - 1] + (SURENESS[high - 1] - SURENESS[low - 1]) * (shifted - low)


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
class AskTolerance:
    """How welcome questions back are: a Beta distribution over the chance that one is."""

    welcome: float = PRIOR
    unwelcome: float = PRIOR

    @property
    def mean(self) -> float:
        """The expected chance, within bounds; 0.5 where nothing was learnt.

        >>> AskTolerance().mean, AskTolerance(2, 200).mean
        (0.5, 0.1)
        """
        return min(max(self.welcome / (self.welcome + self.unwelcome), FLOOR), CEILING)

    def after(self, verdict: Verdict, asked: bool) -> "AskTolerance":
        """Learn from one verdict on an act."""
        good, bad = LESSONS[verdict, asked]
        welcome, unwelcome = self.welcome - PRIOR + good, self.unwelcome - PRIOR + bad
        scale = min(1.0, MOST_EVIDENCE / max(welcome + unwelcome, 1e-9))
        return AskTolerance(PRIOR + welcome * scale, PRIOR + unwelcome * scale)


@value(tag="feedback")
class Feedback:
    """What somebody said of an act: `asked` says whether it was a question back, `decision` which one it was."""

    verdict: Verdict
    asked: bool = False
    decision: str = ""


@value(tag="user-profile")
class UserProfile:
    """Somebody who asks: `facts` are what is known of them (department, office …), by name."""

    name: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    language: str = ""
    thresholds: Thresholds = Thresholds()
    patience: AskTolerance = AskTolerance()

    @property
    def limits(self) -> Thresholds:
        """The thresholds as feedback has moved them, within bounds."""
        shift = (0.5 - self.patience.mean) * 4
        if not shift:
            return self.thresholds
        low, high = min(EASIEST, self.thresholds.unclear), max(HARDEST, self.thresholds.unclear)
        return replace(self.thresholds, unclear=min(max(self.thresholds.unclear + shift, low), high))


NOBODY = UserProfile()


def learn_from_feedback(person: UserProfile, feedback: Iterable[Feedback]) -> UserProfile:
    """Return a person as all their feedback has made them, oldest first; what was learnt before is forgotten.

    >>> learn_from_feedback(NOBODY, [Feedback("should_not_have_asked", True)] * 3).patience.mean
    0.2857142857142857
    """
    patience = AskTolerance()
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


AdviceKind: TypeAlias = Literal["greeting", "thanks", "farewell", "command", "chat", "consultation"]
"""What is said to somebody who looks for nothing."""

Route: TypeAlias = Literal["", "greeting", "thanks", "farewell", "command", "person", "just_answer", "none"]
"""What an utterance is, where its words alone tell it; `none` is none of the options that were offered."""


@value(tag="option")
class Option:
    """One thing that may be meant: its label, how many passages are about it, some words of the best, and their names."""

    label: str
    count: int = 1
    preview: str = ""
    passages: tuple[str, ...] = ()


@value(tag="ask")
class Ask:
    """Ask the user back. `case` is the row of the published table that decided, where one did."""

    question: str
    case: int = 0
    options: tuple[Option, ...] = ()


@value(tag="search")
class Search:
    """Answer from the documents. `assumption` says what is assumed where the user was not asked any more."""

    case: int = 0
    options: tuple[Option, ...] = ()
    assumption: str = ""


@value(tag="hand-over")
class HandOver:
    """Give the whole case to a person."""


@value(tag="advise")
class Advise:
    """Reply without looking anything up."""

    kind: AdviceKind


Act: TypeAlias = Ask | Search | HandOver | Advise


@value(tag="clarification-state")
class ClarificationState:
    """What asking back has come to since the last answer.

    `asked` holds the questions and labels that were put to the user, `found` the passages that there were at the last
    question, `offered` its options. `settled`: the user wants no more questions.
    """

    rounds: int = 0
    asked: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    offered: tuple[Option, ...] = ()
    settled: bool = False

    def after(self, act: Act, found: tuple[str, ...]) -> "ClarificationState":
        """Return the thread after an act: one more question, or a fresh beginning."""
        if not isinstance(act, Ask):
            return ClarificationState()
        asked = (*self.asked, act.question, *(option.label for option in act.options))
        return ClarificationState(self.rounds + 1, asked, found, act.options)


@value(tag="situation")
class Situation:
    """All that a decision depends on.

    `assessment` is None where no model scored, `evidence` where the retriever cannot measure. `found` names the passages
    that a first look gave, `options` what they could be about, and `focus` is the part of all scores that one of these has.
    `bound` is the most questions back in a row of any policy, where one is set. `catalogue` is the version of the `dialogue`
    catalogue that words the program's own sentences (0: the present one), and `locale` the language of the user's environment.
    """

    dialogue: tuple[Message, ...]
    assessment: Assessment | None = None
    person: UserProfile = NOBODY
    thread: ClarificationState = ClarificationState()
    evidence: Evidence | None = None
    found: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    focus: float = 0.0
    route: Route = ""
    bound: int | None = None
    catalogue: int = 0
    locale: str = ""


def sentences(situation: Situation) -> Translate:
    """Return the program's own sentences in the language to reply in."""
    language = reply_language(situation.dialogue, situation.person.language, situation.locale)
    return dialogue_catalogue(language, situation.catalogue)


@value(tag="decision")
class Decision:
    """An act, the policy that chose it, why, and all that it depended on.

    `policies.decide(decision.policy, decision.situation)` gives it again. `numbers` are what was weighed.
    """

    policy: str
    act: Act
    reasons: tuple[str, ...]
    situation: Situation
    numbers: tuple[tuple[str, float], ...] = ()


Policy: TypeAlias = Callable[[Situation], Decision]


@value(tag="handover-case")
class HandoverCase:
    """What a person needs to take over: the dialogue, what was looked up and found, what is missing, and whom it may concern."""

    dialogue: tuple[Message, ...]
    query: str
    searched: tuple[str, ...]
    passages: tuple[Passage, ...]
    missing: tuple[str, ...]
    owner: str = ""
    person: str = ""
    reasons: tuple[str, ...] = ()


@value(tag="earlier-turn")
class EarlierTurn:
    """Some words of an earlier turn, and the conversation that it stands in."""

    session: str
    node: str
    words: str


@value(tag="search-earlier-sessions")
class SearchEarlierSessions(Effect[tuple[EarlierTurn, ...]]):
    """Find what a person said in other dialogues that shares words with a text, best first."""

    person: str
    text: str
    limit: int = 3
