"""Looking at state: what it is, where two places differ, and who set a value."""

import difflib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table, tell
from taiwa.conversation.places import ABSENT, Absent, Change, changes, look, read_place, write_place
from taiwa.i18n import _
from taiwa.kernel.effects import Abilities
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.conversation.history import Conversation
    from taiwa.store import Call
    from taiwa.talk.desk import Desk

__all__ = ["asked", "call_line", "change_line", "diff", "print_diff", "print_why", "shown", "state", "why"]

SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}


def shown(held: Json) -> str:
    """A value in one line."""
    return json.dumps(held, ensure_ascii=False)


def change_line(change: Change) -> tuple[str, str]:
    """A difference in one line, and its colour."""
    sign, style = SIGNS[change.kind]
    where = write_place(change.place)
    if change.kind == "changed":
        return f"{sign} {where}: {shown(change.before)} → {shown(change.after)}", style
    return f"{sign} {where}: {shown(change.after if change.kind == 'added' else change.before)}", style


def asked(calls: "Iterable[Call]") -> "tuple[Call, ...]":
    """The calls that asked somebody; what a model can do is looked up here and recorded all the same."""
    return tuple(call for call in calls if call.kind != Abilities.__name__)


def call_line(call: "Call") -> str:
    """A call in one line: who was asked, tokens in and out, how long it took."""
    tokens = "tokens unknown"
    if call.usage is not None:
        tokens = f"{call.usage.input_tokens} in + {call.usage.output_tokens} out tokens"
    said = (call.model, tokens) if call.model else (call.kind.lower(),)
    return ", ".join((*said, f"{call.ms} ms"))


@click.command()
@click.argument("before")
@click.argument("after", required=False, default="")
@flags("json", "store")
def diff(shared: Flags, before: str, after: str) -> None:
    """Compare two places of conversations: their states and what was said since they parted.

    AFTER is the latest place of the current conversation when it is left out.

    \b
    taiwa diff chat-1~2            what the last two turns of chat-1 changed, when it is the current one
    taiwa diff chat-1 plan-b       two branches
    """
    print_diff(shared.desk(), before, after, as_json=shared.as_json)


def print_diff(desk: "Desk", before: str, after: str, *, as_json: bool = False) -> None:
    """Print what differs between two revisions."""
    left, right = desk.store.resolve(before), desk.store.resolve(after)
    old, new = desk.checkout(left), desk.checkout(right)
    found = tuple(changes(dict(old.state), dict(new.state)))
    one, other = _said(desk, left), _said(desk, right)
    if as_json:
        lines: list[Json] = [line for line in difflib.ndiff(one, other) if line[0] in "+-"]
        kept: list[Json] = [_change(change) for change in found]
        emit({"before": left, "after": right, "state": kept, "text": lines})
        return
    for change in found:
        line, style = change_line(change)
        say_line(line, style)
    for line in difflib.unified_diff(one, other, before or "latest", after or "latest", lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            say_line(f"{line[0]} {line[1:]}", "green" if line.startswith("+") else "red")
    if not found and one == other:
        say_line(_("nothing changed"))


@click.command()
@click.argument("place")
@click.argument("revision", required=False, default="")
@flags("session", "json", "store")
def why(shared: Flags, place: str, revision: str) -> None:
    """Say which turn, and which call of the model, set the value at PLACE last.

    \b
    taiwa why topics
    taiwa why dictionary.文
    taiwa why 'order[0].size' chat-1~3
    """
    print_why(shared.desk(), place, revision or shared.session, as_json=shared.as_json)


def print_why(desk: "Desk", place: str, revision: str, *, as_json: bool = False) -> None:
    """Print who set a value."""
    where = read_place(place)
    origin = desk.origin(desk.store.resolve(revision), where)
    node, calls = origin.node, asked(desk.store.runs.calls(origin.hash))
    models = [call.model for call in calls if call.model]
    if as_json:
        emit(
            {
                "place": place, "node": origin.hash, "kind": node.kind, "turn": origin.turn,
                "before": origin.before, "after": origin.after, "user": node.user, "answer": node.answer,
                "delta": node.delta, "models": list[Json](models),
            }
        )  # fmt: skip
        return
    by = {"turn": f"turn {origin.turn}", "edit": "an edit by hand", "app": "a change of app"}.get(
        node.kind, "the app's start"
    )
    say_line(f"{write_place(where)} = {shown(origin.after)}", "bold")
    say_line(
        f"  set by {by} ({origin.hash[:12]}){f', before: {shown(origin.before)}' if origin.before is not None else ''}"
    )
    if node.user is not None:
        say_line(f"  you said:    {node.user}")
        say_line(f"  it answered: {node.answer}")
    if node.delta is not None:
        say_line(f"  delta:       {shown(node.delta)}")
    for call in calls:
        say_line(f"  call:        {call_line(call)}")


@click.group(invoke_without_command=True)
@click.pass_context
@flags("session", "json", "store")
def state(shared: Flags, ctx: click.Context) -> None:
    """Show the state, or part of it; set it by hand; trace how it came to be.

    \b
    taiwa state                            the state of the latest conversation
    taiwa state get dictionary.文
    taiwa state set topics '["tea"]'       an edit is a node of its own: why and undo know it
    taiwa state history topics             every value that there was
    """
    if ctx.invoked_subcommand is None:
        _print(shared.desk().at(shared.session), shared)


@state.command()
@click.argument("place", default="")
@click.argument("revision", default="")
@flags("session", "json", "store")
def get(shared: Flags, place: str, revision: str) -> None:
    """Show what stands at PLACE, or everything."""
    here = shared.desk().at(revision or shared.session)
    if not place:
        _print(here, shared)
        return
    held = look(dict(here.state), read_place(place))
    if isinstance(held, Absent):
        raise InputError(f"nothing stands at {place}; fields: {', '.join(here.state) or 'none'}")
    emit(held) if shared.as_json else say_line(shown(held))


@state.command("set")
@click.argument("place")
@click.argument("given")
@flags("session", "json", "store")
def set_(shared: Flags, place: str, given: str) -> None:
    """Set the field PLACE to a JSON value; words that are no JSON are taken as text."""
    desk = shared.desk()
    session = desk.session(shared.session)
    try:
        held: Json = json.loads(given)
    except ValueError:
        held = given
    before = desk.at(session)
    where = read_place(place)
    after = desk.set_state(session, {str(where[0]): placed(before.state.get(str(where[0])), where[1:], held)})
    if shared.as_json:
        emit({"session": session, "node": after.tip, "parent": before.tip, "state": after.state})
        return
    for change in changes(dict(before.state), dict(after.state)):
        say_line(*change_line(change))


@state.command()
@click.argument("place")
@flags("session", "json", "store")
def history(shared: Flags, place: str) -> None:
    """Show every value that stood at PLACE, oldest first."""
    desk = shared.desk()
    where = read_place(place)
    rows: list[tuple[str, str, str]] = []
    last: Json | Absent = ABSENT
    for stop in desk.walk(desk.store.resolve(shared.session)):
        held = look(dict(stop.after.state), where)
        if not isinstance(held, Absent) and held != last:
            rows.append((stop.hash, f"{stop.node.kind} {stop.after.count}", shown(held)))
        last = held
    if shared.as_json:
        emit([{"node": node, "by": by, "value": json.loads(held)} for node, by, held in rows])
        return
    if not rows:
        tell(f"nothing ever stood at {place}")
    else:
        table(("node", "by", "value"), [(node[:12], by, held) for node, by, held in rows])


def placed(held: Json, place: tuple[str | int, ...], given: Json) -> Json:
    """Return the value with another one put at a place inside it.

    Raises:
        InputError: there is no such place.
    """
    if not place:
        return given
    step, rest = place[0], place[1:]
    if isinstance(held, dict):
        return held | {str(step): placed(held.get(str(step)), rest, given)}
    if isinstance(held, list) and isinstance(step, int) and -len(held) <= step < len(held):
        at = step % len(held)
        return [*held[:at], placed(held[at], rest, given), *held[at + 1 :]]
    raise InputError(f"there is no place {step!r} in {shown(held)[:60]}")


def _print(here: "Conversation", shared: Flags) -> None:
    if shared.as_json:
        emit({"node": here.tip, "turn": here.count, "app": here.app.name, "state": here.state})
        return
    if not here.state:
        tell(f"the app {here.app.name!r} keeps no state")
    for name, held in here.state.items():
        say_line(f"{name}: {shown(held)}")


def _said(desk: "Desk", tip: str) -> list[str]:
    """Every line that was said on the way to a node."""
    lines: list[str] = []
    for _step, node in reversed(tuple(desk.store.nodes.path(tip))):
        if node.kind == "turn":
            lines += [f"> {line}" for line in (node.user or "").splitlines()]
            lines += [f"  {line}" for line in (node.answer or "").splitlines()]
    return lines


def _change(change: Change) -> Json:
    return {"place": write_place(change.place), "kind": change.kind, "before": change.before, "after": change.after}
