"""Word problems with one to three steps: getting, giving, comparing, grouping, sharing, unknown starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from training.builtin.quantities.telling import Ask, Teller, Thing
from training.builtin.quantities.wordings import wordings
from training.builtin.quantities.words import noun, person, place, several, subject
from training.builtin.quantities.working import Problem

__all__ = ["compared", "counted", "grouped", "happened", "rated", "shared", "started"]

SAID = wordings("stories")
PEOPLE = "[children|friends|people|pupils|students|neighbours|guests|classes|teams|cousins|families|workers|players]"
COLOURS = "red blue green yellow white black brown big small old new round long wooden".split()
DAYS = ("on [Monday|the first day]", "on [Tuesday|the second day]", "on [Wednesday|the third day]")

CONTAINERS = """box bag basket crate jar shelf row tray table packet pack carton bucket drawer album page room bus van team class sack pile
shipment bundle case barrel stack chest cupboard tin pouch cart tent house hut boat wagon group pot bed plate bowl folder""".split()
GAINS = (
    "{S} [gets|receives|finds|buys|wins|picks up|collects|is given|adds|earns] {n} more[| {N}]",
    "{S} [got|received|found|bought|won|picked|collected|was given] [{n} more|{n} more|another {n}][| {N}]",
    "{F} [gives|hands|brings|sends|lends|gave|brought|sent] {S} {n} [more|more {N}|{N}]",
    "{n} [more|new] {N} [arrive|come|are added|are put in|turn up|were added|came]",
    "then {S} [adds|buys|finds|gets] {n} [more|others]",
    "the [collection|stock|store] grows by {n}",
)
LOSSES = (
    "{S} [gives|hands|sends|lends|gave|passed|lent|passes] {n} [|of them |{N} |of the {N} ][to {F}|to {F}|away]",
    "{S} [loses|sells|uses|drops|throws away|lost|sold|used|donates|breaks|donated] {n}[| of them| {N}| of the {N}]",
    "{n} [of them|of the {N}|{N}] [get lost|break|are sold|are taken away|went missing|are used up|were stolen|fall down|are thrown out|disappear]",
    "{F} takes {n}[| of them| {N}][| away]",
    "{F} [borrowed|took|bought] {n} [of them|{N}|from the lot]",
    "then {S} [sells|loses|gives away|uses] {n}",
)
DOUBLES = (
    "the number [then |]doubles",
    "{S} doubles [the number|them]",
    "[later|then] there are twice as many",
    "the [stock|collection] becomes two times as large",
)
TRIPLES = (
    "the number [then |]triples",
    "[later|then] there are three times as many",
    "the [stock|collection] becomes three times as large",
)
HALVES = (
    "half of [them|the {N}] [are sold|are lost|are given away|go to {F}|break]",
    "{S} [uses|sells|loses] half of [them|the {N}][| then]",
    "{F} takes half of [them|the {N}]",
)
LEFT = (
    "how many {N} [does {S} have|are there|are left|remain] [now|then|in the end|at the end|after that|]~how many {N} [{S} has|there are|are left|remain] [now|then|in the end|at the end]",
    "how many [does {S} have|are there] [now|in the end|at the end|after all that]~how many [{S} has|there are] [now|in the end]",
    "what is the number of {N} [now|in the end]~what the number of {N} is [now|in the end]",
    "how many {N} [does {S} end up with|has {S} got]~how many {N} {S} ends up with",
    "with how many {N} does {S} end~with how many {N} {S} ends",
)
NP_LEFT = (
    "the number of {N} [now|in the end|at the end]",
    "the [final|new] number of {N}",
    "the number of {N} {S} has [now|in the end|]",
)
FEW_LEFT = (
    "how many {N} does {S} have left~how many {N} {S} has left",
    "how many {N} [are left|remain]~how many {N} [are left|remain]",
    "how many [are|{N} are] still there~how many are still there",
    "how many {N} [are left over|are still left|does {S} still have]~how many {N} are left over",
)
ASIDES = (
    "{S} is {x} years old. ",
    "It is {x} degrees outside. ",
    "[The|A] bus number {x} goes past. ",
    "{P} has {x} schools. ",
    "{S} lives at number {x} in {P}. ",
    "The room is {x} metres long. ",
    "{S} has {x} cousins. ",
    "It is [Monday|Friday|Sunday] in {P}. ",
    "The weather in {P} is fine. ",
    "{S} likes [music|football|the sea|long walks]. ",
    "This happened in {P}. ",
    "[Once upon a time|One day|Last week], in {P}, there was a [fair|sale|contest]. ",
)


@dataclass(frozen=True, slots=True)
class Scene:
    """Return the slots of a story: who has what."""

    slots: dict[str, str | Thing]
    things: str

    def problem(self, teller: Teller, ask: Ask, says: str, expression: str, unit: str | None = None) -> Problem:
        """Build the problem, sometimes after an irrelevant sentence."""
        question = teller.ask(ask, self.slots)
        if teller.chance(0.09):
            aside: dict[str, str | Thing] = {
                "P": place(teller),
                "x": str(teller.whole(5, 60)),
                "S": person(teller).name,
            }
            question = teller.say(teller.random.choice(ASIDES), aside).strip() + " " + question
        keep = tuple(self.things.split())
        return Problem(question, ((says, expression),), self.things if unit is None else unit, keep)


def _scene(teller: Teller, **numbers: int) -> Scene:
    things = noun(teller)
    box = teller.random.choice(CONTAINERS)
    who, friend = subject(teller), person(teller).name
    while who.first == friend:
        friend = person(teller).name
    slots: dict[str, str | Thing] = {
        "S": who,
        "F": friend,
        "N": things,
        "box": box,
        "boxes": several(box),
        "P": place(teller),
    }
    slots |= {name: teller.number(number) for name, number in numbers.items()}
    # never "a couple of of them"
    slots |= {name: str(numbers[name]) for name in numbers if str(slots[name]).endswith(" of")}
    return Scene(slots, things)


def _amount(teller: Teller) -> int:
    return (
        teller.whole(3, 30)
        if teller.chance(0.6)
        else teller.whole(20, 99)
        if teller.chance(0.7)
        else teller.whole(100, 990)
    )


def happened(teller: Teller) -> Problem:
    """Start with a number of things and change it once, twice or three times."""
    start = _amount(teller)
    scene = _scene(teller, start=start)
    facts = [teller.pick(*SAID["happened facts"])]
    expression, worth, fewer = str(start), start, True
    for step in range(teller.random.choices((1, 2, 3), (5, 4, 2))[0]):
        kind = teller.random.choices(
            ("gain", "loss", "double", "triple", "half"),
            (8, 8 if worth > 4 else 0, 1, 0.6, 1.2 if not worth % 2 else 0),
        )[0]
        inner = (
            expression
            if step == 0 or not {"+", "-"} & set(expression.replace("(", "").split(")")[-1])
            else f"({expression})"
        )
        if kind in ("gain", "loss"):
            number = (
                teller.whole(2, max(worth - 1, 3)) if kind == "loss" and worth > 3 else teller.whole(2, max(start, 12))
            )
            if kind == "loss" and number >= worth:
                number = 1
            scene.slots[f"n{step}"] = str(number) if teller.chance(0.5) else teller.measure(number)
            expression += f"{'+' if kind == 'gain' else '-'}{number}"
            worth += number if kind == "gain" else -number
            facts.append(teller.random.choice(GAINS if kind == "gain" else LOSSES).replace("{n}", f"{{n{step}}}"))
        else:
            expression = inner + {"double": "*2", "triple": "*3", "half": "/2"}[kind]
            worth = {"double": worth * 2, "triple": worth * 3, "half": worth // 2}[kind]
            facts.append(teller.random.choice({"double": DOUBLES, "triple": TRIPLES, "half": HALVES}[kind]))
        fewer = fewer and kind in ("loss", "half")
    says = "Work through what happens." if len(facts) > 2 else _said(expression)
    wh = FEW_LEFT + LEFT[:2] if fewer else LEFT
    ask = Ask(
        facts,
        wh,
        NP_LEFT if not fewer else ("the number of {N} left", "the number of remaining {N}", *NP_LEFT),
        loose=False,
    )
    return scene.problem(teller, ask, says, expression)


def _said(expression: str) -> str:
    return {"+": "Add them.", "-": "Take away.", "*": "Multiply.", "/": "Divide."}[
        next(sign for sign in expression if sign in "+-*/")
    ]


def compared(teller: Teller) -> Problem:
    """Compare: more than, fewer than, times as many; ask for one of them, the difference or the total."""
    kind = teller.random.choice(("more", "fewer", "times", "half", "difference", "back", "together"))
    a, k = _amount(teller) + 4, teller.whole(2, 9)
    if kind == "half":
        a += a % 2
    k = min(k, a - 2)
    scene = _scene(teller, a=a, k=k, b=max(a - k, 1), c=a + k)
    times = "[twice|two times|double]" if k == 2 else "[three times|thrice]" if k == 3 else "{k} times"
    first = teller.pick(*SAID["compared first"])
    relation, expression, says = {
        "more": ("{F} has {k} [more|more {N}] than {S}", f"{a}+{k}", "More means add."),
        "together": ("{F} has {k} [more|more {N}] than {S}", f"{a}+{a}+{k}", "Add both."),
        "fewer": ("{F} has {k} [fewer|less|fewer {N}] than {S}", f"{a}-{k}", "Fewer means take away."),
        "times": (f"{{F}} has {times} as many [|{{N}} ]as {{S}}", f"{a}*{k}", "So many times means multiply."),
        "half": ("{F} has half as many [|{N} ]as {S}", f"{a}/2", "Half means divide by 2."),
        "difference": ("{F} has {b}[| {N}| of them]", f"{a}-{max(a - k, 1)}", "The difference is asked for."),
        "back": ("{S} has {k} [more|more {N}] than {F}", f"{a}-{k}", "The other one has fewer."),
    }[kind]
    wh: tuple[str, ...] = SAID["compared wh"]
    np: tuple[str, ...] = SAID["compared np3"]
    if kind == "together":
        wh = SAID["compared wh2"]
        np = SAID["compared np"]
    if kind == "difference":
        wh = SAID["compared wh3"]
        np = SAID["compared np2"]
    return scene.problem(teller, Ask((first, relation), wh, np, loose=False), says, expression)


def grouped(teller: Teller) -> Problem:
    """Ask about equal groups: with some more, without some, or two sizes."""
    n, m = teller.whole(2, 24), teller.whole(2, 40)
    k, p, q = teller.whole(1, 20), teller.whole(2, 12), teller.whole(2, 20)
    scene = _scene(teller, n=n, m=m, k=k, p=p, q=q, T=n * m + k)
    other = teller.random.choice(CONTAINERS)
    scene.slots["others"] = several(other)
    kind = teller.random.choices(("plain", "more", "less", "two", "remain"), (6, 2, 2, 2, 1))[0]
    each = teller.pick(*SAID["grouped each"])
    more = teller.pick(*SAID["grouped more"])
    less = teller.pick(*SAID["grouped less"])
    facts, expression, says = {
        "plain": ([each], f"{n}*{m}", "Multiply."),
        "more": ([each, more], f"{n}*{m}+{k}", "Multiply, then add the rest."),
        "less": ([each, less], f"{n}*{m}-{min(k, n * m - 1)}", "Multiply, then take away."),
        "two": (
            ["{S} has {n} {boxes} of {m} {N}[| each] and {p} {others} of {q}[| each| {N} each]"],
            f"{n}*{m}+{p}*{q}",
            "Multiply both, then add.",
        ),
        "remain": (
            [teller.pick(*SAID["grouped parts"])],
            f"{n * m + k}-{n}*{m}",
            "Take away what is in the groups.",
        ),
    }[kind]
    scene.slots["k"] = str(min(k, n * m - 1)) if kind == "less" else scene.slots["k"]
    if kind in ("less", "remain"):
        ask = Ask(facts, FEW_LEFT, SAID["grouped parts2"], loose=False)
    else:
        ask = Ask(facts, SAID["grouped wh"], SAID["grouped np"], loose=False)
    return scene.problem(teller, ask, says, expression)


def shared(teller: Teller) -> Problem:
    """Share equally or pack in groups, sometimes after a sum or a difference."""
    k, m = teller.whole(2, 16), teller.whole(2, 40)
    kind = teller.random.choices(("each", "dealt", "packs", "sum", "rest"), (2, 2, 3, 2, 2))[0]
    total = k * m if kind == "packs" or teller.chance(0.9) else k * m + teller.whole(1, k)
    part = teller.whole(1, max(total // 3, 1))
    scene = _scene(teller, k=k, T=total, a=total - part, b=part, U=total + part)
    scene.slots["people"] = teller.say(PEOPLE).lower()
    says, expression = {
        "sum": ("Add, then divide.", f"({total - part}+{part})/{k}"),
        "rest": ("Take away, then divide.", f"({total + part}-{part})/{k}"),
    }.get(kind, ("Divide.", f"{total}/{k}"))
    unit = str(scene.slots["boxes"]) if kind == "packs" else None
    return scene.problem(teller, SAID.ask(teller, kind, loose=False), says, expression, unit)


def started(teller: Teller) -> Problem:
    """Ask for the start, the change, or the number still missing."""
    a, b = _amount(teller) + 2, teller.whole(2, 40)
    scene = _scene(teller, a=a, b=b, c=a + b)
    kind = teller.random.choice(("first", "came", "gone", "need"))
    says, expression = "The difference is asked for.", f"{a + b}-{a}"
    if kind == "first":
        says, expression = "Add back what went away.", f"{a}+{b}"
    return scene.problem(teller, SAID.ask(teller, kind, loose=False), says, expression)


def counted(teller: Teller) -> Problem:
    """Count several sorts together, leave one out, or add up days."""
    numbers = [_amount(teller) for _ in range(teller.random.choice((2, 2, 3, 3, 4)))]
    scene = _scene(teller, **{f"c{at}": number for at, number in enumerate(numbers)}, T=sum(numbers))
    colours = teller.random.sample(COLOURS, len(numbers))
    sorts = [f"{{c{at}}} {colour}" for at, colour in enumerate(colours)]
    scene.slots["C"] = colours[-1]
    if teller.chance(0.3):
        scene.slots["rest"] = _listed(sorts[:-1])
        expression = f"{sum(numbers)}-" + "-".join(map(str, numbers[:-1]))
        return scene.problem(teller, SAID.ask(teller, "others", loose=False), "Take away the others.", expression)
    scene.slots["L"] = _listed(sorts) + " {N}"
    days = [f"{{c{at}}} {'{N} ' * (not at)}{day}" for at, day in enumerate(DAYS[: len(numbers)])]
    scene.slots["D"] = _listed(days)
    kind = "days" if len(numbers) <= len(DAYS) and teller.chance(0.4) else "total"
    return scene.problem(teller, SAID.ask(teller, kind), "Add them.", "+".join(map(str, numbers)))


def _listed(parts: Sequence[str]) -> str:
    """Ask about things in a row."""
    return ", ".join(parts[:-1]) + " and " * (len(parts) > 1) + parts[-1]


RATES = (
    ("{S} [makes|paints|packs|folds|sells|plants|repairs|produces] {m} {N} [a|per|every|each] {day}", "{N}"),
    ("a machine [makes|produces|packs|labels|sorts] {m} {N} [a|per|every|each] {day}", "{N}"),
    ("a [factory|workshop|shop|bakery|school|zoo] [uses|needs|sells|orders] {m} {N} [a|per|every|each] {day}", "{N}"),
    ("{S} [reads|writes|types|copies|corrects] {m} pages [a|per|every|each] {day}", "pages"),
    ("{S} [drinks|needs|uses] {m} litres of water [a|per|every|each] {day}", "litres"),
    ("{S} [saves|stores|collects] {m} {N} [a|per|every|each] {day}", "{N}"),
    ("a pump [moves|delivers|brings up] {m} litres of water [a|per|every|each] {day}", "litres"),
    ("a tap fills {m} litres [a|per|every|each] {day}", "litres"),
    ("a printer prints {m} pages [a|per|every|each] {day}", "pages"),
    ("a heart beats {m} times [a|per|every|each] {day}", "beats"),
    ("a worker lays {m} bricks [a|per|every|each] {day}", "bricks"),
    ("{S} walks {m} steps [a|per|every|each] {day}", "steps"),
    ("a plant grows {m} mm [a|per|every|each] {day}", "mm"),
    ("{S} does {m} push-ups [a|per|every|each] {day}", "push-ups"),
)


def rated(teller: Teller) -> Problem:
    """Give a daily amount; ask for the total or the number of days."""
    fact, counted_in = teller.random.choice(RATES)
    day = teller.pick("day", "day", "hour", "hour", "minute", "week", "month")
    m, n = _amount(teller), teller.whole(2, 30)
    scene = _scene(teller, m=m, n=n, T=m * n)
    scene.slots.update(day=day, U=counted_in)
    unit = scene.things if counted_in == "{N}" else counted_in
    if teller.chance(0.6):
        facts = [fact]
        wh = SAID["rated wh"]
        np = SAID["rated np"]
        return scene.problem(teller, Ask(facts, wh, np), "Multiply.", f"{m}*{n}", unit)
    total = teller.pick(*SAID["rated total"])
    wh = SAID["rated wh2"]
    return scene.problem(
        teller,
        Ask([fact, total], wh, SAID["rated part"]),
        "Divide.",
        f"{m * n}/{m}",
        f"{day}s",
    )
