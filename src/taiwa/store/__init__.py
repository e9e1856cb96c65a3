"""Conversations on disk: one SQLite file of hashed nodes, names for them, journals, and a bill.

`Store.open(path)` is the door. Only this package knows of SQL.
"""

from taiwa.store.bill import Axis as Axis
from taiwa.store.bill import Line as Line
from taiwa.store.fsck import Fault as Fault
from taiwa.store.items import Item as Item
from taiwa.store.items import item_key as item_key
from taiwa.store.names import check_name as check_name
from taiwa.store.refs import Logged as Logged
from taiwa.store.refs import Ref as Ref
from taiwa.store.refs import moved_on as moved_on
from taiwa.store.runs import Call as Call
from taiwa.store.runs import Run as Run
from taiwa.store.search import Hit as Hit
from taiwa.store.snaps import Checkout as Checkout
from taiwa.store.store import Store as Store
from taiwa.store.upkeep import Forgotten as Forgotten
from taiwa.store.upkeep import Swept as Swept
from taiwa.store.words import Excerpt as Excerpt
