"""Coverage of the built-in tools without a model: accuracy on exercises, and response time on arbitrary input.

The exercises are not part of the project; without them only arbitrary input is measured, and the last results stay.
"""

import json
from pathlib import Path

from benches.measure import ROOT, Subject
from evals.numglue import count_decisions
from evals.tools import solve_exercise
from taiwa.kernel.messages import ToolResult
from taiwa.tools.registry import builtin_tools
from tests.fuzzing import VALID_INPUTS, fuzz_tools

FOLDER = ROOT.parent / "shared" / "data"
INPUTS = 10_000
MOST_LINES = 200_000


def called(name: str, text: str) -> ToolResult:
    """Call a built-in tool by name with its one text argument."""
    needed, _ = VALID_INPUTS[name]
    return builtin_tools()[name].call({needed: text})


def exercises(subject: Subject) -> None:
    rows = [json.loads(line) for line in read("chemistry.jsonl")]
    wrong = [worked.id for worked in (solve_exercise(row, called) for row in rows) if not worked.right]
    subject.row("textbook items", len(rows), "", f"{len(rows) - len(wrong)} right")
    subject.target("textbook items not solved correctly", len(wrong), 0, "")


def questions(subject: Subject) -> None:
    found = count_decisions(map(json.loads, read("numglue_task2.jsonl")))
    note = f"{found.decided} contain everything that a tool needs, {found.right} of them right, {len(found.label_errors)} labelled wrongly"
    subject.row("questions of NumGLUE, Task 2", found.questions, "", note)
    subject.target("questions whose answer differs from the label", len(found.misses), 0, "")


def odd_inputs(subject: Subject) -> None:
    for name in builtin_tools():
        found = fuzz_tools(name, INPUTS)
        subject.row(f"{name}: unusual inputs", found.inputs, "", f"{found.answered} answered, the others refused")
        subject.target(f"{name}: neither answered nor refused", len(found.faults), 0, "")
        subject.target(f"{name}: lines of Python that the costliest input runs", found.most_lines, MOST_LINES, "")


def read(name: str) -> list[str]:
    return Path(FOLDER / name).read_text(encoding="utf-8").splitlines()


def main() -> None:
    subject = Subject("reach", "the built-in tools on exercises, and on ten thousand unusual inputs each")
    there = FOLDER.is_dir()
    if there:
        exercises(subject)
        questions(subject)
    odd_inputs(subject)
    if there:
        subject.write()
    else:
        print(f"  no exercises at {FOLDER}: nothing is written down")
