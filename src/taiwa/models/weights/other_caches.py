"""Model files that other programs have on this machine: Ollama, LM Studio, llama.cpp, the cache of the Hugging Face hub."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from taiwa.kernel.attachments import open_regular
from taiwa.kernel.serialization import items_at, parse_json, text_at
from taiwa.models.weights.model_files import SUFFIX, models_folder

OLLAMA_MODEL = "application/vnd.ollama.image.model"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NOT_FIRST = re.compile(r"mmproj|-(?!00001)\d{5}-of-\d{5}", re.IGNORECASE)
"""Parts of the names of files that are not a model by themselves: projectors of images, later parts of a split file."""
LARGEST_MANIFEST_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A model file of a program; `model` is the name of the model that runs it here."""

    program: str
    name: str
    path: Path
    size: int
    model: str


def find_files(environ: Mapping[str, str] | None = None) -> tuple[FoundFile, ...]:
    """Return the model files in the caches of other programs, each file once; unreadable folders and manifests are skipped."""
    environ = os.environ if environ is None else environ
    home = Path(environ.get("HOME") or Path.home())
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    found: dict[Path, FoundFile] = {}
    for program, name, path in (
        *_ollama(Path(environ.get("OLLAMA_MODELS") or home / ".ollama/models")),
        *_folder("LM Studio", home / ".lmstudio/models", "*/*/*"),
        *_folder("LM Studio", home / ".cache/lm-studio/models", "*/*/*"),
        *_folder("llama.cpp", Path(environ.get("LLAMA_CACHE") or cache / "llama.cpp"), "*"),
        *_hub(environ, cache),
    ):
        try:
            real, size = path.resolve(), path.stat().st_size
        except (OSError, RuntimeError):  # a dangling link, or a circle of links
            continue
        if size and models_folder(environ) not in real.parents:
            shown = f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
            found.setdefault(real, FoundFile(program, name, path, size, f"gguf:{shown}"))
    return tuple(found.values())


def _folder(program: str, folder: Path, pattern: str) -> Iterator[tuple[str, str, Path]]:
    try:
        paths = sorted(folder.glob(pattern))
    except OSError:
        return
    for path in paths:
        if path.name.lower().endswith(SUFFIX) and not NOT_FIRST.search(path.name):
            yield program, path.name, path


def _hub(environ: Mapping[str, str], cache: Path) -> Iterator[tuple[str, str, Path]]:
    hub = environ.get("HF_HUB_CACHE") or Path(environ.get("HF_HOME") or cache / "huggingface") / "hub"
    return _folder("Hugging Face", Path(hub), "models--*/snapshots/*/**/*")


def _ollama(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield the blobs that the manifests of Ollama name as models: manifests/HOST/NAMESPACE/MODEL/TAG."""
    try:
        manifests = sorted((folder / "manifests").glob("*/*/*/*"))
    except OSError:
        return
    for manifest in manifests:
        try:
            with open_regular(manifest) as opened:
                content = parse_json(opened.read(LARGEST_MANIFEST_BYTES))
        except (OSError, ValueError):
            continue
        for layer in items_at(content, "layers"):
            digest = text_at(layer, "digest")
            if text_at(layer, "mediaType") == OLLAMA_MODEL and DIGEST.fullmatch(digest):
                yield "Ollama", f"{manifest.parent.name}:{manifest.name}", folder / "blobs" / digest.replace(":", "-")
