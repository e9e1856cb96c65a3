"""Training for a given time, with one single-threaded process per core, resumable after any interruption.

A low-priority process draws samples and writes them to files as tokens. A training process takes the next new file, or else the
one that it has read least often. Matrix products are in bfloat16 if the processor has units for it. The learning rate warms up,
stays constant, and decays to zero in the last part of the time.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from taiwa.models.builtin.tokenizer import Tokens
from training.builtin.corpus import Corpus
from training.builtin.export import begin_from
from training.builtin.model import Config, Transformer
from training.builtin.optimise import Optimiser
from training.builtin.overlap import KEYS, Overlap

__all__ = ["Plan", "has_bfloat16", "read_tokens", "train"]

WARM, FALL = 0.02, 0.6
HELD_OUT_SEED = 1_000_003
HELD_OUT = 300
SIZES = 256
"""Kernels are prepared per number of rows, so the tokens with loss are padded to a multiple of this number."""
AHEAD, KEPT, OFTEN = 10, 40, 4
"""The numbers of files per process that are drawn in advance and kept to be read again, and how often a file is read at most."""
NICE = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a training. `minutes` is the total time over all runs; `batch` counts tokens per process, `shard` samples
    per file.

    `start` is a folder of exported files to start from; without it, training starts from random weights.
    """

    folder: Path
    minutes: float
    seed: int = 0
    workers: int = 2
    batch: int = 6_144
    shard: int = 4_000
    matrix_rate: float = 0.02
    other_rate: float = 0.003
    decay: float = 0.05
    compiled: bool = True
    device: str = "cpu"
    config: Config = field(default_factory=Config)
    forbidden: Path | None = None
    start: Path | None = None

    @property
    def drawn(self) -> Path:
        """Return the folder of the drawn samples."""
        return self.folder / "drawn"

    @property
    def checkpoint(self) -> Path:
        """Return the path of the newest checkpoint."""
        return self.folder / "checkpoint.pt"


@dataclass(slots=True)
class Progress:
    """The progress of a training over all runs and processes; `tokens` excludes padding, `shards` counts files of one process."""

    seconds: float = 0.0
    steps: int = 0
    tokens: int = 0
    shards: int = 0
    samples: int = 0
    dropped: int = 0


def read_tokens(path: Path) -> Tokens:
    """Read a saved tokenizer."""
    table = json.loads(path.read_text("utf-8"))
    return Tokens(table["special"], table["pieces"])


def has_bfloat16(device: str) -> bool:
    """Return true if bfloat16 is faster than float32: on a GPU, or on a CPU with units for it."""
    found = torch.cpu.get_capabilities()
    return device != "cpu" or bool(found.get("amx_bf16") or found.get("avx512_bf16"))


def train(plan: Plan) -> None:
    """Train or resume. The weights are in the checkpoint, the progress in `log.jsonl`."""
    plan.drawn.mkdir(parents=True, exist_ok=True)
    drawing = torch.multiprocessing.get_context("spawn").Process(target=draw, args=(plan, os.getpid()), daemon=True)
    drawing.start()
    try:
        if plan.workers == 1:
            _run(0, plan)
        else:
            torch.multiprocessing.spawn(_run, args=(plan,), nprocs=plan.workers)  # pyright: ignore[reportPrivateImportUsage]
    finally:
        drawing.terminate()
        drawing.join()


def draw(plan: Plan, parent: int) -> None:
    """Draw samples into numbered files, slightly ahead of the training, until the parent process ends."""
    os.nice(NICE)
    tokens = read_tokens(plan.folder / "vocabulary.json")
    forbidden = Overlap.of_folders(KEYS, *([plan.forbidden] if plan.forbidden is not None else []))
    number = 0
    while os.getppid() == parent:
        if _file(plan, number).exists() or _file(plan, number).with_suffix(".used").exists():
            number += 1
        elif sum(1 for _ in plan.drawn.glob("*.npz")) > (KEPT + AHEAD) * plan.workers:
            time.sleep(1)
        else:
            Corpus.draw(tokens, plan.seed * 1_000_000 + number, plan.shard, forbidden).write(_file(plan, number))


def _file(plan: Plan, number: int) -> Path:
    return plan.drawn / f"{number:06}.npz"


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
        self.fast = has_bfloat16(plan.device)
        self.optimiser = Optimiser(
            self.model, matrix_rate=plan.matrix_rate, other_rate=plan.other_rate, decay=plan.decay, fast=self.fast
        )
        self.progress = Progress()
        if plan.checkpoint.exists():
            self._restore()
        elif plan.start is not None:
            begin_from(plan.start, self.model, self.tokens)
        self.summed = torch.compile(self._summed, dynamic=True) if plan.compiled else self._summed
        self.held_out = Corpus.draw(self.tokens, HELD_OUT_SEED, HELD_OUT) if rank == 0 else None

    def run(self) -> None:
        plan, progress = self.plan, self.progress
        whole = plan.minutes * 60
        losses: list[float] = []
        reported = saved = last = time.monotonic()
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
            progress.tokens += int(np.count_nonzero(ids)) * plan.workers
            last = now
            if self.rank == 0 and now - reported > 120:
                self._tell(loss=sum(losses) / len(losses), norm=norm, held_out=self._held_out())
                losses, reported = [], now
            if self.rank == 0 and now - saved > 240:
                self._save()
                saved = now
        if self.rank == 0:
            self._tell(loss=sum(losses) / max(len(losses), 1), norm=0.0, held_out=self._held_out())
            self._save()

    def _batches(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        plan, reads = self.plan, dict[int, int]()
        while True:
            new = self.progress.shards * plan.workers + self.rank
            if _file(plan, new).exists():
                number = new
            elif (number := min(reads, key=lambda each: reads[each], default=-1)) < 0 or reads[number] >= OFTEN:
                time.sleep(0.5)
                continue
            shard = Corpus.read(_file(plan, number))
            reads[number] = reads.get(number, 0) + 1
            if number == new:
                self.progress.shards += 1
                self.progress.samples += len(shard) * plan.workers
                self.progress.dropped += shard.dropped * plan.workers
            yield from shard.batches(plan.batch, number + reads[number])
            if len(reads) > KEPT:  # drop the file that was read most often
                oldest = max(reads, key=lambda each: reads[each])
                _file(plan, oldest).with_suffix(".used").touch()
                with suppress(OSError):
                    _file(plan, oldest).unlink()
                del reads[oldest]

    def _loss(self, ids: NDArray[np.int64], weights: NDArray[np.float32]) -> Tensor:
        """Return the mean loss of the weighted tokens; logits are computed for these only."""
        counts = weights[:, 1:].reshape(-1)
        counted = np.flatnonzero(counts)
        chosen = np.zeros(
            -(-len(counted) // SIZES) * SIZES, np.int64
        )  # position 0 belongs to a prompt and has no weight
        chosen[: len(counted)] = counted
        places, wanted, shares = (
            torch.from_numpy(each).to(self.plan.device)
            for each in (chosen, ids[:, 1:].reshape(-1)[chosen], counts[chosen])
        )
        return self.summed(torch.from_numpy(ids[:, :-1]).to(self.plan.device), places, wanted, shares) / shares.sum()

    def _summed(self, given: Tensor, places: Tensor, wanted: Tensor, shares: Tensor) -> Tensor:
        with torch.autocast(self.plan.device.partition(":")[0], torch.bfloat16, enabled=self.fast):
            logits = self.model.logits(self.model(given).flatten(0, 1)[places])
        return (functional.cross_entropy(logits.float(), wanted, reduction="none") * shares).sum()

    def _held_out(self) -> float:
        assert self.held_out is not None
        losses: list[float] = []
        with torch.no_grad():
            for ids, weights in self.held_out.batches(self.plan.batch, 0):
                losses.append(float(self._loss(ids, weights)))
        return sum(losses) / len(losses)

    def _agreed(self, done: float) -> float:
        """Broadcast the value of the first process."""
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
            "samples": progress.samples,
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
            "progress": asdict(progress),
        }
        part = self.plan.checkpoint.with_suffix(".part")
        torch.save(kept, part)
        part.replace(self.plan.checkpoint)

    def _restore(self) -> None:
        kept = torch.load(self.plan.checkpoint, map_location=self.plan.device, weights_only=True)
        self.model.load_state_dict(kept["model"])
        self.optimiser.restore(kept["optimiser"])
        self.progress = Progress(**kept["progress"])
