"""The name of a GGUF model: a file, and how llama.cpp is to load it."""

from dataclasses import dataclass, fields
from pathlib import Path

from taiwa.kernel.errors import ConfigError
from taiwa.models.choices import chosen, whole

__all__ = ["FORM", "Place", "checked", "place_of"]

FORM = "say gguf:FILE.gguf, with ?context=8192&threads=4&slots=1&layers=0 behind it where you want to"
MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is and how it is loaded.

    `context` is how many tokens all its conversations together may have, `slots` how many of them are answered at a time;
    `threads` 0 takes as many as there are cores, and `layers` says how many run on a GPU: -1 leaves that to llama.cpp.
    """

    file: Path
    context: int = 8192
    threads: int = 0
    slots: int = 4
    layers: int = -1


def place_of(text: str) -> Place:
    """Read what stands behind `gguf:`.

    Raises:
        ConfigError: it names nothing, or an option is unknown.
    """
    file, _, given = text.partition("?")
    if not file.strip():
        raise ConfigError(f"'gguf:' names no file: {FORM}")
    known = [field.name for field in fields(Place) if field.name != "file"]
    numbers = {name: whole(name, text) for name, text in chosen(given, known, "GGUF").items()}
    for name in ("context", "slots"):
        if numbers.get(name) == 0:
            raise ConfigError(f"{name} of a GGUF model is at least 1")
    return Place(Path(file).expanduser(), **numbers)


def checked(place: Place) -> Place:
    """See that there is such a file, before a server is started for it.

    Raises:
        ConfigError: there is none, or it is no GGUF file.
    """
    file = place.file
    if file.is_dir():
        inner = next(iter(sorted(file.glob("*.gguf"))), None)
        raise ConfigError(f"{file} is a folder: {f'did you mean {inner}?' if inner else FORM}")
    try:
        with file.open("rb") as opened:
            begins = opened.read(len(MAGIC))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {file}: {FORM}") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror})") from None
    if begins != MAGIC:
        raise ConfigError(f"{file} is no GGUF file: it begins with {begins!r}")
    return place
