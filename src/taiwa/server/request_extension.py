"""The extension of every wire, only where it is asked for: an object `taiwa` in a request asks for one in the response."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import currency_units
from taiwa.operations.documents import find_ask_turn
from taiwa.operations.inspect import tokens, trace
from taiwa.operations.result_json import to_json
from taiwa.server.catalogue import Catalogue
from taiwa.server.errors import invalid
from taiwa.server.request import Fields
from taiwa.sessions.commit_turn import TurnResult
from taiwa.sessions.repository import Repository

PARTS = ("state", "trace", "masks")
"""What a request may include: the state after the turn, its calls, tools and scores, and the tokens under their masks."""
PREFIX = "taiwa:"


@dataclass(frozen=True, slots=True)
class Extension:
    """What a request asks for: `params` of the app, and the parts of the answer to include."""

    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    include: tuple[str, ...] = ()

    def write(self, results: list[TurnResult], repository: Repository, catalogue: Catalogue) -> Json:
        """Write where the turns stand: an object for one answer, an array for several. It reads from the store."""
        written: list[Json] = [self._write(result, repository, catalogue) for result in results]
        return written[0] if len(written) == 1 else written

    def _write(self, result: TurnResult, repository: Repository, catalogue: Catalogue) -> Json:
        cost = currency_units(result.spent.cost)
        written: dict[str, Json] = {
            "session": result.session,
            "node": result.node,
            "parent": result.parent,
            "delta": result.delta,
            "cost": None if cost is None else str(cost),
            "warnings": list(result.warnings),
        }
        if (turn := find_ask_turn(repository, result.node)) is not None:
            found = cast("dict[str, Json]", to_json(turn))
            written |= {name: found[name] for name in ("question", "options", "citations", "passages")}
        if "state" in self.include:
            written["state"] = dict(repository.checkout(result.node).state)
        if "trace" in self.include:
            found = cast("dict[str, Json]", to_json(trace(repository, result.node)))
            written["trace"] = {name: part for name, part in found.items() if name != "node"}
        if "masks" in self.include:
            listed = cast("dict[str, Json]", to_json(tokens(repository, result.node, catalogue.model_named)))
            written["masks"] = listed["answers"]
        return written


def read_extension(body: Fields, others: Collection[str] = ()) -> Extension | None:
    """Read the object `taiwa` of a request and the parts that `include` names, such as `taiwa:state`; None without either.

    `others` are the names that the protocol itself has for `include`.

    Raises:
        ApiError: a field of it is unknown or has a wrong type.
    """
    own = tuple(PREFIX + name for name in PARTS)
    parts = tuple(name.removeprefix(PREFIX) for name in _included(body, (*others, *own)) if name in own)
    given = body.object("taiwa")
    if given is None:
        return Extension(include=parts) if parts else None
    given.check_names({"params", "person", "include"})
    return Extension(read_params(given), (*parts, *_included(given, PARTS)))


def _included(body: Fields, names: Collection[str]) -> tuple[str, ...]:
    found, path = body.texts("include"), body.at("include")
    unknown = next((name for name in found if name not in names), None)
    if unknown is not None:
        raise invalid(path, f"unknown {path} {unknown[:80]!r}; choose from {', '.join(names)}", "invalid_value")
    return found


def read_params(given: Fields) -> dict[str, Json]:
    """Read the parameters of an app, and the person, whose profile is the parameter `user`."""
    params, person = given.object("params"), given.optional_text("person")
    return ({} if params is None else params.data) | ({} if person is None else {"user": person})


Extend: TypeAlias = Callable[[list[TurnResult]], Awaitable[dict[str, Json]]]
"""Returns the fields that a request asked for beside its protocol."""


def extender(extension: Extension | None, repository: Repository, catalogue: Catalogue) -> Extend:
    """Return what writes the object `taiwa` of a response; nothing if it was not asked for."""

    async def extend(results: list[TurnResult]) -> dict[str, Json]:
        if extension is None:
            return {}
        return {"taiwa": await asyncio.to_thread(extension.write, results, repository, catalogue)}

    return extend
