"""What must survive when a dialogue is rewritten: numbers, names, quoted words, and what the user answered when asked back."""

import re
from collections.abc import Sequence
from unicodedata import normalize

from taiwa.flows.material import turns
from taiwa.kernel.values import Message

__all__ = ["constraints", "foreign", "lost"]

LONGEST_ANSWER = 60
"""Characters of a reply to a question back that counts as a whole; a longer one tells a story, of which the names count."""
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*%?")
QUOTED = re.compile(r"[「『“\"]([^「」『』“”\"]{1,40})[」』”\"]")
NAME = re.compile(r"\b(?:[A-Z][A-Za-z]*-?\d[\w-]*|[A-Z]{2,}[\w-]*|[a-z]+[A-Z]\w*)\b")
PROPER = re.compile(r"(?<![.!?。！？\n] )(?<!^)\b[A-Z][a-z]{2,}\b")
"""A capital in the middle of a sentence."""
WORD = re.compile(r"[A-Za-z][A-Za-z'-]{2,}|[\u30a1-\u30fa\u30fc]{2,}|[\u3400-\u9fff\uf900-\ufaff]{2,}")
STEM = 5
EMPTY = frozenset(
    """the and for not but are was were that this with from have has had you your they them their our his her its about there here
    yes yeah sure okay please thanks thank would could should want like need just only maybe either both one ones mean meant think
    can will what which who how when where why something anything really actually some any very also then than""".split()
)
CJK = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
LATIN = re.compile(r"[A-Za-z]")


def constraints(dialogue: Sequence[Message]) -> tuple[str, ...]:
    """List what a query must keep of what the user said.

    >>> from taiwa.kernel.values import assistant, user
    >>> constraints((user("Which tool for 20 guests?"), assistant("For what?"), user("Video calls, Zoom or Teams")))
    ('20', 'Zoom', 'Teams', 'Video', 'calls')
    """
    kept: dict[str, None] = {}
    asked = False
    for turn in turns(dialogue):
        if turn.role == "assistant":
            asked = turn.text.rstrip().endswith(("?", "？", "か", "か。", "吗", "吗。"))
            continue
        text = normalize("NFKC", turn.text)
        kept.update(dict.fromkeys(_names(text)))
        if asked and len(text) <= LONGEST_ANSWER:
            kept.update(dict.fromkeys(word for word in WORD.findall(text) if word.casefold() not in EMPTY))
        asked = False
    return tuple(kept)


def _names(text: str) -> list[str]:
    found = [
        (match.start(), match[match.lastindex or 0])
        for each in (NUMBER, QUOTED, NAME, PROPER)
        for match in each.finditer(text)
    ]
    return [words.strip() for _, words in sorted(found) if words.strip()]


def lost(query: str, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return what a query does not hold of what it must keep; the beginning of a word, or half the pairs of a run, will do.

    >>> lost("May I use Teams for video calling?", ("20", "Video", "calls", "Teams"))
    ('20',)
    """
    folded = normalize("NFKC", query).casefold()
    numbers = frozenset(NUMBER.findall(folded))
    return tuple(each for each in wanted if not _held(each.casefold(), folded, numbers))


def _held(wanted: str, query: str, numbers: frozenset[str]) -> bool:
    if NUMBER.fullmatch(wanted):
        return wanted in numbers
    if wanted in query:
        return True
    if wanted.isascii() and wanted.isalpha():
        return len(wanted) > STEM - 1 and wanted[: max(STEM - 1, len(wanted) - 3)] in query
    pairs = [wanted[at : at + 2] for at in range(len(wanted) - 1)]
    return len(pairs) > 1 and sum(pair in query for pair in pairs) * 2 >= len(pairs)


def foreign(query: str, said: Sequence[str]) -> bool:
    """Whether a query is written in another script than anything that the user said.

    >>> foreign("child nursing leave", ("看護休暇について",)), foreign("Zoomは使えますか", ("Zoomは使える?",))
    (True, False)
    """
    spoken = " ".join(said)
    if CJK.search(spoken):
        return CJK.search(query) is None
    return bool(LATIN.search(spoken)) and CJK.search(query) is not None
