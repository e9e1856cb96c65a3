"""Who may see a document: rules of its folder in `.taiwa-access.yaml`, and `access:` in its own front matter.

    hr/**: [group:hr]
    "**/salary*": [group:hr, user:ann]

Every matching rule must admit one of the principals, and so must the document itself: another rule can only narrow. Documents
without a matching rule are visible to all who may open the index. What was meant as a restriction and cannot be understood opens
nothing: an invalid rule, or one that matches nothing, stops the indexing, and front matter that mentions access and cannot be read
closes its document.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias
from unicodedata import normalize

from taiwa.kernel.errors import ConfigError
from taiwa.retrieval.types import PUBLIC, Audience, UnreadableError
from taiwa.yamlfile import Items, Scalar, Table, Tree, read_yaml

SIDECAR = ".taiwa-access.yaml"
ANY = "**"
MatchName: TypeAlias = Callable[[str], object]
"""Tells whether a part of a pattern fits a name between two slashes."""


class Rule(NamedTuple):
    """A pattern of paths, and the names of which one is required to see what it matches.

    `parts` is the pattern, name by name; None stands for `**`. `above` are the names between the folder of the rule and the
    indexed one, where the rule stands over it. `where` is the file and line of the rule.
    """

    pattern: str
    names: tuple[str, ...]
    parts: tuple[MatchName | None, ...]
    above: tuple[str, ...] = ()
    where: str = ""

    def matches(self, path: str) -> bool:
        """Whether a path below the indexed folder is matched, or lies below one that is; linear in the length of both."""
        return _matches(self.parts, (*self.above, *_names(path)))


Rules: TypeAlias = tuple[Rule, ...]


def audience_of(path: str, rules: Rules, own: Iterable[str] | None = None) -> Audience:
    """Return the audience of the document at a path."""
    names = _names(path)
    clauses = {rule.names for rule in rules if _matches(rule.parts, (*rule.above, *names))}
    if own is not None:
        clauses.add(tuple(sorted(set(own))))
    return tuple(sorted(clauses)) or PUBLIC


def _names(path: str) -> list[str]:
    return normalize("NFC", path).split("/")


def read_rules(text: str, where: str, below: Sequence[str] = (), above: Sequence[str] = ()) -> Rules:
    """Read a file of rules; `below` leads from the indexed folder to that of the file, `above` the other way round.

    Raises:
        ConfigError: a rule cannot be understood.
    """
    tree = read_yaml(text, where)
    if tree is None or (isinstance(tree, Scalar) and tree.value is None):
        return ()
    if not isinstance(tree, Table):
        raise ConfigError(f"{where}: rules are written `path: [principals, …]`, one per line")
    rules: list[Rule] = []
    for entry in tree.entries:
        line = f"{where}:{entry.at.line}"
        names = access_names(entry.value)
        if names is None:
            raise ConfigError(
                f"{line}: the rule {entry.key!r} must be `path: [principals, …]`, like `hr/**: [group:hr]`"
            )
        literal = (normalize("NFC", name).__eq__ for name in below)
        parts = (*literal, *_pattern_parts(entry.key, line))
        rules.append(Rule("/".join((*below, entry.key)), names, parts, tuple(above), line))
    return tuple(rules)


def access_names(tree: Tree) -> tuple[str, ...] | None:
    """Return the principals of a rule: one name or a list of names; None for anything else."""
    items = tree.items if isinstance(tree, Items) else (tree,)
    names = {item.value for item in items if isinstance(item, Scalar) and isinstance(item.value, str) and item.value}
    return tuple(sorted(names)) if all(isinstance(item, Scalar) and item.value in names for item in items) else None


def unmatched_rule(rule: Rule, paths: Iterable[str]) -> ConfigError:
    """Return the error about a rule that matches none of the paths of its folder."""
    folded = rule._replace(parts=tuple(_pattern_parts(rule.pattern.casefold(), rule.where)))
    if (path := next((path for path in paths if folded.matches(path.casefold())), None)) is not None:
        hint = f"names are compared with their case, and there is {path!r}"
    elif set("[]{}!") & set(rule.pattern):
        hint = "only *, ** and ? stand for other characters; write a rule for each folder"
    else:
        hint = "correct it, or remove it"
    return ConfigError(f"{rule.where}: the rule {rule.pattern!r} matches no file, so it would protect nothing; {hint}")


def _pattern_parts(pattern: str, where: str) -> Iterator[MatchName | None]:
    """`*` is anything within a name, `**` any number of folders, `?` one character; a folder means all that it holds.

    A name with accents or voiced kana is the same however it is composed: some systems keep `が` as two characters.
    """
    previous = ""
    for part in normalize("NFC", pattern).split("/"):
        if part in ("", ".") or part == previous == ANY:
            continue
        if part == ".." or (ANY in part and part != ANY):
            problem = (
                "leads out of its folder" if part == ".." else "has `**` within a name: write `**/*.md`, not `**.md`"
            )
            raise ConfigError(f"{where}: the rule {pattern!r} {problem}")
        previous = part
        yield None if part == ANY else _name_matcher(part)


def _name_matcher(part: str) -> MatchName:
    if not set("*?") & set(part):
        return part.__eq__
    pieces = ["".join("." if sign == "?" else re.escape(sign) for sign in piece) for piece in part.split("*")]
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL).fullmatch
    first, *inner, last = pieces
    # Each piece is taken where it comes first, for good: a later place would leave less to the stars behind it.
    return re.compile(f"{first}{''.join(f'(?>.*?{piece})' for piece in inner)}.*{last}", re.DOTALL).fullmatch


def _matches(parts: Sequence[MatchName | None], names: Sequence[str]) -> bool:
    part = name = 0
    retry: tuple[int, int] | None = None  # after the last `**`, which takes one folder more each time
    while part < len(parts):
        if name == len(names):
            return False
        fits = parts[part]
        if fits is None:
            part += 1
            retry = (part, name)
        elif fits(names[name]):
            part, name = part + 1, name + 1
        elif retry is None:
            return False
        else:
            part, name = retry[0], retry[1] + 1
            retry = (part, name)
    return True


MOST_FRONT = 64 << 10
"""Characters of front matter."""
FENCE = re.compile(r"[ \t]*(?:-{3,}|\.{3}|\+{3,}|;{3,})[ \t]*")
"""A line that may have been meant to open or close front matter; `---` opens it, and `---` or `...` closes it."""
FRONT_LINE = re.compile(r"(?:[ \t].*|#.*|-(?:[ \t].*)?|[\"'?]?[^:=]{1,100}[:=\uff1a].*|[\[\]{},].*)?")
"""A line that can stand in front matter."""
MENTION = re.compile(r"(?:^|[{,])[^\w\n]{0,20}access[^\w\n:=]{0,20}(?:[:=\uff1a]|$)", re.IGNORECASE | re.MULTILINE)


class AccessUnclearError(UnreadableError):
    """A document states who may see it in a way that cannot be read, so no user may."""

    tag = "access-unclear"


class FrontMatter(NamedTuple):
    """What stands before the text of a document: where the text begins, its title, and its access list (None without one)."""

    end: int = 0
    title: str = ""
    access: tuple[str, ...] | None = None


def front_matter(text: str) -> FrontMatter:
    """Read the front matter of a document: YAML between two lines `---`, the first of the file.

    Raises:
        AccessUnclearError: it says something of access that cannot be understood, or what looks like front matter does.
    """
    lines = text[:MOST_FRONT].split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip("\ufeff \t\u3000")), len(lines))
    if first == len(lines) or not FENCE.fullmatch(lines[first].lstrip("\ufeff")):
        return FrontMatter()
    last = next((number for number in range(first + 1, len(lines)) if FENCE.fullmatch(lines[number])), None)
    if first == 0 and lines[0].rstrip() == "---" and last is not None and lines[last].rstrip() in ("---", "..."):
        end = sum(len(line) + 1 for line in lines[: last + 1])
        return _read_front("\n".join(lines[1:last]), min(end, len(text)))
    # Not closed, or not written as front matter is: nothing in it may be a restriction.
    inside = "\n".join(takewhile(FRONT_LINE.fullmatch, lines[first + 1 : last]))
    if MENTION.search(inside):
        raise AccessUnclearError(
            "closed to everyone: it mentions access outside of front matter, which stands between two lines `---` from the"
            f" first line of the file on, in at most {MOST_FRONT >> 10} KB"
        )
    return FrontMatter()


def _read_front(yaml: str, end: int) -> FrontMatter:
    try:
        tree = read_yaml(yaml, "front matter", max_chars=MOST_FRONT)
    except ConfigError as error:
        if MENTION.search(yaml):
            raise AccessUnclearError(f"closed to everyone: it mentions access, and {error.message}") from None
        line = next((line for line in yaml.split("\n") if line.startswith("title:")), "")
        return FrontMatter(end, line.removeprefix("title:").strip().strip("\"'"))
    own = tree.get("access") if isinstance(tree, Table) else None
    names = None if own is None else access_names(own.value)
    written = sum(key.strip().casefold() == "access" for key in _keys(tree))
    if written > (names is not None) or (not isinstance(tree, Table) and MENTION.search(yaml)):
        raise AccessUnclearError(
            "closed to everyone: its front matter must say who may see it as `access: [group:hr]`, once, in lower case, and"
            " not below another key"
        )
    title = tree.get("title") if isinstance(tree, Table) else None
    match title and title.value:
        case Scalar(text, value) if value is not None:
            return FrontMatter(end, text, names)
        case _:
            return FrontMatter(end, "", names)


def _keys(tree: Tree | None) -> Iterator[str]:
    if isinstance(tree, Items):
        for item in tree.items:
            yield from _keys(item)
    elif isinstance(tree, Table):
        for entry in tree.entries:
            yield entry.key
            yield from _keys(entry.value)
