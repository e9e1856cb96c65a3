"""A GGUF file behind a genuine llama.cpp server of our own: what it can do, how it ends, and how it breaks."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from taiwa.flows.extract import extract
from taiwa.kernel.errors import ConfigError, ModelError
from taiwa.kernel.messages import (
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    Regex,
    Request,
    Response,
    Sampling,
    TextDelta,
    ToolCallsInText,
    ToolSpec,
    collect_response,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json
from taiwa.models.inprocess.gguf import GgufModel, LlamaServer, parse_gguf_spec
from taiwa.models.providers import open_model, resolve
from taiwa.settings import load
from taiwa.structured import OutputType
from tests.peers.llama import write_model

ASK = Request((user("hi"),), sampling=Sampling(max_tokens=120))
CALC = ToolSpec(
    "calc", "", {"type": "object", "properties": {"x": {"type": "string", "maxLength": 6}}, "required": ["x"]}
)
TREE: dict[str, Json] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "multipleOf": 37, "minimum": 100, "maximum": 200},
        "kind": {"oneOf": [{"const": "leaf"}, {"const": "stem"}]},
        "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/end"}]},
    },
    "required": ["size", "kind", "next"],
    "additionalProperties": False,
    "$defs": {"end": {"type": "object", "properties": {}, "additionalProperties": False}},
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_model(path)
    return path


@pytest.fixture(scope="module")
def model(file: Path) -> Iterator[GgufModel]:
    with GgufModel(resolve(f"gguf:{file}?threads=1&context=2048")) as made:
        yield made


@pytest.fixture
def own(file: Path) -> Iterator[GgufModel]:
    """A model that a test may break."""
    with GgufModel(resolve(f"gguf:{file}?threads=1&slots=1&context=8192")) as made:
        yield made


def ask(model: GgufModel, constraint: Constraint | None = None, prefix: str = "") -> Response:
    return collect_response(model.stream(replace(ASK, constraint=constraint, prefix=prefix)))


def server_of(model: GgufModel) -> LlamaServer:
    return model._starter.running()


def process_of(model: GgufModel) -> int:
    return server_of(model)._process.pid


def until(condition: Callable[[], bool]) -> bool:
    """Wait for something that another process does."""
    end = time.monotonic() + 300
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def is_gone(process: int) -> bool:
    """Whether a process has ended, be it that nobody has asked for its end yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    ("constraint", "fits"),
    [
        (Regex("[0-9]{4}-[0-9]{2}"), lambda text: len(text) == 7 and text[4] == "-"),
        (Choice(("はい", "いいえ")), lambda text: text in ("はい", "いいえ")),
        (Grammar('start: "(" NUMBER ")"\nNUMBER: /[0-9]{2,4}/'), lambda text: text[0] + text[-1] == "()"),
        (ToolCallsInText((CALC,), free_text=False), lambda text: text.startswith("<<calc: ") and text.endswith(">>")),
        (JsonSchema(TREE), lambda text: json.loads(text)["size"] in (111, 148, 185)),
    ],
)
def test_every_constraint_holds_even_a_model_that_knows_nothing(
    model: GgufModel, constraint: Constraint, fits: Callable[[str], bool]
) -> None:
    answer = ask(model, constraint)

    assert answer.finish == "stop"
    assert fits(answer.text), answer.text
    assert answer.enforcement is not None
    assert answer.enforcement.whole
    assert answer.enforcement.enforced


NUMBERS: dict[str, Json] = {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}
LINKED: dict[str, Json] = {
    "type": "object",
    "properties": {"n": NUMBERS, "next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
    "required": ["n", "next"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("schema", [NUMBERS, LINKED], ids=["array", "refers to itself"])
def test_every_number_is_one_that_readers_of_json_take(model: GgufModel, schema: dict[str, Json]) -> None:
    for seed in range(4):
        request = replace(ASK, constraint=JsonSchema(schema), sampling=Sampling(1.0, None, 1_000, seed))
        answer = collect_response(model.stream(request))

        assert answer.enforcement is not None
        assert answer.enforcement.whole
        if answer.finish == "stop":
            assert "inf" not in repr(json.loads(answer.text))
        else:
            assert re.search(r"e\+?[0-9]{3}", answer.text, re.IGNORECASE) is None


def test_what_the_decoder_cannot_hold_is_named_in_the_answer(model: GgufModel) -> None:
    schema: dict[str, Json] = {
        "type": "array",
        "items": {"enum": ["a", "b"]},
        "minItems": 3,
        "maxItems": 3,
        "uniqueItems": True,
    }

    answer = ask(model, JsonSchema(schema))

    found = json.loads(answer.text)
    assert len(found) == 3
    assert answer.enforcement is not None
    assert answer.enforcement.checked == ("/: uniqueItems",)


def test_a_begun_answer_is_gone_on_with_under_its_constraint(model: GgufModel) -> None:
    answer = ask(model, Regex("2026-(10|11)-[0-9]{2}"), "2026-1")

    assert len(answer.text) == 4
    assert answer.text[0] in "01"
    assert answer.text[1] == "-"


def test_probabilities_and_the_bill_are_told(model: GgufModel) -> None:
    answer = collect_response(model.stream(replace(ASK, top_logprobs=3, sampling=Sampling(max_tokens=4))))

    assert len(answer.logprobs) == 4
    assert answer.usage is not None
    assert answer.usage.output_tokens == 4


def test_a_flow_reads_a_type_through_it(model: GgufModel) -> None:
    found = Runtime(model).run(extract(OutputType.from_json_schema(TREE), "What is it?"))

    assert found.attempts[-1].mode == "native"
    assert found.attempts[-1].enforcement is not None
    assert "/properties/size: multipleOf" in found.attempts[-1].enforcement.enforced


def test_it_answers_asynchronously_and_several_at_a_time(model: GgufModel) -> None:
    async def say() -> str:
        return collect_response(
            [chunk async for chunk in model.astream(replace(ASK, sampling=Sampling(max_tokens=12)))]
        ).text

    async def together() -> list[str]:
        return await asyncio.gather(*(say() for _ in range(4)))

    first, *others = asyncio.run(together())

    assert first
    assert others == [first] * 3


def test_the_key_stands_in_no_command_line_and_the_server_listens_here_only(model: GgufModel) -> None:
    server = server_of(model)

    assert server.key.encode() not in Path(f"/proc/{process_of(model)}/cmdline").read_bytes()
    assert server.base_url.startswith("http://127.0.0.1:")


def test_closing_ends_the_process_and_the_next_request_starts_another(own: GgufModel) -> None:
    first = process_of(own)

    own.close()

    assert is_gone(first)
    assert ask(own, Regex("a{3}")).text == "aaa"
    assert process_of(own) != first


def test_a_server_that_breaks_off_is_told_of_in_one_line_and_started_again(own: GgufModel) -> None:
    chunks = own.stream(replace(ASK, sampling=Sampling(max_tokens=7000)))
    assert isinstance(next(chunks), TextDelta)

    os.kill(process_of(own), signal.SIGSEGV)
    with pytest.raises(ModelError, match="has ended: it crashed with SIGSEGV") as caught:
        list(chunks)

    assert "\n" not in caught.value.message
    assert ask(own, Regex("a{3}")).text == "aaa"


def test_memory_that_runs_out_is_named_as_the_likely_reason(own: GgufModel) -> None:
    chunks = own.stream(replace(ASK, sampling=Sampling(max_tokens=7000)))
    next(chunks)

    os.kill(process_of(own), signal.SIGKILL)
    with pytest.raises(ModelError, match="probably for lack of memory"):
        list(chunks)


def test_it_ends_with_a_program_that_is_killed(file: Path) -> None:
    script = (
        "import sys, time\n"
        "from taiwa.models.inprocess.gguf import parse_gguf_spec\n"
        "from taiwa.models.inprocess.gguf import LlamaServer\n"
        "server = LlamaServer(parse_gguf_spec(sys.argv[1]))\n"
        "print(server._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", script, str(file)], stdout=subprocess.PIPE)
    assert program.stdout is not None
    server = int(program.stdout.readline())

    program.kill()
    program.communicate()

    assert until(lambda: is_gone(server))


def test_a_file_that_llama_cpp_cannot_load_is_refused_in_its_own_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"x" * 64)

    with pytest.raises(ConfigError, match=r"llama\.cpp cannot (load|serve) .*broken\.gguf: ") as caught:
        ask(GgufModel(resolve(f"gguf:{broken}")))

    assert "\n" not in caught.value.message


def test_without_the_extra_the_message_names_it(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError(name='xllamacpp')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with pytest.raises(ConfigError, match=r"pip install 'taiwa\[gguf\]'"):
        LlamaServer(parse_gguf_spec(str(file)))


def test_a_name_is_opened_once_and_either_prefix_leads_to_it(file: Path) -> None:
    chosen = load({}, {"HOME": "/"}, Path("/none/config.yaml"))
    target = resolve(f"gguf:{file}")

    opened = open_model(target, chosen)

    assert isinstance(opened, GgufModel)
    assert open_model(target, chosen) is opened
    assert isinstance(open_model(resolve(f"local:{file}?threads=1"), chosen), GgufModel)
    assert "grammar" in opened.capabilities


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gguf:", "does not name"),
        ("gguf:/none/x.gguf", "not found"),
        ("gguf:/none/x.gguf?treads=4", "did you mean 'threads'"),
        ("gguf:/none/x.gguf?threads=-1", "a whole number"),
        ("gguf:/none/x.gguf?slots=0", "at least 1"),
        ("gguf:/", "is a folder"),
        (f"gguf:{__file__}", "is not a GGUF file"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_before_anything_starts(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        GgufModel(resolve(name))
