"""The layout `record`: before the answer, a short request of its own asks which fields the last message of the user changes.

Its prompt holds the fields, examples made from them, the last exchange and the state, and not the conversation: a small model
fills in fewer fields that nobody spoke of than where it writes the state beside its answer (decision 0045). It answers with a
list of changes, because a list that may be empty is left empty more reliably than keys are left out or set to null.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.conversation.replies import ParsedReply, parse_delta
from taiwa.conversation.state import StateField
from taiwa.conversation.turn_prompt import known_state
from taiwa.kernel.errors import OutputValidationError
from taiwa.kernel.messages import JsonSchema, Message, Request, Sampling, assistant, system, user
from taiwa.kernel.serialization import Json
from taiwa.structured import OutputType

INSTRUCTIONS = """\
You keep the record of a dialogue. Fields of the record:
{fields}

After each message of the user you write as a JSON list of {{"field", "value"}} what this last message states or changes, with \
the value as the user said it. The list is [] if the message states nothing new."""

LAST = "{said}\n\nRecord so far: {state}"
EXCHANGE = "Assistant said: {answer}\nUser says: {text}"
MAX_TOKENS = 1_024
"""Tokens of a list of changes; far more than a turn changes, so that a model that repeats itself ends."""


def record_request(conversation: Conversation, text: str) -> Request:
    """Return the request for what a text of the user changes."""
    app = conversation.app
    view = known_state(app.model_fields, conversation.state)
    said = EXCHANGE.format(answer=conversation.last_answer, text=text) if conversation.last_answer else text
    messages = (*_opening(app), user(_last(said, view)))
    return Request(messages, constraint=changes_schema(app), sampling=Sampling(max_tokens=MAX_TOKENS))


def changes_schema(app: App) -> JsonSchema:
    """Return the schema of a list of changes: items of a field and what is written to it."""
    delta = app.delta_type.schema()
    kinds = delta["properties"]
    assert isinstance(kinds, dict), "the schema of a delta is that of an object"
    items: list[Json] = [
        {
            "type": "object",
            "properties": {"field": {"const": name}, "value": kind},
            "required": ["field", "value"],
            "additionalProperties": False,
        }
        for name, kind in kinds.items()
    ]
    named: dict[str, Json] = {"$defs": delta["$defs"]} if "$defs" in delta else {}
    # Without a bound, a small model that has begun to list changes goes on until it is cut.
    return JsonSchema({"type": "array", "maxItems": len(items), "items": {"anyOf": items}, **named}, "changes")


def parse_changes(app: App, text: str) -> ParsedReply:
    """Parse a list of changes into a state delta; the answer is empty. Changes of one field are joined."""
    try:
        items = _any_list().parse(text).value
    except OutputValidationError as error:
        return ParsedReply("", None, error.diagnostics or (error.message,))
    delta: dict[str, Json] = {}
    for item in items:
        name = item.get("field")
        if not isinstance(name, str):
            return ParsedReply("", None, (f"{json.dumps(item, ensure_ascii=False)[:60]} does not name a field",))
        new = cast("Json", item.get("value"))
        delta[name] = _joined(delta[name], new) if name in delta else new
    return parse_delta(app, json.dumps(delta, ensure_ascii=False))


def _joined(before: Json, after: Json) -> Json:
    if isinstance(before, list) and isinstance(after, list):
        return [*before, *after]
    if isinstance(before, dict) and isinstance(after, dict):
        return before | after
    return after


@lru_cache(maxsize=1)
def _any_list() -> OutputType[list[dict[str, object]]]:
    return OutputType(list[dict[str, object]])


@lru_cache(maxsize=64)
def _opening(app: App) -> tuple[Message, ...]:
    """Return the instructions, and exchanges that show when a change is written and when none is."""
    lines = "\n".join(
        f"- {field.name} ({field.delta_notation}): {field.description}".rstrip(": ") for field in app.model_fields
    )
    messages = [system(INSTRUCTIONS.format(fields=lines))]
    shown = _examples(app)
    first, last = dict([*shown.items()][:1]), dict([*shown.items()][1:])
    exchanges: list[tuple[str, dict[str, Json], dict[str, Json]]] = [
        ("Hello.", {}, {}),
        (f"{_spoken(first)}, please.", {}, first),
        ("What would that cost?", first, {}),
    ]
    exchanges += [(f"And {_spoken(last)}.", first, last)] if last else []
    for said, before, changed in exchanges:
        messages += (user(_last(said, before)), assistant(_changes(changed)))
    for example in app.examples:
        messages += (
            user(_last(example.user, {})),
            assistant(_changes(example.delta if isinstance(example.delta, dict) else {})),
        )
    return tuple(messages)


def _last(said: str, view: Mapping[str, Json]) -> str:
    return LAST.format(said=said, state=json.dumps(view, ensure_ascii=False))


def _changes(delta: Mapping[str, Json]) -> str:
    return json.dumps([{"field": name, "value": part} for name, part in delta.items()], ensure_ascii=False)


def _examples(app: App) -> dict[str, Json]:
    """Return values of one or two fields that a model cannot take for facts: their names in angle brackets.

    A list, a table, a number or a choice stands in only if no field is text: the second two are taken for facts.
    """
    texts = [field for field in app.model_fields if _fits(app, field, f"<{field.name}>")]
    if texts:
        return {field.name: f"<{field.name}>" for field in (texts[0], texts[len(texts) // 2])}
    field = app.model_fields[0]
    place = f"<{field.name}>"
    values: tuple[Json, ...] = ([place], {place: place}, 1, 0.5, True, *_choices(app, field))
    return {field.name: next((each for each in values if _fits(app, field, each)), None)}


def _fits(app: App, field: StateField, example: Json) -> bool:
    return not parse_delta(app, json.dumps({field.name: example})).problems


def _choices(app: App, field: StateField) -> tuple[Json, ...]:
    """Return the values of an enum."""
    kinds = app.delta_type.schema()["properties"]
    kind = kinds.get(field.name) if isinstance(kinds, dict) else None
    listed = kind.get("enum") if isinstance(kind, dict) else None
    return tuple(listed) if isinstance(listed, list) else ()


def _spoken(changed: Mapping[str, Json]) -> str:
    """Return an example value as a user would say it."""
    example = next(iter(changed.values()))
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)
