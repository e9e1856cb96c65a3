"""`taiwa.open`: from names to an open conversation."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from taiwa import settings as configured
from taiwa import store as stores
from taiwa.apps import convert_params, find
from taiwa.conversation.app import App
from taiwa.kernel.errors import InputError
from taiwa.kernel.runtime import Interrupts
from taiwa.kernel.session import Observer
from taiwa.models.keys import find_key
from taiwa.models.names import resolve
from taiwa.models.probe import probed
from taiwa.models.wire import Target
from taiwa.observe.prices import price_list
from taiwa.settings import Settings
from taiwa.store import Store
from taiwa.talk.desk import Desk
from taiwa.talk.talk import Talk
from taiwa.talk.turn import Manner, Speaker, Voice

__all__ = ["open", "open_app", "open_store", "open_voice", "target_of"]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def open(  # noqa: A001  (taiwa.open)
    app: "str | App" = "chat",
    *,
    model: "str | Speaker | None" = None,
    session: str = "",
    store: "str | Path | Store | None" = None,
    params: Mapping[str, object] | None = None,
    manner: Manner | None = None,
) -> Talk:
    """Open a conversation: a named session where there is one, else a new one with the app.

    `store` is a file, `":memory:"`, or an open store; without it the configured file.

    Raises:
        ConfigError: the model, the app or the store cannot be opened.
    """
    chosen = configured.load({})
    desk = Desk(open_store(store, chosen))
    voice = open_voice(model, chosen)
    return open_talk(desk, app, voice, session=session, params=params or {}, manner=manner)
