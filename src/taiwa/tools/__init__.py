"""What a program can call by name: typed functions as tools, exact tools for numbers and chemistry, and workers for your own."""

from taiwa.isolation import ProcessLimits
from taiwa.tools.calculator import calculate, calculator
from taiwa.tools.catalogue import builtin, find
from taiwa.tools.formula import Formula, formula
from taiwa.tools.molar_mass import mass, mass_percent, molar_mass
from taiwa.tools.searching import Searching, searching
from taiwa.tools.spec import strict
from taiwa.tools.stoichiometry import Balance, balance, stoichiometry
from taiwa.tools.tool import FunctionTool, tool
from taiwa.tools.units import convert, unit_conversion
from taiwa.tools.worker import Isolated, isolated

__all__ = [
    "Balance",
    "Formula",
    "FunctionTool",
    "Isolated",
    "ProcessLimits",
    "Searching",
    "balance",
    "builtin",
    "calculate",
    "calculator",
    "convert",
    "find",
    "formula",
    "isolated",
    "mass",
    "mass_percent",
    "molar_mass",
    "searching",
    "stoichiometry",
    "strict",
    "tool",
    "unit_conversion",
]
