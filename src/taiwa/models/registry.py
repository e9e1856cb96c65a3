"""Providers, and how the name of a model (`PROVIDER:MODEL`) is resolved to its server, its key and its codec.

To add a provider, add a row to `PROVIDERS`. Where its server departs from Chat Completions, add a dialect to
`http_api.openai_chat.DIALECTS`; where it can do more or less than the plainest server, add rows to `http_api.capabilities.TABLE`.
A provider with a protocol of its own needs a codec: see `http_api.provider_interface`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from urllib.parse import SplitResult, urlsplit

from taiwa.kernel.errors import ConfigError
from taiwa.models.http_api.anthropic import AnthropicMessages
from taiwa.models.http_api.capabilities import capabilities
from taiwa.models.http_api.openai_chat import DIALECTS, ChatCompletions
from taiwa.models.http_api.provider_interface import NoCodec, Target
from taiwa.settings import BUILTIN


@dataclass(frozen=True, slots=True)
class Provider:
    """A place that serves models.

    `dialect` names a row of `DIALECTS`, or `anthropic`; `table` names its rows in the table of capabilities where they are not
    called as the dialect. A server that the user runs (`self_hosted`) may work without a key.
    """

    base_url: str
    key_name: str = ""
    dialect: str = "plain"
    table: str = ""
    self_hosted: bool = False


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", "openai"),
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "anthropic"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral"),
    "deepseek": Provider("https://api.deepseek.com", "DEEPSEEK_API_KEY", "deepseek"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY", "groq"),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", table="hosted"),
    "cerebras": Provider("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", table="hosted"),
    "huggingface": Provider("https://router.huggingface.co/v1", "HF_TOKEN", table="hosted"),
    "ollama": Provider("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", "ollama", self_hosted=True),
    "llamacpp": Provider("http://127.0.0.1:8080/v1", "LLAMACPP_API_KEY", "llamacpp", self_hosted=True),
    "vllm": Provider("http://127.0.0.1:8000/v1", "VLLM_API_KEY", "vllm", self_hosted=True),
    "sglang": Provider("http://127.0.0.1:30000/v1", "SGLANG_API_KEY", "sglang", self_hosted=True),
    "lmstudio": Provider("http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY", "lmstudio", self_hosted=True),
}

IN_PROCESS: Mapping[str, str] = {
    "local": "FOLDER or VENDOR/NAME: a model of transformers, in this process",
    "gguf": "FILE.gguf: a llama.cpp server of our own, in a process beside this one",
}
"""The prefixes of models without a server that the user runs, and what follows each."""

FORMS = "use PROVIDER:MODEL (openai:gpt-…, ollama:…), http://HOST:PORT/v1#MODEL, local:FOLDER, gguf:FILE, or builtin"

GUESSES = (
    (r"^(gpt-|o\d|chatgpt)", "openai"),
    (r"^claude", "anthropic"),
    (r"^(mistral|ministral|codestral)", "mistral"),
    (r"/", "openrouter"),
)


def resolve(
    name: str, *, base_urls: Mapping[str, str] | None = None, overrides: Mapping[str, Mapping[str, bool]] | None = None
) -> Target:
    """Resolve the name of a model: `openai:gpt-…`, `openrouter:vendor/model`, `http://host:port/v1#model`.

    `base_urls` moves a provider or adds one under its own name; `overrides` sets, by model name, what its server can do.

    Raises:
        ConfigError: the name is invalid; the message suggests the nearest valid one.
    """
    base_urls = base_urls or {}
    override = (overrides or {}).get(name)
    if not name.isprintable() or not name:
        raise ConfigError(f"the name of a model must be one word: {FORMS}")
    prefix, colon, model = name.partition(":")
    # A file after `local:` is taken as one after `gguf:`.
    if colon and (prefix == "gguf" or (prefix == "local" and model.partition("?")[0].lower().endswith(".gguf"))):
        known = capabilities("gguf", model, override)
        codec = ChatCompletions("model", DIALECTS["gguf"], known)
        return Target(name, "gguf", model, codec, known.capabilities, inside=True)
    if colon and prefix == "local":
        return Target(name, "local", model, NoCodec(), capabilities("local", model, override).capabilities, inside=True)
    bare, _, options = name.partition("?")
    if bare == BUILTIN:
        return Target(name, BUILTIN, options, NoCodec(), capabilities(BUILTIN, "", override).capabilities, inside=True)
    if " " in name:
        raise ConfigError(f"the name of a model must be one word: {FORMS}")
    if model.startswith("//") or prefix in ("http", "https"):
        return _resolve_url(name, override)
    if not colon or (prefix not in PROVIDERS and prefix not in base_urls):
        raise ConfigError(_unknown(name, (*PROVIDERS, *IN_PROCESS, *base_urls)))
    if not model:
        raise ConfigError(f"{name!r} does not name a model; add one after the colon, as in '{prefix}:MODEL'")
    provider = PROVIDERS.get(prefix) or Provider("", f"{re.sub(r'[^A-Za-z0-9]', '_', prefix).upper()}_API_KEY")
    url = _parse_url(base_urls.get(prefix, provider.base_url), f"the base URL of {prefix!r}")
    if url.fragment:
        raise ConfigError(
            f"the base URL of {prefix!r} ends in the name of a model; remove it, names give it as '{prefix}:MODEL'"
        )
    return _target(name, provider, _base_url(url, provider), model, override)


def _resolve_url(name: str, override: Mapping[str, bool] | None) -> Target:
    url = _parse_url(name, "the name of the model")
    if not url.fragment:
        raise ConfigError(f"{name!r} does not name a model; add '#MODEL' at its end")
    # A key is sent only to the host that it belongs to, and a key for TLS only over TLS.
    origin = url.netloc if url.scheme == "https" else f"{url.scheme}_{url.netloc}"
    key_name = f"KEY_{re.sub(r'[^A-Za-z0-9]+', '_', origin).strip('_').upper()}"
    hosted = (provider for provider in PROVIDERS.values() if not provider.self_hosted)
    own = Provider("", key_name, self_hosted=True)
    provider = next((provider for provider in hosted if urlsplit(provider.base_url)[:2] == url[:2]), own)
    return _target(name, provider, _base_url(url, provider), url.fragment, override)


def _target(name: str, provider: Provider, base_url: str, model: str, override: Mapping[str, bool] | None) -> Target:
    known = capabilities(provider.table or provider.dialect, model, override)
    if provider.dialect == "anthropic":
        codec: AnthropicMessages | ChatCompletions = AnthropicMessages(model, known)
    else:
        dialect = DIALECTS[provider.dialect]
        if provider.dialect == "plain" or base_url != provider.base_url:  # errors name the address that the user set
            dialect = replace(dialect, label=f"{dialect.label} at {urlsplit(base_url).netloc}")
        codec = ChatCompletions(model, dialect, known)
    return Target(name, base_url, model, codec, known.capabilities, provider.key_name)


def _parse_url(text: str, what: str) -> SplitResult:
    """Parse and check a URL. Messages never repeat one that may contain a password or a key."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ConfigError(f"{what} contains an invalid URL; use http://HOST:PORT/v1") from None
    if "@" in url.netloc:
        raise ConfigError(f"{what} contains a user name or password in its URL; remove it and use `taiwa keys set`")
    if url.query:
        raise ConfigError(f"{what} contains a query in its URL; remove the '?' and what follows")
    if url.scheme not in ("http", "https") or not url.hostname or port == 0:
        raise ConfigError(f"{what} is not a web address; use http://HOST:PORT/v1")
    return url


def _base_url(url: SplitResult, provider: Provider) -> str:
    """Return the address without model and final slash; a bare host gets the usual path of its server."""
    usual = urlsplit(provider.base_url)
    path = url.path.rstrip("/") or (usual.path if usual.netloc == url.netloc else "/v1")
    return f"{url.scheme}://{url.netloc}{path}"


def _unknown(name: str, known: tuple[str, ...]) -> str:
    prefix, colon, model = name.partition(":")
    if prefix == BUILTIN:
        return f"the built-in model is called {BUILTIN!r}, and nothing follows its name"
    if not colon:
        guess = next((provider for pattern, provider in GUESSES if re.search(pattern, name)), "")
        hint = f"did you mean '{guess}:{name}'?" if guess else FORMS
        return f"{name!r} does not name a provider: {hint}"
    near = get_close_matches(prefix.lower(), known, 1, 0.0)[0]
    return f"unknown provider {prefix!r}: did you mean '{near}:{model or 'MODEL'}'? (known: {', '.join(known)})"
