"""A batch as one conversation: every row is said in turn, and the state is carried on."""

from collections import deque
from collections.abc import Iterable, Iterator

from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import digest
from taiwa.talk.desk import Desk
from taiwa.talk.rows import Given, Row, ends_batch, failed, see_that_limits_hold
from taiwa.talk.talk import Talk
from taiwa.talk.turn import TurnResult

__all__ = ["fold", "said_before"]

GONE_ON = "it failed before, and the conversation has gone on without it"


def fold(talk: Talk, rows: Iterable[Given], before: Iterable[str] = ()) -> Iterator[Row]:
    """Say row after row in one conversation. `before` holds the turns that are there already, oldest first.

    Raises:
        TaiwaError: the next row could only fail as well.
    """
    there = deque(before)
    for given in rows:
        if given.error:
            yield failed(given, InputError(given.error))
        elif there and talk.desk.store.nodes.get(there[0]).user == given.text:
            yield _kept(talk, given, there.popleft())
        elif there:
            yield failed(given, InputError(GONE_ON))
        else:
            see_that_limits_hold(talk.options, talk.spent, talk.voice)
            yield _said(talk, given)


def _said(talk: Talk, given: Given) -> Row:
    try:
        if given.params is not None:
            raise InputError("a row of a fold has no params: all rows are one conversation")
        said = _resumed(talk, given.text) or talk.say(given.text)
    except TaiwaError as error:
        if ends_batch(error):
            raise
        return failed(given, error)
    return Row(
        given, said.text, said.delta, dict(talk.state), said.warnings, said.session, said.node, said.parent, said.spent
    )


def _resumed(talk: Talk, text: str) -> TurnResult | None:
    """Finish a turn that was cut off, if it says this text; its paid calls are not made again."""
    runs = talk.desk.store.runs.open_runs(talk.session)
    if not runs or runs[-1].text != text:
        return None
    return next((event for event in talk.resume() or () if isinstance(event, TurnResult)), None)


def _kept(talk: Talk, given: Given, node: str) -> Row:
    desk = talk.desk
    turn, after = desk.store.nodes.get(node), desk.checkout(node)
    parent = desk.store.refs.back(node, 1)
    return Row(
        given, turn.answer, turn.delta, dict(after.state), (), talk.session, node, parent, _paid(desk, node), kept=True
    )


def _paid(desk: Desk, node: str) -> Spent:
    calls = [call for call in desk.store.runs.calls(node) if call.kind == "complete"]
    spent = Spent()
    for call in calls:
        cost = None if call.usage is None else call.cost_nano
        known = call.usage or Spent().usage
        spent = spent + Spent(1, 0, known, int(call.usage is None), cost, call.ms / 1000)
    return spent


def said_before(talk: Talk, rows: Iterable[Given]) -> tuple[str, ...]:
    """Find the turns of a conversation that the rows of a batch began, oldest first; earlier ones are not the batch's.

    Raises:
        InputError: something else was said after them.
    """
    if talk.conversation.fresh:
        return ()
    nodes = talk.desk.store.nodes
    turns = [name for name, node in nodes.path(talk.conversation.tip) if node.kind == "turn"][::-1]
    texts = (given.text for given in rows if not given.error)
    first: dict[str, int] = {}
    for at, name in enumerate(turns):
        first.setdefault(digest(nodes.get(name).user), at)
    begun = next((first[name] for text in texts if (name := digest(text)) in first), len(turns))
    at = begun + 1
    for text in texts:
        if at >= len(turns):
            break
        at += nodes.get(turns[at]).user == text
    if at < len(turns):
        said = nodes.get(turns[at]).user or ""
        raise InputError(f"{talk.session} holds a turn that is no row of this batch ({said[:60]!r}): choose another -s")
    return tuple(turns[begun:])
