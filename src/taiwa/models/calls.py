"""The ids that bind a tool call to its result on the wire."""

import re
from typing import NamedTuple

from taiwa.kernel.values import ToolCall, ToolResult

__all__ = ["CallIds"]


class _Open(NamedTuple):
    id: str
    name: str
    wire: str


class CallIds:
    """Gives each call of a conversation an id that the wire takes, and each result the id of its call.

    An id is kept when the wire takes it and no earlier call has it; otherwise it comes from the call's place in the
    conversation. So it is the same in every later request, which a prefix cache needs.
    """

    def __init__(self, valid: str, form: str) -> None:
        self._valid = re.compile(valid)
        self._form = form
        self._count = 0
        self._used: set[str] = set()
        self._open: list[_Open] = []

    def of_call(self, call: ToolCall) -> str:
        """The id of the next call."""
        wire = call.id
        place = self._count
        while wire in self._used or self._valid.fullmatch(wire) is None:
            wire = self._form.format(place)
            place += 1
        self._count += 1
        self._used.add(wire)
        self._open.append(_Open(call.id, call.name, wire))
        return wire

    def of_result(self, result: ToolResult) -> str:
        """The id of the call that this result answers: the one it names, else the first open one of its tool, else the first."""
        if result.call:
            fitting = [call for call in self._open if call.id == result.call]
        else:
            fitting = [call for call in self._open if call.name == result.name] or self._open
        if not fitting:
            return result.call or self._form.format(self._count)
        answered = fitting[0]
        self._open.remove(answered)
        return answered.wire
