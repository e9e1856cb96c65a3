"""Constraints in GBNF, the notation of llama.cpp that other servers read as EBNF: from patterns, Lark grammars and tools."""

from taiwa.guide.gbnf.fromlark import of_grammar
from taiwa.guide.gbnf.frompattern import of_regex, places
from taiwa.guide.gbnf.fromtools import CallGrammar, of_tools

__all__ = ["CallGrammar", "of_grammar", "of_regex", "of_tools", "places"]
