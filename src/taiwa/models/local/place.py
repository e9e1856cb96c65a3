"""The name of a local model: a folder or the name of one on a hub, and how it is to be loaded."""

from dataclasses import dataclass, fields
from pathlib import Path

from taiwa.kernel.errors import ConfigError
from taiwa.models.choices import chosen, whole
from taiwa.models.local.library import hub

__all__ = ["FORM", "Place", "folder_of", "here", "place_of"]

FORM = "say local:FOLDER or local:VENDOR/NAME, with ?device=cuda&dtype=bfloat16&threads=4 behind it where you want to"
DTYPES = ("auto", "float32", "float16", "bfloat16")
NEEDED = "config.json"
FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
"""What is fetched from a hub: no weights but safetensors, which hold numbers and no program, and no code."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is, and how it is loaded: `auto` takes a GPU where there is one, and numbers as that reckons best."""

    where: str
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    context: int = 0


def place_of(text: str) -> Place:
    """Read what stands behind `local:`.

    Raises:
        ConfigError: it names nothing, or an option is unknown.
    """
    where, _, given = text.partition("?")
    if not where.strip():
        raise ConfigError(f"'local:' names no model: {FORM}")
    known = [field.name for field in fields(Place) if field.name != "where"]
    found = chosen(given, known, "local")
    dtype = found.get("dtype", "auto")
    if dtype not in DTYPES:
        raise ConfigError(f"dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
    threads, context = (whole(name, found.get(name, "0")) for name in ("threads", "context"))
    return Place(where, found.get("device", "auto"), dtype, threads, context)


def folder_of(place: Place) -> Path:
    """Find the folder of a model; one of a hub is fetched, or found where it was kept.

    Raises:
        ConfigError: there is none, or it holds no model that can be loaded.
    """
    folder = here(place)
    if folder is None:
        folder = _fetched(place.where)
        _checked(folder)
    return folder


def here(place: Place) -> Path | None:
    """The folder of a model on this machine; None for one that may be on a hub. Nothing heavy is loaded.

    Raises:
        ConfigError: it is missing, or files in it are.
    """
    folder = Path(place.where).expanduser()
    if not folder.exists() and _on_hub(place.where):
        return None
    _checked(folder)
    return folder


def _on_hub(where: str) -> bool:
    """Whether it can be the name of a model on a hub: a vendor and a name, as no path of one's own is written."""
    parts = where.split("/")
    return len(parts) == 2 and all(parts) and not where.startswith((".", "~", "/"))


def _fetched(name: str) -> Path:
    module = hub()
    try:
        return Path(module.snapshot_download(name, allow_patterns=list(FILES)))
    except (OSError, ValueError, RuntimeError, module.errors.HfHubHTTPError) as error:
        said = str(error).strip().splitlines()
        why = f" ({said[0][:160]})" if said else ""
        raise ConfigError(
            f"there is no folder {name!r} here, and it cannot be had from the hub{why}; give the path of a folder with the model"
        ) from None


def _checked(folder: Path) -> None:
    if folder.is_file():
        kind = "llama.cpp reads it: start its server" if folder.suffix == ".gguf" else "give the folder it lies in"
        raise ConfigError(f"{folder} is a file: {kind}")
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}: {FORM}")
    if not (folder / NEEDED).is_file():
        held = next((each.parent for each in sorted(folder.glob(f"*/{NEEDED}"))), None)
        hint = f"did you mean {held}?" if held else f"a model's folder has {NEEDED}, tokenizer.json and *.safetensors"
        raise ConfigError(f"{folder} holds no model: {hint}")
    if not any(folder.glob("*.safetensors")):
        pickled = any((*folder.glob("*.bin"), *folder.glob("*.pt")))
        why = (
            "its weights are pickled, which can run code: convert them to safetensors"
            if pickled
            else "its weights (*.safetensors) are missing"
        )
        raise ConfigError(f"{folder} cannot be loaded: {why}")
