"""Dialogue state: after every turn of the user, the fields that the user has asked for, on SGD and CrossWOZ.

The replies of the data stand in the history, never the model's, so a turn does not depend on what was answered before. The state
does: taiwa carries it on through its own deltas, one turn after the other, as in use; the other ways write it whole, anew from
the dialogue. An item is a dialogue, so intervals are drawn over dialogues.

Values are compared as by the evaluation of SGD: categorical ones exactly, others by a fuzzy ratio of their sorted words, of
which 0.8 or more is right; any of several spellings counts. A turn has its joint goal if all fields are right and no other is set.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, Optional, cast, get_args
from unicodedata import normalize

from pydantic import BaseModel, Field, create_model

from evals.real.peers import Messages, PeerError, Peers, peer_errors
from evals.real.task import COST_COLUMNS, WAY_COLUMNS, Found, RealTask, data_set, invalid, reasons, time_fields
from taiwa.conversation.app import App, AppSource, ReplyMode
from taiwa.conversation.history import Conversation, add_turn, begin
from taiwa.conversation.state import StateField
from taiwa.evals.data import DataSet, Fields, Item, read_fields
from taiwa.evals.report import (
    Column,
    SetReport,
    bootstrap,
    decimal_text,
    decimal_with_interval,
    interval_json,
    plain,
    rounded,
    sum_field,
    with_interval,
)
from taiwa.evals.run import EvalRow, Job
from taiwa.flows.turn import say
from taiwa.kernel.errors import InputError, ModelError, OutputValidationError, OverloadedError
from taiwa.kernel.serialization import Json, canonical
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.sessions.batch import is_fatal

FUZZY = 0.8
LAYOUTS = get_args(ReplyMode)
DEFAULT_WAYS = ("taiwa", *(f"taiwa:{each}" for each in LAYOUTS if each != App.reply), "openai", "instructor")
WAYS = ("taiwa", *(f"taiwa:{each}" for each in LAYOUTS), "openai", "instructor")
ABOUT = "You help a user with these services:\n{services}"
INSTRUCTION = """\
Track what the user of a dialogue asks for. Read the dialogue and write a JSON object with every field below: the value that \
the user wants at its end, or null.

{fields}"""

State = dict[str, str]
"""The values of the fields that are set."""
Gold = Mapping[str, Sequence[str]]
"""The right spellings of each field that is set."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A field: its name, its description, and its values if it is categorical."""

    name: str
    about: str
    values: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The field as a line of a prompt."""
        values = f" (one of: {', '.join(self.values)})" if self.values else ""
        return f"- {self.name}: {self.about}{values}"


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a dialogue: what the user said, the reply of the data, and the right state after the user spoke."""

    user: str
    system: str
    gold: Gold


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A dialogue: what its services are for, the fields of all of them, and its turns."""

    about: str
    slots: tuple[Slot, ...]
    turns: tuple[Turn, ...]


def read_dialogues(paths: Sequence[Path], limit: int | None, seed: int) -> DataSet:
    """Read dialogues; of each file as many, drawn by the seed, as have `limit` turns, the last one cut there.

    Raises:
        InputError: a file or a row cannot be used.
    """
    digests: list[str] = []
    items: list[Item] = []
    for path in paths:
        digest, rows = read_fields(path)
        digests.append(digest)
        drawn = list(rows)
        random.Random(seed).shuffle(drawn)  # noqa: S311  (a repeatable draw, not a secret)
        left = limit
        for whole in drawn:
            turns = whole.array("turns")[:left]
            if not turns:
                break
            row = replace(whole, row={**whole.row, "turns": list(turns)})
            read_dialogue(row)  # a row that cannot be used is an error before anything is measured
            more = {"services": row.row["services"], "turns": row.row["turns"]}
            cut = len(turns) < len(whole.array("turns"))  # under a name of its own, since another limit cuts elsewhere
            items.append(
                Item(f"{row.text('id')}:{len(turns)}" if cut else row.text("id"), "", "", path.stem, more=more)
            )
            left = None if left is None else left - len(turns)
    return data_set(paths, digests, items)


def read_dialogue(row: Fields) -> Dialogue:
    """Read a dialogue.

    Raises:
        InputError: a field is missing.
    """
    services = row.row.get("services")
    if not isinstance(services, dict):
        row.invalid("services", "must be an object")
    slots: list[Slot] = []
    lines: list[str] = []
    for name, service in services.items():
        part = Fields(f"{row.where}: {name}", cast("dict[str, Json]", service))
        lines.append(f"- {name}: {part.text('description')}")
        slots += [
            Slot(f"{name}_{each.text('name')}", each.text("description", each.text("name")), each.texts("values") if "values" in each else ())
            for each in part.parts("fields")
        ]  # fmt: skip
    turns = tuple(
        Turn(each.text("user"), each.text("system"), gold_state(each.row["state"])) for each in row.parts("turns")
    )
    return Dialogue("\n".join(lines), tuple(slots), turns)


def gold_state(state: Json) -> Gold:
    """Return the spellings of each field, by the names of service and field.

    >>> gold_state({"Weather_1": {"city": ["Oakley"]}})
    {'Weather_1_city': ['Oakley']}
    """
    services = cast("dict[str, dict[str, Json]]", state)
    return {
        f"{service}_{name}": [str(each) for each in part] if isinstance(part, list) else [str(part)]
        for service, fields in services.items() for name, part in fields.items()
    }  # fmt: skip


def token_ratio(one: str, other: str) -> float:
    """Return the similarity of two texts, 0 to 1, by their words in alphabetical order; texts without spaces by their characters.

    >>> token_ratio("6:30 in the evening", "in the evening 6:30"), token_ratio("Oakley", "oakley ")
    (1.0, 1.0)
    """
    these, those = (" ".join(sorted(normalize("NFKC", text).casefold().split())) for text in (one, other))
    return SequenceMatcher(None, these, those, autojunk=False).ratio()


def is_right(value: str, spellings: Sequence[str], *, categorical: bool) -> bool:
    """Return whether a value is one of the spellings: exactly, but for case, or by the fuzzy ratio."""
    if categorical:
        return any(value.strip().casefold() == each.strip().casefold() for each in spellings)
    return any(token_ratio(value, each) >= FUZZY for each in spellings)


def compare_states(state: State, gold: Gold, slots: Sequence[Slot]) -> tuple[int, int, int]:
    """Count right, wrong and missing fields; a field with a wrong value is both wrong and missing.

    >>> slots = (Slot("city", ""), Slot("day", ""))
    >>> compare_states({"city": "Oakley", "day": "Monday"}, {"city": ["Oakley"]}, slots)
    (1, 1, 0)
    """
    categorical = {slot.name for slot in slots if slot.values}
    right = sum(
        name in gold and is_right(value, gold[name], categorical=name in categorical) for name, value in state.items()
    )
    return right, len(state) - right, len(gold) - right


def set_values(state: Json) -> State:
    """Return the fields of a state that are set; null and blank values are not."""
    if not isinstance(state, dict):
        return {}
    texts = {name: str(part).strip() for name, part in state.items() if isinstance(part, (str, int, float))}
    return {name: text for name, text in texts.items() if text}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state after a turn; `told` is why a change may be missing, if the way says so."""

    state: State
    told: str = ""


def score_turns(dialogue: Dialogue, outcomes: Sequence[Outcome]) -> Found:
    """Count the figures of a dialogue.

    A loss is silent if the right state changed, the state did not, and nothing was said about it.
    """
    counts = dict.fromkeys(("turns", "joint", "right", "wrong", "missing", "changes", "silent", "failed_turns"), 0)
    before, gold_before = State(), cast("Gold", {})
    for turn, outcome in zip(dialogue.turns, outcomes, strict=True):
        right, wrong, missing = compare_states(outcome.state, turn.gold, dialogue.slots)
        changed = dict(turn.gold) != dict(gold_before)
        counts["turns"] += 1
        counts["joint"] += not wrong and not missing
        counts["right"] += right
        counts["wrong"] += wrong
        counts["missing"] += missing
        counts["changes"] += changed
        counts["silent"] += changed and outcome.state == before and not outcome.told
        counts["failed_turns"] += bool(outcome.told)
        before, gold_before = outcome.state, turn.gold
    return {**counts}


def app_of(dialogue: Dialogue, task: "StateTask", reply: str) -> App:
    """Return the app that one would write for the services of a dialogue: its fields, and no examples."""
    fields = tuple(
        StateField(slot.name, " | ".join(json.dumps(each, ensure_ascii=False) for each in slot.values) or "str", description=slot.about)
        for slot in dialogue.slots
    )  # fmt: skip
    body = ABOUT.format(services=dialogue.about)
    source = canonical({"body": body, "fields": [[each.name, each.type] for each in fields], "reply": reply}).decode()
    return App(
        AppSource("dialogue", source),
        body,
        fields,
        reply=cast("ReplyMode", reply or App.reply),
        sampling=task.real.sampling,
    )


@dataclass(kw_only=True)
class StateTask(RealTask):
    """The task of `state`."""

    name: str = "state"
    _models: dict[tuple[Slot, ...], Any] = field(default_factory=dict[tuple[Slot, ...], Any], init=False, repr=False)

    async def by_taiwa(self, job: Job, limits: UsageLimits) -> tuple[Found, RunUsage]:
        """Take the turns of a dialogue in an app; a variant is its reply mode."""
        backend, _, variant = job.setting.partition(":")
        dialogue, ours = dialogue_of(job.item), self.ours(backend)
        conversation, spent = begin(app_of(dialogue, self, variant)), RunUsage()
        outcomes: list[Outcome] = []
        for turn in dialogue.turns:
            told, delta = "", cast("Json", {})
            try:
                done = await ours.runtime(limits).run_result(say(turn.user)(conversation))
                reply = done.value[0]
                spent, delta, told = spent + done.spent, reply.delta, "; ".join(reply.warnings)
            except (ModelError, OutputValidationError) as error:
                if is_fatal(error) or isinstance(error, OverloadedError):
                    raise
                spent += error.spent if isinstance(error.spent, RunUsage) else RunUsage()
                told = str(invalid(error)["reason"])
            conversation = _with_reply(conversation, turn, delta)
            outcomes.append(Outcome(set_values(conversation.state), told))
        return _found(outcomes), spent

    async def by_peer(self, job: Job, peers: Peers) -> Found:
        """Write the whole state after each turn; if that fails, the one before stays."""
        dialogue, outcomes = dialogue_of(job.item), list[Outcome]()
        for number in range(len(dialogue.turns)):
            messages = state_messages(dialogue, number)
            try:
                with peer_errors():
                    if job.setting == "openai":
                        value = json.loads(await peers.complete(messages, state_schema(dialogue)))
                    else:
                        value = await peers.instruct(messages, self._model(dialogue))
                outcomes.append(Outcome(set_values(value)))
            except PeerError as error:
                outcomes.append(Outcome(outcomes[-1].state if outcomes else State(), error.message))
        return _found(outcomes)

    def _model(self, dialogue: Dialogue) -> type[BaseModel]:
        if dialogue.slots not in self._models:
            fields: dict[str, Any] = {
                slot.name: (Optional[Literal[slot.values] if slot.values else str], Field(description=slot.about))  # noqa: UP045
                for slot in dialogue.slots
            }
            self._models[dialogue.slots] = create_model("State", **fields)
        return cast("type[BaseModel]", self._models[dialogue.slots])

    def score(self, item: Item, found: Found) -> Found:
        """Compare the states of a dialogue with the right ones."""
        dialogue = dialogue_of(item)
        states = cast("list[State]", found.get("states")) or [State()] * len(dialogue.turns)
        told = cast("list[str]", found.get("told")) or [str(found.get("reason", ""))] * len(dialogue.turns)
        return score_turns(dialogue, [Outcome(*pair) for pair in zip(states, told, strict=True)])


def dialogue_of(item: Item) -> Dialogue:
    """Return the dialogue of an item."""
    return read_dialogue(Fields(item.id, item.more))


def _found(outcomes: Sequence[Outcome]) -> Found:
    told = [outcome.told for outcome in outcomes]
    reason: Found = {"reason": next(each for each in told if each)} if any(told) else {}
    return {"valid": not any(told), "states": [dict(outcome.state) for outcome in outcomes], "told": [*told], **reason}


def _with_reply(conversation: Conversation, turn: Turn, delta: Json) -> Conversation:
    """Add a turn with the reply of the data and the delta of the model."""
    try:
        return add_turn(conversation, turn.user, turn.system, delta or {})
    except InputError:
        return add_turn(conversation, turn.user, turn.system, {})


def state_messages(dialogue: Dialogue, number: int) -> Messages:
    """Return the prompt for the whole state after a turn of the user."""
    lines = [line for turn in dialogue.turns[:number] for line in (f"User: {turn.user}", f"System: {turn.system}")]
    text = "\n".join([*lines, f"User: {dialogue.turns[number].user}"])
    system = INSTRUCTION.format(fields="\n".join(slot.line for slot in dialogue.slots))
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def state_schema(dialogue: Dialogue) -> dict[str, Json]:
    """Return the schema of a whole state, in which every field is written."""
    properties: dict[str, Json] = {
        slot.name: {"anyOf": [{"enum": [*slot.values]} if slot.values else {"type": "string"}, {"type": "null"}]}
        for slot in dialogue.slots
    }
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _line(rows: Sequence[EvalRow]) -> Found:
    done = [row for row in rows if row.error is None]
    counts = {name: sum_field(done, name) for name in ("turns", "joint", "right", "wrong", "missing", "changes", "silent", "failed_turns")}  # fmt: skip
    right, wrong, missing = counts["right"], counts["wrong"], counts["missing"]
    seconds = sum(row.spent.seconds for row in done)
    return {
        **{name: count for name, count in counts.items() if name != "joint"},
        "joint": rounded(joint_goal(done)) if done else None, "joint_interval": interval_json(bootstrap(done, joint_goal)),
        "joint_of": [counts["joint"], counts["turns"]],
        "f1": rounded(slot_f1(done)) if done else None, "f1_interval": interval_json(bootstrap(done, slot_f1)),
        "precision": rounded(right / (right + wrong)) if right + wrong else None,
        "recall": rounded(right / (right + missing)) if right + missing else None,
        **reasons(done), **time_fields(done), "seconds_per_turn": rounded(seconds / counts["turns"]) if counts["turns"] else None,
    }  # fmt: skip


def joint_goal(rows: Sequence[EvalRow]) -> float:
    """Return the joint goal accuracy over the turns of dialogues."""
    return sum_field(rows, "joint") / (sum_field(rows, "turns") or 1)


def slot_f1(rows: Sequence[EvalRow]) -> float:
    """Return the F1 of the fields over the turns of dialogues."""
    right = sum_field(rows, "right")
    total = 2 * right + sum_field(rows, "wrong") + sum_field(rows, "missing")
    return 2 * right / total if total else 1.0


REPORT = SetReport(
    _line,
    (
        *WAY_COLUMNS,
        Column("turns", plain("turns")),
        Column("joint goal %", with_interval("joint", "joint_interval"), figure=True),
        Column("slot F1", decimal_with_interval("f1"), figure=True),
        Column("precision", lambda line: decimal_text(line.get("precision")), figure=True),
        Column("recall", lambda line: decimal_text(line.get("recall")), figure=True),
        Column("changes", plain("changes"), main=False),
        Column("silent losses", plain("silent"), figure=True),
        Column("failed turns", plain("failed_turns"), figure=True),
        *COST_COLUMNS[:3],
        Column("s/turn", lambda line: decimal_text(line.get("seconds_per_turn"), 1)),
        *COST_COLUMNS[4:],
    ),
    "joint",
    "turns with the joint goal, %",
    (
        "n counts dialogues. The state is carried on by taiwa's own deltas, and written anew by the other ways; the replies in the history are those of the data.",
        "Values: categorical ones exact, others with a fuzzy ratio of 0.8 or more. Intervals at 95 % of 1,000 draws of the dialogues.",
    ),
)
