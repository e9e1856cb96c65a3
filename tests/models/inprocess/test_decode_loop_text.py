from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.inprocess.decode_loop import TextDecoder

ALPHABET = "aab<>\n文é"


def whole(text: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    """What a reader of the whole text finds: up to the stop string that is complete first."""
    for end in range(len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            longest = max(ending, key=len)
            return text[: end - len(longest)], longest
    return text, None


@given(
    st.text(ALPHABET, max_size=30),
    st.lists(st.text(ALPHABET, min_size=1, max_size=3), max_size=3),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_pieces_give_the_text_up_to_its_stop_string_however_it_is_cut(
    text: str, stops: list[str], cuts: list[int]
) -> None:
    raw = text.encode()
    places = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    spelling = TextDecoder(tuple(stops))

    said = "".join(spelling.add(raw[one:other]) for one, other in pairwise(places))
    said += spelling.close()

    assert (said, spelling.stop) == whole(text, tuple(stops))


def test_what_may_become_a_stop_string_is_held_back() -> None:
    spelling = TextDecoder(("\n\nUser:",))

    assert [spelling.add(piece) for piece in (b"yes\n", b"\nUs", b"ed")] == ["yes", "", "\n\nUsed"]


def test_half_a_character_waits_for_its_other_half_and_is_told_at_the_end() -> None:
    spelling = TextDecoder()
    raw = "茶".encode()

    assert [spelling.add(raw[:2]), spelling.add(raw[2:]), spelling.add(raw[:1]), spelling.close()] == [
        "", "茶", "", "\ufffd",
    ]  # fmt: skip
