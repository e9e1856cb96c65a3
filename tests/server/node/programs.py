"""Programs in JavaScript that talk to a running server; `make test` installs what they need."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OLDEST = 18
INSTALLED = HERE / "node_modules" / "@ag-ui" / "client"


def run_node(*arguments: str, given: str = "", timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run node in this folder; skip where it is not installed or older than 18, and fail there on CI."""
    node = shutil.which("node")
    if node is None or not INSTALLED.is_dir() or _version(node) < OLDEST:
        missing = f"no node {OLDEST} with the packages of tests/server/node: install nodejs and npm, then run make test"
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
        check=False,
    )


@cache
def _version(node: str) -> int:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=300, check=True).stdout
    return int(told.removeprefix("v").partition(".")[0])
