"""Trace a turn: its calls of models and tools with what they were given, its searches and scores, and the tokens of its answers.

Everything is read from the journal. The tokens of a model in this process are found by reading its answer again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING, cast

from taiwa.kernel.effects import CallTool, Complete, GetEvidence, Retrieve
from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import Evidence, Passage, Request, Response, TokenLogprob, ToolResult
from taiwa.kernel.records import Json, record, tag_of, value
from taiwa.operations.result_json import members, to_json
from taiwa.sessions.replay import RecordedStep, recorded_steps
from taiwa.sessions.repository import Repository

if TYPE_CHECKING:
    from taiwa.kernel.runtime import AnyModel
    from taiwa.models.inprocess.decode_loop import TokenTrace, TracedToken
    from taiwa.models.inprocess.generator import LoadedModel

DECISION = ("act", "policy", "reasons", "numbers", "scores", "evidence", "query", "queries")
NOT_SAMPLED = "the text was not sampled from a network, or is not kept as it was sampled"
DIGITS = 6
MOST_ALTERNATIVES = 20


@dataclass(frozen=True, slots=True)
class TraceResult:
    """The steps of a turn as JSON objects, each with its `kind`: `model`, `tool`, `search` or `evidence`.

    `decision` is what a turn of the flow `ask` decided by its scores. `whole` is False where the inputs of the steps are not
    known, because the turn cannot be done again from its records.
    """

    node: str
    steps: tuple[Mapping[str, Json], ...]
    decision: Mapping[str, Json]
    whole: bool


@value
class AnswerTokens:
    """The tokens of one answer of a model.

    `source` is `model` where the model has read the answer again, `recorded` where its server reported log probabilities, else
    "", and `note` says why. `exact` says that the tokens are the ones that were sampled. The model was made to begin with `prefix`,
    which `text` does not hold.
    """

    task: str
    model: str
    text: str
    source: str
    exact: bool
    note: str
    tokens: tuple[Mapping[str, Json], ...]
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class TokensResult:
    """The tokens of the answers that made a node, in the order of its calls."""

    node: str
    answers: tuple[AnswerTokens, ...]


def trace(repository: Repository, revision: str) -> TraceResult:
    """Return the calls, tools, searches and scores that made a node; nothing is called.

    Raises:
        InputError: the revision does not exist.
    """
    name = repository.store.resolve(revision)
    delta = repository.store.nodes.get(name).delta
    decided = delta if isinstance(delta, dict) and "decision" in delta else {}
    steps: list[Mapping[str, Json]] = []
    last: Request | None = None
    found = recorded_steps(repository, name)
    for step in found:
        request = step.effect.request if isinstance(step.effect, Complete) else None
        if (written := _step(step, last)) is not None:
            steps.append(written)
        last = request or last
    decision = {key: decided[key] for key in DECISION if key in decided}
    return TraceResult(name, tuple(steps), decision, all(step.effect is not None for step in found))


def _step(step: RecordedStep, last: Request | None) -> dict[str, Json] | None:
    """Write one step; None for what a trace does not show, such as the capabilities of a model."""
    answer, effect, entry = step.entry.answer, step.effect, step.entry
    if isinstance(effect, Complete) or isinstance(answer, Response):
        request = effect.request if isinstance(effect, Complete) else None
        return _model_step(request, answer if isinstance(answer, Response) else None, last) | _ending(entry)
    if isinstance(effect, CallTool) or isinstance(answer, ToolResult):
        called = effect if isinstance(effect, CallTool) else None
        result = answer if isinstance(answer, ToolResult) else None
        return {
            "kind": "tool",
            "name": called.name if called else (result.name if result else ""),
            "arguments": dict(called.arguments) if called else None,
            "text": result.text if result else None,
            "value": result.value if result else None,
            **_ending(entry),
        }
    if isinstance(effect, Retrieve):
        passages = cast("tuple[Passage, ...]", answer or ())
        return {"kind": "search", "query": effect.query, "passages": list(map(_passage, passages)), **_ending(entry)}
    if isinstance(effect, GetEvidence) and isinstance(answer, Evidence):
        return {"kind": "evidence", "query": effect.query, "figures": record(answer), **_ending(entry)}
    return None


def _model_step(request: Request | None, response: Response | None, last: Request | None) -> dict[str, Json]:
    written: dict[str, Json] = {"kind": "model"}
    if request is not None:
        constraint = request.constraint
        kind = None if constraint is None else tag_of(type(constraint))
        written |= {"task": request.task, "repair": _repairs(request, last), "constraint": kind}
    if response is not None:
        calls: list[Json] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in response.message.tool_calls
        ]
        usage: Json = None if response.usage is None else to_json(response.usage)
        written |= {
            "model": response.model,
            "text": response.text,
            "reasoning": "".join(part.text for part in response.message.thinking) or None,
            "tool_calls": calls,
            "finish": response.finish,
            "enforcement": None if response.enforcement is None else to_json(response.enforcement),
            "usage": usage,
        }
    return written


def _repairs(request: Request, last: Request | None) -> bool:
    """Report whether a request sends the last one again, with the answer that it got and what is wrong with it."""
    if last is None:
        return False
    sent, before = request.messages, last.messages
    roles = [message.role for message in sent[len(before) :]]
    return sent[: len(before)] == before and roles == ["assistant", "user"]


def _ending(entry: Entry) -> dict[str, Json]:
    error = entry.error.message if isinstance(entry.error, TaiwaError) else None
    if error is None and isinstance(entry.answer, ToolResult) and entry.answer.error:
        error = entry.answer.error
    return {"error": error, "ms": round(entry.seconds * 1000)}


def _passage(passage: Passage) -> Json:
    found = {"path": passage.source, "score": round(passage.score, 4)}
    end = passage.start + len(passage.text)
    return {**found, **members(passage, "title heading page? start"), "end": end, **members(passage, "id text")}


def tokens(
    repository: Repository, revision: str, model_named: Callable[[str], "AnyModel | None"], most: int = 5
) -> TokensResult:
    """Return the tokens of the answers that made a node, with the `most` likeliest ones at each position.

    A model in this process reads its answer again, under the constraint that it was written under; of others the log
    probabilities count that they reported. `model_named` returns a model by its name, or None.

    Raises:
        InputError: the revision does not exist, or `most` is out of range.
        ConfigError: a model cannot be loaded.
    """
    if not 0 <= most <= MOST_ALTERNATIVES:
        raise InputError(f"the number of alternatives must be from 0 to {MOST_ALTERNATIVES}, got {most}")
    name = repository.store.resolve(revision)
    asked = repository.store.runs.model_of(name)
    found: list[AnswerTokens] = []
    for step in recorded_steps(repository, name):
        if isinstance(step.entry.answer, Response):
            request = step.effect.request if isinstance(step.effect, Complete) else None
            answer = _tokens_of(request, step.entry.answer, asked, model_named, most)
            found.append(answer if request is None else replace(answer, prefix=request.prefix))
    return TokensResult(name, tuple(found))


def _tokens_of(
    request: Request | None, response: Response, asked: str, model_named: Callable[[str], "AnyModel | None"], most: int
) -> AnswerTokens:
    task, name = "" if request is None else request.task, response.model or asked
    model = model_named(name) or model_named(asked)
    note = _missing(request, model, name)
    if request is not None and model is not None:
        try:
            found = _read_again(model, request, response.text, most)
        except TaiwaError as error:
            note = f"{NOT_SAMPLED}: {error.message}"
        else:
            if found is not None:
                written = tuple(map(_traced, found.tokens))
                return AnswerTokens(task, name, response.text, "model", found.exact, found.refused, written)
    if response.logprobs:
        listed = tuple(_recorded(token, most) for token in response.logprobs)
        return AnswerTokens(task, name, response.text, "recorded", True, "", listed)
    return AnswerTokens(task, name, response.text, "", False, note, ())


def _read_again(model: "AnyModel", request: Request, text: str, most: int) -> "TokenTrace | None":
    """Let a model read its answer again; None for one that does not run in this process."""
    from taiwa.models.inprocess.generator import InProcessModel

    if not isinstance(model, InProcessModel):
        return None
    return cast("InProcessModel[LoadedModel]", model).trace(request, text, most)


def _missing(request: Request | None, model: "AnyModel | None", name: str) -> str:
    if request is None:
        return "the turn cannot be done again from its records"
    if model is None:
        return f"the model {name!r} is not served here, and its answer has no log probabilities"
    return f"{name} does not run in this process, and its answer has no log probabilities"


def _traced(token: "TracedToken") -> dict[str, Json]:
    alternatives: list[Json] = [
        {
            **_text(each.text), "allowed": each.allowed,
            "probability": round(each.probability, DIGITS), "unmasked": round(each.unmasked, DIGITS),
        }
        for each in token.alternatives
    ]  # fmt: skip
    return {
        **_text(token.text), "forced": token.forced, "probability": round(token.probability, DIGITS),
        "unmasked": round(token.unmasked, DIGITS), "allowed": token.allowed,
        **members(token.here, "pointer keyword expected"), "alternatives": alternatives,
    }  # fmt: skip


def _recorded(token: TokenLogprob, most: int) -> dict[str, Json]:
    alternatives: list[Json] = [
        {"text": text, "allowed": None, "probability": round(exp(logprob), DIGITS), "unmasked": None}
        for text, logprob in token.top_logprobs[:most]
    ]
    return {
        "text": token.token, "forced": False, "probability": round(exp(token.logprob), DIGITS), "unmasked": None,
        "allowed": None, "pointer": "", "keyword": "", "expected": "", "alternatives": alternatives,
    }  # fmt: skip


def _text(written: bytes) -> dict[str, Json]:
    """Write a token; one that is not whole characters has its bytes too."""
    try:
        return {"text": written.decode()}
    except UnicodeDecodeError:
        return {"text": written.decode("utf-8", "replace"), "bytes": list(written)}


@to_json.register
def _trace(result: TraceResult) -> Json:
    return {
        "node": result.node, "whole": result.whole, "steps": [dict(step) for step in result.steps],
        "decision": dict(result.decision) or None,
    }  # fmt: skip


@to_json.register
def _tokens(result: TokensResult) -> Json:
    answers: list[Json] = [
        {**members(each, "task model text prefix source exact note"), "tokens": [dict(token) for token in each.tokens]}
        for each in result.answers
    ]
    return {"node": result.node, "answers": answers}
