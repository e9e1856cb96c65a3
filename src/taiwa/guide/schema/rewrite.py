"""A schema rewritten into what the engine enforces exactly, with what is left out told by its place.

The engine refuses some keywords without a path and drops others in silence (those of another draft, keys spelled with
escapes, options hidden in `x-guidance`). So it never sees the schema of a user: it sees one made here, of keywords whose
enforcement is tested, in which every reference points into the schema itself. What has an exact equivalent among them (a
`oneOf` whose branches exclude each other, simple `not`, `if` and `dependentRequired`) is replaced by it; what has none is
left out and listed, so that a strict compilation can refuse it.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from taiwa.guide.protocol import Clause
from taiwa.guide.schema.conditions import Conditions
from taiwa.guide.schema.disjoint import apart
from taiwa.guide.schema.document import Document, Place, below
from taiwa.guide.schema.keywords import ANNOTATIONS, KINDS, Schema, is_object
from taiwa.guide.schema.negate import negated
from taiwa.guide.schema.objects import object_part
from taiwa.guide.schema.scalars import array_part, scalar_part
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

__all__ = ["Rewritten", "rewrite"]

MOST_SCHEMAS = 20_000
MOST_OPPOSITES = 4
MOST_DEPTH = 24
"""How deep the written schema is nested before a part is moved to `$defs`: the engine's reader of JSON has a limit."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What the engine is given; `origins` has the pointer of the schema behind each entry of its `$defs`."""

    schema: Mapping[str, Json]
    enforced: tuple[Clause, ...]
    missed: tuple[Clause, ...]
    ignored: tuple[Clause, ...]
    origins: Mapping[str, str]


def rewrite(schema: Schema, order: tuple[str, ...] = (), *, merged: bool = False) -> Rewritten:
    """Rewrite a schema; `order` names keys that come first in every object that has them.

    `merged` leaves out what the engine can do only for an object that is not merged with another.

    Raises:
        InputError: it is no JSON Schema, or has too many parts.
    """
    writer = Writer(Document(schema), order, merged=merged)
    written = writer.all()
    writer.ignored += [Clause(*clause) for clause in writer.document.unread]
    return Rewritten(written, tuple(writer.enforced), tuple(writer.missed), tuple(writer.ignored), dict(writer.origins))


class Writer:
    """Walks a schema once; what it refers to is walked once, too, and put into `$defs`."""

    def __init__(self, document: Document, order: tuple[str, ...], *, merged: bool) -> None:
        self.document = document
        self.merged = merged
        self.order = order
        self.enforced: list[Clause] = []
        self.missed: list[Clause] = []
        self.ignored: list[Clause] = []
        self.origins: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._waiting: deque[tuple[str, Place]] = deque()
        self._count = 0

    def all(self) -> dict[str, Json]:
        """Write the root and what it needs."""
        root = self.write(self.document.root, 0)
        made: dict[str, Json] = dict(root) if is_object(root) else {"enum": []} if root is False else {}
        held: dict[str, Json] = {}
        while self._waiting:
            name, place = self._waiting.popleft()
            held[name] = cast("Json", self.write(place, 0))
        return {**made, "$defs": held} if held else made

    def write(self, place: Place, depth: int) -> Schema:
        """Write one schema."""
        if not is_object(place.schema):
            return place.schema
        if depth > MOST_DEPTH:
            return self.reference(place)
        self._count += 1
        if self._count > MOST_SCHEMAS:
            raise InputError(f"the schema has more than {MOST_SCHEMAS} parts: divide it")
        self._check(place)
        conditions = Conditions(self, place, depth)
        self._references(conditions)
        self._alternatives(conditions)
        for part in (scalar_part, array_part, object_part):
            part(conditions)
        return conditions.joined()

    def reference(self, place: Place) -> dict[str, Json]:
        """A reference to a schema, which is written once."""
        if place is self.document.root:
            return {"$ref": "#"}
        name = self._names.get(id(place))
        if name is None:
            name = str(len(self._names))
            self._names[id(place)] = name
            self.origins[name] = place.pointer
            self._waiting.append((name, place))
        return {"$ref": f"#/$defs/{name}"}

    def _check(self, place: Place) -> None:
        schema = cast("Mapping[str, Json]", place.schema)
        for keyword, held in schema.items():
            if isinstance(held, bool) and keyword == "required":
                self.ignored.append(Clause(place.pointer, keyword, "true and false are the notation of an old draft"))
            if keyword not in KINDS:
                if keyword not in ANNOTATIONS:
                    self.ignored.append(Clause(place.pointer, keyword, "JSON Schema gives it no meaning"))
                continue
            fits, wanted = KINDS[keyword]
            if not fits(held):
                raise InputError(f"{place.pointer or '/'}: {keyword} must be {wanted}")

    def _references(self, conditions: Conditions) -> None:
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = conditions.schema.get(keyword)
            if not isinstance(reference, str):
                continue
            found = self.document.find(reference, conditions.place.base)
            if found is None:
                conditions.miss(keyword, f"{reference} is not in this schema, and nothing is fetched")
            elif keyword != "$ref" and self._is_dynamic():
                conditions.miss(keyword, "what it means depends on the way that led here")
            else:
                conditions.keep(keyword)
                conditions.also(self.reference(found))

    def _is_dynamic(self) -> bool:
        return self.document.dynamic > 1

    def _alternatives(self, conditions: Conditions) -> None:
        for keyword in ("anyOf", "allOf"):
            listed = conditions.schema.get(keyword)
            if isinstance(listed, list):
                conditions.keep(keyword)
                conditions.put(keyword, [cast("Json", part) for part in conditions.inner_list(keyword)])
        if isinstance(conditions.schema.get("oneOf"), list):
            self._one_of(conditions)
        conditions.complements()

    def _one_of(self, conditions: Conditions) -> None:
        """Write `oneOf` as `anyOf`: of branches that exclude each other, or are made to by their simple opposites."""
        pointer, base = conditions.place.pointer, conditions.place.base
        listed = cast("list[Schema]", conditions.schema["oneOf"])
        branches = [Place(part, below(pointer, "oneOf", number), base) for number, part in enumerate(listed)]
        rest = {keyword: held for keyword, held in conditions.schema.items() if keyword != "oneOf"}
        written = conditions.inner_list("oneOf")
        if len(branches) > 1 and not apart(branches, self.document, Place(rest, pointer, base)):
            others = [negated(branch, self.document) for branch in branches]
            if len(branches) > MOST_OPPOSITES or None in others:
                conditions.miss("oneOf", "two of its schemas may fit the same value")
            else:
                conditions.keep("oneOf")
                unfit = [
                    conditions.written(cast("Schema", other), "oneOf", number) for number, other in enumerate(others)
                ]
                written = [_alone(number, written, unfit) for number in range(len(written))]
        else:
            conditions.keep("oneOf")
        conditions.also({"anyOf": cast("list[Json]", written)})


def _alone(number: int, fit: list[Schema], unfit: list[Schema]) -> Schema:
    """The values that fit one branch and no other."""
    others = [schema for place, schema in enumerate(unfit) if place != number]
    return {"allOf": cast("list[Json]", [fit[number], *others])}
