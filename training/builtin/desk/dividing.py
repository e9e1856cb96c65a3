"""Several of one item that differ: `three lattes, two of them iced and one with oat milk`."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from types import ModuleType

from training.builtin.desk.correcting import corrected_part
from training.builtin.desk.ordering import DONE, ordered, taken, tongue
from training.builtin.desk.scene import make_sample, next_number, scene, step
from training.builtin.desk.wishes import Extra, Wish, extra, quantity, wish
from training.builtin.samples import Sample

__all__ = ["divide"]


def divide(random: Random, code: str) -> Sample:
    """Order several of one item that differ."""
    place = scene(random, code) if random.random() < 0.4 else scene(random, code, most=0)
    wording, talk = tongue(code)
    count = max(2, min(quantity(random) + random.choice((1, 1, 2)), 8))
    base = replace(wish(random, 1), quantity=count)
    text, base = wording.phrase(random, base)
    split = _split(random, count)
    parts, meant = [], []
    for at, number in enumerate(split):
        own = _own(random, base, optional=at == len(split) - 1)
        late = [wording.behind(random, each) for each in own]
        shown = talk_together(wording, random, late)
        parts.append((number, shown))
        meant.append(replace(base, quantity=number, extras=(*base.extras, *own)))
    if len({each.line(1).options for each in meant}) < len(meant):
        return ordered(random, place, [base])
    more = [wish(random, 1)] if random.random() < 0.2 else []
    spoken = [wording.phrase(random, each) for each in more]
    done = random.random() < DONE
    whole = talk.divided(random, text, parts)
    if not more and random.random() < 0.15:
        at, way = random.randrange(len(meant)), random.choice(("size", "size", "extra"))
        said, corrected = corrected_part(random, code, meant, at, way)
        whole += random.choice((". ", " ", ", ") if code == "en" else ("。", "、")) + said
        meant[at] = corrected or meant[at]
    text = talk.ordering(random, [whole, *(said for said, _ in spoken)], "first done" if done else "first")
    everything = [*meant, *(after for _, after in spoken)]
    lines = [each.line(next_number(place.order) + at) for at, each in enumerate(everything)]
    return make_sample(
        random,
        "divide",
        place,
        text,
        taken(place, lines, done=done),
        step(place, lines, done=done),
    )


def _split(random: Random, count: int) -> list[int]:
    """Split a number into two or three parts."""
    first = random.randint(1, count - 1)
    rest = count - first
    if rest > 1 and random.random() < 0.2:
        second = random.randint(1, rest - 1)
        return [first, second, rest - second]
    return [first, rest]


def _own(random: Random, base: Wish, *, optional: bool) -> tuple[Extra, ...]:
    if optional and random.random() < 0.15:
        return ()
    found: list[Extra] = []
    for _ in range(random.choice((1, 1, 1, 2))):
        more = extra(random, base.name, (*base.extras, *found))
        if more is not None and more.sort != "bagel":
            found.append(more)
    return tuple(found)


def talk_together(wording: ModuleType, random: Random, late: Sequence[object]) -> str:
    """Join the parts after a count."""
    parts = [each if isinstance(each, tuple) else (each, "") for each in late]
    text: str = wording.together(random, parts)
    return text
