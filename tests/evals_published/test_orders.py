"""Requests through the real order desk with a scripted model: what a row holds, what rows add up to, and failures."""

import asyncio
import json
import pickle
from pathlib import Path

import pytest

from evals.ordering.key import OrderKey, read_key
from evals.ordering.orders import OrderTask, order_chart, order_line, order_report, read_requests
from taiwa.evals.report import NO_FIGURE, table_cells
from taiwa.evals.run import EvalRow, Evaluation, RunOptions
from taiwa.kernel.errors import InputError, ModelError
from taiwa.models.scripted import ScriptedModel, scripted_model

KEY = """\
requests:
  one:
    items: [{ name: latte, size: tall, quantity: 2, options: [iced] }, { name: scone }]
  two:
    items: [{ name: tea }]
    also:
      - items: [{ name: tea }, { name: milk }]
  none: { items: [] }
  none b: { duplicate: none }
"""
REQUESTS = (
    {"id": "one", "domain": "cafe", "input": "two tall iced lattes, a scone"},
    {"id": "two", "domain": "cafe", "input": "tea"},
    {"id": "none", "domain": "cafe", "input": "nice weather"},
    {"id": "two b", "domain": "calendar", "input": "a table for four"},
)


def said(answer: str, *lines: dict[str, object]) -> str:
    items = {str(number): {"options": [], **line} for number, line in enumerate(lines, 1)}
    return f"{answer}\n@@delta\n{json.dumps({'items': items} if items else {})}"


RIGHT = said(
    "Yes.", {"name": "Scone", "quantity": 1}, {"name": "latte", "size": "tall", "quantity": 2, "options": ["iced"]}
)


@pytest.fixture
def key(tmp_path: Path) -> OrderKey:
    path = tmp_path / "key.yaml"
    path.write_text(KEY)
    return read_key(path)


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in REQUESTS))
    return path


def rows_of(
    model: ScriptedModel, requests: Path, key: OrderKey, folder: Path | None = None
) -> tuple[Evaluation, list[EvalRow]]:
    data, _ = read_requests(requests, key)

    async def run(evaluation: Evaluation) -> list[EvalRow]:
        return [row async for row in evaluation.run()]

    work = OrderTask(key.digest, given_model=model)
    with Evaluation(work, data, RunOptions(width=1, folder=folder)) as evaluation:
        return evaluation, asyncio.run(run(evaluation))


def test_what_the_desk_holds_is_compared_with_the_key(requests: Path, key: OrderKey) -> None:
    model = scripted_model(RIGHT, said("Two.", {"name": "tea", "quantity": 2}), said("Isn't it?"))

    _, rows = rows_of(model, requests, key)

    found = {row.id: row.found for row in rows}
    assert [row.found["whole"] for row in rows] == [True, False, True]
    assert (found["two"]["named"], found["two"]["counted"]) == (1, 0)
    assert order_line(rows)["counts"] == {
        "structure": [3, 3], "items": [2, 3], "precision": [2, 3], "names": [3, 3], "sizes": [2, 2], "options": [2, 2],
        "whole": [2, 3],
    }  # fmt: skip
    assert [request.messages[-1].text.partition("<state>")[0] for request in model.requests] == [
        row["input"] for row in REQUESTS[:3]
    ]
    assert "desk of a café" in model.requests[0].messages[0].text


def test_any_reading_that_is_right_counts(requests: Path, key: OrderKey) -> None:
    both = said("Yes.", {"name": "tea", "quantity": 1}, {"name": "milk", "quantity": 1})
    _, rows = rows_of(scripted_model(RIGHT, both, said("Hm.")), requests, key)
    assert [(row.found["whole"], row.found["wanted"]) for row in rows] == [(True, 2), (True, 2), (True, 0)]


def test_the_same_words_count_once(requests: Path, key: OrderKey) -> None:
    with requests.open("a") as file:
        file.write(json.dumps({**REQUESTS[2], "id": "none b"}) + "\n")
    data, notes = read_requests(requests, key, {"cafe"})
    assert [item.id for item in data.items] == ["one", "two", "none"]
    assert notes == ("1 requests repeat another and are skipped.",)


def test_a_reply_without_a_delta_is_not_sound_and_is_not_asked_for_again(requests: Path, key: OrderKey) -> None:
    model = scripted_model("Sure!", 'Sure!\n@@delta\n{"items": 3}', said("Hello."))

    evaluation, rows = rows_of(model, requests, key)

    assert [row.found["sound"] for row in rows] == [False, False, True]
    assert len(model.requests) == 3
    assert any("the model wrote no state" in note for note in order_report(evaluation).notes)


def test_a_row_that_failed_counts_as_lines_that_were_missed(requests: Path, key: OrderKey) -> None:
    model = scripted_model(RIGHT, ModelError("no"), ModelError("no"))

    evaluation, _ = rows_of(model, requests, key)

    (line,) = order_report(evaluation).lines
    assert line["counts"] == {
        "structure": [1, 3], "items": [2, 3], "precision": [2, 2], "names": [2, 3], "sizes": [2, 2], "options": [2, 2],
        "whole": [1, 3],
    }  # fmt: skip
    assert (line["failed"], line["errors"]) == (2, {"model": 2})


def test_the_desk_may_reckon_the_sum(requests: Path, key: OrderKey) -> None:
    sum_ = "Yes. That is <<calculator: 2*4.20+2.80>>"
    model = scripted_model(
        sum_,
        f" dollars.\n{RIGHT.partition(chr(10))[2]}",
        said("Tea.", {"name": "tea", "quantity": 1}),
        said("So it is."),
        capabilities=frozenset({"prefix", "stop"}),
    )

    _, rows = rows_of(model, requests, key)

    assert [row.found["whole"] for row in rows] == [True, True, True]
    assert rows[0].spent.tool_calls == 1


def test_rows_are_gone_on_with_and_another_key_is_another_evaluation(
    requests: Path, key: OrderKey, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    rows_of(
        scripted_model(RIGHT, said("Tea.", {"name": "tea", "quantity": 1}), ModelError("no")), requests, key, folder
    )

    evaluation, rows = rows_of(scripted_model(said("Yes.")), requests, key, folder)

    assert [row.id for row in rows] == ["none"]
    assert evaluation.kept == 2
    (tmp_path / "key.yaml").write_text(KEY + "  four: { items: [] }\n")
    with pytest.raises(InputError, match=r"with another options: key was"):
        rows_of(scripted_model(), requests, read_key(tmp_path / "key.yaml"), folder)


def test_a_scripted_model_has_no_figures(requests: Path, key: OrderKey) -> None:
    evaluation, _ = rows_of(scripted_model(RIGHT, said("Tea."), said("Hm.")), requests, key)

    report = order_report(evaluation)

    heads, rows = table_cells(report)
    assert rows[0][heads.index("items %")] == NO_FIGURE
    assert "no figure" in " ".join(report.without_scripted_figures().notes)
    assert report.to_json()["rows"][0]["counts"] is None
    assert order_chart(report).bars == ()


def test_requests_without_a_key_are_left_out_and_said(requests: Path, key: OrderKey) -> None:
    data, notes = read_requests(requests, key)
    assert [item.id for item in data.items] == ["one", "two", "none"]
    assert notes == ("1 requests are not in key.yaml and are skipped.",)
    assert read_requests(requests, key, {"cafe"})[1] == ()
    with pytest.raises(InputError, match=r"holds no request of calendar that key\.yaml has an order for"):
        read_requests(requests, key, {"calendar"})


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"input": "tea"}, "the field 'id' is missing"),
        ({"id": True, "input": "tea"}, "the field 'id' is not a text or a number"),
        ({"id": "one"}, "the field 'input' is missing"),
        ({"id": "one", "input": 3}, "the field 'input' is not a text"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(
    key: OrderKey, tmp_path: Path, row: dict[str, object], complaint: str
) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(f"{json.dumps(REQUESTS[1])}\n{json.dumps(row)}\n")
    with pytest.raises(InputError, match=rf"requests.jsonl:2: {complaint}"):
        read_requests(path, key)


def test_rows_of_another_domain_may_be_anything(requests: Path, key: OrderKey) -> None:
    with requests.open("a") as file:
        file.write('{"domain": "music"}\n')
    assert len(read_requests(requests, key, {"cafe"})[0].items) == 3
    with pytest.raises(InputError, match="the field 'id' is missing"):
        read_requests(requests, key)


def test_the_work_can_be_sent_to_another_machine(requests: Path, key: OrderKey) -> None:
    work = OrderTask(key.digest, repairs=1)
    assert work.app.name == "order"
    sent = pickle.loads(pickle.dumps(work))
    assert sent == OrderTask(key.digest, repairs=1)
    assert sent.options == work.options
