import pytest

from taiwa.constraints.explain import trace_text
from taiwa.constraints.readable_guides import GrammarGuide, RegexGuide
from taiwa.constraints.vocabulary import Vocabulary, small_vocabulary
from taiwa.kernel.errors import InputError
from tests.constraints.vocabularies import BYTES, vocabulary

SCHEMA = {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]}


def test_a_text_is_followed_token_by_token() -> None:
    walk = trace_text(RegexGuide.of_schema(SCHEMA, small_vocabulary()), '{"value":12}')

    assert [step.text for step in walk.steps] == [b"", b'{"', b'{"value', b'{"value":', b'{"value":12', b'{"value":12}']
    assert [step.explanation.pointer for step in walk.steps] == ["", "", "", "/value", "/value", ""]
    assert walk.accepted
    assert walk.steps[-1].token is None
    assert all(step.place.isdecimal() for step in walk.steps)


def test_a_walk_ends_where_a_token_cannot_come_and_says_why() -> None:
    walk = trace_text(RegexGuide("[0-9]+%", BYTES), "12x%")

    assert len(walk.steps) == 3
    assert walk.refused is walk.steps[-1]
    assert not walk.accepted
    assert walk.steps[-1].why == "'x' is not expected; expected: '%', '0'…'9'"


def test_a_text_that_only_begins_well_is_not_accepted_and_not_refused() -> None:
    walk = trace_text(RegexGuide("[0-9]+%", BYTES), "12")

    assert not walk.accepted
    assert walk.refused is None


def test_what_had_to_come_is_forced() -> None:
    made = vocabulary("a", "b", "c", "d")
    walk = trace_text(GrammarGuide('start: "a" "b" ("c" | "d")', made), "abd")

    assert [step.forced for step in walk.steps] == [True, True, False, False]


def test_a_run_that_the_tokenizer_divides_itself_is_forced_as_a_whole() -> None:
    walk = trace_text(RegexGuide('\\{"value": (true|false)!\\}', small_vocabulary()), '{"value": true!}')

    assert [bool(step.forced) for step in walk.steps] == [True, True, True, True, False, True, True, False]
    assert [len(small_vocabulary().tokens[step.token]) for step in walk.steps if step.token is not None] == [
        2,
        5,
        2,
        1,
        4,
        1,
        1,
    ]


def test_without_a_text_there_is_the_start_alone() -> None:
    (step,) = trace_text(RegexGuide("a", BYTES), None).steps

    assert (step.text, step.token, step.explanation.count) == (b"", None, 1)


def test_a_text_that_the_vocabulary_cannot_write_is_refused() -> None:
    with pytest.raises(InputError, match="no token writes byte 1"):
        trace_text(RegexGuide("a*", vocabulary("a")), "ab")


def test_a_text_of_many_tokens_is_refused_before_it_is_followed() -> None:
    with pytest.raises(InputError, match="5,000 tokens"):
        trace_text(RegexGuide("a*", BYTES), "a" * 5000)


def test_the_small_vocabulary_writes_any_text_with_its_longest_tokens() -> None:
    made = small_vocabulary()

    assert made.decode(made.encode("抹茶と𠮷 \x00\n")) == "抹茶と𠮷 \x00\n".encode()
    assert made.is_canonical
    assert len({*made.tokens}) == len(made)
    assert made == small_vocabulary() != Vocabulary.of_bytes()
