"""A real model in our decode loop: what small it knows comes out right. Texts differ with the processor, so values are compared."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from taiwa.kernel.messages import Choice, Constraint, JsonSchema, Regex, Request, Sampling, system, user
from taiwa.kernel.serialization import Json
from taiwa.models.inprocess.generator import GeneratedText
from taiwa.models.inprocess.gguf import GgufModel

PERSON: dict[str, Json] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "city": {"enum": ["Paris", "Berlin", "Rome"]},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model(smollm2: Path) -> Iterator[GgufModel]:
    with GgufModel(f"{smollm2}?threads=1&context=1024") as made:
        yield made


def answer(model: GgufModel, text: str, constraint: Constraint | None = None, prefix: str = "") -> GeneratedText:
    request = Request(
        (system("Answer briefly."), user(text)), constraint=constraint, prefix=prefix,
        sampling=Sampling(temperature=0, max_tokens=40),
    )  # fmt: skip
    *_, found = model.generator().stream(request)
    assert isinstance(found, GeneratedText)
    return found


def test_a_question_is_answered(model: GgufModel) -> None:
    found = answer(model, "How many legs has a spider?")

    assert "8" in found.text
    assert found.result.finish == "stop"


def test_a_choice_is_made(model: GgufModel) -> None:
    assert answer(model, "What is the capital of Germany?", Choice(("Rome", "Berlin", "Paris"))).text == "Berlin"


def test_a_form_is_filled_in_with_fewer_passes_than_tokens(model: GgufModel) -> None:
    found = answer(model, "Write as JSON: Ana is 31 years old and lives in Rome.", JsonSchema(PERSON))

    assert json.loads(found.text) == {"name": "Ana", "age": 31, "city": "Rome"}
    assert found.result.passes < len(found.result.tokens)


def test_a_call_is_written_and_the_text_goes_on_after_its_result(model: GgufModel) -> None:
    question = "Ben has 12 apples and buys 30 more. How many has he?"
    begun = "He has 12 + 30 apples, that is <<calc: "
    call = answer(model, question, Regex(r"He has 12 \+ 30 apples, that is <<calc: [0-9]+ ?[+*-] ?[0-9]+>>"), begun)
    assert call.text.replace(" ", "") == "12+30>>"

    going = answer(model, question, prefix=f"{begun}{call.text} = 42 apples. So the answer is")

    assert "42" in going.text
    assert going.usage.cache_read_tokens > going.usage.input_tokens - 20


def test_its_vocabulary_lacks_bytes_that_hardly_any_text_has(model: GgufModel) -> None:
    vocabulary = model.generator().loaded.network.vocabulary

    assert len(vocabulary) == 49_152
    assert vocabulary.check().missing == b"\xf1\xf2"
    assert vocabulary.decode(vocabulary.encode("茶 tea <|im_end|>")).decode() == "茶 tea <|im_end|>"
