"""Print the pins of constraints.txt: what pip resolves today for the package with all of its extras.

A dry run from nothing (`--ignore-installed`) resolves what a fresh environment would get, without writing one; for the first Python
3.11, since a release may require a later one than that of Debian.
"""

import json
import subprocess
import sys

HEAD = (
    "# Exact versions of everything a set-up installs, on Linux and Python 3.11. Written by `make lock`; do not edit."
)


def main() -> None:
    """Resolve, then print one `name==version` a line, sorted, so that a change of one pin is a change of one line."""
    resolve = [sys.executable, "-m", "pip", "--quiet", "install", "--dry-run", "--ignore-installed"]
    oldest = [
        "--python-version",
        "3.11.0",
        "--only-binary",
        ":all:",
    ]  # pip demands wheels for another Python than its own
    what = ["--no-build-isolation", "--report", "-", "pip", ".[dev,bench]"]
    report = json.loads(subprocess.run([*resolve, *oldest, *what], check=True, stdout=subprocess.PIPE).stdout)

    # A build for one kind of machine (`2.13.0+cpu`) satisfies the pin of its version; a pin of the build, no other machine.
    found = [(item["metadata"]["name"], item["metadata"]["version"].partition("+")[0]) for item in report["install"]]
    pins = [f"{name}=={version}" for name, version in found if name != "taiwa"]

    print("\n".join([HEAD, *sorted(pins, key=str.lower)]))


if __name__ == "__main__":
    main()
