"""Guides in plain Python, small enough to be read: for learning, for explaining, and to hold the fast one against."""

from taiwa.guide.reference.cfg import Cfg
from taiwa.guide.reference.guide import Generate, Instruction, Write
from taiwa.guide.reference.regex import Regex
from taiwa.guide.reference.schema import to_regex

__all__ = ["Cfg", "Generate", "Instruction", "Regex", "Write", "to_regex"]
