"""The transformer in torch, for training; `taiwa.models.builtin.network` computes the same in numpy.

Decoder-only, pre-norm with RMSNorm, rotary positions (Su et al. 2021) on half-split pairs, queries and keys normalised per head,
SwiGLU (Shazeer 2020), embedding and output head tied, no biases.
"""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Config", "Transformer"]


@dataclass(frozen=True, slots=True)
class Config:
    """The dimensions of a model."""

    dim: int = 256
    layers: int = 6
    heads: int = 8
    hidden: int = 640
    vocab: int = 3_072
    context: int = 1_024
    theta: float = 10_000.0
    eps: float = 1e-6

    def record(self) -> dict[str, int | float]:
        """Return the dimensions as JSON."""
        return asdict(self)


class Norm(nn.Module):
    """Return x / rms(x) * gain."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, given: Tensor) -> Tensor:
        """Normalise the last axis."""
        return functional.rms_norm(given, given.shape[-1:], self.gain, self.eps)


class Layer(nn.Module):
    """Attention and a gated feed-forward part, each pre-normalised with a residual connection."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.norm1 = Norm(config.dim, config.eps)
        self.qkv = nn.Linear(config.dim, 3 * config.dim, bias=False)
        self.out = nn.Linear(config.dim, config.dim, bias=False)
        self.norm2 = Norm(config.dim, config.eps)
        self.up = nn.Linear(config.dim, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.dim, bias=False)

    def forward(self, given: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        batch, length, dim = given.shape
        heads, width = self.config.heads, dim // self.config.heads
        q, k, v = self.qkv(self.norm1(given)).view(batch, length, 3, heads, width).permute(2, 0, 3, 1, 4)
        q, k = (_turned(functional.rms_norm(each, (width,), None, self.config.eps), cos, sin) for each in (q, k))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True) if given.is_cuda else _seen(q, k, v)
        given = given + self.out(seen.transpose(1, 2).reshape(batch, length, dim))
        gate, up = self.up(self.norm2(given)).chunk(2, -1)
        return given + self.down(functional.silu(gate) * up)


class Transformer(nn.Module):
    """A model from token ids (B, T) to hidden states (B, T, D); `logits` maps the selected ones to (…, V)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.dim)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = Norm(config.dim, config.eps)
        half = config.dim // config.heads // 2
        rates = config.theta ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(config.context, dtype=torch.float64)[:, None] * rates
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        self._begin()

    def forward(self, ids: Tensor) -> Tensor:
        """Return the hidden states of texts."""
        length = ids.shape[1]
        cos, sin = self.get_buffer("cos")[:length], self.get_buffer("sin")[:length]
        given = self.embed(ids)
        for layer in self.layers:
            given = layer(given, cos, sin)
        return self.norm(given)

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits of the next token."""
        return functional.linear(states, self.embed.weight)

    def _begin(self) -> None:
        nn.init.normal_(self.embed.weight, std=0.05)
        for layer in self.layers:
            assert isinstance(layer, Layer)
            for part in (layer.qkv, layer.up):
                nn.init.normal_(part.weight, std=self.config.dim**-0.5)
            for part in (layer.out, layer.down):
                nn.init.zeros_(part.weight)


def _seen(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Apply causal attention on the full score matrix, which is faster on a CPU than blocks for texts this short."""
    scores = (q @ k.transpose(-1, -2)).float() * q.shape[-1] ** -0.5
    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, -torch.inf).softmax(-1).to(v.dtype) @ v


def _turned(given: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (j, j + half) of the last axis by the angles of their positions."""
    one, two = given.chunk(2, -1)
    return torch.cat((one * cos - two * sin, two * cos + one * sin), -1)
