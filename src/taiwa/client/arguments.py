"""The arguments of the methods of a client: their types, and the values made from them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import isroutine
from pathlib import Path
from re import Pattern
from types import NoneType
from typing import Any, TypeAlias, TypedDict, cast

from taiwa.conversation.app import AnswerOptions
from taiwa.flows.extract import RepairPolicy
from taiwa.flows.solve.solve import SolveOptions
from taiwa.kernel.approval import Approve
from taiwa.kernel.attachments import AttachmentSource, read_attachments
from taiwa.kernel.errors import InputError, check_argument, check_list, describe
from taiwa.kernel.messages import (
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    Message,
    Regex,
    Request,
    Sampling,
    assistant,
    system,
    user,
)
from taiwa.kernel.runtime import AnyModel, Tool
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import Limits, Prices
from taiwa.models.providers import PROVIDERS
from taiwa.operations.generate import answer_checker
from taiwa.sessions.commit_turn import TurnOptions
from taiwa.store import Store
from taiwa.structured import OutputType, ParseOptions

Messages: TypeAlias = tuple[Message, ...]
Prompt: TypeAlias = str | Message | Sequence[Message | Mapping[str, Any]]
"""A question of the user, or the messages of a dialogue that ends with one: `taiwa.user(…)`, or a dict with role and content."""
Tools: TypeAlias = Iterable[Tool | Callable[..., Any] | str]
"""Tools, functions that `@taiwa.tool` accepts, or names of built-in tools and plug-ins."""
Attachments: TypeAlias = Iterable[AttachmentSource]
"""Images, PDFs and text files: their paths, their bytes, or `Attachment` objects."""
TextConstraint: TypeAlias = Regex | Choice | Grammar
MAKERS = {"system": system, "developer": system, "user": user, "assistant": assistant}
"""The functions that create a message, by role."""


class AnswerArguments(TypedDict, total=False):
    """The keyword arguments of every question; overloads differ only in their result types."""

    attachments: Attachments
    system: str
    temperature: float | None
    max_tokens: int | None
    limits: Limits | None
    model: str | AnyModel | None


class ExtractArguments(AnswerArguments, total=False):
    """The keyword arguments of extractions."""

    repair: RepairPolicy


class GenerateArguments(AnswerArguments, total=False):
    """The keyword arguments of `generate`."""

    prefix: str
    tools: Tools
    stop: Sequence[str]
    seed: int | None


class SessionArguments(TypedDict, total=False):
    """The keyword arguments of every conversation; overloads differ only in the type of its answers."""

    params: Mapping[str, Json] | None
    system: str | None
    tools: Tools | None
    temperature: float | None
    max_tokens: int | None
    limits: Limits | None
    options: TurnOptions | None
    model: str | AnyModel | None


class OpenArguments(SessionArguments, total=False):
    """The keyword arguments of `taiwa.open`."""

    session: str
    store: str | Path | Store | None
    prices: Prices | None
    retry_paid: bool | None
    approve: Approve | None


def question(
    text: Prompt, attachments: Attachments, system_text: str, prefix: str, stop: Sequence[str], temperature: float | None,
    max_tokens: int | None, seed: int | None,
) -> Request:  # fmt: skip
    """Make the request of one question; its attachments are read.

    Raises:
        InputError: an argument is not valid.
    """
    messages = checked(text, attachments)
    for name, given in (("system", system_text), ("prefix", prefix)):
        check_argument(name, given, str, "a text")
    check_list("stop", stop, str, "texts")
    sampling = checked_sampling(temperature, max_tokens, seed)
    head = (system(system_text),) if system_text else ()
    return Request((*head, *messages), prefix=prefix, stop=tuple(stop), sampling=sampling)


def checked_sampling(temperature: float | None, max_tokens: int | None, seed: int | None = None) -> Sampling:
    """Make a sampling.

    Raises:
        InputError: an argument has the wrong type, or no server takes it.
    """
    check_argument("temperature", temperature, (int, float, NoneType), "a number")
    for name, number in (("max_tokens", max_tokens), ("seed", seed)):
        check_argument(name, number, (int, NoneType), "a whole number")
    if temperature is not None and not 0 <= temperature <= 2:
        raise InputError(f"temperature must be from 0 to 2, got {temperature}")
    if max_tokens is not None and max_tokens < 1:
        raise InputError(f"max_tokens must be at least 1, got {max_tokens}")
    return Sampling(temperature, max_tokens=max_tokens, seed=seed)


def answer_options(
    system_text: str | None, temperature: float | None, max_tokens: int | None, schema: object, limits: Limits | None
) -> AnswerOptions:
    """Make the options of the answers of a conversation.

    Raises:
        InputError: an argument has the wrong type.
    """
    check_argument("system", system_text, (str, NoneType), "a text")
    output_type = None if schema is None else OutputType.of(schema)
    typed = None if output_type is None else output_type.json_schema
    given = checked_limits(limits)
    bounds = None if given is None else given.usage_limits
    return AnswerOptions(system_text, checked_sampling(temperature, max_tokens), schema=typed, limits=bounds)


def constraint_of(constraint: object) -> "tuple[Constraint | None, Callable[[str], Any]]":
    """Return the constraint of a request, and what reads its answer.

    Raises:
        InputError: it is not a constraint.
    """
    if constraint is None:
        return None, str
    if isinstance(constraint, (Regex, Grammar)):
        text = constraint.pattern if isinstance(constraint, Regex) else constraint.text
        check_argument(type(constraint).__name__, text, str, "made of a text")
    if isinstance(constraint, Mapping):
        constraint = JsonSchema(cast("Mapping[str, Json]", constraint))
    if isinstance(constraint, (Regex, Choice, Grammar, JsonSchema)):
        return constraint, answer_checker(constraint)
    if isinstance(constraint, (str, list, tuple, Pattern)):
        kinds = "Regex(…), Choice(…, …), Grammar(…), a JSON Schema or a type"
        raise InputError(f"a constraint must be {kinds}, got {describe(cast('object', constraint))}")
    output_type = OutputType.of(constraint)
    return JsonSchema(
        output_type.schema(), output_type.name
    ), lambda text: output_type.parse(text, ParseOptions(guess=False)).value


def solve_tools(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Return tools for a question: these, or else the built-in ones."""
    from taiwa.tools.registry import builtin_tools

    return tools or tuple(builtin_tools().values())


def solve_options(
    options: SolveOptions | None, system_text: str | None, temperature: float | None, max_tokens: int | None
) -> SolveOptions:
    """Return options of `solve` with individual options on top.

    Raises:
        InputError: an argument has the wrong type.
    """
    check_argument("options", options, (SolveOptions, NoneType), "taiwa.SolveOptions(…)")
    check_argument("system", system_text, (str, NoneType), "a text")
    found = options or SolveOptions()
    given = checked_sampling(temperature, max_tokens)
    sampling = found.sampling if given.temperature is None else replace(found.sampling, temperature=given.temperature)
    limits = found.limits if max_tokens is None else replace(found.limits, max_tokens=max_tokens)
    return replace(
        found, system=found.system if system_text is None else system_text, sampling=sampling, limits=limits
    )  # fmt: skip


def tools_of(tools: Tools) -> tuple[Tool, ...]:
    """Return tools; look up those given by name.

    Raises:
        InputError: it is not a list of tools.
    """
    from taiwa.tools.function_tool import tool as make_tool
    from taiwa.tools.registry import find_tools

    given = cast("object", tools)
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InputError(f"tools must be a list of tools, got {describe(given)}; write tools=[…]")
    found: list[Tool] = []
    for tool in tools:
        if isinstance(tool, str):
            found += find_tools([tool])
        elif offers(tool, "spec"):
            found.append(cast("Tool", tool))
        elif isroutine(tool):  # a function or a bound method
            found.append(make_tool(cast("Callable[..., Any]", tool)))
        else:
            raise InputError(f"tools must be tools, got {describe(tool)}; decorate a function with @taiwa.tool")
    names = [tool.spec.name for tool in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two tools have the name {twice!r}")
    return tuple(found)


def at_address(model: object, base_url: str) -> tuple[str, dict[str, str]]:
    """Return the name of a model at an address, and the addresses of providers that it sets.

    Raises:
        InputError: there is no name, or it has an address already.
    """
    if not isinstance(model, str):
        raise InputError("base_url is the address of a named model: Client('qwen3', base_url=…)")
    provider, colon, _ = model.partition(":")
    if "://" in model:
        raise InputError(f"{model} has an address already; give base_url or the address, not both")
    return (model, {provider: base_url}) if colon and provider in PROVIDERS else (f"{base_url}#{model}", {})


def checked_limits(limits: Limits | None) -> Limits | None:
    """Return limits.

    Raises:
        InputError: they are something else.
    """
    check_argument("limits", limits, (Limits, NoneType), "taiwa.Limits(…)")
    return limits


def offers(argument: object, name: str) -> bool:
    """Return whether an argument is an instance with this attribute, rather than a class."""
    return hasattr(argument, name) and not isinstance(argument, type)


def checked(text: Prompt, attachments: Attachments = ()) -> Messages:
    """Return the text of a question, or its messages; with attachments, a message of both.

    Raises:
        InputError: it is empty, or neither a text nor messages; an attachment cannot be read.
    """
    content, files = cast("object", text), read_attachments(attachments)
    if isinstance(content, str):
        if not files and not content.strip():
            raise InputError("the text is empty")
        return (user(content, files),)
    parts: tuple[object, ...] = (content,) if isinstance(content, Message) else ()
    if isinstance(content, Sequence) and not isinstance(content, bytes):
        parts = tuple(cast("Sequence[object]", content))
    if not parts:
        hint = "; the type comes first: extract(Order, text)" if isinstance(content, type) else ""
        hint = "; put it into a list" if isinstance(content, Mapping) else hint
        raise InputError(f"the text must be a str, or a list of messages, got {describe(cast('object', text))}{hint}")
    names: dict[str, str] = {}
    found = tuple(
        each for number, part in enumerate(parts, 1) for each in _messages_of(part, f"message {number}", names)
    )
    if files:
        raise InputError("attachments belong to a text; give messages theirs: taiwa.user(text, attachments)")
    if not any(message.text.strip() or message.attachments for message in found):
        raise InputError("the text is empty")
    return found


def _messages_of(part: object, where: str, names: dict[str, str]) -> tuple[Message, ...]:
    """Return a message, converted from a dict as OpenAI and Anthropic have it if necessary; its results of tools are messages of their own.

    Raises:
        InputError: it is neither; the role is unknown, or the content has neither text nor calls of tools.
    """
    if isinstance(part, Message):
        return (part,)
    if not isinstance(part, Mapping):
        what = f"the text must be a str, or a list of messages, got a list whose {where} is {describe(part)}"
        raise InputError(f"{what}; write taiwa.user(…), or {{'role': …, 'content': …}}")
    given = cast("Mapping[str, object]", part)
    role, content = given.get("role"), given.get("content")
    if role in (*MAKERS, "tool") and (isinstance(content, list) or "tool_calls" in given or "tool_call_id" in given):
        from taiwa.operations.message_lists import read_message

        return read_message(given, names, where)
    make = MAKERS.get(role) if isinstance(role, str) else None
    if make is None:
        raise InputError(f"{where}: unknown role {role!r}; choose one of {', '.join(MAKERS)}")
    if not isinstance(content, str):
        raise InputError(f"{where}: content must be a str, got {describe(content)}")
    unknown = next((key for key in given if key not in ("role", "content")), None)
    if unknown is not None:
        raise InputError(f"{where}: unknown key {unknown!r}; choose one of role, content")
    return (make(content),)


def targets_of(targets: Sequence[object]) -> dict[str, object]:
    """Name the targets of a route by their classes, and JSON Schemas by their titles."""
    targets = [OutputType.of(each) if isinstance(each, Mapping | str | JsonSchema) else each for each in targets]
    named = {str(getattr(target, "name", None) or getattr(target, "__name__", target)): target for target in targets}
    if len(named) < len(targets):
        raise InputError("two targets have the same name; wrap one: OutputType(Order, name='Booking')")
    return named
