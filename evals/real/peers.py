"""The obvious ways without taiwa: the openai client, instructor and pydantic-ai, on one OpenAI-compatible server.

All of them send their requests through one HTTP client, which counts requests and tokens in the same way for each.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, Literal, Optional, Union, cast

from pydantic import BaseModel, Field, create_model

from taiwa.kernel.errors import ConfigError, OverloadedError, TaiwaError
from taiwa.kernel.messages import Usage
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import RunUsage

PACKAGES = {"openai": "openai", "instructor": "instructor", "pydantic_ai": "pydantic-ai-slim[openai]"}
TIMEOUT_S = 600
MAX_REASON = 300
Messages = list[dict[str, str]]


def load(module: str) -> Any:  # noqa: ANN401  (a package without a dependency on it)
    """Import a peer.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        name = PACKAGES[module.partition(".")[0]]
        raise ConfigError(f"this way requires {name}; install it with: pip install '{name}'") from None


class PeerError(TaiwaError):
    """A peer raised an exception, whose name and text this is."""

    tag = "peer"

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"{type(cause).__name__}: {' '.join(str(cause).split())[:MAX_REASON]}")

    @property
    def is_unreachable(self) -> bool:
        """Whether the cause is, or was caused by, a connection that failed."""
        failure, cause = load("openai").APIConnectionError, cast("BaseException | None", self)
        while cause is not None:
            if isinstance(cause, failure):
                return True
            cause = cause.__cause__ or cause.__context__
        return False


@contextmanager
def peer_errors() -> Generator[None]:
    """Map the exceptions of a peer, which are of many kinds.

    Raises:
        PeerError: the peer raised one; that its answer is invalid is a result.
        OverloadedError: the server does not answer, so nothing can be said about the peer.
    """
    try:
        try:
            yield
        except TaiwaError:
            raise
        except Exception as error:
            raise PeerError(error) from error
    except PeerError as error:
        if error.is_unreachable:
            raise OverloadedError(f"the server does not answer: {error.message}") from error
        raise


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server, and the name of the model there."""

    url: str
    model: str
    key: str = "none"


@dataclass
class Peers:
    """The clients of the other ways; temperature 0, and the same limit of tokens and seed for each."""

    endpoint: Endpoint
    max_tokens: int
    seed: int
    spent: RunUsage = field(default_factory=RunUsage, init=False)

    @property
    def sampling(self) -> dict[str, Any]:
        """The sampling of every call."""
        return {"temperature": 0.0, "max_tokens": self.max_tokens, "seed": self.seed}

    @cached_property
    def client(self) -> Any:  # noqa: ANN401
        """The openai client; it does not retry."""
        openai, http = load("openai"), import_module("httpx2")
        counted = http.AsyncClient(event_hooks={"response": [self._count]}, timeout=TIMEOUT_S)
        end = self.endpoint
        return openai.AsyncOpenAI(base_url=end.url, api_key=end.key, http_client=counted, max_retries=0)

    async def _count(self, response: Any) -> None:  # noqa: ANN401
        """Add the usage of one response."""
        try:
            used = json.loads(await response.aread()).get("usage") or {}
        except (ValueError, AttributeError):
            used = {}
        cached = (used.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        usage = Usage(
            input_tokens=used.get("prompt_tokens") or 0, output_tokens=used.get("completion_tokens") or 0,
            cache_read_tokens=cached,
        )  # fmt: skip
        self.spent = self.spent + RunUsage(requests=1, usage=usage)

    def take_spent(self) -> RunUsage:
        """Return the usage since the last call of this."""
        spent, self.spent = self.spent, RunUsage()
        return spent

    async def complete(self, messages: Messages, schema: Mapping[str, Json] | None = None, **more: Any) -> str:  # noqa: ANN401
        """Return the answer of the openai client, with `schema` as its response format."""
        if schema is not None:
            form = {"name": "answer", "schema": dict(schema), "strict": True}
            more["response_format"] = {"type": "json_schema", "json_schema": form}
        done = await self.client.chat.completions.create(
            model=self.endpoint.model, messages=messages, **self.sampling, **more
        )
        return done.choices[0].message.content or ""

    async def instruct(self, messages: Messages, model: type[BaseModel]) -> Json:
        """Return the value of instructor in its JSON mode, with its own retries."""
        instructor = load("instructor")
        made = instructor.from_openai(self.client, mode=instructor.Mode.JSON)
        value = await made.create(model=self.endpoint.model, messages=messages, response_model=model, **self.sampling)
        return plain(value)

    async def agent(
        self,
        text: str,
        system: str,
        model: type[BaseModel] | None = None,
        *,
        native: bool = False,
        tools: tuple[Any, ...] = (),
    ) -> Any:  # noqa: ANN401
        """Return the output of a pydantic-ai agent: by a tool call, its default, or `native`, by the server's schema."""
        ai = load("pydantic_ai")
        chat = load("pydantic_ai.models.openai").OpenAIChatModel(
            self.endpoint.model,
            provider=load("pydantic_ai.providers.openai").OpenAIProvider(openai_client=self.client),
        )
        output = str if model is None else ai.NativeOutput(model) if native else model
        agent = ai.Agent(chat, output_type=output, instructions=system, tools=tools, model_settings=self.sampling)
        done = await agent.run(text)
        return done.output if model is None else plain(done.output)


def plain(value: BaseModel) -> Json:
    """Return a value as JSON; fields that were not set are left out."""
    return cast("Json", value.model_dump(mode="json", by_alias=True, exclude_unset=True))


class SchemaModels:
    """Pydantic models of a JSON Schema, as one would write them: the part of the language that the evaluations use."""

    def __init__(self, schema: Mapping[str, Any], name: str) -> None:
        self._named: dict[str, Mapping[str, Any]] = dict(schema.get("$defs") or schema.get("definitions") or {})
        self._made: dict[str, Any] = {}
        self._count = 0
        self.root: type[BaseModel] = self._type(schema, name)

    def _type(self, schema: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401  (a type made from data)
        if "$ref" in schema:
            reference = str(schema["$ref"])
            if reference == "#":
                raise ConfigError("a recursive schema has no pydantic model here")
            ref = reference.rpartition("/")[2]
            if ref not in self._made:
                self._made[ref] = self._type(self._named[ref], ref)
            return self._made[ref]
        if "const" in schema:
            return Literal[schema["const"]]
        if "enum" in schema:
            return Literal[tuple(schema["enum"])]
        if options := schema.get("anyOf") or schema.get("oneOf"):
            return Union[tuple(self._type(each, f"{name}{place}") for place, each in enumerate(options))]  # noqa: UP007
        kind = schema.get("type")
        if isinstance(kind, list):
            return Union[tuple(self._type({**schema, "type": each}, name) for each in kind)]  # noqa: UP007
        if kind == "object" and "properties" in schema:
            return self._object(schema, name)
        if kind == "array":
            return list[self._type(schema.get("items") or {}, f"{name}Item")]  # type: ignore[misc]
        return {
            "string": str,
            "integer": int,
            "number": float,
            "boolean": bool,
            "null": None,
            "object": dict[str, Any],
        }.get(str(kind), Any)

    def _object(self, schema: Mapping[str, Any], name: str) -> type[BaseModel]:
        required = set(schema.get("required") or ())
        fields: dict[str, Any] = {}
        for place, (key, part) in enumerate(schema["properties"].items()):
            kind = self._type(part, f"{name}_{key}")
            # Any name may be a key, and not any is an attribute of a pydantic model.
            own = (
                key
                if key.isidentifier() and not key.startswith(("_", "model_")) and not hasattr(BaseModel, key)
                else f"field_{place}"
            )
            about = {"description": part.get("description"), "alias": None if own == key else key}
            if key in required:
                fields[own] = (Annotated[kind, Field(**about)], ...)
            else:
                fields[own] = (Annotated[Optional[kind], Field(**about)], None)  # noqa: UP045
        return create_model(name, __doc__=schema.get("description"), **fields)
