"""The built-in model, as the runtime wants it."""

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.values import Chunk, Finished, Request, TextDelta, Usage
from taiwa.models.abilities import Facts, facts
from taiwa.models.builtin.reading import read
from taiwa.models.builtin.refusing import refusal
from taiwa.models.decoding.inside import InsideModel

if TYPE_CHECKING:
    from taiwa.models.builtin.loading import Loaded

__all__ = ["NAME", "BuiltinModel"]

NAME = "builtin"


class BuiltinModel(InsideModel["Loaded"]):
    """The model that comes along: `builtin`. What it did not learn, it says in words of the program's.

    Raises:
        ConfigError: an option follows its name.
    """

    def __init__(self, name: str = NAME, known: Facts | None = None) -> None:
        super().__init__(name, known or facts("builtin", ""))
        if name != NAME:
            raise ConfigError(f"the built-in model takes no options and runs in numpy: use {NAME!r}, not {name!r}")

    def load(self) -> "Loaded":
        """Load it from the package.

        Raises:
            ConfigError: the files are missing or broken.
        """
        from taiwa.models.builtin.loading import load

        return load()

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, the last one `Finished`; a request that the model cannot read is answered in words that say so.

        Raises:
            ConfigError: the model cannot be loaded.
            DeadEndError: the constraint leaves no token.
            InputError: the constraint cannot be read, or the prefix does not fit it.
            ModelError: `UnsupportedError` for a value or a list of probabilities that the model did not learn to give.
        """
        if read(request) is None:
            yield TextDelta(refusal(request))
            yield Finished("stop", None, Usage(), self.name)
        else:
            yield from super().stream(_likeliest(request))


def _likeliest(request: Request) -> Request:
    """The request with the likeliest text wanted, where it does not say how tokens are drawn: so small a model errs enough."""
    if request.sampling.temperature is not None:
        return request
    return replace(request, sampling=replace(request.sampling, temperature=0.0))
