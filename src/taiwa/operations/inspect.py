"""Inspect conversations: log, show, diff, why, state, and the trace of a turn."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp
from typing import TYPE_CHECKING, Annotated

from taiwa.conversation.app import AnswerOptions
from taiwa.conversation.history import Node
from taiwa.conversation.state import Change, Missing, diff_states, format_path, get_path, parse_path
from taiwa.i18n import translator
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import CallTool, Complete, GetCapabilities, Retrieve
from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import Found, Request, Response, Thinking, TokenLogprob, ToolResult
from taiwa.kernel.serialization import Json, record, tag_of, value
from taiwa.operations.result_json import options_to_json, or_null, passage_to_json, to_json
from taiwa.operations.results import (
    DiffResult,
    InterruptedTurn,
    SessionEntry,
    SessionTree,
    ShowResult,
    StateEdit,
    TurnEntry,
    ValueEntry,
    WhyResult,
)
from taiwa.sessions.repository import Repository, value_changes
from taiwa.store import CallRecord

if TYPE_CHECKING:
    from taiwa.kernel.runtime import AnyModel
    from taiwa.models.inprocess.decode_loop import TokenTrace, TracedToken
    from taiwa.sessions.replay import RecordedStep


SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def said(turn: Node) -> str:
    """Return the user's text of a turn, or the names of the attachments if there is none."""
    return turn.user or ", ".join(each.label for each in turn.attachments)


def sessions(
    repository: Repository,
    limit: int | None = None,
    since: int = 0,
    *,
    placed: bool = False,
    tag: str = "",
    shown: str = "",
) -> tuple[SessionEntry, ...]:
    """Return the sessions that moved last, the latest first; with a number of `Refs.moves`, those after it.

    `placed`: pinned ones come first, and archived ones last. `tag`: only those that have it, and the one that is `shown`.
    """
    store = repository.store
    refs = [each for each in store.refs.list(since) if not tag or each.has_tag(tag) or each.name == shown]
    refs = (sorted(refs, key=lambda ref: -ref.place) if placed else refs)[:limit]
    costs = {line.name: line.cost_nano for line in store.costs("session")} if refs else {}
    entries: list[SessionEntry] = []
    for ref, last in zip(refs, store.nodes.get_all([ref.tip for ref in refs]), strict=True):
        first = store.nodes.first_turn(ref.tip)
        text = "" if first is None else said(first)
        model = repository.last_model(ref.tip, ref.name)
        entries.append(SessionEntry(ref, text, model, costs.get(ref.name, 0), last.answer or ""))
    return tuple(entries)


def log(repository: Repository, revision: str, limit: int) -> tuple[TurnEntry, ...]:
    """Return the newest nodes up to a revision, oldest first."""
    path = list(repository.store.nodes.path(repository.store.resolve(revision)))
    number = sum(1 for _, node in path if node.kind == "turn")
    session = revision if repository.store.refs.has(revision) else ""
    entries: list[TurnEntry] = []
    for name, node in path[:limit]:
        entries.append(TurnEntry(name, node, number, node.model or repository.store.runs.model_of(name, session)))
        number -= node.kind == "turn"
    return tuple(reversed(entries))


def interrupted(repository: Repository, session: str | None = None) -> tuple[InterruptedTurn, ...]:
    """Return the turns of all sessions, or of one, that were cut off and can be resumed; the latest first."""
    runs = [run for run in repository.store.runs.open_runs(session) if run.ref]
    return tuple(InterruptedTurn(run, repository.app(run.app).name if run.app else "") for run in reversed(runs))


def tree(repository: Repository, session: str = "") -> SessionTree:
    """Return the histories of all sessions, or of one, as one forest; what a session left, by an edit or undo, is in it.

    The end of a branch without a session has the revision `name@{n}` as its name.

    Raises:
        InputError: there is no such session.
    """
    refs = repository.store.refs
    if session:
        refs.tip(session)
    names: dict[str, list[str]] = {}
    for ref in refs.list():
        if not session or ref.name == session:
            names.setdefault(ref.tip, []).append(ref.name)
    left = [(revision, tip) for revision, tip in refs.left() if not session or revision.rpartition("@")[0] == session]
    children: dict[str | None, dict[str, Node]] = {}
    placed: set[str] = set()

    def place(tip: str) -> None:
        for name, node in repository.store.nodes.path(tip):
            if name in placed:
                break
            placed.add(name)
            children.setdefault(node.parent, {})[name] = node

    for tip in reversed(list(names)):
        place(tip)
    for revision, tip in left:
        if tip not in placed:
            names[tip] = [revision]
            place(tip)
    return SessionTree(children, names)


def show(repository: Repository, revision: str, *, reasoning: bool = False) -> ShowResult:
    """Return one node with the conversation after it and its calls; on request with the model's reasoning."""
    name = repository.store.resolve(revision)
    return ShowResult(
        name,
        repository.store.nodes.get(name),
        repository.checkout(name),
        _model_calls(repository.store.runs.calls(name, repository.store.refs.session_of(revision))),
        _reasoning(repository, name) if reasoning else None,
    )


def _reasoning(repository: Repository, node: str) -> str:
    """Return the reasoning before the answers of a turn, from the journal of its run."""
    answers = (entry.answer for entry in repository.store.runs.journal_of(node))
    parts = (part for answer in answers if isinstance(answer, Response) for part in answer.message.parts)
    thoughts = (part.text.strip() for part in parts if isinstance(part, Thinking))
    return "\n\n".join(thought for thought in thoughts if thought)


def diff(repository: Repository, before: str, after: str) -> DiffResult:
    """Compare two revisions: their states, the texts of their turns, and the models that answered."""
    left, right = repository.store.resolve(before), repository.store.resolve(after)
    old, new = repository.checkout(left), repository.checkout(right)
    found = tuple(diff_states(dict(old.state), dict(new.state)))
    texts, models = (
        (_texts(repository, left), _texts(repository, right)),
        (_models(repository, left), _models(repository, right)),
    )
    return DiffResult(left, right, found, *texts, *models)


def why(repository: Repository, path: str, revision: str) -> WhyResult:
    """Return the node that set a value of the state last, and its calls.

    Raises:
        InputError: the path is invalid, or the state never had a value there.
    """
    where = parse_path(path)
    store = repository.store
    tip = store.resolve(revision)
    origin = repository.find_origin(tip, where)
    if origin is None:
        app = repository.app(store.nodes.get(tip).app).name
        name = revision or repository.session()
        raise InputError(
            f"no value at {format_path(where)} in {name!r} (app {app}); `taiwa log` lists the conversations"
        )
    calls = _model_calls(store.runs.calls(origin.hash, store.refs.session_of(revision)))
    return WhyResult(where, origin, calls, repository.sources(origin))


def value_at(state: Json, path: str) -> Json:
    """Return the value at a path of a state.

    Raises:
        InputError: the state has no value there.
    """
    value = dict(state) if isinstance(state, dict) else {}
    found = get_path(value, parse_path(path))
    if isinstance(found, Missing):
        raise InputError(f"no value at {path}; fields: {', '.join(value) or 'none'}")
    return found


def value_history(repository: Repository, path: str, revision: str) -> tuple[ValueEntry, ...]:
    """Return every value that a path of the state had, oldest first."""
    where = parse_path(path)
    changes = value_changes(repository.walk(repository.store.resolve(revision)), where)
    return tuple(
        ValueEntry(entry.hash, f"{entry.node.kind} {entry.after.count}", value)
        for entry, _, value in changes
        if not isinstance(value, Missing)
    )


def set_value(
    repository: Repository, session: str, path: str, new: Json, *, author: str = "", at: str = ""
) -> tuple[StateEdit, tuple[Change, ...]]:
    """Set a value of the state by hand, as a node of its own; return the new state and the changes.

    `author` is who did it; with `at` the session continues from that node.

    Raises:
        InputError: the path does not exist, or the value does not fit the field.
    """
    session = repository.session(session)
    before = repository.at(at or session)
    where = parse_path(path)
    field = str(where[0])
    values = {field: put_value(before.state.get(field), where[1:], new)}
    after = repository.set_state(session, values, author=author, at=before.tip)
    return StateEdit(after, session, before.tip), tuple(diff_states(dict(before.state), dict(after.state)))


def put_value(value: Json, path: Sequence[str | int], new: Json) -> Json:
    """Return a copy of a value with a new value at a path inside it.

    Raises:
        InputError: the path does not exist.
    """
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        return value | {str(step): put_value(value.get(str(step)), rest, new)}
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        at = step % len(value)
        return [*value[:at], put_value(value[at], rest, new), *value[at + 1 :]]
    raise InputError(f"{step!r} not found in {format_value(value)[:60]}")


def describe_options(options: AnswerOptions) -> str:
    """Describe the options of a conversation's answers, as the options of `say` that set them.

    >>> describe_options(AnswerOptions("Be brief.", tools=("calculator",)))
    "--system 'Be brief.' --tool calculator"
    """
    words: list[str] = []
    for name, given in options_to_json(options).items():
        flag = "--tool" if name == "tools" else f"--{name.replace('_', '-')}"
        words += [f"{flag} {shlex.quote(f'{each}')}" for each in (given if isinstance(given, list) else [given])]
    return " ".join(words)


def format_value(value: Json) -> str:
    """Write a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def describe_change(change: Change) -> str:
    """Write a change of the state on one line."""
    sign, where = SIGNS[change.kind], format_path(change.path)
    if change.kind == "changed":
        return f"{sign} {where}: {format_value(change.before)} → {format_value(change.after)}"
    return f"{sign} {where}: {format_value(change.after if change.kind == 'added' else change.before)}"


def _model_calls(calls: Iterable[CallRecord]) -> tuple[CallRecord, ...]:
    """Return the calls without recorded queries of capabilities."""
    return tuple(call for call in calls if call.kind != tag_of(GetCapabilities))


def _texts(repository: Repository, tip: str) -> tuple[str, ...]:
    """Return the lines of the texts of all turns up to a node."""
    lines: list[str] = []
    for _, node in reversed(tuple(repository.store.nodes.path(tip))):
        if node.kind == "turn":
            lines += [f"> {line}" for line in (node.user or "").splitlines()]
            lines += [f"  {line}" for line in (node.answer or "").splitlines()]
    return tuple(lines)


def _models(repository: Repository, tip: str) -> tuple[str, ...]:
    """Return the models that answered up to a node, the first one first."""
    path = reversed(tuple(repository.store.nodes.path(tip)))
    return tuple(dict.fromkeys(str(node.answered_by) for _, node in path if node.kind == "turn" and node.model))


def describe_attachment(attachment: Attachment, language: str = "en") -> str:
    """Name an attachment with its type and size.

    >>> describe_attachment(Attachment.from_bytes(b"two teas", "order.txt"))
    'order.txt (text/plain, 8 bytes)'
    """
    sentence = translator("cli", language)
    size = sentence("{size} bytes", size=f"{attachment.size:,}")
    return f"{attachment.label} ({attachment.media_type}, {size})"


# --- trace ------------------------------------------------------------------------------------------------------------
# Trace a turn: its calls of models and tools with what they were given, its searches and scores, and the tokens of its answers.
#
# Everything is read from the journal. The tokens of a model in this process are found by reading its answer again.

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
            "enforcement": to_json(response.enforcement),
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
    if response.logprobs:
        listed = tuple(_recorded(token, most) for token in response.logprobs)
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
