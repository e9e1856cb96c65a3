import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from taiwa.constraints.guide import Guide, GuideState
from taiwa.constraints.readable_guides import Generate, GrammarGuide, Write
from taiwa.kernel.errors import InputError, NoValidTokenError
from tests.constraints.vocabularies import BYTES, spelled, vocabulary, with_bytes

ARITHMETIC = r"""
start: sum
?sum: product (("+" | "-") product)*
?product: atom (("*" | "/") atom)*
?atom: NUMBER | "-" atom | "(" sum ")"
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""
GRAMMARS = {  # Lark takes the first alternative of a regex that matches: so the longer ones stand first
    "arithmetic": (ARITHMETIC, "1.e+-*( )"),
    "ambiguous": ('start: start start | "a" | "ab" | B\nB: "b"+', "ab"),
    "nullable": ("start: a b a\na: X?\nb: \n | Y b\nX: /xy|x/\nY: /y+/", "xy"),
    "left and right": ('start: l r\nl: l "a" | "a"\nr: "b" r | "b"', "ab"),
    "several ignored": ('start: "a"+ "文"\n%ignore " "\n%ignore /#[^\\n]*\\n/', "a文 #\n"),
    "one end is another's beginning": ("start: A B\nA: /a+/\nB: /ab|b/", "ab"),
    "case": ('start: "select"i /[a-z]/', "selctSELCT"),
    "template": ('start: pair{"a", "b"}\npair{x, y}: x "," y | "[" pair{x, y} "]"', "ab,[]"),
}


def lark_accepts(parser: Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except LarkError:
        return False
    return True


@pytest.mark.parametrize("name", GRAMMARS)
@given(data=st.data())
def test_it_accepts_just_what_lark_parses(name: str, data: st.DataObject) -> None:
    text = data.draw(st.text(GRAMMARS[name][1], max_size=7))

    wanted = lark_accepts(PARSERS[name], text)

    assert GUIDES[name].accepts(text) == wanted


PARSERS = {name: Lark(grammar, parser="earley", lexer="dynamic_complete") for name, (grammar, _) in GRAMMARS.items()}
GUIDES = {name: GrammarGuide(grammar, BYTES) for name, (grammar, _) in GRAMMARS.items()}


@pytest.mark.parametrize("name", GRAMMARS)
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_a_walk_ends_in_a_text_that_lark_parses(name: str, data: st.DataObject) -> None:
    state = GUIDES[name].start()
    for _ in range(30):
        allowed = [token for token in state.everything() if token == 256 or 32 <= token < 128]
        if not allowed:
            return
        if state.is_final and len(state.tokens) > 6:
            break
        state = state.advance(data.draw(st.sampled_from(allowed)))
        if state.is_ended:
            break

    if state.is_final:
        assert lark_accepts(PARSERS[name], state.text.decode())


def test_it_is_a_guide() -> None:
    assert isinstance(GUIDES["arithmetic"], Guide)
    assert isinstance(GUIDES["arithmetic"].start(), GuideState)


def test_a_token_may_end_one_terminal_and_begin_the_next() -> None:
    made = vocabulary("((", "1+", "2)", ")*", "3", "1", ")+", ")")
    state = GrammarGuide(ARITHMETIC, made).start()

    for text in ("((", "1+", "2)", ")*", "3"):
        state = state.advance(made.tokens.index(text.encode()))

    assert state.is_final
    assert state.text == b"((1+2))*3"
    assert {made.tokens[token] for token in state.everything()} == {b"<end>", b"3", b"1", b"1+"}


def test_states_are_values_that_can_be_gone_on_from_twice() -> None:
    state = GUIDES["arithmetic"].start().advance(ord("1"))

    added, multiplied = state.advance(ord("+")), state.advance(ord("*"))

    assert state.is_final
    assert not added.is_final
    assert added.advance(ord("2")).is_final
    assert multiplied.advance(ord("2")).rollback(2) == state
    assert state.advance(ord("0")).text == b"10"


def test_what_these_tokens_could_never_finish_is_not_begun() -> None:
    made = vocabulary("(", "1", "[", "]", "value")
    guide = GrammarGuide('start: "(" start ")" | "[" start "]" | "1" | "value" | "{" start', made)

    assert guide.start().everything() == tuple(spelled(made, ["1", "[", "value"]))
    assert GrammarGuide('start: "value" "]"', vocabulary("value", "va", "]")).start().everything() == (1,)


def test_a_grammar_that_nothing_can_write_is_refused() -> None:
    for grammar in ('start: "a" start', 'start: "x"'):
        with pytest.raises(NoValidTokenError, match="no sequence of tokens"):
            GrammarGuide(grammar, vocabulary("a", "b"))


@pytest.mark.parametrize(
    ("grammar", "why"),
    [
        ("start: a", "not defined"),
        ("begin: /a/", "start"),
        ("start: /(/", "cannot be read"),
        ("start (", "cannot be read"),
        ('start: "a"\n%import .other.B', "imports a file"),
        ('start: "a"\n%import (.other)', "imports a file"),
        ("%import nothing_of_the_kind.X\nstart: X", "cannot be read"),
        ("start: X\n%declare X", "only declared"),
        ("start: X\nX: /a(?=b)/", "terminal X of the grammar: .*look-ahead"),
        ("start: X\nX: /a*/", "zero-width"),
        ("x" * 300_000, "300,000 characters"),
    ],
)
def test_what_is_no_grammar_is_refused(grammar: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        GrammarGuide(grammar, BYTES)


def test_larks_escaped_strings_end_at_the_quote_that_ends_them() -> None:
    guide = GrammarGuide('start: ESCAPED_STRING "!"\n%import common.ESCAPED_STRING', BYTES)

    assert guide.accepts(r'"a\"b\\"!')
    assert guide.accepts('"文"!')
    assert not guide.accepts(r'"a\"!')
    assert not guide.accepts('"a"b"!')


def test_the_rules_that_are_read_are_told() -> None:
    state = GUIDES["arithmetic"].start().advance(ord("("))

    told = state.explain(ord(")"))

    assert "'(' · sum ')'" not in told.keyword  # a rule waits for a terminal, not for another rule
    assert "atom: · NUMBER" in told.keyword
    assert set(told.expected.split(" or ")) == {"NUMBER", "'-'", "'('"}
    assert told.why == f"')' is not expected; expected: {told.expected}"


def test_instructions_follow_the_grammar() -> None:
    made = with_bytes("true")
    guide = GrammarGuide('start: "true" | "try"', made)
    state = guide.start()

    assert guide.next_instruction(state) == Write((ord("t"),)) or guide.next_instruction(state) == Generate(
        (ord("t"), 257)
    )
    assert guide.next_instruction(state.advance(257)) == Write((256,))


def test_deep_nesting_is_followed() -> None:
    guide = GrammarGuide('start: "(" start ")" | "x"', BYTES)

    assert guide.accepts("(" * 2000 + "x" + ")" * 2000)
    assert not guide.accepts("(" * 2000 + "x" + ")" * 1999)


LALR = (
    (
        ARITHMETIC.replace("?sum", "sum").replace("?product", "product").replace("?atom", "atom"),
        ["1", "+", "-", "*", "(", ")"],
    ),
    ('start: "(" NUMBER ("," NUMBER)* ")"\nNUMBER: /[0-9]/', ["(", "1", ",", ")"]),
    ('start: A* B?\nA: "a"\nB: "b"', ["a", "b"]),
)


@given(st.sampled_from(LALR), st.data())
def test_the_terminals_that_may_come_are_those_of_larks_incremental_parser(
    case: tuple[str, list[str]], data: st.DataObject
) -> None:
    grammar, pieces = case
    parser = Lark(grammar, parser="lalr")
    state = GrammarGuide(grammar, BYTES).start()
    interactive = parser.parse_interactive("")
    for piece in data.draw(st.lists(st.sampled_from(pieces), max_size=6)):
        token = next(iter(parser.lex(piece)))
        if token.type not in interactive.accepts():
            break
        interactive.feed_token(token)
        state = state.advance(ord(piece))

    assert set(state.explain().accepts) == {name for name in interactive.accepts() if name != "WS_INLINE"}
