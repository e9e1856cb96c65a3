"""Solve word problems with a program: the model plans the calls, and the program checks and runs them.

python examples/sums.py "What are 12 boxes of 24 eggs, less 5 percent that break?"
"""

import sys

import taiwa
from taiwa.programs import PlanResult, execute_plan


class Sums:
    """Arithmetic."""

    def add(self, x: float, y: float) -> float:
        """Add two numbers."""
        return x + y

    def subtract(self, x: float, y: float) -> float:
        """Take y from x."""
        return x - y

    def multiply(self, x: float, y: float) -> float:
        """Multiply two numbers."""
        return x * y

    def divide(self, x: float, y: float) -> float:
        """Divide x by y."""
        return x / y

    def percent(self, part: float, whole: float) -> float:
        """Return a percentage of a number."""
        return whole * part / 100


SUMS = taiwa.Api(Sums, undeclared="read")


def solve(text: str) -> taiwa.Program[PlanResult]:
    """Plan a calculation, check it, and run it."""
    plan = yield from taiwa.programs.extract(SUMS, text)
    return (yield from execute_plan(SUMS, plan.value))


if __name__ == "__main__":
    with taiwa.exit_on_error():
        question = " ".join(sys.argv[1:]) or "What are 12 boxes of 24 eggs, less the 5 percent that break?"
        done = taiwa.run(solve(question), tools=SUMS.bind(Sums()))
        for each in done.calls:
            print(f"{each.call.function}({', '.join(map(str, each.arguments.values()))}) = {each.result}")
