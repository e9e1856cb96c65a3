"""What can be done next in a dialogue, what a decision depends on, and the decision itself: values that can be kept and read again."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from taiwa.flows.assessment import Assessment
from taiwa.flows.material import tongue
from taiwa.flows.person import NOBODY, Person
from taiwa.i18n import Translate, dialogue_catalogue
from taiwa.kernel.records import value
from taiwa.kernel.values import Evidence, Message, Passage

__all__ = [
    "Act", "Advise", "Ask", "Case", "Decision", "HandOver", "Kind", "Look", "Option", "Policy", "Route", "Situation", "Thread",
    "key_of", "sentences",
]  # fmt: skip

Kind: TypeAlias = Literal["greeting", "thanks", "farewell", "command", "chat", "consultation"]
"""What is said to somebody who looks for nothing."""
Route: TypeAlias = Literal["", "greeting", "thanks", "farewell", "command", "person", "just_answer", "none"]
"""What an utterance is, where its words alone tell it; `none` is none of the options that were offered."""


def key_of(passage: Passage) -> str:
    """Name a passage: two results with one name are the same passage."""
    return passage.id or f"{passage.source}#{passage.start}-{passage.start + len(passage.text)}"


@value
class Option:
    """One thing that may be meant: its label, how many passages are about it, some words of the best, and their names."""

    label: str
    count: int = 1
    preview: str = ""
    passages: tuple[str, ...] = ()


@value
class Ask:
    """Ask the user back. `case` is the row of the published table that decided, where one did."""

    question: str
    case: int = 0
    options: tuple[Option, ...] = ()


@value
class Look:
    """Answer from the documents. `assumption` says what is assumed where the user was not asked any more."""

    case: int = 0
    options: tuple[Option, ...] = ()
    assumption: str = ""


@value
class HandOver:
    """Give the whole case to a person."""


@value
class Advise:
    """Reply without looking anything up."""

    kind: Kind


Act: TypeAlias = Ask | Look | HandOver | Advise


@value
class Thread:
    """What asking back has come to since the last answer.

    `asked` holds the questions and labels that were put to the user, `found` the passages that there were at the last
    question, `offered` its options. `settled`: the user wants no more questions.
    """

    rounds: int = 0
    asked: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    offered: tuple[Option, ...] = ()
    settled: bool = False

    def after(self, act: Act, found: tuple[str, ...]) -> "Thread":
        """Return the thread after an act: one more question, or a fresh beginning."""
        if not isinstance(act, Ask):
            return Thread()
        asked = (*self.asked, act.question, *(option.label for option in act.options))
        return Thread(self.rounds + 1, asked, found, act.options)


@value
class Situation:
    """All that a decision depends on.

    `assessment` is None where no model scored, `evidence` where the retriever cannot measure. `found` names the passages
    that a first look gave, `options` what they could be about, and `focus` is the part of all scores that one of these has.
    `bound` is the most questions back in a row of any policy, where one is set. `catalogue` is the version of the `dialogue`
    catalogue that words the program's own sentences (0: the present one), and `locale` the language of the user's environment.
    """

    dialogue: tuple[Message, ...]
    assessment: Assessment | None = None
    person: Person = NOBODY
    thread: Thread = Thread()
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
    language = tongue(situation.dialogue, situation.person.language, situation.locale)
    return dialogue_catalogue(language, situation.catalogue)


@value
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


@value
class Case:
    """What a person needs to take over: the dialogue, what was looked up and found, what is missing, and whom it may concern."""

    dialogue: tuple[Message, ...]
    query: str
    searched: tuple[str, ...]
    passages: tuple[Passage, ...]
    missing: tuple[str, ...]
    owner: str = ""
    person: str = ""
    reasons: tuple[str, ...] = ()
