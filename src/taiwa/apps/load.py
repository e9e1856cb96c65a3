"""App files on a disk: read, checked, opened with parameters, and brought back from a store."""

import re
from collections.abc import Mapping
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from taiwa.apps.faults import Fault, Faults
from taiwa.apps.read import read_app
from taiwa.apps.sections import divide
from taiwa.conversation.app import App, ReplyMode
from taiwa.conversation.node import AppSource
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.records import Json
from taiwa.yamlfile import Scalar, Table, parse_yaml

__all__ = ["MOST_BYTES", "check", "load", "load_source", "load_text", "with_reply"]

MOST_BYTES = 1024 * 1024


def load(path: Path | str, values: Mapping[str, Json] | None = None) -> App:
    """Read an app file; with `values` its parameters are filled in.

    Raises:
        ConfigError: it cannot be read or has a fault: `path:line: what; mend`.
        InputError: the values are not those that the app needs.
    """
    path = Path(path)
    text = _text(path)
    if isinstance(text, Fault):
        raise ConfigError(text.told(shown(path)))
    app = load_text(text, shown(path), _stem(path))
    return app if values is None else app.opened(values)


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
    return app.opened(source.params) if isinstance(source.params, dict) else app


def check(path: Path | str) -> tuple[Fault, ...]:
    """Find everything that is wrong in an app file, warnings too, from its top to its end; never raises."""
    path = Path(path)
    text = _text(path)
    if isinstance(text, Fault):
        return (text,)
    return read_app(text, _stem(path))[1]


def with_reply(app: App, reply: ReplyMode) -> App:
    """The same app with another reply mode, written into its source so that a store can bring it back.

    Raises:
        ConfigError: the front matter is written so that only a person can change it.
    """
    parts = divide(app.source.source, Faults())
    tree = parse_yaml(parts.front.text, Faults().error, parts.front.line) if parts.front else None
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
    return made.opened(app.values) if app.values else made


def shown(path: Path | str) -> str:
    """A path on one line, whatever bytes it has."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    return re.sub(r"[^\x20-\x7e]", lambda sign: sign[0] if sign[0].isprintable() else ascii(sign[0])[1:-1], text)


def _stem(path: Path) -> str:
    return path.stem.encode("utf-8", "replace").decode()


def _text(path: Path) -> str | Fault:
    """The text of a file, or why there is none."""
    try:
        mode = path.stat().st_mode
        if S_ISDIR(mode):
            return Fault(0, 1, "this is a folder", "name a file that ends with .md")
        if not S_ISREG(mode):
            return Fault(0, 1, "this is no regular file", "name a file that ends with .md")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return Fault(
            0, 1, "there is no such file", "`taiwa apps list` shows the apps, `taiwa apps new NAME` begins one"
        )
    except OSError as error:
        return Fault(0, 1, f"the file cannot be read ({error.strerror})", "check its name and its permissions")
    except ValueError:
        return Fault(0, 1, "this cannot be the name of a file", "take out what cannot be printed")
    if len(data) > MOST_BYTES:
        return Fault(
            0, 1, f"the file has more than {MOST_BYTES} bytes", "an app is instructions, not a collection of texts"
        )
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        return Fault(line, 1, "there is a zero byte, so this is no text", "save the file as text in UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8", "replace")) + 1
        return Fault(line, column, f"the byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8")
