"""Tools that behave as badly as a user's tool can."""

import os
import subprocess
import sys
import time
from pathlib import Path

from taiwa import tool
from taiwa.kernel.errors import ToolError


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
def which_process() -> int:
    """Give the number of the process that does the work."""
    return os.getpid()


@tool
def never_ends() -> str:
    """Never end, in a way that no signal handler of Python interrupts."""
    return "x" * (9**9**9 % 10)


@tool
def sleeps(seconds: float) -> str:
    """Sleep."""
    time.sleep(seconds)
    return "awake"


@tool
def leaves_a_child(marker: str) -> str:
    """Start a process that lives on, and never end."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)"])
    Path(marker).write_text(str(child.pid), encoding="utf-8")
    time.sleep(900)
    return ""


@tool
def gigabyte() -> str:
    """Give a gigabyte."""
    return "x" * 10**9


@tool
def much(characters: int) -> str:
    """Give so many characters."""
    return "x" * characters


@tool
def chatter() -> str:
    """Print a great deal, triggers and JSON included, and give one word."""
    for _ in range(200):
        sys.stdout.write('<<calculator: 1+1>> {"result": 1}' * 1000)
    sys.stderr.write("e" * 10**6)
    return "done"


@tool
def leaves() -> str:
    """End the whole process."""
    sys.stderr.write("the reason, for a person")
    sys.stderr.flush()
    os._exit(3)


@tool
def exits() -> str:
    """Ask to exit."""
    raise SystemExit("enough")


class OddError(Exception):
    """An error of the tool's own kind."""


@tool
def raises() -> str:
    """Raise something of its own."""
    raise OddError("a secret of the machine")


@tool
def refuses() -> str:
    """Refuse, in words for the model."""
    raise ToolError("not today", code="closed", hint="try tomorrow")


COUNTED: list[int] = []


@tool
def counts() -> int:
    """Count the calls in this process."""
    COUNTED.append(1)
    return len(COUNTED)


@tool(isolated=False)
def counts_here() -> int:
    """Count the calls in the program."""
    COUNTED.append(1)
    return len(COUNTED)


@tool(seconds=0.5)
def hangs() -> str:
    """Never end, in a way that no other thread of the process can interrupt."""
    return "x" * (9**9**9 % 10)


@tool
def scaled(number: int, factor: int = 2) -> int:
    """Multiply."""
    return number * factor


@tool
def calls_another(number: int) -> str:
    """Call another tool by name."""
    return f"{scaled.call({'number': number}).text} in {os.getpid()}: {which_process.call({}).text}"


@tool
def environment() -> list[str]:
    """List the names of the environment."""
    return sorted(os.environ)


@tool(secrets=["WEATHER_API_KEY"])
def weather() -> list[str]:
    """List the names of the environment, of which one was asked for."""
    return sorted(os.environ)
