"""Typed answers: TypeChat's requests with their types, by taiwa, the openai client, instructor and pydantic-ai.

An answer is valid if it is JSON of its schema. It is right where something is known: an order has the products and quantities
of the key and no others, and the fields of an expected value agree.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast, get_args

from evals.ordering.key import Readings, read_key
from evals.ordering.order_lines import OrderLine
from evals.ordering.orders import best_reading
from evals.real.peers import Peers, SchemaModels
from evals.real.task import (
    COST_COLUMNS,
    WAY_COLUMNS,
    Found,
    RealTask,
    data_set,
    reasons,
    sample,
    share_column,
    share_fields,
    time_fields,
)
from taiwa.evals.data import DataSet, Fields, Item, read_fields
from taiwa.evals.extraction import compare_values
from taiwa.evals.report import (
    Column,
    SetReport,
    bootstrap_mean,
    decimal_with_interval,
    interval_json,
    number_field,
    rounded,
)
from taiwa.evals.run import EvalRow, Job
from taiwa.flows.extract import ExtractError, OutputMode, extract
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.serialization import Json, canonical
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.structured import OutputType

DEFAULT_WAYS = ("taiwa", "openai", "instructor", "pydantic-ai")
WAYS = (*DEFAULT_WAYS, "pydantic-ai:tool", *(f"taiwa:{each}" for each in get_args(OutputMode)))
KEY = Path(__file__).with_name("typechat_key.yaml")
INSTRUCTION = "Translate the user's request into JSON of the type {name}."
"""Given to the ways that write no instructions themselves."""


def read_requests(paths: Sequence[Path], limit: int | None, seed: int) -> DataSet:
    """Read requests, and the types of their domains: rows with `domain` and `json_schema` or `typescript`, in any of the files.

    Raises:
        InputError: a file cannot be used, or holds no request of a known type.
    """
    rows: list[Fields] = []
    digests: list[str] = []
    for path in paths:
        digest, found = read_fields(path)
        digests.append(digest)
        rows += found
    types = {row.text("domain"): _type(row) for row in rows if "root" in row and row.row.get("kind") != "program"}
    items = [
        _item(row, types[domain]) for row in rows
        if "input" in row and "duplicate_of_earlier" not in row and (domain := row.text("domain")) in types
    ]  # fmt: skip
    if not items:
        raise InputError("--data: no row has an input and a domain with a type; give the inputs and the schemas")
    return data_set(paths, digests, sample(items, limit, seed))


def _type(row: Fields) -> dict[str, Json]:
    name = row.text("python_root", row.text("root"))
    schema = row.row.get("json_schema") or OutputType.from_typescript(row.text("typescript"), name).schema()
    return {"name": name, "schema": cast("Json", schema)}


def _item(row: Fields, of: Mapping[str, Json]) -> Item:
    expected = row.row.get("expected")
    gold = "" if expected is None else canonical(expected).decode()
    return Item(row.text("id"), row.text("input"), gold, "typechat", more={**of, "domain": row.text("domain")})


@cache
def _output_type(schema: bytes, name: str) -> OutputType[Json]:
    return OutputType.from_json_schema(json.loads(schema), name=name)


def output_type(item: Item) -> OutputType[Json]:
    """Return the type of an item."""
    return _output_type(canonical(item.more["schema"]), str(item.more["name"]))


@dataclass(kw_only=True)
class ExtractTask(RealTask):
    """The task of `extract`."""

    name: str = "extract"
    _models: dict[str, Any] = field(default_factory=dict[str, Any], init=False, repr=False)

    async def by_taiwa(self, job: Job, limits: UsageLimits) -> tuple[Found, RunUsage]:
        """Extract with all defaults; a variant is a mode."""
        backend, _, variant = job.setting.partition(":")
        more: dict[str, Any] = {"mode": variant} if variant else {}
        program = extract(output_type(job.item), job.item.text, sampling=self.real.sampling, **more)
        try:
            done = await self.ours(backend).runtime(limits).run_result(program)
        except ExtractError as error:
            spent = error.spent if isinstance(error.spent, RunUsage) else RunUsage()
            last = error.tries[-1].text if error.tries else ""
            return {"valid": False, "reason": f"ExtractError: {error.message[:300]}", "text": last}, spent
        return {"valid": True, "value": output_type(job.item).dump(done.value.value)}, done.spent

    async def by_peer(self, job: Job, peers: Peers) -> Found:
        """Extract in another way."""
        item, name = job.item, str(job.item.more["name"])
        system, schema = INSTRUCTION.format(name=name), cast("dict[str, Json]", item.more["schema"])
        if job.setting == "openai":
            messages = [{"role": "system", "content": system}, {"role": "user", "content": item.text}]
            return self._parsed(item, await peers.complete(messages, schema))
        if job.setting == "instructor":
            value = await peers.instruct([{"role": "user", "content": item.text}], self._model(item))
        else:
            native = not job.setting.endswith(":tool")
            value = await peers.agent(item.text, system, self._model(item), native=native)
        return self._parsed(item, canonical(value).decode())

    def _model(self, item: Item) -> Any:  # noqa: ANN401  (a class made from data)
        domain = str(item.more["domain"])
        if domain not in self._models:
            schema = cast("dict[str, Any]", item.more["schema"])
            self._models[domain] = SchemaModels(schema, str(item.more["name"])).root
        return self._models[domain]

    def _parsed(self, item: Item, text: str) -> Found:
        kind = output_type(item)
        try:
            return {"valid": True, "value": kind.dump(kind.validate(json.loads(text)))}
        except OutputValidationError as error:
            return {"valid": False, "reason": f"invalid: {error.message[:300]}", "text": text}
        except ValueError as error:
            return {"valid": False, "reason": f"not JSON: {error}", "text": text}

    def score(self, item: Item, found: Found) -> Found:
        """Compare a value with the key and with the expected value, where there are any."""
        value = found.get("value") if found["valid"] else None
        scores: Found = {}
        readings = order_key().get(item.id)
        if readings is not None:
            scores["right"] = value is not None and has_order(readings, value)
        if item.gold:
            compared = compare_values(value, json.loads(item.gold))
            scores |= {"right": compared["exact"], "f1": compared["f1"]}
        return scores


@cache
def order_key() -> Mapping[str, Readings]:
    """Return the orders of the key."""
    return read_key(KEY).orders


def has_order(readings: Readings, value: Json) -> bool:
    """Return whether a cart has the products and quantities of a reading, and no others."""
    found = best_reading(readings, cart_lines(value))
    return found["wanted"] == found["written"] == found["counted"]


def cart_lines(value: Json) -> tuple[OrderLine, ...]:
    """Return names and quantities of the line items of a cart.

    >>> cart_lines({"items": [{"type": "lineitem", "product": {"name": "latte"}, "quantity": 2}, {"type": "unknown", "text": "?"}]})
    (OrderLine(names=('latte',), quantity=2, size='', options=()),)
    """
    items = value.get("items") if isinstance(value, dict) else None
    lines: list[OrderLine] = []
    for line in items if isinstance(items, list) else []:
        product = line.get("product") if isinstance(line, dict) else None
        if isinstance(line, dict) and isinstance(product, dict):
            quantity = line.get("quantity")
            whole = isinstance(quantity, int) or (isinstance(quantity, float) and quantity.is_integer())
            lines.append(OrderLine((str(product.get("name")),), int(cast("float", quantity)) if whole else 0))
    return tuple(lines)


def _line(rows: Sequence[EvalRow]) -> Found:
    fields = [number_field(row, "f1") for row in rows if "f1" in row.found]
    return {
        **share_fields(rows, "valid"), **share_fields(rows, "right"),
        "f1": rounded(sum(fields) / len(fields)) if fields else None, "f1_interval": interval_json(bootstrap_mean(fields)),
        **reasons(rows), **time_fields(rows),
    }  # fmt: skip


REPORT = SetReport(
    _line,
    (
        *WAY_COLUMNS,
        share_column("valid %", "valid"),
        share_column("right %", "right"),
        Column("field F1", decimal_with_interval("f1"), figure=True, main=False),
        *COST_COLUMNS,
    ),
    "right",
    "right answers, %",
    (
        "Valid: JSON of the schema. Right: of the requests with a known answer, the products and quantities of an order, or a value that is expected.",
        "Intervals at 95 %: Wilson's for shares, of 1,000 draws of the items for means.",
    ),
)
