"""A model of transformers in this process."""

from typing import TYPE_CHECKING

from taiwa.models.abilities import Facts, facts
from taiwa.models.decoding.inside import InsideModel
from taiwa.models.local.place import Place, place_of

if TYPE_CHECKING:
    from taiwa.models.local.loading import Loaded

__all__ = ["LocalModel"]


class LocalModel(InsideModel["Loaded"]):
    """The model in a folder or of a hub: `local:FOLDER`, `local:VENDOR/NAME`.

    Raises:
        ConfigError: the name cannot be used.
    """

    def __init__(self, name: str, place: Place | None = None, known: Facts | None = None) -> None:
        self.place = place or place_of(name.removeprefix("local:"))
        super().__init__(name, known or facts("local", self.place.where))

    def load(self) -> "Loaded":
        """Load its folder with torch and transformers.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """
        from taiwa.models.local.loading import load

        return load(self.place)
