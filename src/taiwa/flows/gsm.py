"""The calculator calls of GSM8K (Cobbe et al., 2021): `<<expression=`, behind which the result closes the mark: `25>>`."""

import re
from collections.abc import Iterable, Sequence

from taiwa.flows import calling
from taiwa.flows.scanning import LONGEST_INPUT, Form, LineScanner, Scanner, Trigger
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolSpec

__all__ = ["Gsm"]

CLOSE = ">>"
# Directly behind the mark, so that `a << b = c` is none.
CLOSED = re.compile(rf"<<(?P<input>[^\s<>=`][^<>=`\n]{{0,{LONGEST_INPUT - 1}}})=")
NEVER = re.compile(r"(?!)")
HOW = """\
For every calculation write <<expression= and stop there: what the {tool} gives is put right behind it with the closing mark, \
as in <<12*3=36>>, and you go on from there."""


@value
class Gsm:
    """Calls of one tool, the calculator, as `<<expression=`.

    No server is asked to stop at an equals sign: nearly every one of them closes no call. The text is watched instead.
    """

    tool: str = "calculator"

    @property
    def name(self) -> str:
        """What the protocol is called."""
        return "gsm"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a server may be asked to stop: nowhere."""
        return ()

    @property
    def close(self) -> str:
        """What an unfinished call lacks; none is ever open, because its end is in the text."""
        return ""

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written; there is but one tool."""
        known = [each for each in tools if each.name == self.tool]
        how = HOW.format(tool=self.tool.replace("_", " "))
        return f"{how}{calling.OWN_RESULTS * guarded}\n\n{calling.listed(known, self.call)}"

    def scanner(self, names: Iterable[str]) -> Scanner:  # noqa: ARG002  (a call names no tool)
        """Find calls."""
        return LineScanner(Form("=", CLOSED, NEVER, self._read))

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return calling.arguments(spec, text, self.call)

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a call."""
        return f"<<{text}="

    def splice(self, result: str, mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a result and the closing mark."""
        return f"{calling.shown(result)}{CLOSE}"

    def recorded(self, text: str, start: int) -> int:
        """Say where a recorded result ends: with the closing mark on the same line."""
        newline = text.find("\n", start)
        end = text.find(CLOSE, start, len(text) if newline < 0 else newline)
        opened = text.find("<<", start, end)
        return start if end < 0 or opened >= 0 else end + len(CLOSE)

    def _read(self, found: re.Match[str], before: tuple[str, ...]) -> Trigger:  # noqa: ARG002  (a reading's)
        return Trigger(self.tool, found["input"].strip(), found.end(), found.end() - found.start())
