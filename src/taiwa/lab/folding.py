"""The laws of reducers: a pure step, values that can be kept, and a squash that keeps its promise."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from hypothesis import strategies as st

from taiwa.conversation.fields import Field, delta_shape, held_shape, held_type
from taiwa.conversation.reducers import LAST, Reducer, known_reducers
from taiwa.kernel.errors import ShapeError
from taiwa.kernel.records import Json
from taiwa.lab.generated import values
from taiwa.lab.law import BrokenLawError, Law, demand, written
from taiwa.shape import Shape, parse_notation

__all__ = ["field_laws", "reducer_laws"]

TYPES = {
    "items": ("list[str]", "list[int]", "list[any]"),
    "table": ("dict[str, str | null]", "dict[str, any]"),
    "tally": ("dict[str, int]",),
    "list": ("list[str]", "list[any]"),
    "dict": ("dict[str, int]",),
}
SCALARS = ("str", "any")


@dataclass(frozen=True, slots=True)
class Folding:
    """A reducer at work on a type: what a state may hold, what a delta may be, and what the state begins with."""

    reducer: Reducer
    subject: str
    held: Shape[dict[str, Json]]
    delta: Shape[dict[str, Json]]
    start: Json
    name: str = "x"

    @property
    def deltas(self) -> st.SearchStrategy[Json]:
        """Deltas that a model may write."""
        return values(self.delta).filter(lambda data: self.name in data).map(lambda data: data[self.name])

    @property
    def origins(self) -> st.SearchStrategy[Json]:
        """What a conversation begins with, and what a person may set."""
        return st.just(self.start) | values(self.held).map(lambda data: data[self.name])

    def folded(self, held: Json, deltas: list[Json]) -> Json:
        """Fold deltas in, one after the other."""
        for turn, delta in enumerate(deltas, 1):
            held = self.step(held, delta, turn)
        return held

    def step(self, held: Json, delta: Json, turn: int = 1) -> Json:
        """Fold one delta in; the reducer gets copies, so that what it breaks stays in this step."""
        return self.reducer.step(copy.deepcopy(held), copy.deepcopy(delta), turn)

    def demand_type(self, held: Json, what: str) -> None:
        """See that a value has the type of the field.

        Raises:
            BrokenLawError: it has not.
        """
        try:
            self.held.check({self.name: held})
        except ShapeError as error:
            raise BrokenLawError(f"{what} {held!r}, which does not fit the type: {error.diagnostics[0]}") from None


def pure(folding: Folding, origin: Json, earlier: list[Json], delta: Json) -> None:
    """A step gives the same result each time and changes nothing that it was given."""
    held = folding.folded(origin, earlier)
    state, given = copy.deepcopy(held), copy.deepcopy(delta)
    first = written(folding.reducer.step(state, given, 1))
    demand(written(state), written(held), "the step changed the state that it was given")
    demand(written(given), written(delta), "the step changed the delta that it was given")
    demand(written(folding.step(held, delta)), first, "the same step came to another result")


def typed(folding: Folding, origin: Json, deltas: list[Json]) -> None:
    """What a step gives is of the field's type, and so is what the field begins with."""
    folding.demand_type(folding.start, "the field begins with")
    held = origin
    for turn, delta in enumerate(deltas, 1):
        held = folding.step(held, delta, turn)
        folding.demand_type(held, "the step came to")


def squashes(folding: Folding, origin: Json, earlier: list[Json], first: Json, second: Json) -> None:
    """Two deltas folded one after the other are their squash folded at once."""
    squash = folding.reducer.squash
    if squash is None:
        raise BrokenLawError("there is no squash")
    held = folding.folded(origin, earlier)
    one_by_one = folding.step(folding.step(held, first), second, 2)
    pressed = squash(copy.deepcopy(first), copy.deepcopy(second))
    what = f"{written(first)} and {written(second)} were squashed to {written(pressed)}"
    demand(written(folding.step(held, pressed)), written(one_by_one), what)


def _laws(folding: Folding) -> Iterator[Law]:
    subject, delta = folding.subject, folding.deltas
    origin, deltas = folding.origins, st.lists(delta, max_size=2)
    yield Law("a step is pure", subject, st.tuples(origin, deltas, delta), partial(pure, folding))
    yield Law("a step keeps the type", subject, st.tuples(origin, deltas), partial(typed, folding))
    if folding.reducer.squash is not None:
        yield Law("squash", subject, st.tuples(origin, deltas, delta, delta), partial(squashes, folding))


def field_laws(field: Field, app: str) -> Iterator[Law]:
    """The laws of the reducer of an app's field, on values of the field's type."""
    subject = f"{app}.{field.name} ({field.reduce})"
    folding = Folding(field.reducer, subject, held_shape(field), delta_shape((field,)), field.start, field.name)
    yield from _laws(folding)


def reducer_laws(reducer: Reducer) -> Iterator[Law]:
    """The laws of a reducer, on the types that it is made for."""
    for notation in types_of(reducer):
        field = Field("x", notation, reduce=reducer.name)
        held = held_type(field) if is_known(reducer) else f"{notation} | null" if reducer.empty is None else notation
        delta = "list[str]" if reducer.form == "tally" else notation
        yield from _laws(Folding(reducer, f"{reducer.name} of {notation}", _shape(held), _shape(delta), reducer.empty))


def _shape(notation: str) -> Shape[dict[str, Json]]:
    return Shape.fields("Value", {"x": parse_notation(notation)}, required=frozenset("x"))


def is_known(reducer: Reducer) -> bool:
    """Whether a field can name this reducer."""
    return known_reducers().get(reducer.name) is reducer or LAST.fullmatch(reducer.name) is not None


def types_of(reducer: Reducer) -> tuple[str, ...]:
    """Types that a field with this reducer may have."""
    if reducer.form != "same":
        return TYPES[reducer.form]
    return tuple(notation for kind in reducer.holds for notation in TYPES.get(kind, (kind,))) or SCALARS
