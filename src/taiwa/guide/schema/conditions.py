"""What is written for one schema: its keywords, further conditions, and what could not be said."""

from typing import TYPE_CHECKING, cast

from taiwa.guide.protocol import Clause
from taiwa.guide.schema.document import Place, below
from taiwa.guide.schema.keywords import Schema, is_any, is_object, names
from taiwa.guide.schema.negate import negated
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taiwa.guide.schema.rewrite import Writer

__all__ = ["Conditions"]

MOST_CASES = 5
"""How many conditions that split into cases one schema may have: the engine multiplies the cases out."""


class Conditions:
    """Collects one schema."""

    def __init__(self, writer: "Writer", place: Place, depth: int) -> None:
        self.writer = writer
        self.place = place
        self.depth = depth
        self.schema = cast("Mapping[str, Json]", place.schema)
        self._own: dict[str, Json] = {}
        self._also: list[Schema] = []
        self._cases = 0

    def keep(self, keyword: str, reason: str = "") -> None:
        """Count a keyword as enforced."""
        self.writer.enforced.append(Clause(self.place.pointer, keyword, reason))

    def miss(self, keyword: str, reason: str) -> None:
        """Leave a keyword out, and say why."""
        self.writer.missed.append(Clause(self.place.pointer, keyword, reason))

    def put(self, keyword: str, held: Json) -> None:
        """Write a keyword."""
        self._own[keyword] = held

    def copy(self, *keywords: str) -> None:
        """Write keywords as they stand."""
        for keyword in keywords:
            if keyword in self.schema:
                self.keep(keyword)
                held = self.schema[keyword]
                if keyword.startswith(("min", "max")) and isinstance(held, float) and held.is_integer():
                    held = int(held)  # the engine wants 2 and not 2.0
                self._own[keyword] = held

    def also(self, schema: Schema) -> None:
        """Add a condition that is written already."""
        self._also.append(schema)

    def inner(self, *steps: str | int) -> Schema:
        """Write the schema below."""
        held: object = self.schema
        for step in steps:
            held = cast("dict[str | int, object]", held)[step]
        return self._write(cast("Schema", held), below(self.place.pointer, *steps))

    def written(self, schema: Schema, *steps: str | int) -> Schema:
        """Write a schema that takes the place of the one below."""
        return self._write(schema, below(self.place.pointer, *steps))

    def inner_list(self, keyword: str) -> list[Schema]:
        """Write a list of schemas."""
        return [self.inner(keyword, number) for number in range(len(cast("list[Json]", self.schema[keyword])))]

    def _write(self, schema: Schema, pointer: str) -> Schema:
        return self.writer.write(Place(schema, pointer, self._base(schema)), self.depth + 1)

    def _base(self, schema: Schema) -> str:
        return self.writer.document.base_of(schema, self.place.base)

    def joined(self) -> Schema:
        """The schema that was collected."""
        held = cast("list[Schema]", self._own.pop("allOf", []))
        rest: list[Schema] = []
        for part in (*held, *self._also):
            if not is_any(part) and part not in rest:
                rest.append(part)
        references = [part for part in rest if is_object(part) and "$ref" in part]
        if self.writer.merged and references and (self._own or len(rest) > 1):
            for keyword in ("$ref", *self._own):
                self.miss(keyword, "a reference holds together with more, which may never be merged to the end")
            return references[0]
        if not rest:
            return self._own
        if not self._own and len(rest) == 1:
            return rest[0]
        return {**self._own, "allOf": cast("list[Json]", rest)}

    def complements(self) -> None:
        """Write `not`, `if` and what depends on a key, as far as simple schemas say the same."""
        if "not" in self.schema:
            other = self._negated("not")
            if other is None:
                self.miss("not", "no simple schema says the opposite")
            else:
                self.keep("not")
                self.also(self._write(other, below(self.place.pointer, "not")))
        self._condition()
        self._dependents()

    def _negated(self, keyword: str) -> Schema | None:
        schema = cast("Schema", self.schema[keyword])
        place = Place(schema, below(self.place.pointer, keyword), self._base(schema))
        return negated(place, self.writer.document)

    def _condition(self) -> None:
        if "if" not in self.schema:
            return
        branches = [
            key for key in ("then", "else") if key in self.schema and not is_any(cast("Schema", self.schema[key]))
        ]
        if not branches:
            return
        other = self._negated("if")
        if other is None or not self._split():
            for keyword in ("if", *branches):
                self.miss(keyword, "no simple schema says when the condition does not hold")
            return
        for keyword in ("if", *branches):
            self.keep(keyword)
        unmet = self._write(other, below(self.place.pointer, "if"))
        met = [self.inner("if"), *([self.inner("then")] if "then" in branches else [])]
        not_met = [unmet, *([self.inner("else")] if "else" in branches else [])]
        self.also({"anyOf": [{"allOf": cast("list[Json]", met)}, {"allOf": cast("list[Json]", not_met)}]})

    def _dependents(self) -> None:
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            held = self.schema.get(keyword)
            if not is_object(held):
                continue
            if not all(self._depends(keyword, name, held[name]) for name in held):
                self.miss(keyword, f"more than {MOST_CASES} conditions of one object that depend on a key")
            else:
                self.keep(keyword)

    def _depends(self, keyword: str, name: str, held: Json) -> bool:
        listed = names({"required": held}) if isinstance(held, list) else ()
        if (isinstance(held, list) and not listed) or held is True or held == {}:
            return True
        if not self._split():
            return False
        if isinstance(held, list):
            met: Schema = {"type": "object", "required": [name, *listed]}
        else:
            met = {"allOf": [{"required": [name]}, cast("Json", self.inner(keyword, name))]}
        self.also({"anyOf": [{"properties": {name: False}}, cast("Json", met)]})
        return True

    def _split(self) -> bool:
        self._cases += 1
        return self._cases <= MOST_CASES
