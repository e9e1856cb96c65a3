"""The JSON of results and of stored values: what `--json` prints, a server returns, and the OpenAPI document describes.

Each shape is declared once. `SHAPES` names the shape of each type; a document that is computed, or has other members for other
values, has a function.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import singledispatch
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypeAlias, TypedDict, TypeVar, cast

from taiwa.conversation.state import format_path
from taiwa.kernel.messages import Enforcement
from taiwa.kernel.serialization import Json, record
from taiwa.kernel.usage_limits import RunUsage, UsageLimits, currency_units, format_cost_limits
from taiwa.operations import results
from taiwa.operations.json_shape import as_json

if TYPE_CHECKING:
    from taiwa.conversation.app import AnswerOptions
    from taiwa.flows.ask.ask_result import AskResult
    from taiwa.flows.ask.types import Feedback, UserProfile
    from taiwa.kernel.messages import Passage
    from taiwa.retrieval.ingest import RefreshReport
    from taiwa.retrieval.types import IndexSummary
    from taiwa.sessions.commit_turn import TurnResult

T = TypeVar("T")
JsonObject: TypeAlias = dict[str, Json]


def cost_of(nano: int | None) -> float | None:
    """Return a cost in currency units; None if it is not known."""
    cost = currency_units(nano)
    return None if cost is None else float(cost)


def format_time(at_us: int) -> str:
    """Write a time in microseconds since 1970 as local time, to the minute."""
    try:
        return datetime.fromtimestamp(at_us / 1e6, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OSError, OverflowError, ValueError):  # the year is not from 1 to 9999
        return "unknown"


def or_null(given: T) -> T | None:
    """Return a value, None if it is empty."""
    return given or None


def usage_to_json(spent: RunUsage) -> dict[str, Json] | None:
    """Return the usage of a bill as JSON; None if a call did not report its usage."""
    if spent.calls_without_usage:
        return None
    return {"requests": spent.requests, **asdict(spent.usage)}


def rounded(number: float) -> float:
    """Return seconds with three decimal places."""
    return round(number, 3)


def score(number: float) -> float:
    """Return a score with four decimal places."""
    return round(number, 4)


Cost: TypeAlias = Annotated[float | None, cost_of]
Time: TypeAlias = Annotated[str, format_time]
Seconds: TypeAlias = Annotated[float, rounded]
Score: TypeAlias = Annotated[float, score]
PageNumber: TypeAlias = Annotated[int | None, or_null]
"""The number of a page, null without pages."""
OrNull: TypeAlias = Annotated[str | None, or_null]
"""A text that is null if it is empty."""


class UsageEntry(TypedDict):
    """The tokens of one call."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int


class FixEntry(TypedDict):
    """A repair of malformed JSON."""

    code: str
    position: int
    level: str


class ParsedValue(TypedDict):
    """A value parsed from a text."""

    value: Json
    fixes: list[FixEntry]
    guessed: bool


class AttemptEntry(TypedDict):
    """One answer of a model to a typed request."""

    text: str
    mode: str
    form: str
    finish: str
    diagnostics: list[str]
    fixes: list[FixEntry]
    usage: UsageEntry | None
    downgrades: list[str]
    enforcement: Enforcement | None


class ExecutedCallEntry(TypedDict):
    """A tool call within a rationale."""

    tool: Annotated[str, "name"]
    input: str
    text: Annotated[str, "result.as_text"]
    value: Annotated[Json, "result.value"]
    origin: Annotated[str, "result.origin"]
    error: Annotated[str | None, "result.error"]


class TurnEnd(TypedDict):
    """A committed turn with its bill; the last members are those of a turn that extracts or solves."""

    session: str
    node: str
    parent: str
    text: str
    value: Annotated[Json, "reply.value"]
    delta: Json
    findings: Json
    state_read: Annotated[bool, "reply.state_read"]
    warnings: list[str]
    usage: Annotated[JsonObject | None, "spent", usage_to_json]
    cost: Annotated[Cost, "spent.cost"]
    seconds: Annotated[Seconds, "spent.seconds"]
    attempts: NotRequired[Annotated[list[AttemptEntry], "reply.findings.attempts", or_null]]
    answer: NotRequired[Annotated[str, "reply.findings.rationale.answer"]]
    answered_by: NotRequired[Annotated[str, "reply.findings.rationale.answered_by"]]
    ending: NotRequired[Annotated[str, "reply.findings.rationale.ending"]]
    tool_mode: NotRequired[Annotated[str, "reply.findings.rationale.tool_mode"]]
    calls: NotRequired[Annotated[list[ExecutedCallEntry], "reply.findings.rationale.calls"]]


class RowEnd(TypedDict):
    """The result of a row of a batch: its text and answer, and what `TurnEnd` has."""

    index: Annotated[int, "input.index"]
    id: Annotated[Json, "input.id"]
    session: Annotated[OrNull, "turn.session"]
    node: Annotated[OrNull, "turn.node"]
    parent: Annotated[OrNull, "turn.parent"]
    text: Annotated[str, "input.text"]
    answer: str | None
    value: Annotated[Json, "turn.reply.value"]
    delta: Annotated[Json, "turn.delta"]
    findings: Annotated[Json, "turn.findings"]
    state: Json
    state_read: Annotated[bool, "turn.reply.state_read"]
    warnings: Annotated[list[str], "turn.warnings"]
    usage: Annotated[JsonObject | None, "turn.spent", usage_to_json]
    cost: Annotated[Cost, "turn.spent.cost"]
    seconds: Annotated[Seconds, "turn.spent.seconds"]
    error: Json
    attempts: NotRequired[Annotated[list[AttemptEntry], "turn.reply.findings.attempts", or_null]]
    answered_by: NotRequired[Annotated[str, "turn.reply.findings.rationale.answered_by"]]
    ending: NotRequired[Annotated[str, "turn.reply.findings.rationale.ending"]]
    tool_mode: NotRequired[Annotated[str, "turn.reply.findings.rationale.tool_mode"]]
    calls: NotRequired[Annotated[list[ExecutedCallEntry], "turn.reply.findings.rationale.calls"]]


class ReplayedEntry(TypedDict):
    """A replayed node, and how it differs from the record ("": not at all)."""

    node: Annotated[str, "hash"]
    kind: str
    turn: int
    calls: int
    problem: Annotated[str, "difference"]


class ConversationEntry(TypedDict):
    """A conversation in a listing, with its first text and its last answer.

    `cost` is null if a price is unknown; `client` is the program and protocol of the last turn, null for those of taiwa itself.
    """

    session: Annotated[str, "ref.name"]
    node: Annotated[str, "ref.tip"]
    app: Annotated[str, "ref.app"]
    turns: Annotated[int, "ref.turns"]
    text: str
    answer: str
    model: OrNull
    client: Annotated[OrNull, "ref.client"]
    cost: Cost
    at: Annotated[Time, "ref.at_us"]
    title: Annotated[OrNull, "ref.title"]
    pinned: Annotated[bool, "ref.pinned"]
    archived: Annotated[bool, "ref.archived"]
    tags: Annotated[list[str], "ref.tags"]


class InterruptedEntry(TypedDict):
    """A turn that was cut off, in a listing of conversations or nodes."""

    session: Annotated[str, "run.ref"]
    node: None
    parent: Annotated[str | None, "run.base"]
    kind: str
    app: str
    text: Annotated[str, "run.text"]
    answer: None
    calls: Annotated[int, "run.calls"]
    at: Annotated[Time, "run.at_us"]


class FoundNode(TypedDict):
    """A node with the matching words."""

    node: Annotated[str, "hash"]
    sessions: Annotated[list[str], "refs"]
    excerpt: Annotated[str, "excerpt.text"]


class AttachmentEntry(TypedDict):
    """An attachment of a message."""

    name: str
    sha256: str
    type: Annotated[str, "media_type"]
    size: int


class NodeEntry(TypedDict):
    """A node of a history; `turn` is its number, null in a tree."""

    node: Annotated[str, "hash"]
    parent: Annotated[str | None, "node.parent"]
    kind: Annotated[str, "node.kind"]
    turn: int | None
    app: Annotated[str, "node.app"]
    user: Annotated[str | None, "node.user"]
    answer: Annotated[str | None, "node.answer"]
    delta: Annotated[Json, "node.delta"]
    findings: Annotated[Json, "node.findings"]
    state_hash: Annotated[str, "node.state_hash"]
    model: OrNull
    attachments: Annotated[list[AttachmentEntry], "node.attachments"]


class CallEntry(TypedDict):
    """A call that a node paid for; tokens and cost are null if unknown."""

    kind: str
    model: str
    ms: Annotated[int, "time.ms"]
    input_tokens: Annotated[int | None, "usage.input_tokens"]
    output_tokens: Annotated[int | None, "usage.output_tokens"]
    cost: Annotated[Cost, "cost_nano"]


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


class NodeDetails(NodeEntry):
    """A node, the options of its answers, the state after it, and its calls."""

    reasoning: NotRequired[str]
    options: Annotated[JsonObject, "conversation.app.answer_options", options_to_json]
    state: Annotated[JsonObject, "conversation.state"]
    calls: list[CallEntry]


class SourcePlace(TypedDict):
    """The place of a passage: the document, its headings, the page (0 without one), and offsets in characters."""

    document: Annotated[str, "source"]
    heading: list[str]
    page: int
    start: int
    end: int


class PartSource(TypedDict):
    """Where a part of a value comes from: the words of the `user`, a `tool`, a `passage`, the `answer` before, of the `model` or the
    `program` alone, or those under which the model recorded it (`stated`); it is `computed`, or `unknown` of an imported turn.
    """

    part: Annotated[str, "path"]
    kind: str
    words: str
    tool: OrNull
    input: OrNull
    citation: SourcePlace | None


class Cause(TypedDict):
    """The node that last set or removed a value, the value before and after it, and the models that it called."""

    path: Annotated[str, format_path]
    node: Annotated[str, "origin.hash"]
    kind: Annotated[str, "origin.node.kind"]
    turn: Annotated[int, "origin.turn"]
    before: Annotated[Json, "origin.before"]
    after: Annotated[Json, "origin.after"]
    user: Annotated[str | None, "origin.node.user"]
    answer: Annotated[str | None, "origin.node.answer"]
    delta: Annotated[Json, "origin.node.delta"]
    findings: Annotated[Json, "origin.node.findings"]
    models: list[str]
    sources: Annotated[list[PartSource], "origin.sources"]


class StateChange(TypedDict):
    """A value of the state that differs."""

    path: Annotated[str, format_path]
    kind: str
    before: Json
    after: Json


class Difference(TypedDict):
    """The differences between two revisions: values of the state, lines of text, and the models that answered."""

    before: str
    after: str
    state: Annotated[list[StateChange], "changes"]
    before_models: list[str]
    after_models: list[str]
    text: Annotated[list[str], "changed_lines"]


class StateAt(TypedDict):
    """The state after a node."""

    node: Annotated[str, "tip"]
    turn: Annotated[int, "count"]
    app: Annotated[str, "app.name"]
    state: JsonObject


class StateSet(TypedDict):
    """The state after a manual edit."""

    session: str
    node: Annotated[str, "conversation.tip"]
    parent: str | None
    state: Annotated[JsonObject, "conversation.state"]


class Costs(TypedDict):
    """The costs of several calls; `cost` is null if a part of it is unknown."""

    requests: int
    tool_calls: int
    failed: int
    input_tokens: Annotated[int, "usage.input_tokens"]
    output_tokens: Annotated[int, "usage.output_tokens"]
    cache_read_tokens: Annotated[int, "usage.cache_read_tokens"]
    calls_without_usage: int
    cost: Annotated[Cost, "cost_nano"]
    known_cost: Annotated[float, "known_nano", cost_of]


class PersonEntry(TypedDict):
    """A person in a listing."""

    user: Annotated[str, "name"]
    feedback: int
    sessions: int


class Person(TypedDict):
    """A user profile: what the apps that search documents read of it, and what feedback has changed."""

    user: str
    language: str
    facts: dict[str, str]
    thresholds: dict[str, float]
    learned: dict[str, float]
    feedback: dict[str, int]


class PassageEntry(TypedDict):
    """A passage with its place in the document and its score."""

    path: Annotated[str, "source"]
    score: Score
    title: str
    heading: list[str]
    page: PageNumber
    start: int
    end: int
    id: str
    text: str


class IndexContents(TypedDict):
    """An index, and how much is in it."""

    index: Annotated[str, "name"]
    folder: NotRequired[Annotated[str | None, "root"]]
    analyzer: str
    documents: int
    passages: int
    characters: int
    not_read: Annotated[int, "problems"]


class DocumentEntry(TypedDict):
    """A document of an index, with its file; `problem` says why it could not be read."""

    path: str
    title: str
    passages: int
    characters: int
    bytes: Annotated[int, "known.size"]
    sha256: Annotated[str, "known.digest"]
    reader: Annotated[str, "known.reader"]
    audience: Annotated[list[str], "known.audience"]
    problem: Annotated[str, "known.problem"]


AccessRule = TypedDict(
    "AccessRule",
    {"rule": Annotated[str, "where"], "pattern": str, "for": Annotated[list[str], "names"], "files": int},
)
"""The audience of the files of an index."""


class PulledEntry(TypedDict):
    """A verified model file on this machine; `source` is null if it was here already."""

    model: str
    path: Annotated[str, str]
    bytes: Annotated[int, "size"]
    sha256: str
    source: OrNull


class KnownModelEntry(TypedDict):
    """A model that can be fetched by its name."""

    name: Annotated[str, "file.name"]
    status: str
    path: Annotated[str, str]
    bytes: Annotated[int, "file.size"]
    sha256: Annotated[str, "file.sha256"]
    memory: Annotated[Json, "file.memory"]
    languages: Annotated[list[str], "file.languages"]
    licence: Annotated[str, "file.licence"]


class FoundFileEntry(TypedDict):
    """A model file of another program."""

    program: str
    name: str
    path: Annotated[str, str]
    bytes: Annotated[int, "size"]
    model: str


class ModelFilesEntry(TypedDict):
    """The models that can be fetched by name, and other files on this machine."""

    known: list[KnownModelEntry]
    found: list[FoundFileEntry]


class UntrustedEntry(TypedDict):
    """An imported app, and what applies only once it is trusted."""

    app: Annotated[str, "app.name"]
    hash: Annotated[str, "app.hash"]
    sessions: list[str]
    model: Annotated[str, "app.model"]
    host: str
    tools: Annotated[list[str], "app.tools"]
    program: Annotated[str, "app.flow"]
    searches: bool
    documents: list[str]
    principals: list[str]
    user: str
    max_cost: Cost


SHAPES: Mapping[str, Any] = {
    "conversation.history.Conversation": StateAt,
    "flows.extract.Attempt": AttemptEntry,
    "flows.solve.rationale.ExecutedCall": ExecutedCallEntry,
    "kernel.attachments.Attachment": AttachmentEntry,
    "kernel.messages.Enforcement": Enforcement,
    "kernel.messages.Usage": UsageEntry,
    "models.weights.other_caches.FoundFile": FoundFileEntry,
    "operations.model_files.ModelListing": ModelFilesEntry,
    "operations.model_files.PulledFile": PulledEntry,
    "operations.results.DiffResult": Difference,
    "operations.results.InterruptedTurn": InterruptedEntry,
    "operations.results.SessionEntry": ConversationEntry,
    "operations.results.ShowResult": NodeDetails,
    "operations.results.StateEdit": StateSet,
    "operations.results.TurnEntry": NodeEntry,
    "operations.results.UntrustedApp": UntrustedEntry,
    "operations.results.WhyResult": Cause,
    "retrieval.ingest.RuleListing": AccessRule,
    "retrieval.types.DocumentListing": DocumentEntry,
    "retrieval.types.IndexSummary": IndexContents,
    "sessions.batch.BatchRow": RowEnd,
    "sessions.commit_turn.TurnResult": TurnEnd,
    "sessions.replay.ReplayedNode": ReplayedEntry,
    "store.users.UserListing": PersonEntry,
    "store.runs.CallRecord": CallEntry,
    "store.search.Hit": FoundNode,
    "structured.output_type.ParseResult": ParsedValue,
}
"""The shapes of types. Types are named, because to print one needs none of the others. A type of an operation that is not here is
itself the shape: its fields are the members.
"""
OPERATIONS = "taiwa.operations."


@singledispatch
def to_json(result: Any) -> Any:  # noqa: ANN401  (a result, or a value inside one)
    """Return a result as JSON; JSON data is returned unchanged.

    Raises:
        TypeError: the value is not a result of an operation.
    """
    if result is None or isinstance(result, (str, int, float, dict, list)):
        return cast("Json", result)
    path = f"{type(result).__module__}.{type(result).__qualname__}"
    shape = SHAPES.get(path.removeprefix("taiwa."), type(result) if path.startswith(OPERATIONS) else None)
    if shape is None:
        raise TypeError(f"{type(result).__name__} is not a result of an operation")
    return as_json(result, shape)


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
        return {**passage_to_json(passage), "cited": passage.id in cited}

    options: list[Json] = [
        {
            "number": number,
            "label": option.label,
            "count": option.count,
            "preview": option.preview,
            "passages": [shown(each) for each in about],
        }
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
        "style": result.style,
        "text": result.texts[result.style],
        "tokens": dict(result.tokens),
        "relaxed": list(result.relaxed),
        "unsupported": list(result.unsupported),
    }


@to_json.register
def _generated(answer: results.GenerateResult) -> Json:
    response = answer.response
    made: dict[str, Json] = {
        "text": response.text,
        "finish": response.finish,
        "stop": response.stop,
        "fits": answer.fits,
        "why": answer.why or None,
        "enforcement": to_json(response.decoding.enforcement),
        "usage": to_json(response.usage),
    }
    if answer.parts and (written := response.decoding.written) is not None:
        made["tokens"] = [{"text": text, "forced": forced} for text, forced in answer.parts]
        made |= {"forwards": written.passes, "sparse_forwards": written.sparse_passes}
    return made


@to_json.register
def _explained(result: results.ExplainResult) -> Json:
    from taiwa.operations.generate import describe_constraint, token_text

    vocabulary = result.guide.vocabulary
    steps: list[Json] = [
        {
            "text": step.text.decode("utf-8", "replace"),
            "token": step.token,
            "written": token_text(vocabulary, step),
            "state": int(step.place) if step.place else None,
            "allowed": step.explanation.count,
            "examples": list(step.explanation.examples),
            "accepts": list(step.explanation.accepts),
            "pointer": step.explanation.pointer,
            "keyword": step.explanation.keyword,
            "expected": step.explanation.expected,
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


@to_json.register
def _found(result: results.FindResult) -> Any:  # noqa: ANN401  (a list of passages)
    return to_json(result.passages)


@to_json.register
def _marked(found: results.MarkedPassage) -> Json:
    return {**passage_to_json(found.passage), "marks": to_json(found.marks)}


def passage_to_json(passage: "Passage") -> dict[str, Json]:
    """Return a passage as JSON, with its place in the document and its score."""
    found: dict[str, Json] = as_json(passage, PassageEntry)
    return found


@to_json.register
def _document(found: results.DocumentText) -> Json:
    return {
        "index": found.index,
        "path": found.path,
        "title": found.title,
        "version": found.version,
        "characters": found.characters,
        "offset": found.offset,
        "text": found.text,
        "passages": [
            {
                "id": each.id,
                "heading": list(each.heading),
                "page": each.page or None,
                "start": each.start,
                "end": each.end,
            }
            for each in found.passages
        ],
    }


@to_json.register
def _preview(preview: results.RequestPreview) -> Json:
    request = preview.request
    if preview.cached_tokens is None:
        return {"digest": request.digest, "request": record(request), "tokens": preview.tokens}
    made: dict[str, Json] = {
        "digest": request.digest,
        "tokens": preview.tokens,
        "cached_tokens": preview.cached_tokens,
    }
    if preview.url:
        return {**made, "url": preview.url, "body": preview.body}
    return {**made, "messages": [{"role": message.role, "content": message.text} for message in request.messages]}


@to_json.register
def _tree(tree: results.SessionTree) -> Json:
    return [to_json(results.TurnEntry(name, node)) for kin in tree.children.values() for name, node in kin.items()]


@to_json.register
def _cost(result: results.CostResult) -> Json:
    return [{result.by: line.name, **as_json(line, Costs)} for line in result.lines]


def reported_usage_to_json(spent: RunUsage) -> dict[str, Json]:
    """Return the reported usage as JSON; calls that were cut report none, so an upper bound is added."""
    return {
        **(usage_to_json(replace(spent, calls_without_usage=0)) or {}),
        "calls_without_usage": spent.calls_without_usage,
        "max_unreported_input_tokens": spent.estimated.input_tokens,
        "max_unreported_output_tokens": spent.estimated.output_tokens,
    }


@to_json.register
def _embeddings(found: results.EmbeddingsResult) -> Json:
    return {"place": found.meaning.place, "model": found.meaning.model, "vectors": found.vectors}


def refreshed_to_json(summary: "IndexSummary", done: "RefreshReport") -> dict[str, Json]:
    """Return the result of indexing as JSON."""
    problems: list[Json] = [{"path": each.path, "why": each.why} for each in done.problems]
    return {
        **to_json(summary),
        "added": done.added,
        "changed": done.changed,
        "removed": done.removed,
        "same": done.same,
        "seconds": rounded(done.seconds),
        "problems": problems,
        "others": dict[str, Json](done.others or {}),
    }


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
