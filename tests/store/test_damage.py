"""A damaged store ends every reading command in an answer or one typed error; `python -m tests.store.damage` tries more."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.messages import Usage
from taiwa.store import Store
from tests.store.damage import damage, failures, golden_copy
from tests.store.turns import answered, begin

PAST_FAILURES = (1264, 1384, 100098, 200009, 200112, 200210)
"""Seeds that once ended in an unexpected error."""


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden_copy(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def restored() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TAIWA_STORE", "TAIWA_LANG", "XDG_CONFIG_HOME"):
            patch.setenv(name, "")
        yield patch


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("seed", PAST_FAILURES)
def test_past_damages_end_in_typed_errors(golden: Path, tmp_path: Path, seed: int) -> None:
    path = tmp_path / "taiwa.db"
    shutil.copy(golden, path)
    how = damage(path, seed)

    assert list(failures(path, seed)) == [], how


@pytest.mark.usefixtures("restored")
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_damages_end_in_typed_errors(golden: Path, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    path = tmp_path_factory.mktemp("damage") / "taiwa.db"
    shutil.copy(golden, path)
    how = damage(path, seed)

    assert list(failures(path, seed)) == [], how


DAMAGES = {
    "UPDATE node SET parent = seq WHERE seq = 3": "its parent is missing or younger",
    "UPDATE node SET parent = 4, base = 4 WHERE seq = 3": "its parent is missing or younger",
    "UPDATE reflog SET at_us = 9223372036854775807 WHERE seq = 2": "its time is not in a year from 1 to 9999",
    "UPDATE call SET input = -1": "its numbers of tokens cannot be right",
    "DROP INDEX node_parent": "the index node_parent is missing",
    "DROP TABLE feedback": "the table feedback is missing",
    "CREATE TABLE extra(x)": "the table extra is not ours",
    "ALTER TABLE run ADD COLUMN extra TEXT": "the table run was changed",
    """UPDATE node SET body = CAST('{"user": "\\ud800"}' AS BLOB) WHERE seq = 2""": "its body cannot be read",
    """UPDATE node SET body = CAST('{"user": NaN}' AS BLOB) WHERE seq = 2""": "its body cannot be read",
    """UPDATE node SET body = CAST('{"user": 5}' AS BLOB) WHERE seq = 2""": "its body cannot be read",
    "UPDATE node SET kind = 'song' WHERE seq = 2": "its body cannot be read",
    "UPDATE app SET body = CAST('[]' AS BLOB)": "its body cannot be read",
    "UPDATE ref SET name = CAST(x'ff' AS TEXT)": "is damaged",
}


@pytest.mark.parametrize("statement", DAMAGES)
def test_fsck_names_the_damage_and_history_ends(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        tip = begin(store, "main", "a", "b", "c")
        run = store.runs.begin("main", tip, store.nodes.get(tip).app, "d")
        store.runs.sink(run)(answered("d", "e"))
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("PRAGMA foreign_keys = OFF")
        sql.execute(statement)

    with Store.open(path) as store:
        problems = store.fsck()
        assert any(DAMAGES[statement] in problem.what for problem in problems), problems
        for command in (store.nodes.path, store.snapshots.checkout, lambda name: store.refs.back(name, 9)):
            with suppress(TaiwaError):
                list(command(tip))


@pytest.mark.parametrize("tokens", [2**40 + 1, 2**63, 2**80, -1])
def test_an_incredible_usage_is_stored_as_unknown(store: Store, tokens: int) -> None:
    tip = begin(store)
    run = store.runs.begin("main", tip, store.nodes.get(tip).app, "x")

    store.runs.sink(run, price=lambda _, usage: usage.input_tokens)(answered("x", "y", Usage(tokens, 1)))

    (line,) = store.costs("session")
    assert (line.usage, line.calls_without_usage, line.cost_nano) == (Usage(), 1, None)
