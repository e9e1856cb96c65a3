"""Networks with random weights over a real vocabulary that follow a script.

The scripted token gets a bonus larger than any other logit, before constraints apply. So every pipeline generates the same text,
and only their costs differ.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taiwa.constraints import Vocabulary
from taiwa.models.inprocess.transformers_model import Network, NetworkSequence

__all__ = ["SHAPES", "Bonus", "Script", "ScriptedTrack", "network", "vocabulary"]

BONUS = 1e3
SHAPES: dict[str, dict[str, Any]] = {
    "69 M": {
        "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 8, "num_attention_heads": 6,
        "num_key_value_heads": 6,
    },
    "475 M (Qwen2.5-0.5B)": {
        "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2,
    },
}  # fmt: skip
"""Shapes of a Llama with tied embeddings; the head is 73 % of the small one and 25 % of the large one."""


def vocabulary() -> Vocabulary:
    """A typical vocabulary size of current models: 131,072 tokens."""
    import mistral_common

    return Vocabulary.from_tekken(Path(mistral_common.__file__).parent / "data" / "tekken_240911.json")


def network(shape: str, made: Vocabulary) -> Network:
    """Return a network with random weights of this shape."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(made), max_position_embeddings=4096, tie_word_embeddings=True, eos_token_id=made.end[0],
        bos_token_id=None, pad_token_id=made.end[0], **SHAPES[shape],
    )  # fmt: skip
    return Network(LlamaForCausalLM(config).eval(), made)


class Script:
    """The scripted tokens after a prompt, and an end token."""

    def __init__(self, prompt: Sequence[int], wanted: Sequence[int], end: int) -> None:
        self.prompt = list(prompt)
        self.wanted = list(wanted)
        self._all = [*wanted, end]

    def at(self, length: int) -> int:
        """Return the scripted token at a position."""
        return self._all[min(length - len(self.prompt), len(self._all) - 1)]


class Bonus:
    """The script as a logits processor, the first in the list of every `generate()` pipeline."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        scores[0, self._script.at(input_ids.shape[1])] += BONUS
        return scores


class ScriptedTrack:
    """The script for our decode loop."""

    def __init__(self, track: NetworkSequence, script: Script) -> None:
        self._track = track
        self._script = script

    @property
    def tokens(self) -> Sequence[int]:
        return self._track.tokens

    def read(self, tokens: Sequence[int], rows: Any = None) -> Any:
        found = self._track.read(tokens, rows)
        wanted = self._script.at(len(self._track.tokens))
        place = wanted if rows is None else int(np.searchsorted(rows, wanted))
        if rows is None or (place < len(rows) and rows[place] == wanted):
            found[place] += BONUS
        return found

    def rollback(self, count: int) -> None:
        self._track.rollback(count)

    def fork(self) -> "ScriptedTrack":
        return ScriptedTrack(self._track.fork(), self._script)

    def bundle(self, count: int) -> None:  # noqa: ARG002  (the protocol's)
        return None
