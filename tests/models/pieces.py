"""Cutting texts and bytes anywhere, for what must not depend on how they arrive."""

from collections.abc import Iterable
from itertools import pairwise
from typing import AnyStr

from hypothesis import strategies as st

PLACES = st.lists(st.integers(0, 300), max_size=8)


def cut(whole: AnyStr, places: Iterable[int]) -> list[AnyStr]:
    """Cut at these places, as far as they lie inside."""
    edges = [0, *sorted(min(place, len(whole)) for place in places), len(whole)]
    return [whole[start:end] for start, end in pairwise(edges)]
