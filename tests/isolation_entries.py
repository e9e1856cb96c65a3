"""Entries for child processes."""

import os
import sys
import time

from taiwa.isolation import Handler
from taiwa.kernel.serialization import Json


def echo(start: dict[str, Json]) -> Handler:
    """Answer with what it was started with, and what is asked."""

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        if "sleep" in question:
            time.sleep(float(str(question["sleep"])))
        if "work" in question:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            sum(range(int(str(question["work"]))))
        if "leave" in question:
            os._exit(3)
        return {"start": start, "question": question, "characters": characters}

    return answer


def modules(start: dict[str, Json]) -> Handler:
    """Answer with the modules of taiwa that the child has loaded."""
    del start
    return lambda _question, _characters: {
        "modules": [name for name in sorted(sys.modules) if name.startswith("taiwa")]
    }
