"""What the evaluations of the dialogue before retrieval share: the sets, a model where one is asked for, and how it is run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from taiwa.kernel.arun import AsyncRuntime
from taiwa.kernel.effects import Program
from taiwa.kernel.ledger import Limits
from taiwa.kernel.records import Json
from taiwa.kernel.session import Done
from taiwa.lab.asking.corpora import Corpora, Finder
from taiwa.lab.evaluation.items import Item
from taiwa.lab.evaluation.voiced import Voiced
from taiwa.settings import Settings
from taiwa.talk.turn import Speaker, Voice

__all__ = ["Modelled"]

T = TypeVar("T")


@dataclass
class Modelled(Voiced):
    """Part of a work. Without `chosen` and `speaker` there is no model, and only settings that need none are measured."""

    corpora: Corpora
    chosen: Settings | None = None
    speaker: Speaker | None = None
    _voice: Voice | None = field(default=None, init=False, repr=False)

    @property
    def options(self) -> Mapping[str, Json]:
        """All that a measurement depends on beside the setting, the item and the model."""
        return {"passages": self.corpora.digest}

    async def done(self, program: Program[T], finder: Finder, limits: Limits) -> Done[T]:
        """Run a program over what it looks into, with the model where there is one."""
        voice = self.voice
        if voice is None:
            return await AsyncRuntime(retriever=finder, limits=limits).done(program)
        return await AsyncRuntime(voice.model, retriever=finder, limits=limits, price=voice.price).done(program)

    def finder(self, item: Item) -> Finder:
        """What an item is looked up in."""
        return self.corpora.finder(item.kind)
