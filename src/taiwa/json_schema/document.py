"""A JSON Schema document: JSON pointers, what a `$ref` refers to, and what its draft ignores. Nothing is fetched."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote, urldefrag, urljoin

from taiwa.json_schema.keywords import KEYWORDS, Schema, is_object, is_schema, subschemas
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

ROOT = "taiwa:/schema"
"""The base URI of a document that has no `$id`."""
MAX_LOCATIONS = 200_000
MAX_PROOF_STEPS = 200_000
"""The number of cases grows exponentially with the depth of a proof, so proofs stop here."""
DRAFTS: Mapping[str, int] = {
    "draft-03": 3,
    "draft-04": 4,
    "draft-06": 6,
    "draft-07": 7,
    "draft/2019-09": 8,
    "draft/2020-12": 9,
}
DRAFT_URI = re.compile(r"https?://json-schema\.org/(draft(?:-0\d|/20\d\d-\d\d))/schema#?\Z")


def join_pointer(pointer: str, *steps: str | int) -> str:
    """Return the JSON pointer (RFC 6901) of what lies below another one.

    >>> join_pointer("/properties", "a/b", 0)
    '/properties/a~1b/0'
    """
    return pointer + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def resolve_pointer(root: "Json | Schema", pointer: str) -> Json:
    """Return what a JSON pointer refers to; the `#` and the percent encoding of a URI fragment are accepted.

    >>> resolve_pointer({"a/b": [True]}, "#/a~1b/0")
    True

    Raises:
        LookupError: the pointer refers to nothing.
    """
    here = cast("Json", root)
    for step in unquote(pointer.removeprefix("#")).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and name in here:
            here = here[name]
        elif isinstance(here, list) and name.isascii() and name.isdigit() and int(name) < len(here):
            here = here[int(name)]
        else:
            raise LookupError(pointer)
    return here


@dataclass(slots=True, eq=False)
class SchemaLocation:
    """A schema in a document: its JSON pointer, and the base URI of its references."""

    schema: Schema
    pointer: str
    base: str


class Document:
    """A schema, the URIs and pointers of its parts, and what its draft ignores.

    `ignored` lists the pointer, keyword and reason of each keyword without a meaning in the draft that `$schema` names; they
    are removed from a copy, because a validator ignores them and a guide that enforced them would refuse valid values.
    `dynamic` counts dynamic anchors.
    """

    def __init__(self, root: Schema) -> None:
        named = root.get("$schema") if is_object(root) else None
        uri = DRAFT_URI.match(named) if isinstance(named, str) else None
        self.draft = DRAFTS.get(uri[1]) if uri else None
        self.ignored: list[tuple[str, str, str]] = []
        self.root = SchemaLocation(root if self.draft is None else deepcopy(root), "", ROOT)
        self._by_uri: dict[str, SchemaLocation] = {ROOT: self.root}
        self._by_pointer: dict[str, SchemaLocation] = {}
        self.dynamic = 0
        self._proof_steps = 0
        self._index(self.root)

    def _index(self, start: SchemaLocation) -> None:
        """Record every schema with an identifier of its own, without recursion: documents may be deep."""
        waiting = [start]
        while waiting:
            location = waiting.pop()
            if is_object(location.schema):
                self._identify(location, location.schema)
                if self.draft is not None and isinstance(location.schema, dict):
                    for keyword, reason in list(_ignored_keywords(location.schema, self.draft)):
                        self.ignored.append((location.pointer, keyword, reason))
                        del location.schema[keyword]
                    if self.draft == 3:
                        _modernize(location.schema)
                for steps, part in subschemas(location.schema):
                    waiting.append(SchemaLocation(part, join_pointer(location.pointer, *steps), location.base))
            self._by_pointer[location.pointer] = location
            if len(self._by_pointer) > MAX_LOCATIONS:
                raise InputError(f"the schema has more than {MAX_LOCATIONS} parts; divide it")

    def _identify(self, location: SchemaLocation, schema: Mapping[str, Json]) -> None:
        if isinstance(schema.get("$id", schema.get("id")), str):
            location.base = self.base_of(schema, location.base)
            self._by_uri.setdefault(urldefrag(location.base).url, location)
            self._by_uri.setdefault(location.base, location)
        self.dynamic += "$dynamicAnchor" in schema or schema.get("$recursiveAnchor") is True
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._by_uri.setdefault(f"{urldefrag(location.base).url}#{anchor}", location)

    def is_proof_budget_spent(self) -> bool:
        """Count one more step of a proof; return whether there were too many, so that the proof must be given up."""
        self._proof_steps += 1
        return self._proof_steps > MAX_PROOF_STEPS

    @staticmethod
    def base_of(schema: Schema, base: str) -> str:
        """Return the base URI of a schema inside one with the base URI `base`."""
        own = schema.get("$id", schema.get("id")) if is_object(schema) else None
        return urljoin(base, own) if isinstance(own, str) else base

    def find(self, reference: str, base: str) -> SchemaLocation | None:
        """Return what a reference refers to from a base URI; None if it is not in this document."""
        uri, fragment = urldefrag(urljoin(base, reference))
        if reference.startswith("#"):
            uri, fragment = urldefrag(base).url, reference[1:]
        if fragment and not fragment.startswith("/"):
            return self._by_uri.get(f"{uri}#{fragment}")
        start = self._by_uri.get(uri)
        if start is None or not fragment:
            return start
        pointer = start.pointer + unquote(fragment)
        if pointer not in self._by_pointer:
            try:
                part = resolve_pointer(start.schema, fragment)
            except LookupError:
                return None
            if not is_schema(part):
                return None
            self._index(SchemaLocation(part, pointer, start.base))
        return self._by_pointer[pointer]


def _ignored_keywords(schema: Mapping[str, Json], draft: int) -> Iterator[tuple[str, str]]:
    """Yield the keywords of a schema that its draft ignores, and why."""
    alone = draft <= 7 and isinstance(schema.get("$ref"), str)
    for keyword, value in schema.items():
        if keyword not in KEYWORDS or keyword == "$ref":
            continue
        bound = keyword in ("exclusiveMinimum", "exclusiveMaximum") and not isinstance(value, bool)
        if alone:
            yield keyword, "its draft ignores keywords beside $ref"
        elif KEYWORDS[keyword].since > draft or (bound and draft <= 4):
            yield keyword, "introduced after its draft"
        elif draft > KEYWORDS[keyword].until:
            yield keyword, "removed before its draft"


def _modernize(schema: dict[str, Json]) -> None:
    """Replace the keywords of draft 3 by those of today."""
    properties = schema.get("properties")
    parts = properties.items() if isinstance(properties, dict) else ()
    required: list[Json] = [
        name for name, part in parts if isinstance(part, dict) and part.pop("required", False) is True
    ]
    schema.pop("required", None)
    if required:
        schema["required"] = required
    if "divisibleBy" in schema:
        schema["multipleOf"] = schema.pop("divisibleBy")
    if "extends" in schema:
        extended = schema.pop("extends")
        schema["allOf"] = extended if isinstance(extended, list) else [extended]
    if "disallow" in schema:
        schema["not"] = {"type": schema.pop("disallow")}
    for holder in (schema, schema.get("not")):
        if isinstance(holder, dict):
            allowed = holder.get("type")
            if "any" in (allowed if isinstance(allowed, list) else [allowed]):
                del holder["type"]
