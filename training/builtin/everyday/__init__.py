"""Everyday quantities in English, Japanese and Chinese, and questions that cannot be answered."""

from collections.abc import Mapping
from functools import partial
from random import Random
from types import MappingProxyType

from taiwa.models.builtin.tokenizer import normalize_text
from training.builtin.everyday import counting, measuring, money, unanswerable
from training.builtin.everyday.telling import Everyday, EverydayProblem, Make
from training.builtin.noise import noisy, noisy_ja
from training.builtin.quantities.working import solved
from training.builtin.samples import Sample, Share, Span

__all__ = ["KINDS", "SHARES"]

KINDS: Mapping[str, tuple[float, Make]] = MappingProxyType({
    "unit": (14, measuring.unit),
    "temperature": (5, measuring.temperature),
    "percent": (4, money.percent),
    "discount": (7, money.discount),
    "tax": (4, money.tax),
    "price": (7, money.price),
    "change": (4, money.change),
    "split": (4, money.split),
    "average": (3, counting.average),
    "speed": (7, measuring.speed),
    "duration": (4, measuring.duration),
    "rate": (4, counting.rate),
    "fuel": (1.5, counting.fuel),
    "recipe": (3, counting.recipe),
    "sums": (6, counting.sums),
    "rest": (2, counting.rest),
    "portions": (2, counting.portions),
    "fraction": (2.5, counting.fraction),
    "area": (1.5, counting.area),
    "exchange": (1.5, money.exchange),
    "ph": (6, measuring.ph),
    "dilution": (6, measuring.dilution),
    "substance": (9, measuring.substance),
})  # fmt: skip
"""The kinds of questions, with their generators and weights."""
FRONTS_ZH = "请问,|请问|你好,|帮我算一下,|算一下,|我想问一下,|问一下,|麻烦你,|那个,|老师问,|作业题:|急!|".split("|")
BACKS_ZH = "?|?|。|,谢谢|,谢谢!|?谢谢|呢?|啊?|??|!| ".split("|")
KEPT = 0.62


def _draw(kind: str, make: Make, random: Random) -> Sample:
    writer = Everyday(random)
    made = make(writer)
    return Sample("solve", kind, _written(writer, made), solved(made.steps, made.unit))


def _refuse(kind: str, make: Make, random: Random) -> Sample:
    writer = Everyday(random)
    made = make(writer)
    return Sample("solve", kind, _written(writer, made), (Span(made.unit),))


def _written(writer: Everyday, made: EverydayProblem) -> str:
    """Return the question as users type it, sometimes with an irrelevant number."""
    random, text = writer.random, made.question
    if random.random() < made.distracted:
        text = f"{writer.say('distractor', {'o': str(random.randint(2, 31))})}{' ' * (writer.code == 'en')}{text}"
    if random.random() < KEPT:
        return normalize_text(text)
    if writer.code == "en":
        text = noisy(random, text, random.choice((0.05, 0.1, 0.2)), made.keep)
    elif writer.code == "ja":
        text = noisy_ja(random, text, random.choice((0.05, 0.1, 0.2)), made.keep)
    else:
        text = random.choice(FRONTS_ZH) + text + random.choice(BACKS_ZH) * (random.random() < 0.7)
    return normalize_text(text)


SHARES: Mapping[str, Share] = MappingProxyType({
    **{kind: Share(weight, partial(_draw, kind, make)) for kind, (weight, make) in KINDS.items()},
    "unknown unit": Share(2, partial(_refuse, "unknown unit", unanswerable.unknown_unit)),
    "mismatch": Share(2, partial(_refuse, "mismatch", unanswerable.mismatch)),
    "lacking": Share(4, partial(_refuse, "lacking", unanswerable.lacking)),
})  # fmt: skip
"""The kinds of samples and their weights."""
