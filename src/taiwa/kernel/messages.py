"""Messages, requests, responses and their parts: frozen values that hold tuples, never lists.

Independent of providers, and without I/O except for reading attachments. `collect_response` joins a stream of chunks into a
response.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Literal, TypeAlias, cast

from taiwa.kernel.attachments import Attachment, AttachmentSource, read_attachments
from taiwa.kernel.errors import InputError, check_list
from taiwa.kernel.serialization import Json, canonical, digest, parse_json, to_json, value
from taiwa.kernel.wording import Wording

RANK_CONSTANT = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Buettcher 2009)."""

Role = Literal["system", "user", "assistant", "tool"]

FinishReason = Literal["stop", "length", "tool_calls", "refusal", "cut", "interrupted", "repetition"]
"""Why a response ended: a stop string or end of text · length · tool calls · refusal · cut by a watcher · an interrupt · the
model repeated the same tokens without end."""

Capability = Literal[
    "stop", "prefix", "tools", "json_schema", "regex", "grammar", "logprobs", "seed", "cache", "local", "small"
]  # fmt: skip
"""What the server of a model supports. `prefix`: continuing an assistant message; `cache`: explicit prefix-cache marks;
`logprobs`: log probabilities of tokens; `local`: running on the user's machine, where a second, short request with a cached prefix
costs little; `small`: having less than a billion parameters, so that a long type in the prompt does more harm than good."""


@value(tag="text")
class Text:
    """Text. A transient text belongs to one request only, not to the prefix that the next request repeats."""

    text: str
    transient: bool = False


@value(tag="thinking")
class Thinking:
    """A block of reasoning, separate from the answer; never scanned for tool calls.

    `text` may be shown; it is empty if the server does not return it. `data` is the block as the server sent it, signed or
    encrypted: it is sent back unchanged with its calls and turns, and only to `origin`, the wire and model that can read it.
    """

    text: str
    data: Json = None
    origin: str = ""


@value(tag="tool-call")
class ToolCall:
    """A tool call of the model; `arguments` is JSON text as the model wrote it."""

    name: str
    arguments: str
    id: str = ""

    def arguments_object(self, unread: str = "invalid_json") -> dict[str, Json]:
        """Return the arguments as an object, for protocols that require one; other text is the value of `unread`."""
        try:
            arguments = parse_json(self.arguments or "{}")
            to_json(arguments)
        except (ValueError, InputError):
            arguments = None
        return arguments if isinstance(arguments, dict) else {unread: self.arguments}


@value(tag="tool-result")
class ToolResult:
    """The result of a tool call: `text` is for the model, `value` is the exact result, `error` a code or ''.

    `attachments` are images and other files of the result, for a model that can read them.
    """

    text: str
    name: str = ""
    call: str = ""
    value: Json = None
    error: str = ""
    origin: Literal["tool", "model", "memo"] = "tool"
    attachments: tuple[Attachment, ...] = ()

    @property
    def as_text(self) -> str:
        """The text, with a sentence for each attachment, for what shows only text.

        >>> ToolResult("done", attachments=(Attachment.from_bytes(b"GIF89a"),)).as_text
        'done\\n[image that cannot be shown as text]'
        """
        kinds = ("image" if each.kind == "images" else "file" for each in self.attachments)
        return "\n".join(filter(None, (self.text, *(f"[{kind} that cannot be shown as text]" for kind in kinds))))


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult | Attachment


@value(tag="message")
class Message:
    """One message of a request."""

    role: Role
    parts: tuple[Part, ...]
    kept_record: str = field(default="", init=False, repr=False, compare=False)
    """The canonical record, which the digests of many requests contain."""

    @property
    def text(self) -> str:
        """The joined text of the message."""
        parts = self.parts
        if len(parts) == 1 and isinstance(only := parts[0], Text):
            return only.text
        return "".join(part.text for part in parts if isinstance(part, Text))

    @property
    def ordered_text(self) -> str:
        """The text as a request has it: transient parts last; a blank line separates parts that are not the model's."""
        texts = sorted((part for part in self.parts if isinstance(part, Text)), key=lambda part: part.transient)
        return ("" if self.role == "assistant" else "\n\n").join(part.text for part in texts if part.text)

    @property
    def thinking(self) -> tuple[Thinking, ...]:
        """The reasoning of the message."""
        return tuple(part for part in self.parts if isinstance(part, Thinking))

    @property
    def signed_thinking(self) -> tuple[Thinking, ...]:
        """The reasoning that a later request must send back; a request without the rest has the same digest."""
        return tuple(part for part in self.thinking if part.data is not None)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the message."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The attachments of the message."""
        return tuple(part for part in self.parts if isinstance(part, Attachment))


def system(text: str) -> Message:
    """Make a system message."""
    return Message("system", (Text(text),))


def result_files(messages: Iterable[Message]) -> tuple[Attachment, ...]:
    """Return the attachments of the tool results in messages."""
    return tuple(file for message in messages for part in message.parts for file in getattr(part, "attachments", ()))


def file_texts(files: Iterable[Attachment]) -> Iterator[str]:
    """Yield the texts of the files that are texts."""
    return (file.text for file in files if file.kind is None and file.data)


def is_quoted(written: str, sources: Iterable[str]) -> bool:
    """Whether what a model wrote stands in a source, but for white space.

    >>> is_quoted('{"a": 1}', ['Write {"a":1} now.']), is_quoted('{"a": 2}', ['Write {"a":1} now.'])
    (True, False)
    """
    plain = "".join(written.split())
    return any(plain in "".join(text.split()) for text in sources)


def source_texts(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the texts in messages that neither the model nor an app wrote: those of users, of their files, and of results."""
    for message in messages:
        for part in message.parts if message.role in ("user", "tool") else ():
            if isinstance(part, (Text, ToolResult)):
                yield part.text
            files = (part,) if isinstance(part, Attachment) else getattr(part, "attachments", ())
            yield from file_texts(files)


def user(text: str, attachments: Iterable[AttachmentSource] = ()) -> Message:
    """Make a user message; its attachments (paths, bytes or `Attachment` objects) come before its text.

    Raises:
        InputError: an attachment cannot be read.
    """
    return Message("user", (*read_attachments(attachments), Text(text)))


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
    """The answer must be JSON that fits the schema, its members in the order of the schema.

    A record sorts the keys of JSON objects, so `ordered` repeats a schema in which they are not sorted, as text.
    """

    schema: Mapping[str, Json]
    name: str = "answer"
    ordered: str = ""

    def __init__(self, schema: Mapping[str, Json], name: str = "answer", ordered: str = "") -> None:
        given = _in_order(schema, ordered)
        object.__setattr__(self, "schema", given)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "ordered", _unsorted_text(given))


def _in_order(schema: Mapping[str, Json], ordered: str) -> Mapping[str, Json]:
    """Return the schema with its keys in the order of a text, if that is the same schema."""
    with suppress(ValueError):
        written = parse_json(ordered) if ordered else None
        if isinstance(written, dict) and written == schema:
            return written
    return schema


def _unsorted_text(schema: object) -> str:
    """Return a schema as JSON text, or "" if its keys are sorted, or if it is not JSON, which is refused where it is used."""
    try:
        text = to_json(cast("Json", schema))
        return "" if text == canonical(cast("Json", schema)) else text.decode("utf-8")
    except (InputError, TypeError, RecursionError):
        return ""


@value(tag="regex")
class Regex:
    """The answer must match the pattern from end to end."""

    pattern: str


@value(tag="grammar")
class Grammar:
    """The answer must be derived by the grammar (Lark notation)."""

    text: str
    start: str = "start"


@value(tag="one-of")
class Choice:
    """The answer must be one of these texts: `Choice("tea", "coffee")`, or a list of them."""

    texts: tuple[str, ...]

    def __init__(self, texts: str | Sequence[str], *more: str) -> None:
        given = (texts, *more) if more or isinstance(texts, str) else texts
        check_list("texts", given, str, "texts")
        object.__setattr__(self, "texts", tuple(given))


@value(tag="tool-calls-in-text")
class ToolCallsInText:
    """The answer must be free text up to the end of its first call of a tool, and a call must be of one of these tools.

    `opening` and `closing` are the markers of a call: `{name}` is the tool's name. `free_text=False` allows only the call. With
    `after_prefix` the prefix of the request, whose calls are answered, is not a part of that text. With `words_first` it begins with
    neither a call nor a blank.
    """

    tools: "tuple[ToolSpec, ...]"
    opening: str = "<<{name}: "
    closing: str = ">>"
    free_text: bool = True
    after_prefix: bool = False
    words_first: bool = False


def constrained_prefix(constraint: "Constraint", prefix: str) -> str:
    """Return the beginning of the answer that its constraint covers."""
    return "" if isinstance(constraint, ToolCallsInText) and constraint.after_prefix else prefix


Constraint: TypeAlias = JsonSchema | Regex | Grammar | Choice | ToolCallsInText


@value(tag="sampling")
class Sampling:
    """How tokens are sampled; None leaves the choice to the server.

    `effort` sets how much a model on a server reasons, such as `low`; "" keeps the setting of the opened model. `extra` are further
    fields of the request to the server, as an object; the codec must take them.
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    effort: str = ""
    extra: Json = None


@value(tag="tool-spec")
class ToolSpec:
    """A tool as a model sees it; `parameters` is the JSON Schema of its arguments object.

    The description and the results of an `untrusted` tool are third-party text.
    """

    name: str
    description: str
    parameters: Mapping[str, Json]
    trust: Literal["trusted", "untrusted"] = "trusted"
    kept_record: str = field(default="", init=False, repr=False, compare=False)
    """As that of `Message`."""


@value
class RequestHints:
    """What makes a request cheaper and does not change its answer.

    `whole` asks for an answer in one piece, which costs less to read: nothing reads it before its end. The first `opening` messages
    begin other conversations too: a model in this process keeps what it has read of them.
    """

    whole: bool = False
    opening: int = 0


@value(tag="request")
class Request:
    """Everything that a model needs for one answer.

    `prefix` is the start of the answer that the model must continue; `tool_choice` is `auto`, `none`, `required` or the
    name of one of `tools`; `top_logprobs` is the number of likeliest tokens to return for each position of the answer.
    """

    messages: tuple[Message, ...]
    prefix: str = ""
    stop: tuple[str, ...] = ()
    constraint: Constraint | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    sampling: Sampling = Sampling()
    top_logprobs: int = 0
    hints: RequestHints = field(default=RequestHints(), compare=False)

    @property
    def files(self) -> tuple[Attachment, ...]:
        """All attachments: those of messages, and those of the results of tools."""
        parts = [part for message in self.messages for part in message.parts if not isinstance(part, Text)]
        return tuple(
            file
            for part in parts
            for file in ((part,) if isinstance(part, Attachment) else getattr(part, "attachments", ()))
        )

    @property
    def digest(self) -> str:
        """The cache key: requests that a server cannot tell apart have equal digests on every machine."""
        return digest(self)


@value(tag="token-logprob")
class TokenLogprob:
    """A token of an answer, the logarithm of its probability, and the likeliest tokens at its position with theirs."""

    token: str
    logprob: float
    top_logprobs: tuple[tuple[str, float], ...] = ()


@value(tag="enforcement")
class Enforcement:
    """How the constraint of a request was enforced; a clause is the JSON pointer of a schema and a keyword in it.

    `method` is how the constraint was sent to the server, empty if it was not. `enforced`: clauses that the decoder was
    measured to enforce. `promised`: clauses that the server claims to enforce. `checked`: clauses that the answer must be
    checked against. `broken`: clauses that the answer violates.
    """

    method: str = ""
    enforced: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Return whether the decoder enforces the complete constraint."""
        return not self.promised and not self.checked and not self.broken


@value(tag="written-tokens")
class WrittenTokens:
    """The tokens of an answer of a model in this process: their ids, and which of them the constraint forced.

    Of the `passes` of the network, `sparse_passes` computed only a part of its output head.
    """

    ids: tuple[int, ...]
    forced: tuple[bool, ...]
    passes: int
    sparse_passes: int = 0


@value
class Decoding:
    """What is known of the tokens of an answer: their log probabilities, how the constraint was enforced, None without a constraint,
    and the tokens that a model in this process has written.
    """

    logprobs: tuple[TokenLogprob, ...] = ()
    enforcement: Enforcement | None = None
    written: WrittenTokens | None = None


UNKNOWN_DECODING = Decoding()


@value(tag="response")
class Response:
    """One answer. `usage` None means that the server did not report it; it never counts as zero.

    `stop` is the stop string that ended it. Of a refusal it is `refusal` where its text is the refusal of the model, which nothing cut.

    If a watcher cut the answer, `discarded` is the text after the cut in the same chunk, and `max_usage` bounds the usage if
    it is unknown. `extra` is what its server adds to the answer, as an object: `annotations`, `system_fingerprint`.
    """

    message: Message
    finish: FinishReason = "stop"
    stop: str | None = None
    usage: Usage | None = None
    model: str = ""
    discarded: str = ""
    max_usage: Usage | None = None
    decoding: Decoding = UNKNOWN_DECODING
    extra: Json = None

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.message.text


@value(tag="text-delta")
class TextDelta:
    """The next text of an answer; `refuses`: it is that of a refusal, as the server says."""

    text: str
    refuses: bool = False


@value(tag="thinking-delta")
class ThinkingDelta:
    """The next text of the reasoning content; `block` is the whole signed block that ends here."""

    text: str
    block: Thinking | None = None


@value
class PartialValue:
    """What is certain of a typed answer while it is written, as JSON; an invalid answer may be followed by another."""

    value: Json


@value
class HiddenDelta:
    """The next text of an answer that only its program reads; observers get it, and it is not shown."""

    text: str


@value(tag="stream-end")
class StreamEnd:
    """The end of a stream of chunks; `thinking` are the blocks of its reasoning, if the server sends blocks; `extra` is that of
    `Response`.
    """

    finish: FinishReason = "stop"
    stop: str | None = None
    usage: Usage | None = None
    model: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    decoding: Decoding = UNKNOWN_DECODING
    thinking: tuple[Thinking, ...] = ()
    extra: Json = None


@value(tag="notice")
class Notice:
    """A message for the user; a warning is always shown, one with the code `waiting` as soon as it arrives.

    `seconds` is the time until a model is called, if that is known; `str` says it too. `in_answer`: the text is a part of the answer that
    the program inserted, such as the result of a call.
    """

    text: str
    level: Literal["note", "warning"] = "note"
    code: str = ""
    seconds: float = 0.0
    in_answer: bool = False

    def __str__(self) -> str:
        if not self.seconds:
            return self.text
        return Wording("waiting {seconds} s: {text}", seconds=f"{self.seconds:.0f}", text=self.text)


ShownEvent: TypeAlias = TextDelta | Notice | PartialValue
"""What a user sees of a run before its end."""


@value
class FailedAttempt:
    """An attempt of a call that the server may have charged has failed; the next chunks are those of another attempt."""


Chunk: TypeAlias = TextDelta | ThinkingDelta | Notice | FailedAttempt | StreamEnd


def collect_response(chunks: Iterable[Chunk]) -> Response:
    """Join a stream of chunks into a response; a stream without an end counts as interrupted.

    >>> collect_response([TextDelta("so "), TextDelta("it is"), StreamEnd()]).text
    'so it is'
    """
    text: list[str] = []
    thinking: list[str] = []
    end = StreamEnd(finish="interrupted")
    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            text.append(chunk.text)
        elif isinstance(chunk, ThinkingDelta):
            thinking.append(chunk.text)
        elif isinstance(chunk, StreamEnd):
            end = chunk
    blocks = end.thinking or ((Thinking("".join(thinking)),) if thinking else ())
    message = Message("assistant", (*blocks, Text("".join(text)), *end.tool_calls))
    return Response(message, end.finish, end.stop, end.usage, end.model, decoding=end.decoding, extra=end.extra)


@value(tag="passage")
class Passage:
    """A passage of a document; `start` is its character offset in it.

    `heading` is the path of its headings, outermost first; `page` is its page, 0 without pages. `id` identifies the passage
    of this version of the document, if a library stores it.
    """

    source: str
    text: str
    score: float = 0.0
    start: int = 0
    heading: tuple[str, ...] = ()
    page: int = 0
    title: str = ""
    id: str = ""

    @property
    def end(self) -> int:
        """The character offset behind it."""
        return self.start + len(self.text)

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: the place and the text."""
        return f"**{' › '.join((self.source, *self.heading))}** · {self.score:.2f}\n\n{self.text}"


@value(tag="evidence")
class Evidence:
    """Retrieval statistics of a query; the scores are 0 to 1, and 0 if nothing was found.

    `passages` are accessible, and `found` of them were scored. `coverage`: the part of the query's terms, weighted by rarity,
    that one of the best five passages contains. `top`: the best score as a part of the highest possible one. `nqc`: the
    deviation of the best scores, as a part of that (normalised query commitment, Shtok et al. 2012). `unknown`: terms that
    occur in no passage. `unresolved_references`: words that refer to something not mentioned before.
    """

    passages: int = 0
    found: int = 0
    coverage: float = 0.0
    top: float = 0.0
    nqc: float = 0.0
    unknown: tuple[str, ...] = ()
    unresolved_references: tuple[str, ...] = ()


@value(tag="found")
class Found:
    """The passages for a query, best first, and the evidence on it; None if the retriever is not a `MeasuringRetriever`."""

    passages: tuple[Passage, ...] = ()
    evidence: Evidence | None = None


def passage_key(passage: Passage) -> str:
    """Return the key of a passage; results with equal keys are the same passage."""
    return passage.id or f"{passage.source}#{passage.start}-{passage.end}"


def reciprocal_ranks(rankings: Iterable[Sequence[Passage | None]], k: int) -> tuple[Passage, ...]:
    """Fuse rankings by reciprocal rank, at most k passages; the score is the sum of 1 / (60 + rank).

    None occupies a rank without a passage.
    """
    scores: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for ranking in rankings:
        for rank, passage in enumerate(ranking, start=1):
            if passage is not None:
                key = passage_key(passage)
                scores[key] = scores.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
                passages.setdefault(key, passage)
    ranked = sorted(scores, key=lambda key: -scores[key])
    return tuple(replace(passages[key], score=scores[key]) for key in ranked[: max(k, 0)])


def fuse_rankings(rankings: Sequence[Sequence[Passage]], k: int) -> tuple[Passage, ...]:
    """Fuse rankings by the reciprocal ranks of each passage; a single ranking stays as it is.

    >>> a, b, c = (Passage(name, name, 1.0) for name in "abc")
    >>> [each.source for each in fuse_rankings(((a, b), (b, c)), 2)]
    ['b', 'a']
    """
    rankings = [ranking for ranking in rankings if ranking]
    if len(rankings) < 2:
        return tuple(rankings[0][: max(k, 0)]) if rankings else ()
    return reciprocal_ranks(rankings, k)


Delta: TypeAlias = TextDelta | ThinkingDelta

BLOCKS = {
    "<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "<seed:think>": "</seed:think>",
    "<|channel>thought": "<channel|>", "[think]": "[/think]", "◁think▷": "◁/think▷", "<|start_thinking|>": "<|end_thinking|>",
}  # fmt: skip

CHANNEL_STARTS = ("<|channel|>", "<|start|>")
CHANNEL_TOKENS = (*CHANNEL_STARTS, "<|message|>", "<|end|>", "<|return|>", "<|call|>")
STARTS = (*BLOCKS, *CHANNEL_STARTS)
LATER_BLOCK = re.compile(rf"(?<!`)(?:{'|'.join(map(re.escape, BLOCKS))})")
MAX_BLANK_CHARS = 1_000
"""White space before an answer that is held back to see whether a block follows."""

UNOPENED = re.compile(
    rf"(?:\A\s*|\n[ \t]*|(?<=[^\s`'\"“(<]))(?:{'|'.join(map(re.escape, BLOCKS.values()))})\s*(?=\S)", re.IGNORECASE
)
"""A closing tag at the start of a line, or directly after a word: `the tag </think>` in a sentence is text."""
HARMONY = re.compile(r"analysis(?=[A-Z\s])(.*?)assistant\s*(?:final(?=\S)(.*)|commentary\s*)\Z", re.DOTALL)
"""An answer in channels (Harmony), or what precedes its calls, whose server has removed the special tokens."""
CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")

FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


class ThinkingSplitter:
    """Splits the text of an answer, in pieces, into thinking and text.

    Thinking is in blocks at the start of the answer, in blocks further on if one was at its start, and in the channels of Harmony
    other than `final`. A later block that does not end is text, and so is a tag in backticks.

    >>> splitter = ThinkingSplitter()
    >>> [*splitter.feed("<think>One and one"), *splitter.feed("…</th"), *splitter.feed("ink>\\n\\nTwo.")]
    [ThinkingDelta(text='One and one', block=None), ThinkingDelta(text='…', block=None), TextDelta(text='Two.', refuses=False)]
    """

    __slots__ = ("_after_block", "_channel", "_closing", "_has_text", "_held", "_last", "_step", "is_text")

    def __init__(self) -> None:
        self._held: str = ""
        self._closing = ""
        self._channel = ""
        self._last = ""
        """The last character of the text before what is held."""
        self._after_block = self._has_text = False
        self._step: Callable[[list[Delta]], bool] = self._begin
        self.is_text = False

    def feed(self, text: str) -> list[Delta]:
        """Take the next piece of the answer; return the part that is certain."""
        if self.is_text:
            return [TextDelta(text)]
        deltas: list[Delta] = []
        self._held += text
        while self._held and self._step(deltas):
            pass
        return deltas

    def close(self) -> list[Delta]:
        """Return what was held back at the end of the answer."""
        held, self._held = self._held, ""
        if self._step == self._think:
            return [ThinkingDelta(held)] if held else []
        if self._step == self._read_content:
            return self._content(held)
        if self._step == self._read_header:
            held = "" if self._channel else held
        held = held.lstrip() if self._after_block and not self._has_text else held
        return [TextDelta(held)] if held else []

    def _begin(self, deltas: list[Delta]) -> bool:
        """Decide whether a block, a channel or the text begins; return whether this is decided."""
        begun = self._held.lstrip()
        lower = begun[: max(map(len, STARTS))].lower()
        opening = next((opening for opening in STARTS if lower.startswith(opening)), None)
        if opening in BLOCKS:
            self._closing, self._held = BLOCKS[opening], begun[len(opening) :]
            if self._after_block:
                deltas.append(ThinkingDelta("\n\n"))
            self._step = self._think
            return True
        if opening is not None:
            self._step = self._read_header
            return True
        if any(opening.startswith(lower) for opening in STARTS) and len(self._held) < MAX_BLANK_CHARS:
            return False
        if self._after_block:
            self._held, self._step, self._has_text = begun, self._answer, True
            return True
        deltas.append(TextDelta(self._held))
        self.is_text, self._held = True, ""
        return True

    def _think(self, deltas: list[Delta]) -> bool:
        """Add the certain part of a block; return whether the block has ended."""
        end = self._held.lower().find(self._closing)
        if end >= 0:
            thought, self._held = self._held[:end], self._held[end + len(self._closing) :]
            self._step, self._after_block = self._begin, True
        else:
            thought = self._take_certain((self._closing,))
        if thought:
            deltas.append(ThinkingDelta(thought))
        return end >= 0

    def _answer(self, deltas: list[Delta]) -> bool:
        """Add the certain part of the text after a block; return whether another block has ended."""
        opened = LATER_BLOCK.search(self._last + self._held.lower())
        start = -1 if opened is None else opened.start() - len(self._last)
        text = self._take_certain(BLOCKS) if opened is None else self._held[:start]
        if text:
            deltas.append(TextDelta(text))
            self._last = text[-1]
        if opened is None:
            return False
        self._held = self._held[max(start, 0) :]
        closing = BLOCKS[opened[0]]
        end = self._held.lower().find(closing, len(opened[0]))
        if end < 0:
            return False
        deltas.append(ThinkingDelta("\n\n" + self._held[len(opened[0]) : end]))
        self._held = self._held[end + len(closing) :]
        return True

    def _read_header(self, deltas: list[Delta]) -> bool:
        """Read the header of a channel, up to its message; return whether it is complete."""
        header, token, content = self._held.partition("<|message|>")
        channel = CHANNEL.search(header)
        if not token:
            return False
        if channel is None and not self._channel:  # the message of a role without a channel is the answer
            self._channel = "final"
        else:
            self._channel = channel[1].lower() if channel is not None else self._channel
        if self._channel != "final" and self._after_block:
            deltas.append(ThinkingDelta("\n\n"))
        self._held, self._step = content, self._read_content
        return True

    def _read_content(self, deltas: list[Delta]) -> bool:
        """Add the certain part of the message of a channel; return whether it has ended."""
        ends = [(at, token) for token in CHANNEL_TOKENS if (at := self._held.find(token)) >= 0]
        if not ends:
            deltas += self._content(self._take_certain(CHANNEL_TOKENS))
            return False
        at, token = min(ends)
        deltas += self._content(self._held[:at])
        self._held = self._held[at if token in CHANNEL_STARTS else at + len(token) :]
        self._step = self._read_header
        return True

    def _content(self, text: str) -> list[Delta]:
        if not text:
            return []
        self._after_block = self._after_block or self._channel != "final"
        return [TextDelta(text) if self._channel == "final" else ThinkingDelta(text)]

    def _take_certain(self, marks: Iterable[str]) -> str:
        """Take what is held up to a possible beginning of one of the marks at its end."""
        lower = self._held.lower()
        keep = max((n for mark in marks for n in range(1, len(mark)) if lower.endswith(mark[:n])), default=0)
        certain, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return certain


@value
class SplitAnswer:
    """The thinking of an answer and its text."""

    thinking: str
    text: str


def split_unopened(text: str) -> SplitAnswer | None:
    """Split an answer whose thinking was opened by the chat template, so that it has only a closing tag, or whose channels have lost
    their tokens; None for others.

    The tag begins a line or follows a word directly, outside of code. While such an answer streams, its thinking cannot be told from
    text.
    """
    if (channels := HARMONY.match(text)) is not None:
        return SplitAnswer(channels[1].strip(), channels[2] or "")
    lower = text.lower()  # the pattern is slow to find that there is none, as in most answers
    closing = UNOPENED.search(text) if any(each in lower for each in BLOCKS.values()) else None
    if closing is None:
        return None
    thinking = text[: closing.start()]
    if any(opening in thinking.lower() for opening in BLOCKS) or len(FENCE.findall(thinking)) % 2:
        return None
    return SplitAnswer(thinking.strip(), text[closing.end() :])


def with_new_ids(response: Response, request: Request) -> Response:
    """Give the calls ids that no call of the request has: some servers send none, or the same one in each answer, and clients keep
    what has an id once.

    Other ids stay, since some models read them.
    """
    if not response.message.tool_calls:
        return response
    taken = {"", *(call.id for message in request.messages for call in message.tool_calls)}
    parts: list[Part] = []
    for part in response.message.parts:
        if isinstance(part, ToolCall):
            if part.id in taken:
                part = replace(part, id=f"call_{request.digest[:12]}_{len(parts)}")  # noqa: PLW2901
            taken.add(part.id)
        parts.append(part)
    return replace(response, message=replace(response.message, parts=tuple(parts)))
