"""Approval of tool calls: which calls need it, who decides, and what follows."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from taiwa.kernel.errors import ApprovalRequiredError, InputError, ToolError, describe
from taiwa.kernel.serialization import Json, exact_json
from taiwa.kernel.text import truncate

MAX_SHOWN_CHARS = 200
"""Characters of a call in an error message."""
NOT_APPROVED = "not_approved"
"""The code of the `ToolError` of a call that was refused."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A tool call that needs approval before it is made."""

    name: str
    arguments: Mapping[str, Json]
    description: str = ""
    """What the tool does, in its own words; text of third parties for a tool of an MCP server."""

    def __str__(self) -> str:
        return f"{self.name}({exact_json(dict(self.arguments), allow_nan=True)})"


Decision: TypeAlias = bool | None
"""Make the call, refuse it, or, without a decision, interrupt the run before it."""
Approver: TypeAlias = Callable[[ApprovalRequest], Decision | Awaitable[Decision]]
Approve: TypeAlias = Literal["always", "never"] | Approver
"""Who decides on calls that need approval: a function, or all calls are made, or none."""


def check_approve(approve: object) -> None:
    """Check the argument `approve` of a caller without a type checker.

    Raises:
        InputError: it is not one of these.
    """
    if not (approve is None or approve in ("always", "never") or callable(approve)):
        raise InputError(f'approve must be a function of a call, "always" or "never", got {describe(approve)}')


def needs_approval(tool: object) -> bool:
    """Return whether calls of a tool need approval."""
    return getattr(tool, "confirm", False) is True


def apply_decision(request: ApprovalRequest, decision: Decision) -> None:
    """Return if a call is approved.

    Raises:
        ToolError: it is refused; the model receives that.
        ApprovalRequiredError: there is no decision.
    """
    if decision is None:
        raise ApprovalRequiredError(approval_message((request,)), calls=(request,))
    if not decision:
        raise ToolError(f"the user refused the call of {request.name}", code=NOT_APPROVED, hint="do not call it again")


def approval_message(calls: tuple[ApprovalRequest, ...]) -> str:
    """Return the message of an `ApprovalRequiredError`."""
    shown = truncate(", ".join(map(str, calls)), MAX_SHOWN_CHARS)
    return f"approval is required for {shown}; approve it on a terminal, by --approve always, or in Python by approve=…"
