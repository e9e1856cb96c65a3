import itertools
import math
from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.guide import Choice, Guide, compile, decode  # noqa: A004  (called guide.compile)
from taiwa.kernel import DeadEndError, InputError

VOCABULARY = ("<end>", "y", "e", "s", "ye", "yes", "n", "no", "o", "not", "", "y")
END = 0
YES_NO = compile(Choice(("yes", "no", "not")), VOCABULARY, END)


def text(tokens: Sequence[int], vocabulary: Sequence[str] = VOCABULARY) -> str:
    return "".join(vocabulary[token] for token in tokens)


def never(_: tuple[int, ...]) -> list[float]:
    raise AssertionError("the model was asked for a forced token")


def flat(_: tuple[int, ...]) -> list[float]:
    return [0.0] * len(VOCABULARY)


def test_every_way_to_spell_a_word_is_allowed() -> None:
    allowed = YES_NO.allowed(YES_NO.start)

    assert [VOCABULARY[token] for token in allowed] == ["y", "ye", "yes", "n", "no", "not", "y"]


def test_the_mask_says_the_same_for_the_whole_vocabulary() -> None:
    mask = YES_NO.mask(YES_NO.start)

    assert len(mask) == len(VOCABULARY)
    assert tuple(token for token, may in enumerate(mask) if may) == YES_NO.allowed(YES_NO.start)


def test_the_end_is_allowed_where_a_word_is_whole() -> None:
    state = YES_NO.advance(YES_NO.start, VOCABULARY.index("no"))

    assert YES_NO.is_final(state)
    assert END in YES_NO.allowed(state)


def test_a_token_that_no_word_has_here_cannot_come() -> None:
    with pytest.raises(InputError, match="token 3 cannot follow ''"):
        YES_NO.advance(YES_NO.start, VOCABULARY.index("s"))


def test_a_path_that_cannot_be_finished_is_not_begun() -> None:
    guide = compile(Choice(("no", "nay")), ("<end>", "n", "o", "nay", "na"), END)

    state = guide.advance(guide.start, 1)

    assert guide.allowed(guide.start) == (1, 3)
    assert guide.forced(state) == 2


def test_a_word_that_cannot_be_spelled_is_refused_when_compiling() -> None:
    with pytest.raises(DeadEndError, match="no sequence of tokens spells 'maybe'") as caught:
        compile(Choice(("yes", "maybe")), VOCABULARY, END)

    assert caught.value.state == "maybe"


@pytest.mark.parametrize(("options", "end"), [((), 0), (("y",), 12), (("y",), -1)])
def test_what_makes_no_guide_is_refused(options: tuple[str, ...], end: int) -> None:
    with pytest.raises(InputError):
        compile(Choice(options), VOCABULARY, end)


def test_the_end_token_spells_nothing() -> None:
    with pytest.raises(DeadEndError):
        compile(Choice(("<end>",)), VOCABULARY, END)


def test_a_literal_is_a_choice() -> None:
    assert Choice.of(Literal["yes", "no"]) == Choice(("yes", "no"))
    with pytest.raises(InputError, match="not a Literal of strings"):
        Choice.of(Literal["yes", 1])
    with pytest.raises(InputError, match="not a Literal of strings"):
        Choice.of(str)


def test_a_forced_text_costs_no_question() -> None:
    guide = compile(Choice(("abc",)), ("<end>", "a", "b", "c"), END)

    assert decode(guide, never) == (1, 2, 3)


def test_the_likeliest_allowed_token_is_taken() -> None:
    wishes = dict.fromkeys(range(len(VOCABULARY)), 0.0) | {
        VOCABULARY.index("s"): 9.0,
        VOCABULARY.index("no"): 5.0,
        END: 1.0,
    }

    tokens = decode(YES_NO, lambda _: [wishes[token] for token in range(len(VOCABULARY))])

    assert text(tokens) == "no"


def test_a_model_is_asked_with_the_tokens_so_far() -> None:
    seen: list[tuple[int, ...]] = []

    def model(tokens: tuple[int, ...]) -> list[float]:
        seen.append(tokens)
        return [1.0 if VOCABULARY[token] in ("n", "o") else 0.0 for token in range(len(VOCABULARY))]

    decode(compile(Choice(("no", "nn")), VOCABULARY, END), model)

    assert seen[0] == ()
    assert all(len(earlier) < len(later) for earlier, later in itertools.pairwise(seen))


@pytest.mark.parametrize("score", [-math.inf, math.nan])
def test_a_model_that_rules_out_everything_reaches_a_dead_end(score: float) -> None:
    with pytest.raises(DeadEndError, match="rules out every token"):
        decode(YES_NO, lambda _: [score] * len(VOCABULARY))


def test_logits_of_another_size_are_refused() -> None:
    with pytest.raises(InputError, match="2 logits for a vocabulary of 12"):
        decode(YES_NO, lambda _: [0.0, 0.0])


def test_a_state_of_another_guide_is_refused() -> None:
    with pytest.raises(InputError, match="'x' is no state"):
        YES_NO.allowed("x")


def test_compiling_and_walking_leave_a_guide_as_it_was() -> None:
    before = {state: YES_NO.allowed(state) for state in YES_NO.moves}

    decode(YES_NO, flat)

    assert before == {state: YES_NO.allowed(state) for state in YES_NO.moves}


WORDS = st.lists(st.text("abあ", max_size=5), min_size=1, max_size=5)


def vocabulary_of(tokens: list[str]) -> tuple[str, ...]:
    return ("<end>", "a", "b", "あ", *tokens)


@given(WORDS, st.lists(st.text("abあ", max_size=3), max_size=6), st.data())
def test_every_walk_ends_in_an_option_and_every_option_can_be_reached(
    options: list[str], tokens: list[str], data: st.DataObject
) -> None:
    vocabulary = vocabulary_of(tokens)
    guide = compile(Choice(tuple(options)), vocabulary, END)

    walked = decode(
        guide, lambda _: data.draw(st.lists(st.floats(-9, 9), min_size=len(vocabulary), max_size=len(vocabulary)))
    )

    assert text(walked, vocabulary) in options
    for option in options:
        assert guide.is_final(spelled(guide, vocabulary, option))


def spelled(guide: Guide, vocabulary: Sequence[str], option: str) -> str:
    """The state after the option's characters, one token each."""
    state = guide.start
    for char in option:
        state = guide.advance(state, vocabulary.index(char))
    return state


@given(WORDS, st.lists(st.text("abあ", max_size=3), max_size=6))
def test_a_token_is_allowed_exactly_where_some_option_goes_on_with_it(options: list[str], tokens: list[str]) -> None:
    vocabulary = vocabulary_of(tokens)
    guide = compile(Choice(tuple(options)), vocabulary, END)

    for state in guide.moves:
        for token, piece in enumerate(vocabulary):
            goes_on = token != END and piece != "" and any(option.startswith(state + piece) for option in options)
            assert guide.mask(state)[token] == (goes_on or (token == END and state in options))
