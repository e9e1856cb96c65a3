"""The provenance of a training: its seed, machine and commit, stored beside the checkpoint."""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from taiwa.evals.run import git_output

__all__ = ["FILE", "note", "program"]

FILE = "origin.json"
ROOT = Path(__file__).resolve().parents[2]
READ = ("src/taiwa", "training")
"""The files on which a model depends."""


def note(folder: Path, **given: object) -> None:
    """Append a record of a start."""
    path = folder / FILE
    before = json.loads(path.read_text("utf-8")) if path.is_file() else []
    cores = os.cpu_count() or 1
    now = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "cores": cores, "machine": platform.machine()}
    path.write_text(json.dumps([*before, {**now, **program(), **given}], indent=1) + "\n", "utf-8")


def program() -> Mapping[str, object]:
    """Return the commit, and whether the files on which a model depends are unmodified; neither without git."""
    commit = git_output(ROOT, "rev-parse", "HEAD")
    changed = git_output(ROOT, "status", "--porcelain", "--", *READ)
    return {"commit": commit, "clean": bool(commit) and not changed}
