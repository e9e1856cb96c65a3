"""Assess a dialogue: five scores and clarifying questions, by a typed answer or a function call."""

from collections.abc import Mapping, Sequence
from typing import cast

from taiwa.flows.ask.ask_result import safe_line
from taiwa.flows.ask.dialogue import dialogue_message, reply_language, user_texts
from taiwa.flows.ask.prompts import load_prompts, shipped_policy
from taiwa.flows.ask.types import (
    QUESTIONS,
    SCORES,
    AssessBy,
    Assessment,
    AssessmentSource,
    Level,
    PolicyFunction,
    PolicyTable,
)
from taiwa.flows.extract import ExtractError, extract
from taiwa.flows.route import Routed, Routes
from taiwa.kernel.effects import Complete, GetCapabilities, HideOutput, Program, notify, perform
from taiwa.kernel.errors import InputError, OutputValidationError, UnsupportedError
from taiwa.kernel.messages import Message, Request, ToolSpec, system
from taiwa.kernel.serialization import Json
from taiwa.structured import OutputType

TYPED = PolicyTable("typed", SCORES, QUESTIONS)


def _assess_by_call(
    material: Message,
    prompt: str,
    functions: Sequence[PolicyFunction],
    table: PolicyTable,
    source: AssessmentSource,
    open_question: str,
) -> Program[Assessment]:
    """Let the model call one of the functions, natively if the server has function calling, else by a typed answer.

    If a model answers in words although it could call a function, these words are the clarifying question. If it fills in no
    function, the question that it wrote is asked, or `open_question`.
    """
    messages = (system(prompt), material)
    types = {function.name: _function_type(function, table) for function in functions}
    if "tools" in (yield from perform(GetCapabilities())):
        tools = tuple(ToolSpec(each.name, each.about, types[each.name].schema()) for each in functions)
        try:
            request = Request(messages, tools=tools, tool_choice="required")
            response = yield from perform(Complete(request, HideOutput))
            for call in reversed(response.message.tool_calls):
                if call.name in types:
                    return _assessment(
                        types[call.name].parse(call.arguments).value, call.name, functions, table, source
                    )
            words = safe_line(response.text)
            if response.finish == "stop" and words and not response.text.lstrip().startswith(("{", "```")):
                return Assessment(source=source, reply=words)
            yield from notify("assessed without a function call: the model called none", code="downgrade")
        except (UnsupportedError, OutputValidationError) as error:
            yield from notify(f"assessed without a function call: {error.message}", code="downgrade")
    try:
        if len(functions) == 1:
            ((name, output_type),) = types.items()
            values = (yield from extract(output_type, messages)).value
            return _assessment(values, name, functions, table, source)
        routed = (yield from extract(Routes(types), messages)).value
    except ExtractError as error:
        asked = _written_question(error.best, table.questions) or open_question
        if not asked:
            raise
        yield from notify(f"the assessment could not be read: {error.message}", code="downgrade", warning=True)
        return Assessment(source=source, reply=asked)
    if isinstance(routed, Routed):
        return _assessment(cast("dict[str, Json]", routed.value), routed.to, functions, table, source)
    return Assessment((("is_question", 5), ("is_consultation", 5)), source=source)  # neither: clear, without a question


def _written_question(data: Json, names: Sequence[str]) -> str:
    """Return the first clarifying question in an answer that has other faults; empty without one."""
    if not isinstance(data, dict):
        return ""
    texts = (safe_line(text) for name in names if isinstance(text := data.get(name), str))
    inner = (_written_question(part, names) for part in data.values())
    return next((text for text in (*texts, *inner) if text), "")


def _function_type(function: PolicyFunction, table: PolicyTable) -> "OutputType[dict[str, Json]]":
    """Return the type of the arguments of a function; all of its scores are required."""
    fields: dict[str, object] = {name: Level if name in table.scores else str for name in function.fields}
    return OutputType.fields(function.name, fields, set(function.fields) & set(table.scores))


def _assessment(
    values: Mapping[str, Json],
    name: str,
    functions: Sequence[PolicyFunction],
    table: PolicyTable,
    source: AssessmentSource,
) -> Assessment:
    """Return the scores and questions of a function call, with the scores that the choice of the function implies."""
    implied = next(dict[str, Json](each.implies) for each in functions if each.name == name)
    given = implied | dict(values)
    names = dict.fromkeys((*table.scores, *table.questions, *given))  # in one order, whatever the model's was
    scores = tuple((each, part) for each in names if isinstance(part := given.get(each), (int, float)))
    questions = tuple((each, part) for each in names if isinstance(part := given.get(each), str) and part)
    return Assessment(scores, questions, source)


def assess(
    dialogue: Sequence[Message],
    *,
    by: AssessBy = "auto",
    about: Sequence[tuple[str, str]] = (),
    language: str = "",
    table: PolicyTable | None = None,
    open_question: str = "",
) -> Program[Assessment]:
    """Assess what the user wants.

    `about` are facts about the user, `language` that of the prompts (ja, zh, en; "":
    that of the dialogue), and `table` has scores, questions, functions and prompts of a policy file. `open_question` is asked
    if the model does not fill in the assessment. `auto` is `functions` if the table has some, else `typed`.

    Raises (when run):
        InputError: the dialogue has no text of the user.
        ModelError: the server failed.
        OutputValidationError: the answer could not be read, and there is no clarifying question.
    """
    texts = user_texts(dialogue)
    if not texts:
        raise InputError("the dialogue has no text of the user")
    material = dialogue_message(dialogue, person=dict[str, Json](about))
    prompts = load_prompts(reply_language(texts, language)).replaced_by(() if table is None else table.prompts)
    if by == "functions" or (by == "auto" and table is not None and table.functions):
        functions = (table and table.functions) or shipped_policy("article").functions
        names = tuple(dict.fromkeys(name for each in functions for name in each.fields))
        prompt = prompts.call_function(names)
        return (yield from _assess_by_call(material, prompt, functions, table or TYPED, "functions", open_question))
    table = table or TYPED
    whole = PolicyFunction("Assessment", "", (*table.scores, *table.questions))
    prompt = prompts.assess(whole.fields)
    return (yield from _assess_by_call(material, prompt, (whole,), table, "typed", open_question))
