"""Settings of the user, from four sources: arguments, `TAIWA_*` variables, the config file, defaults. The first one wins.

The config file is `$TAIWA_CONFIG`, or `taiwa/config.yaml` under `$XDG_CONFIG_HOME`. Settings are read once, into a frozen
value that is passed on.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from errno import EPERM
from functools import partial
from pathlib import Path
from stat import S_IWGRP, S_IWOTH
from types import MappingProxyType
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from taiwa.kernel.attachments import InputKind, read_regular_text
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Capability
from taiwa.kernel.usage_limits import COST_FIELDS, UsageLimits, format_cost_limits
from taiwa.kernel.wording import Wording
from taiwa.sql import PostgresUrl, is_postgres_url
from taiwa.yamlfile import Keys, read_settings, remove_setting, set_setting, write_private

NANO = 10**9
LARGEST = 10**12
MOST_ATTEMPTS = 100
LONGEST_KEPT = 86_400
ONE, NAMED, TABLE = 1, 2, 3
"""Depth of the values of a setting: `key: value`, `key: NAME: value`, `key: NAME: KEY: value`."""
PREFIX = "TAIWA_"
ADDRESS_VARIABLES: Mapping[str, str] = {
    "openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL", "ollama": "OLLAMA_HOST", "groq": "GROQ_BASE_URL",
    "cerebras": "CEREBRAS_BASE_URL", "azure": "AZURE_OPENAI_ENDPOINT",
}  # fmt: skip
"""The variables in which the libraries of some providers read their address."""
OLLAMA_PORT = 11434
PRICES = ("input", "output", "cache_read", "cache_write", "currency")
NO_MODEL = (
    "no model is set; use -m NAME or TAIWA_MODEL=NAME, or fetch a small one: taiwa models pull qwen2.5-coder-1.5b --use"
)


NO_LIMITS = UsageLimits()


class NoModelError(ConfigError):
    """No model is set, and one is needed."""

    def __init__(self, message: str = NO_MODEL) -> None:
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How models on servers are called: the seconds of one answer, the attempts, and the pace."""

    timeout: float = 600.0
    attempts: int = 3
    retry_paid: bool = False
    max_concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Where models are found, and what they support and cost."""

    served_models: tuple[str, ...] = ()
    model_mirror: str | None = None
    keep_loaded: int = 0
    base_urls: Mapping[str, str] = field(default_factory=dict[str, str])
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    capabilities: Mapping[str, Mapping[str, bool]] = field(default_factory=dict[str, Mapping[str, bool]])
    prices: Mapping[str, Mapping[str, Decimal | str]] = field(default_factory=dict[str, Mapping[str, Decimal | str]])


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one run. `origins` has the source of each value by dotted key; a default has none."""

    store: Path | PostgresUrl
    path: Path
    model: str | None = None
    limits: UsageLimits = NO_LIMITS
    calls: CallSettings = CallSettings()
    models: ModelSettings = ModelSettings()
    plugins: Mapping[str, bool] = field(default_factory=dict[str, bool])
    origins: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)

    @property
    def keys_path(self) -> Path:
        """The file of API keys, next to the config file."""
        return self.path.parent / "keys.json"

    @property
    def probes_path(self) -> Path:
        """The file of probe results, next to the config file."""
        return self.path.parent / "probes.json"

    @property
    def price_table_path(self) -> Path:
        """The file of the table of prices, next to the config file."""
        return self.path.parent / "prices.json"

    def chosen_model(self) -> str:
        """Return the name of the configured model.

        Raises:
            NoModelError: none is set.
        """
        if self.model is None:
            raise NoModelError
        return self.model

    def is_argument(self, key: str) -> bool:
        """Return whether an argument or a flag of the command line set a value."""
        return self.origins.get(key, "").startswith(("argument", "--"))


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One line of `show`: a dotted key, its value as users write it, and its source."""

    key: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Setting:
    """How to read a setting: the depth of its values, the names allowed there, and the parser of a value."""

    about: str
    read: Callable[[str], object]
    depth: int = ONE
    names: tuple[str, ...] = ()


class SecretInPlainError(ValueError):
    """A value that may contain a password, which messages must not repeat."""


def _text(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be text on one line")
    return text.strip()


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in _text(text).split(","))))


def _store(text: str) -> Path | PostgresUrl:
    if text == ":memory:":  # as a path, it would be a file of this name
        raise ValueError("must be a file or postgresql://USER@HOST/DATABASE (see --no-store)")
    if not is_postgres_url(text):
        return Path(_text(text)).expanduser().absolute()
    try:
        return PostgresUrl.parse(text)
    except ValueError as error:
        raise SecretInPlainError(str(error)) from None


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(Wording("must be a number such as 0.25")) from None
    if not number.is_finite() or not 0 <= number <= LARGEST:
        raise ValueError(Wording("must be a number, zero or more"))
    return number


def _costs(text: str) -> UsageLimits:
    """Read limits on cost: `0.05` of one command, `0.05, 1/conversation, 5/day`, `none`."""
    costs: dict[str, int] = {}
    for part in (part.strip() for part in text.split(",") if text != "none"):
        amount, slash, per = part.partition("/")
        field = COST_FIELDS.get(f"/{per.strip()}", "") if slash else "cost"
        if not field or field in costs:
            raise ValueError(Wording("must be one amount each of a command, /call, /conversation and /day: 0.05, 5/day"))  # fmt: skip
        try:
            number = _decimal(amount.strip()) * NANO
        except ValueError as error:
            raise ValueError(Wording("{problem}, or none for no limit", problem=error.args[0])) from None
        if number != int(number):
            raise ValueError("has more than nine decimal places")
        costs[field] = int(number)
    return UsageLimits(**costs)


def _seconds(text: str) -> float:
    number = float(_decimal(text))
    if number <= 0:
        raise ValueError("must be seconds, more than zero")
    return number


def _whole(text: str, least: int, most: int, what: str) -> int:
    if not text.isdecimal() or not least <= int(text[:13]) <= most:
        raise ValueError(f"must be a whole number{what}")
    return int(text)


_count = partial(_whole, least=1, most=MOST_ATTEMPTS, what=f" from 1 to {MOST_ATTEMPTS}")
_limit = partial(_whole, least=1, most=LARGEST, what=", one or more")
_kept = partial(_whole, least=0, most=LONGEST_KEPT, what=f" of seconds from 0 to {LONGEST_KEPT}")


def _flag(text: str) -> bool:
    try:
        return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}[text.lower()]
    except KeyError:
        raise ValueError("must be true or false") from None


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
        parts = urlsplit("")
    if not fits or not text.isprintable() or " " in text:
        raise ValueError("must be an address such as http://127.0.0.1:8080/v1")
    if "@" in parts.netloc:
        raise SecretInPlainError("must not contain a user name or password; give the key with `taiwa keys set NAME`")
    return text.rstrip("/")


def _mirror(text: str) -> str:
    return _url(text) if "://" in text else str(Path(_text(text)).expanduser().absolute())


def _price(text: str) -> Decimal | str:
    try:
        return _decimal(text)
    except ValueError:
        return _text(text)


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "model": Setting("the model used when a command names none", _text),
        "store": Setting("the file of the conversations, or postgresql://USER@HOST/DATABASE", _store),
        "served_models": Setting("further models that taiwa serve offers, separated by commas", _names),
        "max_cost": Setting(
            "the cost limit of one command, in the currency of the prices, and of each /call, /conversation and /day; none "
            "for no limit",
            _costs,
        ),
        "timeout": Setting("the time limit of one answer in seconds, retries included", _seconds),
        "attempts": Setting(
            "the number of times that a call is tried; waits that a rate limit asks for do not count", _count
        ),
        "retry_paid": Setting("whether a call that may have been charged is retried", _flag),
        "max_concurrency": Setting("the most calls of a model on a server at a time", _limit),
        "requests_per_minute": Setting("the most requests to a model on a server in a minute", _limit),
        "tokens_per_minute": Setting("the most tokens, read and written, of a model on a server in a minute", _limit),
        "model_mirror": Setting(
            "a folder or an address with model files, which taiwa models pull tries first", _mirror
        ),
        "keep_loaded": Setting("the seconds for which a GGUF model stays loaded after a command; 0 for none", _kept),
        "base_urls": Setting("the address of a provider, by provider", _url, NAMED),
        "aliases": Setting("the model of an alias, by alias", _text, NAMED),
        "capabilities": Setting(
            "capabilities of a model, by model", _flag, TABLE, (*get_args(Capability), *get_args(InputKind), "sampling")
        ),
        "plugins": Setting("off disables the plug-ins of a package, by package", _flag, NAMED),
        "prices": Setting("prices of a model, by model", _price, TABLE, PRICES),
    }
)


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """The text of a value, and its source."""

    text: str
    origin: str


def config_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the config file, which need not exist."""
    named = environ.get("TAIWA_CONFIG")
    if named:
        return Path(named).expanduser().absolute()
    return _base(environ, "XDG_CONFIG_HOME", ".config") / "config.yaml"


def _base(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    named = Path(environ.get(variable, ""))
    if named.is_absolute():  # the XDG standard ignores a relative path
        return named / "taiwa"
    return Path(environ.get("HOME") or Path.home()) / fallback / "taiwa"


def data_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the default folder of conversations."""
    return _base(os.environ if environ is None else environ, "XDG_DATA_HOME", ".local/share")


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of what can be fetched or computed again."""
    return _base(os.environ if environ is None else environ, "XDG_CACHE_HOME", ".cache")


def check_own(path: Path) -> None:
    """Check that only this user, or root, can change a file or folder from which code is run.

    Raises:
        OSError: another user can, or it does not exist.
    """
    found = path.stat()
    if sys.platform != "win32" and (found.st_uid not in (os.getuid(), 0) or found.st_mode & (S_IWGRP | S_IWOTH)):
        raise PermissionError(EPERM, f"other users can change {path}; make it yours, and run chmod go-w")


def load(
    arguments: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    path: Path | None = None,
    *,
    are_flags: bool = False,
) -> Settings:
    """Load all settings; an argument of None is not set. `are_flags`: errors name arguments as on the command line.

    Raises:
        ConfigError: a key is unknown or a value is invalid; the message has the source and the most similar key.
    """
    environ = os.environ if environ is None else environ
    path = config_path(environ) if path is None else path
    found = _from_libraries(environ) | _from_file(path) | _from_environment(environ)
    for name, argument in (arguments or {}).items():
        found |= _from_argument(name, argument, f"--{name.replace('_', '-')}" if are_flags else "argument")
    values: dict[str, Any] = {}
    for keys, leaf in found.items():
        section = values
        for key in keys[:-1]:
            section = section.setdefault(key, {})
        section[keys[-1]] = _value(keys, leaf)
    values["limits"] = values.pop("max_cost", NO_LIMITS)
    values.setdefault("store", data_folder(environ) / "taiwa.db")
    origins = {".".join(keys): leaf.origin for keys, leaf in found.items()}
    for name, part in (("calls", CallSettings), ("models", ModelSettings)):
        values[name] = part(**{each.name: values.pop(each.name) for each in fields(part) if each.name in values})
    return Settings(path=path, origins=origins, **values)


def _from_libraries(environ: Mapping[str, str]) -> dict[Keys, SourcedValue]:
    """Read addresses from the variables that the libraries of the providers read.

    An invalid one becomes an empty address: it prevents a call, which would otherwise go where the user did not send it, but no other
    command.
    """
    found: dict[Keys, SourcedValue] = {}
    for provider, variable in ADDRESS_VARIABLES.items():
        if text := environ.get(variable, "").strip():
            try:
                address = _url(_ollama_address(text) if provider == "ollama" else text)
            except ValueError:
                address = ""
            path = urlsplit(address).path
            if provider == "azure" and address and not path:
                address += "/openai/v1"
            elif provider in ("anthropic", "ollama") and address and not path.endswith("/v1"):
                address += "/v1"  # their libraries append it
            found["base_urls", provider] = SourcedValue(address, variable)
    return found


def _ollama_address(text: str) -> str:
    """Return the address that `OLLAMA_HOST` means: `host`, `:port`, `host:port` or a URL; the address of any interface is this machine.

    Raises:
        ValueError: the port is invalid, or it contains a password.
    """
    parts = urlsplit(text if "://" in text else f"//{text}")
    if "@" in parts.netloc:
        raise ValueError("must not contain a password")
    host = parts.hostname or "127.0.0.1"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (replaced, not listened on)
    default = None if parts.scheme else OLLAMA_PORT
    port = parts.port or default
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme or 'http'}://{place}{'' if port is None else f':{port}'}{parts.path}"


def _from_file(path: Path) -> dict[Keys, SourcedValue]:
    leaves = read_settings(_file_text(path), str(path))
    for keys, leaf in leaves.items():
        _check_key(keys, f"{path}:{leaf.at.line}")
    return {keys: SourcedValue(leaf.text, f"{path}:{leaf.at.line}") for keys, leaf in leaves.items()}


def _file_text(path: Path) -> str:
    try:
        return read_regular_text(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not UTF-8; save the file as UTF-8") from None


def _from_environment(environ: Mapping[str, str]) -> dict[Keys, SourcedValue]:
    found: dict[Keys, SourcedValue] = {}
    variables = {PREFIX + name.upper(): name for name in SETTINGS}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or not text:
            continue
        if variable in variables:
            found |= _spread(variables[variable], text, variable)
        elif variable != "TAIWA_CONFIG" and (near := get_close_matches(variable, variables, 1, cutoff=0.85)):
            # variables of other programs may have the prefix; only a likely typo is an error
            raise ConfigError(f"unknown variable {variable}; did you mean {near[0]}?")
    return found


def _from_argument(name: str, argument: object, origin: str) -> dict[Keys, SourcedValue]:
    if argument is None:
        return {}
    _check_key((name,), origin)
    if not isinstance(argument, Mapping):
        return _spread(name, str(argument), origin)
    leaves = dict(_flat(cast("Mapping[str, object]", argument), (name,)))
    for keys in leaves:
        _check_key(keys, origin)
    return leaves


def _flat(table: Mapping[str, object], above: Keys) -> list[tuple[Keys, SourcedValue]]:
    leaves: list[tuple[Keys, SourcedValue]] = []
    for key, inner in table.items():
        if isinstance(inner, Mapping):
            leaves += _flat(cast("Mapping[str, object]", inner), (*above, key))
        else:
            leaves.append(((*above, key), SourcedValue(str(inner), "argument")))
    return leaves


def _spread(name: str, text: str, origin: str) -> dict[Keys, SourcedValue]:
    """Read a setting from one text; a mapping is written as YAML: `{openai: http://…}`."""
    if SETTINGS[name].depth == ONE:
        return {(name,): SourcedValue(text, origin)}
    leaves = {(name, *keys): leaf for keys, leaf in read_settings(text, origin).items()}
    for keys in leaves:
        _check_key(keys, origin)
    return {keys: SourcedValue(leaf.text, origin) for keys, leaf in leaves.items()}


def _check_key(keys: Keys, place: str) -> None:
    head, last, depth = keys[0], keys[-1], len(keys)
    setting = SETTINGS.get(head)
    if setting is None:
        raise ConfigError(f"{place}: unknown key {head!r}{_nearest(head, tuple(SETTINGS))}")
    if depth > ONE and setting.depth == ONE:
        raise ConfigError(f"{place}: {head} is one value ({setting.about}), not a mapping")
    if depth > setting.depth or not all(keys):
        raise ConfigError(f"{place}: {'.'.join(keys)} cannot have a value; write {_form(head)}")
    if setting.names and depth == setting.depth and last not in setting.names:
        raise ConfigError(
            f"{place}: unknown key {last!r} at the end of {'.'.join(keys)}{_nearest(last, setting.names)}"
        )


def _nearest(word: str, names: tuple[str, ...]) -> str:
    near = get_close_matches(word, names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; the keys are {', '.join(names)}"


def _form(name: str) -> str:
    return f"{name}: NAME: KEY: VALUE" if SETTINGS[name].depth == TABLE else f"{name}: NAME: VALUE"


def _value(keys: Keys, found: SourcedValue) -> object:
    setting = SETTINGS[keys[0]]
    if not found.text and found.origin in ADDRESS_VARIABLES.values():
        return ""
    if len(keys) != setting.depth:
        raise ConfigError(f"{found.origin}: {'.'.join(keys)} is a mapping; write {_form(keys[0])}")
    subject = found.origin if found.origin.startswith("--") else f"{found.origin}: {'.'.join(keys)}"
    try:
        return setting.read(found.text)
    except SecretInPlainError as error:
        raise ConfigError(f"{subject} {error}") from None
    except ValueError as error:
        raise ConfigError(Wording("{name} {problem}, not {value!r}", name=subject, problem=error.args[0], value=found.text[:40])) from None  # fmt: skip


def _keys(key: str) -> Keys:
    """Split a dotted key; names of models contain dots, so only the ends are split off. A name may stand in quotes."""
    head, _, rest = key.partition(".")
    setting = SETTINGS.get(head)
    if setting is None or setting.depth == ONE or not rest:
        return tuple(key.split("."))
    if setting.depth == NAMED:
        return head, unquoted(rest)
    name, _, leaf = rest.rpartition(".")
    return (head, unquoted(name), leaf) if name else (head, leaf)


def unquoted(name: str) -> str:
    """Return a name within a key without the quotes around it."""
    return name[1:-1] if len(name) > 2 and name[0] == name[-1] and name[0] in "'\"" else name


def parse_setting(key: str, text: str, origin: str) -> object:
    """Parse the text of a setting that an argument gives; `origin` names it in errors.

    Raises:
        ConfigError: the text is invalid.
    """
    return _value(_keys(key), SourcedValue(text, origin))


def set_value(path: Path, key: str, value: str) -> None:
    """Write one setting to the config file; `key` is dotted: `model`, `base_urls.openai`, `capabilities.NAME.stop`.

    Raises:
        ConfigError: the key is unknown, the value is invalid, or the file cannot be changed.
    """
    keys = _keys(key)
    _check_key(keys, "config")
    _value(keys, SourcedValue(value, "config"))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"config: {key} contains half a character; use valid Unicode") from None
    write_private(path, set_setting(_file_text(path), keys, value, str(path)))


def missing_prices(path: Path, key: str) -> tuple[str, ...]:
    """Return the missing keys of a price in the config file: input and output are set together."""
    head, *name = _keys(key)[:2]
    values = read_settings(_file_text(path), str(path)) if head == "prices" else {}
    required = [(head, *name, rate) for rate in ("input", "output")] if values else []
    return tuple(".".join(keys) for keys in required if keys not in values)


def remove_value(path: Path, key: str) -> None:
    """Remove one setting, or all of a name (`capabilities.NAME`), from the config file.

    Raises:
        ConfigError: the key is unknown or not set there.
    """
    text = _file_text(path)
    head, _, name = key.partition(".")
    name = unquoted(name)
    whole = any(keys[:2] == (head, name) for keys in read_settings(text, str(path)))
    keys = (head, name) if whole else _keys(key)
    _check_key(keys, "config")
    write_private(path, remove_setting(text, keys, str(path)))


def show(settings: Settings) -> tuple[SettingLine, ...]:
    """Return all values with their sources, in the order of the documentation."""
    rows: list[SettingLine] = []
    parts = (settings, settings.calls, settings.models)
    for name in SETTINGS:
        value = next((getattr(part, name) for part in parts if hasattr(part, name)), None)
        if name == "max_cost":
            rows.append(_row(settings, name, format_cost_limits(settings.limits) or None))
        elif SETTINGS[name].depth == ONE:
            rows.append(_row(settings, name, value))
        else:
            leaves = _flat(cast("Mapping[str, object]", value), (name,))
            rows += [_row(settings, ".".join(keys), leaf.text) for keys, leaf in leaves]
    return tuple(rows)


def _row(settings: Settings, key: str, value: object) -> SettingLine:
    if isinstance(value, tuple):
        value = ", ".join(map(str, cast("tuple[object, ...]", value)))
    words = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return SettingLine(
        key, words.lower() if words in ("True", "False") else words, settings.origins.get(key, "default")
    )
