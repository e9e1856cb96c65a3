"""`taiwa.open`: from names to an open conversation."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from taiwa import settings as configured
from taiwa.apps.catalogue import find
from taiwa.conversation.app import App
from taiwa.kernel.records import Json
from taiwa.models.findings import probed
from taiwa.models.opening import open_model
from taiwa.observe.prices import price_list
from taiwa.settings import Settings
from taiwa.store import Store
from taiwa.talk.desk import Desk
from taiwa.talk.talk import Talk
from taiwa.talk.turn import Speaker, TurnOptions, Voice

__all__ = ["open", "open_store", "open_voice"]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def open(
    app: str | App = "chat",
    *,
    model: str | Speaker | None = None,
    session: str = "",
    store: str | Path | Store | None = None,
    params: Mapping[str, Json] | None = None,
    options: TurnOptions | None = None,
) -> Talk:
    """Open a conversation: the session of that name where there is one, else a new one with the app.

    `store` is a file, the address of a PostgreSQL server, `":memory:"`, or an open store; without it the configured one.

    Raises:
        ConfigError: the model, the app or the store cannot be opened.
        InputError: the parameters are not those that the app needs.
    """
    chosen = configured.load({"model": model} if isinstance(model, str) else {})
    desk = Desk(open_store(store, chosen))
    desk.settings = chosen
    if session and desk.store.refs.has(session):
        start = desk.at(session)
    else:
        start = desk.start((find(app) if isinstance(app, str) else app).opened(params or {}))
    voice = open_voice(None if isinstance(model, str) else model, chosen, start.app)
    return Talk(desk, session, start, voice, options=options)


def open_store(store: str | Path | Store | None, chosen: Settings) -> Store:
    """Open a store by path, or the configured one."""
    return store if isinstance(store, Store) else Store.open(chosen.store if store is None else store)


def open_voice(model: Speaker | None, chosen: Settings, app: App | None = None) -> Voice:
    """Open a model with what it costs. The one that an app asks for goes before all but an argument; where
    none is set, the small one that comes along answers; an app that looks things up does without it where it is not there.

    Raises:
        ConfigError: its name leads nowhere, or its key is missing.
    """
    if model is not None:
        return Voice(model, price_list(chosen.prices, model.name))
    if app is not None and app.flow == "ask" and not app.model and chosen.model is None:
        from taiwa.models.builtin.card import is_there

        if not is_there():
            from taiwa.talk.asking import Nobody

            return Voice(Nobody())
    asked_for = app.model if app is not None and chosen.origins.get("model") != "argument" else ""
    target = probed(asked_for or chosen.chosen_model(), chosen)
    local = target.inside or urlsplit(target.base_url).hostname in LOOPBACK
    return Voice(open_model(target, chosen), price_list(chosen.prices, target.name, local=local))
