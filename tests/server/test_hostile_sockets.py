"""Connections that send slowly, half or too much: each gets the error of its protocol or is closed, and the others are served."""

import socket
from collections.abc import Iterator

import pytest

from taiwa.server.access import BodyLimits, ServerLimits
from tests.server.serving import KEY, Serving, serving

HEAD = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
HEALTH = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    """It waits long for a body and only a moment for a head: far longer than a busy machine takes to send one."""
    with serving(
        *["An answer."] * 9, limits=ServerLimits(header_seconds=1.0, body=BodyLimits(1 << 20, 300.0))
    ) as started:
        yield started


@pytest.fixture(scope="module")
def hasty() -> Iterator[Serving]:
    """It waits long for a head and not at all for a body."""
    with serving(limits=ServerLimits(header_seconds=300.0, body=BodyLimits(1 << 20, 0.1))) as started:
        yield started


def connect(server: Serving, sent: str = "") -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", server.server.port), timeout=300)
    opened.sendall(sent.encode())
    return opened


def read_all(opened: socket.socket) -> str:
    """Read until the server closes."""
    found = b""
    while part := opened.recv(65536):
        found += part
    return found.decode()


def test_a_request_that_does_not_arrive_ends_its_connection(server: Serving) -> None:
    opened = {sent: connect(server, sent) for sent in ("", "GET /health HT", HEAD)}

    for sent, each in opened.items():
        with each:
            assert read_all(each) == "", sent
    assert server.client.get("/health").status_code == 200


def test_a_second_request_that_does_not_arrive_ends_its_connection(server: Serving) -> None:
    with connect(server, HEALTH) as opened:
        assert b"200 OK" in opened.recv(65536)
        opened.sendall(b"GET /he")
        read_all(opened)


def test_a_hundred_slow_connections_are_closed_and_the_others_served(server: Serving) -> None:
    opened = [connect(server, "GET /health HTTP/1.1\r\n") for _ in range(100)]

    assert server.client.get("/health").status_code == 200
    for each in opened:
        with each:
            assert read_all(each) == ""


def test_a_body_that_does_not_arrive_is_answered_in_the_form_of_the_protocol(hasty: Serving) -> None:
    with connect(hasty, HEAD + "content-length: 99\r\n\r\n{") as opened:
        answer = opened.recv(65536).decode()

    assert " 408 " in answer.splitlines()[0]


def test_a_socket_that_is_closed_on_one_side_is_given_up(hasty: Serving) -> None:
    with connect(hasty, HEAD + "content-length: 99\r\n\r\n{") as opened:
        opened.shutdown(socket.SHUT_WR)
        read_all(opened)

    assert hasty.client.get("/health").status_code == 200


def test_a_body_of_a_hundred_megabytes_is_refused_before_it_is_read(server: Serving) -> None:
    with connect(server, HEAD + f"content-length: {100 << 20}\r\n\r\n") as opened:
        answer = opened.recv(65536).decode()

    assert " 413 " in answer.splitlines()[0]


def test_a_server_takes_bodies_of_32_megabytes_at_most_if_nothing_else_is_said() -> None:
    with serving() as server, connect(server, HEAD + f"content-length: {(32 << 20) + 1}\r\n\r\n") as opened:
        assert b" 413 " in opened.recv(65536).splitlines()[0]


def test_ten_thousand_messages_are_refused_before_a_model_is_asked(server: Serving) -> None:
    answer = server.chat([{"role": "user", "content": "a"}] * 10_000)

    assert answer.status_code == 400
    assert "error" in answer.json()
    assert server.model.requests == []


def test_a_thousand_connections_that_leave_at_once_do_not_keep_the_others_waiting(server: Serving) -> None:
    for _ in range(1_000):
        connect(server, HEALTH).close()

    assert server.client.get("/health").status_code == 200


def test_what_a_response_holds_is_sent_without_waiting_for_an_acknowledgement(server: Serving) -> None:
    with connect(server, HEALTH) as opened:
        assert b"200 OK" in opened.recv(65536)
        here = opened.getsockname()
        accepted = [each.transport.get_extra_info("socket") for each in server.server._server.server_state.connections]

        (mine,) = [each for each in accepted if each.getpeername() == here]
        assert mine.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
