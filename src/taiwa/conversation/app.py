"""An app: instructions, parameters, fields, examples and a window, all as data."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from taiwa.conversation.state import (
    StateField,
    delta_output_type,
    environment_output_type,
    full_delta_output_type,
)
from taiwa.kernel.errors import CorruptError, InputError, OutputValidationError
from taiwa.kernel.messages import Constraint, JsonSchema, Sampling, ToolSpec
from taiwa.kernel.serialization import Json, canonical, digest, parse_json, record, restore, value
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.kernel.wording import Wording

if TYPE_CHECKING:
    from taiwa.structured import OutputType


@value(tag="app-source")
class AppSource:
    """The text of an app file with the parameters it was opened with; its hash is the identity of an app.

    `options` are the record of the `AnswerOptions` set in addition to the file.
    """

    name: str
    source: str
    params: Json = None
    options: Json = None
    _hash: str = field(default_factory=str, init=False, repr=False, compare=False)

    @property
    def hash(self) -> str:
        """32 hex characters."""
        if not self._hash:
            object.__setattr__(self, "_hash", digest(self))
        return self._hash


UnknownTurns = Literal["warn", "refuse", "record"]
"""What to do with turns of a resent history that are not stored: name them in a warning, refuse the history, or record their state."""

ReplyMode = Literal["auto", "text+delta", "record", "json", "environment"]
"""How an app wants its replies; with `auto` the model decides the layout."""

ReplyLayout = Literal["text+delta", "record", "json", "environment"]
"""How a model writes state: a delta below the text, a list of changes before the answer in a request of its own, one object
with delta and answer, or the whole state."""

UNTYPED_REPLIES = ("text+delta", "environment")
"""Replies that have no place for a typed answer."""

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")

PROMPT = "PROMPT"
"""The placeholder of the user's text: each turn then sends the instructions around the text rather than before it."""


@value(tag="app-param")
class Param:
    """A parameter of an app, needed before its first turn; `ask` is the question to the user."""

    name: str
    type: str = "str"
    ask: str = ""
    default: Json = None
    required: bool = True


@value(tag="documents")
class Documents:
    """Which documents the turns of an app search, and when they ask back first.

    A parameter of the app that has the name of a key replaces it, where it has a value. The keys are those of `settings`.
    """

    settings: Json = None

    KEYS: ClassVar[tuple[str, ...]] = (
        "in", "as", "policy", "max_questions", "assess_by", "user", "k", "quote",
    )  # fmt: skip


@value(tag="window-policy")
class WindowPolicy:
    """Which turns a prompt contains: all, or up to `max_size` turns, then the newest `keep` (in chunks, so that caches
    apply).

    With `summarize` the turns that are cut are summarized, else dropped. The first `keep_first` turns and those whose delta
    sets a field of `keep_setting` are never cut.
    """

    max_size: int | None = None
    keep: int = 0
    summarize: bool = False
    keep_first: int = 0
    keep_setting: tuple[str, ...] = ()


ALL = WindowPolicy()

SOLVE = "solve"
"""The built-in program of turns that solve problems step by step."""

EXTRACT, ROUTE = "extract", "route"
"""The built-in programs of turns whose answers are values read from the text of the user: of one type, or of one of several."""

TYPE = "type:"
"""What the names of types begin with among those of `AnswerOptions.tool_files`."""

UNSET = Sampling(None)
"""A sampling that sets nothing."""


@value
class RequestParts:
    """Parts of the request to the model that a client of the server sets, as in `Request`; `client_tools` are those that it runs itself."""

    client_tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    constraint: Constraint | None = None
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0

    @property
    def shape_reply(self) -> bool:
        """Whether a turn with a state delta, or with the app's own tools, cannot follow them."""
        return bool(self.client_tools or self.constraint or self.stop or self.top_logprobs)

    def updated(self, changes: "RequestParts") -> "RequestParts":
        """Return the parts with changes on top."""
        tools_of = changes if changes.client_tools else self
        return RequestParts(
            tools_of.client_tools,
            tools_of.tool_choice,
            changes.constraint or self.constraint,
            changes.stop or self.stop,
            changes.top_logprobs or self.top_logprobs,
        )


@value(tag="answer-options")
class AnswerOptions:
    """Options of the answers of a conversation, in addition to its app; None or empty values change nothing.

    - `system`: instructions, appended to those of the app; placeholders in them are not filled in.
    - `sampling`: its values that are not None replace those of the app, for answers and not for summaries.
    - `tools`: names of tools that the model may call, in addition to those of the app.
    - `schema`: the type of answers, which are then JSON validated by the program.
    - `request`: options that a client of the server sent with its last request, on top of the others; its next request
      replaces them.
    - `tool_files`: the tools that are defined in a Python file, `NAME@HASH` with the hash of that file, and types of answers,
      `type:NAME@HASH`.
    - `limits`: those of each run of the conversation: of the turns that one command, or one opened session, makes.
    - `filters`: which documents are searched, by their attributes: a comparison, or `and` and `or` of several.

    As a change, `""` removes `system`, an empty `schema` makes the answers text again, and `UsageLimits()` removes the
    limits.
    """

    system: str | None = None
    sampling: Sampling = UNSET
    tools: tuple[str, ...] = ()
    schema: JsonSchema | None = None
    parts: RequestParts = RequestParts()
    request: "AnswerOptions | None" = None
    tool_files: tuple[str, ...] = ()
    limits: UsageLimits | None = None
    filters: Json = None

    @property
    def effective(self) -> "AnswerOptions":
        """The effective options of the next turn: these, and on top those of the request."""
        return self if self.request is None else replace(self, request=None).updated(self.request)

    def updated(self, changes: "AnswerOptions") -> "AnswerOptions":
        """Return the effective options with changes on top."""
        now = self.effective
        schema = changes.schema or now.schema
        files = {each.partition("@")[0]: each for each in (*now.tool_files, *changes.tool_files)}
        limits = changes.limits or now.limits
        return AnswerOptions(
            (now.system if changes.system is None else changes.system) or None,
            merge_sampling(now.sampling, changes.sampling),
            (*now.tools, *(tool for tool in changes.tools if tool not in now.tools)),
            schema if schema is not None and schema.schema else None,
            now.parts.updated(changes.parts),
            tool_files=tuple(files.values()),
            limits=None if limits == UsageLimits() else limits,
            filters=changes.filters or now.filters,
        )


NO_OPTIONS = AnswerOptions()


def merge_sampling(own: Sampling, given: Sampling) -> Sampling:
    """Return a sampling with the values of another that are not None."""
    given_values = {each.name: getattr(given, each.name) for each in fields(given)}
    return replace(own, **{name: each for name, each in given_values.items() if each not in (None, "")})


def settled(sampling: Sampling) -> Sampling:
    """Return a sampling for an answer that should not vary: temperature 0, unless it has another.

    >>> settled(Sampling(None, max_tokens=9)) == Sampling(0.0, max_tokens=9)
    True
    """
    return sampling if sampling.temperature is not None else replace(sampling, temperature=0.0)


def restore_options(data: Json) -> AnswerOptions:
    """Rebuild the options of a stored app; None gives empty options.

    Raises:
        InputError: the data are not valid options; they may come from a file or another version.
    """
    try:
        found = NO_OPTIONS if data is None else restore(data)
    except CorruptError as error:
        raise InputError(f"the options of the app cannot be read: {error.message}") from None
    if not isinstance(found, AnswerOptions) or not all(map(_is_sound, (found, found.request or NO_OPTIONS))):
        raise InputError("the options of the app cannot be read")
    if found.request is not None and (found.request.tools or found.request.request or found.request.limits):
        raise InputError("the options of the app cannot be read")
    return found


def _is_sound(options: AnswerOptions) -> bool:
    """Report whether restored values are within their ranges; their types were checked when they were restored."""
    temperature, top_p, most = options.sampling.temperature, options.sampling.top_p, options.sampling.max_tokens
    limits = options.limits or UsageLimits()
    bounds = [getattr(limits, each.name) for each in fields(limits)]
    schemas: list[object] = [tool.parameters for tool in options.parts.client_tools]
    schemas += [each.schema for each in (options.schema, options.parts.constraint) if isinstance(each, JsonSchema)]
    return (
        (temperature is None or 0 <= temperature <= 2)
        and (top_p is None or 0 <= top_p <= 1)
        and (most is None or most > 0)
        and options.parts.top_logprobs >= 0
        and all(bound is None or bound >= 0 for bound in bounds)
        and all(isinstance(schema, dict) for schema in schemas)
    )


@value(tag="app-example")
class Example:
    """A worked turn that is shown to the model before the conversation."""

    user: str
    answer: str
    delta: Json = None


@dataclass(frozen=True, eq=False)
class App:
    """An app with its parameters filled in. Equal apps have equal `hash`; `tools` are names, `answer` is the type of its answers, and `flow` the
    program of its turns.
    """

    source: AppSource
    body: str
    fields: tuple[StateField, ...] = ()
    params: tuple[Param, ...] = ()
    window: WindowPolicy = ALL
    reply: ReplyMode = "auto"
    examples: tuple[Example, ...] = ()
    summary_prompt: str = ""
    model: str = ""
    sampling: Sampling = UNSET
    about: str = ""
    tools: tuple[str, ...] = ()
    documents: Documents | None = None
    answer: JsonSchema | None = None
    flow: str = ""
    unknown_turns: UnknownTurns = "warn"
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    options: AnswerOptions = NO_OPTIONS
    answer_code: str = ""
    """The name of the code that defines the type of its answers, as in `desk.py@HASH:Order`; "" without such code."""
    code_type: "OutputType[Any] | None" = None
    """The type of its answers as code defines it, if that is known here: it may check more than the schema."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, App) and self.source == other.source

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"App({self.name!r})"

    @property
    def name(self) -> str:
        """The name of the app."""
        return self.source.name

    @cached_property
    def hash(self) -> str:
        """The identity of the app with its parameters, 32 hex characters."""
        return self.source.hash

    @cached_property
    def answer_options(self) -> AnswerOptions:
        """The options that hold for the next turn."""
        return self.options.effective

    @cached_property
    def answer_sampling(self) -> Sampling:
        """How its answers are sampled, with the options of its request."""
        sampling = merge_sampling(self.sampling, self.answer_options.sampling)
        return sampling if self.output_type is None else settled(sampling)

    @cached_property
    def instructions(self) -> str:
        """The body with its parameters inserted, or the configured instructions if it is empty."""
        return fill_placeholders(self.body, self.values) if self.body else self.answer_options.system or ""

    @cached_property
    def has_own_words(self) -> bool:
        """Whether its instructions hold words of the user: those given for this conversation, or a parameter that is not a choice."""
        given = (self.values.get(each.name) != each.default for each in self.params if not each.type.startswith('"'))
        return bool(self.answer_options.system) or any(given)

    @cached_property
    def is_template(self) -> bool:
        """Whether the body has a place for the text of the user, `{{PROMPT}}`."""
        return any(match[1] == PROMPT for match in PLACEHOLDER.finditer(self.body))

    @cached_property
    def summary_instructions(self) -> str:
        """The instructions of a summary with the parameters inserted; '' selects the default ones."""
        return fill_placeholders(self.summary_prompt, self.values)

    @cached_property
    def model_fields(self) -> tuple[StateField, ...]:
        """The fields that the model writes."""
        return tuple(field for field in self.fields if not field.computed)

    @cached_property
    def output_type(self) -> "OutputType[Any] | None":
        """The type of the answers; None if they are text."""
        if self.code_type is not None:
            return self.code_type
        from taiwa.structured import OutputType

        schema = self.answer_options.schema or self.answer
        return None if schema is None else OutputType.from_json_schema(dict(schema.schema), name=schema.name)

    def layout(self, *, enforces_schemas: bool = False, is_local: bool = False) -> ReplyLayout:
        """Return the layout of the replies of a model that does, or does not, enforce schemas, and runs on this machine or not.

        A field that every turn must write cannot be left to a request that asks what the user's message changes.
        """
        if self.document_settings.get("quote"):  # a quotation has no place for state
            return "record"
        if self.reply != "auto":
            return self.reply
        if is_local and enforces_schemas and not any(field.required for field in self.model_fields):
            return "record"
        return "json" if enforces_schemas or self.output_type is not None else "text+delta"

    @property
    def runs_file(self) -> bool:
        """Whether the program of a file makes its turns."""
        return self.flow not in ("", SOLVE, EXTRACT, ROUTE)

    def read_answer(self, answer: str | None) -> Json:
        """Return an answer of the type of the answers as JSON; None for a text, such as a question or a rationale."""
        if self.output_type is None or self.flow == SOLVE:
            return None
        with suppress(ValueError):
            return parse_json(answer or "")
        return None

    @cached_property
    def only_answers(self) -> bool:
        """Whether its turns do nothing but answer from documents."""
        return self.documents is not None and not (self.model_fields or self.tools or self.output_type)

    @cached_property
    def document_settings(self) -> dict[str, Json]:
        """The settings of its documents by key, those of its parameters first; empty without documents."""
        if self.documents is None:
            return {}
        own = self.documents.settings if isinstance(self.documents.settings, dict) else {}
        given = {key: self.values[key] for key in Documents.KEYS if self.values.get(key) not in (None, "", [])}
        return own | given

    @cached_property
    def delta_type(self) -> "OutputType[dict[str, Json]]":
        """The type of a state delta."""
        return delta_output_type(self.fields)

    @cached_property
    def full_delta_type(self) -> "OutputType[dict[str, Json]]":
        """The type of a state delta with a key for every field."""
        return full_delta_output_type(self.fields)

    @cached_property
    def environment_type(self) -> "OutputType[dict[str, Json]]":
        """The type of a whole environment."""
        return environment_output_type(self.fields)

    def with_params(self, values: Mapping[str, Json]) -> "App":
        """Return the app with its parameters filled in.

        Raises:
            InputError: a parameter is missing, unknown, or not of its type.
        """
        if not self.params and not values:
            return self
        known = {param.name: param for param in self.params}
        for name in values:
            if name not in known:
                raise InputError(Wording("the app {app!r} has no parameter {name!r}; it has: {names}", app=self.name, name=name, names=", ".join(known) or "none"))  # fmt: skip
        filled = {name: values.get(name, param.default) for name, param in known.items()}
        for name, param in known.items():
            if filled[name] is None and param.required:
                raise InputError(Wording("the app {app!r} requires the parameter {name!r}; pass -p {name}=…", app=self.name, name=name))  # fmt: skip
            if filled[name] is not None:
                filled[name] = fit_params(param, filled[name])
        return replace(self, source=replace(self.source, params=filled or None), values=filled)

    def with_options(self, options: AnswerOptions) -> "App":
        """Return the app with other options of its answers.

        Raises:
            InputError: a schema is set, and the app has its own reply format.
        """
        if options.request == NO_OPTIONS:
            options = replace(options, request=None)
        own = tuple(tool for tool in self.tools if tool not in self.options.tools)
        options = replace(options, tools=tuple(tool for tool in options.tools if tool not in own))
        if options == self.options:
            return self
        if options.effective.schema is not None and self.model_fields and self.reply in UNTYPED_REPLIES:
            raise InputError(f"the app {self.name!r} has `reply: {self.reply}`, which has no place for a typed answer")
        recorded = None if options == NO_OPTIONS else record(options)
        source = replace(self.source, options=recorded)
        kept = self.code_type if options.effective.schema == self.answer_options.schema else None
        return replace(self, source=source, tools=(*own, *options.tools), options=options, code_type=kept)


def fit_params(param: Param, data: Json) -> Json:
    """Check that a value has the type of its parameter, and return it as that type.

    Raises:
        InputError: it does not; the message says what was expected.
    """
    from taiwa.structured.type_notation import fits, parse_notation

    annotation = parse_notation(param.type)
    if fits(annotation, data):
        return deepcopy(data)
    from taiwa.structured import OutputType

    kind = OutputType.fields("Param", {param.name: annotation})
    try:
        return kind.validate({param.name: data})[param.name]
    except OutputValidationError as error:
        first = next(iter(error.diagnostics), error.message)
        reason = first.values.get("problem", first) if isinstance(first, Wording) else first.partition(": ")[2] or first
        raise InputError(Wording(
            "the parameter {name!r} has the type {type}, and {value} does not fit: {problem}",
            name=param.name, type=param.type, value=canonical(data).decode()[:60], problem=reason,
        )) from None  # fmt: skip


def fill_placeholders(body: str, values: Mapping[str, Json]) -> str:
    """Insert parameters in a single pass; inserted text is never scanned again. Text is inserted unchanged, null as '',
    others as JSON.

    >>> fill_placeholders("Into {{lang}}.", {"lang": "{{lang}}"})
    'Into {{lang}}.'
    """

    def insert(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        data = values[match[1]]
        return data if isinstance(data, str) else "" if data is None else json.dumps(data, ensure_ascii=False)

    return PLACEHOLDER.sub(insert, body)
