"""The type a text is read as, and whether some JSON has it: the judge, the form, and the wrapping of the wire."""

import json
from dataclasses import dataclass
from typing import Generic, TypeVar

from taiwa.kernel import Json
from taiwa.shape.diagnose import diagnostics, pointer
from taiwa.shape.form import ArrayNode, Form, LiteralNode, ObjectNode, StringNode, members
from taiwa.shape.judges import Complaint, Judge, MisfitError
from taiwa.shape.plain import depth_of, flaws

__all__ = ["WRAP", "Target"]

T = TypeVar("T")
WRAP = "value"


@dataclass(frozen=True, slots=True)
class Target(Generic[T]):
    """What is wanted. `form` is the form of the bare type, `wrapped` tells whether it travels as `{"value": …}`."""

    judge: Judge[T]
    form: Form
    name: str
    wrapped: bool
    depth: int = 128

    def bare(self, data: Json) -> Json:
        """Take wire data out of its wrapping; data that is bare already stays as it is."""
        if self.wrapped and isinstance(data, dict) and len(data) == 1 and WRAP in data:
            return data[WRAP]
        return data

    def accept(self, data: Json) -> T:
        """Give the value that bare JSON data stands for.

        Raises:
            MisfitError: the data does not have the type.
        """
        if depth_of(data, self.depth) > self.depth:
            raise MisfitError((Complaint((), f"nested deeper than {self.depth}", "validator"),))
        try:
            raw = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except ValueError:
            raise MisfitError(tuple(Complaint(path, text, "validator") for path, text in flaws(data))) from None
        return self.judge.from_json(raw)

    def diagnose(self, data: Json, misfit: MisfitError) -> tuple[str, ...]:
        """Say what is wrong with bare data."""
        if depth_of(data, self.depth) > self.depth:
            return (f"$: nested deeper than {self.depth}",)
        odd = tuple(f"{pointer(path)} {text}" for path, text in flaws(data))
        return odd[:1] or diagnostics(self.form, data, misfit.complaints) or ("$: does not have the type",)

    def admits(self, kind: type[ObjectNode] | type[ArrayNode] | type[StringNode] | type[LiteralNode]) -> bool:
        """Tell whether a value of the type can be of a kind."""
        return any(isinstance(each, kind) for each in members(self.form.root, self.form))
