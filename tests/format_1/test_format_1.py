"""Format 1 can be read for ever: the golden files open, replay, pass fsck and are written again byte for byte.

`write.py` wrote them. From the first release on they are never written again to make a test pass.
"""

import json
import shutil
from collections.abc import Iterator

import psycopg
import pytest

from tests.cli.conftest import Place, Taiwa
from tests.database import Database
from tests.format_1.write import DATA, write_inputs

KINDS = ("sqlite", "postgres")


def sessions(kind: str) -> list[str]:
    return sorted(path.name.removesuffix(".state.json") for path in (DATA / kind).glob("*.state.json"))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def golden(kind: str, request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A copy of the golden store, in either database, as the configured store."""
    if kind == "sqlite":
        shutil.copy(DATA / "store.db", place.store)
        yield kind
        return
    database: Database = request.getfixturevalue("database")
    database.drop()
    with psycopg.connect(database.url, autocommit=True) as sql:
        sql.execute((DATA / "store.sql").read_bytes())
    monkeypatch.setenv("TAIWA_STORE", database.url)
    yield kind
    database.drop()


def test_a_golden_store_opens_and_every_hash_is_right(taiwa: Taiwa, golden: str) -> None:
    assert sessions(golden)
    assert sorted(row["session"] for row in taiwa.ok("log", "--json").json) == sessions(golden)
    taiwa.ok("fsck")


def test_a_golden_conversation_replays_without_a_call(taiwa: Taiwa, golden: str) -> None:
    for name in sessions(golden):
        assert taiwa.ok("replay", name, "--json").json, name


def test_a_golden_store_is_exported_byte_for_byte(taiwa: Taiwa, golden: str) -> None:
    for name in sessions(golden):
        folder = DATA / golden
        assert taiwa.ok("export", name, "--calls").out.encode() == (folder / f"{name}.jsonl").read_bytes()
        assert taiwa.ok("state", "-s", name, "--json").json == json.loads((folder / f"{name}.state.json").read_bytes())
    assert taiwa.ok("user", "export", "ann").out.encode() == (DATA / golden / "ann.yaml").read_bytes()
    assert taiwa.ok("user", "export", "ann", "--json").out.encode() == (DATA / golden / "ann.json").read_bytes()
    assert taiwa.ok("cost", "--json").json == json.loads((DATA / golden / "cost.json").read_bytes())


def test_a_golden_export_is_imported_and_exported_byte_for_byte(taiwa: Taiwa, kind: str) -> None:
    for name in sessions(kind):
        path = DATA / kind / f"{name}.jsonl"
        taiwa.ok("import", str(path), name)
        nodes = [line for line in path.read_text("utf-8").splitlines() if json.loads(line).get("kind") != "call"]
        again = taiwa.ok("export", name).out.splitlines()
        assert [line for line in again if line in nodes] == again, name


def test_a_golden_profile_is_read_and_written_byte_for_byte(taiwa: Taiwa) -> None:
    path = DATA / "sqlite" / "ann.yaml"

    taiwa.ok("user", "set", "ann", "--file", str(path))

    assert taiwa.ok("user", "export", "ann").out.encode() == path.read_bytes()


def test_golden_rows_of_an_evaluation_are_continued_and_none_is_measured_again(
    taiwa: Taiwa, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_inputs(place.folder)
    monkeypatch.chdir(place.folder)
    (place.folder / "rows").mkdir()
    shutil.copy(DATA / "rows.jsonl", place.folder / "rows" / "rows.jsonl")

    taiwa.ok(
        "eval", "retrieve", "--data", "questions.jsonl", "--passages", "passages.jsonl", "--out", "rows", "--resume"
    )  # fmt: skip

    assert (place.folder / "rows" / "rows.jsonl").read_bytes() == (DATA / "rows.jsonl").read_bytes()


def test_golden_findings_of_a_probe_still_correct_the_table(taiwa: Taiwa, place: Place) -> None:
    model = (DATA / "probed.txt").read_text()
    before = taiwa.ok("models", "show", model, "--json").json
    target = place.config.with_name("probes.json")
    target.parent.mkdir(parents=True)
    shutil.copy(DATA / "findings.json", target)

    after = taiwa.ok("models", "show", model, "--json").json

    assert after == json.loads((DATA / "probed.json").read_bytes())
    assert after != before
