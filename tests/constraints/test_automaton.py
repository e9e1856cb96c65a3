import pytest
from hypothesis import given

from taiwa.constraints.automaton import Automaton, compile_regex
from taiwa.kernel.errors import InputError
from tests.constraints.patterns import matches, patterns, texts
from tests.steps import lines_run


@given(patterns(), texts)
def test_it_accepts_just_what_python_matches(pattern: str, text: str) -> None:
    wanted = matches(pattern, text) if "(?i" not in pattern or text.isascii() else None

    if wanted is not None:
        assert compile_regex(pattern).accepts(text.encode()) == wanted
        assert compile_regex(pattern, chars=True).accepts(map(ord, text)) == wanted


@given(patterns())
def test_every_state_is_reached_and_leads_to_an_end(pattern: str) -> None:
    automaton = compile_regex(pattern)

    assert reached(automaton, {0}) == set(range(len(automaton.moves)))
    assert all(reached(automaton, {state}) & automaton.finals for state in range(len(automaton.moves)))


@given(patterns())
def test_no_two_states_are_of_one_kind(pattern: str) -> None:
    automaton = compile_regex(pattern)

    kinds = {state: state in automaton.finals for state in range(len(automaton.moves))}
    for _ in automaton.moves:  # Moore's refinement: slow and simple
        rows = {
            state: (kinds[state], tuple(sorted((byte, kinds[there]) for byte, there in row.items())))
            for state, row in enumerate(automaton.table)
        }
        names = {row: number for number, row in enumerate(dict.fromkeys(rows.values()))}
        kinds = {state: names[row] for state, row in rows.items()}
    assert len(set(kinds.values())) == len(automaton.moves)


def reached(automaton: Automaton, states: set[int]) -> set[int]:
    found, todo = set(states), list(states)
    while todo:
        for _, _, there in automaton.moves[todo.pop()]:
            if there not in found:
                found.add(there)
                todo.append(there)
    return found


@pytest.mark.parametrize(
    ("pattern", "states"), [("a*", 1), ("(a|b)*abb", 4), ("aaa|bbb", 6), ("(x+x+)+y", 4), ("文", 4)]
)
def test_it_has_as_few_states_as_can_be(pattern: str, states: int) -> None:
    assert len(compile_regex(pattern).moves) == states


def test_over_characters_a_kanji_is_one_step() -> None:
    assert compile_regex("[一-龯]", chars=True).moves == (((0x4E00, 0x9FAF, 1),), ())


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+", "(.*a){12}", "(a?){200}a{200}", "(((a*)*)*)*b"])
def test_what_is_catastrophic_for_backtracking_is_nothing_here(pattern: str) -> None:
    automaton = compile_regex(pattern)

    short, long = (lines_run(automaton.accepts, b"a" * count + b"!") for count in (1_000, 10_000))
    assert long < 11 * short


def test_a_long_repetition_costs_no_more_than_its_length() -> None:
    short, long = (lines_run(compile_regex, f"[ab]{{{count}}}") for count in (1_000, 10_000))

    assert long < 11 * short


@pytest.mark.parametrize("pattern", ["(a|b)*a(a|b){20}", "((a{1,100}){1,100}){1,100}", "(.{0,999}x){0,999}"])
def test_what_would_grow_beyond_bounds_is_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="too large for an automaton"):
        compile_regex(pattern)


def test_a_pattern_without_any_text_is_refused() -> None:
    with pytest.raises(InputError, match="no text matches"):
        compile_regex("a[^\\x00-\\U0010ffff]|[^\\x00-\\U0010ffff]b")
