"""Each format by a row in its form: what is to be asked, looked up and answered; and what is wrong with a row, in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from evals.dialogue.corpora import BUNDLED, read_corpora
from taiwa.evals.retrieval import QuestionSet, read_passages, read_sample, sample_item
from taiwa.kernel.errors import InputError

STORY = "Mia found a key. It opened the shed."
ABG = {
    "id": "a1", "story": STORY, "target_turn": {"turn_id": 3, "question": "What did it open?", "answer": "the shed"},
    "history_turns": [{"turn_id": 2, "question": "What did she find?", "answer": "a key"}], "ambiguity": "ambiguous",
    "clarification_turn": {"question": "The key?", "answers": [{"clr_ans": "yes", "org_ans": "the shed"}]},
}  # fmt: skip
DIALOGUE = ["Cats", "Food", "What do cats eat?", "Mostly meat", "And kittens?", "Milk"]


def written(folder: Path, rows: Any, name: str = "set.json") -> Path:
    path = folder / name
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows, ensure_ascii=False))
    return path


def read(folder: Path, rows: Any, name: str = "set.json") -> QuestionSet:
    (found,) = read_corpora([written(folder, rows, name)])
    return found


def lines(*rows: Any) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def test_qulac_has_columns_and_a_row_for_each_answer(tmp_path: Path) -> None:
    columns = {
        "topic_id": {"0": 7, "1": 7, "2": 8}, "facet_id": {"0": 1, "1": 2, "2": 1}, "topic_facet_id": {"0": "7-1", "1": "7-2", "2": "8-1"},
        "topic": {"0": "jaguar", "1": "jaguar", "2": "train times"}, "topic_type": {"0": "ambiguous", "1": "ambiguous", "2": "faceted"},
        "question": {"0": "the cat?", "1": "the car?", "2": "where?"}, "answer": {"0": "yes", "1": "no", "2": "here"},
    }  # fmt: skip

    found = read(tmp_path, columns)

    assert [(one.id, one.last, one.ask, one.replies) for one in found.samples] == [
        ("7", "jaguar", True, ("yes",)), ("8", "train times", False, ("here",)),
    ]  # fmt: skip


def test_clariq_is_a_table_whose_need_goes_from_1_to_4(tmp_path: Path) -> None:
    head = "topic_id\tinitial_request\tclarification_need\tquestion\tanswer\n"
    table = f"{head}1\tTell me of jaguars.\t4\tthe cat?\tyes\n1\tTell me of jaguars.\t4\tcar?\tno\n2\tTrains to Kobe?\t2\twhen?\tnow\n"

    found = read(tmp_path, table, "dev.tsv")

    assert [(one.last, one.ask) for one in found.samples] == [("Tell me of jaguars.", True), ("Trains to Kobe?", False)]


def test_clamber_says_itself_whether_it_must_be_asked(tmp_path: Path) -> None:
    row = {"question": "Who is he?", "context": "", "require_clarification": 1, "category": "MC"}

    found = read(tmp_path, lines(row, row | {"require_clarification": 0, "context": "Of Bach."}), "clamber.jsonl")

    assert [(one.ask, len(one.turns)) for one in found.samples] == [(True, 1), (False, 2)]


def test_abg_coqa_is_looked_up_in_its_stories_in_either_form(tmp_path: Path) -> None:
    slice_ = {
        "id": "a1", "story": STORY, "history": [["What did she find?", "a key"]], "question": "What did it open?",
        "answer": "the shed", "ambiguous": True, "clarification": {"question": "The key?", "answers": [{"clr_ans": "yes"}]},
    }  # fmt: skip

    own = read(tmp_path, {"version": "1.0", "data": [ABG, {**ABG, "ambiguity": "non_ambiguous"}]}, "own.json")
    simple = read(tmp_path, lines(slice_), "simple.jsonl")

    assert [(one.ask, one.answerable) for one in own.samples] == [(True, None), (False, True)]
    assert own.samples[0].turns == simple.samples[0].turns
    assert own.samples[0].replies == simple.samples[0].replies == ("yes",)
    assert [passage.text for passage in own.passages] == [STORY]
    assert own.samples[1].relevant == (own.passages[0].id,)


def test_pacific_gives_what_was_asked_before_in_either_form(tmp_path: Path) -> None:
    asked = [
        {"uid": "q1", "order": 1, "question": "The revenue?", "answer": ["2019 or 2020?"], "req_clari": True},
        {"uid": "q2", "order": 2, "question": "2019", "answer": 7.5, "req_clari": False},
    ]
    own = {
        "table": {"uid": "t", "table": [["", "2019"], ["Revenue", "7.5"]]}, "questions": asked,
        "paragraphs": [{"uid": "p", "order": 1, "text": "In millions."}],
    }  # fmt: skip
    simple = lines(*({"doc": "t", **row} for row in reversed(asked)))

    first, second = read(tmp_path, [own], "own.json"), read(tmp_path, simple, "simple.jsonl")

    for found in (first, second):
        assert [one.ask for one in found.samples] == [True, False]
        assert found.samples[1].turns == (("user", "The revenue?"), ("assistant", "2019 or 2020?"), ("user", "2019"))
    assert [passage.text for passage in first.passages] == [" | 2019\nRevenue | 7.5", "In millions."]


def test_canard_is_looked_up_in_the_answers_that_were_not_given_yet(tmp_path: Path) -> None:
    own = [
        {"QuAC_dialog_id": "d", "Question_no": n, "History": DIALOGUE[: 2 * n], "Question": question, "Rewrite": rewrite}
        for n, question, rewrite in [
            (1, "What do cats eat?", "What do cats eat?"), (2, "And kittens?", "What do kittens eat?"), (3, "Why?", "Why milk?"),
        ]
    ]  # fmt: skip
    simple = {
        "id": "d", "title": "Cats", "section": "Food", "history": DIALOGUE[2:],
        "turns": [{"q": row["Question"], "rewrite": row["Rewrite"]} for row in own],
    }  # fmt: skip

    for found in (read(tmp_path, own, "own.json"), read(tmp_path, lines(simple), "simple.jsonl")):
        (one,) = found.samples
        assert (one.id, one.rewrite, one.relevant, one.returned) == ("d/2", "What do kittens eat?", ("d/2",), ("d/1",))
        assert [passage.text for passage in found.passages] == ["Mostly meat", "Milk"]


def test_cast_and_ikat_have_their_passages_or_answers_in_the_turns(tmp_path: Path) -> None:
    cast = [{"number": 9, "turn": [
        {"number": 1, "raw_utterance": "Who was Bach?", "manual_rewritten_utterance": "Who was Bach?", "canonical_result_id": "B1", "passage": "A composer."},
        {"number": 2, "raw_utterance": "His wife?", "manual_rewritten_utterance": "Who was Bach's wife?", "canonical_result_id": "B2", "passage": "Anna."},
    ]}]  # fmt: skip
    simple = {"year": 2021, "topic": 9, "turns": [
        {"n": "1", "utterance": "Who was Bach?", "rewrite": "Who was Bach?", "canonical": "B1", "passage": "A composer."},
        {"n": "2", "utterance": "His wife?", "rewrite": "Who was Bach's wife?", "canonical": "B2", "passage": "Anna."},
    ]}  # fmt: skip
    ikat = {"number": "9-1", "title": "t", "ptkb": {"1": "I sing."}, "turns": [
        {"turn_id": 1, "utterance": "Who was Bach?", "resolved_utterance": "Who was Bach?", "response": "A composer."},
        {"turn_id": 2, "utterance": "His wife?", "resolved_utterance": "Who was Bach's wife?", "response": "Anna."},
    ]}  # fmt: skip

    sets = [read(tmp_path, cast, "c.json"), read(tmp_path, lines(simple), "s.jsonl"), read(tmp_path, [ikat], "i.json")]

    for found in sets:
        last = found.samples[-1]
        assert last.turns == (("user", "Who was Bach?"), ("assistant", "A composer."), ("user", "His wife?"))
        assert last.rewrite == "Who was Bach's wife?"
        assert [passage.id for passage in found.passages] == [*last.returned, *last.relevant]


def test_mtrag_says_what_is_answerable_and_what_is_too_little_said(tmp_path: Path) -> None:
    own = {
        "task_id": "t<::>2", "Answerability": ["UNDERSPECIFIED"], "input": [{"speaker": "user", "text": "Rates?"}],
        "contexts": [{"document_id": "p1", "text": "Rates are 2 %.", "title": "Rates"}], "targets": [{"text": "Which?"}],
    }  # fmt: skip
    simple = {
        "task_id": "t<::>3",
        "answerability": "UNANSWERABLE",
        "input": [["user", "Rates?"]],
        "contexts": [],
        "target": "No.",
    }

    first, second = read(tmp_path, lines(own), "own.jsonl"), read(tmp_path, lines(simple), "simple.jsonl")

    assert (first.samples[0].ask, first.samples[0].answerable, first.samples[0].relevant) == (True, None, ("p1",))
    assert (second.samples[0].ask, second.samples[0].answerable) == (None, False)


def test_marked_turns_are_told_apart_and_judgements_lie_beside(tmp_path: Path) -> None:
    written(
        tmp_path, lines({"id": "p1", "text": "Carthage builds it."}, {"id": "p2", "text": "Other."}), "m_passages.jsonl"
    )
    written(tmp_path, lines({"q": "t1", "d": "p1", "s": 1}, {"q": "t1", "d": "p2", "s": 0}), "m_qrels.jsonl")
    row = {
        "id": "t1",
        "user_turns": "|user|: CocoaPods?\n|user|: Or Carthage?",
        "last": "",
        "rewrite": "|user|: Install by Carthage?",
        "rel": [],
    }

    found = read(tmp_path, lines(row), "m_rewrites.jsonl")

    (one,) = found.samples
    assert (one.turns, one.rewrite) == ((("user", "CocoaPods?"), ("user", "Or Carthage?")), "Install by Carthage?")
    assert one.relevant == ("p1",)
    assert len(found.passages) == 2


def test_beir_has_queries_a_corpus_and_a_table_of_judgements(tmp_path: Path) -> None:
    queries = written(tmp_path, lines({"_id": "q1", "text": "|user|: sick leave"}), "queries.jsonl")
    corpus = written(tmp_path, lines({"_id": "d1", "text": "Sick leave.", "title": "Leave"}), "corpus.jsonl")
    table = written(tmp_path, "query-id\tcorpus-id\tscore\nq1\td1\t2\n", "dev.tsv")

    (found,) = read_corpora([queries], [corpus], [table])

    assert [(one.last, one.relevant) for one in found.samples] == [("sick leave", ("d1",))]


def test_asdc_asks_where_the_operator_does_and_may_be_a_folder(tmp_path: Path) -> None:
    turns = [
        ("agent.1", "ご希望は?"),
        ("user.1", "海の近くです"),
        ("agent.1", "ご予算はいかがでしょうか?"),
        ("user.1", "一万円"),
        ("agent.1", "宿をご案内します。"),
    ]
    own = {"meta": {"id": "asdc.1"}, "utterances": [{"name": who, "text": words} for who, words in turns]}
    (tmp_path / "json").mkdir()
    written(tmp_path / "json", own, "001.json")
    simple = {
        "id": "asdc.1",
        "conditions": [],
        "utterances": [[who.replace("user", "customer"), words] for who, words in turns],
    }

    (folder,) = read_corpora([tmp_path / "json"])
    found = read(tmp_path, lines(simple), "simple.jsonl")

    assert [one.ask for one in folder.samples] == [one.ask for one in found.samples] == [True, False]
    assert folder.samples[1].turns[-1] == ("user", "一万円")


def test_squads_form_brings_passages_and_answers(tmp_path: Path) -> None:
    paragraph = {
        "context": "梅雨 [SEP] 六月から七月に降る。",
        "qas": [{"id": "q1", "question": "いつ降る?", "answers": [{"text": "六月から七月", "answer_start": 9}], "is_impossible": False},
                {"id": "q2", "question": "誰が?", "answers": [], "is_impossible": True}],
    }  # fmt: skip

    found = read(tmp_path, {"version": "1.1", "data": [{"title": "梅雨", "paragraphs": [paragraph]}]})

    (passage,) = found.passages
    assert (passage.title, passage.text) == ("梅雨", "六月から七月に降る。")
    assert [(one.answerable, one.answers, one.relevant) for one in found.samples] == [
        (True, ("六月から七月",), (passage.id,)), (False, (), ()),
    ]  # fmt: skip


def test_the_shipped_questions_find_their_passages() -> None:
    (found,) = read_corpora([Path(BUNDLED)])

    assert all(bool(one.relevant) == bool(one.answers) for one in found.samples)
    assert any(one.ask for one in found.samples)
    assert any(one.answerable is False for one in found.samples)


def test_a_folder_of_documents_is_passages(tmp_path: Path) -> None:
    written(tmp_path, "# Leave\n\nTen days.\n\n## Sick\n\nTell us.\n", "leave.md")

    assert [passage.heading for passage in read_passages(tmp_path)] == [("Leave",), ("Leave", "Sick")]


def test_a_set_without_documents_looks_into_those_of_the_others(tmp_path: Path) -> None:
    with_passages = written(tmp_path, {"data": [ABG]}, "abg.json")
    without = written(tmp_path, lines({"question": "Who?", "require_clarification": 0}), "clamber.jsonl")

    first, second = read_corpora([with_passages, without])

    assert second.passages == first.passages
    assert any("those of the other sets are searched" in note for note in second.notes)


def test_a_sample_comes_back_from_its_item(tmp_path: Path) -> None:
    (sample,) = read(tmp_path, {"data": [ABG]}).samples

    assert read_sample(sample_item(sample, "abg", "ask")) == sample


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"colour": "red"}', ":1: no known format has the fields colour"),
        ('{"id": "a", "q": "", "rel": []}', ":1: the field 'q' must be a text"),
        ('{"id": "a", "q": "x", "rel": 3}', ":1: the field 'rel' must be a list"),
        ('{"id": "a", "q": "x", "rel": []}\n{"id": "b", "q": "y"}', ":2: the field 'rel' is missing"),
        ('{"id": "a", "q": "x", "rel": []}\n{"id": "a", "q": "y", "rel": []}', "duplicate id 'a'"),
        ('{"question": "x", "require_clarification": "maybe"}', "'require_clarification' must be true or false"),
        ('{"task_id": "t", "answerability": "PARTIAL", "input": [["user"]]}', "'input' must be a list of pairs"),
        ('{"data": [{"title": "t", "paragraphs": [{"context": "c", "qas": [{"id": "q"}]}]}]}', "data[0]: paragraphs[0]: qas[0]: the field 'answers' is missing"),
        ("", "holds no row"),
        ("{", ":1: not JSON"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError) as found:
        read(tmp_path, text, "bad.jsonl")

    assert complaint in found.value.message
    assert "\n" not in found.value.message


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    rows = lines({"id": "a", "q": "x", "rel": []})

    with pytest.raises(InputError, match="called set"):
        read_corpora([written(tmp_path, rows, "set.jsonl"), written(tmp_path / "other", rows, "set.jsonl")])


SLICES = {
    "qulac": 79, "abg_coqa": 291, "pacific": 595, "mtrag_tasks": 203, "mtrag_rewrites": 311, "canard": 723, "cast": 377,
    "ikat2023": 126, "asdc_dialogs": 748, "jsquad_questions": 1333, "jaquad_questions": 788,
}  # fmt: skip


@pytest.mark.parametrize("name", SLICES)
def test_the_shared_slices_are_read_whole(shared_data: Path, name: str) -> None:
    (found,) = read_corpora([shared_data / "rag" / f"{name}.jsonl"])

    assert len(found.samples) == SLICES[name]
