"""The intermediate form as TypeScript types: about half the tokens of JSON Schema, with nothing that is checked left out.

Constraints, description and default follow a member as one `//` comment. A comment ends at the end of its line and
nowhere else, so text from outside is put on one line and cannot leave it.
"""

import re
from collections import Counter

from taiwa.shape.form import (
    ABSENT,
    ANONYMOUS,
    About,
    AnyNode,
    ArrayNode,
    BoolNode,
    Form,
    LiteralNode,
    NeverNode,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    Property,
    RefNode,
    StringNode,
    UnionNode,
    children,
)
from taiwa.shape.fromschema import identifier
from taiwa.shape.wording import BREAKS, constraints, cut, literal

__all__ = ["typescript"]

INDENT = "  "
DEFAULT_CHARS = 80
PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
WORDS: dict[type, str] = {
    AnyNode: "any",
    NeverNode: "never",
    NullNode: "null",
    BoolNode: "boolean",
    StringNode: "string",
}


def typescript(form: Form) -> str:
    """Write `type` blocks, the root first."""
    return _Writer(form).write()


class _Writer:
    def __init__(self, form: Form) -> None:
        self.form = form
        self.kept = _kept(form)
        self.root = identifier(form.name)
        while self.root in self.kept:
            self.root += "_"

    def write(self) -> str:
        root = self.form.root
        if isinstance(root, RefNode) and root.name in self.kept:
            blocks = [self.block(root.name, self.form.named[root.name], root.about)]
            rest = [name for name in self.kept if name != root.name]
        else:
            blocks, rest = [self.block(self.root, self.opened(root), root.about)], self.kept
        blocks += [self.block(name, self.form.named[name], About()) for name in rest]
        return "\n\n".join(blocks)

    def opened(self, node: Node) -> Node:
        """Put the node of an inlined name in the place of its reference."""
        while isinstance(node, RefNode) and node.name not in self.kept:
            node = self.form.named[node.name]
        return node

    def block(self, name: str, node: Node, about: About) -> str:
        said = _phrases(self.form, node, about, self.kept)
        if isinstance(node, ObjectNode):
            return f"type {name} = {self.object(node, 0, said)};"
        text = f"type {name} = {self.type(node, 0)};"
        return _with_comment(text, said)

    def type(self, node: Node, depth: int) -> str:
        node = self.opened(node)
        if isinstance(node, RefNode):
            return node.name
        if isinstance(node, NumberNode):
            return "number"
        if isinstance(node, LiteralNode):
            return " | ".join(literal(value) for value in node.values) or "never"
        if isinstance(node, UnionNode):
            return " | ".join(self.option(part, depth) for part in node.options)
        if isinstance(node, ArrayNode):
            return self.array(node, depth)
        if isinstance(node, ObjectNode):
            return self.object(node, depth, [])
        return WORDS[type(node)]

    def option(self, node: Node, depth: int) -> str:
        said = _own(node) if isinstance(self.opened(node), ObjectNode) and not isinstance(node, RefNode) else []
        opened = self.opened(node)
        return self.object(opened, depth, said) if isinstance(opened, ObjectNode) else self.type(node, depth)

    def array(self, node: ArrayNode, depth: int) -> str:
        inner = self.type(node.items, depth)
        inner = f"({inner})[]" if isinstance(self.opened(node.items), (UnionNode, LiteralNode)) else f"{inner}[]"
        if not node.prefix:
            return inner
        first = ", ".join(self.type(part, depth) for part in node.prefix)
        return f"[{first}]" if isinstance(node.items, NeverNode) else f"[{first}, ...{inner}]"

    def object(self, node: ObjectNode, depth: int, said: list[str]) -> str:
        extra = node.extra if node.extra is not None and not isinstance(node.extra, NeverNode) else None
        if not node.properties and not said:
            return f"Record<string, {self.type(extra, depth)}>" if extra is not None else "{}"
        pad = INDENT * (depth + 1)
        lines = [_with_comment("{", said)]
        lines += [pad + self.property(each, depth + 1) for each in node.properties]
        if extra is not None:
            said = _phrases(self.form, extra, About(), self.kept)
            lines.append(pad + _with_comment(f"[key: string]: {self.type(extra, depth + 1)};", said))
        return "\n".join([*lines, INDENT * depth + "}"])

    def property(self, each: Property, depth: int) -> str:
        node, default = each.node, each.node.about.default
        if not each.required and default is None:
            node = _without_null(node)
        said = _phrases(self.form, self.opened(node), node.about, self.kept)
        name = each.name if PLAIN_KEY.match(each.name) else literal(each.name)
        mark = "" if each.required else "?"
        opened = self.opened(node)
        if isinstance(opened, ObjectNode) and opened.properties:
            return f"{name}{mark}: {self.object(opened, depth, said)};"
        return _with_comment(f"{name}{mark}: {self.type(node, depth)};", said)


def _kept(form: Form) -> list[str]:
    """Choose the names that get a block: objects and unions of them, whatever is used twice, whatever is recursive."""
    uses: Counter[str] = Counter()
    todo: list[Node] = [form.root, *form.named.values()]
    while todo:
        node = todo.pop()
        if isinstance(node, RefNode):
            uses[node.name] += 1
        todo.extend(children(node))
    return [
        name
        for name, node in form.named.items()
        if uses[name] > 1 or (isinstance(node, ObjectNode) and not _anonymous(name)) or _reaches(form, node, name)
    ]


def _anonymous(name: str) -> bool:
    return name.removeprefix(ANONYMOUS).isdecimal() or name == ANONYMOUS


def _reaches(form: Form, start: Node, name: str) -> bool:
    todo, seen = [start], set[str]()
    while todo:
        node = todo.pop()
        if isinstance(node, RefNode):
            if node.name == name:
                return True
            if node.name not in seen:
                seen.add(node.name)
                todo.append(form.named[node.name])
        todo.extend(children(node))
    return False


def _without_null(node: Node) -> Node:
    """Leave out a null that says the same as leaving the key out."""
    if not isinstance(node, UnionNode):
        return node
    rest = tuple(part for part in node.options if not isinstance(part, NullNode))
    about = About(node.about.description, ABSENT, node.about.notes)
    if len(rest) != 1:
        return UnionNode(rest, node.tag, about=about)
    only = rest[0]
    return UnionNode((only,), about=about)


def _with_comment(text: str, said: list[str]) -> str:
    comment = BREAKS.sub(" ", "; ".join(each for each in said if each)).strip()
    if not comment:
        return text
    if "\n" in text:  # the comment belongs to the head of what it is about
        head, rest = text.split("\n", 1)
        return f"{head} // {comment}\n{rest}" if "//" not in head else f"{head}; {comment}\n{rest}"
    return f"{text} // {comment}"


def _phrases(form: Form, node: Node, about: About, kept: list[str]) -> list[str]:
    """Say constraints, description and default of a member, in this order."""
    whole = about if about == node.about else _laid(about, node.about)
    said = [", ".join(_constraints(form, node, kept, 0)), *whole.notes, whole.description]
    if whole.default is not ABSENT and whole.default is not None:
        said.append(f"default {cut(literal(whole.default), DEFAULT_CHARS)}")
    return said


def _laid(over: About, own: About) -> About:
    default = own.default if over.default is ABSENT else over.default
    notes = (*own.notes, *(note for note in over.notes if note not in own.notes))
    return About(over.description or own.description, default, notes)


def _own(node: Node) -> list[str]:
    return [*constraints(node), *node.about.notes, node.about.description]


def _constraints(form: Form, node: Node, kept: list[str], depth: int) -> list[str]:
    if depth > len(form.named) + 16:
        return []
    said = constraints(node)
    if isinstance(node, ArrayNode):
        said += _inner(form, node.items, "each", kept, depth)
        for at, part in enumerate(node.prefix):
            said += _inner(form, part, f"item {at + 1}", kept, depth)
    elif isinstance(node, ObjectNode) and node.extra is not None and not node.properties:
        said += _inner(form, node.extra, "values", kept, depth)
    elif isinstance(node, UnionNode):
        options = [part for part in node.options if not isinstance(part, NullNode)]
        for part in options:
            alone = len(options) == 1
            said += _inner(form, part, "" if alone else _word(part), kept, depth)
    return said


def _inner(form: Form, node: Node, label: str, kept: list[str], depth: int) -> list[str]:
    if isinstance(node, RefNode) and node.name in kept:
        return [f"{label}: {node.about.description}"] if label and node.about.description else []
    while isinstance(node, RefNode):
        node = form.named[node.name]
    if isinstance(node, ObjectNode) and node.properties:
        return []  # its own lines say it
    said = [*_constraints(form, node, kept, depth + 1), *node.about.notes, node.about.description]
    text = ", ".join(each for each in said if each)
    return [f"{label}: {text}" if label else text] if text else []


def _word(node: Node) -> str:
    if isinstance(node, NumberNode):
        return "number"
    if isinstance(node, (ArrayNode, ObjectNode)):
        return "list" if isinstance(node, ArrayNode) else "object"
    return WORDS.get(type(node), "this")
