"""Servers that speak the protocols of OpenAI: their dialects, and what the codecs of Chat Completions, Responses and
Completions share.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from taiwa.kernel.errors import InputError, ModelError
from taiwa.kernel.messages import Request, Sampling
from taiwa.kernel.records import Json
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.errors import Server, error_from_status
from taiwa.models.http_api.provider_interface import (
    NO_OPTIONS,
    ConstraintWire,
    Decoder,
    Enforce,
    ModelOptions,
    Target,
    WireRequest,
)

MANY = 1_000
JSON_HEADERS = (("content-type", "application/json"),)


@dataclass(frozen=True, slots=True)
class ServerDialect:
    """What one kind of server does where the protocol leaves a choice.

    - `prefix`: how to ask it to continue a message: not at all, by a last message of the assistant (`last`), by that and
      `continue_final_message` (`continue`), by that and `"prefix": true` on it (`flag`).
    - `echo`: whether its response repeats the prefix: never, in responses of one piece only (`whole`), or `always`.
    - `constraints`: the fields for a constraint; see `taiwa.models.http_api.constraint_encoding`.
    - `strict`: whether a schema is rewritten into the strict form, which the server enforces.
    - `max_tokens`, `seed`: the names of these fields. `stops`: the most stop strings. `usage`: whether a stream must be asked to
      report its usage. `call_id`: the pattern that an id must match; `call_form` formats a position into one.
    - `prefix_path`: the path for requests with a prefix, if it is another. `key_header`: the header that carries the key.
    - `effort`: the field for how much the model reasons: `reasoning_effort`, or the object `reasoning` of OpenRouter.
    - `takes_reasoning`: whether calls go back with the reasoning that led to them, which other servers refuse or ignore.
    """

    label: str
    prefix: Literal["no", "last", "continue", "flag"] = "no"
    echo: Literal["never", "whole", "always"] = "never"
    constraints: ConstraintWire = "response_format"
    strict: bool = False
    max_tokens: str = "max_tokens"
    stops: int = 4
    seed: str = "seed"
    usage: bool = True
    call_id: str = r"[!-~]{1,64}"
    call_form: str = "call_{}"
    prefix_path: str = ""
    key_header: str = "authorization"
    effort: Literal["reasoning_effort", "reasoning"] = "reasoning_effort"
    takes_reasoning: bool = False


DIALECTS: Mapping[str, ServerDialect] = {
    "openai": ServerDialect("OpenAI", strict=True, max_tokens="max_completion_tokens", call_id=r"[A-Za-z0-9_-]{1,40}"),
    "azure": ServerDialect(
        "Azure OpenAI", strict=True, max_tokens="max_completion_tokens", call_id=r"[A-Za-z0-9_-]{1,40}", key_header="api-key"
    ),
    "llamacpp": ServerDialect(
        "the llama.cpp server", prefix="last", echo="whole", constraints="gbnf", stops=MANY, takes_reasoning=True
    ),
    "gguf": ServerDialect("llama.cpp", prefix="last", echo="whole", constraints="gbnf", stops=MANY, takes_reasoning=True),
    "vllm": ServerDialect(
        "the vLLM server", prefix="continue", constraints="structured_outputs", stops=MANY, takes_reasoning=True
    ),
    "sglang": ServerDialect("the SGLang server", prefix="continue", constraints="fields", stops=MANY, takes_reasoning=True),
    "ollama": ServerDialect("the Ollama server", stops=MANY),
    "lmstudio": ServerDialect("LM Studio", stops=MANY),
    "openrouter": ServerDialect(
        "OpenRouter", strict=True, call_id=r"[A-Za-z0-9_-]{1,64}", effort="reasoning", takes_reasoning=True
    ),
    # Mistral refuses unknown fields, stream_options among them, and ids of another form.
    "mistral": ServerDialect(
        "Mistral", prefix="flag", echo="always", seed="random_seed", usage=False, stops=MANY,
        call_id=r"[A-Za-z0-9]{9}", call_form="call{:05d}",
    ),
    "deepseek": ServerDialect(
        "DeepSeek", prefix="flag", stops=16, prefix_path="beta/chat/completions", takes_reasoning=True
    ),
    "groq": ServerDialect("Groq"),
    # Gemini signs its function calls and refuses a conversation in which a signature is missing.
    "gemini": ServerDialect("Gemini", takes_reasoning=True),
    "plain": ServerDialect("the server"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenAICodec(ABC):
    """What the codecs of all protocols of OpenAI share: one model on one kind of server."""

    model: str
    dialect: ServerDialect
    capabilities: Capabilities
    enforce: Enforce = "auto"
    options: ModelOptions = NO_OPTIONS

    @abstractmethod
    def encode(self, request: Request) -> WireRequest:
        """Encode a request; see `Codec`."""

    @abstractmethod
    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Create a decoder; see `Codec`."""

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """Map a response that is not 2xx to an error; header names are lower-case."""
        return error_from_status(status, headers, body, self.server)

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that carry a key."""
        header = self.dialect.key_header
        return ((header, f"Bearer {key}" if header == "authorization" else key),) if key else ()

    @property
    def server(self) -> Server:
        """The server and the model that errors name."""
        return Server(self.dialect.label, self.model)

    def sampling(self, sampling: Sampling) -> dict[str, Json]:
        """Return the fields of temperature and top_p, none where the model does not accept them."""
        if not self.capabilities.sampling:
            return {}
        fields: dict[str, Json] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        return {name: number for name, number in fields.items() if number is not None}

    def tool_name(self, request: Request) -> str:
        """Return the tool that the request demands, `""` where it leaves the choice open.

        Raises:
            InputError: `tool_choice` names an unknown tool.
        """
        choice = request.tool_choice
        if choice in ("auto", "none", "required"):
            return ""
        if choice not in {tool.name for tool in request.tools}:
            raise InputError(f"tool_choice names {choice!r}, which is not a tool of the request")
        return choice


def held_so(target: Target, enforce: Enforce) -> Target:
    """Return the target with another treatment of constraints that its server does not enforce; see `Enforce`."""
    codec = target.codec
    return replace(target, codec=replace(codec, enforce=enforce)) if isinstance(codec, OpenAICodec) else target
