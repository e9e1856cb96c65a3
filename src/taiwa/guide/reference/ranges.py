"""Numbers between two bounds, as regular expressions of their digits."""

from collections.abc import Iterator

__all__ = ["decimals", "integers"]

FRACTION = r"(\.[0-9]+)?"
NO_FRACTION = r"(\.0+)?"
SOME_FRACTION = r"\.[0-9]*[1-9]"  # beside a bound that is left out, a last zero would say nothing


def integers(low: int | None, high: int | None) -> str | None:
    """The integers from one to another; None where there are none.

    >>> integers(8, 23)
    '[8-9]|1[0-9]|2[0-3]'
    >>> integers(-1, None)
    '-[0-1]|[0-9]|[1-9][0-9]{1,}'
    """
    found: list[str] = []
    if low is None or low < 0:
        found += (
            f"-({part})" if "|" in part else f"-{part}"
            for part in _sizes(max(0, -(0 if high is None else high)), _negated(low))
        )
    if high is None or high >= 0:
        found += _sizes(max(0, low or 0), high)
    return "|".join(found) or None


def decimals(low: int | None, high: int | None, *, above: bool, below: bool) -> str | None:
    """The numbers between two whole bounds, written without an exponent; `above` and `below` leave the bounds out.

    >>> decimals(0, 1, above=True, below=False)
    '0\\\\.[0-9]*[1-9]|1(\\\\.0+)?'
    """
    found: list[str] = []
    if low is None or low < 0:
        ceiling = -high if high is not None and high < 0 else 0
        found += (f"-({part})" for part in _amounts((ceiling, below or not ceiling), (_negated(low), above)))
    if high is None or high >= 0:
        floor = low if low is not None and low > 0 else 0
        found += _amounts((floor, above and low == floor), (high, below))
    return "|".join(found) or None


def _negated(bound: int | None) -> int | None:
    return None if bound is None else -bound


def _amounts(low: tuple[int, bool], high: tuple[int | None, bool]) -> Iterator[str]:
    """Numbers that are not negative, each bound with whether it is left out itself."""
    (least, above), (most, below) = low, high
    if most is not None and most < least:
        return
    if most is None or least < most:
        yield f"{least}{SOME_FRACTION if above else FRACTION}"
        between = "|".join(_sizes(least + 1, None if most is None else most - 1))
        if between:
            yield f"({between}){FRACTION}"
    if most is not None and not below and not (most == least and above):
        yield f"{most}{NO_FRACTION}"


def _sizes(low: int, high: int | None) -> Iterator[str]:
    """Whole numbers that are not negative, by how many digits they have."""
    first = str(low)
    if high is None:
        yield from _digits(first, "9" * len(first))
        yield f"[1-9][0-9]{{{len(first)},}}"
        return
    for size in range(len(first), len(str(high)) + 1 if low <= high else 0):
        least = max(low, 10 ** (size - 1) if size > 1 else 0)
        yield from _digits(str(least), str(min(high, 10**size - 1)))


def _digits(low: str, high: str) -> Iterator[str]:
    """Numbers of one size, digit by digit."""
    if low == high:
        yield low
    elif low[0] == high[0]:
        yield from (low[0] + rest for rest in _digits(low[1:], high[1:]))
    else:
        size = len(low) - 1
        first, last = int(low[0]), int(high[0])
        if low[1:].strip("0"):
            yield from (low[0] + rest for rest in _digits(low[1:], "9" * size))
            first += 1
        if high[1:].strip("9"):
            last -= 1
        if first <= last:
            tail = f"[0-9]{{{size}}}" if size > 1 else "[0-9]" * size
            yield (str(first) if first == last else f"[{first}-{last}]") + tail
        if high[1:].strip("9"):
            yield from (high[0] + rest for rest in _digits("0" * size, high[1:]))
