from functools import cache
from typing import TypeAlias

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from taiwa.constraints.gbnf import grammar_to_gbnf
from taiwa.constraints.readable_guides import GrammarGuide
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Grammar
from tests.constraints.gbnf_reader import Gbnf
from tests.constraints.test_readable_guides_grammars import GRAMMARS
from tests.constraints.vocabularies import BYTES

INDIRECT = 'start: x\nx: y "a" | "b"\ny: x "c" | z\nz: "d"? x "e" | "f"'
Body: TypeAlias = tuple[str, ...]
EMPTY = '""'
LEFT_RECURSIVE = {
    "directly": (GRAMMARS["ambiguous"][0], "start"),
    "on the left": (GRAMMARS["left and right"][0], "l"),
    "in a circle": (INDIRECT, "x"),
    "behind nothing": ("start: list\nlist: list X | \nX: /x/", "list"),
    "in a repetition of nothing": ('start: "b" a+\na: "a"?', "start"),
}
ALL = {
    name: case for name, case in GRAMMARS.items() if case[0] not in [each for each, _ in LEFT_RECURSIVE.values()]
} | {
    "names that are alike": ('start: a_1 A_1 a1\na_1: "x"\nA_1: /y+/\na1: A_1?', "xy"),
    "empty at the start": ("start: X*\nX: /x/", "x"),
    "repeated": ('start: ("a" | "b" "c"+)* "d" ~ 2..4', "abcd"),
    "imported": ('start: "[" (ESCAPED_STRING ("," ESCAPED_STRING)*)? "]"\n%import common.ESCAPED_STRING', '[]",\\a'),
}


@cache
def guide_of(name: str) -> GrammarGuide:
    return GrammarGuide(ALL[name][0], BYTES)


@cache
def written_as_gbnf(name: str) -> Gbnf:
    return Gbnf(grammar_to_gbnf(Grammar(ALL[name][0])))


@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
def test_the_grammar_accepts_just_what_the_reference_guide_does(name: str, data: st.DataObject) -> None:
    text = data.draw(st.text(ALL[name][1], max_size=8))

    assert written_as_gbnf(name).accepts(text) == guide_of(name).accepts(text)


SYMBOLS = st.sampled_from(["start", "p", "q", "a", "b"])
BODIES = st.lists(st.lists(SYMBOLS, max_size=2).map(tuple), min_size=1, max_size=3, unique=True)


@settings(max_examples=2 * settings().max_examples)
@given(st.fixed_dictionaries({"start": BODIES, "p": BODIES, "q": BODIES}), st.text("ab", max_size=4))
def test_rules_are_the_same_in_gbnf_or_refused_as_left_recursive(rules: dict[str, list[Body]], text: str) -> None:
    lines = [f"{name}: {' | '.join(' '.join(body) for body in bodies)}" for name, bodies in rules.items()]
    naive = [f"{name} ::= {' | '.join(' '.join(body) or EMPTY for body in bodies)}" for name, bodies in rules.items()]
    signs = ['a ::= "a"', 'b ::= "b"']
    try:
        written = grammar_to_gbnf(Grammar("\n".join([*lines, 'a: "a"', 'b: "b"'])))
    except InputError as error:
        assume("left-recursive" in error.message)
        with pytest.raises(AssertionError, match="begins with itself"):
            Gbnf("\n".join(["root ::= start", *naive, *signs]))
        return

    assert Gbnf(written).accepts(text) == (text in _texts(rules))


@pytest.mark.parametrize(("grammar", "rule"), LEFT_RECURSIVE.values(), ids=LEFT_RECURSIVE)
def test_a_left_recursive_grammar_is_refused_with_the_name_of_the_rule(grammar: str, rule: str) -> None:
    with pytest.raises(InputError, match=f"the rule '{rule}' of the grammar is left-recursive"):
        grammar_to_gbnf(Grammar(grammar))


def _texts(rules: dict[str, list[Body]]) -> set[str]:
    """All texts of up to four characters, found by putting them together until no more are found."""
    known: dict[str, set[str]] = {name: set() for name in rules} | {"a": {"a"}, "b": {"b"}}
    grown = True
    while grown:
        grown = False
        for name, bodies in rules.items():
            for body in bodies:
                made = {""}
                for part in body:
                    made = {one + other for one in made for other in known[part] if len(one + other) <= 4}
                grown = grown or not made <= known[name]
                known[name] |= made
    return known["start"]


def test_a_grammar_in_gbnf_is_left_as_it_is() -> None:
    text = 'root ::= "a" | item\nitem ::= "b"'

    assert grammar_to_gbnf(Grammar(text)) == text
    assert grammar_to_gbnf(Grammar('item ::= "b"', "item")) == 'root ::= item\nitem ::= "b"'
    with pytest.raises(InputError, match="must not be called root"):
        grammar_to_gbnf(Grammar(text, "item"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("start: x", "cannot be read"),
        ("start: A\n%declare A", "only declared"),
        ("start: A\nA: /a(?=b)/", "the terminal A of the grammar: .*look-ahead"),
        ('start: "a" start', "no text that ends"),
        ('start: %json {"type": "object"}', "cannot be read"),
    ],
)
def test_what_gbnf_cannot_say_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        grammar_to_gbnf(Grammar(text))
