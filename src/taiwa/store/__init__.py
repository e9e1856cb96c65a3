"""Stored conversations: hashed nodes, named sessions, journals and costs, in a SQLite file or on a PostgreSQL server.

`Store.open(path)` is the entry point.
"""

from taiwa.store.batches import BatchItem, item_key
from taiwa.store.maintenance import DeleteResult, FsckProblem, GcResult
from taiwa.store.nodes import Checkout
from taiwa.store.refs import Ref, ReflogEntry, check_name, conflict_message
from taiwa.store.runs import Axis, CallRecord, CostLine, Run
from taiwa.store.search import Excerpt, Hit
from taiwa.store.store import Store
from taiwa.store.users import UserListing

__all__ = [
    "Axis",
    "BatchItem",
    "CallRecord",
    "Checkout",
    "CostLine",
    "DeleteResult",
    "Excerpt",
    "FsckProblem",
    "GcResult",
    "Hit",
    "Ref",
    "ReflogEntry",
    "Run",
    "Store",
    "UserListing",
    "check_name",
    "conflict_message",
    "item_key",
]
