"""What each model's server can do: a table by kind of server and name of model, and a person's overrides on top.

Sources are the providers' pages and the servers' own code as read in 2026. Where nothing is known, a model gets what no
server fails at; a probe or an override adds the rest.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast, get_args

from taiwa.kernel.errors import ConfigError, UnsupportedError
from taiwa.kernel.messages import Capability

__all__ = ["Capabilities", "capabilities"]


EVERY: tuple[Capability, ...] = get_args(Capability)

WISHES: Mapping[Capability, str] = {
    "stop": "end at stop strings",
    "prefix": "continue an answer that was begun for it",
    "tools": "be given tools",
    "json_schema": "be held to a JSON Schema",
    "regex": "be held to a regular expression",
    "grammar": "be held to a grammar",
    "logprobs": "tell the probabilities of its tokens",
    "seed": "be seeded",
    "cache": "be told what to cache",
    "decisions": "answer typed questions by probabilities (/v1/systemone)",
}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model's server can do; `sampling`: whether it takes temperature and top_p.

    `held` are the verdicts of a probe, where there was one: `enforced`, `ignored`, `refused` or `unknown` by the name of the
    ability or of the keyword of JSON Schema.
    """

    capabilities: frozenset[Capability]
    sampling: bool = True
    held: tuple[tuple[str, str], ...] = ()

    def require(self, capability: Capability, model: str) -> None:
        """Stop a request that the server would refuse, or worse, ignore.

        Raises:
            UnsupportedError: the ability is missing.
        """
        if capability not in self.capabilities:
            raise UnsupportedError(
                f"{model!r} cannot {WISHES[capability]}; if its server can, say so in the config (abilities: {capability}: true)",
                capability=capability,
            )


def _can(capabilities: str, *, sampling: bool = True) -> Capabilities:
    return Capabilities(cast("frozenset[Capability]", frozenset(capabilities.split())), sampling)


TABLE: tuple[tuple[str, str, Capabilities], ...] = (
    # The first line whose pattern is found in the model's name holds.
    ("openai", r"^o1-(mini|preview)", _can("", sampling=False)),
    ("openai", r"^gpt-5-chat", _can("stop json_schema logprobs seed")),
    ("openai", r"search-(preview|api)", _can("json_schema", sampling=False)),
    ("openai", r"^(gpt-4o-2024-05-13|gpt-4(-|$)|gpt-3\.5)", _can("stop tools logprobs seed")),
    ("openai", r"^chatgpt-4o", _can("stop logprobs seed")),
    ("openai", r"^gpt-4(o|\.\d)", _can("stop tools json_schema logprobs seed")),
    # Reasoning models (o1, o3, o4-mini, gpt-5 …) refuse stop, temperature, top_p and logprobs; newer names count as such.
    ("openai", r"", _can("tools json_schema", sampling=False)),
    ("llamacpp", r"", _can("stop prefix tools json_schema regex grammar logprobs seed")),
    ("vllm", r"", _can("stop prefix tools json_schema regex grammar logprobs seed")),
    ("sglang", r"", _can("stop prefix tools json_schema regex grammar logprobs seed")),
    ("ollama", r"", _can("stop tools json_schema logprobs seed")),
    ("lmstudio", r"", _can("stop tools json_schema seed")),
    ("mistral", r"", _can("stop prefix tools json_schema seed")),
    ("deepseek", r"reasoner", _can("stop tools", sampling=False)),
    ("deepseek", r"", _can("stop prefix tools logprobs")),
    # Groq takes a schema only without streaming, and all requests here stream.
    ("groq", r"", _can("stop tools seed")),
    ("hosted", r"", _can("stop tools")),
    ("plain", r"", _can("stop")),
    # In this process: our own decode loop.
    ("gguf", r"", _can("stop prefix tools json_schema regex grammar logprobs seed")),
    ("local", r"", _can("stop prefix json_schema regex grammar logprobs seed")),
    ("builtin", r"", _can("stop prefix json_schema regex grammar logprobs seed")),
)

ROUTED = frozenset[Capability](("stop", "tools", "json_schema", "seed"))
"""What a router passes on to the providers that are known here; a prefix and the rest depend on the route."""

FAMILY = re.compile(r"claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")

NEWEST: tuple[int, int] = (99, 0)


def capabilities(provider: str, model: str, overrides: Mapping[str, bool] | None = None) -> Capabilities:
    """Say what a model behind a kind of server can do; `overrides` may name `sampling` beside the abilities.

    Raises:
        ConfigError: an override names no ability.
    """
    known = _known(provider, model)
    if not overrides:
        return known
    for name in overrides:
        if name not in EVERY and name != "sampling":
            near = get_close_matches(name, (*EVERY, "sampling"), 1, 0.0)
            raise ConfigError(f"{name!r} is no ability of a model: did you mean {near[0]!r}?")
    capabilities: set[Capability] = {
        capability for capability in EVERY if overrides.get(capability, capability in known.capabilities)
    }
    return Capabilities(frozenset(capabilities), overrides.get("sampling", known.sampling))


def _known(provider: str, model: str) -> Capabilities:
    if provider == "anthropic":
        return _claude(model)
    if provider == "openrouter":
        return _routed(model)
    name = re.sub(r"^ft:", "", model)
    return next(known for kind, pattern, known in TABLE if kind == provider and re.search(pattern, name))


def _claude(model: str) -> Capabilities:
    """Claude by version: a prefix is refused from 4.6 on, sampling from 4.7 on; schemas are held to from 4.5 on."""
    found = FAMILY.search(model)
    version: tuple[int, int] = (int(found.group(1)), int(found.group(2) or 0)) if found else NEWEST
    if version < (3, 0):
        return _can("stop")
    capabilities: set[Capability] = {"stop", "tools", "cache"}
    if version <= (4, 5):
        capabilities.add("prefix")
    if version >= (4, 5):
        capabilities.add("json_schema")
    return Capabilities(frozenset(capabilities), sampling=version < (4, 7))


def _routed(model: str) -> Capabilities:
    vendor, _, name = model.partition("/")
    if vendor in ("openai", "anthropic"):
        known = _known(vendor, name.partition(":")[0])
        return Capabilities(known.capabilities & ROUTED, known.sampling)
    return _can("stop tools")
