"""Worked examples in YAML, JSONL and MultiTool-CoT transcripts."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

from taiwa.apps.catalog import shown
from taiwa.apps.problems import Problem, Problems, bounded, quoted, suggest
from taiwa.flows.solve.examples import ExampleCall, ResultOf, WorkedExample, escape_references, evaluate_parts
from taiwa.flows.solve.numbers import last_number
from taiwa.flows.solve.tool_call_formats import CallText, InlineFormat, ResultText, ScanEvent, ToolCallFormat, decode
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError, ToolError
from taiwa.kernel.records import Json, canonical
from taiwa.kernel.runtime import Tool
from taiwa.yamlfile import Entry, Items, Location, Scalar, Table, Tree, parse_yaml, to_json

__all__ = ["built_in", "differing", "read_shots", "read_transcripts", "results", "told_shot", "usable"]


REASONING = Path(__file__).with_name("worked") / "reasoning.yaml"

MOST_BYTES = 1024 * 1024

MOST_SHOTS = 1_000

KEYS = ("id", "kind", "question", "parts", "answer")

RESULT = "result"

YAML = frozenset({".yaml", ".yml"})

LINES = frozenset({".jsonl", ".ndjson"})

Given: TypeAlias = "dict[str, Json]"


@cache
def built_in() -> tuple[WorkedExample, ...]:
    """The worked examples that come along: substances, reactions and everyday quantities."""
    return _from_yaml(REASONING.read_text(encoding="utf-8"), REASONING.name)


def read_shots(path: Path | str) -> tuple[WorkedExample, ...]:
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

    return read_transcripts(text, where)


def told_shot(worked: WorkedExample) -> Given:
    """A worked example as a line of a `.jsonl` file."""
    parts: list[Json] = []
    for part in worked.parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            call: Given = {part.tool: part.input}
            parts.append(call | {RESULT: part.result} if part.result else call)
    return {"id": worked.id, "kind": worked.kind, "question": worked.question, "parts": parts, "answer": worked.answer}


def results(tools: Iterable[Tool], protocol: ToolCallFormat) -> ResultOf:
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
            seen[name, text] = tool.call(protocol.parse_arguments(tool.spec, text)).text
        return seen[name, text]

    return result_of


def usable(examples: Iterable[WorkedExample], result_of: ResultOf) -> tuple[WorkedExample, ...]:
    """Those examples that can be worked out: their tools are there, set up, and take every input."""
    return tuple(worked for worked in examples if _works(worked, result_of))


def _works(worked: WorkedExample, result_of: ResultOf) -> bool:
    try:
        evaluate_parts(worked, result_of)
    except (InputError, ToolError, ConfigError):
        return False
    return True


def _from_yaml(text: str, where: str) -> tuple[WorkedExample, ...]:
    faults = Problems()
    tree = parse_yaml(text, faults.error)
    if tree is not None and not isinstance(tree, Items):
        faults.error(tree.at, "this is no list of examples", "begin each with `- question: …`")
    items = tree.items if isinstance(tree, Items) else ()
    return _finished([_Reading(item, number, faults) for number, item in enumerate(items, 1)], faults, where)


def _from_lines(text: str, where: str) -> tuple[WorkedExample, ...]:
    faults = Problems()
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


def _finished(found: "list[_Reading]", faults: Problems, where: str) -> tuple[WorkedExample, ...]:
    made: dict[str, WorkedExample] = {}
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

    def __init__(self, tree: Tree, number: int, faults: Problems, *, exact: bool = False) -> None:
        self.at = tree.at
        self._tree = tree
        self._number = number
        self._faults = faults
        self._exact = exact

    def worked(self) -> WorkedExample | None:
        """The example, or None where something is wrong with it."""
        if not isinstance(self._tree, Table):
            self._faults.error(self.at, "an example is a table", f"its keys are {', '.join(KEYS)}")
            return None
        for entry in self._tree.entries:
            if entry.key not in KEYS:
                self._faults.error(entry.at, f"unknown key {quoted(entry.key)}", suggest(entry.key, KEYS, "keys"))
        before = len(self._faults.found)
        name = self._word("id") or str(self._number)
        made = WorkedExample(
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

    def _parts(self) -> tuple[str | ExampleCall, ...]:
        entry = self._tree.get("parts") if isinstance(self._tree, Table) else None
        if entry is None or not isinstance(entry.value, Items) or not entry.value.items:
            at = self.at if entry is None else entry.at
            self._faults.error(
                at, "an example needs parts", "list its lines; a call is written as `- calculator: 1 + 1`"
            )
            return ()
        parts = tuple(part for item in entry.value.items if (part := self._part(item)) is not None)
        return parts if self._exact else _in_lines(parts)

    def _part(self, item: Tree) -> str | ExampleCall | None:
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
        return ExampleCall(calls[0].key, given, result)


def _plain(entry: Entry) -> str | None:
    """An input as the text that a call holds: words as they are, several arguments as a JSON object."""
    if isinstance(entry.value, Scalar):
        return None if entry.value.value is None else entry.value.text
    return canonical(to_json(entry.value)).decode() if isinstance(entry.value, Table) else None


def _in_lines(parts: tuple[str | ExampleCall, ...]) -> tuple[str | ExampleCall, ...]:
    """Put the line ends between parts of which each is a line of its own; they belong to the words beside a call."""
    made: list[str | ExampleCall] = []
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


QUESTION = re.compile(r"[QＱ][:：]")

ANSWER = re.compile(r"[AＡ][:：]")

OPENED = re.compile(r"<<(?![^<>\n]*>>)")

BEHIND = re.compile(r"[\s:：=＝]*\Z")

CLOSE_ENOUGH = 0.005

NAMES = tuple(name for _, name in InlineFormat().aliases)


@dataclass(slots=True)
class _Block:
    """A question with its answer, and their lines in the file."""

    line: int
    question: list[str] = field(default_factory=list[str])
    answer: list[str] = field(default_factory=list[str])
    answered: int = 0


def read_transcripts(text: str, where: str) -> tuple[WorkedExample, ...]:
    """Read a text of questions and answers; each example is called by the line of its question.

    A last question whose answer is empty is where a prompt puts its own, and is left out.

    Raises:
        InputError: a question or an answer is missing, or a call is not closed: `where:line: what; mend`.
    """
    blocks = list(_blocks(text, where))
    if blocks and not _joined(blocks[-1].answer):
        blocks.pop()
    made = tuple(_worked(block, where) for block in blocks)
    if not made:
        raise InputError(f"{where}: there is no worked example in it; write `Q: …` and below it `A: …`")
    return made


def differing(
    examples: Iterable[WorkedExample], result_of: ResultOf
) -> Iterator[tuple[WorkedExample, ExampleCall, str]]:
    """Find recorded results that are not what the tools give, with that; half a hundredth more or less is the same.

    An example that contradicts its tool teaches a model not to trust it.
    """
    for worked in examples:
        for part in worked.parts:
            if isinstance(part, str) or not part.result:
                continue
            try:
                given = result_of(part.tool, part.input)
            except TaiwaError as error:
                given = f"error: {error.message}"
            if not _agree(part.result, given):
                yield worked, part, given


def _blocks(text: str, where: str) -> Iterator[_Block]:
    block: _Block | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if found := QUESTION.match(line):
            if block is not None:
                yield _checked(block, where)
            block = _Block(number, [line[found.end() :].removeprefix(" ")])
        elif found := ANSWER.match(line):
            if block is None or block.answered:
                raise _fault(where, number, "an answer without its question", "begin the question with `Q:`")
            block.answered = number
            block.answer.append(line[found.end() :].removeprefix(" "))
        elif block is not None:
            (block.answer if block.answered else block.question).append(line)
    if block is not None:
        yield _checked(block, where, last=True)


def _checked(block: _Block, where: str, *, last: bool = False) -> _Block:
    if not _joined(block.question):
        raise _fault(where, block.line, "an empty question", "write it behind `Q:`")
    if not _joined(block.answer) and not last:
        raise _fault(where, block.line, "a question without its answer", "write the answer below it, behind `A:`")
    for number, line in enumerate(block.answer, block.answered):
        if found := OPENED.search(line):
            words = quoted(line[found.start() :])
            raise _fault(where, number, f"a call that is not closed: {words}", "write it as << Calculator >>")
    return block


def _worked(block: _Block, where: str) -> WorkedExample:
    text = _joined(block.answer)
    parts = _parts(decode(text, InlineFormat(), NAMES))
    if not any(isinstance(part, str) and part.strip() for part in parts):
        raise _fault(where, block.answered, "an answer without a word", "end it with a line that states the number")
    return WorkedExample(
        str(block.line), "", _joined(block.question), parts, last_number(text), InlineFormat().name, text
    )


def _parts(events: Iterable[ScanEvent]) -> tuple[str | ExampleCall, ...]:
    """Words and calls: the input of a call is taken out of the words before it, its result of those behind."""
    parts: list[str | ExampleCall] = []
    for event in events:
        last = parts[-1] if parts else ""
        if isinstance(event, CallText):
            if isinstance(last, str) and parts:
                parts[-1] = _without(last, event.input)
            parts.append(ExampleCall(event.name, event.input))
        elif isinstance(event, ResultText):
            parts[-1:] = _with_result(last, event.text)
        elif isinstance(last, str) and parts:
            parts[-1] = last + event.text
        elif isinstance(last, ExampleCall) and not last.result:
            # The original predicts a reaction on the line below its call.
            words = event.text.lstrip()
            parts[-1:] = _with_result(last, words if "\n" in words else f"{words}\n")
        else:
            parts.append(event.text)
    return tuple(escape_references(part) if isinstance(part, str) else part for part in parts if part)


def _with_result(step: str | ExampleCall, text: str) -> list[str | ExampleCall]:
    line, end, rest = text.partition("\n")
    if isinstance(step, str) or not line.strip():
        return [step]
    return [ExampleCall(step.tool, step.input, line.strip()), end + rest]


def _without(words: str, given: str) -> str:
    """Words without the input that ends them: on the last line, or as the last two lines."""
    head, newline, line = words.rstrip("\n").rpartition("\n")
    at = line.rfind(given)
    if given and at >= 0 and BEHIND.match(line, at + len(given)):
        return f"{head}{newline}{line[:at]}"
    if " -> " in given and line.strip() and head:
        above, newline, _ = head.rpartition("\n")
        return f"{above}{newline}"
    return words


def _joined(lines: list[str]) -> str:
    return "\n".join(lines).strip()


def _agree(recorded: str, given: str) -> bool:
    """Whether two results say the same; the terms of an equation may stand in any order."""
    one, other = (sorted(re.findall(r"[^\s+,→⟶>-]+|-(?=\d)[^\s,]+", text)) for text in (recorded, given))
    return len(one) == len(other) and all(_close(*pair) for pair in zip(one, other, strict=True))


def _close(one: str, other: str) -> bool:
    try:
        return abs(float(one) - float(other)) <= CLOSE_ENOUGH * abs(float(other))
    except ValueError:
        return one == other


def _fault(where: str, line: int, message: str, mend: str) -> InputError:
    return InputError(Problem(line, 1, message, mend).told(where))
