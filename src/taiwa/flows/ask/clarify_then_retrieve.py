"""The dialogue before an answer: `search → assess → policy → Ask | Search | HandOver | Advise → rewrite → [Retrieve] → answer`.

A model only scores; a pure function decides from the scores and the evidence in the documents. A decision is a value that
contains all its inputs, so it can be stored, shown and repeated.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from taiwa.flows.ask.answer import Answer, answer_with_citations, extractive
from taiwa.flows.ask.assess_question import AssessmentMethod, assess
from taiwa.flows.ask.decide_search_or_clarify import (
    DOMINANT,
    group_options,
    narrow_options,
    policy_named,
    table_policy,
    top_share,
)
from taiwa.flows.ask.read_dialogue import (
    announced_topic,
    detect_route,
    is_option_number,
    only_names_option,
    reply_language,
    select_option,
    user_texts,
)
from taiwa.flows.ask.rewrite import Queries, retrieve_fused, rewrite_queries
from taiwa.flows.ask.types import (
    ANONYMOUS_USER,
    QUESTIONS,
    Act,
    Assessment,
    ClarificationState,
    Decision,
    FirstSearch,
    HandOver,
    HandoverCase,
    Option,
    Policy,
    PolicyTable,
    Route,
    Search,
    Situation,
    UserProfile,
    Wording,
)
from taiwa.i18n import dialogue_catalogue
from taiwa.kernel.effects import Program, Retrieve, by_role, notify, perform
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Evidence, Message, Passage, passage_key, user
from taiwa.kernel.serialization import value
from taiwa.kernel.text import guess_language

AssessBy: TypeAlias = AssessmentMethod | Literal["documents", "no-model"]
"""How a dialogue is assessed; with `documents` and `no-model` they alone decide, and with `no-model` no model answers either."""

ASSESS_BY: tuple[AssessBy, ...] = ("documents", "auto", "typed", "functions", "no-model")

NOT_ASSESSED = ("documents", "no-model")

FIRST_SEARCH_SIZE = 10

PUBLISHED = ("article", "functions")
"""Policies that decide before the first search."""

WITHOUT_SCORES = ("never", "always")
"""Policies that depend on no score."""

FRESH = ClarificationState()


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


DEFAULT = ClarifyOptions()


@value(tag="clarified")
class Clarified:
    """The next act of a dialogue.

    Pass `clarification` to the next turn; `language` is that of the reply. `passages` were found for `queries` if the act is
    `Search`, and `ask` answers from them; `case` is set if it is `HandOver`. `searched` are the texts that were searched for, and
    `evidence` is what was found on them.
    """

    decision: Decision
    clarification: ClarificationState
    language: str
    queries: Queries | None = None
    passages: tuple[Passage, ...] = ()
    case: HandoverCase | None = None
    answer: Answer | None = None
    searched: tuple[str, ...] = ()
    evidence: Evidence | None = None

    @property
    def act(self) -> Act:
        """The act that was decided."""
        return self.decision.act


def ask(
    dialogue: Sequence[Message],
    options: ClarifyOptions = DEFAULT,
    *,
    clarification: ClarificationState = FRESH,
    profile: UserProfile = ANONYMOUS_USER,
    policy: Policy | None = None,
) -> Program[Clarified]:
    """Decide the next act of a dialogue and perform it: a clarifying question, an answer from passages, or another act.

    Raises (when run):
        InputError: the dialogue has no text of the user.
        OutputValidationError: the assessment or the answer could not be read.
    """
    turn = yield from clarify(dialogue, options, clarification=clarification, profile=profile, policy=policy)
    if not isinstance(turn.act, Search) or turn.queries is None:
        return turn
    own = () if options.table is None else options.table.prompts
    query, history = turn.queries.text, tuple(dialogue)[:-1]
    answer = yield from answer_with_citations(
        query, turn.passages, language=turn.language, own_prompts=own, history=history
    )
    if answer.doubted:
        yield from notify("the model found no answer in the passages; quoting the nearest ones", code="answer")
        answer = replace(extractive(query, turn.passages, history), doubted=True)
    return replace(turn, answer=answer)


def clarify(
    dialogue: Sequence[Message],
    options: ClarifyOptions = DEFAULT,
    *,
    clarification: ClarificationState = FRESH,
    profile: UserProfile = ANONYMOUS_USER,
    policy: Policy | None = None,
    known: str = "",
) -> Program[Clarified]:
    """Decide the next act of a dialogue, and retrieve the passages for an answer; a `policy` replaces that of the options. The words
    that are `known` count for the search as those of an earlier turn.

    Raises (when run):
        InputError: the dialogue has no text of the user, or the policy is unknown.
        OutputValidationError: the assessment could not be read.
    """
    texts = user_texts(dialogue)
    if not texts:
        raise InputError("the dialogue has no text of the user")
    option = select_option(texts[-1], clarification.offered) if clarification.offered else None
    turns, said = tuple(dialogue), texts[-1]
    if option is not None and turns[-1].role == "user" and only_names_option(said, option):
        said = option.label  # a number alone means nothing to a model or an index
        turns = (*turns[:-1], user(said))
    step = _DialogueStep(turns, texts, said, options, clarification, profile, policy, option, known)
    yield from step.search()
    decision = yield from step.decide()
    act = decision.act
    after = clarification.after(act, step.passage_keys)
    if isinstance(act, Search):
        queries = yield from step.queries()
        searched = (queries.text,) if step.is_published else queries.all
        found = step.prefer_option(act, (yield from step.retrieve(searched)))
        return Clarified(decision, after, step.language, queries, found, searched=searched, evidence=step.evidence)
    if isinstance(act, HandOver):
        queries = yield from step.queries()
        case = step.case(decision, queries)
        return Clarified(
            decision, after, step.language, queries, case=case, searched=case.searched, evidence=step.evidence
        )
    return Clarified(decision, after, step.language)


@dataclass
class _DialogueStep:
    """One run of `clarify`; `texts` are those of the user, and `said` is the last one, or the label of the `option` that it names."""

    dialogue: tuple[Message, ...]
    texts: tuple[str, ...]
    said: str
    options: ClarifyOptions
    clarification: ClarificationState
    profile: UserProfile
    policy: Policy | None
    option: Option | None = None
    known: str = ""
    found: tuple[Passage, ...] = field(default=(), init=False)
    evidence: Evidence | None = field(default=None, init=False)

    @cached_property
    def route(self) -> Route:
        if self.clarification.offered and self.option is None and is_option_number(self.said):
            return "none"  # a number that no option has
        return detect_route(self.said, asked=bool(self.clarification.rounds))

    @cached_property
    def last(self) -> int:
        """The place, from the end, of the user's last text about a subject, which `just answer` and `none of these` are not."""
        return -2 if self.route in ("just_answer", "none") and len(self.texts) > 1 else -1

    @cached_property
    def relevant_dialogue(self) -> tuple[Message, ...]:
        """The dialogue up to the user's last text about a subject."""
        texts = [index for index, turn in enumerate(self.dialogue) if turn.role == "user" and turn.text.strip()]
        return tuple(turn for turn in self.dialogue[: texts[self.last] + 1] if turn.role in ("user", "assistant"))

    @cached_property
    def text(self) -> str:
        """The text to search for."""
        text = self.said if self.last == -1 else self.texts[self.last]
        return announced_topic(text) if self.route == "topic" and not self.is_published else text

    @cached_property
    def locale(self) -> str:
        """The language of the environment; if that is unknown, Japanese if the passages found are Japanese."""
        if self.options.locale in ("ja", "zh") or not any(guess_language(each.text) == "ja" for each in self.found[:3]):
            return self.options.locale
        return "ja"

    @cached_property
    def language(self) -> str:
        return reply_language(self.texts, self.profile.language, self.locale)

    @cached_property
    def history(self) -> tuple[Message, ...]:
        """The turns before the text, in its language only: in another one they share no words with the documents sought."""
        known = (user(self.known),) if self.known else ()
        earlier = self.relevant_dialogue[:-1]
        says_much = len(self.text.split()) > 2 or not self.text.isascii()
        language = guess_language(self.text) if earlier and says_much else "und"
        if language == "und":
            return (*known, *earlier)
        similar = {"und", language, *(("ja", "zh") if language in ("ja", "zh") else ())}
        return (*known, *(turn for turn in earlier if guess_language(turn.text) in similar))

    @property
    def passage_keys(self) -> tuple[str, ...]:
        return tuple(map(passage_key, self.found))

    @property
    def is_published(self) -> bool:
        table = self.options.table
        return self.policy is None and (self.options.policy in PUBLISHED if table is None else bool(table.cases))

    def search(self) -> Program[None]:
        """Search with the text as written and measure the evidence, unless the policy decides before the search."""
        if self.is_published:
            return
        found = yield from perform(Retrieve(self.text, max(FIRST_SEARCH_SIZE, self.options.k), self.history))
        self.found, self.evidence = found.passages, found.evidence

    def decide(self) -> Program[Decision]:
        table = self.options.table
        policy = self.policy or (policy_named(self.options.policy) if table is None else table_policy(table))
        situation = self.situation
        if not self.is_published and situation.route not in ("", "none"):
            return policy(situation)  # small talk and a refusal of questions are not worth a call
        needs_scores = self.policy is not None or table is not None or self.options.policy not in WITHOUT_SCORES
        if self.options.assess_by not in NOT_ASSESSED and needs_scores:
            assessment = yield from self.assess()
            situation = replace(situation, assessment=assessment)
        return policy(situation)

    @property
    def situation(self) -> Situation:
        declined = self.clarification.declined or self.route == "just_answer"
        options = group_options(self.found)
        share = top_share(self.found, options)
        narrowed = () if share >= DOMINANT else narrow_options(self.found, options)
        return Situation(
            self.dialogue, None, self.profile, replace(self.clarification, declined=declined),
            FirstSearch(self.passage_keys, narrowed, round(share, 4), self.evidence), self.route, self.options.max_questions,
            Wording(self.options.catalogue_version, self.locale), self.options.table,
        )  # fmt: skip

    def assess(self) -> Program[Assessment]:
        by: AssessmentMethod
        match self.options.assess_by:
            case "documents" | "no-model":  # not reached: they assess nothing
                by = "auto"
            case chosen:
                by = chosen
        if by == "auto" and self.policy is None and self.options.table is None and self.options.policy == "functions":
            by = "functions"
        sentence = dialogue_catalogue(self.language, self.options.catalogue_version)
        open_question = sentence("Could you say more precisely what you want to know?")
        return (yield from by_role("judge", assess(
            self.dialogue, by=by, about=self.profile.facts,
            language=self.language, table=self.options.table,
            open_question=open_question,
        )))  # fmt: skip

    def queries(self) -> Program[Queries]:
        """Rewrite the dialogue as queries; without an assessment the text is the query, and the history weighs its terms."""
        if self.options.assess_by in NOT_ASSESSED:
            return Queries(self.text)
        own = () if self.options.table is None else self.options.table.prompts
        rewrite = rewrite_queries(
            self.relevant_dialogue, multiple=not self.is_published, language=self.language, own_prompts=own
        )
        return (yield from by_role("rewrite", rewrite))

    def retrieve(self, queries: tuple[str, ...]) -> Program[tuple[Passage, ...]]:
        """Retrieve with the queries, and fuse the results with those of the first search."""
        if self.is_published:  # which decided before any search, and searches with the rewritten question alone
            found = yield from perform(Retrieve(queries[0], self.options.k))
            self.evidence = found.evidence
            return found.passages
        new = tuple(query for query in queries if query != self.text)
        if not new:
            return self.found[: self.options.k]
        return (yield from retrieve_fused(new, self.options.k, known=(self.found,)))

    def prefer_option(self, act: Search, found: tuple[Passage, ...]) -> tuple[Passage, ...]:
        """Put the passages of the chosen or assumed option first; without a model, drop all others."""
        option = self.option or (act.options[0] if act.assumption and act.options else None)
        keys = () if option is None else option.passages
        by_key = {passage_key(passage): passage for passage in (*found, *self.found)}
        first = tuple(passage for key, passage in by_key.items() if key in keys)[: self.options.k]
        if not first or self.options.assess_by == "no-model":
            return first or found
        return (*first, *(passage for passage in found if passage_key(passage) not in keys))[: self.options.k]

    def written(self, stems: Iterable[str]) -> Iterator[str]:
        """Yield the words of the user that begin with stems, as they were written."""
        said = "\n".join((*self.texts[:-1], self.said))
        found = (re.search(rf"{re.escape(stem)}[^\W\u3040-\u9fff]*", said, re.IGNORECASE) for stem in stems)
        yield from (match[0] for match in found if match)

    def case(self, decision: Decision, queries: Queries) -> HandoverCase:
        assessment = decision.situation.assessment or Assessment()
        evidence = self.evidence or Evidence()
        texts = filter(None, map(assessment.question, QUESTIONS))
        missing = (*texts, *evidence.unresolved_references, *self.written(evidence.unknown))
        searched, passages = () if self.is_published else (self.text,), self.found[: self.options.k]
        return HandoverCase(
            self.dialogue, queries.text, searched, passages, tuple(dict.fromkeys(missing)), self.profile.name,
            decision.reasons,
        )  # fmt: skip
