"""What was asked and what it cost, failed, lost and abandoned turns included."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from taiwa.kernel.values import Usage
from taiwa.store.connection import Connection

__all__ = ["Axis", "Line", "bill"]

Axis: TypeAlias = Literal["app", "model", "day", "session"]

AXES: dict[Axis, str] = {
    "app": "coalesce(app.name, '')",
    "model": "call.model",
    "day": "date(call.at_us / 1000000, 'unixepoch')",
    "session": "run.ref",
}
SUMS = """
    sum(kind = 'Complete'), sum(kind = 'CallTool'), sum(kind = 'Complete' AND call.error IS NOT NULL),
    sum(call.input), sum(output), sum(cache_read), sum(cache_write), sum(reasoning),
    sum(kind = 'Complete' AND answer IS NOT NULL AND NOT metered),
    sum(metered AND cost_nano IS NULL),
    sum(coalesce(cost_nano, 0))
FROM call JOIN run ON run.seq = call.run LEFT JOIN app ON app.seq = run.app"""

STOPPED_AXES = AXES | {"model": "run.model", "day": "date(run.at_us / 1000000, 'unixepoch')"}
STOPPED = """
    sum(run.asked - answered.calls)
FROM run LEFT JOIN app ON app.seq = run.app
JOIN (SELECT run.seq, count(call.seq) AS calls FROM run LEFT JOIN call ON call.run = run.seq AND call.kind = 'Complete'
      WHERE run.asked GROUP BY run.seq) answered ON answered.seq = run.seq AND run.asked > answered.calls"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill, in billionths of the currency unit.

    `unmetered` answers came without usage and `unpriced` ones from a model whose price was not known; with any of them
    `cost_nano` is None, for the sum is not known, and `known_nano` is what is known of it.
    """

    name: str
    requests: int
    tool_calls: int
    failed: int
    usage: Usage
    unmetered: int
    unpriced: int
    known_nano: int

    @property
    def cost_nano(self) -> int | None:
        """The whole cost, or None."""
        return None if self.unmetered or self.unpriced else self.known_nano


def bill(db: Connection, by: Axis) -> tuple[Line, ...]:
    """Add up all calls by app, model, day (UTC, as providers count) or session, in the order of names.

    A call that was stopped before it answered counts as a failed one without usage, for it may have been paid for.
    """
    # By place: the word `name` would be the app's, which is a column.
    answered = db.rows(f"SELECT {AXES[by]}, {SUMS} GROUP BY 1")
    found = {
        name: Line(name, asked, tools, failed, Usage(*rest[:5]), *rest[5:])
        for name, asked, tools, failed, *rest in answered
    }
    for name, count in db.rows(f"SELECT {STOPPED_AXES[by]}, {STOPPED} GROUP BY 1"):
        line = found.get(name, Line(name, 0, 0, 0, Usage(), 0, 0, 0))
        asked, failed, unmetered = line.requests + count, line.failed + count, line.unmetered + count
        found[name] = replace(line, requests=asked, failed=failed, unmetered=unmetered)
    return tuple(found[name] for name in sorted(found))
