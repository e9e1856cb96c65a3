"""Measurement and result files: medians with their spread, and ratios within one run."""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "ROOT", "Row", "Subject", "fresh", "median", "middle_half", "timed"]

RESULTS = Path(__file__).with_name("results")
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Row:
    """One measurement: `value` in `unit`. For a peer, `times` is its ratio to our value; 0 otherwise."""

    what: str
    value: float
    unit: str
    note: str = ""
    times: float = 0.0


@dataclass
class Subject:
    """The measurements of one subject, its targets, and its result file.

    `peers` names the distributions that were measured beside taiwa; their versions are recorded.
    """

    name: str
    about: str
    peers: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    targets: list[dict[str, Any]] = field(default_factory=list)
    load: float = field(default_factory=lambda: round(os.getloadavg()[0], 1))

    def row(self, what: str, value: float, unit: str, note: str = "", *, ours: float = 0.0) -> float:
        """Add a measurement and print it. With `ours` it belongs to a peer, and its note says whether the peer is ahead."""
        times = round(value / ours, 3) if ours else 0.0
        if times:
            compared = f"{times:.2g} times ours" if times >= 1 else f"ahead, {times:.2g} times ours"
            note = f"{compared}; {note}" if note else compared
        self.rows.append(Row(what, round(value, 6), unit, note, times))
        print(f"  {what:<66} {value:>12,.4g} {unit:<6} {note}", flush=True)
        return value

    def median(self, what: str, values: Sequence[float], unit: str, note: str = "", *, ours: float = 0.0) -> float:
        """Add the median of several measurements, with the interquartile range in the note."""
        low, high = middle_half(values)
        spread = f"n={len(values)}, IQR {low:.3g} to {high:.3g}"
        return self.row(what, median(values), unit, f"{note}; {spread}" if note else spread, ours=ours)

    def target(self, what: str, value: float, bound: float, unit: str) -> None:
        """Compare a value with its upper bound, and report a miss."""
        value = round(value, 4)  # as it is written and read again
        met = value <= bound
        self.targets.append({"what": what, "value": value, "bound": bound, "unit": unit, "met": met})
        print(f"  {'met   ' if met else 'MISSED'} {what}: {value:.4g} {unit}, at most {bound:g}", flush=True)

    def write(self) -> None:
        """Write the result file: the measurements with date, commit, machine and load."""
        RESULTS.mkdir(exist_ok=True)
        kept = {
            "about": self.about,
            "date": datetime.now(UTC).date().isoformat(),
            "commit": _commit(),
            "machine": f"{_processor()}, {platform.machine()}, Python {platform.python_version()}",
            "load": self.load,
            "versions": {name: version(name) for name in self.peers},
            "rows": [vars(row) for row in self.rows],
            "targets": self.targets,
        }
        path = RESULTS / f"{self.name}.json"
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _commit() -> str:
    """Return the commit, with a plus if the source has changed since."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "src")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} x {models[0]}" if models else platform.processor()


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def middle_half(values: Sequence[float]) -> tuple[float, float]:
    """Return the interquartile range.

    >>> middle_half([1, 2, 3, 4, 100])
    (2.0, 4.0)
    """
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def timed(act: Callable[[], object]) -> float:
    """Return the CPU seconds that `act` takes in this process."""
    started = time.process_time()
    act()
    return time.process_time() - started


def fresh(code: str, *, arguments: tuple[str, ...] = (), text: str = "") -> str:
    """Run code in a fresh interpreter and return its output."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, input=text)
    if done.returncode:
        raise RuntimeError(f"a benchmark's process failed:\n{done.stderr[-2000:]}")
    return done.stdout
