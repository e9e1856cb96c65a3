"""Chat templates: how conversations are written for one model, as tokens."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from taiwa.isolation import ProcessLimits, ProcessPool
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.messages import Message, Request, Role, ToolCall, ToolResult
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import clean_untrusted

WIRES = ("chat", "completions")
"""By the chat template, or as text to continue."""
PRIVATE_USE = range(0xE000, 0xF8FF)
ROLE_NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}
MAX_TEMPLATE_CHARS = 200_000
MAX_REASON_CHARS = 500
RENDER_LIMITS = ProcessLimits(seconds=10.0, memory_mb=256, characters=8_000_000)
RENDERER = "taiwa.models.inprocess.template_process:start"

Turn: TypeAlias = tuple[Role, str]
Render: TypeAlias = Callable[[Sequence[Turn]], str]
"""Write turns, up to the start of the answer; raises `RefusedTurnsError`."""


CONTROL_FORM = re.compile(r"<[|｜][^|｜\s]+[|｜]>|<(?:start|end)_of_turn>")
"""Names of tokens that begin or end a message, though some files mark them as ordinary text, which tokenizers then find in any
text."""


def names_pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern that finds names, the longest first; None without any."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def divide_names(text: str, names: re.Pattern[str]) -> Iterator[str]:
    """Divide a text within each of the names that it contains, so that a tokenizer cannot find them.

    >>> list(divide_names("a <|user|> b", CONTROL_FORM))
    ['a <', '|user|> b']
    """
    end = 0
    for found in names.finditer(text):
        yield text[end : found.start() + 1]
        end = found.start() + 1
    yield text[end:]


class RefusedTurnsError(Exception):
    """The template does not support the turns; the text says why."""


ANCHOR = "\x02"
"""Prepended to a text if the tokenizer adds a space before every text; its tokens are removed with the space."""


class Tokenizer(ABC):
    """What a template and a prefix cache need of a tokenizer; names of special tokens in a text are ordinary text.

    `ids` are the special tokens by name, and `names` finds these names. `found` finds those that the tokenizer would find in any text.
    """

    def __init__(self, ids: Mapping[str, int], found: re.Pattern[str] | None, *, adds_space: bool) -> None:
        self.ids = ids
        self.names = names_pattern(ids)
        self._found = found
        self._adds_space = adds_space

    def __call__(self, text: str) -> tuple[int, ...]:
        """Return the tokens of any part of a text, without start and end tokens."""
        if not text:
            return ()
        if self._found is not None and self._found.search(text):
            return tuple(chain.from_iterable(map(self, divide_names(text, self._found))))
        if self._adds_space:
            anchor, tokens = self.encode_plain(ANCHOR), self.encode_plain(ANCHOR + text)
            if tokens[: len(anchor)] == anchor:
                return tokens[len(anchor) :]
        return self.encode_plain(text)

    @abstractmethod
    def encode_plain(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text as the tokenizer divides it from its beginning."""

    @abstractmethod
    def encode_trusted(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text from its beginning; names of special tokens become these tokens."""

    @abstractmethod
    def start_tokens(self) -> tuple[int, ...]:
        """Return the special tokens with which a text begins."""


class ChatTemplate:
    """Writes conversations for one model.

    Texts of users, documents and tools never become special tokens: names of special tokens in them are marked before the
    template is rendered, so that only those of the template itself count.
    """

    def __init__(self, render: Render | None, encode: Tokenizer) -> None:
        self._render = render
        self._encode = encode

    def tokens(self, request: Request) -> tuple[int, ...]:
        """Return the tokens up to the start of the answer, without its prefix.

        Raises:
            InputError: the template does not support the conversation.
        """
        if self._render is None:  # the model continues plain text
            return (*self._encode.start_tokens(), *self._encode(format_transcript(request.messages)))
        turns = _turns(request.messages)
        names = self._encode.names
        if names is None or not any(names.search(text) for _, text in turns):
            return self._encode.encode_trusted(self._render_or_merge(self._render, turns))
        mark = next(chr(code) for code in PRIVATE_USE if not any(chr(code) in text for _, text in turns))

        def insert_mark(text: str) -> str:
            return names.sub(lambda found: f"{found[0][0]}{mark}{found[0][1:]}", text)

        marked: list[Turn] = [(role, insert_mark(text)) for role, text in turns]
        return tuple(self._tokens_of_template(self._render_or_merge(self._render, marked), mark))

    def stops(self, request: Request) -> tuple[str, ...]:
        """Return where an answer ends beside the end tokens: a model without a template would write the next turn too."""
        is_transcript = self._render is None and len(request.messages) > 1
        return (f"\n\n{ROLE_NAMES['user']}:",) if is_transcript else ()

    def _tokens_of_template(self, rendered: str, mark: str) -> Iterator[int]:
        """Divide the text between the special tokens of the template."""
        assert self._encode.names is not None
        end = 0
        for found in self._encode.names.finditer(rendered):
            yield from self._encode(rendered[end : found.start()].replace(mark, ""))
            yield self._encode.ids[found[0]]
            end = found.end()
        yield from self._encode(rendered[end:].replace(mark, ""))

    @staticmethod
    def _render_or_merge(render: Render, turns: list[Turn]) -> str:
        try:
            return render(turns)
        except RefusedTurnsError as error:
            merged, reason = _merge_turns(turns), error
        try:
            if merged != turns:
                return render(merged)
        except RefusedTurnsError as error:
            reason = error
        raise InputError(f"the chat template of the model does not support this conversation: {reason}")


def format_transcript(messages: tuple[Message, ...]) -> str:
    """Write a conversation for a model without a template: the text of a single message, or a transcript to continue."""
    turns = _turns(messages)
    if len(turns) == 1:
        return turns[0][1]
    lines = [text if role == "system" else f"{ROLE_NAMES[role]}: {text}" for role, text in turns]
    return "\n\n".join([*lines, "Assistant:"])


def _turns(messages: tuple[Message, ...]) -> list[Turn]:
    return [("user" if message.role == "tool" else message.role, _message_text(message)) for message in messages]


def _message_text(message: Message) -> str:
    """Return a message as text, transient parts last; calls and results as text too, because templates differ in them."""
    calls = [f"{part.name}({part.arguments})" for part in message.parts if isinstance(part, ToolCall)]
    results = [part.text for part in message.parts if isinstance(part, ToolResult)]
    return "\n\n".join(filter(None, [*results, message.ordered_text, *calls]))


def _merge_turns(turns: list[Turn]) -> list[Turn]:
    """Merge turns for templates without system messages, and for those that require alternating roles."""
    merged: list[Turn] = []
    for role, text in turns:
        new_role: Role = "user" if role == "system" else role
        if merged and merged[-1][0] == new_role:
            merged[-1] = (new_role, f"{merged[-1][1]}\n\n{text}")
        else:
            merged.append((new_role, text))
    return merged


class IsolatedTemplate:
    """Renders a foreign template in a child process with limits on time and memory; `names` are variables of the template.

    Raises:
        InputError: the template is too large.
    """

    def __init__(self, template: str, names: Mapping[str, str]) -> None:
        if len(template) > MAX_TEMPLATE_CHARS:
            raise InputError(f"the chat template of the model has {len(template):,} characters")
        self._processes = ProcessPool(
            RENDERER, "the template", RENDER_LIMITS, 1, start={"template": template, "names": dict(names)}
        )

    def __call__(self, turns: Sequence[Turn]) -> str:
        """Write turns.

        Raises:
            RefusedTurnsError: the template does not support them, or it does not end.
        """
        messages: list[Json] = [{"role": role, "content": text} for role, text in turns]
        try:
            answer = self._processes.ask({"messages": messages})
        except ToolError as error:
            late = f"it does not end within {RENDER_LIMITS.seconds:g} s"
            raise RefusedTurnsError(late if error.code == "timeout" else "it crashes") from None
        if "refused" in answer:
            raise RefusedTurnsError(" ".join(clean_untrusted(str(answer["refused"]), MAX_REASON_CHARS).split()))
        return str(answer["text"])
