"""An automaton as a drawing: Graphviz text, over characters."""

from collections.abc import Iterable

from taiwa.guide.reference.automaton import Automaton
from taiwa.guide.reference.charset import joined, named
from taiwa.kernel.errors import InputError

__all__ = ["dot"]

MOST_STATES = 250
MOST_EDGES = 1000
SHOWN = 40
HEAD = '  rankdir=LR\n  node [shape=circle fontname="sans-serif"]\n  edge [fontname="monospace"]\n  "" [shape=none]\n  "" -> 0\n'


def dot(automaton: Automaton, title: str = "", visited: Iterable[int] = ()) -> str:
    """Write an automaton over characters for Graphviz; final states have two lines, `visited` ones a colour.

    Raises:
        InputError: the drawing would be too large to be read.
    """
    states, edges = len(automaton.moves), sum(len({there for *_, there in row}) for row in automaton.moves)
    if states > MOST_STATES or edges > MOST_EDGES:
        raise InputError(
            f"the automaton has {states:,} states and {edges:,} moves; a drawing of more than {MOST_STATES} and {MOST_EDGES:,} cannot be read: draw a part of it, or without white space (--whitespace compact)"
        )
    seen = set(visited)
    lines = [f"digraph {_quoted(title or 'automaton')} {{", HEAD.rstrip("\n")]
    for state, row in enumerate(automaton.moves):
        looks = ["shape=doublecircle"] if state in automaton.finals else []
        looks += ['style=filled fillcolor="#cfe8d8"'] if state in seen else []
        lines.append(f"  {state} [{' '.join(looks)}]" if looks else f"  {state}")
        for there in dict.fromkeys(target for *_, target in row):
            label = named(joined((low, high) for low, high, target in row if target == there))
            short = label if len(label) <= SHOWN else f"{label[: SHOWN - 1]}…"
            lines.append(f"  {state} -> {there} [label={_quoted(short)}]")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """A text in quotes: Graphviz reads no escapes in it but of the quote and of itself."""
    plain = "".join(char if char.isprintable() else f"U+{ord(char):04X}" for char in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
