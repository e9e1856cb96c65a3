"""The turns of the apps `extract` and `route`: values of a type, or of one of several, read from a text after the turns before."""

import json
from typing import Any, cast

from taiwa.apps.catalog import values_of
from taiwa.conversation.app import EXTRACT, ROUTE, App, merge_sampling, settled
from taiwa.conversation.history import Conversation
from taiwa.flows.extract import RepairPolicy
from taiwa.flows.extract import extract as flow
from taiwa.flows.program_turn import TurnProgram, earlier_messages
from taiwa.flows.route import CONTENT, TO, NeedsClarification, Routed, Routes
from taiwa.flows.turn import Findings, Reply
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, assistant, system, user
from taiwa.kernel.serialization import Json
from taiwa.structured import OutputType


def extract_turn(app: App, attachments: tuple[Attachment, ...] = ()) -> TurnProgram:
    """Return the program of a turn of the apps `extract` and `route`, whose text has these attachments.

    Raises:
        InputError: the app has no type, or no types to choose from.
    """
    wanted, values = _wanted(app), values_of(app, EXTRACT)

    def extract(conversation: Conversation, text: str) -> Program[Reply]:
        opening: list[Message] = [system(app.instructions)] if app.instructions else []
        for shown in app.examples:
            opening += [user(shown.user), assistant(shown.answer)]
        found = yield from flow(
            wanted,
            (*opening, *earlier_messages(conversation), user(text, attachments)),
            repair=RepairPolicy(values["max_repairs"], guess=values["guess"]),
            mode=values["mode"],
            sampling=settled(merge_sampling(app.sampling, app.answer_options.sampling)),
        )
        findings = Findings(attempts=found.attempts)
        if isinstance(found.value, NeedsClarification):
            return Reply(found.value.question, findings=findings)
        value = _dump(wanted, found.value)
        return Reply(json.dumps(value, ensure_ascii=False), value=value, findings=findings)

    return extract


def _wanted(app: App) -> OutputType[Any] | Routes:
    """Return the type of the answers of an app; with `flow: route` the members of the type are the types to choose from.

    Raises:
        InputError: it has no type, or its type has no members.
    """
    whole = app.output_type
    if whole is None:
        raise InputError(f"the app {app.name!r} requires a type; give one: `answer` in its file, or --type TYPE")
    if app.flow != ROUTE:
        return whole
    schema = whole.json_schema.schema
    types, shared = schema.get("properties"), {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    if not isinstance(types, dict) or not types:
        raise InputError(f"the app {app.name!r} requires types to choose from: `answer: {{ NAME: TYPE, … }}`")
    members = cast("dict[str, dict[str, Json]]", types)
    return Routes({name: OutputType.from_json_schema(shared | each, name=name) for name, each in members.items()})


def _dump(wanted: OutputType[Any] | Routes, value: object) -> Json:
    if isinstance(wanted, Routes):
        assert isinstance(value, Routed), "a question was returned before"
        target = wanted.targets[value.to]
        return {TO: value.to, CONTENT: target.dump(value.value) if isinstance(target, OutputType) else None}
    return wanted.dump(value)
