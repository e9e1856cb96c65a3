"""A GGUF file in our decode loop, beside llama.cpp's own server with the same file, library, schema and number of threads.

The file is that of `TAIWA_BENCH_GGUF`, else the first of `FILES` that is in the cache of models; without one nothing is measured.
Runs alternate, and a ratio compares neighbours.
"""

import json
import os
import time
from collections import deque
from pathlib import Path
from typing import Any

from benches.measure import Subject, median
from benches.peers.llama_server import LlamaServer
from taiwa.constraints.guide import Whitespace
from taiwa.kernel.messages import JsonSchema, Request, Sampling, system, user
from taiwa.kernel.serialization import Json
from taiwa.models.inprocess.decode_loop import DecodeJob, decode
from taiwa.models.inprocess.generator import CompileOptions, GeneratedText, TextGenerator
from taiwa.models.inprocess.gguf import GgufModel, LoadedGguf
from taiwa.models.inprocess.gguf_backend import GgufSequence

FILES = ("SmolLM2-135M-Instruct.Q4_1.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
THREADS = int(os.environ.get("TAIWA_BENCH_THREADS", "1"))
ROUNDS = 2
LONG = 2_000
SYSTEM = (
    "You turn coffee orders into JSON: items with name, size (short, tall, grande or venti), quantity and options; takeaway; "
    "customer_name. Answer with JSON only."
)
ORDERS = (
    "Two grande lattes with oat milk and one tall espresso to take away, please. For Mina.",
    "I'd like a venti cappuccino, no sugar, here. Name is Tom.",
    "Three short flat whites and a tall mocha with whipped cream, for here. It's Aoi.",
)
STORY = "Tell me about the sea, in one long paragraph."


def shape(properties: dict[str, Json]) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def text(longest: int) -> dict[str, Json]:
    return {"type": "string", "maxLength": longest}


ITEM = shape(
    {
        "name": text(30),
        "size": {"enum": ["short", "tall", "grande", "venti"]},
        "quantity": {"type": "integer", "minimum": 1, "maximum": 20},
        "options": {"type": "array", "maxItems": 3, "items": text(20)},
    }
)
ORDER = shape(
    {
        "items": {"type": "array", "maxItems": 4, "items": ITEM},
        "takeaway": {"type": "boolean"},
        "customer_name": text(30),
    }
)


def main() -> None:
    folder = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "taiwa" / "models"
    named = os.environ.get("TAIWA_BENCH_GGUF")
    file = next((each for each in ([Path(named)] if named else map(folder.joinpath, FILES)) if each.is_file()), None)
    if file is None:
        print(f"  nothing measured: none of {', '.join(FILES)} in {folder}")
        return
    subject = Subject("gguf", f"{file.name} with {THREADS} thread(s), greedy", peers=("xllamacpp",))
    with GgufModel(f"{file}?threads={THREADS}&context=8192") as model, LlamaServer(file, THREADS) as server:
        begin = time.perf_counter()
        generator = model.generator()
        subject.row("loading, with the vocabulary", time.perf_counter() - begin, "s")
        constrained(subject, generator, server)
        free(subject, generator, server)
        prefixes(subject, generator)
    subject.write()


def ask(content: str, most: int, schema: dict[str, Json] | None = None) -> Request:
    return Request(
        (system(SYSTEM), user(content)),
        constraint=None if schema is None else JsonSchema(schema),
        sampling=Sampling(temperature=0, max_tokens=most),
    )


def ours(generator: TextGenerator[LoadedGguf], request: Request, whitespace: Whitespace) -> GeneratedText:
    *_, found = generator.stream(request, CompileOptions(whitespace=whitespace))
    assert isinstance(found, GeneratedText)
    return found


def theirs(server: LlamaServer, content: str, most: int, **constraint: Json) -> dict[str, Any]:
    return server.answer(
        {
            "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}],
            "temperature": 0, "max_tokens": most, **constraint,
        }
    )  # fmt: skip


SERVED: dict[str, dict[str, Json]] = {
    "server": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "order", "schema": ORDER, "strict": True}}
    },
    "server, compact": {
        "grammar": f"%llguidance {{}}\nstart: %json {json.dumps({**ORDER, 'x-guidance': {'whitespace_flexible': False}})}\n"
    },
}
"""The schema for the server: as its clients send it, and as a grammar that gives texts as long as ours."""


def constrained(subject: Subject, generator: TextGenerator[LoadedGguf], server: LlamaServer) -> None:
    """Answer orders under the schema; the first round fills the caches of both and does not count."""
    spent: dict[str, list[float]] = {}
    notes: dict[str, list[str]] = {}
    forms: tuple[Whitespace, ...] = ("compact", "bounded")
    for number in range(ROUNDS + 1):
        for order in ORDERS:
            for form in forms:
                begin = time.perf_counter()
                found = ours(generator, ask(order, 300, ORDER), form)
                spent.setdefault(form, []).append(time.perf_counter() - begin)
                notes.setdefault(form, []).append(f"{len(found.result.tokens)} in {found.result.passes} passes")
            for served, constraint in SERVED.items():
                begin = time.perf_counter()
                answer = theirs(server, order, 300, **constraint)
                spent.setdefault(served, []).append(time.perf_counter() - begin)
                notes.setdefault(served, []).append(f"{answer['usage']['completion_tokens']}")
        if number == 0:
            spent.clear()
            notes.clear()
    for form in forms:
        subject.median(f"an order, our loop, white space {form}", spent[form], "s", f"tokens: {notes[form][:3]}")
    for served in SERVED:
        times = spent[served]
        subject.median(
            f"an order, llama.cpp's {served}", times, "s", f"tokens: {notes[served][:3]}", ours=median(spent["compact"])
        )
        ratios = [one / other for one, other in zip(spent["compact"], times, strict=True)]
        subject.target(f"an order, our loop against llama.cpp's {served}", median(ratios), 0.8, "x")


def free(subject: Subject, generator: TextGenerator[LoadedGguf], server: LlamaServer) -> None:
    """Write freely, and compare the speed after the first token; then measure what the loop itself takes."""
    own: list[float] = []
    other: list[float] = []
    for _ in range(3 * ROUNDS + 1):
        times: list[float] = []
        for piece in generator.stream(ask(STORY, 100)):
            if isinstance(piece, str):
                times.append(time.perf_counter())
            elif isinstance(piece, GeneratedText):
                own.append((len(piece.result.tokens) - 1) / (time.perf_counter() - times[0]))
        other.append(theirs(server, STORY, 100)["timings"]["predicted_per_second"])
    subject.median("tokens without a constraint, our loop", own[1:], "/s")
    subject.median("tokens without a constraint, llama.cpp's own figure", other[1:], "/s", ours=median(own[1:]))
    ratios = [one / two for one, two in zip(other[1:], own[1:], strict=True)]
    subject.target("tokens without a constraint, llama.cpp against us", median(ratios), 1 / 0.95, "x")
    spent = reading = 0.0
    for order in ORDERS:  # the tables of the engine are made for the first one
        request = ask(order, 300, ORDER)
        state = generator._compile(request, CompileOptions())  # noqa: SLF001  (as a request is compiled)
        tokens = generator.loaded.prepare(request)
        sequence = Clocked(generator.loaded.network)
        job = DecodeJob(tokens, generator.loaded.network.vocabulary, 300, state.start() if state else None, Sampling(0))
        begin = time.perf_counter()
        deque(decode(sequence, job), 0)
        spent += time.perf_counter() - begin
        reading += sequence.seconds
    subject.target("masks, sampling and text, of the time of the loop", (spent - reading) / spent, 0.02, "x")


class Clocked(GgufSequence):
    """A sequence that counts the seconds in llama.cpp's process, and the way there."""

    seconds = 0.0

    def read(self, tokens: Any, rows: Any = None) -> Any:
        begin = time.perf_counter()
        found = super().read(tokens, rows)
        self.seconds += time.perf_counter() - begin
        return found


def prefixes(subject: Subject, generator: TextGenerator[LoadedGguf]) -> None:
    """Fork a long text, and answer a request whose beginning was read."""
    network = generator.loaded.network
    tokens = list(network.vocabulary.encode("The sea is wide and the boats are small. " * 400))[:LONG]
    sequence = network.start()
    begin = time.perf_counter()
    sequence.read(tokens)
    subject.row(f"reading {LONG:,} tokens", LONG / (time.perf_counter() - begin), "/s")
    forks: list[float] = []
    for _ in range(9):  # most of the time is llama.cpp's, in its process
        begin = time.perf_counter()
        sequence.fork()
        forks.append((time.perf_counter() - begin) * 1e3)
    subject.median(f"fork of {LONG:,} tokens", forks, "ms")
    subject.target(f"fork of {LONG:,} tokens", median(forks), 20, "ms")
    story = network.vocabulary.decode(tokens).decode()
    first: list[float] = []
    for question in ("How is the sea?", "How are the boats?", "What is wide?", "What is small?"):
        begin = time.perf_counter()
        stream = generator.stream(ask(f"{story}\n\n{question}", 5))
        while not isinstance(next(stream), str):
            pass
        first.append(time.perf_counter() - begin)
        stream.close()
    again: list[float] = []
    for _ in range(5):
        begin = time.perf_counter()
        stream = generator.stream(ask(f"{story}\n\nWhat is small?", 5))
        while not isinstance(next(stream), str):
            pass
        again.append(time.perf_counter() - begin)
        stream.close()
    subject.median(f"first token, {LONG:,} tokens cached, the same question", again, "s")
    subject.median(f"first token, {LONG:,} tokens cached, another question", first[1:], "s")
    subject.target(f"first token, {LONG:,} tokens cached", median(again), 0.1, "s")
