"""A terminal for tests: a command runs on a real pseudo terminal, and a test types and reads."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Mapping
from typing import Self

from taiwa.isolation import is_ready
from tests.cli.forked import ForkedCommand

__all__ = ["Terminal", "screen"]

SIGNS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78]|\r")
PATIENCE = 300.0


class Terminal:
    """One command on its terminal, from entering to leaving; `whole` starts an interpreter for it."""

    def __init__(self, environment: Mapping[str, str], *arguments: str, whole: bool = False) -> None:
        self.raw = b""
        self._whole = whole
        self._environment = {"COLUMNS": "100", **environment, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self._arguments = arguments
        self._mark = 0

    def __enter__(self) -> Self:
        self._terminal, inner = pty.openpty()
        self._process = ForkedCommand(self._arguments, self._environment, terminal=inner, whole=self._whole)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    @property
    def text(self) -> str:
        """All that was shown, without the signs that move the cursor."""
        return SIGNS.sub("", self.raw.decode(errors="replace"))

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def see(self, wanted: str) -> str:
        """Wait until a text is shown that was not seen yet; return what was shown since the last call."""
        end = time.monotonic() + PATIENCE
        while wanted not in self.text[self._mark :]:
            if not self._read(end):
                raise AssertionError(f"{wanted!r} was not shown; what was:\n{self.text[self._mark :]}")
        seen = self.text[self._mark :]
        self._mark += seen.index(wanted) + len(wanted)
        return seen

    def prompted(self) -> None:
        """Wait for the prompt: keys that are typed before it are for the program that runs."""
        self.see("›")

    def end(self) -> int:
        """Wait until the command ends; return its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        try:
            return self._process.wait(deadline - time.monotonic())
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end; what was shown:\n{self.text}") from None

    def _read(self, deadline: float) -> bool:
        ready = is_ready(self._terminal, select.POLLIN, deadline - time.monotonic())
        try:
            piece = os.read(self._terminal, 65536) if ready else b""
        except OSError:  # the other side has closed
            piece = b""
        self.raw += piece
        return bool(piece)


MOVES = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[()][A-Z0-9]|\x1b[=>78]")


def screen(raw: bytes) -> list[str]:
    """The lines that are left on a terminal: cursor up and down its lines, erased lines, nothing that scrolls."""
    lines, row, column, at = [""], 0, 0, 0
    text = raw.decode(errors="replace")
    while at < len(text):
        if move := MOVES.match(text, at):
            at = move.end()
            count, kind = move[1] or "", move[2]
            if kind == "A":
                row = max(row - int(count or 1), 0)
            elif kind == "K":
                lines[row] = "" if count == "2" else lines[row][:column]
            elif kind == "J":
                lines[row:] = [lines[row][:column]]
            elif kind == "C":
                column += int(count or 1)
            elif kind == "D":
                column = max(column - int(count or 1), 0)
            continue
        sign = text[at]
        at += 1
        if sign == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif sign == "\r":
            column = 0
        else:
            lines[row] = lines[row].ljust(column)[:column] + sign + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]
