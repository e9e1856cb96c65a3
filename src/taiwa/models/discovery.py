"""Models that are within reach: by a key in the environment, or on a server of this machine."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from urllib.parse import urlsplit

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.records import items_at, parse_json, text_at
from taiwa.models.http_api.api_keys import key_in_environment
from taiwa.models.http_api.connections import parse_base_url
from taiwa.models.registry import PROVIDERS, resolve
from taiwa.settings import Settings

SECONDS = 0.15
"""How long all servers of this machine together may take to answer."""
LARGEST_LIST_BYTES = 2**20
SERVERS: Mapping[str, str] = {
    "ollama": "Ollama", "llamacpp": "llama.cpp", "lmstudio": "LM Studio", "vllm": "vLLM", "sglang": "SGLang",
}  # fmt: skip
"""The servers that are looked for at their usual ports."""
OWNERS: Mapping[str, str] = {"llamacpp": "llamacpp", "vllm": "vllm", "sglang": "sglang"}
"""The owner of a model by which a server makes itself known, where another program often has its port."""
DEPLOYMENT = "AZURE_OPENAI_DEPLOYMENT"


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model within reach, and why it is: the variable with its key, or its server."""

    name: str
    source: str


def find_by_keys(settings: Settings, environ: Mapping[str, str] | None = None) -> tuple[FoundModel, ...]:
    """Return a model of each provider that has a key in the environment; nothing is sent."""
    environ = os.environ if environ is None else environ
    found: list[FoundModel] = []
    for prefix, provider in PROVIDERS.items():
        model = environ.get(DEPLOYMENT, "") if prefix == "azure" else provider.suggested
        if not model or (prefix == "azure" and prefix not in settings.base_urls):
            continue
        variable, _ = key_in_environment(provider.key_variable, environ)
        if variable:
            found.append(FoundModel(f"{prefix}:{model}", variable))
    return tuple(found)


def find_servers(settings: Settings, seconds: float = SECONDS) -> tuple[FoundModel, ...]:
    """Ask the servers of this machine at once for their models, and wait at most these seconds in all.

    A server is looked for where the settings have it, else at its usual port; one on another machine is left out.
    """
    addresses = {prefix: settings.base_urls.get(prefix, PROVIDERS[prefix].base_url) for prefix in SERVERS}
    local = {prefix: url for prefix, url in addresses.items() if parse_base_url(url).is_local}
    answers: SimpleQueue[tuple[str, Sequence[FoundModel]]] = SimpleQueue()
    for prefix, url in local.items():
        # A daemon: a server that accepts and then says nothing does not keep the program from ending.
        Thread(target=_answer, args=(answers, prefix, url, seconds), daemon=True).start()
    end = monotonic() + seconds
    found: dict[str, Sequence[FoundModel]] = {}
    while len(found) < len(local):
        try:
            prefix, models = answers.get(timeout=max(end - monotonic(), 0))
        except Empty:
            break
        found[prefix] = models
    return tuple(model for prefix in local for model in found.get(prefix, ()))


def _answer(answers: "SimpleQueue[tuple[str, Sequence[FoundModel]]]", prefix: str, url: str, seconds: float) -> None:
    answers.put((prefix, _ask(prefix, url, seconds)))


def _ask(prefix: str, url: str, seconds: float) -> Sequence[FoundModel]:
    """Return the models that a server lists, none if it does not answer."""
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
        FoundModel(_name(prefix, url, model, text_at(item, "owned_by")), f"{SERVERS[prefix]} at {address.netloc}")
        for item in items_at(listing, "data")
        if (model := text_at(item, "id")) and "embed" not in model and _fits(model)
    )


def _name(prefix: str, url: str, model: str, owner: str) -> str:
    """Return the name of a model; that of its address where the port may belong to another program."""
    return f"{prefix}:{model}" if OWNERS.get(prefix, owner) == owner else f"{url}#{model}"


def _fits(model: str) -> bool:
    try:
        resolve(f"ollama:{model}")
    except ConfigError:
        return False
    return True
