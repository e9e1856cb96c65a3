"""What a program can call by name: typed functions as tools, and an exact calculator."""

from taiwa.tools.calculator import calculate, calculator
from taiwa.tools.tool import FunctionTool, tool

__all__ = ["FunctionTool", "calculate", "calculator", "tool"]
