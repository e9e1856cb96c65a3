"""Run the benchmarks: all of them, or those named.

python -m benches [NAME …]
"""

import importlib
import sys

NAMES = (
    "builtin",
    "decoding",
    "effects",
    "guides",
    "importing",
    "interrupts",
    "kill",
    "lines",
    "storing",
    "memory",
    "rationales",
    "reach",
    "replays",
    "retrieval",
    "server",
    "tokens",
    "tools",
    "turns",
    "typed",
)

EVALUATIONS = ("dialogues",)
"""Their results are summaries of `python -m evals`, in a folder of their own."""


def main() -> None:
    known = (*NAMES, *EVALUATIONS)
    unknown = [name for name in sys.argv[1:] if name not in known]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(known)}")
    for name in sys.argv[1:] or known:
        print(f"\n{name}", flush=True)
        importlib.import_module(f"benches.{name}").main()


main()
