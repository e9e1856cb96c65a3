"""Trace a turn: its calls of models and tools with what they were given, its searches and scores, and the tokens of its answers.

Everything is read from the journal. The tokens of a model in this process are found by reading its answer again.
"""

from collections.abc import Callable, Mapping
from math import exp
from typing import TYPE_CHECKING, Annotated

from taiwa.kernel.effects import CallTool, Complete, Retrieve
from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import Found, Request, Response, TokenLogprob, ToolResult
from taiwa.kernel.serialization import Json, record, tag_of, value
from taiwa.kernel.wording import Wording
from taiwa.operations.result_json import or_null, passage_to_json, to_json
from taiwa.sessions.repository import Repository

if TYPE_CHECKING:
    from taiwa.kernel.runtime import AnyModel
    from taiwa.models.inprocess.decode_loop import TokenTrace, TracedToken
    from taiwa.sessions.replay import RecordedStep


DECISION = ("act", "policy", "reasons", "numbers", "scores", "evidence", "query", "queries")
NOT_SAMPLED = "the text was not sampled from a network, or is not kept as it was sampled"
DIGITS = 6
MOST_ALTERNATIVES = 20


@value
class TraceResult:
    """The steps of a turn as JSON objects, each with its `kind`: `model`, `tool` or `search`.

    `decision` is the decision of a turn of the flow `ask`. `whole` is False if the inputs of the steps are unknown, because
    the turn cannot be replayed.
    """

    node: str
    whole: bool
    steps: tuple[Mapping[str, Json], ...]
    decision: Annotated[Mapping[str, Json], or_null]


@value
class AnswerTokens:
    """The tokens of one answer of a model.

    `source` is `model` if the model read the answer again, `recorded` if its server reported log probabilities, else "", and
    `note` says why. `exact` says that the tokens are the sampled ones. `prefix` is the prefilled beginning, which `text`
    does not include.
    """

    role: str
    model: str
    text: str
    prefix: str
    source: str
    exact: bool
    note: str
    tokens: tuple[Mapping[str, Json], ...] = ()


@value
class TokensResult:
    """The tokens of the answers of a node, in the order of its calls."""

    node: str
    answers: tuple[AnswerTokens, ...]


def trace(repository: Repository, revision: str) -> TraceResult:
    """Return the calls, tools, searches and scores of a node, without calling anything.

    Raises:
        InputError: the revision does not exist.
    """
    from taiwa.sessions.replay import recorded_steps

    name = repository.store.resolve(revision)
    from taiwa.flows.ask.ask_result import documents_of

    decided = documents_of(repository.store.nodes.get(name).findings) or {}
    steps: list[Mapping[str, Json]] = []
    last: Request | None = None
    found = recorded_steps(repository, name)
    for step in found:
        request = step.effect.request if isinstance(step.effect, Complete) else None
        if (written := _step(step, last)) is not None:
            steps.append(written)
        last = request or last
    decision = {key: decided[key] for key in DECISION if key in decided}
    return TraceResult(name, all(step.effect is not None for step in found), tuple(steps), decision)


def _step(step: "RecordedStep", last: Request | None) -> dict[str, Json] | None:
    """Write one step; None for effects that a trace omits, such as the capabilities of a model."""
    answer, effect, entry = step.entry.answer, step.effect, step.entry
    if isinstance(effect, Complete) or isinstance(answer, Response):
        asked = effect if isinstance(effect, Complete) else None
        return _model_step(asked, answer if isinstance(answer, Response) else None, last) | _ending(entry)
    if isinstance(effect, CallTool) or isinstance(answer, ToolResult):
        called = effect if isinstance(effect, CallTool) else None
        result = answer if isinstance(answer, ToolResult) else None
        return {
            "kind": "tool",
            "name": called.name if called else (result.name if result else ""),
            "arguments": dict(called.arguments) if called else None,
            "text": result.as_text if result else None,
            "value": result.value if result else None,
            "attachments": to_json(result.attachments if result else ()),
            **_ending(entry),
        }
    if isinstance(effect, Retrieve):
        found = answer if isinstance(answer, Found) else Found()
        return {
            "kind": "search",
            "query": effect.query,
            "passages": list(map(passage_to_json, found.passages)),
            "figures": record(found.evidence),
            **_ending(entry),
        }
    return None


def _model_step(asked: Complete | None, response: Response | None, last: Request | None) -> dict[str, Json]:
    written: dict[str, Json] = {"kind": "model"}
    if asked is not None:
        constraint = asked.request.constraint
        kind = None if constraint is None else tag_of(type(constraint))
        written |= {"role": asked.role, "repair": _repairs(asked.request, last), "constraint": kind}
    if response is not None:
        written |= {
            "model": response.model,
            "text": response.text,
            "reasoning": "".join(part.text for part in response.message.thinking) or None,
            "tool_calls": [
                {"id": call.id, "name": call.name, "arguments": call.arguments} for call in response.message.tool_calls
            ],
            "finish": response.finish,
            "enforcement": to_json(response.decoding.enforcement),
            "usage": to_json(response.usage),
        }
    return written


def _repairs(request: Request, last: Request | None) -> bool:
    """Return whether a request repeats the last one, with its answer and the diagnostics."""
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


def tokens(
    repository: Repository, revision: str, model_named: Callable[[str], "AnyModel | None"], most: int = 5
) -> TokensResult:
    """Return the tokens of the answers of a node, with the `most` likeliest ones at each position.

    A model in this process reads its answer again under the same constraint; for others the reported log probabilities are
    used. `model_named` returns a model by its name, or None.

    Raises:
        InputError: the revision does not exist, or `most` is out of range.
        ConfigError: a model cannot be loaded.
    """
    from taiwa.sessions.replay import recorded_steps

    if not 0 <= most <= MOST_ALTERNATIVES:
        raise InputError(f"the number of alternatives must be from 0 to {MOST_ALTERNATIVES}, got {most}")
    name = repository.store.resolve(revision)
    asked = repository.store.runs.model_of(name)
    found: list[AnswerTokens] = []
    for step in recorded_steps(repository, name):
        if isinstance(step.entry.answer, Response):
            effect = step.effect if isinstance(step.effect, Complete) else None
            found.append(_tokens_of(effect, step.entry.answer, asked, model_named, most))
    return TokensResult(name, tuple(found))


def _tokens_of(
    effect: Complete | None, response: Response, asked: str, model_named: Callable[[str], "AnyModel | None"], most: int
) -> AnswerTokens:
    request, role, prefix = (None, "", "") if effect is None else (effect.request, effect.role, effect.request.prefix)
    name = response.model or asked
    model = model_named(name) or model_named(asked)
    note = _missing(request, model, name)
    if request is not None and model is not None:
        try:
            found = _read_again(model, request, response, most)
        except TaiwaError as error:
            note = f"{NOT_SAMPLED}: {error.message}"
        else:
            if found is not None:
                written = tuple(map(_traced, found.tokens))
                return AnswerTokens(role, name, response.text, prefix, "model", found.exact, found.refused, written)
    if response.decoding.logprobs:
        listed = tuple(_recorded(token, most) for token in response.decoding.logprobs)
        return AnswerTokens(role, name, response.text, prefix, "recorded", True, "", listed)
    return AnswerTokens(role, name, response.text, prefix, "", False, note)


def _read_again(model: "AnyModel", request: Request, response: Response, most: int) -> "TokenTrace | None":
    """Let a model read its answer again; None for one that does not run in this process."""
    from taiwa.models.providers import in_process

    inside = in_process(model)
    return None if inside is None else inside.trace(request, response, most)


def _missing(request: Request | None, model: "AnyModel | None", name: str) -> str:
    if request is None:
        return "the turn cannot be replayed from its journal"
    if model is None:
        return Wording("the model {name!r} is not served here, and its answer has no log probabilities", name=name)
    return Wording("{name} does not run in this process, and its answer has no log probabilities", name=name)


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
        "pointer": token.here.pointer, "keyword": token.here.keyword, "expected": token.here.expected,
        "alternatives": alternatives,
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
    """Write a token; one that is not valid UTF-8 has its bytes too."""
    try:
        return {"text": written.decode()}
    except UnicodeDecodeError:
        return {"text": written.decode("utf-8", "replace"), "bytes": list(written)}
