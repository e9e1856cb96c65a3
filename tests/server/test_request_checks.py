"""What reaches no endpoint: foreign hosts and origins, missing keys, bodies of the wrong type and size."""

import gzip
import json
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.server.access import Address, BodyLimits, ServerLimits, ServerOptions
from taiwa.server.serve import LogFormatter, bind
from tests.server.serving import KEY, Serving, serving

JSON_TYPE = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving(*["Hello!"] * 50, limits=ServerLimits(body=BodyLimits(1 << 20, 30.0), messages=50, runs=8)) as running:
        yield running


def error_of(response: httpx.Response) -> dict[str, object]:
    assert set(response.json()) == {"error"}
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    return response.json()["error"]


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:7474"]
)
def test_a_rebound_host_is_refused_before_the_key_is_looked_at(served: Serving, host: str) -> None:
    for path in ("/health", "/v1/models", "/nothing", "/login?code=x"):
        response = served.client.get(path, headers={"host": host})
        assert response.status_code == 403
        assert error_of(response)["code"] == "host_not_allowed"


@pytest.mark.parametrize("host", ["", "a b", "[::1", "user@localhost", "localhost/x", "localhost:99999"])
def test_an_invalid_host_is_refused(served: Serving, host: str) -> None:
    assert served.client.get("/health", headers={"host": host}).status_code == 400


def test_the_names_of_loopback_are_hosts(served: Serving) -> None:
    for host in ("localhost", f"localhost:{served.server.port}", "127.0.0.1", "[::1]:9"):
        assert served.client.get("/health", headers={"host": host}).json() == {"status": "ok"}


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": ""},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {KEY}"},
        {"authorization": "", "x-api-key": "wrong"},
        {"x-api-key": "wrong"},
        {"authorization": "Bearer wrong", "x-api-key": KEY},
        {"authorization": f"Bearer {KEY}", "api-key": "wrong"},
        {"authorization": "", "cookie": f"taiwa={KEY}"},
    ],
)
def test_a_missing_or_wrong_key_is_refused_wherever_it_stands(served: Serving, headers: dict[str, str]) -> None:
    response = served.client.get("/v1/models", headers=headers)
    assert response.status_code == 401
    assert error_of(response)["code"] == "invalid_api_key"
    assert KEY not in response.text


def test_each_header_of_a_key_is_read(served: Serving) -> None:
    for headers in ({"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}, {"api-key": KEY}):
        assert httpx.get(f"{served.url}/models", timeout=300, headers=headers).status_code == 200


def test_a_browser_exchanges_the_code_of_the_start_line_once_for_a_strict_cookie(served: Serving) -> None:
    link = served.server.login_url
    with httpx.Client(timeout=300) as browser:
        first = browser.get(link)
        assert (first.status_code, first.headers["location"]) == (303, "/")
        assert "HttpOnly" in first.headers["set-cookie"]
        assert "SameSite=strict" in first.headers["set-cookie"]
        assert KEY not in first.headers["set-cookie"]
        assert browser.get(f"{served.url}/models").status_code == 200
        again = browser.get(link)
        assert (again.status_code, again.headers["location"]) == (303, "/")
        assert "set-cookie" not in again.headers
    assert httpx.get(link, timeout=300).status_code == 401
    assert httpx.get(f"{served.url}/models", timeout=300).status_code == 401


def test_a_page_of_another_origin_is_refused(served: Serving) -> None:
    for headers in (
        {"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):  # fmt: skip
        response = served.client.post("/v1/chat/completions", json={}, headers=headers)
        assert response.status_code == 403
        assert error_of(response)["code"] == "origin_not_allowed"
        assert "access-control-allow-origin" not in response.headers
    own = {"origin": served.server.url}
    assert served.client.post("/v1/chat/completions", json={}, headers=own).status_code == 400


def test_only_a_named_origin_gets_cors_headers() -> None:
    with serving(origins=("https://page.example",)) as named:
        named_origin = {"origin": "https://page.example"}
        asked = named.client.request("OPTIONS", "/v1/chat/completions", headers=named_origin)
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, "https://page.example")
        assert "access-control-allow-credentials" not in asked.headers
        sent = "authorization,x-stainless-retry-count,anthropic-dangerous-direct-browser-access"
        asked = named.client.options("/v1/messages", headers=named_origin | {"access-control-request-headers": sent})
        assert asked.headers["access-control-allow-headers"] == sent
        failed = named.client.post("/v1/messages", json={}, headers=named_origin)
        assert (failed.status_code, failed.headers["access-control-expose-headers"]) == (400, "*")
        other = named.client.request("OPTIONS", "/v1/chat/completions", headers={"origin": "https://evil.example"})
        assert other.status_code == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_a_form_could_send_is_refused(served: Serving, kind: str) -> None:
    response = served.client.post("/v1/chat/completions", content=b"{}", headers={"content-type": kind})
    assert response.status_code == 415


@pytest.mark.parametrize("coding", ["gzip", "deflate", "gzip, gzip", "br"])
def test_a_compressed_body_is_refused_unread(served: Serving, coding: str) -> None:
    bomb = gzip.compress(b" " * (10 << 20))
    response = served.client.post(
        "/v1/chat/completions", content=bomb, headers=JSON_TYPE | {"content-encoding": coding}
    )
    assert response.status_code == 415
    assert error_of(response)["message"] == "compressed bodies are not read; send it without Content-Encoding"


@pytest.mark.parametrize("name", ["seed", "temperature", "max_tokens", "n"])
def test_a_number_of_any_size_is_named(served: Serving, name: str) -> None:
    response = served.chat("Hi", **{name: 10**400})

    assert response.status_code == 400
    assert error_of(response)["param"] == name
    assert len(error_of(response)["message"]) < 120


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/messages", "/v1/messages"),
        ("/openai/v1//chat/completions", "/v1/chat/completions"),
        ("/v1/", ""),
        ("/v1/responses/", "/v1/responses"),
        ("/v2/chat", ""),
    ],
)
def test_a_path_of_a_wrong_base_url_gets_a_hint(served: Serving, path: str, meant: str) -> None:
    response = served.client.post(path, json={})

    message = response.json()["error"]["message"]
    assert response.status_code == 404
    assert message.endswith(f"did you mean {meant}? Check the base URL" if meant else "does not exist here")


def test_a_body_of_a_hundred_megabytes_is_refused_unread(served: Serving) -> None:
    with socket.create_connection(("127.0.0.1", served.server.port)) as wire:
        wire.sendall(
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
            "Content-Type: application/json\r\nContent-Length: 104857600\r\n\r\n".encode()
        )
        assert wire.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_a_chunked_body_is_refused_where_it_becomes_too_large(served: Serving) -> None:
    response = served.client.post("/v1/chat/completions", content=(b" " * 65536 for _ in range(64)), headers=JSON_TYPE)
    assert response.status_code == 413
    assert error_of(response)["code"] == "request_too_large"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b"\xff\xfe", "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"[]", "invalid_type"),
        (b'"text"', "invalid_type"),
        (b"null", "invalid_type"),
    ],
)
def test_a_body_that_is_not_a_json_object_is_refused(served: Serving, body: bytes, code: str) -> None:
    response = served.client.post("/v1/chat/completions", content=body, headers=JSON_TYPE)
    assert (response.status_code, error_of(response)["code"]) == (400, code)


def test_a_half_closed_connection_leaves_the_server_as_it_was(served: Serving) -> None:
    for sent in (b"POST /v1/chat/completions HT", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", served.server.port)) as wire:
            wire.sendall(sent)
            wire.shutdown(socket.SHUT_WR)
            wire.recv(4096)
    assert served.client.get("/health").status_code == 200


def test_an_unknown_path_and_method_are_errors_of_the_wire(served: Serving) -> None:
    assert error_of(served.client.get("/v1/nothing"))["code"] == "not_found"
    wrong = served.client.get("/v1/chat/completions")
    assert (wrong.status_code, error_of(wrong)["code"]) == (405, "method_not_allowed")
    assert (wrong.headers["allow"], error_of(wrong)["message"][-8:]) == ("POST", "use POST")
    socket = served.client.get("/v1/responses", headers={"connection": "Upgrade", "upgrade": "websocket"})
    assert (socket.status_code, error_of(socket)["code"]) == (426, "websocket_unsupported")
    for path, shape in (
        ("/api/chat", {"error": ...}),
        ("/v1/messages", {"type": "error", "error": ..., "request_id": ...}),
    ):
        wrong = served.client.delete(path)
        assert (wrong.status_code, wrong.headers["allow"], wrong.json().keys()) == (405, "POST", shape.keys())
    assert served.client.put("/v1/conversations/x").headers["allow"] == "DELETE, GET, HEAD, POST"


def test_the_log_has_the_path_and_outcome_and_no_contents_keys_or_queries(
    served: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("taiwa.server.requests")
    with caplog.at_level(logging.INFO, log.name), pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "handlers", [caplog.handler])  # a server of another test may have kept its log from the root
        served.client.get("/login", params={"code": "secret-code"})
        served.chat("secret-text")
        for _ in range(6_000):  # the line is written when the answer is already sent
            records = [record for record in list(caplog.records) if record.name.startswith("taiwa")]
            lines = [json.dumps(vars(record), default=str) for record in records]
            if any('"/v1/chat/completions"' in line and '"status": 200' in line for line in lines):
                break
            time.sleep(0.01)
        else:
            pytest.fail("no line of the log has the path and the status")
    assert not any(secret in line for line in lines for secret in (KEY, "secret-code", "secret-text", "Hello!"))


@pytest.mark.parametrize("as_json", [False, True])
def test_no_control_code_of_a_request_or_an_error_gets_into_the_log(*, as_json: bool) -> None:
    hostile = "/\x9b31m\x1b[2J\u202egnp\x7f"
    request, failure = ({"msg": "request", "path": hostile}, {"msg": f"a model cannot be used: {hostile}"})

    lines = [
        LogFormatter(as_json=as_json).format(logging.makeLogRecord({"levelname": "INFO", **fields}))
        for fields in (request, failure)
    ]

    assert not {"\x9b", "\x1b", "\u202e", "\x7f"} & set("".join(lines))
    if as_json:
        assert json.loads(lines[0])["path"] == hostile


def test_a_server_for_other_machines_needs_a_token() -> None:
    ServerOptions(Address("0.0.0.0"), token="x").check()
    ServerOptions(Address("127.8.8.8")).check()
    for host in ("0.0.0.0", "::", "192.168.1.4", "example.com"):
        with pytest.raises(ConfigError, match="without a token the server would be open"):
            ServerOptions(Address(host)).check()


def test_the_command_refuses_to_open_the_server_to_others_without_a_token() -> None:
    words = [sys.executable, "-m", "taiwa", "serve", "--host", "0.0.0.0", "--no-token", "--port", "0"]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("taiwa: without a token")


@pytest.mark.parametrize("host", ["a..b", "a" * 300, "x y"])
def test_a_host_that_cannot_be_is_an_error_of_the_settings(host: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        bind(host, 0)


def test_a_server_on_all_addresses_prints_one_that_a_browser_opens() -> None:
    with serving("Hello!", host="0.0.0.0") as served:
        assert served.server.url == f"http://127.0.0.1:{served.server.port}"
        assert served.chat("Hi").status_code == 200
        assert httpx.get(served.server.login_url, timeout=300).status_code == 303


def test_without_a_token_every_program_of_this_machine_is_let_in() -> None:
    with serving("Hello!", token="") as open_:
        assert open_.chat("Hi").status_code == 200
        assert open_.client.get("/v1/models", headers={"authorization": "Bearer anything"}).status_code == 200


AMBIGUOUS = {
    "two ends": (
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n",
        b"0\r\n\r\n",
    ),
    "two keys": (b"Authorization: Bearer other\r\n", b""),
    "two types": (b"Content-Type: text/plain\r\nContent-Type: application/json\r\n", b""),
    "two origins": (b"Origin: http://127.0.0.1\r\nOrigin: http://evil.example\r\n", b""),
}


@pytest.mark.parametrize("what", AMBIGUOUS)
def test_a_request_that_can_be_read_in_two_ways_is_refused_with_what_follows_it(served: Serving, what: str) -> None:
    headers, body = AMBIGUOUS[what]
    own = f"Host: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n".encode()
    with socket.create_connection(("127.0.0.1", served.server.port)) as wire:
        first = b"POST /api/conversations HTTP/1.1\r\n" + own + headers + b"\r\n" + body
        wire.sendall(first + b"GET /api/cost HTTP/1.1\r\n" + own + b"\r\n")
        answer = b"".join(iter(lambda: wire.recv(65536), b""))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
