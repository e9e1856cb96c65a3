"""A file fits the eye, a function fits the screen, a call fits the head. There is no list of exemptions."""

from collections.abc import Iterator

import pytest

from tests.house.source import Function, Source, sources

MOST_LINES_OF_A_FILE = 450
MOST_LINES_OF_A_FUNCTION = 40
MOST_PARAMETERS = 6


def lines(function: Function) -> int:
    """From `def` to the last line, the docstring included: what a reader scrolls past."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters(function: Function) -> int:
    """Every parameter, `*args` and `**kwargs` included, but for a leading self or cls."""
    asked = function.args
    names = [argument.arg for argument in (*asked.posonlyargs, *asked.args)]
    rest = [*asked.kwonlyargs, *filter(None, (asked.vararg, asked.kwarg))]
    return len(names) - (names[:1] in (["self"], ["cls"])) + len(rest)


def oversized(source: Source) -> Iterator[str]:
    """What breaks the budget, one sentence each."""
    length = source.text.count("\n")
    if length > MOST_LINES_OF_A_FILE:
        yield f"{source.module} has {length} lines, {MOST_LINES_OF_A_FILE} at most: find its second reason to exist"
    for function in source.functions():
        where = f"{source.module}:{function.lineno} {function.name}"
        if lines(function) > MOST_LINES_OF_A_FUNCTION:
            yield f"{where} has {lines(function)} lines, {MOST_LINES_OF_A_FUNCTION} at most"
        if parameters(function) > MOST_PARAMETERS:
            yield f"{where} has {parameters(function)} parameters, {MOST_PARAMETERS} at most: some of them are a value"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n" * 451, "451 lines"),
        ("def f():\n" + "    x = 1\n" * 40, "m:1 f has 41 lines"),
        ("class A:\n    async def f(self):\n" + "        x = 1\n" * 40, "m:2 f has 41 lines"),
        ("def f(a, /, b, *c, d, e, f, **g): ...\n", "m:1 f has 7 parameters"),
        ("class A:\n    def f(self, a, b, c, d, e, f, g): ...\n", "m:2 f has 7 parameters"),
    ],
)
def test_the_budget_sees_what_is_too_large(text: str, complaint: str) -> None:
    found = list(oversized(Source("m", text)))

    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n" * 450,
        "def f():\n" + "    x = 1\n" * 39,
        "class A:\n    def f(self, a, b, c, d, e, f): ...\n",
        "class A:\n" + "    x = 1\n" * 100,
    ],
)
def test_the_budget_lets_pass_what_just_fits(text: str) -> None:
    assert not list(oversized(Source("m", text)))


def test_every_file_and_function_keeps_the_budget() -> None:
    found = [complaint for source in sources() for complaint in oversized(source)]

    assert not found, "\n".join(found)
