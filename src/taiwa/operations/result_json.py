"""The JSON of results and of stored values: what `--json` prints and a server returns."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from taiwa.conversation.state_paths import format_path
from taiwa.flows.retry_invalid_output import Attempt
from taiwa.flows.solve.rationale import ExecutedCall, Rationale
from taiwa.kernel.messages import Enforcement
from taiwa.kernel.records import Json, record
from taiwa.kernel.usage_limits import RunUsage
from taiwa.operations.generate import describe_constraint, token_text
from taiwa.operations.results import (
    BatchResult,
    CostResult,
    DiffResult,
    EmbeddingsResult,
    ExplainResult,
    ExtractResult,
    FindResult,
    GenerateResult,
    MarkedPassage,
    ParseResult,
    RequestPreview,
    SchemaResult,
    SessionTree,
    ShowResult,
    SolveResult,
    StateResult,
    TurnEntry,
    ValueEntry,
    WhyResult,
)
from taiwa.sessions.batch import BatchRow
from taiwa.sessions.durable_turn import TurnResult
from taiwa.sessions.replay import ReplayedNode
from taiwa.sessions.stored_extract import TypedRow
from taiwa.store import Hit, Ref
from taiwa.structured import Fix

if TYPE_CHECKING:
    from taiwa.ask.result import AskResult
    from taiwa.retrieval.ingest import RefreshReport
    from taiwa.retrieval.types import DocumentListing, IndexSummary

NANO = 1e9
"""Billionths of the currency unit, in which costs are counted."""


@singledispatch
def to_json(result: Any) -> Json:  # noqa: ANN401  (any of the results)
    """Return a result as JSON."""
    raise TypeError(f"{type(result).__name__} is not a result of an operation")


@to_json.register(tuple)
@to_json.register(list)
def _sequence(results: Sequence[Any]) -> Json:
    return [to_json(each) for each in results]


def turn_to_json(turn: TurnResult) -> dict[str, Json]:
    """Return a turn as JSON, with its place in the store."""
    return {
        "session": turn.session,
        "node": turn.node,
        "parent": turn.parent,
        "text": turn.text,
        "delta": turn.delta,
        "warnings": list(turn.warnings),
        "usage": usage_to_json(turn.spent),
        "cost": cost_of(turn.spent.cost),
        "seconds": round(turn.spent.seconds, 3),
    }


to_json.register(TurnResult)(turn_to_json)


def ask_to_json(question: str, turn: TurnResult, ask: "AskResult | None" = None) -> dict[str, Json]:
    """Return a turn of the app `ask` as JSON: the question, the decision, the passages, the answer, and the bill."""
    ask = ask or turn.ask
    assert ask is not None, "a turn of the app ask has a result"
    delta = ask.to_delta()
    cited = [citation for claim in _rows(delta.get("claims")) for citation in _rows(claim.get("citations"))]
    decision = ("act", "policy", "reasons", "language", "numbers", "scores", "evidence", "query", "queries", "passages")
    answer = ("documented", "is_uncertain", "source", "missing", "assumption", "case")
    return {
        "question": question,
        **{name: delta.get(name) for name in decision},
        "answer": delta.get("answer") if ask.act_name == "search" else None,
        "claims": delta.get("claims") or [],
        "citations": [each for at, each in enumerate(cited) if each not in cited[:at]],
        "options": delta.get("options") or [],
        **{name: delta.get(name) for name in answer},
        **{name: each for name, each in turn_to_json(turn).items() if name != "delta"},
    }


def _rows(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


@to_json.register(SolveResult)
def _solved(result: SolveResult) -> Json:
    return rationale_to_json(result.rationale, result.spent)


def rationale_to_json(rationale: Rationale, spent: RunUsage) -> dict[str, Json]:
    """Return a rationale as JSON."""
    return {
        "answer": rationale.answer,
        "answered_by": rationale.answered_by,
        "value": rationale.value,
        "ending": rationale.ending,
        "tool_mode": rationale.tool_mode,
        "text": rationale.text,
        "calls": [_tool_call(called) for called in rationale.calls],
        "usage": reported_usage_to_json(spent),
        "cost": cost_of(spent.cost),
        "max_cost": cost_of(spent.max_cost),
        "milliseconds": round(spent.seconds * 1000),
    }


def _tool_call(called: ExecutedCall) -> dict[str, Json]:
    result = called.result
    return {
        "tool": called.name,
        "input": called.input,
        "text": result.text,
        "value": result.value,
        "origin": result.origin,
        "error": result.error,
    }


@to_json.register(ExtractResult)
def _extracted(result: ExtractResult) -> Json:
    return {
        "value": result.value,
        "attempts": [attempt_to_json(each) for each in result.attempts],
        "usage": usage_to_json(result.spent),
        "cost": cost_of(result.spent.cost),
        "seconds": round(result.spent.seconds, 3),
    }


@to_json.register(ParseResult)
def _parsed(result: ParseResult) -> Json:
    return {"value": result.value, "fixes": [fix_to_json(fix) for fix in result.fixes], "guessed": result.guessed}


@to_json.register(SchemaResult)
def _schema(result: SchemaResult) -> Json:
    return {
        "style": result.style,
        "text": result.texts[result.style],
        "tokens": dict[str, Json](result.tokens),
        "relaxed": list[Json](result.relaxed),
        "unsupported": list[Json](result.unsupported),
    }


@to_json.register(GenerateResult)
def _generated(answer: GenerateResult) -> Json:
    usage = answer.usage
    made: dict[str, Json] = {
        "text": answer.text,
        "finish": answer.finish,
        "stop": answer.stop,
        "fits": answer.fits,
        "why": answer.why or None,
        "enforcement": enforcement_to_json(answer.enforcement),
        "usage": None
        if usage is None
        else {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
        },
    }
    if answer.parts:
        tokens: list[Json] = [{"text": text, "forced": forced} for text, forced in answer.parts]
        made |= {"tokens": tokens, "forwards": answer.forwards, "sparse_forwards": answer.sparse}
    return made


@to_json.register(ExplainResult)
def _explained(result: ExplainResult) -> Json:
    vocabulary = result.guide.vocabulary
    steps: list[Json] = [
        {
            "text": step.text.decode("utf-8", "replace"),
            "token": step.token,
            "written": token_text(vocabulary, step),
            "state": int(step.place) if step.place else None,
            "allowed": step.told.count,
            "examples": list(step.told.examples),
            "pointer": step.told.pointer,
            "keyword": step.told.keyword,
            "expected": step.told.expected,
            "forced": step.forced,
            "final": step.final,
            "why": step.why,
        }
        for step in result.walk.steps
    ]
    return {
        "source": {"kind": result.kind, "title": result.title},
        "engine": result.engine,
        "vocabulary": {"name": vocabulary.name, "tokens": len(vocabulary)},
        "about": list(describe_constraint(result)),
        "steps": steps,
        "accepted": result.walk.accepted,
        "refused": result.walk.refused is not None,
    }


@to_json.register(FindResult)
def _found(result: FindResult) -> Json:
    return [to_json(each) for each in result.passages]


@to_json.register(MarkedPassage)
def _passage(found: MarkedPassage) -> Json:
    passage = found.passage
    ranges: list[Json] = [[start, end] for start, end in found.marks]
    return {
        "path": passage.source, "score": round(passage.score, 4), "title": passage.title,
        "heading": list[Json](passage.heading), "page": passage.page or None, "start": passage.start,
        "end": passage.start + len(passage.text), "id": passage.id, "text": passage.text, "marks": ranges,
    }  # fmt: skip


@to_json.register(RequestPreview)
def _preview(preview: RequestPreview) -> dict[str, Json]:
    request = preview.request
    if preview.cached_tokens is None:
        return {"digest": request.digest, "request": record(request), "tokens": preview.tokens}
    made: dict[str, Json] = {
        "digest": request.digest, "tokens": preview.tokens, "cached_tokens": preview.cached_tokens,
    }  # fmt: skip
    if preview.url:
        return {**made, "url": preview.url, "body": preview.body}
    return {**made, "messages": [{"role": message.role, "content": message.text} for message in request.messages]}


@to_json.register(Ref)
def _session(ref: Ref) -> Json:
    return {
        "session": ref.name, "node": ref.tip, "app": ref.app, "turns": ref.turns, "at": format_time(ref.at_us),
    }  # fmt: skip


def format_time(at_us: int) -> str:
    """Write a time in microseconds since 1970 as local time, to the minute."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _node(entry: TurnEntry) -> dict[str, Json]:
    node = entry.node
    return {
        "node": entry.hash, "parent": node.parent, "kind": node.kind, "turn": entry.turn, "app": node.app,
        "user": node.user, "answer": node.answer, "delta": node.delta, "state_hash": node.state_hash,
    }  # fmt: skip


to_json.register(TurnEntry)(_node)


@to_json.register(SessionTree)
def _tree(tree: SessionTree) -> Json:
    return [_node(TurnEntry(name, node)) for kin in tree.children.values() for name, node in kin.items()]


@to_json.register(Hit)
def _hit(hit: Hit) -> Json:
    return {"node": hit.hash, "sessions": list[Json](hit.refs), "excerpt": hit.excerpt.text}


@to_json.register(DiffResult)
def _diff(result: DiffResult) -> Json:
    from difflib import ndiff

    lines: list[Json] = [line for line in ndiff(result.before_lines, result.after_lines) if line[0] in "+-"]
    moved: list[Json] = [
        {"path": format_path(each.path), "kind": each.kind, "before": each.before, "after": each.after}
        for each in result.changes
    ]
    return {"before": result.before, "after": result.after, "state": moved, "text": lines}


@to_json.register(WhyResult)
def _why(result: WhyResult) -> Json:
    origin, node = result.origin, result.origin.node
    models: list[Json] = [call.model for call in result.calls if call.model]
    return {
        "path": format_path(result.path), "node": origin.hash, "kind": node.kind, "turn": origin.turn,
        "before": origin.before, "after": origin.after, "user": node.user, "answer": node.answer,
        "delta": node.delta, "models": models,
    }  # fmt: skip


@to_json.register(StateResult)
def _state(result: StateResult) -> Json:
    here = result.conversation
    if result.session:
        return {"session": result.session, "node": here.tip, "parent": result.parent, "state": here.state}
    return {"node": here.tip, "turn": here.count, "app": here.app.name, "state": here.state}


@to_json.register(ValueEntry)
def _value(entry: ValueEntry) -> Json:
    return {"node": entry.hash, "by": entry.by, "value": entry.value}


@to_json.register(ReplayedNode)
def _replayed(row: ReplayedNode) -> Json:
    return {"node": row.hash, "kind": row.kind, "turn": row.turn, "calls": row.calls, "problem": row.difference}


@to_json.register(BatchRow)
def _row(row: BatchRow) -> dict[str, Json]:
    return {
        "index": row.input.index,
        "id": row.input.id,
        "session": row.session or None,
        "node": row.node or None,
        "parent": row.parent or None,
        "text": row.input.text,
        "answer": row.answer,
        "delta": row.delta,
        "state": row.state,
        "warnings": list(row.warnings),
        "usage": usage_to_json(row.spent),
        "cost": cost_of(row.spent.cost),
        "error": row.error,
    }


@to_json.register(TypedRow)
def _typed_row(row: TypedRow) -> dict[str, Json]:
    return {
        "index": row.input.index,
        "id": row.input.id,
        "text": row.input.text,
        "value": row.value,
        "attempts": [attempt_to_json(each) for each in row.attempts],
        "usage": usage_to_json(row.spent),
        "cost": cost_of(row.spent.cost),
        "error": row.error,
    }


@to_json.register(BatchResult)
def _batch(result: BatchResult) -> Json:
    return {
        "session": result.session or None, "done": result.done, "failed": result.failed, "kept": result.kept,
        "usage": usage_to_json(result.spent), "cost": cost_of(result.spent.cost), "stopped": result.stopped or None,
    }  # fmt: skip


@to_json.register(CostResult)
def _cost(result: CostResult) -> Json:
    return [
        {
            result.by: line.name, "requests": line.requests, "tool_calls": line.tool_calls, "failed": line.failed,
            "input_tokens": line.usage.input_tokens, "output_tokens": line.usage.output_tokens,
            "cache_read_tokens": line.usage.cache_read_tokens, "calls_without_usage": line.calls_without_usage,
            "cost": cost_of(line.cost_nano), "known_cost": cost_of(line.known_nano),
        }
        for line in result.lines
    ]  # fmt: skip


@to_json.register(ShowResult)
def _shown(result: ShowResult) -> Json:
    calls: list[Json] = [
        {
            "kind": call.kind, "model": call.model, "ms": call.ms,
            "input_tokens": None if call.usage is None else call.usage.input_tokens,
            "output_tokens": None if call.usage is None else call.usage.output_tokens,
            "cost": cost_of(call.cost_nano),
        }
        for call in result.calls
    ]  # fmt: skip
    here = result.conversation
    return {**_node(TurnEntry(result.hash, result.node, here.count)), "state": here.state, "calls": calls}


def usage_to_json(spent: RunUsage) -> dict[str, Json] | None:
    """Return the usage of a bill as JSON; None where a call did not report its usage."""
    if spent.calls_without_usage:
        return None
    usage = spent.usage
    return {
        "requests": spent.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


def reported_usage_to_json(spent: RunUsage) -> dict[str, Json]:
    """Return the reported usage as JSON; for calls that were cut, which report none, an upper bound stands beside it."""
    return {
        **(usage_to_json(replace(spent, calls_without_usage=0)) or {}),
        "calls_without_usage": spent.calls_without_usage,
        "max_unreported_input_tokens": spent.estimated.input_tokens,
        "max_unreported_output_tokens": spent.estimated.output_tokens,
    }


def cost_of(nano: int | None) -> float | None:
    """Return a cost in currency units; None where it is not known."""
    return None if nano is None else nano / NANO


def attempt_to_json(attempt: Attempt) -> dict[str, Json]:
    """Return an attempt of an extraction as JSON."""
    usage = attempt.usage
    return {
        "text": attempt.text,
        "mode": attempt.mode,
        "form": attempt.form,
        "finish": attempt.finish,
        "diagnostics": list(attempt.diagnostics),
        "fixes": [fix_to_json(fix) for fix in attempt.fixes],
        "usage": None if usage is None else {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        "downgrades": list(attempt.downgrades),
        "enforcement": enforcement_to_json(attempt.enforcement),
    }


def enforcement_to_json(enforcement: Enforcement | None) -> dict[str, Json] | None:
    """Return as JSON which clauses of a constraint were enforced while decoding, and which were checked afterwards."""
    if enforcement is None:
        return None
    return {
        "method": enforcement.method,
        "enforced": list(enforcement.enforced),
        "promised": list(enforcement.promised),
        "checked": list(enforcement.checked),
        "broken": list(enforcement.broken),
    }


def fix_to_json(fix: Fix) -> dict[str, Json]:
    """Return a repair of lenient parsing as JSON."""
    return {"code": fix.code, "position": fix.position, "level": fix.level}


@to_json.register(EmbeddingsResult)
def _embeddings(found: EmbeddingsResult) -> Json:
    gain = found.gain
    checked: dict[str, Json] | None = None
    if gain is not None:
        checked = {
            "questions": gain.questions, "of": gain.of, "words": round(gain.words, 4), "fused": round(gain.fused, 4),
            "low": round(gain.low, 4), "high": round(gain.high, 4),
        }  # fmt: skip
    return {
        "place": found.meaning.place, "model": found.meaning.model, "vectors": found.vectors, "fused": found.is_used,
        "forced": found.meaning.always, "gain": checked,
    }  # fmt: skip


def refreshed_to_json(summary: "IndexSummary", done: "RefreshReport") -> dict[str, Json]:
    """Return the result of indexing as JSON."""
    problems: list[Json] = [{"path": each.path, "why": each.why} for each in done.problems]
    return {
        **summary_to_json(summary), "added": done.added, "changed": done.changed, "removed": done.removed, "same": done.same,
        "seconds": round(done.seconds, 3), "problems": problems, "others": dict[str, Json](done.others or {}),
    }  # fmt: skip


def summary_to_json(summary: "IndexSummary") -> dict[str, Json]:
    """Return the summary of an index as JSON."""
    return {
        "index": summary.name, "folder": summary.root, "analyzer": summary.analyzer, "documents": summary.documents,
        "passages": summary.passages, "characters": summary.characters, "not_read": summary.problems,
    }  # fmt: skip


def document_to_json(listed: "DocumentListing") -> dict[str, Json]:
    """Return a document of an index as JSON."""
    known = listed.known
    audience: list[Json] = [list[Json](clause) for clause in known.audience]
    return {
        "path": listed.path, "title": listed.title, "passages": listed.passages, "characters": listed.characters,
        "bytes": known.size, "sha256": known.digest, "versions": listed.versions, "reader": known.reader,
        "audience": audience, "problem": known.problem,
    }  # fmt: skip
