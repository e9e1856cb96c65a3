"""The learning curve as a picture: training and held-out loss over minutes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["draw"]

SIZE, DOTS = (7.2, 3.4), 110
BLUE, RED, INK = "#1f5fa8", "#c0504d", "#333333"
SKIPPED = 0.01
"""The initial part of the time to leave out, where the loss of the untrained model would flatten the rest."""


def draw(points: Sequence[Sequence[float]], path: Path) -> None:
    """Plot points of minutes, loss and held-out loss; with fewer than two points, write no picture."""
    from matplotlib.figure import Figure

    begin = SKIPPED * points[-1][0] if points else 0
    shown = [point for point in points if point[0] >= begin and point[1] > 0]
    if len(shown) < 2:
        return
    minutes, losses, held_out = zip(*shown, strict=True)
    figure = Figure(figsize=SIZE, layout="constrained")
    axes: Any = figure.subplots()
    axes.plot(minutes, losses, color=BLUE, linewidth=1.4, label="training")
    axes.plot(minutes, held_out, color=RED, linewidth=1.4, label="held out")
    axes.set_yscale("log")
    axes.set_xlabel("minutes")
    axes.set_ylabel("loss of a token that counts, nats")
    axes.grid(visible=True, which="both", color="#dddddd", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, labelcolor=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DOTS)
