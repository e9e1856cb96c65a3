"""What a server really enforces; stored findings."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, cast, get_args

from taiwa.kernel.effects import Complete, Program, gather, notify, perform
from taiwa.kernel.errors import (
    AuthenticationError,
    ConfigError,
    ModelError,
    OverloadedError,
    RateLimitError,
    UnsupportedError,
)
from taiwa.kernel.execution import RunResult
from taiwa.kernel.messages import (
    Capability,
    Constraint,
    Grammar,
    JsonSchema,
    Notice,
    Regex,
    Request,
    Response,
    Sampling,
    ToolSpec,
    Usage,
    user,
)
from taiwa.kernel.records import Json, canonical, item_at, text_at
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.openai_chat import ChatCompletions
from taiwa.models.http_api.provider_interface import Target, WireRequest, parse
from taiwa.models.registry import resolve
from taiwa.settings import Settings
from taiwa.yamlfile import write_private

__all__ = [
    "Finding",
    "ProbeReport",
    "Verdict",
    "keep",
    "kept",
    "probe",
    "probe_program",
    "probed",
    "resolve_permissive",
]


WORD, OTHER = "qz7", "kw3"
"""Words that no model says of itself."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One keyword: a schema, the JSON that tempts to break it, and what an answer that keeps it looks like."""

    keyword: str
    schema: Mapping[str, Json]
    temptation: str
    kept: Callable[[Json], bool]


def _object(value: Json, *more: str) -> dict[str, Json]:
    """The schema of an object with a member `v`, and others that are always one word."""
    properties: dict[str, Json] = {"v": value}
    for name in more:
        properties[name] = {"enum": [WORD]}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _member(keyword: str, schema: Json, temptation: str, kept: Callable[[Json], bool]) -> Rule:
    """A rule about the member `v` of an object: strict servers take nothing but objects."""
    return Rule(
        keyword, _object(schema), f'{{"v": {temptation}}}', lambda data: _names(data) == ["v"] and kept(item_at(data, "v"))
    )  # fmt: skip


def _names(data: Json) -> list[str]:
    return sorted(data) if isinstance(data, dict) else []


def _is_number(value: Json, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def matches(pattern: str) -> Callable[[Json], bool]:
    """Tell texts that match a pattern from all other JSON."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _one_of_two(value: Json) -> bool:
    return value in (WORD, OTHER)


WORD_BY_NAME: dict[str, Json] = {"$defs": {"word": {"enum": [WORD]}}}

LETTERS: list[Json] = ["a", "b", "c", "d", "e", "f"]

EITHER: Json = [{"const": WORD}, {"const": OTHER}]

RULES = (
    _member("enum", {"enum": [WORD, OTHER]}, '"blue"', _one_of_two),
    Rule("required", _object({"enum": [WORD]}, "w"), "{}", lambda data: _names(data) == ["v", "w"]),
    Rule(
        "additionalProperties", _object({"enum": [WORD]}), f'{{"v": "{WORD}", "w": 1}}', lambda data: _names(data) == ["v"]
    ),
    _member("const", {"const": WORD}, '"blue"', lambda v: v == WORD),
    _member(
        "integer bounds", {"type": "integer", "minimum": 41, "maximum": 43}, "7",
        lambda v: isinstance(v, int) and _is_number(v, 41, 43),
    ),
    _member(
        "number bounds", {"type": "number", "minimum": 0.25, "maximum": 0.75}, "12.5", lambda v: _is_number(v, 0.25, 0.75)
    ),
    _member(
        "multipleOf", {"type": "integer", "minimum": 1, "maximum": 999, "multipleOf": 37}, "5",
        lambda v: isinstance(v, int) and v > 0 and v % 37 == 0,
    ),
    _member("maxLength", {"type": "string", "maxLength": 3}, '"a longer text"', matches(r"(?s).{0,3}")),
    _member("pattern", {"type": "string", "pattern": "^[xyz]{4}$"}, '"abcd"', matches("[xyz]{4}")),
    _member("format", {"type": "string", "format": "date"}, '"tomorrow"', matches(r"\d{4}-\d\d-\d\d")),
    _member(
        "items bounds", {"type": "array", "items": {"enum": [WORD]}, "minItems": 2, "maxItems": 3}, "[]",
        lambda v: isinstance(v, list) and 2 <= len(v) <= 3,
    ),
    _member(
        "uniqueItems",
        {"type": "array", "items": {"enum": LETTERS}, "minItems": 6, "maxItems": 6, "uniqueItems": True},
        '["a", "a", "a", "a", "a", "a"]',
        lambda v: isinstance(v, list) and sorted(map(str, v)) == LETTERS,
    ),
    _member("oneOf", {"oneOf": EITHER}, '"blue"', _one_of_two),
    _member("anyOf", {"anyOf": EITHER}, '"blue"', _one_of_two),
    Rule(
        "$ref", _object({"$ref": "#/$defs/word"}) | WORD_BY_NAME, '{"v": "blue"}',
        lambda data: data == {"v": WORD},
    ),
)  # fmt: skip

Verdict = Literal["enforced", "ignored", "refused", "unknown"]
"""The rule was kept · the answer breaks it · the server would not take it · the answer does not tell."""

SHORT = Sampling(temperature=0.0, max_tokens=48)

BEGUN = re.compile(r'\s*\{\s*"[vw]"\s*:')
"""The beginning of the JSON that is asked for."""

ROOMY = Sampling(temperature=0.0, max_tokens=300)
"""A small model under a grammar may write white space wherever it is allowed to."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: its name (`stop`, `schema.enum`), the verdict, and a word on the reason."""

    name: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """All findings about one model on one server, and the most that they cost; `server` is what it says it is, or ''."""

    model: str
    base_url: str
    findings: tuple[Finding, ...]
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    server: str = ""

    @property
    def capabilities(self) -> Mapping[Capability, bool]:
        """What is certain of the abilities; `json_schema` needs a server that holds the plainest of schemas."""
        verdicts: dict[str, Verdict] = {finding.name: finding.verdict for finding in self.findings}
        verdicts["json_schema"] = _weakest(verdicts.get("schema.enum"), verdicts.get("schema.required"))
        known = {"enforced": True, "ignored": False, "refused": False}
        return {name: known[verdicts[name]] for name in get_args(Capability) if verdicts.get(name) in known}

    @property
    def keywords(self) -> frozenset[str]:
        """The keywords of JSON Schema that the server's decoder holds; all others are only checked afterwards."""
        found = (one.name for one in self.findings if one.verdict == "enforced")
        return frozenset(name.removeprefix("schema.") for name in found if name.startswith("schema."))


def _weakest(*verdicts: Verdict | None) -> Verdict:
    for verdict in ("refused", "ignored"):
        if verdict in verdicts:
            return verdict
    return "enforced" if set(verdicts) == {"enforced"} else "unknown"


# --- JSON Schema ------------------------------------------------------------------------------------------------------


def _schema_checks() -> Program[tuple[Finding, ...]]:
    """Ask for every keyword; a server that does not take the plainest schema is not asked for the others."""
    findings: list[Finding] = []
    for rule in RULES:
        name = f"schema.{rule.keyword}"
        if findings and findings[0].verdict == "refused":
            findings.append((yield from _told(Finding(name, "refused", findings[0].note))))
            continue
        say = f"Reply with exactly this JSON and nothing else: {rule.temptation}"
        request = Request((user(say),), constraint=JsonSchema(rule.schema), sampling=ROOMY)
        findings.append((yield from _found(name, request, partial(_judged, rule.kept))))
    return tuple(findings)


def _judged(kept: Callable[[Json], bool], answer: Response) -> Verdict:
    try:
        data = parse(answer.text)
    except ValueError:
        # A small model under a grammar may write white space, or digits, for as long as it is let.
        blank = sum(sign.isspace() for sign in answer.text)
        is_begun = 2 * blank > len(answer.text) or BEGUN.match(answer.text) is not None
        return "unknown" if not answer.text or (answer.finish == "length" and is_begun) else "ignored"
    return "enforced" if kept(data) else "ignored"


# --- all other checks -------------------------------------------------------------------------------------------------


def probe_program() -> Program[tuple[Finding, ...]]:
    """Run every check that a request can ask for; each finding is told as it comes.

    Raises:
        AuthError, RateLimitError: the server does not let us ask.
    """
    findings = [(yield from _stop()), (yield from _prefix())]
    say = "Reply with the word blue and nothing else."
    findings += yield from _constraint("regex", say, Regex("[xyz]{4}"), matches("[xyz]{4}"))
    findings += yield from _constraint("grammar", say, Grammar('start: "qz7" | "kw3"'), lambda v: v in (WORD, OTHER))
    findings.append((yield from _tools()))
    findings.append((yield from _seed()))
    findings += yield from _memory()
    findings += yield from _schema_checks()
    return tuple(findings)


def _asked(request: Request) -> Program[Response | ModelError]:
    try:
        return (yield from perform(Complete(request)))
    except (AuthenticationError, RateLimitError):
        raise
    except ModelError as error:
        if isinstance(error, OverloadedError) and error.status is None:
            raise  # nobody is there
        return error


def _found(name: str, request: Request, judge: Callable[[Response], Verdict]) -> Program[Finding]:
    answer = yield from _asked(request)
    if isinstance(answer, ModelError):
        finding = _failed(name, answer)
    elif answer.finish == "refusal" or (
        not answer.text and not answer.message.tool_calls and answer.finish == "length"
    ):
        finding = Finding(name, "unknown", "the model did not say anything")
    else:
        finding = Finding(name, judge(answer))
    return (yield from _told(finding))


def _failed(name: str, error: ModelError) -> Finding:
    if isinstance(error, UnsupportedError) and error.status is None:
        return Finding(name, "unknown", "there is no way to ask this server")
    refused = error.status is not None and 400 <= error.status < 500
    return Finding(name, "refused" if refused else "unknown", error.message)


def _told(finding: Finding) -> Program[Finding]:
    yield from notify(f"{finding.name}: {finding.verdict}", code="probe")
    return finding


def _stop() -> Program[Finding]:
    """No text of some length does without these four."""
    stops = ("e", "a", "o", " ")

    def judge(answer: Response) -> Verdict:
        if any(stop in answer.text for stop in stops):
            return "ignored"
        return "enforced" if answer.finish == "stop" else "unknown"

    request = Request((user("Repeat: The quick brown fox jumps over the lazy dog."),), stop=stops, sampling=SHORT)
    answer = yield from _asked(request)
    if isinstance(answer, Response) and not answer.text and answer.finish == "stop":
        return (yield from _told(Finding("stop", "enforced")))
    return (
        yield from _told(_failed("stop", answer) if isinstance(answer, ModelError) else Finding("stop", judge(answer)))
    )


def _prefix() -> Program[Finding]:
    """The second half of its own answer is what a model goes on with, if it goes on at all."""
    request = Request((user("Count from one to twelve in English words."),), sampling=SHORT)
    whole = yield from _asked(request)
    if isinstance(whole, ModelError) or len(whole.text) < 16:
        return (yield from _told(Finding("prefix", "unknown", "the model did not say anything")))
    text = whole.text
    cut = next((at for at in range(len(text) // 2, len(text) - 8) if text[at - 1] == ","), len(text) // 2)

    def judge(answer: Response) -> Verdict:
        if answer.text.lstrip().startswith(text[cut:].lstrip()[:6]):
            return "enforced"
        return "ignored" if answer.text.lstrip().startswith(text.lstrip()[:8]) else "unknown"

    return (yield from _found("prefix", replace(request, prefix=text[:cut]), judge))


def _constraint(
    name: str, say: str, constraint: Constraint, kept: Callable[[Json], bool]
) -> Program[tuple[Finding, ...]]:
    request = Request((user(say),), constraint=constraint, sampling=SHORT)
    return ((yield from _found(name, request, lambda answer: "enforced" if kept(answer.text) else "ignored")),)


def _tools() -> Program[Finding]:
    weather = ToolSpec("weather", "Tell the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
    request = Request(
        (user("Say hello in one word. Call no tool."),), tools=(weather,), tool_choice="required", sampling=SHORT
    )
    return (yield from _found("tools", request, lambda answer: "enforced" if answer.message.tool_calls else "ignored"))


def _seed() -> Program[Finding]:
    """One seed must give one text, and another seed another."""

    def request(seed: int) -> Request:
        return Request((user("Write ten random words."),), sampling=Sampling(1.0, None, 24, seed))

    first, second, other = yield from gather(_asked(request(seed)) for seed in (7, 7, 8))
    for answer in (first, second, other):
        if isinstance(answer, ModelError):
            return (yield from _told(_failed("seed", answer)))
    texts = [cast("Response", answer).text for answer in (first, second, other)]
    if texts[0] != texts[1]:
        return (yield from _told(Finding("seed", "ignored")))
    verdict: Verdict = "enforced" if texts[0] != texts[2] else "unknown"
    return (yield from _told(Finding("seed", verdict)))


def _memory() -> Program[list[Finding]]:
    """A prompt of more than 1,024 tokens, which is the least that providers keep, asked twice."""
    long = "Remember these numbers: " + " ".join(str(number) for number in range(1000, 1420)) + ". Reply with: ok"
    request = Request((user(long),), sampling=replace(SHORT, max_tokens=4))
    answer: Response | ModelError = yield from _asked(request)
    if isinstance(answer, Response):
        answer = yield from _asked(request)
    if isinstance(answer, ModelError):
        findings = [Finding("usage", "unknown", answer.message), Finding("cached tokens", "unknown", answer.message)]
    elif answer.usage is None:
        findings = [Finding("usage", "ignored"), Finding("cached tokens", "unknown", "the server tells no usage")]
    else:
        cached: Verdict = "enforced" if answer.usage.cache_read_tokens else "ignored"
        findings = [Finding("usage", "enforced"), Finding("cached tokens", cached)]
    for finding in findings:
        yield from _told(finding)
    return findings


# --- over HTTP --------------------------------------------------------------------------------------------------------


def resolve_permissive(name: str, settings: Settings) -> Target:
    """Resolve a name as if its server could do everything, so that everything can be asked for."""
    every = dict.fromkeys(get_args(Capability), True)
    return resolve(name, base_urls=settings.base_urls, overrides={name: every})


def probe(model: HttpModel, heard: Callable[[str], None] = lambda _: None) -> ProbeReport:
    """Find out what the server of a model does; about thirty short requests. `heard` gets a line per finding.

    Raises:
        ModelError: the server cannot be asked at all.
    """
    server = _server(model)
    runtime = Runtime(model, limits=UsageLimits(requests=60), width=1)
    for event in runtime.stream(probe_program()):
        if isinstance(event, Notice):
            heard(event.text)
        elif isinstance(event, RunResult):
            logprobs = _logprobs(model)
            heard(f"{logprobs.name}: {logprobs.verdict}")
            spent = event.spent
            findings = (*event.value, logprobs)
            return ProbeReport(
                model.target.model, model.target.base_url, findings, spent.requests + 1, spent.usage, server
            )
    raise AssertionError("a run ends with Done")


def _server(model: HttpModel) -> str:
    """What the list of models says of its server (`owned_by`); the local ones name themselves there."""
    try:
        data = parse(model.fetch("models").decode("utf-8", "replace"))
    except (ModelError, ValueError):
        return ""
    listed = item_at(data, "data")
    return text_at(listed[0], "owned_by") if isinstance(listed, list) and listed else ""


def _logprobs(model: HttpModel) -> Finding:
    call = model.target.codec.encode(Request((user("Reply with: ok"),), sampling=replace(SHORT, max_tokens=2)))
    body = cast("dict[str, Json]", json.loads(call.body)) | {"logprobs": True, "top_logprobs": 2}
    try:
        raw = model.send(WireRequest(call.path, canonical(body), call.headers))
    except (AuthenticationError, RateLimitError):
        raise
    except ModelError as error:
        return _failed("logprobs", error)
    told = re.search(rb'"logprobs"\s*:\s*\{', raw)
    return Finding("logprobs", "enforced" if told else "ignored")


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report that was kept, and the day it is of."""

    report: ProbeReport
    day: str = ""


def keep(settings: Settings, report: ProbeReport, day: str) -> None:
    """Write a report into the file, in place of an older one about the same model on the same server.

    Raises:
        ConfigError: the file is broken or cannot be written.
    """
    path = settings.probes_path
    data = _read(path)
    data[_place(report.base_url, report.model)] = {
        "day": day,
        "requests": report.requests,
        "server": report.server,
        "findings": {finding.name: [finding.verdict, finding.note] for finding in report.findings},
    }
    write_private(path, json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def kept(settings: Settings, target: Target) -> StoredReport | None:
    """Find the report about a model on its server.

    Raises:
        ConfigError: the file is broken.
    """
    data = _read(settings.probes_path).get(_place(target.base_url, target.model))
    found = item_at(data, "findings")
    if not isinstance(found, dict):
        return None
    findings = tuple(
        Finding(name, cast("Verdict", verdict), note)
        for name, (verdict, note) in ((name, _pair(pair)) for name, pair in found.items())
        if verdict in get_args(Verdict)
    )
    count = item_at(data, "requests")
    requests = count if isinstance(count, int) else 0
    report = ProbeReport(target.model, target.base_url, findings, requests, server=text_at(data, "server"))
    return StoredReport(report, text_at(data, "day"))


def probed(name: str, settings: Settings) -> Target:
    """Find where a model's name leads; what a probe found corrects the table, what a person set corrects the probe.

    Raises:
        ConfigError: the name cannot be used, or the file is broken.
    """
    target = resolve(name, base_urls=settings.base_urls, overrides=settings.capabilities)
    found = kept(settings, target)
    if found is None:
        return target
    capabilities: Mapping[Capability, bool] = found.report.capabilities
    wishes = {str(capability): can for capability, can in capabilities.items()} | dict(
        settings.capabilities.get(name, {})
    )
    return _report_json(resolve(name, base_urls=settings.base_urls, overrides={name: wishes}), found.report)


def _report_json(target: Target, report: ProbeReport) -> Target:
    """The target whose codec knows what the server was found to hold."""
    codec = target.codec
    if not isinstance(codec, ChatCompletions):
        return target
    held = tuple((each.name.removeprefix("schema."), each.verdict) for each in report.findings)
    return replace(target, codec=replace(codec, facts=replace(codec.facts, held=held)))


def _place(base_url: str, model: str) -> str:
    return f"{base_url}#{model}"


def _pair(pair: Json) -> tuple[str, str]:
    words = [word for word in pair if isinstance(word, str)] if isinstance(pair, list) else []
    return (words[0], words[1]) if len(words) > 1 else ("", "")


def _read(path: Path) -> dict[str, Json]:
    try:
        data = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:  # not UTF-8, or not JSON
        data = None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: not the JSON that `taiwa probe` writes; delete it and probe again")
    return data
