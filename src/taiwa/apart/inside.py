"""The inside of a worker process: find a door, then answer each line of standard input with one line.

    python -m taiwa.apart.inside '{"door": "my_module:open_door", "start": {…}, …}'

It lowers its own limits first, so the work can neither take all memory, nor leave a core file, nor fill a disk.
"""

import json
import math
import os
import resource
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from taiwa.kernel.records import Json

__all__ = ["Answers", "main"]

MEGABYTE = 1 << 20
LARGEST_FILE_MB = 64
MORE_CPU_SECONDS = 2

Answers: TypeAlias = Callable[[dict[str, Json], int], dict[str, Json]]
"""What a door gives: it answers a question in at most so many characters."""


def main(begin: str) -> None:
    """Serve until standard input ends."""
    given = json.loads(begin)
    sys.path[:] = given["path"]
    answers = given["answers"]
    os.set_inheritable(answers, False)
    _lower(resource.RLIMIT_FSIZE, LARGEST_FILE_MB * MEGABYTE)
    _lower(resource.RLIMIT_CORE, 0)
    module, _, name = given["door"].partition(":")
    answer: Answers = getattr(import_module(module), name)(given["start"])
    _lower(resource.RLIMIT_AS, _taken() + int(given["bounds"].get("memory_mb", 1_024)) * MEGABYTE)
    _say(answers, {"ready": True})
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        bounds = asked["bounds"]
        _limit_time(float(bounds.get("seconds", 10.0)))
        _say(answers, answer(asked["question"], int(bounds.get("characters", 100_000))))


def _taken() -> int:
    """The address space that this process has by now: libraries reserve much more of it than they use."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return 0
    return pages * resource.getpagesize()


def _limit_time(seconds: float) -> None:
    """Processor time beyond the deadline ends the process by itself, should nobody be left to kill it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = used.ru_utime + used.ru_stime
    _lower(resource.RLIMIT_CPU, math.ceil(spent + seconds) + MORE_CPU_SECONDS)


def _lower(which: int, wanted: int) -> None:
    hard = resource.getrlimit(which)[1]
    resource.setrlimit(which, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _say(answers: int, words: dict[str, Json]) -> None:
    line = json.dumps(words).encode() + b"\n"
    while line:
        line = line[os.write(answers, line) :]


if __name__ == "__main__":
    main(sys.argv[1])
