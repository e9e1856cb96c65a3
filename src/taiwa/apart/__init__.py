"""Work done apart: in a process that is killed, with all that it started, when its bounds are reached."""

from taiwa.apart.worker import Bounds, Worker

__all__ = ["Bounds", "Worker"]
