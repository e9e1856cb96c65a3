"""State fields, computed fields, how a state moves."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, TypeAlias, get_args, get_origin

from taiwa.conversation.reducers import Reducer, reducer
from taiwa.kernel.errors import ConfigError, InputError, OutputValidationError
from taiwa.kernel.records import Json, digest, value
from taiwa.kernel.text import estimate_tokens, guess_language
from taiwa.structured import OutputType
from taiwa.structured.type_notation import parse_notation, render_notation

__all__ = [
    "DERIVED",
    "Field",
    "State",
    "TurnContext",
    "apply_delta",
    "apply_edit",
    "check_field",
    "delta_shape",
    "environment_shape",
    "held_shape",
    "initial",
    "migrate_state",
    "replace_state",
    "state_hash",
    "written",
]


@value
class TurnContext:
    """What a derived field may look at: the number of this turn, its texts and the value so far."""

    turn: int
    user: str
    answer: str
    before: Json


@value
class ComputedField:
    """A computed field: its type, its first value, its next value."""

    type: str
    start: Json
    next: Callable[[TurnContext], Json]
    about: str


def _whole(before: Json) -> int:
    return before if isinstance(before, int) else 0


DERIVED: dict[str, ComputedField] = {
    "turn_count": ComputedField("int", 0, lambda moment: moment.turn, "how many turns there were"),
    "language": ComputedField(
        "str", "und", lambda moment: guess_language(moment.user), "the language of the last utterance"
    ),
    "tokens": ComputedField(
        "int",
        0,
        lambda moment: _whole(moment.before) + estimate_tokens(moment.user) + estimate_tokens(moment.answer),
        "about how many tokens were said",
    ),
    "characters": ComputedField(
        "int",
        0,
        lambda moment: _whole(moment.before) + len(moment.user) + len(moment.answer),
        "how many characters were said",
    ),
}


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
            held_shape(field).validate({field.name: field.init})
        except OutputValidationError as error:
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


def held_shape(field: Field) -> OutputType[dict[str, Json]]:
    """The shape `{name: value}` of one field's value."""
    return OutputType.fields("State", {field.name: parse_notation(held_type(field))}, required=frozenset({field.name}))


def delta_shape(fields: Iterable[Field]) -> OutputType[dict[str, Json]]:
    """The shape of a delta: every field may be left out, nothing else may be there."""
    return OutputType.fields("Delta", {field.name: parse_notation(delta_type(field)) for field in written(fields)})


def environment_shape(fields: Iterable[Field]) -> OutputType[dict[str, Json]]:
    """The shape of a whole environment: the response and every field that the model writes."""
    kinds = {"response": parse_notation("str")}
    kinds |= {field.name: parse_notation(held_type(field)) for field in written(fields)}
    return OutputType.fields("Environment", kinds, required=frozenset(kinds))


State: TypeAlias = "dict[str, Json]"
"""Field name -> JSON value, in the order of the fields. Never changed in place."""

Fields: TypeAlias = tuple[Field, ...]


def initial(fields: Fields) -> State:
    """The state before the first turn."""
    return {field.name: field.start for field in fields}


def apply_delta(fields: Fields, state: State, delta: Mapping[str, Json], moment: TurnContext) -> State:
    """Fold a delta in by each field's reducer, then compute the derived fields."""
    after = dict(state)
    for field in fields:
        if field.derive:
            before = state[field.name]
            after[field.name] = DERIVED[field.derive].next(TurnContext(moment.turn, moment.user, moment.answer, before))
        elif field.name in delta:
            after[field.name] = field.reducer.step(state[field.name], delta[field.name], moment.turn)
    return after


def replace_state(fields: Fields, state: State, environment: Mapping[str, Json], moment: TurnContext) -> State:
    """Take a whole environment as the new state, the way it was first published."""
    given = {field.name: environment[field.name] for field in fields if field.name in environment and not field.derive}
    return apply_delta(fields, state, {}, moment) | given


def apply_edit(fields: Fields, state: State, changes: Mapping[str, Json]) -> State:
    """Set values by hand.

    Raises:
        InputError: there is no such field, it is derived, or the value does not fit its type.
    """
    known = {field.name: field for field in fields}
    for name, given in changes.items():
        if name not in known:
            raise InputError(f"the state has no field {name!r}; fields: {', '.join(known) or 'none'}")
        if known[name].derive:
            raise InputError(f"the field {name!r} is computed ({known[name].derive}) and cannot be set")
        try:
            held_shape(known[name]).validate({name: given})
        except OutputValidationError as error:
            raise InputError(f"the value does not fit: {'; '.join(error.diagnostics)}") from None
    return state | dict(changes)


def migrate_state(fields: Fields, state: State) -> State:
    """Carry a state over to another app: values that still fit stay, the others start anew."""
    return {field.name: state[field.name] if _fits(field, state) else field.start for field in fields}


def _fits(field: Field, state: State) -> bool:
    if field.name not in state:
        return False
    try:
        held_shape(field).validate({field.name: state[field.name]})
    except OutputValidationError:
        return False
    return True


def state_hash(state: State) -> str:
    """32 hex characters that name the state."""
    return digest(state)
