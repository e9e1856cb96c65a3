"""API keys of providers: from the environment, else from a file that only its owner can read."""

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, cast

from taiwa.kernel.errors import AuthenticationError, ConfigError, ModelError
from taiwa.kernel.messages import Request, Sampling, user
from taiwa.models.http_api.base_url import parse_base_url
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.provider_interface import Target
from taiwa.models.http_api.retries import RequestLimits
from taiwa.models.http_api.secrets import Secret
from taiwa.models.registry import PROVIDERS, resolve
from taiwa.settings import Settings
from taiwa.yamlfile import write_private

OTHERS = stat.S_IRWXG | stat.S_IRWXO
KEY_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
CHECK_PATHS: Mapping[str, str] = {"openrouter.ai": "key", "router.huggingface.co": ""}
"""The path that checks a key, where the list of models is public; `""` if there is none."""
HELLO = Request((user("hi"),), sampling=Sampling(max_tokens=1))


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key that is set: its name and where it is set, without any character of it."""

    name: str
    place: Literal["from environment", "set", "from environment (one is set too)"]


def key_name(name: str, settings: Settings) -> str:
    """Return the name of a key for `openai`, `OPENAI_API_KEY`, or `http://host:port` for one server.

    Raises:
        ConfigError: the provider is unknown.
    """
    if KEY_NAME.fullmatch(name):
        return name
    if name.startswith(("http://", "https://")):
        return resolve(f"{name.partition('#')[0]}#any").key_name
    known = (*PROVIDERS, *settings.base_urls)
    if name not in known:
        near = get_close_matches(name.lower(), known, 1, 0.0)
        raise ConfigError(f"unknown provider {name[:40]!r}: did you mean {near[0]!r}? (known: {', '.join(known)})")
    return resolve(f"{name}:any", base_urls=settings.base_urls).key_name


def find_key(target: Target, settings: Settings, environ: Mapping[str, str] | None = None) -> Secret | None:
    """Return the key for a model; None if none is set and none is required.

    Raises:
        ConfigError: a required key is not set, or the file with the keys is readable by other users.
    """
    name = target.key_name
    if not name:
        return None
    text = (os.environ if environ is None else environ).get(name) or _read(settings.keys_path).get(name)
    if text:
        return Secret(text, name)
    providers = [provider for provider, known in PROVIDERS.items() if known.key_name == name and not known.self_hosted]
    if not providers or parse_base_url(target.base_url).is_local:
        return None
    raise ConfigError(
        f"no key for {target.name}: run `taiwa keys set {providers[0]}`, or set {name} in the environment"
    )


def list_keys(settings: Settings, environ: Mapping[str, str] | None = None) -> tuple[KeyRow, ...]:
    """List the keys that are set, by name."""
    environ = os.environ if environ is None else environ
    stored = _read(settings.keys_path)
    known = {provider.key_name for provider in PROVIDERS.values()} | {
        resolve(f"{name}:any", base_urls=settings.base_urls).key_name for name in settings.base_urls
    }
    rows: list[KeyRow] = []
    for name in sorted({name for name in known if name and environ.get(name)} | set(stored)):
        if not environ.get(name):
            rows.append(KeyRow(name, "set"))
        else:
            rows.append(KeyRow(name, "from environment (one is set too)" if name in stored else "from environment"))
    return tuple(rows)


def set_key(settings: Settings, name: str, text: str) -> str:
    """Store a key in the file and return its full name; white space around it, which pasting adds, is removed.

    Raises:
        ConfigError: the name or the key is invalid, or the file cannot be written.
    """
    name = key_name(name, settings)
    key = Secret(text.strip(), name)
    _write(settings.keys_path, _read(settings.keys_path) | {name: key.reveal()})
    return name


def remove_key(settings: Settings, name: str) -> str:
    """Remove a key from the file and return its full name.

    Raises:
        ConfigError: it is not in the file.
    """
    name = key_name(name, settings)
    stored = _read(settings.keys_path)
    if stored.pop(name, None) is None:
        raise ConfigError(f"{name} is not set in {settings.keys_path}; remove a key in the environment there")
    _write(settings.keys_path, stored)
    return name


def check_key(target: Target, key: Secret | None, model: HttpModel | None = None) -> None:
    """Check a key by a request that costs nothing, or one token if the provider has no such request.

    Raises:
        AuthenticationError: the provider does not accept the key.
        ModelError: the request failed.
    """
    path = CHECK_PATHS.get(parse_base_url(target.base_url).host, "models")
    with model or HttpModel(target, key, limits=RequestLimits(first_byte=20.0, total=30.0)) as opened:
        if path:
            try:
                opened.fetch(path)
            except AuthenticationError:
                raise
            except ModelError as error:
                if error.status not in (404, 405, 501):
                    raise
            else:
                return
        for _ in opened.stream(HELLO):
            pass


def _read(path: Path) -> dict[str, str]:
    """Read the file. Messages never show its content."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            raw = file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if mode & OTHERS:
        raise ConfigError(f"{path} is readable by other users (mode {mode:o}); run `chmod 600 {path}`")
    try:
        data: object = json.loads(raw)
    except (ValueError, RecursionError):
        raise ConfigError(f"{path} is not the JSON that `taiwa keys set` writes; correct or delete it") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path} is not an object of names and keys; correct or delete it")
    for name, text in cast("dict[str, object]", data).items():
        if not isinstance(text, str):
            raise ConfigError(f"{path}: the value of {name[:40]!r} must be a text; correct or delete it")
    return cast("dict[str, str]", data)


def _write(path: Path, keys: Mapping[str, str]) -> None:
    write_private(path, json.dumps(dict(sorted(keys.items())), indent=2) + "\n")
