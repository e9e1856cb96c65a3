"""The jobs with instructor. It returns values; text, streams and history come from the openai client below it."""

from typing import Literal

from benches.lines.order import Order

__all__ = ["JOBS"]


def question() -> str:
    import instructor

    client = instructor.from_provider("openai/gpt-5-mini")
    messages = [{"role": "user", "content": "What is a monad?"}]
    return client.create(response_model=None, messages=messages).choices[0].message.content


def value() -> Order:
    import instructor

    client = instructor.from_provider("openai/gpt-5-mini")
    return client.create(response_model=Order, messages=[{"role": "user", "content": "Two teas, please."}])


def choice() -> str:
    import instructor

    client = instructor.from_provider("openai/gpt-5-mini")
    messages = [{"role": "user", "content": "The mood?"}]
    return client.create(response_model=Literal["positive", "negative"], messages=messages)


def conversation() -> str:
    import instructor

    client = instructor.from_provider("openai/gpt-5-mini")
    messages = [{"role": "user", "content": "I am Aiko."}]
    answer = client.create(response_model=None, messages=messages).choices[0].message.content
    messages.append({"role": "assistant", "content": answer})
    messages.append({"role": "user", "content": "Who am I?"})
    return client.create(response_model=None, messages=messages).choices[0].message.content


def branch() -> str:
    import instructor

    client = instructor.from_provider("openai/gpt-5-mini")
    messages = [{"role": "user", "content": "I am Aiko."}]
    answer = client.create(response_model=None, messages=messages).choices[0].message.content
    messages.append({"role": "assistant", "content": answer})
    client.create(response_model=None, messages=[*messages, {"role": "user", "content": "I live in Nara."}])
    messages.append({"role": "user", "content": "I live in Kyoto."})
    return client.create(response_model=None, messages=messages).choices[0].message.content


def at_once() -> list[str]:
    import asyncio

    import instructor

    async def one(client: instructor.AsyncInstructor, n: int) -> str:
        messages = [{"role": "user", "content": f"Hello {n}"}]
        return (await client.create(response_model=None, messages=messages)).choices[0].message.content

    async def main() -> list[str]:
        client = instructor.from_provider("openai/gpt-5-mini", async_client=True)
        return await asyncio.gather(*(one(client, n) for n in range(20)))

    return asyncio.run(main())


JOBS = {each.__name__: each for each in (question, value, choice, conversation, branch, at_once)}
