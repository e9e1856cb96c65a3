"""Every mode of instructor for OpenAI and Anthropic, and partial values of streams."""

import os
from collections.abc import Iterable
from typing import Any

import anthropic
import instructor
import openai
from instructor import Mode
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


SAID = 'SAY <<<{"name": "Nara", "age": 3}>>>'
OPENAI = (Mode.TOOLS, Mode.TOOLS_STRICT, Mode.JSON_SCHEMA, Mode.JSON, Mode.JSON_O1, Mode.MD_JSON, Mode.RESPONSES_TOOLS)


def check(client: Any, **more: object) -> None:
    asked = {"model": os.environ["MODEL"], "messages": [{"role": "user", "content": SAID}], **more}
    person = client.create(response_model=Person, **asked)
    assert (person.name, person.age) == ("Nara", 3), client.mode
    if client.mode not in (Mode.RESPONSES_TOOLS, Mode.JSON_O1):  # without streams
        *_, last = client.create_partial(response_model=Person, **asked)
        assert (last.name, last.age) == ("Nara", 3), client.mode


for mode in OPENAI:
    check(instructor.from_openai(openai.OpenAI(), mode=mode))
for mode in (Mode.ANTHROPIC_TOOLS, Mode.ANTHROPIC_JSON):
    check(instructor.from_anthropic(anthropic.Anthropic(), mode=mode), max_tokens=99)
parallel = instructor.from_openai(openai.OpenAI(), mode=Mode.PARALLEL_TOOLS)
said = [{"role": "user", "content": "Who?"}]
(found,) = parallel.create(model=os.environ["MODEL"], messages=said, response_model=Iterable[Person])
assert (found.name, found.age) == ("Nara", 3)
