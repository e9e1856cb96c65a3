"""Change the text of an earlier turn without a model, and estimate what its answers would cost."""

from dataclasses import dataclass, replace
from decimal import Decimal

from taiwa.conversation.history import Conversation, Node, add_turn, change_app, edit_state, summarize_window
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Text, Usage
from taiwa.kernel.records import items_at
from taiwa.kernel.text import estimate_tokens
from taiwa.kernel.usage_limits import currency_units
from taiwa.sessions.commit_turn import PricedModel
from taiwa.sessions.repository import Repository


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """About how many tokens some calls would take, and what they would cost; None where a price is unknown."""

    tokens: int
    cost: Decimal | None


def rewrite_turn(repository: Repository, session: str, turn: int, text: str, branch: str = "") -> str:
    """Change the text of a turn by its number, and keep every answer, state delta and edit as it is; return the new end.

    The session goes on with a new branch; the old one stays. `branch` is the end of that which the turn belongs to, by default
    where the session is.

    Raises:
        InputError: the turn does not exist, or the text is empty.
    """
    if not text.strip():
        raise InputError("the text is empty")
    tip = repository.store.refs.tip(session)
    end = branch or tip
    edited = _find_turn(repository, end, turn)
    parent = repository.store.nodes.get(edited).parent
    assert parent is not None, "a turn has a parent"
    here, names = repository.checkout(parent), dict[str, str]()
    for name, node in reversed(tuple(repository.store.nodes.path(end, parent))):
        here = _again(repository, here, _with_text(node, text) if name == edited else node, names)
        names[name] = here.tip
    return repository.commit(session, here, expected=tip, reason="edit").tip


def _find_turn(repository: Repository, end: str, turn: int) -> str:
    turns = [name for name, node in repository.store.nodes.path(end) if node.kind == "turn"]
    if not 1 <= turn <= len(turns):
        raise InputError(f"turn {turn} not found; the conversation has {len(turns)}")
    return turns[-turn]


def _with_text(node: Node, text: str) -> Node:
    """Return a turn in which the user said something else; reasoning that a server signed is not of this text."""
    last = max((at for at, message in enumerate(node.messages) if message.role == "user"), default=-1)
    messages = tuple(
        Message("user", (Text(text),)) if at == last else message for at, message in enumerate(node.messages)
    )
    return replace(node, user=text, thinking=(), messages=messages)


def _again(repository: Repository, here: Conversation, node: Node, names: dict[str, str]) -> Conversation:
    """Add a node of another branch; `names` are the new hashes of those that were added."""
    match node.kind:
        case "turn":
            files, thinking = node.attachments, node.thinking
            return add_turn(here, node.user or "", node.answer or "", node.delta, files, thinking, node.messages)
        case "summary":
            kept = [names.get(str(each), str(each)) for each in items_at(node.delta, "kept")]
            return summarize_window(here, kept, node.answer or "")
        case "edit":
            values = node.delta if isinstance(node.delta, dict) else {}
            return edit_state(here, values, node.answer or "")
        case _:
            return change_app(here, repository.app(node.app))


def estimate_turns(
    repository: Repository, priced_model: PricedModel, end: str, turn: int
) -> tuple[CostEstimate, CostEstimate, int]:
    """Estimate what it costs to answer a turn again, then with all that follow it, and count those.

    Each is taken to need the tokens that it took before, or those of its texts where that is not known.

    Raises:
        InputError: the turn does not exist.
    """
    name = _find_turn(repository, end, turn)
    first = _usage(repository, name, repository.store.nodes.get(name))
    later = [
        _usage(repository, each, node) for each, node in repository.store.nodes.path(end, name) if node.kind == "turn"
    ]
    total = first
    for usage in later:
        total = total + usage
    return _priced(priced_model, first), _priced(priced_model, total), len(later)


def _usage(repository: Repository, name: str, node: Node) -> Usage:
    bill = repository.store.runs.bill_of(name)
    if bill is not None and (bill.usage.input_tokens or bill.usage.output_tokens):
        return bill.usage
    before = repository.checkout(node.parent or name)
    said = sum(estimate_tokens(f"{past.user}\n{past.answer}") for past in before.turns) + estimate_tokens(
        before.app.body
    )
    return Usage(said + estimate_tokens(node.user or ""), estimate_tokens(node.answer or ""))


def _priced(priced_model: PricedModel, usage: Usage) -> CostEstimate:
    cost = currency_units(priced_model.price(priced_model.model.name, usage))
    return CostEstimate(usage.input_tokens + usage.output_tokens, cost)
