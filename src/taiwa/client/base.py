"""What both clients have: a model with its connections, tools, a retriever, a store and limits."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from inspect import iscoroutinefunction
from pathlib import Path
from threading import RLock
from types import MappingProxyType, NoneType
from typing import Any, TypeAlias, TypeVar, cast

from taiwa import settings as configured
from taiwa.apps.catalog import DEFAULT_APP, load_app, with_places
from taiwa.client.arguments import Tools, at_address, checked_limits, offers, tools_of
from taiwa.client.results import Extraction, Generation, SessionInfo
from taiwa.conversation.app import AnswerOptions, App
from taiwa.flows import extract as extracting
from taiwa.kernel.approval import Approve, check_approve
from taiwa.kernel.effects import Effect
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError, check_argument, check_list, describe
from taiwa.kernel.execution import Observer, RunResult
from taiwa.kernel.messages import Passage, ShownEvent, TextDelta
from taiwa.kernel.runtime import AnyModel, Done, Handler, Retriever, Tool
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import Billing, Limits, Prices, RunUsage, currency_units, usage_of
from taiwa.models.http_api.api_keys import Secret
from taiwa.models.providers import open_model, resolve_asked
from taiwa.operations.documents import FindOptions, open_ask_app, open_library
from taiwa.operations.documents import find as find_passages
from taiwa.operations.log import sessions as list_sessions
from taiwa.operations.open_session import change_options, set_options
from taiwa.plugins import make_retriever
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import BaseSession, open_priced_model, open_store
from taiwa.settings import Settings
from taiwa.store import Store
from taiwa.structured import OutputType

S = TypeVar("S", bound=BaseSession[Any])
T = TypeVar("T")


Handlers: TypeAlias = Mapping[type[Effect[Any]], Handler]
NO_HANDLERS: Handlers = MappingProxyType({})
IN_MEMORY = ":memory:"


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
        self.tools = tools_of(tools)
        check_approve(approve)
        self.approve: Approve | None = approve
        if isinstance(retriever, str):
            retriever = cast("Retriever", make_retriever(retriever))
        self._check_model(model)
        check_argument("store", store, (str, Path, Store, NoneType), "a path, a URL or a Store")
        check_argument("prices", prices, (Prices, NoneType), "taiwa.Prices(…)")
        check_argument("handlers", handlers, Mapping, "a dict of functions by effects")
        check_argument("observers", observers, Iterable, "a list of functions")
        if not (retriever is None or offers(retriever, "find")):
            raise InputError(f"retriever must be an object with find(query, k), got {describe(retriever)}")
        if retriever is not None and iscoroutinefunction(retriever.find):
            raise InputError("find of a retriever must be a plain function; AsyncClient runs it in a thread")
        check_argument("api_key", api_key, (str, NoneType), "a text")
        check_argument("base_url", base_url, (str, NoneType), "a URL")
        if not (model is None or isinstance(model, str) or api_key is base_url is None):
            raise InputError("api_key and base_url go with the name of a model, and not with a model")
        self._base_urls: dict[str, str] = {}
        if base_url is not None:
            model, self._base_urls = at_address(model, base_url)
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
        self.limits = checked_limits(limits) or Limits()
        self.observers = tuple(observers)
        self.handlers = handlers
        self._lock = RLock()  # of what is opened once, and of the sum, for callers in several threads
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
        addresses = {**loaded.models.base_urls, **self._base_urls}
        loaded = replace(loaded, models=replace(loaded.models, base_urls=addresses))
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
        if not (model is None or isinstance(model, str) or offers(model, self._calls_model_by)):
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
        with self._lock:
            if self._key is not None and model is None and name not in self._opened:
                if name is None:
                    raise ConfigError("api_key is the key for a model: Client('openai:gpt-x', api_key=…)")
                self._opened[name] = open_model(resolve_asked(name, chosen, self._key), chosen, key=self._key)
            return open_priced_model(own, chosen, app, last=last, prices=prices, opened=self._opened)

    @property
    def store(self) -> Store:
        """The store of the sessions of this client; it is opened when it is first used."""
        with self._lock:
            if self._open_store is None:
                self._open_store = open_store(self._store, self.settings)
            return self._open_store

    def _close_store(self) -> None:
        if self._open_store is not None and not isinstance(self._store, Store):
            self._open_store.close()
        self._open_store = None

    def _tools_of_answer(self, tools: Tools | None, constraint: object, prefix: str) -> tuple[Tool, ...]:
        """Return the tools of one answer: those given, or those of the client if nothing excludes them."""
        if tools is not None:
            return tools_of(tools)
        return self.tools if constraint is None and not prefix else ()

    def _arguments(self, tools: Tools | None, limits: Limits | None, model: str | AnyModel | None) -> dict[str, Any]:
        """Return the arguments of a runtime."""
        priced_model = self._open_model(model=model)
        bounds = (checked_limits(limits) or self.limits).usage_limits
        if bounds.day_cost is not None:
            raise InputError("day_cost limits the stored turns of conversations; limit this call by cost")
        return {
            "model": priced_model.model,
            "tools": self.tools if tools is None else tools_of(tools),
            "retriever": self.retriever,
            "handlers": self.handlers,
            "observers": self.observers,
            "limits": bounds,
            "billing": Billing(priced_model.price),
            "approve": self.approve,
        }

    @contextmanager
    def _counting(self) -> Generator[None]:
        """Count the usage of a run that fails."""
        try:
            yield
        except TaiwaError as error:
            self._count(usage_of(error))
            raise

    def _count(self, spent: RunUsage) -> None:
        with self._lock:
            self.spent = self.spent + spent

    def _open_session(
        self, kind: type[S], app: str | App | None, name: str, params: Mapping[str, Json] | None, changes: AnswerOptions,
        schema: object, tools: Tools | None, options: TurnOptions | None, model: str | AnyModel | None,
    ) -> S:  # fmt: skip
        """Open the conversation of that name, or a new one, with changed answer options.

        Limits of the call override those of the conversation, which override the client's.

        Raises:
            InputError: the session exists, and has another app or parameters of its own; the app does not support the
            changes; an argument has the wrong type.
        """
        check_argument("app", app, (str, App, NoneType), "the name or the path of an app, or an App")
        check_argument("name", name, str, "a text")
        check_argument("params", params, (Mapping, NoneType), "a dict")
        repository = Repository(self.store)
        repository.place, repository.settings = self.settings.store, self.settings
        repository.retriever = self.retriever
        given = None if tools is None else tools_of(tools)

        def changed(app: App) -> AnswerOptions:
            offered = given if given is not None else self.tools if app.name == DEFAULT_APP else ()
            names = tuple(tool.spec.name for tool in offered if tool.spec.name not in app.tools)
            return replace(changes, tools=names)

        def load() -> App:
            loaded = app if isinstance(app, App) else load_app(app or DEFAULT_APP)
            loaded = with_places(
                loaded, {**loaded.values, **(params or {})}
            )  # those of an app that was opened with some hold
            return set_options(loaded, changed(loaded))

        start = repository.find_or_begin(name, app or "", params or {}, load)
        last = "" if start.new_nodes else repository.last_model(start.tip, name)
        if start.stored_tip is not None:
            start = change_options(repository, start, changed(start.app))
        priced_model = self._open_model(start.app, last, model)
        check_argument("options", options, (TurnOptions, NoneType), "taiwa.TurnOptions(…)")
        options = options or TurnOptions(limits=start.app.answer_options.limits or self.limits.usage_limits)
        options = replace(
            options,
            tools=(*self.tools, *(given or ()), *options.tools),
            limits=changes.limits or options.limits,
            approve=options.approve or self.approve,
            types=options.types if schema is None else (OutputType.of(schema), *options.types),
        )
        return kind(repository, name, start, priced_model, options=options, observers=self.observers)

    def _sessions(self) -> tuple[SessionInfo, ...]:
        return tuple(
            SessionInfo(
                each.ref.name, each.ref.app, each.ref.turns, each.text, each.model, currency_units(each.cost),
                datetime.fromtimestamp(each.ref.at_us / 1e6, UTC),
            )
            for each in list_sessions(Repository(self.store))
        )  # fmt: skip

    def _ask_app(
        self, name: str, documents: Sequence[str | Path], audience: Sequence[str], user: str, policy: str
    ) -> App | None:
        """Return the app of a new dialogue with documents; None to continue one.

        Raises:
            InputError: an argument has the wrong type, or an index is not found.
        """
        check_list("documents", documents, (str, Path), "folders, files or names of indexes")
        check_list("audience", audience, str, "principals")
        if name and self.store.refs.has(name):
            return None
        params: dict[str, Json] = {"in": [*map(str, documents)], "as": [*audience], "user": user, "policy": policy}
        return open_ask_app(self.settings, params)

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

    def _text(self, event: "ShownEvent | RunResult[Generation[Any]]") -> "Iterator[str | Done[Generation[Any]]]":
        if isinstance(event, RunResult):
            yield Done(self._billed(event))
        elif isinstance(event, TextDelta):
            yield event.text

    def _extraction(self, done: "RunResult[extracting.TypedAnswer[T] | extracting.ExtractError]") -> Extraction[T]:
        found, cost = done.value, currency_units(done.spent.cost)
        if isinstance(found, extracting.ExtractError):
            return Extraction(None, found, found.tries, found.usage, cost)
        return Extraction(found.value, None, found.attempts, found.usage, cost)
