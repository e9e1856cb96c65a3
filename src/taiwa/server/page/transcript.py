"""The transcript of a conversation: a window of its turns, each with the branches that begin beside it and the breaks of its
prompt cache.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import islice, pairwise, takewhile
from typing import Any, TypeAlias, cast

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, Node
from taiwa.conversation.state import Change, diff_states
from taiwa.conversation.turn_prompt import turn_request
from taiwa.flows.ask.ask_result import HOW_TO_REPLY, MORE, AskResult, Citation
from taiwa.flows.ask.dialogue import only_names_option, select_option
from taiwa.flows.ask.types import Advise, HandOver
from taiwa.i18n import dialogue_catalogue
from taiwa.kernel.attachments import Attachment, read_reference
from taiwa.kernel.errors import AuthenticationError, CorruptError, restore_error
from taiwa.kernel.messages import Request, Response, user
from taiwa.kernel.serialization import Json, items_at, parse_json, restore
from taiwa.kernel.usage_limits import currency_units
from taiwa.operations.documents import split_source
from taiwa.operations.markdown_html import render_together, to_html, visible
from taiwa.operations.request_preview import request_tokens
from taiwa.operations.resent_history import is_relayed
from taiwa.server.conversation_turns import unfinished_turn
from taiwa.server.http_responses import api_error
from taiwa.server.page.branches import Forest, forest_of
from taiwa.server.page.text import labelled
from taiwa.sessions.ask_resources import BUNDLED_HANDBOOK
from taiwa.sessions.commit_turn import waiting_calls, waiting_id
from taiwa.sessions.repository import HistoryEntry, Repository
from taiwa.store import CallRecord

LAST_TURNS = 50
CountBreaks: TypeAlias = Callable[[Repository, str, str], int]
"""`count_breaks`, or a caching replacement."""


# --- breaks of prompt caches ------------------------------------------------------------------------------------------
# The breaks of prompt caches: where a client's request departs from what it sent before, so that a provider reads the rest anew.
#
# A provider keeps what it has computed for the beginning of a request, and bills it at a fraction of its price when a later request
# begins in the same way. A client that resends its history loses that where it changes what it sent: an earlier message, the
# instructions, a tool, or by cutting its oldest messages.


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """The point at which the request of a turn departs from an earlier one of its conversation, whose prefix was cached.

    `message` is the number of the first message that differs, from 1, and `role` its role; 0 and "tools" if the tools differ,
    which precede all messages. `reread` estimates the tokens from there on. `cached` of `billed` input tokens were billed as read
    from a cache; None if the usage is unknown.
    """

    node: str
    message: int
    role: str
    reread: int
    cached: int | None = None
    billed: int | None = None


def cache_breaks(repository: Repository, forest: Forest, entries: Sequence[HistoryEntry]) -> Iterator[CacheBreak]:
    """Yield the breaks of the prompt cache in a part of a history whose first node only provides context.

    Only turns that relay exactly one request of a client count. Such a request is compared with that of the previous turn and
    with the last ones of the branches beside it; the longest common prefix shows where the cache ends.
    """
    before, last, sent = entries[0], entries[0].hash, _sent_by(repository, entries[0].hash)
    first = ""
    for entry in entries[1:]:
        first = first or entry.hash
        request = _request(before.after, entry.node)
        before = entry
        if request is None or not repository.store.runs.that_made(entry.hash):
            continue  # a turn made elsewhere is resent with the next one
        branches = takewhile(lambda name, here=first: name != here, forest.children.get(last, ()))  # type: ignore[misc]
        ends = (_sent_by(repository, _end(forest, name)) for name in branches)
        known = (each for each in (sent, *ends) if each is not None)
        earlier = max(known, key=partial(_shared, request), default=None)
        if earlier is not None and (broken := _compare(earlier, request)) is not None:
            calls = repository.store.runs.calls(entry.hash)
            usage = next((each.usage for each in calls if each.kind == "complete"), None)
            cached, billed = (None, None) if usage is None else (usage.cache_read_tokens, usage.input_tokens)
            yield replace(broken, node=entry.hash, cached=cached, billed=billed)
        last, first, sent = entry.hash, "", request


def _compare(earlier: Request, request: Request) -> CacheBreak | None:
    """Return the point at which a request departs from an earlier one; None if one is a prefix of the other."""
    shared = _shared(earlier, request)
    if shared >= min(len(earlier.messages), len(request.messages)):
        return None
    rest = replace(request, messages=request.messages[max(shared, 0) :])
    role = "tools" if shared < 0 else request.messages[shared].role
    return CacheBreak("", shared + 1, role, request_tokens(rest))


def _shared(one: Request, other: Request) -> int:
    """Count the common leading messages of two requests; -1 if their tools differ."""
    if one.tools != other.tools:
        return -1
    pairs = zip(one.messages, other.messages, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))


def _request(before: Conversation, node: Node) -> Request | None:
    """Return the request of a turn that relays exactly one; None for other nodes."""
    if node.kind != "turn" or not is_relayed(before.app):
        return None
    inputs = node.parts.messages[:-1] or (user(node.user or ""),)
    return turn_request(before, node.user or "", node.attachments, inputs=inputs)


def _sent_by(repository: Repository, name: str) -> Request | None:
    node = repository.store.nodes.get(name)
    if node.parent is None or not is_relayed(repository.app(node.app)):
        return None
    return _request(repository.checkout(node.parent), node)


def _end(forest: Forest, name: str) -> str:
    """Return the last turn of a branch, following the newest child at each fork."""
    end = name
    while True:
        if forest.nodes[name].kind == "turn":
            end = name
        if name not in forest.children:
            return end
        name = forest.children[name][-1]


# --- the transcript ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceView:
    """A cited place in a document; `index` is "" if unknown."""

    number: int
    index: str
    path: str
    heading: tuple[str, ...]
    page: int
    start: int
    end: int
    words: str


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One statement of an answer, rendered, with the places that support it."""

    text: str
    sources: tuple[SourceView, ...]

    @property
    def html(self) -> str:
        """The rendered text."""
        return to_html(self.text)


@dataclass(frozen=True, slots=True)
class AskView:
    """The parts of an answer from documents: remarks, claims, other meanings, and the offered options.

    `sources` are the first citations of each passage; `quoted` are those whose words are not already a claim.
    """

    before: tuple[str, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    after: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    hint: str = ""
    sources: tuple[SourceView, ...] = ()
    quoted: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class CallView:
    """A call of a tool: its arguments as they were written, and its result, which may be an error."""

    name: str
    input: str
    result: str
    error: str
    attachments: tuple[Attachment, ...] = ()


def _calls(findings: Json) -> tuple[CallView, ...]:
    listed = items_at(findings, "calls") if isinstance(findings, dict) else []
    calls = (cast("dict[str, Any]", each) for each in listed)
    views: list[CallView] = []
    for each in calls:
        name, given, result, error = (visible(str(each.get(key) or "")) for key in ("name", "input", "result", "error"))
        files = tuple(map(read_reference, items_at(each, "attachments")))
        views.append(CallView(name, given, result, error, files))
    return tuple(views)


@dataclass(frozen=True, slots=True)
class Measured:
    """What the calls of a turn took, how its answer ended, and the reasoning before it."""

    seconds: float = 0.0
    tokens: int = 0
    finish: str = ""
    thoughts: str = ""
    thinking: float = 0.0
    """Seconds of streamed reasoning."""
    model: str = ""
    cost: Decimal | None = None

    @property
    def per_second(self) -> float:
        """Tokens per second; 0 if unknown."""
        return self.tokens / self.seconds if self.seconds else 0.0


def _measured(calls: Iterable[CallRecord]) -> Measured:
    found = Measured()
    for call in calls:
        if call.kind != "complete":
            continue
        answer = restored_answer(call)
        tokens = 0 if call.usage is None else call.usage.output_tokens
        thoughts = [] if answer is None else [part.text for part in answer.message.thinking]
        found = Measured(
            found.seconds + call.time.ms / 1000,
            found.tokens + tokens,
            found.finish if answer is None else answer.finish,
            visible("\n\n".join(each for each in (found.thoughts, *thoughts) if each)),
            found.thinking + call.time.thought_ms / 1000,
        )
    return found


def restored_answer(call: CallRecord) -> Response | None:
    """Return the response of a model that a call recorded; None for any other record."""
    try:
        answer = restore(call.answer) if call.answer is not None and call.error is None else None
    except CorruptError:
        return None
    return answer if isinstance(answer, Response) else None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn ended: the code or type of its error ("" if its process ended), its line, and the time before which the server of the
    model refuses another request, or 0.
    """

    code: str = ""
    message: str = ""
    until_us: int = 0


@dataclass(frozen=True, slots=True)
class UnfinishedView:
    """A turn that failed or was interrupted: its message, the text so far, and why it ended.

    `calls` wait for approval, under the id `waiting`. `instead` is the number of the turn that it would have replaced, or 0.
    """

    user: str
    attachments: tuple[Attachment, ...]
    text: str
    model: str
    failure: Failure
    resumes: bool = False
    calls: tuple[str, ...] = ()
    waiting: str = ""
    instead: int = 0

    @property
    def text_html(self) -> str:
        """The rendered text."""
        return to_html(self.text) if self.text else ""


def unfinished_view(repository: Repository, session: str) -> UnfinishedView | None:
    """Return the unfinished turn at the end of a session, None without one."""
    found = unfinished_turn(repository, session)
    if found is None:
        return None
    run, record = found.run, cast("dict[str, Any] | None", found.error)
    options = run.options if isinstance(run.options, dict) else {}
    error = None if record is None else restore_error(record)
    answer = None if error is None else api_error(error)
    wait = getattr(error, "retry_after", None)
    count = repository.checkout(repository.store.refs.tip(session)).count
    base = 0 if run.base is None else repository.checkout(run.base).count
    failure = Failure()
    if answer is not None:
        code = labelled(answer.code or "", answer.type)
        until = int(found.at_us + wait * 1e6) if isinstance(wait, (int, float)) else 0
        failure = Failure(
            "model_authentication" if isinstance(error, AuthenticationError) else code, visible(answer.message), until
        )
    return UnfinishedView(
        visible(run.text), tuple(map(read_reference, items_at(options, "attachments"))), found.text or str(options.get("prefix", "")), found.model,
        failure, run.status == "open", tuple(str(each) for each in waiting_calls(run)), waiting_id(run), base + 1 if base < count else 0,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnswerView:
    """The answer of a turn, made to begin with `prefix`; `calls` are those of its tools."""

    text: str
    prefix: str
    ask: AskView | None
    calls: tuple[CallView, ...]
    is_typed: bool
    is_sample: bool
    """Whether the sample handbook was searched, which describes a company that does not exist."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What is rendered of it; one of a type is indented JSON, and calls that a rationale contains are their input."""
        if self.ask is not None:
            return tuple(claim.text for claim in self.ask.claims)
        text = self.text
        for call in self.calls:
            text = text.replace(f"<<{call.name}: {call.input}>>", f"`{call.input}` →")
        return (f"```json\n{indented(text)}\n```" if self.is_typed else text,)

    @property
    def html(self) -> str:
        """The rendered answer."""
        return to_html(self.texts[0])


@dataclass(frozen=True, slots=True)
class Branches:
    """The nodes that begin the branches at the position of a turn, itself included, its `position` among them, from 1, and the number
    of turns on the others.
    """

    siblings: tuple[str, ...]
    position: int
    elsewhere: int


@dataclass(frozen=True, slots=True)
class TurnView:
    """A node of the transcript. `changes` are those of its state, without computed fields.

    `person` is the user profile from here on ("": none), or None if it does not change.
    """

    entry: HistoryEntry
    user: str
    answer: AnswerView
    changes: tuple[Change, ...]
    branches: Branches
    measured: Measured
    person: str | None
    cache_break: CacheBreak | None


@dataclass(frozen=True, slots=True)
class Transcript:
    """Some nodes of a history, oldest first, and whether there are nodes before and after them."""

    turns: tuple[TurnView, ...]
    earlier: bool = False
    later: bool = False


def transcript(
    repository: Repository, session: str, tip: str, *, before: str = "", after: str = "", count: int = LAST_TURNS
) -> Transcript:
    """Return a window of a history that ends at `tip`: its last nodes, those `before` a node, or those `after` one."""
    nodes = repository.store.nodes
    if after:
        names = [name for name, _ in nodes.path(tip, after)]
        end = names[-count] if len(names) > count else tip
        entries = tuple(repository.walk(end, nodes.get(after).parent))
        earlier, later = True, end != tip
    else:
        end = (nodes.get(before).parent or before) if before else tip
        path = tuple(islice(nodes.path(end), count + 1))
        entries = tuple(repository.walk(end, path[-1][1].parent))
        earlier, later = path[-1][1].parent is not None, bool(before)
    return Transcript(_views(repository, session, entries), earlier, later)


def indented(text: str) -> str:
    """Return JSON with indentation; any other text as it is."""
    try:
        return json.dumps(parse_json(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text


def beside(repository: Repository, session: str, node: str) -> tuple[TurnView, ...]:
    """Return the turns that begin the branches at the position of a node, including it, oldest first."""
    forest, nodes = forest_of(repository, session), repository.store.nodes
    parent = nodes.get(node).parent or ""
    found = [name for name in forest.children.get(parent, ()) if forest.nodes[name].kind == "turn"]
    walks = (tuple(repository.walk(name, nodes.get(parent).parent)) for name in found)
    return tuple(_turn(repository, forest, walk[-1], walk[-2], None) for walk in walks)


def _views(repository: Repository, session: str, entries: Sequence[HistoryEntry]) -> tuple[TurnView, ...]:
    """Return all entries but the first, with the changes since the previous one."""
    forest = forest_of(repository, session)
    breaks = {each.node: each for each in cache_breaks(repository, forest, entries)}
    views = tuple(
        _turn(repository, forest, entry, before, breaks.get(entry.hash)) for before, entry in pairwise(entries)
    )
    render_together(text for view in views for text in view.answer.texts)
    return views


def _turn(
    repository: Repository, forest: Forest, entry: HistoryEntry, before: HistoryEntry, broken: CacheBreak | None
) -> TurnView:
    node, app = entry.node, entry.after.app
    computed = {field.name for field in app.fields if field.computed}
    siblings = tuple(forest.children.get(node.parent or "", ()))
    bill = repository.store.runs.bill_of(entry.hash) if node.kind == "turn" else None
    measured = Measured() if bill is None else _measured(repository.store.runs.calls(entry.hash))
    model, cost = node.by.model, None if bill is None else currency_units(bill.cost_nano)
    model = model if bill is None else model or bill.name
    return TurnView(
        entry,
        visible(_said(node, before.node)),
        AnswerView(
            node.answer or "",
            visible(node.parts.prefix),
            _ask_view(AskResult.of(node.findings), app),
            _calls(node.findings),
            is_typed=node.kind == "turn" and app.read_answer(node.answer) is not None,
            is_sample=app.document_settings.get("in") == [BUNDLED_HANDBOOK],
        ),
        tuple(
            each
            for each in diff_states(dict(before.after.state), dict(entry.after.state))
            if each.path[0] not in computed
        ),
        Branches(
            siblings,
            siblings.index(entry.hash) + 1 if entry.hash in siblings else 1,
            sum(forest.turns_below(each) for each in siblings if each != entry.hash),
        ),
        replace(measured, model=model, cost=cost),
        _new_person(before.after.app, app),
        broken,
    )


def _new_person(before: App, app: App) -> str | None:
    person = visible(str(app.values.get("user") or ""))
    return person if app.name == before.name and app.values.get("user") != before.values.get("user") else None


def count_breaks(repository: Repository, session: str, tip: str) -> int:
    """Count the breaks of the prompt cache in the last turns of a history, which are immutable."""
    path = list(islice(repository.store.nodes.path(tip), LAST_TURNS))
    entries = tuple(repository.walk(tip, path[-1][1].parent))
    return sum(1 for _ in cache_breaks(repository, forest_of(repository, session), entries))


def _said(node: Node, before: Node) -> str:
    """Return the message of a turn; for the number of an option, the text of the option."""
    text, asked = node.user or "", AskResult.of(before.findings)
    chosen = select_option(text, asked.options) if asked is not None else None
    return chosen.label if chosen is not None and only_names_option(text, chosen) else text


def _ask_view(result: AskResult | None, app: App) -> AskView | None:
    """Return the parts of an answer from documents; None if the turn consists of plain text."""
    if result is None or isinstance(result.act, Advise | HandOver):
        return None
    sentence = dialogue_catalogue(result.language, result.decision.situation.wording.catalogue_version)
    options = tuple(visible(option.label) for option in result.options)
    if result.question_back:
        hint = sentence(HOW_TO_REPLY) if options else ""
        return AskView((visible(result.question_back),), options=options, hint=hint)
    answer = result.answer
    if answer is None or not result.passages:
        return None

    def source(each: Citation) -> SourceView:
        place = place_of_passage(app, each.source)
        return SourceView(each.number, *place, each.heading, each.page, each.start, each.end, visible(each.words))

    before = result.remarks(sentence)
    after = (sentence(MORE),) if options else ()
    claims = tuple(ClaimView(claim.text, tuple(map(source, claim.citations))) for claim in answer.claims)
    texts = {" ".join(claim.text.split()) for claim in answer.claims}
    quoted = frozenset(each.number for each in answer.sources if " ".join(each.words.split()) not in texts)
    return AskView(before, claims, after, options, sources=tuple(map(source, answer.sources)), quoted=quoted)


def place_of_passage(app: App, source: str) -> tuple[str, str]:
    """Return the index and the path of a passage; its source contains both if several indexes are searched."""
    searched = app.document_settings.get("in")
    return split_source(source, [str(each) for each in searched] if isinstance(searched, list) else [])


def common_node(repository: Repository, one: str, other: str) -> str:
    """Return the last common node of two histories, or ""."""
    seen = {name for name, _ in repository.store.nodes.path(one)}
    return next((name for name, _ in repository.store.nodes.path(other) if name in seen), "")
