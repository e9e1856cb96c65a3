"""Read the fields of a JSON body; an error names the field by its path."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from taiwa.kernel.serialization import Json
from taiwa.server.errors import invalid

KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "an integer", float: "a number"}

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an object. `null` counts as left out. Every method raises `ApiError` (400) for a value of another type."""

    data: dict[str, Json]
    path: str = ""

    @classmethod
    def of(cls, data: Json, path: str = "") -> "Fields":
        """Read an object."""
        if not isinstance(data, dict):
            raise invalid(path or None, f"{path or 'the body'} must be an object, got {kind_of(data)}", "invalid_type")
        return cls(data, path)

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def check_names(self, known: Collection[str], unsupported: Collection[str] = ()) -> None:
        """Refuse fields that the protocol does not have, and those that this server does not support."""
        for name, value in self.data.items():
            if name in known or value is None:
                continue
            if name in unsupported:
                raise invalid(
                    self.at(name), f"{self.at(name)} is not supported by this server", "unsupported_parameter"
                )
            raise invalid(self.at(name), f"unknown parameter: {self.at(name)[:80]!r}", "unknown_parameter")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string; without a default it is required."""
        return str(self._read(name, str, default))

    def optional_text(self, name: str) -> str | None:
        """Return a string, or None."""
        value = self.data.get(name)
        return None if value is None else self.text(name)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean."""
        return bool(self._read(name, bool, default))

    def count(self, name: str, least: int = 0, most: int = 2**40) -> int | None:
        """Return an integer within bounds, or None."""
        value = self.data.get(name)
        if value is None:
            return None
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, (bool, str, list, dict)) or not whole:
            raise self._wrong(name, int)
        if not least <= value <= most:
            raise invalid(
                self.at(name), f"{self.at(name)} must be from {least} to {most}, got {value:g}", "invalid_value"
            )
        return int(value)

    def number(self, name: str, least: float, most: float) -> float | None:
        """Return a number within bounds, or None."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(name, float)
        if not least <= value <= most:
            raise invalid(
                self.at(name), f"{self.at(name)} must be from {least:g} to {most:g}, got {value:g}", "invalid_value"
            )
        return float(value)

    def object(self, name: str) -> "Fields | None":
        """Return an object, or None."""
        value = self.data.get(name)
        return None if value is None else Fields.of(value, self.at(name))

    def items(self, name: str) -> list[Json]:
        """Return an array; an empty one where the field is left out."""
        value = self.data.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, list)
        return value

    def objects(self, name: str) -> Iterator["Fields"]:
        """Yield the objects of an array."""
        for index, item in enumerate(self.items(name)):
            yield Fields.of(item, f"{self.at(name)}[{index}]")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the strings of an array, or of one string."""
        value = self.data.get(name)
        if isinstance(value, str):
            return (value,)
        items = self.items(name)
        for index, item in enumerate(items):
            if not isinstance(item, str):
                path = f"{self.at(name)}[{index}]"
                raise invalid(path, f"{path} must be a string, got {kind_of(item)}", "invalid_type")
        return tuple(map(str, items))

    def choice(self, name: str, options: Collection[str], default: str) -> str:
        """Return one of some words."""
        found = self.text(name, default)
        if found not in options:
            listed = ", ".join(options)
            raise invalid(
                self.at(name), f"unknown {self.at(name)} {found[:40]!r}; choose one of {listed}", "invalid_value"
            )
        return found

    def _read(self, name: str, kind: type[Any], default: Any) -> Any:  # noqa: ANN401  (checked right here)
        value = self.data.get(name)
        if value is None:
            if default is None:
                raise invalid(
                    self.at(name), f"missing required parameter: {self.at(name)!r}", "missing_required_parameter"
                )
            return default
        if not isinstance(value, kind):
            raise self._wrong(name, kind)
        if isinstance(value, str) and LONE_SURROGATE.search(value):
            raise invalid(self.at(name), f"{self.at(name)} is not valid Unicode", "invalid_value")
        return value

    def _wrong(self, name: str, kind: type[Any]) -> Exception:
        got = kind_of(self.data.get(name))
        return invalid(self.at(name), f"{self.at(name)} must be {KINDS[kind]}, got {got}", "invalid_type")


def kind_of(value: Json) -> str:
    """Name the JSON type of a value."""
    return "null" if value is None else KINDS[type(value)]
