"""The four works over small sets: what is measured without a model, and what a scripted one is asked and comes to."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evals.dialogue.answering import CITED, EXTRACTIVE, WITHOUT, AnsweringTask, answer_items, normalized_words, word_f1
from evals.dialogue.clarifying import NO_MODEL, ClarifyingTask, clarify_items
from evals.dialogue.report import dialogue_chart, dialogue_report
from evals.dialogue.rewriting import HUMAN_REWRITE, LAST_TURN, WEIGHTED_HISTORY, RewritingTask
from taiwa.evals.data import DataSet, Item
from taiwa.evals.report import NO_FIGURE, Report, to_markdown
from taiwa.evals.retrieval import Corpora, DialogueSample, QuestionSet, RetrievalTask, passage_of, retrieval_items
from taiwa.evals.run import Evaluation, RunOptions, Task
from taiwa.kernel.errors import ModelError
from taiwa.kernel.messages import Passage, Request
from taiwa.models.scripted import scripted_model

PASSAGES = (
    passage_of("paid", "Paid leave is asked for in the portal, two weeks before.", "Paid leave"),
    passage_of("sick", "Sick leave needs a note from the doctor from day three.", "Sick leave"),
    passage_of("trains", "Trains are booked in the travel tool of the portal.", "Trains"),
    passage_of("hotels", "Hotels cost at most 120 euro a night.", "Hotels"),
)
SICK = (("user", "Tell me of sick leave."), ("assistant", "It is leave."), ("user", "Who writes the note?"))
TURNS = (
    DialogueSample("sick", SICK, False, "Who writes the note for sick leave?", ("sick",), ("the doctor",), True),
    DialogueSample(
        "form",
        (("user", "Who has to sign this form in the portal?"),),
        True,
        replies=("The leave form of the portal.",),
    ),
    DialogueSample("hotel", (("user", "How much may hotels cost?"),), False, "", ("hotels",), ("120 euro",), True),
    DialogueSample("moon", (("user", "Zebra crossings on moons?"),), None, answerable=False),
)
ONE = QuestionSet("leave", "test", "0" * 64, TURNS, PASSAGES)


@pytest.fixture
def corpora() -> Iterator[Corpora]:
    found = Corpora.of([ONE])
    yield found
    found.close()


def reported(work: Any, items: tuple[Item, ...], folder: Path | None = None) -> Report:
    async def run(evaluation: Evaluation) -> None:
        async for _ in evaluation.run():
            pass

    checked: Task = work
    with Evaluation(checked, DataSet("leave", "0" * 64, items), RunOptions(width=1, folder=folder)) as evaluation:
        asyncio.run(run(evaluation))
        return dialogue_report(evaluation)


def by_setting(report: Report) -> dict[str, Any]:
    return {str(line["setting"]): line for line in report.lines}


def test_without_a_model_it_is_asked_where_words_point_at_nothing(corpora: Corpora) -> None:
    report = reported(ClarifyingTask(corpora), clarify_items([ONE]))

    found = by_setting(report)
    assert list(found) == [NO_MODEL, "few words", "weak evidence", "pointing at nothing"]
    line = found[NO_MODEL]
    assert (line["n"], line["to_ask"], line["asked"], line["f1"], line["auc"]) == (3, 1, 1, 1.0, 1.0)
    assert (line["cost_3"], line["never_ask_cost_3"], line["always_ask_cost_3"]) == (0.0, 1.0, 0.666667)
    assert line["rounds"] == pytest.approx(1 / 3, abs=1e-5)
    assert line["why"] == {"unresolved_references+options": 1}
    assert found["pointing at nothing"]["f1"] is None
    assert NO_FIGURE not in to_markdown(report)
    assert {bar.label for bar in dialogue_chart(report).bars} == {f"leave: {name}" for name in found}


def test_a_models_scores_go_to_every_policy(corpora: Corpora) -> None:
    def scores(request: Request) -> str:
        unclear = "sign this form" in str(request.messages)
        told = {
            "clarity": 4 if unclear else 1,
            "is_question": 1,
            "is_consultation": 5,
            "in_internal_docs": 1,
            "ask_person": 5,
        }
        return json.dumps(told | {"ask_missing_info": "What is it?" if unclear else ""})

    model = scripted_model(*[scores] * 40, capabilities=frozenset())
    work = ClarifyingTask(corpora, given_model=model, policies=("look_first", "article"))

    report = reported(work, tuple(item for item in clarify_items([ONE]) if len(item.more["turns"]) == 1))  # type: ignore[arg-type]

    found = by_setting(report)
    assert list(found)[-2:] == ["look_first", "article"]
    assert (found["article"]["recall"], found["article"]["brier"] is not None) == (1.0, True)
    assert found["article"]["rounds"] >= 1
    assert all(line["auc"] is None for line in report.without_scripted_figures().lines)
    assert NO_FIGURE in to_markdown(report)


def test_a_row_that_failed_counts_as_not_asked(corpora: Corpora) -> None:
    model = scripted_model(*[ModelError("down")] * 9, capabilities=frozenset())
    work = ClarifyingTask(corpora, given_model=model, policies=("article",))

    line = by_setting(reported(work, clarify_items([ONE])))["article"]

    assert (line["failed"], line["recall"], line["n"], line["to_ask"]) == (3, 0.0, 3, 1)


def test_ways_to_a_query_are_compared_by_what_they_find(corpora: Corpora) -> None:
    items = retrieval_items([ONE], rewritten=True)

    report = reported(RewritingTask(corpora), items)

    found = by_setting(report)
    assert [item.id for item in items] == ["leave/sick"]
    assert list(found) == [LAST_TURN, "all user turns", WEIGHTED_HISTORY, HUMAN_REWRITE]
    assert found[HUMAN_REWRITE]["ndcg10"] == found[WEIGHTED_HISTORY]["ndcg10"] == 1.0
    assert (
        found[LAST_TURN]["gain"],
        found[HUMAN_REWRITE]["gain"]["against"],
        found[HUMAN_REWRITE]["gain"]["pairs"],
    ) == (None, LAST_TURN, 1)


def test_a_rewriting_is_written_once_and_looked_up_alone_and_fused(corpora: Corpora) -> None:
    model = scripted_model("Zebra crossings")

    found = by_setting(reported(RewritingTask(corpora, given_model=model), retrieval_items([ONE], rewritten=True)))

    assert len(model.requests) == 1
    # What the question is about is kept in a bad rewriting; fused with the user's own words it loses nothing either.
    assert (found["model rewrite"]["ndcg10"], found["model rewrite, fused"]["ndcg10"]) == (1.0, 1.0)
    assert (found["model rewrite"]["requests"], found["model rewrite, fused"]["requests"]) == (1, 0)


def test_what_a_dialogue_has_given_is_not_found_again(corpora: Corpora) -> None:
    finder = corpora.finder("leave", ["sick"])

    assert [passage.id for passage in finder.find("sick leave", 2)][:1] == ["paid"]
    assert [passage.id for passage in corpora.finder("leave").find("sick leave", 1)] == ["sick"]


def test_questions_of_dialogues_are_looked_up_with_and_without_their_history(corpora: Corpora) -> None:
    report = reported(RetrievalTask(corpora, dialogues=True), retrieval_items([ONE], rewritten=False))

    found = by_setting(report)
    assert list(found) == ["question", "question in its dialogue"]
    assert found["question in its dialogue"]["mrr"] == 1.0
    assert found["question"]["p50_ms"] > 0


def test_extracts_stand_in_the_right_passage_and_what_is_not_there_is_refused(corpora: Corpora) -> None:
    items = answer_items([ONE])

    report = reported(AnsweringTask(corpora), items)

    found = by_setting(report)
    assert [item.id for item in items] == ["leave/sick", "leave/hotel", "leave/moon"]
    line, without = found[EXTRACTIVE], found[WITHOUT.format(EXTRACTIVE)]
    assert (line["answerable"], line["unanswerable"], line["quotes_standing"]) == (2, 1, 1.0)
    assert (line["refused_unanswerable"], line["refused_answerable"], line["holds"]) == (1.0, 0.0, 1.0)
    assert (without["answerable"], without["unanswerable"]) == (0, 2)
    assert any("of the evidence alone" in note for note in report.notes)


def test_a_model_is_held_to_what_it_quotes(corpora: Corpora) -> None:
    def told(request: Request) -> str:
        text = request.messages[-1].text
        sentence = next((line for line in text.splitlines() if "120 euro" in line), None)
        return "NOT FOUND" if sentence is None else f"{sentence} [1] Breakfast is free. [2]"

    model = scripted_model(*[told] * 4, capabilities=frozenset())
    items = tuple(item for item in answer_items([ONE]) if item.id == "leave/hotel")

    found = by_setting(reported(AnsweringTask(corpora, given_model=model), items))

    line, without = found[CITED], found[WITHOUT.format(CITED)]
    assert (line["citations"], line["citation_precision"], line["unsupported_claims"], line["holds"]) == (
        1,
        1.0,
        1,
        1.0,
    )
    assert (without["refused_unanswerable"], without["unanswerable"]) == (1.0, 1)


def test_a_second_run_goes_on_with_the_rows_of_the_first(corpora: Corpora, tmp_path: Path) -> None:
    items = retrieval_items([ONE], rewritten=False)
    reported(RetrievalTask(corpora), items[:1], tmp_path)

    report = reported(RetrievalTask(corpora), items, tmp_path)

    assert [line["n"] for line in report.lines] == [2]
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 4  # two headers, two rows


def test_other_passages_are_another_evaluation() -> None:
    other = Corpora.of([QuestionSet("leave", "test", "0" * 64, TURNS, (Passage("x", "x", id="x"),))])

    assert Corpora.of([ONE]).digest != other.digest


def test_answers_are_compared_without_articles_and_by_characters_where_no_spaces_are() -> None:
    assert word_f1("The 120 Euro!", "120 euro") == 1.0
    assert word_f1("東京都", "東京") == pytest.approx(0.8)
    assert (normalized_words("A"), word_f1("", "x")) == ([], 0.0)
