"""What the state of an app consists of.

A field is written by the model through its reducer, or derived by the program. From the fields follow the type of a delta,
its grammar, the state view and the diagnostics of a repair.
"""

from collections.abc import Iterable
from typing import Annotated, get_args, get_origin

from taiwa.conversation.derive import DERIVED
from taiwa.conversation.reducers import Reducer, reducer
from taiwa.kernel.errors import ConfigError, ShapeError
from taiwa.kernel.records import Json, value
from taiwa.shape import Shape
from taiwa.shape.notation import parse_notation, render_notation

__all__ = ["Field", "check_field", "delta_shape", "environment_shape", "held_shape", "written"]


TALLY = "dict[str, int]"
"""What a field holds that counts words."""


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
    if chosen.form == "tally" and render_notation(parse_notation(field.type)) != TALLY:
        raise ConfigError(f"the reducer {field.reduce!r} holds {TALLY}, and the type is {field.type!r}")
    if field.init is not None:
        try:
            held_shape(field).check({field.name: field.init})
        except ShapeError as error:
            raise ConfigError(f"init does not fit the type: {'; '.join(error.diagnostics)}") from None


def kind_of(notation: str) -> str:
    """Name the kind of a type (`list`, `dict`, `int` …), bounds aside; a choice of types is its own kind.

    >>> kind_of("list[str](max 3)"), kind_of("list[str] | null")
    ('list', 'list[str] | null')
    """
    kind = _unbounded(parse_notation(notation))
    origin: object = get_origin(kind)
    named = kind if origin is None else origin
    return named.__name__ if isinstance(named, type) else notation


def _unbounded(annotation: object) -> object:
    """A type without its bounds."""
    origin: object = get_origin(annotation)
    return get_args(annotation)[0] if origin is Annotated else annotation


def written(fields: Iterable[Field]) -> tuple[Field, ...]:
    """The fields that the model writes."""
    return tuple(field for field in fields if not field.derive)


def held_type(field: Field) -> str:
    """The notation of what the state holds. Bounds hold for what the model writes; what piles up grows beyond them."""
    if field.derive:
        return DERIVED[field.derive].type
    chosen = field.reducer
    if chosen.form == "items":
        item = item_type(field.type)
        return f"list[{{turn: int, entry: {item}}}]" if field.reduce == "log" else f"list[{item}]"
    if field.reduce == "sum":
        return kind_of(field.type)
    return f"{field.type} | null" if chosen.empty is None and field.init is None else field.type


def delta_type(field: Field) -> str:
    """The notation of what the model may write."""
    return "list[str]" if field.reducer.form == "tally" else field.type


def item_type(notation: str) -> str:
    """The type of a list's items."""
    inner = get_args(_unbounded(parse_notation(notation)))
    return render_notation(inner[0]) if inner else "any"


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
