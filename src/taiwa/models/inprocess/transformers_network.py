"""Logits, KV cache, batches."""

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

__all__ = ["Network", "NetworkTrack", "hub", "torch", "transformers"]


def torch() -> Any:  # noqa: ANN401  (a module whose types take a type checker a minute to read)
    """The module `torch`.

    Raises:
        ConfigError: the extra is not installed.
    """
    return _found("torch")


def transformers() -> Any:  # noqa: ANN401  (as above)
    """The module `transformers`, without its remarks and its bars.

    Raises:
        ConfigError: the extra is not installed.
    """
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    module = _found("transformers")
    module.utils.logging.disable_progress_bar()
    return module


def hub() -> Any:  # noqa: ANN401  (as above)
    """The module `huggingface_hub`.

    Raises:
        ConfigError: the extra is not installed.
    """
    return _found("huggingface_hub")


def _found(name: str) -> Any:  # noqa: ANN401  (as above)
    try:
        return import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name:
            raise ConfigError(f"models in this process need {error.name}: pip install 'taiwa[local]'") from None
        raise ConfigError("models in this process need an extra: pip install 'taiwa[local]'") from None


MOST_ROWS = 8_192
"""So many rows of the output head are computed for all texts at once; for more of them, all are."""


class NetworkBundle:
    """One text many times over, each to go on in its own way; see `taiwa.models.inprocess.decode_loop.SequenceBatch`."""

    def __init__(self, network: "Network", track: "NetworkTrack", count: int) -> None:
        library = torch()
        self._network = network
        self._cache = track.cache
        self._lengths = [len(track.tokens)] * count
        self._mask = library.ones((count, len(track.tokens)), dtype=library.long, device=network.device)
        if track.tokens:
            with library.inference_mode():
                self._cache.batch_repeat_interleave(count)

    def read(self, tokens: Sequence[Sequence[int]], rows: "Sequence[Rows | None]") -> "Sequence[Logits]":
        """Read one or more tokens of each text, and give the logits behind the last of each."""
        import numpy as np

        library, device = torch(), self._network.device
        width, count = max(map(len, tokens)), len(tokens)
        ids = np.full((count, width), self._network.vocabulary.end[0], dtype=np.int64)
        seen, places = np.zeros_like(ids), np.zeros_like(ids)
        for number, given in enumerate(tokens):
            here = slice(width - len(given), width)
            ids[number, here], seen[number, here] = given, 1
            places[number, here] = range(self._lengths[number], self._lengths[number] + len(given))
            self._lengths[number] += len(given)
        self._mask = library.cat([self._mask, library.from_numpy(seen).to(device)], dim=1)
        every = _union(rows)
        found = self._network.run(
            every,
            input_ids=library.from_numpy(ids).to(device),
            position_ids=library.from_numpy(places).to(device),
            attention_mask=self._mask,
            past_key_values=self._cache,
        ).numpy()
        if every is None:
            return [line if few is None else line[few] for line, few in zip(found, rows, strict=True)]
        return [line[np.searchsorted(every, few)] for line, few in zip(found, rows, strict=True) if few is not None]

    def keep(self, places: Sequence[int]) -> None:
        """Go on with the texts at these places only."""
        library = torch()
        chosen = library.tensor(list(places), device=self._network.device)
        with library.inference_mode():
            self._cache.batch_select_indices(chosen)
        self._mask = self._mask[chosen]
        self._lengths = [self._lengths[place] for place in places]


def _union(rows: "Sequence[Rows | None]") -> "Rows | None":
    """The rows that some text wants; None for all."""
    import numpy as np

    few = [each for each in rows if each is not None]
    if len(few) < len(rows):
        return None
    every = np.unique(np.concatenate(few))
    return every if len(every) <= MOST_ROWS else None


CHUNK = 1_024
"""So many tokens are read at a time: attention takes memory for each pair of a new and an old one."""

ENDLESS = 1 << 20

TRIED = 8


class Network:
    """A model of transformers; see `taiwa.models.inprocess.decode_loop.Backend`.

    Its output head is replaced by one that computes the rows it is told to, so whatever the model does to its logits (scales,
    caps) is done by the model itself. Where that does not give what the whole head gives, all rows are computed.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary, context: int = 0) -> None:  # noqa: ANN401  (transformers')
        self.model = model
        self.vocabulary = vocabulary
        config = model.config.get_text_config(decoder=True)
        most = getattr(config, "max_position_embeddings", None) or ENDLESS
        self.context = min(context or most, most)
        self.device = model.device
        self.lock = RLock()
        """Held for one pass: torch uses all threads of a pass anyway, and the rows are set on the one head."""
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.head = _Head(model.get_output_embeddings()) if self._keeps else None
        if self.head is not None and not self._agrees():
            self.head.undo()
            self.head = None

    def start(self) -> "NetworkTrack":
        """An empty text."""
        return NetworkTrack(self)

    def cache(self) -> Any:  # noqa: ANN401  (transformers')
        """Keys and values of no token, in the form that this model wants."""
        return transformers().DynamicCache(config=self.model.config)

    def run(self, rows: "Rows | None", **given: Any) -> Any:  # noqa: ANN401  (tensors)
        """One pass, and the logits behind the last token of each text: (B, V), or (B, len(rows))."""
        library = torch()
        if self._keeps:
            given["logits_to_keep"] = 1
        with self.lock, library.inference_mode():
            sparse = self.head is not None and rows is not None
            if self.head is not None:
                self.head.rows = library.from_numpy(rows).to(self.device) if rows is not None else None
            try:
                found = self.model(use_cache=True, **given).logits[:, -1]
            except library.OutOfMemoryError:
                raise ModelError(
                    f"{self.device} is out of memory: say less at once, or choose a smaller model"
                ) from None
            finally:
                if self.head is not None:
                    self.head.rows = None
            if rows is not None and not sparse:
                found = found[:, library.from_numpy(rows).to(self.device)]
            return found.float().cpu()

    def _agrees(self) -> bool:
        """Whether the rows of the head give what the whole head gives."""
        import numpy as np

        library = torch()
        rows = np.linspace(0, len(self.vocabulary) - 1, TRIED).astype(np.intp)
        given = library.tensor([[self.vocabulary.end[0], int(rows[1])]], device=self.device)
        whole = self.run(None, input_ids=given, past_key_values=self.cache())[0].numpy()[rows]
        try:
            part = self.run(rows, input_ids=given, past_key_values=self.cache())[0].numpy()
        except (RuntimeError, IndexError, ValueError):
            return False
        return part.shape == whole.shape and bool(np.allclose(part, whole, rtol=1e-2, atol=1e-3))


class _Head:
    """The output head of a model, by rows."""

    def __init__(self, layer: Any) -> None:  # noqa: ANN401  (torch's)
        self.rows: Any = None
        self._layer = layer
        self._whole = layer.forward
        # Where the layer is another than torch's own (quantised, spread over devices), it alone knows how to reckon.
        self._plain = type(layer) is torch().nn.Linear
        layer.forward = self.forward

    def forward(self, hidden: Any) -> Any:  # noqa: ANN401  (tensors)
        if self.rows is None or not self._plain:
            found = self._whole(hidden)
            return found if self.rows is None else found[..., self.rows]
        bias = self._layer.bias
        return torch().nn.functional.linear(
            hidden, self._layer.weight[self.rows], None if bias is None else bias[self.rows]
        )

    def undo(self) -> None:
        """Let the model compute its whole head again."""
        self._layer.forward = self._whole


class NetworkTrack:
    """A text as far as the model has read it; see `taiwa.models.inprocess.decode_loop.TokenSequence`."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.cache = network.cache()
        self.tokens: list[int] = []
        self._lost: list[int] = []
        """What was read, but must be read again: the cache could not be cut there."""

    def read(self, tokens: Sequence[int], rows: "Rows | None" = None) -> "Logits":
        """Read more tokens, and give the logits behind the last."""
        import numpy as np

        given = [*self._lost, *tokens]
        self._lost = []
        library = torch()
        found: Logits | None = None
        for start in range(0, len(given), CHUNK):
            part = given[start : start + CHUNK]
            last = start + CHUNK >= len(given)
            ids = library.tensor([part], device=self._network.device)
            wanted = rows if last else np.zeros(1, dtype=np.intp)  # behind a part nobody asks
            found = self._network.run(wanted, input_ids=ids, past_key_values=self.cache)[0].numpy()
        assert found is not None, "there is nothing behind no token"
        self.tokens.extend(tokens)
        return found

    def rollback(self, count: int) -> None:
        """Forget the last tokens; where keys and values cannot be cut, they are made anew by the next reading."""
        if count == 0:
            return
        del self.tokens[-count:]
        if self._lost:
            self._lost = list(self.tokens)
        elif self.is_plain():
            with torch().inference_mode():
                self.cache.crop(-count)
        else:
            self.cache, self._lost = self._network.cache(), list(self.tokens)

    def fork(self) -> "NetworkTrack":
        """The same text on a track of its own."""
        other = NetworkTrack(self._network)
        with torch().inference_mode():
            other.cache = deepcopy(self.cache)
        other.tokens, other._lost = list(self.tokens), list(self._lost)
        return other

    def bundle(self, count: int) -> NetworkBundle | None:
        """The same text `count` times; None where the model attends to a window or keeps a state, which bear no holes."""
        return NetworkBundle(self._network, self.fork(), count) if self.is_plain() and not self._lost else None

    def is_plain(self) -> bool:
        """Whether all layers keep every key and value: no window, no state that is written over."""
        layer = transformers().cache_utils.DynamicLayer
        return all(type(each) is layer for each in self.cache.layers)
