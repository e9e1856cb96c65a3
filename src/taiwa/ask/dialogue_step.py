"""Ask back or look it up: `look → assess → policy → Ask | Search | HandOver | Advise → rewrite → [Retrieve] → answer`.

A model only scores; what follows from the scores, and from what the documents hold, is decided by a pure function. Every
decision is a value that holds all it depended on, so it can be kept, shown and made again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Generic, Literal, TypeAlias, TypeVar

from taiwa.ask.answer import Answer
from taiwa.ask.assess_question import AssessmentMethod, assess
from taiwa.ask.decide_search_or_clarify import policy_named
from taiwa.ask.dialogue_text import last_words, reply_language, user_texts
from taiwa.ask.extractive import answer
from taiwa.ask.rewrite import Queries, Seen, find, queries
from taiwa.ask.small_talk import chosen, named, numbered, route_of
from taiwa.ask.types import (
    NOBODY,
    Act,
    Assessment,
    ClarificationState,
    Decision,
    EarlierTurn,
    HandOver,
    HandoverCase,
    Option,
    Policy,
    Route,
    Search,
    SearchEarlierSessions,
    Situation,
    UserProfile,
)
from taiwa.ask.write_clarifying_question import DOMINANT, group_options, narrow_options, top_share
from taiwa.kernel.effects import GetEvidence, Program, Retrieve, notify, perform
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Evidence, Message, Passage, passage_key, user
from taiwa.kernel.records import tag_of, value
from taiwa.kernel.text import guess_language

__all__ = ["AssessBy", "Clarified", "ClarifyOptions", "ask", "clarify"]


A = TypeVar("A")

AssessBy: TypeAlias = AssessmentMethod | Literal["no-model"]
"""How a dialogue is assessed; with `no-model` the documents alone decide."""

Answering: TypeAlias = Callable[[str, tuple[Passage, ...]], Program[A]]

LOOKED_AT = 10

PUBLISHED = ("article", "functions")
"""Policies that judge before anything is looked up."""

UNJUDGED = ("never", "always")
"""Policies that no score moves."""

FRESH = ClarificationState()


@value(tag="clarify-options")
class ClarifyOptions:
    """Options of the dialogue before retrieval.

    - `policy`: when to ask back, one of `POLICIES`; `max_questions` bounds any policy (None: its own bound).
    - `assess_by`: how a model assesses the dialogue; `no-model` needs none, and rewrites nothing either.
    - `k`: number of passages given to the answer. `seen`: what the rewriting sees; `several` lets it write several queries.
    - `recall`: number of earlier dialogues of the user that the assessment sees.
    - `owners`: pairs of a pattern of sources and the contact of a case about them.
    - `catalogue` and `locale`: those of `Situation`.
    """

    policy: str = "look_first"
    max_questions: int | None = None
    assess_by: AssessBy = "auto"
    k: int = 5
    seen: Seen = "user"
    several: bool = True
    recall: int = 0
    owners: tuple[tuple[str, str], ...] = ()
    catalogue: int = 0
    locale: str = ""


DEFAULT = ClarifyOptions()


@value(tag="clarified")
class Clarified:
    """What came of a dialogue before anybody answers.

    `thread` goes with the next turn. `passages` were found for `queries`, where the act is to look; `case` is what a person
    gets, where it is to hand over.
    """

    decision: Decision
    thread: ClarificationState
    queries: Queries | None = None
    passages: tuple[Passage, ...] = ()
    case: HandoverCase | None = None

    @property
    def act(self) -> Act:
        """What is to be done."""
        return self.decision.act


@value(tag="rag-turn")
class RagTurn(Generic[A]):
    """What came of a dialogue, with the answer where one was looked for."""

    clarified: Clarified
    answer: A | None = None

    @property
    def act(self) -> Act:
        """What is to be done."""
        return self.clarified.decision.act

    @property
    def thread(self) -> ClarificationState:
        """What goes with the next turn."""
        return self.clarified.thread


def ask(
    dialogue: Sequence[Message],
    options: ClarifyOptions = DEFAULT,
    *,
    thread: ClarificationState = FRESH,
    person: UserProfile = NOBODY,
    policy: Policy | None = None,
) -> Program[RagTurn[Answer]]:
    """Take the next act of a dialogue: a question back, an answer from passages, or one of the other acts.

    Raises (when run):
        InputError: the user said nothing. ShapeError: the assessment or the answer could not be read.
    """
    found = yield from clarify(dialogue, options, thread=thread, person=person, policy=policy)
    if not isinstance(found.act, Search) or found.queries is None:
        return RagTurn(found)
    language = reply_language(dialogue, person.language, options.locale)
    asked = found.queries.text
    return RagTurn(found, (yield from answer(asked, found.passages, language=language, history=tuple(dialogue)[:-1])))


def clarify(
    dialogue: Sequence[Message],
    options: ClarifyOptions = DEFAULT,
    *,
    thread: ClarificationState = FRESH,
    person: UserProfile = NOBODY,
    policy: Policy | None = None,
) -> Program[Clarified]:
    """Decide the next act of a dialogue, and look up what an answer needs; another `policy` may be given as a function.

    Raises (when run):
        InputError: the user said nothing, or there is no such policy. ShapeError: the assessment could not be read.
    """
    if not user_texts(dialogue):
        raise InputError("there is nothing to assess: the dialogue has no words of the user")
    option = chosen(last_words(dialogue), thread.offered) if thread.offered else None
    course = _DialogueStep(_spelled_out(tuple(dialogue), option), options, thread, person, policy, option)
    yield from course.look()
    decision = yield from course.decide()
    act = decision.act
    yield from notify(f"{decision.policy}: {tag_of(type(act))} ({', '.join(decision.reasons)})", code="decision")
    after = thread.after(act, course.keys)
    if isinstance(act, Search):
        asked = yield from course.queries()
        found = course.meant(act, (yield from course.retrieve(asked)))
        return Clarified(decision, after, asked, found)
    if isinstance(act, HandOver):
        asked = yield from course.queries()
        return Clarified(decision, after, asked, case=course.case(decision, asked))
    return Clarified(decision, after)


def _spelled_out(dialogue: tuple[Message, ...], option: Option | None) -> tuple[Message, ...]:
    """Put the label in the place of a reply that only names an option, such as a number; one that says more stays."""
    if option is None or dialogue[-1].role != "user" or not named(dialogue[-1].text, option):
        return dialogue
    return (*dialogue[:-1], user(option.label))


@dataclass
class _DialogueStep:
    """A dialogue on its way to an act."""

    dialogue: tuple[Message, ...]
    options: ClarifyOptions
    thread: ClarificationState
    person: UserProfile
    policy: Policy | None
    option: Option | None = None
    found: tuple[Passage, ...] = ()
    evidence: Evidence | None = None
    earlier: tuple[EarlierTurn, ...] = ()

    @cached_property
    def route(self) -> Route:
        if self.thread.offered and self.option is None and numbered(last_words(self.dialogue)):
            return "none"  # a number that no option has
        return route_of(last_words(self.dialogue), asked=bool(self.thread.rounds))

    @cached_property
    def wish(self) -> tuple[Message, ...]:
        """The dialogue up to the last words that name anything: `just answer` and `none of these` do not."""
        spoken = [place for place, turn in enumerate(self.dialogue) if turn.role == "user" and turn.text.strip()]
        last = spoken[-2] if self.route in ("just_answer", "none") and len(spoken) > 1 else spoken[-1]
        return tuple(turn for turn in self.dialogue[: last + 1] if turn.role in ("user", "assistant"))

    @property
    def words(self) -> str:
        return self.wish[-1].text

    @property
    def history(self) -> tuple[Message, ...]:
        """What was said before these words, and in their language: another one shares no words, and only drowns them."""
        spoken = guess_language(self.words) if len(self.words.split()) > 2 or not self.words.isascii() else "und"
        if spoken == "und":
            return self.wish[:-1]
        alike = {"und", spoken, *(("ja", "zh") if spoken in ("ja", "zh") else ())}
        return tuple(turn for turn in self.wish[:-1] if guess_language(turn.text) in alike)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(map(passage_key, self.found))

    @property
    def published(self) -> bool:
        return self.policy is None and self.options.policy in PUBLISHED

    def look(self) -> Program[None]:
        """Look once with the words as they stand, and measure; policies that judge first do not look."""
        if self.published:
            return
        self.found = yield from perform(Retrieve(self.words, max(LOOKED_AT, self.options.k), self.history))
        self.evidence = yield from perform(GetEvidence(self.words, self.history))

    def decide(self) -> Program[Decision]:
        policy = self.policy or policy_named(self.options.policy)
        situation = self.situation
        if not self.published and situation.route not in ("", "none"):
            return policy(situation)  # small talk, and a wish for no more questions, are not worth a call
        if self.options.assess_by != "no-model" and (self.policy is not None or self.options.policy not in UNJUDGED):
            situation = replace(situation, assessment=(yield from self.assess()))
        return policy(situation)

    @property
    def situation(self) -> Situation:
        settled = self.thread.settled or self.route == "just_answer"
        thread = replace(self.thread, settled=True) if settled else self.thread
        options = group_options(self.found)
        focus = top_share(self.found, options)
        return Situation(
            self.dialogue,
            person=self.person,
            thread=thread,
            evidence=self.evidence,
            found=self.keys,
            options=() if focus >= DOMINANT else narrow_options(self.found, options),
            focus=round(focus, 4),
            route=self.route,
            bound=self.options.max_questions,
            catalogue=self.options.catalogue,
            locale=self.options.locale,
        )

    def assess(self) -> Program[Assessment]:
        if self.options.recall and self.person.name:
            self.earlier = yield from perform(SearchEarlierSessions(self.person.name, self.words, self.options.recall))
        assess_by = self.options.assess_by
        by: AssessmentMethod = "auto" if assess_by == "no-model" else assess_by
        if self.options.policy == "functions" and assess_by == "auto" and self.policy is None:
            by = "functions"
        return (
            yield from assess(
                self.dialogue,
                by=by,
                about=self.person.facts,
                earlier=tuple(each.words for each in self.earlier),
                needs=self.needs,
                locale=self.options.locale,
            )
        )

    def needs(self, found: Assessment) -> bool:
        """Whether the scores could lead to a question back that only a model can word."""
        limits = self.person.limits
        consults = found.is_consultation <= limits.consultation
        beyond = consults and found.in_internal_docs > limits.documented
        return found.clarity >= limits.unclear or beyond

    def queries(self) -> Program[Queries]:
        """Rewrite what is wanted; without a model its words stand."""
        if self.options.assess_by == "no-model":
            return Queries(self.words)
        several = self.options.several and not self.published
        return (yield from queries(self.wish, seen=self.options.seen, several=several, locale=self.options.locale))

    def retrieve(self, asked: Queries) -> Program[tuple[Passage, ...]]:
        """Look up, and fuse with what the first look found for the words as they stand."""
        if self.published:  # as published: the rewritten question alone
            return (yield from find((asked.text,), self.options.k))
        new = tuple(query for query in asked.all if query != self.words)
        if not new:
            return self.found[: self.options.k]
        return (yield from find(new, self.options.k, known=(self.found,)))

    def meant(self, act: Search, found: tuple[Passage, ...]) -> tuple[Passage, ...]:
        """What was found on the option that was chosen, or is assumed, first; without a model, that alone."""
        option = self.option or (act.options[0] if act.assumption and act.options else None)
        keys = () if option is None else option.passages
        looked = {passage_key(passage): passage for passage in (*found, *self.found)}
        first = tuple(passage for key, passage in looked.items() if key in keys)[: self.options.k]
        if not first or self.options.assess_by == "no-model":
            return first or found
        return (*first, *(passage for passage in found if passage_key(passage) not in keys))[: self.options.k]

    def case(self, decision: Decision, asked: Queries) -> HandoverCase:
        """Everything that a person needs to take over."""
        found = decision.situation.assessment or Assessment()
        evidence = self.evidence or Evidence()
        texts = (found.ask_missing_info, found.res_consultation, found.ask_user_meta_info)
        missing = (*filter(None, texts), *evidence.unresolved_references, *evidence.unknown)
        return HandoverCase(
            dialogue=self.dialogue,
            query=asked.text,
            searched=() if self.published else (self.words,),
            passages=self.found[: self.options.k],
            missing=tuple(dict.fromkeys(missing)),
            owner=_owner(self.found, self.options.owners),
            person=self.person.name,
            reasons=decision.reasons,
        )


def _owner(found: Sequence[Passage], owners: Sequence[tuple[str, str]]) -> str:
    """Whom the best passage concerns, by the first pattern that fits its source."""
    for passage in found:
        for pattern, owner in owners:
            if fnmatchcase(passage.source, pattern):
                return owner
    return ""
