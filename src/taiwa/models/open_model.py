"""Open the model that a target names: on a server, in a process beside this one, or in this process."""

from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from taiwa.kernel.errors import ConfigError
from taiwa.models.http_api.api_keys import find_key
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.provider_interface import Enforce, Target
from taiwa.models.http_api.retries import RequestLimits, RetryPolicy
from taiwa.settings import BUILTIN, Settings

if TYPE_CHECKING:
    from taiwa.models.builtin.model import BuiltinModel
    from taiwa.models.inprocess.gguf import GgufModel
    from taiwa.models.inprocess.transformers_model import LocalModel

OpenedModel: TypeAlias = "HttpModel | LocalModel | BuiltinModel | GgufModel"

_lock = Lock()
_loaded: "dict[str, LocalModel | BuiltinModel]" = {}
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
        retry = RetryPolicy(attempts=settings.attempts)
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


def _load(target: Target) -> "LocalModel | BuiltinModel":
    known = Capabilities(target.capabilities)
    if target.base_url == BUILTIN:
        from taiwa.models.builtin.model import BuiltinModel

        return BuiltinModel(target.name, known)
    from taiwa.models.inprocess.transformers_model import LocalModel, find_local_folder

    model = LocalModel(target.name, known=known)
    find_local_folder(model.spec)
    return model
