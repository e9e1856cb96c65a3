"""Run the fuzzers and the property tests for a given time, each round with a fresh seed: `make explore EXPLORE_SECONDS=600`.

A file of tests is drawn at a time, so that a short run does not always try the same ones. The exit code is 1 if a test failed.
"""

import argparse
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent
DRAWS = re.compile(r"@given\(|mark\.fuzz|fuzz_tools")


def files() -> list[Path]:
    """The files with tests that draw their inputs."""
    return [path for path in sorted(TESTS.rglob("test_*.py")) if DRAWS.search(path.read_text(encoding="utf-8"))]


def explore(seconds: float, found: list[Path]) -> int:
    """Run random files with random seeds until the time is over; return how many runs failed."""
    random, end, failed = secrets.SystemRandom(), time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        path, seed = random.choice(found), secrets.randbits(32)
        command = [
            sys.executable, "-m", "pytest", "-q", "-x", "-m", "hypothesis or fuzz", "--hypothesis-profile", "explore",
            f"--hypothesis-seed={seed}", str(path),
        ]  # fmt: skip
        environment = os.environ | {"EXPLORE_SEED": str(seed), "EXPLORE_ROUNDS": "2000"}
        try:
            done = subprocess.run(command, check=False, env=environment, timeout=left, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            break
        name = path.relative_to(TESTS)
        if done.returncode not in (0, 5):  # 5: no test of the file is marked
            failed += 1
            print(f"{name} FAILED with EXPLORE_SEED={seed}\n{done.stdout[-4_000:]}", flush=True)  # noqa: T201  (a program)
        else:
            print(f"{name}: {done.stdout.splitlines()[-1] if done.stdout else ''} (seed {seed})", flush=True)  # noqa: T201
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    sys.exit(1 if explore(parser.parse_args().seconds, files()) else 0)
