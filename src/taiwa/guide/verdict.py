"""What the engine says to a small schema, in words for a person; '' if it takes it."""

import json
from collections.abc import Mapping

from taiwa.guide.library import library
from taiwa.kernel.records import Json

__all__ = ["ESCAPES", "said", "verdict"]

ESCAPES = 'nrbtf\\"'
"""The escapes a text may hold. No `\\u`: with it a key could be spelled so that the engine takes it for another key."""


def verdict(schema: Mapping[str, Json]) -> str:
    """Why the engine refuses a schema; '' if it does not."""
    matcher = library().LLMatcher
    grammar = matcher.grammar_from_json_schema(json.dumps(schema), overrides={"json_allowed_escapes": ESCAPES})
    return said(matcher.validate_grammar(grammar))


def said(message: str) -> str:
    """The line of an engine's message that says what is wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    wrong = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (wrong or lines or [""])[0][:200]
