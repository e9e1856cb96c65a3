import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.constraints import gbnf
from taiwa.constraints.automaton import compile_regex
from taiwa.constraints.gbnf import regex_size, regex_to_gbnf
from taiwa.kernel.errors import InputError
from tests.constraints.gbnf_reader import Gbnf
from tests.constraints.patterns import patterns, texts


@given(patterns(), texts)
def test_the_grammar_accepts_just_what_the_automaton_does(pattern: str, text: str) -> None:
    grammar = Gbnf(regex_to_gbnf(pattern))

    assert grammar.accepts(text) == compile_regex(pattern).accepts(text.encode())


@given(patterns(), texts, st.data())
def test_behind_what_was_begun_stands_what_is_left(pattern: str, text: str, data: st.DataObject) -> None:
    begun = text[: data.draw(st.integers(0, len(text)))]
    automaton = compile_regex(pattern, chars=True)
    if automaton.walk(map(ord, begun)) is None:
        with pytest.raises(InputError, match="begins with"):
            regex_to_gbnf(pattern, begun)
        return

    assert Gbnf(regex_to_gbnf(pattern, begun)).accepts(text[len(begun) :]) == automaton.accepts(map(ord, text))


@given(st.lists(st.text(min_size=1, max_size=6).filter(str.isprintable), min_size=1, max_size=8), st.text(max_size=6))
def test_every_character_is_written_so_that_it_is_read_again(words: list[str], other: str) -> None:
    from taiwa.constraints.readable_guides import choice_regex

    grammar = Gbnf(regex_to_gbnf(choice_regex(words)))

    assert all(grammar.accepts(word) for word in words)
    assert grammar.accepts(other) == (other in words)


def test_what_only_one_character_can_follow_is_one_literal() -> None:
    assert regex_to_gbnf("2026-(10|11|12)") == 'root ::= "2026-1" root-6\nroot-6 ::= [0-2]'


def test_a_large_repetition_is_no_obstacle_and_a_larger_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Gbnf(regex_to_gbnf("[ab]{2500}")).rules

    monkeypatch.setattr(gbnf, "MOST_RULES", 50)
    with pytest.raises(InputError, match="more than 50 rules"):
        regex_to_gbnf("[ab]{60}")


@given(patterns())
def test_the_size_of_a_pattern_is_known_before_anything_is_made_of_it(pattern: str) -> None:
    assert regex_size(pattern) >= 0
    assert regex_size(f"({pattern}){{7}}") == 7 * regex_size(pattern)


@pytest.mark.parametrize("pattern", [r"a(?=b)", r"(a)\1", r"\bword", "a^b"])
def test_what_no_automaton_can_keep_is_refused_with_its_place(pattern: str) -> None:
    with pytest.raises(InputError, match="character"):
        regex_to_gbnf(pattern)
