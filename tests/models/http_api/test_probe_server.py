import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from taiwa.kernel.errors import AuthenticationError, ConfigError, ModelError, OverloadedError
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Decoding,
    Grammar,
    JsonSchema,
    Regex,
    Request,
    StreamEnd,
    TextDelta,
    TokenLogprob,
    ToolCall,
    Usage,
)
from taiwa.kernel.runtime import Runtime
from taiwa.models.http_api.capabilities import Finding, ProbeReport, Verdict, load_report, save_report
from taiwa.models.http_api.client import HttpModel, RetryPolicy
from taiwa.models.http_api.probe_server import (
    probe,
    probe_program,
)
from taiwa.models.providers import resolve, resolve_permissive, resolve_probed
from taiwa.settings import ModelSettings, Settings, load, set_value
from tests.peers.faults import FaultServer, speech, status

SAID = "one, two, three, four, five, six, seven"
FITTING = {
    "integer": 42, "number": 0.5, "multipleOf": 74, "maxLength": "abc", "pattern": "xyzx", "format": "2026-01-31",
    "array": ["qz7", "qz7"], "uniqueItems": ["f", "e", "d", "c", "b", "a"],
}  # fmt: skip


class Obedient:
    """A model whose server holds every rule that it is told to hold."""

    name = "obedient"
    capabilities: frozenset[Capability] = frozenset()

    def stream(self, request: Request) -> Iterator[Chunk]:
        text = self.text(request)
        calls = (ToolCall("weather", "{}"),) if request.tools else ()
        yield TextDelta(text)
        usage = Usage(1200, 5, cache_read_tokens=1100)
        decoding = Decoding((TokenLogprob("ok", -0.1),) * bool(request.top_logprobs))
        yield StreamEnd("tool_calls" if calls else "stop", None, usage, "m", calls, decoding)

    def text(self, request: Request) -> str:
        match request.constraint:
            case JsonSchema(schema):
                return json.dumps(self.fitting(dict(schema)))
            case Regex():
                return "xyzz"
            case Grammar():
                return "kw3"
            case _ if request.sampling.seed is not None:
                return f"random {request.sampling.seed}"
            case _ if request.stop:
                return "Th"
        return SAID.removeprefix(request.prefix)

    def fitting(self, schema: dict) -> object:
        if "properties" in schema:
            return {name: self.fitting(part) for name, part in schema["properties"].items()}
        if "enum" in schema or "oneOf" in schema or "anyOf" in schema or "const" in schema or "$ref" in schema:
            return "qz7"
        return FITTING[next(name for name in reversed(FITTING) if name in schema or name == schema["type"])]


class Deaf(Obedient):
    """A model that does what the words say, on a server that drops every rule."""

    def __init__(self) -> None:
        self.calls = 0

    def stream(self, request: Request) -> Iterator[Chunk]:
        self.calls += 1
        said = request.messages[-1].text
        text = said.partition(": ")[2] if isinstance(request.constraint, JsonSchema) else f"blue {SAID}"
        yield TextDelta(text if request.sampling.seed is None else f"{self.calls} random words")
        yield StreamEnd()


class Refusing(Obedient):
    """A model whose server refuses whatever it does not know."""

    def __init__(self, error: ModelError) -> None:
        self.error = error
        self.requests: list[Request] = []

    def stream(self, request: Request) -> Iterator[Chunk]:
        self.requests.append(request)
        raise self.error
        yield


def verdicts(findings: tuple[Finding, ...]) -> dict[str, str]:
    return {finding.name: finding.verdict for finding in findings}


def test_a_server_that_holds_every_rule_is_believed() -> None:
    findings = Runtime(Obedient()).run(probe_program())

    assert set(verdicts(findings).values()) == {"enforced"}
    assert ProbeReport("m", "u", findings).capabilities == {
        "stop": True, "prefix": True, "tools": True, "json_schema": True, "regex": True, "grammar": True, "seed": True, "logprobs": True,
    }  # fmt: skip
    assert {"enum", "pattern", "uniqueItems", "oneOf", "required", "$ref"} <= {
        each.name.removeprefix("schema.") for each in findings if each.verdict == "enforced"
    }


def test_a_server_that_drops_every_rule_is_found_out() -> None:
    findings = Runtime(Deaf()).run(probe_program())

    assert {name for name, verdict in verdicts(findings).items() if verdict != "ignored"} == {"cached tokens"}
    assert set(ProbeReport("m", "u", findings).capabilities.values()) == {False}


def test_a_server_that_refuses_a_schema_is_asked_for_no_second_one() -> None:
    model = Refusing(ModelError("no such field", status=400))

    findings = Runtime(model).run(probe_program())

    asked = [request for request in model.requests if isinstance(request.constraint, JsonSchema)]
    assert len(asked) == 1
    schema = {verdict for name, verdict in verdicts(findings).items() if name.startswith("schema.")}
    assert schema == {"refused"}
    assert ProbeReport("m", "u", findings).capabilities["json_schema"] is False


@pytest.mark.parametrize(
    "error",
    [AuthenticationError("no key", status=401), OverloadedError("nothing listens there")],
    ids=["no key", "nobody there"],
)
def test_a_server_that_cannot_be_reached_ends_the_probe(error: ModelError) -> None:
    with pytest.raises(type(error)):
        Runtime(Refusing(error)).run(probe_program())


def test_a_failure_in_between_leaves_the_question_open() -> None:
    findings = Runtime(Refusing(OverloadedError("busy", status=503))).run(probe_program())

    assert set(verdicts(findings).values()) == {"unknown"}
    assert ProbeReport("m", "u", findings).capabilities == {}


def test_an_answer_that_is_not_there_does_not_tell() -> None:
    class Thinking(Obedient):
        def stream(self, request: Request) -> Iterator[Chunk]:
            yield StreamEnd("length")

    findings = Runtime(Thinking()).run(probe_program())

    assert set(verdicts(findings).values()) <= {"unknown", "ignored"}
    assert "json_schema" not in ProbeReport("m", "u", findings).capabilities


def test_every_finding_is_reported_as_it_arrives_and_the_usage_is_in_the_report(faults: FaultServer) -> None:
    listed = status(200, b'{"data": [{"id": "m", "owned_by": "llamacpp"}]}')
    faults.plays(listed, listed, speech("the answer, always"))
    heard: list[str] = []
    with HttpModel(
        resolve_permissive(f"{faults.base_url}#m", load({}, {"HOME": "/"})), retry=RetryPolicy(attempts=1)
    ) as model:
        report = probe(model, heard.append)

    assert heard == [f"{finding.name}: {finding.verdict}" for finding in report.findings]
    assert report.server == "llamacpp"
    sent = len([seen for seen in faults.seen if seen.method == "POST"])
    assert sent <= report.requests <= 30
    assert report.usage.output_tokens == 3 * sent


def test_a_key_that_a_server_repeats_is_in_no_finding_and_no_file(faults: FaultServer, tmp_path: Path) -> None:
    key = "canary-0123456789-key"
    settings = load({}, {}, tmp_path / "config.yaml")
    complaint = f'{{"error": {{"message": "the key {key} may not do this"}}}}'.encode()
    faults.plays(status(400, complaint))
    heard: list[str] = []

    with HttpModel(resolve_permissive(f"{faults.base_url}#m", settings), key) as model:
        report = probe(model, heard.append)
    set_value(settings.path, "model", f"{faults.base_url}#m")
    save_report(settings, replace(report, day="2026-11-21"))

    assert "refused" in {finding.verdict for finding in report.findings}
    assert "canary" not in f"{report!r} {heard}"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


# --- what is kept of it -----------------------------------------------------------------------------------------------

NAME = "http://127.0.0.1:8080/v1#m"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({}, {}, tmp_path / "config.yaml")


def report(**found: Verdict) -> ProbeReport:
    findings = tuple(Finding(name, verdict, "a word") for name, verdict in found.items())
    return ProbeReport("m", "http://127.0.0.1:8080/v1", findings, 27, server="llamacpp")


def test_what_was_kept_is_found_again(settings: Settings) -> None:
    save_report(settings, replace(report(stop="ignored", tools="enforced"), day="2026-11-21"))

    found = load_report(settings, resolve(NAME))

    assert found is not None
    assert found == replace(report(stop="ignored", tools="enforced"), day="2026-11-21")
    assert load_report(settings, resolve("http://127.0.0.1:8080/v1#another")) is None


def test_a_probe_corrects_the_table_and_a_person_corrects_the_probe(settings: Settings) -> None:
    save_report(
        settings, replace(report(stop="ignored", tools="enforced", seed="enforced", prefix="unknown"), day="2026-11-21")
    )
    mine = replace(settings, models=ModelSettings(capabilities={NAME: {"seed": False}}))

    table = resolve("llamacpp:m").capabilities
    assert resolve(NAME).capabilities == {"stop"}
    assert resolve_probed(NAME, settings).capabilities == table - {"stop"}
    assert resolve_probed(NAME, mine).capabilities == table - {"stop", "seed"}


def test_a_later_probe_replaces_the_earlier(settings: Settings) -> None:
    save_report(settings, replace(report(stop="ignored"), day="2026-11-21", server=""))
    save_report(settings, replace(report(stop="enforced"), day="2026-11-22", server=""))

    assert resolve_probed(NAME, settings).capabilities == {"stop"}


@pytest.mark.parametrize("text", ["{", "[]", "\xff", '"x"'])
def test_a_broken_file_is_named_with_its_mend(settings: Settings, text: str) -> None:
    settings.probes_path.write_text(text, encoding="latin-1")

    with pytest.raises(ConfigError, match=r"probes\.json is not .*probe again"):
        resolve_probed(NAME, settings)


@pytest.mark.parametrize("entry", ["1", "{}", '{"findings": {"stop": "enforced", "seed": ["never", ""]}}'])
def test_an_entry_of_another_form_says_nothing(settings: Settings, entry: str) -> None:
    settings.probes_path.write_text(f'{{"{NAME}": {entry}}}')

    assert resolve_probed(NAME, settings).capabilities == {"stop"}
