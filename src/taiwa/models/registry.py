"""From the name of a model to where it is and how it is spoken to."""

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

__all__ = ["INSIDE", "PROVIDERS", "Provider", "resolve"]


@dataclass(frozen=True, slots=True)
class Provider:
    """A place where models are: its address, its key's name and how it speaks. A server of one's own may do without a key.

    `table` names its rows in the table of abilities, `dialect` its dialect of Chat Completions or `anthropic`.
    """

    base_url: str
    key_name: str = ""
    dialect: str = "plain"
    table: str = ""
    own: bool = False


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
    "ollama": Provider("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", "ollama", own=True),
    "llamacpp": Provider("http://127.0.0.1:8080/v1", "LLAMACPP_API_KEY", "llamacpp", own=True),
    "vllm": Provider("http://127.0.0.1:8000/v1", "VLLM_API_KEY", "vllm", own=True),
    "sglang": Provider("http://127.0.0.1:30000/v1", "SGLANG_API_KEY", "sglang", own=True),
    "lmstudio": Provider("http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY", "lmstudio", own=True),
}

INSIDE: Mapping[str, str] = {
    "local": "FOLDER or VENDOR/NAME: a model of transformers, in this process",
    "gguf": "FILE.gguf: a llama.cpp server of our own, in a process beside this one",
}
"""The prefixes of models that no server is asked for, and what stands behind them."""

FORMS = "say PROVIDER:MODEL (openai:gpt-…, ollama:…), http://HOST:PORT/v1#MODEL, local:FOLDER, gguf:FILE, or builtin"

GUESSES = (
    (r"^(gpt-|o\d|chatgpt)", "openai"),
    (r"^claude", "anthropic"),
    (r"^(mistral|ministral|codestral)", "mistral"),
    (r"/", "openrouter"),
)


def resolve(
    name: str, *, base_urls: Mapping[str, str] | None = None, overrides: Mapping[str, Mapping[str, bool]] | None = None
) -> Target:
    """Find where a name leads: `openai:gpt-…`, `openrouter:vendor/model`, `http://host:port/v1#model`.

    `base_urls` moves a provider or adds one by a name of its own; `overrides` says by model name what its server can do.

    Raises:
        ConfigError: the name cannot be used; the message names the nearest one that can.
    """
    moved = base_urls or {}
    wishes = (overrides or {}).get(name)
    if name.isprintable() and (file := _gguf(name)) is not None:
        known = capabilities("gguf", file, wishes)
        return Target(
            name, "gguf", file, ChatCompletions("model", DIALECTS["gguf"], known), known.capabilities, inside=True
        )
    if name.startswith("local:") and name.isprintable():
        return Target(
            name, "local", name[6:], NoCodec(), capabilities("local", name[6:], wishes).capabilities, inside=True
        )
    alone, _, options = name.partition("?")
    if alone == BUILTIN and name.isprintable():
        return Target(name, BUILTIN, options, NoCodec(), capabilities(BUILTIN, "", wishes).capabilities, inside=True)
    if not name.isprintable() or " " in name or not name:
        raise ConfigError(f"a model's name is one word: {FORMS}")
    prefix, colon, model = name.partition(":")
    if model.startswith("//") or prefix in ("http", "https"):
        return _by_url(name, wishes)
    if not colon or (prefix not in PROVIDERS and prefix not in moved):
        raise ConfigError(_unknown(name, (*PROVIDERS, *INSIDE, *moved)))
    if not model:
        raise ConfigError(f"{name!r} names no model: add one after the colon, as in '{prefix}:MODEL'")
    provider = PROVIDERS.get(prefix) or Provider("", f"{re.sub(r'[^A-Za-z0-9]', '_', prefix).upper()}_API_KEY")
    url = _checked(moved.get(prefix, provider.base_url), f"the base URL of {prefix!r}")
    if url.fragment:
        raise ConfigError(
            f"the base URL of {prefix!r} ends in a model's name: leave it out, names give it as '{prefix}:MODEL'"
        )
    return _target(name, provider, _base(url, provider), model, wishes)


def _gguf(name: str) -> str | None:
    """The file that a name leads to, with its options; a file of `local:` is meant as one of `gguf:`."""
    prefix, colon, rest = name.partition(":")
    is_file = prefix == "local" and rest.partition("?")[0].lower().endswith(".gguf")
    return rest if is_file or (prefix == "gguf" and colon) else None


def _by_url(name: str, wishes: Mapping[str, bool] | None) -> Target:
    url = _checked(name, "the model's name")
    if not url.fragment:
        raise ConfigError(f"{name!r} names no model: add '#MODEL' at its end")
    # A key may only go where it belongs: the same host over TLS.
    places = ((urlsplit(one.base_url), one) for one in PROVIDERS.values() if not one.own)
    place = url.netloc if url.scheme == "https" else f"{url.scheme}_{url.netloc}"  # a key for TLS never goes without it
    key_name = f"KEY_{re.sub(r'[^A-Za-z0-9]+', '_', place).strip('_').upper()}"
    provider = next((one for place, one in places if place[:2] == url[:2]), Provider("", key_name, own=True))
    return _target(name, provider, _base(url, provider), url.fragment, wishes)


def _target(name: str, provider: Provider, base: str, model: str, wishes: Mapping[str, bool] | None) -> Target:
    kind = provider.dialect
    known = capabilities(provider.table or kind, model, wishes)
    if kind == "anthropic":
        codec: AnthropicMessages | ChatCompletions = AnthropicMessages(model, known)
    else:
        dialect = DIALECTS[kind]
        if kind == "plain" or base != provider.base_url:  # an error must name the place that the person set
            dialect = replace(dialect, label=f"{dialect.label} at {urlsplit(base).netloc}")
        codec = ChatCompletions(model, dialect, known)
    return Target(name, base, model, codec, known.capabilities, provider.key_name)


def _checked(text: str, what: str) -> SplitResult:
    """Read a URL. No message repeats one that may hold a password or a key."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ConfigError(f"{what} holds a broken URL: say http://HOST:PORT/v1") from None
    if "@" in url.netloc:
        raise ConfigError(f"{what} holds a user name or password in its URL: take it out, and use `taiwa keys set`")
    if url.query:
        raise ConfigError(f"{what} holds a query in its URL: take out the '?' and what follows")
    if url.scheme not in ("http", "https") or not url.hostname or port == 0:
        raise ConfigError(f"{what} holds no web address: say http://HOST:PORT/v1")
    return url


def _base(url: SplitResult, provider: Provider) -> str:
    """The address without a model, without a slash at its end; a bare host gets the path that is usual there."""
    usual = urlsplit(provider.base_url)
    path = url.path.rstrip("/") or (usual.path if usual.netloc == url.netloc else "/v1")
    return f"{url.scheme}://{url.netloc}{path}"


def _unknown(name: str, known: tuple[str, ...]) -> str:
    prefix, colon, model = name.partition(":")
    if prefix == BUILTIN:
        return f"the built-in model is called {BUILTIN!r}, and nothing follows its name"
    guess = next((provider for pattern, provider in GUESSES if re.search(pattern, name)), "")
    if not colon:
        hint = f"did you mean '{guess}:{name}'?" if guess else FORMS
        return f"{name!r} does not say where the model is: {hint}"
    near = get_close_matches(prefix.lower(), known, 1, 0.0)[0]
    return f"{prefix!r} is no provider: did you mean '{near}:{model or 'MODEL'}'? (known: {', '.join(known)})"
