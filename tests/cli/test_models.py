"""Models and servers: which are known, what each can do, and what a genuine server really enforces."""

import json

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.peers.faults import head, raw, status
from tests.peers.llama import KEY, LlamaServer


def listing(*names: str) -> bytes:
    body = json.dumps({"data": [{"id": name, "owned_by": "somebody"} for name in names]}).encode()
    return head(len(body), "application/json") + body


def test_every_provider_says_how_it_is_named_and_whether_its_key_is_there(
    taiwa: Taiwa, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1")

    shown = taiwa.ok("models", "list").out

    rows = {line.split()[0]: line for line in shown.splitlines()}
    assert rows["openai:MODEL"].endswith("OPENAI_API_KEY (set)")
    assert rows["anthropic:MODEL"].endswith("ANTHROPIC_API_KEY (not set)")
    assert "http://127.0.0.1:11434/v1" in rows["ollama:MODEL"]
    assert "sk-canary-1" not in shown


def test_capabilities_of_a_model_are_shown(taiwa: Taiwa) -> None:
    data = taiwa.ok("models", "show", "openai:gpt-4o", "--json").json

    assert data["capabilities"]["json_schema"] is True
    assert data["capabilities"]["grammar"] is False
    assert data["probed"] is None
    assert "from the table; `taiwa probe` measures them" in taiwa.ok("models", "show", "openai:gpt-4o").err


@pytest.mark.parametrize(
    ("name", "wire", "fields"),
    [
        ("openai:gpt-5", "  wire=responses", {"wire": "responses"}),
        ("openai:gpt-4o", "  wire=chat", {}),
        ("anthropic:claude-opus-5", "  wire=messages", {"wire": "messages"}),
        ("local:./model", "", {}),
    ],
)
def test_the_wire_of_a_model_is_shown_and_recorded_unless_it_is_chat(
    taiwa: Taiwa, name: str, wire: str, fields: dict[str, str]
) -> None:
    record = taiwa.ok("models", "show", name, "--json").json
    line = taiwa.ok("models", "show", name).lines[0]

    assert {key: record[key] for key in ("wire",) if key in record} == fields
    assert line.partition("  wire=")[1:] == wire.partition("  wire=")[1:]


def test_a_server_lists_its_own_models(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(raw(listing("b", "a"), close=False))

    assert taiwa.ok("models", "remote").lines == ["a", "b"]
    assert model_server.seen[0].path == "/v1/models"


def test_the_models_of_a_provider_without_a_key_name_the_provider(taiwa: Taiwa) -> None:
    assert taiwa("models", "remote", "openai").err.startswith("taiwa: no key for openai: run `taiwa keys set openai`")


@pytest.mark.parametrize("words", [("show",), ("remote",)])
def test_without_a_model_there_is_none_to_show(taiwa: Taiwa, words: tuple[str, ...]) -> None:
    done = taiwa("models", *words)

    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "no model is set" in done.err


NESTED = b"[" * 200_000


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        NESTED,
        b'{"data": ' + NESTED,
        b'{"data": [{"id": 5}]}',
        b'{"data": [{"id": "\\n"}]}',
        b'{"data": {}}',
    ],
)
def test_a_server_that_lists_nothing_that_is_known_is_one_line(
    taiwa: Taiwa, model_server: ModelServer, body: bytes
) -> None:
    model_server(raw(head(len(body), "application/json") + body, close=False))

    done = taiwa("models", "remote")

    assert done.code == 1
    assert "returned an unknown list of models" in done.err


def test_a_server_that_refuses_the_key_is_an_error_of_one_line(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(*[status(401, b"no")] * 3)

    done = taiwa("probe")

    assert done.code == 1
    assert done.err.count("\n") == 1


@pytest.mark.slow
def test_a_genuine_server_is_probed_and_what_it_enforces_is_used_from_then_on(
    taiwa: Taiwa, place: Place, llama: LlamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "llamacpp:tiny"
    place.set(model=name, base_urls={"llamacpp": llama.base_url})
    monkeypatch.setenv("LLAMACPP_API_KEY", KEY)

    data = taiwa.ok("probe", "--json").json

    assert data["findings"]["schema.enum"]["verdict"] == "enforced"
    assert data["findings"]["usage"]["verdict"] == "enforced"
    assert data["requests"] > 20
    shown = taiwa.ok("models", "show", "--json").json
    assert shown["probed"]
    assert shown["capabilities"]["json_schema"] is True
    assert KEY not in place.config.with_name("probes.json").read_text()
