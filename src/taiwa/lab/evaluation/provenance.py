"""Where figures come from: which program, in which state, measured them."""

import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["git", "program_version"]

SOURCE = Path(__file__).parent
SECONDS = 10


def program_version() -> str:
    """The version of this program; run from a checkout also its commit, with `+` where files of the package differ from it."""
    try:
        released = version("taiwa")
    except PackageNotFoundError:
        released = "unknown"
    commit = git(SOURCE, "rev-parse", "--short=12", "HEAD")
    # A wheel in somebody else's checkout has the commit of a stranger: the file must be one of that repository.
    if not commit or not git(SOURCE, "ls-files", "--error-unmatch", Path(__file__).name):
        return released
    changed = git(SOURCE, "status", "--porcelain", "--untracked-files=no", "--", str(SOURCE.parents[1]))
    return f"{released} {commit}{'+' if changed else ''}"


def git(folder: Path, *words: str) -> str:
    """What git says of a folder; '' where there is no git, or no repository."""
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
