"""A table of cases is one test in a run of several workers, and leaves out no row."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.house.source import ROOT

Test: TypeAlias = Callable[..., None]


@pytest.fixture
def table(pytestconfig: pytest.Config) -> Callable[[Test], Test | None]:
    plugin: Any = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    made: Callable[[Test], Test | None] = plugin.table
    return made


def test_every_row_runs_and_each_that_fails_is_told(table: Callable[[Test], Test | None]) -> None:
    ran: list[tuple[int, int, str]] = []

    @pytest.mark.slow
    @pytest.mark.parametrize("a", [1, 2, 3])
    @pytest.mark.parametrize(("b", "drive"), [(4, "x"), pytest.param(5, "y", id="five")], ids=str)
    def check(a: int, b: int, drive: str) -> None:
        ran.append((a, b, drive))
        if a == 1:
            pytest.skip("not today")
        if (a, b) == (2, 5):
            pytest.fail("no")
        assert a != 3

    whole = table(check)
    assert whole is not None
    with pytest.raises(BaseExceptionGroup) as caught:
        whole()

    assert sorted(ran) == [(a, b, drive) for a in (1, 2, 3) for b, drive in ((4, "x"), (5, "y"))]
    told = [(type(each).__name__, each.__notes__) for each in caught.value.exceptions]
    assert sorted(told) == [
        ("AssertionError", ["row: {'b': 4, 'drive': 'x', 'a': 3}"]),
        ("AssertionError", ["row: {'b': 5, 'drive': 'y', 'a': 3}"]),
        ("Failed", ["row: {'b': 5, 'drive': 'y', 'a': 2}"]),
    ]
    assert [mark.name for mark in vars(whole)["pytestmark"]] == ["slow"]


def test_a_skipped_row_skips_the_table_after_the_others(table: Callable[[Test], Test | None]) -> None:
    ran: list[int] = []

    @pytest.mark.parametrize("a", [1, 2])
    def check(a: int) -> None:
        ran.append(a)
        if a == 1:
            pytest.skip("not today")

    whole = table(check)
    assert whole is not None
    with pytest.raises(pytest.skip.Exception, match="not today"):
        whole()

    assert ran == [1, 2]


@pytest.mark.parametrize("rows", [iter([1]), [pytest.param(1, marks=pytest.mark.slow)], []])
def test_rows_of_marks_or_of_an_iterator_stay_tests(table: Callable[[Test], Test | None], rows: Any) -> None:
    @pytest.mark.parametrize("a", rows)
    def check(a: int) -> None: ...

    assert table(check) is None


def test_rows_with_a_fixture_of_their_own_stay_tests(table: Callable[[Test], Test | None]) -> None:
    @pytest.mark.parametrize("a", [1])
    def check(a: int, tmp_path: object) -> None: ...

    def plain(a: int) -> None: ...

    assert table(check) is None
    assert table(plain) is None
