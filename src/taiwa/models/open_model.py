"""From a target to a model that can be asked, wherever it runs."""

from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from taiwa.kernel.errors import ConfigError
from taiwa.models.http_api.api_keys import find_key
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.provider_interface import Enforce, Target
from taiwa.models.http_api.retries import RequestLimits, RetryPolicy
from taiwa.models.inprocess.gguf import GgufModel
from taiwa.models.inprocess.transformers_model import LocalModel, find_local_folder
from taiwa.settings import BUILTIN, Settings

if TYPE_CHECKING:
    from taiwa.models.builtin.model import BuiltinModel

__all__ = ["holding", "open_model", "speaking"]


Opened: TypeAlias = "HttpModel | LocalModel | BuiltinModel | GgufModel"

_lock = Lock()

_inside: "dict[str, LocalModel | BuiltinModel]" = {}

_files: dict[str, GgufModel] = {}
"""Models of this process by name: whoever opens one again gets the one that is loaded."""


def holding(model: Opened, hold: Enforce) -> Opened:
    """The same model, with another way to treat what a server's decoder does not hold; see `Enforce`.

    A model in this process is told so with each wish, and stays as it is.
    """
    if isinstance(model, GgufModel):
        return model.holding(hold)
    if isinstance(model, HttpModel):
        return model.holding(hold)
    return model


def speaking(target: Target, chosen: Settings) -> HttpModel:
    """Open the server behind a target: for what is asked of servers and not of models.

    Raises:
        ConfigError: no server is behind it, or as `open_model`.
    """
    model = open_model(target, chosen)
    if isinstance(model, GgufModel):
        return model.served()
    if isinstance(model, HttpModel):
        return model
    raise ConfigError(f"{target.name} runs in this process: there is no server to ask")


def open_model(target: Target, chosen: Settings) -> Opened:
    """Open the model that a target names.

    Raises:
        ConfigError: its key is missing, its name cannot be used, or its folder holds no model.
    """
    limits = RequestLimits(total=chosen.timeout)
    if target.base_url == "gguf":
        with _lock:
            served = _files.get(target.name)
            if served is None or served.target != target:
                served = _files[target.name] = GgufModel(target, limits)
            return served
    if not target.inside:
        retry = RetryPolicy(attempts=chosen.attempts)
        return HttpModel(target, find_key(target, chosen), limits=limits, retry=retry)
    with _lock:
        found = _inside.get(target.name)
        if found is None or found.capabilities != target.capabilities:
            found = _inside[target.name] = _made(target)
        return found


def _made(target: Target) -> "LocalModel | BuiltinModel":
    known = Capabilities(target.capabilities)
    if target.base_url == BUILTIN:
        from taiwa.models.builtin.model import BuiltinModel

        return BuiltinModel(target.name, known)
    found = LocalModel(target.name, known=known)
    find_local_folder(found.spec)
    return found
