"""Providers; how the name of a model (`PROVIDER:MODEL`) is resolved to its server, key and codec; opening models; finding
available ones, by a key in the environment or on a server of this machine.

To add a provider, add a row to `PROVIDERS`. If its server deviates from Chat Completions, add a dialect to
`http_api.openai_chat.DIALECTS`; if its capabilities differ from the default, add rows to `http_api.capabilities.TABLE`; if
OpenTelemetry has another name for it, add that to `taiwa.operations.otel`. A provider with its own protocol needs a codec: see
`http_api.provider_interface`.
"""

import os
import re
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence, Set
from concurrent.futures import wait
from contextlib import aclosing, closing, nullcontext, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast, get_args
from urllib.parse import urlsplit

from taiwa.extras import require_modules
from taiwa.kernel.errors import AuthenticationError, ConfigError, ModelError
from taiwa.kernel.messages import Capability, Chunk, Request, Sampling, user
from taiwa.kernel.runtime import AsyncModel, Model, start_in_thread
from taiwa.kernel.serialization import Json, items_at, parse_json, text_at
from taiwa.kernel.usage_limits import FREE, Prices
from taiwa.kernel.wording import Wording
from taiwa.models.http_api.anthropic import AnthropicMessages
from taiwa.models.http_api.api_keys import Secret, find_key, key_in_environment
from taiwa.models.http_api.capabilities import (
    Capabilities,
    Verdict,
    capabilities,
    load_report,
    load_servers,
    load_verdicts,
    save_server,
    save_verdict,
)
from taiwa.models.http_api.client import HttpModel, RetryPolicy
from taiwa.models.http_api.openai_chat import DIALECTS, ChatCompletions, OpenAICodec, ServerDialect, TextCompletions
from taiwa.models.http_api.openai_responses import Responses
from taiwa.models.http_api.pace import Pace, PaceLimits
from taiwa.models.http_api.provider_interface import (
    BaseUrl,
    Codec,
    ModelOptions,
    RequestLimits,
    Target,
    Wire,
    add_options,
    parse_base_url,
    parse_model_options,
    split_options,
)
from taiwa.models.price_table import PriceTable
from taiwa.models.weights.model_files import MODEL_FILES
from taiwa.plugins import Plugin, find_plugin, plugin_names
from taiwa.settings import ADDRESS_VARIABLES, Settings

if TYPE_CHECKING:
    from taiwa.models.inprocess.generator import InProcessModel, LoadedModel
    from taiwa.models.inprocess.gguf import GgufModel
    from taiwa.models.inprocess.transformers_model import LocalModel

OWNERS: Mapping[str, str] = {
    "llamacpp": "llamacpp", "vllm": "vllm", "sglang": "sglang", "library": "ollama", "organization_owner": "lmstudio",
}  # fmt: skip
"""The provider of the server that calls the owner of its models so."""
ASK_SECONDS = 2.0
"""Seconds that a server may take to say what it is."""
CHECK_PATHS: Mapping[str, str] = {"openrouter.ai": "key", "router.huggingface.co": ""}
"""The path that checks a key if the list of models is public; `""` if there is none."""
HELLO = Request((user("hi"),), sampling=Sampling(max_tokens=1))


@dataclass(frozen=True, slots=True)
class Provider:
    """A service that serves models.

    `dialect` names a row of `DIALECTS`, or `anthropic`; `table` names its rows in the table of capabilities if they differ
    from the dialect. A server that the user runs (`self_hosted`) may work without a key. `suggested` is a model to begin
    with.
    """

    base_url: str
    key_variable: str = ""
    dialect: str = "plain"
    table: str = ""
    self_hosted: bool = False
    suggested: str = ""


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", "openai", suggested="gpt-5.4-mini"),
    "anthropic": Provider(
        "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "anthropic", suggested="claude-sonnet-5"
    ),
    "openrouter": Provider(
        "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter", suggested="openrouter/auto"
    ),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral", suggested="mistral-small-latest"),
    "deepseek": Provider("https://api.deepseek.com", "DEEPSEEK_API_KEY", "deepseek", suggested="deepseek-chat"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY", "groq", suggested="openai/gpt-oss-20b"),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "gemini",
        "hosted",
        suggested="gemini-flash-latest",
    ),
    "azure": Provider("", "AZURE_OPENAI_API_KEY", "azure", "openai"),
    "cerebras": Provider("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", table="hosted", suggested="gpt-oss-120b"),
    "huggingface": Provider("https://router.huggingface.co/v1", "HF_TOKEN", table="hosted"),
    "ollama": Provider("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", "ollama", self_hosted=True),
    "llamacpp": Provider("http://127.0.0.1:8080/v1", "LLAMACPP_API_KEY", "llamacpp", self_hosted=True),
    "vllm": Provider("http://127.0.0.1:8000/v1", "VLLM_API_KEY", "vllm", self_hosted=True),
    "sglang": Provider("http://127.0.0.1:30000/v1", "SGLANG_API_KEY", "sglang", self_hosted=True),
    "lmstudio": Provider("http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY", "lmstudio", self_hosted=True),
}

SERVED_HOSTS = frozenset(
    parse_base_url(each.base_url).host for each in PROVIDERS.values() if each.base_url and not each.self_hosted
)
PLAIN = replace(DIALECTS["plain"], label="")

PLUGIN = "plugin"
"""The base URL of models of installed packages, which are created and kept by name."""
AZURE_HOSTS = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")

IN_PROCESS: Mapping[str, str] = {
    "local": "FOLDER or VENDOR/NAME: a model of transformers, in this process",
    "gguf": "FILE.gguf: a file that llama.cpp runs in a process beside this one; its path alone will do",
}
"""The prefixes of models without a server that the user runs, and what follows each."""

EVERY = frozenset[Capability](get_args(Capability))

FORMS = "use PROVIDER:MODEL (openai:gpt-…, ollama:…), http://HOST:PORT/v1#MODEL, local:FOLDER, or gguf:FILE"

ADDRESS = re.compile(r"(?:localhost|\[[0-9a-fA-F:]+\]|[\w-]+(?:\.[\w-]+)+)(?::\d+)(?:/[^#]*)?(?:#.*)?")
"""A host and port without `http://`."""
ALIAS = re.compile(r"[\w.-]+")
TEXT_MODELS = re.compile(r"gpt-3\.5-turbo-instruct|davinci-|babbage-")
"""OpenAI models that only support the Completions protocol."""

GUESSES = (
    (r"^(gpt-|o\d|chatgpt)", "openai"),
    (r"^claude", "anthropic"),
    (r"^(mistral|ministral|codestral)", "mistral"),
    (r"/", "openrouter"),
)


def resolve(
    name: str,
    *,
    base_urls: Mapping[str, str] | None = None,
    overrides: Mapping[str, Mapping[str, bool]] | None = None,
    servers: Mapping[str, str] | None = None,
) -> Target:
    """Resolve the name of a model: `openai:gpt-…`, `openrouter:vendor/model`, `http://host:port/v1#model`.

    Options may follow the name of a model on a server: `openai:gpt-…?effort=low`, see `ModelOptions`. `base_urls` moves a
    provider or adds one under its own name; `overrides` sets, by model name, what its server can do; `servers` says, by base
    URL, what a server of no provider calls itself (`OWNERS`).

    Raises:
        ConfigError: the name is invalid; the message suggests the nearest valid one.
    """
    base_urls = base_urls or {}
    if not name.isprintable() or not name:
        raise ConfigError(f"the name of a model must be one word: {FORMS}")
    bare, text = split_options(name)
    override = (overrides or {}).get(name) or (overrides or {}).get(bare)
    prefix, colon, model = name.partition(":")
    # A path may have a colon after its first slash, so `openai:x.gguf` is a name and `./a:b.gguf` a file.
    is_file = is_gguf_file(bare) and (prefix == "local" or "/" in prefix or not colon)
    if prefix == "gguf" or is_file or bare in MODEL_FILES:
        model = name.removeprefix("gguf:").removeprefix("local:")
        return Target(name, "gguf", model, None, capabilities("gguf", model, override).capabilities)
    if colon and prefix == "local":
        return Target(name, "local", model, None, capabilities("local", model, override).capabilities)
    if " " in name:
        raise ConfigError(f"the name of a model must be one word: {FORMS}")
    options = parse_model_options(text)
    model = bare.partition(":")[2]
    if model.startswith("//") or prefix in ("http", "https"):
        return _resolve_url(name, bare, options, override, servers or {})
    if not colon or (prefix not in PROVIDERS and prefix not in base_urls):
        # Asked last: a package cannot take over the name of a provider.
        if colon and (plugin := find_plugin("models", prefix)) is not None:
            return Target(name, PLUGIN, model, None, _open_plugin(name, plugin).capabilities)
        known_names = (*PROVIDERS, *IN_PROCESS, *base_urls, *plugin_names("models"))
        raise ConfigError(_unknown(name, known_names))
    if not model:
        raise ConfigError(f"{name!r} does not name a model; add one after the colon, as in '{prefix}:MODEL'")
    provider = PROVIDERS.get(prefix) or Provider("", f"{re.sub(r'[^A-Za-z0-9]', '_', prefix).upper()}_API_KEY")
    address, fragment, _ = base_urls.get(prefix, provider.base_url).partition("#")
    if fragment:
        raise ConfigError(
            f"the base URL of {prefix!r} ends in the name of a model; remove it, names give it as '{prefix}:MODEL'"
        )
    if not address:
        problem = f"the base URL of {prefix!r} is not a web address"
        problem = problem if prefix in base_urls else f"{prefix!r} has an address for each user"
        setting = f"`taiwa config set base_urls.{prefix} URL`"
        variable = ADDRESS_VARIABLES.get(prefix)
        raise ConfigError(f"{problem}; set {variable}, or {setting}" if variable else f"{problem}; use {setting}")
    base_url = _base_url(parse_base_url(address, f"the base URL of {prefix!r}"), provider)
    if prefix not in PROVIDERS:
        provider = _recognised(provider, base_url, servers or {})
    return _target(name, prefix, provider, base_url, model, options, override)


def is_gguf_file(name: str) -> bool:
    """Whether a name is that of a GGUF file, which needs no prefix."""
    return name.lower().endswith(".gguf")


def expand_alias(name: str, aliases: Mapping[str, str]) -> str:
    """Return the name that an alias stands for; options after the alias take precedence over its own.

    >>> expand_alias("fast?effort=high", {"fast": "openai:gpt-x?effort=low&wire=chat"})
    'openai:gpt-x?effort=high&wire=chat'

    Raises:
        ConfigError: it refers to itself, or hides another name.
    """
    seen: list[str] = []
    while (bare := name.partition("?")[0]) in aliases:
        if bare in seen:
            raise ConfigError(f"the alias {bare!r} refers to itself: {' → '.join([*seen, bare])}")
        check_alias(bare)
        seen.append(bare)
        name = add_options(aliases[bare], name.partition("?")[2])
    return name


def check_alias(alias: str) -> None:
    """Check that an alias cannot be taken for another name.

    Raises:
        ConfigError: it can.
    """
    if not ALIAS.fullmatch(alias):
        raise ConfigError(f"an alias must be one word of letters, digits, '-', '_' and '.', got {alias[:40]!r}")
    if alias in (*PROVIDERS, *IN_PROCESS):
        raise ConfigError(f"{alias!r} is the name of a provider; choose another word for the alias")
    if alias in MODEL_FILES:
        raise ConfigError(f"{alias!r} is the name of a model; choose another word for the alias")


def _resolve_url(
    name: str, bare: str, options: ModelOptions, override: Mapping[str, bool] | None, servers: Mapping[str, str]
) -> Target:
    address, _, model = bare.partition("#")
    url = parse_base_url(address, Wording("the name of the model"))
    if not model:
        raise ConfigError(f"{name!r} does not name a model; add '#MODEL' at its end")
    for prefix, provider in PROVIDERS.items():
        served = provider.base_url and not provider.self_hosted
        if served and parse_base_url(provider.base_url).origin == url.origin:
            return _target(name, prefix, provider, _base_url(url, provider), model, options, override)
    provider = Provider("", self_hosted=True)
    if url.host.endswith(AZURE_HOSTS):
        provider = replace(PROVIDERS["azure"], key_variable="", self_hosted=True)
    base_url = _base_url(url, provider)
    return _target(name, "", _recognised(provider, base_url, servers), base_url, model, options, override)


def _recognised(provider: Provider, base_url: str, servers: Mapping[str, str]) -> Provider:
    """Return a provider with the dialect of its server, if that is known."""
    dialect = OWNERS.get(servers.get(base_url, ""), provider.dialect)
    return replace(provider, dialect=dialect) if provider.dialect == "plain" else provider


def _target(
    name: str,
    prefix: str,
    provider: Provider,
    base_url: str,
    model: str,
    options: ModelOptions,
    override: Mapping[str, bool] | None,
) -> Target:
    is_moved = base_url != provider.base_url
    known = capabilities(provider.table or provider.dialect, model, override)
    where = urlsplit(base_url).netloc
    wire = options.wire or _wire(provider, model, is_moved=is_moved)
    codec: Codec
    if wire == "messages":
        label = f"the server at {where}"
        if provider.dialect == "anthropic":
            label = f"Anthropic at {where}" if is_moved else "Anthropic"
        able: Set[Capability] = frozenset[Capability](("stop", "tools", "json_schema", "cache", "prefix"))
        able = able - {"prefix"} if options.reasons else able
        known = replace(known, capabilities=known.capabilities & able, assumed=known.assumed & able, fixed=EVERY - able)
        codec = AnthropicMessages(model, known, label, options)
    else:
        dialect = DIALECTS["plain" if provider.dialect == "anthropic" else provider.dialect]
        if dialect is DIALECTS["plain"] or is_moved:  # errors name the address that the user set
            dialect = replace(dialect, label=f"{dialect.label} at {where}")
        known = _with_wire(wire, known, dialect, prefix)
        kind = {"responses": Responses, "completions": TextCompletions}.get(wire, ChatCompletions)
        codec = kind(model, dialect, known, options=options)
        _check_options(wire, dialect, options)
    required = prefix if prefix in PROVIDERS and not provider.self_hosted else ""
    return Target(name, base_url, model, codec, known.capabilities, provider.key_variable, required, known.inputs, wire)


def _wire(provider: Provider, model: str, *, is_moved: bool) -> Wire:
    """Choose the protocol of a model.

    On Chat Completions, OpenAI's reasoning models lose their reasoning between tool calls, and their summaries; they refuse
    what Responses lacks (stop strings, seeds). Other models use Chat Completions, and so does another address, which mostly
    belongs to a server that supports nothing else.
    """
    if provider.dialect == "anthropic":
        return "messages"
    if provider.dialect != "openai":
        return "chat"
    if TEXT_MODELS.match(model):
        return "completions"
    known = capabilities("openai", model)
    return "chat" if is_moved or known.sampling or "tools" not in known.capabilities else "responses"


def _with_wire(wire: Wire, known: Capabilities, dialect: ServerDialect, prefix: str) -> Capabilities:
    """Return what a model can do over a wire."""
    fixed: Set[Capability] = frozenset[Capability]()
    if wire == "responses":
        fixed = EVERY - {"tools", "json_schema", "logprobs"}
    elif wire == "completions":
        if prefix == "anthropic":
            raise ConfigError("Anthropic has no completions protocol; leave out the option wire")
        fixed = frozenset[Capability](("tools",))
        if dialect.constraints.wire == "response_format":  # a field of Chat Completions
            fixed |= {"json_schema", "regex", "grammar"}
        able = known.capabilities | frozenset[Capability](("prefix",))
        known = replace(known, inputs=frozenset(), capabilities=able, assumed=known.assumed & {"logprobs", "seed"})
    return replace(
        known, capabilities=known.capabilities - fixed, assumed=known.assumed - fixed, fixed=frozenset(fixed)
    )


def _check_options(wire: Wire, dialect: ServerDialect, options: ModelOptions) -> None:
    """Check that a wire has the options of a model.

    Raises:
        ConfigError: it would ignore one.
    """
    unknown = {
        "effort": bool(options.effort) and wire == "completions",
        "budget": options.budget is not None and (wire != "chat" or dialect.names.effort != "reasoning"),
        "summary": bool(options.summary) and wire != "responses",
        "store": options.store and wire != "responses",
    }
    for option, is_given in unknown.items():
        if is_given:
            raise ConfigError(f"{dialect.label} has no option {option!r} over the wire {wire!r}; leave it out")


def _base_url(url: BaseUrl, provider: Provider) -> str:
    """Return the address; a bare host gets the usual path of its server."""
    usual = urlsplit(provider.base_url)
    path = url.path or (usual.path if usual.netloc == url.authority else "/v1")
    return str(replace(url, path=path))


def _unknown(name: str, known: tuple[str, ...]) -> str:
    prefix, colon, model = name.partition(":")
    if ADDRESS.fullmatch(name):
        return f"{name!r} is an address: did you mean 'http://{name if '/' in name else f'{name}/v1'}{'' if '#' in name else '#MODEL'}'?"
    if not colon:
        guess = next((provider for pattern, provider in GUESSES if re.search(pattern, name)), "")
        meant = next(iter(get_close_matches(name.lower(), MODEL_FILES, 1)), f"{guess}:{name}" if guess else "")
        hint = f"did you mean '{meant}'?" if meant else FORMS
        return f"{name!r} does not name a provider: {hint}"
    near = get_close_matches(prefix.lower(), known, 1, 0.0)[0]
    return Wording("unknown provider {name!r}: did you mean {near!r}? (known: {names})", name=prefix, near=f"{near}:{model or 'MODEL'}", names=", ".join(known))  # fmt: skip


def resolve_permissive(name: str, settings: Settings) -> Target:
    """Resolve a name as if its server had every capability, so that every request can be sent; ask the server what it is."""
    every = dict.fromkeys(get_args(Capability), True) | {"local": False, "small": False}
    name = expand_alias(name, settings.models.aliases)
    target = resolve(name, base_urls=settings.models.base_urls, overrides={name: every})
    if not _may_ask(target):
        return target
    servers = {target.base_url: _ask_server(target, settings)}
    return resolve(name, base_urls=settings.models.base_urls, overrides={name: every}, servers=servers)


def resolve_asked(name: str, settings: Settings, key: Secret | None = None) -> Target:
    """Resolve the name of a model that is about to be used, as `resolve_probed`; ask an unknown server once what it is.

    Raises:
        ConfigError: the name or the file is invalid.
    """
    target = resolve_probed(name, settings)
    if not _may_ask(target) or target.base_url in load_servers(settings):
        return target
    server = _ask_server(target, settings, key)
    if not server:
        return target
    with suppress(ConfigError):  # a folder that cannot be written: it is asked again the next time
        save_server(settings, target.base_url, server)
    return resolve_probed(name, settings, {target.base_url: server})


def _may_ask(target: Target) -> bool:
    """Whether nothing is known about a server, and it is none of a provider."""
    is_plain = isinstance(target.codec, OpenAICodec) and replace(target.codec.dialect, label="") == PLAIN
    return is_plain and not target.provider and parse_base_url(target.base_url).host not in SERVED_HOSTS


def _ask_server(target: Target, settings: Settings, key: Secret | None = None) -> str:
    """Return what a server calls itself in its list of models, "" if it does not answer in time."""
    from taiwa.models.http_api.probe_server import server_name

    limits = RequestLimits(ASK_SECONDS, ASK_SECONDS, ASK_SECONDS, ASK_SECONDS, LARGEST_LIST_BYTES)
    with HttpModel(target, key or find_key(target, settings), limits=limits, retry=RetryPolicy(1)) as opened:
        return server_name(opened)


def resolve_probed(name: str, settings: Settings, servers: Mapping[str, str] | None = None) -> Target:
    """Resolve the name of a model; a stored probe corrects the table of capabilities, the config corrects the probe.

    `servers` are added to those that are stored; see `resolve`.

    Raises:
        ConfigError: the name or the file is invalid.
    """
    name = expand_alias(name, settings.models.aliases)
    known = load_servers(settings) | dict(servers or {})
    overrides = by_full_name(settings, settings.models.capabilities)
    target = resolve(name, base_urls=settings.models.base_urls, overrides=overrides, servers=known)
    stored, measured = load_report(settings, target), load_verdicts(settings, target)
    if stored is None and not measured:
        return target
    measured |= {} if stored is None else {str(capability): can for capability, can in stored.capabilities.items()}
    configured = overrides.get(name) or overrides.get(split_options(name)[0], {})
    override = measured | dict(configured)
    target = resolve(name, base_urls=settings.models.base_urls, overrides={name: override}, servers=known)
    codec = target.codec
    if stored is None or not isinstance(codec, OpenAICodec):
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
    prefixes = (*PROVIDERS, *settings.models.base_urls)
    for prefix in prefixes:
        if prefix != name and not _address(prefix, settings):
            continue
        target = resolve(f"{prefix}:any", base_urls=settings.models.base_urls)
        if name in (prefix, target.key_variable):
            return replace(target, name=prefix)
    near = get_close_matches(name.lower(), prefixes, 1, 0.0)
    raise ConfigError(Wording("unknown provider {name!r}: did you mean {near!r}? (known: {names})", name=name[:40], near=near[0], names=", ".join(prefixes)))  # fmt: skip


def _address(prefix: str, settings: Settings) -> str:
    """Return the address of a provider, "" if it has none or an invalid one."""
    provider = PROVIDERS.get(prefix)
    return settings.models.base_urls.get(prefix, "" if provider is None else provider.base_url)


def key_variables(settings: Settings) -> dict[str, str]:
    """Map the origin of each provider, those of the settings included, to the environment variable of its key."""
    addressed = [prefix for prefix in (*PROVIDERS, *settings.models.base_urls) if _address(prefix, settings)]
    targets = [resolve(f"{prefix}:any", base_urls=settings.models.base_urls) for prefix in addressed]
    return {target.origin: target.key_variable for target in targets}


# --- opening a model ------------------------------------------------------------------------------------------------------


class PluginModel(Model, AsyncModel, Protocol):
    """A model of an installed package."""


_END: Any = object()


class _BlamedModel:
    """A model whose errors name its package, and that cannot end the process."""

    def __init__(self, plugin: Plugin, model: PluginModel) -> None:
        self._plugin, self._model = plugin, model

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def stream(self, request: Request) -> Generator[Chunk]:
        with self._plugin.blamed(ModelError):
            chunks = iter(self._model.stream(request))
        with closing(chunks) if isinstance(chunks, Generator) else nullcontext():
            while True:
                with self._plugin.blamed(ModelError):
                    chunk = next(chunks, _END)
                if chunk is _END:
                    return
                yield chunk

    async def astream(self, request: Request) -> AsyncGenerator[Chunk]:
        with self._plugin.blamed(ModelError):
            chunks = aiter(self._model.astream(request))
        async with aclosing(chunks) if isinstance(chunks, AsyncGenerator) else nullcontext():
            while True:
                with self._plugin.blamed(ModelError):
                    chunk = await anext(chunks, _END)
                if chunk is _END:
                    return
                yield chunk


OpenedModel: TypeAlias = "HttpModel | LocalModel | GgufModel | PluginModel"

_lock = Lock()
_plugins: dict[str, PluginModel] = {}
_loaded: "dict[str, LocalModel | GgufModel]" = {}
"""The models of this process by name: one that is opened again is not loaded again."""


def open_model(target: Target, settings: Settings, *, key: Secret | None = None) -> OpenedModel:
    """Open the model that a target names, with this key or the one that is set; close it by `close`, or `aclose` on an event loop.

    One in this process is loaded once however often it is opened, and released when the last opener closes it.

    Raises:
        ConfigError: its key is missing, its name is invalid, or its folder does not contain a model.
    """
    calls = settings.calls
    limits = RequestLimits(total=calls.timeout)
    if not target.inside:
        retry = RetryPolicy(calls.attempts, calls.retry_paid)
        paced = PaceLimits(calls.max_concurrency, calls.requests_per_minute, calls.tokens_per_minute)
        pace = None if paced == PaceLimits() else Pace(paced)
        return HttpModel(
            target, key or find_key(target, settings),
            limits=limits, retry=retry, pace=pace, remember=partial(_remember, settings, target),
        )  # fmt: skip
    with _lock:
        if target.base_url == PLUGIN:
            return _plugins[target.name]
        loaded = _loaded.get(target.name)
        if loaded is None or loaded.capabilities != target.capabilities:
            loaded = _loaded[target.name] = _load(target, settings)
        return loaded.share()


def _remember(settings: Settings, target: Target, capability: Capability, verdict: Verdict) -> None:
    with suppress(ConfigError):  # a folder that cannot be written: it is shown again by the next process
        save_verdict(settings, target, capability, verdict)


def open_server(target: Target, settings: Settings) -> HttpModel:
    """Open the server behind a target, for requests about the server itself.

    Raises:
        ConfigError: the model runs in this process, or as `open_model`.
    """
    model = open_model(target, settings)
    if isinstance(model, HttpModel):
        return model
    raise ConfigError(f"{target.name} runs in this process and has no server; name a model on a server")


def _open_plugin(name: str, plugin: Plugin) -> PluginModel:
    """Return the model of a plug-in, which is made once.

    Raises:
        ConfigError: the plug-in fails, or what it returns is not a model of that name.
    """
    with _lock:
        if name not in _plugins:
            made = cast("PluginModel", plugin.make(name))
            if not all(hasattr(made, part) for part in ("capabilities", "stream", "astream")) or made.name != name:
                raise ConfigError(
                    f"the {plugin} must return a model named {name!r} with capabilities, stream and astream"
                )
            _plugins[name] = cast("PluginModel", _BlamedModel(plugin, made))
        return _plugins[name]


def _load(target: Target, settings: Settings) -> "LocalModel | GgufModel":
    known = Capabilities(target.capabilities)
    if target.base_url == "gguf":
        require_modules("a model in a GGUF file", "gguf", "numpy", "llguidance")
        from taiwa.models.inprocess.gguf import GgufModel

        return GgufModel(target.name, known=known, keep=settings.models.keep_loaded)
    require_modules("a model of transformers", "local", "numpy", "llguidance")
    from taiwa.models.inprocess.transformers_model import LocalModel, find_local_folder

    model = LocalModel(target.name, known=known)
    find_local_folder(model.spec)
    return model


def in_process(model: object) -> "InProcessModel[LoadedModel[Any]] | None":
    """Return the model if it runs in this process. Its module, which needs numpy, is then loaded."""
    module: Any = sys.modules.get("taiwa.models.inprocess.generator")
    return model if module is not None and isinstance(model, module.InProcessModel) else None


def check_key(target: Target, key: Secret) -> None:
    """Check a key by a request that costs nothing, or one token if the provider has no such request.

    Raises:
        AuthenticationError: the provider does not accept the key.
        ModelError: the request failed.
    """
    path = CHECK_PATHS.get(parse_base_url(target.base_url).host, "models")
    limits = RequestLimits(first_byte=20.0, total=30.0)
    with HttpModel(target, key, limits=limits) as opened:
        listing = _listing(opened, path) if path else None
    if listing is not None:
        # Servers such as llama.cpp list their models without a key, so the list does not verify this key.
        if target.provider or not _lists_without_key(target, limits):
            return
        if names := [text_at(item, "id") for item in items_at(listing, "data")]:
            target = resolve(f"{target.base_url}#{names[0]}")
    with HttpModel(target, key, limits=limits) as opened:
        for _ in opened.stream(HELLO):
            pass


def try_key(target: Target, key: Secret) -> str:
    """Check a key that is about to be stored; return why it could not be tested, "" if it was accepted.

    Raises:
        AuthenticationError: the provider does not accept it.
    """
    try:
        check_key(target, key)
    except AuthenticationError as error:
        what = f"{target.origin} does not accept this key; it is not stored"
        raise AuthenticationError(what, status=error.status) from None
    except ModelError as error:
        return error.message
    return ""


def _listing(opened: HttpModel, path: str) -> Json:
    """Return what a server lists at a path; None if it has no such path.

    Raises:
        ModelError: the call failed.
    """
    try:
        body = opened.fetch(path)
    except ModelError as error:
        if error.status not in (404, 405, 501):
            raise
        return None
    try:
        return parse_json(body) or {}
    except ValueError:
        return {}


def _lists_without_key(target: Target, limits: RequestLimits) -> bool:
    with HttpModel(target, limits=limits) as opened:
        try:
            return _listing(opened, "models") is not None
        except ModelError:
            return False


T = TypeVar("T")


def by_full_name(settings: Settings, table: Mapping[str, Mapping[str, T]]) -> dict[str, Mapping[str, T]]:
    """Return a table of the settings by the full names of models; an alias means its model in every setting."""
    full: dict[str, Mapping[str, T]] = {}
    for name in sorted(
        table, key=lambda each: each not in settings.models.aliases
    ):  # what is set for the full name counts
        meant = (
            split_options(expand_alias(name, settings.models.aliases))[0] if name in settings.models.aliases else name
        )
        full[meant] = {**full.get(meant, {}), **table[name]}
    return full


RATES = ("input", "output", "cache_read", "cache_write")


def find_prices(
    prices: Mapping[str, Mapping[str, object]], model: str, *, local: bool = False, table: PriceTable | None = None
) -> Prices | None:
    """Find the prices of a model: under its own name, else under the longest pattern (`openai:gpt-*`) that matches it, else in
    the table.

    A pattern without a provider matches the name of the model alone. A `local` model costs nothing without a price of its own,
    unless it is that of a hosted provider, which a relay on this machine passes on.

    Raises:
        ConfigError: the price of input or of output is missing, or a price is not a number.
    """
    model, _ = split_options(model)
    names = (model, model.partition("#")[2] or model.partition(":")[2])
    matching = [pattern for pattern in prices if any(pattern == each or fnmatchcase(each, pattern) for each in names)]
    if not matching:
        provider = PROVIDERS.get(model.partition(":")[0])
        if local and (provider is None or provider.self_hosted):
            return FREE
        return None if table is None else table.find(model)
    name = model if model in prices else max(matching, key=len)
    entry = prices[name]
    for key in ("input", "output"):
        if key not in entry:
            raise ConfigError(f"prices.{name} lacks {key!r}; add it, because an unknown price is not zero")
    for key in RATES:
        if key in entry and not isinstance(entry[key], (Decimal, int, float)):
            raise ConfigError(f"prices.{name}.{key} must be a number such as 0.25, got {str(entry[key])[:40]!r}")
    rates: dict[str, Any] = {key: str(entry[key]) for key in (*RATES, "currency") if key in entry}
    return Prices(**rates)


# --- models within reach ----------------------------------------------------------------------------------------------

SECONDS = 0.15
"""Seconds that all servers of this machine together may take to answer."""
LARGEST_LIST_BYTES = 2**20
SERVERS: Mapping[str, str] = {
    "ollama": "Ollama", "llamacpp": "llama.cpp", "lmstudio": "LM Studio", "vllm": "vLLM", "sglang": "SGLang",
}  # fmt: skip
"""The servers that are looked for at their usual ports."""
OTHERS_PORTS = ("llamacpp", "vllm", "sglang")
"""The servers whose ports other programs often use."""
DEPLOYMENT = "AZURE_OPENAI_DEPLOYMENT"


@dataclass(frozen=True, slots=True)
class FoundModel:
    """An available model, and its source: the variable with its key, or its server."""

    name: str
    source: str


def find_by_keys(settings: Settings, environ: Mapping[str, str] | None = None) -> tuple[FoundModel, ...]:
    """Return a model of each provider that has a key in the environment; nothing is sent."""
    environ = os.environ if environ is None else environ
    found: list[FoundModel] = []
    for prefix, provider in PROVIDERS.items():
        model = environ.get(DEPLOYMENT, "") if prefix == "azure" else provider.suggested
        if not model or not settings.models.base_urls.get(prefix, provider.base_url):
            continue
        variable, _ = key_in_environment(provider.key_variable, environ)
        if variable:
            found.append(FoundModel(f"{prefix}:{model}", variable))
    return tuple(found)


def find_servers(settings: Settings, seconds: float = SECONDS) -> tuple[FoundModel, ...]:
    """Query the servers of this machine concurrently for their models, and wait at most these seconds in total.

    A server is looked for at its configured address, else at its default port; servers on other machines are skipped.
    """
    addresses = {prefix: settings.models.base_urls.get(prefix, PROVIDERS[prefix].base_url) for prefix in SERVERS}
    local = {prefix: url for prefix, url in addresses.items() if url and parse_base_url(url).is_local}
    # A server that accepts but does not answer must not keep the program from exiting.
    asked = [start_in_thread(partial(_ask, *server, seconds), "discovery") for server in local.items()]
    wait(asked, seconds)
    return tuple(model for answer in asked if answer.done() for model in answer.result())


def list_models(target: Target, settings: Settings) -> tuple[FoundModel, ...]:
    """Return the models that a server lists, by the names of this project.

    Raises:
        ModelError: the call failed.
    """
    limits = RequestLimits(first_byte=20.0, total=30.0)
    with HttpModel(target, find_key(replace(target, provider=""), settings), limits=limits) as opened:
        listing = _listing(opened, "models")
    names = (text_at(item, "id").removeprefix("models/") for item in items_at(listing, "data"))
    return tuple(FoundModel(name_at(target, name), target.base_url) for name in names if name and _fits(name))


def name_at(target: Target, model: str) -> str:
    """Return the name of this project for a model of a server."""
    return f"{target.base_url}#{model}" if "://" in target.name else f"{target.name}:{model}"


def _ask(prefix: str, url: str, seconds: float) -> Sequence[FoundModel]:
    """Return the models that a server lists, none if it does not answer."""
    from http.client import HTTPConnection, HTTPException

    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=seconds)
    try:
        connection.request("GET", f"{address.path}/models", headers={"accept": "application/json"})
        response = connection.getresponse()
        listing = parse_json(response.read(LARGEST_LIST_BYTES)) if response.status == 200 else None
    except (OSError, HTTPException, ValueError):
        return ()
    finally:
        connection.close()
    return tuple(
        # Use the address as the name if the port may belong to another program.
        FoundModel(
            f"{prefix}:{model}"
            if prefix not in OTHERS_PORTS or OWNERS.get(text_at(item, "owned_by")) == prefix
            else f"{url}#{model}",
            f"{SERVERS[prefix]} at {address.netloc}",
        )
        for item in items_at(listing, "data")
        if (model := text_at(item, "id")) and "embed" not in model and _fits(model)
    )


def _fits(model: str) -> bool:
    with suppress(ConfigError):
        return bool(resolve(f"ollama:{model}").model)
    return False
