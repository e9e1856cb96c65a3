"""A small YAML file that people write by hand: read with line numbers, edited without losing a comment.

The file is a mapping of scalars and of mappings. It is read as flat leaves, `("base_urls", "openai") -> Leaf(text,
line)`, and every scalar stays the text that was written, so a price is never rounded by a float.
"""

import os
import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from taiwa.kernel.errors import ConfigError

__all__ = ["Keys", "Leaf", "put", "read", "remove", "write_private"]

Keys: TypeAlias = tuple[str, ...]
LARGEST_FILE_BYTES = 256 * 1024
DEEPEST = 3
INDENT = "  "
PLAIN = re.compile(r"[A-Za-z0-9/]([A-Za-z0-9_./:#-]*[A-Za-z0-9_])?")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar as written, and its line (1 is the first); a YAML null is no leaf at all."""

    text: str
    line: int


@cache
def _yaml() -> ModuleType:
    import yaml  # 30 ms that a run without a config file need not pay

    return yaml


def read(text: str, where: str) -> dict[Keys, Leaf]:
    """Read a mapping as flat leaves; `where` names the text in errors.

    Raises:
        ConfigError: not YAML, not a mapping, a key twice, a list, or far too large.
    """
    root = _compose(text, where)
    leaves: dict[Keys, Leaf] = {}
    if root is not None:
        _flatten(root, (), leaves, where)
    return leaves


def _compose(text: str, where: str) -> Any:  # noqa: ANN401  (PyYAML's nodes are known at run time only)
    if len(text) > LARGEST_FILE_BYTES:
        raise ConfigError(f"{where}: {len(text)} characters are too many for settings (at most {LARGEST_FILE_BYTES})")
    yaml = _yaml()
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        why = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{place}: not YAML: {why}") from None
    except RecursionError:
        raise ConfigError(f"{where}: brackets nested too deep for settings") from None
    if root is not None and root.tag == "tag:yaml.org,2002:null":
        return None
    if root is not None and not hasattr(root.value, "append"):
        raise ConfigError(f"{where}:{_line(root)}: settings are written `key: value`, one per line")
    return root


def _line(node: Any) -> int:  # noqa: ANN401
    return int(node.start_mark.line) + 1


def _flatten(node: Any, above: Keys, leaves: dict[Keys, Leaf], where: str) -> None:  # noqa: ANN401
    if node.id == "sequence":
        raise ConfigError(f"{where}:{_line(node)}: no setting is a list; write `key: value`")
    if node.id == "scalar":
        if node.tag != "tag:yaml.org,2002:null":
            leaves[above] = Leaf(node.value, _line(node))
        return
    if len(above) >= DEEPEST:  # it also ends a file whose anchors point at themselves
        raise ConfigError(f"{where}:{_line(node)}: {'.'.join(above)!r} takes a value here, not a mapping")
    seen: set[str] = set()
    for key, value in node.value:
        if key.id != "scalar":
            raise ConfigError(f"{where}:{_line(key)}: a key must be a word")
        if key.value in seen:
            raise ConfigError(f"{where}:{_line(key)}: {key.value!r} is set twice; keep one")
        seen.add(key.value)
        _flatten(value, (*above, key.value), leaves, where)


def put(text: str, keys: Keys, value: str, where: str) -> str:
    """Set one leaf in the text of a file; everything else, comments too, stays as it is.

    Raises:
        ConfigError: the file cannot be read, or is written in a way that only a person can edit.
    """
    node = _compose(text, where)
    if node is None:
        return _checked(text, _with_line_end(text) + _block(keys, value, ""), keys, value, where)
    depth = 0
    while depth < len(keys):
        inner = _child(node, keys[depth])
        if inner is None:
            return _checked(text, _insert(text, node, keys[depth:], value), keys, value, where)
        node, depth = inner, depth + 1
        if node.id == "scalar":
            break
    start, end = node.start_mark.index, _end(node)
    new = _scalar(value) if depth == len(keys) else "\n" + _block(keys[depth:], value, INDENT * depth).rstrip("\n")
    space = " " if text[start - 1 : start] == ":" else ""
    return _checked(text, text[:start] + space + new + text[end:], keys, value, where)


def _checked(before: str, after: str, keys: Keys, value: str | None, where: str) -> str:
    """Give out an edited text only if it reads as the old one with this one change: YAML has more ways than we edit."""
    wanted = {
        old: leaf.text
        for old, leaf in read(before, where).items()
        if old[: len(keys)] != keys and keys[: len(old)] != old
    }
    if value is not None:
        wanted[keys] = value
    try:
        found = {new: leaf.text for new, leaf in read(after, where).items()}
    except ConfigError:
        found = {}
    if found != wanted:
        raise ConfigError(f"{where}: {'.'.join(keys)} cannot be changed in a file written this way; edit it by hand")
    return after


def _child(node: Any, name: str) -> Any:  # noqa: ANN401
    return next((value for key, value in node.value if key.value == name), None) if node.id == "mapping" else None


def _end(node: Any) -> int:  # noqa: ANN401
    """Where the last character of a node is; a block mapping's own end mark lies after the comments below it."""
    if node.id == "mapping" and not node.flow_style and node.value:
        return _end(node.value[-1][1])
    return int(node.end_mark.index)


def _insert(text: str, node: Any, keys: Keys, value: str) -> str:  # noqa: ANN401
    if node.flow_style:
        inside = "".join(f"{{{_scalar(key)}: " for key in keys[1:]) + _scalar(value) + "}" * (len(keys) - 1)
        at = _end(node) - 1
        comma = ", " if node.value else ""
        return f"{text[:at]}{comma}{_scalar(keys[0])}: {inside}{text[at:]}"
    at = text.find("\n", _end(node))
    head, tail = (text, "") if at < 0 else (text[: at + 1], text[at + 1 :])
    indent = " " * node.value[0][0].start_mark.column
    return _with_line_end(head) + _block(keys, value, indent) + tail


def _block(keys: Keys, value: str, indent: str) -> str:
    lines = [f"{indent}{INDENT * depth}{_scalar(key)}:" for depth, key in enumerate(keys)]
    return "\n".join(lines) + f" {_scalar(value)}\n"


def _with_line_end(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _scalar(text: str) -> str:
    """Write a text so that it reads back as itself, on one line, inside braces too."""
    if PLAIN.fullmatch(text) and text.lower() != "null":
        return text  # PyYAML would quote numbers and names such as `openai:gpt`, which only hides them here
    yaml = _yaml()
    quoted = yaml.safe_dump([text], default_flow_style=True, allow_unicode=True, width=1 << 20).strip()
    return str(quoted[1:-1])


def remove(text: str, keys: Keys, where: str) -> str:
    """Take one leaf (or a whole section) out of the text of a file, with the sections that it leaves empty.

    Raises:
        ConfigError: the key is not there, or the file is written in a way that only a person can edit.
    """
    parents = [_compose(text, where)]
    for key in keys:
        inner = _child(parents[-1], key) if parents[-1] is not None else None
        if inner is None:
            raise ConfigError(f"{where}: {'.'.join(keys)} is not set there")
        parents.append(inner)
    depth = len(keys) - 1
    while depth and len(parents[depth].value) == 1:
        depth -= 1
    return _checked(text, _cut(text, parents[depth], keys[depth]), keys, None, where)


def _cut(text: str, node: Any, name: str) -> str:  # noqa: ANN401
    place = next(index for index, (key, _) in enumerate(node.value) if key.value == name)
    key, value = node.value[place]
    start, end = key.start_mark.index, _end(value)
    if not node.flow_style:
        after = text.find("\n", end)
        return text[: text.rfind("\n", 0, start) + 1] + ("" if after < 0 else text[after + 1 :])
    if place + 1 < len(node.value):
        end = node.value[place + 1][0].start_mark.index
    elif place:
        start = _end(node.value[place - 1][1])
    return text[:start] + text[end:]


def write_private(path: Path, text: str) -> None:
    """Replace a file at one stroke, readable by its owner alone (folder 0700, file 0600).

    Raises:
        ConfigError: the folder or the file cannot be written.
    """
    path = path.resolve()  # a link to a file kept elsewhere stays a link
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ConfigError(f"{path.parent}: cannot be written ({error.strerror}); make the folder yours") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:  # mkstemp made it 0600
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except OSError as error:
        Path(beside).unlink(missing_ok=True)
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); make the folder yours") from None
