"""Questions in every form that the data sets have; what cannot be used names its file, line and field."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.evals.data import Item, read_questions
from taiwa.kernel.errors import InputError


def made(folder: Path, text: str | bytes, name: str = "data.jsonl") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_lines_with_ids_and_answers_are_items(tmp_path: Path) -> None:
    path = made(
        tmp_path, lines({"id": 7, "question": " How many? ", "answer": 3}, {"id": "b", "question": "Q", "answer": "x"})
    )

    found = read_questions(path)

    assert found.name == "data.jsonl"
    assert len(found.digest) == 64
    assert found.items == (Item("7", "How many?", "3", "", 1), Item("b", "Q", "x", "", 2))


@pytest.mark.parametrize("wrap", ["{}", ' \n{{"data": {}}}\n'])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_read_with_the_lines_of_its_elements(tmp_path: Path, wrap: str, indent: int | None) -> None:
    rows = [
        {"question": "one [1], two", "answer": 1, "type": "Type_1"},
        {"question": "two", "answer": 2.50, "type": "Type_4"},
    ]
    text = wrap.format(json.dumps(rows, indent=indent))

    found = read_questions(made(tmp_path, text, "numglue.json")).items

    assert [(item.id, item.gold, item.kind) for item in found] == [("0", "1", "Type_1"), ("1", "2.5", "Type_4")]
    assert text.split("\n")[found[1].line - 1].lstrip().startswith(("{", "[", '{"data'))


def test_only_questions_of_a_type_are_read_when_it_is_named(tmp_path: Path) -> None:
    rows = [{"question": f"What is the molecular weight of {n}?", "answer": n, "type": f"Type_{n}"} for n in (1, 2, 3)]
    path = made(tmp_path, json.dumps(rows))

    assert [item.id for item in read_questions(path, frozenset({"Type_2"})).items] == ["1"]
    assert [item.id for item in read_questions(path, frozenset({"molecular weight"})).items] == ["1"]
    with pytest.raises(InputError, match="holds no question of Type_9"):
        read_questions(path, frozenset({"Type_9"}))


def test_the_answer_of_a_solution_stands_behind_its_mark(tmp_path: Path) -> None:
    solution = "She has 3*4=<<3*4=12>>12.\nSo 100*12=<<100*12=1200>>1,200.\n#### 1,200"

    item = read_questions(made(tmp_path, lines({"question": "How many?", "answer": solution}))).items[0]

    assert (item.gold, item.kind) == ("1200", "2 steps")


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        (15.0, "15"), (0.5, "0.5"), (-3, "-3"), (" 25.93 ", "25.93"),
        ({"number": "8", "date": {}, "spans": []}, "8"), ({"number": "", "spans": ["the Bears"]}, "the Bears"),
    ],
)  # fmt: skip
def test_an_answer_is_a_text(tmp_path: Path, answer: Any, gold: str) -> None:
    assert read_questions(made(tmp_path, lines({"question": "Q", "answer": answer}))).items[0].gold == gold


def test_a_passage_and_options_are_part_of_what_is_asked(tmp_path: Path) -> None:
    row = {"passage": "P.", "question": "Q?", "option1": "a", "option2": "b", "answer": "Option 1", "type": "Type_5"}

    assert read_questions(made(tmp_path, lines(row))).items[0].text == "P.\nQ?\noption1: a\noption2: b"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Find the mass percentage of H in water", "mass percentage"),
        ("How many moles of A are required to react with B", "moles required"),
        ("Find the number of moles of A formed on combining B", "moles formed"),
        ("Find the amount of A formed on combining B", "amount"),
        ("What is the molecular weight of A", "molecular weight"),
        ("How much do 2 moles of A weigh", "molecular weight"),
        ("A train goes 60 km in 30 minutes", "speed"),
        ("Who are you?", "other"),
    ],
)
def test_a_question_has_a_class_by_its_wording(tmp_path: Path, question: str, kind: str) -> None:
    row = {"question": question, "answer": 1, "type": "Type_2"}

    assert read_questions(made(tmp_path, lines(row))).items[0].kind == kind


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"question": "Q", "answer": 1}\n{"question": "Q"}', "data.jsonl:2: the field 'answer' is missing"),
        ('{"answer": 1}', "data.jsonl:1: the field 'question' is missing"),
        ('{"question": 3, "answer": 1}', "data.jsonl:1: the field 'question' must be a text"),
        ('{"question": "  ", "answer": 1}', "data.jsonl:1: the field 'question' must be a text"),
        ('{"question": "Q", "answer": null}', "data.jsonl:1: the field 'answer' must be a number or a text"),
        ('{"question": "Q", "answer": true}', "data.jsonl:1: the field 'answer' must be a number or a text"),
        ('{"question": "Q", "gold": [1]}', "data.jsonl:1: the field 'gold' must be a number or a text"),
        ('{"question": "Q", "answer": "so #### "}', "data.jsonl:1: the field 'answer' must be a number or a text"),
        ('{"question": "Q", "answer": 1, "id": 1.5}', "data.jsonl:1: the field 'id'"),
        ('\n\n{"question": "Q", "answer": 1', "data.jsonl:3: not JSON"),
        ('[{"question": "Q", "answer": 1},\n {"question": }]', "data.jsonl:2: not JSON"),
        ('[{"question": "Q", "answer": 1}\n {"question": "Q"}]', "data.jsonl:2: not JSON"),
        ('[{"question": "Q", "answer": 1}', "data.jsonl:1: not JSON"),
        ("[[1]]", "data.jsonl:1: a row must be an object"),
        ("7", "data.jsonl:1: a row must be an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "data.jsonl:1: not JSON"),
        ("", "holds no question"),
        ("[]", "holds no question"),
        (b'{"question": "Q"}\n\xff', "data.jsonl:2: not UTF-8"),
        ('{"id": 1, "question": "Q", "answer": 1}\n{"id": "1", "question": "Q", "answer": 1}', "data.jsonl:2: duplicate id '1', first on line 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_names_its_place(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    with pytest.raises(InputError) as raised:
        read_questions(made(tmp_path, text))

    assert complaint in raised.value.message
    assert "\n" not in raised.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.jsonl: No such file"):
        read_questions(tmp_path / "gone.jsonl")
    with pytest.raises(InputError, match="is a folder"):
        read_questions(tmp_path)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_file_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = made(tmp_path_factory.getbasetemp(), raw, "any.jsonl")

    with suppress(InputError):
        read_questions(path)


def test_the_shared_questions_have_classes_and_golds(shared_data: Path) -> None:
    found = read_questions(shared_data / "numglue_task2.jsonl").items

    assert len(found) == 25
    assert all(item.gold and item.kind not in ("", "other") for item in found)
