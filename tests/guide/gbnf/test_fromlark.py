import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from taiwa.guide.gbnf import of_grammar
from taiwa.guide.gbnf.leftward import Body, rightward
from taiwa.guide.reference.cfg import Cfg
from taiwa.kernel import InputError
from taiwa.kernel.values import Grammar
from tests.guide.gbnf.reader import Gbnf
from tests.guide.reference.test_cfg import GRAMMARS
from tests.guide.vocabularies import BYTES

INDIRECT = 'start: x\nx: y "a" | "b"\ny: x "c" | z\nz: "d"? x "e" | "f"'
ALL = GRAMMARS | {
    "begins with itself in a circle": (INDIRECT, "abcdef"),
    "names that are alike": ('start: a_1 A_1 a1\na_1: "x"\nA_1: /y+/\na1: A_1?', "xy"),
    "empty at the start": ("start: list\nlist: list X | \nX: /x/", "x"),
    "imported": ('start: "[" (ESCAPED_STRING ("," ESCAPED_STRING)*)? "]"\n%import common.ESCAPED_STRING', '[]",\\a'),
}
GUIDES = {name: Cfg(grammar, BYTES) for name, (grammar, _) in ALL.items()}
WRITTEN = {name: Gbnf(of_grammar(Grammar(grammar))) for name, (grammar, _) in ALL.items()}


@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
def test_the_grammar_accepts_just_what_the_reference_guide_does(name: str, data: st.DataObject) -> None:
    text = data.draw(st.text(ALL[name][1], max_size=8))

    assert WRITTEN[name].accepts(text) == GUIDES[name].accepts(text)


SYMBOLS = st.sampled_from(["start", "p", "q", "a", "b"])
BODIES = st.lists(st.lists(SYMBOLS, max_size=2).map(tuple), min_size=1, max_size=3)


@settings(max_examples=200)
@given(st.fixed_dictionaries({"start": BODIES, "p": BODIES, "q": BODIES}), st.text("ab", max_size=4))
def test_rules_say_the_same_when_none_begins_with_itself(rules: dict[str, list[Body]], text: str) -> None:
    try:
        straight = rightward(rules, "start")
    except InputError:
        assume(False)
        return

    lines = [f"root ::= {_name('start')}"]
    lines += [f"{_name(name)} ::= {' | '.join(_body(body) for body in bodies)}" for name, bodies in straight.items()]

    assert Gbnf("\n".join([*lines, 'a ::= "a"', 'b ::= "b"'])).accepts(text) == (text in _texts(rules))


def _name(name: str) -> str:
    return name.replace("~", "-")


def _body(body: Body) -> str:
    return " ".join(map(_name, body)) or '""'


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

    assert of_grammar(Grammar(text)) == text
    assert of_grammar(Grammar('item ::= "b"', "item")) == 'root ::= item\nitem ::= "b"'
    with pytest.raises(InputError, match="must not be called root"):
        of_grammar(Grammar(text, "item"))


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
        of_grammar(Grammar(text))
