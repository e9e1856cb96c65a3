"""What the state of an app consists of.

A field is written by the model through its reducer, or derived by the program. From the fields follow the type of a delta,
its grammar, the state view and the diagnostics of a repair.
"""

from collections.abc import Iterable

from taiwa.conversation.derive import DERIVED
from taiwa.conversation.reducers import Reducer, reducer
from taiwa.kernel.errors import ConfigError, ShapeError
from taiwa.kernel.records import Json, value
from taiwa.shape import Shape
from taiwa.shape.notation import parse_notation

__all__ = ["Field", "check_field", "delta_shape", "environment_shape", "held_shape", "written"]


@value
class Field:
    """One named part of the state.

    `type` is written in the notation of app files; `say` tells the model what belongs here; `show` bounds how many entries the
    state view shows, never how many the state holds; a field with `derive` is computed by the program.
    """

    name: str
    type: str = ""
    init: Json = None
    reduce: str = "set"
    say: str = ""
    show: int | None = None
    derive: str = ""

    @property
    def reducer(self) -> Reducer:
        """How deltas are folded in."""
        return reducer(self.reduce)

    @property
    def start(self) -> Json:
        """The value before the first turn."""
        if self.derive:
            return DERIVED[self.derive].start
        return self.reducer.empty if self.init is None else self.init


def check_field(field: Field) -> None:
    """See that a field makes sense.

    Raises:
        ConfigError: it does not; the message says why.
    """
    if field.derive:
        if field.derive not in DERIVED:
            raise ConfigError(f"nothing derives {field.derive!r}; known: {', '.join(DERIVED)}")
        return
    chosen = field.reducer
    kind = kind_of(field.type)
    if chosen.holds and kind not in chosen.holds:
        wanted = " or ".join(chosen.holds)
        raise ConfigError(f"the reducer {field.reduce!r} holds {wanted}, and the type is {field.type!r}")
    if field.init is not None:
        try:
            held_shape(field).check({field.name: field.init})
        except ShapeError as error:
            raise ConfigError(f"init does not fit the type: {'; '.join(error.diagnostics)}") from None


def kind_of(notation: str) -> str:
    """Name the outermost kind of a type: `list`, `dict`, `int` …"""
    return notation.strip().partition("[")[0].partition("(")[0].strip()


def written(fields: Iterable[Field]) -> tuple[Field, ...]:
    """The fields that the model writes."""
    return tuple(field for field in fields if not field.derive)


def held_type(field: Field) -> str:
    """The notation of what the state holds."""
    if field.derive:
        return DERIVED[field.derive].type
    if field.reduce == "log":
        return f"list[{{turn: int, entry: {item_type(field.type)}}}]"
    return f"{field.type} | null" if field.reducer.empty is None and field.init is None else field.type


def delta_type(field: Field) -> str:
    """The notation of what the model may write."""
    return "list[str]" if field.reducer.form == "tally" else field.type


def item_type(notation: str) -> str:
    """The type of a list's items."""
    inner = notation.strip().removeprefix("list").strip()
    return inner[1:-1].strip() if inner.startswith("[") and inner.endswith("]") else "any"


def held_shape(field: Field) -> Shape[dict[str, Json]]:
    """The shape `{name: value}` of one field's value."""
    return Shape.fields("State", {field.name: parse_notation(held_type(field))}, required=frozenset({field.name}))


def delta_shape(fields: Iterable[Field]) -> Shape[dict[str, Json]]:
    """The shape of a delta: every field may be left out, nothing else may be there."""
    return Shape.fields("Delta", {field.name: parse_notation(delta_type(field)) for field in written(fields)})


def environment_shape(fields: Iterable[Field]) -> Shape[dict[str, Json]]:
    """The shape of a whole environment: the response and every field that the model writes."""
    kinds = {"response": parse_notation("str")}
    kinds |= {field.name: parse_notation(held_type(field)) for field in written(fields)}
    return Shape.fields("Environment", kinds, required=frozenset(kinds))
