"""Everyday quantities: problems with numbers that a calculator finishes, and what is no such problem."""

from collections.abc import Mapping
from types import MappingProxyType

from training.builtin.quantities import motion, physics, trains
from training.builtin.quantities.working import CONSTANTS, Maker, draw_of
from training.builtin.samples import Share

__all__ = ["CONSTANTS", "SHARES"]

MAKERS: dict[str, tuple[float, Maker]] = {
    "motion.speed": (7, motion.speed),
    "motion.distance": (7, motion.distance),
    "motion.time": (6, motion.time),
    "trains.point": (2, trains.passing_point),
    "trains.platform": (1.5, trains.passing_platform),
    "trains.walker": (0.5, trains.passing_walker),
    "trains.train": (0.5, trains.passing_train),
    "trains.two": (0.3, trains.two_crossings),
    "motion.meeting": (1, trains.meeting),
    "physics.formula": (8, physics.formula),
}
SHARES: Mapping[str, Share] = MappingProxyType(
    {kind: Share(weight, draw_of(kind, maker)) for kind, (weight, maker) in MAKERS.items()}
)
"""The kinds of problems, and how often each is drawn."""
