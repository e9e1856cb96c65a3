"""A model of transformers as a backend of the decode loop: logits, KV cache, batches."""

import inspect
import os
from collections.abc import Sequence
from copy import deepcopy
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from taiwa.models.inprocess.decode_loop import Logits, Rows

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


def hub() -> Any:  # noqa: ANN401  (as above)
    """Import `huggingface_hub`.

    Raises:
        ConfigError: the extra is not installed.
    """
    return _import("huggingface_hub")


def _import(name: str) -> Any:  # noqa: ANN401  (as above)
    try:
        return import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name:
            raise ConfigError(f"local models need {error.name}: pip install 'taiwa[local]'") from None
        raise ConfigError("local models need an extra: pip install 'taiwa[local]'") from None


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
        import numpy as np

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
            past_key_values=self._cache,
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
    import numpy as np

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
        longest = getattr(config, "max_position_embeddings", None) or UNLIMITED
        self.context = min(context or longest, longest)
        self.device = model.device
        self.lock = RLock()
        """Serialises passes: torch uses all threads for one pass anyway, and the rows are set on the shared head."""
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
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

    def run(self, rows: "Rows | None", **inputs: Any) -> Any:  # noqa: ANN401  (tensors)
        """Run one pass and return the logits after the last token of each text: (B, V), or (B, len(rows))."""
        library = torch()
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
        import numpy as np

        library = torch()
        rows = np.linspace(0, len(self.vocabulary) - 1, TESTED_ROWS).astype(np.intp)
        ids = library.tensor([[self.vocabulary.end[0], int(rows[1])]], device=self.device)
        whole = self.run(None, input_ids=ids, past_key_values=self.cache())[0].numpy()[rows]
        try:
            part = self.run(rows, input_ids=ids, past_key_values=self.cache())[0].numpy()
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
        import numpy as np

        unread = [*self._stale, *tokens]
        self._stale = []
        library = torch()
        logits: Logits | None = None
        for start in range(0, len(unread), CHUNK):
            part = unread[start : start + CHUNK]
            last = start + CHUNK >= len(unread)
            ids = library.tensor([part], device=self._network.device)
            needed = rows if last else np.zeros(1, dtype=np.intp)  # only the last logits are used
            logits = self._network.run(needed, input_ids=ids, past_key_values=self.cache)[0].numpy()
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
