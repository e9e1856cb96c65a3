"""The layout `record`: before the answer, a short request of its own asks which fields the last message of the user changes; after
it, another one which fields the reply changes, if the app has such.

Its prompt holds the fields, examples made from them, the last exchange and the state, and not the conversation: a small model
fills in fewer fields that the user did not mention than where it writes the state beside its answer (decision 0045). It answers with a
list of changes, because a list that may be empty is left empty more reliably than keys are left out or set to null. Each change of the
user begins with the sentence of the message that states it, and the schema lists these sentences: no sentence states an invented change.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.conversation.record_prompts import BY_LANGUAGE, RecordPrompts, record_language
from taiwa.conversation.replies import ParsedReply, fit_delta
from taiwa.conversation.state import FieldSource, State, StateField
from taiwa.conversation.turn_prompt import known_state
from taiwa.kernel.errors import OutputValidationError
from taiwa.kernel.messages import JsonSchema, Message, Request, Sampling, assistant, system, user
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import sentences
from taiwa.structured import OutputType

STATED = "^[^<>]+$"
MOST_SENTENCES = 20
"""Sentences of a message that a schema lists; of a longer message the model writes the words itself."""
LONGEST_SENTENCE = 200
MOST_PER_SENTENCE = 6
"""Changes for each sentence of a message; more are none that it states."""
MAX_TOKENS = 1_024
"""Tokens of a list of changes; far more than a turn changes, so that a model that repeats itself ends."""


def fields_from(app: App, source: FieldSource) -> tuple[StateField, ...]:
    """Return the fields whose values the user, or the reply, states."""
    return tuple(field for field in app.model_fields if field.source == source)


def known_words(app: App, state: State) -> str:
    """Return the texts in the state, by which documents about the same things are found."""
    names = {field.name for field in app.model_fields}
    parts = (state[name] for name in state if name in names)
    return " ".join(
        part for each in parts for part in (each if isinstance(each, list) else [each]) if isinstance(part, str)
    )


def record_request(
    conversation: Conversation, text: str, reply: str | None = None, state: "State | None" = None
) -> Request:
    """Return the request for what a text of the user changes, or the `reply` to it; `state` is the present one."""
    app = conversation.app
    source: FieldSource = "user" if reply is None else "reply"
    view = known_state(fields_from(app, source), conversation.state if state is None else state)
    prompts = _prompts(app, source, text, conversation.last_answer)
    if reply is not None:
        said = prompts.reply.format(text=text, answer=reply)
    else:
        before = conversation.last_answer
        said = prompts.exchange.format(answer=before, text=text) if before else text
    messages = (*_opening(app, source, prompts), user(_last(prompts, said, view)))
    constraint = changes_schema(app, text) if reply is None else changes_schema(app)
    return Request(messages, constraint=constraint, sampling=Sampling(max_tokens=MAX_TOKENS))


def changes_schema(app: App, text: str | None = None) -> JsonSchema:
    """Return the schema of a list of changes that a text of the user states, or a reply where it is None.

    An item is a field and what is written to it, after the sentence of the user that states it.
    """
    source: FieldSource = "reply" if text is None else "user"
    listed = () if text is None else sentences(text)
    said: dict[str, Json] = {} if text is None else {"said": _said(listed)}
    delta = app.delta_type.schema()
    names = {field.name for field in fields_from(app, source)}
    kinds = delta["properties"]
    assert isinstance(kinds, dict), "the schema of a delta is that of an object"
    items: list[Json] = [
        {
            "type": "object",
            "properties": {**said, "field": {"const": name}, "value": _stated(kind)},
            "required": [*said, "field", "value"],
            "additionalProperties": False,
        }
        for name, kind in kinds.items()
        if name in names
    ]
    named: dict[str, Json] = {"$defs": delta["$defs"]} if "$defs" in delta else {}
    # Without a bound, a small model that has begun to list changes continues until it is cut.
    most = len(items) if text is None else min(len(items), MOST_PER_SENTENCE * max(len(listed), 1))
    return JsonSchema({"type": "array", "maxItems": most, "items": {"anyOf": items}, **named}, "changes")


def _said(said: Sequence[str]) -> Json:
    """Return the schema of the words of the user that state a change, of the sentences of a message."""
    listed = dict.fromkeys(said)
    if 0 < len(listed) <= MOST_SENTENCES and max(map(len, listed)) <= LONGEST_SENTENCE:
        return {"enum": [*listed]}
    return {"type": "string", "maxLength": LONGEST_SENTENCE}


def _stated(kind: Json) -> Json:
    """Return the schema of a value without the placeholders of the examples, which a small model copies if it is unsure."""
    if isinstance(kind, dict) and kind.get("type") == "string" and not kind.keys() - {"type", "description"}:
        return kind | {"pattern": STATED}
    if isinstance(kind, dict):
        return {name: part if name in ("enum", "const") else _stated(part) for name, part in kind.items()}
    return [_stated(part) for part in kind] if isinstance(kind, list) else kind


def parse_changes(app: App, text: str, *, is_cut: bool = False) -> ParsedReply:
    """Parse a list of changes into a state delta; the answer is empty. Changes of one field are joined.

    Of a list that is cut off, the whole changes count.
    """
    if is_cut and "}" in text:
        text = f"{text[: text.rfind('}') + 1]}]"
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
        if new == f"<{name}>":  # of the examples
            continue
        delta[name] = _joined(delta[name], new) if name in delta else new
    return fit_delta(app, delta)


def _joined(before: Json, after: Json) -> Json:
    if isinstance(before, list) and isinstance(after, list):
        return [*before, *after]
    if isinstance(before, dict) and isinstance(after, dict):
        return before | after
    return after


@lru_cache(maxsize=1)
def _any_list() -> OutputType[list[dict[str, object]]]:
    return OutputType(list[dict[str, object]])


def _prompts(app: App, source: FieldSource, *texts: str) -> RecordPrompts:
    """Return the prompts in the language of the texts, or of the fields."""
    fields = fields_from(app, source)
    described = "\n".join(field.description for field in fields if field.description)
    return BY_LANGUAGE[record_language(*texts, described or " ".join(field.name for field in fields))]


@lru_cache(maxsize=64)
def _opening(app: App, source: FieldSource, prompts: RecordPrompts) -> tuple[Message, ...]:
    """Return the instructions, and exchanges that show when a change is written and when none is."""
    fields = fields_from(app, source)
    lines = "\n".join(f"- {field.name} ({field.delta_notation}): {field.description}".rstrip(": ") for field in fields)
    by_user = source == "user"
    messages = [system((prompts.of_user if by_user else prompts.of_reply).format(fields=lines))]
    shown = _examples(app, fields)
    first, last = dict([*shown.items()][:1]), dict([*shown.items()][1:])
    greeting, wish, question, another = prompts.user_says if by_user else prompts.reply_says
    exchanges: list[tuple[str, dict[str, Json], dict[str, Json]]] = [
        (greeting, {}, {}), (wish.format(example=_spoken(first)), {}, first), (question, first, {})
    ]  # fmt: skip
    exchanges += [(another.format(example=_spoken(last)), first, last)] if last else []
    for said, before, changed in exchanges:
        messages += (user(_last(prompts, said, before)), assistant(_changes(changed, said if by_user else None)))
    names = {field.name for field in fields}
    for example in app.examples:
        delta = example.delta if isinstance(example.delta, dict) else {}
        said = example.user if by_user else prompts.reply.format(text=example.user, answer=example.answer)
        changed = {name: part for name, part in delta.items() if name in names}
        messages += (user(_last(prompts, said, {})), assistant(_changes(changed, said if by_user else None)))
    return tuple(messages)


def _last(prompts: RecordPrompts, said: str, view: Mapping[str, Json]) -> str:
    return prompts.record.format(said=said, state=json.dumps(view, ensure_ascii=False))


def _changes(delta: Mapping[str, Json], text: str | None) -> str:
    """Write changes as the model does, after the sentence of the user's text that names their value, else the first."""
    listed = () if text is None else sentences(text) or (text,)
    items: list[dict[str, Json]] = []
    for name, part in delta.items():
        words = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
        said = next((each for each in listed if words.casefold() in each.casefold()), listed[0] if listed else None)
        items.append({**({} if said is None else {"said": said}), "field": name, "value": part})
    return json.dumps(items, ensure_ascii=False)


def _examples(app: App, fields: Sequence[StateField]) -> dict[str, Json]:
    """Return values of one or two fields that a model cannot take for facts: their names in angle brackets.

    A list, a table, a number or a choice stands in only if no field is text: the second two are taken for facts.
    """
    texts = [field for field in fields if _fits(app, field, f"<{field.name}>")]
    if texts:
        return {field.name: f"<{field.name}>" for field in (texts[0], texts[len(texts) // 2])}
    field = fields[0]
    place = f"<{field.name}>"
    values: tuple[Json, ...] = ([place], {place: place}, 1, 0.5, True, *_choices(app, field))
    return {field.name: next((each for each in values if _fits(app, field, each)), None)}


def _fits(app: App, field: StateField, example: Json) -> bool:
    return not fit_delta(app, {field.name: example}).problems


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
