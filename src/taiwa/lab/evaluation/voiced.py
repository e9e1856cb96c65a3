"""What works that ask a model share: the one they are given, or the one that settings name, opened where it is first needed."""

from taiwa.conversation.app import App
from taiwa.models.scripted import Scripted
from taiwa.settings import Settings
from taiwa.talk.opening import open_voice
from taiwa.talk.turn import Speaker, Voice

__all__ = ["Voiced"]


class Voiced:
    """Part of a work: a model, or none where neither `speaker` nor `chosen` is given."""

    chosen: Settings | None
    speaker: Speaker | None
    _voice: Voice | None

    def __getstate__(self) -> dict[str, object]:
        """An open connection stays here; another machine opens its own."""
        return {**self.__dict__, "_voice": None}

    def opened(self, app: App | None = None) -> Voice | None:
        """The model, as `app` wants it; None without one."""
        if self._voice is None and self.speaker is not None:
            self._voice = Voice(self.speaker)
        elif self._voice is None and self.chosen is not None:
            self._voice = open_voice(None, self.chosen, app)
        return self._voice

    @property
    def voice(self) -> Voice | None:
        """The model, opened where it is first needed; None without one."""
        return self.opened()

    @property
    def model(self) -> str:
        """The name of the model; '' without one."""
        return "" if self.voice is None else self.voice.model.name

    @property
    def scripted(self) -> bool:
        """Whether it plays a script."""
        return self.voice is not None and isinstance(self.voice.model, Scripted)
