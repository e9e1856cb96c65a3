"""Measuring and writing down: medians, ratios, and result files that documents read."""

import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "Row", "Subject", "fresh", "median", "timed"]

RESULTS = Path(__file__).with_name("results")
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Row:
    """One measurement: `value` in `unit`, and what it is held against."""

    what: str
    value: float
    unit: str
    note: str = ""


@dataclass
class Subject:
    """The measurements of one subject, its targets, and the file that keeps them."""

    name: str
    about: str
    rows: list[Row] = field(default_factory=list)
    targets: list[dict[str, Any]] = field(default_factory=list)

    def row(self, what: str, value: float, unit: str, note: str = "") -> float:
        """Add a measurement and print it."""
        self.rows.append(Row(what, round(value, 6), unit, note))
        print(f"  {what:<58} {value:>12,.4g} {unit:<6} {note}", flush=True)
        return value

    def target(self, what: str, value: float, bound: float, unit: str) -> None:
        """Hold a value against its bound, and say plainly when it is missed."""
        met = value <= bound
        self.targets.append({"what": what, "value": round(value, 4), "bound": bound, "unit": unit, "met": met})
        print(f"  {'met   ' if met else 'MISSED'} {what}: {value:.4g} {unit}, at most {bound:g}", flush=True)

    def write(self) -> None:
        """Write the result file."""
        RESULTS.mkdir(exist_ok=True)
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        kept = {
            "about": self.about,
            "date": datetime.now(UTC).date().isoformat(),
            "commit": commit.stdout.strip(),
            "machine": f"{_processor()}, {platform.machine()}, Python {platform.python_version()}",
            "rows": [vars(row) for row in self.rows],
            "targets": self.targets,
        }
        path = RESULTS / f"{self.name}.json"
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} x {models[0]}" if models else platform.processor()


def median(values: list[float]) -> float:
    """The middle of the values."""
    return statistics.median(values)


def timed(act: Callable[[], object]) -> float:
    """Seconds of CPU that an act takes in this process."""
    started = time.process_time()
    act()
    return time.process_time() - started


def fresh(code: str, *, arguments: tuple[str, ...] = (), text: str = "") -> str:
    """Run code in a fresh interpreter and return what it printed."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, input=text)
    return done.stdout
