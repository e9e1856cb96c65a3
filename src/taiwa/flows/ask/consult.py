"""The documents stage of a turn: `search → assess → policy → Ask | Search | HandOver | Advise → rewrite → [Retrieve] → answer`.

A model only scores; a pure function decides from the scores and the evidence in the documents. A decision is a value that
contains all its inputs, so it can be stored, shown and repeated.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from taiwa.conversation.app import settled
from taiwa.conversation.history import Conversation, PastTurn
from taiwa.conversation.turn_prompt import Material
from taiwa.flows.ask.answer import (
    MAX_ANSWER_TOKENS,
    TURNS_READ,
    answer_material,
    answer_with_citations,
    cite_reply,
    cite_value,
    passages_text,
    read_answer,
    values_in,
)
from taiwa.flows.ask.ask_result import Answer, AskResult, AskTurnOptions, FoundPassage, LookUp
from taiwa.flows.ask.assess_question import assess
from taiwa.flows.ask.decide_search_or_clarify import (
    DOMINANT,
    answerable,
    group_options,
    narrow_options,
    policy_named,
    table_policy,
    top_share,
)
from taiwa.flows.ask.dialogue import (
    REPLY_LANGUAGES,
    Queries,
    announced_topic,
    detect_route,
    is_option_number,
    only_names_option,
    reply_language,
    retrieve_fused,
    rewrite_queries,
    select_option,
    turns,
    user_texts,
)
from taiwa.flows.ask.prompts import load_prompts
from taiwa.flows.ask.quote import (
    PASSAGES_READ,
    PLAIN,
    TermWeights,
    extractive,
    held_share,
    is_negative,
    is_pair,
    quotable,
    quotation_mask,
    read_quotations,
)
from taiwa.flows.ask.types import (
    ANONYMOUS_USER,
    NOT_ASSESSED,
    QUESTIONS,
    Act,
    Advise,
    Assessment,
    ClarificationState,
    ClarifyOptions,
    Decision,
    FirstSearch,
    HandOver,
    HandoverCase,
    Option,
    Policy,
    Route,
    Search,
    Situation,
    UserProfile,
    Wording,
)
from taiwa.i18n import dialogue_catalogue
from taiwa.kernel.effects import Program, Retrieve, by_role, notify, perform
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Evidence, Message, Passage, Request, Response, assistant, passage_key, user
from taiwa.kernel.serialization import Json, parse_json, value
from taiwa.kernel.text import estimate_tokens, guess_language

FIRST_SEARCH_SIZE = 10

PUBLISHED = ("article", "functions")
"""Policies that decide before the first search."""

WITHOUT_SCORES = ("never", "always")
"""Policies that depend on no score."""

DEFAULT = ClarifyOptions()

FRESH = ClarificationState()


@value(tag="clarified")
class Clarified:
    """The next act of a dialogue.

    Pass `clarification` to the next turn; `language` is that of the reply. `passages` were found if the act is `Search`, and `ask`
    answers `query` from them; `case` is set if it is `HandOver`. `searched` are the texts that were searched for, and `evidence` is
    what was found on them.
    """

    decision: Decision
    clarification: ClarificationState
    language: str
    query: str = ""
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
    text: str,
    options: ClarifyOptions = DEFAULT,
    *,
    earlier: Sequence[Message] = (),
    clarification: ClarificationState = FRESH,
    profile: UserProfile = ANONYMOUS_USER,
    policy: Policy | None = None,
) -> Program[Clarified]:
    """Decide what to do about a text of the user, and do it: a clarifying question, an answer from passages, or another act.

    The arguments are those of `clarify`.

    Raises (when run):
        InputError: the text is empty, or the policy is unknown.
        OutputValidationError: the assessment or the answer could not be read.
    """
    turn = yield from clarify(
        text, options, earlier=earlier, clarification=clarification, profile=profile, policy=policy
    )  # fmt: skip
    if not isinstance(turn.act, Search):
        return turn
    own = () if options.table is None else options.table.prompts
    answer = yield from answer_with_citations(
        turn.query, turn.passages, language=turn.language, own_prompts=own, history=earlier
    )
    if answer.doubted:
        yield from notify("the model found no answer in the passages; quoting the nearest ones", code="answer")
        answer = replace(extractive(turn.query, turn.passages, earlier), doubted=True)
    return replace(turn, answer=answer)


def clarify(
    text: str,
    options: ClarifyOptions = DEFAULT,
    *,
    earlier: Sequence[Message] = (),
    clarification: ClarificationState = FRESH,
    profile: UserProfile = ANONYMOUS_USER,
    policy: Policy | None = None,
    known: str = "",
) -> Program[Clarified]:
    """Decide what to do about a text of the user, and retrieve the passages for an answer.

    `earlier` are the turns before it, and the words that are `known` count for the search as those of one more. A `policy` replaces
    that of the options.

    Raises (when run):
        InputError: the text is empty, or the policy is unknown.
        OutputValidationError: the assessment could not be read.
    """
    if not text.strip():
        raise InputError("the text is empty")
    option = select_option(text, clarification.offered) if clarification.offered else None
    # A number alone means nothing to a model or an index.
    said = option.label if option is not None and only_names_option(text, option) else text
    step = _DialogueStep(text, said, turns(earlier), options, clarification, profile, policy, option, known)
    yield from step.search()
    decision = yield from step.decide()
    act = decision.act
    found = Clarified(decision, clarification.after(act, step.passage_keys), step.language)
    if not isinstance(act, Search | HandOver):
        return found
    queries = yield from step.queries()
    query, searched = queries.text, queries.all
    found = replace(found, query=query)
    if isinstance(act, HandOver):
        case = step.case(decision, query)
        return replace(found, case=case, searched=case.searched, evidence=step.evidence)
    searched = (query,) if step.is_published else searched
    passages = step.prefer_option(act, (yield from step.retrieve(searched)))
    return replace(found, passages=passages, searched=searched, evidence=step.evidence)


@dataclass
class _DialogueStep:
    """One run of `clarify`; what the user `said` is the text, or the label of the `option` that it names."""

    text: str
    said: str
    earlier: tuple[Message, ...]
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
    def before(self) -> tuple[Message, ...]:
        """The turns before the user's last text about a subject, which `just answer` and `none of these` are not."""
        asked = [at for at, turn in enumerate(self.earlier) if turn.role == "user"]
        return self.earlier[: asked[-1]] if asked and self.route in ("just_answer", "none") else self.earlier

    @cached_property
    def subject(self) -> str:
        """The user's last text about a subject."""
        return self.earlier[len(self.before)].text if len(self.before) < len(self.earlier) else self.said

    @cached_property
    def query(self) -> str:
        """The text to search for."""
        return announced_topic(self.subject) if self.route == "topic" and not self.is_published else self.subject

    @cached_property
    def locale(self) -> str:
        """The language of the environment; if that is unknown, Japanese if the passages found are Japanese."""
        if self.options.locale in ("ja", "zh") or not any(guess_language(each.text) == "ja" for each in self.found[:3]):
            return self.options.locale
        return "ja"

    @cached_property
    def language(self) -> str:
        return reply_language((*user_texts(self.earlier), self.text), self.profile.language, self.locale)

    @cached_property
    def history(self) -> tuple[Message, ...]:
        """The turns before the query, in its language only: in another one they share no words with the documents sought."""
        known = (user(self.known),) if self.known else ()
        says_much = len(self.query.split()) > 2 or not self.query.isascii()
        language = guess_language(self.query) if self.before and says_much else "und"
        if language == "und":
            return (*known, *self.before)
        similar = {"und", language, *(("ja", "zh") if language in ("ja", "zh") else ())}
        return (*known, *(turn for turn in self.before if guess_language(turn.text) in similar))

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
        found = yield from perform(Retrieve(self.query, max(FIRST_SEARCH_SIZE, self.options.k), self.history))
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
            (*user_texts(self.earlier), self.said), None, self.profile, replace(self.clarification, declined=declined),
            FirstSearch(self.passage_keys, narrowed, round(share, 4), self.evidence), self.route, self.options.max_questions,
            Wording(self.options.catalogue_version, self.locale), self.options.table,
        )  # fmt: skip

    def assess(self) -> Program[Assessment]:
        by, table = self.options.assess_by, self.options.table
        if by == "auto" and self.policy is None and table is None and self.options.policy == "functions":
            by = "functions"
        sentence = dialogue_catalogue(self.language, self.options.catalogue_version)
        open_question = sentence("Could you say more precisely what you want to know?")
        return (yield from by_role("judge", assess(
            (*self.earlier, user(self.said)), by=by, about=self.profile.facts, language=self.language, table=table,
            open_question=open_question,
        )))  # fmt: skip

    def queries(self) -> Program[Queries]:
        """Rewrite the dialogue as queries; without an assessment the text is the query, and the history weighs its terms."""
        if self.options.assess_by in NOT_ASSESSED:
            return Queries(self.query)
        own = () if self.options.table is None else self.options.table.prompts
        rewrite = rewrite_queries(
            (*self.before, user(self.subject)), multiple=not self.is_published, language=self.language, own_prompts=own
        )
        return (yield from by_role("rewrite", rewrite))

    def retrieve(self, queries: tuple[str, ...]) -> Program[tuple[Passage, ...]]:
        """Retrieve with the queries, and fuse the results with those of the first search."""
        if self.is_published:  # which decided before any search, and searches with the rewritten question alone
            found = yield from perform(Retrieve(queries[0], self.options.k))
            self.evidence = found.evidence
            return found.passages
        new = tuple(query for query in queries if query != self.query)
        if not new:
            return with_content(self.found)[: self.options.k]
        return (yield from retrieve_fused(new, self.options.k, known=(self.found,)))

    def prefer_option(self, act: Search, found: tuple[Passage, ...]) -> tuple[Passage, ...]:
        """Put the passages of the chosen or assumed option first; without a model, drop all others."""
        option = self.option or (act.options[0] if act.assumption and act.options else None)
        keys = () if option is None else option.passages
        by_key = {passage_key(passage): passage for passage in (*found, *with_content(self.found))}
        first = tuple(passage for key, passage in by_key.items() if key in keys)[: self.options.k]
        if not first or self.options.assess_by == "no-model":
            return first or found
        return (*first, *(passage for passage in found if passage_key(passage) not in keys))[: self.options.k]

    def written(self, stems: Iterable[str]) -> Iterator[str]:
        """Yield the words of the user that begin with stems, as they were written."""
        said = "\n".join((*user_texts(self.earlier), self.said))
        found = (re.search(rf"{re.escape(stem)}[^\W\u3040-\u9fff]*", said, re.IGNORECASE) for stem in stems)
        yield from (match[0] for match in found if match)

    def case(self, decision: Decision, query: str) -> HandoverCase:
        assessment = decision.situation.assessment or Assessment()
        evidence = self.evidence or Evidence()
        texts = filter(None, map(assessment.question, QUESTIONS))
        missing = (*texts, *evidence.unresolved_references, *self.written(evidence.unknown))
        searched, passages = () if self.is_published else (self.query,), self.found[: self.options.k]
        return HandoverCase(
            (*self.earlier, user(self.said)), query, searched, passages, tuple(dict.fromkeys(missing)), self.profile.name,
            decision.reasons,
        )  # fmt: skip


# --- in a turn --------------------------------------------------------------------------------------------------------

BROAD_WORDS = 4
"""A text of at most this number of words may have several meanings."""

TOKENS_READ = 500
"""Tokens up to which a model reads more than `PASSAGES_READ` passages."""

LATIN = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")

ONLY_HEADINGS = re.compile(r"(?:\s*#{1,6} [^\n]*)*\s*")

WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")

MIN_PASSAGES = 20
"""Number of passages from which rare words can be distinguished from common ones."""

MIN_HELD = 1 / 3
"""Share of the content of a question in a quoted passage below which the text warns, if there are few passages.

Of 118 questions of MTRAG to folders of five passages 11 are warned about or refused, and 94 of 118 to another folder.
"""

MIN_HELD_PAIRS = 1 / 2
"""The same for content in pairs of Chinese, Japanese or Korean characters, which are rarer than words, for any number of passages.

Of 720 questions to folders of five passages (JSQuAD, JaQuAD) 2 % are warned about or refused, and 97 % to another folder.
"""


@dataclass(frozen=True)
class Consulted:
    """What was decided about a text of the user, and what was found for it.

    `only_answers`: the app does nothing but answer from documents, so that what they do not answer is not answered at all; else the
    model continues as in any turn, and reads the passages as far as there are some.
    """

    found: Clarified
    text: str
    history: tuple[Message, ...]
    options: AskTurnOptions
    term_weights: TermWeights
    only_answers: bool

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages for an answer."""
        return self.found.passages if isinstance(self.found.act, Search) else ()

    @property
    def needs_model(self) -> bool:
        """Whether a model writes the reply; else the program asks back, hands over, or quotes."""
        if isinstance(self.found.act, Search):
            return not self.options.is_extractive and bool(self.passages or not self.only_answers)
        return isinstance(self.found.act, Advise) and not self.only_answers

    @property
    def material(self) -> Material | None:
        """What the model reads before it replies; None without passages."""
        if not self.passages:
            return None
        table = self.options.clarify.table
        own = () if table is None else table.prompts
        prompts = load_prompts(self.found.language if self.found.language in REPLY_LANGUAGES else "en").replaced_by(own)
        if self.options.quote or self.only_answers:
            wanted, asked = answer_material(self.found.query, self.passages, self.found.language, own)
            return Material(prompts.sections["quote"] if self.options.quote else wanted, asked, TURNS_READ // 2)
        asked = prompts.message(self.text)
        # In the order of their documents: a part is read behind that on which it rests.
        read = sorted(self._read, key=lambda each: (each.source, each.start))
        before = prompts.before(passages_text(read, asked, numbered=False))
        shown, mark = prompts.exchanges(), prompts.message("")
        return Material(prompts.sections["reply"], asked, before=before, exchanges=shown, mark=mark)

    @cached_property
    def _read(self) -> tuple[Passage, ...]:
        """The passages that a model reads for a reply that is more than an answer: more than usual of short ones."""
        sizes = accumulate(estimate_tokens(each.text) for each in self.passages)
        return self.passages[: max(PASSAGES_READ, sum(size <= TOKENS_READ for size in sizes))]

    def limited(self, request: Request) -> Request:
        """Return the request for an answer from documents alone, which does not vary and is short; of others as it is."""
        if not self.only_answers and not self.options.quote:
            return request
        sampling = settled(request.sampling)
        if self.options.quote and self.passages:
            request = replace(request, constraint=quotation_mask(quotable(self.passages)))
        return replace(request, sampling=replace(sampling, max_tokens=sampling.max_tokens or MAX_ANSWER_TOKENS))

    def read(self, response: Response) -> Answer:
        """Check the reply of a model that did not refuse, and quote the passages where it found no answer in them."""
        if self.options.quote:
            answer = read_quotations(self.found.query, response.text, self.passages)
        else:
            answer = read_answer(self.found.query, response, self.passages, self.history, self.term_weights)
        quoted = self.quoted() if answer.doubted else None
        return answer if quoted is None else replace(quoted, doubted=True)

    def quoted(self) -> Answer | None:
        """Answer with sentences of the passages; None if there was no search."""
        if not isinstance(self.found.act, Search):
            return None
        return extractive(self.found.query, self.passages, self.history, self.term_weights)

    def by_program(self) -> tuple[AskResult, str]:
        """Reply without a model: ask back, hand over, or quote; return the result, and its text."""
        result = self.result(self.quoted())
        return result, result.render_text()

    def cited(self, text: str, value: Json = None, *, is_typed: bool = False) -> tuple[str, Answer | None]:
        """Return a reply that is more than an answer, with the citations of what restates the passages."""
        if not self.passages:
            return text, None
        query = self.found.query
        return (text, cite_value(query, value, self._read)) if is_typed else cite_reply(query, text, self._read)

    def result(self, answer: Answer | None, words: str = "") -> AskResult:
        """Return the result of the stage; `words` are those of `AskResult`."""
        found = self.found
        offered = found.decision.situation.clarification.offered
        # A user who has chosen is not asked to choose again, and options without an answer would contradict it.
        unanswered = answer is not None and not answer.documented
        also = () if offered or unanswered or words else other_meanings(found, self.text)
        case = found.case
        passages = found.passages or (() if case is None else case.passages)
        clarification = replace(found.clarification, offered=also) if also else found.clarification
        uncertain = answer is not None and not words and _is_uncertain(found, answer, self.term_weights)
        return AskResult(
            found.decision, clarification, found.language,
            LookUp(found.query, found.searched, tuple(map(FoundPassage.of, passages))),
            answer, case, uncertain, self.options, words,
        )  # fmt: skip


def consult(
    conversation: Conversation,
    text: str,
    options: AskTurnOptions,
    term_weights: TermWeights | None = None,
    *,
    only_answers: bool = True,
    known: str = "",
) -> Program[Consulted]:
    """Decide what to do about a text, and retrieve; `term_weights` defines the terms of extractive answers, and `known` are words of
    the state, which count for the search as those of an earlier turn.

    Raises (when run):
        OutputValidationError: the assessment could not be read.
    """
    if options.notice:
        yield from notify(options.notice, code="place", warning=True)
    clarification = _drop_offer(clarification_of(conversation), text)
    earlier = dialogue_of(conversation.turns, is_typed=conversation.app.output_type is not None)
    found = yield from clarify(
        text, options.clarify, earlier=earlier, clarification=clarification, profile=options.profile, known=known
    )  # fmt: skip
    return Consulted(found, text, earlier, options, term_weights or PLAIN, only_answers)


def clarification_of(conversation: Conversation) -> ClarificationState:
    """Return the clarification state after the last turn.

    Raises:
        CorruptError: the findings of the turn are malformed.
    """
    result = AskResult.of(conversation.turns[-1].findings) if conversation.turns else None
    return ClarificationState() if result is None else result.clarification


def dialogue_of(turns: Sequence[PastTurn], *, is_typed: bool = False) -> tuple[Message, ...]:
    """Return the turns as messages; answers without their lists of sources, and of typed ones the values, without their names."""
    answers = (_values(past.said) if is_typed else past.said for past in turns)
    return tuple(each for past, said in zip(turns, answers, strict=True) for each in (user(past.user), assistant(said)))


def _values(said: str) -> str:
    try:
        return "\n".join(str(part) for _, part in values_in(parse_json(said)))
    except ValueError:  # an earlier app had no type
        return said


def with_content(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Leave out passages of headings alone, which answer nothing, unless there are no others."""
    return tuple(each for each in passages if not ONLY_HEADINGS.fullmatch(each.text)) or tuple(passages)


def other_meanings(found: Clarified, text: str) -> tuple[Option, ...]:
    """Return the meanings of a short text as options: groups of the passages, or of those of the best group."""
    declined = found.decision.situation.clarification.declined
    if not isinstance(found.decision.act, Search) or declined or _count_words(text) > BROAD_WORDS:
        return ()
    passages = [passage for passage in found.passages if not ONLY_HEADINGS.fullmatch(passage.text)]
    return narrow_options(passages, group_options(passages))


def _count_words(text: str) -> float:
    """Estimate the number of words; two Chinese or Japanese characters count as one."""
    return len(LATIN.findall(text)) + len(WIDE.findall(text)) / 2


def _drop_offer(clarification: ClarificationState, text: str) -> ClarificationState:
    """Drop the options offered beside an answer, unless the text is a number or a whole label: anything else is a new question."""
    if clarification.rounds or not clarification.offered or is_option_number(text):
        return clarification
    option = select_option(text, clarification.offered)
    whole = option is not None and (text.strip().casefold() == option.label.casefold() or _count_words(text) <= 1)
    return clarification if whole else replace(clarification, offered=())


def _is_uncertain(found: Clarified, answer: Answer, term_weights: TermWeights) -> bool:
    """Whether the documents may not contain an answer.

    A sentence of a model that restates a passage settles it; a model that found no answer is believed unless the evidence
    is strong. With few passages no word is rare, so the content is counted; that of text without spaces always is.
    """
    if not answer.documented and answer.claims:
        return True  # the nearest parts, which do not answer
    chance = answerable(found.evidence, len(found.passages))
    thresholds = found.decision.situation.profile.thresholds
    if answer.source == "generated" and all(claim.supported for claim in answer.claims):
        return False
    if is_negative(answer.query) and not any(is_negative(each.text) for each in answer.claims if each.supported):
        return True  # the quoted sentences may say the opposite
    if answer.doubted and chance < thresholds.strong_evidence:
        return True
    has_rare_words = found.evidence is None or found.evidence.passages >= MIN_PASSAGES
    if has_rare_words and chance < thresholds.weak_evidence:
        return True
    content, cited = term_weights.content(answer.query), {each.passage for each in answer.citations}
    texts = (
        "\n".join((each.title, *each.heading, each.text)) for each in answer.passages if passage_key(each) in cited
    )
    quoted = [frozenset(term_weights.terms(each)) for each in texts]
    least = MIN_HELD_PAIRS if any(map(is_pair, content)) else 0.0 if has_rare_words else MIN_HELD
    return bool(content and quoted) and max(held_share(content, terms) for terms in quoted) < least
