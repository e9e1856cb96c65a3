"""The keys of providers: from the environment, else from a file of their own that its owner alone may read."""

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

__all__ = ["KeyRow", "check_key", "find_key", "key_name", "list_keys", "remove_key", "set_key"]


OTHERS = stat.S_IRWXG | stat.S_IRWXO

NAME = re.compile(r"[A-Z][A-Z0-9_]*")

ROUTES: Mapping[str, str] = {"openrouter.ai": "key", "router.huggingface.co": ""}
"""Where a key is checked, if the list of models is open to everybody; `""` where there is no such place."""

HELLO = Request((user("hi"),), sampling=Sampling(max_tokens=1))


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key that is there: its name and where it is; never any sign of it."""

    name: str
    place: Literal["from environment", "set", "from environment (one is set too)"]


def key_name(name: str, settings: Settings) -> str:
    """Find the name of a key from what a person says: `openai`, `OPENAI_API_KEY` or `http://host:port` for one server.

    Raises:
        ConfigError: no provider is called so.
    """
    if NAME.fullmatch(name):
        return name
    if name.startswith(("http://", "https://")):
        return resolve(f"{name.partition('#')[0]}#any").key_name
    known = (*PROVIDERS, *settings.base_urls)
    if name not in known:
        near = get_close_matches(name.lower(), known, 1, 0.0)
        raise ConfigError(f"no provider is called {name[:40]!r}: did you mean {near[0]!r}? (known: {', '.join(known)})")
    return resolve(f"{name}:any", base_urls=settings.base_urls).key_name


def find_key(target: Target, settings: Settings, environ: Mapping[str, str] | None = None) -> Secret | None:
    """Find the key for a model; None where none is set and none is needed.

    Raises:
        ConfigError: a provider needs a key and none is set, or the file with the keys may be read by others.
    """
    name = target.key_name
    if not name:
        return None
    given = (os.environ if environ is None else environ).get(name) or _read(settings.keys_path).get(name)
    if given:
        return Secret(given, name)
    providers = [provider for provider, known in PROVIDERS.items() if known.key_name == name and not known.own]
    if not providers or parse_base_url(target.base_url).is_local:
        return None
    raise ConfigError(
        f"no key for {target.name}: run `taiwa keys set {providers[0]}`, or set {name} in the environment"
    )


def list_keys(settings: Settings, environ: Mapping[str, str] | None = None) -> tuple[KeyRow, ...]:
    """List the keys that are there, by name."""
    outside = os.environ if environ is None else environ
    kept = _read(settings.keys_path)
    known = {provider.key_name for provider in PROVIDERS.values()} | {
        resolve(f"{name}:any", base_urls=settings.base_urls).key_name for name in settings.base_urls
    }
    rows: list[KeyRow] = []
    for name in sorted({name for name in known if name and outside.get(name)} | set(kept)):
        if not outside.get(name):
            rows.append(KeyRow(name, "set"))
        else:
            rows.append(KeyRow(name, "from environment (one is set too)" if name in kept else "from environment"))
    return tuple(rows)


def set_key(settings: Settings, name: str, text: str) -> str:
    """Keep a key in the file and return its full name; white space around it, which pasting adds, is taken off.

    Raises:
        ConfigError: the name or the key cannot be used, or the file cannot be written.
    """
    name = key_name(name, settings)
    key = Secret(text.strip(), name)
    _write(settings.keys_path, _read(settings.keys_path) | {name: key.reveal()})
    return name


def remove_key(settings: Settings, name: str) -> str:
    """Take a key out of the file and return its full name.

    Raises:
        ConfigError: it is not there.
    """
    name = key_name(name, settings)
    kept = _read(settings.keys_path)
    if kept.pop(name, None) is None:
        raise ConfigError(f"{name} is not set in {settings.keys_path}; a key in the environment is taken out there")
    _write(settings.keys_path, kept)
    return name


def check_key(target: Target, key: Secret | None, model: HttpModel | None = None) -> None:
    """Ask the provider for something that costs nothing, or one token where there is no such thing.

    Raises:
        AuthError: the provider does not accept the key.
        ModelError: it could not be asked.
    """
    address = parse_base_url(target.base_url)
    route = ROUTES.get(address.host, "models")
    with model or HttpModel(target, key, limits=RequestLimits(first_byte=20.0, total=30.0)) as caller:
        if route:
            try:
                caller.fetch(route)
            except AuthenticationError:
                raise
            except ModelError as error:
                if error.status not in (404, 405, 501):
                    raise
            else:
                return
        for _ in caller.stream(HELLO):
            pass


def _read(path: Path) -> dict[str, str]:
    """Read the file; whatever is wrong with it, no message shows what is in it."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            raw = file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    if mode & OTHERS:
        raise ConfigError(f"{path}: others may read your keys (mode {mode:o}); run `chmod 600 {path}`")
    try:
        data: object = json.loads(raw)
    except (ValueError, RecursionError):
        raise ConfigError(f"{path}: not the JSON that `taiwa keys set` writes; mend or delete it") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: not an object of names and keys; mend or delete it")
    kept = cast("dict[str, object]", data)
    for name, text in kept.items():
        if not isinstance(text, str):
            raise ConfigError(f"{path}: {name[:40]!r} is no text; mend or delete it")
    return cast("dict[str, str]", data)


def _write(path: Path, kept: Mapping[str, str]) -> None:
    write_private(path, json.dumps(dict(sorted(kept.items())), indent=2) + "\n")
