"""The short prompts of the built-in model: plain characters, markers of requests, and what it refuses."""

import re
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import category, combining, decomposition, normalize

from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Grammar, Message, Text

__all__ = ["ANSWER", "LONGEST", "BuiltinPrompt", "first_paragraph", "plain", "spoken", "unsupported"]


def first_paragraph(text: str) -> str:
    """The words before the first blank line.

    >>> first_paragraph("Solve it.\\n\\nTools: …")
    'Solve it.'
    """
    return text.strip().partition("\n\n")[0].strip()


def spoken(message: Message, *, transient: bool = False) -> str:
    """The words of a message that are transient, or that are not."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text) and part.transient == transient)


ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class BuiltinPrompt:
    """A task and its prompt. The model reads `<task>` prompt `<mark>` and the beginning of the answer, and goes on.

    `mark` is `answer`, or the name of the score that is asked for. `grammar` holds
    the whole answer, beside what the request holds it to. `tools` are those whose calls may be written.
    """

    task: str
    prompt: str
    mark: str = ANSWER
    grammar: Grammar | None = None
    tools: tuple[str, ...] = ()


def unsupported() -> UnsupportedError:
    """What is told to a program that asks for what the model did not learn."""
    return UnsupportedError(
        "builtin did not learn to answer this: it solves questions of quantities and chemistry, takes orders of the app order, and "
        "assesses and rewrites questions; set a larger model with `taiwa config set model NAME`, or give -m NAME",
        capability="words",
    )


LONGEST = 1_200
"""So many characters are read, the last ones."""

LOOKED_AT = 24_000

MARKS = 2
"""So many accents on one letter are read; more of them are a picture and no word."""

ALIKE = {
    **dict.fromkeys("‐‑‒–−﹣－", "-"),
    **dict.fromkeys("—―", " - "),
    **dict.fromkeys("‘’‛´`′ʹ", "'"),
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("→⟶➔➝➞⇒⟹⇌⇄⇋↔", "->"),
    **dict.fromkeys("•∙⋅‧", "·"),
    **dict.fromkeys("⁄∕", "/"),
    "×": "x",
    "✕": "x",
    "÷": "/",
}

GONE = frozenset(("Cf", "Cs", "Co", "Cn"))
"""Signs that cannot be seen, halves of signs, and places where there is no sign."""

ODD = re.compile(r"[^ -_a-~]+|`")

SPACES = re.compile(r"\s+")

POWER = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")


def plain(text: str) -> str:
    """Bring a text into the form that the model reads; once in it, a text stays as it is.

    >>> plain("  How much H₂O is in 2½ cm³\\nof “it”?  ")
    'How much H2O is in 2 1/2 cm^3 of "it"?'
    >>> plain("カフェラテ　２杯、ＣＯ２")
    'カフェラテ 2杯、CO2'
    """
    near = POWER.sub(lambda found: f"^{found[0]}", text[-LOOKED_AT:])
    near = normalize("NFKC", ODD.sub(lambda found: "".join(map(_sign, found[0])), near))
    # What Unicode's rules made of a sign can itself be one of those that look alike.
    near = ODD.sub(lambda found: "".join(map(_sign, found[0])), near)
    return SPACES.sub(" ", _marked(near)).strip()[-LONGEST:].strip()


@lru_cache(4_096)
def _sign(sign: str) -> str:
    """What stands for a sign."""
    if sign in ALIKE:
        return ALIKE[sign]
    kind = category(sign)
    if kind in GONE or "\ufe00" <= sign <= "\ufe0f":
        return ""
    if kind == "Cc" or sign.isspace():
        return " "
    made = decomposition(sign)
    if made.startswith("<fraction>"):
        return f" {normalize('NFKC', sign).replace(chr(0x2044), '/')} "
    if made.startswith("<circle>"):
        return f"({normalize('NFKC', sign)})"
    return sign


def _marked(text: str) -> str:
    """Leave out what more than a few accents are set on one letter."""
    if text.isascii():
        return text
    kept: list[str] = []
    run = 0
    for sign in text:
        run = run + 1 if combining(sign) else 0
        if run <= MARKS:
            kept.append(sign)
    return normalize("NFKC", "".join(kept))
