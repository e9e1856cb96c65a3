"""Worked examples: read them from YAML, JSONL and MultiTool-CoT transcripts, and check them against the tools."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from taiwa.apps.app_file import Keys, Problem, Problems, quoted
from taiwa.apps.catalog import printable_path, read_bounded
from taiwa.flows.solve.examples import ExampleCall, ResultOf, WorkedExample, escape_references, evaluate_parts
from taiwa.flows.solve.solve import last_number
from taiwa.flows.solve.tool_call_formats import CallText, InlineFormat, ResultText, ScanEvent, ToolCallFormat, decode
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError, ToolError
from taiwa.kernel.records import Json, canonical
from taiwa.kernel.runtime import Tool
from taiwa.yamlfile import Entry, Items, Location, Scalar, Table, Tree, parse_yaml, to_json

REASONING = Path(__file__).with_name("worked") / "reasoning.yaml"

MAX_BYTES = 1024 * 1024

MAX_SHOTS = 1_000

KEYS = ("id", "kind", "question", "parts", "answer")

RESULT = "result"


@cache
def built_in_examples() -> tuple[WorkedExample, ...]:
    """Return the built-in worked examples: substances, reactions and everyday quantities."""
    return _from_yaml(REASONING.read_text(encoding="utf-8"), REASONING.name)


def read_shots(path: Path | str) -> tuple[WorkedExample, ...]:
    """Read a file of worked examples: `.yaml` or `.jsonl`, any other as a text of `Q:` and `A:`.

    Raises:
        InputError: it cannot be read or has an error: `path:line: message; hint`.
    """
    path = Path(path)
    where = printable_path(path)
    too_large = f"has more than {MAX_BYTES:,} bytes; worked examples are for one prompt"
    _, text = read_bounded(path, MAX_BYTES, too_large, where=where)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if path.suffix.lower() in (".yaml", ".yml"):
        return _from_yaml(text, where)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return _from_lines(text, where)
    return read_transcripts(text, where)


def results(tools: Iterable[Tool], protocol: ToolCallFormat) -> ResultOf:
    """Return a function that calls the tools, once for each input.

    It raises ToolError if a tool fails, and InputError if the tool is unknown.
    """
    known = {tool.spec.name: tool for tool in tools}
    seen: dict[tuple[str, str], str] = {}

    def result_of(name: str, text: str) -> str:
        if name not in known:
            raise InputError(f"unknown tool {name!r} in a worked example; tools: {', '.join(known) or 'none'}")
        if (name, text) not in seen:
            tool = known[name]
            seen[name, text] = tool.call(protocol.parse_arguments(tool.spec, text)).text
        return seen[name, text]

    return result_of


def usable(examples: Iterable[WorkedExample], result_of: ResultOf) -> tuple[WorkedExample, ...]:
    """Return the examples whose tools exist, are configured and accept every input."""
    accepted: list[WorkedExample] = []
    for worked in examples:
        with suppress(InputError, ToolError, ConfigError):
            evaluate_parts(worked, result_of)
            accepted.append(worked)
    return tuple(accepted)


def _from_yaml(text: str, where: str) -> tuple[WorkedExample, ...]:
    problems = Problems()
    tree = parse_yaml(text, problems.error)
    if tree is not None and not isinstance(tree, Items):
        problems.error(tree.at, "the file is not a list of examples", "begin each with `- question: …`")
    items = tree.items if isinstance(tree, Items) else ()
    return _examples(list(enumerate(items, 1)), problems, where, in_lines=True)


def _from_lines(text: str, where: str) -> tuple[WorkedExample, ...]:
    problems = Problems()
    trees: list[tuple[int, Tree]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            trees.append((number, _tree(json.loads(line), Location(number))))
        except (ValueError, RecursionError) as error:
            problems.error(Location(number), f"not JSON: {error}", "write one object on each line")
    return _examples(trees, problems, where, in_lines=False)


def _examples(
    trees: list[tuple[int, Tree]], problems: Problems, where: str, *, in_lines: bool
) -> tuple[WorkedExample, ...]:
    """Read examples with their numbers; `in_lines`: each part is a line, otherwise parts contain their line ends."""
    examples: dict[str, WorkedExample] = {}
    for number, tree in trees[:MAX_SHOTS]:
        example = _example(tree, number, problems, in_lines=in_lines)
        if example is not None and example.id in examples:
            problems.error(tree.at, f"the id {quoted(example.id)} occurs twice", "use each id once")
        elif example is not None:
            examples[example.id] = example
    if len(trees) > MAX_SHOTS:
        problems.error(trees[MAX_SHOTS][1].at, f"more than {MAX_SHOTS:,} examples", "keep the best")
    if not trees and not problems.entries:
        problems.error(Location(0), "the file has no worked example")
    if problems.entries:
        raise InputError(problems.sorted()[0].format(where))
    return tuple(examples.values())


def _example(tree: Tree, number: int, problems: Problems, *, in_lines: bool) -> WorkedExample | None:
    """Return an example, or None if it is not a table."""
    if not isinstance(tree, Table):
        problems.error(tree.at, "an example must be a table", f"its keys are {', '.join(KEYS)}")
        return None
    keys = Keys(tree, KEYS, "", problems)
    if "question" not in keys:
        keys.error("question", "the example has no question")
    listed = keys.tree("parts")
    items = listed.items if isinstance(listed, Items) else ()
    if not items:
        keys.error("parts", "the example has no parts", "list its lines; write a call as `- calculator: 1 + 1`")
    parts = tuple(part for item in items if (part := _part(item, problems)) is not None)
    name, kind, question = keys.text("id") or str(number), keys.text("kind"), keys.text("question")
    return WorkedExample(name, kind, question, _in_lines(parts) if in_lines else parts, keys.text("answer"))


def _part(item: Tree, problems: Problems) -> str | ExampleCall | None:
    if isinstance(item, Scalar) and item.value is not None:
        return item.text
    entries = item.entries if isinstance(item, Table) else ()
    recorded = next((entry for entry in entries if entry.key == RESULT), None)
    calls = [entry for entry in entries if entry.key != RESULT]
    result = "" if recorded is None else _plain(recorded)
    text = _plain(calls[0]) if len(calls) == 1 else None
    if text is None or result is None:
        hint = "quote a line that contains `: `; write a call as `calculator: 1 + 1`"
        problems.error(item.at, "a part must be a line of text or one call", hint)
        return None
    return ExampleCall(calls[0].key, text, result)


def _plain(entry: Entry) -> str | None:
    """Return an input as the text of a call: a scalar as written, several arguments as a JSON object."""
    if isinstance(entry.value, Scalar):
        return None if entry.value.value is None else entry.value.text
    return canonical(to_json(entry.value)).decode() if isinstance(entry.value, Table) else None


def _in_lines(parts: tuple[str | ExampleCall, ...]) -> tuple[str | ExampleCall, ...]:
    """Insert the line ends between parts that are lines; they belong to the text beside a call."""
    made: list[str | ExampleCall] = []
    for part in parts:
        if made and isinstance(part, str):
            made.append(f"\n{part}")
            continue
        if made and isinstance(made[-1], str):
            made[-1] += "\n"
        elif made:
            made.append("\n")
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
    """A question with its answer, and their line numbers."""

    line: int
    question: list[str] = field(default_factory=list[str])
    answer: list[str] = field(default_factory=list[str])
    answered: int = 0


def read_transcripts(text: str, where: str) -> tuple[WorkedExample, ...]:
    """Read a text of questions and answers; the id of an example is the line of its question.

    A last question with an empty answer is omitted: a prompt ends with it.

    Raises:
        InputError: a question or an answer is missing, or a call is not closed: `where:line: message; hint`.
    """
    blocks = list(_blocks(text, where))
    if blocks and not _joined(blocks[-1].answer):
        blocks.pop()
    made = tuple(_worked(block, where) for block in blocks)
    if not made:
        raise InputError(f"{where}: the file has no worked example; write `Q: …` and below it `A: …`")
    return made


def wrong_results(
    examples: Iterable[WorkedExample], result_of: ResultOf
) -> Iterator[tuple[WorkedExample, ExampleCall, str]]:
    """Yield the recorded results that differ from those of the tools by more than 0.5 %, with the results of the tools.

    An example that contradicts its tool teaches a model not to trust the tool.
    """
    for worked in examples:
        for part in worked.parts:
            if isinstance(part, str) or not part.result:
                continue
            try:
                result = result_of(part.tool, part.input)
            except TaiwaError as error:
                result = f"error: {error.message}"
            # The terms of an equation may be in any order.
            one, other = (sorted(re.findall(r"[^\s+,→⟶>-]+|-(?=\d)[^\s,]+", each)) for each in (part.result, result))
            if len(one) != len(other) or not all(map(_close, one, other)):
                yield worked, part, result


def _blocks(text: str, where: str) -> Iterator[_Block]:
    block: _Block | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if match := QUESTION.match(line):
            if block is not None:
                yield _checked(block, where)
            block = _Block(number, [line[match.end() :].removeprefix(" ")])
        elif match := ANSWER.match(line):
            if block is None or block.answered:
                raise _fault(where, number, "an answer without a question", "begin the question with `Q:`")
            block.answered = number
            block.answer.append(line[match.end() :].removeprefix(" "))
        elif block is not None:
            (block.answer if block.answered else block.question).append(line)
    if block is not None:
        yield _checked(block, where, last=True)


def _checked(block: _Block, where: str, *, last: bool = False) -> _Block:
    if not _joined(block.question):
        raise _fault(where, block.line, "an empty question", "write it after `Q:`")
    if not _joined(block.answer) and not last:
        raise _fault(where, block.line, "a question without an answer", "write the answer below it, after `A:`")
    for number, line in enumerate(block.answer, block.answered):
        if match := OPENED.search(line):
            words = quoted(line[match.start() :])
            raise _fault(where, number, f"a call is not closed: {words}", "write it as << Calculator >>")
    return block


def _worked(block: _Block, where: str) -> WorkedExample:
    text = _joined(block.answer)
    parts = _parts(decode(text, InlineFormat(), NAMES))
    if not any(isinstance(part, str) and part.strip() for part in parts):
        raise _fault(where, block.answered, "an answer without text", "end it with a line that states the number")
    question, answer = _joined(block.question), last_number(text)
    return WorkedExample(str(block.line), "", question, parts, answer, InlineFormat().name, text)


def _parts(events: Iterable[ScanEvent]) -> tuple[str | ExampleCall, ...]:
    """Return text and calls; the input of a call is removed from the text before it, its result from the text after it."""
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


def _without(words: str, argument: str) -> str:
    """Remove the input from the end of a text: on the last line, or as the last two lines."""
    head, newline, line = words.rstrip("\n").rpartition("\n")
    at = line.rfind(argument)
    if argument and at >= 0 and BEHIND.match(line, at + len(argument)):
        return f"{head}{newline}{line[:at]}"
    if " -> " in argument and line.strip() and head:
        above, newline, _ = head.rpartition("\n")
        return f"{above}{newline}"
    return words


def _joined(lines: list[str]) -> str:
    return "\n".join(lines).strip()


def _close(one: str, other: str) -> bool:
    try:
        return abs(float(one) - float(other)) <= CLOSE_ENOUGH * abs(float(other))
    except ValueError:
        return one == other


def _fault(where: str, line: int, message: str, hint: str) -> InputError:
    return InputError(Problem(line, 1, message, hint).format(where))
