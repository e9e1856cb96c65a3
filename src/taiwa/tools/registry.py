"""Tools by name: the built-in ones, and the user's own by module or file."""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard, cast

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.plugins import find_plugin, load_plugin, plugin_names
from taiwa.settings import config_path
from taiwa.tools.calculator import calculator
from taiwa.tools.chemical_formulas import molar_mass
from taiwa.tools.function_tool import FunctionTool
from taiwa.tools.stoichiometry import stoichiometry
from taiwa.tools.units import unit_conversion
from taiwa.yamlfile import write_private

HASH_CHARS = 32


@cache
def builtin_tools() -> Mapping[str, FunctionTool[Any, Any]]:
    """Return the built-in tools by name."""
    tools = (calculator, stoichiometry, molar_mass, unit_conversion)
    return MappingProxyType({tool.spec.name: tool for tool in tools})


def tool_names() -> tuple[str, ...]:
    """Return the names of the built-in tools and of plug-ins, without loading a plug-in."""
    return tuple(dict.fromkeys((*builtin_tools(), *plugin_names("tools"))))


def named_tool(name: str) -> FunctionTool[Any, Any] | None:
    """Return the built-in tool of that name, or that of a plug-in; None without one.

    Raises:
        ConfigError: the plug-in cannot be used.
    """
    built_in = builtin_tools().get(name)
    if built_in is not None:
        return built_in
    expected = cast("type[FunctionTool[Any, Any]]", FunctionTool)
    loaded = load_plugin("tools", name, expected, "a function with @taiwa.tool above it")
    if loaded is not None and loaded.spec.name != name:
        raise ConfigError(f"the {find_plugin('tools', name)} must be a tool named {name!r}, not {loaded.spec.name!r}")
    return loaded


def find_tools(names: Iterable[str]) -> tuple[FunctionTool[Any, Any], ...]:
    """Find tools, in the order of the names: built-in ones and plug-ins by name, the user's own as `module:name` or `path/to/file.py:name`.

    >>> find_tools(["calculator"])[0].spec.name
    'calculator'

    Raises:
        InputError: a tool is not found, two have the same name, or a module cannot be imported.
    """
    found: dict[str, FunctionTool[Any, Any]] = {}
    for name in names:
        tool = _load_tool(name) if ":" in name else named_tool(name)
        if tool is None:
            known = ", ".join(tool_names())
            raise InputError(f"unknown tool {name!r}; choose one of {known}, or name your own as FILE.py:NAME")
        if found.setdefault(tool.spec.name, tool) is not tool:
            raise InputError(f"two tools have the name {tool.spec.name!r}")
    return tuple(found.values())


def _load_tool(address: str) -> FunctionTool[Any, Any]:
    place, _, name = address.rpartition(":")
    try:
        found: object = import_file(Path(place)) if place.endswith(".py") else _import(place, Path.cwd())
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"cannot import {place}: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not _is_tool(found):
        what = "name not found" if found is None else "it is not a tool; write @tool above the function"
        raise InputError(f"{address}: {what}")
    return found


def remember_tool(address: str) -> str:
    """Note that the user named a tool of a file, `path/to/file.py:name`; return its name with the hash of the file, `NAME@HASH`.

    The note lies beside the config file of the user, and not in a store: a store of somebody else makes no file run.
    """
    place, _, name = address.rpartition(":")
    key = f"{find_tools([address])[0].spec.name}@{_hash(Path(place))}"
    noted = f"{Path(place).resolve()}:{name}"
    if (notes := _notes()).get(key) != noted:
        with suppress(ConfigError):  # where nothing can be written, the tool is to be named in each turn
            write_private(_notes_path(), json.dumps({**notes, key: noted}, indent=2) + "\n")
    return key


def remembered_tool(key: str) -> FunctionTool[Any, Any] | None:
    """Return the tool that the user named before, `NAME@HASH`, from its file as it was then; None if they never did.

    Raises:
        ConfigError: the file has changed, or is not there any more.
        InputError: it cannot be imported.
    """
    address = _notes().get(key, "")
    if not address:
        return None
    place, name = Path(address.rpartition(":")[0]), key.partition("@")[0]
    if not place.is_file():
        raise ConfigError(f"the tool {name!r} was in {place}, which is gone; name its file: --tool FILE.py:{name}")
    if _hash(place) != key.partition("@")[2]:
        now = f"to use it as it is now: --tool {address}"
        raise ConfigError(f"the tool {name!r} is in {place}, which has changed; {now}")
    return find_tools([address])[0]


def _notes_path() -> Path:
    return config_path(os.environ).parent / "tools.json"


def _notes() -> dict[str, str]:
    try:
        found: object = json.loads(_notes_path().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    notes = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    return {key: each for key, each in notes.items() if isinstance(each, str)}


def _hash(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()[:HASH_CHARS]


def import_file(file: Path) -> object:
    """Import a Python file as Python runs a program: modules beside it can be imported, here and in the worker of a tool.

    Raises:
        InputError: it is not found, or another module has its name.
    """
    if not file.is_file():
        raise InputError(f"file {file} not found")
    found = _import(file.stem, file.resolve().parent)
    if Path(str(getattr(found, "__file__", ""))).resolve() != file.resolve():
        raise InputError(f"{file}: another module has the name {file.stem!r}; rename the file")
    return found


def _import(module: str, folder: Path) -> object:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return import_module(module)


def _is_tool(found: object) -> TypeGuard[FunctionTool[Any, Any]]:
    return isinstance(found, FunctionTool)
