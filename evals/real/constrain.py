"""Constrained output: the share of answers that fit a JSON Schema, a pattern or a choice, under taiwa and by the server itself.

taiwa sends the server its own grammar, or masks the logits itself (`taiwa-gguf`); `openai` sends the same schema as response
format, a pattern as the pattern of a text, and a choice as its values.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from evals.real.extract import output_type
from evals.real.peers import Peers
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
from taiwa import constraints
from taiwa.client.programs import generate_program
from taiwa.constraints import Vocabulary
from taiwa.evals.data import DataSet, Fields, Item, read_fields
from taiwa.evals.report import SetReport
from taiwa.evals.run import EvalRow, Job
from taiwa.kernel.errors import OutputValidationError, TaiwaError
from taiwa.kernel.messages import Choice, JsonSchema, Message, Regex, Request, user
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import RunUsage, UsageLimits

DEFAULT_WAYS = ("taiwa", "openai")
WAYS = (*DEFAULT_WAYS, "openai:free")
BUNDLED = Path(__file__).with_name("constraints.jsonl")
MAX_SCHEMA = 1_200
"""Characters of the largest schema: a longer one is a long prompt and an answer that is cut off."""
PROMPT = "Write a JSON value that fits this JSON Schema, and nothing else:\n{schema}"


def read_constraints(paths: Sequence[Path], limit: int | None, seed: int) -> DataSet:
    """Read constraints: rows with `schema` (MaskBench), or with `prompt` and `regex` or `choices`; `limit` of each file.

    Schemas that are long, or that taiwa cannot compile in strict mode, are left out.

    Raises:
        InputError: a file or a row cannot be used.
    """
    digests: list[str] = []
    items: list[Item] = []
    for path in paths:
        digest, rows = read_fields(path)
        digests.append(digest)
        found = [item for row in rows if (item := _item(row, path.stem)) is not None]
        items += sample(found, limit, seed)
    return data_set(paths, digests, items)


def _item(row: Fields, kind: str) -> Item | None:
    schema = row.row.get("schema")
    if isinstance(schema, dict):
        text = json.dumps(schema, ensure_ascii=False)
        if len(text) > MAX_SCHEMA or not _compiles(schema):
            return None
        return Item(row.text("id"), PROMPT.format(schema=text), "", kind, more={"schema": schema, "name": "Answer"})
    if "regex" in row:
        return Item(row.text("id"), row.text("prompt"), "", kind, more={"regex": row.text("regex")})
    return Item(row.text("id"), row.text("prompt"), "", kind, more={"choices": [*row.texts("choices")]})


def _compiles(schema: Mapping[str, Json]) -> bool:
    try:
        constraints.compile(JsonSchema(schema), Vocabulary.of_bytes())
    except TaiwaError:
        return False
    return True


def constraint(item: Item) -> JsonSchema | Regex | Choice:
    """Return the constraint of an item."""
    if "schema" in item.more:
        return JsonSchema(cast("dict[str, Json]", item.more["schema"]), "Answer")
    if "regex" in item.more:
        return Regex(str(item.more["regex"]))
    return Choice(tuple(map(str, cast("list[Json]", item.more["choices"]))))


def schema_of(item: Item) -> dict[str, Json]:
    """Return the constraint of an item as a JSON Schema, as a server takes it."""
    if "schema" in item.more:
        return cast("dict[str, Json]", item.more["schema"])
    if "regex" in item.more:
        return {"type": "string", "pattern": f"^(?:{item.more['regex']})$"}
    return {"enum": item.more["choices"]}


def fits(item: Item, text: str) -> bool:
    """Return whether a text fits the constraint of an item.

    >>> item = Item("a", "Say yes or no.", "", more={"choices": ["yes", "no"]})
    >>> fits(item, "yes"), fits(item, "Yes.")
    (True, False)
    """
    if "regex" in item.more:
        return re.fullmatch(str(item.more["regex"]), text) is not None
    if "choices" in item.more:
        return text in cast("list[Json]", item.more["choices"])
    kind = output_type(item)
    try:
        kind.validate(cast("Any", json.loads(text)))
    except (OutputValidationError, ValueError):
        return False
    return True


@dataclass(kw_only=True)
class ConstrainTask(RealTask):
    """The task of `constrain`."""

    name: str = "constrain"

    async def by_taiwa(self, job: Job, limits: UsageLimits) -> tuple[Found, RunUsage]:
        """Generate under the constraint."""
        messages: tuple[Message, ...] = (user(job.item.text),)
        program = generate_program(Request(messages, sampling=self.real.sampling), constraint(job.item))
        done = await self.ours(job.setting).runtime(limits).run_result(program)
        return {"valid": True, "text": done.value.text}, done.spent

    async def by_peer(self, job: Job, peers: Peers) -> Found:
        """Complete with the schema as response format, or without any."""
        schema = None if job.setting.endswith(":free") else schema_of(job.item)
        text = await peers.complete([{"role": "user", "content": job.item.text}], schema)
        if schema is not None and "schema" not in job.item.more:
            text = str(json.loads(text))
        return {"valid": True, "text": text}

    def score(self, item: Item, found: Found) -> Found:
        """Check the answer by the constraint itself, and not by who enforced it."""
        return {"valid": found["valid"] is True and fits(item, str(found.get("text", "")))}


def _line(rows: Sequence[EvalRow]) -> Found:
    return {**share_fields(rows, "valid"), **reasons(rows), **time_fields(rows)}


REPORT = SetReport(
    _line,
    (*WAY_COLUMNS, share_column("valid %", "valid"), *COST_COLUMNS),
    "valid",
    "valid answers, %",
    (
        "Valid: the whole answer fits; one that is cut off does not. Intervals at 95 %: Wilson's for shares, of 1,000 draws of the items for means.",
    ),
)
