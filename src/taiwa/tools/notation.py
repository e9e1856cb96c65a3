"""How chemists, models and typesetters write the same species: everything is brought into one plain notation first.

`_{n}` is a subscript and `^{n}` a superscript for certain; a plain digit may have to be judged by where it stands.
"""

import re

from taiwa.kernel.errors import ToolError
from taiwa.tools.numbers import RAISED, halves_to_slashes, narrow

__all__ = ["MAX_CHARS", "plain", "split_charge", "without_state"]

MAX_CHARS = 1_000
LOWERED = "₀₁₂₃₄₅₆₇₈₉"
SUBSCRIPT = re.compile(f"[{LOWERED}]+")
SUPERSCRIPT = re.compile(f"[{RAISED}⁺⁻]+")
DIGITS = str.maketrans(LOWERED + RAISED + "⁺⁻", "0123456789" * 2 + "+-")
SIGNS = str.maketrans({"•": "·", "∙": "·", "⋅": "·", "・": "·", "‧": "·", "*": "·", "−": "-", "–": "-"})
LATEX = re.compile(r"\\(?:ce|mathrm|mathit|text|rm|left|right|,|;|!)(?![a-z])|\$")
LATEX_SIGNS = {
    r"\cdot": "·",
    r"\times": "x",
    r"\longrightarrow": "->",
    r"\rightarrow": "->",
    r"\rightleftharpoons": "->",
    r"\to": "->",
    r"\uparrow": "",
    r"\downarrow": "",
}
JOINING = re.compile(r"\s*·\s*|\s+\.\s*(?=[0-9A-Z])|\s*[x,]\s*(?=[0-9]+\s*H_?\{?2\}?O)")
# Lower case only: (S) is sulfur and (s) a solid.
STATE = re.compile(r"(?:\s|_)*(?:\((?:aq|s|l|g|cr|am|vap)(?:,\s*[a-z]+)?\)|\{\((?:aq|s|l|g)\)\}|[↑↓])\s*\Z")
CARET = re.compile(r"\^(?:\{([^{}]*)\}|([0-9]*[+-]+|[+-][0-9]+))\Z")
APART = re.compile(r"\s+([0-9]*[+-]|[+-][0-9]+|[+-]{2,})\Z")
BRACKETED = re.compile(r"[({]([0-9]*[+-]|[+-][0-9]+)[)}]\Z")
JOINED = re.compile(r"(?P<digits>(?<![_.0-9])[0-9]*)(?P<charge>[+-][1-9]|[+-]+)\Z")
CHARGE = re.compile(r"([0-9]*)([+-]+)([0-9]*)\Z")
OXO_CATION = re.compile(r"(?:[A-Z][a-z]?O2)\Z")
NOT_OXO = re.compile(r"(?:N|P|S|C|H|Cl|Br|I|F|Se)O2\Z")


def plain(text: str) -> str:
    """Bring full-width signs, sub- and superscripts and LaTeX into plain notation.

    >>> plain("Ｃａ₃(PO₄)₂ SO₄²⁻")
    'Ca_{3}(PO_{4})_{2} SO_{4}^{2-}'

    Raises:
        ToolError: the text is too long.
    """
    if len(text) > MAX_CHARS:
        raise ToolError(f"the text has {len(text):,} characters", code="too_long", hint=f"at most {MAX_CHARS:,}")
    text = narrow(text).translate(SIGNS)
    for name, sign in LATEX_SIGNS.items():
        text = text.replace(name, sign)
    text = JOINING.sub("·", LATEX.sub("", text))
    text = halves_to_slashes(text)
    text = SUBSCRIPT.sub(lambda found: f"_{{{found[0].translate(DIGITS)}}}", text)
    return _unwrapped(SUPERSCRIPT.sub(lambda found: f"^{{{found[0].translate(DIGITS)}}}", text).strip())


def _unwrapped(text: str) -> str:
    """Take off braces around the whole text, which LaTeX leaves behind."""
    while text.startswith("{") and text.find("}", _matching(text)) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _matching(text: str) -> int:
    """Where the brace that opens a text is closed."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if depth == 0:
            return at
    return len(text)


def without_state(text: str) -> str:
    """Drop (s), (l), (g), (aq) and the arrows of gases and precipitates from the end."""
    while (found := STATE.search(text)) is not None and found.start() > 0:
        text = text[: found.start()]
    return text.strip()


def split_charge(text: str) -> tuple[str, int]:
    """Cut the charge from the end of a species.

    >>> split_charge("SO4^2-"), split_charge("SO4 2-"), split_charge("[Fe(CN)6]4-"), split_charge("NH4+")
    (('SO4', -2), ('SO4', -2), ('[Fe(CN)6]', -4), ('NH4', 1))

    Raises:
        ToolError: `ambiguous`, the digits before the sign may count atoms or charges.
    """
    for form in (CARET, APART, BRACKETED):
        if (found := form.search(text)) is not None:
            written = next(part for part in found.groups() if part is not None)
            return text[: found.start()].rstrip(), _charge(written, text)
    found = JOINED.search(text)
    if found is None:
        return text, 0
    digits, sign = found["digits"], found["charge"]
    rest = text[: found.start()]
    if not digits or len(sign) > 1:
        return rest + digits, _charge(sign, text)
    return _judged(rest, digits, sign)


def _charge(written: str, text: str) -> int:
    found = CHARGE.match(written.replace(" ", ""))
    if (
        found is None
        or (found[1] and found[3])
        or len(set(found[2])) != 1
        or (len(found[2]) > 1 and found[1] + found[3])
    ):
        raise ToolError(f"{text[:40]!r} has no readable charge", code="syntax", hint="write SO4^2- or Ca^2+")
    size = int(found[1] or found[3] or len(found[2]))
    if not 0 < size < 100:
        raise ToolError(f"a charge of {size}", code="syntax", hint="write SO4^2- or Ca^2+")
    return size if found[2][0] == "+" else -size


def _judged(rest: str, digits: str, sign: str) -> tuple[str, int]:
    """Digits right before a sign: of all readings as (atoms, charge), one must be the only sensible one."""
    one = -1 if sign == "-" else 1
    if rest.startswith("[") and rest.endswith("]") and len(digits) == 1:
        return rest, one * int(digits)
    readings = [(digits[:at], digits[at:]) for at in range(len(digits))] + [(digits, "")]
    sensible = [
        (atoms, charge)
        for atoms, charge in readings
        if not atoms.startswith("0")
        and atoms != "1"
        and re.fullmatch(r"[1-9]?", charge)
        and (charge != "1" or not atoms)
    ]
    several = len(re.findall("[A-Z]", rest)) > 1 and not rest.endswith((")", "]", "}"))
    whole = rest + digits
    if several and len(digits) == 1 and not (sign == "+" and OXO_CATION.search(whole) and not NOT_OXO.search(whole)):
        return whole, one
    if len(sensible) == 1:
        atoms, charge = sensible[0]
        return rest + atoms, one * int(charge or 1)
    spelled = " or ".join(f"{rest}{atoms}^{charge}{sign}" for atoms, charge in reversed(sensible))
    raise ToolError(f"{rest[:60]}{digits}{sign} is ambiguous", code="ambiguous", hint=f"write {spelled[:120]}")
