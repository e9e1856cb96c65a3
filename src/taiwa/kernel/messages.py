"""What is said, asked and answered: frozen values, tuples and never lists.

Nothing here does I/O or knows of a provider. `collect_response` is the one way from a stream of chunks to a response.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from taiwa.kernel.records import Json, digest, value

__all__ = [
    "Capability",
    "ChoiceQuestion",
    "Chunk",
    "Constraint",
    "Enforcement",
    "Evidence",
    "FinishReason",
    "Grammar",
    "JsonSchema",
    "Message",
    "Notice",
    "OneOf",
    "Part",
    "Passage",
    "Question",
    "Questions",
    "Regex",
    "Request",
    "Response",
    "Role",
    "Sampling",
    "ScaleQuestion",
    "StreamEnd",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "TokenLogprob",
    "ToolCall",
    "ToolCallsInText",
    "ToolResult",
    "ToolSpec",
    "Usage",
    "YesNoQuestion",
    "assistant",
    "collect_response",
    "fuse_rankings",
    "passage_key",
    "system",
    "user",
]


RANK = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Buettcher 2009)."""

Role = Literal["system", "user", "assistant", "tool"]

FinishReason = Literal["stop", "length", "tool_calls", "refusal", "cut", "interrupted"]
"""Why a response ended: a stop string or end of text · too long · tools wanted · refused · a watcher cut it · a person did."""

Capability = Literal[
    "stop", "prefix", "tools", "json_schema", "regex", "grammar", "logprobs", "seed", "cache", "decisions"
]  # fmt: skip
"""What a model's server can do. `prefix`: continue an assistant message; `cache`: explicit prefix-cache marks; `logprobs`:
tell how likely tokens were; `decisions`: answer typed questions by probabilities, without words."""


@value(tag="text")
class Text:
    """Words. A transient text belongs to this request only and is not part of the prefix that the next one repeats."""

    text: str
    transient: bool = False


@value(tag="thinking")
class Thinking:
    """Hidden reasoning that a model chose to show; never scanned for triggers, never sent back."""

    text: str


@value(tag="tool-call")
class ToolCall:
    """A call that the model wants; `arguments` is JSON text as the model wrote it."""

    name: str
    arguments: str
    id: str = ""


@value(tag="tool-result")
class ToolResult:
    """What a tool gave: `text` is what a model reads, `value` the exact result, `error` a code or ''."""

    text: str
    name: str = ""
    call: str = ""
    value: Json = None
    error: str = ""
    origin: Literal["tool", "model", "memo"] = "tool"


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult


@value(tag="message")
class Message:
    """One message of a conversation as a model sees it."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All words of the message, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls the message asks for."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


def system(text: str) -> Message:
    """Make a system message."""
    return Message("system", (Text(text),))


def user(text: str) -> Message:
    """Make a user message."""
    return Message("user", (Text(text),))


def assistant(text: str) -> Message:
    """Make an assistant message."""
    return Message("assistant", (Text(text),))


@value(tag="usage")
class Usage:
    """Tokens of one or many calls; a monoid under `+`. `input_tokens` includes those read from and written to a cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@value(tag="json-schema")
class JsonSchema:
    """The answer must be JSON that fits the schema."""

    schema: Mapping[str, Json]
    name: str = "answer"


@value(tag="regex")
class Regex:
    """The answer must match the pattern from end to end."""

    pattern: str


@value(tag="grammar")
class Grammar:
    """The answer must be a word of the grammar (Lark notation)."""

    text: str
    start: str = "start"


@value(tag="one-of")
class OneOf:
    """The answer must be one of these texts."""

    texts: tuple[str, ...]


@value(tag="tool-calls-in-text")
class ToolCallsInText:
    """The answer must be free text up to the end of its first call of a tool, and a call must be of one of these tools.

    `opening` and `closing` stand around a call: `{name}` is the tool's name. `free_text` False leaves out all text but the
    call.
    """

    tools: "tuple[ToolSpec, ...]"
    opening: str = "<<{name}: "
    closing: str = ">>"
    free_text: bool = True


@value(tag="yes-no-question")
class YesNoQuestion:
    """Is something so? `yes` and `no` may say what each means."""

    instructions: str
    yes: str = ""
    no: str = ""


@value(tag="choice-question")
class ChoiceQuestion:
    """Which of some options is it? An option is a name and what it means, which may be empty."""

    instructions: str
    options: tuple[tuple[str, str], ...]


@value(tag="scale-question")
class ScaleQuestion:
    """Where on an ordered scale does it stand? `levels` are the words for each, first to last."""

    instructions: str
    levels: tuple[str, ...]


Question: TypeAlias = YesNoQuestion | ChoiceQuestion | ScaleQuestion


@value(tag="questions")
class Questions:
    """The answer must say of each named question how likely every answer to it is; no words are written."""

    asked: tuple[tuple[str, Question], ...]


Constraint: TypeAlias = JsonSchema | Regex | Grammar | OneOf | ToolCallsInText | Questions


@value(tag="sampling")
class Sampling:
    """How tokens are drawn; None leaves the choice to the server."""

    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None


@value(tag="tool-spec")
class ToolSpec:
    """A tool as a model sees it; `parameters` is the JSON Schema of its arguments object.

    Words of an `untrusted` one, its description and its results included, come from somebody else.
    """

    name: str
    description: str
    parameters: Mapping[str, Json]
    trust: Literal["trusted", "untrusted"] = "trusted"


Task: TypeAlias = Literal[
    "",
    "chat",
    "summarize",
    "solve",
    "extract_number",
    "extract",
    "assess",
    "assess_clarity",
    "assess_is_question",
    "assess_is_consultation",
    "assess_in_internal_docs",
    "assess_ask_person",
    "clarify_question",
    "rewrite_query",
    "answer_with_citations",
    "advise",
]
"""Which of our programs asks; empty for any other."""


@value(tag="request")
class Request:
    """Everything a model needs for one answer.

    `prefix` is the start of the answer that the model must continue; `tool_choice` is `auto`, `none`, `required` or the
    name of one of `tools`; `top_logprobs` is how many of the likeliest tokens to tell for each place of the answer.
    `task` says which of our programs asks: the built-in model, which learned some of them, goes by it. It is sent to no server.
    """

    messages: tuple[Message, ...]
    prefix: str = ""
    stop: tuple[str, ...] = ()
    constraint: Constraint | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    sampling: Sampling = Sampling()
    top_logprobs: int = 0
    task: Task = ""

    @property
    def digest(self) -> str:
        """The cache key: requests that a server cannot tell apart have equal digests on every machine."""
        return digest(replace(self, task="") if self.task else self)


@value(tag="token-logprob")
class TokenLogprob:
    """A token of an answer, the logarithm of its probability, and the likeliest tokens at its place with theirs."""

    token: str
    logprob: float
    top_logprobs: tuple[tuple[str, float], ...] = ()


@value(tag="enforcement")
class Enforcement:
    """How the constraint of a request was kept; each clause is the JSON pointer of a schema and a keyword in it.

    `way` is how the server was told of it, empty where it was not. `enforced`: the decoder holds the answer to it, as was
    measured. `promised`: the server says that it does. `checked`: no decoder holds it; the answer must be checked.
    `broken` is what the answer was found to break when it was.
    """

    way: str = ""
    enforced: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Say whether the decoder alone keeps the constraint."""
        return not self.promised and not self.checked and not self.broken


@value(tag="response")
class Response:
    """One answer. `usage` None means that the backend did not say; it is never read as zero.

    An answer that a watcher cut has in `discarded` what came behind the cut in the same piece, and where its usage is not
    known, in `at_most` more tokens than what was sent and received can be. `logprobs` are those that were asked for.
    `enforcement` says how its constraint was kept, None where there was none or nobody knows.
    """

    message: Message
    finish: FinishReason = "stop"
    stop: str | None = None
    usage: Usage | None = None
    model: str = ""
    discarded: str = ""
    at_most: Usage | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    enforcement: Enforcement | None = None

    @property
    def text(self) -> str:
        """The words of the answer."""
        return self.message.text


@value(tag="text-delta")
class TextDelta:
    """The next words of an answer."""

    text: str


@value(tag="thinking-delta")
class ThinkingDelta:
    """The next words of the hidden reasoning."""

    text: str


@value(tag="stream-end")
class StreamEnd:
    """The end of a stream of chunks."""

    finish: FinishReason = "stop"
    stop: str | None = None
    usage: Usage | None = None
    model: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    enforcement: Enforcement | None = None


Chunk: TypeAlias = TextDelta | ThinkingDelta | StreamEnd


def collect_response(chunks: Iterable[Chunk]) -> Response:
    """Join a stream of chunks into its response; a stream without an end counts as interrupted.

    >>> collect_response([TextDelta("so "), TextDelta("it is"), StreamEnd()]).text
    'so it is'
    """
    words: list[str] = []
    thoughts: list[str] = []
    end = StreamEnd(finish="interrupted")
    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            words.append(chunk.text)
        elif isinstance(chunk, ThinkingDelta):
            thoughts.append(chunk.text)
        else:
            end = chunk
    parts: tuple[Part, ...] = (Text("".join(words)),)
    if thoughts:
        parts = (Thinking("".join(thoughts)), *parts)
    message = Message("assistant", parts + end.tool_calls)
    return Response(
        message, end.finish, end.stop, end.usage, end.model, logprobs=end.logprobs, enforcement=end.enforcement
    )


@value(tag="passage")
class Passage:
    """A piece of a source; `start` is its character offset there.

    `heading` is the path of headings that it stands under, outermost first, `page` its page, 0 where there are none. `id`
    names this piece of this version of the source for good, where a library keeps it.
    """

    source: str
    text: str
    score: float = 0.0
    start: int = 0
    heading: tuple[str, ...] = ()
    page: int = 0
    title: str = ""
    id: str = ""


@value(tag="evidence")
class Evidence:
    """What retrieval says of a question; every number is 0 to 1, and 0 where nothing was found.

    `passages` may be seen at all and `found` of them were looked at. `coverage`: the part of what is asked, rare terms
    counting more, that one of the best five passages holds. `top`: the best score as part of the highest thinkable one.
    `nqc`: how much the best scores differ, as part of that (normalised query commitment, Shtok et al. 2012). `unknown`: terms
    that no passage holds. `unresolved_references`: words that point at something said nowhere.
    """

    passages: int = 0
    found: int = 0
    coverage: float = 0.0
    top: float = 0.0
    nqc: float = 0.0
    unknown: tuple[str, ...] = ()
    unresolved_references: tuple[str, ...] = ()


@value(tag="notice")
class Notice:
    """Something a person may want to know; a warning is always shown."""

    text: str
    level: Literal["note", "warning"] = "note"
    code: str = ""


def passage_key(passage: Passage) -> str:
    """Name a passage: two results with one name are the same passage."""
    return passage.id or f"{passage.source}#{passage.start}-{passage.start + len(passage.text)}"


def fuse_rankings(rankings: Sequence[Sequence[Passage]], k: int) -> tuple[Passage, ...]:
    """Fuse rankings by the reciprocal ranks of each passage; a single ranking stays as it is.

    >>> a, b, c = (Passage(name, name, 1.0) for name in "abc")
    >>> [each.source for each in fuse_rankings(((a, b), (b, c)), 2)]
    ['b', 'a']
    """
    filled = [ranking for ranking in rankings if ranking]
    if len(filled) < 2:
        return tuple(filled[0][: max(k, 0)]) if filled else ()
    scores: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for ranking in filled:
        for place, passage in enumerate(ranking, 1):
            name = passage_key(passage)
            scores[name] = scores.get(name, 0.0) + 1 / (RANK + place)
            passages.setdefault(name, passage)
    ranked = sorted(scores, key=lambda name: -scores[name])
    return tuple(replace(passages[name], score=scores[name]) for name in ranked[: max(k, 0)])
