from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from taiwa.constraints.automaton import ALL, Ranges, encode_utf8, invert_ranges, merge_ranges, with_other_case

CODES = st.integers(0, 0x10FFFF)
SPANS = st.lists(
    st.tuples(CODES, st.integers(0, 300)).map(lambda pair: (pair[0], min(0x10FFFF, sum(pair)))), max_size=4
)


def members(ranges: Ranges) -> set[int]:
    return {code for low, high in ranges for code in range(low, high + 1)}


@given(SPANS)
def test_ranges_are_in_order_and_apart_and_hold_what_they_held(spans: list[tuple[int, int]]) -> None:
    ranges = merge_ranges(spans)

    assert members(ranges) == members(tuple(spans))
    assert all(before[1] + 1 < after[0] for before, after in pairwise(ranges))


@given(SPANS)
def test_what_is_inverted_twice_is_as_it_was(spans: list[tuple[int, int]]) -> None:
    ranges = merge_ranges(spans)

    assert invert_ranges(invert_ranges(ranges)) == ranges
    assert merge_ranges((*ranges, *invert_ranges(ranges))) == ALL


@given(SPANS)
def test_utf8_writes_just_the_characters_of_the_ranges(spans: list[tuple[int, int]]) -> None:
    ranges = merge_ranges(spans)

    spelled = [
        bytes(byte)
        for sequence in encode_utf8(ranges)
        for byte in product(*(range(low, high + 1) for low, high in sequence))
    ]

    wanted = {chr(code).encode() for code in members(ranges) if not 0xD800 <= code <= 0xDFFF}
    assert len(spelled) == len(wanted)
    assert set(spelled) == wanted


def test_letters_have_another_case_and_other_signs_none() -> None:
    assert members(with_other_case(((ord("a"), ord("b")), (ord("é"), ord("é")), (ord("文"), ord("文"))))) == set(
        map(ord, "aAbBéÉ文")
    )
