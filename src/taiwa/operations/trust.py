"""Trust in apps that came with an import: what they name, and the user's consent to it.

Of an untrusted app only the words count: its instructions, examples and state. Its model, tools and documents do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from taiwa.apps.catalog import load_source
from taiwa.conversation.app import App
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.records import Json
from taiwa.kernel.usage_limits import UsageLimits, format_cost
from taiwa.models.registry import resolve_probed
from taiwa.sessions.repository import Repository
from taiwa.settings import Settings


@dataclass(frozen=True, slots=True)
class UntrustedApp:
    """An app that came with an import, the sessions that it would continue, and what counts only once it is trusted.

    - `model` and its `host` ("": in this process, or no model). `tools`: names.
    - `documents`: indexes and folders that it searches; `searches` without any means all indexes.
    - `principals`: for whom it searches. `user`: whose profile it reads. `max_cost`: its limit, in billionths.
    """

    hash: str
    name: str
    sessions: tuple[str, ...] = ()
    model: str = ""
    host: str = ""
    tools: tuple[str, ...] = ()
    searches: bool = False
    documents: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    user: str = ""
    max_cost: int | None = None

    def lines(self) -> tuple[str, ...]:
        """Describe what the app names, a line each."""
        sent = f" (every text is sent to {self.host})" if self.host else ""
        named = {
            "model": f"{self.model}{sent}" if self.model else "",
            "tools": ", ".join(self.tools),
            "documents": (", ".join(self.documents) or "all indexes") if self.searches else "",
            "searches as": ", ".join(self.principals),
            "user": self.user,
            "max cost": "" if self.max_cost is None else format_cost(self.max_cost),
        }
        return tuple(f"{what}: {which}" for what, which in named.items() if which)


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
        _describe(load_source(source), tuple(sessions.get(source.hash, ())), settings)
        for source in store.nodes.untrusted_apps()
        if name in ("", source.name, *sessions.get(source.hash, ())) or source.hash.startswith(name)
    )
    if name and not found:
        raise InputError(f"no untrusted app is named {name!r}; `taiwa apps trust` lists them")
    return found


def _describe(app: App, sessions: tuple[str, ...], settings: Settings) -> UntrustedApp:
    values: Mapping[str, Json] = app.values if app.flow == "ask" else {}
    documents, principals = (tuple(map(str, _list(values.get(each)))) for each in ("in", "as"))
    user = str(values.get("user") or "")
    searches = app.flow == "ask"
    host = _host(app.model, settings)
    limits = app.options.limits or UsageLimits()
    return UntrustedApp(
        app.hash, app.name, sessions, app.model, host, app.tools, searches, documents, principals, user, limits.cost
    )


def _host(model: str, settings: Settings) -> str:
    """Return the host of a model's server; the name of the model where it cannot be resolved."""
    try:
        return (urlsplit(resolve_probed(model, settings).base_url).hostname or "") if model else ""
    except ConfigError:
        return model


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
