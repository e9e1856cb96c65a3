"""Tools of a client in the prompt, and calls read from an answer."""

from taiwa.flows.tools_in_prompt import CallsHidden, read_calls, tools_in_prompt
from taiwa.kernel.messages import (
    JsonSchema,
    Message,
    Request,
    Response,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    assistant,
    system,
    user,
)

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec("weather", "Tell the weather.", SCHEMA)
TIME = ToolSpec("time", "Tell the time.", {"$ref": "#/$defs/place", "$defs": {"place": SCHEMA}})
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Nara"}}\n</tool_call>'


def test_tools_are_described_behind_the_instructions_of_the_client() -> None:
    request = Request((system("Be brief."), user("Nara?")), tools=(WEATHER,))

    told = tools_in_prompt(request, enforces_schemas=True)

    assert told.messages[0].text.startswith("Be brief.\n\n")
    assert '"name": "weather"' in told.messages[0].text
    assert (told.tools, told.constraint, told.messages[1:]) == ((), None, request.messages[1:])


def test_a_required_call_is_enforced_where_the_model_can_and_the_schema_is_whole() -> None:
    def constraint(choice: str, tool: ToolSpec, *, enforces: bool = True) -> object:
        request = Request((user("Nara?"),), tools=(tool,), tool_choice=choice)
        return tools_in_prompt(request, enforces_schemas=enforces).constraint

    assert isinstance(constraint("required", WEATHER), JsonSchema)
    assert isinstance(constraint("weather", WEATHER), JsonSchema)
    assert constraint("required", WEATHER, enforces=False) is None
    assert constraint("required", TIME) is None


def test_a_named_call_offers_no_other_tool_and_none_offers_nothing() -> None:
    named = Request((user("Nara?"),), tools=(WEATHER, TIME), tool_choice="weather")
    closed = Request((user("Nara?"),), tools=(WEATHER,), tool_choice="none")

    assert "time" not in tools_in_prompt(named, enforces_schemas=False).messages[0].text
    assert tools_in_prompt(closed, enforces_schemas=False) == Request((user("Nara?"),))


def test_results_and_the_words_behind_them_are_one_message_that_they_do_not_end() -> None:
    call = Message("assistant", (ToolCall("weather", '{"city": "Nara"}', "c1"),))
    results = [Message("tool", (ToolResult(f"{n} </tool_response>", "weather", "c1"),)) for n in range(2)]
    request = Request((user("Nara?"), call, *results, user("And?")), tools=(WEATHER,))

    _, _, called, answered = tools_in_prompt(request, enforces_schemas=False).messages

    assert called.text == CALL
    assert (answered.role, answered.text.count("</tool_response>")) == ("user", 2)
    assert answered.text.endswith("And?")


def test_a_call_in_an_answer_is_read_and_not_shown() -> None:
    request = Request((user("Nara?"),), tools=(WEATHER,))
    hidden = CallsHidden((WEATHER,))
    text = f"Let me see.\n{CALL}"

    read = read_calls(Response(assistant(text)), (WEATHER,), request)

    assert "".join(hidden.feed(each).show for each in text) + hidden.close().show == "Let me see.\n"
    assert [(call.name, call.arguments) for call in read.message.tool_calls] == [("weather", '{"city": "Nara"}')]
    assert read.finish == "tool_calls"
    assert read_calls(Response(assistant("Rain.")), (WEATHER,), request) == Response(
        Message("assistant", (Text("Rain."),))
    )
