"""Arithmetic without a story: expressions, and the words for them."""

from training.builtin.quantities.telling import Ask, Teller
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import noun, several
from training.builtin.quantities.working import Problem

__all__ = ["dozens", "expression", "puzzle", "spoken", "word_sum"]

SAID = wordings("bare")

SIGNS = {
    "+": ("+", "+", " + ", " + ", " plus "),
    "-": ("-", " - ", " - ", " minus "),
    "*": ("*", " * ", " x ", "x", " x ", " times ", " multiplied by ", " · "),
    "/": ("/", " / ", "/", " : ", " divided by ", " over "),
}
AROUND = (
    "what is {e}?",
    "[calculate|compute|work out|evaluate|solve|find|do|simplify] {e}[.|]",
    "{e}",
    "{e}",
    "{e} =",
    "{e} = ?",
    "{e}?",
    "how much is {e}?",
    "what's {e}?",
    "what does {e} [make|give|equal|come to]?",
    "[give|tell] me {e}[.|]",
    "[the value|the result] of {e}[?|]",
    "[what do I get for|what is the result of|what is the value of] {e}?",
    "can you [calculate|work out|do|compute] {e}?",
    "[I need|I want] {e}[.|]",
    "{e} equals [what|how much]?",
    "[how much does|what does] {e} [make|give]?",
    "[the answer to|the solution of] {e}?",
    "[my calculator is broken|no calculator here]: {e}[?|]",
    "[type in|enter] {e}. What comes out?",
)


def _number(teller: Teller, high: int = 99) -> str:
    kind = teller.random.randrange(10)
    if kind < 7:
        return str(teller.whole(2, high))
    if kind < 9:
        return teller.decimal(0.2, 1 if kind == 7 and teller.chance(0.4) else high, teller.random.choice((1, 2)))
    return str(teller.whole(100, 9_999))


def _asked(teller: Teller, shown: str, expression: str, says: str) -> Problem:
    return Problem(teller.say(teller.random.choice(AROUND), {"e": shown}), ((says, expression),))


def expression(teller: Teller) -> Problem:
    """Write an expression with one to four operators and parentheses, or a power or a root."""
    kind = teller.random.random()
    if kind < 0.1:
        return _power(teller)
    if kind < 0.18:
        root = str(teller.whole(2, 40) ** 2 if teller.chance(0.8) else teller.whole(2, 500))
        forms = ("sqrt({})", "the square root of {}", "the root of {}", "√{}", "square root of {}")
        return _asked(teller, teller.pick(*forms).format(root), f"sqrt({root})", "A root.")
    spelt = {sign: teller.random.choice(forms) for sign, forms in SIGNS.items()}
    count = teller.random.choices((1, 2, 3, 4), (6, 4, 2, 1))[0]
    pure = shown = ""
    opened = teller.whole(0, count - 1) if count > 1 and teller.chance(0.35) else -1
    for at in range(count + 1):
        number = _number(teller)
        sign = teller.random.choice("+-**/") if at else ""
        if sign == "-" and at - 1 == opened and "/(" in pure:
            sign = "+"  # no divisor is a difference, which may be zero
        before, behind = "(" * (at == opened), ")" * (at - 1 == opened and at > 0)
        pure += sign + before + number + behind
        shown += spelt.get(sign, "") + before + _shown(teller, number) + behind
    return _asked(teller, shown, pure, "Work it out.")


def _power(teller: Teller) -> Problem:
    base, power = teller.whole(2, 30), teller.random.choice("23245")
    forms = {"2": "{} [squared|to the second]", "3": "{} [cubed|to the third]"}
    shown = teller.pick("{}^" + power, "{}**" + power, "{} to the power of " + power, forms.get(power, "{} ^ " + power))
    return _asked(teller, shown.format(base), f"{base}^{power}", "A power.")


def _shown(teller: Teller, number: str) -> str:
    if number.startswith("0.") and teller.chance(0.3):
        return number[1:]
    return f"{int(number):,}" if number.isdigit() and int(number) >= 1_000 and teller.chance(0.4) else number


WORDED: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        (
            "the sum of {a} and {b}",
            "{a} and {b} together",
            "{a} added to {b}",
            "{b} more than {a}",
            "{a} increased by {b}",
            "the total of {a} and {b}",
        ),
        "{a}+{b}",
        "Add them.",
    ),
    (
        (
            "the difference [between|of] {c} and {b}",
            "{b} less than {c}",
            "{c} less {b}",
            "{b} subtracted from {c}",
            "{c} decreased by {b}",
            "{b} taken from {c}",
            "{c} reduced by {b}",
            "{b} fewer than {c}",
        ),
        "{c}-{b}",
        "Take away.",
    ),
    (
        (
            "the product of {a} and {b}",
            "{a} multiplied by {b}",
            "{a} times {b}",
            "{a} lots of {b}",
            "{a} groups of {b}",
        ),
        "{a}*{b}",
        "Multiply.",
    ),
    (
        ("the quotient of {a} and {b}", "{a} divided by {b}", "{a} split into {b} equal parts", "{a} shared by {b}"),
        "{a}/{b}",
        "Divide.",
    ),
    (("[twice|double|two times] {a}",), "{a}*2", "Twice means times 2."),
    (("[three times|triple|thrice] {a}",), "{a}*3", "Triple means times 3."),
    (("half of {a}", "[one half|1/2] of {a}", "half {a}"), "{a}/2", "Half means divide by 2."),
    (("[a third|one third|1/3] of {a}",), "{a}/3", "A third means divide by 3."),
    (("[a quarter|one quarter|one fourth|1/4] of {a}",), "{a}/4", "A quarter means divide by 4."),
    (("[three quarters|3/4|three fourths] of {a}",), "{a}*3/4", "Three quarters means times 3/4."),
    (("[two thirds|2/3] of {a}",), "{a}*2/3", "Two thirds means times 2/3."),
    (("[a tenth|one tenth] of {a}",), "{a}/10", "A tenth means divide by 10."),
    (("{b}[%| %| percent| per cent] of {a}",), "{a}*{b}/100", "The share of the whole."),
    (("{b}[%| %| percent| per cent] of {a}",), "{a}*{b}/100", "The share of the whole."),
    (("{d}[%| %| percent] of {a}",), "{a}*{d}/100", "The share of the whole."),
    (("{a} [plus|and another|increased by] {b}[%| %| percent]",), "{a}*(100+{b})/100", "Add the share."),
    (("{a} [minus|less|reduced by] {r}[%| %| percent]",), "{a}*(100-{r})/100", "Take the share off."),
    (("the square of {a}", "{a} squared"), "{a}^2", "A power."),
    (("the cube of {b}", "{b} cubed"), "{b}^3", "A power."),
    (("the [mean|average] of {a} and {b}",), "({a}+{b})/2", "The sum, divided by how many there are."),
    (("the sum of {a}, {b} and {c}", "{a}, {b} and {c} together"), "{a}+{b}+{c}", "Add them."),
    (("the product of {a}, {b} and {k}",), "{a}*{b}*{k}", "Multiply."),
    (("{b} more than {k} times {a}", "{k} times {a}, plus {b}"), "{k}*{a}+{b}", "Multiply, then add."),
    (("{b} less than {k} times {c}", "{k} times {c}, minus {b}"), "{k}*{c}-{b}", "Multiply, then take away."),
    (("{k} times the sum of {a} and {b}",), "{k}*({a}+{b})", "Add, then multiply."),
    (("half of the sum of {a} and {b}",), "({a}+{b})/2", "Add, then divide."),
    (("the reciprocal of {a}", "one divided by {a}"), "1/{a}", "Divide."),
)
WORD_AROUND = (
    "what is {e}?",
    "[find|calculate|compute|work out|give|determine|write down|tell me] {e}[.|]",
    "how much is {e}?",
    "{e}?",
    "{e}",
    "which number is {e}?",
    "what number is {e}?",
    "[can you find|could you work out|do you know] {e}?",
    "what's {e}?",
    "{e} is [what|how much]?",
    "I am thinking of a number. It is {e}. [Which number is it|What is it]?",
    "[what does one get for|what do you get for] {e}?",
    "a number is {e}; [find it|what is it|which one is it][?|]",
    "my answer should be {e}. What do I write?",
    "x is {e}. [Find x|What is x|Give x].",
)


def spoken(teller: Teller) -> Problem:
    """Ask for the sum of, the product of, half of, 5 % of, and so on."""
    forms, pattern, says = teller.random.choice(WORDED)
    b = teller.whole(2, 60)
    numbers = {
        "a": _number(teller, 200),
        "b": str(b),
        "c": str(b + teller.whole(2, 300)),
        "d": teller.decimal(0.5, 40),
        "k": str(teller.whole(2, 12)),
        "r": str(teller.whole(2, 95)),
    }
    slots = {name: teller.measure(number) for name, number in numbers.items()}
    shown = teller.random.choice(forms)
    if "{b}[" in shown or "{r}[" in shown or " and " in shown:
        slots = dict(numbers)
    return Problem(
        teller.say(teller.random.choice(WORD_AROUND), {"e": shown, **slots}), ((says, pattern.format(**numbers)),)
    )


def word_sum(teller: Teller) -> Problem:
    """Write operators in words, also between numbers in words: forty plus two."""
    random = teller.random
    sign = random.choice("+-*/")
    b = teller.whole(2, 40)
    a = b * teller.whole(2, 20) if sign == "/" else b + teller.whole(0, 60)
    word = {
        "+": "[plus|plus|and|added to]",
        "-": "[minus|minus|take away|less]",
        "*": "[times|times|multiplied by|x]",
        "/": "[divided by|over|by]",
    }[sign]
    if word.startswith("[divided"):
        word = "divided by"
    first, second = (
        teller.number(each) if not teller.number(each).startswith(("a ", "half ")) else str(each) for each in (a, b)
    )
    says = {"+": "Add them.", "-": "Take away.", "*": "Multiply.", "/": "Divide."}[sign]
    first, second = (
        str(number) if said.startswith(("a ", "half ")) else said for number, said in ((a, first), (b, second))
    )
    return Problem(teller.say(random.choice(AROUND), {"e": f"{first} {word} {second}"}), ((says, f"{a}{sign}{b}"),))


def puzzle(teller: Teller) -> Problem:
    """Ask for an unknown number, one step back."""
    a, b = teller.whole(2, 90), teller.whole(2, 40)
    slots = {
        "a": teller.measure(a),
        "b": teller.measure(b),
        "s": teller.measure(a + b),
        "p": teller.measure(a * b),
        "x": "[a number|a certain number|an unknown number|some number|x]",
    }
    kind = teller.random.choice("+-*/")
    facts, expression_, says = {
        "+": (SAID["puzzle parts"], f"{a + b}-{b}", "Take away what was added."),
        "-": (SAID["puzzle parts2"], f"{a}+{b}", "Add what was taken away."),
        "*": (SAID["puzzle parts3"], f"{a * b}/{b}", "Divide by the factor."),
        "/": (SAID["puzzle parts4"], f"{a}*{b}", "Multiply by the divisor."),
    }[kind]
    wh = SAID["puzzle wh"]
    return Problem(
        teller.ask(Ask([teller.random.choice(facts)], wh, ("the number", "the unknown number")), slots),
        ((says, expression_),),
    )


def dozens(teller: Teller) -> Problem:
    """Ask how many are in a dozen, a pair, half a dozen, a couple."""
    word, size = teller.random.choice(
        (("dozen", "12"), ("dozen", "12"), ("dozen", "12"), ("pair", "2"), ("half dozen", "6"), ("hundred", "100"))
    )
    n, thing = str(teller.whole(2, 30)), noun(teller)
    plural = word if word in ("dozen", "hundred") else several(word)
    of = "" if word in ("dozen", "half dozen", "hundred") else "of "
    slots = {
        "n": teller.measure(n),
        "N": thing,
        "w": plural,
        "of": of,
        "q": str(int(n) * int(size)),
        "S": teller.pick(*SAID["dozens slots"]),
    }
    keep = tuple(thing.split())
    if teller.chance(0.65):
        facts = [teller.pick(*SAID["dozens facts"])]
        wh = SAID["dozens wh"]
        whole = SAID["dozens whole"]
        return Problem(
            teller.ask(Ask(facts, wh, ("the number of {N}",), whole), slots),
            ((f"A {word} is {size}.", f"{n}*{size}"),),
            thing,
            keep,
        )
    facts = [teller.pick("{S} has {q} {N}", "there are {q} {N}")]
    wh = SAID["dozens wh2"]
    return Problem(
        teller.ask(Ask(facts, wh, ("the number of {w}",), ("how many {w} are {q} {N}?",)), slots),
        ((f"A {word} is {size}.", f"{int(n) * int(size)}/{size}"),),
        plural,
    )
