"""The optimiser: Muon for the matrices of the layers, AdamW for everything else, over any number of processes.

Muon (Jordan et al. 2024): momentum whose singular values are pushed towards one by five Newton-Schulz iterations. The matrices
are divided among the processes: each computes a part of the iterations, and all receive all results.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

__all__ = ["Optimiser"]

STEPS = ((3.4445, -4.7750, 2.0315),) * 5
MOMENTUM = 0.95


class Optimiser:
    """An optimiser that averages gradients over all processes and updates the weights."""

    def __init__(
        self, model: nn.Module, *, matrix_rate: float, other_rate: float, decay: float, fast: bool = False
    ) -> None:
        named = dict(model.named_parameters())
        self.matrices = [each for name, each in named.items() if each.ndim == 2 and not name.startswith("embed")]
        others = [each for name, each in named.items() if each.ndim != 2 or name.startswith("embed")]
        self.every = list(named.values())
        self.momenta = [torch.zeros_like(each) for each in self.matrices]
        self.adam = torch.optim.AdamW(others, lr=other_rate, betas=(0.9, 0.98), weight_decay=0.0)
        self.matrix_rate, self.other_rate, self.decay, self.fast = matrix_rate, other_rate, decay, fast

    def step(self, scale: float) -> float:
        """Update the weights and return the norm of the gradient. `scale` is a fraction of the full learning rates."""
        world, rank = (dist.get_world_size(), dist.get_rank()) if dist.is_initialized() else (1, 0)
        grads = [each.grad if each.grad is not None else torch.zeros_like(each) for each in self.every]
        if world > 1:
            _averaged(grads, world)
        norm = float(torch.sqrt(sum((grad.square().sum() for grad in grads), torch.zeros(()))))
        for each, grad in zip(self.every, grads, strict=True):
            each.grad = grad
        for group in self.adam.param_groups:
            group["lr"] = self.other_rate * scale
        self.adam.step()
        with torch.no_grad():
            self._matrices(scale, world, rank)
        for each in self.every:
            each.grad = None
        return norm

    def record(self) -> dict[str, object]:
        """Return the state needed to resume."""
        return {"adam": self.adam.state_dict(), "momenta": self.momenta}

    def restore(self, kept: dict[str, object]) -> None:
        """Restore a saved state."""
        self.adam.load_state_dict(kept["adam"])  # pyright: ignore[reportArgumentType]  (torch gives no type for it)
        momenta = kept["momenta"]
        assert isinstance(momenta, list)
        self.momenta = momenta

    def _matrices(self, scale: float, world: int, rank: int) -> None:
        for place, (each, momentum) in enumerate(zip(self.matrices, self.momenta, strict=True)):
            assert each.grad is not None
            momentum.lerp_(each.grad, 1 - MOMENTUM)
            if place % world == rank:
                wanted = orthogonal(each.grad.lerp(momentum, MOMENTUM), fast=self.fast)
                rate = self.matrix_rate * scale
                each.mul_(1 - rate * self.decay).add_(
                    wanted, alpha=-rate * max(1, each.shape[0] / each.shape[1]) ** 0.5
                )
        if world > 1:
            waits = [
                dist.broadcast(each.data, place % world, async_op=True) for place, each in enumerate(self.matrices)
            ]
            for wait in waits:
                assert wait is not None
                wait.wait()


def orthogonal(given: Tensor, *, fast: bool = False) -> Tensor:
    """Push the singular values of a matrix towards one; `fast` multiplies in bfloat16, which is exact enough for a direction."""
    found = given.T if given.shape[0] > given.shape[1] else given
    found = (found / (found.norm() + 1e-7)).to(torch.bfloat16 if fast else given.dtype)
    for one, two, three in STEPS:
        square = found @ found.T
        found = torch.addmm(found, torch.addmm(square, square, square, beta=two, alpha=three), found, beta=one)
    return (found.T if given.shape[0] > given.shape[1] else found).to(given.dtype)


def _averaged(grads: Sequence[Tensor], world: int) -> None:
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    dist.all_reduce(flat)
    flat /= world
    place = 0
    for grad in grads:
        grad.copy_(flat[place : place + grad.numel()].view_as(grad))
        place += grad.numel()
