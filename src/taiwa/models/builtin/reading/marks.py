"""The parts of a prompt that the built-in model reads."""

from taiwa.kernel.values import Message, Text

__all__ = ["first_paragraph", "spoken"]


def first_paragraph(text: str) -> str:
    """The words before the first blank line.

    >>> first_paragraph("Solve it.\\n\\nTools: …")
    'Solve it.'
    """
    return text.strip().partition("\n\n")[0].strip()


def spoken(message: Message, *, transient: bool = False) -> str:
    """The words of a message that are transient, or that are not."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text) and part.transient == transient)
