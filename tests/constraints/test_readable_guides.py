import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.constraints.guide import Guide, GuideState, empty_mask
from taiwa.constraints.readable_guides import Generate, RegexGuide, Write, choice_regex
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError, NoValidTokenError
from tests.constraints.patterns import matches, patterns
from tests.constraints.vocabularies import BYTES, pieces, vocabulary, with_bytes

YES_NO = vocabulary("y", "e", "s", "ye", "yes", "n", "no", "o", "not", "", "y")


def test_it_is_a_guide() -> None:
    guide = RegexGuide("a", BYTES)

    assert isinstance(guide, Guide)
    assert isinstance(guide.start(), GuideState)


@given(patterns(), pieces, st.data())
def test_a_walk_ends_in_a_text_that_matches(pattern: str, texts: list[str], data: st.DataObject) -> None:
    state = RegexGuide(pattern, with_bytes(*texts)).start()

    while len(state.tokens) < 12 and not state.is_ended:
        allowed = state.allowed()
        assert allowed
        state = state.advance(data.draw(st.sampled_from(allowed)))

    if state.is_ended and "(?i" not in pattern:
        text = state.text.decode()
        assert matches(pattern, text), text


@given(patterns(), pieces, st.text('abé文" 0', max_size=3))
def test_a_token_is_allowed_just_where_some_match_goes_on_with_it(pattern: str, texts: list[str], before: str) -> None:
    made = with_bytes(*texts)
    guide = RegexGuide(pattern, made)
    state = guide.start()
    for byte in before.encode():
        if byte not in state.moves:
            return
        state = state.advance(byte)

    allowed = state.everything()

    for token, text in enumerate(made.tokens):
        if token != 256:
            goes_on = guide.automaton.walk(before.encode() + text) is not None
            assert (token in allowed) == goes_on
    assert (256 in allowed) == guide.accepts(before)


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=5), patterns())
def test_no_state_is_a_dead_end_whatever_the_vocabulary(texts: list[str], pattern: str) -> None:
    try:
        guide = RegexGuide(pattern, vocabulary(*texts))
    except NoValidTokenError:
        return

    maps = guide.states_to_token_maps

    for row in maps.values():
        assert all(there in maps or guide.is_end(there) for there in row.values())
    assert guide.start().everything()


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4), patterns())
def test_what_the_tokens_can_write_is_never_refused(texts: list[str], pattern: str) -> None:
    made = vocabulary(*texts)
    tokens = range(1, len(made))
    for way in itertools.chain.from_iterable(itertools.product(tokens, repeat=count) for count in range(1, 4)):
        if matches(pattern, made.decode(way).decode()) and "(?i" not in pattern:
            state = RegexGuide(pattern, made).start()
            for token in way:
                state = state.advance(token)
            assert state.is_final


def test_every_way_to_spell_a_word_is_allowed_and_so_are_tokens_that_write_the_same() -> None:
    state = RegexGuide.of_choice(["yes", "no", "not"], YES_NO).start()

    assert [YES_NO.tokens[token] for token in state.everything()] == [b"y", b"ye", b"yes", b"n", b"no", b"not", b"y"]


def test_a_path_that_cannot_be_finished_is_not_begun() -> None:
    state = RegexGuide("no|nay", vocabulary("n", "o", "nay", "na")).start()

    assert state.everything() == (1, 3)
    assert state.advance(1).forced() == (2,)
    assert "can finish" in state.explain(4).why


def test_a_word_that_cannot_be_spelled_is_refused() -> None:
    with pytest.raises(NoValidTokenError, match="no sequence of tokens spells 'maybe'") as caught:
        RegexGuide.of_choice(["yes", "maybe"], YES_NO)

    assert caught.value.state == "maybe"
    with pytest.raises(NoValidTokenError):
        RegexGuide("maybe", YES_NO)


def test_the_end_and_other_special_tokens_spell_nothing() -> None:
    made = Vocabulary([b"<end>", b"<user>", b"a", b""], end=0, special=[1])

    assert RegexGuide("<end>|<user>|a", made).start().everything() == (2,)


def test_a_choice_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        RegexGuide.of_choice([], YES_NO)


@given(st.lists(st.text("a.*[文\\|", max_size=3), min_size=1, max_size=4))
def test_a_choice_is_of_its_words_whatever_they_mean_in_a_pattern(choice: list[str]) -> None:
    guide = RegexGuide(choice_regex(choice), BYTES)

    assert all(guide.accepts(word) for word in choice)
    assert not any(guide.accepts(word + "b") for word in choice)


def test_the_mask_says_the_same_as_the_tokens() -> None:
    state = RegexGuide("[a-z]+", BYTES).start().advance(ord("a"))
    out = ~empty_mask(len(BYTES))

    state.mask(out)

    assert [token for token in range(len(BYTES)) if out[token >> 5] >> np.uint32(token & 31) & 1] == [
        *state.everything()
    ]
    assert state.allowed(limit=26) is None
    assert len(state.allowed() or ()) == 27


def test_states_are_values() -> None:
    start = RegexGuide("ab*", BYTES).start()
    there = start.advance(97).advance(98)

    assert start.tokens == ()
    assert there.rollback(2) == start
    assert there.fork() == there
    assert there.rollback(1).advance(98) == there
    with pytest.raises(InputError, match="cannot roll back"):
        there.rollback(3)


def test_after_the_end_nothing_comes() -> None:
    state = RegexGuide("a", BYTES).start().advance(97)

    assert state.is_complete
    ended = state.advance(256)

    assert ended.is_ended
    assert ended.is_final
    assert not ended.is_dead
    assert ended.everything() == ()
    with pytest.raises(InputError, match="has ended"):
        ended.advance(97)


def test_certain_bytes_are_written_with_the_tokens_that_the_tokenizer_would_take() -> None:
    made = Vocabulary(
        (*BYTES.tokens, b'"value', b'":', b'{"'),
        end=256,
        encode=lambda text: Vocabulary.divide(WITH_PIECES, text.encode()),
    )
    state = RegexGuide('\\{"value":(true|false)\\}', made).start()

    assert [made.tokens[token] for token in state.forced()] == [b'{"', b"v", b"a", b"l", b"u", b"e"]
    assert state.forced() == RegexGuide('\\{"value":true\\}', made).start().forced()[:6]
    assert RegexGuide('\\{"value":true\\}', made).start().forced()[6:] == (257 + 1, *b"true}")


WITH_PIECES = with_bytes('"value', '":', '{"')


def test_half_a_character_is_a_state_like_any_other() -> None:
    made = vocabulary(b"\xe6\x96", b"\x87", b"\xe6")
    state = RegexGuide("文", made).start()

    assert state.everything() == (1,)
    assert state.advance(1).explain().expected == "the rest of a character"
    assert state.advance(1).advance(2).is_complete


def test_why_a_token_is_out_is_told() -> None:
    state = RegexGuide("[0-9]{2}x", with_bytes("1a")).start()

    assert state.explain(257).why == "after '1', 'a' is not expected; expected: '0'…'9'"
    assert state.explain(256).why == "the text cannot end here; expected: '0'…'9'"
    assert state.explain(999).why == "unknown token 999; the vocabulary has 258"
    assert state.explain(ord("1")).why == ""
    with pytest.raises(InputError, match="token 97 cannot come here: 'a' is not expected"):
        state.advance(97)


def test_an_instruction_is_to_ask_or_to_write() -> None:
    guide = RegexGuide("ab?", vocabulary("a", "b"))
    state = guide.start()

    assert guide.next_instruction(state) == Write((1,))
    assert guide.next_instruction(guide.next_state(state, 1)) == Generate((0, 2))
    assert guide.next_instruction(guide.next_state(guide.next_state(state, 1), 2)) == Write((0,))
    assert guide.next_state(state, 1).is_final


def test_a_large_vocabulary_is_looked_up_state_by_state() -> None:
    made = Vocabulary((*BYTES.tokens, *(f"{number}".encode() for number in range(50_000))), end=256)
    guide = RegexGuide("[0-9]{1,3}", made)

    assert len(guide.start().everything()) == 10 + 1000
    assert guide.states_to_token_maps[0][257 + 999] != guide.states_to_token_maps[0][257]
