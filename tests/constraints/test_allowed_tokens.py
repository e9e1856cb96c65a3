import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa import constraints
from taiwa.constraints import Guide, GuideState, Vocabulary
from taiwa.constraints.allowed_tokens import MatcherState, matcher_of
from taiwa.constraints.guide import empty_mask, mask_tokens
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import Choice, JsonSchema, Regex

BYTES = Vocabulary.of_bytes()
END = 256
SCHEMA = JsonSchema(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 5}, "kind": {"enum": ["tea", "coffee"]}},
        "required": ["name", "kind"],
        "additionalProperties": False,
    }
)
CERTAIN = Vocabulary((*BYTES.tokens, b'{"', b'name":', b'": "', b"aa", b"a", b"", b'"kind"'), 256)


def begun() -> MatcherState:
    return constraints.compile(SCHEMA, BYTES, whitespace="compact").start()


def masked(state: MatcherState) -> tuple[int, ...]:
    mask = empty_mask(len(state.vocabulary))
    state.mask(mask)
    found = mask_tokens(mask, len(state.vocabulary))
    assert found is not None
    return tuple(found.tolist())


def test_guides_and_states_are_what_the_protocol_says() -> None:
    assert isinstance(constraints.compile(SCHEMA, BYTES), Guide)
    assert isinstance(begun(), GuideState)


@given(st.data())
def test_the_mask_the_list_and_advance_agree(data: st.DataObject) -> None:
    state = begun()
    for _ in range(data.draw(st.integers(0, 30))):
        allowed = state.allowed(300)
        assert allowed is not None
        assert masked(state) == allowed
        assert state.allowed(len(allowed) - 1) is None
        refused = next((token for token in range(257) if token not in allowed), None)
        if refused is not None:
            with pytest.raises(InputError):
                state.advance(refused)
        if state.is_complete:
            break
        state = state.advance(data.draw(st.sampled_from([token for token in allowed if token != END])))


@given(st.data())
def test_states_are_values_whatever_is_done_with_those_before_and_after_them(data: st.DataObject) -> None:
    states = [begun()]
    for _ in range(data.draw(st.integers(1, 25))):
        state = data.draw(st.sampled_from(states))
        step = data.draw(st.sampled_from(["advance", "advance", "advance", "rollback", "fork", "end"]))
        if step == "rollback":
            states.append(state.rollback(data.draw(st.integers(0, len(state.tokens)))))
        elif step == "fork":
            states.append(state.fork())
        elif (step == "end") == state.is_final and not state.is_ended:
            allowed = state.allowed(300) or ()
            choices = [END] if step == "end" else [token for token in allowed if token < 128] or list(allowed)
            states.append(state.advance(data.draw(st.sampled_from(choices))))

    for state in states:
        fresh = begun().go(state.tokens)
        assert masked(state) == masked(fresh)
        assert (state.is_final, state.is_complete, state.is_ended) == (
            fresh.is_final,
            fresh.is_complete,
            fresh.is_ended,
        )
        assert state.forced() == fresh.forced()


def test_a_whole_text_is_complete_and_then_ended() -> None:
    state = begun().go(b'{"name":"x","kind":"tea"}')

    assert (state.is_final, state.is_complete, state.is_ended, state.is_dead) == (True, True, False, False)
    assert state.allowed() == (END,)
    ended = state.advance(END)
    assert (ended.is_final, ended.is_complete, ended.is_ended, ended.is_dead) == (True, False, True, False)
    assert (ended.allowed(), ended.forced(), ended.tokens[-1]) == ((), (), END)
    with pytest.raises(InputError, match="has ended"):
        ended.advance(0)
    assert ended.rollback(1).is_complete


def test_the_text_cannot_end_at_its_first_position() -> None:
    with pytest.raises(InputError, match="cannot end here"):
        begun().advance(END)


@pytest.mark.parametrize("token", [-1, 257, 10_000])
def test_a_token_that_is_not_there_is_refused(token: int) -> None:
    with pytest.raises(InputError, match=f"unknown token {token}"):
        begun().advance(token)


def test_no_more_tokens_than_there_are_can_be_taken_back() -> None:
    with pytest.raises(InputError, match="cannot roll back 2 tokens; there are 1"):
        begun().advance(ord("{")).rollback(2)


def test_forced_tokens_are_those_that_the_tokenizer_would_choose() -> None:
    state = constraints.compile(SCHEMA, CERTAIN, whitespace="compact").start()

    assert CERTAIN.decode(state.forced()) == b'{"name":'
    assert state.forced()[:2] == CERTAIN.encode('{"name":')[:2]
    assert state.go(state.forced()).forced() == ()


def test_gaps_duplicates_and_special_tokens() -> None:
    state = constraints.compile(Regex("a+"), CERTAIN).start()

    assert state.allowed() == (97, 260, 261)
    with pytest.raises(InputError, match="262 writes nothing"):
        state.advance(262)


def test_every_end_may_end_a_text() -> None:
    vocabulary = Vocabulary((b"a", b"<end>", b"<stop>"), (1, 2))
    state = constraints.compile(Regex("a?"), vocabulary).start()

    assert state.allowed() == (0, 1, 2)
    assert state.advance(2).is_ended
    assert state.advance(0).allowed() == (1, 2)


def test_what_the_vocabulary_cannot_write_is_a_dead_end_where_it_is_met() -> None:
    state = constraints.compile(Regex("ab|ac+"), Vocabulary((b"a", b"x", b"<end>"), 2)).start().advance(0)

    assert state.is_dead
    with pytest.raises(NoValidTokenError, match="after 'a'") as caught:
        state.allowed()
    assert caught.value.state == "a"


def test_a_guide_whose_tables_are_full_makes_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = constraints.compile(Regex("(ab|cd)+"), BYTES)
    kept = compiled.start().go(b"ab")
    made: list[str] = []
    compiled._matcher = matcher_of(BYTES, "start: /(/")
    kept._track.matcher = compiled._matcher.deep_copy()
    monkeypatch.setattr(
        "taiwa.constraints.allowed_tokens.matcher_of", lambda *given: made.append("anew") or matcher_of(*given)
    )

    assert kept.allowed() == (97, 99, 256)
    assert made == ["anew"]
    assert compiled.accepts(b"abcd")


def test_a_mask_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match="one row of 9 32-bit words"):
        begun().mask(np.zeros(8, dtype=np.uint32))


def test_an_explanation_names_the_place_the_keyword_and_what_is_wrong() -> None:
    told = begun().go(b'{"name":"x","kind":"t').explain(ord("x"))

    assert told.pointer == "/kind"
    assert told.keyword == "/properties/kind: enum"
    assert (told.count, told.examples) == (1, ("'e'",))
    assert "'x' is not expected" in told.why
    assert '"tea"' in told.why


def test_an_explanation_says_where_a_longer_token_goes_wrong() -> None:
    state = constraints.compile(Choice(("yes", "no")), Vocabulary((*BYTES.tokens, b"yep"), 256)).start()

    assert state.explain(257).why == "after 'ye', 'p' is not expected"
    assert state.explain(END).why == "the text cannot end here"
    assert state.explain(ord("y")).why == ""
    assert state.explain(999).why.startswith("unknown token 999")
    assert state.explain().expected == "'yes' or 'no'"
