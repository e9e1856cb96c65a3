"""Tools that a model can call: typed functions, exact tools for numbers and chemistry, and isolated processes for your own."""

from taiwa.isolation import ProcessLimits
from taiwa.tools.calculator import calculate, calculator
from taiwa.tools.chemical_formulas import Formula, formula, mass, mass_percent, molar_mass
from taiwa.tools.isolated import IsolatedTool, isolated
from taiwa.tools.registry import builtin_tools, find_tools
from taiwa.tools.search_documents import SearchDocumentsTool, search_tool
from taiwa.tools.stoichiometry import Balance, balance, stoichiometry
from taiwa.tools.tool import FunctionTool, strict, tool
from taiwa.tools.units import convert, unit_conversion

__all__ = [
    "Balance",
    "Formula",
    "FunctionTool",
    "IsolatedTool",
    "ProcessLimits",
    "SearchDocumentsTool",
    "balance",
    "builtin_tools",
    "calculate",
    "calculator",
    "convert",
    "find_tools",
    "formula",
    "isolated",
    "mass",
    "mass_percent",
    "molar_mass",
    "search_tool",
    "stoichiometry",
    "strict",
    "tool",
    "unit_conversion",
]
