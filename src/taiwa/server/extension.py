"""The extension of every wire: an object `taiwa` in a request asks for one in the response."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from taiwa.kernel.records import Json
from taiwa.kernel.usage_limits import currency_units
from taiwa.server.fields import Fields
from taiwa.sessions.durable_turn import TurnResult


@dataclass(frozen=True, slots=True)
class Extension:
    """What a request asks for: `params` of the app."""

    params: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def write(self, results: list[TurnResult]) -> Json:
        """Write where the turns stand: an object for one answer, an array for several."""
        written: list[Json] = [_write(result) for result in results]
        return written[0] if len(written) == 1 else written


def read_extension(body: Fields) -> Extension | None:
    """Read the object `taiwa` of a request; None without one.

    Raises:
        ApiError: a field of it is unknown or has a wrong type.
    """
    given = body.object("taiwa")
    if given is None:
        return None
    given.check_names({"params"})
    params = given.object("params")
    return Extension({} if params is None else params.data)


def _write(result: TurnResult) -> Json:
    cost = currency_units(result.spent.cost)
    return {
        "session": result.session,
        "node": result.node,
        "parent": result.parent,
        "delta": result.delta,
        "cost": None if cost is None else str(cost),
        "warnings": list(result.warnings),
    }
