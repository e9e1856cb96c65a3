"""Tools by name: those that come with the package, and a user's own by where they stand."""

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, TypeGuard

from taiwa.kernel.errors import InputError
from taiwa.tools.calculator import calculator
from taiwa.tools.chemical_formulas import molar_mass
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
    """Find tools, in the order asked for: built-in ones by name, one's own as `module:name` or `path/to/file.py:name`.

    >>> find(["calculator"])[0].spec.name
    'calculator'

    Raises:
        InputError: there is no tool of a name, two have the same, or a module cannot be imported.
    """
    found: dict[str, FunctionTool[Any, Any]] = {}
    for name in names:
        tool = _own(name) if ":" in name else builtin().get(name)
        if tool is None:
            raise InputError(
                f"there is no tool {name!r}; there are {', '.join(builtin())}, and your own as FILE.py:NAME"
            )
        if found.setdefault(tool.spec.name, tool) is not tool:
            raise InputError(f"two tools have the name {tool.spec.name!r}")
    return tuple(found.values())


def _own(address: str) -> FunctionTool[Any, Any]:
    place, _, name = address.rpartition(":")
    file = Path(place)
    # As Python itself does for a program: what stands beside it can be imported, here and in the tool's worker.
    folder, module = (file.resolve().parent, file.stem) if file.suffix == ".py" else (Path.cwd(), place)
    if file.suffix == ".py" and not file.is_file():
        raise InputError(f"there is no file {place}")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with _Import(place):
        found: object = import_module(module)
    if file.suffix == ".py" and Path(str(getattr(found, "__file__", ""))).resolve() != file.resolve():
        raise InputError(f"{place}: another module is called {module!r}; give the file another name")
    for part in name.split("."):
        found = getattr(found, part, None)
    if not _is_tool(found):
        what = "there is nothing of that name" if found is None else "it is no tool; write @tool above the function"
        raise InputError(f"{address}: {what}")
    return found


def _is_tool(found: object) -> TypeGuard[FunctionTool[Any, Any]]:
    return isinstance(found, FunctionTool)


class _Import:
    """Makes one line of whatever a user's module raises when it is imported."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, InputError):
            raise InputError(f"{self._place} cannot be imported: {type(error).__name__}: {error}") from error
