"""Wordings from parts: a template chooses by `[one|another|]`, also nested."""

import re
from random import Random

__all__ = ["an", "fill", "sentence"]

INNER = re.compile(r"\[([^\[\]]*)\]")
DOUBLED = re.compile(r" {2,}| (?=[,.?!;])")
VOWEL = re.compile(r"(?!(?:one|once|uni|use|eu)(?!nd))(?:[aeiou]|hour|8|11|18)", re.IGNORECASE)
STARTS = re.compile(r"(?:^|(?<=[.?!] ))[a-z]")
I_WORD = re.compile(r"\bi(?=\b)")


def fill(random: Random, template: str) -> str:
    """Choose at each place, the innermost first.

    >>> fill(Random(1), "[please|please] go")
    'please go'
    """
    while "[" in template:
        template = INNER.sub(lambda found: random.choice(found[1].split("|")), template)
    return DOUBLED.sub(lambda found: " " if found[0].strip(" ") == "" and len(found[0]) > 1 else "", template).strip()


def an(words: str) -> str:
    """The article that goes before some words."""
    return "an" if VOWEL.match(words) else "a"


def sentence(text: str, mark: str = ".") -> str:
    """Words as one writes them with care: capitals and a mark at the end."""
    text = I_WORD.sub("I", STARTS.sub(lambda found: found[0].upper(), text))
    return text if text[-1:] in ".?!" else text + mark
