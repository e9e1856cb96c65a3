"""Scenes outside the workplace: general knowledge, search queries, company reports, stories and bookings."""

from training.builtin.asking.scenes import Scene, Scores, Stage, Wish
from training.builtin.asking.wording import listed

__all__ = ["booking", "report", "search", "story", "thing"]

BEYOND = 5
"""The score of a topic that an organisation's documents do not cover."""
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
    return Scene(stage.language, turns, Scores(1, 1, 5, BEYOND))


def _alone(stage: Stage, asked: Wish) -> Scene:
    """Ask one question that names its topic or only refers to it."""
    if stage.chance(0.55):
        return Scene(stage.language, [("user", stage.said(asked.whole(stage)))], Scores(1, 1, 5, BEYOND))
    return Scene(stage.language, [("user", stage.said(asked.pointing(stage)))], Scores(5, 1, 5, BEYOND))


def search(stage: Stage) -> Scene:
    """Write a search query: an ambiguous word, a broad one, or a complete query."""
    kind = stage.random.choices(("many", "broad", "exact", "lacking", "named"), (24, 22, 28, 20, 10))[0]
    if kind == "named":
        text, clarity = stage.slots[stage.random.choice(("person", "town", "title", "org", "club", "illness"))], 3
    else:
        clarity = {"many": 5, "broad": 4, "exact": 1, "lacking": 4}[kind]
        text = stage.options(kind)
    if stage.chance(0.12) and kind != "lacking":
        text = stage.options("wish for", {"x": text})
    asks = 1 if kind == "lacking" else 2 if kind == "exact" else 3
    return Scene(stage.language, [("user", stage.said(text))], Scores(clarity, asks, 5, BEYOND))


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
        return _figures(stage, [*before, ("user", stage.said(text))], 1)
    if stage.chance(0.4):
        text = _reported(stage, shape, measure, whose, "")
        turns = [("user", stage.said(text))]
        if stage.chance(0.35):
            turns += [("assistant", stage.finished(stage.options("ask year"))), ("user", stage.said(year))]
            return _figures(stage, turns, 1)
        return _figures(stage, turns, 4)
    turns = [("user", stage.said(whole))]
    if stage.chance(0.5):
        turns.append(("assistant", stage.options("figures")))
        stage.slots.anew("year", "year2")
        other, later = stage.options("measures"), stage.options("years")
        if stage.chance(0.5):
            turns.append(("user", stage.said(stage.options("more measure", {"m": other}))))
        else:
            turns.append(("user", stage.said(stage.options("more year", {"y": later}))))
    return _figures(stage, turns, 1)


def _reported(stage: Stage, shape: str, measure: str, whose: str, year: str) -> str:
    text = stage.made(shape, {"m": measure, "o": whose, "y": year})
    return " ".join(text.split()) if stage.language == "en" else text


def _figures(stage: Stage, turns: list[tuple[str, str]], clarity: int) -> Scene:
    return Scene(stage.language, turns, Scores(clarity, 1, 5, 3))


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
    clarity = 3 if vague else 1
    return Scene(stage.language, turns, Scores(clarity, 1, 5, BEYOND))


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
    clarity = 1 if over else max(5 - len(known), 2)
    return Scene(stage.language, turns, Scores(clarity, 3, 4, 4, 3))
