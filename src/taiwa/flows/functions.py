"""The second published variant: the model answers by one of two functions, and the one that it chooses branches the flow."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from taiwa.flows.askwords import EITHER
from taiwa.flows.assessment import Assessment, Level
from taiwa.flows.extract import extract
from taiwa.flows.route import Routed, Routes
from taiwa.kernel.effects import Abilities, Complete, Hidden, Program, perform, tell
from taiwa.kernel.errors import ShapeError, UnsupportedError
from taiwa.kernel.records import value
from taiwa.kernel.values import Message, Request, ToolSpec, system
from taiwa.shape import Shape

__all__ = ["AboutConsultation", "AboutQuestion", "assess_by_functions"]


@value
class AboutQuestion:
    """The user asks a question."""

    clarity: Level = 1
    in_internal_docs: Level = 1
    ask_person: Level = 1
    ask_missing_info: str = ""
    ask_user_meta_info: str = ""


@value
class AboutConsultation:
    """The user seeks advice on something of their own."""

    clarity: Level = 1
    in_internal_docs: Level = 1
    ask_person: Level = 1
    res_consultation: str = ""
    ask_user_meta_info: str = ""


Either: TypeAlias = AboutQuestion | AboutConsultation
FUNCTIONS: Mapping[str, type[Either]] = {
    "evaluate_question": AboutQuestion,
    "evaluate_consultation": AboutConsultation,
}


def assess_by_functions(given: Message, language: str) -> Program[Assessment]:
    """Let the model choose a function, natively where its server has function calling, else by a typed answer.

    Raises (when run):
        ShapeError: the answer could not be read.
    """
    said = (system(EITHER[language]), given)
    abilities = yield from perform(Abilities())
    if "tools" in abilities:
        found = yield from _called(said)
        if found is not None:
            return _assessment(found)
    routed = yield from extract(Routes(dict(FUNCTIONS)), said, task="assess")
    way = routed.value
    if isinstance(way, Routed) and isinstance(way.value, (AboutQuestion, AboutConsultation)):
        return _assessment(way.value)
    return replace(_assessment(AboutQuestion()), is_question=5)  # neither: clear, and nothing to look for


def _called(said: tuple[Message, ...]) -> Program[Either | None]:
    """Ask for a call of one of the functions; None where the server has none, or the model calls none that can be read."""
    shapes: Mapping[str, Shape[Either]] = {name: Shape(kind) for name, kind in FUNCTIONS.items()}
    tools = tuple(ToolSpec(name, str(FUNCTIONS[name].__doc__), shape.schema()) for name, shape in shapes.items())
    try:
        request = Request(said, tools=tools, tool_choice="required", task="assess")
        response = yield from perform(Complete(request, Hidden))
        for call in reversed(response.message.tool_calls):
            if call.name in shapes:
                return shapes[call.name].read(call.arguments).value
    except (UnsupportedError, ShapeError) as error:
        yield from tell(f"assessed without a function call: {error.message}", code="downgrade")
        return None
    yield from tell("assessed without a function call: the model called none", code="downgrade")
    return None


def _assessment(found: Either) -> Assessment:
    """The scores that a choice of function implies."""
    asks = isinstance(found, AboutQuestion)
    return Assessment(
        clarity=found.clarity,
        is_question=1 if asks else 5,
        is_consultation=5 if asks else 1,
        in_internal_docs=found.in_internal_docs,
        ask_person=found.ask_person,
        ask_missing_info=found.ask_missing_info if isinstance(found, AboutQuestion) else "",
        res_consultation=found.res_consultation if isinstance(found, AboutConsultation) else "",
        ask_user_meta_info=found.ask_user_meta_info,
        source="functions",
    )
