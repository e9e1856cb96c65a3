"""Capabilities of models: a table by kind of server and name of model, corrected by a probe and by the user; the attachments that a
model can read.

Sources are the documentation of the providers and the code of the servers, as of 2026. An unknown model gets the capabilities
that every server has; a probe (`probe_server`) or an override in the config adds the rest.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Literal, cast, get_args

from taiwa.kernel.attachments import Attachment, InputKind
from taiwa.kernel.errors import ConfigError, InputError, UnsupportedError
from taiwa.kernel.messages import Capability, Message, Part, Request, Text, ToolResult, Usage
from taiwa.kernel.serialization import Json, count_at, item_at, text_at
from taiwa.kernel.text import defuse
from taiwa.kernel.wording import Wording
from taiwa.models.http_api.provider_interface import Target
from taiwa.settings import Settings
from taiwa.yamlfile import read_json_object, write_private

ALL: tuple[Capability, ...] = get_args(Capability)
INPUTS: tuple[InputKind, ...] = get_args(InputKind)
DESCRIPTIONS: Mapping[Capability, str] = {
    "stop": "end at stop strings",
    "prefix": "continue an answer from a prefix",
    "tools": "call tools",
    "json_schema": "be constrained by a JSON Schema",
    "regex": "be constrained by a regular expression",
    "grammar": "be constrained by a grammar",
    "logprobs": "return log probabilities of its tokens",
    "seed": "use a seed",
    "cache": "cache the parts of a prompt that a request marks",
    "local": "run on this machine, where a second short request costs little",
    "small": "follow short prompts only, having less than a billion parameters",
}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model on its server can do; `sampling`: whether it accepts temperature and top_p.

    `inputs` are the attachments that may be sent to it; most servers refuse images with a clear error if their model cannot
    read them. `assumed` are capabilities that nothing is known about: requests that need them are sent, and the answer shows whether
    the server has them; programs do not rely on them. `verdicts` are the results of a probe, if there was one: `enforced`, `ignored`, `refused` or `unknown` by the
    name of a capability or of a keyword of JSON Schema. `fixed` are capabilities that no setting adds: the protocol lacks them.
    """

    capabilities: frozenset[Capability]
    sampling: bool = True
    verdicts: tuple[tuple[str, str], ...] = ()
    inputs: frozenset[InputKind] = frozenset()
    assumed: frozenset[Capability] = frozenset()
    fixed: frozenset[Capability] = frozenset()

    def require(self, capability: Capability, model: str, what: str = "") -> None:
        """Check a capability that a request needs, as a server that lacks it may ignore the request silently.

        `what` says what the model cannot do, if it is not the description of the capability.

        Raises:
            UnsupportedError: the capability is missing.
        """
        if capability not in self.capabilities | self.assumed:
            hint = (
                f"; if its server can, set `{capability}: true` for it in the config: "
                f"taiwa config set 'capabilities.NAME.{capability}' true (NAME as after -m)"
            )
            hint = "" if capability in self.fixed else hint
            message = f"{model!r} cannot {what or DESCRIPTIONS[capability]}{hint}"
            raise UnsupportedError(message, capability=capability)


def _can(capabilities: str, *, sampling: bool = True, inputs: str = "images", assumed: str = "") -> Capabilities:
    able = cast("frozenset[Capability]", frozenset(capabilities.split()))
    guessed = cast("frozenset[Capability]", frozenset(assumed.split()))
    read = cast("frozenset[InputKind]", frozenset(inputs.split()))
    return Capabilities(able, sampling, inputs=read, assumed=guessed)


EVERY_INPUT = "images pdf"
TABLE: tuple[tuple[str, str, Capabilities], ...] = (
    # The first row whose pattern is found in the name of the model applies.
    ("openai", r"^(gpt-3\.5-turbo-instruct|davinci-|babbage-)", _can("stop prefix logprobs seed", inputs="")),
    ("openai", r"^o1-(mini|preview)", _can("", sampling=False, inputs="")),
    ("openai", r"^o3-mini", _can("tools json_schema", sampling=False, inputs="")),
    ("openai", r"^gpt-5-chat", _can("stop json_schema logprobs seed", inputs=EVERY_INPUT)),
    ("openai", r"search-(preview|api)", _can("json_schema", sampling=False, inputs="")),
    ("openai", r"^(gpt-4o-2024-05-13|gpt-4-turbo)", _can("stop tools logprobs seed", inputs=EVERY_INPUT)),
    ("openai", r"^(gpt-4(-|$)|gpt-3\.5)", _can("stop tools logprobs seed", inputs="")),
    ("openai", r"^chatgpt-4o", _can("stop logprobs seed", inputs=EVERY_INPUT)),
    ("openai", r"^gpt-4(o|\.\d)", _can("stop tools json_schema logprobs seed", inputs=EVERY_INPUT)),
    # Reasoning models (o1, o3, o4-mini, gpt-5 …) refuse stop, temperature, top_p and logprobs; newer names are assumed to be
    # such.
    ("openai", r"", _can("tools json_schema", sampling=False, inputs=EVERY_INPUT)),
    ("llamacpp", r"", _can("stop prefix tools json_schema regex grammar logprobs seed local")),
    ("vllm", r"", _can("stop prefix tools json_schema regex grammar logprobs seed")),
    ("sglang", r"", _can("stop prefix tools json_schema regex grammar logprobs seed")),
    ("ollama", r"", _can("stop tools json_schema logprobs seed")),
    ("lmstudio", r"", _can("stop tools json_schema seed")),
    ("mistral", r"", _can("stop prefix tools json_schema seed")),
    ("deepseek", r"reasoner", _can("stop tools", sampling=False, inputs="")),
    ("deepseek", r"", _can("stop prefix tools logprobs", inputs="")),
    # Groq accepts a schema only without streaming, and all requests here stream.
    ("groq", r"", _can("stop tools seed")),
    ("hosted", r"", _can("stop tools")),
    ("plain", r"", _can("stop", assumed="tools json_schema logprobs seed")),
    # In this process: our own decode loop.
    ("gguf", r"", _can("stop prefix json_schema regex grammar logprobs seed local", inputs="")),
    ("local", r"", _can("stop prefix json_schema regex grammar logprobs seed local", inputs="")),
)

ROUTED = frozenset[Capability](("stop", "tools", "json_schema", "seed"))
"""Capabilities that a router passes on to known providers; prefix and others depend on the route."""

SIZE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([bm])(?![a-z])", re.IGNORECASE)
PARAMETERS = {"b": 1e9, "m": 1e6}
SMALL = 1e9

CLAUDE_VERSION = re.compile(r"claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
NEWEST: tuple[int, int] = (99, 0)


def capabilities(provider: str, model: str, overrides: Mapping[str, bool] | None = None) -> Capabilities:
    """Return what a model can do; `provider` is a kind of server in the table, and `overrides` may also set `sampling`.

    Raises:
        ConfigError: an override names an unknown capability.
    """
    known = _known(provider, model)
    if not overrides:
        return known
    for name in overrides:
        if name not in (*ALL, *INPUTS, "sampling"):
            near = get_close_matches(name, (*ALL, *INPUTS, "sampling"), 1, 0.0)
            raise ConfigError(f"unknown capability {name!r}: did you mean {near[0]!r}?")
    able = frozenset[Capability](each for each in ALL if overrides.get(each, each in known.capabilities))
    inputs = frozenset[InputKind](each for each in INPUTS if overrides.get(each, each in known.inputs))
    assumed = known.assumed - able - overrides.keys()
    return Capabilities(able, overrides.get("sampling", known.sampling), inputs=inputs, assumed=assumed)


def _known(provider: str, model: str) -> Capabilities:
    if provider == "anthropic":
        return _claude(model)
    if provider == "openrouter":
        return _routed(model)
    name = re.sub(r"^ft:", "", model)
    known = next(known for kind, pattern, known in TABLE if kind == provider and re.search(pattern, name))
    return replace(known, capabilities=known.capabilities | {"small"}) if 0 < parameters_in(name) < SMALL else known


def parameters_in(name: str) -> float:
    """Return how many parameters the name of a model or of its file says that it has; 0.0 if it says nothing.

    >>> parameters_in("models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"), parameters_in("gpt-4.1"), parameters_in("qwen3:30b-a3b")
    (500000000.0, 0.0, 30000000000.0)
    """
    found = SIZE.findall(re.split(r"[/\\]", name)[-1])
    return max((float(number) * PARAMETERS[unit.lower()] for number, unit in found), default=0.0)


def _claude_version(model: str) -> tuple[int, int]:
    found = CLAUDE_VERSION.search(model)
    return (int(found.group(1)), int(found.group(2) or 0)) if found else NEWEST


def reasons_adaptively(model: str) -> bool:
    """Whether an Anthropic model chooses how long it reasons; older ones have a token budget."""
    return _claude_version(model) >= (4, 6)


def takes_effort(model: str) -> bool:
    """Whether an Anthropic model supports an effort: all since 4.6, and Opus 4.5."""
    return _claude_version(model) >= (4, 6) or "opus-4-5" in model


def _claude(model: str) -> Capabilities:
    """Return the capabilities of Claude by version: schemas from 4.5 on, a prefix until 4.5, sampling until 4.6."""
    version = _claude_version(model)
    if version < (3, 0):
        return _can("stop", inputs="")
    capabilities: set[Capability] = {"stop", "tools", "cache"}
    if version <= (4, 5):
        capabilities.add("prefix")
    if version >= (4, 5):
        capabilities.add("json_schema")
    return Capabilities(frozenset(capabilities), version < (4, 7), inputs=frozenset(INPUTS))


def _routed(model: str) -> Capabilities:
    vendor, _, name = model.partition("/")
    if vendor in ("openai", "anthropic"):
        known = _known(vendor, name.partition(":")[0])
        return Capabilities(known.capabilities & ROUTED, known.sampling, inputs=known.inputs)
    return _can("stop tools", inputs=EVERY_INPUT)


# --- reports of probes ------------------------------------------------------------------------------------------------

Verdict = Literal["enforced", "ignored", "refused", "unknown"]
"""The answer satisfies the constraint · violates it · the server refuses the request · the answer does not show it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: its name (`stop`, `schema.enum`), the verdict, and a note on the reason."""

    name: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """All findings about a model on a server, and their cost; `server` is its own name or '', `day` the date of the report."""

    model: str
    base_url: str
    findings: tuple[Finding, ...]
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    server: str = ""
    day: str = ""

    @property
    def capabilities(self) -> Mapping[Capability, bool]:
        """The known capabilities; `json_schema` requires a server that enforces the simplest schema."""
        verdicts: dict[str, Verdict] = {finding.name: finding.verdict for finding in self.findings}
        verdicts["json_schema"] = _weakest(verdicts.get("schema.enum"), verdicts.get("schema.required"))
        known = {"enforced": True, "ignored": False, "refused": False}
        return {name: known[verdicts[name]] for name in get_args(Capability) if verdicts.get(name) in known}


def _weakest(*verdicts: Verdict | None) -> Verdict:
    for verdict in ("refused", "ignored"):
        if verdict in verdicts:
            return verdict
    return "enforced" if set(verdicts) == {"enforced"} else "unknown"


def save_report(settings: Settings, report: ProbeReport) -> None:
    """Store a report, replacing an older one about the same model on the same server, and what the server calls itself.

    Raises:
        ConfigError: the file is invalid or cannot be written.
    """
    findings: dict[str, Json] = {each.name: [each.verdict, each.note] for each in report.findings}
    entry: Json = {"day": report.day, "requests": report.requests, "server": report.server, "findings": findings}
    servers: dict[str, Json] = {f"{report.base_url}#": {"server": report.server}} if report.server else {}
    _save(settings, {f"{report.base_url}#{report.model}": entry} | servers)


def load_report(settings: Settings, target: Target) -> ProbeReport | None:
    """Return the stored report about a model on its server, or None.

    Raises:
        ConfigError: the file is invalid.
    """
    data = read_json_object(settings.probes_path, "probe").get(f"{target.base_url}#{target.model}")
    found = item_at(data, "findings")
    if not isinstance(found, dict):
        return None
    findings = tuple(
        Finding(name, cast("Verdict", pair[0]), str(pair[1]))
        for name, pair in found.items()
        if isinstance(pair, list) and len(pair) > 1 and pair[0] in get_args(Verdict)
    )
    requests = count_at(data, "requests") or 0
    server, day = text_at(data, "server"), text_at(data, "day")
    return ProbeReport(target.model, target.base_url, findings, requests, server=server, day=day)


def save_server(settings: Settings, base_url: str, server: str) -> None:
    """Store what a server calls itself.

    Raises:
        ConfigError: the file is invalid or cannot be written.
    """
    _save(settings, {f"{base_url}#": {"server": server}})


def save_verdict(settings: Settings, target: Target, capability: Capability, verdict: Verdict) -> None:
    """Store what requests have shown about a capability of a model on its server; a later report replaces it.

    Raises:
        ConfigError: the file is invalid or cannot be written.
    """
    name = f"{target.base_url}#{target.model}"
    known = read_json_object(settings.probes_path, "probe").get(name)
    entry = known if isinstance(known, dict) else {}
    shown = item_at(entry, "shown")
    _save(settings, {name: entry | {"shown": (shown if isinstance(shown, dict) else {}) | {capability: verdict}}})


def load_verdicts(settings: Settings, target: Target) -> dict[str, bool]:
    """Return which capabilities of a model on its server requests have shown, and which they have shown to be missing.

    Raises:
        ConfigError: the file is invalid.
    """
    shown = item_at(read_json_object(settings.probes_path, "probe").get(f"{target.base_url}#{target.model}"), "shown")
    return (
        {} if not isinstance(shown, dict) else {name: each == "enforced" for name, each in shown.items() if name in ALL}
    )


def _save(settings: Settings, entries: dict[str, Json]) -> None:
    path = settings.probes_path
    data = read_json_object(path, "probe") | entries
    write_private(path, json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def load_servers(settings: Settings) -> dict[str, str]:
    """Return what the servers call themselves, by base URL, as it is stored.

    Raises:
        ConfigError: the file is invalid.
    """
    data = read_json_object(settings.probes_path, "probe")
    return {name[:-1]: text_at(entry, "server") for name, entry in data.items() if name.endswith("#")}


# --- attachments ------------------------------------------------------------------------------------------------------

REMEDIES = {
    "images": Wording("{model!r} cannot read images ({name}); choose a model that can"),
    "pdf": Wording(
        "{model!r} cannot read PDFs ({name}); attach its text (--attach-as-text; in Python taiwa.document_text), choose a model that can"
    ),
}


def fit_attachments(
    request: Request, model: str, inputs: Collection[InputKind] = (), *, fixed: bool = False
) -> Request:
    """Return a request with text files converted to text; `inputs` are the other kinds that the model reads.

    A `fixed` model cannot read more, whatever its settings. A sentence replaces a file of a tool result that it cannot read.

    Raises:
        UnsupportedError: the model cannot read an attachment.
        InputError: the bytes of an attachment are missing, or a message of another role than the user's has one.
    """
    if not request.files:
        return request
    messages = (_fit_message(message, model, inputs, fixed=fixed) for message in request.messages)
    return replace(request, messages=tuple(messages))


def _fit_message(message: Message, model: str, inputs: Collection[InputKind], *, fixed: bool) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult) and part.attachments:
            parts.append(_fit_result(part, inputs))
            continue
        if not isinstance(part, Attachment):
            parts.append(part)
            continue
        if message.role != "user":
            raise InputError(f"only a message of the user can have attachments, and {part.label} is in another")
        if part.kind is not None and part.kind not in inputs:
            remedy = Wording(REMEDIES[part.kind], model=model, name=part.label)
            raise UnsupportedError(remedy if fixed else Wording("{problem}, or, if its server can, set `{kind}: true` for it in the config (capabilities)", problem=remedy, kind=part.kind), capability=part.kind)  # fmt: skip
        parts.append(file_text(part) if part.kind is None else part)
    return replace(message, parts=tuple(parts))


def _fit_result(result: ToolResult, inputs: Collection[InputKind]) -> ToolResult:
    """Return a result with the files that the model reads; the bytes of others, and of those that an import left out, stay here."""
    texts = [result.text, *(file_text(each).text for each in result.attachments if each.kind is None and each.data)]
    files = tuple(each for each in result.attachments if each.kind is not None)
    shown = tuple(each for each in files if each.kind in inputs and each.data)
    unread = replace(result, text="\n".join(filter(None, texts)), attachments=tuple(x for x in files if x not in shown))
    return replace(result, text=unread.as_text, attachments=shown)


def file_text(attachment: Attachment) -> Text:
    """Return a text file as text: its name, and its content in a fence that the content cannot close.

    >>> print(file_text(Attachment.from_bytes(b"two teas", "order.txt")).text)
    order.txt
    ```
    two teas
    ```
    """
    content = attachment.text
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", content)), 3)
    return Text(f"{defuse(attachment.label)}\n{fence}\n{content.removesuffix(chr(10))}\n{fence}")
