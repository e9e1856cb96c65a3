"""Samples of the order app: what guests say, and the replies."""

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from training.builtin.desk.changing import absent, again, change, remove, same_but, swap, which
from training.builtin.desk.correcting import correct
from training.builtin.desk.dividing import divide
from training.builtin.desk.ordering import abroad, nothing_here, order
from training.builtin.desk.pointing import alike, in_chinese, more, several
from training.builtin.desk.talking import call_off, confirm, elsewhere, menu, price, social, summary, total, unclear
from training.builtin.samples import Sample, Share

__all__ = ["SHARES"]

ACTS: Mapping[str, tuple[float, Callable[[Random, str], Sample]]] = {
    "order": (38, order), "divide": (6, divide), "correct": (4, correct), "change": (15, change), "swap": (2, swap), "remove": (6, remove), "again": (5, again), "same_but": (2, same_but),
    "several": (9, several), "alike": (3, alike), "more": (3, more),
    "absent": (1.5, absent), "which": (1.5, which), "total": (3.5, total), "summary": (2.5, summary), "price": (4, price), "menu": (1.5, menu), "confirm": (5, confirm),
    "call_off": (1.5, call_off), "social": (2.5, social), "unclear": (2, unclear), "nothing_here": (3, nothing_here), "elsewhere": (3.5, elsewhere),
}  # fmt: skip
LANGUAGES = {"en": 0.6, "ja": 0.4}


def _shares() -> dict[str, Share]:
    shares = {
        f"{name}.{code}": Share(weight * part, partial(_drawn, act, code))
        for code, part in LANGUAGES.items()
        for name, (weight, act) in ACTS.items()
    }
    return shares | {
        "abroad": Share(2, partial(_drawn, abroad, "en")),
        "in_chinese": Share(4, partial(_drawn, in_chinese, "en")),
    }


def _drawn(act: Callable[[Random, str], Sample], code: str, random: Random) -> Sample:
    return act(random, code)


SHARES: Mapping[str, Share] = _shares()
