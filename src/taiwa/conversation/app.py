"""An app: instructions, parameters, fields, examples and a window, all data.

Swapping one app file for another makes another program of the same conversation loop.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from taiwa.conversation.state import StateField, delta_output_type, environment_output_type
from taiwa.kernel.errors import CorruptError, InputError, OutputValidationError
from taiwa.kernel.messages import Constraint, Sampling, ToolSpec
from taiwa.kernel.records import Json, canonical, digest, item_at, record, restore, text_at, value
from taiwa.structured import OutputType
from taiwa.structured.type_notation import parse_notation


@value(tag="app-source")
class AppSource:
    """The text of an app file with the parameters it was opened with; its hash is the identity of an app.

    `options` are the answer options that a user gave beside the file; see `AnswerOptions`.
    """

    name: str
    source: str
    params: Json = None
    options: Json = None

    @property
    def hash(self) -> str:
        """32 hex characters."""
        return digest(self)


ReplyMode = Literal["text+delta", "json", "environment"]

Flow = Literal["chat", "ask"]
"""What a turn does: `chat` completes with the model, `ask` searches documents and answers from them."""

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")

PROMPT = "PROMPT"
"""The placeholder of the user's text: with it, each turn sends the instructions anew, around the text, and not before it."""


@value(tag="app-param")
class Param:
    """A parameter of an app, required before its first turn; `ask` is the question to the user."""

    name: str
    type: str = "str"
    ask: str = ""
    default: Json = None
    required: bool = True


@value(tag="window-policy")
class WindowPolicy:
    """Which turns a prompt carries: all, or up to `max_size` turns, then the newest `keep` (in chunks, so that caches hold).

    With `summarize` the turns that are cut are summarized, else dropped. The first `keep_first` turns and those whose delta
    sets a field of `keep_setting` are never cut.
    """

    max_size: int | None = None
    keep: int = 0
    summarize: bool = False
    keep_first: int = 0
    keep_setting: tuple[str, ...] = ()


ALL = WindowPolicy()


@value(tag="answer-options")
class AnswerOptions:
    """What a user sets for the answers of a conversation, beside its app; what is None, or empty, stays as it is.

    - `system`: instructions, for an app that has none. `temperature` and `max_tokens`: of the sampling.
    - `tools`: names of tools that the model may call, beside those of the app.
    - `schema`: the JSON Schema of answers, which then are JSON, with its name: `{"name": …, "schema": …}`; `{}` for text.
    """

    system: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    tools: tuple[str, ...] = ()
    schema: Json = None

    def to_json(self) -> dict[str, Json]:
        """Return the options that are set, as an app is stored with them."""
        fields: dict[str, Json] = {
            "system": self.system, "temperature": self.temperature, "max_tokens": self.max_tokens,
            "tools": [*self.tools] or None, "schema": self.schema,
        }  # fmt: skip
        return {name: data for name, data in fields.items() if data is not None}

    @classmethod
    def from_json(cls, data: Json) -> "AnswerOptions":
        """Restore stored options.

        Raises:
            InputError: the data are no options, as those of another version or of a file may be.
        """
        fields = data if isinstance(data, dict) else {}
        system, temperature, most = (fields.get(name) for name in ("system", "temperature", "max_tokens"))
        tools, schema = fields.get("tools"), fields.get("schema")
        if (
            not isinstance(data, dict | None)
            or fields.keys() - {"system", "temperature", "max_tokens", "tools", "schema"}
            or not isinstance(system, str | None)
            or not (temperature is None or (isinstance(temperature, int | float) and 0 <= temperature <= 2))
            or not (most is None or (isinstance(most, int) and most > 0))
            or not isinstance(tools, list | None)
            or not isinstance(schema, dict | None)
        ):
            raise InputError("the options of the app cannot be read")
        return cls(system, temperature, most, tuple(map(str, tools or ())), schema)


@value(tag="app-example")
class Example:
    """A worked turn that is shown to the model before the conversation."""

    user: str
    answer: str
    delta: Json = None


REQUEST = "@request"
"""The key of `RequestOptions` among the recorded parameters of an app; no parameter can have this name."""


@value(tag="request-options")
class RequestOptions:
    """What a client of the server adds to each request of a conversation: it resends this, so it belongs to the app.

    `system` follows the instructions of the app, and is never scanned for placeholders. The client itself performs the calls
    of `tools`. `sampling` replaces that of the app. The others are as in `Request`.
    """

    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    constraint: Constraint | None = None
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    sampling: Sampling | None = None

    @property
    def shapes_reply(self) -> bool:
        """Whether they hold more than a system text and sampling, which a turn with a state delta cannot follow."""
        return self != RequestOptions(self.system, sampling=self.sampling)


NO_OPTIONS = RequestOptions()


def restore_options(data: Json) -> RequestOptions:
    """Rebuild the options of a stored app.

    Raises:
        InputError: the record holds something else.
    """
    try:
        found = restore(data)
    except CorruptError as error:
        raise InputError(error.message) from None
    if not isinstance(found, RequestOptions):
        raise InputError("the options of a stored app cannot be read")
    return found


@dataclass(frozen=True, eq=False)
class App:
    """An app with its parameters filled in. Equal apps have equal `hash`; `tools` are names."""

    source: AppSource
    body: str
    fields: tuple[StateField, ...] = ()
    params: tuple[Param, ...] = ()
    window: WindowPolicy = ALL
    reply: ReplyMode = "text+delta"
    examples: tuple[Example, ...] = ()
    summary_prompt: str = ""
    model: str = ""
    sampling: Sampling = Sampling()
    about: str = ""
    tools: tuple[str, ...] = ()
    flow: Flow = "chat"
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    system: str = ""
    """Instructions of the user, in place of the body of an app that has none; they are no template."""
    output_schema: Json = None
    """The schema of answers with its name; see `AnswerOptions`."""
    request: RequestOptions = NO_OPTIONS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, App) and self.source == other.source

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def name(self) -> str:
        """The name of the app."""
        return self.source.name

    @cached_property
    def hash(self) -> str:
        """The identity of the app with its parameters, 32 hex characters."""
        return self.source.hash

    @cached_property
    def instructions(self) -> str:
        """The body with its parameters inserted, or the instructions of the user."""
        return self.system or fill_placeholders(self.body, self.values)

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
    def output_type(self) -> OutputType[Json] | None:
        """The type of the answers; None where they are text."""
        schema, name = item_at(self.output_schema, "schema"), text_at(self.output_schema, "name")
        return OutputType.from_json_schema(schema, name=name) if isinstance(schema, dict) else None

    @cached_property
    def delta_type(self) -> OutputType[dict[str, Json]]:
        """The type of a state delta."""
        return delta_output_type(self.fields)

    @cached_property
    def environment_type(self) -> OutputType[dict[str, Json]]:
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
                raise InputError(
                    f"the app {self.name!r} has no parameter {name!r}; it has: {', '.join(known) or 'none'}"
                )
        filled = {name: values.get(name, param.default) for name, param in known.items()}
        for name, param in known.items():
            if filled[name] is None and param.required:
                raise InputError(f"the app {self.name!r} requires the parameter {name!r}; pass -p {name}=…")
            if filled[name] is not None:
                filled[name] = fit_params(param, filled[name])
        return replace(self, source=replace(self.source, params=filled or None), values=filled)

    def with_request(self, options: RequestOptions) -> "App":
        """Return the app, with its parameters filled in, with the options that a client of the server adds to requests."""
        if options == self.request:
            return self
        recorded: dict[str, Json] = dict(self.values)
        if options != NO_OPTIONS:
            recorded[REQUEST] = record(options)
        return replace(self, source=replace(self.source, params=recorded or None), request=options)


SAME_ANSWERS = AnswerOptions()


def with_options(app: App, options: AnswerOptions) -> App:
    """Return an app with the options of a user on top of its own and of those that it has already.

    Raises:
        InputError: the app has instructions of its own, or replies with a state, and the options replace that.
    """
    if options == SAME_ANSWERS:
        return app
    if options.system is not None and app.body.strip():
        raise InputError(
            f"the app {app.name!r} has instructions of its own; --system requires one without, such as plain"
        )
    if options.schema and (app.model_fields or app.flow != "chat"):
        raise InputError(
            f"the app {app.name!r} has a form of reply of its own; --schema requires one without, such as plain"
        )
    before = AnswerOptions.from_json(app.source.options)
    merged = AnswerOptions(
        before.system if options.system is None else options.system,
        before.temperature if options.temperature is None else options.temperature,
        options.max_tokens or before.max_tokens,
        (*before.tools, *(tool for tool in options.tools if tool not in before.tools)),
        (before.schema if options.schema is None else options.schema) or None,
    )
    sampling = app.sampling
    if merged.temperature is not None:
        sampling = replace(sampling, temperature=merged.temperature)
    if merged.max_tokens is not None:
        sampling = replace(sampling, max_tokens=merged.max_tokens)
    return replace(
        app,
        source=replace(app.source, options=merged.to_json()),
        sampling=sampling,
        tools=(*app.tools, *(tool for tool in merged.tools if tool not in app.tools)),
        system=merged.system or "",
        output_schema=merged.schema,
    )


def fit_params(param: Param, data: Json) -> Json:
    """Check that a value has the type of its parameter, and return it as that type.

    Raises:
        InputError: it does not; the message says what was expected.
    """
    kind = OutputType.fields("Param", {param.name: parse_notation(param.type)})
    try:
        return kind.validate({param.name: data})[param.name]
    except OutputValidationError as error:
        reason = error.diagnostics[0].partition(": ")[2] if error.diagnostics else error.message
        shown = canonical(data).decode()[:60]
        message = f"the parameter {param.name!r} has the type {param.type}, and {shown} does not fit: {reason}"
        raise InputError(message) from None


def fill_placeholders(body: str, values: Mapping[str, Json]) -> str:
    """Insert parameters in a single pass; inserted text is never scanned again: text as it is, null as '', others as JSON.

    >>> fill_placeholders("Into {{lang}}.", {"lang": "{{lang}}"})
    'Into {{lang}}.'
    """

    def insert(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        data = values[match[1]]
        return data if isinstance(data, str) else "" if data is None else json.dumps(data, ensure_ascii=False)

    return PLACEHOLDER.sub(insert, body)
