"""Worked examples in files: those that come with the package, and those that a person has written down."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

from taiwa.apps.faults import Faults, nearest, quoted
from taiwa.apps.files import bounded
from taiwa.apps.load import shown
from taiwa.flows.protocol import Protocol
from taiwa.flows.worked import ResultOf, Step, Worked, steps
from taiwa.kernel.errors import ConfigError, InputError, ToolError
from taiwa.kernel.protocols import Tool
from taiwa.kernel.records import Json, canonical
from taiwa.yamlfile import Entry, Items, Location, Scalar, Table, Tree, parse_yaml, to_json

__all__ = ["built_in", "read_shots", "results", "told_shot", "usable"]

REASONING = Path(__file__).with_name("worked") / "reasoning.yaml"
MOST_BYTES = 1024 * 1024
MOST_SHOTS = 1_000
KEYS = ("id", "kind", "question", "parts", "answer")
RESULT = "result"
YAML = frozenset({".yaml", ".yml"})
LINES = frozenset({".jsonl", ".ndjson"})
Given: TypeAlias = "dict[str, Json]"


@cache
def built_in() -> tuple[Worked, ...]:
    """The worked examples that come along: substances, reactions and everyday quantities."""
    return _from_yaml(REASONING.read_text(encoding="utf-8"), REASONING.name)


def read_shots(path: Path | str) -> tuple[Worked, ...]:
    """Read a file of worked examples: `.yaml` or `.jsonl` in our own form, any other as a text of `Q:` and `A:`.

    Raises:
        InputError: it cannot be read or has a fault: `path:line: what; mend`.
    """
    path = Path(path)
    where = shown(path)
    _, text = bounded(
        path, MOST_BYTES, f"has more than {MOST_BYTES:,} bytes: no worked examples for one prompt", where=where
    )
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if path.suffix.lower() in YAML:
        return _from_yaml(text, where)
    if path.suffix.lower() in LINES:
        return _from_lines(text, where)
    from taiwa.apps.transcripts import read_transcripts

    return read_transcripts(text, where)


def told_shot(worked: Worked) -> Given:
    """A worked example as a line of a `.jsonl` file."""
    parts: list[Json] = []
    for part in worked.parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            call: Given = {part.tool: part.input}
            parts.append(call | {RESULT: part.result} if part.result else call)
    return {"id": worked.id, "kind": worked.kind, "question": worked.question, "parts": parts, "answer": worked.answer}


def results(tools: Iterable[Tool], protocol: Protocol) -> ResultOf:
    """What these tools give, each input asked for once.

    The function raises ToolError where a tool refuses, and InputError where there is no such tool.
    """
    known = {tool.spec.name: tool for tool in tools}
    seen: dict[tuple[str, str], str] = {}

    def result_of(name: str, text: str) -> str:
        if name not in known:
            raise InputError(f"a worked example calls the tool {name!r}; there are {', '.join(known) or 'none'}")
        if (name, text) not in seen:
            tool = known[name]
            seen[name, text] = tool.call(protocol.arguments(tool.spec, text)).text
        return seen[name, text]

    return result_of


def usable(examples: Iterable[Worked], result_of: ResultOf) -> tuple[Worked, ...]:
    """Those examples that can be worked out: their tools are there, set up, and take every input."""
    return tuple(worked for worked in examples if _works(worked, result_of))


def _works(worked: Worked, result_of: ResultOf) -> bool:
    try:
        steps(worked, result_of)
    except (InputError, ToolError, ConfigError):
        return False
    return True


def _from_yaml(text: str, where: str) -> tuple[Worked, ...]:
    faults = Faults()
    tree = parse_yaml(text, faults.error)
    if tree is not None and not isinstance(tree, Items):
        faults.error(tree.at, "this is no list of examples", "begin each with `- question: …`")
    items = tree.items if isinstance(tree, Items) else ()
    return _finished([_Reading(item, number, faults) for number, item in enumerate(items, 1)], faults, where)


def _from_lines(text: str, where: str) -> tuple[Worked, ...]:
    faults = Faults()
    found: list[_Reading] = []
    for line, written in enumerate(text.split("\n"), 1):
        if not written.strip():
            continue
        try:
            data = json.loads(written)
        except (ValueError, RecursionError) as error:
            faults.error(Location(line), f"not JSON: {error}", "write one object on each line")
            continue
        found.append(_Reading(_tree(data, Location(line)), line, faults, exact=True))
    return _finished(found, faults, where)


def _finished(found: "list[_Reading]", faults: Faults, where: str) -> tuple[Worked, ...]:
    made: dict[str, Worked] = {}
    for reading in found[:MOST_SHOTS]:
        worked = reading.worked()
        if worked is not None and worked.id in made:
            faults.error(reading.at, f"the id {quoted(worked.id)} is there twice", "name each example once")
        elif worked is not None:
            made[worked.id] = worked
    if len(found) > MOST_SHOTS:
        faults.error(found[MOST_SHOTS].at, f"more than {MOST_SHOTS:,} examples", "keep the best")
    if not found and not faults.found:
        faults.error(Location(0), "there is no worked example in it")
    if faults.found:
        raise InputError(faults.sorted()[0].told(where))
    return tuple(made.values())


class _Reading:
    """One example of a file. In `exact` parts the line ends are written out; otherwise each part is a line."""

    def __init__(self, tree: Tree, number: int, faults: Faults, *, exact: bool = False) -> None:
        self.at = tree.at
        self._tree = tree
        self._number = number
        self._faults = faults
        self._exact = exact

    def worked(self) -> Worked | None:
        """The example, or None where something is wrong with it."""
        if not isinstance(self._tree, Table):
            self._faults.error(self.at, "an example is a table", f"its keys are {', '.join(KEYS)}")
            return None
        for entry in self._tree.entries:
            if entry.key not in KEYS:
                self._faults.error(entry.at, f"unknown key {quoted(entry.key)}", nearest(entry.key, KEYS, "keys"))
        before = len(self._faults.found)
        name = self._word("id") or str(self._number)
        made = Worked(
            name, self._word("kind"), self._word("question", needed=True), self._parts(), self._word("answer")
        )
        return made if len(self._faults.found) == before else None

    def _word(self, key: str, *, needed: bool = False) -> str:
        entry = self._tree.get(key) if isinstance(self._tree, Table) else None
        if entry is None or not isinstance(entry.value, Scalar) or entry.value.value is None:
            if needed or entry is not None:
                at = self.at if entry is None else entry.at
                self._faults.error(at, f"an example needs a {key}" if entry is None else f"{key} is a text")
            return ""
        return entry.value.text

    def _parts(self) -> tuple[str | Step, ...]:
        entry = self._tree.get("parts") if isinstance(self._tree, Table) else None
        if entry is None or not isinstance(entry.value, Items) or not entry.value.items:
            at = self.at if entry is None else entry.at
            self._faults.error(
                at, "an example needs parts", "list its lines; a call is written as `- calculator: 1 + 1`"
            )
            return ()
        parts = tuple(part for item in entry.value.items if (part := self._part(item)) is not None)
        return parts if self._exact else _in_lines(parts)

    def _part(self, item: Tree) -> str | Step | None:
        if isinstance(item, Scalar) and item.value is not None:
            return item.text
        entries = item.entries if isinstance(item, Table) else ()
        recorded = next((entry for entry in entries if entry.key == RESULT), None)
        calls = [entry for entry in entries if entry.key != RESULT]
        result = "" if recorded is None else _plain(recorded)
        given = _plain(calls[0]) if len(calls) == 1 else None
        if given is None or result is None:
            mend = "one that holds `: ` stands in quotes; a call is written as `calculator: 1 + 1`"
            self._faults.error(item.at, "a part is a line of text, or one call", mend)
            return None
        return Step(calls[0].key, given, result)


def _plain(entry: Entry) -> str | None:
    """An input as the text that a call holds: words as they are, several arguments as a JSON object."""
    if isinstance(entry.value, Scalar):
        return None if entry.value.value is None else entry.value.text
    return canonical(to_json(entry.value)).decode() if isinstance(entry.value, Table) else None


def _in_lines(parts: tuple[str | Step, ...]) -> tuple[str | Step, ...]:
    """Put the line ends between parts of which each is a line of its own; they belong to the words beside a call."""
    made: list[str | Step] = []
    for part in parts:
        if made and isinstance(part, str):
            made.append(f"\n{part}")
        elif made and isinstance(made[-1], str):
            made[-1] += "\n"
            made.append(part)
        elif made:
            made += ["\n", part]
        else:
            made.append(part)
    return tuple(made)


def _tree(data: Json, at: Location) -> Tree:
    if isinstance(data, list):
        return Items(tuple(_tree(item, at) for item in data), at)
    if isinstance(data, Mapping):
        return Table(tuple(Entry(key, _tree(item, at), at) for key, item in data.items()), at)
    return Scalar(data if isinstance(data, str) else json.dumps(data), data, at)
