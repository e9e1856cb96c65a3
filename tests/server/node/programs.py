"""Programs in JavaScript that talk to a running server; `make test` installs what they need."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OLDEST = 18
INSTALLED = HERE / "node_modules" / "openai"


def run_node(
    *arguments: str, given: str = "", timeout: float = 300, oldest: int = OLDEST, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run node in this folder; skip where it is older than `oldest` or not installed, which fails on CI."""
    node = shutil.which("node")
    if node is not None and OLDEST <= _version(node) < oldest:
        pytest.skip(f"these packages need node {oldest}, and {node} is older")
    if node is None or not INSTALLED.is_dir() or _version(node) < oldest:
        missing = f"no node {oldest} with the packages of tests/server/node: install nodejs and npm, then run make test"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return subprocess.run(
        [node, *arguments],
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        cwd=HERE,
        env=os.environ | (env or {}),
        check=False,
    )


@cache
def _version(node: str) -> int:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=300, check=True).stdout
    return int(told.removeprefix("v").partition(".")[0])
