"""langchain-openai: `ChatOpenAI.ainvoke` with a list of messages. Nothing is stored on disk."""

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

from benches.peers import Begin


class Lang:
    """A conversation as a list of messages."""

    def __init__(self, model: ChatOpenAI, opening: str) -> None:
        self._model = model
        self._messages: list[BaseMessage] = [SystemMessage(opening)]

    async def say(self, text: str) -> str:
        self._messages.append(HumanMessage(text))
        said = await self._model.ainvoke(self._messages)
        self._messages.append(said)
        return str(said.content)


def open_talks(address: str, opening: str) -> Begin:
    model = ChatOpenAI(base_url=address, api_key="none", model="with-delta", max_retries=0)  # type: ignore[arg-type]
    return lambda: Lang(model, opening)
