"""The reference guides and the mask engine let the same tokens through.

Known differences, none of which these cases hold: the engine writes properties that an open schema does not name, and it
reads the formats, `multipleOf` and whatever else the reference refuses. What is nearer to an excluded bound than numbers of
64 bits tell apart, the engine leaves out with it. Where a text is certain, the engine leaves only the
tokens that the tokenizer itself would choose, so over a vocabulary of words its tokens are a part of the reference's.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.constraints import compile
from taiwa.constraints.guide import GuideState
from taiwa.constraints.readable_guides import GrammarGuide, RegexGuide
from taiwa.kernel.messages import Grammar, JsonSchema
from taiwa.kernel.messages import Regex as Pattern
from tests.constraints.schemas import schemas
from tests.constraints.vocabularies import BYTES, pieces, with_bytes

STEPS = 25
GRAMMAR = """
start: "f(" pair ("," pair)* ")"
pair: NAME ":" (INT | "[" pair "]" | "文")
NAME: /[a-c]{1,2}/
INT: /-?[0-9]+/
"""


def walk(reference: GuideState, engine: GuideState, data: st.DataObject) -> list[tuple[GuideState, GuideState]]:
    """The states of both along one random text."""
    found = [(reference, engine)]
    for _ in range(STEPS):
        both = sorted(set(reference.allowed(100_000) or ()) & set(engine.allowed(100_000) or ()))
        clear = [token for token in both if 32 <= token < 127 or token > 256]
        if not both or both == [256]:
            break
        token = data.draw(st.sampled_from(clear if clear and data.draw(st.booleans()) else both))
        reference, engine = reference.advance(token), engine.advance(token)
        if token == 256:
            break
        found.append((reference, engine))
    return found


def shown(tokens: set[int]) -> list[str]:
    return [BYTES.show(token) for token in sorted(tokens)]


def same(pairs: list[tuple[GuideState, GuideState]]) -> None:
    for reference, engine in pairs:
        ours, theirs = set(reference.allowed() or ()), set(engine.allowed() or ())
        assert shown(ours - theirs) == [], reference
        assert shown(theirs - ours) == [], reference
        assert reference.is_final == engine.is_final


@pytest.mark.parametrize(("whitespace", "space"), [("compact", ""), ("bounded", "( |\\n {0,24})?")])
@given(schema=schemas(), data=st.data())
def test_under_a_schema(whitespace: Any, space: str, schema: Any, data: st.DataObject) -> None:
    engine = compile(JsonSchema(schema, "Case"), BYTES, whitespace=whitespace)

    same(walk(RegexGuide.of_schema(schema, BYTES, space).start(), engine.start(), data))


@pytest.mark.parametrize(
    "pattern", ["[a-c]+(x|文)?", "(a|ab)(c|bcd)*", "[^a-z\\n]{2,4}", "(foo|ba[rz]){1,3}!", "é|e\\+?"]
)
@given(data=st.data())
def test_under_a_regex(pattern: str, data: st.DataObject) -> None:
    same(walk(RegexGuide(pattern, BYTES).start(), compile(Pattern(pattern), BYTES).start(), data))


@given(data=st.data())
def test_under_a_grammar(data: st.DataObject) -> None:
    same(walk(GrammarGuide(GRAMMAR, BYTES).start(), compile(Grammar(GRAMMAR), BYTES).start(), data))


@given(schemas(), pieces, st.data())
def test_over_words_the_engine_takes_no_token_that_the_reference_would_not(
    schema: Any, texts: list[str], data: st.DataObject
) -> None:
    made = with_bytes('{"', '":', '"a"', "true", "null", "[[", *texts)
    engine = compile(JsonSchema(schema, "Case"), made, whitespace="compact")

    for reference, state in walk(RegexGuide.of_schema(schema, made).start(), engine.start(), data):
        assert set(state.allowed() or ()) <= set(reference.allowed() or ())
        assert state.is_final == reference.is_final
