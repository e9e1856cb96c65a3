"""Explain a text under a guide token by token: the position in its JSON, and the keyword of the schema that applies there.

Advisory: for display, never for masks. If several branches of a schema are possible, all of them are named; unknown parts
are left out.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from taiwa.constraints.guide import Explanation, Guide, GuideState, check_unicode, refusal, unexpected
from taiwa.constraints.vocabulary import Vocabulary, common_prefix
from taiwa.json_schema import Schema, join_pointer, names, resolve_pointer, subschemas
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import truncate

if TYPE_CHECKING:
    from taiwa.constraints.allowed_tokens import MatcherState

Want: TypeAlias = Literal["value", "in string", "in word", "key", "in key", "colon", "after value", "end"]
Inside: TypeAlias = Literal["object", "array", ""]
MOST_CANDIDATES = 64
JSON_TOKEN = re.compile(r'\s+|"(?P<inside>(?:[^"\\]|\\.?)*)(?P<end>"?)|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
SHOWN = 60
KEYWORDS: Mapping[str, tuple[Want, ...]] = {
    **dict.fromkeys(("const", "enum"), ("value", "in string", "in word")),
    **dict.fromkeys(("pattern", "format", "maxLength", "minLength"), ("in string",)),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"), ("in word",)),
}
WANTED: Mapping[Want, str] = {
    "value": "a value",
    "in string": "more of a string, or its end",
    "in word": "more of a number or a word, or what follows it",
    "key": "a key, or the end of the object",
    "in key": "more of a key, or its end",
    "colon": "':'",
    "after value": "',' or the end of what is open",
    "end": "the end",
}


@dataclass(frozen=True, slots=True)
class JsonPosition:
    """A position in an unfinished JSON text: the keys and indices that lead to it, what may follow, and what has begun."""

    path: tuple[str | int, ...]
    want: Want
    begun: str = ""
    keys: tuple[str, ...] = ()
    inside: Inside = ""

    @property
    def pointer(self) -> str:
        """The JSON pointer of the value that is being written."""
        return join_pointer("", *self.path)


@dataclass(slots=True)
class _Open:
    """An object or a list that is not closed yet."""

    is_object: bool
    keys: list[str]
    count: int = 0


def json_position(text: str) -> JsonPosition:
    """Return the position at the end of an unfinished JSON text, which is assumed to be correct so far.

    >>> json_position('{"drinks": [{"name": "te')
    JsonPosition(path=('drinks', 0, 'name'), want='in string', begun='te', keys=('name',), inside='object')
    """
    stack: list[_Open] = []
    want: Want = "value"
    begun = ""
    for token in JSON_TOKEN.finditer(text):
        sign, begun = token[0][0], ""
        if sign == '"':
            if not token["end"]:
                want, begun = "in key" if want == "key" else "in string", token["inside"]
            elif want == "key":
                stack[-1].keys.append(_unescaped(token["inside"]))
                want = "colon"
            else:
                want = "after value"
        elif sign in "{[":
            stack.append(_Open(sign == "{", []))
            want = "key" if sign == "{" else "value"
        elif sign in "}]":
            del stack[-1:]
            want = "after value"
        elif sign == ",":
            if stack:
                stack[-1].count += 1
            want = "key" if stack and stack[-1].is_object else "value"
        elif sign == ":":
            want = "value"
        elif not sign.isspace():
            want, begun = "in word", token[0]
        # White space ends a number or a word, which have no closing sign.
        elif want == "in word":
            want = "after value"
    if not stack and want == "after value":
        want = "end"
    inside: Inside = "" if not stack else "object" if stack[-1].is_object else "array"
    keys = tuple(stack[-1].keys) if stack else ()
    return JsonPosition(tuple(_path(stack, want)), want, begun, keys, inside)


def _unescaped(written: str) -> str:
    try:
        return str(json.loads(f'"{written}"', strict=False))
    except ValueError:
        return written


def _path(stack: list[_Open], want: Want) -> Iterator[str | int]:
    for number, part in enumerate(stack):
        last = number == len(stack) - 1
        if not part.is_object:
            yield part.count
        elif part.keys and not (last and want in ("key", "in key", "after value")):
            yield part.keys[-1]


def keyword_at(schema: Json, here: JsonPosition) -> tuple[str, str, str]:
    """Return the pointer in the schema, the keyword, and a description of what may follow at a position."""
    schemas = _schemas(schema, here.path)
    if not schemas:
        return "", "", WANTED[here.want]
    if here.inside == "object" and here.want in ("key", "in key", "after value"):
        return _of_object(schemas, here)
    if here.inside == "array" and here.want == "after value":
        arrays = _schemas(schema, here.path[:-1])
        bounds = [word for _, each in arrays for word in ("minItems", "maxItems") if word in each]
        return (arrays or schemas)[0][0], (bounds or ["items"])[0], WANTED[here.want]
    for keyword, wants in KEYWORDS.items():
        for pointer, each in schemas:
            if keyword in each and here.want in wants:
                values = [each[keyword] for _, each in schemas if keyword in each]
                return pointer, keyword, _expected_value(keyword, values, here)
    kinds = list(dict.fromkeys(_kind(each) for _, each in schemas if "type" in each))
    expected = " or ".join(kinds) if kinds and here.want == "value" else WANTED[here.want]
    return schemas[0][0], "type" if kinds else "", expected


def _of_object(schemas: list[tuple[str, Mapping[str, Json]]], here: JsonPosition) -> tuple[str, str, str]:
    for pointer, each in schemas:
        properties = each.get("properties")
        if not isinstance(properties, Mapping):
            continue
        left = [key for key in properties if key not in here.keys]
        if here.want == "in key":
            left = [key for key in left if key.startswith(here.begun)]
            return pointer, "properties", f"the key {' or '.join(map(repr, left[:8]))}" if left else WANTED[here.want]
        missing = [key for key in names(each) if key not in here.keys]
        shown = ", ".join(repr(key) + ("" if key in missing else "?") for key in left[:8])
        more = ", …" if len(left) > 8 else ""
        expected = f"the {'key' if len(left) == 1 else 'keys'} {shown}{more}" if left else "the end of the object"
        return pointer, "required" if missing else "properties", expected
    pointer, schema = schemas[0]
    return pointer, "additionalProperties" if "additionalProperties" in schema else "type", WANTED[here.want]


def _expected_value(keyword: str, values: list[Json], here: JsonPosition) -> str:
    if keyword not in ("const", "enum"):
        return f"{keyword} {_shortened(values[0])}"
    options = [
        option for each in values for option in (each if isinstance(each, list) and keyword == "enum" else [each])
    ]
    texts = [json.dumps(option, ensure_ascii=False) for option in options]
    opening = {"in string": '"', "in word": ""}.get(here.want)
    fitting = texts if opening is None else [text for text in texts if text.startswith(opening + here.begun)]
    return " or ".join((fitting or texts)[:8]) + (" or …" if len(fitting or texts) > 8 else "")


def _kind(schema: Mapping[str, Json]) -> str:
    """Return the type with the keywords that narrow it."""
    kinds = schema["type"]
    names = [str(kind) for kind in kinds] if isinstance(kinds, list) else [str(kinds)]
    narrower = [word for word in KEYWORDS if word in schema and word not in ("const", "enum")]
    return ", ".join((" or ".join(names), *(f"{word} {_shortened(schema[word])}" for word in narrower)))


def _shortened(data: Json) -> str:
    shown = json.dumps(data, ensure_ascii=False)
    return truncate(shown, SHOWN)


def _schemas(schema: Json, path: tuple[str | int, ...]) -> list[tuple[str, Mapping[str, Json]]]:
    """Return the schemas that may apply at a path, with their pointers."""
    schemas = list(_open(schema, "", schema, 0))
    for key in path:
        below = (step for pointer, each in schemas for step in _below(each, pointer, key))
        schemas = [one for part, at in below for one in _open(part, at, schema, 0)][:MOST_CANDIDATES]
    return schemas


def _below(schema: Mapping[str, Json], pointer: str, key: str | int) -> Iterator[tuple[Json, str]]:
    if isinstance(key, str):
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and key in properties:
            yield properties[key], join_pointer(pointer, "properties", key)
        elif isinstance(schema.get("additionalProperties"), Mapping):
            yield schema["additionalProperties"], f"{pointer}/additionalProperties"
        return
    for word in ("prefixItems", "items"):
        part = schema.get(word)
        if isinstance(part, list) and key < len(part):
            yield part[key], f"{pointer}/{word}/{key}"
            return
        if isinstance(part, Mapping):
            yield part, f"{pointer}/{word}"


def _open(schema: "Json | Schema", pointer: str, root: Json, depth: int) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield a schema, or those that it is composed of: references are followed, alternatives opened."""
    if not isinstance(schema, Mapping) or depth > 16:
        return
    target = schema.get("$ref")
    if isinstance(target, str) and target.startswith("#"):
        with suppress(LookupError):
            yield from _open(resolve_pointer(root, target), target[1:], root, depth + 1)
    for steps, part in subschemas(schema, "anyOf", "oneOf", "allOf"):
        yield from _open(part, join_pointer(pointer, *steps), root, depth + 1)
    if not {"$ref", "anyOf", "oneOf", "allOf"} & set(schema) or {"properties", "items", "type"} & set(schema):
        yield pointer, schema


def add_json_position(schema: Json, text: bytes, explanation: Explanation) -> Explanation:
    """Add the JSON pointer and the keyword of the schema to an explanation.

    >>> here = add_json_position({"type": "object", "properties": {"a": {"enum": ["yes", "no"]}}}, b'{"a":"y', Explanation())
    >>> here.pointer, here.keyword, here.expected
    ('/a', '/properties/a: enum', '"yes"')
    """
    here = json_position(text.decode("utf-8", "ignore"))
    pointer, keyword, expected = keyword_at(schema, here)
    more = explanation.expected
    both = expected if more in ("", expected) else f"{expected}: {more}"
    return replace(
        explanation, pointer=here.pointer, keyword=f"{pointer or '/'}: {keyword}" if keyword else "", expected=both
    )


def explain_state(
    state: "MatcherState", token: int | None, *, keyword: str = "", expected: str = "", schema: Json = None
) -> Explanation:
    """Explain a state: of a JSON text by JSON pointer and keyword of the schema, of another text as `keyword` and `expected` say."""
    ending = "nothing: the text has ended" if state.is_ended else "the end" if state.is_complete else ""
    try:
        tokens = state.allowed(len(state.vocabulary)) or ()
        why = "" if token is None or token in tokens else _why(state, token, tokens)
        here = Explanation(count=len(tokens), examples=state.vocabulary.examples(tokens), why=why)
    except NoValidTokenError as error:
        here = Explanation(why=error.message)
    if schema is None:
        return replace(here, keyword=keyword, expected=ending or expected)
    here = add_json_position(schema, state.text, replace(here, expected=ending))
    return replace(here, why=f"{here.why}; expected: {here.expected}") if here.why and here.expected else here


def _why(state: "MatcherState", token: int, allowed: tuple[int, ...]) -> str:
    vocabulary = state.vocabulary
    if why := refusal(state, vocabulary, token):
        return why
    text = vocabulary.tokens[token]
    fitting = _fitting(state, text)
    if fitting == len(text):
        best = ", ".join(map(vocabulary.show, allowed[:3]))
        return f"{vocabulary.show(token)} fits, but the text is certain here and the tokenizer divides it otherwise: {best}"
    return unexpected(text, fitting)


def _fitting(state: "MatcherState", written: bytes) -> int:
    """Return the number of bytes of a token that are allowed here."""
    for length in range(len(written), 0, -1):
        try:
            if state.takes(state.vocabulary.divide(written[:length])):
                return length
        except InputError:
            continue
    return 0


MOST_TOKENS = 2000


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One position in a text: what is allowed there, and the token that follows.

    `token` is None at the last position. `place` is the name of the state, if it has one; `forced` means that no other token
    was possible; `why` says why it is not allowed, if it is not.
    """

    text: bytes
    token: int | None
    explanation: Explanation
    place: str = ""
    forced: bool = False
    final: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class GuideTrace:
    """The positions of a text, the first one before its first token."""

    steps: tuple[TokenStep, ...]

    @property
    def accepted(self) -> bool:
        """Whether the text may end at its end."""
        return not self.steps[-1].why and self.steps[-1].final

    @property
    def refused(self) -> TokenStep | None:
        """The position at which the text is no longer allowed; None if all of it is."""
        return self.steps[-1] if self.steps[-1].why else None


def trace_text(guide: Guide, text: str | None) -> GuideTrace:
    """Follow a text through a guide as far as it is allowed; without a text, explain the start alone.

    Raises:
        InputError: the vocabulary cannot write the text, or it has too many tokens.
    """
    check_unicode(text or "", "the text")
    tokens = guide.vocabulary.encode(text) if text else ()
    if len(tokens) > MOST_TOKENS:
        raise InputError(f"the text has {len(tokens):,} tokens; {MOST_TOKENS:,} is the limit")
    return GuideTrace(tuple(_steps(guide.start(), tokens, guide.vocabulary)))


def _steps(state: GuideState, tokens: tuple[int, ...], vocabulary: "Vocabulary") -> Iterator[TokenStep]:
    certain = 0
    for number, token in enumerate(tokens):
        text = vocabulary.decode(state.tokens)
        explanation = state.explain(token)
        certain = max(certain, number + common_prefix(state.forced(), tokens[number:]))
        try:
            there = state.advance(token)
        except (InputError, NoValidTokenError) as error:
            yield TokenStep(
                text, token, explanation, _place(state), final=state.is_final, why=explanation.why or error.message
            )
            return
        yield TokenStep(
            text, token, explanation, _place(state), number < certain or explanation.count == 1, state.is_final
        )
        state = there
    yield TokenStep(vocabulary.decode(state.tokens), None, state.explain(), _place(state), final=state.is_final)


def _place(state: GuideState) -> str:
    """Return the number of the state, if the guide is an automaton."""
    place = getattr(state, "place", None)
    return str(place) if isinstance(place, int) else ""
