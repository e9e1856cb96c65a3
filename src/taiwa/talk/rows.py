"""The rows of a batch, and when a batch ends.

A text that cannot be answered is a row with its error. What would fail every row ends the batch: a wrong key, a broken
setting, a full store, a cost limit. What was done by then is kept, and is not paid for again.
"""

from typing import Protocol

from taiwa.kernel.errors import AuthError, ConfigError, LimitError, StoreError, TaiwaError
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json, value
from taiwa.talk.turn import TurnOptions, Voice

__all__ = ["Counted", "Given", "Row", "ends_batch", "failed", "see_that_limits_hold"]


@value(tag="batch-input")
class Given:
    """One row as it was given; `error` says why it cannot be said, or is empty."""

    index: int
    text: str = ""
    id: Json = None
    params: Json = None
    error: str = ""


@value(tag="batch-row")
class Row:
    """What came of a row: `answer` None means that it failed. `kept` rows were answered before."""

    given: Given
    answer: str | None = None
    delta: Json = None
    state: Json = None
    warnings: tuple[str, ...] = ()
    session: str = ""
    node: str = ""
    parent: str = ""
    spent: Spent = Spent()
    error: Json = None
    kept: bool = False


class Counted(Protocol):
    """What the sum of a batch needs to know of a row, whatever it is a row of."""

    @property
    def spent(self) -> Spent:
        """Its bill."""
        ...

    @property
    def error(self) -> Json:
        """Its error, or None."""
        ...

    @property
    def kept(self) -> bool:
        """Whether it was answered before."""
        ...


def failed(given: Given, error: TaiwaError) -> Row:
    """A row with its error and what it cost all the same."""
    told: dict[str, Json] = {"type": error.tag, "message": error.message}
    return Row(given, error=told, spent=error.spent if isinstance(error.spent, Spent) else Spent())


def see_that_limits_hold(options: TurnOptions, spent: Spent, voice: Voice) -> None:
    """Refuse to go on where a cost limit is reached, or where nobody can say any more whether it is.

    Raises:
        LimitError, ConfigError: so it is.
    """
    limit = options.limits.cost
    if limit is None:
        return
    if spent.cost is None:
        name = voice.model.name
        raise ConfigError(f"the cost of a call to {name} is not known, so a cost limit cannot hold any longer")
    if spent.cost >= limit:
        raise LimitError("cost", spent.cost / 1e9, limit / 1e9)


def ends_batch(error: TaiwaError) -> bool:
    """Whether the next row could only fail in the same way."""
    if isinstance(error, LimitError):
        return error.which == "cost"
    return isinstance(error, (AuthError, ConfigError, StoreError))
