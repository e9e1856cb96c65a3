import pytest
from hypothesis import given

from taiwa.constraints.automaton import compile_regex, format_regex, parse_regex
from taiwa.kernel.errors import InputError
from tests.constraints.patterns import patterns


@given(patterns())
def test_a_tree_is_written_as_a_pattern_of_the_same_texts(pattern: str) -> None:
    again = format_regex(parse_regex(pattern))

    assert compile_regex(again).moves == compile_regex(pattern).moves
    assert compile_regex(again).finals == compile_regex(pattern).finals


@pytest.mark.parametrize(
    ("pattern", "character", "why"),
    [
        ("a(?=b)", 2, "look-ahead"),
        ("a(?!b)", 2, "look-ahead"),
        ("(?<=a)b", 1, "look-behind"),
        ("(?<!a)b", 1, "look-behind"),
        (r"(a)\1", 4, "back-reference"),
        ("(?P<n>a)(?P=n)", 9, "back-reference"),
        (r"\bword", 1, "word boundary"),
        ("(?>a*)a", 1, "atomic"),
        ("a*+a", 3, "possessive"),
        ("a^b", 2, "inside a text"),
        ("a$b", 2, "inside a text"),
        ("(^a)*", 2, "inside a text"),
        ("^*", 2, "anchor"),
        ("[a", 1, "not closed"),
        ("(a", 1, "not closed"),
        ("a)", 2, "unmatched parenthesis"),
        ("*a", 1, "has nothing to repeat"),
        ("a**", 2, "two repetitions"),
        ("a{3,2}", 2, "less than"),
        ("a{100001}", 2, "more than 100,000"),
        ("[b-a]", 1, "ends before it begins"),
        (r"[\d-z]", 1, "from one character"),
        (r"\p{Han}", 1, "write the characters"),
        (r"\u12", 1, "invalid character code"),
        (r"\x", 1, "invalid character code"),
        ("[[:alpha:]]", 2, "not known"),
        ("(?m:^a)", 1, "flags"),
        ("a(?i)b", 2, "flags"),
        ("(?P<1>a)", 1, "name"),
        ("a\\", 2, "backslash"),
        ("(" * 200, 122, "deeper than 120"),
    ],
)
def test_what_an_automaton_cannot_keep_is_refused_with_its_place(pattern: str, character: int, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        parse_regex(pattern)

    assert f"character {character}:" in caught.value.message


def test_a_pattern_of_many_megabytes_is_not_begun() -> None:
    with pytest.raises(InputError, match="10,000,000 characters"):
        parse_regex("a" * 10_000_000)
