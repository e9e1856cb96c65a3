"""Values of the state: read and set by their path, with their history and origin."""

import json
from collections.abc import Sequence

from taiwa.conversation.state import Change, Missing, diff_states, format_path, get_path, parse_path
from taiwa.kernel.errors import InputError, NotFoundError
from taiwa.kernel.serialization import Json
from taiwa.operations.log import model_calls
from taiwa.operations.results import StateEdit, ValueEntry, WhyResult
from taiwa.sessions.repository import Repository, value_changes

SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def why(repository: Repository, path: str, revision: str) -> WhyResult:
    """Return the node that set a value of the state last, and its calls.

    Raises:
        InputError: the path is invalid, or the state never had a value there.
    """
    where = parse_path(path)
    store = repository.store
    tip = store.resolve(revision)
    origin = repository.find_origin(tip, where)
    if origin is None:
        app = repository.app(store.nodes.get(tip).app).name
        name = revision or repository.session()
        raise NotFoundError(
            f"no value at {format_path(where)} in {name!r} (app {app}); `taiwa log` lists the conversations"
        )
    calls = model_calls(store.runs.calls(origin.hash, store.refs.session_of(revision)))
    return WhyResult(where, origin, calls)


def value_at(state: Json, path: str) -> Json:
    """Return the value at a path of a state.

    Raises:
        InputError: the state has no value there.
    """
    value = dict(state) if isinstance(state, dict) else {}
    found = get_path(value, parse_path(path))
    if isinstance(found, Missing):
        raise NotFoundError(f"no value at {path}; fields: {', '.join(value) or 'none'}")
    return found


def value_history(repository: Repository, path: str, revision: str) -> tuple[ValueEntry, ...]:
    """Return every value that a path of the state had, oldest first."""
    where = parse_path(path)
    changes = value_changes(repository.walk(repository.store.resolve(revision)), where)
    return tuple(
        ValueEntry(entry.hash, f"{entry.node.kind} {entry.after.count}", value)
        for entry, _, value in changes
        if not isinstance(value, Missing)
    )


def set_value(
    repository: Repository, session: str, path: str, new: Json, *, author: str = "", at: str = ""
) -> tuple[StateEdit, tuple[Change, ...]]:
    """Set a value of the state by hand, as a node of its own; return the new state and the changes.

    `author` is who did it; with `at` the session continues from that node.

    Raises:
        InputError: the path does not exist, or the value does not fit the field.
    """
    session = repository.session(session)
    before = repository.at(at or session)
    where = parse_path(path)
    field = str(where[0])
    values = {field: put_value(before.state.get(field), where[1:], new)}
    after = repository.set_state(session, values, author=author, at=before.tip)
    return StateEdit(after, session, before.tip), tuple(diff_states(dict(before.state), dict(after.state)))


def put_value(value: Json, path: Sequence[str | int], new: Json) -> Json:
    """Return a copy of a value with a new value at a path inside it.

    Raises:
        InputError: the path does not exist.
    """
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        return value | {str(step): put_value(value.get(str(step)), rest, new)}
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        at = step % len(value)
        return [*value[:at], put_value(value[at], rest, new), *value[at + 1 :]]
    raise InputError(f"{step!r} not found in {format_value(value)[:60]}")


def format_value(value: Json) -> str:
    """Write a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def describe_change(change: Change) -> str:
    """Write a change of the state on one line."""
    sign, where = SIGNS[change.kind], format_path(change.path)
    if change.kind == "changed":
        return f"{sign} {where}: {format_value(change.before)} → {format_value(change.after)}"
    return f"{sign} {where}: {format_value(change.after if change.kind == 'added' else change.before)}"
