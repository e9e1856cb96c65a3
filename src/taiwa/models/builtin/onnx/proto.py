"""A graph of ONNX as the bytes of its file. Of protocol buffers only the wire format is needed, so no library writes it."""

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Attribute", "Graph"]

Attribute: TypeAlias = "int | float | Sequence[int]"
Axes: TypeAlias = "Sequence[int | str]"

IR_VERSION = 8
OPSET = 17
CONTRIBUTED = "com.microsoft"
KINDS = {"float32": 1, "uint8": 2, "int64": 7}
FLOAT, INT, INTS = 1, 2, 7
"""What an attribute holds, by the numbers of the format."""
CHUNKS = 2
FIXED32 = 5
"""Wire types: a length and so many bytes; four bytes. A number of varying length has type 0."""


class Graph:
    """A graph under construction: each step gives the name of what it makes, which later ones take."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._held: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._count = 0

    def input(self, name: str, kind: str, axes: Axes) -> str:
        """What a run is given; an axis whose length varies has a name."""
        self._inputs.append(_value(name, kind, axes))
        return name

    def output(self, name: str, kind: str, axes: Axes) -> None:
        """What a run gives."""
        self._outputs.append(_value(name, kind, axes))

    def hold(self, numbers: "NDArray[Any]") -> str:
        """Numbers that belong to the graph."""
        name = self._name()
        self._held.append(
            b"".join(_number(1, size) for size in numbers.shape)
            + _number(2, KINDS[numbers.dtype.name])
            + _text(8, name)
            + _chunk(9, numbers.astype(numbers.dtype.newbyteorder("<")).tobytes())
        )
        return name

    def add(self, kind: str, *given: str, ours: bool = True, **attributes: Attribute) -> str:
        """One step with one result; `ours` is false for what onnxruntime has beyond the standard."""
        return self.split(kind, 1, *given, ours=ours, **attributes)[0]

    def split(self, kind: str, count: int, *given: str, ours: bool = True, **attributes: Attribute) -> Sequence[str]:
        """One step with several results."""
        made = [self._name() for _ in range(count)]
        self.node(kind, given, made, attributes, "" if ours else CONTRIBUTED)
        return made

    def node(
        self,
        kind: str,
        given: Sequence[str],
        made: Sequence[str],
        attributes: Mapping[str, Attribute],
        domain: str = "",
    ) -> None:
        """One step whose results have names."""
        self._nodes.append(
            b"".join(_text(1, name) for name in given)
            + b"".join(_text(2, name) for name in made)
            + _text(4, kind)
            + b"".join(_chunk(5, _attribute(name, value)) for name, value in attributes.items())
            + _text(7, domain)
        )

    def model(self) -> bytes:
        """The whole file."""
        parts = ((1, self._nodes), (5, self._held), (11, self._inputs), (12, self._outputs))
        graph = _text(2, "taiwa") + b"".join(_chunk(field, part) for field, all_ in parts for part in all_)
        sets = (("", OPSET), (CONTRIBUTED, 1))
        return (
            _number(1, IR_VERSION)
            + _text(2, "taiwa")
            + _chunk(7, graph)
            + b"".join(_chunk(8, _text(1, domain) + _number(2, version)) for domain, version in sets)
        )

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"


def _value(name: str, kind: str, axes: Axes) -> bytes:
    sizes = (_text(2, axis) if isinstance(axis, str) else _number(1, axis) for axis in axes)
    shape = b"".join(_chunk(1, size) for size in sizes)
    return _text(1, name) + _chunk(2, _chunk(1, _number(1, KINDS[kind]) + _chunk(2, shape)))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, INT)
    if isinstance(value, float):
        return _text(1, name) + _varying(2 << 3 | FIXED32) + struct.pack("<f", value) + _number(20, FLOAT)
    return _text(1, name) + b"".join(_number(8, each) for each in value) + _number(20, INTS)


def _text(field: int, text: str) -> bytes:
    return _chunk(field, text.encode())


def _chunk(field: int, held: bytes) -> bytes:
    return _varying(field << 3 | CHUNKS) + _varying(len(held)) + held


def _number(field: int, number: int) -> bytes:
    return _varying(field << 3) + _varying(number)


def _varying(number: int) -> bytes:
    """Seven bits a byte, the lowest first; a number below nought as if of 64 bits."""
    rest = number & (1 << 64) - 1
    made = bytearray()
    while rest > 0x7F:
        made.append(rest & 0x7F | 0x80)
        rest >>= 7
    made.append(rest)
    return bytes(made)
