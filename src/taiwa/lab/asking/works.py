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
from taiwa.models.scripted import Scripted
from taiwa.settings import Settings
from taiwa.talk.opening import open_voice
from taiwa.talk.turn import Speaker, Voice

__all__ = ["Modelled"]

T = TypeVar("T")


@dataclass
class Modelled:
    """Part of a work. Without `chosen` and `speaker` there is no model, and only settings that need none are measured."""

    corpora: Corpora
    chosen: Settings | None = None
    speaker: Speaker | None = None
    _voice: Voice | None = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """An open connection stays here; another machine opens its own."""
        return {**self.__dict__, "_voice": None}

    @property
    def voice(self) -> Voice | None:
        """The model, opened where it is first needed; None without one."""
        if self._voice is None and self.speaker is not None:
            self._voice = Voice(self.speaker)
        elif self._voice is None and self.chosen is not None:
            self._voice = open_voice(None, self.chosen)
        return self._voice

    @property
    def model(self) -> str:
        """The name of the model; '' without one."""
        return "" if self.voice is None else self.voice.model.name

    @property
    def scripted(self) -> bool:
        """Whether it plays a script."""
        return self.voice is not None and isinstance(self.voice.model, Scripted)

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
