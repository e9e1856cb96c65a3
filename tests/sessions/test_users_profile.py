"""A user profile as a YAML file: its keys, and its errors."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.types import ANONYMOUS_USER, Thresholds, UserProfile
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.sessions.users import BOUNDS, load_profile, read_profile, set_profile_value, write_profile

ANN = """\
name: ann
language: ja
department: 営業部
office: Osaka   # since May
thresholds:
  eagerness: 0.8
  max_questions: 1
"""


def test_a_profile_holds_facts_and_thresholds(tmp_path: Path) -> None:
    (tmp_path / "ann.yaml").write_text(ANN)

    found = load_profile(tmp_path / "ann.yaml")

    assert found == UserProfile(
        "ann", (("department", "営業部"), ("office", "Osaka")), "ja", Thresholds(eagerness=0.8, max_questions=1)
    )


def test_a_written_profile_reads_back_equal() -> None:
    assert read_profile(write_profile(read_profile(ANN, "a")), "b") == read_profile(ANN, "a")
    assert "unclear" not in write_profile(read_profile(ANN, "a"))


FACT = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=9).filter(
    lambda key: key not in BOUNDS and key not in ("name", "language", "thresholds", "null")
)
TEXT = (
    st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn", "Co"]), min_size=1, max_size=20)
    .map(str.strip)
    .filter(bool)
)


@given(st.dictionaries(FACT, TEXT, max_size=4), st.sampled_from(["", "ja", "zh", "en"]), st.integers(0, 10))
def test_every_written_profile_reads_back_equal(facts: dict[str, str], language: str, rounds: int) -> None:
    person = UserProfile("ann", tuple(facts.items()), language, Thresholds(max_questions=rounds))

    assert read_profile(write_profile(person), "p") == person


def test_an_empty_text_removes_a_fact_and_resets_a_threshold() -> None:
    person = set_profile_value(set_profile_value(ANONYMOUS_USER, "office", "Osaka"), "eagerness", "1")

    assert set_profile_value(set_profile_value(person, "office", ""), "thresholds.eagerness", "") == ANONYMOUS_USER


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("eagerness", "2", "from 0 to 1"), ("max_questions", "1.5", "whole number"), ("unclear", "much", "from 1 to 5"), ("eagerness", "nan", "from 0 to 1"),
        ("language", "tlh", "ja, zh, en"), ("thresholds.mood", "1", "invalid key"), ("", "x", "invalid key"),
        ("office", "x" * 501, "at most 500"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_reported_with_the_valid_ones(key: str, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        set_profile_value(ANONYMOUS_USER, key, text)


def test_the_number_of_facts_is_limited() -> None:
    person = UserProfile("ann", tuple((f"fact{number}", "x") for number in range(50)))

    with pytest.raises(InputError, match="at most 50 facts"):
        set_profile_value(person, "another", "x")


def test_an_error_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ann.yaml:2: eagerness is a number"):
        read_profile("name: ann\neagerness: 7\n", "ann.yaml")
    with pytest.raises(ConfigError, match="No such file"):
        load_profile(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"office: \xff")
    with pytest.raises(ConfigError, match="not UTF-8 at byte 8"):
        load_profile(tmp_path / "bytes.yaml")
