"""The tools of the cases of `calls.yaml`."""

from taiwa import tool


@tool
def add(one: int, two: int = 1) -> int:
    """Add numbers."""
    return one + two


@tool
def now() -> str:
    """Say the time."""
    return "nine"
