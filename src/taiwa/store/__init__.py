"""Conversations on disk: one SQLite file of hashed nodes, names for them, journals, and a bill.

`Store.open(path)` is the door. Only this package knows of SQL.
"""

from taiwa.store.refs import Logged as Logged
from taiwa.store.refs import Ref as Ref
from taiwa.store.runs import Call as Call
from taiwa.store.runs import Run as Run
from taiwa.store.store import Store as Store
