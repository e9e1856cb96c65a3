"""From a folder to a model that can be asked: weights, tokenizer, vocabulary."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.values import Request
from taiwa.models.decoding.scribe import Posed
from taiwa.models.local.dialogue import Dialogue
from taiwa.models.local.library import torch, transformers
from taiwa.models.local.memory import available, fits, weights
from taiwa.models.local.network import Network
from taiwa.models.local.place import Place, folder_of
from taiwa.models.local.tokens import Divider

__all__ = ["Loaded", "load"]

HALF = 2
WIDTHS = {"float32": 4, "float16": HALF, "bfloat16": HALF}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory: its network, how it divides texts, and how it is told a conversation."""

    network: Network
    divider: Divider
    dialogue: Dialogue
    folder: Path

    def posed(self, request: Request) -> Posed:
        """The tokens of a conversation up to where the answer begins, without its prefix.

        Raises:
            InputError: the model's template refuses such a conversation.
        """
        return Posed(self.dialogue.tokens(request))


def load(place: Place) -> Loaded:
    """Load a model and its tokenizer. Code that comes with a model is never run.

    Raises:
        ConfigError: it is not there, cannot be read, does not fit into memory, or its tokenizer cannot be followed.
    """
    folder = folder_of(place)
    library = torch()
    device = _device(place, library)
    if place.threads:
        library.set_num_threads(place.threads)
    dtype = _dtype(place, device, library)
    if device.type == "cpu":
        found = weights(folder)
        fits(folder, sum(found.values()), WIDTHS[str(dtype).rpartition(".")[2]], available())
    module = transformers()
    with _told(folder, device, library):
        tokenizer = module.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = module.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, local_files_only=True
        )
        model.to(device).eval()
    divider = Divider(tokenizer)
    vocabulary = _vocabulary(model, tokenizer, divider, place.where)
    return Loaded(Network(model, vocabulary, place.context), divider, Dialogue(tokenizer, divider), folder)


def _device(place: Place, library: Any) -> Any:  # noqa: ANN401  (torch's)
    wanted = place.device
    if wanted == "auto":
        wanted = "cuda" if library.cuda.is_available() else "cpu"
    try:
        device = library.device(wanted)
    except RuntimeError:
        raise ConfigError(f"there is no kind of device {wanted!r}: say device=cpu or device=cuda") from None
    if device.type == "cuda" and not library.cuda.is_available():
        raise ConfigError("device=cuda: torch finds no GPU here; install torch for CUDA, or say device=cpu")
    if device.type == "cuda" and (device.index or 0) >= library.cuda.device_count():
        raise ConfigError(f"device={wanted}: there are {library.cuda.device_count()} GPUs, counted from 0")
    return device


def _dtype(place: Place, device: Any, library: Any) -> Any:  # noqa: ANN401  (torch's)
    """On a processor, numbers of 32 bits: most reckon with fewer bits more slowly."""
    if place.dtype != "auto":
        return getattr(library, place.dtype)
    return library.float32 if device.type == "cpu" else "auto"


@contextmanager
def _told(folder: Path, device: Any, library: Any) -> Generator[None]:  # noqa: ANN401  (torch's)
    """Say in one line what keeps a model from being loaded."""
    try:
        yield
    except (library.OutOfMemoryError, MemoryError):
        raise ConfigError(
            f"{folder} does not fit into the memory of {device}: choose a smaller model, ?dtype=bfloat16, or another device"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError, AttributeError) as error:
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        if "trust_remote_code" in str(error):
            said = "it comes with code of its own, which is not run"
        raise ConfigError(f"{folder} cannot be loaded: {said[:200]}") from None


def _vocabulary(model: Any, tokenizer: Any, divider: Divider, name: str) -> Vocabulary:  # noqa: ANN401  (transformers')
    """The tokens by the rows of the output head, and all that end a text, as `generate()` counts them."""
    rows = int(model.get_output_embeddings().weight.shape[0])
    ends = getattr(model.generation_config, "eos_token_id", None)
    if ends is None:
        ends = tokenizer.eos_token_id
    try:
        found = Vocabulary.from_hf(tokenizer, end=ends, size=rows)
    except InputError as error:
        raise ConfigError(f"the tokenizer of {name} cannot be followed: {error.message}") from None
    return Vocabulary(found.tokens, found.end, found.special, encode=divider, name=name)
