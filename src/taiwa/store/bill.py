"""What was asked and what it cost, failed, lost and abandoned turns included."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Literal, TypeAlias

from taiwa.kernel.values import Usage
from taiwa.store.connection import Connection

__all__ = ["Axis", "Line", "bill"]

Axis: TypeAlias = Literal["app", "model", "day", "session"]

AXES: dict[Axis, str] = {
    "app": "coalesce(app.name, '')",
    "model": "call.model",
    "day": "call.at_us / 86400000000",
    "session": "run.ref",
}
SUMS = """
    count(*) FILTER (WHERE kind = 'complete'), count(*) FILTER (WHERE kind = 'call-tool'),
    count(*) FILTER (WHERE kind = 'complete' AND call.error IS NOT NULL),
    CAST(sum(call.input) AS BIGINT), CAST(sum(output) AS BIGINT), CAST(sum(cache_read) AS BIGINT),
    CAST(sum(cache_write) AS BIGINT), CAST(sum(reasoning) AS BIGINT),
    count(*) FILTER (WHERE kind = 'complete' AND answer IS NOT NULL AND metered = 0),
    count(*) FILTER (WHERE metered <> 0 AND cost_nano IS NULL),
    CAST(sum(coalesce(cost_nano, 0)) AS BIGINT)
FROM call JOIN run ON run.seq = call.run LEFT JOIN app ON app.seq = run.app"""

STOPPED_AXES = AXES | {"model": "run.model", "day": "run.at_us / 86400000000"}
STOPPED = """
    CAST(sum(run.asked - answered.calls) AS BIGINT)
FROM run LEFT JOIN app ON app.seq = run.app
JOIN (SELECT run.seq, count(call.seq) AS calls FROM run LEFT JOIN call ON call.run = run.seq AND call.kind = 'complete'
      WHERE run.asked > 0 GROUP BY run.seq) answered ON answered.seq = run.seq AND run.asked > answered.calls"""


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
    called: Callable[[Any], str] = _day if by == "day" else str
    found = {
        called(name): Line(called(name), asked, tools, failed, Usage(*rest[:5]), *rest[5:])
        for name, asked, tools, failed, *rest in answered
    }
    for place, count in db.rows(f"SELECT {STOPPED_AXES[by]}, {STOPPED} GROUP BY 1"):
        name = called(place)
        line = found.get(name, Line(name, 0, 0, 0, Usage(), 0, 0, 0))
        asked, failed, unmetered = line.requests + count, line.failed + count, line.unmetered + count
        found[name] = replace(line, requests=asked, failed=failed, unmetered=unmetered)
    return tuple(found[name] for name in sorted(found))


def _day(number: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
