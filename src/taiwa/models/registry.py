"""Providers; how the name of a model (`PROVIDER:MODEL`) is resolved to its server, key and codec; opening models.

To add a provider, add a row to `PROVIDERS`. Where its server departs from Chat Completions, add a dialect to
`http_api.openai_chat.DIALECTS`; where it can do more or less than the plainest server, add rows to `http_api.capabilities.TABLE`.
A provider with a protocol of its own needs a codec: see `http_api.provider_interface`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast, get_args
from urllib.parse import urlsplit

from taiwa.kernel.errors import AuthenticationError, ConfigError, ModelError
from taiwa.kernel.messages import Capability, Request, Sampling, user
from taiwa.kernel.runtime import AsyncModel, Model
from taiwa.models.http_api.anthropic import AnthropicMessages
from taiwa.models.http_api.api_keys import Secret, find_key
from taiwa.models.http_api.capabilities import Capabilities, capabilities, load_report
from taiwa.models.http_api.client import HttpModel, RetryPolicy
from taiwa.models.http_api.connections import BaseUrl, RequestLimits, parse_base_url
from taiwa.models.http_api.openai_chat import DIALECTS, ChatCompletions
from taiwa.models.http_api.openai_completions import TextCompletions
from taiwa.models.http_api.provider_interface import Enforce, Target
from taiwa.plugins import Plugin, find_plugin, plugin_names
from taiwa.settings import BUILTIN, Settings

if TYPE_CHECKING:
    from taiwa.models.builtin.model import BuiltinModel
    from taiwa.models.inprocess.gguf import GgufModel
    from taiwa.models.inprocess.transformers_model import LocalModel

CHECK_PATHS: Mapping[str, str] = {"openrouter.ai": "key", "router.huggingface.co": ""}
"""The path that checks a key, where the list of models is public; `""` if there is none."""
HELLO = Request((user("hi"),), sampling=Sampling(max_tokens=1))


@dataclass(frozen=True, slots=True)
class Provider:
    """A place that serves models.

    `dialect` names a row of `DIALECTS`, or `anthropic`; `table` names its rows in the table of capabilities where they are not
    called as the dialect. A server that the user runs (`self_hosted`) may work without a key.
    """

    base_url: str
    key_variable: str = ""
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

PLUGIN = "plugin"
"""The base URL of models of installed packages, which are made and kept under their names."""
AZURE_HOSTS = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")

IN_PROCESS: Mapping[str, str] = {
    "local": "FOLDER or VENDOR/NAME: a model of transformers, in this process",
    "gguf": "FILE.gguf: a llama.cpp server of our own, in a process beside this one",
}
"""The prefixes of models without a server that the user runs, and what follows each."""

FORMS = "use PROVIDER:MODEL (openai:gpt-…, ollama:…), http://HOST:PORT/v1#MODEL, local:FOLDER, gguf:FILE, or builtin"

ADDRESS = re.compile(r"(?:localhost|\[[0-9a-fA-F:]+\]|[\w-]+(?:\.[\w-]+)+)(?::\d+)(?:/[^#]*)?(?:#.*)?")
"""A host and port without `http://`."""
TEXT_MODELS = re.compile(r"gpt-3\.5-turbo-instruct|davinci-|babbage-")
"""Models of OpenAI that only have the completions protocol."""

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
    if prefix == "completions" and colon:
        return _with_completions(name, resolve(model, base_urls=base_urls, overrides={model: override or {}}))
    # A file after `local:` is taken as one after `gguf:`.
    if colon and (prefix == "gguf" or (prefix == "local" and model.partition("?")[0].lower().endswith(".gguf"))):
        known = capabilities("gguf", model, override)
        codec = ChatCompletions("model", DIALECTS["gguf"], known)
        return Target(name, "gguf", model, codec, known.capabilities, inside=True)
    if colon and prefix == "local":
        return Target(name, "local", model, None, capabilities("local", model, override).capabilities, inside=True)
    bare, _, options = name.partition("?")
    if bare == BUILTIN:
        return Target(name, BUILTIN, options, None, capabilities(BUILTIN, "", override).capabilities, inside=True)
    if " " in name:
        raise ConfigError(f"the name of a model must be one word: {FORMS}")
    if model.startswith("//") or prefix in ("http", "https"):
        return _resolve_url(name, override)
    if not colon or (prefix not in PROVIDERS and prefix not in base_urls):
        if colon and (plugin := find_plugin("models", prefix)) is not None:
            return Target(name, PLUGIN, model, None, _open_plugin(name, plugin).capabilities, inside=True)
        raise ConfigError(_unknown(name, (*PROVIDERS, *IN_PROCESS, *base_urls, *plugin_names("models"))))
    if not model:
        raise ConfigError(f"{name!r} does not name a model; add one after the colon, as in '{prefix}:MODEL'")
    provider = PROVIDERS.get(prefix) or Provider("", f"{re.sub(r'[^A-Za-z0-9]', '_', prefix).upper()}_API_KEY")
    address, fragment, _ = base_urls.get(prefix, provider.base_url).partition("#")
    if fragment:
        raise ConfigError(
            f"the base URL of {prefix!r} ends in the name of a model; remove it, names give it as '{prefix}:MODEL'"
        )
    base_url = _base_url(parse_base_url(address, f"the base URL of {prefix!r}"), provider)
    return _target(name, prefix, provider, base_url, model, override)


def _resolve_url(name: str, override: Mapping[str, bool] | None) -> Target:
    address, _, model = name.partition("#")
    url = parse_base_url(address, "the name of the model")
    if not model:
        raise ConfigError(f"{name!r} does not name a model; add '#MODEL' at its end")
    for prefix, provider in PROVIDERS.items():
        if not provider.self_hosted and parse_base_url(provider.base_url).origin == url.origin:
            return _target(name, prefix, provider, _base_url(url, provider), model, override)
    provider = Provider("", self_hosted=True)
    if url.host.endswith(AZURE_HOSTS):
        provider = Provider("", "", "azure", "openai", self_hosted=True)
    return _target(name, "", provider, _base_url(url, provider), model, override)


def _with_completions(name: str, target: Target) -> Target:
    """Return a target that is asked by `/v1/completions`."""
    codec = target.codec
    if not isinstance(codec, (ChatCompletions, TextCompletions)) or target.inside:
        raise ConfigError(f"{target.name} has no completions protocol; name a server that has /v1/completions")
    able = {*codec.capabilities.capabilities, "prefix"} - {"tools", "decisions"}
    if codec.dialect.constraints == "response_format":  # a field of Chat Completions
        able -= {"json_schema", "regex", "grammar"}
    known = replace(codec.capabilities, capabilities=frozenset(able))
    text_codec = TextCompletions(codec.model, codec.dialect, known)
    return replace(target, name=name, codec=text_codec, capabilities=known.capabilities)


def _target(
    name: str, prefix: str, provider: Provider, base_url: str, model: str, override: Mapping[str, bool] | None
) -> Target:
    known = capabilities(provider.table or provider.dialect, model, override)
    if provider.dialect == "anthropic":
        codec: AnthropicMessages | ChatCompletions = AnthropicMessages(model, known)
    else:
        dialect = DIALECTS[provider.dialect]
        if provider.dialect == "plain" or base_url != provider.base_url:  # errors name the address that the user set
            dialect = replace(dialect, label=f"{dialect.label} at {urlsplit(base_url).netloc}")
        codec = ChatCompletions(model, dialect, known)
    required = prefix if prefix in PROVIDERS and not provider.self_hosted else ""
    target = Target(name, base_url, model, codec, known.capabilities, provider.key_variable, required)
    return _with_completions(name, target) if provider.dialect == "openai" and TEXT_MODELS.match(model) else target


def _base_url(url: BaseUrl, provider: Provider) -> str:
    """Return the address; a bare host gets the usual path of its server."""
    usual = urlsplit(provider.base_url)
    path = url.path or (usual.path if usual.netloc == url.authority else "/v1")
    return str(replace(url, path=path))


def _unknown(name: str, known: tuple[str, ...]) -> str:
    prefix, colon, model = name.partition(":")
    if prefix == BUILTIN:
        return f"the built-in model is called {BUILTIN!r}, and nothing follows its name"
    if ADDRESS.fullmatch(name):
        return f"{name!r} is an address: did you mean 'http://{name if '/' in name else f'{name}/v1'}{'' if '#' in name else '#MODEL'}'?"
    if not colon:
        guess = next((provider for pattern, provider in GUESSES if re.search(pattern, name)), "")
        hint = f"did you mean '{guess}:{name}'?" if guess else FORMS
        return f"{name!r} does not name a provider: {hint}"
    near = get_close_matches(prefix.lower(), known, 1, 0.0)[0]
    return f"unknown provider {prefix!r}: did you mean '{near}:{model or 'MODEL'}'? (known: {', '.join(known)})"


def resolve_permissive(name: str, settings: Settings) -> Target:
    """Resolve a name as if its server had every capability, so that every request can be sent."""
    every = dict.fromkeys(get_args(Capability), True)
    return resolve(name, base_urls=settings.base_urls, overrides={name: every})


def resolve_probed(name: str, settings: Settings) -> Target:
    """Resolve the name of a model; a stored probe corrects the table of capabilities, the config corrects the probe.

    Raises:
        ConfigError: the name or the file is invalid.
    """
    target = resolve(name, base_urls=settings.base_urls, overrides=settings.capabilities)
    stored = load_report(settings, target)
    if stored is None:
        return target
    measured = {str(capability): can for capability, can in stored.capabilities.items()}
    override = measured | dict(settings.capabilities.get(name, {}))
    target = resolve(name, base_urls=settings.base_urls, overrides={name: override})
    codec = target.codec
    if not isinstance(codec, ChatCompletions):
        return target
    verdicts = tuple((each.name.removeprefix("schema."), each.verdict) for each in stored.findings)
    return replace(target, codec=replace(codec, capabilities=replace(codec.capabilities, verdicts=verdicts)))


def resolve_server(name: str, settings: Settings) -> Target:
    """Resolve the name of a server: `openai`, `OPENAI_API_KEY` or `http://host:port`; its target names no model.

    Raises:
        ConfigError: the provider is unknown.
    """
    if name.startswith(("http://", "https://")):
        return resolve(f"{name.partition('#')[0]}#any")
    prefixes = (*PROVIDERS, *settings.base_urls)
    for prefix in prefixes:
        target = resolve(f"{prefix}:any", base_urls=settings.base_urls)
        if name in (prefix, target.key_variable):
            return target
    near = get_close_matches(name.lower(), prefixes, 1, 0.0)
    raise ConfigError(f"unknown provider {name[:40]!r}: did you mean {near[0]!r}? (known: {', '.join(prefixes)})")


def key_variables(settings: Settings) -> dict[str, str]:
    """Map the origin of each provider, those of the settings included, to the environment variable of its key."""
    targets = [resolve(f"{prefix}:any", base_urls=settings.base_urls) for prefix in (*PROVIDERS, *settings.base_urls)]
    return {target.origin: target.key_variable for target in targets}


# --- opening a model ------------------------------------------------------------------------------------------------------


class PluginModel(Model, AsyncModel, Protocol):
    """A model of an installed package."""


OpenedModel: TypeAlias = "HttpModel | LocalModel | BuiltinModel | GgufModel | PluginModel"

_lock = Lock()
_loaded: "dict[str, LocalModel | BuiltinModel | PluginModel]" = {}
_served: "dict[str, GgufModel]" = {}
"""The models of this process by name: one that is opened again is not loaded again."""


def open_model(target: Target, settings: Settings) -> OpenedModel:
    """Open the model that a target names.

    Raises:
        ConfigError: its key is missing, its name is invalid, or its folder does not contain a model.
    """
    limits = RequestLimits(total=settings.timeout)
    if target.base_url == "gguf":
        from taiwa.models.inprocess.gguf import GgufModel

        with _lock:
            served = _served.get(target.name)
            if served is None or served.target != target:
                served = _served[target.name] = GgufModel(target, limits)
            return served
    if not target.inside:
        retry = RetryPolicy(settings.attempts, settings.retry_paid)
        return HttpModel(target, find_key(target, settings), limits=limits, retry=retry)
    with _lock:
        loaded = _loaded.get(target.name)
        if loaded is None or loaded.capabilities != target.capabilities:
            loaded = _loaded[target.name] = _load(target)
        return loaded


def open_server(target: Target, settings: Settings) -> HttpModel:
    """Open the server behind a target, for requests about the server itself.

    Raises:
        ConfigError: the model runs in this process, or as `open_model`.
    """
    from taiwa.models.inprocess.gguf import GgufModel

    model = open_model(target, settings)
    if isinstance(model, GgufModel):
        return model.served()
    if isinstance(model, HttpModel):
        return model
    raise ConfigError(f"{target.name} runs in this process and has no server; name a model behind a server")


def with_enforcement(model: OpenedModel, enforce: Enforce) -> OpenedModel:
    """Return the model with another treatment of constraints that its server does not enforce; see `Enforce`.

    A model in this process takes the treatment with each request and is returned as it is.
    """
    from taiwa.models.inprocess.gguf import GgufModel

    return model.holding(enforce) if isinstance(model, (GgufModel, HttpModel)) else model


def _open_plugin(name: str, plugin: Plugin) -> PluginModel:
    """Return the model of a plug-in, which is made once.

    Raises:
        ConfigError: the plug-in fails, or what it returns is not a model of that name.
    """
    with _lock:
        if name not in _loaded:
            made = cast("PluginModel", plugin.make(name))
            if not all(hasattr(made, part) for part in ("capabilities", "stream", "astream")) or made.name != name:
                raise ConfigError(
                    f"the {plugin} must return a model named {name!r} with capabilities, stream and astream"
                )
            _loaded[name] = made
        return _loaded[name]


def _load(target: Target) -> "LocalModel | BuiltinModel":
    known = Capabilities(target.capabilities)
    if target.base_url == BUILTIN:
        from taiwa.models.builtin.model import BuiltinModel

        return BuiltinModel(target.name, known)
    from taiwa.models.inprocess.transformers_model import LocalModel, find_local_folder

    model = LocalModel(target.name, known=known)
    find_local_folder(model.spec)
    return model


def check_key(target: Target, key: Secret) -> None:
    """Check a key by a request that costs nothing, or one token if the provider has no such request.

    Raises:
        AuthenticationError: the provider does not accept the key.
        ModelError: the request failed.
    """
    path = CHECK_PATHS.get(parse_base_url(target.base_url).host, "models")
    with HttpModel(target, key, limits=RequestLimits(first_byte=20.0, total=30.0)) as opened:
        if path:
            try:
                opened.fetch(path)
            except AuthenticationError:
                raise
            except ModelError as error:
                if error.status not in (404, 405, 501):
                    raise
            else:
                return
        for _ in opened.stream(HELLO):
            pass
