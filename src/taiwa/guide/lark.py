"""A grammar in the engine's dialect of Lark: from Lark with any start rule, or from the EBNF of llama.cpp (GBNF)."""

import re

from taiwa.guide.library import library
from taiwa.kernel.errors import InputError
from taiwa.kernel.values import Grammar

__all__ = ["lark"]

RULE = r"^[ \t]*[?!]?{name}(?:\[[^\]]*\])?[ \t]*:"


def lark(grammar: Grammar) -> str:
    """The grammar's text, with a rule `start` that is the one it names.

    Raises:
        InputError: there is no such rule, or the text is neither notation.
    """
    text = grammar.text
    if re.search(r"^[ \t]*[\w-]+[ \t]*::=", text, re.MULTILINE):
        text = _of_gbnf(text)
        return text if grammar.start in ("start", "root") else _started(text, grammar.start)
    return text if grammar.start == "start" and _has(text, "start") else _started(text, grammar.start)


def _has(text: str, rule: str) -> bool:
    return re.search(RULE.format(name=re.escape(rule)), text, re.MULTILINE) is not None


def _started(text: str, rule: str) -> str:
    if not _has(text, rule):
        raise InputError(f"the grammar has no rule {rule!r} to start with")
    if _has(text, "start"):
        raise InputError(f"the grammar starts with {rule!r}, so another rule must not be called start: rename it")
    return f"start: {rule}\n{text}"


def _of_gbnf(text: str) -> str:
    library()
    from llguidance.gbnf_to_lark import GbnfToLarkError, any_to_lark

    try:
        return str(any_to_lark(text))
    except (GbnfToLarkError, ValueError, IndexError, KeyError, AssertionError) as error:
        raise InputError(f"the grammar is no EBNF that can be read: {error}") from None
