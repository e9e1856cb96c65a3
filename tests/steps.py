"""Work measured as executed lines instead of time: the same on every machine, however busy it is."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["lines_run"]


def lines_run(function: Callable[..., object], *values: object) -> int:
    """Count the executed Python lines of a call, each loop iteration separately; work in C (a regex) counts as one line."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*values)
    finally:
        sys.settrace(before)
    return count
