"""Is a value whole whose last brackets are missing? Only when nothing more could have come."""

from typing import TypeVar

from taiwa.shape.faults import branch, node_at
from taiwa.shape.form import ObjectNode
from taiwa.shape.target import Target
from taiwa.shape.tolerant import Draft

__all__ = ["is_whole"]

T = TypeVar("T")


def is_whole(target: Target[T], draft: Draft) -> bool:
    """Tell whether a draft holds all that its writer meant to write.

    Missing closers are the last thing a text loses when it is cut, and the first thing a model forgets. A list could go on, and
    so could an object that lacks one of the keys that its type names; an object with all of them could not.
    """
    if draft.elided or draft.cut:
        return False
    if not draft.open or draft.fenced:
        return True
    data = target.bare(draft.data)
    skip = 1 if data is not draft.data else 0
    path: tuple[str | int, ...] = ()
    for index, (container, place) in enumerate(draft.open):
        if index >= skip:
            node = node_at(target.form, data, path)
            chosen = branch(target.form, node, container) if node is not None else None
            if not isinstance(chosen, ObjectNode) or not isinstance(container, dict):
                return False
            if not chosen.properties or any(each.name not in container for each in chosen.properties):
                return False
            path = (*path, place)
    return True
