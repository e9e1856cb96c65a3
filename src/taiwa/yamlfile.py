"""The YAML reader: values with line and column; edits in place that keep comments; private files.

It reads PyYAML's events rather than its nodes: events carry positions, need no recursion before the depth is known, and show anchors,
aliases and tags before anything is built from them. All three are refused, so a document cannot expand exponentially or name
a Python object. Plain scalars follow YAML 1.2: `yes`, `on`, `12:30` and `2024-01-01` are texts. Keys are always texts.
"""

import math
import os
import re
import stat
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from taiwa.kernel.attachments import MAX_BYTES, open_regular, real_path
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.serialization import Json, parse_json

if TYPE_CHECKING:
    import yaml  # imported where it is used: it takes 30 ms, which a run without a config file saves

Plain: TypeAlias = bool | int | float | str | None
Keys: TypeAlias = tuple[str, ...]

MAX_CHARS = 4 << 20
MAX_SETTINGS_CHARS = 256 << 10
MAX_DEPTH = 20
MAX_NODES = 100_000
"""Maximum number of values of a text; PyYAML reads about 20,000 per second."""
MAX_SETTINGS_DEPTH = 3
MAX_DIGITS = 100
SHOWN_CHARS = 60
INDENT = "  "
INT = re.compile(r"[-+]?[0-9]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
SURROGATE = re.compile("[\ud800-\udfff]")
UNQUOTED = re.compile(r"[A-Za-z0-9/]([A-Za-z0-9_./:#-]*[A-Za-z0-9_])?")
WORDS: dict[str, Plain] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
HINTS = (
    ("'\\t'", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", "a text that holds `: ` stands in quotes, or under a `|`"),
    ("stream end", "close what was opened: a quote, a bracket or a brace"),
    ("unexpected end of stream", "close what was opened: a quote, a bracket or a brace"),
    ("expected ',' or", "in braces or brackets, a text or type with special signs stands in quotes"),
    ("document start", "keep to one document: no `---` or `...` inside"),
    ("cannot start any token", "put the text in quotes"),
    ("could not find expected ':'", "write `key: value`, or put a text of several lines under a `|`"),
)
OTHER_HINT = "write `key: value`, one per line, indented alike; a text with special signs stands in quotes"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A position in a file; line and column begin at 1, and line 0 means the complete file."""

    line: int
    column: int = 1


Report: TypeAlias = Callable[[Location, str, str], None]
"""Takes a problem: its location, a description, and a remedy."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value: `text` as written, `value` as meant, `span` its offsets in the text that was read."""

    text: str
    value: Plain
    at: Location
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple["Tree", ...]
    at: Location
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a table with its value; `span` reaches from the key to the end of the value."""

    key: str
    value: "Tree"
    at: Location
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Table:
    """Keys and values in the order of the file, each key once; `flow` if it is written in braces."""

    entries: tuple[Entry, ...]
    at: Location
    span: tuple[int, int] = (0, 0)
    flow: bool = False

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key."""
        return next((entry for entry in self.entries if entry.key == key), None)


Tree: TypeAlias = Scalar | Items | Table


class _UnreadableError(Exception):
    """The text cannot be read any further; the problem was reported."""


def parse_yaml(
    text: str, report: Report, line: int = 1, *, max_chars: int = MAX_CHARS, typed: bool = True
) -> Tree | None:
    """Parse YAML whose first line is the given line of its file; return None if it is empty or unreadable.

    Every problem goes to `report`; a duplicate key keeps its first value. With `typed=False` every scalar but null keeps its
    text as its value, so that a price is never rounded by a float.
    """
    if not text:  # as of a config file that does not exist
        return None
    import yaml

    if len(text) > max_chars:
        report(Location(0), f"{len(text)} characters are too many (at most {max_chars})", "make it smaller")
        return None
    parser = _Parser(text, line, report, typed)
    try:
        return parser.document()
    except _UnreadableError:
        return None
    except yaml.YAMLError as error:
        parser.complain(error)
        return None


def read_yaml(text: str, where: str, *, max_chars: int = MAX_SETTINGS_CHARS, typed: bool = True) -> Tree | None:
    """Parse YAML; `where` names the text in errors. None if it is empty.

    Raises:
        ConfigError: the first problem, as `where:line: problem; hint`.
    """

    def refuse(at: Location, message: str, hint: str) -> NoReturn:
        place = f"{where}:{at.line}" if at.line else where
        raise ConfigError(f"{place}: {message}; {hint}") from None

    return parse_yaml(text, refuse, max_chars=max_chars, typed=typed)


def to_json(tree: Tree) -> Json:
    """Return the plain value of a tree."""
    if isinstance(tree, Scalar):
        return tree.value
    if isinstance(tree, Items):
        return [to_json(item) for item in tree.items]
    return {entry.key: to_json(entry.value) for entry in tree.entries}


def write_yaml(data: dict[str, Json]) -> str:
    """Write an object as YAML, its innermost lists and objects on one line each.

    >>> write_yaml({"state": {"city": {"type": "str"}}})
    'state:\\n  city: {type: str}\\n'
    """
    import yaml

    is_flat = not any(isinstance(value, dict | list) for value in data.values())
    style = False if is_flat else None
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120, default_flow_style=style)


@dataclass(slots=True)
class _Parser:
    """Builds a tree from events."""

    text: str
    line: int
    report: Report
    typed: bool
    starts: list[int] = field(default_factory=list[int])
    nodes: int = 0

    def __post_init__(self) -> None:
        # PyYAML also counts U+0085 and U+2028 as line ends, which no editor does: lines are counted here.
        self.starts = [0, *(newline.end() for newline in re.finditer("\n", self.text))]

    def location(self, index: int) -> Location:
        row = bisect_right(self.starts, index) - 1
        return Location(self.line + row, index - self.starts[row] + 1)

    def document(self) -> Tree | None:
        import yaml

        events = yaml.parse(self.text, Loader=yaml.SafeLoader)
        tree: Tree | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if tree is not None:
                    self.fail(event, "a second document begins here", "keep to one: no `---` or `...` inside")
                tree = self.tree(next(events), events, 1)
        return tree

    def tree(self, event: "yaml.Event", events: "Iterator[yaml.Event]", depth: int) -> Tree:
        """Build what an event begins."""
        import yaml

        start = _index(event.start_mark)
        at = self.location(start)
        self.refuse_references(event)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.fail(event, f"more than {MAX_NODES:,} values", "divide the file")
        if depth > MAX_DEPTH:
            self.fail(event, f"nested deeper than {MAX_DEPTH}", "make it flatter")
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, at)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Tree] = []
            while not isinstance(inner := next(events), yaml.SequenceEndEvent):
                items.append(self.tree(inner, events, depth + 1))
            end = items[-1].span[1] if items and not event.flow_style else _index(inner.end_mark)
            return Items(tuple(items), at, (start, end))
        assert isinstance(event, yaml.MappingStartEvent)
        entries: dict[str, Entry] = {}
        end = start
        while not isinstance(inner := next(events), yaml.MappingEndEvent):
            entry = self.entry(inner, events, depth)
            end = entry.span[1]
            if entry.key in entries:
                first = entries[entry.key].at.line
                self.report(entry.at, f"{_quoted(entry.key)} is set twice (first in line {first})", "keep one")
            else:
                entries[entry.key] = entry
        # The end mark of a block mapping is after the comments below it.
        span = (start, _index(inner.end_mark) if event.flow_style else end)
        return Table(tuple(entries.values()), at, span, bool(event.flow_style))

    def entry(self, event: "yaml.Event", events: "Iterator[yaml.Event]", depth: int) -> Entry:
        """Build a key and its value."""
        import yaml

        self.refuse_references(event)
        if not isinstance(event, yaml.ScalarEvent) or not event.value:
            hint = "write `key: value`; a text that begins with `{` or `[` stands in quotes"
            self.fail(event, "a key must be a word", hint)
        start, key = _index(event.start_mark), self.whole_characters(event)
        tree = self.tree(next(events), events, depth + 1)
        return Entry(key, tree, self.location(start), (start, tree.span[1]))

    def scalar(self, event: "yaml.ScalarEvent", at: Location) -> Scalar:
        """Build a value; only an unquoted scalar can mean something other than its text."""
        text = self.whole_characters(event)
        span = (_index(event.start_mark), _index(event.end_mark))
        if event.style is not None:
            return Scalar(text, text, at, span)
        if text in WORDS and (self.typed or WORDS[text] is None):
            return Scalar(text, WORDS[text], at, span)
        if self.typed and INT.fullmatch(text) and len(text) <= MAX_DIGITS:
            return Scalar(text, int(text), at, span)
        if self.typed and FLOAT.fullmatch(text):
            number = float(text)
            if INT.fullmatch(text) or not math.isfinite(number):
                self.fail(event, "a number too long to keep", "put it in quotes if it is a text")
            return Scalar(text, number, at, span)
        return Scalar(text, text, at, span)

    def whole_characters(self, event: "yaml.ScalarEvent") -> str:
        """Return the text of a scalar; an escape such as \\ud800 is half a character, which no message can carry."""
        text = str(event.value)
        if SURROGATE.search(text):
            self.fail(event, "an escape names half a letter", "write the letter itself, or \\U and its eight digits")
        return text

    def refuse_references(self, event: "yaml.Event") -> None:
        """Refuse an anchor, an alias or a tag."""
        import yaml

        marks = (("&", "anchor"), ("!", "tag")) if not isinstance(event, yaml.AliasEvent) else (("*", "anchor"),)
        for sign, name in marks:
            value: object = getattr(event, name, None)
            if value is not None:
                what = "alias" if sign == "*" else name
                word = str(value) if sign == "!" else f"{sign}{value}"
                hint = f"write the value itself; a text that begins with {sign} stands in quotes"
                self.fail(event, f"the {what} {_quoted(word)}", hint)

    def fail(self, event: "yaml.Event", message: str, hint: str) -> NoReturn:
        """Report a problem and stop reading."""
        self.report(self.location(_index(event.start_mark)), message, hint)
        raise _UnreadableError

    def complain(self, error: "yaml.YAMLError") -> None:
        """Report an error of PyYAML."""
        import yaml

        if isinstance(error, yaml.reader.ReaderError):
            index = int(error.position)
            sign = f"U+{ord(self.text[index]):04X}" if index < len(self.text) else "a sign"
            hint = "remove it, or write it as an escape in double quotes"
            self.report(self.location(index), f"{sign} is not allowed in YAML", hint)
            return
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        hint = next((hint for word, hint in HINTS if word in problem), OTHER_HINT)
        self.report(self.location(_index(mark)), f"not YAML: {problem}", hint)


def _index(mark: object) -> int:
    """Return the offset of a mark; PyYAML has two kinds of marks, and its type stubs allow None."""
    index: object = getattr(mark, "index", 0)
    return index if isinstance(index, int) else 0


def _quoted(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")


def read_settings(text: str, where: str) -> dict[Keys, Scalar]:
    """Read a mapping of scalars and of mappings as flat leaves: `("base_urls", "openai") -> Scalar`. A null sets nothing.

    Every value is the text as written; `where` names the text in errors.

    Raises:
        ConfigError: it is not such a mapping, or too large.
    """
    leaves: dict[Keys, Scalar] = {}
    root = read_yaml(text, where, typed=False)
    if root is not None:
        _flatten(root, (), leaves, where)
    return leaves


def _flatten(tree: Tree, keys: Keys, leaves: dict[Keys, Scalar], where: str) -> None:
    if isinstance(tree, Items):
        raise ConfigError(f"{where}:{tree.at.line}: a setting cannot be a list; write `key: value`")
    if isinstance(tree, Table):
        if len(keys) >= MAX_SETTINGS_DEPTH:
            raise ConfigError(f"{where}:{tree.at.line}: {'.'.join(keys)!r} takes a value here, not a mapping")
        for entry in tree.entries:
            _flatten(entry.value, (*keys, entry.key), leaves, where)
    elif tree.value is not None:
        if not keys:
            raise ConfigError(f"{where}:{tree.at.line}: settings are written `key: value`, one per line")
        leaves[keys] = tree


def _settings(text: str, where: str) -> Table | None:
    """Return the mapping of a file whose settings can be read; None if it sets nothing."""
    read_settings(text, where)
    root = read_yaml(text, where, typed=False)
    return root if isinstance(root, Table) else None


def set_setting(text: str, keys: Keys, value: str, where: str) -> str:
    """Return the text of a file with one value set; everything else, including comments, stays unchanged.

    Raises:
        ConfigError: the file cannot be read, or must be edited by hand.
    """
    tree: Tree | None = _settings(text, where)
    if tree is None:
        return _checked(text, _with_line_end(text) + _block(keys, value, ""), keys, value, where)
    depth = 0
    while isinstance(tree, Table) and depth < len(keys):
        entry = tree.get(keys[depth])
        if entry is None:
            return _checked(text, _insert(text, tree, keys[depth:], value), keys, value, where)
        tree, depth = entry.value, depth + 1
    start, end = tree.span
    new = yaml_text(value) if depth == len(keys) else "\n" + _block(keys[depth:], value, INDENT * depth).rstrip("\n")
    space = " " if text[start - 1 : start] == ":" else ""
    return _checked(text, text[:start] + space + new + text[end:], keys, value, where)


def _checked(before: str, after: str, keys: Keys, value: str | None, where: str) -> str:
    """Return an edited text if it parses as the old one with this change; YAML has more forms than are edited here."""
    wanted = {
        old: scalar.text
        for old, scalar in read_settings(before, where).items()
        if old[: len(keys)] != keys and keys[: len(old)] != old
    }
    if value is not None:
        wanted[keys] = value
    try:
        got = {new: scalar.text for new, scalar in read_settings(after, where).items()}
    except ConfigError:
        got = {}
    if got != wanted:
        raise ConfigError(f"{where}: {'.'.join(keys)} cannot be changed in a file written this way; edit it by hand")
    return after


def _insert(text: str, table: Table, keys: Keys, value: str) -> str:
    if table.flow:
        inside = "".join(f"{{{yaml_text(key)}: " for key in keys[1:]) + yaml_text(value) + "}" * (len(keys) - 1)
        at = table.span[1] - 1
        comma = ", " if table.entries else ""
        return f"{text[:at]}{comma}{yaml_text(keys[0])}: {inside}{text[at:]}"
    at = text.find("\n", table.span[1])
    head, tail = (text, "") if at < 0 else (text[: at + 1], text[at + 1 :])
    indent = " " * (table.entries[0].at.column - 1)
    return _with_line_end(head) + _block(keys, value, indent) + tail


def _block(keys: Keys, value: str, indent: str) -> str:
    lines = [f"{indent}{INDENT * depth}{yaml_text(key)}:" for depth, key in enumerate(keys)]
    return "\n".join(lines) + f" {yaml_text(value)}\n"


def _with_line_end(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def yaml_text(text: str) -> str:
    """Write a text on one line so that it parses back unchanged, also inside braces."""
    if UNQUOTED.fullmatch(text) and text.lower() != "null":
        return text  # PyYAML would quote numbers and names such as `openai:gpt`, which is unnecessary here
    import yaml

    quoted = yaml.safe_dump([text], default_flow_style=True, allow_unicode=True, width=1 << 20).strip()
    return str(quoted[1:-1])


def remove_setting(text: str, keys: Keys, where: str) -> str:
    """Return the text of a file without one value (or a section), and without sections that become empty.

    Raises:
        ConfigError: the key is not set, or the file is written in a way that has to be edited by hand.
    """
    tables: list[Table] = []
    tree: Tree | None = _settings(text, where)
    for key in keys:
        entry = tree.get(key) if isinstance(tree, Table) else None
        if entry is None or not isinstance(tree, Table):
            raise ConfigError(f"{where}: {'.'.join(keys)} is not set there")
        tables.append(tree)
        tree = entry.value
    depth = len(keys) - 1
    while depth and len(tables[depth].entries) == 1:
        depth -= 1
    return _checked(text, _cut(text, tables[depth], keys[depth]), keys, None, where)


def _cut(text: str, table: Table, key: str) -> str:
    number = next(number for number, entry in enumerate(table.entries) if entry.key == key)
    start, end = table.entries[number].span
    if not table.flow:
        after = text.find("\n", end)
        return text[: text.rfind("\n", 0, start) + 1] + ("" if after < 0 else text[after + 1 :])
    if number + 1 < len(table.entries):
        end = table.entries[number + 1].span[0]
    elif number:
        start = table.entries[number - 1].span[1]
    return text[:start] + text[end:]


def read_json_object(path: Path, command: str, *, only_owner: bool = False) -> dict[str, Json]:
    """Read a file of JSON that `taiwa COMMAND` writes; a missing one is empty. Messages never show its content.

    Raises:
        ConfigError: the file cannot be read, has another form, or, with `only_owner`, is readable by other users.
    """
    try:
        with open_regular(path) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            raw = file.read(MAX_BYTES)  # JSON that is cut off is none
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if only_owner and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{path} is readable by other users (mode {mode:o}); run `chmod 600 {path}`")
    try:
        data = parse_json(raw.decode())
    except ValueError:  # not UTF-8, or not JSON
        data = None
    if not isinstance(data, dict):
        raise ConfigError(
            f"{path} is not the JSON that `taiwa {command}` writes; delete it and run taiwa {command} again"
        )
    return data


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically, readable only by its owner (folder 0700, file 0600).

    Raises:
        ConfigError: the folder or the file cannot be written.
    """
    path = real_path(path)  # a link to a file kept elsewhere stays a link
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ConfigError(f"{path.parent}: cannot be written ({error.strerror}); make the folder yours") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:  # mkstemp made it 0600
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); make the folder yours") from None
