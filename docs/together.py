"""Record the four apps of examples/ with a real model: `python docs/together.py MODEL.gguf` writes docs/real/together.out.

The output is that of one run, unedited but for progress, times and hashes; `#~` lines say which model, file and versions it was.
"""

import os
import re
import subprocess
import sys
import tempfile
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE / "real" / "together.out"
TALKS = {
    "travel": (
        ("say", "examples/travel-desk/travel-desk.md", "We are two and would like to go to Brenbay for three nights, not in a hostel."),
        ("say", "-c", "What does that cost in all?"),
        ("state",), ("why", "inn"),
    ),
    "laboratory": (
        ("say", "examples/lab-notebook/lab-notebook.md", "What is the molar mass of CuSO4·5H2O?"),
        ("say", "-c", "And how many grams are 0.2 mol of it?"),
        ("state",), ("why", "results"),
    ),
    "intake": (
        ("say", "examples/intake/intake.md", "I am Mina Ota and I have a sore throat."),
        ("say", "-c", "yesterday"), ("say", "-c", "1988-02-29"), ("state",), ("undo",), ("say", "-c", "1978-02-28"), ("replay",),
    ),
    "support": (
        ("say", "examples/support-desk/support-desk.md", "The red lamp of my K2 blinks. What does that mean?"),
        ("say", "-c", "May I descale it with vinegar?"),
        ("state",), ("why", "kettle"),
    ),
}  # fmt: skip
PROGRESS = re.compile(r"(?:loading|reading the prompt)\b.*")
NORMALISED = ((r"\d+ ms\b", "… ms"), (r"\b[0-9a-f]{12}\b", "…"))


def main(model: Path) -> None:
    """Run the talks, each in a store of its own."""
    with model.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    lines = [f"#~ {model.name}, sha256 {digest}, xllamacpp {version('xllamacpp')}"]
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"TAIWA_CONFIG": f"{folder}/config.yaml", "TAIWA_MODEL": f"gguf:{model}", "TAIWA_LANG": "en"}
        for name, commands in TALKS.items():
            env["TAIWA_STORE"] = f"{folder}/{name}.db"
            lines.append(f"#== {name}")
            _run(("apps", "confirm", commands[0][1], "--yes"), env)
            for command in commands:
                quoted = " ".join(f'"{word}"' if " " in word else word for word in command)
                lines += [f"$ taiwa {quoted}", *_run(command, env), ""]
            lines.pop()
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _run(command: tuple[str, ...], env: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "taiwa", *command], env=env, cwd=HERE.parent, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    text = done.stdout.replace(env["TAIWA_MODEL"], "gguf:MODEL.gguf")
    for pattern, shown in NORMALISED:
        text = re.sub(pattern, shown, text)
    return [line.rstrip() for line in text.rstrip().splitlines() if not PROGRESS.fullmatch(line)]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
