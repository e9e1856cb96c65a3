"""Tools and abilities that the tests of reasoning share."""

from collections.abc import Mapping

from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import Capability, ToolResult, ToolSpec
from taiwa.kernel.serialization import Json
from taiwa.models.scripted import ALL_CAPABILITIES

NO_STOP = ALL_CAPABILITIES - {"stop"}
BARE: frozenset[Capability] = frozenset()
NATIVE: frozenset[Capability] = frozenset({"tools"})


class Adder:
    """Adds numbers joined by `+`; fails on everything else. `asked` holds what it was asked."""

    spec = ToolSpec(
        "adder",
        "Add numbers.",
        {"type": "object", "properties": {"sum": {"type": "string"}}, "required": ["sum"]},
    )

    def __init__(self) -> None:
        self.asked: list[str] = []

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        self.asked.append(str(arguments.get("sum")))
        parts = self.asked[-1].split("+")
        if not all(part.strip().isdecimal() for part in parts):
            raise ToolError("not a sum", code="syntax", hint="write 1+2")
        return ToolResult(str(sum(map(int, parts))), "adder")


class Echo:
    """Gives back a fixed text, or raises a fixed error, whatever it is asked."""

    spec = ToolSpec("echo", "Give a text.", {"type": "object", "properties": {}})

    def __init__(self, gives: str | Exception) -> None:
        self._gives = gives

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        if isinstance(self._gives, Exception):
            raise self._gives
        return ToolResult(self._gives, "echo")


ADDER = Adder()
SPECS = (ADDER.spec,)
