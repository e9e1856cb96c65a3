"""What a server's decoder holds of a schema, what it says that it holds, and what is left to be checked."""

from collections.abc import Iterable, Iterator, Mapping

from taiwa.constraints.guide import Coverage
from taiwa.json_schema.document import join_pointer
from taiwa.json_schema.keywords import KEYWORDS, Schema, subschemas
from taiwa.kernel.records import Json
from taiwa.kernel.values import Calls, Constraint, Enforcement, Grammar, OneOf, Regex
from taiwa.models.llamacpp import Places

__all__ = ["NAMES", "by_findings", "by_places", "clause", "clauses", "of_coverage"]

MOST_CLAUSES = 2_000
NAMES: dict[type, str] = {Regex: "regex", OneOf: "choice", Grammar: "grammar", Calls: "tools"}
"""What is no schema is held or not as a whole; this stands in the place of a keyword."""
PLAIN = frozenset(("type", "properties", "items", "prefixItems", "allOf"))
"""Keywords that no check of a probe is about: a server that holds the plainest schema holds them."""
CHECKS: Mapping[str, str] = {
    **dict.fromkeys(("minLength", "maxLength"), "maxLength"),
    **dict.fromkeys(("minItems", "maxItems"), "items bounds"),
}
BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))


def clause(pointer: str, keyword: str) -> str:
    """A keyword and where it stands, as `taiwa.constraints.SchemaClause` writes it."""
    return f"{pointer or '/'}: {keyword}"


def clauses(schema: Mapping[str, Json]) -> Iterator[tuple[str, Mapping[str, Json], str]]:
    """Every keyword of a schema that says something about values: its pointer, the schema that holds it, and the keyword."""
    todo: list[tuple[str, Schema]] = [("", schema)]
    while todo:
        pointer, here = todo.pop()
        if isinstance(here, Mapping):
            yield from ((pointer, here, keyword) for keyword in here if keyword in KEYWORDS)
            todo += reversed([(join_pointer(pointer, *steps), part) for steps, part in subschemas(here)])


def by_places(schema: Mapping[str, Json], places: Places, held: Mapping[str, str], way: str) -> Enforcement:
    """Judge by a walk that knows the server's converter; a probe's finding that a keyword is ignored goes before it."""
    enforced: list[str] = []
    checked: list[str] = []
    for pointer, here, keyword in clauses(schema):
        is_held = (pointer, keyword) in places and held.get(_check(here, keyword)) not in ("ignored", "refused")
        (enforced if is_held else checked).append(clause(pointer, keyword))
    return _told(way, enforced, (), checked)


def by_findings(schema: Mapping[str, Json], held: Mapping[str, str], way: str, *, is_promised: bool) -> Enforcement:
    """Judge by what a probe found; of what it did not ask about there is the server's word, or none."""
    found: dict[str, list[str]] = {"enforced": [], "promised": [], "checked": []}
    for pointer, here, keyword in clauses(schema):
        verdict = held.get(_check(here, keyword), "")
        sort = (
            "enforced"
            if verdict == "enforced"
            else "promised"
            if is_promised and verdict in ("", "unknown")
            else "checked"
        )
        found[sort].append(clause(pointer, keyword))
    return _told(way, found["enforced"], found["promised"], found["checked"])


def of_coverage(constraint: Constraint, coverage: Coverage) -> Enforcement:
    """Say of a guide of our own what it enforces: of what is no schema, all that it does not name as left out."""
    missed = (*coverage.relaxed, *coverage.unsupported)
    left = [clause(each.pointer, each.keyword) for each in missed]
    name = NAMES.get(type(constraint))
    held = [clause(each.pointer, each.keyword) for each in coverage.enforced] if name is None else [clause("", name)]
    return _told("mask", [each for each in held if each not in left], (), left)


def _check(schema: Mapping[str, Json], keyword: str) -> str:
    """The name of the check of a probe that is about a keyword."""
    if keyword in PLAIN:
        return "required"
    if keyword in BOUNDS:
        return "integer bounds" if schema.get("type") == "integer" else "number bounds"
    return CHECKS.get(keyword, keyword)


def _told(way: str, enforced: Iterable[str], promised: Iterable[str], checked: Iterable[str]) -> Enforcement:
    enforced, promised, checked = (tuple(dict.fromkeys(each))[:MOST_CLAUSES] for each in (enforced, promised, checked))
    return Enforcement(way, enforced, promised, checked)
