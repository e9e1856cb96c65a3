"""Run every job with every library, and record its number of lines.

python -m benches.lines
"""

import ast
import inspect
import os
import tempfile
import textwrap
from collections.abc import Callable
from contextlib import chdir
from importlib import import_module
from pathlib import Path

from benches.lines.order import Order
from benches.lines.server import serving
from benches.measure import Subject

TOOLS = {
    "taiwa": "with_taiwa",
    "llm": "with_llm",
    "instructor": "with_instructor",
    "pydantic-ai": "with_pydantic_ai",
}
WORDS = {
    "question": "one question",
    "stream": "stream an answer",
    "value": "a typed value with one repair",
    "choice": "one of two words",
    "tools": "a question with a tool",
    "conversation": "two turns of a conversation",
    "branch": "edit the second turn",
    "resumed": "a stored conversation, continued by name",
    "at_once": "twenty questions in parallel",
    "budget": "a conversation with a cost limit",
    "without_a_server": "a test without a server",
}
HEARD = "I remember: "


def expected(job: str, found: object) -> bool:
    """Return true if a job gave the expected result."""
    wanted: dict[str, object] = {
        "question": f"{HEARD}What is a monad?",
        "stream": f"{HEARD}What is a monad?",
        "value": Order(drink="tea", cups=2),
        "choice": "positive",
        "conversation": f"{HEARD}I am Aiko. Who am I?",
        "branch": f"{HEARD}I am Aiko. I live in Kyoto.",
        "resumed": f"{HEARD}I am Aiko. Who am I?",
        "at_once": [f"{HEARD}Hello {n}" for n in range(20)],
        "without_a_server": "Hello!",
    }
    if isinstance(found, Order):  # instructor returns a class derived from it
        found = Order(**found.model_dump())
    if job in ("budget", "tools"):
        return {"budget": "cost", "tools": "3.5"}[job] in str(found)
    return found == wanted[job]


def lines_of(job: Callable[[], object]) -> int:
    """Return the number of non-empty lines in the body of a job."""
    source = textwrap.dedent(inspect.getsource(job))
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.FunctionDef)
    return sum(bool(line.strip()) for line in source.splitlines()[body.body[0].lineno - 1 :])


def main() -> None:
    """Run the jobs, count their lines and write the result."""
    subject = Subject(
        "lines",
        "lines of Python, including imports, without blank lines",
        peers=("llm", "instructor", "pydantic-ai-slim", "openai"),
    )
    with serving() as address, tempfile.TemporaryDirectory() as folder, chdir(folder):
        os.environ |= {
            "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": address, "LLM_USER_PATH": folder,
            "TAIWA_MODEL": f"{address}#gpt-5-mini", "TAIWA_STORE": f"{folder}/taiwa.db", "XDG_CONFIG_HOME": folder,
            "TAIWA_CAPABILITIES": f'{{"{address}#gpt-5-mini": {{"tools": true}}}}', "NO_PROXY": "127.0.0.1",
        }  # fmt: skip
        Path("default_model.txt").write_text("gpt-4.1-mini", encoding="utf-8")
        jobs = {tool: import_module(f"benches.lines.{module}").JOBS for tool, module in TOOLS.items()}
        for job, words in WORDS.items():
            ours = 0
            for tool, known in jobs.items():
                if job not in known:
                    continue
                found = known[job]()
                if not expected(job, found):
                    raise SystemExit(f"{tool}, {job}: {found!r}")
                count = lines_of(known[job])
                ours = ours or count
                subject.row(f"{words}: {tool}", count, "lines", ours=0 if tool == "taiwa" else ours)
    subject.write()


if __name__ == "__main__":
    main()
