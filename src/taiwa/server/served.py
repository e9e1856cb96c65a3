"""The served apps and models: the possible values of `model` in a request, and the model of `/v1/embeddings`."""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, cast

from taiwa.apps.catalog import apps, find_path, load_app, load_unchanged
from taiwa.conversation.app import App
from taiwa.kernel.attachments import Attachment, path_kind
from taiwa.kernel.effects import Complete, Program
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError
from taiwa.kernel.execution import Journal
from taiwa.kernel.messages import Capability, Chunk, Request, Sampling, StreamEnd, Usage, user
from taiwa.kernel.runtime import AnyModel, Runtime
from taiwa.kernel.usage_limits import Billing
from taiwa.kernel.wording import Wording
from taiwa.models.http_api.capabilities import REMEDIES
from taiwa.models.http_api.client import HttpModel, is_assumed
from taiwa.models.http_api.embeddings import EmbeddingEndpoint, open_embedder
from taiwa.models.providers import expand_alias, resolve_probed
from taiwa.server.http_responses import ApiError, invalid
from taiwa.sessions.commit_turn import PricedModel, no_attachments, request_counter, sink
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import chosen_model, open_priced_model, with_prices
from taiwa.settings import Settings, remove_value, set_value

if TYPE_CHECKING:
    from taiwa.retrieval.hybrid import Embedder, Vectors

logger = logging.getLogger("taiwa.server")
PLAIN = "plain"
CURRENCY = "USD"
"""The currency of prices that name none."""
PRICE_SECONDS = 1.0
MOST_PRICED = 1_000


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of a request: an app by name or file, and the name of a model, or "" for the model of the app."""

    id: str
    app: str
    model: str


class ServedModels:
    """The apps and models of a server. A request may name `APP`, `MODEL`, or `APP@MODEL`; no other model is ever opened.

    `given` are models that the embedding program opened, by name.
    """

    def __init__(
        self,
        settings: Settings,
        app_names: Sequence[str] = (),
        models: Sequence[str] = (),
        given: Mapping[str, AnyModel] | None = None,
    ) -> None:
        self.settings = settings
        self.created = int(time())
        """When the server was started, which is since when it has its models."""
        self._given = dict(given or {})
        self._lock = Lock()
        self._opened: dict[str, AnyModel] = {}
        self._hinted: set[str] = set()
        self._priced: dict[tuple[str, str], tuple[float, PricedModel]] = {}
        """The models with their prices by app and name, and until when these are not read again."""
        configured = (*(() if settings.model is None else (settings.model,)), *settings.models.served_models)
        self.models = tuple(dict.fromkeys([*self._given, *(models or configured)]))
        self.apps = {load_app(name).name: str(find_path(name)) for name in app_names} or {
            listed.name: str(listed.path) for listed in apps() if not listed.problem
        }
        self.default_app = next(iter(self.apps)) if app_names else PLAIN

    def offer(self, name: str) -> None:
        """Serve another model.

        Raises:
            ConfigError: it is unknown, or its key is missing.
        """
        with self._lock:
            open_priced_model(None, self._with_model(name), opened=self._opened)
            self.models = tuple(dict.fromkeys((*self.models, name)))

    def serve(self, models: Sequence[str]) -> None:
        """Serve these of the served models, the first one where a request names none, and remember them in the config file."""
        self.models = tuple(name for name in models if name in self.models)
        own = [name for name in self.models if name not in self._given]
        for key, value in (("model", "".join(own[:1])), ("served_models", ", ".join(own[1:]))):
            if value:
                set_value(self.settings.path, key, value)
            else:
                with suppress(ConfigError):  # it is not set
                    remove_value(self.settings.path, key)

    @property
    def currency(self) -> str:
        """The currency of all prices, "" if there are several."""
        found = {str(prices.get("currency", CURRENCY)) for prices in self.settings.models.prices.values()} or {CURRENCY}
        return found.pop() if len(found) == 1 else ""

    def reopen(self) -> None:
        """Open the models on servers anew at their next call, with the keys that are set now."""
        with self._lock:
            self._opened = {name: model for name, model in self._opened.items() if not isinstance(model, HttpModel)}
            self._priced.clear()

    def server_of(self, name: str) -> str:
        """Return the address of a model, "" for one in this process."""
        if name in self._given:
            return ""
        with suppress(ConfigError):
            return resolve_probed(name, self.settings).base_url or ""
        return ""

    def ids(self) -> tuple[str, ...]:
        """Return all possible values of `model` in a request, models first."""
        pairs = [f"{app}@{model}" for app in self.apps for model in self.models if len(self.models) > 1]
        return (*self.models, *self.apps, *pairs)

    @property
    def default(self) -> str:
        """The value of `model` in a request that names none."""
        return self.models[0] if self.models else self.default_app

    def choose(self, name: str) -> Choice:
        """Resolve `model` in a request.

        Raises:
            ApiError: it names no served app or model.
        """
        if served := self._served(name):
            return Choice(name, self.apps[self.default_app], served)
        if name in self.apps:
            return Choice(name, self.apps[name], "")
        app, at, model = name.partition("@")
        if at and app in self.apps and (served := self._served(model)):
            return Choice(name, self.apps[app], served)
        listed = ", ".join([*self.models, *self.apps][:8])
        raise ApiError(
            404, f"the model {name[:80]!r} does not exist here; choose one of {listed} (GET /v1/models lists all)",
            code="model_not_found", param="model",
        )  # fmt: skip

    def _served(self, name: str) -> str:
        """Return the served model of a name or of an alias; "" if it is not served."""
        if name in self.models or not self.settings.models.aliases:
            return name if name in self.models else ""
        aliases = self.settings.models.aliases
        with suppress(ConfigError):
            full = expand_alias(name, aliases)
            return next((each for each in self.models if expand_alias(each, aliases) == full), "")
        return ""

    def open(self, choice: Choice) -> PricedModel:
        """Open the model of a choice; an opened model is shared by all requests.

        Raises:
            ConfigError: the model is unknown, or its key is missing.
        """
        app = load_unchanged(choice.app)
        name, now = choice.model or self._model_of(app), monotonic()
        known = self._priced.get((app.hash, name))
        if known is None or now > known[0]:
            if len(self._priced) > MOST_PRICED:
                self._priced.clear()
            known = self._priced[app.hash, name] = now + PRICE_SECONDS, self._open(app, name)
        return known[1]

    def _open(self, app: App, name: str) -> PricedModel:
        if name in self._given:
            return open_priced_model(self._given[name], self.settings)
        chosen = self._with_model(name)
        with self._lock:
            known = self._opened.get(name)
            if (
                isinstance(known, HttpModel)
                and known.tools_hint
                and not is_assumed(resolve_probed(name, chosen).codec, "tools")
            ):
                del self._opened[name]  # `taiwa probe` has found out
            priced_model = open_priced_model(None, chosen, app, opened=self._opened)
        hint = getattr(priced_model.model, "tools_hint", None)
        if hint is not None and app.tools and name not in self._hinted:
            self._hinted.add(name)
            logger.warning("%s", hint)
        return priced_model

    def open_for(self, app: App, model: str = "") -> PricedModel:
        """Open a served model for an app. Without a name, or for a model that is not served, call `open`.

        Raises:
            ConfigError: the model is unknown, or its key is missing.
        """
        return self._open(app, model if model in self.models else self._model_of(app))

    def check_attachments(self, app: App, model: str, attachments: Sequence[Attachment]) -> None:
        """Check that the model that would answer can read the attachments; models opened by the embedding program are not
        checked.

        Raises:
            InputError: it cannot, or the app takes no attachments.
        """
        if attachments and app.only_answers:
            raise InputError(no_attachments(app))
        name = model if model in self.models else self._model_of(app)
        kinds = {each.kind: each for each in attachments if each.kind is not None}
        if not kinds or not name or name in self._given:
            return
        inputs = resolve_probed(name, self.settings).inputs
        for kind, each in kinds.items():
            if kind not in inputs:
                raise InputError(f"{name!r} {REMEDIES[kind].format(name=each.label)}")

    def model_named(self, name: str) -> AnyModel | None:
        """Return a served model by name, or None.

        Raises:
            ConfigError: its key is missing.
        """
        if name not in self.models or name in self._given:
            return self._given.get(name)
        with self._lock:
            return open_priced_model(None, self._with_model(name), opened=self._opened).model

    def _with_model(self, name: str) -> Settings:
        """Return the settings with this model, "" for that of the app."""
        return replace(self.settings, model=name or None, origins={**self.settings.origins, "model": "argument"})

    def app_file(self, name: str) -> str:
        """Return the name or file of a served app.

        Raises:
            ApiError: the app is not served.
        """
        if name not in self.apps:
            raise ApiError(404, Wording("unknown app {app!r}; choose one of {names}", app=name[:80], names=", ".join(self.apps)), code="app_not_found")  # fmt: skip
        return self.apps[name]

    def load_apps(self) -> tuple[App, ...]:
        """Return the served apps; the first one answers requests without an app."""
        names = sorted(self.apps, key=lambda name: name != self.default_app)
        return tuple(load_app(self.apps[name]) for name in names)

    def _model_of(self, app: App) -> str:
        """Return the model of an app: the first served one, else its own; "" without one."""
        return self.models[0] if self.models else chosen_model(self.settings, app)

    async def aclose(self) -> None:
        """Close the connections of the models."""
        for model in self._opened.values():
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()


def check_served(app_names: Sequence[str]) -> None:
    """Check that the apps of a server can be loaded.

    Raises:
        ConfigError: an app is not found or has an error, or two have the same name.
    """
    names = [load_app(name).name for name in app_names]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two of the served apps are named {twice!r}; serve one of them")


class EmbeddingModel:
    """The model of `/v1/embeddings`, opened at the first request: the folder of a sentence model, or a model on a server."""

    def __init__(self, place: str, settings: Settings) -> None:
        if path_kind(Path(place).expanduser()) in ("file", "other"):
            raise ConfigError(f"{place} is not the folder of a sentence model")
        self.names = tuple(dict.fromkeys((place, Path(place).name if "://" not in place else place)))
        """The names that a request may use for it."""
        self._place = place
        self._settings = settings
        self._embedder: Embedder | None = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str | list[int]], repository: Repository, settings: Settings) -> "Vectors":
        """Return one vector of length 1 for each text, or its tokens; a text that is too long for the model is cut. The call is on
        the bill of the repository, at the prices of the settings, and counts for its limits.

        Raises:
            ApiError: the model has other tokens.
            ConfigError: the model does not exist, its key is missing, or a limit on cost applies and its price is unknown.
            ModelError: the call failed.
            RateLimitError, LimitError: a limit is reached.
        """
        call = _EmbeddingCall(self.names[-1], self._open(texts), texts)
        priced, runs = with_prices(call, settings), repository.store.runs
        with repository.store.transaction():
            if repository.quota is not None:
                repository.quota.admit()
            run = runs.begin("", None, None, "")
        runtime = Runtime(
            call, limits=repository.limits, billing=Billing(priced.price, repository.budgets(run, None)),
            observers=(request_counter(repository, run, priced),),
        )  # fmt: skip
        try:
            runtime.run(call.program(), Journal((), sink(repository, run, priced)))
        except BaseException as error:
            runs.end(run, "failed", error if isinstance(error, TaiwaError) else None)
            raise
        runs.end(run, "done")
        return call.vectors[0]

    def _open(self, texts: Sequence[str | list[int]]) -> "Embedder":
        with self._lock:
            embedder = self._embedder = self._embedder or open_embedder(self._place, self._settings)
        reads_tokens = isinstance(embedder, EmbeddingEndpoint) and embedder.reads_tokens
        if reads_tokens or all(isinstance(each, str) for each in texts):
            return embedder
        problem = (
            "tokens of OpenAI are not those of this model; send texts (LangChain: check_embedding_ctx_length=False)"
        )
        raise invalid("input", problem, "unsupported_parameter")


class _EmbeddingCall:
    """A call of an embedding model as that of a language model whose answer has no text, so that the same limits apply to it."""

    capabilities = frozenset[Capability]()

    def __init__(self, name: str, embedder: "Embedder", texts: Sequence[str | list[int]]) -> None:
        model = embedder.model if isinstance(embedder, EmbeddingEndpoint) else None
        self.name, self.host = (name, "") if model is None else (model.name, model.host)
        self.vectors: list[Vectors] = []
        self._embedder, self._texts = embedder, texts

    def program(self) -> Program[None]:
        """Yield the call; a token of a text that is given as tokens is one of any other."""
        texts = "\n".join(each if isinstance(each, str) else "0" * len(each) for each in self._texts)
        yield Complete(Request((user(texts),), sampling=Sampling(max_tokens=1)))

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        """As `stream`, which blocks."""
        for chunk in self.stream(request):
            yield chunk

    def stream(self, request: Request) -> Iterator[Chunk]:
        """Make the call."""
        del request
        tokens: int | None = 0
        if isinstance(self._embedder, EmbeddingEndpoint):
            vectors, tokens = self._embedder.embed_counted(self._texts)
        else:
            vectors = self._embedder.embed(cast("Sequence[str]", self._texts), "passage")
        self.vectors.append(vectors)
        yield StreamEnd(usage=None if tokens is None else Usage(tokens), model=self.name)
