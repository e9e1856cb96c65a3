"""Scenes outside the workplace: general knowledge, search queries, company reports, stories and bookings."""

from training.builtin.asking.scenes import Levels, Scene, Stage, Wish
from training.builtin.asking.wording import listed

__all__ = ["booking", "report", "search", "story", "thing"]

BEYOND = 4.8
"""How unlikely an organisation's documents are to cover the topic."""
LINKED = 0.25


def thing(stage: Stage) -> Scene:
    """Ask about one thing or person, then another; the last question mostly uses a pronoun."""
    kind, maker, pronouns, word = stage.line("kinds")
    name = stage.slots[maker]
    subject, other, own = pronouns.split()
    last = Wish(stage.words(f"about {kind}"), name, (subject, other, own))
    if stage.chance(0.22):
        return _alone(stage, last)
    turns = [("user", stage.said(last.whole(stage)))]
    for _ in range(stage.random.choice((1, 1, 2, 3))):
        if stage.chance(0.6):
            turns.append(("assistant", stage.options("answers" if stage.chance(0.2) else "story answers")))
        if stage.chance(0.16):
            stage.slots.anew(maker)
            name = stage.slots[maker]
            last = Wish(last.shape, name, last.pronouns)
            mark = "?" if stage.chance(0.8) else ""
            turns.append(("user", stage.said(stage.options("more x", {"x": name}) + mark)))
            continue
        last = Wish(stage.words(f"about {kind}"), name, last.pronouns)
        by = (word, word, word + {"en": "'s", "ja": "の", "zh": "的"}[stage.language])
        shown = Wish(last.shape, name, by if stage.chance(0.15) and subject != "they" else last.pronouns)
        text = last.whole(stage) if stage.chance(0.1) else shown.pointing(stage)
        if stage.chance(LINKED):
            text = stage.joined(stage.options("links"), text)
        turns.append(("user", stage.said(text)))
    return Scene(stage.language, turns, Levels(1.15, 1.0, 5.0, BEYOND, 4.9))


def _alone(stage: Stage, asked: Wish) -> Scene:
    """Ask one question that names its topic or only refers to it."""
    if stage.chance(0.55):
        return Scene(stage.language, [("user", stage.said(asked.whole(stage)))], Levels(1.1, 1.0, 5.0, BEYOND))
    return Scene(stage.language, [("user", stage.said(asked.pointing(stage)))], Levels(4.6, 1.2, 5.0, 4.5, 4.7))


def search(stage: Stage) -> Scene:
    """Write a search query: an ambiguous word, a broad one, or a complete query."""
    kind = stage.random.choices(("many", "broad", "exact", "lacking", "named"), (24, 22, 28, 20, 10))[0]
    if kind == "named":
        text, clarity = stage.slots[stage.random.choice(("person", "town", "title", "org", "club", "illness"))], 3.4
    else:
        clarity = {"many": 4.7, "broad": 3.9, "exact": 1.4, "lacking": 4.2}[kind]
        text = stage.options(kind)
    if stage.chance(0.12) and kind != "lacking":
        text = stage.options("wish for", {"x": text})
    asks = 1.3 if kind == "lacking" else 2.0 if kind == "exact" else 2.6
    return Scene(stage.language, [("user", stage.said(text))], Levels(clarity, asks, 5.0, BEYOND))


def report(stage: Stage) -> Scene:
    """Ask for company figures, with or without the year, and follow-ups."""
    turns: list[tuple[str, str]] = []
    measure, whose = stage.options("measures"), stage.options("of measure") if stage.chance(0.5) else ""
    year = stage.options("years")
    shape = stage.words("ask measure")
    whole = _reported(stage, shape, measure, whose, year)
    if stage.chance(0.4):
        text = _reported(stage, stage.words("define measure"), measure, whose, year)
        before = [("user", stage.said(whole)), ("assistant", stage.options("figures"))] if stage.chance(0.4) else []
        return _figures(stage, [*before, ("user", stage.said(text))], 1.2)
    if stage.chance(0.4):
        text = _reported(stage, shape, measure, whose, "")
        turns = [("user", stage.said(text))]
        if stage.chance(0.35):
            turns += [("assistant", stage.finished(stage.options("ask year"))), ("user", stage.said(year))]
            return _figures(stage, turns, 1.3)
        return _figures(stage, turns, 3.6)
    turns = [("user", stage.said(whole))]
    if stage.chance(0.5):
        turns.append(("assistant", stage.options("figures")))
        stage.slots.anew("year", "year2")
        other, later = stage.options("measures"), stage.options("years")
        if stage.chance(0.5):
            turns.append(("user", stage.said(stage.options("more measure", {"m": other}))))
        else:
            turns.append(("user", stage.said(stage.options("more year", {"y": later}))))
    return _figures(stage, turns, 1.15)


def _reported(stage: Stage, shape: str, measure: str, whose: str, year: str) -> str:
    text = stage.made(shape, {"m": measure, "o": whose, "y": year})
    return " ".join(text.split()) if stage.language == "en" else text


def _figures(stage: Stage, turns: list[tuple[str, str]], clarity: float) -> Scene:
    return Scene(stage.language, turns, Levels(clarity, 1.0, 5.0, 2.6, 4.9))


def story(stage: Stage) -> Scene:
    """Ask about a story that both speakers know; some questions are answerable, some ambiguous."""
    kind = stage.random.choice(("man", "woman"))
    row = next(line for line in listed(stage.language, "kinds") if line.startswith(f"{kind} ;"))
    subject, other, own = row.split(" ; ")[2].split()
    name, pronouns = stage.slots["person"], (subject, other, own)
    turns: list[tuple[str, str]] = []
    for _ in range(stage.random.choice((1, 2, 2, 3))):
        asked = Wish(stage.words("story"), name, pronouns)
        turns.append(("user", stage.said(asked.pointing(stage) if turns else asked.whole(stage))))
        turns.append(("assistant", stage.options("story answers")))
    vague = stage.chance(0.45)
    last = Wish(stage.options("story vague") if vague else stage.words("story"), name, pronouns)
    turns.append(("user", stage.said(last.pointing(stage))))
    clarity = 3.2 if vague else 1.35
    return Scene(stage.language, turns, Levels(clarity, 1.0, 5.0, 4.9, 4.8))


def booking(stage: Stage) -> Scene:
    """Fill a booking step by step; each detail makes it clearer."""
    known = [stage.options("book conditions")]
    turns = [("user", stage.said(stage.words("book", {"c": known[0]})))]
    for _ in range(stage.random.choice((0, 1, 2, 2, 3, 4))):
        turns.append(("assistant", stage.options("book ask")))
        stage.slots.anew("n", "date", "money")
        known.append(stage.options("book conditions"))
        turns.append(("user", stage.said(stage.options("book more", {"c": known[-1]}))))
    over = len(known) > 2 and stage.chance(0.5)
    if over:
        turns += [("assistant", stage.options("book ask")), ("user", stage.said(stage.options("book end")))]
    clarity = 1.2 if over else max(4.4 - 0.6 * len(known), 2.0)
    return Scene(stage.language, turns, Levels(clarity, 3.2, 4.2, 3.8, 3.4))
