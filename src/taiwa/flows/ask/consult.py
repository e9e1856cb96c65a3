"""The documents stage of a turn: decide whether to ask back, retrieve, show the model the passages, and check what it wrote."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from taiwa.conversation.app import settled
from taiwa.conversation.history import Conversation, PastTurn
from taiwa.conversation.turn_prompt import Material
from taiwa.flows.ask.answer import (
    MAX_ANSWER_TOKENS,
    PASSAGES_READ,
    PLAIN,
    TURNS_READ,
    Answer,
    TermWeights,
    answer_material,
    cite_reply,
    cite_value,
    extractive,
    held_share,
    is_pair,
    passages_text,
    quotable,
    quotation_mask,
    read_answer,
    read_quotations,
)
from taiwa.flows.ask.ask_result import AskResult, AskTurnOptions, FoundPassage, LookUp
from taiwa.flows.ask.clarify_then_retrieve import Clarified, clarify
from taiwa.flows.ask.decide_search_or_clarify import answerable, group_options, narrow_options
from taiwa.flows.ask.prompts import load_prompts
from taiwa.flows.ask.read_dialogue import REPLY_LANGUAGES, is_option_number, select_option
from taiwa.flows.ask.types import Act, Advise, ClarificationState, Option, Search
from taiwa.flows.ask.words import is_negative
from taiwa.i18n import dialogue_catalogue
from taiwa.kernel.effects import Program, notify
from taiwa.kernel.messages import Message, Passage, Request, Response, assistant, passage_key, user
from taiwa.kernel.serialization import Json

BROAD_WORDS = 4
"""A text of at most this number of words may have several meanings."""

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


@dataclass(frozen=True, slots=True)
class Consulted:
    """What was decided about a text of the user, and what was found for it.

    `only_answers`: the app does nothing but answer from documents, so that what they do not answer is not answered at all; else the
    model continues as in any turn, and reads the passages as far as there are some.
    """

    found: Clarified
    act: Act
    text: str
    query: str
    """The question that is searched for."""
    history: tuple[Message, ...]
    options: AskTurnOptions
    term_weights: TermWeights
    only_answers: bool

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages for an answer."""
        return self.found.passages if isinstance(self.act, Search) else ()

    @property
    def needs_model(self) -> bool:
        """Whether a model writes the reply; else the program asks back, hands over, or quotes."""
        if isinstance(self.act, Search):
            return not self.options.is_extractive and bool(self.passages or not self.only_answers)
        return isinstance(self.act, Advise) and not self.only_answers

    @property
    def material(self) -> Material | None:
        """What the model reads before it replies; None without passages."""
        if not self.passages:
            return None
        table = self.options.clarify.table
        own = () if table is None else table.prompts
        prompts = load_prompts(self.found.language if self.found.language in REPLY_LANGUAGES else "en").replaced_by(own)
        if self.options.quote or self.only_answers:
            wanted, asked = answer_material(self.query, self.passages, self.found.language, own)
            return Material(prompts.sections["quote"] if self.options.quote else wanted, asked, TURNS_READ // 2)
        asked = passages_text(self.passages, f"{prompts.sections['message']} {self.text}")
        return Material(prompts.sections["reply"], asked)

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
            answer = read_quotations(self.query, response.text, self.passages)
        else:
            answer = read_answer(self.query, response, self.passages, self.history, self.term_weights)
        quoted = self.quoted() if answer.doubted else None
        return answer if quoted is None else replace(quoted, doubted=True)

    def quoted(self) -> Answer | None:
        """Answer with sentences of the passages; None if there was no search."""
        if not isinstance(self.act, Search) or self.found.queries is None:
            return None
        return extractive(self.query, self.passages, self.history, self.term_weights)

    def by_program(self) -> tuple[AskResult, str]:
        """Reply without a model: ask back, hand over, or quote; return the result, and its text."""
        result = self.result(self.quoted())
        return result, self.render(result)

    def cited(self, text: str, value: Json = None, *, is_typed: bool = False) -> tuple[str, Answer | None]:
        """Return a reply that is more than an answer, with the citations of what restates the passages."""
        if not self.passages:
            return text, None
        read = self.passages[:PASSAGES_READ]
        return (text, cite_value(self.query, value, read)) if is_typed else cite_reply(self.query, text, read)

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
            LookUp("" if found.queries is None else self.query, found.searched, tuple(map(FoundPassage.of, passages))),
            answer, case, uncertain, self.options, words,
        )  # fmt: skip

    def render(self, result: AskResult) -> str:
        """Return the text for the user, in the language of the dialogue."""
        return result.render_text(dialogue_catalogue(self.found.language, self.options.clarify.catalogue_version))


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
    dialogue = (*dialogue_of(conversation.turns), user(text))
    found = yield from clarify(
        dialogue, options.clarify, clarification=clarification, profile=options.profile, known=known
    )  # fmt: skip
    query = text if found.queries is None else found.queries.text
    return Consulted(
        found, found.decision.act, text, query, dialogue[:-1], options, term_weights or PLAIN, only_answers
    )


def clarification_of(conversation: Conversation) -> ClarificationState:
    """Return the clarification state after the last turn.

    Raises:
        CorruptError: the findings of the turn are malformed.
    """
    result = AskResult.of(conversation.turns[-1].findings) if conversation.turns else None
    return ClarificationState() if result is None else result.clarification


def dialogue_of(turns: Sequence[PastTurn]) -> tuple[Message, ...]:
    """Return the turns as messages; answers without their lists of sources."""
    return tuple(message for past in turns for message in (user(past.user), assistant(past.said)))


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
    chance = answerable(found.evidence, len(found.passages))
    thresholds = found.decision.situation.profile.thresholds
    if answer.source == "generated" and all(claim.supported for claim in answer.claims):
        return False
    if is_negative(answer.query) and not any(is_negative(each.words) for each in answer.citations):
        return True  # the quoted sentences may say the opposite
    if answer.doubted and chance < thresholds.strong_evidence:
        return True
    has_rare_words = found.evidence is None or found.evidence.passages >= MIN_PASSAGES
    if has_rare_words and chance < thresholds.weak_evidence:
        return True
    content, cited = term_weights.content(answer.query), {each.passage for each in answer.citations}
    quoted = [term_weights.terms_of(each) for each in answer.passages if passage_key(each) in cited]
    least = MIN_HELD_PAIRS if any(map(is_pair, content)) else 0.0 if has_rare_words else MIN_HELD
    return bool(content and quoted) and max(held_share(content, terms) for terms in quoted) < least
