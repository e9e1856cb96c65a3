"""Hypothesis strategies for the project's values; add one for each new value."""

from collections.abc import Iterable
from typing import get_args

from hypothesis import strategies as st

from taiwa.conversation.app import App, AppSource, Example, ReplyMode, WindowPolicy
from taiwa.conversation.state import COMPUTED_FIELDS, StateField
from taiwa.kernel import errors
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import CallTool, Complete, Effect, GetCapabilities, Notify, Retrieve
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.messages import (
    Chunk,
    Constraint,
    FinishReason,
    Grammar,
    JsonSchema,
    Message,
    Notice,
    Part,
    Passage,
    Regex,
    Request,
    Response,
    Role,
    Sampling,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from taiwa.kernel.serialization import Json
from tests.files import FILES

__all__ = [
    "ODD",
    "apps",
    "attachments",
    "chunks",
    "effects",
    "fields",
    "joined",
    "json_objects",
    "json_values",
    "messages",
    "raised_errors",
    "requests",
    "responses",
    "shuffled",
    "texts",
    "usages",
]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
"""Any valid Unicode, without lone surrogates."""
ODD = "\0\t\r\n\x85\u200b\u2028\u202e\ufeff\uffff éßñあ漢☃\U0001f642\U0010ffff"
"""Characters of every kind that programs treat differently."""


def joined(pieces: Iterable[str], *, min_size: int = 0, max_size: int | None = None) -> st.SearchStrategy[str]:
    """A text of so many pieces. It is drawn as one text: drawing a list of them takes Hypothesis several times as long."""
    letters = {chr(0xE000 + number): piece for number, piece in enumerate(pieces)}
    drawn = st.text("".join(letters), min_size=min_size, max_size=max_size)
    return drawn.map(lambda text: "".join(map(letters.__getitem__, text)))


numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
json_leaves = st.none() | st.booleans() | numbers | texts
json_values: st.SearchStrategy[Json] = st.recursive(
    json_leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | st.just("~"), inner, max_size=3)
)
json_objects: st.SearchStrategy[dict[str, Json]] = st.dictionaries(texts | st.just("~"), json_values, max_size=3)

counts = st.integers(0, 10**6)
usages = st.builds(Usage, counts, counts, counts, counts, counts)
tool_calls = st.builds(ToolCall, texts, texts, texts)
origins = st.sampled_from(["tool", "model", "memo"])
tool_results = st.builds(ToolResult, texts, texts, texts, json_values, texts, origins)
attachments = st.builds(Attachment.from_bytes, st.sampled_from(tuple(FILES.values())), texts)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, texts, st.booleans()), st.builds(Thinking, texts), tool_calls, tool_results, attachments
)
roles: st.SearchStrategy[Role] = st.sampled_from(get_args(Role))
messages = st.builds(Message, roles, st.lists(parts, max_size=3).map(tuple))
finishes: st.SearchStrategy[FinishReason] = st.sampled_from(get_args(FinishReason))
responses = st.builds(Response, messages, finishes, st.none() | texts, st.none() | usages, texts)
constraints: st.SearchStrategy[Constraint] = st.one_of(
    st.builds(JsonSchema, json_objects, texts), st.builds(Regex, texts), st.builds(Grammar, texts, texts)
)
tool_specs = st.builds(ToolSpec, texts, texts, json_objects)
samplings = st.builds(
    Sampling, st.none() | st.floats(0, 2), st.none() | st.floats(0, 1), st.none() | counts, st.none() | counts
)
requests = st.builds(
    Request,
    st.lists(messages, max_size=3).map(tuple),
    texts,
    st.lists(texts, max_size=2).map(tuple),
    st.none() | constraints,
    st.lists(tool_specs, max_size=2).map(tuple),
    texts,
    samplings,
)
chunks: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(TextDelta, texts),
    st.builds(ThinkingDelta, texts),
    st.builds(
        StreamEnd, finishes, st.none() | texts, st.none() | usages, texts, st.lists(tool_calls, max_size=2).map(tuple)
    ),
)
passages = st.builds(
    Passage, texts, texts, st.floats(0, 1), counts, st.lists(texts, max_size=2).map(tuple), counts, texts, texts
)
notes = st.builds(Notice, texts, st.sampled_from(["note", "warning"]), texts)
effects: st.SearchStrategy[Effect[object]] = st.one_of(
    st.builds(Complete, requests),
    st.builds(CallTool, texts, json_objects),
    st.builds(Retrieve, texts, st.integers(1, 9)),
    st.builds(Notify, notes),
    st.just(GetCapabilities()),
)  # an effect of any answer


def raised_errors() -> st.SearchStrategy[TaiwaError]:
    """One error of every class, with all details."""
    classes = [each for each in errors.error_classes().values() if each.__module__ == errors.__name__]
    plain = st.sampled_from(sorted({each.__name__ for each in classes} - {"LimitError", "UnsupportedError"}))
    details = {
        "OutputValidationError": {
            "text": texts,
            "diagnostics": st.lists(texts).map(tuple),
            "attempts": st.lists(texts).map(tuple),
        },
        "NoValidTokenError": {"state": texts},
        "RateLimitError": {"retry_after": st.none() | st.floats(0, 1e6)},
        "ProtocolError": {"body": texts},
        "ToolError": {"code": texts, "hint": texts},
        "UnknownToolError": {"code": texts, "hint": texts},
    }
    limits = st.builds(errors.LimitError, texts, st.floats(0, 1e6), st.floats(0, 1e6))
    unsupported = st.builds(errors.UnsupportedError, texts, capability=texts, status=st.none() | counts)
    return (
        limits
        | unsupported
        | plain.flatmap(lambda name: st.builds(getattr(errors, name), texts, **details.get(name, {})))
    )


@st.composite
def shuffled(draw: st.DrawFn, item: Json) -> Json:
    """The same JSON with the keys of its objects reordered."""
    if isinstance(item, dict):
        names = draw(st.permutations(list(item)))
        return {name: draw(shuffled(item[name])) for name in names}
    return [draw(shuffled(part)) for part in item] if isinstance(item, list) else item


KINDS = (
    (
        "set",
        (
            "str",
            "int(1..5)",
            "list[str]",
            "any",
            '"yes" | "no"',
            "{a: int, b?: str}",
            "bool",
            "float(0..1)",
            "str | null",
        ),
    ),
    ("append", ("list[str]", "list[{a: int}]", "list[int](max 2)")),
    ("union", ("list[str]", "list[str | null]", "list[any]")),
    ("last(2)", ("list[str]", "list[dict[str, int]]")),
    ("log", ("list[str]", "list[any]")),
    ("table", ("dict[str, str | null]", "dict[str, list[str]]", "dict[str, any]")),
    ("count", ("dict[str, int]",)),
    ("sum", ("int", "float")),
    ("max", ("int", "float")),
    ("min", ("int(1..5)", "float")),
)
names = st.sampled_from(["topics", "名前", "x", "state", "answer", "delta", "response-x", "n_1"])
shows = st.sampled_from([None, None, 0, 1, 2])


@st.composite
def fields(draw: st.DrawFn, name: str) -> StateField:
    """A field of that name, written by the model or computed by the program."""
    if draw(st.integers(0, 4)) == 0:
        return StateField(name, reduce=draw(st.sampled_from(sorted(COMPUTED_FIELDS))))
    reduce, types = draw(st.sampled_from(KINDS))
    return StateField(
        name,
        draw(st.sampled_from(types)),
        reduce=reduce,
        description=draw(st.sampled_from(["", "what it is"])),
        max_shown=draw(shows),
    )


@st.composite
def apps(draw: st.DrawFn) -> App:
    """An app with any fields, window and form of reply."""
    made = tuple(draw(fields(name)) for name in draw(st.lists(names, max_size=4, unique=True)))
    reply = draw(st.sampled_from(get_args(ReplyMode)))
    max_size = draw(st.sampled_from([None, 1, 2, 4]))
    window = WindowPolicy(
        max_size,
        draw(st.integers(0, 3)) if max_size else 0,
        draw(st.booleans()),
        draw(st.integers(0, 1)),
    )
    examples = (Example("hi", "hello"),) if draw(st.booleans()) else ()
    source = AppSource("any", f"{made} {reply} {window} {examples}")
    return App(source, "Talk.", made, window=window, reply=reply, examples=examples)
