"""What all text protocols say of tools: how a result stands in the text, what an input means, how tools are listed."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, cast

from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import Json
from taiwa.kernel.values import ToolSpec

__all__ = ["OWN_RESULTS", "arguments", "listed", "normal", "shown", "wanted"]

LONGEST_RESULT = 500
OWN_RESULTS = " Never write a result of a tool yourself."
LOOKED_AT = 20
"""Characters that are looked at for each that may be shown."""
MARKS = str.maketrans({"`": "'"})
LABELS = re.compile(
    r"\b(action|observation|thought|question|answer|human|user|assistant|system)(\s*\d*\s*)[:：]", re.IGNORECASE
)
ROLES = re.compile(
    r"<(?=[|｜]|/?(?:s|bos|eos|think\w*|tool\w*|function\w*|system|user|assistant|\w+_of_turn)\b)|(?<=[|｜])>"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_\w+|AVAILABLE_TOOLS)\b)",
    re.IGNORECASE,
)
HARMLESS = {"<": "‹", ">": "›", "[": "［"}


def shown(result: str, longest: int = LONGEST_RESULT) -> str:
    """A result as it stands in the text: one line of at most 500 printable characters that begins and closes nothing.

    What is a mark in any of the protocols, opens or closes code, or names who speaks is written with characters that only
    look like it.

    >>> shown("25.9\\n<<calculator: 1>> Observation 2: ```")
    "25.9 ‹‹calculator: 1›› Observation 2∶ '''"
    """
    plain = "".join(char for char in result[: LOOKED_AT * longest] if char.isprintable() or char.isspace())
    line = " ".join(plain.split()).translate(MARKS)
    line = line.replace("<<", "‹‹").replace(">>", "››").replace("~~~", "∼∼∼")
    line = LABELS.sub(r"\1\2∶", ROLES.sub(lambda found: HARMLESS[found[0]], line))
    if len(line) > longest or len(result) > LOOKED_AT * longest:
        line = f"{line[: longest - 1]}…"
    # The text on either side could make a double mark of a single one.
    if line.startswith(("<", ">")):
        line = HARMLESS[line[0]] + line[1:]
    if line.endswith(("<", ">")):
        line = line[:-1] + HARMLESS[line[-1]]
    return line or "(nothing)"


def arguments(spec: ToolSpec, text: str, write: Callable[[str, str], str]) -> dict[str, Json]:
    """Read a trigger's input: a JSON object of all arguments, or the bare text of the one that the tool needs.

    `write` shows how the protocol writes a call, for the hint.

    Raises:
        ToolError: the tool needs several, and this is no JSON object.
    """
    properties = _properties(spec)
    names = _needed(spec)
    given = _json(text)
    if isinstance(given, dict) and (len(names) != 1 or names[0] in given):
        return given
    if not properties and not text:
        return {}
    if len(names) != 1:
        hint = write(spec.name, _object(names)).strip()
        raise ToolError("the input must be a JSON object", code="bad_arguments", hint=hint)
    kind = properties.get(names[0])
    bare = not isinstance(kind, Mapping) or kind.get("type") == "string" or given is None
    return {names[0]: text if bare else given}


def wanted(spec: ToolSpec) -> str:
    """What a tool's input looks like: the name of the one argument that it needs, or an object of all."""
    needed = _needed(spec)
    return needed[0] if len(needed) == 1 else _object(list(_properties(spec)))


def listed(tools: Sequence[ToolSpec], write: Callable[[str, str], str]) -> str:
    """The tools, one a line: how a call is written, and what it does."""
    lines = [f"- {write(tool.name, wanted(tool)).strip()}: {' '.join(tool.description.split())}" for tool in tools]
    return "Tools:\n" + ("\n".join(lines) or "(none)")


def normal(name: str) -> str:
    """A name without what people write differently.

    >>> normal("Molar mass") == normal("molar_mass")
    True
    """
    return re.sub(r"[\s_-]+", "", name).casefold()


def _properties(spec: ToolSpec) -> Mapping[str, Json]:
    declared = spec.parameters.get("properties")
    return declared if isinstance(declared, dict) else {}


def _needed(spec: ToolSpec) -> list[str]:
    needed = spec.parameters.get("required")
    return [str(name) for name in needed] if isinstance(needed, list) and needed else list(_properties(spec))


def _object(names: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{name}": …' for name in names) + "}"


def _json(text: str) -> Json:
    """The JSON value of a text; None where it is none."""
    try:
        return cast("Json", json.loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
