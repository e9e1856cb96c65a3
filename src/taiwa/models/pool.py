"""Calls spread over several connection pools.

A pool of the transport looks at all its connections twice per call, so a hundred calls at once cost several times what
ten cost. Here many calls take many pools, and few calls share the first, whose connections are warm.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Pool", "Shard", "Shards"]

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Pool:
    """How connections are kept: `width` calls share one of at most `shards` pools; idle ones live for `idle` seconds."""

    shards: int = 16
    width: int = 8
    idle: float = 20.0


@dataclass(slots=True)
class Shard(Generic[P]):
    """One pool and the number of calls on it."""

    pool: P
    calls: int = 0


class Shards(Generic[P]):
    """Pools for one server; a call takes the first that is not full, so that few calls keep few connections warm."""

    def __init__(self, make: Callable[[], P], terms: Pool) -> None:
        self._make = make
        self._terms = terms
        self._shards: list[Shard[P]] = []
        self._lock = threading.Lock()

    def take(self) -> Shard[P]:
        """Choose the pool for a call, which must be given back."""
        with self._lock:
            shard = next((shard for shard in self._shards if shard.calls < self._terms.width), None)
            if shard is None and len(self._shards) < self._terms.shards:
                shard = Shard(self._make())
                self._shards.append(shard)
            elif shard is None:
                shard = min(self._shards, key=lambda one: one.calls)
            shard.calls += 1
            return shard

    def give_back(self, shard: Shard[P]) -> None:
        """End a call."""
        with self._lock:
            shard.calls -= 1

    def clear(self) -> list[P]:
        """Forget all pools and return them, to be closed."""
        with self._lock:
            pools = [shard.pool for shard in self._shards]
            self._shards.clear()
        return pools
