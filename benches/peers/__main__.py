"""Run turns in many concurrent conversations, and print the cost per turn in this process.

    python -m benches.peers NAME ADDRESS AT_ONCE TURNS [AT_ONCE TURNS …]

The system text is read from standard input. Each pair prints one line: CPU milliseconds per turn, turns per second. A
conversation has five turns, then the next one begins.
"""

import asyncio
import importlib
import json
import sys
import time

from benches.model_server import ANSWER
from benches.peers import Begin, Dialogue

TURNS_EACH = 5
USER = "I have three free days in November and thought of Kyoto. When should I go to see the maples?"


async def one_after_another(talks: list[Dialogue], turns: int) -> None:
    """Run the turns of one client."""
    for turn in range(turns):
        said = await talks[turn // TURNS_EACH].say(USER)
        assert said.startswith(ANSWER), said


async def all_at_once(begin: Begin, together: int, turns: int) -> tuple[float, float]:
    """Return CPU milliseconds per turn and turns per second; connections are opened before the clock starts."""
    each = turns // together
    talks = [[begin() for _ in range(-(-each // TURNS_EACH))] for _ in range(together)]
    await asyncio.gather(*(one_after_another([begin()], 2) for _ in range(together)))
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(one_after_another(mine, each) for mine in talks))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return cpu / (each * together) * 1e3, each * together / wall


async def main() -> None:
    name, address, *sizes = sys.argv[1:]
    begin: Begin = importlib.import_module(f"benches.peers.{name}").open_talks(address, sys.stdin.read())
    for together, turns in zip(sizes[::2], sizes[1::2], strict=True):
        print(json.dumps(await all_at_once(begin, int(together), int(turns))), flush=True)


asyncio.run(main())
