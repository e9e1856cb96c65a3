"""Run all benchmarks, or the named ones.

python -m benches [NAME …]
"""

import argparse
import importlib

NAMES = (
    "decoding",
    "effects",
    "gguf",
    "guides",
    "importing",
    "interrupts",
    "kill",
    "lines",
    "storing",
    "memory",
    "page",
    "rationales",
    "reach",
    "replays",
    "retrieval",
    "server",
    "server_wires",
    "tokens",
    "tools",
    "turns",
    "typed",
)

EVALUATIONS = ("dialogues",)
"""Benchmarks whose results are summaries of `python -m evals`, in a folder of their own."""


def main() -> None:
    known = (*NAMES, *EVALUATIONS)
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}; without any, all of them")
    chosen = parser.parse_args().names
    if unknown := [name for name in chosen if name not in known]:
        parser.error(f"unknown benchmark {unknown[0]!r}; choose one of {', '.join(known)}")
    for name in chosen or known:
        print(f"\n{name}", flush=True)
        importlib.import_module(f"benches.{name}").main()


main()
