"""The jobs with llm, which has no repair of answers, no choice among words, no cost limit and no scripted model."""

__all__ = ["JOBS"]


def question() -> str:
    import llm

    return llm.get_model().prompt("What is a monad?").text()


def stream() -> str:
    import llm

    return "".join(llm.get_model().prompt("What is a monad?"))


def tools() -> str:
    import llm

    def price(drink: str) -> str:
        """Return the price of a drink in euros."""
        return str({"tea": 3.5}[drink])

    return llm.get_model().chain("What does tea cost?", tools=[price]).text()


def conversation() -> str:
    import llm

    conversation = llm.get_model().conversation()
    conversation.prompt("I am Aiko.").text()
    return conversation.prompt("Who am I?").text()


def branch() -> str:
    import llm

    conversation = llm.get_model().conversation()
    conversation.prompt("I am Aiko.").text()
    conversation.prompt("I live in Nara.").text()
    conversation.responses.pop()
    return conversation.prompt("I live in Kyoto.").text()


def at_once() -> list[str]:
    import asyncio

    import llm

    async def one(n: int) -> str:
        return await llm.get_async_model().prompt(f"Hello {n}").text()

    async def main() -> list[str]:
        return await asyncio.gather(*map(one, range(20)))

    return asyncio.run(main())


JOBS = {each.__name__: each for each in (question, stream, tools, conversation, branch, at_once)}
