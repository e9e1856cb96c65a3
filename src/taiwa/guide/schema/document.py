"""A schema document: where its parts are, and what a `$ref` means there. Nothing outside of it is ever fetched."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from urllib.parse import unquote, urldefrag, urljoin

from taiwa.guide.schema.drafts import THIRD, draft_of, renew, unread
from taiwa.guide.schema.keywords import HOLDERS, Schema, is_object
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

__all__ = ["Document", "Place", "below", "escaped"]

LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
SINGLE = (
    *("not", "if", "then", "else", "items", "additionalItems", "contains", "additionalProperties", "propertyNames"),
    *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
ROOT = "taiwa:/schema"
"""The address of a document that names none."""
MOST_PLACES = 200_000
MOST_PROOFS = 200_000
"""How much is tried to prove that schemas exclude each other or to write their opposites; the ways multiply."""


class Place:
    """A schema within the document: its JSON pointer, and the address that its references start from."""

    __slots__ = ("base", "pointer", "schema")

    def __init__(self, schema: Schema, pointer: str, base: str) -> None:
        self.schema = schema
        self.pointer = pointer
        self.base = base


def escaped(name: str | int) -> str:
    """A step of a JSON pointer (RFC 6901)."""
    return str(name).replace("~", "~0").replace("/", "~1")


def below(pointer: str, *steps: str | int) -> str:
    """The JSON pointer of what lies below."""
    return pointer + "".join(f"/{escaped(step)}" for step in steps)


class Document:
    """A schema and the addresses of its parts."""

    def __init__(self, root: Schema) -> None:
        self.draft = draft_of(root)
        self.unread: list[tuple[str, str, str]] = []
        self.root = Place(root if self.draft is None else deepcopy(root), "", ROOT)
        self._by_address: dict[str, Place] = {ROOT: self.root}
        self._by_pointer: dict[str, Place] = {}
        self.dynamic = 0
        self._proofs = 0
        self._read(self.root)

    def _read(self, start: Place) -> None:
        """Find every schema with a name of its own, without recursion: documents may be deep."""
        waiting = [start]
        while waiting:
            place = waiting.pop()
            if is_object(place.schema):
                self._name(place)
                self._leave_out(place)
                for step, schema in _parts(place.schema):
                    waiting.append(Place(schema, place.pointer + step, place.base))
            self._by_pointer[place.pointer] = place
            if len(self._by_pointer) > MOST_PLACES:
                raise InputError(f"the schema has more than {MOST_PLACES} parts: divide it")

    def _leave_out(self, place: Place) -> None:
        """Take out of our copy what the schema's draft passes over."""
        if self.draft is None or not isinstance(place.schema, dict):
            return
        for keyword, reason in list(unread(place.schema, self.draft)):
            self.unread.append((place.pointer, keyword, reason))
            del place.schema[keyword]
        if self.draft == THIRD:
            renew(place.schema)

    def _name(self, place: Place) -> None:
        schema = place.schema
        if not is_object(schema):
            return
        if isinstance(schema.get("$id", schema.get("id")), str):
            place.base = self.base_of(schema, place.base)
            self._by_address.setdefault(urldefrag(place.base).url, place)
            self._by_address.setdefault(place.base, place)
        self.dynamic += "$dynamicAnchor" in schema or schema.get("$recursiveAnchor") is True
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._by_address.setdefault(f"{urldefrag(place.base).url}#{anchor}", place)

    def tired(self) -> bool:
        """Count one more step of a proof; say whether there were too many, and proofs must be given up."""
        self._proofs += 1
        return self._proofs > MOST_PROOFS

    @staticmethod
    def base_of(schema: Schema, base: str) -> str:
        """The address that the references of a schema start from, which lies in one with this address."""
        own = schema.get("$id", schema.get("id")) if is_object(schema) else None
        return urljoin(base, own) if isinstance(own, str) else base

    def find(self, reference: str, base: str) -> Place | None:
        """What a reference means, seen from an address; None where this document does not hold it."""
        address, fragment = urldefrag(urljoin(base, reference))
        if reference.startswith("#"):
            address, fragment = urldefrag(base).url, reference[1:]
        if fragment and not fragment.startswith("/"):
            return self._by_address.get(f"{address}#{fragment}")
        start = self._by_address.get(address)
        if start is None or not fragment:
            return start
        return self._walk(start, unquote(fragment))

    def _walk(self, start: Place, fragment: str) -> Place | None:
        pointer = start.pointer + fragment
        known = self._by_pointer.get(pointer)
        if known is not None:
            return known
        here: object = start.schema
        for step in fragment[1:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if is_object(here) and name in here:
                here = here[name]
            elif isinstance(here, list) and name.isdigit() and int(name) < len(here):
                here = here[int(name)]
            else:
                return None
        if not (is_object(here) or isinstance(here, bool)):
            return None
        found = Place(here, pointer, start.base)
        self._read(found)
        return found


def _parts(schema: Mapping[str, Json]) -> Iterator[tuple[str, Schema]]:
    """The schemas within a schema, each with its step."""
    for keyword in (*HOLDERS, "dependencies"):
        held = schema.get(keyword)
        if is_object(held):
            for name, part in held.items():
                if is_object(part) or isinstance(part, bool):
                    yield below("", keyword, name), part
    for keyword in LISTS:
        listed = schema.get(keyword)
        if isinstance(listed, list):
            for place, part in enumerate(listed):
                if is_object(part) or isinstance(part, bool):
                    yield below("", keyword, place), part
    for keyword in SINGLE:
        part = schema.get(keyword)
        if is_object(part) or isinstance(part, bool):
            yield below("", keyword), part
