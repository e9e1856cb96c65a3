"""The two walk-throughs of constrained decoding, step by step: a grammar over five tokens, a schema over fifteen."""

from taiwa.constraints.readable_guides import Generate, GrammarGuide, RegexGuide, Write
from taiwa.constraints.schema_regex import to_regex
from taiwa.constraints.vocabulary import Vocabulary

FIVE = Vocabulary([b"(", b")", b"1", b"2", b"<end>"], end=4)
IN_PARENTHESES = """
start: "(" NUMBER ")"
%import common.NUMBER
"""
FIFTEEN = Vocabulary(
    [b"<end>", b"{", b"}", b'"', b"value", b":", b"-", b".", b"e", b"0", b"1", b"2", b"42", b"[", b"true"], end=0
)
UNBOUNDED = r'\{"value":-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\}'
"""As the article has it, which leaves the length of a number open."""
SCHEMA = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}


def test_a_number_in_parentheses_over_five_tokens() -> None:
    guide = GrammarGuide(IN_PARENTHESES, FIVE)
    state = guide.start()

    assert guide.next_instruction(state) == Write((0,))  # only "(" can begin
    state = guide.next_state(state, 0)
    assert guide.next_instruction(state) == Generate((2, 3))  # a digit
    assert not state.is_final
    state = guide.next_state(state, 2)
    assert guide.next_instruction(state) == Generate((1, 2, 3))  # another one, or ")"
    state = guide.next_state(state, 3)
    assert guide.next_instruction(state) == Generate((1, 2, 3))
    state = guide.next_state(state, 1)
    assert state.is_final
    assert guide.next_instruction(state) == Write((4,))  # nothing but the end
    state = guide.next_state(state, 4)

    assert state.is_ended
    assert state.text == b"(12)"
    assert guide.accepts("(12)")
    assert not guide.accepts("(12")
    assert not guide.accepts("()")


def test_a_schema_becomes_a_regex_an_automaton_and_a_map_of_tokens_over_fifteen() -> None:
    guide = RegexGuide(UNBOUNDED, FIFTEEN)
    maps = guide.states_to_token_maps

    assert to_regex(SCHEMA) == (
        r'\{"value":-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,24})?([eE]\+?[0-9]{1,2}|[eE]-[0-9]{1,3})?\}'
    )
    names = {state: sorted(FIFTEEN.tokens[token].decode() for token in row) for state, row in maps.items()}
    assert list(names.values()) == [
        ["{"],
        ['"'],
        ["value"],
        ['"'],
        [":"],
        ["-", "0", "1", "2", "42"],
        ["0", "1", "2", "42"],  # after "-"
        [".", "e", "}"],  # after "0"
        [".", "0", "1", "2", "42", "e", "}"],
        ["0", "1", "2", "42"],  # after "."
        ["-", "0", "1", "2", "42"],  # after "e"
        ["0", "1", "2", "42", "e", "}"],
        ["0", "1", "2", "42"],  # after "e-"
        ["0", "1", "2", "42", "}"],
    ]
    assert len(guide.final_states) == 1


def test_the_schema_is_followed_token_by_token() -> None:
    guide = RegexGuide(to_regex(SCHEMA), FIFTEEN)
    state, asked = guide.start(), 0
    wishes = iter([12, 7, 10, 2])  # 42 . 1 }

    while not state.is_ended:
        instruction = guide.next_instruction(state)
        if isinstance(instruction, Write):
            tokens = instruction.tokens
        else:
            asked += 1
            tokens = (next(wishes),)
            assert tokens[0] in instruction.tokens
        for token in tokens:
            state = guide.next_state(state, token)

    assert state.text == b'{"value":42.1}'
    assert asked == 4


def test_without_writing_the_model_is_asked_for_every_token_but_the_end() -> None:
    guide = GrammarGuide(IN_PARENTHESES, FIVE)
    state, printed = guide.start(), list[object]()
    for token in (0, 2, 3, 1, 4):
        printed.append(guide.next_instruction(state, write=False))
        state = guide.next_state(state, token)

    assert printed == [Generate((0,)), Generate((2, 3)), Generate((1, 2, 3)), Generate((1, 2, 3)), Write((4,))]


def test_a_forced_key_is_generated_token_by_token_without_writing() -> None:
    guide = RegexGuide(UNBOUNDED, FIFTEEN)
    state = guide.start()

    for token in FIFTEEN.divide(b'{"value":'):
        assert guide.next_instruction(state, write=False) == Generate((token,))
        state = guide.next_state(state, token)
