"""The jobs with pydantic-ai, which has no named conversations; its limits count requests and tokens but not cost."""

from typing import Literal

from benches.lines.order import Order

__all__ = ["JOBS"]


def question() -> str:
    from pydantic_ai import Agent

    return Agent("openai-chat:gpt-5-mini").run_sync("What is a monad?").output


def stream() -> str:
    import asyncio

    from pydantic_ai import Agent

    async def main() -> str:
        async with Agent("openai-chat:gpt-5-mini").run_stream("What is a monad?") as result:
            return "".join([text async for text in result.stream_text(delta=True)])

    return asyncio.run(main())


def value() -> Order:
    from pydantic_ai import Agent

    return Agent("openai-chat:gpt-5-mini", output_type=Order).run_sync("Two teas, please.").output


def choice() -> str:
    from pydantic_ai import Agent

    return Agent("openai-chat:gpt-5-mini", output_type=Literal["positive", "negative"]).run_sync("The mood?").output


def tools() -> str:
    from pydantic_ai import Agent

    def price(drink: str) -> float:
        """Return the price of a drink in euros."""
        return {"tea": 3.5}[drink]

    return Agent("openai-chat:gpt-5-mini", tools=[price]).run_sync("What does tea cost?").output


def conversation() -> str:
    from pydantic_ai import Agent

    agent = Agent("openai-chat:gpt-5-mini")
    first = agent.run_sync("I am Aiko.")
    return agent.run_sync("Who am I?", message_history=first.all_messages()).output


def branch() -> str:
    from pydantic_ai import Agent

    agent = Agent("openai-chat:gpt-5-mini")
    first = agent.run_sync("I am Aiko.")
    agent.run_sync("I live in Nara.", message_history=first.all_messages())
    return agent.run_sync("I live in Kyoto.", message_history=first.all_messages()).output


def resumed() -> str:
    from pathlib import Path

    from pydantic_ai import Agent, ModelMessagesTypeAdapter

    agent, file = Agent("openai-chat:gpt-5-mini"), Path("aiko.json")
    file.write_bytes(agent.run_sync("I am Aiko.").all_messages_json())
    history = ModelMessagesTypeAdapter.validate_json(file.read_bytes())
    result = agent.run_sync("Who am I?", message_history=history)
    file.write_bytes(result.all_messages_json())
    return result.output


def at_once() -> list[str]:
    import asyncio

    from pydantic_ai import Agent

    async def main() -> list[str]:
        agent = Agent("openai-chat:gpt-5-mini")
        return [result.output for result in await asyncio.gather(*(agent.run(f"Hello {n}") for n in range(20)))]

    return asyncio.run(main())


def without_a_server() -> str:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    return Agent(TestModel(custom_output_text="Hello!")).run_sync("Hi").output


JOBS = {
    each.__name__: each
    for each in (question, stream, value, choice, tools, conversation, branch, resumed, at_once, without_a_server)
}
