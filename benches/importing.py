"""Startup cost: imports and the help of the command line, in fresh interpreters, in turn."""

import json
import resource
import subprocess
import sys
import time
from collections import Counter

from benches.measure import ROOT, Subject, fresh

ROUNDS = 25
IMPORTING = """
import json, time
wall, cpu = time.perf_counter(), time.process_time()
import {}
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""
MODULES = {
    "taiwa.kernel": "taiwa.kernel.runtime",
    "taiwa": "taiwa",
    "dataclasses, typing": "dataclasses, typing",
    "click, rich": "click, rich",
}
COMMANDS = {
    'python -c "import dataclasses, typing"': ("-c", "import dataclasses, typing"),
    'python -c "import taiwa.kernel"': ("-c", "import taiwa.kernel.runtime"),
    'python -c "import click, rich"': ("-c", "import click, rich"),
    "taiwa --help": ("-m", "taiwa", "--help"),
}
SHOWN = 4


def import_ms(modules: str) -> tuple[float, float]:
    """Return the wall and CPU milliseconds of an import in a fresh interpreter."""
    wall, cpu = json.loads(fresh(IMPORTING.format(modules)))
    return wall * 1e3, cpu * 1e3


def process_ms(*arguments: str) -> tuple[float, float]:
    """Return the wall and CPU milliseconds of a whole process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd=ROOT)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall * 1e3, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def parts(*arguments: str) -> Counter[str]:
    """Return the import milliseconds of a process by package, without Python's own startup."""

    def found(*words: str) -> Counter[str]:
        command = [sys.executable, "-X", "importtime", *words]
        report = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stderr
        lines = [line.removeprefix("import time:").split("|") for line in report.splitlines()]
        return Counter({name.strip(): int(own) for own, _, name in lines if own.strip().isdigit()})

    began = found("-c", "pass")
    counted: Counter[str] = Counter()
    for name, micros in found(*arguments).items():
        if name not in began:
            first, *rest = name.split(".")
            counted[f"taiwa.{rest[0]}" if first == "taiwa" and rest else first] += micros
    return Counter({name: micros / 1e3 for name, micros in counted.items()})  # type: ignore[misc]  # milliseconds


def dearest(*arguments: str) -> str:
    """Return the most expensive packages, for a note."""
    tried = [parts(*arguments) for _ in range(5)]
    names = {name for each in tried for name in each}
    cost = Counter({name: sorted(each[name] for each in tried)[2] for name in names})
    return ", ".join(f"{name} {millis:.1f}" for name, millis in cost.most_common(SHOWN))


def main() -> None:
    subject = Subject("importing", "milliseconds of CPU in fresh interpreters, in turn", peers=("click", "rich"))
    imports: dict[str, list[tuple[float, float]]] = {name: [] for name in MODULES}
    whole: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, modules in MODULES.items():
            imports[name].append(import_ms(modules))
        for name, arguments in COMMANDS.items():
            whole[name].append(process_ms(*arguments))
    at = {name: subject.median(f"import {name}", [cpu for _, cpu in both], "ms") for name, both in imports.items()}
    run = {
        name: subject.median(name, [cpu for _, cpu in both], "ms", "the whole process") for name, both in whole.items()
    }
    for name in ('python -c "import taiwa.kernel"', "taiwa --help"):
        cost = parts(*COMMANDS[name])
        note = f"by -X importtime, which costs too; most: {dearest(*COMMANDS[name])}"
        subject.row(f"{name}: what it imports", sum(cost.values()), "ms", note)
    base = at["dataclasses, typing"]
    subject.target("import taiwa.kernel against import dataclasses, typing", at["taiwa.kernel"] / base, 3, "x")
    begun = run['python -c "import taiwa.kernel"'] / run['python -c "import dataclasses, typing"']
    subject.target("the same as complete processes", begun, 3, "x")
    helped = run["taiwa --help"] / run['python -c "import click, rich"']
    subject.target('taiwa --help against python -c "import click, rich"', helped, 2, "x")
    subject.write()
