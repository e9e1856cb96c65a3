"""What it costs to begin: imports and the help of the command line, in fresh interpreters, in turn."""

import subprocess
import sys
import time

from benches.measure import ROOT, Subject, fresh, median

ROUNDS = 15
IMPORTING = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def import_ms(modules: str) -> float:
    return float(fresh(IMPORTING.format(modules))) * 1e3


def process_ms(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd=ROOT)
    return (time.perf_counter() - started) * 1e3


def main() -> None:
    subject = Subject("importing", "milliseconds of wall time in fresh interpreters, medians of alternating runs")
    names = {
        "taiwa.kernel": "taiwa.kernel",
        "taiwa": "taiwa",
        "dataclasses, typing": "dataclasses, typing",
        "click, rich": "click, rich",
    }
    imports: dict[str, list[float]] = {name: [] for name in names}
    commands = {
        'python -c "import click, rich"': ("-c", "import click, rich"),
        "taiwa --help": ("-m", "taiwa", "--help"),
        'python -c "import dataclasses, typing"': ("-c", "import dataclasses, typing"),
        'python -c "import taiwa.kernel"': ("-c", "import taiwa.kernel"),
    }
    whole: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, modules in names.items():
            imports[name].append(import_ms(modules))
        for name, arguments in commands.items():
            whole[name].append(process_ms(*arguments))
    at = {name: subject.row(f"import {name}", median(times), "ms") for name, times in imports.items()}
    run = {name: subject.row(name, median(times), "ms", "whole process") for name, times in whole.items()}
    ratio = at["taiwa.kernel"] / at["dataclasses, typing"]
    subject.target("import taiwa.kernel against import dataclasses, typing", ratio, 3, "x")
    helped = run["taiwa --help"] / run['python -c "import click, rich"']
    subject.target('taiwa --help against python -c "import click, rich"', helped, 2, "x")
    subject.write()
