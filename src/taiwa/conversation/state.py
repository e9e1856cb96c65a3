"""The state of a conversation and how it moves: by reducers, by a whole new object, by a person's hand, by another app."""

from collections.abc import Mapping
from typing import TypeAlias

from taiwa.conversation.derive import DERIVED, Moment
from taiwa.conversation.fields import Field, held_shape
from taiwa.kernel.errors import InputError, ShapeError
from taiwa.kernel.records import Json, digest

__all__ = ["State", "edited", "initial", "migrated", "replaced", "state_hash", "stepped"]

State: TypeAlias = "dict[str, Json]"
"""Field name -> JSON value, in the order of the fields. Never changed in place."""
Fields: TypeAlias = tuple[Field, ...]


def initial(fields: Fields) -> State:
    """The state before the first turn."""
    return {field.name: field.start for field in fields}


def stepped(fields: Fields, state: State, delta: Mapping[str, Json], moment: Moment) -> State:
    """Fold a delta in by each field's reducer, then compute the derived fields."""
    after = dict(state)
    for field in fields:
        if field.derive:
            before = state[field.name]
            after[field.name] = DERIVED[field.derive].next(Moment(moment.turn, moment.user, moment.answer, before))
        elif field.name in delta:
            after[field.name] = field.reducer.step(state[field.name], delta[field.name], moment.turn)
    return after


def replaced(fields: Fields, state: State, environment: Mapping[str, Json], moment: Moment) -> State:
    """Take a whole environment as the new state, the way it was first published."""
    given = {field.name: environment[field.name] for field in fields if field.name in environment and not field.derive}
    return stepped(fields, state, {}, moment) | given


def edited(fields: Fields, state: State, changes: Mapping[str, Json]) -> State:
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
            held_shape(known[name]).check({name: given})
        except ShapeError as error:
            raise InputError(f"the value does not fit: {'; '.join(error.diagnostics)}") from None
    return state | dict(changes)


def migrated(fields: Fields, state: State) -> State:
    """Carry a state over to another app: values that still fit stay, the others start anew."""
    return {field.name: state[field.name] if _fits(field, state) else field.start for field in fields}


def _fits(field: Field, state: State) -> bool:
    if field.name not in state:
        return False
    try:
        held_shape(field).check({field.name: state[field.name]})
    except ShapeError:
        return False
    return True


def state_hash(state: State) -> str:
    """32 hex characters that name the state."""
    return digest(state)
