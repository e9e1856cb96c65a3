"""Probe what a server really enforces: ask the model to violate each constraint.

An answer that satisfies it anyway shows that the server enforces it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from taiwa.kernel.effects import Complete, Program, gather, notify, perform
from taiwa.kernel.errors import AuthenticationError, ModelError, OverloadedError, RateLimitError, UnsupportedError
from taiwa.kernel.execution import RunResult
from taiwa.kernel.messages import (
    Constraint,
    Grammar,
    JsonSchema,
    Notice,
    Regex,
    Request,
    Response,
    Sampling,
    ToolSpec,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json, is_number, item_at, items_at, parse_json, text_at
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.http_api.capabilities import Finding, ProbeReport, Verdict
from taiwa.models.http_api.client import HttpModel

WORD, OTHER = "qz7", "kw3"
"""Words that a model does not write unless asked."""


@dataclass(frozen=True, slots=True)
class ProbeCase:
    """One keyword: a schema, the violating JSON that the model is asked for, and a test of whether an answer satisfies it."""

    keyword: str
    schema: Mapping[str, Json]
    temptation: str
    satisfies: Callable[[Json], bool]


def _object(value: Json, *more: str) -> dict[str, Json]:
    """Return the schema of an object with a member `v`, and others that are always one word."""
    properties: dict[str, Json] = {"v": value}
    for name in more:
        properties[name] = {"enum": [WORD]}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _member(keyword: str, schema: Json, temptation: str, satisfies: Callable[[Json], bool]) -> ProbeCase:
    """Return a case about the member `v` of an object: strict servers accept only objects."""
    return ProbeCase(
        keyword, _object(schema), f'{{"v": {temptation}}}', lambda data: _names(data) == ["v"] and satisfies(item_at(data, "v"))
    )  # fmt: skip


def _names(data: Json) -> list[str]:
    return sorted(data) if isinstance(data, dict) else []


def _is_number(value: Json, low: float, high: float) -> bool:
    return is_number(value) and low <= value <= high


def _matches(pattern: str) -> Callable[[Json], bool]:
    """Return a test for texts that match a pattern."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _one_of_two(value: Json) -> bool:
    return value in (WORD, OTHER)


WORD_BY_NAME: dict[str, Json] = {"$defs": {"word": {"enum": [WORD]}}}

LETTERS: list[Json] = ["a", "b", "c", "d", "e", "f"]

EITHER: Json = [{"const": WORD}, {"const": OTHER}]

PROBE_CASES = (
    _member("enum", {"enum": [WORD, OTHER]}, '"blue"', _one_of_two),
    ProbeCase("required", _object({"enum": [WORD]}, "w"), "{}", lambda data: _names(data) == ["v", "w"]),
    ProbeCase(
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
    _member("maxLength", {"type": "string", "maxLength": 3}, '"a longer text"', _matches(r"(?s).{0,3}")),
    _member("pattern", {"type": "string", "pattern": "^[xyz]{4}$"}, '"abcd"', _matches("[xyz]{4}")),
    _member("format", {"type": "string", "format": "date"}, '"tomorrow"', _matches(r"\d{4}-\d\d-\d\d")),
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
    ProbeCase(
        "$ref", _object({"$ref": "#/$defs/word"}) | WORD_BY_NAME, '{"v": "blue"}',
        lambda data: data == {"v": WORD},
    ),
)  # fmt: skip

SHORT = Sampling(temperature=0.0, max_tokens=48)

BEGUN = re.compile(r'\s*\{\s*"[vw]"\s*:')
"""The beginning of the requested JSON."""

ROOMY = Sampling(temperature=0.0, max_tokens=300)
"""A small model under a grammar may write white space wherever it is allowed."""


# --- JSON Schema ------------------------------------------------------------------------------------------------------


def _schema_checks() -> Program[tuple[Finding, ...]]:
    """Check every keyword; if a server refuses the simplest schema, skip the others."""
    findings: list[Finding] = []
    for case in PROBE_CASES:
        name = f"schema.{case.keyword}"
        if findings and findings[0].verdict == "refused":
            findings.append((yield from _report(Finding(name, "refused", findings[0].note))))
            continue
        # A request for a valid answer would be met without any enforcement.
        prompt = f"Reply with exactly this JSON and nothing else: {case.temptation}"
        request = Request((user(prompt),), constraint=JsonSchema(case.schema), sampling=ROOMY)
        findings.append((yield from _check(name, request, partial(_judge_json, case.satisfies))))
    return tuple(findings)


def _judge_json(satisfies: Callable[[Json], bool], answer: Response) -> Verdict:
    try:
        data = parse_json(answer.text)
    except ValueError:
        # A small model under a grammar may write white space, or digits, up to the limit.
        blank = sum(each.isspace() for each in answer.text)
        is_begun = 2 * blank > len(answer.text) or BEGUN.match(answer.text) is not None
        return "unknown" if not answer.text or (answer.finish == "length" and is_begun) else "ignored"
    return "enforced" if satisfies(data) else "ignored"


# --- all other checks -------------------------------------------------------------------------------------------------


def probe_program() -> Program[tuple[Finding, ...]]:
    """Run every check that a request can express; each finding is also sent as a notice.

    Raises:
        AuthenticationError, RateLimitError: the server does not answer this key.
    """
    findings = [(yield from _stop()), (yield from _prefix())]
    findings.append((yield from _constraint("regex", Regex("[xyz]{4}"), _matches("[xyz]{4}"))))
    findings.append((yield from _constraint("grammar", Grammar('start: "qz7" | "kw3"'), _one_of_two)))
    findings.append((yield from _tools()))
    findings.append((yield from _seed()))
    findings += yield from _usage()
    findings += yield from _schema_checks()
    request = Request((user("Reply with: ok"),), sampling=replace(SHORT, max_tokens=2), top_logprobs=2)
    return (
        *findings,
        (yield from _check("logprobs", request, lambda answer: "enforced" if answer.decoding.logprobs else "ignored")),
    )


def _complete(request: Request) -> Program[Response | ModelError]:
    try:
        return (yield from perform(Complete(request)))
    except (AuthenticationError, RateLimitError):
        raise
    except ModelError as error:
        if isinstance(error, OverloadedError) and error.status is None:
            raise  # the server cannot be reached
        return error


def _check(name: str, request: Request, judge: Callable[[Response], Verdict]) -> Program[Finding]:
    answer = yield from _complete(request)
    if isinstance(answer, ModelError):
        finding = _failed(name, answer)
    elif answer.finish == "refusal" or (answer.finish == "length" and not (answer.text or answer.message.tool_calls)):
        finding = Finding(name, "unknown", "the model did not write anything")
    else:
        finding = Finding(name, judge(answer))
    return (yield from _report(finding))


def _failed(name: str, error: ModelError) -> Finding:
    if isinstance(error, UnsupportedError) and error.status is None:
        return Finding(name, "unknown", "the request cannot be expressed for this server")
    refused = error.status is not None and 400 <= error.status < 500
    return Finding(name, "refused" if refused else "unknown", error.message)


def _report(finding: Finding) -> Program[Finding]:
    yield from notify(f"{finding.name}: {finding.verdict}", code="probe")
    return finding


def _stop() -> Program[Finding]:
    """Stop at four characters, one of which every longer text contains."""
    stops = ("e", "a", "o", " ")

    def judge(answer: Response) -> Verdict:
        if any(stop in answer.text for stop in stops):
            return "ignored"
        return "enforced" if answer.finish == "stop" else "unknown"

    request = Request((user("Repeat: The quick brown fox jumps over the lazy dog."),), stop=stops, sampling=SHORT)
    return (yield from _check("stop", request, judge))


def _prefix() -> Program[Finding]:
    """Let the model continue the first half of its own answer; it should write the second half."""
    request = Request((user("Count from one to twelve in English words."),), sampling=SHORT)
    whole = yield from _complete(request)
    if isinstance(whole, ModelError) or len(whole.text) < 16:
        return (yield from _report(Finding("prefix", "unknown", "the model did not write anything")))
    text = whole.text
    cut = next((at for at in range(len(text) // 2, len(text) - 8) if text[at - 1] == ","), len(text) // 2)

    def judge(answer: Response) -> Verdict:
        if answer.text.lstrip().startswith(text[cut:].lstrip()[:6]):
            return "enforced"
        return "ignored" if answer.text.lstrip().startswith(text.lstrip()[:8]) else "unknown"

    return (yield from _check("prefix", replace(request, prefix=text[:cut]), judge))


def _constraint(name: str, constraint: Constraint, satisfies: Callable[[Json], bool]) -> Program[Finding]:
    request = Request((user("Reply with the word blue and nothing else."),), constraint=constraint, sampling=SHORT)
    return (yield from _check(name, request, lambda answer: "enforced" if satisfies(answer.text) else "ignored"))


def _tools() -> Program[Finding]:
    weather = ToolSpec("weather", "Tell the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
    request = Request(
        (user("Say hello in one word. Call no tool."),), tools=(weather,), tool_choice="required", sampling=SHORT
    )
    return (yield from _check("tools", request, lambda answer: "enforced" if answer.message.tool_calls else "ignored"))


def _seed() -> Program[Finding]:
    """Check that one seed gives the same text twice, and another seed another text."""

    def request(seed: int) -> Request:
        return Request((user("Write ten random words."),), sampling=Sampling(1.0, None, 24, seed))

    first, second, other = yield from gather(_complete(request(seed)) for seed in (7, 7, 8))
    for answer in (first, second, other):
        if isinstance(answer, ModelError):
            return (yield from _report(_failed("seed", answer)))
    texts = [cast("Response", answer).text for answer in (first, second, other)]
    if texts[0] != texts[1]:
        return (yield from _report(Finding("seed", "ignored")))
    verdict: Verdict = "enforced" if texts[0] != texts[2] else "unknown"
    return (yield from _report(Finding("seed", verdict)))


def _usage() -> Program[list[Finding]]:
    """Send a prompt of more than 1,024 tokens, the least that providers cache, twice."""
    long = "Remember these numbers: " + " ".join(str(number) for number in range(1000, 1420)) + ". Reply with: ok"
    request = Request((user(long),), sampling=replace(SHORT, max_tokens=4))
    answer: Response | ModelError = yield from _complete(request)
    if isinstance(answer, Response):
        answer = yield from _complete(request)
    if isinstance(answer, ModelError):
        findings = [Finding(name, "unknown", answer.message) for name in ("usage", "cached tokens")]
    elif answer.usage is None:
        unknown = Finding("cached tokens", "unknown", "the server does not report usage")
        findings = [Finding("usage", "ignored"), unknown]
    else:
        cached: Verdict = "enforced" if answer.usage.cache_read_tokens else "ignored"
        findings = [Finding("usage", "enforced"), Finding("cached tokens", cached)]
    for finding in findings:
        yield from _report(finding)
    return findings


# --- over HTTP --------------------------------------------------------------------------------------------------------


def probe(model: HttpModel, report: Callable[[str], None] = lambda _: None) -> ProbeReport:
    """Probe the server of a model with about thirty short requests; `report` is called with a line per finding.

    Raises:
        ModelError: the server does not answer at all.
    """
    server = server_name(model)
    runtime = Runtime(model, limits=UsageLimits(requests=60), width=1)
    for event in runtime.stream(probe_program()):
        if isinstance(event, Notice):
            report(event.text)
        elif isinstance(event, RunResult):
            target, spent = model.target, event.spent
            return ProbeReport(target.model, target.base_url, event.value, spent.requests, spent.usage, server)
    raise AssertionError("a run ends with a RunResult")


def server_name(model: HttpModel) -> str:
    """Return the name of the server in the list of models (`owned_by`), where local servers give it."""
    try:
        data = parse_json(model.fetch("models"))
    except (ModelError, ValueError):
        return ""
    return next((text_at(each, "owned_by") for each in items_at(data, "data")), "")
