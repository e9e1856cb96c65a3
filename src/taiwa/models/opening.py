"""From a target to a model that can be asked, wherever it runs."""

from threading import Lock
from typing import TypeAlias

from taiwa.models.abilities import Facts
from taiwa.models.http import HttpModel, Retry, Timeouts
from taiwa.models.keys import find_key
from taiwa.models.local.model import LocalModel
from taiwa.models.local.place import here
from taiwa.models.wire import Target
from taiwa.settings import Settings

__all__ = ["Opened", "open_model"]

Opened: TypeAlias = HttpModel | LocalModel

_lock = Lock()
_inside: dict[str, LocalModel] = {}
"""Models in this process by name: whoever opens one again gets the one that is loaded."""


def open_model(target: Target, chosen: Settings) -> Opened:
    """Open the model that a target names.

    Raises:
        ConfigError: its key is missing, its name cannot be used, or its folder holds no model.
    """
    if not target.inside:
        timeouts, retry = Timeouts(total=chosen.timeout), Retry(attempts=chosen.attempts)
        return HttpModel(target, find_key(target, chosen), timeouts=timeouts, retry=retry)
    with _lock:
        found = _inside.get(target.name)
        if found is None or found.abilities != target.abilities:
            found = LocalModel(target.name, known=Facts(target.abilities))
            here(found.place)
            _inside[target.name] = found
        return found
