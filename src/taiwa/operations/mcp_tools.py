"""What taiwa offers to clients of MCP beside its tools: questions to documents, passages, and typed values.

One definition serves standard input and output (`taiwa mcp`) and HTTP (`taiwa serve`); they differ in how a turn is performed.
"""

from collections.abc import Callable, Coroutine, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import App
from taiwa.kernel.errors import InputError, TaiwaError, ToolError
from taiwa.kernel.messages import TextDelta, ToolResult
from taiwa.kernel.records import Json
from taiwa.kernel.records import to_json as write_json
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.operations.complete import Completion
from taiwa.operations.documents import FindOptions, find, has_library, open_library
from taiwa.operations.result_json import ask_to_json, to_json
from taiwa.sessions.batch import ExtractRun, extract_one
from taiwa.sessions.commit_turn import PricedModel, TurnInput, TurnOptions, TurnResult
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import AsyncSession, open_priced_model
from taiwa.settings import Settings
from taiwa.structured import OutputType
from taiwa.tools.function_tool import FunctionTool
from taiwa.tools.mcp_server import ResourceTemplate, StructuredTool, report_progress, run_on_server

if TYPE_CHECKING:
    from collections.abc import Generator

NAMES = ("ask", "find", "extract")
MOST_FOUND = 50
TEXT: Json = {"type": "string"}
PASSAGE: Json = {
    "type": "object",
    "properties": {
        "path": TEXT, "id": TEXT, "text": TEXT, "heading": {"type": "array", "items": TEXT},
        "page": {"type": ["integer", "null"]}, "score": {"type": "number"}, "start": {"type": "integer"},
        "end": {"type": "integer"},
    },
    "required": ["path", "text", "score"],
}  # fmt: skip
FOUND: dict[str, Json] = {
    "type": "object",
    "properties": {"passages": {"type": "array", "items": PASSAGE}, "warnings": {"type": "array", "items": TEXT}},
    "required": ["passages", "warnings"],
}
ANSWERED: dict[str, Json] = {
    "type": "object",
    "properties": {
        "act": {"type": "string", "enum": ["search", "ask", "hand_over", "advise"]},
        "answer": {"type": ["string", "null"]},
        "question_back": {"type": ["string", "null"]},
        "options": {"type": "array", "items": {"type": "object"}},
        "citations": {"type": "array", "items": {"type": "object"}},
        "conversation": TEXT,
        "node": TEXT,
    },
    "required": ["act", "answer", "question_back", "options", "citations", "conversation", "node"],
}
EXTRACTED: dict[str, Json] = {"type": "object", "properties": {"value": {}}, "required": ["value"]}


@dataclass(frozen=True, slots=True)
class McpContext:
    """What the operations work with.

    - `ask_app`: the app of questions to documents; None offers none.
    - `open_model`: the model of an app, or of none.
    - `answer`: performs a turn, on the event loop of the server.
    """

    repository: Repository
    settings: Settings
    turns: TurnOptions
    ask_app: App | None
    open_model: Callable[[App | None], PricedModel]
    answer: Callable[[Completion], Coroutine[Any, Any, TurnResult]]


def local_context(repository: Repository, settings: Settings) -> McpContext:
    """Return the context of one program: its own store and settings.

    Raises:
        ConfigError: the app `ask` has an error.
    """
    repository.place, repository.settings = settings.store, settings
    cost = settings.max_cost_nano
    turns = TurnOptions(limits=None if cost is None else UsageLimits(cost=cost))

    def open_model(app: App | None) -> PricedModel:
        return open_priced_model(None, settings, app)

    return McpContext(repository, settings, turns, load_app("ask").with_params({}), open_model, _perform)


async def _perform(completion: Completion) -> TurnResult:
    written = 0
    assert completion.turn_input is not None, "no call resumes a turn"
    async with completion.session.stream_turn(completion.turn_input) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                written += len(event.text)
                await report_progress(written, event.text)
            elif isinstance(event, TurnResult):
                return event
    raise AssertionError("a turn ends with its result")


def operation_tools(context: McpContext) -> tuple[StructuredTool, ...]:
    """Return the operations as tools, in the order of `NAMES`."""

    def ask(question: str, conversation: str = "") -> ToolResult:
        """Answer a question from the indexed documents, with citations; or ask back where it is unclear what is wanted.

        With the `conversation` of an earlier answer this one goes on: a question back is answered there.
        """
        with _as_tool_error():
            return _ask(context, question, conversation)

    def find_passages(query: str, limit: int = 5) -> ToolResult:
        """Find the passages of the indexed documents that fit a query best; no model is asked."""
        with _as_tool_error():
            return _find(context, query, limit)

    def extract(text: str, json_schema: dict[str, Any]) -> ToolResult:
        """Extract from a text the value that a JSON Schema describes; the value is validated."""
        with _as_tool_error():
            return _extract(context, text, json_schema)

    found = [
        StructuredTool(FunctionTool(find_passages, "find", isolated=False), FOUND),
        StructuredTool(FunctionTool(extract, isolated=False), EXTRACTED, stores=True),
    ]
    if context.ask_app is not None:
        found.insert(0, StructuredTool(FunctionTool(ask, isolated=False), ANSWERED, stores=True))
    return tuple(found)


def passage_texts(context: McpContext) -> ResourceTemplate:
    """Return the passages that `find` and the citations of `ask` name, as texts that a client reads by their ids."""

    def read(name: str) -> str | None:
        scope = context.repository.scope
        principals = frozenset[str]() if scope is None else scope.principals
        with open_library(context.settings, reading=not has_library(context.settings)) as library:
            names = library.names() if scope is None else scope.names(library)
            found = (library.index(each).passage(name, principals) for each in names)
            return next((passage.text for passage in found if passage is not None), None)

    about = "A passage of an indexed document, by the id that `find` and the citations of `ask` name."
    return ResourceTemplate("taiwa://passages/{id}", "passage", about, read)


@contextmanager
def _as_tool_error() -> "Generator[None]":
    """Report errors of the library to the client, which may read them."""
    try:
        yield
    except ToolError:
        raise
    except TaiwaError as error:
        raise ToolError(error.message, code=error.tag.replace("-", "_")) from None


def _ask(context: McpContext, question: str, conversation: str) -> ToolResult:
    repository, app = context.repository, context.ask_app
    assert app is not None, "without an app the tool is not offered"
    if conversation:
        if not repository.store.refs.has(conversation):
            raise InputError(f"conversation {conversation[:80]!r} not found")
        name, base = conversation, repository.at(conversation)
        if base.app.flow != "ask":
            raise InputError(f"conversation {conversation[:80]!r} does not ask documents")
    else:
        repository.trust(app.hash)  # whoever serves it
        with repository.store.transaction():
            name = repository.new_name(app)
            base = repository.commit(name, repository.start(app), expected=None, reason="begin")
    session = AsyncSession(repository, name, base, context.open_model(base.app), options=context.turns)
    run_on_server(report_progress, 0, "looking in the documents")
    turn = run_on_server(context.answer, Completion(session, TurnInput(session.conversation, question)))
    whole: Mapping[str, Json] = ask_to_json(question, turn)
    value: dict[str, Json] = {
        "act": whole["act"],
        "answer": whole["answer"],
        "question_back": turn.ask.question_back or None if turn.ask is not None else None,
        "options": whole["options"],
        "citations": whole["citations"],
        "conversation": turn.session,
        "node": turn.node,
    }
    return ToolResult(turn.text, value=value)


def _find(context: McpContext, query: str, limit: int) -> ToolResult:
    if not 1 <= limit <= MOST_FOUND:
        raise InputError(f"limit must be from 1 to {MOST_FOUND}, got {limit}")
    scope = context.repository.scope
    with open_library(context.settings) as library:
        names = library.names() if scope is None else scope.names(library)
        if not names:
            return ToolResult("no documents are indexed", value={"passages": [], "warnings": []})
        audience = () if scope is None else tuple(scope.principals)
        found = find(library, context.settings, FindOptions(query, names, audience, limit))
    passages: Json = to_json(found.passages)
    text = "\n\n".join(f"{each.passage.source}\n{each.passage.text}" for each in found.passages)
    return ToolResult(text or "nothing found", value={"passages": passages, "warnings": list(found.warnings)})


def _extract(context: McpContext, text: str, schema: Mapping[str, Any]) -> ToolResult:
    run = ExtractRun(OutputType.from_json_schema(dict(schema)))
    done = extract_one(context.repository, context.open_model(None), context.turns, run, text)
    value: Json = run.output_type.dump(done.value.value)
    return ToolResult(write_json(value).decode(), value={"value": value})
