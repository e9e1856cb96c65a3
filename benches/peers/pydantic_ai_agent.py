"""pydantic-ai: `Agent.run` with the history that it returns. Nothing is stored on disk."""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benches.peers import Begin


class Ai:
    """A conversation as the messages of the last run."""

    def __init__(self, agent: Agent[None, str]) -> None:
        self._agent = agent
        self._messages: list[ModelMessage] = []

    async def say(self, text: str) -> str:
        run = await self._agent.run(text, message_history=self._messages)
        self._messages = run.all_messages()
        return run.output


def open_talks(address: str, opening: str) -> Begin:
    model = OpenAIChatModel("with-delta", provider=OpenAIProvider(base_url=address, api_key="none"))
    agent: Agent[None, str] = Agent(model, system_prompt=opening)
    return lambda: Ai(agent)
