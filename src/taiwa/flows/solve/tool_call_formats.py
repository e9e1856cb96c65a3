"""Text formats of tool calls: tagged, MultiTool-CoT, ToRA, ReAct, GSM8K; scanner, decode, encode."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias
from typing import Protocol as Structure

from taiwa.flows.solve import rationale
from taiwa.flows.solve.find_tool_calls import (
    FENCE,
    LONGEST_INPUT,
    PIECE,
    CallMatch,
    Form,
    LineScanner,
    Reading,
    Scanner,
    fence,
)
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import ToolSpec
from taiwa.kernel.records import Json, value

__all__ = [
    "PROTOCOLS",
    "CallText",
    "Fence",
    "Gsm",
    "Inline",
    "ReAct",
    "ResultText",
    "ScanEvent",
    "Tagged",
    "TextSegment",
    "ToolCallFormat",
    "decode",
    "encode",
    "tool_call_format",
]


CLOSE = ">>"

UNKNOWN = rf"<<(?P<other>[^\W\d][\w-]{{0,63}})[:：](?P<odd>(?:(?!<<|>>).){{0,{LONGEST_INPUT}}})>>"

TAGGED_HOW = """\
Where you need a tool, write its call as <<name: input>>, on one line: what the tool gives is put right behind it, and you \
go on from there."""


@value
class Tagged:
    """Calls as `<<name: input>>`, anywhere in a line; our own examples are written so.

    Case makes no difference to a name, nor do blanks for underscores. A name that no tool has counts only in the exact form `<<name:input>>`.
    """

    @property
    def name(self) -> str:
        """What the protocol is called."""
        return "tagged"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a server may be asked to stop."""
        return (CLOSE,)

    @property
    def close(self) -> str:
        """What an unfinished call lacks."""
        return CLOSE

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written, and which tools there are."""
        return f"{TAGGED_HOW}{rationale.OWN_RESULTS * guarded}\n\n{rationale.listed(tools, self.call)}"

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls."""
        spelled = (
            re.sub(r"[_-]", "[ _-]?", re.escape(name).replace(r"\-", "-"))
            for name in sorted(names, key=len, reverse=True)
        )
        known = rf"(?i:{'|'.join(spelled) or '(?!)'})"
        opening = rf"<<[ \t]{{0,8}}(?P<name>{known})[ \t]{{0,8}}[:：](?P<input>(?:(?!>>).){{0,{LONGEST_INPUT}}})"
        closed = re.compile(f"{opening}>>|{UNKNOWN}")
        return LineScanner(Form(CLOSE, closed, re.compile(rf"{opening}\Z"), _read))

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return rationale.arguments(spec, text, self.call)

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a call."""
        return f"<<{name}: {text}>>"

    def splice(self, result: str, mark: str = "") -> str:  # noqa: ARG002  (the same)
        """Write a result."""
        return f" {rationale.shown(result)}"

    def recorded(self, text: str, start: int) -> int:  # noqa: ARG002  (the same)
        """Say where a recorded result ends: nothing marks that here, so it stays with the words."""
        return start


def _read(found: re.Match[str], before: tuple[str, ...]) -> CallMatch:  # noqa: ARG001  (a reading's)
    parts = found.groupdict()
    name, given = parts["name"] or parts["other"], parts["input"] or parts.get("odd") or ""
    return CallMatch(name, given.strip(), found.end(), found.end() - found.start())


Reads: TypeAlias = Literal["expression", "formula", "equation", "words"]
"""What of the text before a call is its input: the expression, formula or words that end the line; the two lines before."""

ALIASES = (
    ("Calculator", "calculator"),
    ("Molar mass list", "molar_mass"),
    ("Chemical reaction predictor", "stoichiometry"),
    ("Unit converter", "unit_conversion"),
)
"""The titles that a text may use for a tool; the first of a tool is the one we write. A tool's own name always counts, too."""

READS: tuple[tuple[str, Reads], ...] = (
    ("calculator", "expression"),
    ("molar_mass", "formula"),
    ("stoichiometry", "equation"),
)
"""What the tools read; any other reads the words on its line."""

MARK = r"<<[ \t]{0,8}(?P<name>[^\W\d_][^<>`\n]{0,63}?)[ \t]{0,8}"

TITLE = re.compile(r"[A-Z][a-z]+(?: [A-Za-z]+){0,4}\Z")

ENDINGS = ("is", "are", "equals", "は", "是", "为", "為")

LABEL = re.compile(r"\A[^:：<>+]{1,40}[:：](?!:)\s*")

ITEM = re.compile(r"\A(?:[-*•]|\(?\d{1,2}[.)])\s+")

PRODUCTS = re.compile(r"\A\W*(?:product|生成物|产物|產物)", re.IGNORECASE)

ARROW = re.compile(r"->|→|⟶|⇌|=>|<=>|⇄|(?<=\s)=(?=\s)")

LISTED = re.compile(r"\s*(?:,\s|[，、])\s*")
"""What the original puts between the substances of a side; a formula has no comma in it."""
# A colon between digits is a ratio.
LEADING = re.compile(r"[=＝]|[:：](?!\d)|(?<!\d)[:：]")
# Of `24 x 365 = $<< Calculator >>` the sign belongs to the result.
CURRENCY = re.compile(r"(?<=[=＝:：])\s*(?:US)?[$€£¥￥]\s*\Z|(?<=\s)[$€£¥￥]\s*\Z")

REST = re.compile(r"\A(?:[\s,，:：)）]|\.(?!\d))+")

PLACES = re.compile(r"(?P<word>[A-Za-z]+)|(?P<other>[^A-Za-z0-9０-９:.,，％%$€£¥()（）+\-*/^×·⋅÷−–＋－＊／!√π\s]+)")

WORDS = frozenset(("sqrt", "ln", "log", "exp", "abs", "min", "max", "round", "pi", "e", "x"))

FORMULA = re.compile(r"[A-Za-z0-9()\[\]{}₀-₉⁰-⁹⁺⁻+\-^]+(?:\s*[·⋅•*.]\s*[A-Za-z0-9()\[\]₀-₉]+)*[↓↑]?")

CHEMICAL = re.compile(r"(?:[A-Z][a-z]?|\((?:s|l|g|aq)\)|[\d₀-₉⁰-⁹()\[\]{}·⋅•*.↓↑^+\-⁺⁻\s])+\Z")

HOW = """\
Where you need a tool, write its input first and then its name as << Name >>: what the tool gives is put right behind it, and \
you go on from the next line."""


@value
class Inline:
    """Calls as `<< Tool >>` behind their input; `aliases` pairs titles with names of tools, `reads` names what a tool reads.

    Blanks, underscores and case make no difference to a name. One that no tool has counts only as a title in capitals.
    """

    aliases: tuple[tuple[str, str], ...] = ALIASES
    reads: tuple[tuple[str, Reads], ...] = READS

    @property
    def name(self) -> str:
        """What the protocol is called."""
        return "inline"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a server may be asked to stop."""
        return (CLOSE,)

    @property
    def close(self) -> str:
        """What an unfinished call lacks."""
        return CLOSE

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written, and which tools there are."""
        return f"{HOW}{rationale.OWN_RESULTS * guarded}\n\n{rationale.listed(tools, self._listed)}"

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls."""
        known = {rationale.normal(name): name for name in names}
        titles = {rationale.normal(title): name for title, name in self.aliases}
        read = self._reading({**titles, **known})
        return LineScanner(Form(CLOSE, re.compile(MARK + CLOSE), re.compile(MARK + r"\Z"), read, lines=2))

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return rationale.arguments(spec, text, self.call)

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a call, on a new line where the words before it would be read as part of its input."""
        how = dict(self.reads).get(name, "words")
        before = _sides(text) if how == "equation" else f"{text} "
        written = f"{before}<< {self._title(name)} >>"
        line = after.rpartition("\n")[2]
        if line.strip() and (how == "equation" or READINGS[how]((), line + text) != text):
            return f"\n{written}"
        return written

    def splice(self, result: str, mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a result; the line ends with it."""
        return f" {rationale.shown(result)}\n"

    def recorded(self, text: str, start: int) -> int:
        """Say where a recorded result ends: with its line."""
        end = text.find("\n", start)
        return len(text) if end < 0 else end + 1

    def _title(self, name: str) -> str:
        written = next((title for title, tool in self.aliases if tool == name), "")
        return written or name.replace("_", " ").capitalize()

    def _listed(self, name: str, text: str) -> str:
        if dict(self.reads).get(name) == "equation":
            return f"reactants, products on a line each, then << {self._title(name)} >>"
        return self.call(name, text)

    def _reading(self, known: Mapping[str, str]) -> Reading:
        reads = dict(self.reads)

        def read(found: re.Match[str], before: tuple[str, ...]) -> CallMatch | None:
            title = " ".join(found["name"].split())
            name = known.get(rationale.normal(title)) or (title if TITLE.match(title) else "")
            if not name:
                return None
            *lines, line = before
            given = READINGS[reads.get(name, "words")](tuple(lines), line)
            return CallMatch(name, given[-LONGEST_INPUT:], found.end(), found.end() - found.start())

        return read


def _words(lines: tuple[str, ...], line: str) -> str:
    """The words on the line, from a JSON object or from behind a label on."""
    text = line.strip() or (lines[-1] if lines else "")
    start = text.find("{")
    if start >= 0 and text.endswith("}"):
        return text[start:]
    return str(re.split(r"[:：]\s+|：", text)[-1]).strip()


def _expression(lines: tuple[str, ...], line: str) -> str:
    """The expression that ends the line: behind the last equals sign, without the words before it."""
    text = _unled(line) or _unled(lines[-1] if lines else "")
    text = LEADING.split(text)[-1].strip()
    odd = [each.end() for each in PLACES.finditer(text) if each["other"] or each["word"].lower() not in WORDS]
    ending = REST.sub("", text[odd[-1] if odd else 0 :])
    # What begins like the rest of an expression is one whose start we do not know: the tool may say what is wrong with it.
    starts = re.match(r"[\s$€£¥]*(?:[-−－+＋]?[\s$€£¥]*[0-9０-９.(（√π]|[a-z])", ending)
    return ending.strip() if starts and any(char.isdigit() for char in ending) else text


def _formula(lines: tuple[str, ...], line: str) -> str:
    """The last thing on the line that looks like a formula; where none does, its last word."""
    text = _unled(line) or _unled(lines[-1] if lines else "")
    found = [each[0].strip(".*·") for each in FORMULA.finditer(text)]
    chemical = [each for each in found if CHEMICAL.match(each) and any(char.isupper() for char in each)]
    return (chemical or found or [text])[-1].strip()


def _equation(lines: tuple[str, ...], line: str) -> str:
    """The reactants and the products on the two lines before, or an equation on one."""
    last = [LABEL.sub("", ITEM.sub("", each)) for each in (*lines, line) if each.strip()][-2:]
    if not last or ARROW.search(last[-1]):
        return last[-1].strip() if last else ""
    whole = [each for each in (*lines, line) if each.strip()][-2:]
    if PRODUCTS.match(whole[0]) and not PRODUCTS.match(whole[-1]):
        last.reverse()
    return " -> ".join(LISTED.sub(" + ", each.strip().rstrip(".,;，、")) for each in last)


READINGS: Mapping[Reads, Callable[[tuple[str, ...], str], str]] = MappingProxyType(
    {"expression": _expression, "formula": _formula, "equation": _equation, "words": _words}
)


def _unled(line: str) -> str:
    """A line without what leads over from an input to its result: a colon, an equals sign, a verb."""
    while True:
        text = CURRENCY.sub("", line).rstrip(" \t:：=＝")
        word = next((each for each in ENDINGS if text.endswith(each)), "")
        before = text.removesuffix(word)
        if not word or (word.isascii() and before[-1:].isascii() and before[-1:].isalnum()):
            return text.strip()
        line = before


def _sides(text: str) -> str:
    """An equation as two lines and the start of a third."""
    sides = ARROW.split(text, maxsplit=1)
    return "\n".join(side.strip() for side in sides) + "\n" if len(sides) == 2 else f"{text} "


LONGEST_BLOCK = 20_000

KEPT_LINE = 200

OUTPUT = "```output"

FENCE_HOW = """\
Where you need a tool, write a block of code that is marked with the tool's name and holds its input, and stop there: what the \
tool gives follows as a block marked output, and you go on from there."""


@value
class Fence:
    """Calls as blocks of code marked with a tool's name; `aliases` pairs other marks with names of tools.

    A block in any other name is only code.
    """

    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What the protocol is called."""
        return "fence"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a server may be asked to stop."""
        return (OUTPUT,)

    @property
    def close(self) -> str:
        """What an unfinished call lacks."""
        return "\n"

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written, and which tools there are."""
        blocks = "\n\n".join(
            f"{' '.join(tool.description.split())}\n{self.call(tool.name, rationale.wanted(tool))}" for tool in tools
        )
        return f"{FENCE_HOW}{rationale.OWN_RESULTS * guarded}\n\nTools:\n\n{blocks or '(none)'}"

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls."""
        marks = {title.casefold(): name for title, name in self.aliases}
        return BlockScanner({**marks, **{name.casefold(): name for name in names}})

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return rationale.arguments(spec, text, self.call)

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a call on lines of its own."""
        start = "" if not after or after.endswith("\n") else "\n"
        return f"{start}```{name}\n{text}\n```\n"

    def splice(self, result: str, mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a result as a block of output."""
        return f"{OUTPUT}\n{rationale.shown(result)}\n```\n"

    def recorded(self, text: str, start: int) -> int:
        """Say where a recorded block of output ends."""
        if not text.startswith(f"{OUTPUT}\n", start):
            return start
        end = text.find("\n```", start + len(OUTPUT))
        if end < 0:
            return len(text)
        newline = text.find("\n", end + 1)
        return len(text) if newline < 0 else newline + 1


class BlockScanner:
    """Finds blocks of code that are closed and in the name of a tool."""

    __slots__ = ("_block", "_fence", "_known", "_line", "_name", "_size")

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self._fence = ""
        self._line = ""
        self._name = ""
        self._block = ""
        self._size = 0

    def feed(self, text: str) -> CallMatch | None:
        """Take the next words; stop right behind the first trigger and leave the rest to whoever asks again."""
        for found in PIECE.finditer(text):
            piece = found[0]
            self._line += piece[: KEPT_LINE - len(self._line)]
            self._size += len(piece)
            if self._name:
                self._block = (self._block + piece)[: LONGEST_BLOCK + 1]
            if piece.endswith("\n") and (call := self._end_line(found.end())):
                return call
        return None

    def skip(self, text: str) -> None:
        """Take what the program put in: it moves the place in the line and is never scanned."""
        if "\n" in text:
            self._line = ""
        self._line += text.rpartition("\n")[2].replace("`", "'").replace("~", "-")[: KEPT_LINE - len(self._line)]

    @property
    def open(self) -> bool:
        """Whether the text so far ends in the closing marks of a block, which only lack the end of their line."""
        return bool(self._name) and not fence(self._line, self._fence)

    def _end_line(self, end: int) -> CallMatch | None:
        line, self._line = self._line, ""
        was, self._fence = self._fence, fence(line, self._fence)
        if self._fence and not was:
            opening = FENCE.match(line)
            words = opening["rest"].split() if opening else []
            self._name = self._known.get(words[0].casefold(), "") if len(words) == 1 else ""
            self._block, self._size = "", len(line)
        elif was and not self._fence and self._name:
            name, block = self._name, self._block
            self._name = self._block = ""
            if len(block) <= LONGEST_BLOCK:
                given = block.rstrip("\n").rpartition("\n")[0] if block.count("\n") > 1 else ""
                return CallMatch(name, given, end, self._size)
        return None


ACTION = (
    r"\A[ \t]{0,3}Action(?:[ \t]{1,2}(?P<mark>\d{1,4}))?[ \t]?[:：][ \t]{0,8}(?P<name>[^\W\d_][\w .-]{0,63})"
    rf"\[(?P<input>[^\n]{{0,{LONGEST_INPUT}}})\][ \t]{{0,8}}"
)

OBSERVATION = re.compile(r"[ \t]{0,3}Observation(?:[ \t]{1,2}\d{1,4})?[ \t]?[:：]")

TURN = re.compile(r"^[ \t]{0,3}(?:Thought|Action|Observation|Question)(?:[ \t]{1,2}\d{1,4})?[ \t]?[:：]", re.MULTILINE)

REACT_HOW = """\
Take turns of Thought and Action, numbered from 1. A Thought is a line of reasoning; an Action is a line of its own that \
calls one tool, and what the tool gives follows as an Observation. Your last Action is \
{finish}[answer]."""


@value
class ReAct:
    """Calls as lines `Action n: Tool[input]`; numbers may be left out.

    `finish` is the action that ends the text with an answer. Blanks, underscores and case make no difference to a name.
    """

    finish: str = "Finish"
    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What the protocol is called."""
        return "react"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a server may be asked to stop."""
        return ("\nObservation",)

    @property
    def close(self) -> str:
        """What an unfinished call lacks."""
        return "\n"

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written, and which tools there are."""
        return f"{REACT_HOW.format(finish=self.finish)}{rationale.OWN_RESULTS * guarded}\n\n{rationale.listed(tools, self._listed)}"

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls."""
        titles = {rationale.normal(title): name for title, name in self.aliases}
        known = {**titles, **{rationale.normal(name): name for name in names}}
        closed, opened = re.compile(rf"{ACTION}\n"), re.compile(rf"{ACTION}\Z")
        return LineScanner(Form("\n", closed, opened, self._reading(known), anchored=True))

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return rationale.arguments(spec, text, self.call)

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:
        """Write a call on a line of its own; `mark` is its number."""
        start = "" if not after or after.endswith("\n") else "\n"
        return f"{start}Action{mark and ' '}{mark}: {name}[{text}]\n"

    def splice(self, result: str, mark: str = "") -> str:
        """Write a result as the observation of that number."""
        return f"Observation{mark and ' '}{mark}: {rationale.shown(result)}\n"

    def recorded(self, text: str, start: int) -> int:
        """Say where a recorded observation ends: before the next turn."""
        found = OBSERVATION.match(text, start)
        if found is None:
            return start
        turn = TURN.search(text, found.end())
        return turn.start() if turn else len(text)

    def _listed(self, name: str, text: str) -> str:
        return self.call(name, text).strip()

    def _reading(self, known: Mapping[str, str]) -> Reading:
        finish = rationale.normal(self.finish)

        def read(found: re.Match[str], before: tuple[str, ...]) -> CallMatch:  # noqa: ARG001  (a reading's)
            name = rationale.normal(found["name"])
            final = name == finish and name not in known
            called = known.get(name, self.finish if final else found["name"].strip())
            return CallMatch(called, found["input"].strip(), found.end(), found.end(), found["mark"] or "", final)

        return read


# Directly behind the mark, so that `a << b = c` is none.
CLOSED = re.compile(rf"<<(?P<input>[^\s<>=`][^<>=`\n]{{0,{LONGEST_INPUT - 1}}})=")

NEVER = re.compile(r"(?!)")

GSM_HOW = """\
For every calculation write <<expression= and stop there: what the {tool} gives is put right behind it with the closing mark, \
as in <<12*3=36>>, and you go on from there."""


@value
class Gsm:
    """Calls of one tool, the calculator, as `<<expression=`.

    No server is asked to stop at an equals sign: nearly every one of them closes no call. The text is watched instead.
    """

    tool: str = "calculator"

    @property
    def name(self) -> str:
        """What the protocol is called."""
        return "gsm"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where a server may be asked to stop: nowhere."""
        return ()

    @property
    def close(self) -> str:
        """What an unfinished call lacks; none is ever open, because its end is in the text."""
        return ""

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written; there is but one tool."""
        known = [each for each in tools if each.name == self.tool]
        how = GSM_HOW.format(tool=self.tool.replace("_", " "))
        return f"{how}{rationale.OWN_RESULTS * guarded}\n\n{rationale.listed(known, self.call)}"

    def scanner(self, names: Iterable[str]) -> Scanner:  # noqa: ARG002  (a call names no tool)
        """Find calls."""
        return LineScanner(Form("=", CLOSED, NEVER, self._read))

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return rationale.arguments(spec, text, self.call)

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a call."""
        return f"<<{text}="

    def splice(self, result: str, mark: str = "") -> str:  # noqa: ARG002  (the seam's)
        """Write a result and the closing mark."""
        return f"{rationale.shown(result)}{CLOSE}"

    def recorded(self, text: str, start: int) -> int:
        """Say where a recorded result ends: with the closing mark on the same line."""
        newline = text.find("\n", start)
        end = text.find(CLOSE, start, len(text) if newline < 0 else newline)
        opened = text.find("<<", start, end)
        return start if end < 0 or opened >= 0 else end + len(CLOSE)

    def _read(self, found: re.Match[str], before: tuple[str, ...]) -> CallMatch:  # noqa: ARG002  (a reading's)
        return CallMatch(self.tool, found["input"].strip(), found.end(), found.end() - found.start())


class ToolCallFormat(Structure):
    """How calls and results are written in a text."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def stops(self) -> tuple[str, ...]:
        """Strings that a server may be asked to stop at; whoever asks puts the one that was met back before scanning."""
        ...

    @property
    def close(self) -> str:
        """What an `open` call lacks; a server that stopped there may not say so."""
        ...

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written, and which tools there are; `guarded` forbids the model to write results itself."""
        ...

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls of the tools of these names, and calls that are plainly meant for a tool that is not there."""
        ...

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input.

        Raises:
            ToolError: it does not give what the tool needs.
        """
        ...

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:
        """Write a call as it stands in a worked example, behind the text `after`."""
        ...

    def splice(self, result: str, mark: str = "") -> str:
        """Write a result as it stands right behind the trigger with that mark: escaped, cut, on one line."""
        ...

    def recorded(self, text: str, start: int) -> int:
        """Say where the result ends that begins at `start` of a finished transcript; `start` itself if none is marked."""
        ...


@value(tag="text-segment")
class TextSegment:
    """Words that are neither a call nor a result."""

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
    """What stands behind a call as its result."""

    text: str


ScanEvent: TypeAlias = TextSegment | CallText | ResultText

PROTOCOLS: Mapping[str, Callable[[], ToolCallFormat]] = MappingProxyType(
    {"tagged": Tagged, "inline": Inline, "gsm": Gsm, "react": ReAct, "fence": Fence}
)
"""The protocols by name."""


def tool_call_format(name: str) -> ToolCallFormat:
    """Find a protocol.

    >>> tool_call_format("tagged")
    Tagged()

    Raises:
        InputError: there is none of that name.
    """
    made = PROTOCOLS.get(name)
    if made is None:
        raise InputError(f"there is no protocol {name!r}; there are {', '.join(PROTOCOLS)}")
    return made()


def decode(text: str, protocol: ToolCallFormat, names: Iterable[str]) -> tuple[ScanEvent, ...]:
    """Read a finished transcript: what was said, called and given.

    >>> [type(each).__name__ for each in decode("It is <<calculator: 1+1>> 2.", Tagged(), ["calculator"])]
    ['TextSegment', 'CallText', 'TextSegment']
    """
    scanner, events, at, start = protocol.scanner(names), list[ScanEvent](), 0, 0
    while call := scanner.feed(text[at:]):
        at += call.end
        first = max(at - call.size, start)
        end = protocol.recorded(text, at)
        written = (
            TextSegment(text[start:first]),
            CallText(text[first:at], call.name, call.input, call.final),
            ResultText(text[at:end]),
        )
        events += (event for event in written if event.text)
        scanner.skip(text[at:end])
        at = start = end
    if text[start:]:
        events.append(TextSegment(text[start:]))
    return tuple(events)


def encode(events: Iterable[ScanEvent]) -> str:
    """Write a transcript again: the inverse of `decode`, byte for byte."""
    return "".join(event.text for event in events)
