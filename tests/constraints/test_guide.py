"""Several guides on one text: what all of them let through, and nothing else."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa import constraints
from taiwa.constraints.guide import empty_mask, intersection
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Regex

LETTERS = Vocabulary([b"a", b"b", b"ab", b"ba", b"<end>"], 4)
PATTERNS = ("a*", "(ab)*", "a[ab]{0,3}", "[ab]*b", "b?a+", "(a|ba)*")


def held(pattern: str) -> constraints.Guide:
    return constraints.compile(Regex(pattern), LETTERS)


@given(st.lists(st.sampled_from(PATTERNS), min_size=2, max_size=3), st.lists(st.integers(0, 4), max_size=4))
def test_a_token_comes_where_each_guide_lets_it_come(patterns: list[str], tokens: list[int]) -> None:
    states = [held(pattern).start() for pattern in patterns]
    joined = intersection(*map(held, patterns)).start()
    mask, one = empty_mask(len(LETTERS)), empty_mask(len(LETTERS))
    for token in (*tokens, None):
        joined.mask(mask)
        wanted = np.full_like(mask, 0xFFFFFFFF)
        for state in states:
            state.mask(one)
            wanted &= one
        assert np.array_equal(mask, wanted)
        assert joined.is_final == all(state.is_final for state in states)
        if token is None:
            break
        if not int(mask[0]) >> token & 1:
            with pytest.raises(InputError):
                joined.advance(token)
            break
        joined, states = joined.advance(token), [state.advance(token) for state in states]
        assert joined.tokens == states[0].tokens
        if token in LETTERS.end:
            assert joined.is_ended
            break


@pytest.mark.parametrize(("one", "other"), list(product(PATTERNS, PATTERNS)))
def test_what_is_forced_may_come(one: str, other: str) -> None:
    state = intersection(held(one), held(other)).start()
    for token in state.forced():
        state = state.advance(token)


def test_goes_back_and_forks() -> None:
    state = intersection(held("a*b"), held("[ab]*")).start()
    there = state.advance(0).advance(1)
    assert there.is_complete
    assert there.rollback(2).tokens == ()
    assert there.fork().rollback(1).allowed() == (0, 1, 2)


def test_is_dead_where_the_guides_want_different_things() -> None:
    state = intersection(held("ab"), held("aa")).start().advance(0)
    assert not state.is_final
    assert state.is_dead
    assert state.forced() == ()


def test_says_which_guide_keeps_a_token_out() -> None:
    told = intersection(held("a*"), held("[ab]*")).start().explain(1)
    assert told.why


def test_one_guide_stays_as_it_is_and_none_is_refused() -> None:
    one = held("a")
    assert intersection(one) is one
    with pytest.raises(InputError, match="at least one guide"):
        intersection()
    with pytest.raises(InputError, match="different vocabularies"):
        intersection(one, constraints.compile(Regex("a"), Vocabulary([b"a", b"<end>"], 1)))
