"""API keys: kept in the environment or in a file that only its owner can read, never printed, masked in errors."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import NoReturn, cast

from taiwa.kernel.errors import ConfigError, TaiwaError
from taiwa.kernel.wording import Wording
from taiwa.models.http_api.provider_interface import Server, Target, parse_base_url
from taiwa.settings import Settings
from taiwa.yamlfile import read_json_object, write_private

MASK = "•••"
SHORTEST_PIECE = 6
SYNONYMS: Mapping[str, str] = {"GEMINI_API_KEY": "GOOGLE_API_KEY"}
"""Alternative names of variables, which a provider's own programs read too."""


class Secret:
    """An API key, stripped of white space. Only `reveal` returns its text; it cannot be printed, pickled or copied.

    `variable` names the environment variable that holds it; `is_stored` says that it is in the file with the keys.
    """

    __slots__ = ("_text", "is_stored", "variable")

    def __init__(self, text: str, name: str = "the key", *, variable: str = "", is_stored: bool = False) -> None:
        text = text.strip()
        if not text:
            raise ConfigError(f"{name} is empty; set it with `taiwa keys set`")
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise ConfigError(Wording("{name} contains white space or a character that no key has; set it again with `taiwa keys set`", name=name))  # fmt: skip
        self._text = text
        self.variable = variable
        self.is_stored = is_stored

    def reveal(self) -> str:
        """Return the text, for the header that carries it and for the file that stores it."""
        return self._text

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and compare_digest(self._text, other._text)

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled")


def mask_text(text: str, secrets: Iterable[str]) -> str:
    """Mask every secret in a text, and the beginning of one that is cut off at its end (`…` may mark the cut)."""
    for secret in secrets:
        if len(secret) < SHORTEST_PIECE:  # "x" for a server that wants any key: words that contain it stay readable
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
            continue
        text = text.replace(secret, MASK)
        end = len(text.rstrip("…"))
        for length in range(len(secret) - 1, SHORTEST_PIECE - 1, -1):
            if text.endswith(secret[:length], 0, end):
                text = text[: end - length] + MASK + text[end:]
                break
    return text


def mask_error(error: TaiwaError, secrets: Iterable[str]) -> None:
    """Mask every secret in the message and the details of an error."""
    secrets = tuple(secrets)
    for name in ("message", *error.details):
        detail = getattr(error, name)
        if isinstance(detail, str):
            setattr(error, name, mask_text(detail, secrets))
    error.args = (error.message,)


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key that is set: the origin of its server, its environment variable or "", and whether it is in the file."""

    origin: str
    variable: str
    is_stored: bool


def key_in_environment(variable: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the variable that holds a key, and the key; two empty texts if none does."""
    names = (name for name in (variable, SYNONYMS.get(variable, "")) if environ.get(name))
    name = next(names, "")
    return name, environ.get(name, "")


def find_key(target: Target, settings: Settings, environ: Mapping[str, str] | None = None) -> Secret | None:
    """Return the key for a model, from the environment or the file; None if none is set and none is required.

    Raises:
        ConfigError: a required key is not set, or the file with the keys is readable by other users.
    """
    base = parse_base_url(target.base_url)
    variable, text = key_in_environment(target.key_variable, os.environ if environ is None else environ)
    if text:
        return Secret(text, variable, variable=variable)
    if stored := _read(settings.keys_path).get(base.origin):
        return Secret(stored, Wording("the key for {server}", server=base.origin), is_stored=True)
    if not target.provider or base.is_local:
        return None
    raise ConfigError(
        f"no key for {target.name}: run `taiwa keys set {target.provider}`, or set {target.key_variable} in the environment"
    )


def with_place(server: Server, key: Secret | None, target: Target) -> Server:
    """Return the server as errors name it, with the place of a key and what to do there if the key is not accepted."""
    command = f"`taiwa keys set {target.provider or parse_base_url(target.base_url).origin}`"
    if key is None:
        return server._replace(key_remedy=f"no key is set: run {command}")
    if key.variable:  # it takes the place of a stored key
        return server._replace(key_place=f" in {key.variable}", key_remedy="set another in the environment")
    if key.is_stored:
        return server._replace(key_place=" that is stored", key_remedy=f"set another with {command}")
    return server


def list_keys(
    settings: Settings, variables: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> tuple[KeyRow, ...]:
    """List the keys that are set, by origin; `variables` has the environment variable of each known origin."""
    environ = os.environ if environ is None else environ
    stored = _read(settings.keys_path)
    found = ((origin, key_in_environment(variable, environ)[0]) for origin, variable in variables.items())
    outside = {origin: variable for origin, variable in found if variable}
    return tuple(KeyRow(origin, outside.get(origin, ""), origin in stored) for origin in sorted({*outside, *stored}))


def set_key(settings: Settings, origin: str, key: Secret) -> None:
    """Store the key for an origin in the file.

    Raises:
        ConfigError: the key could never be sent there, or the file is invalid or cannot be written.
    """
    parse_base_url(origin).check_transport()
    _write(settings.keys_path, _read(settings.keys_path) | {origin: key.reveal()})


def remove_key(settings: Settings, origin: str) -> None:
    """Remove the key for an origin from the file.

    Raises:
        ConfigError: it is not in the file.
    """
    stored = _read(settings.keys_path)
    if stored.pop(origin, None) is None:
        raise ConfigError(
            f"no key for {origin} is stored in {settings.keys_path}; remove a key in the environment there"
        )
    _write(settings.keys_path, stored)


def _read(path: Path) -> dict[str, str]:
    """Read the file. Messages never show its content."""
    keys = read_json_object(path, "keys set", only_owner=True)
    for name, text in keys.items():
        if not isinstance(text, str):
            raise ConfigError(f"{path}: the value of {name[:40]!r} must be a text; delete it and set the keys again")
    return cast("dict[str, str]", keys)


def _write(path: Path, keys: Mapping[str, str]) -> None:
    write_private(path, json.dumps(keys, indent=2, sort_keys=True) + "\n")
