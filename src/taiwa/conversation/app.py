"""An app: instructions, parameters, fields, examples and a window, all data.

Swapping one app file for another makes another program of the same conversation loop.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from taiwa.conversation.state import Field, delta_shape, environment_shape, written
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.messages import Sampling
from taiwa.kernel.records import Json, canonical, digest, value
from taiwa.structured import OutputType
from taiwa.structured.type_notation import parse_notation

__all__ = ["ALL", "App", "AppSource", "Example", "Flow", "Param", "ReplyMode", "WindowPolicy", "fit_params"]


@value(tag="app-source")
class AppSource:
    """The text of an app file with the parameters it was opened with; its hash is the identity of an app."""

    name: str
    source: str
    params: Json = None

    @property
    def hash(self) -> str:
        """32 hex characters."""
        return digest(self)


ReplyMode = Literal["text+delta", "json", "environment"]

Flow = Literal["chat", "ask"]
"""What a turn does: the model talks, or what is asked is looked up in documents and answered from them."""

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@value(tag="app-param")
class Param:
    """Something an app has to know before its first turn; `ask` is the question to a person."""

    name: str
    type: str = "str"
    ask: str = ""
    default: Json = None
    required: bool = True


@value(tag="window-policy")
class WindowPolicy:
    """Which turns a prompt carries: all, or grow to `grow` turns and then cut to `to` (in chunks, so that caches hold).

    `fold` says what becomes of those cut off; the first `first` turns and those whose delta sets a field of `setting` stay.
    """

    grow: int | None = None
    to: int = 0
    fold: Literal["drop", "summary"] = "drop"
    first: int = 0
    setting: tuple[str, ...] = ()


ALL = WindowPolicy()


@value(tag="app-example")
class Example:
    """A worked turn, shown to the model as if it had happened."""

    user: str
    answer: str
    delta: Json = None


@dataclass(frozen=True, eq=False)
class App:
    """An app with its parameters filled in. Equal apps have equal `hash`. `tools` are names: what they mean is said elsewhere."""

    source: AppSource
    body: str
    fields: tuple[Field, ...] = ()
    params: tuple[Param, ...] = ()
    keep: WindowPolicy = ALL
    reply: ReplyMode = "text+delta"
    examples: tuple[Example, ...] = ()
    summary_prompt: str = ""
    model: str = ""
    sampling: Sampling = Sampling()
    about: str = ""
    tools: tuple[str, ...] = ()
    flow: Flow = "chat"
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])

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
        """The identity of the app with its parameters."""
        return self.source.hash

    @cached_property
    def instructions(self) -> str:
        """The body with its parameters inserted, once, in a single pass."""
        return fill_placeholders(self.body, self.values)

    @cached_property
    def summary_instructions(self) -> str:
        """What a summary of old turns is asked for with, its parameters inserted; '' leaves that to the layout."""
        return fill_placeholders(self.summary_prompt, self.values)

    @cached_property
    def written(self) -> tuple[Field, ...]:
        """The fields that the model writes."""
        return written(self.fields)

    @cached_property
    def delta(self) -> OutputType[dict[str, Json]]:
        """The shape of a delta."""
        return delta_shape(self.fields)

    @cached_property
    def environment(self) -> OutputType[dict[str, Json]]:
        """The shape of a whole environment."""
        return environment_shape(self.fields)

    def opened(self, values: Mapping[str, Json]) -> "App":
        """Fill in parameters.

        Raises:
            InputError: one is missing, unknown, or not of its type.
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
                raise InputError(f"the app {self.name!r} needs the parameter {name!r}: give -p {name}=…")
            if filled[name] is not None:
                filled[name] = fit_params(param, filled[name])
        source = replace(self.source, params=filled or None)
        return replace(self, source=source, values=filled)


def fit_params(param: Param, given: Json) -> Json:
    """See that a value has the type of its parameter.

    Raises:
        InputError: it has not; the message says what was expected.
    """
    try:
        return OutputType.fields("Param", {param.name: parse_notation(param.type)}).validate({param.name: given})[
            param.name
        ]
    except OutputValidationError as error:
        why = error.diagnostics[0].partition(": ")[2] if error.diagnostics else error.message
        wanted = f"the parameter {param.name!r} has the type {param.type}"
        raise InputError(f"{wanted}, and {canonical(given).decode()[:60]} does not fit: {why}") from None


def format_params(given: Json) -> str:
    """A value as instructions say it: a text as it is, nothing for null, anything else as JSON."""
    if given is None:
        return ""
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def placeholders(body: str) -> tuple[str, ...]:
    """The names of parameters that a body uses, in order."""
    return tuple(dict.fromkeys(PLACEHOLDER.findall(body)))


def fill_placeholders(body: str, values: Mapping[str, Json]) -> str:
    """Insert parameters in a single pass; what was inserted is never scanned again.

    >>> fill_placeholders("Into {{lang}}.", {"lang": "{{lang}}"})
    'Into {{lang}}.'
    """

    def insert(match: re.Match[str]) -> str:
        name = match[1]
        return format_params(values[name]) if name in values else match[0]

    return PLACEHOLDER.sub(insert, body)
