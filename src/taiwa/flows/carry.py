"""Carrying out a checked program: `[CallTool] …`, independent calls side by side, what writes alone and confirmed.

A call that writes runs after all calls before it and before all calls after it, whether or not they refer to each other:
only the results that a program names are known here, and not what its calls do to the world.
"""

from dataclasses import replace
from typing import Literal, TypeAlias, cast

from taiwa.flows.api import Api
from taiwa.flows.programs import REFERENCE, Call, Plan, references
from taiwa.flows.signatures import Function
from taiwa.kernel.effects import CallTool, Effect, Program, gather, perform
from taiwa.kernel.errors import InputError, LimitError, ShapeError, ToolError
from taiwa.kernel.records import Json, value

__all__ = ["Carried", "Confirm", "Outcome", "Status", "carry_out"]

Status: TypeAlias = Literal["done", "failed", "declined", "dry_run", "skipped"]
"""Ran · ran and failed · was not confirmed · would have run · was not reached, or needed the result of one that did not run."""


@value(tag="confirm")
class Confirm(Effect[bool]):
    """Ask whether a function that writes may be called; a runtime answers by `handlers={Confirm: ask_somebody}`."""

    function: str
    arguments: dict[str, Json]
    about: str = ""


@value(tag="call-outcome")
class Carried:
    """What became of one call. `arguments` have results in place of references, as far as there are any."""

    call: Call
    status: Status
    arguments: dict[str, Json]
    result: Json = None
    error: str = ""


@value(tag="plan-result")
class Outcome:
    """What became of a program, call by call, in the order of the plan."""

    calls: tuple[Carried, ...]

    @property
    def finished(self) -> bool:
        """Whether every call ran."""
        return all(step.status == "done" for step in self.calls)

    @property
    def result(self) -> Json:
        """The result of the last call.

        Raises:
            ToolError: not every call ran.
        """
        for step in self.calls:
            if step.status != "done":
                why = f": {step.error}" if step.error else ""
                raise ToolError(
                    f"the program did not finish: {step.call.function} {step.status}{why}", code="unfinished"
                )
        return self.calls[-1].result if self.calls else None


def carry_out(api: Api, plan: Plan, *, dry: bool = False) -> Program[Outcome]:
    """Run a program. The runtime has the functions as tools (`Api.bind`) and, unless `dry`, a handler for `Confirm`.

    A dry run calls what reads and shows what writes. After a call that failed or was declined nothing more is called.

    Raises (when run):
        InputError: the plan says that the API cannot do what was asked, or is none of this API.
        ConfigError: something writes, and nobody answers `Confirm`.
    """
    if plan.unknown:
        raise InputError(f"{api.signatures.name} cannot do what was asked: {'; '.join(plan.unknown)}")
    for at, call in enumerate(plan.calls):
        if call.function not in api.functions or any(
            not 0 <= other < at for each in call.arguments for other in references(each)
        ):
            raise InputError(f"call {at} of the plan, {call.function}, is none of {api.signatures.name}")
    steps = [Carried(call, "skipped", {}) for call in plan.calls]
    for level in _levels(api, plan):
        made = yield from gather(_step(api, at, tuple(steps), dry=dry) for at in level)
        for at, step in zip(level, made, strict=True):
            steps[at] = step
        if any(step.status in ("failed", "declined") for step in made):
            break
    return Outcome(tuple(steps))


def _levels(api: Api, plan: Plan) -> list[list[int]]:
    """Group calls so that each comes after those it depends on; calls of one group run side by side."""
    levels: list[int] = []
    first = 0  # nothing may run before this level any more
    for call in plan.calls:
        level = max((levels[other] + 1 for each in call.arguments for other in references(each)), default=first)
        level = max(level, first)
        if api.functions[call.function].access == "write":
            level = max(levels, default=-1) + 1
            first = level + 1
        levels.append(level)
    groups: list[list[int]] = [[] for _ in range(max(levels, default=-1) + 1)]
    for at, level in enumerate(levels):
        groups[level].append(at)
    return groups


def _step(api: Api, at: int, steps: tuple[Carried, ...], *, dry: bool) -> Program[Carried]:
    """Run one call whose references have been run, where that is allowed."""
    step = steps[at]
    function = api.functions[step.call.function]
    needed = [steps[other] for each in step.call.arguments for other in references(each)]
    names = (parameter.name for parameter in function.parameters)
    arguments = {name: _filled(each, steps) for name, each in zip(names, step.call.arguments, strict=False)}
    step = replace(step, arguments=arguments)
    if dry and (function.access == "write" or any(each.status != "done" for each in needed)):
        return replace(step, status="dry_run")
    try:
        _check(function, arguments)
        if function.access == "write" and not (yield from perform(Confirm(function.name, arguments, function.about))):
            return replace(step, status="declined")
        result = yield from perform(CallTool(function.name, arguments))
        if result.error:
            raise ToolError(result.text, code=result.error)
        function.returns.check(result.value)
    except (ToolError, ShapeError, LimitError) as error:
        return replace(step, status="failed", error=error.message)
    return replace(step, status="done", result=result.value)


def _check(function: Function, arguments: dict[str, Json]) -> None:
    """See once more that arguments have their types: results came from outside."""
    for parameter in function.parameters:
        if parameter.name in arguments:
            parameter.shape.check(arguments[parameter.name])


def _filled(data: Json, steps: tuple[Carried, ...]) -> Json:
    """Put results in the place of references; a reference without a result stays."""
    if isinstance(data, list):
        return [_filled(each, steps) for each in data]
    if not isinstance(data, dict):
        return data
    at = data.get(REFERENCE)
    if isinstance(at, int):
        return steps[at].result if steps[at].status == "done" else cast("Json", data)
    return {key: _filled(each, steps) for key, each in data.items()}
