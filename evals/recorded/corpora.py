"""Readers of recorded texts of real models that call tools, as published: GSM8K, ToRA, ReAct, Reflexion, FireAct, tau-bench."""

from collections.abc import Iterable, Iterator, Mapping

from taiwa.flows.solve.tool_call_formats import FenceFormat, GsmFormat, ReActFormat, ToolCallFormat
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, value

__all__ = ["Conversation", "Recording", "Transcript", "read_recordings"]


@value
class Transcript:
    """One text with calls and results, and the available tools."""

    id: str
    text: str
    protocol: ToolCallFormat
    names: tuple[str, ...]


@value
class Conversation:
    """One conversation with native calls, as messages of the provider."""

    id: str
    messages: tuple[dict[str, Json], ...]


Recording = Transcript | Conversation


def read_recordings(rows: Iterable[Mapping[str, Json]]) -> Iterator[Recording]:
    """Read the recordings of each row; a row may hold several texts.

    Raises:
        InputError: the corpus of a row is unknown.
    """
    for place, row in enumerate(rows):
        found = tuple(_read_row(row, str(place)))
        if not found:
            fields = ", ".join(list(row)[:6]) or "nothing"
            raise InputError(f"row {place}: unknown corpus with the fields {fields}")
        yield from found


def _read_row(row: Mapping[str, Json], place: str) -> Iterator[Recording]:
    for name, part in row.items():
        if isinstance(part, dict) and isinstance(part.get("solution"), str):
            yield Transcript(f"{place} {name}", str(part["solution"]), GsmFormat(), ("calculator",))
    if "gt_cot" in row:
        for number, text in enumerate(_list(row, "code")):
            yield Transcript(f"{place} {number}", str(text), FenceFormat(), ("python",))
    if isinstance(row.get("raw"), str):
        yield Transcript(place, str(row["raw"]), ReActFormat(), ("Search", "Lookup"))
    messages = tuple(each for each in _list(row, "traj") if isinstance(each, dict))
    if any(str(each.get("content")).startswith("Observation") for each in messages):
        yield Transcript(place, "\n".join(str(each["content"]) for each in messages), ReActFormat(), ("search",))
    elif messages:
        yield Conversation(place, messages)


def _list(row: Mapping[str, Json], name: str) -> list[Json]:
    part = row.get(name)
    return part if isinstance(part, list) else []
