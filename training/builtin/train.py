"""Training: as many processes of one thread each as there are cores, for a given time, to be gone on with after any end.

Each process draws its own samples while it goes and never meets one twice. The rates rise at once, stay, and fall to nothing in the
last part of the time, so that the end of the time is the end of the training.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from taiwa.models.builtin.tokenizer import Tokens
from training.builtin.corpus import Corpus
from training.builtin.model import Config, Transformer
from training.builtin.optimise import Optimiser
from training.builtin.overlap import KEYS, Overlap

__all__ = ["Plan", "read_tokens", "train"]

WARM, FALL = 0.02, 0.4
HELD_OUT_SEED = 1_000_003
HELD_OUT = 400


@dataclass(frozen=True, slots=True)
class Plan:
    """How a model is trained. `minutes` is the time of all runs together; `batch` counts tokens of one process."""

    folder: Path
    minutes: float
    seed: int = 0
    workers: int = 2
    batch: int = 4_096
    shard: int = 6_000
    matrix_rate: float = 0.02
    other_rate: float = 0.003
    decay: float = 0.05
    compiled: bool = True
    device: str = "cpu"
    config: Config = field(default_factory=Config)
    forbidden: Path | None = None

    @property
    def checkpoint(self) -> Path:
        """Where the newest state is kept."""
        return self.folder / "checkpoint.pt"


@dataclass(slots=True)
class Progress:
    """How far a training is, over all its runs."""

    seconds: float = 0.0
    steps: int = 0
    tokens: int = 0
    shards: int = 0
    dropped: int = 0


def read_tokens(path: Path) -> Tokens:
    """Read a tokenizer that was kept."""
    table = json.loads(path.read_text("utf-8"))
    return Tokens(table["special"], table["pieces"])


def train(plan: Plan) -> None:
    """Train, or go on; the weights are in the checkpoint, what happened is in `log.jsonl`."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    if plan.workers == 1:
        _run(0, plan)
        return
    torch.multiprocessing.spawn(_run, args=(plan,), nprocs=plan.workers)  # pyright: ignore[reportPrivateImportUsage]


def _run(rank: int, plan: Plan) -> None:
    torch.set_num_threads(1 if plan.device == "cpu" else 4)
    torch.manual_seed(plan.seed)
    if plan.workers > 1:
        meeting = plan.folder / f"meeting.{os.getppid()}"
        dist.init_process_group("gloo", init_method=f"file://{meeting.absolute()}", rank=rank, world_size=plan.workers)
    _Training(plan, rank).run()
    if plan.workers > 1:
        dist.destroy_process_group()


class _Training:
    def __init__(self, plan: Plan, rank: int) -> None:
        self.plan, self.rank = plan, rank
        self.tokens = read_tokens(plan.folder / "vocabulary.json")
        self.model = Transformer(plan.config).to(plan.device)
        self.optimiser = Optimiser(
            self.model, matrix_rate=plan.matrix_rate, other_rate=plan.other_rate, decay=plan.decay
        )
        self.progress = Progress()
        self.forbidden = Overlap.of_folders(plan.forbidden, KEYS) if plan.forbidden is not None else None
        if plan.checkpoint.exists():
            self._restore()
        self.run_model = torch.compile(self.model, dynamic=True) if plan.compiled else self.model
        self.held_out = Corpus.draw(self.tokens, HELD_OUT_SEED, HELD_OUT) if rank == 0 else None

    def run(self) -> None:
        plan, progress = self.plan, self.progress
        whole = plan.minutes * 60
        losses: list[float] = []
        told = saved = last = time.monotonic()
        for ids, weights in self._batches():
            done = self._agreed(progress.seconds / whole)
            if done >= 1:
                break
            loss = self._loss(ids, weights)
            loss.backward()
            norm = self.optimiser.step(min(1.0, done / WARM) if done < WARM else min(1.0, (1 - done) / FALL))
            losses.append(float(loss.detach()))
            now = time.monotonic()
            progress.seconds += now - last
            progress.steps += 1
            progress.tokens += int(ids.size) * plan.workers
            last = now
            if self.rank == 0 and now - told > 60:
                self._tell(loss=sum(losses) / len(losses), norm=norm, held_out=self._held_out())
                losses, told = [], now
            if self.rank == 0 and now - saved > 240:
                self._save()
                saved = now
        if self.rank == 0:
            self._tell(loss=sum(losses) / max(len(losses), 1), norm=0.0, held_out=self._held_out())
            self._save()

    def _batches(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        plan = self.plan
        while True:
            seed = plan.seed * 1_000_000 + self.progress.shards * plan.workers + self.rank
            count = plan.shard if self.progress.shards else plan.shard // 4
            shard = Corpus.draw(self.tokens, seed, count, self.forbidden)
            self.progress.shards += 1
            self.progress.dropped += shard.dropped * plan.workers
            yield from shard.batches(plan.batch, seed)

    def _loss(self, ids: NDArray[np.int64], weights: NDArray[np.float32]) -> Tensor:
        """The mean loss of the tokens that count."""
        given = torch.from_numpy(ids).to(self.plan.device)
        counts = torch.from_numpy(weights[:, 1:]).to(self.plan.device)
        states = self.run_model(given[:, :-1])
        chosen = counts > 0
        found = functional.cross_entropy(self.model.logits(states[chosen]), given[:, 1:][chosen], reduction="none")
        return (found * counts[chosen]).sum() / counts.sum().clamp(min=1)

    def _held_out(self) -> float:
        assert self.held_out is not None
        losses: list[float] = []
        with torch.no_grad():
            for ids, weights in self.held_out.batches(self.plan.batch, 0):
                losses.append(float(self._loss(ids, weights)))
        return sum(losses) / len(losses)

    def _agreed(self, done: float) -> float:
        """What the first process says, for all."""
        if self.plan.workers == 1:
            return done
        said = torch.tensor([done], dtype=torch.float64)
        dist.broadcast(said, 0)
        return float(said)

    def _tell(self, **figures: float) -> None:
        progress = self.progress
        row = {
            "minutes": round(progress.seconds / 60, 2),
            "steps": progress.steps,
            "tokens": progress.tokens,
            "dropped": progress.dropped,
            **{name: round(figure, 5) for name, figure in figures.items()},
        }
        with (self.plan.folder / "log.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)

    def _save(self) -> None:
        progress = self.progress
        kept = {
            "config": self.plan.config.record(),
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.record(),
            "progress": [progress.seconds, progress.steps, progress.tokens, progress.shards, progress.dropped],
        }
        part = self.plan.checkpoint.with_suffix(".part")
        torch.save(kept, part)
        part.replace(self.plan.checkpoint)

    def _restore(self) -> None:
        kept = torch.load(self.plan.checkpoint, map_location=self.plan.device, weights_only=True)
        self.model.load_state_dict(kept["model"])
        self.optimiser.restore(kept["optimiser"])
        self.progress = Progress(*kept["progress"])
