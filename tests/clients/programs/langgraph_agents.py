"""Prebuilt agents of langchain and LangGraph: tools, both strategies of types, threads, streams, batches, errors."""

import os

from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from pydantic import BaseModel
from refusals import refused


class Person(BaseModel):
    name: str
    age: int


def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


def say(text: str) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}]}


for options in ({}, {"use_responses_api": True}, {"use_responses_api": True, "use_previous_response_id": True}):
    model = ChatOpenAI(model=os.environ["MODEL"], stream_usage=True, **options)
    agent = create_agent(model, [get_weather], system_prompt="Be brief.")
    assert agent.invoke(say("Weather?"))["messages"][-1].text == "The tool says rain in Nara."
    modes = {mode for mode, _ in agent.stream(say("Weather?"), stream_mode=["messages", "updates"])}
    assert modes == {"messages", "updates"}
    for strategy in (ToolStrategy, ProviderStrategy):
        typed = create_agent(model, response_format=strategy(Person)).invoke(say("Who?"))
        assert typed["structured_response"] == Person(name="Nara", age=3)
    older = create_react_agent(model, [get_weather], response_format=Person).invoke(say("Weather?"))
    assert older["structured_response"] == Person(name="Nara", age=3)
    kept = create_agent(model, checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    assert [kept.invoke(say(text), thread)["messages"][-1].text for text in "ab"] == ["Read: a", "Read: a | b"]
    for method in ("json_schema", "function_calling"):
        assert model.with_structured_output(Person, method=method).invoke("Who?") == Person(name="Nara", age=3)
    assert [message.text for message in model.batch(["a", "b"])] == ["Read: a", "Read: b"]
    pieces = list(model.stream("c"))
    assert "".join(piece.text for piece in pieces) == "Read: c"
    assert any(piece.usage_metadata for piece in pieces)
    with refused():
        model.invoke("status 400")
