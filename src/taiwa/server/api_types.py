"""The JSON types of the native API that are not results of operations, which `result_json` declares: requests, and what routes add.

The tests fail for members that occur only in answers or only here.
"""

from typing import Annotated, Literal, NotRequired, Required, TypeAlias, TypedDict

from taiwa.conversation.state import STEP
from taiwa.kernel.serialization import Json
from taiwa.operations.result_json import AccessRule, Costs, IndexContents, JsonObject, NodeDetails
from taiwa.retrieval.analyzer import LANGUAGES
from taiwa.sessions.users import BOUNDS
from taiwa.store.refs import LONGEST_NAME, LONGEST_TAG
from taiwa.tools.registry import BUILT_IN

Name: TypeAlias = Annotated[str, {"minLength": 1}]
"""A text that is not empty; the keywords of JSON Schema are those of the OpenAPI document."""
Base64: TypeAlias = Annotated[
    str, {"pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"}
]
Label: TypeAlias = Annotated[
    str, {"maxLength": LONGEST_NAME, "pattern": r"^[^-\s~@{}\x00-\x1f\x7f][^\s~@{}\x00-\x1f\x7f]*$"}
]
"""A name of one word, which cannot be taken for an option, a revision or a hash."""
PATH: dict[str, Json] = {"type": "string", "pattern": rf"^(?:{STEP.pattern})+$"}
"""The path of a value in a state, as `field.key[0]`."""
Number: TypeAlias = Annotated[int, {"minimum": 1}]
Tag: TypeAlias = Annotated[str, {"maxLength": LONGEST_TAG, "pattern": r"^[^\s#,，、\x00-\x1f][^,，、\x00-\x1f]*$"}]


def bounded(name: str) -> dict[str, Json]:
    """Return the bounds of a threshold as keywords of JSON Schema."""
    least, most = BOUNDS[name]
    return {"minimum": least, "maximum": most}


class ErrorDetail(TypedDict):
    """An error: a message, a type and a code for programs, and the field that it concerns."""

    message: str
    type: str
    code: str | None
    param: str | None


class ErrorAnswer(TypedDict):
    """The response to a request that failed."""

    error: ErrorDetail


class RunStarted(TypedDict):
    """A run that was started; its events are available under its id."""

    run: str
    session: str


class ShownNode(NodeDetails):
    """A node, the options of its answers, the state after it, its calls, and in `ask` its passages and clarifying question."""

    ask: NotRequired[JsonObject]


class Deleted(TypedDict):
    """What was deleted; `index` if it was a document."""

    deleted: str
    index: NotRequired[str]


class Moved(TypedDict):
    """A conversation and its new end."""

    session: str
    node: str


class Renamed(TypedDict):
    """The new name of a conversation."""

    session: str


class Imported(TypedDict):
    """The imported conversations and their turns; whether the store trusts their app."""

    sessions: list[str]
    turns: int
    trusted: bool


class BranchEnd(TypedDict):
    """The end of a branch."""

    node: str


class Verified(TypedDict):
    """Whether every node matches its records; otherwise the first problem."""

    verified: bool
    problem: str
    nodes: int
    replayed: int


class QuestionBack(TypedDict):
    """The clarifying question at which a conversation pauses; `ask` is null if it does not."""

    session: str
    node: str
    ask: JsonObject | None


class CostEntry(Costs):
    """A line of the bill, grouped by app, model, day or session; `cost` is null if a part of it is unknown."""

    app: NotRequired[str]
    model: NotRequired[str]
    day: NotRequired[str]
    session: NotRequired[str]


class ParamEntry(TypedDict):
    """A parameter of an app."""

    name: str
    type: str
    default: Json
    required: bool


class AppEntry(TypedDict):
    """A served app; `problem` says why its file cannot be read, in which case the other members are missing."""

    name: str
    problem: NotRequired[str]
    about: NotRequired[str]
    documents: NotRequired[bool]
    params: NotRequired[list[ParamEntry]]


class Cancelled(TypedDict):
    """A run that was asked to stop."""

    cancelled: bool


class IndexEntry(IndexContents):
    """An index that the caller can see; `run` is reading it now."""

    name: str
    changed: str
    own: bool
    uploads: bool
    run: str | None


class ShownIndex(IndexEntry):
    """An index with its documents."""

    embeddings: Json
    rules: list[AccessRule]
    files: list[JsonObject]


class IndexRunStarted(TypedDict):
    """A run that reads an index; `refused` lists rejected files with the reason."""

    run: str
    index: str
    documents: NotRequired[list[str]]
    refused: NotRequired[list[JsonObject]]


class FoundPassages(TypedDict):
    """The best passages for a query, and the next best."""

    query: str
    passages: list[JsonObject]
    near_misses: list[JsonObject]
    warnings: list[str]


class NewAttachment(TypedDict):
    """An attachment: its name, and its bytes in Base64."""

    name: str
    data: Base64


class NewOptions(TypedDict, total=False):
    """Options of the answers of a conversation, in addition to its app: instructions, sampling, built-in tools that the model may
    call, and the type of the answers: fields as in `name, age int`, a JSON Schema, an example as JSON, or TypeScript; or the regular
    expression or grammar (Lark or GBNF) of their text.
    """

    system: str
    temperature: Annotated[float, {"minimum": 0, "maximum": 2}]
    max_tokens: Number
    tools: list[Annotated[str, {"enum": list(BUILT_IN)}]]
    type: str
    regex: str
    grammar: str


class NewConversation(TypedDict, total=False):
    """The first turn of a conversation."""

    app: str
    model: str
    params: JsonObject
    person: str
    text: Required[str]
    name: str
    attachments: "list[NewAttachment]"
    options: NewOptions


class NewTurn(TypedDict, total=False):
    """A turn: at the end, after the node `parent`, as a replacement of the turn number `edit`, with `retry` the last one
    again, or with `repeat` the one that failed or was interrupted.

    `replay` sends the texts after the edited turn again; `option` selects an option of a clarifying question by its number. If
    the conversation is not at the node `expected`, nothing is done. The model must begin its answer with `prefix`.
    """

    text: str
    option: Number
    parent: str
    edit: int
    retry: bool
    repeat: bool
    replay: bool
    model: str
    attachments: list[NewAttachment]
    expected: str
    prefix: str


class Rewritten(TypedDict):
    """A new text for a turn, by its number."""

    text: Name
    edit: int
    parent: NotRequired[str]
    expected: NotRequired[str]


class Estimate(TypedDict):
    """Estimated tokens and cost; null if unknown."""

    tokens: int | None
    cost: str | None


class TurnEstimate(TypedDict):
    """The estimated cost of answering a turn again, alone and with the turns after it."""

    answer: Estimate
    replay: Estimate
    following: int


class NewParams(TypedDict, total=False):
    """New parameters for the app of a conversation, and new options of its answers; those that are not named stay."""

    params: JsonObject
    person: str
    options: NewOptions


class WaitingCall(TypedDict):
    """A tool call that needs approval before it is made."""

    name: str
    arguments: JsonObject


class WaitingCalls(TypedDict):
    """The calls for whose approval the interrupted turn of a conversation waits, and their id, "" without any."""

    id: str
    calls: list[WaitingCall]


class ResumeTurn(TypedDict, total=False):
    """The model that completes an interrupted turn, and whether the tool calls whose id is `waiting` are made."""

    model: str
    approve: bool
    waiting: str


class MoveTurns(TypedDict, total=False):
    """The number of turns."""

    turns: Annotated[int, {"minimum": 1, "maximum": 1000}]


class NewLabel(TypedDict, total=False):
    """A title in free words ("" removes it), whether a conversation is pinned or archived, and all its tags."""

    title: str
    pinned: bool
    archived: bool
    tags: list[Tag]


class KeptBranch(TypedDict, total=False):
    """A node whose branch the conversation continues; nothing is done if it is not at the node `expected`."""

    node: Required[str]
    expected: str


class NewName(TypedDict):
    """The new name of a conversation."""

    name: Label


class NewFork(TypedDict):
    """The name of a branch, and the node at which it begins; by default the end of the conversation."""

    name: Label
    node: NotRequired[str]


class NewImport(TypedDict):
    """The text of a file of conversations, and the name that they get; several are numbered."""

    text: Name
    name: NotRequired[str]


class NewValue(TypedDict):
    """A value of the state, by path."""

    path: Annotated[str, PATH]
    value: Json
    author: NotRequired[str]
    parent: NotRequired[str]
    expected: NotRequired[str]


class NewIndex(TypedDict):
    """An index for uploads."""

    name: Label
    language: NotRequired[Annotated[str, {"enum": list(LANGUAGES)}]]


class PersonChange(TypedDict, total=False):
    """Values of a user profile; null or "" removes one."""

    facts: dict[str, str | None]
    language: str
    thresholds: "Thresholds"


class Thresholds(TypedDict, total=False):
    """The thresholds of a user profile."""

    unclear: Annotated[float, bounded("unclear")]
    question: Annotated[float, bounded("question")]
    consultation: Annotated[float, bounded("consultation")]
    documented: Annotated[float, bounded("documented")]
    ask_person: Annotated[float, bounded("ask_person")]
    eagerness: Annotated[float, bounded("eagerness")]
    max_questions: Annotated[int, bounded("max_questions")]
    weak_evidence: Annotated[float, bounded("weak_evidence")]
    strong_evidence: Annotated[float, bounded("strong_evidence")]


class Rating(TypedDict):
    """A verdict on the last turn; `asked` says whether it asked a clarifying question."""

    verdict: Literal["good", "bad", "should_have_asked", "should_not_have_asked"]
    asked: NotRequired[bool]


class Nothing(TypedDict):
    """A body without members."""


WRITTEN: Json = {"properties": {"text": {"pattern": r"\S"}}, "required": ["text"]}
ATTACHED: Json = {"properties": {"attachments": {"minItems": 1}}, "required": ["attachments"]}
FirstTurn: TypeAlias = Annotated[NewConversation, {"anyOf": [WRITTEN, ATTACHED]}]
"""A turn that says something."""
NextTurn: TypeAlias = Annotated[
    NewTurn,
    {
        "anyOf": [
            WRITTEN,
            ATTACHED,
            {"properties": {"option": {"type": "integer"}}, "required": ["option"]},
            {"properties": {"retry": {"const": True}}, "required": ["retry"]},
            {"properties": {"repeat": {"const": True}}, "required": ["repeat"]},
        ]
    },
]
"""A turn that says something, takes an option, or is asked for again."""
