"""Export of a checkpoint to the files that ship with the package."""

import json
from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from taiwa.models.builtin.tokenizer import Tokens, load_tokens
from taiwa.safetensors_file import read_header
from training.builtin.model import Config, Transformer

__all__ = ["FORMAT", "begin_from", "export", "load_exported"]

FORMAT = "taiwa-builtin-1"


def export(checkpoint: Path, vocabulary: Path, folder: Path) -> int:
    """Write weights and tokenizer, and return the size of the weights in bytes."""
    kept = torch.load(checkpoint, map_location="cpu", weights_only=True)
    config: Mapping[str, float] = kept["config"]
    weights = {_named(name): found.half().contiguous() for name, found in kept["model"].items()}
    folder.mkdir(parents=True, exist_ok=True)
    digest = load_tokens(vocabulary).digest
    target, written = folder / "weights.safetensors", folder / "weights.written"
    save_file(_sorted(weights), written, {"format": FORMAT, "config": json.dumps(config), "vocabulary": digest})
    written.chmod(0o644)  # it was created with owner-only permissions, which a wheel would keep
    written.replace(target)  # atomically: a concurrent reader sees the old file or the new one
    if vocabulary.resolve() != (folder / "vocabulary.json").resolve():
        copyfile(vocabulary, folder / "vocabulary.json")
    return target.stat().st_size


def begin_from(folder: Path, model: Transformer, tokens: Tokens) -> None:
    """Load exported weights into a model. A token that they lack starts as the mean of the tokens that spelled it."""
    kept = {name: found.float() for name, found in load_file(folder / "weights.safetensors").items()}
    before = load_tokens(folder / "vocabulary.json")
    if before.digest != tokens.digest:
        known = {written: place for place, written in enumerate(before.vocabulary.tokens)}
        kept["embed"] = torch.stack([
            kept["embed"][known[written]] if written in known else kept["embed"][[*before.encode(written.decode())]].mean(0)
            for written in tokens.vocabulary.tokens
        ])  # fmt: skip
    model.load_state_dict({name: kept[_named(name)] for name in model.state_dict()})


def load_exported(folder: Path) -> tuple[Transformer, Tokens]:
    """Read a model from exported files."""
    config = json.loads(read_header(folder / "weights.safetensors").metadata["config"])
    tokens = load_tokens(folder / "vocabulary.json")
    model = Transformer(Config(**config))
    begin_from(folder, model, tokens)
    return model.eval(), tokens


def _named(name: str) -> str:
    """Shorten `layers.3.qkv.weight` to `3.qkv`."""
    return name.removeprefix("layers.").removesuffix(".weight").removesuffix(".gain")


def _sorted(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return dict(sorted(weights.items()))
