"""Constraints compiled for a vocabulary: the tokens that may come next so that a text fits a type, a pattern or a grammar.

A JSON Schema becomes a grammar in `schema_rewriter` and `compile` for a model in this process, and in `gbnf` for a server, from
the pattern that `schema_regex` writes.
"""

from taiwa.constraints.compile import compile
from taiwa.constraints.guide import (
    Coverage,
    Explanation,
    Guide,
    GuideState,
    SchemaClause,
    UnsupportedConstraintError,
    Whitespace,
)
from taiwa.constraints.readable_guides import Generate, GrammarGuide, RegexGuide, Write
from taiwa.constraints.schema_regex import to_regex
from taiwa.constraints.vocabulary import Vocabulary, VocabularyReport

__all__ = [
    "Coverage",
    "Explanation",
    "Generate",
    "GrammarGuide",
    "Guide",
    "GuideState",
    "RegexGuide",
    "SchemaClause",
    "UnsupportedConstraintError",
    "Vocabulary",
    "VocabularyReport",
    "Whitespace",
    "Write",
    "compile",
    "to_regex",
]
