from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.solve.loops import StopAtCall, strip_repetition
from taiwa.flows.solve.tool_call_formats import TaggedFormat
from taiwa.kernel.effects import WatchResult
from tests.flows.solve.streams import watch_pieces
from tests.strategies import joined

NAMES = ("calculator", "molar_mass")
TEXTS = joined(
    [
        "<<calculator: 1>>",
        "<<oracle:x>>",
        "<<",
        ">>",
        ">",
        "<",
        "`",
        "```",
        "~~~",
        "\n",
        "\n",
        " ",
        "calculator",
        ": ",
        "1" * 400,
        "ま",
    ],
    max_size=20,
)


@given(TEXTS, st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_where_a_stream_is_cut_changes_nothing(text: str, sizes: list[int]) -> None:
    whole, watch = TaggedFormat().scanner(NAMES).feed(text), StopAtCall(TaggedFormat().scanner(NAMES))
    shown_text, cut = watch_pieces(watch, text, sizes)

    assert cut == (whole and whole.end)
    assert shown_text == text[:cut]


@given(TEXTS, st.text(max_size=30), st.integers(1, 9))
def test_a_repeated_text_is_neither_shown_nor_scanned(known: str, new: str, size: int) -> None:
    text = known.rstrip() + new
    watch = StopAtCall(TaggedFormat().scanner(NAMES), known)
    shown_text, cut = "", None
    for start in range(0, len(text), size):
        seen = watch.feed(text[start : start + size])
        shown_text, cut = shown_text + seen.show, seen.cut
        if cut is not None:
            break
    shown_text += "" if cut is not None else watch.close().show

    assert shown_text == strip_repetition(text[:cut], known)
    if len(known.rstrip()) >= 8:
        assert len(shown_text) <= len(new)


def test_what_only_begins_like_a_repetition_is_shown_after_all() -> None:
    watch = StopAtCall(TaggedFormat().scanner(NAMES), "It is a long line.")

    assert (watch.feed("It is"), watch.close()) == (WatchResult(), WatchResult("It is"))


def test_the_last_line_alone_may_be_repeated_too() -> None:
    known = "First this.\nThen <<calculator: 1+1>> 2"

    assert strip_repetition("Then <<calculator: 1+1>> 2, so two.", known) == ", so two."
    assert strip_repetition("Then two.", known) == "Then two."
