"""The tagged protocol: a model asks for a tool by `<<name: input>>` in its text, and the result is put right after it."""

import re
from collections.abc import Iterable, Sequence

from taiwa.flows import calling
from taiwa.flows.scanning import LONGEST_INPUT, Form, LineScanner, Scanner, Trigger
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolSpec

__all__ = ["Tagged"]

CLOSE = ">>"
UNKNOWN = rf"<<(?P<other>[^\W\d][\w-]{{0,63}})[:：](?P<odd>(?:(?!<<|>>).){{0,{LONGEST_INPUT}}})>>"
HOW = """\
Where you need a tool, write its call as <<name: input>>, on one line: what the tool gives is put right behind it, and you \
go on from there."""


@value
class Tagged:
    """Calls as `<<name: input>>`, anywhere in a line; our own examples are written so.

    Case makes no difference to a name, nor do blanks for underscores. A name that no tool has counts only in the exact form `<<name:input>>`.
    """

    @property
    def name(self) -> str:
        """What the protocol is called."""
        return "tagged"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a server may be asked to stop."""
        return (CLOSE,)

    @property
    def close(self) -> str:
        """What an unfinished call lacks."""
        return CLOSE

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written, and which tools there are."""
        return f"{HOW}{calling.OWN_RESULTS * guarded}\n\n{calling.listed(tools, self.call)}"

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls."""
        spelled = (
            re.sub(r"[_-]", "[ _-]?", re.escape(name).replace(r"\-", "-"))
            for name in sorted(names, key=len, reverse=True)
        )
        known = rf"(?i:{'|'.join(spelled) or '(?!)'})"
        opening = rf"<<[ \t]{{0,8}}(?P<name>{known})[ \t]{{0,8}}[:：](?P<input>(?:(?!>>).){{0,{LONGEST_INPUT}}})"
        closed = re.compile(f"{opening}>>|{UNKNOWN}")
        return LineScanner(Form(CLOSE, closed, re.compile(rf"{opening}\Z"), _read))

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return calling.arguments(spec, text, self.call)

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a call."""
        return f"<<{name}: {text}>>"

    def splice(self, result: str, mark: str = "") -> str:  # noqa: ARG002  (the same)
        """Write a result."""
        return f" {calling.shown(result)}"

    def recorded(self, text: str, start: int) -> int:  # noqa: ARG002  (the same)
        """Say where a recorded result ends: nothing marks that here, so it stays with the words."""
        return start


def _read(found: re.Match[str], before: tuple[str, ...]) -> Trigger:  # noqa: ARG001  (a reading's)
    parts = found.groupdict()
    name, given = parts["name"] or parts["other"], parts["input"] or parts.get("odd") or ""
    return Trigger(name, given.strip(), found.end(), found.end() - found.start())
