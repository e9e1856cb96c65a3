"""How a request is recognised: by the words that our own flows begin with, told from all others by their digest."""

from hashlib import sha256

from taiwa.kernel.values import Message, Text

__all__ = ["first_paragraph", "mark", "spoken"]


def first_paragraph(text: str) -> str:
    """The words before the first blank line.

    >>> first_paragraph("Solve it.\\n\\nTools: …")
    'Solve it.'
    """
    return text.strip().partition("\n\n")[0].strip()


def mark(text: str) -> str:
    """The digest by which the first paragraph of a text is known."""
    return sha256(first_paragraph(text).encode("utf-8", "replace")).hexdigest()


def spoken(message: Message, *, transient: bool = False) -> str:
    """The words of a message that are transient, or that are not."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text) and part.transient == transient)
