"""Items of lists are checked as soon as they are complete, each once: those of the outermost list on their path."""

from taiwa.kernel import Json
from taiwa.shape.diagnose import diagnostics, pointer
from taiwa.shape.faults import Path, node_at
from taiwa.shape.form import ArrayNode, Form, Node, members

__all__ = ["ItemWatch"]


class ItemWatch:
    """Looks at each item with the node of its list, which is found once per list."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._list: Path | None = None
        self._node: ArrayNode | None = None

    def look(self, view: Json, path: Path, item: Json) -> tuple[str, ...]:
        """Give the diagnostics of an item that is complete; nothing for an item inside of another one."""
        outer = path[:-1]
        if any(isinstance(part, int) for part in outer):
            return ()
        if outer != self._list:
            self._list, self._node = outer, self._find(view, outer)
        if self._node is None or not path or not isinstance(path[-1], int):
            return ()
        place = path[-1]
        prefix = self._node.prefix
        inner: Node = prefix[place] if place < len(prefix) else self._node.items
        lines = diagnostics(Form(inner, self.form.name, self.form.named), item)
        return tuple(line.replace("$", pointer(path), 1) for line in lines)

    def _find(self, view: Json, path: Path) -> ArrayNode | None:
        node = node_at(self.form, view, path)
        if node is None:
            return None
        return next((each for each in members(node, self.form) if isinstance(each, ArrayNode)), None)
