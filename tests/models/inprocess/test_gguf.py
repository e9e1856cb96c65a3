"""A GGUF file in our decode loop: what it can do, how its process ends, and how it breaks."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from taiwa.flows.extract import extract
from taiwa.kernel.errors import ConfigError, InputError, ModelError
from taiwa.kernel.messages import (
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    Message,
    Regex,
    Request,
    Response,
    Sampling,
    TextDelta,
    ToolCallsInText,
    ToolSpec,
    assistant,
    collect_response,
    system,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json
from taiwa.models.http_api.api_keys import Secret
from taiwa.models.http_api.client import HttpModel
from taiwa.models.inprocess import chat_template, gguf
from taiwa.models.inprocess.gguf import GgufModel
from taiwa.models.inprocess.gguf_backend import LlamaProcess, runtime_folder, stop_kept
from taiwa.models.inprocess.gguf_process import (
    CONTEXT_DEFAULTS,
    LAST_RETRY_SECONDS,
    ContextParameters,
    RefusedError,
    Threads,
    check_defaults,
)
from taiwa.models.providers import open_model, resolve
from taiwa.settings import load
from taiwa.structured import OutputType
from tests.peers.llama import KEY, LlamaServer, write_model

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


@pytest.fixture
def model(gguf_loaded: GgufModel) -> GgufModel:
    gguf_loaded.generator().prefix_cache.clear()
    return gguf_loaded


@pytest.fixture
def own(gguf_file: Path) -> Iterator[GgufModel]:
    """A model that a test may break."""
    with GgufModel(f"gguf:{gguf_file}?threads=1&context=8192") as made:
        yield made


def ask(model: GgufModel, constraint: Constraint | None = None, prefix: str = "") -> Response:
    return collect_response(model.stream(replace(ASK, constraint=constraint, prefix=prefix)))


def process_of(model: GgufModel) -> int:
    return int(model.generator().loaded.network.process.described["process"])


def text_of(model: GgufModel, *messages: Message) -> str:
    """The prompt of a conversation, special tokens included."""
    loaded = model.generator().loaded
    tokens = loaded.prepare(Request(messages))
    return b"".join(loaded.network.vocabulary.tokens[token] for token in tokens).decode()


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
    assert answer.decoding.enforcement is not None
    assert answer.decoding.enforcement.whole
    assert answer.decoding.enforcement.enforced


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

        assert answer.decoding.enforcement is not None
        assert answer.decoding.enforcement.whole
        if answer.finish == "stop":
            assert "inf" not in repr(json.loads(answer.text))
        else:
            assert re.search(r"e\+?[0-9]{3}", answer.text, re.IGNORECASE) is None


def test_the_likeliest_text_is_that_of_the_server_of_llama_cpp(llama: LlamaServer) -> None:
    with GgufModel(f"{llama.model}?threads=1&context=2048") as own:
        for text in ("hi", "the tea in the inn", "お茶 12"):
            request = Request((system("Answer."), user(text)), sampling=Sampling(temperature=0, max_tokens=30))
            with HttpModel(resolve(f"{llama.base_url}#tiny"), Secret(KEY)) as server:
                theirs = collect_response(server.stream(request))
            ours = collect_response(own.stream(request))

            assert ours.text == theirs.text
            assert ours.finish == theirs.finish


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
    assert answer.decoding.enforcement is not None
    assert answer.decoding.enforcement.checked == ("/: uniqueItems",)


def test_a_begun_answer_is_gone_on_with_under_its_constraint(model: GgufModel) -> None:
    answer = ask(model, Regex("2026-(10|11)-[0-9]{2}"), "2026-1")

    assert len(answer.text) == 4
    assert answer.text[0] in "01"
    assert answer.text[1] == "-"


def test_probabilities_and_the_bill_are_told(model: GgufModel) -> None:
    answer = collect_response(model.stream(replace(ASK, top_logprobs=3, sampling=Sampling(max_tokens=4))))

    assert len(answer.decoding.logprobs) == 4
    assert answer.usage is not None
    assert answer.usage.output_tokens == 4


def test_a_flow_reads_a_type_through_it(model: GgufModel) -> None:
    found = Runtime(model).run(extract(OutputType.from_json_schema(TREE), "What is it?"))

    assert found.attempts[-1].mode == "native"
    assert found.attempts[-1].enforcement is not None
    assert "/properties/size: multipleOf" in found.attempts[-1].enforcement.enforced


def test_closing_ends_the_process_and_the_next_request_starts_another(own: GgufModel) -> None:
    first = process_of(own)

    own.close()

    assert is_gone(first)
    assert ask(own, Regex("x(yz){3}")).text == "xyzyzyz"  # compiled now, with the tokenizer of the new process
    assert process_of(own) != first


def test_a_process_that_crashes_is_told_of_in_one_line_and_started_again(own: GgufModel) -> None:
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


def test_it_ends_with_a_program_that_is_killed(gguf_file: Path) -> None:
    script = (
        "import sys, time\n"
        "from taiwa.models.inprocess.gguf import GgufModel\n"
        "model = GgufModel(sys.argv[1])\n"
        "print(model.generator().loaded.network.process.described['process'], flush=True)\n"
        "time.sleep(60)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", script, str(gguf_file)], stdout=subprocess.PIPE)
    assert program.stdout is not None
    process = int(program.stdout.readline())

    program.kill()
    program.communicate()

    assert until(lambda: is_gone(process))


FORK = """
import os, sys
from taiwa.kernel.messages import Regex, Request, collect_response, user
from taiwa.models.inprocess.gguf import GgufModel

model = GgufModel(sys.argv[1] + "?threads=1&context=512")

def tell(letter):
    asked = Request((user("hi"),), constraint=Regex(letter + "{3}"))
    text = collect_response(model.stream(asked)).text
    print(text, model.generator().loaded.network.process.described["process"], flush=True)

tell("a")
if os.fork() == 0:
    tell("b")
    model.close()
    os._exit(0)
os.wait()
tell("c")
"""


def test_a_fork_of_this_process_starts_its_own(gguf_file: Path) -> None:
    found = subprocess.run([sys.executable, "-c", FORK, str(gguf_file)], capture_output=True, text=True, check=True)

    first, forked, last = (line.split() for line in found.stdout.splitlines())
    assert [first[0], forked[0], last[0]] == ["aaa", "bbb", "ccc"]
    assert first[1] == last[1] != forked[1]


def test_its_process_shares_the_session_of_the_program_and_not_what_the_terminal_interrupts(own: GgufModel) -> None:
    process = process_of(own)

    assert os.getsid(process) == os.getsid(0)
    assert os.getpgid(process) == process != os.getpgid(0)


def test_a_process_is_asked_once_for_the_tokens_of_a_forced_text(
    gguf_loaded: GgufModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary, asked = gguf_loaded.generator().loaded.network.vocabulary, list[str]()
    tokenize = LlamaProcess.tokenize

    def counted(self: LlamaProcess, text: str, *, special: bool) -> tuple[int, ...]:
        asked.append(text)
        return tokenize(self, text, special=special)

    monkeypatch.setattr(LlamaProcess, "tokenize", counted)
    first, second = (vocabulary.encode("a text that no other test forces") for _ in range(2))

    assert first == second
    assert sum("a text that no other test forces" in text for text in asked) == 1


def test_a_request_that_was_interrupted_while_waiting_does_not_disturb_the_next(own: GgufModel) -> None:
    network = own.generator().loaded.network
    sequence = network.start()
    wanted = network.start().read([70, 71, 72, 73])
    connection = network.process._connections[0]
    receive = connection._receive_more

    def interrupt(*, with_file: bool = False) -> None:
        connection._receive_more = receive  # type: ignore[method-assign]
        raise KeyboardInterrupt

    connection._receive_more = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        sequence.read([90, 91])
    found = sequence.read([70, 71, 72, 73])

    assert sequence.tokens == [70, 71, 72, 73]
    assert found == pytest.approx(wanted, abs=1e-5)


# --- sequences --------------------------------------------------------------------------------------------------------


def test_more_sequences_than_have_a_place_are_read_again(model: GgufModel) -> None:
    network = model.generator().loaded.network
    first = network.start()
    first.read([70, 71, 72])

    others = [first.fork() for _ in range(network.most_sequences + 3)]
    read = [other.read([80 + number]) for number, other in enumerate(others)]
    again = first.read([80])

    assert again == pytest.approx(read[0], abs=0.05)
    assert first.batch(network.most_sequences) is None


def test_texts_that_fill_the_context_push_out_the_one_not_used_for_longest(gguf_file: Path) -> None:
    with GgufModel(f"{gguf_file}?context=256&threads=1") as model:
        network = model.generator().loaded.network
        old, new = network.start(), network.start()
        wanted = old.read([70] * 150)
        new.read([71] * 150)

        old.rollback(1)
        assert old.read([70]) == pytest.approx(wanted, abs=0.05)

        side = new.batch(4)
        assert side is not None
        with pytest.raises(ModelError, match=r"256 tokens for all answers .* is full"):
            side.read([[72] * 60] * 4, [None] * 4)
        assert new.read([72]).shape == (len(network.vocabulary),)


def test_sequences_that_are_dropped_are_freed(model: GgufModel) -> None:
    network = model.generator().loaded.network
    sequence = network.start()
    sequence.read([70])
    number = sequence.number

    del sequence

    assert list(network.dropped)[-1] == number


# --- chat templates ---------------------------------------------------------------------------------------------------


def with_template(folder: Path, template: str | None, **given: bool) -> GgufModel:
    path = folder / "templated.gguf"
    write_model(path, template=template, **given)
    return GgufModel(f"{path}?threads=1&context=512")


def test_a_conversation_is_written_by_the_template_of_the_file(model: GgufModel) -> None:
    assert text_of(model, system("Be brief."), user("hi")) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_template_has_the_functions_that_transformers_gives_to_templates(tmp_path: Path) -> None:
    template = (
        "{{ bos_token }}{%- for message in messages -%}{% if loop.index > 2 %}{% break %}{% endif %}\n"
        "{% generation %}{{ message | tojson }}{% endgeneration %}{{ strftime_now('%%') }}{{ eos_token }}{% endfor %}"
    )
    with with_template(tmp_path, template) as model:
        assert text_of(model, user("é"), assistant("b"), user("c")) == (
            '<|end|>{"role": "user", "content": "é"}%<|im_end|>{"role": "assistant", "content": "b"}%<|im_end|>'
        )


def test_a_start_token_is_written_once_whether_or_not_the_template_writes_it(tmp_path: Path) -> None:
    for number, start in enumerate(("", "{{ bos_token }}")):
        folder = tmp_path / str(number)
        folder.mkdir()
        with with_template(folder, start + "{{ messages[0].content }}", add_start=True) as model:
            assert text_of(model, user("hi")) == "<|end|>hi"


def test_turns_that_a_template_refuses_are_merged_or_the_refusal_is_told(tmp_path: Path) -> None:
    template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ messages[0].content }}"
    )
    with with_template(tmp_path, template) as model:
        assert text_of(model, system("Be brief."), user("hi")) == "Be brief.\n\nhi"
    with (
        with_template(tmp_path, "{{ raise_exception('not today') }}") as model,
        pytest.raises(InputError, match="does not support this conversation: not today"),
    ):
        ask(model)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "does not end within"),
        ("{{ 'a' * 10**12 }}", "MemoryError"),
        ("{% for a in range(99999) %}{{ 'a' * 999 }}{% endfor %}", "it writes 99,8"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{% if %}", "Expected an expression"),
        ("{{ raise_exception('a\\nb \x1b[31m' + 'c' * 10**6) }}", r"conversation: a b \[31mc{400,500}…?$"),
    ],
)
def test_a_hostile_template_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, words: str
) -> None:
    if words.startswith("does not end"):
        monkeypatch.setattr(chat_template, "RENDER_LIMITS", replace(chat_template.RENDER_LIMITS, seconds=0.2))

    with with_template(tmp_path, template) as model, pytest.raises(InputError, match=words) as caught:
        ask(model)

    assert "\n" not in caught.value.message


def test_a_file_without_a_template_goes_on_with_plain_text(tmp_path: Path) -> None:
    with with_template(tmp_path, None) as model:
        assert text_of(model, user("Once upon")) == "Once upon"
        assert (
            text_of(model, user("a"), assistant("b"), user("c")) == "User: a\n\nAssistant: b\n\nUser: c\n\nAssistant:"
        )
        assert ask(model, Regex("a{3}")).text == "aaa"


def test_over_completions_a_file_with_a_template_continues_plain_text(gguf_file: Path) -> None:
    with GgufModel(f"{gguf_file}?threads=1&context=512&wire=completions") as model:
        assert text_of(model, user("Once <|im_end|> upon")) == "Once <|im_end|> upon"
        assert text_of(model, user("a"), assistant("b"), user("c")).endswith("User: c\n\nAssistant:")


def test_a_transcript_ends_where_the_next_turn_would_begin(tmp_path: Path) -> None:
    with with_template(tmp_path, None) as model:
        request = Request((system("Be brief."), user("hi")), constraint=Regex("so it is\n\nUser: and on it goes"))
        answer = collect_response(model.stream(request))

    assert (answer.text, answer.finish, answer.stop) == ("so it is", "stop", None)


# --- files that cannot be loaded --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [12, 24, 200, 5_000, 100_000])
def test_a_truncated_file_is_refused_in_one_line(gguf_file: Path, tmp_path: Path, kept: int) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(gguf_file.read_bytes()[:kept])

    with pytest.raises(
        ConfigError, match=r"llama\.cpp cannot load .*broken\.gguf: it is broken or not complete"
    ) as caught:
        ask(GgufModel(str(broken)))

    assert "\n" not in caught.value.message


def test_what_is_not_a_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)

    with pytest.raises(ConfigError, match="is not a regular file"):
        GgufModel(str(pipe))


@pytest.mark.parametrize(("place", "value"), [(4, 99), (8, 2**62), (16, 2**62), (24, 2**61)])
def test_a_header_with_impossible_numbers_is_refused_in_one_line(
    gguf_file: Path, tmp_path: Path, place: int, value: int
) -> None:
    data = bytearray(gguf_file.read_bytes())
    data[place : place + 8] = value.to_bytes(8, "little")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(data)

    with pytest.raises(ConfigError, match=r"llama\.cpp cannot load .*broken\.gguf: ") as caught:
        ask(GgufModel(str(broken)))

    assert "\n" not in caught.value.message


def test_llama_cpp_that_aborts_starts_no_debugger(
    gguf_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = b"llama.block_count" + struct.pack("<I", 4)
    broken, debugger = tmp_path / "broken.gguf", tmp_path / "gdb"
    broken.write_bytes(gguf_file.read_bytes().replace(layers + struct.pack("<I", 2), layers + struct.pack("<I", 0)))
    debugger.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n", encoding="utf-8")
    debugger.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    with pytest.raises(ConfigError, match=r"it crashed with SIGABRT; its log: .*GGML_ASSERT"):
        ask(GgufModel(str(broken)))

    assert not (tmp_path / "started").exists()


def test_a_model_that_does_not_fit_is_refused_with_the_context_that_would(
    gguf_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = gguf_file.stat().st_size
    monkeypatch.setattr(gguf, "available_memory", lambda: size - 1)
    with pytest.raises(ConfigError, match="choose a smaller file"):
        ask(GgufModel(str(gguf_file)))

    monkeypatch.setattr(gguf, "available_memory", lambda: size + (64 << 20) + 512 * 64 * 64 + 1024 * 4000)
    with pytest.raises(ConfigError, match=r"a context of 8,192 tokens needs .*context=(\d+) fits") as caught:
        ask(GgufModel(f"{gguf_file}?context=8192"))
    fits = re.search(r"context=(\d+)", caught.value.message)
    assert fits is not None
    with GgufModel(f"{gguf_file}?context={fits[1]}") as model:
        assert ask(model, Regex("a{3}")).text == "aaa"
    with GgufModel(str(gguf_file)) as model:
        assert model.generator().loaded.network.context == int(fits[1])


def test_a_context_longer_than_the_model_reads_is_refused(gguf_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"it reads at most 8,192 tokens; use context=8192 or less"):
        ask(GgufModel(f"{gguf_file}?context=9000"))


def test_without_the_extra_the_message_names_it(
    gguf_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xllamacpp.py").write_text("", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with pytest.raises(ConfigError, match="a model in a GGUF file needs the extra gguf"):
        GgufModel(str(gguf_file)).generator()


def test_another_build_of_the_library_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"has other parameters \(n_ctx is 0\)"):
        check_defaults(ContextParameters(), CONTEXT_DEFAULTS)


def test_a_name_is_opened_once_and_every_spelling_leads_to_it(gguf_file: Path) -> None:
    chosen = load({}, {"HOME": "/"}, Path("/none/config.yaml"))
    target = resolve(f"gguf:{gguf_file}")

    opened = open_model(target, chosen)

    assert isinstance(opened, GgufModel)
    assert open_model(target, chosen) is opened
    assert "grammar" in opened.capabilities
    for name in (f"local:{gguf_file}?threads=1", str(gguf_file), f"{gguf_file}?threads=1"):
        assert isinstance(open_model(resolve(name), chosen), GgufModel)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gguf:", "does not name"),
        ("gguf:/none/x.gguf", "not found"),
        ("x.gguf", "not found"),
        ("./a:b/x.gguf", "not found"),
        ("gguf:/none/x.gguf?treads=4", "did you mean 'threads'"),
        ("gguf:/none/x.gguf?threads=-1", "a whole number"),
        ("gguf:/none/x.gguf?context=0", "at least 1"),
        ("gguf:/none/x.gguf?wire=responses", "choose one of chat, completions"),
        ("gguf:/", "is a folder"),
        (f"gguf:{__file__}", "is not a GGUF file"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_before_anything_starts(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_model(resolve(name), load({}, {"HOME": "/"}, Path("/none/config.yaml")))


# --- threads ----------------------------------------------------------------------------------------------------------


def threads(monkeypatch: pytest.MonkeyPatch, processors: int, load: float) -> Threads:
    monkeypatch.setattr("taiwa.models.inprocess.gguf_process.processors", lambda: processors)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    return Threads(0)


@pytest.mark.parametrize(
    ("processors", "load", "count"), [(8, 0.2, 8), (8, 2.6, 5), (8, 30.0, 1), (1, 0.0, 1), (2, 1.0, 1)]
)
def test_threads_are_as_many_as_there_are_free_processors(
    monkeypatch: pytest.MonkeyPatch, processors: int, load: float, count: int
) -> None:
    assert threads(monkeypatch, processors, load).count == count


def test_threads_step_down_while_they_do_not_get_their_processors_and_try_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = threads(monkeypatch, 4, 0.0)

    assert [found.note(0.3, 0.6), found.count] == [True, 3]  # half of the time of four
    assert [found.note(0.3, 0.9), found.count] == [False, 3]
    passes = 0
    while not found.note(0.3, 0.9):
        passes += 1
    assert found.count == 4
    assert 5 < passes < LAST_RETRY_SECONDS / 0.3


@pytest.mark.parametrize(("given", "count"), [(3, 3), (4_000, 4)])
def test_a_number_of_threads_that_the_user_gives_is_kept_up_to_the_processors(
    monkeypatch: pytest.MonkeyPatch, given: int, count: int
) -> None:
    threads(monkeypatch, processors=4, load=30.0)
    found = Threads(given)

    assert not found.note(1.0, 0.1)
    assert found.count == count


# --- models that stay loaded ------------------------------------------------------------------------------------------


@pytest.fixture
def kept(gguf_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], GgufModel]]:
    """Open the model with more options, as another program would, in a runtime folder of its own."""
    folder = Path(tempfile.mkdtemp())  # the address of a socket is short
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield lambda options: GgufModel(f"{gguf_file}?threads=1&context=1024&{options}")
    stop_kept()
    shutil.rmtree(folder)


def test_a_model_that_is_kept_serves_the_next_program_which_reads_only_what_is_new(
    kept: Callable[[str], GgufModel],
) -> None:
    long = replace(ASK, messages=(user("so it begins " * 20),), sampling=Sampling(max_tokens=5))
    with kept("keep=60") as first:
        process = process_of(first)
        said = collect_response(first.stream(long))
    longer = replace(long, messages=(*long.messages, assistant(said.text), user("on")))
    while True:
        with kept("keep=60") as second:
            assert process_of(second) == process
            if not second.generator().loaded.network.process.described["kept"]:
                continue  # the process has not noticed yet that the first program has ended
            again = collect_response(second.stream(longer))
            break
    assert again.usage is not None
    assert again.usage.cache_read_tokens > 250
    with GgufModel(str(second.spec.file)) as alone:
        assert process_of(alone) != process
        assert collect_response(alone.stream(longer)).text == again.text


def test_two_programs_share_a_kept_model_without_sharing_their_texts(kept: Callable[[str], GgufModel]) -> None:
    with kept("keep=60") as one, kept("keep=60") as other:
        left, right = one.generator().loaded.network, other.generator().loaded.network
        assert left.process.described["process"] == right.process.described["process"]
        mine, yours = left.start(), right.start()
        first, second = mine.read([70, 71]), yours.read([80, 81])

        assert mine.number == yours.number
        assert left.start().read([70, 71]) == pytest.approx(first, abs=1e-5)
        assert right.start().read([80, 81]) == pytest.approx(second, abs=1e-5)
        assert mine.read([72]) != pytest.approx(yours.read([72]), abs=1e-2)


def test_a_kept_model_ends_when_nobody_has_been_there_for_its_time(kept: Callable[[str], GgufModel]) -> None:
    with kept("keep=1") as model:
        process = process_of(model)

    assert until(lambda: is_gone(process))
    assert list(runtime_folder().glob("*.sock")) == []
    with kept("keep=1") as model:
        assert process_of(model) != process


def test_kept_models_are_stopped_and_the_next_request_starts_another(kept: Callable[[str], GgufModel]) -> None:
    with kept("keep=60") as model:
        process = process_of(model)
        assert stop_kept() == 1
        assert until(lambda: is_gone(process))

        assert ask(model, Regex("a{3}")).text == "aaa"
        assert process_of(model) != process


def test_a_socket_that_a_killed_process_left_is_replaced(kept: Callable[[str], GgufModel]) -> None:
    with kept("keep=60") as model:
        process = process_of(model)
        os.kill(process, signal.SIGKILL)
        assert until(lambda: is_gone(process))

        assert ask(model, Regex("a{3}")).text == "aaa"


def test_a_kept_process_that_ends_between_the_check_and_the_request_is_replaced(
    kept: Callable[[str], GgufModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept("keep=60") as model:
        process = process_of(model)
        stop_kept()
        assert until(lambda: is_gone(process))
        found, late = LlamaProcess.is_usable, iter([True, True])
        monkeypatch.setattr(
            LlamaProcess, "is_usable", property(lambda self: next(late, False) or found.__get__(self, LlamaProcess))
        )

        assert ask(model, Regex("a{3}")).text == "aaa"
        assert process_of(model) != process


def test_other_options_or_another_file_are_another_kept_model(kept: Callable[[str], GgufModel]) -> None:
    with kept("keep=60") as one, kept("keep=61") as other:
        assert process_of(one) != process_of(other)


def test_a_file_that_cannot_be_loaded_is_not_kept(tmp_path: Path, kept: Callable[[str], GgufModel]) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"x" * 64)

    with pytest.raises(ConfigError, match=r"llama\.cpp cannot load .*broken\.gguf: "):
        ask(GgufModel(f"{broken}?keep=60"))

    assert until(lambda: not list(runtime_folder().glob("*.sock")))


def test_only_the_user_can_open_what_is_kept(kept: Callable[[str], GgufModel]) -> None:
    with kept("keep=60") as model:
        model.generator()
        (place,) = runtime_folder().glob("*.sock")

        assert place.stat().st_mode & 0o777 == 0o600
        assert place.parent.stat().st_mode & 0o777 == 0o700
