"""Run the benchmarks: all of them, or those named.

python -m benches [NAME …]
"""

import importlib
import sys

NAMES = ("decoding", "effects", "guides", "importing", "interrupts", "storing", "memory", "rationales", "reach", "replays", "retrieval", "tokens", "tools", "turns", "typed")


def main() -> None:
    unknown = [name for name in sys.argv[1:] if name not in NAMES]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    for name in sys.argv[1:] or NAMES:
        print(f"\n{name}", flush=True)
        importlib.import_module(f"benches.{name}").main()


main()
