"""Find, load, check and create app files; convert the values of their parameters."""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from taiwa.apps.app_file import APP_NAME, Problem, Problems, names_type_file, quoted, read_app, split_file, suggest
from taiwa.conversation.app import App, AppSource, Param, fit_params, restore_options
from taiwa.conversation.code_files import CodeFile, code_files, pin_files
from taiwa.i18n import gettext_noop
from taiwa.kernel.attachments import FOLDER, NOT_REGULAR, open_regular, path_kind, real_path
from taiwa.kernel.errors import ConfigError, InputError, check_argument, file_errors
from taiwa.kernel.serialization import Json
from taiwa.plugins import find_plugin, plugin_app, plugin_names
from taiwa.settings import config_path
from taiwa.yamlfile import Items, Scalar, Table, parse_yaml, to_json

DEFAULT_APP = "plain"
"""The app of a conversation that names none."""
MAX_BYTES = 1024 * 1024


def load(path: Path | str) -> App:
    """Load an app file, without values of its parameters.

    Raises:
        ConfigError: it cannot be read or has an error: `path:line: message; hint`.
    """
    path = Path(path)
    return (_built_in if path.parent == BUILT_IN else _load)(path)


def _load(path: Path) -> App:
    text = _read(path)
    text = pin_files(text, path.parent) if ".py:" in text else text
    text = pin_folders(text, path.parent) if "documents:" in text else text
    return load_text(text, printable_path(path), _stem(path), path.parent)


_built_in = cache(_load)
"""A file of the package stays as it is."""


def values_of(app: App, built_in: str) -> dict[str, Any]:
    """Return the values of the parameters of an app, and for those that it lacks the defaults of a built-in one."""
    return {param.name: param.default for param in load(BUILT_IN / f"{built_in}.md").params} | dict(app.values)


def load_text(text: str, where: str, name: str, folder: Path | None = None) -> App:
    """Load the text of an app file, which is in `folder`; `where` names it in errors.

    Raises:
        ConfigError: it has an error: `where:line: message; hint`.
    """
    app, problems = read_app(text, name, folder)
    for problem in problems:
        if problem.level == "error":
            raise ConfigError(problem.format(where))
    if app is None:
        raise ConfigError(f"{where}: is not an app file; `taiwa apps new NAME` creates one")
    return app


def load_source(source: AppSource) -> App:
    """Load an app from its stored source with the values of its parameters.

    Raises:
        ConfigError: the text has an error, as a text of another version can.
        InputError: the values do not fit the parameters, or the options the app.
    """
    app = _shipped(source) or load_text(source.source, f"the stored app {source.name!r}", source.name)
    app = app.with_params(source.params) if isinstance(source.params, dict) and source.params else app
    return app.with_options(restore_options(source.options))


def _shipped(source: AppSource) -> App | None:
    """Return the built-in app of a source, which need not be read again."""
    if not APP_NAME.fullmatch(source.name):
        return None
    with suppress(ConfigError):
        app = _built_in(BUILT_IN / f"{source.name}.md")
        return app if app.source == AppSource(source.name, source.source) else None
    return None


def check(path: Path | str) -> tuple[Problem, ...]:
    """Return all errors and warnings of an app file in its order; never raises."""
    path = Path(path)
    text = _text(path)
    if isinstance(text, Problem):
        return (text,)
    return read_app(pin_files(text, path.parent), _stem(path), path.parent)[1]


def pin_folders(text: str, folder: Path) -> str:
    """Write the whole path of each folder or file next to an app into its `documents`: a stored conversation has no other place.

    The name of an index stays as it is.
    """
    opening, front, rest, tree = split_front(text)
    entry = None if tree is None else tree.get("documents")
    named = entry.value.get("in") if entry is not None and isinstance(entry.value, Table) else entry
    if named is None:
        return text
    listed = named.value.items if isinstance(named.value, Items) else (named.value,)
    for item in sorted((each for each in listed if isinstance(each, Scalar)), key=lambda each: -each.span[0]):
        if place := _whole_path(item.text, folder):
            front = f"{front[: item.span[0]]}{json.dumps(place)}{front[item.span[1] :]}"
    return f"{opening}{front}{rest}"


def with_places(app: App, values: Mapping[str, Json]) -> App:
    """Return the app with its parameters filled in, where a folder or file to search has its whole path, as by `pin_folders`."""
    named = values.get("in") if app.documents is not None else None
    if not isinstance(named, list):
        return app.with_params(values)
    places = [(isinstance(each, str) and _whole_path(each, Path())) or each for each in named]
    return app.with_params({**values, "in": places})


def _whole_path(name: str, folder: Path) -> str:
    """Return the whole path of what a name leads to from a folder; '' if there is nothing."""
    place = folder / os.path.expanduser(name)  # noqa: PTH111  (`Path` fails for an unknown user)
    return str(real_path(place)) if name and path_kind(place) else ""


def split_front(text: str) -> tuple[str, str, str, Table | None]:
    """Split the text of an app: its opening rule, its front matter, the rest from the closing rule on; and the table of the front
    matter, None if it cannot be read.
    """
    front = split_file(text, Problems()).front
    tree = None if front is None else parse_yaml(front.text, Problems().error, front.line)
    start = text.find("\n") + 1
    end = start + (0 if front is None else len(front.text))
    return text[:start], text[start:end], text[end:], tree if isinstance(tree, Table) else None


def own_code(path: Path | str) -> tuple[CodeFile, ...]:
    """Return the Python files next to an app file that it names: of its reducers, its tools, and the program of its turns.

    Raises:
        ConfigError: the app file or one of them cannot be read.
    """
    path = Path(path)
    return tuple(code_files(_read(path), path.parent))


def printable_path(path: Path | str) -> str:
    """Return a path on one line, unprintable bytes as escapes."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    return re.sub(r"[^\x20-\x7e]", lambda sign: sign[0] if sign[0].isprintable() else ascii(sign[0])[1:-1], text)


def _stem(path: Path) -> str:
    return path.stem.encode("utf-8", "replace").decode()


def _read(path: Path) -> str:
    text = _text(path)
    if isinstance(text, Problem):
        raise ConfigError(text.format(printable_path(path)))
    return text


def _text(path: Path) -> str | Problem:
    """Return the text of a file, or the problem that prevents it."""
    try:
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Problem(0, 1, "file not found", "`taiwa apps list` prints the apps, `taiwa apps new NAME` creates one")
    except OSError as error:
        if error.strerror in (NOT_REGULAR, FOLDER):
            return Problem(0, 1, error.strerror, "name a file that ends with .md")
        return Problem(0, 1, f"cannot read the file ({error.strerror})", "check its permissions")
    if len(data) > MAX_BYTES:
        return Problem(0, 1, f"the file has more than {MAX_BYTES} bytes", "move documents to an index")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        return Problem(line, 1, "the file contains a zero byte", "save the file as UTF-8 text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8", "replace")) + 1
        return Problem(line, column, f"the byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8")


def read_bounded(path: Path, most: int, too_large: str, *, where: str = "") -> tuple[bytes, str]:
    """Return the bytes and the text of a UTF-8 file; `where` names it in errors instead of its path.

    Raises:
        InputError: it cannot be read, is not UTF-8, or has more than `most` bytes (`too_large` is that message).
    """
    where = where or str(path)
    with file_errors(f"read {where}", InputError), open_regular(path) as stream:
        raw = stream.read(most + 1)
    if len(raw) > most:
        raise InputError(f"{where} {too_large}")
    try:
        return raw, raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}:{raw.count(10, 0, error.start) + 1}: not UTF-8 at byte {error.start:,}") from None


BUILT_IN = Path(__file__).with_name("builtin")

BUILT_IN_TEXTS = (
    gettext_noop("Analyse sentence after sentence; keeps every parse, and the type, mood and thread of the text"),
    gettext_noop("Extract a value of a type from a text"),
    gettext_noop("For whom, as in user:ann or group:hr?"),
    gettext_noop("Search documents, and ask for clarification if a question is unclear"),
    gettext_noop("Take orders at a café, in English and Japanese; keeps each line, corrections and the status"),
    gettext_noop("Solve problems step by step; tools do the calculations"),
    gettext_noop("Talk about anything; keeps the topics, a summary, and how sure and how clear the talk is"),
    gettext_noop("Talk with the model as it is; no instructions, and no state"),
    gettext_noop("Target language"),
    gettext_noop("Translate text after text; a translation given in parentheses is used from then on"),
    gettext_noop("Which indexes or folders?"),
    gettext_noop("Write a story together, paragraph by paragraph; a summary keeps it consistent"),
    gettext_noop("Write, explain and mend programs; keeps the topics and a summary of what is being built"),
)
"""Descriptions of the built-in apps and their parameters, for the catalogue `cli`."""

HANDBOOK = Path(__file__).with_name("handbook")
"""Documents of a fictional company, searched if no index is named."""

TEMPLATE = Path(__file__).with_name("template.md")

Origin = Literal["yours", "built-in", "plug-in"]


@dataclass(frozen=True, slots=True)
class AppListing:
    """An entry of the list of apps; `problem` is the error of an app that cannot be opened."""

    name: str
    about: str
    origin: Origin
    path: Path
    problem: str = ""


def user_folder() -> Path:
    """Return the folder of the user's apps: `$TAIWA_APPS`, or `apps` next to the config file."""
    named = os.environ.get("TAIWA_APPS")
    return _expanded(named).absolute() if named else config_path(os.environ).parent / "apps"


def apps() -> tuple[AppListing, ...]:
    """List all apps by name; a user's app hides a built-in app of the same name, which hides one of a plug-in."""
    listings: dict[str, AppListing] = {}
    for origin, path in _files():
        if path.stem not in listings:
            listings[path.stem] = _listed(origin, path)
    for name in plugin_names("apps"):
        if name not in listings:
            try:
                listings[name] = _listed("plug-in", find_path(name))
            except ConfigError as error:
                listings[name] = AppListing(name, "", "plug-in", Path(), error.message)
    return tuple(sorted(listings.values(), key=lambda listed: listed.name))


def load_app(name: str) -> App:
    """Load an app by its name or path, without values of its parameters.

    Raises:
        ConfigError: the app was not found or has an error.
    """
    check_argument("the app", name, str, "a name or a path")
    return load(find_path(name))


def load_unchanged(name: str) -> App:
    """Load an app like `load_app`, but read a file again only if it has changed; a server does this for every request.

    Raises:
        ConfigError: the app was not found or has an error.
    """
    check_argument("the app", name, str, "a name or a path")
    path = name if "/" in name and name[0] != "~" else str(find_path(name))
    try:
        known = os.stat(path)  # noqa: PTH116  (a `Path` costs more than the look)
    except OSError:
        return load(Path(path))
    app, names_file = _loaded(path, known.st_mtime_ns, known.st_size)
    return load(Path(path)) if names_file else app  # the file that it names may have changed


@lru_cache(maxsize=64)
def _loaded(path: str, mtime_ns: int, size: int) -> tuple[App, bool]:
    """Return an app, and whether it names a file that is a part of it."""
    del mtime_ns, size  # of the version of the file
    text = _read(Path(path))
    tree = split_front(text)[3]
    answer = None if tree is None else tree.get("answer")
    return load(Path(path)), ".py:" in text or (answer is not None and names_type_file(answer.value))


def find_path(name: str) -> Path:
    """Return the path of an app; a name that contains `/` or ends with `.md` is a path.

    Raises:
        ConfigError: the app was not found.
    """
    if "/" in name or os.sep in name or name.endswith(".md"):
        return _expanded(name)
    for folder in (user_folder(), BUILT_IN):
        with suppress(OSError):
            if name[:1] != "." and (path := folder / f"{name}.md").exists():
                return path
    if (plugin := find_plugin("apps", name)) is not None:
        return plugin_app(plugin)
    known = dict.fromkeys((*(path.stem for _, path in _files()), *plugin_names("apps")))
    is_here = path_kind(f"{name}.md") == "file"
    remedy = f"did you mean the file {name}.md?" if is_here else suggest(name, tuple(known), "apps")
    raise ConfigError(f"app {quoted(name)} not found; {remedy}")


def new(path: Path, name: str) -> Path:
    """Create an app file from the commented template; an existing file is never changed.

    Raises:
        ConfigError: the name is not valid, or the file exists or cannot be written.
    """
    return write_app(path, name, TEMPLATE.read_text(encoding="utf-8").replace("NAME", name))


def app_path(name: str) -> Path:
    """Return where an app file is created: a path, which ends with `.md`, or a name in the folder of the user's apps.

    Raises:
        ConfigError: it is neither, such as `../tutor`.
    """
    if name.endswith(".md"):
        return _expanded(name)
    _check_name(name)
    return user_folder() / f"{name}.md"


def _check_name(name: str) -> None:
    if not APP_NAME.fullmatch(name):
        raise ConfigError(
            f"{quoted(name)} is not a valid app name; use letters, digits, `-`, `_` and `.`, or a path that ends with .md"
        )


def write_app(path: Path, name: str, text: str) -> Path:
    """Create an app file; an existing file is never changed.

    Raises:
        ConfigError: the name is not valid, or the file exists or cannot be written.
    """
    _check_name(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        reason = f": cannot be written ({error.strerror}); choose another place"
        if path.is_symlink() or path.exists():
            reason = " already exists; choose another name, or edit that file"
        raise ConfigError(f"{printable_path(path)}{reason}") from None
    return path


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # the user of `~user` is unknown: it is the name of a file
        return Path(text)


def _files() -> list[tuple[Origin, Path]]:
    """Return all app files, those of the user first."""
    places: tuple[tuple[Origin, Path], ...] = (("yours", user_folder()), ("built-in", BUILT_IN))
    files: list[tuple[Origin, Path]] = []
    for origin, folder in places:
        with suppress(OSError):  # a missing folder contains no apps; an explicit path is still an error
            paths = sorted(path for path in folder.iterdir() if path.suffix == ".md" and path.name[0] != ".")
            files.extend((origin, path) for path in paths)
    return files


def _listed(origin: Origin, path: Path) -> AppListing:
    try:
        return AppListing(path.stem, load(path).about, origin, path)
    except ConfigError as error:
        return AppListing(path.stem, "", origin, path, error.message)


def convert_params(app: App, texts: Mapping[str, str]) -> dict[str, Json]:
    """Convert the values of parameters from text.

    Raises:
        InputError: the app does not have the parameter, or the text is not a value of its type.
    """
    known = {param.name: param for param in app.params}
    for name in texts:
        if name not in known:
            hint = suggest(name, tuple(known), "parameters")
            raise InputError(f"the app {app.name!r} has no parameter {quoted(name)}; {hint}")
    return {name: convert_param(known[name], text) for name, text in texts.items()}


def convert_param(param: Param, text: str) -> Json:
    """Convert one value: unchanged if the type accepts a text, else from YAML (`3`, `true`, `[en, ja]`) or JSON.

    >>> convert_param(Param("n", "int(1..)"), "3"), convert_param(Param("to", "list[str]"), "[en, ja]")
    (3, ['en', 'ja'])

    Raises:
        InputError: the text is not a value of the parameter's type.
    """
    try:
        return fit_params(param, text)
    except InputError:
        tree = parse_yaml(text, Problems().error)
        if tree is None:
            raise
    return fit_params(param, to_json(tree))
