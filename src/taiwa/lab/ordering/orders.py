"""The evaluation of the order desk: each request in a conversation of its own, as `taiwa say order --no-log` would have it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from taiwa.apps.catalogue import find
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, begin
from taiwa.flows.asking import first_request
from taiwa.flows.chat import Reply, say
from taiwa.kernel.arun import AsyncRuntime
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError
from taiwa.kernel.ledger import Limits
from taiwa.kernel.protocols import Tool
from taiwa.kernel.records import Json, canonical
from taiwa.kernel.values import Request
from taiwa.lab.evaluation.items import DataSet, Item
from taiwa.lab.evaluation.readers import read_rows
from taiwa.lab.evaluation.running import Job, Measured
from taiwa.lab.evaluation.voiced import Voiced
from taiwa.lab.ordering.dishes import Dish, dishes_of, match, merged
from taiwa.lab.ordering.key import Key, Readings
from taiwa.settings import Settings
from taiwa.talk.turn import Speaker, Voice
from taiwa.tools import find as find_tools

__all__ = ["APP", "SETTING", "Ordering", "best_of", "counted_of", "read_requests", "readings_of"]

APP, SETTING = "order", "order"
TEXTS, KINDS = ("input", "text"), ("domain", "kind")


@dataclass
class Ordering(Voiced):
    """The work of this evaluation. A delta that cannot be read is asked for again at most `repairs` times."""

    key: str
    chosen: Settings | None = None
    repairs: int = 0
    speaker: Speaker | None = None
    name: str = "order"
    _voice: Voice | None = field(default=None, init=False, repr=False)
    _app: App | None = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """An open app stays here, too."""
        return {**super().__getstate__(), "_app": None}

    @property
    def app(self) -> App:
        """The order desk."""
        if self._app is None:
            self._app = find(APP).opened({})
        return self._app

    @property
    def voice(self) -> Voice:
        """The model, opened where it is first needed."""
        found = self.opened(self.app)
        assert found is not None, "an evaluation of orders has a model, or settings that name one"
        return found

    @property
    def settings(self) -> tuple[str, ...]:
        """The one setting there is."""
        return (SETTING,)

    @property
    def options(self) -> Mapping[str, Json]:
        """All that a row depends on beside the request and the model."""
        return {"app": self.app.hash, "key": self.key, "repairs": self.repairs}

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the desk."""
        return find_tools(self.app.tools)

    def program(self, job: Job) -> Program[tuple[Reply, Conversation]]:
        """One turn, the first of a conversation."""
        specs = [tool.spec for tool in self.tools]
        return say(job.item.text, repairs=self.repairs, tools=specs)(begin(self.app))

    def first_request(self, job: Job) -> Request:
        """Give the request that is sent first for a job; nothing is sent."""
        return first_request(self.program(job), self.voice.model.abilities)

    async def measure(self, job: Job, limits: Limits) -> Measured:
        """Say one request, and compare what the desk then holds with what is right."""
        runtime = AsyncRuntime(self.voice.model, tools=self.tools, limits=limits, price=self.voice.price)
        done = await runtime.done(self.program(job))
        reply, after = done.value
        heard = dishes_of(after.state.get("items"))
        told: dict[str, Json] = {
            "sound": not reply.warnings, "warnings": [*reply.warnings], "answer": reply.text,
            "items": after.state.get("items"),
        }  # fmt: skip
        return Measured({**told, **best_of(readings_of(job.item), heard)}, done.spent)


def best_of(readings: Readings, heard: tuple[Dish, ...]) -> dict[str, Json]:
    """Count how an order agrees with the reading that it agrees with best, the first of them where several are alike."""
    return max((counted_of(wanted, heard) for wanted in readings), key=_agreeing)


def _agreeing(found: Mapping[str, Json]) -> tuple[bool, int, int]:
    numbers = {name: number for name, number in found.items() if isinstance(number, int)}
    faults = numbers["wanted"] + numbers["heard"] - 2 * numbers["counted"]
    return found["whole"] is True, -faults, numbers["sizes"] + numbers["options"]


def counted_of(wanted: tuple[Dish, ...], heard: tuple[Dish, ...]) -> dict[str, Json]:
    """Count how two orders agree. Of lines with the right name and quantity also how many sizes and options are right."""
    wanted, heard = merged(wanted), merged(heard)
    found = [each for each in match(wanted, heard) if each is not None]
    counted = [each for each in found if each.quantity]
    return {
        "wanted": len(wanted), "heard": len(heard), "named": len(found), "counted": len(counted),
        "sizes": sum(each.size for each in counted), "options": sum(each.options for each in counted),
        "whole": len(wanted) == len(heard) and len(counted) == len(wanted) and all(each.whole for each in counted),
    }  # fmt: skip


def read_requests(path: Path, key: Key, kinds: Collection[str] = ()) -> tuple[DataSet, tuple[str, ...]]:
    """Read the requests of a file that the key knows, with `kinds` only those of these domains, and what is to be said of it.

    Raises:
        InputError: the file or a row of it cannot be used, or none is left.
    """
    raw, rows = read_rows(path)
    items: list[Item] = []
    lines: dict[str, int] = {}
    unknown = twice = 0
    for line, row in rows:
        if kinds and _kind(row) not in kinds:
            continue
        item = _item(f"{path}:{line}", line, row, key)
        if item.id in lines:
            raise InputError(f"{path}:{line}: the id {item.id!r} is that of line {lines[item.id]}, too")
        lines[item.id] = line
        twice += item.id in key.duplicates
        unknown += item.id not in key.orders and item.id not in key.duplicates
        items += [item] if item.id in key.orders else []
    if not items:
        more = f" of {', '.join(sorted(kinds))}" if kinds else ""
        raise InputError(f"{path} holds no request{more} that {key.name} has an order for")
    notes = [f"{unknown:,} requests have no order in {key.name} and are left out."] if unknown else []
    notes += [f"{twice:,} requests have the words of another, which counts."] if twice else []
    return DataSet(path.name, sha256(raw).hexdigest(), tuple(items)), tuple(notes)


def _item(where: str, line: int, row: Mapping[str, Json], key: Key) -> Item:
    name, text = row.get("id"), next((row[field] for field in TEXTS if field in row), None)
    if isinstance(name, bool) or not isinstance(name, (int, str)) or name == "":
        raise InputError(f"{where}: the field 'id' is {'missing' if name is None else 'neither a text nor a number'}")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{where}: the field 'input' is {'missing' if text is None else 'no text'}")
    wanted: list[Json] = [[dish.record() for dish in reading] for reading in key.orders.get(str(name), ())]
    return Item(str(name), text, canonical(wanted).decode(), _kind(row), line, {"wanted": wanted})


def _kind(row: Mapping[str, Json]) -> str:
    return next((str(row[field]) for field in KINDS if row.get(field)), "")


def readings_of(item: Item) -> Readings:
    """The lines that a request orders, in every reading that is right."""
    readings = item.more["wanted"]
    assert isinstance(readings, (list, tuple))
    return tuple(_recorded(lines) for lines in readings)


def _recorded(lines: Json) -> tuple[Dish, ...]:
    found: list[Dish] = []
    for line in lines if isinstance(lines, (list, tuple)) else ():
        assert isinstance(line, Mapping)
        names, options, quantity = line["names"], line["options"], line["quantity"]
        assert isinstance(names, (list, tuple))
        assert isinstance(options, (list, tuple))
        assert isinstance(quantity, int)
        found.append(Dish(tuple(map(str, names)), quantity, str(line["size"]), tuple(map(str, options))))
    return tuple(found)
