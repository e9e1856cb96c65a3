import pytest

from taiwa.constraints.automaton import compile_regex, to_dot
from taiwa.kernel.errors import InputError


def test_an_automaton_is_drawn_with_its_characters() -> None:
    drawn = to_dot(compile_regex('文?[0-9]+"', chars=True), 'a "name"', visited=[0])

    assert drawn.startswith('digraph "a \\"name\\"" {\n')
    assert '  0 [style=filled fillcolor="#cfe8d8"]\n' in drawn
    assert "[shape=doublecircle]" in drawn
    assert "[label=\"'0'…'9'\"]" in drawn
    assert "[label=\"'文'\"]" in drawn
    assert '[label="\'\\"\'"]' in drawn
    assert drawn.endswith("}\n")


@pytest.mark.parametrize("hostile", ['"]; node [URL="https://example.org"', "\\", '\\"', "\n}", "\u202e"])
def test_no_text_leaves_its_quotes(hostile: str) -> None:
    (line, *_) = to_dot(compile_regex("a", chars=True), hostile).splitlines()

    inside = line.removeprefix('digraph "').removesuffix('" {')
    assert line.startswith('digraph "')
    assert line.endswith('" {')
    assert '"' not in inside.replace("\\\\", "").replace('\\"', "")
    assert inside.isprintable()


def test_a_drawing_that_nobody_could_read_is_refused() -> None:
    with pytest.raises(InputError, match="301 states"):
        to_dot(compile_regex("a{300}", chars=True))


@pytest.mark.parametrize(
    ("pattern", "extent"),
    [
        ("a", (1, 1, 1)),
        ("a?b{2,3}|c", (5, 1, 4)),
        ("[a-z]{2}", (676, 2, 2)),
        ("a+", (None, 1, None)),
        ("a*|", (None, 0, None)),
        ("(a|b*c)d", (None, 2, None)),
    ],
)
def test_the_extent_of_a_language_is_counted(pattern: str, extent: tuple[int | None, int, int | None]) -> None:
    assert compile_regex(pattern, chars=True).extent == extent
