"""Answers from documents: `taiwa ask` with a model and without, beside a RAG of a few lines, on published questions.

Each question is asked once, in its dialogue. Of a set in which every question can be answered, every third one is asked without
the passages that answer it, so that refusals count as well.

What is known decides what is measured: with short expected answers whether one of them stands in the answer, with any the F1
of their words, and with cited claims whether the quotation is in a passage that answers. A claim is false although it is
shown as supported if the question cannot be answered, or if its quotation is in no passage that answers and the answer is not
right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from evals.dialogue.answering import answer_items, judge_answer, normalized_words, word_f1
from evals.real.peers import Messages, Peers
from evals.real.task import (
    COST_COLUMNS,
    WAY_COLUMNS,
    Found,
    RealTask,
    reasons,
    sample,
    share_column,
    share_fields,
    time_fields,
)
from taiwa.apps.catalog import load_app
from taiwa.conversation.history import Conversation, add_turn, begin
from taiwa.evals.data import DataSet, Item
from taiwa.evals.report import (
    Column,
    SetReport,
    bootstrap_mean,
    decimal_with_interval,
    interval_json,
    number_field,
    rounded,
)
from taiwa.evals.retrieval import Corpora, DialogueSample, Finder, QuestionSet, digest_of_sets, read_sample
from taiwa.evals.run import EvalRow, Job
from taiwa.flows.ask.ask_result import AskTurnOptions
from taiwa.flows.ask.types import ASSESS_BY, ClarifyOptions
from taiwa.flows.turn import say
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.sessions.ask_resources import MAX_PASSAGES, default_assessment

DEFAULT_WAYS = ("taiwa", "taiwa:no-model", "rag")
WAYS = (*DEFAULT_WAYS, "taiwa:documents", "taiwa:auto", "taiwa:never", "taiwa:look_first")
SHORT = 10
"""Words of an expected answer up to which it must stand in the answer as it is."""
WITHHOLD_EACH = 3
RAG_PASSAGES = 3
NOT_FOUND = "NOT FOUND"
RAG_PROMPT = """\
Answer the question from these passages, in one or two sentences. If they do not answer it, reply only: {not_found}

{passages}

Question: {question}"""


def answer_data(sets: Sequence[QuestionSet], limit: int | None, seed: int) -> DataSet:
    """Return questions of each set, with those that are asked without their passages.

    Raises:
        InputError: a set has no usable question.
    """
    items: list[Item] = []
    for one in sets:
        found = answer_items((one,))
        if not found:
            raise InputError(f"{one.name}: no row says whether the documents answer it (read as {one.format})")
        every = all(read_sample(item).answerable for item in found)
        marked = [  # before the draw, so that a larger limit withholds from the same questions
            replace(
                item, more={"sample": dict(item.more), "withheld": every and place % WITHHOLD_EACH == WITHHOLD_EACH - 1}
            )
            for place, item in enumerate(found)
        ]
        items += sample(marked, limit, seed)
    return DataSet(", ".join(one.name for one in sets), digest_of_sets(tuple(sets)), tuple(items))


def sample_of(item: Item) -> DialogueSample:
    """Return the sample of an item."""
    return read_sample(replace(item, more=cast("dict[str, Json]", item.more["sample"])))


def history_of(sample: DialogueSample) -> Conversation:
    """Return the conversation before the question, with the answers of the data."""
    conversation, asked = begin(load_app("ask").with_params({})), ""
    for role, text in sample.turns[:-1]:
        if role == "user":
            asked = f"{asked}\n{text}".strip()
        elif asked:
            conversation, asked = add_turn(conversation, asked, text, {}), ""
    return conversation


def rag_messages(sample: DialogueSample, finder: Finder) -> Messages:
    """Return the messages of the RAG: the dialogue, and its last question under the best passages."""
    passages = "\n\n".join(each.text for each in finder.find(sample.last, RAG_PASSAGES))
    prompt = RAG_PROMPT.format(not_found=NOT_FOUND, passages=passages, question=sample.last)
    return [*({"role": role, "content": text} for role, text in sample.turns[:-1]), {"role": "user", "content": prompt}]


@dataclass(kw_only=True)
class AnswerTask(RealTask):
    """The task of `answer` on a real model."""

    corpora: Corpora
    name: str = "answer"

    @property
    def options(self) -> Mapping[str, Json]:
        """Everything that a row depends on besides way, item and model."""
        return {**super().options, "passages": self.corpora.digest}

    def _finder(self, item: Item, sample: DialogueSample) -> Finder:
        withheld = sample.relevant if item.more.get("withheld") else ()
        return self.corpora.finder(item.kind, withheld, sample.history)

    async def by_taiwa(self, job: Job, limits: UsageLimits) -> tuple[Found, RunUsage]:
        """Take one turn of the app `ask`; a variant is a policy, or a method of assessment."""
        backend, _, variant = job.setting.partition(":")
        sample = sample_of(job.item)
        finder = self._finder(job.item, sample)
        conversation, terms = history_of(sample), finder.index.analyzer
        ours = self.ours(backend)
        clarify = ClarifyOptions(k=MAX_PASSAGES, assess_by=default_assessment(ours.required_model))
        if variant in ASSESS_BY:
            clarify = replace(clarify, assess_by=variant)
        elif variant:
            clarify = replace(clarify, policy=variant)
        conversation = replace(conversation, app=replace(conversation.app, sampling=self.real.sampling))
        turn = say(sample.last, documents=AskTurnOptions(clarify, terms=terms.name), term_weights=terms)
        done = await ours.runtime(limits, retriever=finder).run_result(turn(conversation))
        result = done.value[0].findings.documents
        assert result is not None, "the app has documents"
        found: Found = {
            "valid": True, "refused": not result.is_answered, "asked": bool(result.question_back), "text": result.answer_text,
        }  # fmt: skip
        if result.answer is not None and result.is_answered:
            judged = judge_answer(result.answer, sample, finder)
            found |= {
                "claims": judged["claims"],
                "unsupported": judged["unsupported"],
                "right_citations": judged["right"],
            }
        return found, done.spent

    async def by_peer(self, job: Job, peers: Peers) -> Found:
        """Answer by the RAG: the best passages by BM25, and one call."""
        sample = sample_of(job.item)
        text = await peers.complete(rag_messages(sample, self._finder(job.item, sample)))
        return {"valid": True, "refused": NOT_FOUND in text, "asked": False, "text": text}

    def score(self, item: Item, found: Found) -> Found:
        """Compare an answer with what is known of the question."""
        sample = sample_of(item)
        there = bool(sample.answerable) and not item.more.get("withheld")
        return score_answer(found, sample.answers, there=there)


def score_answer(found: Mapping[str, Json], answers: Sequence[str], *, there: bool) -> Found:
    """Return the marks of an answer to a question that the documents answer if it is `there`.

    >>> score_answer({"refused": False, "text": "It opens at nine."}, ["nine"], there=True)
    {'answered': True, 'right': True, 'f1': 0.4}
    >>> score_answer({"refused": False, "text": "The board, from three offers."}, ["three … board"], there=True)["right"]
    True
    >>> score_answer({"refused": False, "text": "Nine.", "claims": 1, "unsupported": 0}, ["nine"], there=False)
    {'unanswerable_answered': True, 'false_supported': True}
    """
    refused = found.get("refused") is not False
    supported = None if "claims" not in found else number(found, "claims") > number(found, "unsupported")
    if not there:
        marks: Found = {"unanswerable_answered": not refused}
        return marks if supported is None else {**marks, "false_supported": supported and not refused}
    marks = {"answered": not refused}
    text = "" if refused else str(found.get("text", ""))
    short = [each for each in answers if len(normalized_words(each)) <= SHORT]
    if short:
        marks["right"] = any(_stands_in(each, text) for each in short)
    if answers:
        marks["f1"] = round(max(word_f1(text, each) for each in answers), 6)
    if supported is not None:
        marks["right_passage"] = number(found, "right_citations") > 0
        marks["false_supported"] = supported and not marks["right_passage"] and not marks.get("right", False)
    return marks


def number(found: Mapping[str, Json], name: str) -> int:
    """Return a count of a row; 0 if it is missing."""
    count = found.get(name)
    return count if isinstance(count, int) else 0


def _stands_in(answer: str, text: str) -> bool:
    """Whether an answer stands in a text, or all its parts between ` … `, in any order."""
    said = f" {' '.join(normalized_words(text))} "
    return all(f" {' '.join(normalized_words(part))} " in said for part in answer.split(" … "))


def _line(rows: Sequence[EvalRow]) -> Found:
    scores = [number_field(row, "f1") for row in rows if "f1" in row.found]
    return {
        **share_fields(rows, "answered"), **share_fields(rows, "right"), **share_fields(rows, "unanswerable_answered"),
        **share_fields(rows, "right_passage"), **share_fields(rows, "false_supported"), **share_fields(rows, "asked"),
        "f1": rounded(sum(scores) / len(scores)) if scores else None, "f1_interval": interval_json(bootstrap_mean(scores)),
        **reasons(rows), **time_fields(rows),
    }  # fmt: skip


REPORT = SetReport(
    _line,
    (
        *WAY_COLUMNS,
        share_column("answered %", "answered"),
        share_column("right %", "right"),
        Column("F1", decimal_with_interval("f1"), figure=True),
        share_column("right passage %", "right_passage"),
        share_column("unanswerable, answered %", "unanswerable_answered"),
        share_column("false, shown as supported %", "false_supported"),
        share_column("asked back %", "asked"),
        *COST_COLUMNS,
    ),
    "f1",
    "F1 of the words of answers",
    (
        "Answered, right, F1 and right passage: of the questions that the passages answer. Right: a short expected answer stands in the answer; a refusal is wrong.",
        "Right passage and false: of the answers with cited claims. Intervals at 95 %: Wilson's for shares, of 1,000 draws of the items for means.",
    ),
)
