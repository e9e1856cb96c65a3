"""Who may see a document: rules in `.taiwa-access.yaml` beside the documents, and `access:` at the head of one.

    hr/**: [group:hr]
    "**/salary*": [group:hr, user:ann]

Every rule that matches must let somebody in, and so must the document itself: another rule can only narrow. What matches no
rule is for everybody who may open the index. A rule that cannot be understood stops the indexing, and opens nothing.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias, cast
from unicodedata import normalize

from taiwa.kernel.errors import ConfigError
from taiwa.retrieve.reading.reading import UnreadableError
from taiwa.retrieve.values import EVERYBODY, Audience

__all__ = ["SIDECAR", "Rule", "Rules", "audience_of", "own_access", "read_rules"]

SIDECAR = ".taiwa-access.yaml"
LARGEST = 256 * 1024
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
    import yaml

    if len(text) > LARGEST:
        raise ConfigError(f"{where}: {len(text)} characters are too many for rules (at most {LARGEST})")
    try:
        given: object = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(
            f"{where}{f':{mark.line + 1}' if mark else ''}: not YAML (a path that begins with * stands in quotes): mend it, then index again"
        ) from None
    if given is None:
        return ()
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: rules are written `path: [who, …]`, one per line")
    rules: list[Rule] = []
    for path, names in cast("dict[object, object]", given).items():
        found = _names(names)
        if not isinstance(path, str) or not path or found is None:
            raise ConfigError(f"{where}: the rule {path!r} must be `path: [who, …]`, like `hr/**: [group:hr]`")
        rules.append(Rule(_pattern(f"{below}{path.removeprefix('/')}"), found, above))
    return tuple(rules)


def own_access(front: str) -> tuple[str, ...] | None:
    """Return what front matter says of access, None if nothing.

    Raises:
        UnreadableError: it says something that cannot be understood, so that nobody could be let in.
    """
    if not ACCESS.search(front):
        return None
    import yaml

    try:
        given: object = yaml.safe_load(front)
    except (yaml.YAMLError, RecursionError, ValueError):
        raise UnreadableError("front matter with `access:` that is no YAML") from None
    names = _names(cast("dict[str, object]", given).get("access")) if isinstance(given, dict) else None
    if names is None:
        raise UnreadableError("`access:` must be a list of names, like `access: [group:hr]`")
    return names


def _names(given: object) -> tuple[str, ...] | None:
    if isinstance(given, str) and given:
        return (given,)
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in cast("list[object]", given)):
        return None
    return tuple(sorted(set(cast("list[str]", given))))


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
