"""Input of a conversation: a terminal with line editing, or the lines of a pipe.

A separate module, because prompt_toolkit is slow to import.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from taiwa.i18n import _
from taiwa.kernel.errors import InputError

FENCE = '"""'
PROMPT = "› "
CONTINUATION = "· "
MAX_BYTES = 8_000_000
"""Maximum bytes of a text from a pipe; a turn has at most 2,000,000 characters."""


class Pipe:
    """Lines of standard input, one text each; three quotes open and close a text of several lines."""

    live = False

    def __init__(self) -> None:
        self._line = 0

    def read(self, offered: str = "") -> str:  # noqa: ARG002  (nothing can be edited)
        """Return the next text.

        Raises:
            EOFError: there are no more lines.
            InputError: a line is not UTF-8, or the text is too large.
        """
        lines = [self._next(MAX_BYTES)]
        if not lines[0].startswith(FENCE):
            return lines[0]
        fences, left = lines[0].count(FENCE), MAX_BYTES
        while fences < 2:
            try:
                lines.append(self._next(left))
            except EOFError:
                break
            fences += lines[-1].count(FENCE)
            left -= len(lines[-1]) + 1
        return unfenced("\n".join(lines))

    def _next(self, left: int) -> str:
        raw = sys.stdin.buffer.readline(max(left, 0) + 1)
        if not raw:
            raise EOFError
        self._line += 1
        from taiwa.kernel.attachments import decode

        where = f"line {self._line} of standard input"
        if len(raw) > left:
            raise InputError(f"{where} is too large; a text has at most {MAX_BYTES:,} bytes")
        return decode(raw.rstrip(b"\r\n"), where)

    def ask(self, question: str) -> str:  # noqa: ARG002  (the same)
        """Return no answer."""
        return ""


class Slashes(Completer):
    """The completion of slash commands at the beginning of a text, and of their arguments: turns, conversations, apps,
    fields, files.

    `arguments` yields what a command can take, each with a description.
    """

    def __init__(self, helps: Mapping[str, str], arguments: Callable[[str], Iterable[tuple[str, str]]]) -> None:
        self._helps = helps
        self._arguments = arguments

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """Yield the commands, or the arguments of a command, that begin with the text."""
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        name, space, begun = text[1:].partition(" ")
        if space:
            for argument, about in self._arguments(name):
                if argument.startswith(begun):
                    yield Completion(argument, start_position=-len(begun), display_meta=about)
        else:
            for name in self._helps:
                if name.startswith(text[1:]):
                    yield Completion(f"/{name}", start_position=-len(text), display_meta=_(self._helps[name]))


class Keyboard:
    """A terminal: texts can be edited and recalled, and may have several lines."""

    live = True

    def __init__(self, history: History, completer: Completer) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=completer,
            complete_while_typing=False,
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation=CONTINUATION,
        )

    def read(self, offered: str = "") -> str:
        """Return what the user typed."""
        return unfenced(self._session.prompt(PROMPT, default=offered))

    def ask(self, question: str) -> str:
        """Return the answer to a question; it is not added to the history."""
        session: PromptSession[str] = PromptSession(history=InMemoryHistory())
        return session.prompt(question)


def _keys() -> KeyBindings:
    """Bind Enter to send, unless a block is open; with Alt or after Escape it starts a new line, as do pasted line breaks."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text.startswith(FENCE) and buffer.text.count(FENCE) < 2:
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def unfenced(text: str) -> str:
    '''Remove the quotes of a block.

    >>> unfenced('"""\\nfirst\\n\\nlast\\n"""')
    'first\\n\\nlast'
    '''
    stripped = text.strip()
    if not stripped.startswith(FENCE):
        return text
    return stripped.removeprefix(FENCE).removesuffix(FENCE).strip("\n")


def history_of(store: Path | None) -> History:
    """Return the input history: a file next to the store that only its owner can read; without a store, memory."""
    if store is None:
        return InMemoryHistory()
    path = _path(store)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def scrub(store: Path | None, texts: Iterable[str]) -> int:
    """Remove texts from the input history, and return how many."""
    path = None if store is None else _path(store)
    if path is None or not path.exists():
        return 0
    removed = {text.strip() for text in texts}
    entries = list(FileHistory(path).load_history_strings())[::-1]
    remaining = [entry for entry in entries if unfenced(entry).strip().removeprefix("/") not in removed | {""}]
    if len(remaining) < len(entries):
        path.write_bytes(b"")
        history = FileHistory(path)
        for entry in remaining:
            history.store_string(entry)
    return len(entries) - len(remaining)


def _path(store: Path) -> Path:
    return store.with_name(f"{store.name}.history")
