"""The tools that come with the package, by name."""

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from taiwa.kernel.errors import InputError
from taiwa.tools.calculator import calculator
from taiwa.tools.molar_mass import molar_mass
from taiwa.tools.stoichiometry import stoichiometry
from taiwa.tools.tool import FunctionTool
from taiwa.tools.units import unit_conversion

__all__ = ["builtin", "find"]


@cache
def builtin() -> Mapping[str, FunctionTool[Any, Any]]:
    """Every built-in tool by its name."""
    tools = (calculator, stoichiometry, molar_mass, unit_conversion)
    return MappingProxyType({tool.spec.name: tool for tool in tools})


def find(names: Iterable[str]) -> tuple[FunctionTool[Any, Any], ...]:
    """Find built-in tools by name, in the order asked for.

    >>> find(["calculator"])[0].spec.name
    'calculator'

    Raises:
        InputError: there is no tool of a name.
    """
    known = builtin()
    wanted = tuple(names)
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        raise InputError(f"there is no tool {unknown!r}; there are {', '.join(known)}")
    return tuple(known[name] for name in wanted)
