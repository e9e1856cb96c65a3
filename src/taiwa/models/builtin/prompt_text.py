"""The form of a text in the short prompts of the built-in model, and what a prompt consists of."""

import re
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import category, combining, decomposition, normalize

from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Grammar, Message, Text

ANSWER = "answer"
MAX_CHARS = 1_200
"""Length of a normalized text; the end is kept."""
MAX_RAW_CHARS = 24_000
MAX_ACCENTS = 2
"""Accents on one letter; more are a picture rather than a word."""

SIMILAR = {
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
DROPPED_CATEGORIES = frozenset(("Cf", "Cs", "Co", "Cn"))
"""Invisible characters, surrogates, private and unassigned code points."""
UNUSUAL = re.compile(r"[^ -_a-~]+|`")
SPACES = re.compile(r"\s+")
SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")


@dataclass(frozen=True, slots=True)
class BuiltinPrompt:
    """A task and its prompt: the model reads `<task>`, the prompt, `<output>` and the beginning of the answer.

    `output` is `answer`, or the name of the score that is asked for. `grammar` constrains the whole answer, beside the
    constraint of the request. `tools` are those that the answer may call.
    """

    task: str
    text: str
    output: str = ANSWER
    grammar: Grammar | None = None
    tools: tuple[str, ...] = ()


def first_paragraph(text: str) -> str:
    """Return the text before the first blank line.

    >>> first_paragraph("Solve it.\\n\\nTools: …")
    'Solve it.'
    """
    return text.strip().partition("\n\n")[0].strip()


def message_text(message: Message, *, transient: bool = False) -> str:
    """Return the text parts of a message that are transient, or those that are not."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text) and part.transient == transient)


def unsupported() -> UnsupportedError:
    """Make the error for a request that the model was not trained to answer."""
    return UnsupportedError(
        "builtin was not trained to answer this: it solves questions of quantities and chemistry, takes orders of the app order, and "
        "assesses and rewrites questions; set a larger model with `taiwa config set model NAME`, or give -m NAME",
        capability="words",
    )


def normalize_text(text: str) -> str:
    """Bring a text into the form that the model was trained on; a normalized text stays as it is.

    >>> normalize_text("  How much H₂O is in 2½ cm³\\nof “it”?  ")
    'How much H2O is in 2 1/2 cm^3 of "it"?'
    >>> normalize_text("カフェラテ　２杯、ＣＯ２")
    'カフェラテ 2杯、CO2'
    """
    raw = SUPERSCRIPT.sub(lambda found: f"^{found[0]}", text[-MAX_RAW_CHARS:])
    normal = normalize("NFKC", _replace_unusual(raw))
    # NFKC itself can yield a character that has to be replaced.
    return SPACES.sub(" ", _limit_accents(_replace_unusual(normal))).strip()[-MAX_CHARS:].strip()


def _replace_unusual(text: str) -> str:
    return UNUSUAL.sub(lambda found: "".join(map(_replacement, found[0])), text)


@lru_cache(4_096)
def _replacement(char: str) -> str:
    if char in SIMILAR:
        return SIMILAR[char]
    kind = category(char)
    if kind in DROPPED_CATEGORIES or "\ufe00" <= char <= "\ufe0f":
        return ""
    if kind == "Cc" or char.isspace():
        return " "
    decomposed = decomposition(char)
    if decomposed.startswith("<fraction>"):
        return f" {normalize('NFKC', char).replace(chr(0x2044), '/')} "
    if decomposed.startswith("<circle>"):
        return f"({normalize('NFKC', char)})"
    return char


def _limit_accents(text: str) -> str:
    if text.isascii():
        return text
    kept: list[str] = []
    accents = 0
    for char in text:
        accents = accents + 1 if combining(char) else 0
        if accents <= MAX_ACCENTS:
            kept.append(char)
    return normalize("NFKC", "".join(kept))
