"""Tools by name: the built-in ones, the user's own by module or file, and the search in documents."""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard, cast

from taiwa.conversation.app import TYPE
from taiwa.kernel.attachments import MAX_BYTES, read_regular, read_regular_text, real_path
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError, ToolError
from taiwa.kernel.messages import Passage, ToolResult
from taiwa.kernel.runtime import Retriever
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import clean_untrusted
from taiwa.plugins import find_plugin, load_plugin, plugin_names
from taiwa.settings import check_own, config_path
from taiwa.tools.function_tool import FunctionTool
from taiwa.yamlfile import write_private

HASH_CHARS = 32
BUILT_IN = ("calculator", "stoichiometry", "molar_mass", "unit_conversion")
"""The names of the built-in tools, which an app may name without loading them."""


@cache
def builtin_tools() -> Mapping[str, FunctionTool[Any, Any]]:
    """Return the built-in tools by name."""
    from taiwa.tools.calculator import calculator
    from taiwa.tools.chemical_formulas import molar_mass
    from taiwa.tools.stoichiometry import stoichiometry
    from taiwa.tools.units import unit_conversion

    tools = (calculator, stoichiometry, molar_mass, unit_conversion)
    return MappingProxyType({tool.spec.name: tool for tool in tools})


def tool_names() -> tuple[str, ...]:
    """Return the names of the built-in tools and of plug-ins, without loading a plug-in."""
    return tuple(dict.fromkeys((*BUILT_IN, *plugin_names("tools"))))


def named_tool(name: str) -> FunctionTool[Any, Any] | None:
    """Return the built-in tool of that name, or that of a plug-in; None without one.

    Raises:
        ConfigError: the plug-in cannot be used.
    """
    if name in BUILT_IN:
        return builtin_tools()[name]
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
    found = import_code(place)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not _is_tool(found):
        what = "name not found" if found is None else "it is not a tool; write @tool above the function"
        raise InputError(f"{address}: {what}")
    return found


def find_in_code(place: str, path: str) -> object:
    """Return what a module or a Python file defines under a name, or within a class of it.

    Raises:
        InputError: it is not found, or the module cannot be imported.
    """
    found = import_code(place)
    for name in path.split("."):
        if not hasattr(found, name):
            near = get_close_matches(name, [each for each in dir(found) if not each.startswith("_")], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"{getattr(found, '__name__', place)} has no {name!r}{hint}")
        found = getattr(found, name)
    return found


def remember_tool(address: str) -> str:
    """Record that the user named a tool of a file, `path/to/file.py:name`; return its name with the hash of the file,
    `NAME@HASH`.

    The record is next to the user's config file rather than in a store, so that another user's store cannot run files.
    """
    return _remember(find_tools([address])[0].spec.name, address)


def remember_type(address: str) -> str:
    """As `remember_tool`, for a type of a file; its name is `type:NAME@HASH`."""
    return _remember(f"{TYPE}{address.rpartition(':')[2]}", address)


def _remember(known_as: str, address: str) -> str:
    place, _, name = address.rpartition(":")
    key = f"{known_as}@{_hash(Path(place))}"
    noted = f"{real_path(place)}:{name}"
    if (notes := _notes()).get(key) != noted:
        with suppress(ConfigError):  # if the file is not writable, the tool must be named in each turn
            write_private(_notes_path(), json.dumps({**notes, key: noted}, indent=2) + "\n")
    return key


def tool_address(key: str) -> str:
    """Return where the user found a tool that was recorded, `path/to/file.py:name`; "" without a record."""
    return _notes().get(key, "")


def remembered_tool(key: str) -> FunctionTool[Any, Any] | None:
    """Return the tool that the user named earlier, `NAME@HASH`, from its unchanged file; None if there is no record.

    Raises:
        ConfigError: the file has changed or no longer exists.
        InputError: it cannot be imported.
    """
    address = _unchanged(key, "tool")
    return find_tools([address])[0] if address else None


def remembered_type(key: str) -> object | None:
    """As `remembered_tool`, for a type."""
    place, _, path = _unchanged(key, "type").rpartition(":")
    return find_in_code(place, path) if place else None


def _unchanged(key: str, kind: str) -> str:
    """Return the address of what was recorded, if its file is as it was; "" without a record."""
    address = tool_address(key)
    place, name = Path(address.rpartition(":")[0]), key.partition("@")[0].removeprefix(TYPE)
    try:
        is_changed = address and _hash(place) != key.partition("@")[2]
    except OSError:
        gone = f"the {kind} {name!r} was in {place}, which is gone; name its file: --{kind} FILE.py:{name}"
        raise ConfigError(gone) from None
    if is_changed:
        now = f"to use it as it is now: --{kind} {address}"
        raise ConfigError(f"the {kind} {name!r} is in {place}, which has changed; {now}")
    return address


def _notes_path() -> Path:
    return config_path(os.environ).parent / "tools.json"


def _notes() -> dict[str, str]:
    try:
        check_own(_notes_path())
        found: object = json.loads(read_regular_text(_notes_path()))
    except (OSError, ValueError):
        return {}
    notes = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    return {key: each for key, each in notes.items() if isinstance(each, str)}


def _hash(file: Path) -> str:
    return sha256(read_regular(file, MAX_BYTES)).hexdigest()[:HASH_CHARS]


def import_code(place: str) -> object:
    """Import a module, also one in the current folder, or a Python file like a program: modules next to it can be imported,
    here and in the worker of a tool.

    Raises:
        InputError: it is not found, raises an error, or is a file whose name another module has.
    """
    file = real_path(place) if place.endswith(".py") else None
    try:
        if file is not None:
            _hash(file)  # so that the import reads a file of bounded size
    except FileNotFoundError:
        raise InputError(f"file {place} not found") from None
    except OSError as error:
        raise InputError(f"{place} cannot be imported: {error.strerror}") from None
    module, folder = (place, Path.cwd()) if file is None else (file.stem, file.parent)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = import_module(module)
    except TaiwaError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0]):
            raise InputError(f"module {module!r} not found, here ({folder}) or installed") from error
        raise InputError(f"cannot import {place}: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if file is not None and real_path(str(getattr(found, "__file__", ""))) != file:
        raise InputError(f"{place}: another module has the name {module!r}; rename the file")
    return found


def _is_tool(found: object) -> TypeGuard[FunctionTool[Any, Any]]:
    return isinstance(found, FunctionTool)


# --- search in documents ----------------------------------------------------------------------------------------------
# Document search as a tool: numbered passages with their sources, from any retriever.
#
# A passage is untrusted text: it is limited and cleaned, so that it cannot start a call or imitate a role, and the
# specification marks the tool as untrusted.

MAX_QUERY_CHARS = 1_000

MAX_SOURCE_CHARS = 200

MAX_PASSAGES = 50

MAX_PASSAGE_CHARS = 20_000

MAX_HITS = 200

BEFORE = 4
"""An excerpt begins a quarter of its length before the match."""

CJK = "\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3"

WORDS = re.compile(rf"(?:(?![{CJK}])\w){{2,}}|[{CJK}](?=(?P<next>[{CJK}]))")


def excerpt(text: str, query: str, longest: int) -> str:
    """Return the part of a text with the most query words, on one line of at most `longest` characters.

    >>> excerpt("All about boats. " * 9 + "The ferry leaves at nine.", "when does the ferry leave", 40)
    '…about boats. The ferry leaves at nine.'
    """
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    folded = line.lower()
    terms = {match[0] + (match["next"] or "") for match in WORDS.finditer(query.lower())}
    hits = sorted(match.start() for term in terms for match in list(re.finditer(re.escape(term), folded))[:MAX_HITS])
    width = max(longest - 2, 1)
    starts = [max(min(hit - width // BEFORE, len(line) - width), 0) for hit in hits] or [0]
    best = max(starts, key=lambda start: sum(term in folded[start : start + width] for term in terms))
    before, after = "…" if best else "", "…" if best + width < len(line) else ""
    return f"{before}{line[best : best + width].strip()}{after}"


def search_tool(retriever: Retriever, passages: int = 5, characters: int = 4_000) -> FunctionTool[[str], ToolResult]:
    """Make a tool of a retriever; a result has at most `passages` and at most `characters` of their text in total.

    >>> from taiwa.retrieval import InMemoryRetriever
    >>> search_tool(InMemoryRetriever([Passage("notes.md", "Maples turn red in November.")])).call({"query": "maples"}).text
    '[1] notes.md: Maples turn red in November.'
    """
    most = max(1, min(passages, MAX_PASSAGES))
    chars_each = max(1, characters // most)

    def shown(number: int, passage: Passage, query: str) -> str:
        place = " › ".join((passage.source, *passage.heading)) + (f", page {passage.page}" if passage.page else "")
        words = excerpt(clean_untrusted(passage.text, MAX_PASSAGE_CHARS), query, chars_each)
        return f"[{number}] {' '.join(clean_untrusted(place, MAX_SOURCE_CHARS).split())}: {words}"

    def search_documents(query: str) -> ToolResult:
        """Find passages of the documents that fit a question or some words; each has a number and its source."""
        if len(query) > MAX_QUERY_CHARS:
            hint = f"at most {MAX_QUERY_CHARS:,}"
            raise ToolError(f"the query has {len(query):,} characters", code="too_long", hint=hint)
        found = [*enumerate(retriever.find(query, most)[:most], start=1)]
        value: list[Json] = [
            {"number": number, "source": each.source, "start": each.start, "score": each.score, "text": each.text,
             "heading": list(each.heading), "page": each.page}
            for number, each in found
        ]  # fmt: skip
        text = "\n".join(shown(number, each, query) for number, each in found)
        return ToolResult(text or "no passage fits", value=value)

    tool = FunctionTool(search_documents, isolated=False)
    tool.spec = replace(tool.spec, trust="untrusted")
    return tool
