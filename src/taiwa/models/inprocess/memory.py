"""The memory that a model may take."""

import os
from pathlib import Path

GB = 1e9
CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return the bytes of memory that this process may still allocate; None if the system does not report them."""
    limits: list[int] = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
        limit, used = (CGROUP / "memory.max").read_text().strip(), (CGROUP / "memory.current").read_text().strip()
        if limit.isdecimal():
            limits.append(int(limit) - int(used))
    except OSError:
        pass
    if not limits and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)
