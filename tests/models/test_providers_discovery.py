"""Models within reach: keys in the environment, and servers of this machine that answer in time."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from taiwa.models.providers import PROVIDERS, SERVERS, FoundModel, find_by_keys, find_servers, resolve
from taiwa.settings import Settings, load
from tests.peers.faults import FaultServer, head, raw, silence

PATIENT = 300.0
"""Seconds: only the servers that answer end the wait of a test."""


def listing(*names: str, owner: str = "library") -> bytes:
    body = json.dumps({"object": "list", "data": [{"id": name, "owned_by": owner} for name in names]}).encode()
    return head(len(body), "application/json") + body


def settings(environ: dict[str, str] | None = None, **base_urls: str) -> Settings:
    return load(
        {"base_urls": base_urls} if base_urls else {}, {"HOME": "/", **(environ or {})}, Path("/none/config.yaml")
    )


def elsewhere(**base_urls: str) -> Settings:
    """Settings in which every server but the given ones is at a port where nothing listens."""
    return settings(**dict.fromkeys(SERVERS, "http://127.0.0.1:9/v1") | base_urls)


@pytest.fixture
def servers() -> Iterator[list[FaultServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FaultServer()) for _ in range(2)]


# --- keys ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "prefix"),
    [
        ("OPENAI_API_KEY", "openai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GEMINI_API_KEY", "gemini"),
        ("GOOGLE_API_KEY", "gemini"),
        ("OPENROUTER_API_KEY", "openrouter"),
        ("MISTRAL_API_KEY", "mistral"),
        ("GROQ_API_KEY", "groq"),
        ("DEEPSEEK_API_KEY", "deepseek"),
    ],
)
def test_a_key_in_the_environment_brings_a_model_of_its_provider(variable: str, prefix: str) -> None:
    [found] = find_by_keys(settings(), {variable: "canary"})

    assert found.name.startswith(f"{prefix}:")
    assert found.source == variable
    assert "canary" not in repr(found)


def test_no_key_brings_no_model() -> None:
    assert find_by_keys(settings(), {"OPENAI_API_KEY": "", "PATH": "/bin"}) == ()


def test_azure_is_found_by_its_three_variables() -> None:
    environ = {
        "AZURE_OPENAI_API_KEY": "canary",
        "AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com/",
        "AZURE_OPENAI_DEPLOYMENT": "prod",
    }
    chosen = settings(environ)

    assert find_by_keys(chosen, environ) == (FoundModel("azure:prod", "AZURE_OPENAI_API_KEY"),)
    target = resolve("azure:prod", base_urls=chosen.base_urls)
    assert target.base_url == "https://acme.openai.azure.com/openai/v1"
    assert target.key_variable == "AZURE_OPENAI_API_KEY"
    assert target.codec is not None
    assert target.codec.auth("secret") == (("api-key", "secret"),)


@pytest.mark.parametrize(
    ("endpoint", "base_url"),
    [
        ("https://acme.openai.azure.com", "https://acme.openai.azure.com/openai/v1"),
        ("https://acme.openai.azure.com/openai/v1/", "https://acme.openai.azure.com/openai/v1"),
        ("not an address", None),
        ("", None),
    ],
)
def test_the_endpoint_of_azure_is_the_address_of_its_resource(endpoint: str, base_url: str | None) -> None:
    assert settings({"AZURE_OPENAI_ENDPOINT": endpoint}).base_urls.get("azure") == base_url


def test_the_user_s_own_address_of_azure_takes_precedence() -> None:
    environ = {"AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com"}

    assert (
        settings(environ, azure="https://other.openai.azure.com/openai/v1")
        .base_urls["azure"]
        .startswith("https://other")
    )


def test_every_suggested_model_has_a_name_that_leads_to_its_provider() -> None:
    for prefix, provider in PROVIDERS.items():
        if provider.suggested:
            assert resolve(f"{prefix}:{provider.suggested}").provider == prefix


# --- servers ------------------------------------------------------------------------------------------------------------


def test_servers_of_this_machine_list_their_models(servers: list[FaultServer]) -> None:
    ollama, vllm = servers
    ollama.plays(raw(listing("qwen3:8b", "nomic-embed-text", "bad name"), close=False))
    vllm.plays(raw(listing("Qwen/Qwen3-8B", owner="vllm"), close=False))

    found = find_servers(elsewhere(ollama=ollama.base_url, vllm=vllm.base_url), PATIENT)

    assert [each.name for each in found] == ["ollama:qwen3:8b", "vllm:Qwen/Qwen3-8B"]
    assert found[0].source == f"Ollama at {ollama.url.removeprefix('http://')}"
    assert [seen.path for seen in ollama.seen] == ["/v1/models"]
    assert "authorization" not in ollama.seen[0].headers


def test_another_program_at_the_port_of_a_server_is_named_by_its_address(servers: list[FaultServer]) -> None:
    servers[0].plays(raw(listing("m", owner="somebody"), close=False))

    [found] = find_servers(elsewhere(llamacpp=servers[0].base_url), PATIENT)

    assert found.name == f"{servers[0].base_url}#m"


@pytest.mark.parametrize(
    "answer",
    [
        head(3, "text/html") + b"<a>",
        head(2, "application/json", 401) + b"{}",
        head(2, "application/json") + b"[]",
        head(30, "application/json") + b'{"data": [{"id": 1}, "x"]}    ',
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
    ],
)
def test_what_is_not_a_list_of_models_brings_none(servers: list[FaultServer], answer: bytes) -> None:
    servers[0].plays(raw(answer))

    assert find_servers(elsewhere(lmstudio=servers[0].base_url), PATIENT) == ()


def test_a_silent_server_keeps_nobody_waiting(servers: list[FaultServer]) -> None:
    servers[0].plays(silence())

    assert find_servers(elsewhere(ollama=servers[0].base_url), 0.01) == ()


def test_a_server_on_another_machine_is_not_asked() -> None:
    moved = dict.fromkeys(SERVERS, "http://192.0.2.1:11434/v1")

    assert find_servers(settings(**moved), PATIENT) == ()
