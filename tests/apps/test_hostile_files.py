"""App files that are made to exhaust their reader: each is read or refused with its line, and none keeps it busy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.apps.app_file import MAX_EXAMPLE_CHARS, MAX_FRONT_CHARS, read_app
from taiwa.conversation.app import App
from tests.strategies import joined

FRONT = "---\ntaiwa: 1\n---\n"
PIECES = (
    " ", "\t", "\n", "#", "## ", "summary", "example", "## summary\n", "## example\n", ":", "`", "```\n", "~~~", "---\n", "{", "{{", "}}",
    "{{a}}", "{{ ", "a", "- ", "a: ", "[", "]", "{a: ", "}", ",", '"', "'", "|\n", ">\n  ", "? ", "&a ", "*a", "!", "%", "<<: ", "\\", "1",
    "文", "\u2028", "\x85", "\ufeff", "\x00", "\x1b[2J", "\u202e",
)  # fmt: skip


def problems_of(text: str) -> tuple[str, ...]:
    """Read an app; check that it is refused exactly where a problem is an error, each with a line and on one line."""
    app, problems = read_app(text, "a")

    assert (app is None) == any(problem.level == "error" for problem in problems)
    assert app is None or isinstance(app, App)
    for problem in problems:
        assert problem.line >= 0
        assert "\n" not in problem.format("a.md")
    return tuple(problem.format("a.md") for problem in problems)


@given(
    st.sampled_from(["", FRONT, f"{FRONT}Body\n", f"{FRONT}Body\n## example\n", "---\ntaiwa: 1\n"]),
    joined(PIECES, min_size=1, max_size=4),
    joined(PIECES, max_size=3),
)
def test_a_piece_repeated_thousands_of_times_is_read_or_refused(head: str, piece: str, tail: str) -> None:
    problems_of(head + piece * (10_000 // len(piece)) + tail)


@pytest.mark.parametrize(
    "line", ["## summary" + " " * 500_000 + "x", "`" * 500_000 + "x`", "{" * 250_000 + " " * 250_000, "#" * 500_000]
)
def test_a_line_of_half_a_million_characters_is_read_in_linear_time(line: str) -> None:
    assert not problems_of(f"{FRONT}Body\n{line}\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "a.md:3: the anchor '&a'; write the value itself"),
        ("name: *a", "a.md:3: the alias '*a'; write the value itself"),
        ("<<: {name: b}", "a.md:3: unknown key '<<'"),
        ("name: !!python/object:os.system x", "a.md:3: the tag '"),
        (f"a: {'[' * 21}{']' * 21}", "a.md:3: nested deeper than 20"),
        (f"about: {'x' * MAX_FRONT_CHARS}", "a.md:1: the front matter has more than 65536 characters"),
        ('about: "\\ud800"', "a.md:3: an escape names half a letter"),
    ],
)
def test_the_front_matter_is_bounded_and_refuses_references(text: str, problem: str) -> None:
    assert any(line.startswith(problem) for line in problems_of(f"---\ntaiwa: 1\n{text}\n---\nBody\n"))


def test_all_examples_together_are_bounded() -> None:
    example = f"## example\nuser: a\nanswer: {'b' * (MAX_EXAMPLE_CHARS // 4)}\n"

    assert problems_of(f"{FRONT}Body\n{example * 3}") == ()
    assert problems_of(f"{FRONT}Body\n{example * 4}") == (
        "a.md:14: the examples have more than 65536 characters; keep the best",
    )


def test_half_a_character_is_refused_with_its_place() -> None:
    app, problems = read_app(f"{FRONT}Body\nan \ud800\n", "a")

    assert app is None
    assert [(each.line, each.column, each.message) for each in problems] == [(5, 4, "half a character (U+D800)")]
