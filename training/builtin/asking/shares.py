"""Samples made of scenes: five scores, a question back as JSON, and questions that stand alone."""

import json
from collections.abc import Callable, Mapping
from random import Random

from taiwa.models.builtin.requests import format_dialogue
from training.builtin.asking import threads, work, world
from training.builtin.asking.scenes import Scene, Stage
from training.builtin.samples import Draw, Sample, Share, Span

__all__ = ["SHARES", "assess", "back", "rewrite"]

Make = Callable[[Stage], Scene]
SCENES: Mapping[str, tuple[Make, float]] = {
    "question": (work.question, 20),
    "thread": (threads.thread, 13),
    "bare": (work.bare, 7),
    "group": (work.group, 5),
    "dangling": (work.dangling, 8),
    "action": (work.action, 8),
    "trouble": (work.trouble, 6),
    "advice": (work.advice, 9),
    "chat": (work.chat, 5),
    "person": (work.person, 5),
    "thing": (world.thing, 9),
    "search": (world.search, 10),
    "report": (world.report, 7),
    "story": (world.story, 7),
    "booking": (world.booking, 4),
}
ASKING_BACK = (
    "question", "bare", "group", "dangling", "trouble", "advice", "advice", "thing", "search", "report", "story", "booking",
)  # fmt: skip
REWRITTEN: Mapping[str, float] = {"thread": 60, "thing": 24, "report": 8, "story": 6, "question": 2}
LANGUAGES = ("en", "ja", "zh")
SPOKEN = (45, 45, 10)
INJECTED, KNOWN, EARLIER, ALONE = 0.03, 0.06, 0.05, 0.08
SPREAD = 0.35
"""How far judgements of one and the same scene lie apart, in levels."""
LONGEST_ANSWER = 350


def assess(name: str) -> Draw:
    """A draw of one of the five scores, as a digit."""

    def draw(random: Random) -> Sample:
        stage, kind, scene = _scene(random)
        level = float(getattr(scene.levels, name))
        digit = min(max(round(level + random.gauss(0, SPREAD)), 1), 5)
        return Sample(f"assess.{name}", f"{kind}.{stage.language}", _prompt(stage, scene), (Span(str(digit)),))

    return draw


def back(random: Random) -> Sample:
    """A question back, in the field that it belongs to; where there is nothing to ask, an empty object."""
    if random.random() < ALONE:
        stage, kind, scene = _scene(random)
        text = _words(scene) if scene.back is None or scene.levels.clarity > 2 else "{}"
    else:
        stage, kind, scene = _asking_back(random)
        text = _words(scene)
    return Sample("back", f"{kind}.{stage.language}", _prompt(stage, scene), (Span(text),))


def rewrite(random: Random) -> Sample:
    """A dialogue and the questions that stand for it, each on a line of its own."""
    while True:
        stage = Stage(random, _language(random))
        kind = random.choices(list(REWRITTEN), list(REWRITTEN.values()))[0]
        scene = SCENES[kind][0](stage)
        if scene.wanted and (kind == "question" or _spoken(scene) > 1):
            break
    turns = scene.turns
    if not scene.whole and random.random() < 0.55:
        turns = [turn for turn in turns if turn[0] == "user"]
    text = "\n".join(scene.wanted)[:LONGEST_ANSWER]
    return Sample("rewrite", f"{kind}.{stage.language}", format_dialogue(turns), (Span(text),))


def _language(random: Random) -> str:
    return random.choices(LANGUAGES, SPOKEN)[0]


def _spoken(scene: Scene) -> int:
    return sum(role == "user" for role, _ in scene.turns)


def _scene(random: Random) -> tuple[Stage, str, Scene]:
    stage = Stage(random, _language(random))
    kind = random.choices(list(SCENES), [weight for _, weight in SCENES.values()])[0]
    scene = SCENES[kind][0](stage)
    if random.random() < INJECTED:
        scene = work.injected(stage, scene)
    return stage, kind, scene


def _asking_back(random: Random) -> tuple[Stage, str, Scene]:
    """A scene in which something is missing."""
    while True:
        stage = Stage(random, _language(random))
        kind = random.choice(ASKING_BACK)
        scene = SCENES[kind][0](stage)
        if scene.back is not None:
            return stage, kind, scene


def _prompt(stage: Stage, scene: Scene) -> str:
    """The dialogue as the runtime shows it; at times with facts of the person that say nothing, or with other dialogues."""
    known = dict(scene.person)
    if stage.chance(KNOWN):
        known[stage.options("facts other")] = stage.slots[stage.random.choice(("team", "site", "person"))]
    earlier = [stage.finished(stage.options("bare", {"x": work.topic(stage).name}))] if stage.chance(EARLIER) else []
    return format_dialogue(scene.turns, user=dict(known), earlier=list(earlier))


def _words(scene: Scene) -> str:
    if scene.back is None:
        return "{}"
    field, text = scene.back
    return json.dumps({field: text}, ensure_ascii=False, separators=(",", ":"))


SHARES: Mapping[str, Share] = {
    **{
        f"assess.{name}": Share(weight, assess(name))
        for name, weight in (
            ("clarity", 0.21), ("is_question", 0.085), ("is_consultation", 0.085), ("in_internal_docs", 0.085), ("ask_person", 0.085),
        )
    },
}  # fmt: skip
