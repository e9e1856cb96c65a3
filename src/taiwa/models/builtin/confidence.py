"""The confidence of the built-in model in a solution: the probability of its own text, or 0 if the solution does not fit the
question.

The network runs without masks: if a mask had to force an unlikely word, the question differs from those of the training
(Kadavath et al. 2022 find that such probabilities distinguish right answers from wrong ones).
"""

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from taiwa.models.builtin.cjk_check import asked_names
from taiwa.models.builtin.conversion_check import CALLED, DIALLED, NEGATIVE, is_shortened, read_conversion
from taiwa.models.builtin.copy_constraint import CONVERTED
from taiwa.models.builtin.dimension_check import is_physical, over, read_unit
from taiwa.models.builtin.line_check import decided_spans, is_checkable, is_doubtful, lines_of
from taiwa.models.builtin.name_check import checked_names
from taiwa.models.builtin.network import Network
from taiwa.models.builtin.tokenizer import Tokens
from taiwa.models.builtin.word_problem_check import is_western

CONCLUSION = re.compile(r"answer is (?=[^\n]*\d)(?:-?[\d.,e+-]*\d)?\s*([^\n]*?)\.?\s*$|answer is [^\n]*->")
BEYOND = re.compile(
    r"how many (atom|molecule|electron|proton|neutron|ion)s?\b|atomic number|(?:^|[.,;!?] ?)which (?:one )?(?:is|are|has|costs|weighs)\b[^.?!]* or [^.?!]*\?|"
    r"\b(?:(?<!in )what time (?:will|is|did)|when (?:does|did|will|is|should))\b|何時(?!間)(?:に|です|頃|ごろ)|几点(?:到|钟?能|可以|会|了|[?？])",
    re.IGNORECASE,
)
"""Topics that the tools of the model do not cover, and questions whose answer is not a number."""
ASKED = {
    unit: re.compile(words, re.IGNORECASE)
    for unit, words in {
        "g": r"gram|(?<![a-z])g(?![a-z])|mass|weigh|heav|amount|quantity|how mu|need|requir|グラム|質量|质量|重|克",
        "mol": r"(?<![a-z])mol(?:e|es|s)?(?![a-z])|amount|モル|物質量|摩尔|物质的量",
        "g/mol": r"molar|molecular|formula|(?<![a-z])mol(?:e|es|s)?(?![a-z])|mass|weigh|heav|モル|分子量|式量|摩尔|質量|质量|重",
        "%": r"%|per ?cent|pct|share|part|portion|fraction|composition|yield|rate|purity|割合|率|パーセント|何割|百分|占|比例|多少成|分数|浓度|濃度",
        "°C": r"celsius|centigrade|(?<![a-z])C(?![a-z])|degrees(?! f)|temperature|warm|摂氏|摄氏|度",
        "°F": r"fahrenheit|(?<![a-z])F(?![a-z])|華氏|华氏",
    }.items()
}
"""For each unit of an answer, the words of questions that request it."""
TEMPERATURE = re.compile(
    r"[\d.]+ ?(?:°|degrees?|deg)? ?(?:celsius|centigrade|fahrenheit|[CF](?![a-z])|度?\(?[摂華摄华]氏度?)|[摂華摄华]氏[\d.]+度?",
    re.IGNORECASE,
)
"""A given temperature, whose scale may differ from the requested one."""
CONVERSION = re.compile(r"<<unit_conversion: -?[\d.]+ (\S+) to (\S+)>>")
ASKING = re.compile(r"how|what|which|何|いくら|いくつ|どれ|多少|几|什么", re.IGNORECASE)
ASKING_ALONE = re.compile(
    r"\bhow (?:many|much|long|far|fast)\b|\bwhat(?:'s| is| are)\b|いくら|いくつ|何(?![もかでをが])|多少|几(?!乎)",
    re.IGNORECASE,
)
"""Words that ask for a number, one of them in each clause that is a question."""
HOW_MANY = re.compile(r"\bhow many (?=[A-Za-z])", re.IGNORECASE)
COMPOUND = re.compile(r"\w|[ -]?(?:mol|hour|per\b|an?\b|/)", re.IGNORECASE)
"""What shows that a name of a unit goes on: `gram-moles`, `kilowatt hours`, `miles per hour`."""
END_OF_QUESTION = re.compile(r"[?？]+|\band (?=how (?:many|much)|what (?:is|are))", re.IGNORECASE)
STATED = re.compile(
    r"\b(?:costs?|weighs?|measures?|is|are) [^.;,]*\d|(?:は|的|是|[一1每][個个本冊支枚件杯只把台张張瓶袋箱斤])[^。、,]*\d",
    re.IGNORECASE,
)
CLAUSE = re.compile(r"[.;。、,](?!\d)|\band\b")
PART = re.compile(r"[;。、]|,(?!\d{3}(?!\d))|\.(?!\d)|\band\b")
RATIOS = re.compile(r"<<stoichiometry: [^\n]*>> ([^\n]*) -> ([^\n]*)\n<<calculator: ((?:min\()?[^()\n]*)")
"""A balanced equation, and the calculation after it."""
RATIO = re.compile(r"([\d.]+)\*(\d+)/(\d+)")
SPECIES = re.compile(r"(\d*)(\S+)")
NAMED_FORMULA = re.compile(r"([^,]+) is ([^\s,]+?)(?=, |\.?\Z)")
ZERO = re.compile(r"(?<![\d.,])0(?![\d.,])")
RESULT_END, CALL_END = "\n", ">>"


def confidence(network: Network, tokens: Tokens, question: str, solution: str) -> float:
    """Return the probability, 0 to 1, of the words of a solution that are the model's own.

    Excluded are results of tools, names and formulas of substances that match the table, and text that a check decides.
    """
    if not is_checkable(question) or not fits(question, solution):
        return 0.0
    known = (tokens.special["<solve>"], *tokens.encode(question), tokens.special["<answer>"])
    written = tokens.encode(solution)
    if len(known) + len(written) > network.context:
        return 0.0
    found = network.log_probabilities(known, written)
    checked = (0, len(checked_names(question, solution))), *decided_spans(question, solution)
    return math.exp(math.fsum(found[at] for at in own_tokens([tokens.decode([token]) for token in written], checked)))


def own_tokens(tokens: list[str], checked: Sequence[tuple[int, int]] = ()) -> Iterator[int]:
    """Yield the positions of the tokens outside tool results that do not begin between two `checked` places of the text.

    >>> list(own_tokens(["<<calculator: ", "2+3", ">>", " 5", "\\n", "So 5."]))
    [0, 1, 2, 4, 5]
    """
    text, in_result, place = "", False, 0
    for at, token in enumerate(tokens):
        in_result = in_result and RESULT_END not in token
        if not in_result and not any(start <= place < end for start, end in checked):
            yield at
        place += len(token)
        text = text[-1:] + token
        in_result = in_result or text.endswith(CALL_END)


def fits(question: str, solution: str) -> bool:
    """Return true if a solution answers a single question, in a requested unit, and converts only units that the question names.

    >>> fits("What does 1 mol of water weigh?", "The answer is 18.015 g.")
    True
    >>> fits("How many atoms are in 1 mol of water?", "The answer is 18.015 g/mol.")
    False
    """
    stated = CONCLUSION.search(solution)
    if stated is None or BEYOND.search(question) or _asks_twice(question) or _contradicts(question):
        return False
    calls = [(at, line) for at, line in lines_of(solution) if line.endswith(CALL_END)]
    if calls and (DIALLED.search(question) or is_shortened(question)):
        return False
    if NEGATIVE.search(question) and any(CONVERSION.search(line) and "-" not in line for _, line in calls):
        return False
    if calls and any(is_doubtful(question, solution[:at], line) for at, line in lines_of(solution)):
        return False
    if ZERO.search(question) and not any(ZERO.search(line) for _, line in calls):
        return False
    if any(_breaks_ratio(question, solution, *found.groups()) for found in RATIOS.finditer(solution)):
        return False
    read = read_conversion(question)
    is_decided = read is not None and read.call in solution
    if not is_decided and any(
        not _unit(name).search(question) for units in CONVERSION.findall(solution) for name in units
    ):
        return False
    if _has_other_dimension(question, stated[1] or ""):
        return False
    asked = ASKED.get(stated[1] or "")
    return asked is None or bool(asked.search(TEMPERATURE.sub(" ", question)))


def _has_other_dimension(question: str, unit: str) -> bool:
    """Return true if an answer has a unit of another dimension than all the units that the question asks for."""
    stated = read_unit(unit, 0)
    if stated is None or stated[1] != len(unit):
        return False
    if is_western(question):
        found = (read_unit(question, each.end()) for each in HOW_MANY.finditer(question))
        asked = [read[0] for read in found if read is not None and not COMPOUND.match(question, read[1])]
    else:
        asked = [
            over(one[0], other[0]) if by and other is not None else one[0]
            for name, by in asked_names(question).names
            if (one := read_unit(name, 0)) is not None and ((other := read_unit(by, 0)) is not None or not by)
        ]
    return bool(asked) and all(map(is_physical, asked)) and stated[0] not in asked


def _breaks_ratio(question: str, solution: str, left: str, right: str, calculation: str) -> bool:
    """Return true if moles are converted by coefficients of other substances than the given and requested ones."""
    names = {formula: name.strip() for name, formula in NAMED_FORMULA.findall(solution.partition("\n")[0])}
    coefficients = {
        formula: count or "1" for side in (left, right) for count, formula in map(_species, side.split(" + "))
    }
    spelt = {formula: (formula, names.get(formula, formula)) for formula in coefficients}
    there = [formula for formula in coefficients if _mention(*spelt[formula]).search(question)]
    for amount, asked, given in RATIO.findall(calculation):
        of = [formula for formula in coefficients if _amount_of(amount, spelt[formula]).search(question)]
        others = {coefficients[formula] for formula in there if formula not in of}
        if len(of) == 1 and (given != coefficients[of[0]] or (others and asked not in others)):
            return True
    return False


def _species(text: str) -> tuple[str, str]:
    found = SPECIES.fullmatch(text.strip())
    return (found[1], found[2]) if found else ("", text)


def _mention(*spellings: str) -> re.Pattern[str]:
    """Return a pattern of a substance by any of its spellings, as whole words."""
    return re.compile(rf"(?<![\w(])(?:{'|'.join(map(re.escape, spellings))})(?![\w(])", re.IGNORECASE)


def _amount_of(amount: str, spellings: tuple[str, ...]) -> re.Pattern[str]:
    mention = _mention(*spellings).pattern
    number = rf"(?<![\d.]){re.escape(amount)}\s?mol(?:e|es|s)?\b"
    return re.compile(rf"{number}\s+(?:of\s+)?(?:\w+\s+)?{mention}|{mention}\s*\({number}", re.IGNORECASE)


def _asks_twice(question: str) -> bool:
    """Return true if there are two questions, each with a number."""
    parts = END_OF_QUESTION.split(question)
    if sum(bool(ASKING.search(part) and re.search(r"\d", part)) for part in parts) > 1:
        return True
    clauses = PART.split(question)
    return sum(bool(ASKING_ALONE.search(each) and re.search(r"[\d二三四五六七八九十百]", each)) for each in clauses) > 1


def _contradicts(question: str) -> bool:
    """Return true if the same thing is stated twice with different numbers: `A pen costs 2 dollars. A pen costs 3 dollars.`"""
    stated: dict[str, str] = {}
    for clause in CLAUSE.split(question):
        statement = clause.strip().casefold()
        bare = re.sub(r"\d[\d.,]*", "#", statement)
        if STATED.search(statement) and stated.setdefault(bare, statement) != statement:
            return True
    return False


@lru_cache(256)
def _unit(name: str) -> re.Pattern[str]:
    """Return a pattern of the names of a unit: complete words in Latin letters, singular or plural."""
    one, slash, other = name.partition("/")
    found = [
        _named(name),
        *(rf"(?<![a-z]){each}(?![a-z])" if each.isascii() else each for each in CALLED.get(name, ())),
    ]
    if slash:
        found.append(rf"(?:{_named(one)})\s?(?:/|p(?:er)?|an?|each|every)\s?(?:{_named(other)})")
    return re.compile("|".join(found), re.IGNORECASE)


def _named(name: str) -> str:
    words = sorted({re.sub(r"(?<=ch)es$|s$", "", each) or each for each in CONVERTED.get(name, (name,))})
    latin = "|".join(re.escape(word) for word in words if word.isascii())
    return "|".join(
        ([rf"(?<![a-z])(?:{latin})(?:e?s)?(?![a-z])"] if latin else [])
        + [re.escape(word) for word in words if not word.isascii()]
    )
