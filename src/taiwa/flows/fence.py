"""The protocol of ToRA (Gou et al., 2024): a block of code in the name of a tool, answered by a block of output.

```python          the call: closed by its own marks
print(6 * 7)
```
```output          the result
42
```
"""

from collections.abc import Iterable, Mapping, Sequence

from taiwa.flows import calling
from taiwa.flows.scanning import FENCE, PIECE, Scanner, Trigger, fence
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolSpec

__all__ = ["Fence"]

LONGEST_BLOCK = 20_000
KEPT_LINE = 200
OUTPUT = "```output"
HOW = """\
Where you need a tool, write a block of code that is marked with the tool's name and holds its input, and stop there: what the \
tool gives follows as a block marked output, and you go on from there."""


@value
class Fence:
    """Calls as blocks of code marked with a tool's name; `aliases` pairs other marks with names of tools.

    A block in any other name is only code.
    """

    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What the protocol is called."""
        return "fence"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a server may be asked to stop."""
        return (OUTPUT,)

    @property
    def close(self) -> str:
        """What an unfinished call lacks."""
        return "\n"

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written, and which tools there are."""
        blocks = "\n\n".join(
            f"{' '.join(tool.description.split())}\n{self.call(tool.name, calling.wanted(tool))}" for tool in tools
        )
        return f"{HOW}{calling.OWN_RESULTS * guarded}\n\nTools:\n\n{blocks or '(none)'}"

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls."""
        marks = {title.casefold(): name for title, name in self.aliases}
        return BlockScanner({**marks, **{name.casefold(): name for name in names}})

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return calling.arguments(spec, text, self.call)

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a call on lines of its own."""
        start = "" if not after or after.endswith("\n") else "\n"
        return f"{start}```{name}\n{text}\n```\n"

    def splice(self, result: str, mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a result as a block of output."""
        return f"{OUTPUT}\n{calling.shown(result)}\n```\n"

    def recorded(self, text: str, start: int) -> int:
        """Say where a recorded block of output ends."""
        if not text.startswith(f"{OUTPUT}\n", start):
            return start
        end = text.find("\n```", start + len(OUTPUT))
        if end < 0:
            return len(text)
        newline = text.find("\n", end + 1)
        return len(text) if newline < 0 else newline + 1


class BlockScanner:
    """Finds blocks of code that are closed and in the name of a tool."""

    __slots__ = ("_block", "_fence", "_known", "_line", "_name", "_size")

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self._fence = ""
        self._line = ""
        self._name = ""
        self._block = ""
        self._size = 0

    def feed(self, text: str) -> Trigger | None:
        """Take the next words; stop right behind the first trigger and leave the rest to whoever asks again."""
        for found in PIECE.finditer(text):
            piece = found[0]
            self._line += piece[: KEPT_LINE - len(self._line)]
            self._size += len(piece)
            if self._name:
                self._block = (self._block + piece)[: LONGEST_BLOCK + 1]
            if piece.endswith("\n") and (call := self._end_line(found.end())):
                return call
        return None

    def skip(self, text: str) -> None:
        """Take what the program put in: it moves the place in the line and is never scanned."""
        if "\n" in text:
            self._line = ""
        self._line += text.rpartition("\n")[2].replace("`", "'").replace("~", "-")[: KEPT_LINE - len(self._line)]

    @property
    def open(self) -> bool:
        """Whether the text so far ends in the closing marks of a block, which only lack the end of their line."""
        return bool(self._name) and not fence(self._line, self._fence)

    def _end_line(self, end: int) -> Trigger | None:
        line, self._line = self._line, ""
        was, self._fence = self._fence, fence(line, self._fence)
        if self._fence and not was:
            opening = FENCE.match(line)
            words = opening["rest"].split() if opening else []
            self._name = self._known.get(words[0].casefold(), "") if len(words) == 1 else ""
            self._block, self._size = "", len(line)
        elif was and not self._fence and self._name:
            name, block = self._name, self._block
            self._name = self._block = ""
            if len(block) <= LONGEST_BLOCK:
                given = block.rstrip("\n").rpartition("\n")[0] if block.count("\n") > 1 else ""
                return Trigger(name, given, end, self._size)
        return None
