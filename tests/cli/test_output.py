"""What reaches a terminal is plain text, aligned by cells."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from taiwa.cli.output import bill_line, table, wait_text
from taiwa.kernel.messages import Notice, Usage
from taiwa.kernel.text import IGNORABLE, inert, plain
from taiwa.kernel.usage_limits import RunUsage
from taiwa.kernel.wording import Wording
from tests.cli.conftest import Place
from tests.cli.terminal import Terminal

FORBIDDEN = {chr(code) for code in (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))} | set(
    "\u202a\u202e\u2066\u2069\u2028\u2029\u180e\ufeff\ufff9\U000e0001\U000e0041\U000e007f"
    "\xad\u034f\u115f\u1160\u17b4\u200b\u2060\u2064\u3164\uffa0\ufff0\U0001bca0\U0001bca3\U0001d173\U000e0080\U000e01f0"
)


@given(st.text(st.characters() | st.sampled_from(sorted(FORBIDDEN))))
def test_no_control_code_and_no_turn_of_direction_gets_through(text: str) -> None:
    shown = plain(text)

    assert not FORBIDDEN & set(shown)
    assert len(shown) == len(text)


@given(st.text(st.characters() | st.sampled_from(sorted(FORBIDDEN))))
def test_json_without_control_codes_is_read_as_the_same_text(text: str) -> None:
    shown = inert(json.dumps(text, ensure_ascii=False))

    assert not FORBIDDEN & set(shown)
    assert json.loads(shown) == text


def test_what_a_script_needs_between_letters_stays() -> None:
    for text in (
        "👩\u200d💻",
        "🏳\ufe0f\u200d🌈",
        "می\u200cخواهم",
        "שלום (1)!\u200f",
        "ثمن 5\u061c$",
        "क्\u200dष",
        "葛\U000e0100飾",
        "1\ufe0f\u20e3",
        "☎\ufe0e",
        "ᠠ\u180b",
    ):
        assert plain(text) == text
        assert inert(json.dumps(text, ensure_ascii=False)) == f'"{text}"'


@pytest.mark.parametrize(
    "hidden",
    [
        "a\u200db",
        "ad\u200emin",
        "ש\u200f\u200f",
        "a\u200c",
        "\n\u200d",
        "é\u200d\u200d",
        "語\ufe00\ufe01",
        "a\ufe0f",
        "é\U000e0100",
        "葛\U000e0100\U000e0101",
        "a\U000e01ef",
        " \u180b",
    ],
)
def test_an_invisible_character_that_no_script_needs_is_shown(hidden: str) -> None:
    assert "\ufffd" in plain(hidden)


@given(
    st.text(
        st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]).filter(lambda sign: not IGNORABLE.match(sign))
    )
)
def test_text_stays_as_it_is(text: str) -> None:
    assert plain(text) == text


@given(st.lists(st.tuples(st.text("a文é한😀 ", max_size=8), st.text("xyz本", max_size=8)), max_size=5))
def test_columns_begin_at_one_cell(rows: list[tuple[str, str]]) -> None:
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        table(("first", "second"), [(f"{one}|", f"|{two}") for one, two in rows])

    lines = out.getvalue().splitlines()[1:]
    assert len({cell_len(line[: line.index("|", line.index("|") + 1)]) for line in lines}) <= 1


def test_a_table_without_rows_and_heads_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    table((), [])

    assert capsys.readouterr().out == ""


def test_colours_are_for_terminals(place: Place) -> None:
    with Terminal(place.environment(), "apps", "list") as shown:
        assert shown.end() == 0

    assert b"\x1b[1m" in shown.raw


@pytest.mark.parametrize(("seconds", "shown"), [(8.0, "· 8.00 s · 5.0 tokens/s"), (0.2, "· 0.20 s")])
def test_bill_has_the_tokens_per_second_of_calls_that_took_a_while(seconds: float, shown: str) -> None:
    assert bill_line(RunUsage(requests=1, usage=Usage(10, 40), seconds=seconds)).endswith(shown)


def test_a_wait_is_described_in_the_language_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    notice = Notice(Wording("reading the prompt: {part}", part="44%"), code="waiting", seconds=8.0)
    assert wait_text(notice) == "waiting 8 s: reading the prompt: 44%"

    monkeypatch.setenv("TAIWA_LANG", "ja")

    assert wait_text(notice) == "8 秒待っています: プロンプトを読んでいます: 44%"
