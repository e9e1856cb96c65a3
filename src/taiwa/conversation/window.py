"""Which turns stay in the prompt. Cutting happens in chunks and is recorded: it is never recomputed from the past."""

from taiwa.conversation.history import Conversation, Past

__all__ = ["kept_turns"]


def kept_turns(conversation: Conversation) -> tuple[Past, ...] | None:
    """The turns to keep when the window is full, or None while it may grow."""
    keep, turns = conversation.app.keep, conversation.turns
    pinned = {past.hash for past in turns[: keep.first]} | {past.hash for past in turns if _sets(past, keep.setting)}
    free = [past.hash for past in turns if past.hash not in pinned]
    if keep.grow is None or len(free) < max(keep.grow, keep.to + 1):
        return None
    staying = pinned | set(free[len(free) - keep.to :])
    return tuple(past for past in turns if past.hash in staying)


def _sets(past: Past, names: tuple[str, ...]) -> bool:
    return isinstance(past.delta, dict) and any(past.delta.get(name) is not None for name in names)
