"""Word problems with quantities that a calculator finishes, and texts that are not such problems."""

from collections.abc import Mapping
from types import MappingProxyType

from training.builtin.quantities import (
    bare,
    convert,
    journeys,
    money,
    motion,
    parts,
    percents,
    physics,
    rates,
    shapes,
    stories,
    trains,
)
from training.builtin.quantities.numbers import number_of
from training.builtin.quantities.others import MISSING, REFUSAL, missing, other
from training.builtin.quantities.working import CONSTANTS, Maker, draw_of
from training.builtin.samples import Share

__all__ = ["CONSTANTS", "MAKERS", "MISSING", "REFUSAL", "SHARES"]

MAKERS: Mapping[str, tuple[float, Maker]] = MappingProxyType({
    "motion.speed": (6.5, motion.speed),
    "motion.distance": (6, motion.distance),
    "motion.time": (5, motion.time),
    "motion.average": (1, journeys.average_speed),
    "motion.legs": (1, journeys.legs),
    "motion.current": (1, journeys.current),
    "motion.echo": (0.6, journeys.echo),
    "motion.laps": (0.4, journeys.turning),
    "motion.meeting": (0.8, trains.meeting),
    "trains.point": (2.2, trains.passing_point),
    "trains.platform": (1.5, trains.passing_platform),
    "trains.walker": (0.6, trains.passing_walker),
    "trains.train": (0.6, trains.passing_train),
    "trains.two": (0.3, trains.two_crossings),
    "physics.formula": (9, physics.formula),
    "stories.happened": (5, stories.happened),
    "stories.compared": (2.5, stories.compared),
    "stories.grouped": (3, stories.grouped),
    "stories.shared": (2.5, stories.shared),
    "stories.started": (2, stories.started),
    "stories.counted": (2, stories.counted),
    "stories.rated": (2, stories.rated),
    "money.bought": (3, money.bought),
    "money.unit": (2.5, money.unit_price),
    "money.scaled": (1.2, money.scaled),
    "money.change": (1.5, money.change),
    "money.discount": (1.5, rates.discount),
    "money.surcharge": (1.5, rates.surcharge),
    "money.interest": (1.2, rates.interest),
    "money.profit": (0.8, rates.profit),
    "money.paid": (1.2, rates.paid),
    "money.exchanged": (1, rates.exchanged),
    "money.fuel": (1, rates.fuel),
    "parts.percent": (1.5, percents.percent_of),
    "parts.share": (1.5, percents.percent_share),
    "parts.change": (1.2, percents.percent_change),
    "parts.whole": (0.6, percents.whole_of_percent),
    "parts.fraction": (1.2, percents.fraction),
    "parts.ratio": (1.2, parts.ratio),
    "parts.average": (1.5, parts.average),
    "parts.age": (1, parts.age),
    "parts.working": (0.8, parts.working),
    "parts.recipe": (0.8, parts.recipe),
    "parts.mixture": (2, parts.mixture),
    "shapes.shape": (3, shapes.shape),
    "shapes.covering": (0.6, shapes.covering),
    "convert.unit": (2.5, convert.unit),
    "convert.temperature": (1, convert.temperature),
    "convert.given": (1.2, convert.given_factor),
    "bare.expression": (2, bare.expression),
    "bare.spoken": (2, bare.spoken),
    "bare.words": (0.8, bare.word_sum),
    "bare.puzzle": (0.6, bare.puzzle),
    "bare.dozens": (0.6, bare.dozens),
})  # fmt: skip
"""The kinds of problems, with their generators and weights."""
SHARES: Mapping[str, Share] = MappingProxyType({
    **{kind: Share(weight, draw_of(kind, maker)) for kind, (weight, maker) in MAKERS.items()},
    "refused": Share(4, other),
    "missing": Share(2, missing),
    "number": Share(4, number_of([maker for _, maker in MAKERS.values()])),
})  # fmt: skip
"""The kinds of samples for the tasks `solve` and `number`, and their weights."""
