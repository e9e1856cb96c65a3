"""The JSON of results and of stored values: what `--json` prints and a server returns.

`MEMBERS` lists the members of most types; a type whose JSON is more than its attributes has its own function.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import singledispatch
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

from taiwa.conversation.state import Change, format_path
from taiwa.kernel.serialization import Json, record
from taiwa.kernel.usage_limits import RunUsage, UsageLimits, currency_units, format_cost_limits
from taiwa.operations import results

if TYPE_CHECKING:
    from taiwa.conversation.app import AnswerOptions
    from taiwa.flows.ask.ask_result import AskResult
    from taiwa.flows.ask.provenance import ValueSource
    from taiwa.flows.ask.types import Feedback, UserProfile
    from taiwa.kernel.messages import Passage
    from taiwa.retrieval.ingest import RefreshReport
    from taiwa.retrieval.types import DocumentListing, IndexSummary
    from taiwa.sessions.commit_turn import TurnResult

BILL = "usage=spent cost=spent.cost"
CALL_TOKENS = "input_tokens=usage.input_tokens output_tokens=usage.output_tokens"
SOLVED = " ".join(f"{name}+=rationale.{name}" for name in ("answer", "answered_by", "ending", "tool_mode", "calls"))
MEMBERS: Mapping[str, str] = {
    "kernel.attachments.Attachment": "name sha256 type=media_type size",
    "flows.extract.Attempt": "text mode form finish diagnostics fixes usage downgrades enforcement",
    "sessions.batch.BatchRow": f"index=input.index id=input.id session? node? parent? text=input.text answer value delta state warnings {BILL} error attempts+",
    "store.runs.CallRecord": f"kind model ms {CALL_TOKENS} cost=cost_nano",
    "kernel.messages.Enforcement": "method enforced promised checked broken",
    "flows.solve.rationale.ExecutedCall": "tool=name input text=result.text value=result.value origin=result.origin error=result.error",
    "operations.inspect.AnswerTokens": "role model text prefix source exact note tokens",
    "operations.inspect.TokensResult": "node answers",
    "operations.inspect.TraceResult": "node whole steps decision?",
    "models.weights.other_caches.FoundFile": "program name path bytes=size model",
    "operations.model_files.KnownModel": (
        "name=file.name status path bytes=file.size sha256=file.sha256 memory=file.memory languages=file.languages"
        " licence=file.licence"
    ),
    "operations.model_files.ModelListing": "known found",
    "operations.model_files.PulledFile": "model path bytes=size sha256 source?",
    "structured.lenient_scanner.Fix": "code position level",
    "store.search.Hit": "node=hash sessions=refs excerpt=excerpt.text",
    "structured.output_type.ParseResult": "value fixes guessed",
    "sessions.replay.ReplayedNode": "node=hash kind turn calls problem=difference",
    "operations.results.InterruptedTurn": "session=run.ref node parent=run.base kind app text=run.text answer calls=run.calls at=run.at_us",
    "operations.results.SessionEntry": "session=ref.name node=ref.tip app=ref.app turns=ref.turns text answer model? client?=ref.client cost at=ref.at_us title?=ref.title pinned=ref.pinned archived=ref.archived",
    "operations.results.TurnEntry": (
        "node=hash parent=node.parent kind=node.kind turn app=node.app user=node.user answer=node.answer delta=node.delta"
        " findings=node.findings state_hash=node.state_hash model? attachments=node.attachments"
    ),
    "sessions.commit_turn.TurnResult": (
        f"session node parent text value delta findings state_read warnings {BILL} seconds=spent.seconds attempts+ {SOLVED}"
    ),
    "operations.results.UntrustedApp": "app=name hash sessions model host tools program searches documents principals user max_cost",
    "kernel.messages.Usage": "input_tokens output_tokens cache_read_tokens",
    "operations.results.ValueEntry": "node=hash by value",
}
"""The members of types, as `members` reads them. Types are named, because to print one needs none of the others."""


def members(value: object, names: str) -> dict[str, Any]:
    """Return attributes of a value as a JSON object.

    A name is that of a member and its attribute, `member=path.to.attribute` where they differ; the path ends at None. The text
    of a member with `?` is null if it is empty. A member with `+` is left out if its path ends at None, or, without a path, if it
    is empty. Members whose name begins or ends with `cost` are costs in currency units, `at` is a time, and `seconds` has three
    decimal places.
    """
    found: dict[str, Any] = {}
    for each in names.split():
        name, _, path = each.partition("=")
        item: Any = value
        for step in (path or name.rstrip("?+")).split("."):
            item = None if item is None else getattr(item, step)
        if name.endswith("+") and (item is None or (item == () and not path)):
            continue
        if name.endswith("cost"):
            item = cost_of(item)
        elif name == "at":
            item = format_time(item)
        elif name == "seconds":
            item = round(item, 3)
        found[name.rstrip("?+")] = (item or None) if name.endswith("?") else to_json(item)
    return found


@singledispatch
def to_json(result: Any) -> Any:  # noqa: ANN401  (a result, or a value inside one)
    """Return a result as JSON; JSON data is returned unchanged.

    Raises:
        TypeError: the value is not a result of an operation.
    """
    if result is None or isinstance(result, (str, int, float, dict, list)):
        return cast("Json", result)
    path = f"{type(result).__module__}.{type(result).__qualname__}"
    names = MEMBERS.get(path.removeprefix("taiwa."))
    if names is None:
        raise TypeError(f"{type(result).__name__} is not a result of an operation")
    return members(result, names)


@to_json.register(PurePath)
def _path(path: PurePath) -> Json:
    return str(path)


@to_json.register(tuple)
def _sequence(values: Sequence[Any]) -> Json:
    return [to_json(each) for each in values]


def ask_to_json(question: str, turn: "TurnResult") -> dict[str, Json]:
    """Return a turn of the app `ask` as JSON: the question, the decision, the passages, the answer, and the bill."""
    assert turn.ask is not None, "a turn of the app ask has a result"
    bill = {
        name: each for name, each in to_json(turn).items() if name not in ("value", "delta", "findings", "state_read")
    }
    return {"question": question, **_ask_result(turn.ask), **bill}


def _ask_result(ask: "AskResult") -> dict[str, Json]:
    found = ask.to_json()
    cited = [citation for claim in _rows(found.get("claims")) for citation in _rows(claim.get("citations"))]
    decision = ("act", "policy", "reasons", "language", "numbers", "scores", "evidence", "query", "queries", "passages")
    answer = ("documented", "is_uncertain", "source", "missing", "assumption", "case")
    return {
        **{name: found.get(name) for name in decision},
        "answer": found.get("answer") if ask.act_name == "search" else None,
        "claims": found.get("claims") or [],
        "citations": [each for at, each in enumerate(cited) if each not in cited[:at]],
        "options": found.get("options") or [],
        **{name: found.get(name) for name in answer},
    }


@to_json.register
def _ask_turn(turn: results.AskTurn) -> Json:
    cited = {each.passage for each in turn.result.citations}

    def shown(passage: "Passage") -> Json:
        found: dict[str, Json] = {"path": passage.source, **members(passage, "id title heading page? start")}
        found |= {"end": passage.start + len(passage.text), "score": round(passage.score, 4), "text": passage.text}
        return found | {"cited": passage.id in cited}

    options: list[Json] = [
        {"number": number, **members(option, "label count preview"), "passages": [shown(each) for each in about]}
        for number, (option, about) in enumerate(zip(turn.result.options, turn.candidates, strict=True), 1)
    ]
    return {
        **_ask_result(turn.result),
        "question": turn.result.question_back or None,
        "options": options,
        "passages": [shown(each) for each in turn.passages],
        "near_misses": [shown(each) for each in turn.near_misses],
    }


def _rows(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


@to_json.register
def _schema(result: results.SchemaResult) -> Json:
    return {
        **members(result, "style"),
        "text": result.texts[result.style],
        **members(result, "tokens relaxed unsupported"),
    }


@to_json.register
def _generated(answer: results.GenerateResult) -> Json:
    made = members(answer, "text finish stop fits why? enforcement usage")
    if answer.parts:
        made["tokens"] = [{"text": text, "forced": forced} for text, forced in answer.parts]
        made |= members(answer, "forwards sparse_forwards=sparse")
    return made


@to_json.register
def _explained(result: results.ExplainResult) -> Json:
    from taiwa.operations.generate import describe_constraint, token_text

    vocabulary = result.guide.vocabulary
    explanation = (
        "allowed=explanation.count examples=explanation.examples accepts=explanation.accepts pointer=explanation.pointer keyword=explanation.keyword"
        " expected=explanation.expected"
    )
    steps: list[Json] = [
        {
            "text": step.text.decode("utf-8", "replace"),
            "token": step.token,
            "written": token_text(vocabulary, step),
            "state": int(step.place) if step.place else None,
            **members(step, f"{explanation} forced final why"),
        }
        for step in result.walk.steps
    ]
    return {
        "source": members(result, "kind title"),
        "engine": result.engine,
        "vocabulary": {"name": vocabulary.name, "tokens": len(vocabulary)},
        "about": list(describe_constraint(result)),
        "steps": steps,
        "accepted": result.walk.accepted,
        "refused": result.walk.refused is not None,
    }


@to_json.register
def _found(result: results.FindResult) -> Any:  # noqa: ANN401  (a list of passages)
    return to_json(result.passages)


@to_json.register
def _marked(found: results.MarkedPassage) -> Json:
    return {**passage_to_json(found.passage), "marks": to_json(found.marks)}


def passage_to_json(passage: "Passage") -> dict[str, Json]:
    """Return a passage as JSON, with its place in the document and its score."""
    return {
        "path": passage.source,
        "score": round(passage.score, 4),
        **members(passage, "title heading page? start"),
        "end": passage.start + len(passage.text),
        **members(passage, "id text"),
    }


@to_json.register
def _document(found: results.DocumentText) -> Json:
    passages: list[Json] = [
        {**members(each, "id heading page? start"), "end": each.start + len(each.text)} for each in found.passages
    ]
    return {**members(found, "index path title version characters offset text"), "passages": passages}


@to_json.register
def _preview(preview: results.RequestPreview) -> Json:
    request = preview.request
    if preview.cached_tokens is None:
        return {"digest": request.digest, "request": record(request), "tokens": preview.tokens}
    made = members(preview, "digest=request.digest tokens cached_tokens")
    if preview.url:
        return {**made, "url": preview.url, "body": preview.body}
    return {**made, "messages": [{"role": message.role, "content": message.text} for message in request.messages]}


def format_time(at_us: int) -> str:
    """Write a time in microseconds since 1970 as local time, to the minute."""
    try:
        return datetime.fromtimestamp(at_us / 1e6, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OSError, OverflowError, ValueError):  # the year is not from 1 to 9999
        return "unknown"


@to_json.register
def _tree(tree: results.SessionTree) -> Json:
    return [to_json(results.TurnEntry(name, node)) for kin in tree.children.values() for name, node in kin.items()]


@to_json.register
def _change(change: Change) -> Json:
    return {"path": format_path(change.path), **members(change, "kind before after")}


@to_json.register
def _diff(result: results.DiffResult) -> Json:
    from difflib import ndiff

    lines: list[Json] = [line for line in ndiff(result.before_lines, result.after_lines) if line[0] in "+-"]
    return {**members(result, "before after state=changes before_models after_models"), "text": lines}


@to_json.register
def _why(result: results.WhyResult) -> Json:
    names = "node=hash kind=node.kind turn before after user=node.user answer=node.answer delta=node.delta findings=node.findings"
    models: list[Json] = [call.model for call in result.calls if call.model]
    sources: list[Json] = [_source(each) for each in result.sources]
    return {"path": format_path(result.path), **members(result.origin, names), "models": models, "sources": sources}


def _source(source: "ValueSource") -> dict[str, Json]:
    """Return the source of a part of a value; the members of a citation are those of the answers from documents."""
    cited = source.citation
    place = (
        {}
        if cited is None
        else {"document": cited.source, "heading": list[Json](cited.heading), **members(cited, "page start end")}
    )
    return {**members(source, "part=path kind words"), **members(source, "tool? input?"), "citation": place or None}


@to_json.register
def _state(result: results.StateResult) -> Json:
    here = result.conversation
    if result.session:
        return {"session": result.session, "node": here.tip, "parent": result.parent, "state": here.state}
    return {"node": here.tip, "turn": here.count, "app": here.app.name, "state": here.state}


@to_json.register
def _cost(result: results.CostResult) -> Json:
    names = f"requests tool_calls failed {CALL_TOKENS} cache_read_tokens=usage.cache_read_tokens calls_without_usage"
    return [
        {result.by: line.name, **members(line, f"{names} cost=cost_nano known_cost=known_nano")}
        for line in result.lines
    ]


@to_json.register
def _shown(result: results.ShowResult) -> Json:
    here = result.conversation
    entry = results.TurnEntry(
        result.hash, result.node, here.count, next((each.model for each in result.calls if each.model), "")
    )
    reasoning: dict[str, Json] = {} if result.reasoning is None else {"reasoning": result.reasoning}
    options = options_to_json(here.app.answer_options)
    return {**to_json(entry), **reasoning, "options": options, "state": here.state, "calls": to_json(result.calls)}


def options_to_json(options: "AnswerOptions") -> dict[str, Json]:
    """Return the options of a conversation's answers, under the names of the options of `say`."""
    limits = options.limits or UsageLimits()
    found: dict[str, Json] = {
        "system": options.system,
        "temperature": options.sampling.temperature,
        "max_tokens": options.sampling.max_tokens,
        "tools": list(options.tools),
        "schema": None if options.schema is None else options.schema.name,
        "max_cost": cost_of(limits.cost)
        if limits == replace(UsageLimits(), cost=limits.cost)
        else format_cost_limits(limits),
    }
    return {name: item for name, item in found.items() if item not in (None, [])}


@to_json.register
def usage_to_json(spent: RunUsage) -> dict[str, Json] | None:
    """Return the usage of a bill as JSON; None if a call did not report its usage."""
    if spent.calls_without_usage:
        return None
    return {
        "requests": spent.requests,
        **members(spent.usage, "input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens"),
    }


def reported_usage_to_json(spent: RunUsage) -> dict[str, Json]:
    """Return the reported usage as JSON; calls that were cut report none, so an upper bound is added."""
    return {
        **(usage_to_json(replace(spent, calls_without_usage=0)) or {}),
        "calls_without_usage": spent.calls_without_usage,
        "max_unreported_input_tokens": spent.estimated.input_tokens,
        "max_unreported_output_tokens": spent.estimated.output_tokens,
    }


def cost_of(nano: int | None) -> float | None:
    """Return a cost in currency units; None if it is not known."""
    cost = currency_units(nano)
    return None if cost is None else float(cost)


@to_json.register
def _embeddings(found: results.EmbeddingsResult) -> Json:
    gain: dict[str, Json] | None = None
    if found.gain is not None:
        figures = members(found.gain, "words fused low high")
        gain = {**members(found.gain, "questions of"), **{name: round(each, 4) for name, each in figures.items()}}
    names = "place=meaning.place model=meaning.model vectors fused=is_used forced=meaning.always"
    return {**members(found, names), "gain": gain}


def refreshed_to_json(summary: "IndexSummary", done: "RefreshReport") -> dict[str, Json]:
    """Return the result of indexing as JSON."""
    problems: list[Json] = [members(each, "path why") for each in done.problems]
    counts = members(done, "added changed removed same seconds")
    return {**summary_to_json(summary), **counts, "problems": problems, "others": dict[str, Json](done.others or {})}


def summary_to_json(summary: "IndexSummary") -> dict[str, Json]:
    """Return the summary of an index as JSON."""
    return members(summary, "index=name folder=root analyzer documents passages characters not_read=problems")


def document_to_json(listed: "DocumentListing") -> dict[str, Json]:
    """Return a document of an index as JSON."""
    known = "bytes=known.size sha256=known.digest versions reader=known.reader audience=known.audience problem=known.problem"
    return members(listed, f"path title passages characters {known}")


def profile_to_json(profile: "UserProfile") -> dict[str, Json]:
    """Return the profile of a user as JSON."""
    facts = dict[str, Json](profile.facts)
    return {"user": profile.name, "language": profile.language, "facts": facts, "thresholds": thresholds_of(profile)}


def person_to_json(profile: "UserProfile", feedback: "Iterable[Feedback]") -> dict[str, Json]:
    """Return a user profile as JSON, with what feedback has changed and how often each verdict was given."""
    counts: dict[str, Json] = {**Counter(str(each.verdict) for each in feedback)}
    return {**profile_to_json(profile), "learned": learned_to_json(profile), "feedback": counts}


def thresholds_of(profile: "UserProfile") -> dict[str, Json]:
    """Return the thresholds of a profile by their names."""
    own = profile.thresholds
    return {name: float(getattr(own, name)) for name in type(own).__dataclass_fields__}


def learned_to_json(profile: "UserProfile") -> dict[str, Json]:
    """Return what feedback has changed for a user: how welcome clarifying questions are, and the threshold that follows."""
    return {"welcome": round(profile.tolerance.mean, 4), "unclear": round(profile.effective_thresholds.unclear, 4)}
