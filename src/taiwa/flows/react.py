"""The protocol of ReAct (Yao et al., 2023): a line `Action n: Tool[input]`, answered by a line `Observation n: …`."""

import re
from collections.abc import Iterable, Mapping, Sequence

from taiwa.flows import calling
from taiwa.flows.scanning import LONGEST_INPUT, Form, LineScanner, Reading, Scanner, Trigger
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolSpec

__all__ = ["ReAct"]

ACTION = (
    r"\A[ \t]{0,3}Action(?:[ \t]{1,2}(?P<mark>\d{1,4}))?[ \t]?[:：][ \t]{0,8}(?P<name>[^\W\d_][\w .-]{0,63})"
    rf"\[(?P<input>[^\n]{{0,{LONGEST_INPUT}}})\][ \t]{{0,8}}"
)
OBSERVATION = re.compile(r"[ \t]{0,3}Observation(?:[ \t]{1,2}\d{1,4})?[ \t]?[:：]")
TURN = re.compile(r"^[ \t]{0,3}(?:Thought|Action|Observation|Question)(?:[ \t]{1,2}\d{1,4})?[ \t]?[:：]", re.MULTILINE)
HOW = """\
Take turns of Thought and Action, numbered from 1. A Thought is a line of reasoning; an Action is a line of its own that \
calls one tool, and what the tool gives follows as an Observation. Your last Action is \
{finish}[answer]."""


@value
class ReAct:
    """Calls as lines `Action n: Tool[input]`; numbers may be left out.

    `finish` is the action that ends the text with an answer. Blanks, underscores and case make no difference to a name.
    """

    finish: str = "Finish"
    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What the protocol is called."""
        return "react"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a server may be asked to stop."""
        return ("\nObservation",)

    @property
    def close(self) -> str:
        """What an unfinished call lacks."""
        return "\n"

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written, and which tools there are."""
        return (
            f"{HOW.format(finish=self.finish)}{calling.OWN_RESULTS * guarded}\n\n{calling.listed(tools, self._listed)}"
        )

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls."""
        titles = {calling.normal(title): name for title, name in self.aliases}
        known = {**titles, **{calling.normal(name): name for name in names}}
        closed, opened = re.compile(rf"{ACTION}\n"), re.compile(rf"{ACTION}\Z")
        return LineScanner(Form("\n", closed, opened, self._reading(known), anchored=True))

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return calling.arguments(spec, text, self.call)

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:
        """Write a call on a line of its own; `mark` is its number."""
        start = "" if not after or after.endswith("\n") else "\n"
        return f"{start}Action{mark and ' '}{mark}: {name}[{text}]\n"

    def splice(self, result: str, mark: str = "") -> str:
        """Write a result as the observation of that number."""
        return f"Observation{mark and ' '}{mark}: {calling.shown(result)}\n"

    def recorded(self, text: str, start: int) -> int:
        """Say where a recorded observation ends: before the next turn."""
        found = OBSERVATION.match(text, start)
        if found is None:
            return start
        turn = TURN.search(text, found.end())
        return turn.start() if turn else len(text)

    def _listed(self, name: str, text: str) -> str:
        return self.call(name, text).strip()

    def _reading(self, known: Mapping[str, str]) -> Reading:
        finish = calling.normal(self.finish)

        def read(found: re.Match[str], before: tuple[str, ...]) -> Trigger:  # noqa: ARG001  (a reading's)
            name = calling.normal(found["name"])
            final = name == finish and name not in known
            called = known.get(name, self.finish if final else found["name"].strip())
            return Trigger(called, found["input"].strip(), found.end(), found.end(), found["mark"] or "", final)

        return read
