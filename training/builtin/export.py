"""From a checkpoint to the files that the package ships."""

import json
from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile

import torch
from safetensors.torch import save_file
from torch import Tensor

from taiwa.models.builtin.tokenizer import load_tokens

__all__ = ["FORMAT", "export"]

FORMAT = "taiwa-builtin-1"


def export(checkpoint: Path, vocabulary: Path, folder: Path) -> int:
    """Write weights and tokenizer; gives the bytes of the weights."""
    kept = torch.load(checkpoint, map_location="cpu", weights_only=True)
    config: Mapping[str, float] = kept["config"]
    weights = {_named(name): found.half().contiguous() for name, found in kept["model"].items()}
    folder.mkdir(parents=True, exist_ok=True)
    digest = load_tokens(vocabulary).digest
    target, written = folder / "weights.safetensors", folder / "weights.written"
    save_file(_sorted(weights), written, {"format": FORMAT, "config": json.dumps(config), "vocabulary": digest})
    written.chmod(0o644)  # it was written for its owner alone, and a wheel keeps that
    written.replace(target)  # whoever reads meanwhile gets the one or the other whole
    if vocabulary.resolve() != (folder / "vocabulary.json").resolve():
        copyfile(vocabulary, folder / "vocabulary.json")
    return target.stat().st_size


def _named(name: str) -> str:
    """`layers.3.qkv.weight` as `3.qkv`."""
    return name.removeprefix("layers.").removesuffix(".weight").removesuffix(".gain")


def _sorted(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return dict(sorted(weights.items()))
