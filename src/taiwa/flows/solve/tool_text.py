"""Tools and their results as text for a model: lists of tools, arguments of a call, and results that are safe to insert."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import ToolSpec
from taiwa.kernel.records import Json, refuse_constant

FORBID_OWN_RESULTS = " Never write a result of a tool yourself."

MAX_RESULT_CHARS = 500

READ_CHARS_PER_SHOWN = 20
"""Characters of a result that are read for each one that may be shown."""

ROLE_LABELS = re.compile(
    r"\b(action|observation|thought|question|answer|human|user|assistant|system)(\s*\d*\s*)[:：]", re.IGNORECASE
)

ROLE_TOKENS = re.compile(
    r"<(?=[|｜]|/?(?:s|bos|eos|think\w*|tool\w*|function\w*|system|user|assistant|\w+_of_turn)\b)|(?<=[|｜])>"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_\w+|AVAILABLE_TOOLS)\b)",
    re.IGNORECASE,
)

LOOKALIKES = {"<": "‹", ">": "›", "[": "［"}


def sanitize_result(result: str, max_chars: int = MAX_RESULT_CHARS) -> str:
    """Write a result on one line of at most `max_chars` printable characters that opens and closes nothing.

    Marks of any tool-call format and of a state delta, code fences, and labels of roles are replaced by characters that look
    like them.

    >>> sanitize_result("25.9\\n<<calculator: 1>> Observation 2: ```")
    "25.9 ‹‹calculator: 1›› Observation 2∶ '''"
    """
    read = result[: READ_CHARS_PER_SHOWN * max_chars]
    line = " ".join("".join(char for char in read if char.isprintable() or char.isspace()).split())
    line = line.replace("`", "'").replace("<<", "‹‹").replace(">>", "››").replace("~~~", "∼∼∼").replace("@@", "＠＠")
    line = ROLE_LABELS.sub(r"\1\2∶", ROLE_TOKENS.sub(lambda match: LOOKALIKES[match[0]], line))
    if len(line) > max_chars or len(result) > len(read):
        line = f"{line[: max_chars - 1]}…"
    # The text on either side could make a double mark of a single one.
    if line.startswith(("<", ">")):
        line = LOOKALIKES[line[0]] + line[1:]
    if line.endswith(("<", ">")):
        line = line[:-1] + LOOKALIKES[line[-1]]
    return line or "(nothing)"


def parse_arguments(spec: ToolSpec, text: str, write_call: Callable[[str, str], str]) -> dict[str, Json]:
    """Parse the input of a call: a JSON object of all arguments, or the bare text of the only required one.

    `write_call` writes a call in the tool-call format, for the hint of the error.

    Raises:
        ToolError: the tool requires several arguments, and the input is not a JSON object.
    """
    properties, required = _properties(spec), _required(spec)
    try:
        data: Json = cast("Json", json.loads(text, parse_constant=refuse_constant))
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict) and (len(required) != 1 or required[0] in data):
        return data
    if not properties and not text:
        return {}
    if len(required) != 1:
        hint = write_call(spec.name, _object(required)).strip()
        raise ToolError("the input must be a JSON object", code="bad_arguments", hint=hint)
    schema = properties.get(required[0])
    is_text = not isinstance(schema, Mapping) or schema.get("type") == "string" or data is None
    return {required[0]: text if is_text else data}


def describe_input(spec: ToolSpec) -> str:
    """Describe the input of a tool: the name of its only required argument, or an object of all arguments."""
    required = _required(spec)
    return required[0] if len(required) == 1 else _object(list(_properties(spec)))


def list_tools(tools: Sequence[ToolSpec], write_call: Callable[[str, str], str]) -> str:
    """List the tools, one on a line: how a call is written, and what the tool does."""
    lines = [
        f"- {write_call(tool.name, describe_input(tool)).strip()}: {' '.join(tool.description.split())}"
        for tool in tools
    ]
    return "Tools:\n" + ("\n".join(lines) or "(none)")


def normalize_name(name: str) -> str:
    """Normalise a tool's name: case, spaces, underscores and hyphens make no difference.

    >>> normalize_name("Molar mass") == normalize_name("molar_mass")
    True
    """
    return re.sub(r"[\s_-]+", "", name).casefold()


def _properties(spec: ToolSpec) -> Mapping[str, Json]:
    declared = spec.parameters.get("properties")
    return declared if isinstance(declared, dict) else {}


def _required(spec: ToolSpec) -> list[str]:
    required = spec.parameters.get("required")
    return [str(name) for name in required] if isinstance(required, list) and required else list(_properties(spec))


def _object(names: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{name}": …' for name in names) + "}"
