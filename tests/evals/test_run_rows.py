"""The file of rows after any death of the program that wrote it."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.evals.run import EvalRow, Header, RowError, RowFile
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Usage
from taiwa.kernel.usage_limits import RunUsage

HEADER = Header("reason", "d.jsonl", "ab", "tiny", "2026-01-01T00:00:00Z", "0.1", ("a", "b"), {"shots": [0, 5]})
BILL = RunUsage(2, 1, Usage(10, 5, 4, 0, 1), 1, None, 0.25, Usage(9), 1_500)
RIGHT = EvalRow("a", "1", "speed", {"right": True, "text": "速さは 5\u2028 m/s"}, BILL)
FAILED = EvalRow("a", "2", "", {}, RunUsage(1, 0, Usage(), 1, None, 3.0), RowError("timeout", "no answer"))
AGAIN = EvalRow("a", "2", "", {"right": False}, BILL)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    with closing(RowFile(path)) as file:
        for what in (HEADER, RIGHT, FAILED):
            file.add(what)

    with closing(RowFile(path)) as file:
        assert file.headers == [HEADER]
        assert file.rows == {RIGHT.key: RIGHT, FAILED.key: FAILED}
        assert file.finished() == {RIGHT.key}


def test_long_texts_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    long = EvalRow("a", "1", found={"right": True, "text": "x" * 5000})
    with closing(RowFile(path)) as file:
        file.add(long)
        assert file.rows[long.key].found == {"right": True}

    assert "x" * 5000 in path.read_text()
    with closing(RowFile(path)) as file:
        assert file.rows[long.key].found == {"right": True}


def test_a_later_row_replaces_one_that_failed_and_both_were_paid_for(tmp_path: Path) -> None:
    with closing(RowFile(tmp_path / "rows.jsonl")) as file:
        for what in (HEADER, FAILED, AGAIN):
            file.add(what)

        assert file.rows[FAILED.key] == AGAIN
        assert file.paid == [FAILED]


@given(st.data())
def test_whatever_a_kill_left_of_the_last_line_is_healed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("torn") / "rows.jsonl"
    with closing(RowFile(path)) as file:
        file.add(HEADER)
        file.add(RIGHT)
    whole = path.read_bytes()
    with closing(RowFile(path)) as file:
        file.add(AGAIN)
    cut = data.draw(st.integers(len(whole), path.stat().st_size))
    path.write_bytes(path.read_bytes()[:cut])

    with closing(RowFile(path)) as file:
        before = set(file.rows)
        file.add(AGAIN)

    assert before - {AGAIN.key} == {RIGHT.key}
    with closing(RowFile(path)) as file:
        assert file.rows == {RIGHT.key: RIGHT, AGAIN.key: AGAIN}
        assert file.headers == [HEADER]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("no\n{}\n", ":1: not JSON"),
        ("[1]\n", ":1: not a row of an evaluation"),
        ('{"setting": "a"}\n', ":1: not a row of an evaluation"),
        ('{"format": 2}\n', "unsupported format 2"),
        ('{"format": 1, "evaluation": "reason"}\n', ":1: not a row"),
    ],
)
def test_another_file_is_left_alone(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)

    with pytest.raises(InputError) as raised, closing(RowFile(path)):
        pass

    assert complaint in raised.value.message
    assert path.read_text() == text


def test_two_programs_do_not_write_one_file(tmp_path: Path) -> None:
    with (
        closing(RowFile(tmp_path / "rows.jsonl")),
        pytest.raises(InputError, match="by another evaluation"),
        closing(RowFile(tmp_path / "rows.jsonl")),
    ):
        pass


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match=r"rows\.jsonl"), closing(RowFile(tmp_path / "file" / "rows.jsonl")):
        pass


def test_headers_say_what_keeps_their_rows_apart() -> None:
    assert HEADER.differs(Header("reason", "other.jsonl", "ab", "tiny", "now", "0.2", (), {"shots": [0, 5]})) == ""
    assert HEADER.differs(Header("reason", "d.jsonl", "ac", "tiny", "now", "0.1")) == "data_hash"
    assert HEADER.differs(Header("reason", "d.jsonl", "ab", "tiny", "now", "0.1", (), {"shots": [5]})) == "options"
