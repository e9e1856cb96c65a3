"""The built-in model in eager torch, one token at a time, with its own cache: the obvious first implementation."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from taiwa.models.builtin.network import Weights

__all__ = ["Eager"]


class Eager:
    """The same weights. `read` returns the logits after the last of some tokens, as a token sequence does."""

    def __init__(self, weights: Weights) -> None:
        config = self.config = weights.config
        self.tensors = {name: torch.from_numpy(each.copy()) for name, each in weights.tensors.items()}
        half = config.width // 2
        rates = config.theta ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(config.context, dtype=torch.float64)[:, None] * rates
        self.cos, self.sin = angles.cos().float(), angles.sin().float()
        self.cache: list[tuple[Any, Any] | None] = [None] * config.layers
        self.length = 0

    def read(self, tokens: list[int]) -> np.ndarray:
        """Read more tokens."""
        with torch.inference_mode():
            return self._read(torch.tensor(tokens)).numpy()

    def _read(self, ids: Any) -> Any:
        config, tensors = self.config, self.tensors
        here = slice(self.length, self.length + len(ids))
        x = tensors["embed"][ids]
        for at in range(config.layers):
            normal = functional.rms_norm(x, (config.dim,), tensors[f"{at}.norm1"], config.eps)
            qkv = functional.linear(normal, tensors[f"{at}.qkv"]).view(len(ids), 3, config.heads, config.width)
            q, k, v = qkv.permute(1, 2, 0, 3)
            q, k = (self._turned(functional.rms_norm(each, (config.width,), None, config.eps), here) for each in (q, k))
            before = self.cache[at]
            if before is not None:
                k, v = torch.cat((before[0], k), 1), torch.cat((before[1], v), 1)
            self.cache[at] = (k, v)
            seen = functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=len(ids) > 1)[0]
            x = x + functional.linear(seen.transpose(0, 1).reshape(len(ids), config.dim), tensors[f"{at}.out"])
            normal = functional.rms_norm(x, (config.dim,), tensors[f"{at}.norm2"], config.eps)
            gate, up = functional.linear(normal, tensors[f"{at}.up"]).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up, tensors[f"{at}.down"])
        self.length += len(ids)
        last = functional.rms_norm(x[-1], (config.dim,), tensors["norm"], config.eps)
        return functional.linear(last, tensors["embed"])

    def _turned(self, heads: Any, here: slice) -> Any:
        one, two = heads.chunk(2, -1)
        cos, sin = self.cos[here], self.sin[here]
        return torch.cat((one * cos - two * sin, two * cos + one * sin), -1)
