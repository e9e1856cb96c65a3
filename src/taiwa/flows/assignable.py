"""Does a result of one type fit where another type is wanted? Structural, on intermediate forms.

Kinds, keys, literals and formats are types, and are never let pass where they may differ. Bounds, sizes and patterns are
matters of a value: they are checked when there is one, for a result that is an integer may well be in range.
"""

from dataclasses import dataclass, field

from taiwa.shape.faults import faults
from taiwa.shape.form import (
    AnyNode,
    ArrayNode,
    Form,
    LiteralNode,
    NeverNode,
    Node,
    NumberNode,
    ObjectNode,
    StringNode,
    members,
)

__all__ = ["is_assignable"]


def is_assignable(form: Form, given: Node, wanted: Node) -> bool:
    """Tell whether all that `given` admits has the type of `wanted`; both are nodes of one form."""
    return _Pairs(form).fits(given, wanted)


@dataclass(slots=True)
class _Pairs:
    """Pairs of nodes that are being compared are taken to fit: a recursive type fits if nothing on the way differs."""

    form: Form
    assumed: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def fits(self, given: Node, wanted: Node) -> bool:
        if given == wanted:
            return True
        options = members(wanted, self.form)
        return all(any(self.one(each, option) for option in options) for each in members(given, self.form))

    def one(self, given: Node, wanted: Node) -> bool:
        """Compare nodes that are neither references nor unions."""
        if isinstance(given, NeverNode) or isinstance(wanted, AnyNode):
            return True
        if isinstance(given, LiteralNode):
            plain = _without_bounds(wanted)
            return plain is not None and not any(faults(self.form, value, plain) for value in given.values)
        if isinstance(given, StringNode) and isinstance(wanted, StringNode):
            return wanted.format in ("", given.format)
        if isinstance(given, NumberNode) and isinstance(wanted, NumberNode):
            return given.integer or not wanted.integer
        if isinstance(given, (ArrayNode, ObjectNode)) and isinstance(wanted, (ArrayNode, ObjectNode)):
            return self.inside(given, wanted)
        return type(given) is type(wanted) and not isinstance(wanted, LiteralNode)

    def inside(self, given: ArrayNode | ObjectNode, wanted: ArrayNode | ObjectNode) -> bool:
        """Compare what two containers hold. A form keeps its nodes, so that their ids name them."""
        pair = (id(given), id(wanted))
        if pair in self.assumed:
            return True
        before = set(self.assumed)
        self.assumed.add(pair)
        fits = False
        if isinstance(given, ArrayNode) and isinstance(wanted, ArrayNode):
            fits = self.array_fits(given, wanted)
        elif isinstance(given, ObjectNode) and isinstance(wanted, ObjectNode):
            fits = self.object_fits(given, wanted)
        if not fits:
            self.assumed = before  # whatever was found on this assumption may be wrong
        return fits

    def array_fits(self, given: ArrayNode, wanted: ArrayNode) -> bool:
        """Compare item by item; places that a tuple names must be there, and no others where there are no others."""
        ends = isinstance(given.items, NeverNode)
        if isinstance(wanted.items, NeverNode) and not (ends and len(given.prefix) == len(wanted.prefix)):
            return False
        if len(given.prefix) < len(wanted.prefix):
            return False
        return all(self.fits(_item(given, at), _item(wanted, at)) for at in range(len(given.prefix) + 1))

    def object_fits(self, given: ObjectNode, wanted: ObjectNode) -> bool:
        for each in wanted.properties:
            found = given.get(each.name)
            if found is None:
                if each.required or (given.extra is not None and not self.fits(given.extra, each.node)):
                    return False
            elif (each.required and not found.required) or not self.fits(found.node, each.node):
                return False
        if wanted.extra is None:
            return True
        rest = [each.node for each in given.properties if wanted.get(each.name) is None]
        rest += [] if given.extra is None else [given.extra]
        return all(self.fits(node, wanted.extra) for node in rest)


def _item(node: ArrayNode, at: int) -> Node:
    return node.prefix[at] if at < len(node.prefix) else node.items


def _without_bounds(node: Node) -> Node | None:
    """The bare type of a node that a literal may fit; None where only a value can tell."""
    if isinstance(node, StringNode):
        return None if node.format else StringNode()
    return NumberNode(integer=node.integer) if isinstance(node, NumberNode) else node
