"""Constraints compiled for a vocabulary: which tokens may come next, so that a text fits a type, a pattern or a grammar."""

from taiwa.guide.compiling import compile  # noqa: A004  (called guide.compile)
from taiwa.guide.protocol import Clause, Coverage, Explanation, Guide, State, UncoveredError
from taiwa.guide.reference import Cfg, Generate, Regex, Write, to_regex
from taiwa.guide.sources import Choice, Source, Tools, Whitespace
from taiwa.guide.vocabulary import Findings, Vocabulary

__all__ = [
    "Cfg",
    "Choice",
    "Clause",
    "Coverage",
    "Explanation",
    "Findings",
    "Generate",
    "Guide",
    "Regex",
    "Source",
    "State",
    "Tools",
    "UncoveredError",
    "Vocabulary",
    "Whitespace",
    "Write",
    "compile",
    "to_regex",
]
