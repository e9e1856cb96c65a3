"""Score samples: a dialogue and one of its five scores."""

from collections.abc import Callable, Mapping
from random import Random

from taiwa.models.builtin.prompts import format_dialogue
from training.builtin.asking import threads, work, world
from training.builtin.asking.scenes import Scene, Stage
from training.builtin.samples import Draw, Sample, Share, Span

__all__ = ["SHARES", "assess"]

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
LANGUAGES = ("en", "ja", "zh")
SPOKEN = (45, 45, 10)
INJECTED, KNOWN, EARLIER = 0.03, 0.06, 0.05


def assess(name: str) -> Draw:
    """Draw one of the five scores, as a digit."""

    def draw(random: Random) -> Sample:
        stage, kind, scene = _scene(random)
        digit = getattr(scene.scores, name)
        return Sample(f"assess.{name}", f"{kind}.{stage.language}", _prompt(stage, scene), (Span(str(digit)),))

    return draw


def _language(random: Random) -> str:
    return random.choices(LANGUAGES, SPOKEN)[0]


def _scene(random: Random) -> tuple[Stage, str, Scene]:
    stage = Stage(random, _language(random))
    kind = random.choices(list(SCENES), [weight for _, weight in SCENES.values()])[0]
    scene = SCENES[kind][0](stage)
    if random.random() < INJECTED:
        scene = work.injected(stage, scene)
    return stage, kind, scene


def _prompt(stage: Stage, scene: Scene) -> str:
    """Return the dialogue as the runtime formats it, sometimes with irrelevant user facts or earlier dialogues."""
    known = dict(scene.person)
    if stage.chance(KNOWN):
        known[stage.options("facts other")] = stage.slots[stage.random.choice(("team", "site", "person"))]
    earlier = [stage.finished(stage.options("bare", {"x": work.topic(stage).name}))] if stage.chance(EARLIER) else []
    return format_dialogue(scene.turns, user=dict(known), earlier=list(earlier))


SHARES: Mapping[str, Share] = {
    f"assess.{name}": Share(weight, assess(name))
    for name, weight in (
        ("clarity", 0.38), ("is_question", 0.155), ("is_consultation", 0.155), ("in_internal_docs", 0.155), ("ask_person", 0.155),
    )
}  # fmt: skip
