"""Where a value comes from: the user's words, a tool's result, a passage, the answer before, or the model alone.

Numbers are compared by value and words without their inflections, as `quote.holds` does, so that `3` is found in
“the three of us” and 「三人」. A value that occurs in none of them, or a boolean, has only the sentence of the user under which the
model recorded it, and is else reported as the model's own words; nothing is guessed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, cast

from taiwa.conversation.history import Conversation
from taiwa.conversation.state import FieldSource
from taiwa.conversation.state_record import known_words
from taiwa.flows.ask.answer import values_in
from taiwa.flows.ask.ask_result import AskResult, Citation, make_citation
from taiwa.flows.ask.quote import holds, is_negative, place_of, word_set
from taiwa.kernel.messages import Passage
from taiwa.kernel.serialization import Json, item_at, items_at, value
from taiwa.kernel.text import is_question, sentences, truncate

SourceKind: TypeAlias = Literal[
    "user", "tool", "passage", "answer", "stated", "model", "program", "computed", "unknown"
]
"""Whose words a value is: those of the user, of a tool's result, of a passage, of the answer before, or of the model, or the program of
the turn, alone; a value is `stated` if no words hold it and the model recorded it under a sentence of the user, and `computed` if its
field is. It is `unknown` if the turn was imported and what it read was not.
"""


@value(tag="value-source")
class ValueSource:
    """The source of one part of a value: `words` is the sentence or the result that holds it.

    `path` is that of the part within the value, empty for a value without parts. `tool` and `input` are those of a call; `citation` is
    the place of a passage.
    """

    kind: SourceKind
    words: str = ""
    path: str = ""
    tool: str = ""
    input: str = ""
    citation: Citation | None = None


def sources_of(
    value: Json, text: str, findings: Json, before: str = "", passages: Sequence[Passage] = (), stated: str = ""
) -> tuple[ValueSource, ...]:
    """Return the source of each text and number of a value that a turn set, or of a boolean.

    The closest counts: the `text` of the user, the results of the turn's calls, its citations and `passages`, the answer `before`, the
    sentence under which the model `stated` the value.

    >>> sources_of(3, "A room for the three of us, please.", None)[0].words
    'A room for the three of us, please.'
    >>> sources_of(True, "We bring a dog.", None, stated="We bring a dog.")[0].kind
    'stated'
    >>> [(each.path, each.kind) for each in sources_of({"sum": 42, "who": "Ann"}, "Ann asks.", {"calls": [{"name": "add", "result": "42"}]})]
    [('sum', 'tool'), ('who', 'user')]
    """
    alone = ValueSource("stated", stated) if stated else ValueSource("model", json.dumps(value, ensure_ascii=False))
    if isinstance(value, bool):
        return (alone,)
    found = ((path, part, _source(part, path, text, findings, before, passages)) for path, part in values_in(value))
    return tuple(each or replace(alone, path=path, words=stated or str(part)) for path, part, each in found)


def _source(
    part: Json, path: str, text: str, findings: Json, before: str, passages: Sequence[Passage]
) -> ValueSource | None:
    words = part if isinstance(part, str) else str(part)
    if (said := sentence_with(words, text)) is not None:
        return ValueSource("user", said, path)
    for call in _calls(findings):
        if not call.get("error") and holds(words, str(call.get("result", ""))):
            name, result, written = (str(call.get(key, "")) for key in ("name", "result", "input"))
            return ValueSource("tool", result, path, name, written)
    documents = AskResult.of(findings)
    for citation in () if documents is None else documents.citations:
        if holds(words, citation.words):
            return ValueSource("passage", citation.words, path, citation=citation)
    if (place := place_of(words, passages)) is not None:
        cited = make_citation(*place, 0)
        return ValueSource("passage", cited.words, path, citation=cited)
    if (said := sentence_with(words, before)) is not None:
        return ValueSource("answer", said, path)
    return None


def cited_only(
    conversation: Conversation, text: str, delta: Mapping[str, Json], findings: Json, passages: Sequence[Passage]
) -> tuple[dict[str, Json], tuple[str, ...]]:
    """Leave out of a delta what no source holds, of the fields that demand one; return it with a warning for each."""
    kept_delta, warnings = dict(delta), list[str]()
    cited = [field for field in conversation.app.model_fields if field.cite and field.name in delta]
    declared = frozenset(_declared_names(conversation.app.delta_type.schema())) if cited else frozenset[str]()
    for field in cited:
        # What the model said before proves nothing, unless the user takes it up.
        sources = {"user", "tool", "passage", "answer"} if field.source == "user" else {"user", "tool", "passage"}
        sources = {"user"} if field.cite == "user" else sources

        def is_found(value: Json, known: Json, sources: set[str] = sources) -> bool:
            names: list[Json] = [*_free_names(value, declared)]
            found = sources_of([value, *names], text, findings, conversation.last_answer, passages)
            return value == known or all(each.kind in sources for each in found)

        written, known = delta[field.name], conversation.state.get(field.name)
        kept, lost = written, written
        if isinstance(written, list):
            had = known if isinstance(known, list) else []
            kept = [part for part in written if part in had or is_found(part, None)]
            lost = [part for part in written if part not in kept]
        elif isinstance(written, dict):
            had_by_name = known if isinstance(known, dict) else {}
            kept = {
                name: part
                for name, part in written.items()
                if is_found(part, had_by_name.get(name))
                and (name in had_by_name or name in declared or is_found(name, None))
            }
            lost = {name: part for name, part in written.items() if name not in kept}
        elif not is_found(written, known):
            kept = None
        if kept != written:
            shown = truncate(json.dumps(lost, ensure_ascii=False), 80)
            source = "the user's text does not hold" if field.cite == "user" else "no source holds"
            warnings.append(f"{field.name}: {source} {shown}, so it was left out")
            del kept_delta[field.name]
            kept_delta |= {field.name: kept} if kept else {}
    return kept_delta, tuple(warnings)


def stated_only(
    conversation: Conversation, text: str, delta: Mapping[str, Json]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Leave out of a delta what the user has not said, of the fields that say nothing about their sources; return it with the rest.

    The words of a text must stand in the text of the user or, if the user states something, in the answer before or the state: a
    question takes nothing over. Numbers may be worked out (`the two of us and a child`), but by no question, and no zero of a text
    that denies nothing, nor `false` of a question that does not. A text stays in its field until it is said again, and an item that a
    list already has is added again only if all of it is.
    """
    asks = all(map(is_question, sentences(text)))
    said = word_set(text)
    known = known_words(conversation.app, conversation.state)
    around = said if asks else said | word_set(f"{conversation.last_answer}\n{known}")
    kinds = conversation.app.delta_type.schema()["properties"]
    assert isinstance(kinds, dict), "the schema of a delta is that of an object"

    state = conversation.state
    fields = {each.name: each for each in conversation.app.model_fields}
    free = [
        (name, part)
        for name, part in delta.items()
        if (field := fields.get(name)) and field.cite is None and field.source == "user" and _is_free(kinds[name])
    ]

    def is_said(part: Json) -> bool:
        if isinstance(part, str):
            # Words that name nothing ("None") are in no set of words, so all of them would be found anywhere.
            return words <= around if (words := word_set(part)) else part.casefold() in text.casefold()
        if isinstance(part, bool):
            return part or not asks or is_negative(text)
        is_worked_out = not asks and (part != 0 or is_negative(text))
        return not isinstance(part, (int, float)) or is_worked_out or word_set(str(part)) <= said

    def is_of_another(name: str, part: Json) -> bool:
        """Whether a text is that of another field in the state, and the user does not say it again."""
        words = word_set(part) if isinstance(part, str) else frozenset[str]()
        return not words <= said and any(part == other for each, other in state.items() if each != name)

    left_out: dict[str, Json] = {
        name: part
        for name, part in free
        if part != state.get(name) and (not is_said(part) or is_of_another(name, part))
    }
    kept, repeated = without_repeats(conversation, "user", text, delta)
    return {name: part for name, part in kept.items() if name not in left_out}, left_out | repeated


def without_repeats(
    conversation: Conversation, source: FieldSource, text: str, delta: Mapping[str, Json]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Leave out of a delta the items that a list already has, would have twice, and that the text of their source does not state
    again; return it with them.
    """
    kept, repeated = dict(delta), dict[str, Json]()
    for field in conversation.app.model_fields:
        had, reduce, new = conversation.state[field.name], field.reducer, items_at(kept, field.name)
        if field.source != source or field.cite is False or reduce.delta_kind != "items":
            continue
        listed = [item_at(each, "entry") if reduce.name == "log" else each for each in items_at(had)]
        again = [
            item
            for item in new
            if item in listed
            and reduce.step(had, [item], 0) != had
            and any(sentence_with(str(words), text) is None for _, words in values_in(item))
        ]
        if again:
            repeated[field.name] = again
            kept[field.name] = [item for item in new if item not in again]
    return kept, repeated


FREE = ("string", "integer", "number", "boolean", "null")


def _is_free(kind: Json) -> bool:
    """Whether values of a JSON Schema are a free text, a number or a boolean: choices and dates are inferred, lists and tables sum up."""
    if not isinstance(kind, dict) or kind.keys() & {"enum", "const", "format", "pattern", "$ref"}:
        return False
    if isinstance(any_of := kind.get("anyOf"), list):
        return all(map(_is_free, any_of))
    return kind.get("type") in FREE


def _declared_names(schema: Json) -> Iterator[str]:
    """Yield the names of the properties that a schema declares, at any depth."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _declared_names(part)


def _free_names(value: Json, declared: frozenset[str]) -> Iterator[str]:
    """Yield the names in a value that its writer chose."""
    if isinstance(value, dict):
        yield from (name for name in value if name not in declared)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _free_names(part, declared)


def sentence_with(words: str, text: str) -> str | None:
    """Return the first sentence of a text that holds some words; None if none does."""
    return next((each for each in sentences(text) if holds(words, each)), None)


def _calls(findings: Json) -> Iterator[Mapping[str, Json]]:
    calls = findings.get("calls") if isinstance(findings, dict) else None
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            yield cast("Mapping[str, Json]", call)
