"""Doors for worker processes."""

import os
import time

from taiwa.apart.inside import Answers
from taiwa.kernel.records import Json


def echo(start: dict[str, Json]) -> Answers:
    """Answer with what it was started with, and what is asked."""

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        if "sleep" in question:
            time.sleep(float(str(question["sleep"])))
        if "leave" in question:
            os._exit(3)
        return {"start": start, "question": question, "characters": characters}

    return answer
