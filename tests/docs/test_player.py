"""The server that plays a written dialogue."""

import json
import socket
import struct
import time

import pytest

from docs.player import ScriptedExchange, ScriptedServer


def test_who_leaves_in_the_middle_of_an_answer_leaves_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    asked = json.dumps({"messages": [{"role": "user", "content": "?"}], "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(asked)}\r\n\r\n".encode()
    with ScriptedServer([ScriptedExchange("word " * 20)], pace=0.001) as player:
        port = int(player.base_url.rpartition(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(head + asked)
            client.recv(10)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leave with a reset
        time.sleep(0.1)

    assert capfd.readouterr().err == ""
