"""What the transport makes of the bytes of a server is the same with and without the merging of chunks."""

from itertools import pairwise

import h11
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.reframe import Reframe

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=12)
cuts = st.lists(st.integers(0, 600), max_size=12)


def framed(chunks: list[bytes]) -> bytes:
    return b"".join(b"%X\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


def understood(pieces: list[bytes], *, method: str = "POST") -> tuple[bytes, str]:
    """What a client makes of an answer that arrives in these pieces and then ends: its body and how it ended."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("host", "a")]))
    client.send(h11.EndOfMessage())
    body = b""
    for piece in [*pieces, b""]:
        if not piece and pieces and client.their_state is h11.DONE:
            break
        try:
            client.receive_data(piece)
            while (event := client.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Data):
                    body += event.data
                if isinstance(event, h11.EndOfMessage):
                    return body, "whole"
                if isinstance(event, h11.ConnectionClosed):
                    return body, "closed"
        except h11.RemoteProtocolError:
            return body, "broken"
    return body, "open"


def reframed(pieces: list[bytes], request: bytes = b"POST / HTTP/1.1\r\n") -> list[bytes]:
    frame = Reframe()
    frame.begin(request)
    return [out for piece in pieces if (out := frame.feed(piece))]


@given(bodies, cuts)
def test_an_answer_is_the_same_wherever_it_is_cut(chunks: list[bytes], places: list[int]) -> None:
    pieces = cut(HEAD + framed(chunks), places)

    assert understood(reframed(pieces)) == understood(pieces) == (b"".join(chunks), "whole")


@given(bodies, cuts, st.integers(0, 600), st.binary(max_size=4), st.integers(0, 5))
def test_what_is_broken_is_broken_for_the_transport_too(
    chunks: list[bytes], places: list[int], where: int, put: bytes, taken: int
) -> None:
    whole = framed(chunks)
    at = min(where, len(whole))
    pieces = cut(HEAD + whole[:at] + put + whole[at + taken :], places)

    body, end = understood(pieces)
    merged, merged_end = understood(reframed(pieces))

    assert merged_end == end
    assert merged == body or (end == "broken" and body.startswith(merged))


@given(bodies)
def test_chunks_that_arrive_together_reach_the_transport_as_one(chunks: list[bytes]) -> None:
    body = b"".join(chunks)

    merged = reframed([HEAD + framed(chunks)])

    assert merged == [HEAD + (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"]


@given(
    cuts,
    st.sampled_from(
        [
            b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n5\r\nhello\r\n",
            b"HTTP/1.1 429 Slow Down\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nx: transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n5\r\nhe",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;why=not\r\nhello\r\n0\r\n\r\n",
            b"HTTP/1.1 103 Early\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            b"HTTP/1.0 200 OK\r\n\r\n5\r\nhello\r\n",
            b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        ]
    ),
)
def test_what_is_not_plainly_a_chunked_answer_passes_as_it_came(places: list[int], data: bytes) -> None:
    assert b"".join(reframed(cut(data, places))) == data


def test_the_answer_to_connect_is_a_tunnel() -> None:
    pieces = [HEAD, framed([b"a", b"b"])]

    assert reframed(pieces, b"CONNECT host:443 HTTP/1.1\r\n") == pieces


def test_half_a_chunk_is_passed_on_at_once() -> None:
    assert reframed([HEAD, b"A\r\nhalf", b" of it\r\n"]) == [HEAD, b"4\r\nhalf\r\n", b"6\r\n of it\r\n"]


def test_every_answer_of_a_connection_is_merged() -> None:
    frame = Reframe()
    seen: list[bytes] = []
    for _ in range(2):
        frame.begin(b"POST / HTTP/1.1\r\n")
        seen.append(frame.feed(HEAD + framed([b"a", b"b"])))

    assert seen == [HEAD + b"2\r\nab\r\n0\r\n\r\n"] * 2
