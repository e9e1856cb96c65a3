"""One client for every operation on language models: `Client` blocks, `AsyncClient` has the same methods as coroutines.

A client has a model with its connections, tools, a retriever, a store and limits. Each method creates a program and runs it,
so both clients send the same requests; `run` runs your own program.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from inspect import iscoroutinefunction, isfunction
from pathlib import Path
from re import Pattern
from types import MappingProxyType, NoneType
from typing import Any, Generic, Self, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

from taiwa import settings as configured
from taiwa.apps.catalog import DEFAULT_APP, load_app
from taiwa.conversation.app import AnswerOptions, App
from taiwa.conversation.history import Conversation
from taiwa.flows import extract as extracting
from taiwa.flows.ask.ask_result import AskResult
from taiwa.flows.extract import DEFAULT_REPAIR, Attempt, OutputSpec, RepairPolicy, Schema
from taiwa.flows.route import RouteResult
from taiwa.flows.route import route as route_program
from taiwa.flows.solve.rationale import Rationale
from taiwa.flows.solve.solve import SolveOptions
from taiwa.kernel.approval import Approve, check_approve
from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.attachments import AttachmentSource, read_attachments
from taiwa.kernel.effects import Complete, Effect, GetCapabilities, HideOutput, Program, Watcher, WatchResult, perform
from taiwa.kernel.errors import (
    ConfigError,
    InputError,
    OutputValidationError,
    RefusalError,
    TaiwaError,
    check_argument,
    check_list,
    describe,
)
from taiwa.kernel.execution import Observer, RunResult, check_program
from taiwa.kernel.messages import (
    Choice,
    Constraint,
    FinishReason,
    Grammar,
    JsonSchema,
    Message,
    Notice,
    Passage,
    Regex,
    Request,
    Sampling,
    TextDelta,
    Usage,
    assistant,
    system,
    user,
)
from taiwa.kernel.runtime import AnyModel, AsyncStream, Done, Handler, Retriever, Runtime, Stream, Tool
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import Limits, Prices, RunUsage, currency_units
from taiwa.models.http_api.api_keys import Secret
from taiwa.models.providers import PROVIDERS, open_model, resolve_asked
from taiwa.operations.documents import AskOptions, FindOptions, open_ask_app, open_library
from taiwa.operations.documents import find as find_passages
from taiwa.operations.generate import answer_checker
from taiwa.operations.inspect import sessions as list_sessions
from taiwa.operations.open_session import change_options, set_options
from taiwa.plugins import make_retriever
from taiwa.retrieval.tables import table_text
from taiwa.sessions.commit_turn import PricedModel, TurnOptions, TurnResult
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import (
    AsyncSession,
    Session,
    open_priced_model,
    open_store,
)
from taiwa.settings import Settings
from taiwa.store import Store
from taiwa.structured import Fix, OutputType, PartialParser

T = TypeVar("T")
E = TypeVar("E")
R = TypeVar("R")

Messages: TypeAlias = tuple[Message, ...]
Prompt: TypeAlias = str | Message | Sequence[Message | Mapping[str, str]]
"""A question of the user, or the messages of a dialogue that ends with one: `taiwa.user(…)`, or a dict with role and content."""
Tools: TypeAlias = Iterable[Tool | Callable[..., Any] | str]
"""Tools, functions that `@taiwa.tool` accepts, or names of built-in tools and plug-ins."""
Attachments: TypeAlias = Iterable[AttachmentSource]
"""Images, PDFs and text files: their paths, their bytes, or `Attachment` objects."""
TextConstraint: TypeAlias = Regex | Choice | Grammar
Handlers: TypeAlias = Mapping[type[Effect[Any]], Handler]
NO_HANDLERS: Handlers = MappingProxyType({})
IN_MEMORY = ":memory:"
MAKERS = {"system": system, "developer": system, "user": user, "assistant": assistant}
"""The functions that create a message, by role."""
View: TypeAlias = "Callable[[TextDelta | Notice | RunResult[R]], Iterator[E | Done[T]]]"
"""What a stream shows of one event of a run."""


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


@dataclass(frozen=True, slots=True)
class Generation(Generic[T]):
    """One answer: its `text`, the `value` parsed by the constraint, and the bill of all its calls.

    `usage` is None if the server did not report it; `cost` is in currency units, None if the price is unknown.
    """

    text: str
    value: T
    finish: FinishReason
    usage: Usage | None = None
    cost: Decimal | None = None

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows."""
        return self.text


@dataclass(frozen=True, slots=True)
class Extraction(Generic[T]):
    """The outcome of `try_extract`: a value, or the error that says why there is none, with all attempts and their bill."""

    value: T | None
    error: "extracting.ExtractError | None"
    attempts: tuple[Attempt, ...]
    usage: Usage | None
    cost: Decimal | None

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """The repairs of the last attempt's text."""
        return self.attempts[-1].fixes if self.attempts else ()

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: the value or the error, and what was wrong with each attempt."""
        rows = [(each.text, "; ".join(each.diagnostics) or "valid") for each in self.attempts]
        result = f"```python\n{self.value!r}\n```" if self.error is None else f"**{self.error}**"
        return f"{result}\n\n{table_text(('attempt', 'problems'), rows)}"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A conversation in a list: its first words, the model that wrote last ("": not known), and the cost of all its turns.

    `cost` is in currency units, None if it is not known; `at` is when it moved last.
    """

    name: str
    app: str
    turns: int
    text: str
    model: str
    cost: Decimal | None
    at: datetime


@dataclass(frozen=True, slots=True)
class SessionStart:
    """The parts of a session."""

    repository: Repository
    name: str
    conversation: Conversation
    priced_model: PricedModel
    tools: tuple[Tool, ...]


class BaseClient:
    """The arguments and properties of both clients.

    - `model`: its name (`openai:gpt-…`, `http://127.0.0.1:8080/v1#name`), or a model; None for the configured one.
    - `tools`: functions with `@taiwa.tool`, for `solve`, for sessions with `plain`, and for apps that name them; also names
      of built-in tools and plug-ins.
    - `retriever`: an object with `find(query, k)`, or the name of a plug-in, for `find` and `ask`; without one they search indexed folders.
    - `store`: a file, a PostgreSQL URL, `":memory:"` or an open store; None for the configured one. It is opened when a
      conversation needs it.
    - `limits`: the limits of each call, and of each conversation; a call may set its own. `prices`: prices of the model, per
      million tokens. `handlers`: handlers of your own effects.
    - `api_key`: the key for the model, instead of the configured one. `base_url`: the address of its server, instead of its
      provider's; `model` is then the name that the server uses: `Client("qwen3", base_url="http://…/v1")`.
    - `timeout`: seconds that one answer may take in total. `attempts`: how often a call is tried; a wait that a rate limit
      asks for does not count, and is limited by `timeout`. `retry_paid`: whether a failed call is retried although the
      server may have charged it. None stands for the configured value.
    - `max_concurrency`, `requests_per_minute`, `tokens_per_minute`: the pace of the calls to each model on a server; calls
      wait for it. None stands for the configured value, by default no limit.
    - `approve`: decides on calls of tools that need approval (`@tool(confirm=True)`, tools of MCP servers that may destroy): a
      function of an `ApprovalRequest`, "always" or "never". Without it, or if it returns None, the turn ends with an
      `ApprovalRequiredError` and can be resumed.

    Each method that asks a model takes `model`, a name or a model that answers this call instead; `api_key`, `base_url` and
    `prices` do not apply to it.

    Raises:
        InputError: an argument has the wrong type.
        ConfigError: the model is unknown, or its key is missing.
    """

    _calls_model_by = "stream"

    def __init__(
        self, model: str | AnyModel | None = None, *, tools: Tools = (), retriever: str | Retriever | None = None,
        store: str | Path | Store | None = None, limits: Limits | None = None, prices: Prices | None = None,
        observers: Iterable[Observer] = (), handlers: Handlers = NO_HANDLERS, api_key: str | None = None,
        base_url: str | None = None, timeout: float | None = None, attempts: int | None = None,
        retry_paid: bool | None = None, approve: Approve | None = None, max_concurrency: int | None = None,
        requests_per_minute: int | None = None, tokens_per_minute: int | None = None,
    ) -> None:  # fmt: skip
        self.tools = _tools(tools)
        check_approve(approve)
        self.approve: Approve | None = approve
        if isinstance(retriever, str):
            retriever = cast("Retriever", make_retriever(retriever))
        self._check_model(model)
        check_argument("store", store, (str, Path, Store, NoneType), "a path, a URL or a Store")
        check_argument("prices", prices, (Prices, NoneType), "taiwa.Prices(…)")
        check_argument("handlers", handlers, Mapping, "a dict of functions by effects")
        check_argument("observers", observers, Iterable, "a list of functions")
        if not (retriever is None or _offers(retriever, "find")):
            raise InputError(f"retriever must be an object with find(query, k), got {describe(retriever)}")
        if retriever is not None and iscoroutinefunction(retriever.find):
            raise InputError("find of a retriever must be a plain function; AsyncClient runs it in a thread")
        check_argument("api_key", api_key, (str, NoneType), "a text")
        check_argument("base_url", base_url, (str, NoneType), "a URL")
        if not (model is None or isinstance(model, str) or api_key is base_url is None):
            raise InputError("api_key and base_url go with the name of a model, and not with a model")
        self._base_urls: dict[str, str] = {}
        if base_url is not None:
            model, self._base_urls = _at_address(model, base_url)
        self._key = None if api_key is None else Secret(api_key, "api_key")
        self._arguments_of_settings: dict[str, object] = {
            "timeout": timeout, "attempts": attempts, "retry_paid": retry_paid, "max_concurrency": max_concurrency,
            "requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute,
        }  # fmt: skip
        if isinstance(model, str):
            self._arguments_of_settings["model"] = model
        if isinstance(store, (str, Path)) and str(store) != IN_MEMORY:
            self._arguments_of_settings["store"] = str(store)
        self.retriever = retriever
        self.limits = _limits(limits) or Limits()
        self.observers = tuple(observers)
        self.handlers = handlers
        self.spent = RunUsage()
        """The usage of all calls of this client, including failed ones, but not of its sessions."""
        self._own_model = None if isinstance(model, str) else model
        self._prices = prices
        self._opened: dict[str, AnyModel] = {}
        self._store = store
        self._open_store: Store | None = None
        if isinstance(model, str):
            _ = self.priced_model  # a wrong name or a missing key is an error here rather than at the first question

    @cached_property
    def settings(self) -> Settings:
        """The settings; they are read when they are first used."""
        loaded = configured.load(self._arguments_of_settings)
        loaded = replace(loaded, base_urls={**loaded.base_urls, **self._base_urls})
        place = self._store.path if isinstance(self._store, Store) else None
        return loaded if place is None else replace(loaded, store=place)

    @property
    def model(self) -> AnyModel:
        """The model; it is opened when it is first used."""
        return self.priced_model.model

    @property
    def priced_model(self) -> PricedModel:
        """The model with its prices."""
        return self._open_model()

    def _check_model(self, model: object) -> None:
        if not (model is None or isinstance(model, str) or _offers(model, self._calls_model_by)):
            hint = "; make an instance of it" if isinstance(model, type) else ""
            raise InputError(
                f"model must be a name, or a model with {self._calls_model_by}(request), got {describe(model)}{hint}"
            )

    def _open_model(
        self, app: App | None = None, last: str = "", model: str | AnyModel | None = None
    ) -> PricedModel:  # fmt: skip
        """Return the model of a question, or of a conversation with an app that the model `last` answered.

        `model` takes the place of the client's.
        """
        self._check_model(model)
        own, prices, chosen = self._own_model, self._prices, self.settings
        if isinstance(model, str):
            origins = {**chosen.origins, "model": "argument"}
            own, prices, chosen = None, None, replace(chosen, model=model, origins=origins)
        elif model is not None:
            own, prices = model, None
        name = chosen.model
        if self._key is not None and model is None and name not in self._opened:
            if name is None:
                raise ConfigError("api_key is the key for a model: Client('openai:gpt-x', api_key=…)")
            self._opened[name] = open_model(resolve_asked(name, chosen, self._key), chosen, key=self._key)
        return open_priced_model(own, chosen, app, last=last, prices=prices, opened=self._opened)

    @property
    def store(self) -> Store:
        """The store of the sessions of this client; it is opened when it is first used."""
        if self._open_store is None:
            self._open_store = open_store(self._store, self.settings)
        return self._open_store

    def _close_store(self) -> None:
        if self._open_store is not None and not isinstance(self._store, Store):
            self._open_store.close()
        self._open_store = None

    def _arguments(self, tools: Tools | None, limits: Limits | None, model: str | AnyModel | None) -> dict[str, Any]:
        """Return the arguments of a runtime."""
        priced_model = self._open_model(model=model)
        bounds = (_limits(limits) or self.limits).usage_limits
        if bounds.day_cost is not None:
            raise InputError("day_cost limits the stored turns of conversations; limit this call by cost")
        return {
            "model": priced_model.model,
            "tools": self.tools if tools is None else _tools(tools),
            "retriever": self.retriever,
            "handlers": self.handlers,
            "observers": self.observers,
            "limits": bounds,
            "price": priced_model.price,
            "approve": self.approve,
        }

    @contextmanager
    def _counting(self) -> Generator[None]:
        """Count the usage of a run that fails."""
        try:
            yield
        except TaiwaError as error:
            if isinstance(error.spent, RunUsage):
                self.spent = self.spent + error.spent
            raise

    def _start(
        self, app: str | App | None, name: str, params: Mapping[str, Json] | None, changes: AnswerOptions, tools: Tools | None,
        model: str | AnyModel | None,
    ) -> SessionStart:  # fmt: skip
        """Return the parts of a session: the conversation of that name, or a new one, with changed answer options.

        Raises:
            InputError: the session exists, and has another app or parameters of its own; the app does not support the
            changes.
        """
        check_argument("app", app, (str, App, NoneType), "the name or the path of an app, or an App")
        check_argument("name", name, str, "a text")
        check_argument("params", params, (Mapping, NoneType), "a dict")
        repository = Repository(self.store)
        repository.place, repository.settings = self.settings.store, self.settings
        repository.retriever = self.retriever
        given = None if tools is None else _tools(tools)

        def changed(app: App) -> AnswerOptions:
            offered = given if given is not None else self.tools if app.name == DEFAULT_APP else ()
            names = tuple(tool.spec.name for tool in offered if tool.spec.name not in app.tools)
            return replace(changes, tools=names)

        def load() -> App:
            loaded = (app if isinstance(app, App) else load_app(app or DEFAULT_APP)).with_params(params or {})
            return set_options(loaded, changed(loaded))

        start = repository.find_or_begin(name, app or "", params or {}, load)
        last = "" if start.new_nodes else repository.last_model(start.tip, name)
        if start.stored_tip is not None:
            start = change_options(repository, start, changed(start.app))
        return SessionStart(repository, name, start, self._open_model(start.app, last, model), given or ())

    def _sessions(self) -> tuple[SessionInfo, ...]:
        return tuple(
            SessionInfo(
                each.ref.name, each.ref.app, each.ref.turns, each.text, each.model, currency_units(each.cost),
                datetime.fromtimestamp(each.ref.at_us / 1e6, UTC),
            )
            for each in list_sessions(Repository(self.store))
        )  # fmt: skip

    def _turn_options(
        self, options: TurnOptions | None, limits: Limits | None, start: SessionStart, schema: object
    ) -> TurnOptions:
        """Return the options of turns; limits of the call override those of the conversation, which override the client's."""
        check_argument("options", options, (TurnOptions, NoneType), "taiwa.TurnOptions(…)")
        kept = start.conversation.app.answer_options.limits
        options = options or TurnOptions(limits=self.limits.usage_limits if kept is None else kept)
        return replace(
            options,
            tools=(*self.tools, *start.tools, *options.tools),
            limits=options.limits if limits is None else limits.usage_limits,
            approve=options.approve or self.approve,
            types=options.types if schema is None else (OutputType.of(schema), *options.types),
        )

    def _ask_app(self, name: str, options: AskOptions) -> App | None:
        """Return the app of a new dialogue with documents; None to continue one."""
        return None if name and self.store.refs.has(name) else open_ask_app(self.settings, options)

    def _find(
        self, query: str, documents: Sequence[str | Path], audience: Sequence[str], limit: int
    ) -> tuple[Passage, ...]:
        check_argument("query", query, str, "a text")
        check_list("documents", documents, (str, Path), "folders, files or names of indexes")
        check_list("audience", audience, str, "principals")
        check_argument("limit", limit, int, "a whole number")
        if self.retriever is not None and not documents:
            return self.retriever.find(query, limit)
        options = FindOptions(query, tuple(map(str, documents)), tuple(audience), limit)
        with open_library(self.settings) as library:
            return tuple(found.passage for found in find_passages(library, self.settings, options).passages)

    def _billed(self, done: RunResult[Generation[T]]) -> Generation[T]:
        usage = None if done.spent.calls_without_usage else done.spent.usage
        return replace(done.value, usage=usage, cost=currency_units(done.spent.cost))

    def _text(
        self, event: "TextDelta | Notice | RunResult[Generation[Any]]"
    ) -> "Iterator[str | Done[Generation[Any]]]":
        if isinstance(event, RunResult):
            yield Done(self._billed(event))
        elif isinstance(event, TextDelta):
            yield event.text

    def _extraction(self, done: "RunResult[extracting.TypedAnswer[T] | extracting.ExtractError]") -> Extraction[T]:
        found, cost = done.value, currency_units(done.spent.cost)
        if isinstance(found, extracting.ExtractError):
            return Extraction(None, found, found.tries, found.usage, cost)
        return Extraction(found.value, None, found.attempts, found.usage, cost)


class Client(BaseClient):
    """Generate, stream, extract, solve, find, ask, run programs and open sessions with one model; see `BaseClient`.

    >>> import taiwa
    >>> with taiwa.Client(taiwa.scripted_model("Hello!")) as client:
    ...     client.generate("Hi").text
    'Hello!'
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of the models and the store, if this client opened them."""
        while self._opened:
            close = getattr(self._opened.popitem()[1], "close", None)
            if close is not None:
                close()
        self._close_store()

    def run(
        self,
        program: Program[R],
        *,
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> R:
        """Run a program and return its value.

        Raises:
            InputError: it is not a program, for example the function that creates it.
            TaiwaError: what the program raised; `spent` holds the usage of the run.
        """
        return self._run(program, tools, limits, model).value

    def stream_run(
        self,
        program: Program[R],
        *,
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> "Stream[TextDelta | Notice, R]":
        """Run a program; yield text and notices as they arrive."""
        return self._stream(program, _as_it_is, tools, limits, model)

    @overload
    def generate(
        self, text: Prompt, constraint: TextConstraint | None = None, **more: Unpack[GenerateArguments]
    ) -> Generation[str]: ...
    @overload
    def generate(
        self, text: Prompt, constraint: JsonSchema | Mapping[str, Json], **more: Unpack[GenerateArguments]
    ) -> Generation[Json]: ...
    @overload
    def generate(
        self, text: Prompt, constraint: type[T] | OutputType[T], **more: Unpack[GenerateArguments]
    ) -> Generation[T]: ...
    def generate(
        self, text: Prompt, constraint: object = None, *, attachments: Attachments = (), system: str = "", prefix: str = "",
        tools: Tools = (), stop: Sequence[str] = (), temperature: float | None = 0.0, max_tokens: int | None = None, seed: int | None = None,
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Generation[Any]:  # fmt: skip
        """Answer one question, without a conversation.

        A constraint is a type, `JsonSchema`, `Regex`, `Choice` or `Grammar`: a model in this process cannot violate it, a
        server is asked to enforce it, and the answer is checked. `prefix` is how the answer begins. `attachments` are
        images, PDFs and text files, as paths, bytes or `Attachment` objects. The model may call `tools`; those of the client
        are for `solve` and for sessions.

        Raises:
            InputError: the text is empty, an attachment cannot be read, or the constraint is not valid.
            UnsupportedError: the server does not support the constraint, or the model cannot read an attachment.
            OutputValidationError: the answer does not fit the constraint.
            ModelError: the call failed; its subclass says why.
        """
        request = question(text, attachments, system, prefix, stop, temperature, max_tokens, seed)
        used = _tools(tools)
        return self._billed(self._run(generate_program(request, constraint, used), used, limits, model))

    def stream(
        self, text: Prompt, constraint: object = None, *, attachments: Attachments = (), system: str = "", prefix: str = "",
        tools: Tools = (), stop: Sequence[str] = (), temperature: float | None = 0.0, max_tokens: int | None = None, seed: int | None = None,
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Stream[str, Generation[Any]]:  # fmt: skip
        """As `generate`; yield the text as it arrives."""
        request = question(text, attachments, system, prefix, stop, temperature, max_tokens, seed)
        used = _tools(tools)
        return self._stream(generate_program(request, constraint, used), self._text, used, limits, model)

    @overload
    def extract(self, output: type[T] | OutputSpec[T], text: Prompt, **more: Unpack[ExtractArguments]) -> T: ...
    @overload
    def extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Json: ...
    def extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Any:  # fmt: skip
        """Extract a value of a type from a text; an invalid answer is sent back with diagnostics.

        `output` is a type, a JSON Schema (a dict, or a `JsonSchema`), or fields: `"name, age int"`.

        Raises:
            ExtractError: no attempt was valid; the error contains the attempts.
            RefusalError: the model refused to answer.
        """
        program = extract_program(output, text, attachments, system, temperature, max_tokens, repair)
        return self._run(program, limits=limits, model=model).value.value

    @overload
    def try_extract(
        self, output: type[T] | OutputSpec[T], text: Prompt, **more: Unpack[ExtractArguments]
    ) -> Extraction[T]: ...
    @overload
    def try_extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Extraction[Json]: ...
    def try_extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Extraction[Any]:  # fmt: skip
        """As `extract`, with attempts, repairs and bill; return an `Extraction` without a value instead of raising."""
        program = extract_program(output, text, attachments, system, temperature, max_tokens, repair)
        return self._extraction(self._run(_with_error_as_value(program), limits=limits, model=model))

    @overload
    def stream_extract(
        self, output: type[T] | OutputType[T], text: Prompt, **more: Unpack[ExtractArguments]
    ) -> Stream[Json, T]: ...
    @overload
    def stream_extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Stream[Json, Json]: ...
    def stream_extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Stream[Json, Any]:  # fmt: skip
        """As `extract`; yield the certain part of the value as it grows, as JSON, and finally the complete value."""
        partials = _Partials(OutputType.of(output))
        program = extract_program(
            partials.output_type, text, attachments, system, temperature, max_tokens, repair, partials.watch
        )
        return self._stream(program, partials.view, limits=limits, model=model)

    def route(
        self,
        text: Prompt,
        *targets: object,
        repair: RepairPolicy = DEFAULT_REPAIR,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> RouteResult:
        """Choose one of several types or APIs and read a value of it, or ask a clarifying question; targets are named by their classes."""
        return self._run(
            route_program(_targets(targets), checked(text), repair=repair), limits=limits, model=model
        ).value

    def solve(
        self, question: str, *, tools: Tools | None = None, system: str | None = None, temperature: float | None = None,
        max_tokens: int | None = None, options: SolveOptions | None = None, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Rationale:  # fmt: skip
        """Solve a question step by step with tools, by default those of this client, and else the built-in ones.

        `system` replaces the built-in instructions; `options` sets more.

        Raises:
            InputError: the question is empty, or an option is not valid.
        """
        used = solve_tools(self.tools if tools is None else _tools(tools))
        program = solve_program(question, used, solve_options(options, system, temperature, max_tokens))
        return self._run(program, used, limits, model).value

    def find(
        self, query: str, *, documents: Sequence[str | Path] = (), audience: Sequence[str] = (), limit: int = 5
    ) -> tuple[Passage, ...]:
        """Find the passages that fit a query best: by the retriever of this client, or in folders and indexes.

        `documents` are folders or files, which are indexed first, or names of indexes; all indexes without any. `audience` are the
        principals for whom documents are searched (`user:ann`, `group:hr`).

        Raises:
            InputError: the query is empty, or there is neither an index nor a folder of that name.
        """
        return self._find(query, documents, audience, limit)

    def ask(
        self, question: str, *, documents: Sequence[str | Path] = (), audience: Sequence[str] = (), user: str = "",
        policy: str = "", temperature: float | None = None, max_tokens: int | None = None, session: str = "",
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> AskResult:  # fmt: skip
        """Answer a question from documents with citations, or ask a clarifying question; see `find` for `documents` and `audience`.

        `session` names the dialogue: pass the same name to reply to a clarifying question.

        Raises:
            InputError: the question is empty, or an index is not found.
        """
        options = ask_options(documents, audience, user, policy)
        opened = self.session(
            self._ask_app(session, options), session, temperature=temperature, max_tokens=max_tokens,
            options=TurnOptions(limits=(_limits(limits) or self.limits).usage_limits, approve=self.approve), model=model,
        )  # fmt: skip
        return _asked(opened.say(question))

    def session(
        self, app: str | App | None = None, name: str = "", *, params: Mapping[str, Json] | None = None,
        system: str | None = None, tools: Tools | None = None, temperature: float | None = None,
        max_tokens: int | None = None, schema: object = None, limits: Limits | None = None,
        options: TurnOptions | None = None, model: str | AnyModel | None = None,
    ) -> Session:  # fmt: skip
        """Open the conversation of that name, or create one with an app (default: `plain`).

        `system` sets instructions for an app without any, such as `plain`. The model may call `tools`; without them, those of
        the client in `plain`, and in other apps those that they name. `schema` is a type: answers are then JSON of this
        type. `limits` apply to all turns of the object together. The conversation keeps these, `temperature` and
        `max_tokens`, until you pass others; `Limits()` removes limits.

        Raises:
            ConfigError: the app or its model cannot be opened.
            InputError: a parameter is not valid, or the session exists with another app.
        """
        changes = answer_options(system, temperature, max_tokens, schema, limits)
        start = self._start(app, name, params, changes, tools, model)
        return Session(
            start.repository, start.name, start.conversation, start.priced_model,
            options=self._turn_options(options, limits, start, schema),
            observers=self.observers,
        )  # fmt: skip

    def sessions(self) -> tuple[SessionInfo, ...]:
        """List the conversations of the store, most recent first."""
        return self._sessions()

    def delete(self, name: str) -> None:
        """Delete a conversation permanently, with its calls and its bill.

        Raises:
            InputError: there is no conversation of that name.
        """
        self.store.delete_session(name)

    def _run(
        self,
        program: Program[R],
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> RunResult[R]:
        runtime = Runtime(**self._arguments(tools, limits, model))
        with self._counting():
            done = runtime.run_result(program)
        self.spent = self.spent + done.spent
        return done

    def _stream(
        self,
        program: Program[R],
        view: "View[R, E, T]",
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> "Stream[E, T]":
        check_program(program)
        return Stream(self._events(program, view, self._arguments(tools, limits, model)))

    def _events(self, program: Program[R], view: "View[R, E, T]", arguments: dict[str, Any]) -> "Generator[E, None, T]":
        with self._counting():
            for event in Runtime(**arguments).stream(program):
                if isinstance(event, RunResult):
                    self.spent = self.spent + event.spent
                for shown in view(event):
                    if isinstance(shown, Done):
                        return cast("Done[T]", shown).result
                    yield shown
        raise AssertionError("a run ends with its result")


class AsyncClient(BaseClient):
    """As `Client`, with coroutines; see `BaseClient`. Blocking tools and retrievers run in threads.

    >>> import asyncio, taiwa
    >>> async def both() -> list[str]:
    ...     async with taiwa.AsyncClient(taiwa.scripted_model("Hello!", "Bye!")) as client:
    ...         return [answer.text for answer in await asyncio.gather(client.generate("Hi"), client.generate("Ciao"))]
    >>> asyncio.run(both())
    ['Hello!', 'Bye!']
    """

    _calls_model_by = "astream"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """As `Client.close`."""
        while self._opened:
            model = self._opened.popitem()[1]
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()
            else:
                await asyncio.to_thread(getattr(model, "close", int))
        await asyncio.to_thread(self._close_store)

    async def run(
        self,
        program: Program[R],
        *,
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> R:
        """As `Client.run`."""
        return (await self._run(program, tools, limits, model)).value

    def stream_run(
        self,
        program: Program[R],
        *,
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> "AsyncStream[TextDelta | Notice, R]":
        """As `Client.stream_run`."""
        return self._stream(program, _as_it_is, tools, limits, model)

    @overload
    async def generate(
        self, text: Prompt, constraint: TextConstraint | None = None, **more: Unpack[GenerateArguments]
    ) -> Generation[str]: ...
    @overload
    async def generate(
        self, text: Prompt, constraint: JsonSchema | Mapping[str, Json], **more: Unpack[GenerateArguments]
    ) -> Generation[Json]: ...
    @overload
    async def generate(
        self, text: Prompt, constraint: type[T] | OutputType[T], **more: Unpack[GenerateArguments]
    ) -> Generation[T]: ...
    async def generate(
        self, text: Prompt, constraint: object = None, *, attachments: Attachments = (), system: str = "", prefix: str = "",
        tools: Tools = (), stop: Sequence[str] = (), temperature: float | None = 0.0, max_tokens: int | None = None, seed: int | None = None,
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Generation[Any]:  # fmt: skip
        """As `Client.generate`."""
        request = await asyncio.to_thread(
            question, text, attachments, system, prefix, stop, temperature, max_tokens, seed
        )
        used = _tools(tools)
        return self._billed(await self._run(generate_program(request, constraint, used), used, limits, model))

    def stream(
        self, text: Prompt, constraint: object = None, *, attachments: Attachments = (), system: str = "", prefix: str = "",
        tools: Tools = (), stop: Sequence[str] = (), temperature: float | None = 0.0, max_tokens: int | None = None, seed: int | None = None,
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> AsyncStream[str, Generation[Any]]:  # fmt: skip
        """As `Client.stream`."""
        request = question(text, attachments, system, prefix, stop, temperature, max_tokens, seed)
        used = _tools(tools)
        return self._stream(generate_program(request, constraint, used), self._text, used, limits, model)

    @overload
    async def extract(self, output: type[T] | OutputSpec[T], text: Prompt, **more: Unpack[ExtractArguments]) -> T: ...
    @overload
    async def extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Json: ...
    async def extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Any:  # fmt: skip
        """As `Client.extract`."""
        program = await asyncio.to_thread(
            extract_program, output, text, attachments, system, temperature, max_tokens, repair
        )
        return (await self._run(program, limits=limits, model=model)).value.value

    @overload
    async def try_extract(
        self, output: type[T] | OutputSpec[T], text: Prompt, **more: Unpack[ExtractArguments]
    ) -> Extraction[T]: ...
    @overload
    async def try_extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Extraction[Json]: ...
    async def try_extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Extraction[Any]:  # fmt: skip
        """As `Client.try_extract`."""
        program = await asyncio.to_thread(
            extract_program, output, text, attachments, system, temperature, max_tokens, repair
        )
        return self._extraction(await self._run(_with_error_as_value(program), limits=limits, model=model))

    @overload
    def stream_extract(
        self, output: type[T] | OutputType[T], text: Prompt, **more: Unpack[ExtractArguments]
    ) -> AsyncStream[Json, T]: ...
    @overload
    def stream_extract(
        self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]
    ) -> AsyncStream[Json, Json]: ...
    def stream_extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> AsyncStream[Json, Any]:  # fmt: skip
        """As `Client.stream_extract`."""
        partials = _Partials(OutputType.of(output))
        program = extract_program(
            partials.output_type, text, attachments, system, temperature, max_tokens, repair, partials.watch
        )
        return self._stream(program, partials.view, limits=limits, model=model)

    async def route(
        self,
        text: Prompt,
        *targets: object,
        repair: RepairPolicy = DEFAULT_REPAIR,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> RouteResult:
        """As `Client.route`."""
        return (
            await self._run(route_program(_targets(targets), checked(text), repair=repair), limits=limits, model=model)
        ).value

    async def solve(
        self, question: str, *, tools: Tools | None = None, system: str | None = None, temperature: float | None = None,
        max_tokens: int | None = None, options: SolveOptions | None = None, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Rationale:  # fmt: skip
        """As `Client.solve`."""
        used = solve_tools(self.tools if tools is None else _tools(tools))
        program = solve_program(question, used, solve_options(options, system, temperature, max_tokens))
        return (await self._run(program, used, limits, model)).value

    async def find(
        self, query: str, *, documents: Sequence[str | Path] = (), audience: Sequence[str] = (), limit: int = 5
    ) -> tuple[Passage, ...]:
        """As `Client.find`."""
        return await asyncio.to_thread(self._find, query, documents, audience, limit)

    async def ask(
        self, question: str, *, documents: Sequence[str | Path] = (), audience: Sequence[str] = (), user: str = "",
        policy: str = "", temperature: float | None = None, max_tokens: int | None = None, session: str = "",
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> AskResult:  # fmt: skip
        """As `Client.ask`."""
        options = ask_options(documents, audience, user, policy)
        app = await asyncio.to_thread(self._ask_app, session, options)
        opened = await self.session(
            app, session, temperature=temperature, max_tokens=max_tokens,
            options=TurnOptions(limits=(_limits(limits) or self.limits).usage_limits, approve=self.approve), model=model,
        )  # fmt: skip
        return _asked(await opened.say(question))

    async def session(
        self, app: str | App | None = None, name: str = "", *, params: Mapping[str, Json] | None = None,
        system: str | None = None, tools: Tools | None = None, temperature: float | None = None,
        max_tokens: int | None = None, schema: object = None, limits: Limits | None = None,
        options: TurnOptions | None = None, model: str | AnyModel | None = None,
    ) -> AsyncSession:  # fmt: skip
        """As `Client.session`."""
        changes = answer_options(system, temperature, max_tokens, schema, limits)
        start = await asyncio.to_thread(self._start, app, name, params, changes, tools, model)
        return AsyncSession(
            start.repository, start.name, start.conversation, start.priced_model,
            options=self._turn_options(options, limits, start, schema),
            observers=self.observers,
        )  # fmt: skip

    async def sessions(self) -> tuple[SessionInfo, ...]:
        """As `Client.sessions`."""
        return await asyncio.to_thread(self._sessions)

    async def delete(self, name: str) -> None:
        """As `Client.delete`."""
        await asyncio.to_thread(lambda: self.store.delete_session(name))

    async def _run(
        self,
        program: Program[R],
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> RunResult[R]:
        runtime = AsyncRuntime(**self._arguments(tools, limits, model))
        with self._counting():
            done = await runtime.run_result(program)
        self.spent = self.spent + done.spent
        return done

    def _stream(
        self,
        program: Program[R],
        view: "View[R, E, T]",
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> "AsyncStream[E, T]":
        check_program(program)
        return AsyncStream(self._events(program, view, self._arguments(tools, limits, model)))

    async def _events(
        self, program: Program[R], view: "View[R, E, T]", arguments: dict[str, Any]
    ) -> "AsyncGenerator[E | Done[T]]":
        with self._counting():
            async with aclosing(AsyncRuntime(**arguments).stream(program)) as events:
                async for event in events:
                    if isinstance(event, RunResult):
                        self.spent = self.spent + event.spent
                    for shown in view(event):
                        yield shown


# --- programs and arguments -------------------------------------------------------------------------------------------


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
        InputError: an argument has the wrong type.
    """
    check_argument("temperature", temperature, (int, float, NoneType), "a number")
    for name, number in (("max_tokens", max_tokens), ("seed", seed)):
        check_argument(name, number, (int, NoneType), "a whole number")
    return Sampling(temperature, max_tokens=max_tokens, seed=seed)


def ask_options(documents: Sequence[str | Path], audience: Sequence[str], user: str, policy: str) -> AskOptions:
    """Make the options of a question to documents.

    Raises:
        InputError: an argument has the wrong type.
    """
    check_list("documents", documents, (str, Path), "folders, files or names of indexes")
    check_list("audience", audience, str, "principals")
    return AskOptions(tuple(map(str, documents)), tuple(audience), user, policy)


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
    given = _limits(limits)
    bounds = None if given is None else given.usage_limits
    return AnswerOptions(system_text, checked_sampling(temperature, max_tokens), schema=typed, limits=bounds)


def generate_program(request: Request, constraint: object, tools: tuple[Tool, ...] = ()) -> Program[Generation[Any]]:
    """Answer a request, under a constraint or with tools that the model may call, and check the answer.

    Raises:
        InputError: the constraint is not valid, or tools are given beside one.

    Raises (when run):
        RefusalError: the model refused to answer.
        OutputValidationError: the answer does not fit the constraint, or was cut off before its end.
    """
    if tools and (constraint is not None or request.prefix):
        raise InputError("give tools or a constraint or prefix; session(tools=[…], schema=…) takes tools and a type")
    return _answer(request, tools, *constraint_of(constraint))


def _answer(
    request: Request, tools: tuple[Tool, ...], wire: "Constraint | None", read: "Callable[[str], Any]"
) -> Program[Generation[Any]]:
    if tools:
        from taiwa.flows.solve.loops import complete_with_tools

        app = load_app(DEFAULT_APP)
        specs = [tool.spec for tool in tools]
        response, _ = yield from complete_with_tools(request, specs, app, app.layout(), None)
    else:
        response = yield from perform(Complete(replace(request, constraint=wire)))
    if response.finish == "refusal":
        raise RefusalError("the model refused to answer", request=request.digest)
    text = request.prefix + response.text
    if wire is not None and response.finish in ("length", "cut", "interrupted", "repetition"):
        raise OutputValidationError("the answer was cut off before it fitted the constraint", text=text)
    return Generation(text, read(text), response.finish)


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
    return JsonSchema(output_type.schema(), output_type.name), lambda text: output_type.parse(text).value


def extract_program(
    output: object, text: Prompt, attachments: Attachments, system_text: str, temperature: float | None,
    max_tokens: int | None, repair: RepairPolicy, watch: "Callable[[], Watcher]" = HideOutput,
) -> "Program[extracting.TypedAnswer[Any]]":  # fmt: skip
    """Extract a value of a type; the attachments are read now.

    Raises:
        InputError: an argument is not valid.
    """
    request = question(text, attachments, system_text, "", (), temperature, max_tokens, None)
    return extracting.extract(
        cast("Any", output), request.messages, repair=repair, sampling=request.sampling, watch=watch
    )


def _with_error_as_value(
    program: "Program[extracting.TypedAnswer[Any]]",
) -> "Program[extracting.TypedAnswer[Any] | extracting.ExtractError]":
    try:
        return (yield from program)
    except extracting.ExtractError as error:
        return error


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


def solve_program(question: str, tools: tuple[Tool, ...], options: SolveOptions) -> Program[Rationale]:
    """Solve a question with tools and worked examples that fit the model.

    Raises (when run):
        InputError: the question is empty, or an option is not valid.
    """
    from taiwa.sessions.solve_turn import Solving

    check_argument("question", question, str, "a text")
    capabilities = yield from perform(GetCapabilities())
    return (yield from Solving(tools, options).program(question, capabilities))


def _tools(tools: Tools) -> tuple[Tool, ...]:
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
        elif _offers(tool, "spec"):
            found.append(cast("Tool", tool))
        elif isfunction(tool):
            found.append(make_tool(cast("Callable[..., Any]", tool)))
        else:
            raise InputError(f"tools must be tools, got {describe(tool)}; decorate a function with @taiwa.tool")
    names = [tool.spec.name for tool in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two tools have the name {twice!r}")
    return tuple(found)


def _at_address(model: object, base_url: str) -> tuple[str, dict[str, str]]:
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


def _limits(limits: Limits | None) -> Limits | None:
    check_argument("limits", limits, (Limits, NoneType), "taiwa.Limits(…)")
    return limits


def _offers(argument: object, name: str) -> bool:
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
    found = tuple(_message_of(part, f"message {number}") for number, part in enumerate(parts, 1))
    if files:
        raise InputError("attachments belong to a text; give messages theirs: taiwa.user(text, attachments)")
    if not any(message.text.strip() or message.attachments for message in found):
        raise InputError("the text is empty")
    return found


def _message_of(part: object, where: str) -> Message:
    """Return a message, converted from a dict with role and content if necessary.

    Raises:
        InputError: it is neither; the role is unknown, or the content is not a text.
    """
    if isinstance(part, Message):
        return part
    if not isinstance(part, Mapping):
        what = f"the text must be a str, or a list of messages, got a list whose {where} is {describe(part)}"
        raise InputError(f"{what}; write taiwa.user(…), or {{'role': …, 'content': …}}")
    given = cast("Mapping[str, object]", part)
    role, content = given.get("role"), given.get("content")
    make = MAKERS.get(role) if isinstance(role, str) else None
    if make is None:
        raise InputError(f"{where}: unknown role {role!r}; choose one of {', '.join(MAKERS)}")
    if not isinstance(content, str):
        got = describe(content)
        hint = "; files belong to taiwa.user(text, attachments)" if isinstance(content, list) else ""
        raise InputError(f"{where}: content must be a str, got {got}{hint}")
    unknown = next((key for key in given if key not in ("role", "content")), None)
    if unknown is not None:
        raise InputError(f"{where}: unknown key {unknown!r}; choose one of role, content")
    return make(content)


def _targets(targets: Sequence[object]) -> dict[str, object]:
    """Name the targets of a route by their classes."""
    named = {str(getattr(target, "name", None) or getattr(target, "__name__", target)): target for target in targets}
    if len(named) < len(targets):
        raise InputError("two targets have the same name; wrap one: OutputType(Order, name='Booking')")
    return named


def _asked(turn: TurnResult) -> AskResult:
    assert turn.ask is not None, "a turn of the app `ask` has a result"
    return turn.ask


# --- events -----------------------------------------------------------------------------------------------------------


def _as_it_is(event: "TextDelta | Notice | RunResult[R]") -> "Iterator[TextDelta | Notice | Done[R]]":
    yield Done(event.value) if isinstance(event, RunResult) else event


class _Partials(Generic[T]):
    """The partial values of an extraction's first attempt while it streams; a repaired answer is not followed."""

    def __init__(self, output_type: OutputType[T]) -> None:
        self.output_type = output_type
        self._parser: PartialParser[T] | None = None

    def watch(self) -> Watcher:
        """Return the watcher of the next attempt."""
        if self._parser is not None:
            return HideOutput()
        self._parser = PartialParser(self.output_type)
        return _PartialWatcher(self._parser)

    def view(self, event: "TextDelta | Notice | RunResult[extracting.TypedAnswer[T]]") -> "Iterator[Json | Done[T]]":
        """Yield the partial values that an event of the run adds."""
        if isinstance(event, RunResult):
            value = event.value.value
            yield self.output_type.dump(value)
            yield Done(value)
        elif isinstance(event, TextDelta) and self._parser is not None:
            yield deepcopy(self._parser.view)


class _PartialWatcher:
    """A watcher that passes on text that changes the partial value."""

    def __init__(self, parser: PartialParser[Any]) -> None:
        self._parser = parser

    def feed(self, text: str) -> WatchResult:
        """Read the next text."""
        return WatchResult(text if self._parser.feed(text) else "")

    def close(self) -> WatchResult:
        """Return an empty text: nothing is held back."""
        return WatchResult()


# --- the client of the functions of `taiwa` ---------------------------------------------------------------------------

default_client = Client()
"""The client with the configured model, which `taiwa.generate` and the other functions of the package use."""

generate = default_client.generate
stream = default_client.stream
extract = default_client.extract
try_extract = default_client.try_extract
stream_extract = default_client.stream_extract
route = default_client.route
solve = default_client.solve
find = default_client.find
ask = default_client.ask
run = default_client.run


def open(
    app: str | App | None = None, *, model: str | AnyModel | None = None, session: str = "",
    store: str | Path | Store | None = None, params: Mapping[str, Json] | None = None, system: str | None = None,
    tools: Tools | None = None, temperature: float | None = None, max_tokens: int | None = None, schema: object = None,
    limits: Limits | None = None, prices: Prices | None = None, options: TurnOptions | None = None,
    retry_paid: bool | None = None, approve: Approve | None = None,
) -> Session:  # fmt: skip
    """Open the session of that name, or create one with an app (default: `plain`); see `Client.session`.

    The session has its own client, which `Session.close` closes.
    """
    client = Client(model, store=store, prices=prices, retry_paid=retry_paid, approve=approve)
    opened = client.session(
        app, session, params=params, system=system, tools=tools, temperature=temperature, max_tokens=max_tokens,
        schema=schema, limits=limits, options=options,
    )  # fmt: skip
    opened.client = client
    return opened
