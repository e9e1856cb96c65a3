"""Typed answers beside their peers: recovery from malformed text, speed, and the tokens of types and diagnostics.

The malformed texts are recorded cases that lie beside a checkout (see `tests/conftest.py`); without them that part is left out.
Every parser gets the same text, and its value is checked against the same JSON Schema: `right` is the intended value, `silent`
another value that the schema accepts without a warning.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model

from benches.measure import Subject, timed
from benches.tokens import encoder
from taiwa.kernel.errors import OutputValidationError
from taiwa.structured import OutputType, ParseOptions, ParseResult, PartialParser
from tests.conftest import SHARED_DATA
from tests.structured.recorded import rows, same

PEERS = ("json_repair", "jiter", "instructor", "langchain-core", "pydantic-ai-slim", "baml-py")
Parser = Callable[[str, dict[str, Any]], object]
REFERENCE = 0.05
"""Seconds of the calibration loop on the machine for which the time limits are set."""


class NothingError(Exception):
    """A parser returned no value, or reported that the value may be wrong."""


# --- parsers ----------------------------------------------------------------------------------------------------------


@cache
def shape(schema: str) -> OutputType[Any]:
    return OutputType.from_json_schema(json.loads(schema))


def ours(text: str, schema: dict[str, Any]) -> object:
    """Parse like an extraction: a value that can only be guessed is rejected, and requested again."""
    return shape(json.dumps(schema)).parse(text, ParseOptions(guess=False)).value


def ours_guessing(text: str, schema: dict[str, Any]) -> object:
    return shape(json.dumps(schema)).parse(text)


def plain(text: str, _: dict[str, Any]) -> object:
    return json.loads(text)


def repaired(text: str, _: dict[str, Any]) -> object:
    import json_repair

    return json_repair.loads(text)


def partial(text: str, _: dict[str, Any]) -> object:
    import jiter

    start = min((at for bracket in "{[" if (at := text.find(bracket)) >= 0), default=0)
    return jiter.from_json(text[start:].encode(), partial_mode="trailing-strings")


def instructed(text: str, _: dict[str, Any]) -> object:
    from instructor.v2.core.json import extract_json_from_codeblock

    return json.loads(extract_json_from_codeblock(text))


def chained(text: str, _: dict[str, Any]) -> object:
    from langchain_core.utils.json import parse_json_markdown

    return parse_json_markdown(text)


def unfenced(text: str, _: dict[str, Any]) -> object:
    from pydantic_ai._utils import strip_markdown_fences

    return json.loads(strip_markdown_fences(text))


def coerced(text: str, schema: dict[str, Any]) -> object:
    return _baml(json.dumps(schema)).parse(text)


PARSERS: dict[str, Parser] = {
    "taiwa": ours_guessing,
    "taiwa, guesses refused": ours,
    "json.loads": plain,
    "json_repair": repaired,
    "jiter, partial": partial,
    "instructor": instructed,
    "langchain-core": chained,
    "PydanticAI": unfenced,
    "BAML": coerced,
}


@dataclass
class Baml:
    """BAML's schema-aware parser for one JSON Schema; keywords without a BAML type are not supported."""

    schema: dict[str, Any]
    classes: list[str] = field(default_factory=list)
    module: ModuleType = field(default_factory=lambda: ModuleType("types_of_a_case"))

    def __post_init__(self) -> None:
        from baml_py import BamlRuntime

        self.bare = self.schema.get("type") != "object"
        wanted = {"type": "object", "properties": {"value": self.schema}, "required": ["value"]}
        root, _ = self.type(wanted if self.bare else self.schema)
        client = 'client<llm> C {\n  provider openai-generic\n  options {\n    base_url "http://127.0.0.1:1"\n    model "x"\n  }\n}\n'
        function = f'function Read(x: string) -> {root} {{\n  client C\n  prompt #"{{{{x}}}}"#\n}}\n'
        self.runtime = BamlRuntime.from_files("baml_src", {"main.baml": client + "".join(self.classes) + function}, {})

    def parse(self, text: str) -> object:
        context = self.runtime.create_context_manager()
        types = self.module
        found = self.runtime.parse_llm_response("Read", text, types, types, types, False, context, None, None, {})
        data = found.model_dump(by_alias=True, exclude_unset=True)
        return data["value"] if self.bare else data

    def type(self, schema: dict[str, Any]) -> tuple[str, Any]:
        """Return a schema in BAML's notation, and as a pydantic type for the result."""
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            return f"({' | '.join(json.dumps(each) for each in values)})", Any
        if "anyOf" in schema:
            return f"({' | '.join(self.type(each)[0] for each in schema['anyOf'])})", Any
        kind = schema.get("type")
        if isinstance(kind, list):
            return f"({' | '.join(self.type({**schema, 'type': each})[0] for each in kind)})", Any
        if kind == "array" and schema.get("items"):
            inner, python = self.type(schema["items"])
            return f"{inner}[]", list[python]
        if kind == "object" and schema.get("properties"):
            return self.object(schema)
        simple = {"string": "string", "integer": "int", "number": "float", "boolean": "bool", "null": "null"}
        if kind not in simple:
            raise NothingError(f"BAML has no type for {schema}")
        return simple[kind], Any

    def object(self, schema: dict[str, Any]) -> tuple[str, Any]:
        name = f"T{len(self.classes)}"
        self.classes.append("")
        place, lines, fields = len(self.classes) - 1, list[str](), dict[str, Any]()
        for at, (key, inner) in enumerate(schema["properties"].items()):
            written, python = self.type(inner)
            mark = "" if key in schema.get("required", ()) else "?"
            lines.append(f"  f{at} {written}{mark} @alias({json.dumps(key)})\n")
            fields[f"f{at}"] = (python if not mark else python | None, Field(default=None, serialization_alias=key))
        self.classes[place] = f"class {name} {{\n{''.join(lines)}}}\n"
        made = create_model(name, **fields)
        setattr(self.module, name, made)
        return name, made


@cache
def _baml(schema: str) -> Baml:
    return Baml(json.loads(schema))


# --- recovery from malformed text -------------------------------------------------------------------------------------


def verdict(parser: Parser, row: dict[str, Any]) -> str:
    warned = False
    try:
        value: Any = parser(row["input"], row["schema"])
        if isinstance(value, ParseResult):
            value, warned = value.value, value.guessed
        json.dumps(value)
        if same(value, row.get("expected", ...)):
            return "right"
        shape(json.dumps(row["schema"])).validate(value)
    except Exception:  # noqa: BLE001  (peers raise whatever they like)
        return "none"
    return "told" if warned else "silent"


def groups(
    mutations: list[dict[str, Any]], recorded: list[dict[str, Any]]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    yield "mutations", [row for row in mutations if not row["mutation"].startswith("truncated")]
    yield "truncated mutations", [row for row in mutations if row["mutation"].startswith("truncated")]
    whole = [row for row in recorded if row["outcome"] == "value" and isinstance(row.get("expected"), (dict, list))]
    for owner in ("josdejong/jsonrepair", "mangiucugna/json_repair", "BoundaryML/baml"):
        yield f"cases of {owner}", [row for row in whole if row["source"].startswith(owner)]
    own = ("josdejong/jsonrepair", "mangiucugna/json_repair", "BoundaryML/baml")
    yield "cases of others", [row for row in whole if not row["source"].startswith(own)]


def recovery(subject: Subject) -> None:
    if not SHARED_DATA.is_dir():
        print("  the recorded cases are not here: recovery is left out")
        return
    found: dict[tuple[str, str], Counter[str]] = {}
    sets = groups(rows(SHARED_DATA / "malformed_mutations.jsonl"), rows(SHARED_DATA / "malformed.jsonl"))
    for group, cases in sets:
        for name, parser in PARSERS.items():
            counts = found[group, name] = Counter(verdict(parser, row) for row in cases)
            parts = {"wrong and silent": "silent", "wrong and flagged as a guess": "told", "no value": "none"}
            shares = [f"{words} {counts[part] / len(cases):.1%}" for words, part in parts.items() if counts[part]]
            note = ", ".join([*shares, f"n={len(cases)}"])
            subject.row(f"right, {group}: {name}", 100 * counts["right"] / len(cases), "%", note)
    silent = {name: sum(counts["silent"] for (_, who), counts in found.items() if who == name) for name in PARSERS}
    right = {key: counts["right"] / counts.total() for key, counts in found.items()}
    whole, cut = found["mutations", "taiwa"], found["truncated mutations", "taiwa"]
    subject.target("mutations not recovered", 1 - whole["right"] / whole.total(), 0.02, "of 1")
    subject.target("mutations recovered wrongly without a warning", whole["silent"] / whole.total(), 0.005, "of 1")
    subject.target("truncated texts taken as complete", cut["silent"] + cut["told"] + cut["right"], 0, "texts")
    subject.target(
        "silent errors over all cases, against json_repair", silent["taiwa"] / silent["json_repair"], 1.0, "x"
    )
    for group in ("cases of josdejong/jsonrepair", "cases of BoundaryML/baml", "cases of others"):
        ratio = right[group, "json_repair"] / max(right[group, "taiwa"], 1e-9)
        subject.target(f"json_repair's share of {group} over ours", ratio, 1.0, "x")


# --- speed ------------------------------------------------------------------------------------------------------------


class Line(BaseModel):
    name: str
    amount: float
    tags: list[str]


class Record(BaseModel):
    id: int
    title: str
    open: bool
    note: str | None
    lines: list[Line]


LINE = {
    "name": {"type": "string"},
    "amount": {"type": "number"},
    "tags": {"type": "array", "items": {"type": "string"}},
}
RECORD = {
    "id": {"type": "integer"}, "title": {"type": "string"}, "open": {"type": "boolean"}, "note": {"type": ["string", "null"]},
    "lines": {"type": "array", "items": {"type": "object", "properties": LINE, "required": list(LINE)}},
}  # fmt: skip
SCHEMA: dict[str, Any] = {"type": "array", "items": {"type": "object", "properties": RECORD, "required": list(RECORD)}}
RECORDS = OutputType(list[Record])
ADAPTER = TypeAdapter(list[Record])


def document(size: int) -> str:
    """Return a list of nested records of about `size` bytes."""
    one = {
        "id": 1, "title": "An ordinary record, with punctuation: {curly}, [square].", "open": True, "note": None,
        "lines": [{"name": f"line {at}", "amount": at + 0.5, "tags": ["a", "b", "日本語"]} for at in range(6)],
    }  # fmt: skip
    each = json.dumps(one, ensure_ascii=False)
    return f"[{', '.join([each] * max(1, size // len(each.encode())))}]"


def best(act: Callable[[], object], times: int = 5) -> float:
    return min(timed(act) for _ in range(times))


def broken(text: str) -> str:
    return "```json\n" + text.replace("true", "True").removesuffix("]") + ",]\n```"


def speed(subject: Subject) -> None:
    wide = ParseOptions(max_chars=1 << 26)
    for size, times in ((1_000, 200), (100_000, 20), (10_000_000, 3)):
        text = document(size)
        name = f"valid, {size // 1000:,} KB"
        base = subject.row(
            f"{name}: pydantic-core, validated", 1e3 * best(lambda t=text: ADAPTER.validate_json(t), times), "ms"
        )
        own = subject.row(f"{name}: taiwa, validated", 1e3 * best(lambda t=text: RECORDS.parse(t, wide), times), "ms")
        subject.row(
            f"{name}: json_repair, not validated", 1e3 * best(lambda t=text: repaired(t, SCHEMA), min(times, 5)), "ms"
        )
        if size == 10_000_000:
            subject.target("10 MB of valid JSON against pydantic-core", own / base, 1.3, "x")
    text = broken(document(100_000))
    own = subject.row("broken, 100 KB: taiwa, validated", 1e3 * best(lambda: RECORDS.parse(text)), "ms")
    peer = subject.row("broken, 100 KB: json_repair, not validated", 1e3 * best(lambda: repaired(text, SCHEMA)), "ms")
    small = broken(document(3_000))
    subject.row("broken, 3 KB: taiwa, validated", 1e3 * best(lambda: RECORDS.parse(small), 20), "ms")
    for name in ("json_repair", "instructor", "langchain-core", "BAML"):
        subject.row(f"broken, 3 KB: {name}", 1e3 * best(lambda n=name: tried(PARSERS[n], small), 3), "ms")
    subject.row("broken, 100 KB: taiwa against json_repair", own / peer, "x")


def tried(parser: Parser, text: str) -> None:
    try:
        parser(text, SCHEMA)
    except Exception:  # noqa: BLE001  (a refusal takes time, too)
        return


def streaming(subject: Subject) -> None:
    import jiter

    text = document(64_000)
    pieces = [text[at : at + 16] for at in range(0, len(text), 16)]

    def own() -> None:
        stream = PartialParser(RECORDS)
        for piece in pieces:
            stream.feed(piece)
            _ = stream.view

    def again() -> None:
        so_far = b""
        for piece in pieces:
            so_far += piece.encode()
            jiter.from_json(so_far, partial_mode="trailing-strings")

    mine = subject.row("streamed, 64 KB in pieces of 16 characters: taiwa", 1e3 * best(own, 3), "ms")
    theirs = subject.row(
        "streamed, 64 KB in pieces of 16 characters: jiter, parsed again for each piece", 1e3 * best(again, 2), "ms"
    )
    subject.target("64 KB streamed against jiter parsing again", mine / theirs, 0.2, "x")


BOMBS = {
    "brackets": "[" * 16_000, "braces": "{" * 16_000, "nested lists": "[1," * 16_000, "nested keys": '{"a":' * 16_000,
    "small objects": "{x} " * 16_000, "quotes": '"' * 16_000, "quotes in a list": '["' * 16_000, "backslashes": '{"a": "' + "\\" * 16_000,
    "fences": "```" * 16_000, "thinking": "<think>" * 16_000, "comments": "/*" * 16_000, "a million brackets": "[" * 1_000_000,
}  # fmt: skip


def calibration() -> float:
    def loop() -> None:
        total = 0
        for at in range(1_600_000):
            total += at & 7

    return best(loop, 5)


def bombs(subject: Subject) -> None:
    scale = calibration() / REFERENCE
    subject.row("calibration loop", 1e3 * scale * REFERENCE, "ms")
    worst = 0.0
    for name, text in BOMBS.items():
        taken = best(lambda t=text: refused(t), 2) / scale
        worst = max(worst, taken)
        subject.row(f"bomb, {name} ({len(text):,} characters)", 1e3 * taken, "ms", "scaled")
    subject.target("the slowest bomb, scaled", 1e3 * worst, 250, "ms")


def refused(text: str) -> None:
    try:
        RECORDS.parse(text)
    except OutputValidationError:
        return


# --- tokens -----------------------------------------------------------------------------------------------------------


class Person(BaseModel):
    name: str
    age: int
    email: str | None = None


class Settings(BaseModel):
    limit: Annotated[int, Field(ge=1, le=50, description="how many rows")] = 10
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    code: Annotated[str, Field(min_length=3, max_length=8, pattern="^[A-Z]+$")]


class Ticket(BaseModel):
    severity: Literal["low", "middle", "high"] = Field(description="how bad it is")
    area: Literal["login", "billing", "search", "other"]
    duplicate: bool = False


class Folder(BaseModel):
    name: str
    size: Annotated[int, Field(ge=0)]
    inside: "list[Folder]" = []


class Add(BaseModel):
    kind: Literal["add"]
    what: str
    day: str
    people: list[str] = []


class Move(BaseModel):
    kind: Literal["move"]
    what: str
    to: str = Field(description="the new day, as it was said")


class Drop(BaseModel):
    kind: Literal["drop"]
    what: str


class Changes(BaseModel):
    changes: list[Annotated[Union[Add, Move, Drop], Field(discriminator="kind")]]  # noqa: UP007  (as most people write it)


Score = Annotated[int, Field(ge=1, le=5, description="1 most true, 5 least")]


class Scores(BaseModel):
    clarity: Score
    question: Score
    consultation: Score
    documented: Score
    person: Score
    missing: str | None = None


class Drink(BaseModel):
    name: Literal["tea", "coffee", "cocoa"]
    size: Literal["small", "large"] = "small"
    extras: list[Literal["milk", "sugar", "lemon"]] = []
    cups: Annotated[int, Field(ge=1, le=9)] = 1


class Order(BaseModel):
    items: Annotated[list[Drink], Field(min_length=1)]
    to_go: bool = False
    note: Annotated[str, Field(max_length=80)] | None = None


class State(BaseModel):
    topics: list[str] = Field([], description="what was talked about, short")
    summary: str = ""
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.0
    dictionary: dict[str, str | None] = {}


class Address(BaseModel):
    street: str
    town: str
    postcode: Annotated[str, Field(pattern=r"^\d{3}-\d{4}$")]
    country: str = "Japan"


class Invoice(BaseModel):
    number: str
    seller: Address
    buyer: Address
    lines: list[Line]
    total: Annotated[float, Field(ge=0)]
    paid: bool = False


class Step(BaseModel):
    call: Literal["add", "multiply", "look up"]
    arguments: list[float | str]


class Steps(BaseModel):
    steps: Annotated[list[Step], Field(max_length=20)]
    answer: str | None = None


MODELS: tuple[type[BaseModel], ...] = (Person, Settings, Ticket, Folder, Changes, Scores, Order, State, Invoice, Steps)
FAULTY: tuple[tuple[type[BaseModel], object], ...] = (
    (Order, {"items": [{"name": "tee", "size": "huge", "cups": 0}], "to_go": "no"}),
    (Changes, {"changes": [{"kind": "move", "what": "dentist"}, {"kind": "ad", "what": "x", "day": 3}]}),
    (Scores, {"clarity": 9, "question": "1", "consultation": 2, "documented": None, "person": 0}),
    (
        Invoice,
        {"number": 7, "seller": {"street": "a", "town": "b", "postcode": "1"}, "buyer": "me", "lines": [], "total": -1},
    ),
    (Steps, {"steps": [{"call": "divide", "arguments": [1, [2], None]}], "answer": 3}),
    (Settings, {"limit": 500, "threshold": 1.5, "code": "x"}),
)


def size(text: str) -> int:
    return len(encoder()(text))


def tokens(subject: Subject) -> None:
    shown = sum(size(OutputType(model).render()) for model in MODELS)
    compact = sum(size(json.dumps(model.model_json_schema(), separators=(",", ":"))) for model in MODELS)
    indented = sum(size(json.dumps(model.model_json_schema(), indent=2)) for model in MODELS)
    subject.row("ten types as TypeScript, with all constraints", shown, "tokens")
    subject.row("ten types as compact JSON Schema", compact, "tokens")
    subject.row("ten types as indented JSON Schema (instructor, MD_JSON)", indented, "tokens")
    subject.target("tokens of types against compact JSON Schema", shown / compact, 0.65, "x")


def diagnostics(subject: Subject) -> None:
    from pydantic_ai.messages import RetryPromptPart

    own = theirs = 0
    for model, data in FAULTY:
        try:
            OutputType(model).validate(json.loads(json.dumps(data)))
        except OutputValidationError as error:
            own += size("\n".join(error.diagnostics))
        try:
            model.model_validate(data, strict=True)
        except ValidationError as error:
            part = RetryPromptPart(error.errors(include_url=False), tool_name="final_result")
            theirs += size(part.model_response())
    subject.row("diagnostics of six answers: taiwa", own, "tokens")
    subject.row("diagnostics of six answers: PydanticAI", theirs, "tokens")
    subject.target("tokens of diagnostics against PydanticAI", own / theirs, 0.3, "x")


def main() -> None:
    subject = Subject("typed", "typed answers: recovery, speed and tokens beside the peers, in one run", PEERS)
    recovery(subject)
    speed(subject)
    streaming(subject)
    bombs(subject)
    tokens(subject)
    diagnostics(subject)
    subject.write()
