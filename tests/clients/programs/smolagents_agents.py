"""Agents of smolagents: code and calls of tools, streams, types, errors."""

import os

from refusals import refused
from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, tool


@tool
def get_weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: The name of the city.
    """
    return f"rain in {city}"


model = OpenAIModel(os.environ["MODEL"], api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])


def say(text: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


answer = model.generate(say("a"))
assert (answer.content, answer.token_usage.output_tokens) == ("Read: a", 3)
assert "".join(piece.content or "" for piece in model.generate_stream(say("b"))) == "Read: b"
code = "final_answer(get_weather('Nara'))"
for structured, text in ((False, f"<code>\n{code}\n</code>\n"), (True, f'{{"thought": "", "code": "{code}"}}')):
    agent = CodeAgent([get_weather], model, use_structured_outputs_internally=structured, verbosity_level=0)
    assert agent.run(f"SAY <<<{text}>>>") == "rain in Nara"
calling = ToolCallingAgent([get_weather], model, max_steps=1, verbosity_level=0)
assert "rain in Nara" in str(calling.run("Weather?"))
with refused():
    model.generate(say("status 400"))
