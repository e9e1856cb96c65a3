"""Attachments on their way to a model: text files become text, and what the model cannot read is refused before the call."""

import re
from base64 import b64encode
from collections.abc import Collection
from dataclasses import replace

from taiwa.kernel.attachments import Attachment, InputKind
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import Message, Part, Request, Text

SETTING = "or, if its server can, set `{kind}: true` for it in the config (capabilities)"
REMEDIES = {
    "images": "cannot read images ({name}); choose a model that can",
    "pdf": "cannot read PDFs ({name}); attach its text (--attach-as-text; in Python taiwa.document_text), choose a model that can",
}


def fit_attachments(
    request: Request, model: str, inputs: Collection[InputKind] = (), *, fixed: bool = False
) -> Request:
    """Return a request whose text files are text; `inputs` are the other kinds that the model reads.

    A `fixed` model cannot read more than that, whatever its settings are.

    Raises:
        UnsupportedError: the model cannot read an attachment.
        InputError: the bytes of an attachment are missing, or a message of another role than the user's has one.
    """
    if not any(isinstance(part, Attachment) for message in request.messages for part in message.parts):
        return request
    messages = (_fit_message(message, model, inputs, fixed=fixed) for message in request.messages)
    return replace(request, messages=tuple(messages))


def _fit_message(message: Message, model: str, inputs: Collection[InputKind], *, fixed: bool) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Attachment):
            if message.role != "user":
                raise InputError(f"only a message of the user can have attachments, and {part.label} is in another")
            if part.kind is not None and part.kind not in inputs:
                remedy = REMEDIES[part.kind].format(name=part.label)
                setting = "" if fixed else f", {SETTING.format(kind=part.kind)}"
                raise UnsupportedError(f"{model!r} {remedy}{setting}", capability=part.kind)
        parts.append(file_text(part) if isinstance(part, Attachment) and part.kind is None else part)
    return replace(message, parts=tuple(parts))


def file_text(attachment: Attachment) -> Text:
    """Return a text file as text: its name, and its content in a fence that the content cannot close.

    >>> print(file_text(Attachment.from_bytes(b"two teas", "order.txt")).text)
    order.txt
    ```
    two teas
    ```
    """
    content = attachment.text
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", content)), 3)
    return Text(f"{attachment.label}\n{fence}\n{content.removesuffix(chr(10))}\n{fence}")


def base64_data(attachment: Attachment) -> str:
    """Return the bytes of an attachment in base64.

    Raises:
        InputError: they are missing.
    """
    return b64encode(attachment.require_data()).decode("ascii")


def data_uri(attachment: Attachment) -> str:
    """Return an attachment as a data URI, as the protocols of OpenAI take it.

    Raises:
        InputError: its bytes are missing.
    """
    return f"data:{attachment.media_type};base64,{base64_data(attachment)}"
