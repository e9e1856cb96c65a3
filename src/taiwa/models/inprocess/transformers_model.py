"""Models of transformers from a folder or a hub: finding and loading them, the memory check, the chat template, and the network
as a backend of the decode loop.
"""

import inspect
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from math import prod
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from taiwa.constraints.guide import Guide, GuideState, empty_mask, unpack_mask
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.extras import missing_extra
from taiwa.kernel.attachments import path_kind, read_regular
from taiwa.kernel.errors import ConfigError, InputError, ModelError, NoValidTokenError, TaiwaError
from taiwa.kernel.text import clean_untrusted
from taiwa.models.http_api.capabilities import Capabilities, capabilities
from taiwa.models.http_api.provider_interface import parse_options
from taiwa.models.inprocess.chat_template import (
    CONTROL_FORM,
    WIRES,
    ChatTemplate,
    IsolatedTemplate,
    Tokenizer,
    names_pattern,
)
from taiwa.models.inprocess.generator import GB, InProcessModel, LoadedModel, available_memory
from taiwa.models.inprocess.gguf_process import processors
from taiwa.safetensors_file import read_header

if TYPE_CHECKING:
    from taiwa.models.inprocess.decode_loop import Logits, Rows


FORM = "use local:FOLDER or local:VENDOR/NAME, optionally with ?device=cuda&dtype=bfloat16&threads=4"
DTYPES = ("auto", "float32", "float16", "bfloat16")
HUB_NAME = re.compile(r"[^./~][^/]*/[^/]+")
CONFIG = "config.json"
TOKENIZER, INDEX, TEMPLATES = "tokenizer.json", "model.safetensors.index.json", "additional_chat_templates"
SMALL = (".json", ".model", ".txt", ".jinja")
FILES = ("*.safetensors", *(f"*{suffix}" for suffix in SMALL))
"""The files that are downloaded: no code, and of weights only safetensors, which cannot contain code."""
MAX_SMALL_BYTES = 128 << 20
MOST_IN_TOKENIZER = 1 << 24
"""The largest number of a tokenizer: its library reserves memory for as many tokens."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Where a model is and how it is loaded: `auto` uses a GPU if there is one, and its best number format."""

    where: str
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    context: int = 0
    wire: str = "chat"


def parse_spec(text: str) -> ModelSpec:
    """Parse the part of a model name after `local:`.

    Raises:
        ConfigError: it is empty, or an option is unknown.
    """
    where, _, query = text.partition("?")
    if not where.strip():
        raise ConfigError(f"'local:' does not name a model; {FORM}")
    options = parse_options(
        query, {"device": str, "dtype": DTYPES, "threads": int, "context": int, "wire": WIRES}, "local"
    )
    return ModelSpec(where, **options)


def model_folder(spec: ModelSpec) -> Path:
    """Return the folder of a model; one of a hub is downloaded, or found in its cache.

    Raises:
        ConfigError: the folder does not exist, or does not contain a model that can be loaded.
    """
    if (folder := find_local_folder(spec)) is None:
        folder = _download(spec.where)
        _check_folder(folder)
    return folder


def find_local_folder(spec: ModelSpec) -> Path | None:
    """Return the folder of a model on this machine, checked without loading it; None for a model that may be on a hub.

    Raises:
        ConfigError: the folder or a file in it is missing.
    """
    folder = Path(spec.where).expanduser()
    if not path_kind(folder) and HUB_NAME.fullmatch(spec.where):
        return None
    _check_folder(folder)
    return folder


def _download(name: str) -> Path:
    module = _import("huggingface_hub")
    try:
        return Path(module.snapshot_download(name, allow_patterns=list(FILES)))
    except (OSError, ValueError, RuntimeError, module.errors.HfHubHTTPError) as error:
        lines = str(error).strip().splitlines()
        why = f" ({lines[0][:160]})" if lines else ""
        raise ConfigError(
            f"folder {name!r} not found, and it cannot be downloaded from the hub{why}; give the path of a folder with the model"
        ) from None


def _check_folder(folder: Path) -> None:
    if path_kind(folder) == "file":
        hint = "use gguf:FILE for it" if folder.suffix == ".gguf" else "give the folder that contains it"
        raise ConfigError(f"{folder} is a file; {hint}")
    if path_kind(folder) != "folder":
        raise ConfigError(f"folder {folder} not found; {FORM}")
    everything = sorted((*folder.iterdir(), *folder.glob(f"{TEMPLATES}/*")))
    if special := next((each for each in everything if path_kind(each) == "other"), None):
        raise ConfigError(f"{special} is not a regular file")  # the library would wait for it
    for each in everything:
        if each.suffix in SMALL and each.is_file() and (size := each.stat().st_size) > MAX_SMALL_BYTES:
            raise ConfigError(f"{each} has {size:,} bytes; expected at most {MAX_SMALL_BYTES:,}")
    if not (folder / CONFIG).is_file():
        inner = next((each.parent for each in sorted(folder.glob(f"*/{CONFIG}"))), None)
        contents = f"the folder of a model has {CONFIG}, tokenizer.json and *.safetensors"
        hint = f"did you mean {inner}?" if inner else contents
        raise ConfigError(f"{folder} does not contain a model; {hint}")
    if not any(folder.glob("*.safetensors")):
        why = "its weights (*.safetensors) are missing"
        if any((*folder.glob("*.bin"), *folder.glob("*.pt"))):
            why = "its weights are pickled, which can run code: convert them to safetensors"
        raise ConfigError(f"cannot load {folder}: {why}")


SIZES = (
    "hidden_size", "intermediate_size", "vocab_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers"
)  # fmt: skip
CONTEXT = "max_position_embeddings"
"""The only number of a configuration that may be larger than the number of weights."""
MARGIN = 1.05
"""Memory in relation to the weights alone."""


def count_weights(folder: Path) -> dict[str, int]:
    """Count the parameters of each type (`F32`, `BF16` …) in the safetensors files of a folder, from their headers.

    Raises:
        ConfigError: a file is broken.
    """
    counts = Counter[str]()
    for path in sorted(folder.glob("*.safetensors")):
        try:
            tensors = read_header(path).values()
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read the weights in {path} ({error}); download the file again") from None
        for info in tensors:
            counts[info.dtype] += prod(info.shape)
    return counts


def check_memory(folder: Path, parameters: int, width: int, free: int | None) -> None:
    """Check that parameters of `width` bytes each fit into `free` bytes of memory.

    Raises:
        ConfigError: they do not fit.
    """
    needed = int(parameters * width * MARGIN)
    if free is not None and needed > free:
        smaller = "choose a smaller model" + ("" if width <= 2 else ", or add ?dtype=bfloat16 to its name")
        raise ConfigError(
            f"{folder} needs about {needed / GB:.1f} GB of memory as {width * 8}-bit numbers, and {free / GB:.1f} GB are free; {smaller}"
        )


SPACE = "▁"


class TextEncoder(Tokenizer):
    """Tokenizes texts; names of special tokens in a text are ordinary text.

    A tokenizer parses `<|im_end|>` in a text as the token, so that any text could end a message. A second tokenizer that does
    not is made when the first text with such a name arrives.
    """

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401  (transformers')
        self._backend: Any = tokenizer.backend_tokenizer
        self._backend.no_padding()
        self._backend.no_truncation()
        self._plain: Any = None
        added = {str(each): (int(token), each.special) for token, each in tokenizer.added_tokens_decoder.items()}
        ids = {name: token for name, (token, special) in added.items() if special or CONTROL_FORM.fullmatch(name)}
        first = _encode(self._backend, "a").tokens[:1]
        adds_space = any(str(token).startswith(SPACE) for token in first)
        super().__init__(ids, names_pattern(name for name in ids if not added[name][1]), adds_space=adds_space)

    def encode_plain(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text, without start and end tokens."""
        if self.names is None or not self.names.search(text):
            return self.encode_trusted(text)
        if self._plain is None:
            self._plain = cast("Any", type(self._backend)).from_str(self._backend.to_str())
            self._plain.encode_special_tokens = True
        return tuple(_encode(self._plain, text).ids)

    def encode_trusted(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text from its beginning; names of special tokens become these tokens."""
        return tuple(_encode(self._backend, text).ids)

    def start_tokens(self) -> tuple[int, ...]:
        """Return the special tokens with which the tokenizer begins a text."""
        return tuple(token for token in _encode(self._backend, "", special=True).ids if token in self.ids.values())


def _encode(tokenizer: Any, text: str, *, special: bool = False) -> Any:  # noqa: ANN401  (the library's)
    """Tokenize a text.

    Raises:
        ConfigError: the tokenizer fails.
    """
    try:
        return tokenizer.encode(text, add_special_tokens=special)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of Rust is not an Exception
        raise ConfigError(f"the tokenizer of the model fails: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return clean_untrusted(" ".join(lines[:2] if lines[0].endswith(":") else lines[:1]), 200)


def _render(tokenizer: Any) -> IsolatedTemplate | None:  # noqa: ANN401  (transformers')
    """Return what writes turns by the chat template of a tokenizer; None without one."""
    if not tokenizer.chat_template:
        return None
    return IsolatedTemplate(tokenizer.get_chat_template(), tokenizer.special_tokens_map)


# --- the network ------------------------------------------------------------------------------------------------------

MAX_UNION_ROWS = 8_192
"""Up to this many rows of the output head are computed for all texts of a batch; for more, all rows are."""
CHUNK = 1_024
"""Tokens that are read at a time: attention takes memory for each pair of a new and an old token."""
UNLIMITED = 1 << 20
TESTED_ROWS = 8


def torch() -> Any:  # noqa: ANN401  (a module whose types take a type checker a minute to read)
    """Import `torch`.

    Raises:
        ConfigError: the extra is not installed.
    """
    return _import("torch")


def transformers() -> Any:  # noqa: ANN401  (as above)
    """Import `transformers`, without its warnings and progress bars.

    Raises:
        ConfigError: the extra is not installed.
    """
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    module = _import("transformers")
    module.utils.logging.disable_progress_bar()
    return module


def _import(name: str) -> Any:  # noqa: ANN401  (as above)
    try:
        return import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name:
            raise missing_extra(f"a model of transformers (no {error.name})", "local") from None
        raise missing_extra("a model of transformers", "local") from None


class NetworkBatch:
    """Copies of one text that are continued in common passes; see `taiwa.models.inprocess.decode_loop.SequenceBatch`."""

    def __init__(self, network: "Network", sequence: "NetworkSequence", count: int) -> None:
        library = torch()
        self._network = network
        self._cache = sequence.cache
        self._lengths = [len(sequence.tokens)] * count
        self._mask = library.ones((count, len(sequence.tokens)), dtype=library.long, device=network.device)
        if sequence.tokens:
            with library.inference_mode():
                self._cache.batch_repeat_interleave(count)

    def read(self, tokens: Sequence[Sequence[int]], rows: "Sequence[Rows | None]") -> "Sequence[Logits]":
        """Read one or more tokens of each text and return the logits after the last of each."""
        library, device = torch(), self._network.device
        width, count = max(map(len, tokens)), len(tokens)
        ids = np.full((count, width), self._network.vocabulary.end[0], dtype=np.int64)
        seen, positions = np.zeros_like(ids), np.zeros_like(ids)
        for index, part in enumerate(tokens):
            here = slice(width - len(part), width)
            ids[index, here], seen[index, here] = part, 1
            positions[index, here] = range(self._lengths[index], self._lengths[index] + len(part))
            self._lengths[index] += len(part)
        self._mask = library.cat([self._mask, library.from_numpy(seen).to(device)], dim=1)
        union = _union(rows)
        logits = self._network.run(
            union,
            input_ids=library.from_numpy(ids).to(device),
            position_ids=library.from_numpy(positions).to(device),
            attention_mask=self._mask,
            cache=self._cache,
        ).numpy()
        if union is None:
            return [line if few is None else line[few] for line, few in zip(logits, rows, strict=True)]
        return [line[np.searchsorted(union, few)] for line, few in zip(logits, rows, strict=True) if few is not None]

    def select(self, indices: Sequence[int]) -> None:
        """Continue with the texts of these indices only."""
        library = torch()
        chosen = library.tensor(list(indices), device=self._network.device)
        with library.inference_mode():
            self._cache.batch_select_indices(chosen)
        self._mask = self._mask[chosen]
        self._lengths = [self._lengths[index] for index in indices]


def _union(rows: "Sequence[Rows | None]") -> "Rows | None":
    """Return the rows that any text needs; None for all."""
    wanted = [each for each in rows if each is not None]
    if len(wanted) < len(rows):
        return None
    union = np.unique(np.concatenate(wanted))
    return union if len(union) <= MAX_UNION_ROWS else None


class Network:
    """A model of transformers; see `taiwa.models.inprocess.decode_loop.Backend`.

    Its output head is replaced by one that computes selected rows, so that the model itself still scales and caps its logits.
    If that does not agree with the whole head, all rows are computed.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary, context: int = 0) -> None:  # noqa: ANN401  (transformers')
        self.model = model
        self.vocabulary = vocabulary
        config = model.config.get_text_config(decoder=True)
        longest = getattr(config, CONTEXT, None) or UNLIMITED
        self.context = min(context or longest, longest)
        self.piece = CHUNK
        self.device = model.device
        self.lock = RLock()
        """Serialises passes: torch uses all threads for one pass anyway, and the rows are set on the shared head."""
        parameters = inspect.signature(model.forward).parameters
        self._keeps_logits = "logits_to_keep" in parameters
        # The older name warns at each pass since transformers 5.24.
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self.head = _Head(model.get_output_embeddings()) if self._keeps_logits else None
        if self.head is not None and not self._agrees():
            self.head.undo()
            self.head = None

    def start(self) -> "NetworkSequence":
        """Return an empty sequence."""
        return NetworkSequence(self)

    def cache(self) -> Any:  # noqa: ANN401  (transformers')
        """Return an empty KV cache of the kind that this model needs."""
        return transformers().DynamicCache(config=self.model.config)

    def run(self, rows: "Rows | None", *, cache: Any, **inputs: Any) -> Any:  # noqa: ANN401  (tensors)
        """Run one pass and return the logits after the last token of each text: (B, V), or (B, len(rows))."""
        library = torch()
        inputs[self._cache_name] = cache
        if self._keeps_logits:
            inputs["logits_to_keep"] = 1
        with self.lock, library.inference_mode():
            sparse = self.head is not None and rows is not None
            if self.head is not None:
                self.head.rows = library.from_numpy(rows).to(self.device) if rows is not None else None
            try:
                logits = self.model(use_cache=True, **inputs).logits[:, -1]
            except library.OutOfMemoryError:
                raise ModelError(
                    f"{self.device} is out of memory; shorten the request, or choose a smaller model"
                ) from None
            finally:
                if self.head is not None:
                    self.head.rows = None
            if rows is not None and not sparse:
                logits = logits[:, library.from_numpy(rows).to(self.device)]
            return logits.float().cpu()

    def _agrees(self) -> bool:
        """Check that selected rows of the head give the same logits as the whole head."""
        library = torch()
        rows = np.linspace(0, len(self.vocabulary) - 1, TESTED_ROWS).astype(np.intp)
        ids = library.tensor([[self.vocabulary.end[0], int(rows[1])]], device=self.device)
        whole = self.run(None, input_ids=ids, cache=self.cache())[0].numpy()[rows]
        try:
            part = self.run(rows, input_ids=ids, cache=self.cache())[0].numpy()
        except (RuntimeError, IndexError, ValueError):
            return False
        return part.shape == whole.shape and bool(np.allclose(part, whole, rtol=1e-2, atol=1e-3))


class _Head:
    """The output head of a model, computing selected rows."""

    def __init__(self, layer: Any) -> None:  # noqa: ANN401  (torch's)
        self.rows: Any = None
        self._layer = layer
        self._whole = layer.forward
        # Any other layer than torch's own (quantised, distributed) must compute its product itself.
        self._plain = type(layer) is torch().nn.Linear
        layer.forward = self.forward

    def forward(self, hidden: Any) -> Any:  # noqa: ANN401  (tensors)
        if self.rows is None or not self._plain:
            logits = self._whole(hidden)
            return logits if self.rows is None else logits[..., self.rows]
        bias = self._layer.bias
        return torch().nn.functional.linear(
            hidden, self._layer.weight[self.rows], None if bias is None else bias[self.rows]
        )

    def undo(self) -> None:
        """Restore the original output head."""
        self._layer.forward = self._whole


class NetworkSequence:
    """A text that the model has read; see `taiwa.models.inprocess.decode_loop.TokenSequence`."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.cache = network.cache()
        self.tokens: list[int] = []
        self._stale: list[int] = []
        """Tokens to read again, because the cache could not be cropped."""

    def read(self, tokens: Sequence[int], rows: "Rows | None" = None) -> "Logits":
        """Read more tokens and return the logits after the last."""
        unread = [*self._stale, *tokens]
        self._stale = []
        library = torch()
        logits: Logits | None = None
        for start in range(0, len(unread), CHUNK):
            part = unread[start : start + CHUNK]
            last = start + CHUNK >= len(unread)
            ids = library.tensor([part], device=self._network.device)
            needed = rows if last else np.zeros(1, dtype=np.intp)  # only the last logits are used
            logits = self._network.run(needed, input_ids=ids, cache=self.cache)[0].numpy()
        assert logits is not None, "at least one token must be read"
        self.tokens.extend(tokens)
        return logits

    def rollback(self, count: int) -> None:
        """Remove the last tokens; if the cache cannot be cropped, the next `read` computes it again."""
        if count == 0:
            return
        del self.tokens[-count:]
        if self._stale:
            self._stale = list(self.tokens)
        elif self.is_full_cache():
            with torch().inference_mode():
                self.cache.crop(-count)
        else:
            self.cache, self._stale = self._network.cache(), list(self.tokens)

    def fork(self) -> "NetworkSequence":
        """Return a copy that can be continued independently."""
        other = NetworkSequence(self._network)
        with torch().inference_mode():
            other.cache = deepcopy(self.cache)
        other.tokens, other._stale = list(self.tokens), list(self._stale)
        return other

    def batch(self, count: int) -> NetworkBatch | None:
        """Return `count` copies; None for a sliding window or a recurrent state, which do not support padding."""
        return NetworkBatch(self._network, self.fork(), count) if self.is_full_cache() and not self._stale else None

    def is_full_cache(self) -> bool:
        """Whether all layers keep every key and value: no sliding window, no recurrent state."""
        layer = transformers().cache_utils.DynamicLayer
        return all(type(each) is layer for each in self.cache.layers)


# --- loading ----------------------------------------------------------------------------------------------------------

WIDTHS = {"float32": 4, "float16": 2, "bfloat16": 2}


Loaded: TypeAlias = LoadedModel[Network]


def load(spec: ModelSpec) -> Loaded:
    """Load a model and its tokenizer. Code in the folder of a model is never run.

    Raises:
        ConfigError: it is missing or broken, does not fit into memory, or its tokenizer is not supported.
    """
    folder = model_folder(spec)
    library = torch()
    device = _device(spec, library)
    if spec.threads:
        library.set_num_threads(min(spec.threads, processors()))
    # float32 on a CPU: most compute more slowly with fewer bits
    auto = library.float32 if device.type == "cpu" else "auto"
    dtype = auto if spec.dtype == "auto" else getattr(library, spec.dtype)
    parameters = sum(count_weights(folder).values())
    if device.type == "cpu":
        width = WIDTHS[str(dtype).rpartition(".")[2]]
        check_memory(folder, parameters, width, available_memory())
    module = transformers()
    try:
        _check_files(folder)
        _check_sizes(module.AutoConfig.from_pretrained(folder, local_files_only=True), parameters)
        tokenizer = module.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, report = module.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, local_files_only=True, output_loading_info=True
        )
        if missing := sorted(report["missing_keys"]):  # the library would draw them at random
            raise ValueError(f"its weights lack {missing[0]}")
        model.to(device).eval()
        encode = TextEncoder(tokenizer)
        vocabulary = _vocabulary(model, tokenizer, encode, spec.where)
        network = Network(model, vocabulary, spec.context)
        return Loaded(network, encode, ChatTemplate(_render(tokenizer) if spec.wire == "chat" else None, encode))
    except (KeyboardInterrupt, TaiwaError):
        raise
    except (library.OutOfMemoryError, MemoryError):
        raise ConfigError(
            f"{folder} does not fit into the memory of {device}; choose a smaller model, ?dtype=bfloat16, or another device"
        ) from None
    except BaseException as error:  # of the library, for files that it does not understand; a panic is not an Exception
        why = "it needs code from its folder, which is not run" if "trust_remote_code" in str(error) else _reason(error)
        raise ConfigError(f"cannot load {folder}: {why}") from error


def _check_files(folder: Path) -> None:
    """Check what the library would read without a bound, or outside the folder.

    Raises:
        OSError, ValueError: it would.
    """

    def bounded(digits: str) -> int:
        if (number := int(digits)) > MOST_IN_TOKENIZER:
            raise ValueError(f"{TOKENIZER} has the number {digits}")
        return number

    if (folder / TOKENIZER).exists():
        json.loads(read_regular(folder / TOKENIZER, MAX_SMALL_BYTES), parse_int=bounded)
    if (folder / INDEX).exists():
        index = json.loads(read_regular(folder / INDEX, MAX_SMALL_BYTES))
        if outside := [name for name in index["weight_map"].values() if Path(name).name != name]:
            raise ValueError(f"{INDEX} names {outside[0]!r}, which is not in the folder")


def _check_sizes(config: Any, parameters: int) -> None:  # noqa: ANN401  (transformers')
    """Check that a model has room in its weights, before the library makes what the configuration describes.

    Raises:
        ValueError: it has none.
    """
    described = config.get_text_config()
    width = getattr(described, "hidden_size", None) or 1
    for name, size in (described.to_dict() | {name: getattr(described, name, None) for name in SIZES}).items():
        most = parameters // width if name == "num_hidden_layers" else parameters
        if type(size) is int and ((size > most and name != CONTEXT) or (name in {*SIZES, CONTEXT} and size < 1)):
            raise ValueError(f"{name} of {CONFIG} is {size}, and its weights have {parameters:,} numbers")


def _device(spec: ModelSpec, library: Any) -> Any:  # noqa: ANN401  (torch's)
    wanted = spec.device
    if wanted == "auto":
        wanted = "cuda" if library.cuda.is_available() else "cpu"
    try:
        device = library.device(wanted)
    except RuntimeError:
        raise ConfigError(f"unknown device {wanted!r}; use device=cpu or device=cuda") from None
    if device.type == "cuda" and not library.cuda.is_available():
        raise ConfigError("device=cuda: torch does not find a GPU; install torch for CUDA, or use device=cpu")
    if device.type == "cuda" and (device.index or 0) >= library.cuda.device_count():
        raise ConfigError(f"device={wanted}: there are {library.cuda.device_count()} GPUs, counted from 0")
    return device


def _vocabulary(model: Any, tokenizer: Any, encode: TextEncoder, name: str) -> Vocabulary:  # noqa: ANN401  (transformers')
    """Return the tokens by the rows of the output head, with all end tokens that `generate()` knows."""
    rows = int(model.get_output_embeddings().weight.shape[0])
    try:  # without end tokens of the model, those of the tokenizer count
        vocabulary = Vocabulary.from_hf(
            tokenizer, end=getattr(model.generation_config, "eos_token_id", None), size=rows
        )
    except InputError as error:
        raise ConfigError(f"the tokenizer of {name} is not supported: {error.message}") from None
    if len(vocabulary) > rows:
        raise ConfigError(f"the tokenizer of {name} has {len(vocabulary):,} tokens, and its weights {rows:,}")
    return Vocabulary(vocabulary.tokens, vocabulary.end, vocabulary.special, encode=encode, name=name)


class LocalModel(InProcessModel[Loaded]):
    """A model in a folder or of a hub: `local:FOLDER`, `local:VENDOR/NAME`.

    Raises:
        ConfigError: the name is invalid.
    """

    def __init__(self, name: str, spec: ModelSpec | None = None, known: Capabilities | None = None) -> None:
        self.spec = spec or parse_spec(name.removeprefix("local:"))
        super().__init__(name, known or capabilities("local", self.spec.where))

    def load(self) -> Loaded:
        """Load the folder with torch and transformers.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """
        return load(self.spec)


# --- generate() of transformers ---------------------------------------------------------------------------------------
# Guides as logits processors for `generate()`.


class GuideLogitsProcessor:
    """A logits processor for `generate()` of transformers, for one or more texts of a batch.

    A text begins after the input of the first call. Use a new processor for each `generate()`. Beam search is not supported,
    because it returns to places where other tokens were taken.
    """

    def __init__(self, guide: Guide) -> None:
        self._guide = guide
        self._states: list[GuideState] = []
        self._length = 0
        self._mask = empty_mask(len(guide.vocabulary))

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ANN401  (torch's tensors, (B, T) and (B, V))
        """Set the scores of tokens that are not allowed to minus infinity.

        Raises:
            NoValidTokenError: the guide allows no token.
            InputError: a token was taken that the guide does not allow.
        """
        library = torch()
        if not self._states:
            self._states = [self._guide.start() for _ in range(len(input_ids))]
        else:
            for number, tokens in enumerate(input_ids[:, self._length :].tolist()):
                for token in tokens:
                    if not self._states[number].is_ended:  # after its end a text is padded
                        self._states[number] = self._states[number].advance(token)
        self._length = input_ids.shape[1]
        forbidden = np.ones(scores.shape, dtype=bool)
        for number, state in enumerate(self._states):
            if state.is_ended:
                forbidden[number] = False
                continue
            state.mask(self._mask)
            allowed = unpack_mask(self._mask, scores.shape[1])
            if not allowed.any():
                raise NoValidTokenError("the constraint allows no token")
            np.logical_not(allowed, out=forbidden[number, : len(allowed)])
        return scores.masked_fill(library.from_numpy(forbidden).to(scores.device), float("-inf"))
