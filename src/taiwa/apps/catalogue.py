"""Where apps are: a path, the user's own folder, the package."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from taiwa.apps.faults import nearest, quoted
from taiwa.apps.front import APP_NAME
from taiwa.apps.load import load, shown
from taiwa.conversation.app import App
from taiwa.kernel.errors import ConfigError
from taiwa.settings import config_path

__all__ = ["BUILT_IN", "HANDBOOK", "Listed", "apps", "find", "find_path", "new", "own_folder"]

BUILT_IN = Path(__file__).with_name("builtin")
HANDBOOK = Path(__file__).with_name("handbook")
"""Documents of a made-up company, to look things up in where nobody has indexed anything."""
TEMPLATE = Path(__file__).with_name("template.md")
Origin = Literal["yours", "built-in"]


@dataclass(frozen=True, slots=True)
class Listed:
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


def apps(environ: Mapping[str, str] | None = None) -> tuple[Listed, ...]:
    """List all apps by name; one of the user's own hides a built-in one of the same name."""
    found: dict[str, Listed] = {}
    for origin, path in _files(environ):
        if path.stem not in found:
            found[path.stem] = _listed(origin, path)
    return tuple(sorted(found.values(), key=lambda listed: listed.name))


def find(name: str, environ: Mapping[str, str] | None = None) -> App:
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
    raise ConfigError(f"there is no app {quoted(name)}; {nearest(name, names, 'apps')}")


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


def _listed(origin: Origin, path: Path) -> Listed:
    try:
        return Listed(path.stem, load(path).about, origin, path)
    except ConfigError as error:
        return Listed(path.stem, "", origin, path, error.message)
