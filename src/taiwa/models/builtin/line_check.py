"""Check the calls in a chemistry solution, and write those parts that the question and earlier results determine.

This covers the atoms of a molecule that the question lists, an equation that it gives, the coefficients of a balanced equation
for the given and requested substances, the substances whose mass is needed, and the atoms of an element in a formula.

A step that cannot be right is decoded again: the most likely alternatives that differ from it in some token, best first.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from heapq import heappop, heappush
from typing import Final

import numpy as np

from taiwa.constraints.guide import GuideState, empty_mask, unpack_mask
from taiwa.kernel.errors import ToolError
from taiwa.models.builtin.conversion_check import decided_line, mixes_kinds
from taiwa.models.builtin.copy_constraint import NUMBER_WORDS
from taiwa.models.builtin.name_check import NAMED, check_names, is_meant, likeness
from taiwa.models.builtin.network import Array, CachedSequence, Network
from taiwa.models.builtin.tokenizer import Tokens
from taiwa.models.builtin.word_problem_check import cannot_be, rename
from taiwa.tools.calculator import calculate
from taiwa.tools.chemical_formulas import elements, formula
from taiwa.tools.compound_names import find_names
from taiwa.tools.stoichiometry import Equation, Term, balance, equation

__all__ = [
    "CALL_END", "check_line", "check_step", "count_atoms", "decided_spans", "is_checkable", "is_doubtful", "is_last_line", "is_step_doubtful", "lines_of",
    "next_piece", "next_step", "readings", "steps_of",
]  # fmt: skip

CALL_START, CALL_END = "<<", ">>"
CALL = re.compile(r"<<(\w+): (.*)>>\Z")
RESULT = re.compile(r"<<(\w+): (.*?)>> (.*)")
PIECE = re.compile(r"([A-Z][a-z]?)([0-9]*)|[(\[]|[)\]]([0-9]*)|·([0-9.]*)")
NUMBER = rf"(?<![\w.)\]/])(?<!hundred )(?<!hundred and )(?<!thousand )(?<!half )(?<!ty[ -])(?P<number>\d+/[1-9]\d*|\d*\.?\d+|(?:{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})\b)"
ATOMS = re.compile(
    rf"{NUMBER} ?(?:of )?(?:atoms? (?:of )?)?(?P<before>[A-Za-z]+)|(?P<behind>[A-Za-z]+) ?\((?P<count>\d+)\)",
    re.IGNORECASE,
)
TERM = r"(?:\d+(?:\.\d+)?(?:/\d+)? ?)?(?:[A-Z(\[]|e\^)[\w()\[\]·^+.-]*(?: ?\((?:s|l|g|aq)\))?"
GIVEN_EQUATION = re.compile(
    rf"(?<![\w?])(?<!mol )(?<!moles )(?<!\+ ){TERM}(?: \+ {TERM})* (?:[-=]+>|=) {TERM}(?: \+ {TERM})*(?! ?\()"
)
FORMULA = re.compile(r"(?<![\w(\[])[A-Z(\[](?:[A-Za-z0-9()\[\]·^+-]*[A-Za-z0-9)\]])?")
ARROW = re.compile(r"[-=]>|\s=\s|→")
EXPRESSION = re.compile(r"[\d.(][\d.() ]*[-+*/][\d.()+*/ -]*[\d)]")
BRACKETS = str.maketrans("[]{}", "()()")
SPECIES = re.compile(r"(\d+(?:/\d+)? ?)?(\S+)")
RATIO = re.compile(r"(?<![\d.])([\d.]+)((?:/[\d.]+)?\*)(\d+)/(\d+)(?![\d.])")
TERMS = re.compile(r"(?<![^ >])(?:([\d.]+(?:/\d+)?|\?) ?)?((?:[A-Z(\[])[^\s?]*)")
SHARE = re.compile(r"round\((.+)\*([\d.]+)/([\d.]+)\*100, 2\)\Z")
ORIGIN = re.compile(r"([A-Z][a-z]?) of (\S+) is from (\S+)\.\Z")
FROM_ORIGIN = re.compile(r"([\d.]+)\*(.+)/(\d+|\(.*\))\Z")
UNIT = r"(?:m(?!ass)|g)[a-z-]*"
"""The requested moles or grams, with misspellings."""
AMOUNT = re.compile(
    rf"{NUMBER} ?(?P<unit>{UNIT}) (?:of |solution |an? )*(?:[a-z]+ )?\Z|{NUMBER.replace('number', 'bare')} ?M(?: solution of)? \Z",
    re.IGNORECASE,
)
AMOUNTS = re.compile(rf"{NUMBER} ?(?:mol|mols|moles|mole|g|grams)\b(?! ?/| per)", re.IGNORECASE)
GROUPED = re.compile(r"(?<=\d),(?=\d{3})")
DIGITS = re.compile(r"\d*\.?\d+")
CONCLUDING = "Therefore"
MOST_CHARS = 2_000
LONG_NUMBER = re.compile(r"[\d,]{40}")
OTHERS: Final[Mapping[str, str]] = {"calculator": "97", "molar_mass": "Og", "stoichiometry": "Og -> Og"}
"""For each tool, an input that every check would change."""
BEHIND = re.compile(rf" ?\({NUMBER} ?(?P<unit>{UNIT})\)", re.IGNORECASE)
PLENTY = re.compile(
    r"\b(?:excess|enough|sufficient|plenty|unlimited|surplus|abundant|ample)\b[^.,;]{0,12}\Z", re.IGNORECASE
)
PLENTY_BEHIND = re.compile(
    r" ?(?:\(excess\)|(?:is|are|being)? ?(?:taken |present |there )?in (?:excess|surplus))", re.IGNORECASE
)
ASKED_BEFORE = re.compile(
    r"(?<!\d )\b(?:mol|mols|moles|mass|amount|quantity|grams?|g|much|weight|number)\b[^.;?!\d]{0,14}\Z", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a solution: a line that a check may change, or other text."""

    text: str
    is_line: bool


def next_piece(text: str, start: int, *, is_ended: bool) -> Piece | None:
    """Return the piece that begins at a position: a line, or a call that begins it; after a call, the rest of its line.

    Return None if the text ends before the piece does.
    """
    rest = text[start:]
    line, newline, _ = rest.partition("\n")
    if start and text[start - 1] != "\n":
        return Piece(line + newline, is_line=False) if rest else None
    is_call = line.startswith(CALL_START[: len(line)])
    if is_call and CALL_END in line:
        return Piece(line[: line.index(CALL_END) + len(CALL_END)], is_line=True)
    if line and (newline or is_ended):
        return Piece(line, is_line=True)
    return Piece(newline, is_line=False) if newline else None


def next_step(text: str, start: int, *, is_ended: bool) -> Piece | None:
    """Return the piece that begins at a position; a line of words together with the call in the next line.

    Return None if the text ends before that is known. The words and the calculation can only be right together.
    """
    piece = next_piece(text, start, is_ended=is_ended)
    if piece is None or not piece.is_line or piece.text.startswith(CALL_START):
        return piece
    after = start + len(piece.text) + 1
    rest = text[after:]
    if is_ended or (rest and not rest.startswith(CALL_START[: len(rest)])):
        call = next_piece(text, after, is_ended=is_ended) if rest.startswith(CALL_START) else None
    elif (call := next_piece(text, after, is_ended=False)) is None:
        return None
    return Piece(text[start : after + len(call.text)], is_line=True) if call is not None and call.is_line else piece


LAST = re.compile(r"I (?:do not know|can only)\b|A number is missing|These units measure")


def is_last_line(line: str) -> bool:
    """Return true if a line says why there is no answer."""
    return bool(LAST.match(line))


def check_step(question: str, before: str, step: str) -> str:
    """Return the lines of a step up to and including the first one that `check_line` changes, in its changed form."""
    for at, line in lines_of(step):
        checked = check_line(question, before + step[:at], line)
        if checked != line:
            return step[:at] + checked
    return step


def is_step_doubtful(question: str, before: str, step: str) -> bool:
    """Return true if a line of a step cannot be right; see `is_doubtful`."""
    lines = [*lines_of(step)]
    return (len(lines) > 1 and is_last_line(step)) or any(
        is_doubtful(question, before + step[:at], line) for at, line in lines
    )


def is_checkable(question: str) -> bool:
    """Return true if the checks can read a question: short enough to be read whole by the network, without very long numbers.

    >>> is_checkable("What is 7+5?"), is_checkable("What is 7+" + 400 * "9" + "?")
    (True, False)
    """
    return len(question) <= MOST_CHARS and not LONG_NUMBER.search(question)


def check_line(question: str, before: str, line: str) -> str:
    """Return the first line, or a call, corrected by the question and the preceding text; any other line unchanged.

    >>> check_line("How heavy is a molecule of 2 hydrogen atoms and 1 atom of oxygen?", "", "<<molar_mass: HO>>")
    '<<molar_mass: H2O>>'
    """
    if decided := decided_line(question, before, line):
        return decided
    call = CALL.fullmatch(line)
    if call is None:
        return rename(question, before, _check_words(before, line)) if before else check_names(question, line)
    with suppress(ToolError):
        return f"<<{call[1]}: {_CHECKS[call[1]](question, before, call[2])}>>" if call[1] in _CHECKS else line
    return line


def _check_words(before: str, line: str) -> str:
    """Return a line of words after an equation: the unknown coefficient, or an element that only one reactant contains."""
    last = next(reversed([*RESULT.finditer(before)]), None)
    if last is None or last[1] != "stoichiometry" or last.end() < len(before.rstrip("\n")):
        return line
    with suppress(ToolError):
        if " -> " in last[3]:
            unknown = [at for at, each in enumerate(equation(last[2]).terms) if each.count is None]
            if len(unknown) != 1:
                return line
            term = SPECIES.fullmatch(re.split(r" \+ | -> ", last[3])[unknown[0]].strip())
            count = (term[1] or "1").strip() if term is not None else ""
            if "/" in count:
                return f"<<calculator: {count}>>"
            return f"Therefore, the answer is {count} mol." if count else line
        origin = ORIGIN.fullmatch(line)
        if origin is not None:
            return _origin(origin, equation(last[2]))
    return line


def _origin(origin: re.Match[str], reaction: Equation) -> str:
    """Return the only reactant that contains an element of a product."""
    made = formula(origin[2]).atoms
    sources = {
        element: [each.species.text for each in reaction.reactants if element in each.species.atoms] for element in made
    }
    if sources.get(origin[1]) == [origin[3]]:
        return origin[0]
    only = [(element, of[0]) for element, of in sources.items() if len(of) == 1]
    return f"{only[0][0]} of {origin[2]} is from {only[0][1]}." if only else origin[0]


def is_doubtful(question: str, before: str, line: str) -> bool:
    """Return true if a line cannot be right, although its correct form is unknown.

    This holds for an equation that cannot be balanced, that lacks a substance of the question, or that has one on both sides; for
    an answer that omits an amount; for a formula of something that the question does not mention; and for what `cannot_be` finds.

    >>> is_doubtful("What do 2 mol of H2 and O2 give?", "", "<<stoichiometry: H2 -> H2O>>")
    True
    """
    if line.startswith(CONCLUDING):
        return _leaves_out(question, before) or cannot_be(question, before, line)
    call = CALL.fullmatch(line)
    if call is not None and call[1] == "molar_mass" and not before and question.isascii():
        return call[2] not in question and bool(find_names(question)) and not _atoms(question)
    if call is None or call[1] != "stoichiometry":
        return mixes_kinds(line) or cannot_be(question, before, line)
    if "stoichiometry" in before or ARROW.search(question):
        return False
    try:
        left, right = ([each.species.text for each in side] for side in _sides(equation(call[2])))
        bare = balance(f"{' + '.join(left)} -> {' + '.join(right)}")
    except ToolError:
        return True
    return (
        bare.status == "impossible"
        or not {*left}.isdisjoint(right)
        or not _formulas(question, before) <= {*left, *right}
    )


def _leaves_out(question: str, before: str) -> bool:
    """Return true if no call contains an amount of the question. If the equation cannot be balanced, the amount of one reactant
    is enough.
    """
    used = {number for each in RESULT.finditer(before) for number in DIGITS.findall(each[2])}
    given = {_digits(each["number"].lower()) for each in AMOUNTS.finditer(GROUPED.sub("", question))}
    return bool(used) and "impossible" not in before and not given - {"1"} <= used


def _sides(found: Equation) -> Sequence[Sequence[Term]]:
    return found.reactants, found.products


def _formulas(question: str, before: str) -> frozenset[str]:
    """Return the formulas of the substances that the first line names, and of those in the question."""
    named_there = NAMED.findall(before.partition("\n")[0])
    is_shouted = sum(map(str.isupper, question)) > sum(map(str.islower, question))
    words = {word.lower() for name in find_names(question) for word in name.split()}
    written = frozenset(
        each
        for each in FORMULA.findall(question)
        if each.lower() not in words and _is_substance(each, is_shouted=is_shouted)
    )
    return written.union(each for _, each in named_there)


@lru_cache(1024)
def _is_substance(word: str, *, is_shouted: bool) -> bool:
    if is_shouted and word.isalpha():
        return False
    try:
        return sum(formula(word).atoms.values()) > 1
    except ToolError:
        return False


def lines_of(solution: str) -> Iterator[tuple[int, str]]:
    """Yield the checked lines of a solution, each with its start position."""
    return _pieces(solution, next_piece)


def steps_of(solution: str) -> Iterator[tuple[int, str]]:
    """Yield the steps of a solution, each with its start position."""
    return _pieces(solution, next_step)


def _pieces(solution: str, read: Callable[..., Piece | None]) -> Iterator[tuple[int, str]]:
    at = 0
    while (piece := read(solution, at, is_ended=True)) is not None:
        if piece.is_line:
            yield at, piece.text
        at += len(piece.text)


def decided_spans(question: str, solution: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of a solution that the check determines: a different text there would be corrected.

    >>> list(decided_spans("The mass of 2 H and 1 O?", "<<molar_mass: H2O>> 18.015 g/mol"))
    [(14, 17)]
    """
    for start, line in lines_of(solution):
        before = solution[:start]
        if decided_line(question, before, line) == line:
            yield start, start + len(line)
        call = CALL.fullmatch(line)
        if call is None:
            continue
        places = [call.span(2)] if call[1] != "calculator" else [each.span() for each in DIGITS.finditer(line)]
        other = OTHERS.get(call[1], "")
        for at, end in places:
            if other and check_line(question, before, line[:at] + other + line[end:]) == line:
                yield start + at, start + end


@cache
def count_atoms(spelt: str, symbol: str) -> str:
    """Return the number of atoms of an element in a formula, as a sum of the counts in the formula.

    >>> count_atoms("Al2(SO4)3·18H2O", "O"), count_atoms("CH3COOH", "C"), count_atoms("Ca(OH)2", "H")
    ('(4*3+18*1)', '(1+1)', '1*2')
    """
    terms: list[list[str]] = []
    open_: list[int] = []
    for found in PIECE.finditer(spelt):
        if found[1]:
            terms.append([found[1], found[2] or "1"])
        elif found[0] in "([":
            open_.append(len(terms))
        elif found[0][0] in ")]":
            start = open_.pop() if open_ else 0
            if found[3]:
                for term in terms[start:]:
                    term.append(found[3])
        else:
            front = found[4]
            rest = count_atoms(spelt[found.end() :], symbol)
            if rest != "0":
                inner = rest.strip("()") if "+" not in rest else rest
                terms.append([symbol, *((front, inner) if front and front != "1" else (inner,))])
            break
    sums = ["*".join(term[1:]) for term in terms if term[0] == symbol]
    return "0" if not sums else sums[0] if len(sums) == 1 else f"({'+'.join(sums)})"


# --- a molecule by its atoms, an equation that is given -------------------------------------------------------------


def _molar_mass(question: str, before: str, written: str) -> str:
    if not before:
        atoms = _atoms(question)
        spelt = "".join(f"{each}{count if count > 1 else ''}" for each, count in atoms)
        return spelt if len(atoms) > 1 and formula(written).atoms != formula(spelt).atoms else written
    reaction = _Reaction.read(question, before)
    if reaction is None:
        return written
    asked = reaction.asked()
    weighed = [each.formula for each in reaction.given if each.unit.startswith("g")]
    if len(asked) != 1:
        if {*asked} != {*weighed}:
            return written
        weighed = sorted(weighed, key=[*reaction.counts].index)  # in a question about a yield, the reactants come first
    done = [each[2] for each in RESULT.finditer(before) if each[1] == "molar_mass"]
    return next((each for each in (*weighed, *asked) if each not in done), written)


def _atoms(question: str) -> list[tuple[str, int]]:
    """Return the atoms of a molecule that a question lists; nothing if it contains another number."""
    found: list[tuple[str, int]] = []
    rest = question
    for each in ATOMS.finditer(question):
        symbol = _element(each["before"] or each["behind"])
        if symbol:
            found.append((symbol, int(float(_digits((each["count"] or each["number"]).lower())))))
            rest = rest.replace(each[0], " ", 1)
    is_whole = not re.search(r"\d", rest) and len({symbol for symbol, _ in found}) == len(found)
    return found if is_whole and all(count for _, count in found) else []


@cache
def _element_names() -> Mapping[str, str]:
    names = {each.name.lower(): symbol for symbol, each in elements().items()}
    return names | {"aluminum": "Al", "sulphur": "S", "cesium": "Cs"}


@cache
def _element(word: str) -> str:
    if word in elements():
        return word
    names = _element_names()
    if word.lower() in names or len(word) < 4:
        return names.get(word.lower(), "")
    nearest = max(names, key=lambda name: likeness(name, word))
    return names[nearest] if is_meant(nearest, word) else ""


def given_equation(question: str) -> str:
    """Return the equation in a question with its formulas, or ""."""
    found = GIVEN_EQUATION.search(question)
    if found is None:
        return ""
    text = found[0].rstrip(".,;:")
    for each in (text, text[:-1], text[1:], text[1:-1]):  # the question may enclose it in brackets
        with suppress(ToolError):
            equation(each)
            return each
    return ""


def _stoichiometry(question: str, before: str, written: str) -> str:
    given = given_equation(question)
    if given or "?" not in written or "stoichiometry" in before:
        return given if given and "stoichiometry" not in before else written
    amounts = {each.formula: each.number for each in _Reaction.of(question, before, written).given}
    return TERMS.sub(
        lambda term: _counted(term[2], amounts[term[2]]) if term[2] in amounts and term[1] != "?" else term[0], written
    )


def _counted(species: str, number: str) -> str:
    return species if number == "1" else f"{number}{species}" if number.isdecimal() else f"{number} {species}"


# --- calculations ---------------------------------------------------------------------------------------------------


def _calculator(question: str, before: str, written: str) -> str:
    if not before:
        question = question.translate(BRACKETS)
        expression = EXPRESSION.search(question)
        if expression is not None and not re.search(r"\d", question.replace(expression[0], " ", 1)):
            return expression[0].strip() if _is_readable(expression[0]) else written
    if (share := SHARE.fullmatch(written)) is not None:
        return _share(before, share)
    origin = ORIGIN.search(before.rstrip("\n"))
    if origin is not None and (found := FROM_ORIGIN.fullmatch(written)) is not None:
        return _from_origin(question, before, origin, found)
    reaction = _Reaction.read(question, before)
    return written if reaction is None else reaction.converted(written)


def _is_readable(expression: str) -> bool:
    """Return true if the calculator can parse an expression, even if it has no value."""
    try:
        calculate(expression)
    except ToolError as error:
        return error.code == "division_by_zero"
    return True


def _share(before: str, share: re.Match[str]) -> str:
    masses = [(each[2], each[3].partition(" ")[0]) for each in RESULT.finditer(before) if each[1] == "molar_mass"]
    if len(masses) != 2 or (masses[1][1], masses[0][1]) != (share[2], share[3]):
        return share[0]
    count = formula(masses[0][0]).atoms.get(masses[1][0], 0)
    if calculate(share[1]) == count or not count:
        return share[0]
    return f"round({count_atoms(masses[0][0], masses[1][0])}*{share[2]}/{share[3]}*100, 2)"


def _from_origin(question: str, before: str, origin: re.Match[str], found: re.Match[str]) -> str:
    reaction = _Reaction.read(question, before)
    has, needs = count_atoms(origin[3], origin[1]), count_atoms(origin[2], origin[1])
    if "0" in (has, needs):
        return found[0]
    given = [] if reaction is None else [each.number for each in reaction.given if each.formula == origin[3]]
    number = given[0] if len(given) == 1 else found[1]
    return f"{number}*{has}/{f'({needs})' if '*' in needs else needs}"


# --- the substances of a balanced equation ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Given:
    """An amount of a substance in a question."""

    number: str
    unit: str
    formula: str


@dataclass(frozen=True, slots=True)
class _Reaction:
    """The coefficients of the last balanced equation, the amounts that the question gives, and the other substances that it
    names.
    """

    counts: Mapping[str, str]
    given: Sequence[_Given]
    others: Mapping[str, bool]
    """For a substance without an amount: a question word precedes it."""

    @classmethod
    def read(cls, question: str, before: str) -> "_Reaction | None":
        found = list(RESULT.finditer(before))
        equations = [each[3] if " -> " in each[3] else each[2] for each in found if each[1] == "stoichiometry"]
        if not equations:
            return None
        return cls.of(question, before, equations[-1])

    @classmethod
    def of(cls, question: str, before: str, written: str) -> "_Reaction":
        """Read what the question states about the substances of an equation."""
        counts = {each[2]: each[1] or "1" for each in TERMS.finditer(written)}
        names = {text: name.strip() for name, text in NAMED.findall(before.partition("\n")[0])}
        text = question.replace(given_equation(question) or "\n", " ; ")
        given: list[_Given] = []
        named_too: dict[str, bool] = {}
        for at, end, spelt in _mentions(text, {each: names.get(each, "") for each in counts}):
            amount = _amount(text[:at], text[end:])
            if amount is not None:
                given.append(_Given(*amount, spelt))
            elif not PLENTY.search(text[:at]) and not PLENTY_BEHIND.match(text, end):
                named_too[spelt] = named_too.get(spelt, False) or bool(ASKED_BEFORE.search(text[:at]))
        known = {each.formula for each in given}
        return cls(counts, given, {each: is_likely for each, is_likely in named_too.items() if each not in known})

    def asked(self) -> Sequence[str]:
        """Return the substances that may be requested; if two have amounts, either."""
        if not self.others:
            return [*dict.fromkeys(each.formula for each in self.given)]
        likely = [each for each, is_likely in self.others.items() if is_likely]
        return likely if len(likely) == 1 else [*self.others]

    def converted(self, written: str) -> str:
        """Return a calculation with the correct coefficients of its substances."""
        parts: list[str] = []
        end = 0
        used: list[_Given] = []
        for ratio in RATIO.finditer(written):
            fitting = [each for each in self.given if each.number == ratio[1]]
            left = [each for each in fitting if each not in used] or fitting
            of = next((each for each in left if self.counts[each.formula] == ratio[4]), left[0] if left else None)
            if of is None:
                return written
            used.append(of)
            asked = {self.counts[each] for each in self.asked() if each != of.formula}
            wanted = asked.pop() if len(asked) == 1 else ratio[3]
            parts += (written[end : ratio.start()], f"{ratio[1]}{ratio[2]}{wanted}/{self.counts[of.formula]}")
            end = ratio.end()
        return "".join((*parts, written[end:]))


def _mentions(text: str, spelt: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """Yield the positions where the question mentions substances, by formula or name, from left to right."""
    found: list[tuple[int, int, str]] = []
    left = text
    for each, name in sorted(spelt.items(), key=lambda pair: -len(pair[1] or pair[0])):
        by_name = rf"|(?i:(?<!\w){re.escape(name)}(?!\w))" if name else ""
        places = [match.span() for match in re.finditer(rf"(?<![\w(\[]){re.escape(each)}(?![\w(\[]){by_name}", left)]
        if not places and name:
            places = _nearest(left, name)
        for at, end in places:
            left = left[:at] + "\0" * (end - at) + left[end:]
            found.append((at, end, each))
    yield from sorted(found)


def _nearest(text: str, name: str) -> list[tuple[int, int]]:
    """Return the position of the run of words that is most similar to a name, or None."""
    words = list(re.finditer(r"[^\s,;:!?.\0]+", text))
    size = len(name.split())
    places = [(words[at].start(), words[at + size - 1].end()) for at in range(len(words) - size + 1)]
    best = max(places, key=lambda place: likeness(text[place[0] : place[1]], name), default=None)
    meant = [place for place in (best, *places) if place is not None and is_meant(text[place[0] : place[1]], name)]
    return meant[:1]


def _amount(before: str, behind: str) -> tuple[str, str] | None:
    """Return the number and unit of an amount before a substance, or after it in brackets."""
    found = BEHIND.match(behind)
    if found is None:
        found = AMOUNT.search(before)
    if found is None:
        return None
    groups = found.groupdict()
    number = (groups.get("bare") or groups["number"]).lower()
    unit = "M" if groups.get("bare") else (groups["unit"] or "").lower()
    return (_digits(number), unit) if unit else None


def _digits(number: str) -> str:
    """Return a number of `NUMBER` in digits."""
    return f"{float(Fraction(number)):g}" if "/" in number else NUMBER_WORDS.get(number, number)


_CHECKS = {"molar_mass": _molar_mass, "stoichiometry": _stoichiometry, "calculator": _calculator}


MOST_READ, MOST_TOKENS, MOST_OTHERS = 8, 120, 3
LEAST = -6.0
"""The largest difference in log probability between an alternative token and the most likely one."""


@dataclass(frozen=True, slots=True, order=True)
class _Branch:
    """The beginning of a line with another last token; `loss` is the log probability lost to the network's preference."""

    loss: float
    tokens: tuple[int, ...] = field(compare=False)


def readings(network: Network, tokens: Tokens, known: Sequence[int], state: GuideState, before: str) -> Iterator[str]:
    """Yield the readings after a text; `known` are the tokens up to there and `state` that of its guide."""
    sequence = network.start()
    if len(known) > 1:
        sequence.read(known[:-1])
    branches = [_Branch(0.0, ())]
    for _ in range(MOST_READ + 1):
        if not branches:
            return
        branch = heappop(branches)
        text = _read(network, tokens, sequence, known, state, before, branch, branches)
        sequence.rollback(len(sequence.tokens) - len(known) + 1)
        if text:
            yield text


def _read(
    network: Network,
    tokens: Tokens,
    sequence: CachedSequence,
    known: Sequence[int],
    state: GuideState,
    before: str,
    branch: _Branch,
    branches: list[_Branch],
) -> str:
    """Decode a step to its end and note alternative continuations; "" if it does not end."""
    line = [*branch.tokens]
    for token in line:
        state = state.advance(token)
    unread = [known[-1], *line]
    mask = empty_mask(len(network.vocabulary))
    while len(line) < MOST_TOKENS and len(sequence.tokens) + len(unread) < network.context:
        logits = sequence.read(unread)
        state.mask(mask)
        scores: Array = np.where(unpack_mask(mask, len(logits)), logits, np.float32("-inf"))
        best, *others = map(int, np.argsort(-scores)[: MOST_OTHERS + 1])
        for other in others:
            lost = float(scores[best] - scores[other])
            if lost < -LEAST:
                heappush(branches, _Branch(branch.loss + lost, (*line, other)))
        if best in network.vocabulary.end:
            return tokens.decode(line)
        line.append(best)
        state = state.advance(best)
        unread = [best]
        text = before + tokens.decode(line)
        piece = next_step(text, len(before), is_ended=False)
        if piece is not None:
            return piece.text
    return ""
