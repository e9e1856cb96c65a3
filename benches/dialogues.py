"""The dialogue before retrieval without a model, by `python -m evals`: clarifying questions, retrieval and answers.

The recorded dialogues and questions are in the folder named by TAIWA_BENCH_DATA; without it nothing is measured, and the results
stay unchanged. Each result is the summary that the command wrote.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benches.measure import RESULTS, ROOT

HANDBOOK = "taiwa:handbook"
SETS = {
    "clarify": ("qulac", "abg_coqa", "pacific", "mtrag_tasks", "asdc_dialogs", HANDBOOK),
    "rewrite": ("mtrag_rewrites", "canard", "cast", "ikat2023"),
    "retrieve": ("jsquad_questions", "jaquad_questions", "mtrag_tasks", HANDBOOK),
    "answer": ("jsquad_questions", "jaquad_questions", "abg_coqa", "mtrag_tasks", HANDBOOK),
}


def evaluate(name: str, data: Path, folder: Path) -> Path:
    """Run one evaluation; repeating the command resumes from existing rows."""
    files = [each if each == HANDBOOK else str(data / f"{each}.jsonl") for each in SETS[name]]
    options = [word for each in files for word in ("--data", each)]
    command = [sys.executable, "-m", "evals", name, *options, "-j", "1", "--out", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT)
    return folder / "summary.json"


def main() -> None:
    place = os.environ.get("TAIWA_BENCH_DATA")
    if not place:
        print("  TAIWA_BENCH_DATA names no folder of dialogues: left out")
        return
    kept = RESULTS / "dialogues"
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in SETS:
            print(f"\n  {name}", flush=True)
            shutil.copyfile(evaluate(name, Path(place), Path(folder) / name), kept / f"{name}.json")
