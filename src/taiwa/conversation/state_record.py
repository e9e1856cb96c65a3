"""The layout `record`: before the answer, a short request of its own asks which fields the last message of the user changes; after
it, another one which fields the reply changes, if the app has such.

Its prompt holds the fields, examples made from them, the last exchange and the state, and not the conversation: a small model
fills in fewer fields that the user did not mention than where it writes the state beside its answer (decision 0045). It answers with a
list of changes, because a list that may be empty is left empty more reliably than keys are left out or set to null. The changes of the
user stand under the sentence of the message that states them, and the schema lists these sentences: none states an invented change,
and a sentence that states several is not left after the first. A question that would overwrite a value is read once more.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import cast

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.conversation.record_prompts import BY_LANGUAGE, RecordPrompts, record_language
from taiwa.conversation.replies import ParsedReply, fit_delta, join_parts, parse_delta
from taiwa.conversation.state import FieldSource, State, StateField
from taiwa.conversation.turn_prompt import known_state
from taiwa.kernel.errors import OutputValidationError
from taiwa.kernel.messages import Choice, JsonSchema, Message, Request, RequestHints, Sampling, assistant, system, user
from taiwa.kernel.serialization import Json, items_at, text_at
from taiwa.kernel.text import is_question, sentences
from taiwa.structured import OutputType

STATED = "^[^<>]+$"
MOST_SENTENCES = 20
"""Sentences of a message that a schema lists; of a longer message the model writes the words itself."""
LONGEST_SENTENCE = 200
MOST_PER_SENTENCE = 6
"""Changes under one sentence of a message; more are none that it states."""
ASKS = "ask"
"""What the model writes of a question that only wants to know something."""
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
    opening = _opening(app, source, prompts)
    messages = (*opening, user(_last(prompts, said, view)))
    constraint = changes_schema(app, text) if reply is None else changes_schema(app)
    return Request(
        messages,
        constraint=constraint,
        sampling=Sampling(max_tokens=MAX_TOKENS),
        hints=RequestHints(opening=len(opening)),
    )


def questioned(app: App, state: State, delta: Mapping[str, Json], written: str, text: str) -> tuple[str, ...]:
    """Return the fields whose value a question of the user would overwrite; `written` is the list of changes."""
    stated = stated_under(written)
    return tuple(
        field.name
        for field in fields_from(app, "user")
        if field.name in delta and field.reduce == "set"
        and state[field.name] not in (None, "", [], {}, delta[field.name])
        and all(map(is_question, sentences(stated.get(field.name) or text)))
    )  # fmt: skip


def question_request(app: App, state: State, delta: Mapping[str, Json], names: Sequence[str], text: str) -> Request:
    """Return the request for what a question wants that would overwrite values: to change them, as `Could you make it five nights?`
    does, or to be told something (decision 0124).
    """
    prompts = _prompts(app, "user", text).change
    messages = [system(prompts.instructions)]
    for asked, changed, wishes in prompts.examples:
        about = prompts.about.format(state=prompts.record, text=asked, changed=changed)
        messages += user(about), assistant("change" if wishes else ASKS)
    known, changes = (json.dumps({name: part[name] for name in names}, ensure_ascii=False) for part in (state, delta))
    last = user(prompts.about.format(state=known, text=text, changed=changes))
    sampling = Sampling(max_tokens=8)
    return Request(
        (*messages, last),
        constraint=Choice(ASKS, "change"),
        sampling=sampling,
        hints=RequestHints(opening=len(messages)),
    )


def changes_schema(app: App, text: str | None = None) -> JsonSchema:
    """Return the schema of a list of changes that a reply states; those of a text of the user stand under its sentences.

    A change is a field and what is written to it.
    """
    delta = app.delta_type.schema()
    kinds = delta["properties"]
    assert isinstance(kinds, dict), "the schema of a delta is that of an object"
    names = {field.name for field in fields_from(app, "reply" if text is None else "user")}
    changes: list[Json] = [
        _object(field={"const": name}, value=_stated(kind)) for name, kind in kinds.items() if name in names
    ]
    # Without a bound, a small model that has begun to list changes continues until it is cut.
    listed = _array({"anyOf": changes}, len(changes))
    if text is not None:
        said = sentences(text)
        under = _array({"anyOf": changes}, min(len(changes), MOST_PER_SENTENCE)) | {"minItems": 1}
        listed = _array(_object(said=_said(said), changes=under), min(len(changes), max(len(said), 1)))
    return JsonSchema(listed | ({"$defs": delta["$defs"]} if "$defs" in delta else {}), "changes")


def _array(items: Json, most: int) -> dict[str, Json]:
    return {"type": "array", "maxItems": most, "items": items}


def _object(**properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _said(said: Sequence[str]) -> Json:
    """Return the schema of the words of the user that state a change, of the sentences of a message."""
    listed = dict.fromkeys(said)
    if 0 < len(listed) <= MOST_SENTENCES and max(map(len, listed)) <= LONGEST_SENTENCE:
        return {"enum": [*listed]}
    return {"type": "string", "maxLength": LONGEST_SENTENCE}


def _stated(kind: Json) -> Json:
    """Return the schema of a value without the placeholders of the examples, of which a small model copies one if it is unsure."""
    if isinstance(kind, dict) and kind.get("type") == "string" and not kind.keys() - {"type", "description"}:
        return kind | {"pattern": STATED}
    if isinstance(kind, dict):
        names: dict[str, Json] = (
            {"propertyNames": {"pattern": STATED}} if isinstance(kind.get("additionalProperties"), dict) else {}
        )
        return {name: part if name in ("enum", "const") else _stated(part) for name, part in kind.items()} | names
    return [_stated(part) for part in kind] if isinstance(kind, list) else kind


def parse_changes(app: App, text: str, *, is_cut: bool = False) -> ParsedReply:
    """Parse a list of changes into a state delta; the answer is empty. Changes of one field are joined, and each that fits counts.

    Of a list that is cut off, the whole changes count.
    """
    whole = text[: text.rfind("}") + 1]
    endings = (f"{whole}]}}]", f"{whole}]") if is_cut and whole else (text,)  # cut within a sentence, or after one
    items, problems = None, tuple[str, ...]()
    for ending in endings:
        try:
            items = _any_list().parse(ending).value
            break
        except OutputValidationError as error:
            problems = error.diagnostics or (error.message,)
    if items is None:
        read = parse_delta(app, text, "record")  # an object of fields, as in other layouts
        return read if read.delta else ParsedReply("", None, problems)
    delta, nameless, names = dict[str, Json](), list[str](), {field.name for field in app.fields}
    for item in items:
        under = item.get("changes", item)
        for change in under if isinstance(under, list) else (under,):
            written: dict[str, Json] = cast("dict[str, Json]", change) if isinstance(change, dict) else {}
            if isinstance(name := written.get("field"), str):
                written = {name: written.get("value")}
            elif not written or not written.keys() <= names:
                nameless.append(f"{json.dumps(change, ensure_ascii=False)[:60]} does not name a field")
                continue
            # not those of the examples
            delta |= {name: join_parts(delta.get(name), new) for name, new in written.items() if new != f"<{name}>"}
    parsed = fit_delta(app, delta)
    return parsed.settled(*nameless) if nameless or parsed.problems else parsed


def stated_under(text: str) -> dict[str, str]:
    """Return the sentences of the user under which a list of changes names its fields, the last of each; none for any other text."""
    found: dict[str, str] = {}
    with suppress(ValueError, RecursionError):
        written = json.loads(text) if text.startswith("[") else None
        for item in written if isinstance(written, list) else ():
            for change in items_at(item, "changes"):
                if name := text_at(change, "field"):
                    found[name] = text_at(item, "said")
    return found


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
    lines = "\n".join(
        f"- {field.name} ({field.delta_notation}): {field.delta_description}".rstrip(": ") for field in fields
    )
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
    """Write changes as the model does: those of a user under the sentence of the text that names their value, else the first."""
    changes: dict[str, list[dict[str, Json]]] = {}
    listed = () if text is None else sentences(text) or (text,)
    for name, part in delta.items():
        words = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
        said = next((each for each in listed if words.casefold() in each.casefold()), listed[0] if listed else "")
        changes.setdefault(said, []).append({"field": name, "value": part})
    if text is None:
        return json.dumps(changes.get("", []), ensure_ascii=False)
    return json.dumps([{"said": said, "changes": under} for said, under in changes.items()], ensure_ascii=False)


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
