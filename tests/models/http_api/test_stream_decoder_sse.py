import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ProtocolError
from taiwa.models.http_api.stream_decoder import LARGEST_EVENT_BYTES, Event, SseReader
from tests.models.pieces import PLACES, cut

BREAKS = ("\n", "\r\n", "\r")
WORDS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=12)


def read(*pieces: bytes) -> list[Event]:
    reader = SseReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.close()


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, list[Event]]:
    """A stream as a server may write it, and the events that are in it."""
    written, events, line_break = "", [], draw(st.sampled_from(BREAKS))
    for _ in range(draw(st.integers(0, 4))):
        lines = draw(st.lists(WORDS, min_size=1, max_size=3))
        name = draw(st.sampled_from(["", "ping", "message_start"]))
        fields = [
            f"data:{draw(st.sampled_from(['', ' ']))}{line}" if line[:1] != " " else f"data: {line}" for line in lines
        ]
        if name:
            fields.insert(draw(st.integers(0, len(fields))), f"event: {name}")
        fields.insert(draw(st.integers(0, len(fields))), f":{draw(WORDS)}")
        events.append(Event("\n".join(lines), name))
        written += "".join(field + line_break for field in (*fields, ""))
    return written, events


@given(streams(), PLACES)
def test_events_are_read_back_wherever_the_bytes_are_cut(stream: tuple[str, list[Event]], places: list[int]) -> None:
    written, events = stream

    found = read(*cut(written.encode(), places))

    assert found == events


@given(st.binary(max_size=200), PLACES)
def test_any_bytes_read_the_same_however_they_are_cut(body: bytes, places: list[int]) -> None:
    found = read(*cut(body, places))

    assert found == read(body)


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [Event("a"), Event("b")]),
        (b"data: a\ndata: b\n\n", [Event("a\nb")]),
        (b"data:a\n\ndata:  b\n\n", [Event("a"), Event(" b")]),
        (b"data\n\n", [Event("")]),
        (b"data: a\r\rdata: b\r\n\r\n", [Event("a"), Event("b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
        (b"data: \xef\xbb\xbfa\n\n", [Event("\ufeffa")]),
        (b": keep-alive\n\n: OPENROUTER PROCESSING\n\ndata: a\n\n", [Event("a")]),
        (b"event: ping\n\ndata: a\n\n", [Event("a")]),
        (b"event: ping\ndata: a\n\ndata: b\n\n", [Event("a", "ping"), Event("b")]),
        (b"id: 7\nretry: 10\nfoo: bar\ndata: a\n\n", [Event("a")]),
        (b"nonsense\n\n\n\ndata: a\n\n", [Event("a")]),
        (b"data: a: b\n\n", [Event("a: b")]),
        (b"data: \xff\n\n", [Event("\ufffd")]),
        (b"", []),
    ],
)
def test_a_stream_reads_as_the_standard_says(body: bytes, events: list[Event]) -> None:
    assert read(body) == events


@pytest.mark.parametrize("end", [b"", b"\n", b"\r", b"\r\n"])
def test_the_last_event_counts_without_its_empty_line(end: bytes) -> None:
    assert read(b"data: a\n\ndata: b" + end) == [Event("a"), Event("b")]


def test_an_event_is_given_out_as_soon_as_it_is_whole() -> None:
    reader = SseReader()

    given_out = [reader.feed(piece) for piece in (b"data: a\n", b"\n", b"data: b\r", b"\n\r", b"\ndata: c")]

    assert given_out == [[], [Event("a")], [], [Event("b")], []]
    assert reader.close() == [Event("c")]


def test_an_error_field_is_an_event_although_no_standard_has_it() -> None:
    assert read(b'error: {"message": "no slot"}\n\n') == [Event('{"message": "no slot"}', "error")]


def test_a_character_cut_in_four_stays_whole() -> None:
    pieces = [bytes([byte]) for byte in "data: 🎲対話\n\n".encode()]

    assert read(*pieces) == [Event("🎲対話")]


def test_an_endless_event_is_refused() -> None:
    reader = SseReader()
    reader.feed(b"x" * LARGEST_EVENT_BYTES)

    with pytest.raises(ProtocolError, match="larger than 16 MiB"):
        reader.feed(b"x")


def test_many_small_events_are_no_large_one() -> None:
    reader = SseReader()
    piece = b"data: " + b"x" * 2**20 + b"\n\n"

    events = [event for _ in range(17) for event in reader.feed(piece)]

    assert len(events) == 17
