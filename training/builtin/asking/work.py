"""Workplace scenes: underspecified questions, bare topics, dangling references, plans, problems and worries."""

from dataclasses import replace

from training.builtin.asking.scenes import ASKING, Scene, Scores, Stage, Wish

__all__ = [
    "Topic",
    "action",
    "advice",
    "bare",
    "chat",
    "condition",
    "dangling",
    "group",
    "injected",
    "person",
    "question",
    "topic",
    "trouble",
    "wish",
]

DEPENDING = "dlwetxc"
"""Aspects whose answer depends on the user or the place."""
ABOUT_PERSON = ("site", "kind", "years")
OWN = {"en": ("it", "it", "its"), "ja": ("それ", "それ", "その"), "zh": ("它", "它", "它的")}
MANY = ("they", "them", "their")
GAPS = {"en": ". ", "ja": "。", "zh": "。"}


class Topic:
    """A topic: its chosen name, group, aspects, and the conditions on which answers depend."""

    def __init__(self, stage: Stage, line: tuple[str, ...] | None = None) -> None:
        name, number, group, aspects, *needs = line or stage.line("topics")
        self.name, self.group = name, group
        self.aspects = tuple(aspects.split())
        self.needs = tuple(needs[0].split()) if needs else ()
        self.pronouns = MANY if number == "p" and stage.language == "en" else OWN[stage.language]
        if stage.language == "en" and stage.chance(0.25):
            self.pronouns = ("that", "that", "that")


def topic(stage: Stage, aspect: str = "", other: str = "") -> Topic:
    """Draw a topic that has the aspect and differs from the given one."""
    found = Topic(stage)
    for _ in range(30):
        if (not aspect or aspect in found.aspects) and found.name != other:
            break
        found = Topic(stage)
    return found


def wish(stage: Stage, about: Topic, aspect: str = "", condition: str = "") -> Wish:
    """Draw a question about a topic."""
    kind = aspect or stage.random.choice(about.aspects)
    return Wish(stage.words(f"aspect {kind}"), about.name, about.pronouns, condition)


def condition(stage: Stage, need: str) -> str:
    """Draw a condition of the given kind."""
    return stage.options(f"need {need}")


def question(stage: Stage) -> Scene:
    """Ask one question; it is less clear if a condition on which the answer depends is missing."""
    about = topic(stage)
    aspect = stage.random.choice(about.aspects)
    needs = about.needs if aspect in DEPENDING else ()
    given = stage.random.choice(needs) if needs and stage.chance(0.55) else ""
    missing = [need for need in needs if need != given]
    known: dict[str, str] = {}
    for need in tuple(missing):
        if need in ABOUT_PERSON and stage.chance(0.25):
            known[stage.options(f"facts {need}")] = stage.condition(condition(stage, need))["b"]
            missing.remove(need)
    asked = wish(stage, about, aspect, condition(stage, given) if given else "")
    clarity = 1 if all(need in ABOUT_PERSON for need in missing) else 2
    opening = f"{stage.options('told')} " if stage.chance(0.12) else ""
    whole = asked.whole(stage)
    person = 4 if aspect == "o" else 5
    said = [("user", opening + stage.said(whole, (about.name,)))]
    return Scene(stage.language, said, Scores(clarity, ask_person=person), known)


def bare(stage: Stage) -> Scene:
    """Name a topic without asking anything."""
    about = topic(stage)
    said = stage.said(stage.options("bare", {"x": about.name}), (about.name,))
    return Scene(stage.language, [("user", said)], Scores(4, 2, 5, 1, 5))


def group(stage: Stage) -> Scene:
    """Name a category that covers many topics."""
    words = stage.line("groups")[1]
    said = stage.said(stage.options("bare", {"x": words}) if stage.chance(0.6) else words)
    return Scene(stage.language, [("user", said)], Scores(5, 2, 5, 1, 5))


def dangling(stage: Stage) -> Scene:
    """Refer to something that was never mentioned."""
    said = [("user", stage.said(stage.words("dangling")))]
    if stage.chance(0.25):
        greeting = stage.line("chat")[0]
        said = [("user", stage.said(greeting)), ("assistant", stage.options("greetings")), *said]
    return Scene(stage.language, said, Scores(5, 1, 5, 2, 4))


def action(stage: Stage) -> Scene:
    """State a plan and ask whether it is allowed, or how to do it."""
    doing = stage.line("actions")[0]
    text = stage.words("frames may", {"v": doing})
    need = stage.random.choice(("site", "kind"))
    given = stage.chance(0.2)
    if given:
        text = stage.options("with condition", {"t": text.rstrip("?. "), "c": condition(stage, need)})
    return Scene(stage.language, [("user", stage.said(text))], Scores(1, 1, 5, 1, 5))


def trouble(stage: Stage) -> Scene:
    """Report a problem, clearly or vaguely."""
    text, clear = stage.line("troubles")
    asking = text.endswith(("?", "か", "吗"))
    return Scene(stage.language, [("user", stage.said(text))], Scores(int(clear), 1 if asking else 3, 4, 2, 4))


def advice(stage: Stage) -> Scene:
    """Ask for advice on a personal matter."""
    text, clear = stage.line("advice")
    if stage.chance(0.25):
        text = f"{text.rstrip('.。')}{GAPS[stage.language]}{stage.options('advice more')}" if "?" not in text else text
    asking = "?" in text or text.endswith(("か", "吗", "呢"))
    scores = Scores(int(clear), 2 if asking else 4, 1, 4, 2)
    return Scene(stage.language, [("user", stage.said(text))], scores)


def chat(stage: Stage) -> Scene:
    """Write neither a question nor a worry: a greeting, thanks, small talk, a statement or noise."""
    text, kind = stage.line("chat")
    clarity = {"greet": 3, "thanks": 2, "chat": 3, "statement": 4, "noise": 5}[kind]
    asking = text.endswith(("?", "か", "谁")) or text.partition(" ")[0] in ASKING
    scores = Scores(clarity, 3 if asking else 5, 5, 5, 5)
    said = [("user", stage.said(text))]
    if kind == "thanks" and stage.chance(0.6):
        before = question(stage)
        said = [*before.turns, ("assistant", stage.options("answers")), *said]
    return Scene(stage.language, said, scores)


def person(stage: Stage) -> Scene:
    """Ask for what only a human can do or know: tasks, exceptions, decisions, personal data."""
    said = [("user", stage.said(stage.words("ask for person")))]
    if stage.chance(0.3):
        before = question(stage)
        said = [*before.turns, ("assistant", stage.options("answers")), *said]
    return Scene(stage.language, said, Scores(1, 3, 4, 4, 1))


def injected(stage: Stage, scene: Scene) -> Scene:
    """Insert a prompt injection into a scene; the labels do not change."""
    order = stage.words("inject")
    at = stage.random.randrange(len(scene.turns))
    role, text = scene.turns[at]
    end = " " if stage.language == "en" else ""
    text = f"{text}{end}{order}" if stage.chance(0.5) else f"{order} {text}"
    turns = [*scene.turns[:at], (role, text), *scene.turns[at + 1 :]]
    return replace(scene, turns=turns)
