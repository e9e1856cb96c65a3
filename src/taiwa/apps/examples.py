"""Worked examples: read them from YAML, JSONL and MultiTool-CoT transcripts, check them against the tools, and show them to a model."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import TypeAlias

from taiwa.apps.app_file import Keys, Problem, Problems, quoted
from taiwa.apps.catalog import printable_path, read_bounded
from taiwa.flows.solve.solve import last_number
from taiwa.flows.solve.tool_call_formats import CallText, InlineFormat, ResultText, ScanEvent, ToolCallFormat, decode
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError, ToolError
from taiwa.kernel.messages import Message, Text, ToolCall, ToolResult, assistant, user
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json, canonical, digest, value
from taiwa.yamlfile import Entry, Items, Location, Scalar, Table, Tree, parse_yaml, to_json

# --- worked examples --------------------------------------------------------------------------------------------------
# Worked examples: a question, the reasoning with its tool calls, and the answer.
#
# An example contains calls without results: rendering executes the real tools, so an example shows what a tool returns. Text
# and inputs refer to results, so a number cannot disagree with the call that it comes from: `{2}` is the first number of the
# second result, `{2:3}` that number with three decimals, and `{1:O2}` the number before O2 in the first result. A literal `{`
# before a digit is written `{{`.

ResultOf: TypeAlias = Callable[[str, str], str]
"""Executes a tool: (name, input) -> result as a model reads it."""

ArgumentsOf: TypeAlias = Callable[[str, str], dict[str, Json]]
"""Parses the input of a tool: (name, input) -> arguments."""

REFERENCE = re.compile(r"\{\{|\{(?P<number>[1-9][0-9]?)(?::(?P<what>[^{}\s]+))?\}")

NUMBER = re.compile(r"(?<![A-Za-z0-9_)\]}])-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:e-?[0-9]+)?")

MAX_DECIMALS = 9

COLON = "{input}: {result}"
STATEMENTS = {"calculator": "{input} = {result}", "molar_mass": COLON, "unit_conversion": COLON}
"""The text for a call that is not shown as a call; for other tools, only the result is stated."""


@value(tag="example-call")
class ExampleCall:
    """One call. A recorded `result` is shown as it is; without one the tool is executed."""

    tool: str
    input: str
    result: str = ""


@value(tag="worked-example")
class WorkedExample:
    """A worked example.

    `parts` joined are the rationale, whose last line states the answer; text contains its own line ends, a call has none.
    If the example was read from a transcript, `written` is that text, and `notation` the name of its tool-call format.
    """

    id: str
    kind: str
    question: str
    parts: tuple[str | ExampleCall, ...]
    answer: str = ""
    notation: str = ""
    written: str = ""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that it calls, each once."""
        return tuple(dict.fromkeys(part.tool for part in self.parts if isinstance(part, ExampleCall)))


def select_examples(examples: Iterable[WorkedExample], n: int, seed: int = 0) -> tuple[WorkedExample, ...]:
    """Select n examples: the first n of an order that only the seed decides, in which the kinds alternate.

    A selection therefore begins with every smaller one of the same seed, and the order of `examples` does not matter.

    Raises:
        InputError: there are fewer than n examples.
    """
    kinds: dict[str, list[WorkedExample]] = {}
    for example in sorted(examples, key=lambda each: digest((seed, each.id))):
        kinds.setdefault(example.kind, []).append(example)
    rounds = max(map(len, kinds.values()), default=0)
    order = [each[turn] for turn in range(rounds) for each in kinds.values() if turn < len(each)]
    if not 0 <= n <= len(order):
        raise InputError(f"n must be 0 to {len(order)}, the number of worked examples that fit; got {n}")
    return tuple(order[:n])


FIRST = ("bare-expression", "alumina-crucible", "limestone-cleaner", "rusty-nail", "snail")
"""The examples that small models solve most questions with: one for each kind of step, and short."""


def first_examples(examples: Iterable[WorkedExample]) -> tuple[WorkedExample, ...]:
    """Move the examples of `FIRST` to the front."""
    rank = {name: at for at, name in enumerate(FIRST)}
    return tuple(sorted(examples, key=lambda each: rank.get(each.id, len(rank))))


def evaluate_parts(example: WorkedExample, result_of: ResultOf) -> tuple[str | ExampleCall, ...]:
    """Evaluate the parts of an example: replace references by numbers, and give every call its result.

    Raises:
        InputError: a reference names a later call, or something that is not in the result.
        ToolError: a tool rejects an input.
    """
    results: list[str] = []
    done: list[str | ExampleCall] = []
    for part in example.parts:
        if isinstance(part, str):
            done.append(_resolve(part, results, example.id))
            continue
        text = _resolve(part.input, results, example.id)
        call = ExampleCall(part.tool, text, part.result or result_of(part.tool, text))
        results.append(call.result)
        done.append(call)
    return tuple(done)


def render(
    example: WorkedExample, tool_format: ToolCallFormat, result_of: ResultOf, shown: Collection[str] | None = None
) -> tuple[Message, Message]:
    """Render an example as a question and its rationale.

    A call of a tool that is not in `shown` (None: all are), or that the format cannot write, becomes text that states the
    result.

    Raises:
        InputError: as `evaluate_parts`.
        ToolError: a tool rejects an input.
    """
    if example.written and example.notation == tool_format.name and (shown is None or set(example.tools) <= set(shown)):
        return user(example.question), assistant(example.written)
    writer = _Writer(tool_format, example.tools if shown is None else shown)
    for part in evaluate_parts(example, result_of):
        if isinstance(part, str):
            writer.add_text(part)
        elif not writer.add_call(part):
            writer.add_text(STATEMENTS.get(part.tool, "{result}").format(input=part.input, result=part.result))
    return user(example.question), assistant(writer.text)


class _Writer:
    """Writes a rationale: each part begins a line, and each call is read back like the model's."""

    def __init__(self, tool_format: ToolCallFormat, names: Collection[str]) -> None:
        self.text = ""
        self._format = tool_format
        self._names = names
        self._scanner = tool_format.scanner(names)
        self._count = 0

    def add_text(self, text: str) -> None:
        if self.text.endswith("\n"):
            text = text.removeprefix("\n")
        self.text += text
        while call := self._scanner.feed(text):
            text = text[call.end :]

    def add_call(self, example: ExampleCall) -> bool:
        """Write a call and its result; write nothing and return False if it would not be parsed as that call."""
        if example.tool not in self._names:
            return False
        written = self._format.write_call(example.tool, example.input, self.text, str(self._count + 1))
        scanner = copy(self._scanner)
        call = scanner.feed(written)
        if call is None or (call.name, call.input, call.end) != (example.tool, example.input, len(written)):
            return False
        result = self._format.write_result(example.result, call.number)
        scanner.skip(result)
        self._scanner, self.text, self._count = scanner, self.text + written + result, self._count + 1
        return True


def render_native(example: WorkedExample, result_of: ResultOf, arguments_of: ArgumentsOf) -> tuple[Message, ...]:
    """Render an example as messages with function calls: the text before a call is in the message that makes the call.

    Raises:
        InputError: as `evaluate_parts`.
        ToolError: a tool rejects an input.
    """
    messages = [user(example.question)]
    text = ""
    for number, part in enumerate(evaluate_parts(example, result_of), 1):
        if isinstance(part, str):
            text += part
            continue
        call = ToolCall(part.tool, canonical(arguments_of(part.tool, part.input)).decode(), f"{example.id}-{number}")
        before = (Text(text.strip()),) if text.strip() else ()
        messages.append(Message("assistant", (*before, call)))
        messages.append(Message("tool", (ToolResult(part.result, part.tool, call.id),)))
        text = ""
    return (*messages, assistant(text.strip()))


def render_answer_only(example: WorkedExample, result_of: ResultOf) -> tuple[Message, Message]:
    """Render an example as a question and the last line of its rationale.

    Raises:
        InputError: as `evaluate_parts`.
        ToolError: a tool rejects an input.
    """
    last = evaluate_parts(example, result_of)[-1]
    text = last.result if isinstance(last, ExampleCall) else last
    return user(example.question), assistant(text.strip().rpartition("\n")[2])


def escape_references(text: str) -> str:
    """Escape a text so that nothing in it is a reference.

    >>> escape_references("{1} and {x}")
    '{{1} and {x}'
    """
    return re.sub(r"\{(?=[{0-9])", "{{", text)


def _resolve(text: str, results: Sequence[str], name: str) -> str:
    def resolve_one(match: re.Match[str]) -> str:
        if match[0] == "{{":
            return "{"
        place, what = int(match["number"]), match["what"] or ""
        if place > len(results):
            why = f"{match[0]} names call {place}, and only {len(results)} come before it"
            raise InputError(f"worked example {name}: {why}")
        result = results[place - 1]
        number = _first_number(result) if not what or what.isdecimal() else _number_before(result, what)
        if number is None:
            raise InputError(f"worked example {name}: {match[0]} is not in the result {result[:80]!r}")
        return _with_decimals(number, int(what)) if what.isdecimal() else number

    return REFERENCE.sub(resolve_one, text)


def _first_number(result: str) -> str | None:
    number = NUMBER.search(result)
    return None if number is None else number[0].replace(",", "")


def _number_before(result: str, word: str) -> str | None:
    """Return the number before a word, as in `4Fe + 3O2`; a word without one counts as 1."""
    match = re.search(rf"(?<![^\s])(?P<count>[0-9][0-9./]*)?\s?{re.escape(word)}(?![^\s,;.])", result)
    return None if match is None else match["count"] or "1"


def _with_decimals(number: str, decimals: int) -> str:
    step = Decimal(1).scaleb(-min(decimals, MAX_DECIMALS))
    return f"{Decimal(number).quantize(step, ROUND_HALF_UP):f}"


# --- files of examples ------------------------------------------------------------------------------------------------

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
    return read_shots_text(shots_text(path), printable_path(path))


def shots_text(path: Path | str) -> str:
    """Return the text of a file of worked examples, with its suffix as the first line.

    Raises:
        InputError: it cannot be read.
    """
    path = Path(path)
    too_large = f"has more than {MAX_BYTES:,} bytes; worked examples are for one prompt"
    return f"{path.suffix.lower()}\n{read_bounded(path, MAX_BYTES, too_large, where=printable_path(path))[1]}"


def read_shots_text(text: str, where: str) -> tuple[WorkedExample, ...]:
    """Read worked examples from a text with the suffix of its file as the first line; `where` names it in errors.

    Raises:
        InputError: it has an error: `where:line: message; hint`.
    """
    suffix, _, text = text.partition("\n")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if suffix in (".yaml", ".yml"):
        return _from_yaml(text, where)
    if suffix in (".jsonl", ".ndjson"):
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
    """Insert the line ends between parts that are lines; they belong to the text next to a call."""
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
