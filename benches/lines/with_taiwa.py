"""The jobs with taiwa."""

from typing import Literal

from benches.lines.order import Order

__all__ = ["JOBS"]


def question() -> str:
    import taiwa

    return taiwa.generate("What is a monad?").text


def stream() -> str:
    import taiwa

    return "".join(taiwa.stream("What is a monad?"))


def value() -> Order:
    import taiwa

    return taiwa.extract(Order, "Two teas, please.")


def choice() -> str:
    import taiwa

    return taiwa.extract(Literal["positive", "negative"], "The mood?")


def tools() -> str:
    import taiwa

    @taiwa.tool
    def price(drink: str) -> float:
        """Return the price of a drink in euros."""
        return {"tea": 3.5}[drink]

    return taiwa.solve("What does tea cost?", tools=[price]).answer


def conversation() -> str:
    import taiwa

    session = taiwa.open()
    session.say("I am Aiko.")
    return session.say("Who am I?").text


def branch() -> str:
    import taiwa

    session = taiwa.open()
    session.say("I am Aiko.")
    session.say("I live in Nara.")
    return session.edit("I live in Kyoto.").text


def resumed() -> str:
    import taiwa

    taiwa.open(session="aiko").say("I am Aiko.")
    return taiwa.open(session="aiko").say("Who am I?").text


def at_once() -> list[str]:
    import asyncio

    import taiwa

    async def main() -> list[str]:
        async with taiwa.AsyncClient() as client:
            answers = await asyncio.gather(*(client.generate(f"Hello {n}") for n in range(20)))
        return [answer.text for answer in answers]

    return asyncio.run(main())


def budget() -> str:
    import taiwa

    client = taiwa.Client(prices=taiwa.Prices("2", "8"), limits=taiwa.Limits(cost="0.005"))
    session = client.session()
    try:
        for _ in range(9):
            session.say("Go on.")
    except taiwa.LimitError as error:
        return str(error)
    return ""


def without_a_server() -> str:
    import taiwa

    return taiwa.Client(taiwa.scripted_model("Hello!")).generate("Hi").text


JOBS = {
    each.__name__: each
    for each in (
        question, stream, value, choice, tools, conversation, branch, resumed, at_once, budget, without_a_server,
    )
}  # fmt: skip
