"""Models within reach: keys in the environment, and servers of this machine that answer in time."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.models import providers
from taiwa.models.http_api.openai_chat import DIALECTS, OpenAICodec, ServerDialect
from taiwa.models.http_api.provider_interface import Target
from taiwa.models.providers import (
    PROVIDERS,
    SERVERS,
    FoundModel,
    find_by_keys,
    find_servers,
    key_variables,
    resolve,
    resolve_asked,
    resolve_permissive,
    resolve_probed,
    resolve_server,
)
from taiwa.settings import ModelSettings, Settings, load
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
    target = resolve("azure:prod", base_urls=chosen.models.base_urls)
    assert target.base_url == "https://acme.openai.azure.com/openai/v1"
    assert target.key_variable == "AZURE_OPENAI_API_KEY"
    assert target.codec is not None
    assert target.codec.auth("secret") == (("api-key", "secret"),)


@pytest.mark.parametrize(
    ("endpoint", "base_url"),
    [
        ("https://acme.openai.azure.com", "https://acme.openai.azure.com/openai/v1"),
        ("https://acme.openai.azure.com/openai/v1/", "https://acme.openai.azure.com/openai/v1"),
        ("not an address", ""),
        ("", None),
    ],
)
def test_the_endpoint_of_azure_is_the_address_of_its_resource(endpoint: str, base_url: str | None) -> None:
    assert settings({"AZURE_OPENAI_ENDPOINT": endpoint}).models.base_urls.get("azure") == base_url


@pytest.mark.parametrize(
    ("variable", "value", "name", "base_url"),
    [
        ("OPENAI_BASE_URL", "https://relay.example/openai/v1/", "openai:gpt-x", "https://relay.example/openai/v1"),
        ("OPENAI_BASE_URL", "https://relay.example", "openai:gpt-x", "https://relay.example/v1"),
        ("GROQ_BASE_URL", "https://relay.example/groq", "groq:x", "https://relay.example/groq"),
        ("ANTHROPIC_BASE_URL", "https://relay.example", "anthropic:claude-x", "https://relay.example/v1"),
        ("ANTHROPIC_BASE_URL", "https://relay.example/a", "anthropic:claude-x", "https://relay.example/a/v1"),
        ("ANTHROPIC_BASE_URL", "https://relay.example/v1", "anthropic:claude-x", "https://relay.example/v1"),
        ("OLLAMA_HOST", "gpu.example", "ollama:qwen3", "http://gpu.example:11434/v1"),
        ("OLLAMA_HOST", "gpu.example:80", "ollama:qwen3", "http://gpu.example/v1"),
        ("OLLAMA_HOST", ":9999", "ollama:qwen3", "http://127.0.0.1:9999/v1"),
        ("OLLAMA_HOST", "0.0.0.0", "ollama:qwen3", "http://127.0.0.1:11434/v1"),
        ("OLLAMA_HOST", "[::]:9999", "ollama:qwen3", "http://[::1]:9999/v1"),
        ("OLLAMA_HOST", "https://gpu.example/ollama", "ollama:qwen3", "https://gpu.example/ollama/v1"),
    ],
)
def test_the_address_in_the_variable_of_a_provider_s_library_holds(
    variable: str, value: str, name: str, base_url: str
) -> None:
    chosen = settings({variable: value})
    prefix = name.partition(":")[0]

    assert resolve(name, base_urls=chosen.models.base_urls).base_url == base_url
    assert chosen.origins[f"base_urls.{prefix}"] == variable
    own = settings({variable: value}, **{prefix: "https://own.example/v1"})
    assert resolve(name, base_urls=own.models.base_urls).base_url == "https://own.example/v1"


@pytest.mark.parametrize(
    ("variable", "name"),
    [("OPENAI_BASE_URL", "openai:gpt-x"), ("OLLAMA_HOST", "ollama:x"), ("GROQ_BASE_URL", "groq:x")],
)
@pytest.mark.parametrize("value", ["not an address", "http://user:canary@relay.example/v1", "http://x:99999"])
def test_an_invalid_address_in_the_environment_stops_the_call_and_nothing_else(
    variable: str, name: str, value: str
) -> None:
    chosen = settings({variable: value})

    with pytest.raises(ConfigError, match=f"is not a web address; set {variable}, or") as refused:
        resolve(name, base_urls=chosen.models.base_urls)
    assert "canary" not in str(refused.value)
    assert key_variables(chosen)
    assert find_by_keys(chosen, {"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}) == find_by_keys(
        chosen, {"OPENAI_API_KEY": "k" if variable != "OPENAI_BASE_URL" else "", "GROQ_API_KEY": "k" if variable != "GROQ_BASE_URL" else ""}
    )  # fmt: skip
    assert resolve_server("mistral", chosen).base_url == "https://api.mistral.ai/v1"


def test_the_user_s_own_address_of_azure_takes_precedence() -> None:
    environ = {"AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com"}

    assert (
        settings(environ, azure="https://other.openai.azure.com/openai/v1")
        .models.base_urls["azure"]
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


# --- what a server is ---------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(tmp_path: Path) -> Settings:
    return load({}, {"HOME": str(tmp_path)}, tmp_path / "config.yaml")


def dialect(target: Target) -> ServerDialect:
    assert isinstance(target.codec, OpenAICodec)
    return target.codec.dialect


@pytest.mark.parametrize(
    ("owner", "prefix"),
    [
        ("llamacpp", "llamacpp"),
        ("vllm", "vllm"),
        ("sglang", "sglang"),
        ("library", "ollama"),
        ("organization_owner", "lmstudio"),
    ],
)
def test_an_address_speaks_the_dialect_of_the_server_behind_it(
    servers: list[FaultServer], fresh: Settings, owner: str, prefix: str
) -> None:
    servers[0].plays(raw(listing("m", owner=owner), close=False))
    name = f"{servers[0].base_url}#m"

    target = resolve_asked(name, fresh)

    assert replace(dialect(target), label="") == replace(DIALECTS[prefix], label="")
    assert dialect(target).label.startswith(DIALECTS[prefix].label)
    assert target.capabilities == resolve(f"{prefix}:m").capabilities
    assert (target.name, target.key_variable, target.provider) == (name, "", "")
    assert [(seen.method, seen.path) for seen in servers[0].seen] == [("GET", "/v1/models")]


def test_a_server_is_asked_once_for_all_of_its_models(servers: list[FaultServer], fresh: Settings) -> None:
    servers[0].plays(raw(listing("m", owner="llamacpp"), close=False))

    resolve_asked(f"{servers[0].base_url}#m", fresh)

    assert "grammar" in resolve_asked(f"{servers[0].base_url}#other", fresh).capabilities
    assert "grammar" in resolve_probed(f"{servers[0].base_url}#third", fresh).capabilities
    assert len(servers[0].seen) == 1


def test_a_server_of_another_kind_is_asked_once_too(servers: list[FaultServer], fresh: Settings) -> None:
    servers[0].plays(raw(listing("m", owner="somebody"), close=False))

    found = [resolve_asked(f"{servers[0].base_url}#m", fresh) for _ in range(2)]

    assert found == [resolve(f"{servers[0].base_url}#m")] * 2
    assert len(servers[0].seen) == 1


def test_a_server_that_does_not_say_what_it_is_may_say_it_later(servers: list[FaultServer], fresh: Settings) -> None:
    servers[0].plays(raw(head(2, "application/json", 401) + b"{}"), raw(listing("m", owner="vllm"), close=False))
    name = f"{servers[0].base_url}#m"

    assert resolve_asked(name, fresh) == resolve(name)
    assert "regex" in resolve_asked(name, fresh).capabilities


def test_a_provider_of_the_user_is_asked_what_serves_it(servers: list[FaultServer], fresh: Settings) -> None:
    servers[0].plays(raw(listing("m", owner="sglang"), close=False))
    mine = replace(fresh, models=ModelSettings(base_urls={"mine": servers[0].base_url}))

    assert dialect(resolve_asked("mine:m", mine)).constraints.wire == "fields"


def test_what_cannot_be_stored_is_used_all_the_same(servers: list[FaultServer]) -> None:
    servers[0].plays(raw(listing("m", owner="llamacpp"), close=False))
    nowhere = load({}, {"HOME": "/"}, Path("/proc/none/config.yaml"))

    assert "grammar" in resolve_asked(f"{servers[0].base_url}#m", nowhere).capabilities


@pytest.mark.parametrize(
    "name",
    [
        "openai:gpt-4o",
        "cerebras:m",
        "huggingface:m",
        "llamacpp:m",
        "https://api.groq.com#m",
        "http://api.openai.com:8080/v1#m",
        "https://acme.openai.azure.com/openai/v1#m",
        "http://127.0.0.1:9/v1#claude?wire=messages",
    ],
)
def test_a_server_whose_kind_is_known_is_not_asked(name: str, fresh: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "HttpModel", None)

    assert resolve_asked(name, fresh) == resolve(name)


def test_a_probe_speaks_the_dialect_of_the_server(servers: list[FaultServer], fresh: Settings) -> None:
    servers[0].plays(raw(listing("m", owner="llamacpp"), close=False))

    assert dialect(resolve_permissive(f"{servers[0].base_url}#m", fresh)).constraints.wire == "gbnf"


def test_a_server_at_the_port_of_another_has_its_own_prefix_left_out(servers: list[FaultServer]) -> None:
    servers[0].plays(raw(listing("m", owner="library"), close=False))

    [found] = find_servers(elsewhere(vllm=servers[0].base_url), PATIENT)

    assert found.name == f"{servers[0].base_url}#m"
