"""The tools of the cases of `calls.yaml`."""

from decimal import Decimal

from taiwa import tool


@tool
def add(one: int, two: int = 1) -> int:
    """Add numbers."""
    return one + two


@tool
def price(of: Decimal) -> str:
    """Say a price as it was written."""
    return str(of)


@tool
def now() -> str:
    """Say the time."""
    return "nine"
