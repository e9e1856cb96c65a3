"""The tasks of a first day, as a person types them one after the other with one model behind a server."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Taiwa
from tests.peers.faults import Act, status


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the commands are typed."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_text_is_joined_with_the_input_and_with_files(taiwa: Taiwa, model_server: ModelServer, here: Path) -> None:
    model_server("one", "two")
    (here / "a.txt").write_text("first\n")
    (here / "b.txt").write_text("second\n")
    taiwa.ok("say", "sum up:", input="piped\n")
    taiwa.ok("say", "-f", "a.txt", "-f", "b.txt", "compare:")
    assert model_server.last_message(0).startswith("sum up:")
    assert "piped" in model_server.last_message(0)
    joined = model_server.last_message(1)
    assert joined.index("compare:") < joined.index("first") < joined.index("second")


def test_a_conversation_changes_its_model_goes_back_branches_and_is_renamed(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    server = model_server("one", "two", "three", "four")
    other = server.model.replace("test-model", "other-model")
    taiwa.ok("say", "-s", "trip", "Nara")
    taiwa.ok("say", "-c", "-m", other, "Kyoto")
    taiwa.ok("say", "-c", "Osaka")
    assert [request["model"] for request in server.requests] == ["test-model", "other-model", "other-model"]
    taiwa.ok("undo", "2")
    taiwa.ok("redo", "2")
    past = taiwa("redo")
    assert (past.code, "nothing to redo" in past.err) == (2, True)
    taiwa.ok("fork", "trip", "branch")
    taiwa.ok("edit", "branch:2", "Kobe")
    log = taiwa.ok("log", "-s", "branch").out
    assert "Kobe" in log
    assert "Osaka" not in log
    taiwa.ok("rename", "branch", "kobe")
    assert "Osaka" in taiwa.ok("log", "-s", "trip").out
    assert "four" in taiwa.ok("show", "kobe:2").out


def test_what_was_said_in_japanese_is_found_and_exported_and_read_again(
    taiwa: Taiwa, model_server: ModelServer, here: Path
) -> None:
    model_server("晴れです。")
    taiwa.ok("say", "-s", "nara", "奈良の天気は?")
    assert "nara" in taiwa.ok("search", "天気").out
    (here / "nara.jsonl").write_text(taiwa.ok("export", "nara").out, encoding="utf-8")
    taiwa.ok("import", "nara.jsonl", "copy")
    assert "晴れです。" in taiwa.ok("show", "copy:1").out
    taiwa.ok("export", "nara", "-o", "nara.html")
    assert "晴れです。" in (here / "nara.html").read_text(encoding="utf-8")


def test_a_value_comes_from_a_class_in_a_file_a_schema_and_every_line(
    taiwa: Taiwa, model_server: ModelServer, here: Path
) -> None:
    dog = '{"name": "Rex", "age": 3}'
    model_server(*[dog] * 5)
    (here / "kennel.py").write_text(
        "from pydantic import BaseModel\nclass Dog(BaseModel):\n    name: str\n    age: int\n"
    )
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    (here / "dog.json").write_text(json.dumps(schema))
    (here / "lines.txt").write_text("Rex is three.\nA dog of three: Rex.\n")
    for target in ("kennel.py:Dog", "dog.json", "name, age int"):
        assert taiwa.ok("extract", target, "Rex is three.").json == {"name": "Rex", "age": 3}
    rows = taiwa.ok("extract", "kennel.py:Dog", "--file", "lines.txt").rows
    assert [row["value"]["age"] for row in rows] == [3, 3]


def test_a_batch_stops_at_its_budget_and_goes_on(taiwa: Taiwa, model_server: ModelServer, here: Path) -> None:
    server = model_server(*["yes"] * 3)
    (here / "lines.txt").write_text("one\ntwo\nthree\n")
    prices = [taiwa.ok("config", "set", f"prices.{server.model}.{kind}", "1") for kind in ("input", "output")]
    assert prices
    command = ("batch", "plain", "lines.txt", "--mode", "map", "-j", "1", "-o", "out.jsonl")
    stopped = taiwa(*command, "--max-cost", "0.000000001")
    assert stopped.code == 1
    assert "--resume continues" in stopped.err
    assert "e-" not in stopped.err
    taiwa.ok(*command, "--resume")
    assert len((here / "out.jsonl").read_text().splitlines()) == 3
    assert len(server.requests) == 3


def test_documents_in_three_languages_are_asked_changed_and_deleted(taiwa: Taiwa, here: Path) -> None:
    notes = here / "notes"
    notes.mkdir()
    (notes / "tea.md").write_text("# Tea\n\nOolong costs 4 euros.\n", encoding="utf-8")
    (notes / "kyuka.md").write_text("# 休暇\n\n年次休暇は20日です。\n", encoding="utf-8")
    (notes / "train.html").write_text("<h1>火车</h1><p>末班火车十点出发。</p>", encoding="utf-8")
    taiwa.ok("index", "notes")
    assert "4 euros" in taiwa.ok("ask", "How much is oolong?", "--in", "notes").out
    assert "20日" in taiwa.ok("ask", "年次休暇は何日ですか?", "--in", "notes").out
    assert "十点" in taiwa.ok("ask", "末班火车几点出发?", "--in", "notes").out
    (notes / "tea.md").write_text("# Tea\n\nOolong costs 5 euros now.\n", encoding="utf-8")
    assert "5 euros" in taiwa.ok("ask", "How much is oolong?", "--in", "notes").out
    (notes / "tea.md").unlink()
    assert "euros" not in taiwa("ask", "How much is oolong?", "--in", "notes").out


@pytest.mark.parametrize(
    ("answer", "words"),
    [(lambda: status(429, b'{"error": {"message": "slow down"}}'), "429"), (lambda: status(500, b"oops"), "500")],
)
def test_a_server_in_trouble_is_named_in_one_line(
    taiwa: Taiwa, model_server: ModelServer, answer: Callable[[], Act], words: str
) -> None:
    model_server.plays(answer())
    failed = taiwa("say", "hello")
    assert failed.code == 1
    assert words in failed.err
    assert len(failed.err.splitlines()) == 1
