"""Mends of data that is JSON and does not fit, where the type leaves no doubt about what was meant.

Nothing is invented: a null for an optional key is left out, JSON inside a string is opened where the type wants an object or
a list, an object around the answer that only names it is taken off.
"""

import json
from dataclasses import dataclass, field

from taiwa.kernel import Json
from taiwa.shape.faults import branch
from taiwa.shape.form import (
    AnyNode,
    ArrayNode,
    Form,
    LiteralNode,
    Node,
    NullNode,
    ObjectNode,
    StringNode,
    members,
)
from taiwa.shape.reading import Fix
from taiwa.shape.target import WRAP

__all__ = ["mended"]

LONGEST_INNER = 1 << 20


def mended(form: Form, data: Json, position: int) -> tuple[Json, tuple[Fix, ...]]:
    """Give data as its writer meant it, with what was mended; without mends the data itself."""
    mend = _Mend(form, position)
    data = mend.unwrapped(data)
    made = mend.node(form.root, data, 0)
    return made, tuple(mend.fixes)


@dataclass(slots=True)
class _Mend:
    form: Form
    position: int
    fixes: list[Fix] = field(default_factory=list[Fix])

    def fix(self, code: str, level: str) -> None:
        self.fixes.append(Fix(code, self.position, "safe" if level == "safe" else "likely"))

    def unwrapped(self, data: Json) -> Json:
        """Take off `{"value": …}` or `{"Order": …}` around an answer that has no such key."""
        if not isinstance(data, dict) or len(data) != 1:
            return data
        key, inner = next(iter(data.items()))
        if key != WRAP and key.casefold() != self.form.name.casefold():
            return data
        for option in members(self.form.root, self.form):
            if isinstance(option, AnyNode) or (isinstance(option, ObjectNode) and (option.get(key) or option.extra)):
                return data
        self.fix("unwrapped", "safe" if key == WRAP else "likely")
        return inner

    def node(self, node: Node, data: Json, depth: int) -> Json:
        if depth > 2 * 128 or not isinstance(data, (dict, list, str)):
            return data
        chosen = branch(self.form, node, data)
        if isinstance(data, str):
            return self.opened(node, data, depth)
        if isinstance(data, dict) and isinstance(chosen, ObjectNode):
            return self.object(chosen, data, depth)
        if isinstance(data, list) and isinstance(chosen, ArrayNode):
            prefix = len(chosen.prefix)
            return [
                self.node(chosen.prefix[index] if index < prefix else chosen.items, item, depth + 1)
                for index, item in enumerate(data)
            ]
        return data

    def object(self, node: ObjectNode, data: dict[str, Json], depth: int) -> Json:
        made: dict[str, Json] = {}
        for key, inner in data.items():
            found = node.get(key)
            if found is None:
                made[key] = inner if node.extra is None else self.node(node.extra, inner, depth + 1)
            elif inner is None and not found.required and not self.takes(found.node, NullNode):
                self.fix("null-for-omitted", "safe")
            else:
                made[key] = self.node(found.node, inner, depth + 1)
        return made

    def takes(self, node: Node, *kinds: type) -> bool:
        options = members(node, self.form)
        if NullNode in kinds and any(isinstance(each, LiteralNode) and None in each.values for each in options):
            return True
        return any(isinstance(each, (*kinds, AnyNode)) for each in options)

    def opened(self, node: Node, text: str, depth: int) -> Json:
        """Read a string as JSON where only an object or a list fits."""
        if text.lstrip()[:1] not in ("{", "[") or len(text) > LONGEST_INNER:
            return text
        if self.takes(node, StringNode, LiteralNode) or not self.takes(node, ObjectNode, ArrayNode):
            return text
        try:
            inner: Json = json.loads(text)
        except (ValueError, RecursionError):
            return text
        self.fix("json-in-string", "likely")
        return self.node(node, inner, depth + 1) if not isinstance(inner, str) else text
