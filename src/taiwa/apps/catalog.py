"""Find, load and create app files; parameters."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Literal

from taiwa.apps.front_matter import APP_NAME
from taiwa.apps.parse import divide, read_app
from taiwa.apps.problems import Problem, Problems, quoted, suggest
from taiwa.conversation.app import App, AppSource, Param, ReplyMode, fit_params
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.records import Json
from taiwa.settings import config_path
from taiwa.yamlfile import Scalar, Table, parse_yaml, to_json

__all__ = [
    "BUILT_IN",
    "HANDBOOK",
    "MOST_BYTES",
    "apps",
    "check",
    "convert_param",
    "convert_params",
    "find_path",
    "load",
    "load_app",
    "load_source",
    "load_text",
    "new",
    "own_folder",
    "with_reply",
]


MOST_BYTES = 1024 * 1024


def load(path: Path | str, values: Mapping[str, Json] | None = None) -> App:
    """Read an app file; with `values` its parameters are filled in.

    Raises:
        ConfigError: it cannot be read or has a fault: `path:line: what; mend`.
        InputError: the values are not those that the app needs.
    """
    path = Path(path)
    text = _text(path)
    if isinstance(text, Problem):
        raise ConfigError(text.told(shown(path)))
    app = load_text(text, shown(path), _stem(path))
    return app if values is None else app.with_params(values)


def load_text(text: str, where: str, name: str) -> App:
    """Read the text of an app file; `where` names it in errors.

    Raises:
        ConfigError: it has a fault: `where:line: what; mend`.
    """
    app, faults = read_app(text, name)
    for fault in faults:
        if fault.level == "error":
            raise ConfigError(fault.told(where))
    if app is None:
        raise ConfigError(f"{where}: this is no app file; `taiwa apps new NAME` writes one to begin with")
    return app


def load_source(source: AppSource) -> App:
    """Bring an app back as it was opened, from what its conversation keeps; no file is needed.

    Raises:
        ConfigError: the text has a fault, as it can where an older program wrote it.
        InputError: the parameters are not those of the text.
    """
    app = load_text(source.source, f"the stored app {source.name!r}", source.name)
    return app.with_params(source.params) if isinstance(source.params, dict) else app


def check(path: Path | str) -> tuple[Problem, ...]:
    """Find everything that is wrong in an app file, warnings too, from its top to its end; never raises."""
    path = Path(path)
    text = _text(path)
    if isinstance(text, Problem):
        return (text,)
    return read_app(text, _stem(path))[1]


def with_reply(app: App, reply: ReplyMode) -> App:
    """The same app with another reply mode, written into its source so that a store can bring it back.

    Raises:
        ConfigError: the front matter is written so that only a person can change it.
    """
    parts = divide(app.source.source, Problems())
    tree = parse_yaml(parts.front.text, Problems().error, parts.front.line) if parts.front else None
    if parts.front is None or not isinstance(tree, Table):
        raise ConfigError(f"the app {app.name!r} has no front matter to write `reply` into")
    front = parts.front.text
    held = tree.get("reply")
    if held and isinstance(held.value, Scalar):
        start, end = held.value.span
        changed = f"{front[:start]}{reply}{front[end:]}"
    else:
        changed = f"{' ' * (tree.at.column - 1)}reply: {reply}\n{front}"
    opening, _, rest = app.source.source.partition("\n")
    text = f"{opening}\n{changed}{rest[len(front) :]}"
    made = load_text(text, f"the app {app.name!r} with `reply: {reply}`", app.name)
    return made.with_params(app.values) if app.values else made


def shown(path: Path | str) -> str:
    """A path on one line, whatever bytes it has."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    return re.sub(r"[^\x20-\x7e]", lambda sign: sign[0] if sign[0].isprintable() else ascii(sign[0])[1:-1], text)


def _stem(path: Path) -> str:
    return path.stem.encode("utf-8", "replace").decode()


def _text(path: Path) -> str | Problem:
    """The text of a file, or why there is none."""
    try:
        mode = path.stat().st_mode
        if S_ISDIR(mode):
            return Problem(0, 1, "this is a folder", "name a file that ends with .md")
        if not S_ISREG(mode):
            return Problem(0, 1, "this is no regular file", "name a file that ends with .md")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return Problem(
            0, 1, "there is no such file", "`taiwa apps list` shows the apps, `taiwa apps new NAME` begins one"
        )
    except OSError as error:
        return Problem(0, 1, f"the file cannot be read ({error.strerror})", "check its name and its permissions")
    except ValueError:
        return Problem(0, 1, "this cannot be the name of a file", "take out what cannot be printed")
    if len(data) > MOST_BYTES:
        return Problem(
            0, 1, f"the file has more than {MOST_BYTES} bytes", "an app is instructions, not a collection of texts"
        )
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        return Problem(line, 1, "there is a zero byte, so this is no text", "save the file as text in UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8", "replace")) + 1
        return Problem(line, column, f"the byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8")


BUILT_IN = Path(__file__).with_name("builtin")

HANDBOOK = Path(__file__).with_name("handbook")
"""Documents of a made-up company, to look things up in where nobody has indexed anything."""

TEMPLATE = Path(__file__).with_name("template.md")

Origin = Literal["yours", "built-in"]


@dataclass(frozen=True, slots=True)
class AppListing:
    """An app as a list shows it; `fault` says why it cannot be opened, or is empty."""

    name: str
    about: str
    origin: Origin
    path: Path
    fault: str = ""


def own_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of the user's own apps: `$TAIWA_APPS`, or `apps` beside the config file."""
    environ = os.environ if environ is None else environ
    named = environ.get("TAIWA_APPS")
    return _expanded(named).absolute() if named else config_path(environ).parent / "apps"


def apps(environ: Mapping[str, str] | None = None) -> tuple[AppListing, ...]:
    """List all apps by name; one of the user's own hides a built-in one of the same name."""
    found: dict[str, AppListing] = {}
    for origin, path in _files(environ):
        if path.stem not in found:
            found[path.stem] = _listed(origin, path)
    return tuple(sorted(found.values(), key=lambda listed: listed.name))


def load_app(name: str, environ: Mapping[str, str] | None = None) -> App:
    """Read an app by its name or its path; its parameters are still to be filled in.

    Raises:
        ConfigError: there is none, or it has a fault.
    """
    return load(find_path(name, environ))


def find_path(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """The file of an app; a name with a `/` in it or with `.md` at its end is a path.

    Raises:
        ConfigError: no app has that name.
    """
    if "/" in name or os.sep in name or name.endswith(".md"):
        return _expanded(name)
    files = _files(environ)
    for _, path in files:
        if path.stem == name:
            return path
    names = tuple(dict.fromkeys(path.stem for _, path in files))
    raise ConfigError(f"there is no app {quoted(name)}; {suggest(name, names, 'apps')}")


def new(path: Path, name: str) -> Path:
    """Write a commented app to begin with; an existing file is never touched.

    Raises:
        ConfigError: the name cannot be one, or the file cannot be written.
    """
    if not APP_NAME.fullmatch(name):
        raise ConfigError(f"{quoted(name)} cannot be the name of an app; take letters, digits, `-`, `_` and `.`")
    text = TEMPLATE.read_text(encoding="utf-8").replace("NAME", name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        if path.is_symlink() or path.exists():
            raise ConfigError(f"{shown(path)} is there already; choose another name, or edit that file") from None
        raise ConfigError(f"{shown(path)}: cannot be written ({error.strerror}); choose another place") from None
    return path


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # `~somebody` who is not there: then it is the name of a file
        return Path(text)


def _files(environ: Mapping[str, str] | None) -> list[tuple[Origin, Path]]:
    """Every app file, the user's own first."""
    places: tuple[tuple[Origin, Path], ...] = (("yours", own_folder(environ)), ("built-in", BUILT_IN))
    return [(origin, path) for origin, folder in places for path in _in(folder)]


def _in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".md" and not path.name.startswith("."))
    except OSError:
        return []  # no folder is no app; a path given by hand still gets its error


def _listed(origin: Origin, path: Path) -> AppListing:
    try:
        return AppListing(path.stem, load(path).about, origin, path)
    except ConfigError as error:
        return AppListing(path.stem, "", origin, path, error.message)


def convert_params(app: App, texts: Mapping[str, str]) -> dict[str, Json]:
    """Read the values of parameters that came as `-p NAME=VALUE`.

    Raises:
        InputError: the app has no such parameter, or the text is no value of its type.
    """
    known = {param.name: param for param in app.params}
    for name in texts:
        if name not in known:
            mend = suggest(name, tuple(known), "parameters")
            raise InputError(f"the app {app.name!r} has no parameter {quoted(name)}; {mend}")
    return {name: convert_param(known[name], text) for name, text in texts.items()}


def convert_param(param: Param, text: str) -> Json:
    """Read one value: as it stands where the type takes a text, else as YAML (`3`, `true`, `[en, ja]`, JSON too).

    >>> convert_param(Param("n", "int(1..)"), "3"), convert_param(Param("to", "list[str]"), "[en, ja]")
    (3, ['en', 'ja'])

    Raises:
        InputError: the text is no value of the parameter's type.
    """
    try:
        return fit_params(param, text)
    except InputError:
        tree = parse_yaml(text, Problems().error)
        if tree is None:
            raise
    return fit_params(param, to_json(tree))
