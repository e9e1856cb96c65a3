"""The built-in model on one core, in a bare decode loop and in complete answers, beside the same weights in torch.

A fresh process bound to one core does the work; the time is its CPU time. The peer reads the same tokens with its own cache, and
its logits are first compared with ours.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from benches.measure import Subject, fresh

if TYPE_CHECKING:
    from taiwa.models.builtin.model import BuiltinModel
    from taiwa.models.inprocess.decode_loop import Backend

__all__ = ["main", "measured"]

Take: TypeAlias = Callable[[str, Callable[[], int]], None]

LEAST = 150
"""The lower limit in tokens per second."""
TIMES = 15
PROMPT, WRITTEN = 80, 128
LONG = 400
MOST = 160
QUESTIONS = (
    "A tram covers 84 km in 3 hours. What is its average speed?",
    "How heavy are 2.5 mol of glucose?",
    "Pens cost 4 dollars a piece. Ana buys 7 of them and a folder for 5 dollars. What does she pay in all?",
    "What percentage of the mass of ammonium nitrate is nitrogen?",
)
CHILD = "import sys; sys.path.insert(0, '.'); import benches.builtin as it; print(it.measured())"


def measured() -> str:
    """Run in a process bound to one core; return JSON with the values of all repetitions for each figure."""
    if "numpy" in sys.modules:
        raise RuntimeError("bound to one core after numpy was loaded, its threads would not be")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    found: dict[str, list[float]] = {}

    def take(name: str, act: Callable[[], int]) -> None:
        """Measure the CPU seconds per unit that `act` produces."""
        act()
        made: list[float] = []
        for _ in range(TIMES):
            started = time.process_time()
            made.append(act())
            made[-1] = (time.process_time() - started) / made[-1]
        found[name] = made

    _ours(take)
    _theirs(take)
    return json.dumps(found)


def _ours(take: Take) -> None:
    from taiwa.models.builtin.model import BuiltinModel, load

    loaded = load()
    ids = _ids(len(loaded.tokens))

    def read(count: int) -> Callable[[], int]:
        def act() -> int:
            loaded.network.start().read(ids[:count])
            return 1

        return act

    take("free", lambda: _free(loaded.network))
    take("first", read(PROMPT))
    take("long", read(LONG))
    model = BuiltinModel()
    take("answers", lambda: sum(_answer(model, question) for question in QUESTIONS))


def _ids(size: int) -> list[int]:
    return [number * 7 % (size - 300) + 270 for number in range(LONG)]


def _free(network: "Backend") -> int:
    """Generate tokens after a prompt, one per forward pass."""
    track, ids = network.start(), _ids(len(network.vocabulary))
    track.read(ids[:PROMPT])
    for token in ids[:WRITTEN]:
        track.read([token]).argmax()
    return WRITTEN


def _answer(model: "BuiltinModel", question: str) -> int:
    """Solve a question as `taiwa solve` does, and return the number of generated tokens."""
    from taiwa.flows.solve.rationale import SolveLimits
    from taiwa.flows.solve.solve import SolveOptions, solve
    from taiwa.kernel.messages import Sampling
    from taiwa.kernel.runtime import Runtime
    from taiwa.tools.registry import builtin_tools

    model.generator().prefix_cache.clear()
    tools = [tool for name, tool in builtin_tools().items() if name in ("calculator", "molar_mass", "stoichiometry")]
    program = solve(
        question,
        [tool.spec for tool in tools],
        SolveOptions(sampling=Sampling(max_tokens=MOST), limits=SolveLimits(max_tool_calls=3)),
    )
    done = Runtime(model, tools=tools).run_result(program)
    return done.spent.usage.output_tokens


def _theirs(take: Take) -> None:
    import numpy as np
    import torch

    from benches.peers.eager import Eager
    from taiwa.models.builtin.model import DATA, load
    from taiwa.models.builtin.network import load_weights

    torch.set_num_threads(1)
    weights, ours = load_weights(DATA / "weights.safetensors"), load().network
    ids = [number * 7 % (weights.config.vocab - 300) + 270 for number in range(LONG)]
    gap = float(np.abs(Eager(weights).read(ids[:PROMPT]) - ours.start().read(ids[:PROMPT])).max())
    if gap > 1e-2:
        raise RuntimeError(f"torch and numpy differ by {gap}")

    def free() -> int:
        eager = Eager(weights)
        eager.read(ids[:PROMPT])
        for token in ids[:WRITTEN]:
            eager.read([token]).argmax()
        return WRITTEN

    take("torch", free)


def main() -> None:
    subject = Subject("builtin", "tokens per second on one core, beside the same weights in torch", ("numpy", "torch"))
    found: dict[str, list[float]] = json.loads(fresh(CHILD))
    ours = subject.median("bare decode loop, one token per pass", [1 / each for each in found["free"]], "tokens/s")
    subject.median(
        "complete answers, with prompts, guides and tools", [1 / each for each in found["answers"]], "tokens/s"
    )
    subject.median(f"first token after a prompt of {PROMPT} tokens", [1e3 * each for each in found["first"]], "ms")
    subject.median(f"reading a prompt of {LONG} tokens", [1e3 * each for each in found["long"]], "ms")
    eager = statistics.median(found["torch"])
    subject.row("the same weights in eager torch, one token per pass", 1e3 * eager, "ms", "a token", ours=1e3 / ours)
    subject.target("a token in the bare decode loop", 1e3 / ours, 1e3 / LEAST, "ms")
    answers = statistics.median(found["answers"])
    subject.target("a token of a complete answer", 1e3 * answers, 1e3 / LEAST, "ms")
    subject.write()
