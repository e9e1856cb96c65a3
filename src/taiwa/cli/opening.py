"""From flags to an open conversation."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from taiwa.apps.catalogue import find
from taiwa.apps.params import convert_param, convert_params
from taiwa.cli.options import Flags, read_params
from taiwa.cli.screen import tell
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.flows.chat import TEXT_LIMIT
from taiwa.i18n import _
from taiwa.kernel.errors import InputError
from taiwa.kernel.ledger import Limits
from taiwa.kernel.runtime import Interrupts
from taiwa.kernel.session import Observer
from taiwa.settings import BUILTIN, Settings
from taiwa.talk.desk import Desk
from taiwa.talk.opening import open_voice
from taiwa.talk.talk import Talk
from taiwa.talk.turn import TurnOptions, Voice

__all__ = ["manner_of", "mention", "open_app", "open_talk", "read_text", "start"]


MOST_BYTES = 4 * TEXT_LIMIT


def manner_of(flags: Flags, chosen: Settings, interrupts: Interrupts = "raise") -> TurnOptions:
    """How turns are done under these flags."""
    return TurnOptions(strict=flags.strict, limits=Limits(cost=chosen.max_cost_nano), interrupts=interrupts)


def open_talk(
    flags: Flags,
    app: str | App = "",
    *,
    latest: bool = False,
    interrupts: Interrupts = "raise",
    observers: Iterable[Observer] = (),
) -> Talk:
    """Open the conversation that the flags name, or begin a new one; with `latest` only one that is there.

    Raises:
        TaiwaError: something of it is missing or wrong.
    """
    chosen = flags.settings()
    desk = flags.desk(chosen)
    desk.place, desk.settings = chosen.store, chosen
    if latest:
        flags = replace(flags, session=desk.session(flags.session))
    session, conversation = start(desk, flags, app)
    voice = open_voice(None, chosen, conversation.app)
    if flags.verbose:
        mention(chosen, voice)
    manner = manner_of(flags, chosen, interrupts)
    return Talk(desk, session, conversation, voice, options=manner, observers=observers)


def mention(chosen: Settings, voice: Voice) -> None:
    """Say that the small model answers, where nobody chose it, and how to set a larger one."""
    if chosen.model is None and voice.model.name == BUILTIN:
        tell(
            _(
                "no model is set, so the built-in small model answers; to set a larger one: taiwa config set model NAME (see `taiwa models`)"
            )
        )


def start(desk: Desk, flags: Flags, app: str | App) -> tuple[str, Conversation]:
    """Find where a conversation goes on, or begin one: its session ("" for one that is still to be named) and itself.

    An app is a name, or one whose parameters are filled in.

    Raises:
        InputError: an app was named for a conversation that has another.
    """
    name = flags.session or (desk.session() if flags.go_on else "")
    if name and desk.store.refs.has(name):
        found = desk.at(name)
        if app and (app if isinstance(app, str) else app.name) != found.app.name:
            raise InputError(f"{name!r} is a conversation with {found.app.name!r}; change it with /app in taiwa chat")
        if flags.params:
            raise InputError(f"{name!r} has its parameters already; -p is for a new conversation")
        return name, found
    opened = app if isinstance(app, App) else open_app(app or "chat", flags.params)
    return name, desk.start(opened)


def open_app(name: str, params: tuple[str, ...]) -> App:
    """Open an app; on a terminal, ask for the parameters that were not given.

    Raises:
        ConfigError: there is no such app, or it has a fault.
        InputError: a parameter is unknown, missing or does not fit.
    """
    app = find(name)
    values = convert_params(app, read_params(params))
    for param in app.params:
        if param.name not in values and param.default is None and param.required and sys.stdin.isatty():
            values[param.name] = convert_param(param, click.prompt(param.ask or param.name, err=True))
    return app.opened(values)


def read_text(given: str) -> str:
    """Read an utterance: itself, or standard input for `-`.

    Raises:
        InputError: the bytes are not UTF-8.
    """
    if given != "-":
        return _whole(given)
    raw = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise InputError(f"standard input is too large: at most {TEXT_LIMIT:,} characters can be said in one turn")
    return decoded(raw, "standard input").rstrip("\n")


def _whole(given: str) -> str:
    """An argument; the shell hands over bytes, and Python marks those that are no text."""
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the text is not UTF-8 at character {error.start + 1:,}") from None
    return given


def read_file(path: Path) -> str:
    """Read a text file.

    Raises:
        InputError: it cannot be read or is not UTF-8.
    """
    try:
        return decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def decoded(raw: bytes, where: str) -> str:
    """Read bytes as UTF-8, with or without a byte order mark."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 at byte {error.start:,}; convert it, for instance with iconv") from None
