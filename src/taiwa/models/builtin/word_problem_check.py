"""Find contradictions between a line about everyday quantities and the numbers, units and words of the question."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files

from taiwa.kernel.errors import ToolError
from taiwa.models.builtin.cjk_check import has_other_kind, is_told_otherwise, misuses, read_counted
from taiwa.models.builtin.conversion_check import KANA
from taiwa.models.builtin.copy_constraint import CONVERTED, NUMBER_WORDS, find_digits, find_numbers
from taiwa.models.builtin.dimension_check import (
    NEXT_TO,
    ONE_CALL,
    Mention,
    asked_dimensions,
    has_other_dimension,
    is_other_unit,
    is_plural,
    lacks_quantity,
    read_quantities,
    read_unit,
    stem,
)
from taiwa.models.builtin.name_check import NAMED, is_meant, likeness
from taiwa.tools.calculator import calculate

__all__ = ["NUMBERS", "ONCE", "cannot_be", "form_of", "is_known", "is_repeated", "known_numbers", "rename"]

ALIKE, BEGUN = 0.5, 3
"""The minimum similarity between a counted noun of the answer and a word of the question, and the leading letters to compare."""

CALCULATION = re.compile(r"<<calculator: (.*)>>\Z")
CONCLUSION = re.compile(r"Therefore, the answer is (-?\d*\.?\d+) ([A-Za-z/]+)\.?\Z")
UNITS = frozenset(CONVERTED) | frozenset(
    "dollars euros pounds rupees years months weeks hours minutes seconds miles cents degrees".split()
)
TOLD = re.compile(r"Therefore, the answer is -?\d*\.?\d+ ([A-Za-z][^.]*?)\.?\Z")
NUMBERS = re.compile(r"\d*\.?\d+")
THINGS = re.compile(r"\b(?:how many|number of) ([a-z]{4,})", re.IGNORECASE)
COUNT = rf"(?<![\w.-])(\d[\d,]*(?:\.\d+)?|{'|'.join(sorted(NUMBER_WORDS.keys() - {'a', 'an'}, key=len, reverse=True))})(?!\w)"
WHOLE = re.compile(r"/\([^()]*\)")
"""A divisor that is a sum; its parts occur again."""
ARITHMETIC = re.compile(
    r"(?:Multiply|Divide(?:d by)?|Add|Take|Work through|Times|For one|Price of one|The difference|One part|Pay times|More means|"
    r"Fewer means|So many times|Older|Younger|The whole by|The other one|One round|Concentration|The work is|"
    r"With the stream|Against the stream|All (?:moles|the way)|The same moles)\b"
)
"""The beginnings of sentences that use no other numbers than those of the question."""
HUNDRED = 100
SHARED = re.compile(r"(?:Take the share off|Add the share|The share of)\b")
EAST = "\u2e80"
"""The first East Asian code point."""
PERCENT, PERCENTS = (
    re.compile(r"%|\bp\w{0,4} ?c\w{0,6}t|share|hundred", re.IGNORECASE),
    frozenset({Fraction(1), Fraction(2), Fraction(100)}),
)
POWER = re.compile(r"to the power of|\^|\*\*")
PLAIN = ("Work it out.\n", "A power.\n")
"""Text before a calculation that the question gives in signs or words."""
SAME_WAY, OTHER_WAY = (
    r"\bsame (?:way|direction)|in the direction of|overtak",
    r"\b(?:opposite|(?:towards?|against) each other|meet)",
)
LESS, MORE = (
    r"\b(?:falls?|fell|drop|lower|reduc|cut|discount|rebate|off|decreas|loses?|lost|shrinks?|sinks?|less|down|cheap)",
    r"\b(?:ris|rose|grow|grew|increas|rais|add|plus|tip|tax|surcharge|gain|more|up|on top|higher|extra|fee|interest|climb|dearer|vat)",
)
NEVER = r"(?!)"
OPPOSITES = [
    (re.compile(said), re.compile(own, re.IGNORECASE), re.compile(other, re.IGNORECASE))
    for said, own, other in (
        (r"speeds (?:are )?added", OTHER_WAY, SAME_WAY),
        (r"^Multiply by the price", NEVER, r"\bhow many\b[^.?]*\b(?:buy|afford|get)\b[^.?]*\b(?:for|with)\b"),
        (r"speeds (?:are )?subtracted", SAME_WAY, OTHER_WAY),
        (r"^Add the share\.", MORE, LESS),
        (r"^Take the share off\.", LESS, MORE),
        (r"^Area|^The area", "area|surface|cover|cost|floor|wall|paint|tile", "perimeter|circumference|volume"),
        (
            r"^The (?:perimeter|circumference)|^A square has",
            "perimeter|circumference|around|fence|border|way",
            "area|volume|surface",
        ),
        (r"^The perimeter is twice", "length|width|side|long|by", "diamet|radius"),
        (
            r"^The perimeter is twice",
            r"(?:the|its) perimeter(?! (?:of|is) (?:about )?\w+ [a-z]*m)",
            r"(?:missing|other|second) side",
        ),
        (r"^The area of a triangle", "triang|base|gable|sail", "length|width|breadth"),
        (r"^The area of a circle", "circ|rad|diam|round", r"length|width|breadth|base|parallel|by \w+"),
        (r"^The surface is twice", "surface|cover|paint|wrap", "volume|capacity"),
        (r"^The volume of a cube", "cub|die|dice|edge", "radius|ball|sphere|globe"),
        (r"^Length times width", "area|surface|large|big|square", "perimeter"),
        (
            r"^(?:Add the share|Take the share off)",
            r"price|total|in all|account|to pay|altogether",
            r"extra|how much is added|saving|reduction|discount (?:worth|in)",
        ),
        (
            r"^The share of the price",
            r"sav|reduc|extra|add(?:ed|ition)|tax (?:is|comes)|how much (?:tax|discount|off|more|less)|discount",
            r"(?:sale|new|reduced|final|total) price|to pay\b|to be paid|paid (?:altogether|in (?:all|total))",
        ),
        (
            r"^(?:Add the share|Take the share off)",
            NEVER,
            r"\bby how much\b|\bhow much (?:more|less|extra|cheaper|dearer)\b",
        ),
        (
            r"^The part of the whole",
            r"\bnot (?:left|over)",
            r"\bhow (?:many|much)\b[^.?]*\b(?:remain\w*|left|kept|still)\b|\bremaining\b",
        ),
        (r"^The area is base times height", "base|parallel", "length|width|breadth"),
        (r"^(?:Add|Multiply|Divide|Take|Work)\b", NEVER, r"\baverage speed\b"),
        (
            r"^(?:Add|Multiply|Divide|Take|Work)\b",
            NEVER,
            r"\bratio\b.*(?<![\d.:])\d+ ?(?::|to) ?\d+(?!\d|[.:]\d)",
        ),
        (
            r"^Add the years",
            NEVER,
            r"\bhow (?:many years|much) (?:older|younger)\b|\bage difference\b|\byears? younger(?! than)",
        ),
        (r"\byears\b", NEVER, r"\bhow (?:tall|heavy|far|high|wide|fast|big)\b"),
        (r"^Add\.", NEVER, r"\bsum of \w+ numbers is\b.*\b(?:first|second|third|largest|smallest)\b"),
        (r"^Multiply\.", NEVER, r"\bdensity of\b"),
        (r"^A half dozen", NEVER, r"\band a half dozen\b"),
        (r"^Take the years away", NEVER, r"\byears? older(?! than)"),
        (
            r"^Multiply by the price",
            NEVER,
            r"\b(?:packs?|box|bag|set|carton|dozen) of \d[^.?]*\bcosts?\b[^?]*\b(?:what|how much)\b[^?]*\b(?:one|each|a single)\b",
        ),
        (
            r"^The rest of the hundred",
            LESS + r"|\brest|remain|left|keep|not\b|without",
            r"\b(?:tip|tax|vat|interest|surcharge)\b",
        ),
        (r"^Multiply", NEVER, r"\b(?:gets?|got|given|handed|receives?) back\b|\b(?:what|how much) change\b"),
        (
            r"^The share of the whole",
            r"how many (?:are|is) \w+\?|\b(?:of|off) the",
            r"\b(?:do not|don't|does not|left|remain\w*)\b",
        ),
    )
]
"""The statement of a line, the question words that fit it, and those that ask for something else."""


NEEDED = [
    (re.compile(said), re.compile(needed, re.IGNORECASE))
    for said, needed in (
        (r"^A pair is", "pair"), (r"^A (?:half )?dozen is", "dozen"), (r"^A hundred is", "hundred"),
        (r"^Hours are 60", r"\d[:.]\d|\d ?h|hour|o'clock|[ap]\.?m\b"), (r"^Half means", "half|halv|1/2"), (r"^A third means", "third|1/3"),
        (r"^A quarter means", r"quarter|f\w{1,3}th|1/4"), (r"^Two thirds means", "two[ -]thirds|2/3"), (r"^A tenth means", "tenth|1/10"),
        (r"^Three quarters means", "three[ -](?:quarter|fourth)s|3/4"), (r"^Twice means", r"twice|doubl|(?:two|2) times"),
        (r"^Triple means", r"tripl|thrice|(?:three|3) times"), (r"^Compound", "compound"),
        (r"^A power", r"power|\^|\*\*|squar|cube|[²³⁴]|raised|to the \w+th"),
        (r"^Add both", r"\bthan\b|\bas (?:many|much|old|long|big)\b|\btimes\b|twice|half|doubl|tripl|thrice|between"),
        (r"^Simple", "simpl|^(?!.*compound)"),
        (r"^Take away what was added", r"plus|more|add|increas|sum|great"), (r"^Add what was taken away", r"minus|less|subtract|tak|decreas|reduc|fewer|away"),
        (r"^Divide by the factor", r"times|multipl|product|\bx\b"), (r"^Multiply by the divisor", r"divid|shar|split|over|quotient"),
        (r"^With the stream", r"\bdown|\bwith the|before"), (r"^Against the stream", r"\bup|against"),
        (r"times the radius|the radius squared", "rad[iu]|wide"), (r"times the diameter|half the diameter", "diam|across|wide"), (r"triangle", "triang|gable|base|sail"),
        (r"of a cube|^A cube", "cub|die|dice|edge|side"), (r"sphere", "spher|ball|globe"),  (r"circle|circumference", "circ|round|rad[iu]|diam|disc|coin|wheel|ring|pond|pool"),
        (r"^The area of a square|^A square has", "squar|side|edge"), (r"^The side is the root", "area|surface"), (r"^Half the perimeter", "perimeter|around|border|fence|boundary"),
        (r"^(?:Take the share off|Add the share|The share of|The rest of the hundred)|in percent", r"%|\bp\w{0,4} ?c\w{0,8}t|share|portion|part|rate|concentration|precen"),
        (r"^The difference over", r"%|\bp\w{0,4} ?c\w{0,8}t|precen"),
    )
]  # fmt: skip
"""The statement of a line, and words of which the question must contain one."""


CALCULATED = [
    (re.compile(asked, re.IGNORECASE), re.compile(needed))
    for asked, needed in (
        (r"\btimes the sum of", r"\("), (r"half of the sum of", r"\(.*\)"), (r"\b(?:thrice|tripl\w+|three times as)\b", r"(?<![\d.])3(?![\d.])"),
        (r"\b(?:twice|doubl\w+|two times as|half (?:of )?(?:them|the|it)\b)", r"(?<![\d.])2(?![\d.])|0\.5"),
        (
            r"\b(?:sort|arrange|rank)\b|\b(?:ascending|descending) order\b|\bnext (?:number|term)s?\b|\b(?:number|comes) next\b"
            r"|\bprimes?\b|\beven or odd\b|\bodd or even\b|\bdivisible\b|\bmedian\b",
            NEVER,
        ),
    )
]  # fmt: skip
"""Words of a question, and what a calculation must then contain."""
PAIR = re.compile(
    r"\bbetween (\w+) and (\w+)|\bratio of (\w+) to (\w+)|\b(\w+) (?:and|to) (\w+) (?:share|split|divide|are (?:mixed|in)|get|is|are)\b|\b(?:needs?|of|mix\w*|contains?|has|have) (\w+) and (\w+)\b",
    re.IGNORECASE,
)
RATIO = re.compile(r"(?<![\d.:])(\d+) ?(?::|to) ?(\d+)(?!\d|[.:]\d)")
AMOUNT = re.compile(rf"(?<!\w)(?:[\d.,]+|{'|'.join(NUMBER_WORDS)})[ -]?(?:[A-Za-z]+ )?of (\w+)", re.IGNORECASE)
PARTS = re.compile(r"[\d.]+/(?:\(\d+\+\d+\)|(\d+))\*(\d+)\Z")
PART_OF = re.compile(r"round\(([\d.]+)/\(([\d.]+)\+([\d.]+)\)\*100, 2\)\Z")


def _is_other_part(question: str, calculation: str) -> bool:
    """Return true if a ratio or a mixture is calculated for the wrong one of two."""
    if (
        (found := PARTS.match(calculation)) is not None
        and (ratio := RATIO.search(question)) is not None
        and (pair := PAIR.search(question))
    ):
        names = [each for each in pair.groups() if each]
        asked = _asked_name(question.replace(pair[0], " ", 1), names)
        if asked is None or ratio[1] == ratio[2]:
            return False
        part, other = (ratio[1], ratio[2]) if asked == names[0] else (ratio[2], ratio[1])
        return found[2] != part or (found[1] is not None and found[1] != other)
    if (found := PART_OF.match(calculation)) is not None:
        amounts = {match[1]: match[0] for match in AMOUNT.finditer(question)}
        asked = _asked_name(question, list(amounts)) if len(amounts) == 2 else None
        numbers = read_quantities(amounts[asked]).mentions if asked else ()
        return bool(numbers) and numbers[0].value != Fraction(found[1])
    return False


def _asked_name(question: str, names: Sequence[str]) -> str | None:
    """Return which one of two names occurs in a question without an amount; None if both do, or neither."""
    rest = AMOUNT.sub(" ", question)
    found = [each for each in names if re.search(rf"\b{re.escape(each)}\b", rest, re.IGNORECASE)]
    return found[0] if len(found) == 1 else None


ONCE = "once"
RUN = re.compile(r"n(?:\+n){2,}")


def form_of(calculation: str) -> str:
    """Return a calculation without its numbers, with longer sums shortened to three terms.

    >>> form_of("(12+7+9+20)/4*1.5")
    '(n+n+n)/n*n'
    """
    return RUN.sub("n+n+n", NUMBERS.sub("n", calculation))


CLOCK = re.compile(r"(?<![\d.,])([01]?\d|2[0-4])[.:]([0-5]\d)(?![.,]?\d)")
"""A time of day, whose hours and minutes a calculation uses."""


def known_numbers(question: str) -> frozenset[str]:
    """Return the numbers in a question, and those that its words stand for.

    >>> sorted(known_numbers("from 8.05 to 9:30") & {"5", "8", "9", "30"})
    ['30', '5', '8', '9']
    """
    quantities = read_quantities(question)
    values = {each.value for each in quantities.mentions} | quantities.words
    halves = find_numbers(question) & {"0.5", "1.5", "2.5"}  # `half an hour`
    times = {str(int(part)) for found in CLOCK.finditer(question) for part in found.groups()}
    return frozenset(f"{float(each):.10g}" for each in values) | find_digits(question) | halves | times | {"1"}


@dataclass(frozen=True, slots=True)
class _Solution:
    """The forms of the calculations after a sentence, `*` for any, and their numbers that questions do not state."""

    forms: frozenset[str]
    constants: frozenset[str]
    is_once: bool
    """No number of the question occurs in them more often than it is given."""


@cache
def _solutions() -> Mapping[str, _Solution]:
    """Return the sentences that begin solutions."""
    rows = (files("taiwa.models.builtin") / "solutions.tsv").read_text("utf-8").splitlines()
    return {
        sentence: _Solution(frozenset(forms.split("|")), frozenset(constants.split()), repeated == ONCE)
        for sentence, forms, constants, repeated in (row.split("\t") for row in rows)
    }


def is_known(sentence: str) -> bool:
    """Return true if a sentence begins a trained solution, or says that there is none."""
    return sentence in _solutions() or sentence.startswith(("I do not know ", "I can only "))


def _is_other_form(question: str, before: str, calculation: str) -> bool:
    """Return true if the calculation after the first sentence has an untrained form, or numbers from elsewhere."""
    solution = _solutions().get(before.removesuffix("\n"))
    if solution is None:
        return False
    if solution.is_once and is_repeated(question, calculation, solution.constants.union(NUMBERS.findall(before))):
        return True
    if "*" in solution.forms:
        return False
    others = {*NUMBERS.findall(calculation)} - known_numbers(question) - solution.constants - {*NUMBERS.findall(before)}
    return form_of(calculation) not in solution.forms or bool(others and read_quantities(question).mentions)


def is_repeated(question: str, calculation: str, constants: Collection[str]) -> bool:
    """Return true if a number of the question occurs in a calculation more often than it is given; some constants are exempt.

    >>> is_repeated("Five nuts and 3 figs", "5+3+3", ()), is_repeated("Five nuts and 3 figs", "5*3", ())
    (True, False)
    """
    quantities = read_quantities(question)
    given = Counter(each.value for each in quantities.mentions)
    used = Counter(map(Fraction, NUMBERS.findall(calculation)))
    apart = {1, HUNDRED, *map(Fraction, constants), *quantities.words}
    return any(count > given[number] for number, count in used.items() if number in given and number not in apart)


TOTAL = re.compile(
    r"\b(?:balance|amounts?|(?:in|at) the end|altogether|in all|(?:in )?total|repa(?:y|ys|id)|(?:pay|paid|pays|gets?|get) back|grow[ns]?|worth|becomes?|final)\b",
    re.IGNORECASE,
)
EARNED = re.compile(
    r"\b(?:how much|what(?:'s| is| was| will be)?|find|calculate|compute|determine|give|get|tell me|work out|the|so much)(?: the)?"
    r"(?: (?:simple|compound(?:ed)?|total|yearly|earned))* interest\b|\b(?:earned|gained|interest (?:is|comes|does|there))\b|how much (?:\w+ ){1,3}(?:earns?|gains?|bears?)\b",
    re.IGNORECASE,
)
"""Words of a question about interest that ask for the total amount, and for the interest alone."""
INTEREST = re.compile(r"(?P<simple>Simple)|Compound")
COUNTED_BY = re.compile(
    r"\b(?:how many|number of|how often) (?:whole |full |complete |half )?(?:half[- ])?(?:dozens?|pairs?|hundreds?)\b",
    re.IGNORECASE,
)
SET = re.compile(r"A (?:half )?(?:dozen|pair|hundred) is \d+\.\n\Z")
PART_OF_WHOLE = re.compile(r"The (?:part of the whole|whole less the part)\.\n\Z")
PART = re.compile(r"\*(\d+)/(\d+)\Z")
FRACTIONS_SAID = {
    name: parts
    for names, parts in (
        ("half halves", 2),
        ("third thirds", 3),
        ("quarter quarters fourth fourths", 4),
        ("fifth fifths", 5),
        ("sixth sixths", 6),
        ("eighth eighths", 8),
        ("tenth tenths", 10),
    )
    for name in names.split()
}
PARTS_SAID = re.compile(rf"\b(?:{'|'.join(FRACTIONS_SAID)})\b|(?<![\d/])\d+/(\d+)(?![\d/])", re.IGNORECASE)


def _is_other_sum(question: str, before: str, calculation: str) -> bool:
    """Return true if interest is with or without the principal, a set multiplied or divided, or a part the whole, contrary to the
    question.
    """
    if (kind := INTEREST.match(before)) is not None:
        is_total, is_earned = bool(TOTAL.search(question)), bool(EARNED.search(question))
        money = calculation.partition("*")[0]
        has_money = "+" in money if kind["simple"] else not re.search(r"-[\d.]+\Z", calculation)
        return is_total not in (is_earned, has_money)
    if SET.match(before):
        return bool(COUNTED_BY.search(question)) != ("/" in calculation)
    part = PART.search(calculation) if PART_OF_WHOLE.match(before) else None
    if part is None:
        return False
    said = {int(found[1] or FRACTIONS_SAID.get(found[0].lower(), 0)) for found in PARTS_SAID.finditer(question)}
    return part[1] == part[2] or (bool(said) and int(part[2]) not in said)


def is_western(question: str) -> bool:
    """Return true if a question contains no East Asian character; `€`, `°` and `Ω` do not count as such."""
    return max(question, default="") < EAST


SHARE_OF_ONE = re.compile(r"round\(([\d.]+)\*([\d.]+)/([\d.]+)\*100, 2\)")


def _is_whole_share(calculation: str) -> bool:
    """Whether an element is compared with itself, because the compound is not known."""
    found = SHARE_OF_ONE.fullmatch(calculation)
    return found is not None and Fraction(found[1]) * Fraction(found[2]) == Fraction(found[3])


def cannot_be(question: str, before: str, line: str) -> bool:
    """Return true if a line about quantities contradicts its question."""
    if not is_western(question):
        return _cannot_be_cjk(question, before, line)
    if (found := CALCULATION.fullmatch(line)) is not None:
        return (
            (before == "Divide by the number.\n" and found[1].endswith("/1"))
            or _is_whole_share(found[1])
            or _miscounts(question, before, found[1])
            or _leaves_out(question, before, found[1])
            or ("<<" not in before and _is_idle(question, found[1]))
            or _is_other_time(question, found[1])
            or _is_below_nothing(question, found[1])
            or _is_no_motion(question, before, found[1])
            or _is_other_part(question, found[1])
            or _is_other_sum(question, before, found[1])
            or _is_other_form(question, before, found[1])
            or (
                "<<" not in before
                and any(asked.search(question) and not needed.search(found[1]) for asked, needed in CALCULATED)
            )
            or _is_other_story(question, before, found[1])
            or ("<<" not in before and has_other_dimension(question, before, found[1]))
        )
    if (told := TOLD.search(line)) is not None and is_other_unit(question, before, told[1]):
        return True
    if (ended := CONCLUSION.search(line)) is not None:
        return _is_strange(question, ended[2]) or _has_other_unit(question, before, ended[1], ended[2])
    if not before and "<<" not in line and not NAMED.match(line) and not is_known(line):
        return True
    if line in REFUSALS:
        return bool(read_quantities(question).mentions) and bool(WHOLE_TASK.search(question))
    if lacks_quantity(question, line) or any(
        said.search(line) and not needed.search(question) for said, needed in NEEDED
    ):
        return True
    return any(
        said.search(line) and other.search(question) and not own.search(question) for said, own, other in OPPOSITES
    )


DISCOUNT_IN_JAPANESE = re.compile(r"(?:割引|割り引|割OFF|割オフ|(?:%|パーセント)(?:引|オフ|off|OFF))(?!額)|割引き")
PAID_IN_JAPANESE = re.compile(r"払|レジ|会計|請求|引後|引き後")


CHANGED_CJK = re.compile(
    r"もら[いっ]|あげ[またる]|食べ|なくし|無くし|拾|増え|減[りっ]|残[りっ]|又|得到|给了|吃了|用掉|送[给了]|还剩"
)
GROUPED_CJK = re.compile(
    r"ずつ|倍|毎|あたり|当たり|につき|それぞれ|各|每|乘|×|[*]|[1一]\s*[個本枚人箱袋冊匹つ个只支张]|[箱袋皿列段束班組盒排]|ケース|パック|セット|円|元"
)
"""Words of a story in which things come and go, and of one in which groups of the same size are multiplied."""
ITSELF, PRODUCT = re.compile(r"([\d.]+)-\1"), re.compile(r"[\d.]+\*[\d.]+")
CUPS = re.compile(r"<<unit_conversion: .* to cups>>\Z")


def _cannot_be_cjk(question: str, before: str, line: str) -> bool:
    """Whether a line about quantities contradicts its question in Japanese or Chinese."""
    if CUPS.fullmatch(line):  # `何杯` asks for vessels of any size
        return bool(KANA.search(question)) and not re.search(r"カップ|cup", question, re.IGNORECASE)
    solution = _solutions().get(before.partition("\n")[0])
    if (found := CALCULATION.fullmatch(line)) is not None:
        is_story = CHANGED_CJK.search(question) and not GROUPED_CJK.search(question)
        if ITSELF.fullmatch(found[1]) or (is_story and PRODUCT.fullmatch(found[1])):
            return True
        if "<<" in before or solution is None:
            return False
        return (
            not ("*" in solution.forms or form_of(found[1]) in solution.forms)
            or misuses(question, found[1], solution.constants.union(NUMBERS.findall(before)))
            or _is_below_nothing(question, found[1])
            or _is_idle(question, found[1])
            or has_other_kind(question, found[1])
        )
    if line.startswith("Therefore") and "%" not in line and re.search("何(?:パーセント|%)|百分之(?:几|多少)", question):
        return True
    if (told := TOLD.search(line)) is not None:
        worked = ONE_CALL.fullmatch(before) if solution is not None else None
        return worked is not None and is_told_otherwise(question, worked["calculation"], told[1])
    if line.startswith("The share of the price") and DISCOUNT_IN_JAPANESE.search(question):
        return bool(PAID_IN_JAPANESE.search(question))
    return not before and "<<" not in line and not NAMED.match(line) and not is_known(line)


WHOLE_TASK = re.compile(
    r"\b(?:pairs?|dozens?|doubl\w+|tripl\w+|halves|halved|half of|twice|thrice|radius|diameter)\b|\bhow many pairs|\b(?:a|some|certain|unknown) number (?:plus|minus|less|times)\b",
    re.IGNORECASE,
)
"""Operations that need one number only, or produce one of the given numbers."""
REFUSALS = frozenset(("A number is missing: I cannot work this out.", "I do not know this unit: I cannot convert it."))


ASKED_THING = re.compile(r"\b(?:how many|number of)((?: [A-Za-z'’]+){1,5})", re.IGNORECASE)
PASSED = frozenset("the his her their my our your its more fewer other single full new whole old".split())
"""Words between `how many` and the noun that is counted."""
NO_THINGS = frozenset("times this does is was has his us plus minus less".split())
PRICED = re.compile(
    r"\b(?:an?|one|each|every|the) (?P<one>[a-z]{3,}) (?:costs?|comes to|is sold|sells|goes for|is priced)\b|\bprice of (?:an?|one|each) (?P<of>[a-z]{3,})\b|"
    r"\b(?P<many>[a-z]{3,}s) (?:cost|are sold|sell)\b",
    re.IGNORECASE,
)
HOW_MANY_OF_THEM = re.compile(
    r"\bhow many (?:of (?:them|these|those)|can|could|does|do|will|may|is|are|did|has|have|now)\b", re.IGNORECASE
)
BY_PRICE = "Divide by the price.\n"


def rename(question: str, before: str, line: str) -> str:
    """Return the last line with the noun that the question asks for, if it counts another one.

    >>> rename("Seven guests share 84 custoplurbers.", "", "Therefore, the answer is 12 custests.")
    'Therefore, the answer is 12 custoplurbers.'
    """
    ended = CONCLUSION.search(line)
    if not is_western(question) or ended is None:
        return line
    thing = (
        _asked_thing(question, before)
        if "<<calculator" in before and "<<m" not in before and "<<s" not in before
        else ""
    )
    is_said = len(re.findall(rf"\b{re.escape(stem(thing))}", question, re.IGNORECASE)) > 1 or BY_PRICE in before
    if thing and stem(thing) != stem(ended[2]) and (is_said or not is_plural(ended[2]) or ended[2] not in question):
        return line[: ended.start(2)] + thing + line[ended.end(2) :]
    if not _is_strange(question, ended[2]):
        return line
    words, begun = re.findall(r"[A-Za-z]{3,}", question), ended[2][:BEGUN].lower()
    nearest = max(words, key=lambda word: (word.lower().startswith(begun), likeness(word, ended[2])), default="")
    return line[: ended.start(2)] + nearest + line[ended.end(2) :] if likeness(nearest, ended[2]) >= ALIKE else line


def _asked_thing(question: str, before: str) -> str:
    """Return the noun of which a question asks how many there are; "" for a unit, for several nouns and for none."""
    asked = [*ASKED_THING.finditer(question)]
    found = {word.lower() for each in asked if (word := _first_plural(each[1]))}
    if len(found) == 1:
        return found.pop()
    if found or not before.startswith(BY_PRICE) or not HOW_MANY_OF_THEM.search(question):
        return ""
    priced = {(each["many"] or several(each["one"] or each["of"])).lower() for each in PRICED.finditer(question)}
    return priced.pop() if len(priced) == 1 else ""


def _first_plural(words: str) -> str:
    """Return the first plural noun after words that may precede it; "" if another word comes first, or for a unit."""
    for word in words.split():
        if word.endswith(("'s", "’s")) or word.lower() in PASSED:
            continue
        if word.lower() in NEXT_TO or word.lower() in NO_THINGS or "'" in word:
            return ""
        if is_plural(word):
            return "" if _is_unit(word) else word
    return ""


def _is_unit(word: str) -> bool:
    return (
        read_unit(word, 0) is not None
        or word.lower() in UNITS
        or any(word.lower() in names or is_meant(names[0], word) for names in CONVERTED.values())
    )


def several(word: str) -> str:
    """Return the plural of a noun, guessed from its spelling."""
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


def _miscounts(question: str, before: str, calculation: str) -> bool:
    """Return true if a number of the requested things is unused, or any number while another one is used more often than it is
    given.

    A solution that only says `Multiply.` or `Take away.` may also not use a number that the question does not state.
    """
    quantities = read_quantities(question)
    written = [Fraction(each) for each in NUMBERS.findall(calculation)]
    if before in PLAIN and not quantities.words and (before == PLAIN[0] or POWER.search(question)):
        given = [each.value for each in quantities.mentions]
        if len({*given}) == len(given) > 1:
            return written != given
    if "<<" in before or "log" in calculation:
        return False
    if not {*map(Fraction, _asked_things(question))} <= {*written}:
        return True
    given_ = Counter(each.value for each in quantities.mentions if each.value != 1)
    used = Counter(Fraction(each) for each in NUMBERS.findall(WHOLE.sub("", calculation)))
    if any(count > given_[each] for each, count in used.items() if each in given_) and not {*given_} <= {*written}:
        return True
    if SHARED.match(before) and any(
        count > given_[each] for each, count in used.items() if each in given_ and each != HUNDRED
    ):
        return True
    if not ARITHMETIC.match(before):
        return False
    shares = (each.value / 100 for each in quantities.mentions if each.is_percent)
    known = {
        Fraction(1),
        *given_,
        *quantities.words,
        *({Fraction(1)} if quantities.words or "recip" in question.lower() else ()),
        *(each for share in shares for each in (share, 1 + share, abs(1 - share))),
    }
    return not {*written} <= known | {*map(Fraction, NUMBERS.findall(before))} | (
        PERCENTS if PERCENT.search(before + question) else {*()}
    )


SENTENCE_END = re.compile(r"[.!?;](?=\s|\Z|[A-Z])|\n")
NUMBERED = re.compile(r"\b(?:number|room|table|page|line|bus|no\.?|#) ?\Z", re.IGNORECASE)
AGED = re.compile(r"[\w-]+[ -]years?[ -]olds?\b", re.IGNORECASE)
ABOUT_AGE = re.compile(r"\b(?:old|older|age|aged|ages|young|younger|years)\b", re.IGNORECASE)
PAIRED = re.compile(r"two\b|[\w-]+ of (?:them|these|those)\b", re.IGNORECASE)
"""A word that mostly says no more than what is told of each: `two trains with speeds of`."""


def _leaves_out(question: str, before: str, calculation: str) -> bool:
    """Whether a calculation leaves out a number of the question; not one that a sentence by itself tells of something else."""
    quantities = read_quantities(question)
    if "<<" in before or quantities.words or SET.match(before) or before.removesuffix("\n") not in _solutions():
        return False
    used = {*map(Fraction, NUMBERS.findall(calculation))}
    given = [
        each
        for each in quantities.mentions
        if each.value not in (0, 1)
        and not NUMBERED.search(question[: each.start])
        and not PAIRED.match(question, each.start)
        and not (AGED.match(question, each.start) and not ABOUT_AGE.search(question, each.end + len(" years old")))
    ]
    times = {found.start(): Fraction(found[1]) for found in CLOCK.finditer(question)}
    left_out = [each for each in given if used.isdisjoint((*_uses(each), times.get(each.start, each.value)))]
    return any(not _is_aside(question, each, given) for each in left_out)


def _uses(number: Mention) -> Iterator[Fraction]:
    """Yield the numbers by which a calculation may use one of the question."""
    yield number.value
    if number.is_percent:
        share = number.value / HUNDRED
        yield from (share, 1 - share, 1 + share, HUNDRED - number.value, HUNDRED + number.value)


def _is_aside(question: str, number: Mention, given: Sequence[Mention]) -> bool:
    """Whether a number stands in a sentence by itself before the question, and nothing else is counted in its unit."""
    start = max((found.end() for found in SENTENCE_END.finditer(question, 0, number.start)), default=0)
    behind = SENTENCE_END.search(question, number.end)
    others = [each for each in given if each is not number]
    alike = {base for each in others for dimension in each.dimensions for base, _ in dimension}
    alike |= {base for dimension in asked_dimensions(question) for base, _ in dimension}
    own = {base for dimension in number.dimensions for base, _ in dimension}
    is_last = behind is None or not question[behind.end() :].strip()
    is_alone = not any(start <= each.start < (behind.start() if behind else len(question)) for each in others)
    return not is_last and is_alone and not number.is_percent and own.isdisjoint(alike)


SPEED_SCALING = re.compile(r"\*(?:5/18|18/5)(?![\d.])")
FACTORS = re.compile(r"[*/]?[\d.]+")
DILUTED = re.compile(r"([\d.]+)\*([\d.]+)/\((?:\1|\2)\+[\d.]+\)")
ADDING = re.compile(
    r"\badd|\bplus\b|\bmix|\bmore\b|\bpour|\bput|\bwith\b|\bcombin|\bother\b|\band\b|加|足|入れ|混|倒|注|そそ|和|と",
    re.IGNORECASE,
)
BRACKETED = re.compile(r"\([^()]*\)")


def _is_idle(question: str, calculation: str) -> bool:
    """Whether a calculation divides a number by itself, adds volumes where nothing is added, or a share to what it is a share of."""
    if is_western(question):
        mentions = read_quantities(question).mentions
        plain = Counter(each.value for each in mentions if not each.is_percent)
        shares = {each.value for each in mentions if each.is_percent}
    else:
        counted = read_counted(question)
        plain = Counter(each.value for each in counted if not each.is_percent)
        shares = {number for each in counted if each.is_percent for some in each.uses for number in some}
    factors = FACTORS.findall(calculation)
    if "".join(factors) == calculation and not SPEED_SCALING.search(calculation):
        divisors = {Fraction(each[1:]) for each in factors if each[0] == "/"}
        others = {Fraction(each.lstrip("*")) for each in factors if each[0] != "/"}
        if any(plain[each] == 1 for each in divisors & others):
            return True
    if DILUTED.fullmatch(calculation) and not ADDING.search(question):
        return True
    flat = BRACKETED.sub("x", BRACKETED.sub("x", calculation))
    terms = re.split(r"[-+]", flat)
    bare = {Fraction(each) for each in terms if NUMBERS.fullmatch(each)}
    return len(terms) > 1 and bool(bare & shares - plain.keys()) and bool(bare & plain.keys() - shares - {HUNDRED})


TIME_UNIT = r"(?:(?P<s>s|secs?|seconds?)|(?P<min>mins?|minutes?)|(?P<h>h|hrs?|hours?)|(?P<d>days?|dai)|(?P<w>weeks?)|(?P<mo>months?)|(?P<y>years?))"
BY_TIME = re.compile(
    rf"(?:\b(?:an?|per|each|every|in one) |/ ?){TIME_UNIT}\b|\b{TIME_UNIT.replace('?P<', '?P<b')}ly\b", re.IGNORECASE
)
TIME_BEHIND = re.compile(rf"[ -]?{TIME_UNIT}\b", re.IGNORECASE)


def _is_other_time(question: str, calculation: str) -> bool:
    """Whether something by the day is multiplied by weeks: the only unit of time of a rate and that of a number differ."""
    used = {*map(Fraction, NUMBERS.findall(calculation))}
    quantities = read_quantities(question)
    if not re.fullmatch(r"[\d.]+[*/][\d.]+", calculation) or not used <= {each.value for each in quantities.mentions}:
        return False
    by = {(found.lastgroup or "").removeprefix("b") for found in BY_TIME.finditer(question)}
    spans = {
        found.lastgroup
        for each in quantities.mentions
        if each.value in used and (found := TIME_BEHIND.match(question, each.end)) is not None
    }
    return len(by) == 1 and len(spans) == 1 and by != spans


LOSING = r"(?:loses?|lost|sells?|sold|uses?|used|drops?|dropped|breaks?|broke|donate[sd]?|spends?|spent|eats?|ate|throws? away|threw away)"
GIVING = r"(?:gives?|gave|hands?|handed|sends?|sent|lends?|lent|pass(?:es|ed))(?: away)?"
GETTING = r"(?:gets?|got|receive[sd]?|finds?|found|wins?|won|picks? up|picked(?: up)?|collect(?:s|ed)|(?:is|was) given|earn(?:s|ed)|grows by)"
LOST_BEFORE = re.compile(rf"\b(?:{LOSING}(?: \w+){{0,2}}|{GIVING})\s+\Z", re.IGNORECASE)
LOST_BEHIND = re.compile(
    r" (?:of (?:them|the)\b|(?:(?!\b(?:and|then)\b)[^.,;\d])*?\b(?:away\b|from the lot|(?:get|got|are|were) (?:lost|sold|stolen|thrown out|taken|used up|broken)|went missing|fall down|disappear))",
    re.IGNORECASE,
)
GOT_BEFORE = re.compile(rf"\b(?:{GETTING}|then \w+ (?:buys|adds))\s+(?:another )?\Z", re.IGNORECASE)
GOT_BEHIND = re.compile(r"\s+(?:more|others|new)\b(?! than)", re.IGNORECASE)
STORY = re.compile(r"(?:Work through what happens|Add them|Take away)\.\n\Z")


def _is_other_story(question: str, before: str, calculation: str) -> bool:
    """Return true if a calculation adds a loss in a story, subtracts a gain, or omits either."""
    if not STORY.match(before) or re.search(r"\bthan\b|before|at first|originally|to begin with", question):
        return False
    signs: dict[Fraction, set[int]] = {}
    _note_signs(calculation, signs)
    wanted: dict[Fraction, set[int]] = {}
    mentions = read_quantities(question).mentions
    for each in mentions:
        ahead, behind = question[: each.start], question[each.end :]
        lost = bool(LOST_BEFORE.search(ahead)) or bool(LOST_BEHIND.match(behind))
        got = bool(GOT_BEFORE.search(ahead)) or (
            bool(GOT_BEHIND.match(behind))
            and not re.search(rf"\b(?:{LOSING}|{GIVING}|t[ao]kes?|took)\b[^.;]*\Z", ahead, re.IGNORECASE)
        )
        wanted.setdefault(each.value, set()).add(0 if lost == got else -1 if lost else 1)
    if not mentions or -1 in wanted[mentions[0].value]:
        return False
    return any(
        len(want) == 1 and 0 not in want and not want <= signs.get(number, want) for number, want in wanted.items()
    )


def _note_signs(calculation: str, signs: dict[Fraction, set[int]]) -> None:
    """Record the signs with which the numbers of a calculation are added; factors are left out."""
    stack, sign = [1], 1
    for each in re.findall(r"\d*\.?\d+|[-+()*/]", calculation):
        if each in "+-":
            sign = 1 if each == "+" else -1
        elif each == "(":
            stack.append(stack[-1] * sign)
            sign = 1
        elif each == ")":
            stack = stack[:-1] or [1]
        elif each in "*/":
            sign = 0
        else:
            signs.setdefault(Fraction(each), set()).add(stack[-1] * sign)


def _asked_things(question: str) -> Iterator[str]:
    """Yield the numbers of the things of which a question asks how many there are."""
    asked = THINGS.search(question)
    if asked is not None:
        for found in re.finditer(rf"{COUNT} (?:[a-z]+ )?{asked[1][:-1]}", question, re.IGNORECASE):
            number = NUMBER_WORDS.get(found[1].lower(), found[1].replace(",", ""))
            if number != "1":
                yield number.lstrip("0")


def _is_below_nothing(question: str, calculation: str) -> bool:
    """Return true if a difference of given numbers is negative."""
    if re.search(r"- ?\.?\d|\d ?-|minus|negative|below zero|another number|numbers", question):
        return False
    with suppress(ToolError):
        return calculate(calculation) < 0
    return False


def _is_strange(question: str, word: str) -> bool:
    """Return true if the noun counted in the answer does not occur in the question."""
    stem = word.lower()[: max(3, len(word) - 3)]
    return len(word) > 4 and word.isalpha() and stem not in question.lower() and word not in UNITS


LENGTHS = {
    "kms?|kilomet(?:er|re)s?": Fraction(1000), "m|met(?:er|re)s?": Fraction(1), "cms?|centimet(?:er|re)s?": Fraction(1, 100),
    "mi|miles?": Fraction("1609.344"), "feet|foot|ft": Fraction("0.3048"), "yards?|yd": Fraction("0.9144"),
}  # fmt: skip
TIMES = {
    "s|secs?|seconds?": Fraction(1), "min|mins|minutes?": Fraction(60), "h|hrs?|hours?": Fraction(3600), "days?": Fraction(86400),
}  # fmt: skip
SPEEDS_OF = {"km/?hr?|kmph|kph": Fraction(1000, 3600), "mph": Fraction("1609.344") / 3600}
LENGTH, TIME = "|".join(LENGTHS), "|".join(TIMES)
MOTION = re.compile(
    r"(?=(\w+))(?:Time is (?:distance|length) divided by speed|Distance is speed times time|Speed is distance divided by time)\.\n"
)
KINDS = {"Time": "time", "Distance": "length", "Speed": "speed"}
SPEED_SCALES = frozenset(length / time for length in LENGTHS.values() for time in TIMES.values())
FRACTIONS = re.compile("half|quarter", re.IGNORECASE)
UNIT = re.compile(
    rf"(?P<number>\b(?:{'|'.join(sorted(NUMBER_WORDS.keys() - {'a', 'an'}, key=len, reverse=True))}) |\d*\.?\d+)?[ -]?(?<![A-Za-z])"
    rf"(?:(?P<speed>(?P<over>{LENGTH}) ?(?:/|per|an?|each|every) ?(?P<per>{TIME})|{'|'.join(SPEEDS_OF)})|(?P<length>{LENGTH})|(?P<time>{TIME}))(?![\w^])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Motion:
    """The third of distance, time and speed in SI units, and the units in which it may be stated."""

    value: Fraction
    scales: frozenset[Fraction]

    @classmethod
    def read(cls, question: str, before: str) -> "_Motion | None":
        """Return the third quantity if the solution computes it from the other two, and nothing else is given."""
        asking = MOTION.match(before)
        if asking is None:
            return None
        given: dict[str, Fraction] = {}
        asked: dict[str, set[Fraction]] = {"speed": set(), "length": set(), "time": set()}
        numbers = 0
        for found in UNIT.finditer(re.sub(r"(?<=\d),(?=\d)", "", question)):
            kind = next(each for each in asked if found[each])
            if found["number"] is None:
                asked[kind].add(_scale_of(found))
                continue
            number = found["number"].strip().lower()
            numbers += 1
            given[kind] = Fraction(NUMBER_WORDS.get(number, number)) * _scale_of(found)
        is_alone = (
            len(given) == numbers == 2
            and KINDS[asking[1]] not in given
            and len(read_quantities(question).mentions) <= 2
            and 0 not in given.values()
        )
        if not is_alone or FRACTIONS.search(question):
            return None
        if "speed" not in given:
            return cls(given["length"] / given["time"], frozenset(asked["speed"] or SPEED_SCALES))
        if "length" not in given:
            return cls(given["speed"] * given["time"], frozenset(asked["length"] or LENGTHS.values()))
        return cls(given["length"] / given["speed"], frozenset(asked["time"] or TIMES.values()))

    def fits(self, number: Fraction, scales: Collection[Fraction]) -> bool:
        """Return true if a number equals the value in one of some units, to the precision of results."""
        return any(abs(number * scale - self.value) <= abs(self.value) / 1000 for scale in scales)


def _is_no_motion(question: str, before: str, calculation: str) -> bool:
    motion = _Motion.read(question, before)
    with suppress(ToolError):
        return motion is not None and not motion.fits(calculate(calculation), motion.scales)
    return False


def _has_other_unit(question: str, before: str, number: str, unit: str) -> bool:
    motion, found = _Motion.read(question, before), UNIT.fullmatch(unit)
    return motion is not None and found is not None and not motion.fits(Fraction(number), (_scale_of(found),))


def _scale_of(unit: re.Match[str]) -> Fraction:
    if unit["over"]:
        return _scale(LENGTHS, unit["over"]) / _scale(TIMES, unit["per"])
    return _scale(LENGTHS | TIMES | SPEEDS_OF, unit["speed"] or unit["length"] or unit["time"])


def _scale(scales: Mapping[str, Fraction], unit: str) -> Fraction:
    return next(scale for pattern, scale in scales.items() if re.fullmatch(pattern, unit, re.IGNORECASE))
