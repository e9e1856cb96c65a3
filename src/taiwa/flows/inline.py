"""The protocol of MultiTool-CoT (Inaba et al., ACL 2023): `<< Tool >>`, with the tool's input before it.

The input is what the model has just written: the expression or the formula on the same line, the reactants and the products
on the two lines before. What a tool gives ends the line.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

from taiwa.flows import calling
from taiwa.flows.scanning import LONGEST_INPUT, Form, LineScanner, Reading, Scanner, Trigger
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolSpec

__all__ = ["ALIASES", "READS", "Inline", "Reads"]

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

CLOSE = ">>"
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
        return f"{HOW}{calling.OWN_RESULTS * guarded}\n\n{calling.listed(tools, self._listed)}"

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls."""
        known = {calling.normal(name): name for name in names}
        titles = {calling.normal(title): name for title, name in self.aliases}
        read = self._reading({**titles, **known})
        return LineScanner(Form(CLOSE, re.compile(MARK + CLOSE), re.compile(MARK + r"\Z"), read, lines=2))

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input."""
        return calling.arguments(spec, text, self.call)

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
        return f" {calling.shown(result)}\n"

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

        def read(found: re.Match[str], before: tuple[str, ...]) -> Trigger | None:
            title = " ".join(found["name"].split())
            name = known.get(calling.normal(title)) or (title if TITLE.match(title) else "")
            if not name:
                return None
            *lines, line = before
            given = READINGS[reads.get(name, "words")](tuple(lines), line)
            return Trigger(name, given[-LONGEST_INPUT:], found.end(), found.end() - found.start())

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
