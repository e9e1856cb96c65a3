"""The state of a conversation: its fields, computed fields, the functions that change it, and paths into it (`dictionary.文`,
`topics[2]`) with the differences of two states.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, get_args, get_origin

from taiwa.conversation.reducers import Reducer, item_key, reducer
from taiwa.kernel.errors import ConfigError, InputError, OutputValidationError
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.text import estimate_tokens, guess_language
from taiwa.kernel.wording import Wording

if TYPE_CHECKING:
    from taiwa.structured import OutputType

StatePath: TypeAlias = tuple[str | int, ...]

STEP = re.compile(r"\.?([^.\[\]\s][^.\[\]]*)|\[(-?\d+)\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


class Missing:
    """The type of `MISSING`: there is no value at a path, which is not the same as null."""

    def __repr__(self) -> str:
        return "(nothing)"


MISSING = Missing()


@value(tag="state-change")
class Change:
    """One difference between two states: its path and the values before and after."""

    path: StatePath
    kind: Literal["added", "removed", "changed"]
    before: Json = None
    after: Json = None


def parse_path(text: str) -> StatePath:
    """Parse a path.

    >>> parse_path('dictionary.文'), parse_path('topics[0]'), parse_path('table["a.b"]')
    (('dictionary', '文'), ('topics', 0), ('table', 'a.b'))

    Raises:
        InputError: the text is not a path.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = STEP.match(text, at)
        if match is None:
            raise InputError(f"invalid path {text!r} at character {at + 1}; write field, field.key or field[0]")
        name, index, quoted = match.groups()
        steps.append(int(index) if index else name if name is not None else re.sub(r"\\(.)", r"\1", quoted))
        at = match.end()
    if not steps:
        raise InputError("the path is empty; write field, field.key or field[0]")
    return tuple(steps)


def format_path(path: StatePath) -> str:
    """Format a path such that `parse_path` returns it."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif re.fullmatch(r"[^.\[\]\s\"\\]+", step):
            parts.append(f".{step}" if parts else step)
        else:
            escaped = re.sub(r'([\\"])', r"\\\1", step)
            parts.append(f'["{escaped}"]')
    return "".join(parts)


def as_index(step: str | int) -> int | None:
    """Return a step as the index of a list: `items[1]` and `items.1` are the same place there."""
    return int(step) if isinstance(step, int) or step.isdecimal() else None


def get_path(data: Json, path: StatePath) -> "Json | Missing":
    """Return the value at a path, or `MISSING`."""
    for step in path:
        if isinstance(data, dict) and str(step) in data:
            data = data[str(step)]
        elif isinstance(data, list) and (index := as_index(step)) is not None and -len(data) <= index < len(data):
            data = data[index]
        else:
            return MISSING
    return data


def diff_states(before: Json, after: Json, path: StatePath = ()) -> Iterator[Change]:
    """Compare two values: tables entry by entry, lists item by item."""
    if before == after and type(before) is type(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from _diff_entry((*path, key), before.get(key, MISSING), after.get(key, MISSING))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _diff_lists(before, after, path)
    else:
        yield Change(path, "changed", before, after)


def _diff_entry(path: StatePath, before: "Json | Missing", after: "Json | Missing") -> Iterable[Change]:
    if isinstance(before, Missing):
        return () if isinstance(after, Missing) else (Change(path, "added", None, after),)
    if isinstance(after, Missing):
        return (Change(path, "removed", before, None),)
    return diff_states(before, after, path)


def _diff_lists(before: list[Json], after: list[Json], path: StatePath) -> Iterator[Change]:
    """Compare two lists; items that stay in order while the list grows, shrinks or scrolls are not changes."""
    pairs = enumerate(zip(before, after, strict=False))
    same = next((n for n, (old, new) in pairs if old != new), min(len(before), len(after)))
    before, after = before[same:], after[same:]
    shift = next((n for n in range(len(before) + 1) if before[n:] == after[: len(before) - n]), len(before))
    if shift == len(before) and before and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True), same):
            yield from diff_states(old, new, (*path, index))
        return
    for index, item in enumerate(before[:shift], same):
        yield Change((*path, index), "removed", item, None)
    for index, item in enumerate(after[len(before) - shift :], same + len(before) - shift):
        yield Change((*path, index), "added", None, item)


State: TypeAlias = "dict[str, Json]"
"""Field name -> JSON value, in the order of the fields. Never changed in place."""


@value
class TurnContext:
    """The input of a computed field: the number of the turn, its texts, and the field's value before it."""

    turn: int
    user: str
    answer: str
    before: Json


@value
class ComputedField:
    """A field that the program computes: its type, its initial value, its next value."""

    type: str
    start: Json
    next: Callable[[TurnContext], Json]
    about: str


def _sum(measure: Callable[[str], int]) -> Callable[[TurnContext], Json]:
    """Return the function that adds the measures of both texts of a turn."""

    def add(context: TurnContext) -> Json:
        before = context.before if isinstance(context.before, int) else 0
        return before + measure(context.user) + measure(context.answer)

    return add


COMPUTED_FIELDS: dict[str, ComputedField] = {
    "turn_count": ComputedField("int", 0, lambda context: context.turn, "the number of turns"),
    "language": ComputedField(
        "str", "und", lambda context: guess_language(context.user), "the language of the last user text"
    ),
    "tokens": ComputedField("int", 0, _sum(estimate_tokens), "the estimated number of tokens of all turns"),
    "characters": ComputedField("int", 0, _sum(len), "the number of characters of all turns"),
}

WORD_COUNTS = "dict[str, int]"
"""The type of a field that counts words."""

FieldSource = Literal["user", "reply"]
"""Who states the values of a field: what the user says, or what the reply works out or finds."""


@value
class StateField:
    """One named part of the state.

    `type` is written in the notation of app files; `reduce` names the reducer that folds what the model writes into the field, or the
    entry of `COMPUTED_FIELDS` that computes it; `description` describes it to the model; `max_shown` limits the number of entries in
    the state view, never in the state; the model writes a `required` field in every turn. `source` says who states its values: the user, or the reply. With `cite` a value is taken only if it stands in the words of the user, a passage, the result of
    a tool, or the answer before, with "user" only in the words of the user; if it is None, the layout `record` demands that of the user's
    texts.
    """

    name: str
    type: str = ""
    init: Json = None
    reduce: str = "set"
    description: str = ""
    max_shown: int | None = None
    required: bool = False
    source: "FieldSource" = "user"
    cite: Literal[True, False, "user", None] = None

    @property
    def computed(self) -> str:
        """The entry of `COMPUTED_FIELDS` that computes the field; "" for a field that the model writes."""
        return self.reduce if self.reduce in COMPUTED_FIELDS else ""

    @property
    def reducer(self) -> Reducer:
        """The reducer that folds deltas into the field."""
        return reducer(self.reduce)

    @property
    def start(self) -> Json:
        """The value before the first turn."""
        if self.computed:
            return COMPUTED_FIELDS[self.computed].start
        return self.reducer.empty if self.init is None else self.init

    @property
    def value_notation(self) -> str:
        """The type of the value in the state. Bounds apply to what the model writes; accumulated values exceed them."""
        if self.computed:
            return COMPUTED_FIELDS[self.computed].type
        if self.reducer.delta_kind == "items":
            from taiwa.structured.type_notation import parse_notation, render_notation

            inner = get_args(_unbounded(parse_notation(self.type)))
            item = render_notation(inner[0]) if inner else "any"
            return f"list[{{turn: int, entry: {item}}}]" if self.reduce == "log" else f"list[{item}]"
        if self.reduce == "sum" or self.reducer.max_tokens is not None:
            return kind_of(self.type)
        return f"{self.type} | null" if self.reducer.empty is None and self.init is None else self.type

    @property
    def delta_notation(self) -> str:
        """The type of what the model writes."""
        kind = self.reducer.delta_kind
        return "list[str]" if kind == "words" else _with_null_entries(self.type) if kind == "table" else self.type

    @property
    def delta_description(self) -> str:
        """The description of what the model writes, which says what a null means that the type of the app does not have."""
        is_added = self.delta_notation != self.type and self.reducer.delta_kind == "table"
        return "; ".join(filter(None, (self.description, "null removes an entry" if is_added else "")))

    @property
    def full_delta_notation(self) -> str:
        """The type of the field in a delta that names every field: null says that the field stays as it is.

        A field to which null itself can be written is wrapped, so that null has one meaning.
        """
        if self.required:
            return self.delta_notation
        return f"{{{WRITTEN}: {self.delta_notation}}} | null" if self.takes_null else f"{self.delta_notation} | null"

    def fits_delta(self, data: Json) -> bool:
        """Whether the model certainly may write this value to the field."""
        from taiwa.structured.type_notation import fits, parse_notation

        return fits(parse_notation(self.delta_notation), data)

    @property
    def takes_null(self) -> bool:
        """Whether the model can write null to the field itself, not only to an entry of it."""
        return _takes_null(self.delta_notation)


Fields: TypeAlias = tuple[StateField, ...]

WRITTEN = "value"
"""The key that wraps what is written to a field that can hold null, in a delta that names every field."""

BLANK = "…"
"""The placeholder of a value in the form of a reply; a model that copies it has written nothing."""

NOT_FIELDS = ("answer", "response")
"""Keys of replies in JSON, which models also write into a delta."""


def check_field(field: StateField) -> None:
    """Check that the parts of a field that the model writes fit together.

    Raises:
        ConfigError: they do not; the message says why.
    """
    types = field.reducer.types
    if types and kind_of(field.type) not in types:
        raise ConfigError(f"the reducer {field.reduce!r} requires {' or '.join(types)}, and the type is {field.type!r}")
    if field.reducer.delta_kind == "words" and _normal(field.type) != WORD_COUNTS:
        raise ConfigError(f"the reducer {field.reduce!r} requires {WORD_COUNTS}, and the type is {field.type!r}")
    from taiwa.structured.type_notation import has_words, parse_notation

    if field.cite and not has_words(parse_notation(field.type)):
        raise ConfigError(f"cite has no effect on the type {field.type!r}, whose values no source can hold")
    if field.init is not None and (problems := _problems(field, field.init)):
        raise ConfigError(f"init does not fit the type: {problems}")


def _normal(notation: str) -> str:
    """Return a type as it is rendered."""
    from taiwa.structured.type_notation import parse_notation, render_notation

    return render_notation(parse_notation(notation))


def kind_of(notation: str) -> str:
    """Name the kind of a type (`list`, `dict`, `int` …) without its bounds; a union is its own kind.

    >>> kind_of("list[str](max 3)"), kind_of("list[str] | null")
    ('list', 'list[str] | null')
    """
    from taiwa.structured.type_notation import parse_notation

    kind = _unbounded(parse_notation(notation))
    origin: object = get_origin(kind)
    named = kind if origin is None else origin
    return named.__name__ if isinstance(named, type) else notation


def _unbounded(annotation: object) -> object:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


@lru_cache(maxsize=256)
def _takes_null(notation: str) -> bool:
    from taiwa.structured.type_notation import fits, parse_notation

    return fits(parse_notation(notation), None)


@lru_cache(maxsize=256)
def _with_null_entries(notation: str) -> str:
    """Return the type of a table whose entries can be null."""
    from taiwa.structured.type_notation import fits, parse_notation, render_notation

    match get_args(parse_notation(notation)):
        case (key, entry) if not fits(entry, None):
            return render_notation(dict[key, entry | None])  # type: ignore[valid-type]
        case _:
            return notation


def value_output_type(field: StateField) -> "OutputType[dict[str, Json]]":
    """Build the type `{name: value}` of one field's value."""
    return _output_type("State", ((field.name, field.value_notation, ""),), frozenset([field.name]))


def delta_output_type(fields: Iterable[StateField]) -> "OutputType[dict[str, Json]]":
    """Build the type of a state delta: only required fields must be there, and there are no others."""
    written = [field for field in fields if not field.computed]
    kinds = tuple((field.name, field.delta_notation, field.delta_description) for field in written)
    return _output_type("Delta", kinds, frozenset(field.name for field in written if field.required))


def full_delta_output_type(fields: Iterable[StateField]) -> "OutputType[dict[str, Json]]":
    """Build the type of a state delta that names every field, with null for one that stays as it is.

    Small models leave out the keys that they may leave out; a key that must be there makes them decide.
    """
    kinds = tuple((each.name, each.full_delta_notation, each.delta_description) for each in fields if not each.computed)
    return _output_type("Delta", kinds, frozenset(name for name, *_ in kinds))


def full_delta(fields: Iterable[StateField], delta: Mapping[str, Json]) -> dict[str, Json]:
    """Write a delta with a key for every field; `shorten_delta` is the inverse."""
    written = [field for field in fields if not field.computed]
    wrapped = {field.name for field in written if field.takes_null and not field.required}
    return {
        field.name: {WRITTEN: delta[field.name]}
        if field.name in wrapped and field.name in delta
        else delta.get(field.name)
        for field in written
    }


def shorten_delta(fields: Iterable[StateField], data: Mapping[str, Json], *, full: bool = False) -> dict[str, Json]:
    """Return what a delta changes: without fields that stay as they are, and without keys that are not the model's to write.

    A key in other letters, or in another Unicode form, is that of its field. Null is a change only in a field that can hold it, and in a `full` delta only inside its wrapper.
    """
    known = {field.name: field for field in fields}
    alike = {item_key(name): name for name in known}
    changes: dict[str, Json] = {}
    for key, part in data.items():
        name = key if key in known else alike.get(item_key(key), key)
        field = known.get(name)
        if (field is None and name in NOT_FIELDS) or (field is not None and field.computed) or _is_blank(part):
            continue
        keeps_null = field is None or field.required or (field.takes_null and not full)
        is_null = part is None or (part == "null" and field is not None and not field.fits_delta(part))
        if is_null and not keeps_null:
            continue
        if field is not None and full and isinstance(part, dict) and part.keys() == {WRITTEN}:
            is_wrapper = field.takes_null and not field.required
            changes[name] = part if not is_wrapper and field.fits_delta(part) else part[WRITTEN]
        else:
            changes[name] = part
    return changes


def _is_blank(part: Json) -> bool:
    """Return whether a value is the placeholder of the form, as it stands or as the only entry of a list or table."""
    return part == BLANK or (isinstance(part, (list, dict)) and list(part) == [BLANK])


def blank(field: StateField) -> str:
    """Return the placeholder of what the model writes to a field."""
    kind = kind_of(field.delta_notation)
    return {"list": f"[{BLANK}]", "dict": f"{{{BLANK}}}"}.get(kind, BLANK)


def fits_delta(fields: Iterable[StateField], delta: Mapping[str, Json]) -> bool:
    """Return whether a state delta certainly has its type; if not, the type must say."""
    written = {field.name: field for field in fields if not field.computed}
    return all(name in delta for name, field in written.items() if field.required) and all(
        name in written and written[name].fits_delta(data) for name, data in delta.items()
    )


def environment_output_type(fields: Iterable[StateField], *, whole: bool = True) -> "OutputType[dict[str, Json]]":
    """Build the type of a whole environment, the response and every field that the model writes, or of parts of one."""
    kinds = [("response", "str", "your answer to the user")]
    kinds += [(field.name, field.value_notation, field.description) for field in fields if not field.computed]
    return _output_type("Environment", tuple(kinds), frozenset(name for name, *_ in kinds if whole))


@lru_cache(maxsize=256)
def _output_type(
    name: str, kinds: tuple[tuple[str, str, str], ...], required: frozenset[str]
) -> "OutputType[dict[str, Json]]":
    """Build a type from names, notations and descriptions; once, since every turn asks for those of its app, and to build
    one takes milliseconds.
    """
    from taiwa.structured import OutputType, parse_notation

    layout = {key: _described(parse_notation(text), description) for key, text, description in kinds}
    return OutputType.fields(name, layout, required)


def _described(annotation: object, description: str) -> object:
    return Annotated[annotation, description] if description else annotation


def apply_delta(fields: Fields, state: State, delta: Mapping[str, Json], context: TurnContext) -> State:
    """Fold a delta into the state by each field's reducer, then compute the computed fields."""
    after = dict(state)
    for field in fields:
        before = state[field.name]
        if field.computed:
            of_field = TurnContext(context.turn, context.user, context.answer, before)
            after[field.name] = COMPUTED_FIELDS[field.computed].next(of_field)
        elif field.name in delta:
            after[field.name] = field.reducer.step(before, delta[field.name], context.turn)
    return after


def replace_state(fields: Fields, state: State, environment: Mapping[str, Json], context: TurnContext) -> State:
    """Take a complete environment as the new state, as in the published Monadic Chat: each field's reducer bounds its value."""
    after = apply_delta(fields, state, {}, context)
    for field in fields:
        if not field.computed and field.name in environment:
            after[field.name] = environment[field.name]
            if not field.reducer.needs_before:
                after[field.name] = field.reducer.step(field.reducer.empty, environment[field.name], context.turn)
    return after


def apply_edit(fields: Fields, state: State, changes: Mapping[str, Json]) -> State:
    """Set values by hand.

    Raises:
        InputError: a field does not exist or is computed, or a value does not fit its type.
    """
    known = {field.name: field for field in fields}
    for name, data in changes.items():
        if name not in known:
            raise InputError(Wording("the state has no field {name!r}; fields: {names}", name=name, names=", ".join(known) or "none"))  # fmt: skip
        if known[name].computed:
            raise InputError(f"the field {name!r} is computed ({known[name].computed}) and cannot be set")
        if problems := _problems(known[name], data):
            raise InputError(Wording("the value does not fit: {problem}", problem=problems))
    return state | dict(changes)


def migrate_state(fields: Fields, state: State) -> State:
    """Convert a state to the fields of another app: values that fit are kept, the others are reset."""
    return {
        field.name: state[field.name]
        if field.name in state and not _problems(field, state[field.name])
        else field.start
        for field in fields
    }


def _problems(field: StateField, data: Json) -> str:
    """Return why a value does not fit its field; '' if it fits."""
    from taiwa.structured.type_notation import fits, parse_notation

    if fits(parse_notation(field.value_notation), data):
        return ""
    try:
        value_output_type(field).validate({field.name: data})
    except OutputValidationError as error:
        return Wording.joined("; ", error.diagnostics)
    return ""
