"""Describe the imported apps that are not trusted yet."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from taiwa.apps.catalog import load_source
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.models.providers import resolve_probed
from taiwa.operations.results import UntrustedApp
from taiwa.sessions.repository import Repository
from taiwa.settings import Settings

if TYPE_CHECKING:
    pass


def untrusted_apps(repository: Repository, settings: Settings, name: str = "") -> tuple[UntrustedApp, ...]:
    """Return the untrusted apps of a store, oldest first; with a name those of that app, session or beginning of a hash.

    Raises:
        InputError: a name is given, and no untrusted app has it.
    """
    store = repository.store
    sessions: dict[str, list[str]] = {}
    for ref in store.refs.list():
        sessions.setdefault(store.nodes.get(ref.tip).app, []).append(ref.name)
    found = tuple(
        UntrustedApp(app := load_source(source), tuple(sessions.get(source.hash, ())), _host(app.model, settings))
        for source in store.nodes.untrusted_apps()
        if name in ("", source.name, *sessions.get(source.hash, ())) or source.hash.startswith(name)
    )
    if name and not found:
        raise InputError(f"no untrusted app is named {name!r}; `taiwa apps trust` lists them")
    return found


def _host(model: str, settings: Settings) -> str:
    """Return the host of a model's server; the name of the model if it cannot be resolved."""
    try:
        return (urlsplit(resolve_probed(model, settings).base_url).hostname or "") if model else ""
    except ConfigError:
        return model
