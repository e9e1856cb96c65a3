"""List conversations and their turns, show one, and compare two: log, tree, show, diff."""

import shlex
from collections.abc import Iterable

from taiwa.conversation.app import AnswerOptions
from taiwa.conversation.history import Node
from taiwa.conversation.state import diff_states
from taiwa.i18n import translator
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import GetCapabilities
from taiwa.kernel.messages import Response, Thinking
from taiwa.kernel.serialization import tag_of
from taiwa.operations.result_json import options_to_json
from taiwa.operations.results import DiffResult, InterruptedTurn, SessionEntry, SessionTree, ShowResult, TurnEntry
from taiwa.sessions.repository import Repository
from taiwa.store import CallRecord, Ref


def said(turn: Node) -> str:
    """Return the user's text of a turn, or the names of the attachments if there is none."""
    return turn.user or ", ".join(each.label for each in turn.attachments)


def title_of(repository: Repository, ref: Ref, text: str | None = None) -> str:
    """Return the title of a session, else the first `text` in it, also while that is not answered, else its name."""
    store = repository.store
    if not ref.title and text is None:
        first = store.nodes.first_turn(ref.tip)
        text = "" if first is None else said(first)
    return ref.title or text or store.runs.begun_with(ref.name) or ref.name


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
        entries.append(TurnEntry(name, node, number, node.by.model or repository.store.runs.model_of(name, session)))
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
        model_calls(repository.store.runs.calls(name, repository.store.refs.session_of(revision))),
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


def model_calls(calls: Iterable[CallRecord]) -> tuple[CallRecord, ...]:
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
    return tuple(dict.fromkeys(str(node.by) for _, node in path if node.kind == "turn" and node.by.model))


def describe_attachment(attachment: Attachment, language: str = "en") -> str:
    """Name an attachment with its type and size.

    >>> describe_attachment(Attachment.from_bytes(b"two teas", "order.txt"))
    'order.txt (text/plain, 8 bytes)'
    """
    sentence = translator("cli", language)
    size = sentence("{size} bytes", size=f"{attachment.size:,}")
    return f"{attachment.label} ({attachment.media_type}, {size})"
