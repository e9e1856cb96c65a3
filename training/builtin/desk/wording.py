"""Templates with alternatives: `[one|another|]`, which may be nested."""

import re
from random import Random

__all__ = ["an", "fill", "sentence"]

INNER = re.compile(r"\[([^\[\]]*)\]")
DOUBLED = re.compile(r" {2,}| (?=[,.?!;])")
VOWEL = re.compile(r"(?!(?:one|once|uni|use|eu)(?!nd))(?:[aeiou]|hour|8|11|18)", re.IGNORECASE)
STARTS = re.compile(r"(?:^|(?<=[.?!] ))[a-z]")
I_WORD = re.compile(r"\bi(?=\b)")


def fill(random: Random, template: str) -> str:
    """Choose at each place, innermost first.

    >>> fill(Random(1), "[please|please] go")
    'please go'
    """
    while "[" in template:
        template = INNER.sub(lambda found: random.choice(found[1].split("|")), template)
    return DOUBLED.sub(lambda found: " " if found[0].strip(" ") == "" and len(found[0]) > 1 else "", template).strip()


def an(words: str) -> str:
    """Return the indefinite article for some words."""
    return "an" if VOWEL.match(words) else "a"


def sentence(text: str, mark: str = ".") -> str:
    """Return the text with initial capital and final punctuation."""
    text = I_WORD.sub("I", STARTS.sub(lambda found: found[0].upper(), text))
    return text if text[-1:] in ".?!" else text + mark
