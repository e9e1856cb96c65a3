"""Word problems with a number as the answer, by taiwa with its tools and without, the openai client and pydantic-ai.

An answer is right if its number is within one percent: data sets differ in their atomic weights. Limits of tokens hold for a whole
rationale of taiwa, and for each call of the other ways.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

from evals.real.peers import Peers
from evals.real.task import (
    Found,
    RealTask,
    data_set,
    sample,
    tool_report,
)
from taiwa.client.arguments import solve_tools
from taiwa.client.programs import solve_program
from taiwa.evals.data import DataSet, Item, question_items, read_rows
from taiwa.evals.report import parse_number
from taiwa.evals.run import Job
from taiwa.flows.solve.rationale import SolveLimits
from taiwa.flows.solve.solve import SolveOptions, last_number
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.tools.expressions import calculate, spell_near

DEFAULT_WAYS = ("taiwa", "taiwa:no-tools", "openai", "pydantic-ai")
WAYS = (*DEFAULT_WAYS, "taiwa:prefill", "taiwa:stop", "taiwa:native")
TOLERANCE = Fraction(1, 100)
INSTRUCTION = "Think step by step. End with a line of the form Answer: N, where N is a number without a unit."
ANSWER = re.compile(r"answer\s*[:：]\s*(?P<rest>[^\n]*\d[^\n]*)", re.IGNORECASE)


def read_problems(paths: Sequence[Path], limit: int | None, seed: int) -> DataSet:
    """Read questions whose answers are numbers, `limit` of each file.

    Raises:
        InputError: a file cannot be used, or holds no such question.
    """
    digests: list[str] = []
    items: list[Item] = []
    for path in paths:
        raw, rows = read_rows(path)
        digests.append(sha256(raw).hexdigest())
        found = [each for each in question_items(path, rows) if parse_number(each.gold) is not None]
        if not found:
            raise InputError(f"{path} holds no question whose answer is a number")
        items += [replace(each, kind=path.stem) for each in sample(found, limit, seed)]
    return data_set(paths, digests, items)


def is_near(answer: str, gold: str) -> bool:
    """Return whether two numbers agree within the tolerance.

    >>> is_near("624.7", "621"), is_near("630", "621"), is_near("", "621")
    (True, False, False)
    """
    stated, right = parse_number(answer), parse_number(gold)
    return stated is not None and right is not None and abs(stated - right) <= TOLERANCE * abs(right)


def stated_answer(text: str) -> str:
    """Return the number of the last line with `Answer:`, else the last number of the text.

    >>> stated_answer("It is 3.\\nAnswer: 1,250 g"), stated_answer("So 7 are left."), stated_answer("None.")
    ('1250', '7', '')
    """
    lines = [*ANSWER.finditer(text)]
    return last_number(lines[-1]["rest"]) if lines else last_number(text)


def calculator(expression: str) -> str:
    """Calculate an arithmetic expression, such as 2*(3+4)/5, and return its value."""
    try:
        return spell_near(calculate(expression))
    except ToolError as error:
        return f"error: {error.message}"


@dataclass(kw_only=True)
class SolveTask(RealTask):
    """The task of `solve`."""

    name: str = "solve"

    async def by_taiwa(self, job: Job, limits: UsageLimits) -> tuple[Found, RunUsage]:
        """Solve with the built-in tools and all defaults; a variant is a tool mode, or `no-tools`."""
        backend, _, variant = job.setting.partition(":")
        bounds = SolveLimits(max_tokens=self.real.max_tokens)
        options = SolveOptions(sampling=self.real.sampling, limits=bounds)
        tools = () if variant == "no-tools" else solve_tools(())
        if tools and variant:
            options = replace(options, tool_mode=variant)  # type: ignore[arg-type]
        program = solve_program(job.item.text, tools, options)
        done = await self.ours(backend).runtime(limits, tools=tools).run_result(program)
        value = done.value
        found: Found = {
            "valid": bool(value.answer), "answer": value.answer, "text": value.text, "tool_calls": len(value.calls),
            "ending": value.ending,
        }  # fmt: skip
        return found, done.spent

    async def by_peer(self, job: Job, peers: Peers) -> Found:
        """Solve by chain of thought, or with a calculator as a tool of an agent."""
        if job.setting == "openai":
            messages = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": job.item.text}]
            text = await peers.complete(messages)
        else:
            text = str(await peers.agent(job.item.text, INSTRUCTION, tools=(calculator,)))
        answer = stated_answer(text)
        return {"valid": bool(answer), "answer": answer, "text": text}

    def score(self, item: Item, found: Found) -> Found:
        """Compare the numbers."""
        return {"right": is_near(str(found.get("answer", "")), item.gold)}


REPORT = tool_report(
    "any number %",
    "valid",
    "Right: the number within one percent. Intervals at 95 %: Wilson's for shares, of 1,000 draws of the items for means.",
)
