"""The evaluation of the app `order`: each request in a conversation of its own, compared with a key."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from evals.ordering.key import OrderKey, Readings
from evals.ordering.order_lines import OrderLine, match_lines, merge_lines, order_lines
from taiwa.apps.catalog import load_app
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, begin
from taiwa.evals.data import DataSet, Item, read_rows
from taiwa.evals.report import (
    Bar,
    Chart,
    Column,
    Point,
    Proportion,
    Report,
    count_errors,
    group_by_setting,
    interval_json,
    percent,
    plain,
    share_marked,
    sum_field,
    usage_and_cost,
    with_interval,
)
from taiwa.evals.run import EvalRow, Evaluation, Job, Measurement, ModelTask
from taiwa.flows.turn import Reply, say
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError
from taiwa.kernel.execution import first_request
from taiwa.kernel.messages import Request
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json, canonical
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.sessions.commit_turn import PricedModel
from taiwa.tools.registry import find_tools

__all__ = [
    "APP",
    "SETTING",
    "OrderTask",
    "best_reading",
    "compare_orders",
    "item_readings",
    "order_chart",
    "order_line",
    "order_report",
    "read_requests",
]

APP, SETTING = "order", "order"
TEXTS, KINDS = ("input", "text"), ("domain", "kind")


@dataclass
class OrderTask(ModelTask):
    """The task of `order`. An invalid delta is repaired in at most `repairs` rounds."""

    key: str
    repairs: int = 0
    name: str = "order"
    _app: App | None = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """Omit the opened model and app when pickled."""
        return {**super().__getstate__(), "_app": None}

    @property
    def app(self) -> App:
        """The app `order`."""
        if self._app is None:
            self._app = load_app(APP).with_params({})
        return self._app

    @property
    def priced_model(self) -> PricedModel | None:
        """Return the model with its prices, opened at first use."""
        return self.open(self.app)

    @property
    def settings(self) -> tuple[str, ...]:
        """The only setting."""
        return (SETTING,)

    @property
    def options(self) -> Mapping[str, Json]:
        """Everything that a row depends on besides request and model."""
        return {"app": self.app.hash, "key": self.key, "repairs": self.repairs}

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the app."""
        return find_tools(self.app.tools)

    def program(self, job: Job) -> Program[tuple[Reply, Conversation]]:
        """Return the first turn of a conversation."""
        specs = [tool.spec for tool in self.tools]
        return say(job.item.text, repairs=self.repairs, tools=specs)(begin(self.app))

    def first_request(self, job: Job) -> Request:
        """Return the first request of a job without sending it."""
        return first_request(self.program(job), self.required_model.capabilities)

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:
        """Send one request, and compare the resulting state with the key."""
        done = await self.runtime(limits, tools=self.tools).run_result(self.program(job))
        reply, after = done.value
        written = order_lines(after.state.get("items"))
        found: dict[str, Json] = {
            "sound": not reply.warnings, "warnings": [*reply.warnings], "answer": reply.text,
            "items": after.state.get("items"),
        }  # fmt: skip
        return Measurement({**found, **best_reading(item_readings(job.item), written)}, done.spent)


def best_reading(readings: Readings, written: tuple[OrderLine, ...]) -> dict[str, Json]:
    """Compare an order with the reading that agrees best, the first of equal ones."""
    return max((compare_orders(wanted, written) for wanted in readings), key=_agreement)


def _agreement(found: Mapping[str, Json]) -> tuple[bool, int, int]:
    numbers = {name: number for name, number in found.items() if isinstance(number, int)}
    faults = numbers["wanted"] + numbers["written"] - 2 * numbers["counted"]
    return found["whole"] is True, -faults, numbers["sizes"] + numbers["options"]


def compare_orders(wanted: tuple[OrderLine, ...], written: tuple[OrderLine, ...]) -> dict[str, Json]:
    """Count the agreements of two orders; sizes and options count for lines with the right name and quantity."""
    wanted, written = merge_lines(wanted), merge_lines(written)
    found = [each for each in match_lines(wanted, written) if each is not None]
    counted = [each for each in found if each.quantity]
    return {
        "wanted": len(wanted), "written": len(written), "named": len(found), "counted": len(counted),
        "sizes": sum(each.size for each in counted), "options": sum(each.options for each in counted),
        "whole": len(wanted) == len(written) and len(counted) == len(wanted) and all(each.whole for each in counted),
    }  # fmt: skip


def read_requests(path: Path, key: OrderKey, kinds: Collection[str] = ()) -> tuple[DataSet, tuple[str, ...]]:
    """Read the requests of a file that are in the key, with `kinds` only those domains; also return notes.

    Raises:
        InputError: the file or a row cannot be used, or no request remains.
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
            raise InputError(f"{path}:{line}: duplicate id {item.id!r}, first on line {lines[item.id]}")
        lines[item.id] = line
        twice += item.id in key.duplicates
        unknown += item.id not in key.orders and item.id not in key.duplicates
        items += [item] if item.id in key.orders else []
    if not items:
        more = f" of {', '.join(sorted(kinds))}" if kinds else ""
        raise InputError(f"{path} holds no request{more} that {key.name} has an order for")
    notes = [f"{unknown:,} requests are not in {key.name} and are skipped."] if unknown else []
    notes += [f"{twice:,} requests repeat another and are skipped."] if twice else []
    return DataSet(path.name, sha256(raw).hexdigest(), tuple(items)), tuple(notes)


def _item(where: str, line: int, row: Mapping[str, Json], key: OrderKey) -> Item:
    name, text = row.get("id"), next((row[field] for field in TEXTS if field in row), None)
    if isinstance(name, bool) or not isinstance(name, (int, str)) or name == "":
        raise InputError(f"{where}: the field 'id' is {'missing' if name is None else 'not a text or a number'}")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{where}: the field 'input' is {'missing' if text is None else 'not a text'}")
    wanted: list[Json] = [[line.to_json() for line in reading] for reading in key.orders.get(str(name), ())]
    return Item(str(name), text, canonical(wanted).decode(), _kind(row), line, {"wanted": wanted})


def _kind(row: Mapping[str, Json]) -> str:
    return next((str(row[field]) for field in KINDS if row.get(field)), "")


def item_readings(item: Item) -> Readings:
    """Return all correct readings of a request."""
    readings = item.more["wanted"]
    assert isinstance(readings, (list, tuple))
    return tuple(_read_lines(lines) for lines in readings)


def _read_lines(lines: Json) -> tuple[OrderLine, ...]:
    found: list[OrderLine] = []
    for line in lines if isinstance(lines, (list, tuple)) else ():
        assert isinstance(line, Mapping)
        names, options, quantity = line["names"], line["options"], line["quantity"]
        assert isinstance(names, (list, tuple))
        assert isinstance(options, (list, tuple))
        assert isinstance(quantity, int)
        found.append(OrderLine(tuple(map(str, names)), quantity, str(line["size"]), tuple(map(str, options))))
    return tuple(found)


SHARES = {
    "structure": "replies with a valid delta",
    "items": "lines with the right name and quantity, of those ordered",
    "precision": "lines with the right name and quantity, of those written down",
    "names": "lines with the right name, of those ordered",
    "sizes": "right sizes, of lines with the right name and quantity",
    "options": "right options, of the same",
    "whole": "requests with exactly the right lines",
}
ORDER_COLUMNS = (
    Column("setting", plain("setting")),
    Column("n", plain("n")),
    Column("structure %", with_interval("structure", "structure_interval"), figure=True),
    Column("items %", with_interval("items", "items_interval"), figure=True),
    Column("precision %", with_interval("precision", "precision_interval"), figure=True, main=False),
    Column("names %", with_interval("names", "names_interval"), figure=True, main=False),
    Column("sizes %", lambda line: percent(line.get("sizes"), 1), figure=True),
    Column("options %", lambda line: percent(line.get("options"), 1), figure=True),
    Column("wholly right %", with_interval("whole", "whole_interval"), figure=True),
    Column("failed", plain("failed")),
    Column("s/item", lambda line: "–" if (ms := line.get("ms_per_item")) is None else f"{float(str(ms)) / 1000:.2f}"),
)
ORDER_FIGURES = frozenset(
    {*SHARES, *(f"{name}_interval" for name in SHARES), "counts", "wrong"}
)  # fmt: skip
NOTES = (
    "Items: lines with the right name and quantity, of those ordered; precision: of those written down."
    " Sizes and options: of lines with the right name and quantity.",
    "Intervals: Wilson, 95 %.",
)
MAX_WRONG_LISTED = 200


def order_line(rows: Sequence[EvalRow]) -> dict[str, Json]:
    """Return the figures of rows."""
    sums = {name: sum_field(rows, name) for name in ("wanted", "written", "named", "counted", "sizes", "options")}
    shares = {
        "structure": share_marked(rows, "sound"),
        "items": Proportion(sums["counted"], sums["wanted"]),
        "precision": Proportion(sums["counted"], sums["written"]),
        "names": Proportion(sums["named"], sums["wanted"]),
        "sizes": Proportion(sums["sizes"], sums["counted"]),
        "options": Proportion(sums["options"], sums["counted"]),
        "whole": share_marked(rows, "whole"),
    }
    found: dict[str, Json] = {}
    for name, share in shares.items():
        found |= {name: share.share, f"{name}_interval": interval_json(share.interval)}
    counts: dict[str, Json] = {name: [share.count, share.of] for name, share in shares.items()}
    return {**found, "counts": counts}


def order_report(evaluation: Evaluation, notes: Sequence[str] = ()) -> Report:
    """Return the report of the rows measured so far."""
    items = {item.id: item for item in evaluation.data.items}
    rows = [_failed_as_measured(row, items[row.id]) for row in evaluation.measured]
    settings = evaluation.task.settings
    paid = group_by_setting([row for row in evaluation.rows.paid if row.setting in settings], settings)
    lines: list[Mapping[str, Json]] = []
    for name, group in group_by_setting(rows, settings).items():
        failed = sum(row.error is not None for row in group)
        wrong: list[Json] = [row.id for row in group if row.found.get("whole") is not True]
        head: dict[str, Json] = {"setting": name, "n": len(group)}
        tail: dict[str, Json] = {"wrong": wrong[:MAX_WRONG_LISTED], "failed": failed, "errors": count_errors(group)}
        lines.append({**head, **order_line(group), **tail, **usage_and_cost(group, paid.get(name, []))})
    missing = evaluation.missing
    all_notes = (*notes, *NOTES, *_warning_notes(rows), *((f"{missing:,} rows are missing.",) if missing else ()))
    return Report(evaluation.header, tuple(lines), ORDER_COLUMNS, ORDER_FIGURES, all_notes, evaluation.programs)


def _failed_as_measured(row: EvalRow, item: Item) -> EvalRow:
    """Return how a failed row counts: nothing was written."""
    if row.error is None:
        return row
    return replace(row, found={**best_reading(item_readings(item)[:1], ()), "sound": False, "whole": False})


def _warning_notes(rows: Sequence[EvalRow]) -> tuple[str, ...]:
    """Return the most frequent warnings of replies."""
    counts = Counter(
        str(each)[:120] for row in rows if isinstance(said := row.found.get("warnings"), (list, tuple)) for each in said
    )
    return tuple(f"{count} times: {words}" for words, count in counts.most_common(3))


def order_chart(report: Report) -> Chart:
    """Return a bar for each share."""
    bars = [
        bar
        for line in report.without_scripted_figures().lines
        for name in SHARES
        if (bar := _bar(line, name)) is not None
    ]
    header = report.header
    return Chart(
        f"{header.evaluation}: {header.data}, {header.model}", "the share, %", tuple(bars), legend=("share", "")
    )


def _bar(line: Mapping[str, Json], name: str) -> Bar | None:
    share, bounds = line.get(name), line.get(f"{name}_interval")
    if not isinstance(share, float) or not isinstance(bounds, list):
        return None
    low, high = (100 * float(str(bound)) for bound in bounds)
    return Bar(name, Point(0, 100 * share, min(low, 100 * share), max(high, 100 * share)))
