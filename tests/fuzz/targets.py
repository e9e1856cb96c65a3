"""What reads texts from outside: each target takes any text, and may answer or refuse it, but not break."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, cast

import httpx

from taiwa.apps.app_file import read_app
from taiwa.apps.catalog import load_app
from taiwa.constraints.readable_guides import GrammarGuide
from taiwa.constraints.vocabulary import small_vocabulary
from taiwa.conversation.app import App
from taiwa.conversation.replies import parse_reply
from taiwa.kernel.attachments import Attachment, read_reference
from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.serialization import Json, parse_json
from taiwa.kernel.text import plain
from taiwa.models.http_api.capabilities import file_text
from taiwa.models.http_api.stream_decoder import SseReader
from taiwa.models.scripted import function_model
from taiwa.operations.generate import ExplainOptions, explain
from taiwa.retrieval.chunks import split_into_chunks
from taiwa.retrieval.document_access import audience_of, read_rules
from taiwa.retrieval.readers import read_document
from taiwa.retrieval.types import UnreadableError
from taiwa.sessions.repository import Repository
from taiwa.store import Store
from taiwa.structured import OutputType
from taiwa.tools.registry import builtin_tools
from taiwa.yamlfile import read_settings
from tests.server.serving import serving

CORPUS = Path(__file__).with_name("corpus.jsonl")
PIECES = (
    "--- | ``` ## { } [ ] \" ' : , \\ \\u \\ud800 null true 1e999 -0 @@delta << >> <state> </state> <JSON> & * << !!python/object "
    "data: event: \n\n \r\n \t \0 \x1b[2J \u202e \u2028 \U000e0041 \ufeff 😀 漢 ́ ~ @{1} HEAD ../ $ref anyOf (?= {1,99999} .* a* start: %import "
    "1/0 9**9 H2O -> kg"
).split(" ")


@dataclass(frozen=True, slots=True)
class Entry:
    """A text that once broke a target, or a valid one that is changed; `why` says which."""

    target: str
    text: str
    why: str


def corpus() -> Iterator[Entry]:
    """The entries of the corpus; `times` repeats a text."""
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield Entry(row["target"], row["text"] * row.get("times", 1), row["why"])


@cache
def _app() -> App:
    return load_app("chat")


@cache
def _type() -> OutputType[Json]:
    schema: Json = {
        "type": "object",
        "properties": {"name": {"enum": ["tea", "抹茶"]}, "cups": {"type": "integer", "minimum": 1}, "notes": {"type": "array"}},
        "required": ["name"],
    }  # fmt: skip
    return OutputType.from_json_schema(schema)


def _read_stream(text: str) -> None:
    """Read a stream whole and in two pieces: the events are the same."""
    raw = text.encode("utf-8", "surrogatepass")
    whole = list(SseReader().feed(raw))
    reader = SseReader()
    parts = [event for begin, end in pairwise((0, len(raw) // 2, len(raw))) for event in reader.feed(raw[begin:end])]
    assert parts == whole


def _read_document(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    for kind in ("markdown", "text", "table", "html"):
        with suppress(UnreadableError):
            split_into_chunks(read_document(raw, kind, 1_000_000))


def _resolve(text: str) -> None:
    store = Store.open(":memory:")
    store.resolve(text)


def _call(name: str) -> Callable[[str], object]:
    def run(text: str) -> None:
        tool = builtin_tools()[name]
        tool.call({next(iter(cast("Any", tool.spec.parameters["properties"]))): text})

    return run


def _attach(text: str) -> None:
    """Attach the text as a file of that name and content, with the beginning of each kind, and read it as a reference."""
    raw = text.encode("utf-8", "surrogatepass")
    for start in (b"", b"\x89PNG\r\n\x1a\n", b"%PDF-1.4\n", b"RIFF0000WEBP"):
        with suppress(InputError):
            attachment = Attachment.from_bytes(start + raw, text)
            assert attachment == read_reference(attachment.reference())
            if attachment.kind is None:
                file_text(attachment)
    with suppress(ValueError, InputError):
        read_reference(parse_json(text))


SERVERS = ExitStack()
"""What the targets have opened; the tests close it."""


@cache
def _client() -> httpx.Client:
    """A client of a server that runs until `SERVERS` is closed."""
    return SERVERS.enter_context(serving(model=function_model(lambda _: "Yes."))).client


PATHS = ("/v1/chat/completions", "/v1/responses", "/api/conversations")


def _request(text: str) -> None:
    """Send the text as the body of a request, which may not fail in the server; its length decides the path."""
    path, headers = PATHS[len(text) % len(PATHS)], {"content-type": "application/json"}
    response = _client().post(path, content=text.encode("utf-8", "surrogatepass"), headers=headers)
    assert response.status_code < 500, (path, response.text)


TARGETS: Mapping[str, Callable[[str], object]] = {
    "app file": lambda text: read_app(text, "x"),
    "reply": lambda text: parse_reply(_app(), text),
    "answer": lambda text: _type().parse(text),
    "settings": lambda text: read_settings(text, "x.yaml"),
    "stream": _read_stream,
    "document": _read_document,
    "access rules": lambda text: audience_of("/".join("a" * 40), read_rules(text, "x")),
    "import": lambda text: Repository(Store.open(":memory:")).import_lines(text.split("\n")),
    "revision": _resolve,
    "regex": lambda text: explain(ExplainOptions("regex", text, engine="llguidance"), "a"),
    "grammar": lambda text: GrammarGuide(text, small_vocabulary()),
    "terminal": plain,
    "attachment": _attach,
    "server": _request,
    "calculator": _call("calculator"),
    "molar_mass": _call("molar_mass"),
    "stoichiometry": _call("stoichiometry"),
}


def play(target: str, text: str) -> None:
    """Give a text to a target; a refusal is one of our errors, of one line."""
    refused = ""
    try:
        TARGETS[target](text)
    except TaiwaError as error:
        refused = error.message
    assert "\n" not in refused


def mutations(target: str, seed: int, count: int) -> Iterator[str]:
    """Draw texts for a target: entries of the corpus with pieces deleted, doubled, moved and inserted."""
    random = Random(f"{target}-{seed}")
    texts = [entry.text for entry in corpus() if entry.target == target and len(entry.text) < 5_000] or [""]
    for _ in range(count):
        text = random.choice(texts)
        for _ in range(random.randint(1, 6)):
            start = random.randint(0, len(text))
            end = min(len(text), start + random.choice((0, 0, 1, 3, 20)))
            middle = random.choice(("", text[start:end] * 2, random.choice(PIECES), random.choice(texts)[:50]))
            text = text[:start] + middle + text[end:]
        yield text
