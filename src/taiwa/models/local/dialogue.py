"""A conversation as the tokens that a model was taught to read: by its chat template, else as plain text."""

from collections.abc import Iterator
from typing import Any

from taiwa.kernel.errors import InputError
from taiwa.kernel.values import Message, Request, Role, Text, ToolCall, ToolResult
from taiwa.models.local.tokens import Divider

__all__ = ["Dialogue"]

PRIVATE = range(0xE000, 0xF8FF)
NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


class Dialogue:
    """Writes conversations for one model.

    What a person, a document or a tool says never becomes a special token, whatever it says: such names are marked before
    the template is filled, so that only those of the template itself count.
    """

    def __init__(self, tokenizer: Any, divider: Divider) -> None:  # noqa: ANN401  (transformers')
        self._tokenizer = tokenizer
        self._divider = divider

    @property
    def templated(self) -> bool:
        """Whether the model has a chat template: one without continues plain text."""
        return bool(self._tokenizer.chat_template)

    def tokens(self, request: Request) -> tuple[int, ...]:
        """The tokens up to where the answer begins, without its prefix.

        Raises:
            InputError: the template refuses such a conversation.
        """
        if not self.templated:
            return (*self._divider.beginning(), *self._divider(plain(request.messages)))
        turns = list(_turns(request.messages))
        names = self._divider.names
        if names is None or not any(names.search(text) for _, text in turns):
            return self._divider.whole(self._written(turns))
        mark = next(chr(code) for code in PRIVATE if not any(chr(code) in text for _, text in turns))

        def broken(text: str) -> str:
            return names.sub(lambda found: f"{found[0][0]}{mark}{found[0][1:]}", text)

        marked: list[tuple[Role, str]] = [(role, broken(text)) for role, text in turns]
        return tuple(self._pieces(self._written(marked), mark))

    def _pieces(self, written: str, mark: str) -> Iterator[int]:
        """Divide what stands between the template's own special tokens."""
        assert self._divider.names is not None
        end = 0
        for found in self._divider.names.finditer(written):
            yield from self._divider(written[end : found.start()].replace(mark, ""))
            yield self._divider.ids[found[0]]
            end = found.end()
        yield from self._divider(written[end:].replace(mark, ""))

    def _written(self, turns: list[tuple[Role, str]]) -> str:
        try:
            return self._filled(turns)
        except _template_error() as error:
            merged = _merged(turns)
            if merged == turns:
                raise InputError(f"the model's chat template refuses this conversation: {error}") from None
        try:
            return self._filled(merged)
        except _template_error() as error:
            raise InputError(f"the model's chat template refuses this conversation: {error}") from None

    def _filled(self, turns: list[tuple[Role, str]]) -> str:
        messages = [{"role": role, "content": text} for role, text in turns]
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text


def _template_error() -> type[Exception]:
    """What a template raises; Jinja2 is there when a template was run."""
    from importlib import import_module

    found: type[Exception] = import_module("jinja2").TemplateError
    return found


def plain(messages: tuple[Message, ...]) -> str:
    """A conversation for a model without a template: the words of the one message, or a transcript that the model goes on."""
    turns = list(_turns(messages))
    if len(turns) == 1:
        return turns[0][1]
    lines = [text if role == "system" else f"{NAMES[role]}: {text}" for role, text in turns]
    return "\n\n".join([*lines, "Assistant:"])


def _turns(messages: tuple[Message, ...]) -> Iterator[tuple[Role, str]]:
    for message in messages:
        yield ("user" if message.role == "tool" else message.role), _words(message)


def _words(message: Message) -> str:
    """The words of a message with what is transient last; calls and results as text, for the templates differ in them."""
    lasting = [part.text for part in message.parts if isinstance(part, Text) and part.text and not part.transient]
    transient = [part.text for part in message.parts if isinstance(part, Text) and part.text and part.transient]
    calls = [f"{part.name}({part.arguments})" for part in message.parts if isinstance(part, ToolCall)]
    results = [part.text for part in message.parts if isinstance(part, ToolResult)]
    # A model's own words are joined as it wrote them; the blank line is for blocks that we lay side by side.
    said = ("" if message.role == "assistant" else "\n\n").join(lasting + transient)
    return "\n\n".join(filter(None, [*results, said, *calls]))


def _merged(turns: list[tuple[Role, str]]) -> list[tuple[Role, str]]:
    """For templates that know no system message, and those that want user and assistant in turn."""
    found: list[tuple[Role, str]] = []
    for role, text in turns:
        spoken: Role = "user" if role == "system" else role
        if found and found[-1][0] == spoken:
            found[-1] = (spoken, f"{found[-1][1]}\n\n{text}")
        else:
            found.append((spoken, text))
    return found
