"""Text formats of tool calls: tagged, inline (MultiTool-CoT), fence (ToRA), react (ReAct), gsm (GSM8K).

`decode` splits a finished transcript into text, calls and results; `encode` is its inverse; `readable_answer` leaves the calls
out. A scanner, which `loops.TextLoop` feeds, finds the calls in a streamed text, however it is cut into chunks: text in, matches
out. A call counts only outside code blocks and inline code, and where its format allows it. Text that the program inserts is
skipped and never scanned. Calls in the protocol of a provider are assembled in `taiwa.models.http_api.stream_decoder`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Literal, Protocol, TypeAlias

from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.messages import ToolSpec
from taiwa.kernel.serialization import Json, read_exact_json, value

MAX_INPUT_CHARS = 1_000

MAX_TAIL_CHARS = MAX_INPUT_CHARS + 200

MAX_HEAD_CHARS = 80

MAX_BLOCK_CHARS = 20_000

MAX_BLOCK_LINE_CHARS = 200

LINES = re.compile(r"[^\n]*\n|[^\n]+")

FENCE = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})(?P<rest>[^\n]*)")


@value
class CallMatch:
    """A call that a text asks for.

    `end` is its end in the text that was fed last, `size` its total length in characters. `number` is the part that the
    result must repeat, such as the number of an action. A `final` match calls no tool: its input is the answer.
    """

    name: str
    input: str
    end: int
    size: int = 0
    number: str = ""
    final: bool = False


class Scanner(Protocol):
    """Finds the calls of a tool-call format; `copy.copy` gives an independent scanner of the same position."""

    def feed(self, text: str) -> CallMatch | None:
        """Read the next text up to the end of the first call; the caller feeds the rest again."""

    def skip(self, text: str) -> None:
        """Move past text that the program inserted, without scanning it."""

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a call that lacks only the format's `close`."""


MatchReader: TypeAlias = Callable[[re.Match[str], tuple[str, ...]], CallMatch | None]
"""Creates a call from a match, the lines before it and the text before it on its line; None if it is not a call."""


@value
class CallPattern:
    """The patterns of calls within a line: `closed` for a complete call, which ends with `last`, `opened` for an unfinished
    one.

    `context_lines` is the number of preceding lines that `read` needs. An `anchored` call is a complete line.
    """

    last: str
    closed: re.Pattern[str]
    opened: re.Pattern[str]
    read: MatchReader
    context_lines: int = 0
    anchored: bool = False


class LineScanner:
    """Finds calls within a line. It keeps the start and end of the current line, and whether they are code."""

    __slots__ = ("_before", "_dropped", "_fence", "_head", "_pattern", "_tail", "_ticks")

    def __init__(self, pattern: CallPattern) -> None:
        self._pattern = pattern
        self._before: tuple[str, ...] = ()
        self._fence = ""
        self._head = ""
        self._tail = ""
        self._ticks = 0
        self._dropped = 0

    def feed(self, text: str) -> CallMatch | None:
        """Read the next text up to the end of the first call; the caller feeds the rest again."""
        done = 0
        last = self._pattern.last
        for match in LINES.finditer(text):
            line = match[0]
            before = len(self._tail)
            self._tail += line
            self._head += line[: MAX_HEAD_CHARS - len(self._head)]
            if last in self._tail[max(before - len(last) + 1, 0) :] and (call := self._first(self._pattern.closed)):
                end = done + call.end - before
                self._forget(call.end)
                self._tail, self._before = "", ()
                if line.endswith("\n") and end == match.end():
                    self._end_line()
                return replace(call, end=end)
            done = match.end()
            if line.endswith("\n"):
                self._end_line()
            else:
                self._forget(len(self._tail) - MAX_TAIL_CHARS)
        return None

    def skip(self, text: str) -> None:
        """Move past text that the program inserted, without scanning it."""
        _, newline, rest = text.rpartition("\n")
        if newline:
            self._end_line()
        self._dropped += len(self._tail) + len(rest)
        self._ticks += self._tail.count("`")
        self._tail = ""

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a call that lacks only the format's `close`."""
        return self._first(self._pattern.opened) is not None

    def _first(self, pattern: re.Pattern[str]) -> CallMatch | None:
        """Return the first call that is not in code, with its end in the tail."""
        if self._fence or FENCE.match(self._head) or (self._pattern.anchored and self._dropped):
            return None
        for match in pattern.finditer(self._tail):
            if (self._ticks + self._tail.count("`", 0, match.start())) % 2 == 0:
                call = self._pattern.read(match, (*self._before, self._tail[: match.start()]))
                if call is not None:
                    return call
        return None

    def _forget(self, length: int) -> None:
        """Drop the start of the line's tail; keep the number of its characters and backticks."""
        if length > 0:
            self._ticks += self._tail.count("`", 0, length)
            self._tail = self._tail[length:]
            self._dropped += length

    def _end_line(self) -> None:
        self._fence = fence_after(self._head, self._fence)
        if self._pattern.context_lines and self._tail.strip():
            self._before = (*self._before, self._tail.strip())[-self._pattern.context_lines :]
        self._head, self._tail, self._ticks, self._dropped = "", "", 0, 0


class BlockScanner:
    """Finds closed code blocks that are labelled with the name of a tool; `tools` maps labels in lower case to names."""

    __slots__ = ("_block", "_fence", "_line", "_name", "_size", "_tools")

    def __init__(self, tools: Mapping[str, str]) -> None:
        self._tools = tools
        self._fence = ""
        self._line = ""
        self._name = ""
        self._block = ""
        self._size = 0

    def feed(self, text: str) -> CallMatch | None:
        """Read the next text up to the end of the first call; the caller feeds the rest again."""
        for match in LINES.finditer(text):
            line = match[0]
            self._line += line[: MAX_BLOCK_LINE_CHARS - len(self._line)]
            self._size += len(line)
            if self._name:
                self._block = (self._block + line)[: MAX_BLOCK_CHARS + 1]
            if line.endswith("\n") and (call := self._end_line(match.end())):
                return call
        return None

    def skip(self, text: str) -> None:
        """Move past text that the program inserted, without scanning it."""
        if "\n" in text:
            self._line = ""
        rest = text.rpartition("\n")[2].replace("`", "'").replace("~", "-")
        self._line += rest[: MAX_BLOCK_LINE_CHARS - len(self._line)]

    @property
    def open(self) -> bool:
        """Whether the text so far ends in the closing marks of a block, which lack only the end of their line."""
        return bool(self._name) and not fence_after(self._line, self._fence)

    def _end_line(self, end: int) -> CallMatch | None:
        line, self._line = self._line, ""
        was, self._fence = self._fence, fence_after(line, self._fence)
        if self._fence and not was:
            opening = FENCE.match(line)
            words = opening["rest"].split() if opening else []
            self._name = self._tools.get(words[0].casefold(), "") if len(words) == 1 else ""
            self._block, self._size = "", len(line)
        elif was and not self._fence and self._name:
            name, block = self._name, self._block
            self._name = self._block = ""
            if len(block) <= MAX_BLOCK_CHARS:
                code = block.rstrip("\n").rpartition("\n")[0].removesuffix("\r") if block.count("\n") > 1 else ""
                return CallMatch(name, code, end, self._size)
        return None


def fence_after(line: str, fence: str) -> str:
    """Return the marks of the code block that is open after a line, '' for none; `fence` are those open before it.

    >>> fence_after("```python", ""), fence_after("x", "```"), fence_after("```", "```")
    ('```', '```', '')
    """
    match = FENCE.match(line)
    if match is None:
        return fence
    marks, rest = match["marks"], match["rest"]
    if not fence:
        return "" if "`" in rest and marks[0] == "`" else marks
    return "" if marks.startswith(fence) and not rest.strip() else fence


class ToolCallFormat(Protocol):
    """How calls and results are written in a text."""

    name: ClassVar[str]
    stops: ClassVar[tuple[str, ...]]
    """Stop strings for the server; the caller appends the one that was met before scanning."""
    close: ClassVar[str]
    """The end that an `open` call lacks; a server that stopped there may not report it."""
    opening: ClassVar[str] = ""
    """The beginning of a call with `{name}`, if every `<<` of a text can be bound to be one of a known tool."""

    explanation: ClassVar[str]
    """The description of calls for the model, with the fields of the format as `{self.NAME}`."""

    def instructions(self, tools: Sequence[ToolSpec], *, forbid_own_results: bool = True) -> str:
        """Describe how calls are written, and the tools; `forbid_own_results` forbids the model to write results itself."""
        explanation = self.explanation.format(self=self)
        return f"{explanation}{FORBID_OWN_RESULTS * forbid_own_results}\n\n{self.list_tools(tools)}"

    def list_tools(self, tools: Sequence[ToolSpec]) -> str:
        """List the tools as the instructions do."""
        return list_tools(tools, self.write_call)

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Make a scanner for calls of these tools, and for evident calls of an unknown tool."""

    def parse_arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Parse the input of a call.

        Raises:
            ToolError: the input does not give the arguments that the tool requires.
        """
        return parse_arguments(spec, text, self.write_call)

    def write_call(self, name: str, text: str, after: str = "", number: str = "") -> str:
        """Write a call with the input `text` as in a worked example, after the text `after`."""

    def write_result(self, result: str, number: str = "") -> str:
        """Write the result that directly follows the call of that number: escaped, cut, on one line."""

    def result_end(self, text: str, start: int) -> int:
        """Return the end of the result that begins at `start` of a finished transcript; `start` if none is marked."""


CLOSE = ">>"

UNKNOWN_CALL = (
    rf"<<(?P<other>[^\W\d](?:[\w-]| (?=[\w-])){{0,63}})[:：](?P<other_input>(?:(?!<<|>>).){{0,{MAX_INPUT_CHARS}}})>>"
)

TAGGED_INSTRUCTIONS = """\
Where you need a tool, write its call as <<name: input>>, on one line: what the tool gives is put right behind it, and you \
go on from there."""


@value
class TaggedFormat(ToolCallFormat):
    """Calls as `<<name: input>>`, anywhere in a line; the built-in examples use it.

    Names are compared without case, and spaces equal underscores; `<<name(input)>>` is a call too. An unknown name counts only in the
    exact form `<<name:input>>`.
    """

    name = "tagged"
    stops = (CLOSE,)
    close = CLOSE
    opening = "<<{name}: "
    explanation = TAGGED_INSTRUCTIONS

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Make a scanner for calls."""
        longest = (re.escape(name).replace(r"\-", "-") for name in sorted(names, key=len, reverse=True))
        spellings = (re.sub(r"[_-]", "[ _-]?", name) for name in longest)
        known = rf"(?i:{'|'.join(spellings) or '(?!)'})"
        opening = rf"<<[ \t]{{0,8}}(?P<name>{known})[ \t]{{0,8}}(?:[:：]|(?P<bracket>\())(?P<input>(?:(?!>>).){{0,{MAX_INPUT_CHARS}}})"
        closed = re.compile(f"{opening}>>|{UNKNOWN_CALL}")
        return LineScanner(CallPattern(CLOSE, closed, re.compile(rf"{opening}\Z"), _read_tagged))

    def write_call(self, name: str, text: str, after: str = "", number: str = "") -> str:  # noqa: ARG002  (protocol)
        """Write a call."""
        return f"<<{name}: {text}>>"

    def write_result(self, result: str, number: str = "") -> str:  # noqa: ARG002  (protocol)
        """Write a result."""
        return f" {sanitize_result(result)}"

    def result_end(self, text: str, start: int) -> int:  # noqa: ARG002  (protocol)
        """Return `start`: nothing marks a result, so it stays in the text."""
        return start


QUOTED_WHOLE = re.compile(r"""\A(["'])([^"']*)\1\Z""")


def _read_tagged(match: re.Match[str], before: tuple[str, ...]) -> CallMatch:  # noqa: ARG001  (MatchReader)
    parts = match.groupdict()
    text = (parts["input"] or parts.get("other_input") or "").strip()
    if parts["bracket"]:  # as a function is called
        text = QUOTED_WHOLE.sub(r"\2", text.removesuffix(")").strip())
    return CallMatch(parts["name"] or parts["other"], text, match.end(), match.end() - match.start())


InputKind: TypeAlias = Literal["expression", "formula", "equation", "words"]
"""The input in the text before a call: the expression, formula or words at the end of the line; or the two lines before."""

TOOL_TITLES = (
    ("Calculator", "calculator"), ("Molar mass list", "molar_mass"), ("Chemical reaction predictor", "stoichiometry"),
    ("Unit converter", "unit_conversion"),
)  # fmt: skip
"""Titles of tools in a text; a call is written with the first one of its tool. The tool's own name is always accepted too."""

INPUT_KINDS: tuple[tuple[str, InputKind], ...] = (
    ("calculator", "expression"), ("molar_mass", "formula"), ("stoichiometry", "equation"),
)  # fmt: skip
"""The kinds of input of the tools; every other tool reads the words on its line."""

INLINE_CALL = r"<<[ \t]{0,8}(?P<name>[^\W\d_][^<>`\n]{0,63}?)[ \t]{0,8}"

TITLE = re.compile(r"(?:[A-Z][a-z]+(?: [A-Za-z]+){0,4}|[a-z]+(?:[ _][A-Za-z]+){1,4})\Z")

VERBS = ("is", "are", "equals", "は", "是", "为", "為")

LABEL = re.compile(r"\A[^:：<>+]{1,40}[:：](?!:)\s*")

LIST_MARK = re.compile(r"\A(?:[-*•]|\(?\d{1,2}[.)])\s+")

PRODUCTS = re.compile(r"\A\W*(?:product|生成物|产物|產物)", re.IGNORECASE)

ARROW = re.compile(r"->|→|⟶|⇌|=>|<=>|⇄|(?<=\s)=(?=\s)")

SUBSTANCE_COMMA = re.compile(r"\s*(?:,\s|[，、])\s*")
"""The separator of substances in MultiTool-CoT; a formula contains no comma."""
# A colon between digits is a ratio.
LEADING = re.compile(r"[=＝]|[:：](?!\d)|(?<!\d)[:：]")
# In `24 x 365 = $<< Calculator >>` the sign belongs to the result.
CURRENCY = re.compile(r"(?<=[=＝:：])\s*(?:US)?[$€£¥￥]\s*\Z|(?<=\s)[$€£¥￥]\s*\Z")

PUNCTUATION = re.compile(r"\A(?:[\s,，:：)）]|\.(?!\d))+")

WORD_OR_OTHER = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<other>[^A-Za-z0-9０-９:.,，％%$€£¥()（）+\-*/^×·⋅÷−–＋－＊／!√π\s]+)"
)

EXPRESSION_WORDS = frozenset(("sqrt", "ln", "log", "exp", "abs", "min", "max", "round", "pi", "e", "x"))

EXPRESSION_START = re.compile(r"[\s$€£¥]*(?:[-−－+＋]?[\s$€£¥]*[0-9０-９.(（√π]|[a-z])")

FORMULA = re.compile(r"[A-Za-z0-9()\[\]{}₀-₉⁰-⁹⁺⁻+\-^]+(?:\s*[·⋅•*.]\s*[A-Za-z0-9()\[\]₀-₉]+)*[↓↑]?")

CHEMICAL = re.compile(r"(?:[A-Z][a-z]?|\((?:s|l|g|aq)\)|[\d₀-₉⁰-⁹()\[\]{}·⋅•*.↓↑^+\-⁺⁻\s])+\Z")

INLINE_INSTRUCTIONS = """\
Where you need a tool, write its input first and then its name as << Name >>: what the tool gives is put right behind it, and \
you go on from the next line."""


@value
class InlineFormat(ToolCallFormat):
    """The format of MultiTool-CoT: calls as `<< Tool >>` after their input.

    `aliases` pairs titles with names of tools, `inputs` names the kind of input of a tool. Names are compared without case,
    spaces and underscores. An unknown name counts only as a capitalised title.
    """

    name = "inline"
    stops = (CLOSE,)
    close = CLOSE
    explanation = INLINE_INSTRUCTIONS

    aliases: tuple[tuple[str, str], ...] = TOOL_TITLES
    inputs: tuple[tuple[str, InputKind], ...] = INPUT_KINDS

    def list_tools(self, tools: Sequence[ToolSpec]) -> str:
        """List the tools; an equation takes two lines."""
        return list_tools(tools, self._listed_call)

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Make a scanner for calls."""
        tools = _names_and_aliases(names, self.aliases)
        inputs = dict(self.inputs)

        def read(match: re.Match[str], before: tuple[str, ...]) -> CallMatch | None:
            title = " ".join(match["name"].split())
            name = tools.get(normalize_name(title)) or (title if TITLE.match(title) else "")
            if not name:
                return None
            *lines, line = before
            text = READ_INPUT[inputs.get(name, "words")](tuple(lines), line)
            return CallMatch(name, text[-MAX_INPUT_CHARS:], match.end(), match.end() - match.start())

        closed, opened = re.compile(INLINE_CALL + CLOSE), re.compile(INLINE_CALL + r"\Z")
        return LineScanner(CallPattern(CLOSE, closed, opened, read, context_lines=2))

    def write_call(self, name: str, text: str, after: str = "", number: str = "") -> str:  # noqa: ARG002  (protocol)
        """Write a call, on a new line if the text before it would be parsed as part of its input."""
        kind = dict(self.inputs).get(name, "words")
        call = f"{_write_sides(text) if kind == 'equation' else f'{text} '}<< {self._title(name)} >>"
        line = after.rpartition("\n")[2]
        if line.strip() and (kind == "equation" or READ_INPUT[kind]((), line + text) != text):
            return f"\n{call}"
        return call

    def write_result(self, result: str, number: str = "") -> str:  # noqa: ARG002  (protocol)
        """Write a result; the line ends with it."""
        return f" {sanitize_result(result)}\n"

    def result_end(self, text: str, start: int) -> int:
        """Return the end of the result: that of its line."""
        end = text.find("\n", start)
        return len(text) if end < 0 else end + 1

    def _title(self, name: str) -> str:
        title = next((title for title, tool in self.aliases if tool == name), "")
        return title or name.replace("_", " ").capitalize()

    def _listed_call(self, name: str, text: str) -> str:
        if dict(self.inputs).get(name) == "equation":
            return f"reactants, products on a line each, then << {self._title(name)} >>"
        return self.write_call(name, text)


def _names_and_aliases(names: Iterable[str], aliases: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Map normalised aliases and names to names; a name takes precedence over an alias."""
    return {normalize_name(alias): name for alias, name in aliases} | {normalize_name(name): name for name in names}


def _read_words(lines: tuple[str, ...], line: str) -> str:
    """Read the words on the line: from a JSON object on, or after a label."""
    text = line.strip() or (lines[-1] if lines else "")
    start = text.find("{")
    if start >= 0 and text.endswith("}"):
        return text[start:]
    return str(re.split(r"[:：]\s+|：", text)[-1]).strip()


def _read_expression(lines: tuple[str, ...], line: str) -> str:
    """Read the expression at the end of the line: after the last equals sign, without the words before it."""
    text = _without_lead(line) or _without_lead(lines[-1] if lines else "")
    text = LEADING.split(text)[-1].strip()
    start = 0
    for each in WORD_OR_OTHER.finditer(text):
        if each["other"] or each["word"].lower() not in EXPRESSION_WORDS:
            start = each.end()
    ending = PUNCTUATION.sub("", text[start:])
    # An ending that starts differently is the rest of an expression: the tool gets the complete line and reports the error.
    return ending.strip() if EXPRESSION_START.match(ending) and any(char.isdigit() for char in ending) else text


def _read_formula(lines: tuple[str, ...], line: str) -> str:
    """Read the last formula on the line; its last word if there is none."""
    text = _without_lead(line) or _without_lead(lines[-1] if lines else "")
    found = [each[0].strip(".*·") for each in FORMULA.finditer(text)]
    chemical = [each for each in found if CHEMICAL.match(each) and any(char.isupper() for char in each)]
    return (chemical or found or [text])[-1].strip()


def _read_equation(lines: tuple[str, ...], line: str) -> str:
    """Read the reactants and the products on the two lines before, or an equation on one."""
    whole = [each for each in (*lines, line) if each.strip()][-2:]
    sides = [LABEL.sub("", LIST_MARK.sub("", each)) for each in whole]
    if not sides or ARROW.search(sides[-1]):
        return sides[-1].strip() if sides else ""
    if PRODUCTS.match(whole[0]) and not PRODUCTS.match(whole[-1]):
        sides.reverse()
    return " -> ".join(SUBSTANCE_COMMA.sub(" + ", each.strip().rstrip(".,;，、")) for each in sides)


READ_INPUT: Mapping[InputKind, Callable[[tuple[str, ...], str], str]] = MappingProxyType(
    {"expression": _read_expression, "formula": _read_formula, "equation": _read_equation, "words": _read_words}
)


def _without_lead(line: str) -> str:
    """Remove the link between an input and its result at the end of a line: a colon, an equals sign, a verb."""
    while True:
        text = CURRENCY.sub("", line).rstrip(" \t:：=＝")
        verb = next((each for each in VERBS if text.endswith(each)), "")
        before = text.removesuffix(verb)
        if not verb or (verb.isascii() and before[-1:].isascii() and before[-1:].isalnum()):
            return text.strip()
        line = before


def _write_sides(text: str) -> str:
    """Write an equation as two lines and the start of a third."""
    sides = ARROW.split(text, maxsplit=1)
    return "\n".join(side.strip() for side in sides) + "\n" if len(sides) == 2 else f"{text} "


OUTPUT = "```output"

FENCE_INSTRUCTIONS = """\
Where you need a tool, write a block of code that is marked with the tool's name and holds its input, and stop there: what the \
tool gives follows as a block marked output, and you go on from there."""


@value
class FenceFormat(ToolCallFormat):
    """The format of ToRA: calls as code blocks labelled with the name of a tool; `aliases` pairs other labels with names.

    A block with any other label is only code.
    """

    name = "fence"
    stops = (OUTPUT,)
    close = "\n"
    explanation = FENCE_INSTRUCTIONS

    aliases: tuple[tuple[str, str], ...] = ()

    def list_tools(self, tools: Sequence[ToolSpec]) -> str:
        """List the tools, each as a block."""
        parts = (
            (" ".join(tool.description.split()), self.write_call(tool.name, describe_input(tool))) for tool in tools
        )
        return "Tools:\n\n" + ("\n\n".join(map("\n".join, parts)) or "(none)")

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Make a scanner for calls."""
        marks = {mark.casefold(): name for mark, name in self.aliases}
        return BlockScanner(marks | {name.casefold(): name for name in names})

    def write_call(self, name: str, text: str, after: str = "", number: str = "") -> str:  # noqa: ARG002  (protocol)
        """Write a call on lines of its own."""
        start = "" if not after or after.endswith("\n") else "\n"
        return f"{start}```{name}\n{text}\n```\n"

    def write_result(self, result: str, number: str = "") -> str:  # noqa: ARG002  (protocol)
        """Write a result as a block of output."""
        return f"{OUTPUT}\n{sanitize_result(result)}\n```\n"

    def result_end(self, text: str, start: int) -> int:
        """Return the end of a block of output."""
        if not text.startswith(f"{OUTPUT}\n", start):
            return start
        end = text.find("\n```", start + len(OUTPUT))
        if end < 0:
            return len(text)
        newline = text.find("\n", end + 1)
        return len(text) if newline < 0 else newline + 1


ACTION = (
    r"\A[ \t]{0,3}Action(?:[ \t]{1,2}(?P<number>\d{1,4}))?[ \t]?[:：][ \t]{0,8}(?P<name>[^\W\d_][\w .-]{0,63})"
    rf"\[(?P<input>[^\n]{{0,{MAX_INPUT_CHARS}}})\][ \t]{{0,8}}"
)

OBSERVATION = re.compile(r"[ \t]{0,3}Observation(?:[ \t]{1,2}\d{1,4})?[ \t]?[:：]")

TURN = re.compile(r"^[ \t]{0,3}(?:Thought|Action|Observation|Question)(?:[ \t]{1,2}\d{1,4})?[ \t]?[:：]", re.MULTILINE)

REACT_INSTRUCTIONS = """\
Take turns of Thought and Action, numbered from 1. A Thought is a line of reasoning; an Action is a line of its own that \
calls one tool, and what the tool gives follows as an Observation. Your last Action is \
{self.finish}[answer]."""


@value
class ReActFormat(ToolCallFormat):
    """The format of ReAct: calls as lines `Action n: Tool[input]`; the numbers are optional.

    `finish` is the action that ends the text with an answer. Names are compared without case, spaces and underscores.
    """

    name = "react"
    stops = ("\nObservation",)
    close = "\n"
    explanation = REACT_INSTRUCTIONS

    finish: str = "Finish"
    aliases: tuple[tuple[str, str], ...] = ()

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Make a scanner for calls."""
        tools, finish = _names_and_aliases(names, self.aliases), normalize_name(self.finish)

        def read(match: re.Match[str], before: tuple[str, ...]) -> CallMatch:  # noqa: ARG001  (MatchReader)
            action = normalize_name(match["name"])
            final = action == finish and action not in tools
            name = tools.get(action, self.finish if final else match["name"].strip())
            return CallMatch(name, match["input"].strip(), match.end(), match.end(), match["number"] or "", final)

        closed, opened = re.compile(rf"{ACTION}\r?\n"), re.compile(rf"{ACTION}\r?\Z")
        return LineScanner(CallPattern("\n", closed, opened, read, anchored=True))

    def write_call(self, name: str, text: str, after: str = "", number: str = "") -> str:
        """Write a call on a line of its own."""
        start = "" if not after or after.endswith("\n") else "\n"
        return f"{start}Action{number and ' '}{number}: {name}[{text}]\n"

    def write_result(self, result: str, number: str = "") -> str:
        """Write a result as the observation of that number."""
        return f"Observation{number and ' '}{number}: {sanitize_result(result)}\n"

    def result_end(self, text: str, start: int) -> int:
        """Return the end of an observation: the start of the next turn."""
        match = OBSERVATION.match(text, start)
        if match is None:
            return start
        turn = TURN.search(text, match.end())
        return turn.start() if turn else len(text)


# The input follows the marker directly, so that `a << b = c` is not a call.
GSM_CALL = re.compile(rf"<<(?P<input>[^\s<>=`][^<>=`\n]{{0,{MAX_INPUT_CHARS - 1}}})=")

NEVER = re.compile(r"(?!)")

GSM_INSTRUCTIONS = """\
For every calculation write <<expression= and stop there: what the {self.tool} gives is put right behind it with the closing mark, \
as in <<12*3=36>>, and you go on from there."""


@value
class GsmFormat(ToolCallFormat):
    """The format of GSM8K: calls of one tool, the calculator, as `<<expression=`.

    There are no stop strings: a server would stop at every equals sign, and nearly none of them ends a call. `close` is
    empty, because the end of a call is always in the text.
    """

    name = "gsm"
    stops = ()
    close = ""
    explanation = GSM_INSTRUCTIONS

    tool: str = "calculator"

    def list_tools(self, tools: Sequence[ToolSpec]) -> str:
        """List the calculator."""
        return list_tools([tool for tool in tools if tool.name == self.tool], self.write_call)

    def scanner(self, names: Iterable[str]) -> Scanner:  # noqa: ARG002  (a call names no tool)
        """Make a scanner for calls."""

        def read(match: re.Match[str], before: tuple[str, ...]) -> CallMatch:  # noqa: ARG001  (MatchReader)
            return CallMatch(self.tool, match["input"].strip(), match.end(), match.end() - match.start())

        return LineScanner(CallPattern("=", GSM_CALL, NEVER, read))

    def write_call(self, name: str, text: str, after: str = "", number: str = "") -> str:  # noqa: ARG002  (protocol)
        """Write a call."""
        return f"<<{text}="

    def write_result(self, result: str, number: str = "") -> str:  # noqa: ARG002  (protocol)
        """Write a result and the closing mark."""
        return f"{sanitize_result(result)}{CLOSE}"

    def result_end(self, text: str, start: int) -> int:
        """Return the end of the result: its closing mark, on the same line."""
        newline = text.find("\n", start)
        end = text.find(CLOSE, start, len(text) if newline < 0 else newline)
        opened = text.find("<<", start, end)
        return start if end < 0 or opened >= 0 else end + len(CLOSE)


TOOL_CALL_FORMATS: Mapping[str, Callable[[], ToolCallFormat]] = MappingProxyType(
    {"tagged": TaggedFormat, "inline": InlineFormat, "gsm": GsmFormat, "react": ReActFormat, "fence": FenceFormat}
)


def tool_call_format(name: str) -> ToolCallFormat:
    """Return the tool-call format of a name.

    >>> tool_call_format("tagged")
    TaggedFormat()

    Raises:
        InputError: the name is unknown.
    """
    if name not in TOOL_CALL_FORMATS:
        raise InputError(f"unknown tool-call format {name!r}; choose one of {', '.join(TOOL_CALL_FORMATS)}")
    return TOOL_CALL_FORMATS[name]()


@value(tag="text-segment")
class TextSegment:
    """Text that is neither a call nor a result."""

    text: str


@value(tag="call-text")
class CallText:
    """A call as it was written."""

    text: str
    name: str
    input: str
    final: bool = False


@value(tag="result-text")
class ResultText:
    """The text behind a call that is its result."""

    text: str


ScanEvent: TypeAlias = TextSegment | CallText | ResultText


def decode(text: str, tool_format: ToolCallFormat, names: Iterable[str]) -> tuple[ScanEvent, ...]:
    """Split a finished transcript into text, calls and results.

    >>> [type(each).__name__ for each in decode("It is <<calculator: 1+1>> 2.", TaggedFormat(), ["calculator"])]
    ['TextSegment', 'CallText', 'TextSegment']
    """
    scanner, events, at, start = tool_format.scanner(names), list[ScanEvent](), 0, 0
    while call := scanner.feed(text[at:]):
        at += call.end
        first = max(at - call.size, start)
        end = tool_format.result_end(text, at)
        called = CallText(text[first:at], call.name, call.input, call.final)
        events += (event for event in (TextSegment(text[start:first]), called, ResultText(text[at:end])) if event.text)
        scanner.skip(text[at:end])
        at = start = end
    if text[start:]:
        events.append(TextSegment(text[start:]))
    return tuple(events)


def encode(events: Iterable[ScanEvent]) -> str:
    """Join the parts of a transcript: the inverse of `decode`, byte for byte."""
    return "".join(event.text for event in events)


MONEY = re.compile(
    r"(?<![\d.,])\d[\d,]*\.\d(?=\s?(?:dollars?|euros?|pounds?|USD|EUR|GBP|ドル|ユーロ|ポンド|美元|欧元|€|£))"
)
"""A sum with one decimal."""


class ReadableText:
    """The text of an answer while it streams: results of calls are shown without the calls.

    >>> shown = ReadableText()
    >>> shown.text("The total is ") + shown.result(" 8.4") + shown.text(" dollars.") + shown.end()
    'The total is 8.40 dollars.'
    """

    def __init__(self) -> None:
        self._held = ""
        self._last = ""

    def text(self, text: str) -> str:
        """Return what to show of the next text of the model."""
        return self._show(MONEY.sub(r"\g<0>0", self.end() + text, count=1) if self._held else text)

    def result(self, text: str) -> str:
        """Take the result of a call, which is shown with the text after it."""
        before = self._show(self.end())
        self._held = text.lstrip(" ") if self._last.endswith((" ", "\n")) or not self._last else text
        return before

    def end(self) -> str:
        """Return what was held back."""
        held, self._held = self._held, ""
        return held

    def _show(self, text: str) -> str:
        self._last = text or self._last
        return text


def readable_answer(text: str, tools: Iterable[str]) -> str:
    """Return an answer without the calls of the tools in its text.

    >>> readable_answer("That is <<calculator: 2*4.2>> 8.4 dollars.", ["calculator"])
    'That is 8.40 dollars.'
    """
    names = tuple(tools)
    if not names or "<<" not in text:
        return text
    scanner, shown, parts = TaggedFormat().scanner(names), ReadableText(), list[str]()
    while call := scanner.feed(text):
        parts.append(shown.text(text[: max(call.end - call.size, 0)]))
        text = text[call.end :]
        result = re.match(r" ?\S*", text)
        if call.name in names and result:
            parts.append(shown.result(result[0]))
            text = text[result.end() :]
    return "".join((*parts, shown.text(text), shown.end()))


FORBID_OWN_RESULTS = " Never write a result of a tool yourself."

MAX_RESULT_CHARS = 500

READ_CHARS_PER_SHOWN = 20
"""Characters of a result to read for each one that may be shown."""

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
    # Adjacent text could turn a single marker into a double one.
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
        data = read_exact_json(text)
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
    written = ((write_call(tool.name, describe_input(tool)).strip(), tool.description.split()) for tool in tools)
    return "Tools:\n" + ("\n".join(f"- {call}: {' '.join(words)}" for call, words in written) or "(none)")


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
