"""Who may see a document: rules in `.taiwa-access.yaml` beside the documents, and `access:` at the head of one.

    hr/**: [group:hr]
    "**/salary*": [group:hr, user:ann]

Every rule that matches must let somebody in, and so must the document itself: another rule can only narrow. What matches no
rule is for everybody who may open the index. A rule that cannot be understood stops the indexing, and opens nothing.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias
from unicodedata import normalize

from taiwa.kernel.errors import ConfigError
from taiwa.retrieve.reading.reading import UnreadableError
from taiwa.retrieve.values import EVERYBODY, Audience
from taiwa.yamlfile import Items, Scalar, Table, Tree, read_yaml

__all__ = ["SIDECAR", "Rule", "Rules", "audience_of", "own_access", "read_rules"]

SIDECAR = ".taiwa-access.yaml"
ACCESS = re.compile(r"^[\"']?access[\"']?[ \t]*:", re.MULTILINE)


class Rule(NamedTuple):
    """A pattern of paths, the names that it lets in, and what a path below the folder stands under in its file's eyes."""

    pattern: "re.Pattern[str]"
    names: tuple[str, ...]
    above: str = ""


Rules: TypeAlias = tuple[Rule, ...]


def audience_of(path: str, rules: Rules, own: Iterable[str] | None = None) -> Audience:
    """Return who may see the document of a path."""
    clauses = {rule.names for rule in rules if rule.pattern.fullmatch(normalize("NFC", rule.above + path))}
    if own is not None:
        clauses.add(tuple(sorted(set(own))))
    return tuple(sorted(clauses)) or EVERYBODY


def read_rules(text: str, where: str, below: str = "", above: str = "") -> Rules:
    """Read a file of rules; `below` is the folder that it stands in, `above` where it stands over the folder itself.

    Raises:
        ConfigError: a rule cannot be understood.
    """
    tree = read_yaml(text, where)
    if tree is None or (isinstance(tree, Scalar) and tree.value is None):
        return ()
    if not isinstance(tree, Table):
        raise ConfigError(f"{where}: rules are written `path: [who, …]`, one per line")
    rules: list[Rule] = []
    for entry in tree.entries:
        names = _names(entry.value)
        if names is None:
            raise ConfigError(
                f"{where}:{entry.at.line}: the rule {entry.key!r} must be `path: [who, …]`, like `hr/**: [group:hr]`"
            )
        rules.append(Rule(_pattern(f"{below}{entry.key.removeprefix('/')}"), names, above))
    return tuple(rules)


def own_access(front: str) -> tuple[str, ...] | None:
    """Return the names under `access:` in front matter, None where it has no such key.

    Raises:
        UnreadableError: it cannot be understood, so no reader could be let in.
    """
    if not ACCESS.search(front):
        return None
    try:
        tree = read_yaml(front, "front matter with `access:`")
    except ConfigError as error:
        raise UnreadableError(error.message) from None
    entry = tree.get("access") if isinstance(tree, Table) else None
    names = _names(entry.value) if entry is not None else None
    if names is None:
        raise UnreadableError("`access:` must be a list of names, like `access: [group:hr]`")
    return names


def _names(tree: Tree) -> tuple[str, ...] | None:
    items = tree.items if isinstance(tree, Items) else (tree,)
    names = {item.value for item in items if isinstance(item, Scalar) and isinstance(item.value, str) and item.value}
    return tuple(sorted(names)) if all(isinstance(item, Scalar) and item.value in names for item in items) else None


def _pattern(path: str) -> "re.Pattern[str]":
    """`*` is anything within a name, `**` anything at all, `?` one character; a folder means all that it holds.

    A name with accents or voiced kana is the same however it is composed: some systems keep `が` as two characters.
    """
    path = normalize("NFC", path)
    parts = [
        {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part) or re.escape(part)
        for part in re.split(r"(\*\*/|\*\*|\*|\?)", path.rstrip("/"))
    ]
    return re.compile("".join(parts) + "(?:/.*)?", re.DOTALL)
