"""Run Schemathesis against every route of a running server: `python -m tests.server.schemathesis --cases 10000`.

Schemathesis is no dependency of the tests: install it into an environment of its own and name its program with `--program`. It
reads an OpenAPI document of all routes: the one that the server has of its own API, and beside it the routes of the other
protocols with bodies that are inferred from requests of these. The exit code is 1 where a request was answered with 5xx or not in time,
or a traceback was logged. With `--own` it reads only the server's own document, and an answer or a refusal must be as described, too.
`--only` takes a part of the paths, by a regular expression: all of them take an hour.
"""

import argparse
import json
import logging
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taiwa.models.scripted import function_model
from taiwa.server.serve import WIRES
from taiwa.server.wire_interface import PARAMETER, document
from tests.peers.embedder import EmbeddingServer
from tests.server.serving import KEY, Serving, serving
from tests.server.test_mutated_requests import BODIES, TEXT

SECONDS = 20
"""How long an answer may take while both programs share a machine."""
ENDLESS = {"/api/events", "/page/follow/{name}"}
"""Streams that end with the connection."""
MADE = 12
"""Objects of each kind that requests can name when the run begins; requests delete them."""
FILTER = {"type": "and", "filters": [{"type": "gt", "key": "year", "value": 2024}]}
RPC = {"jsonrpc": "2.0", "id": 1}
SHOWN = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
RUN: dict[str, Any] = {
    "threadId": "tea", "runId": "1", "messages": [{"id": "1", **TEXT[0]}], "tools": [], "context": [], "state": {}, "forwardedProps": {},
}  # fmt: skip
FURTHER: dict[str, list[dict[str, Any]]] = {
    "/v1/responses/input_tokens": [{"model": "served", "input": "Tea?"}],
    "/v1/responses/compact": [{"model": "served", "input": [*TEXT, {"role": "assistant", "content": "Green."}, *TEXT]}],
    "/v1/conversations": [{"items": [{"type": "message", **TEXT[0]}], "metadata": {"a": "b"}}],
    "/v1/conversations/{id}": [{"metadata": {"a": "b"}}],
    "/v1/conversations/{id}/items": [{"items": [{"type": "message", **TEXT[0]}]}],
    "/api/embed": [{"model": "m", "input": ["a"], "truncate": True}],
    "/api/embeddings": [{"model": "m", "prompt": "a"}],
    "/ag-ui": [RUN],
    "/ag-ui/agents/{model}": [RUN],
    "/mcp": [
        {**RPC, "method": "initialize", "params": SHOWN},
        {**RPC, "method": "tools/list"},
        {**RPC, "method": "tools/call", "params": {"name": "say", "arguments": {"text": "Tea?"}}},
    ],
    "/v1/vector_stores": [{"name": "teas", "metadata": {"a": "b"}, "file_ids": []}],
    "/v1/vector_stores/{id}": [{"name": "teas", "metadata": {"a": "b"}}],
    "/v1/vector_stores/{id}/search": [{"query": "tea", "max_num_results": 3, "filters": FILTER}],
    "/v1/vector_stores/{id}/files": [{"file_id": "file-0", "attributes": {"year": 2025}}],
    "/v1/vector_stores/{id}/files/{file}": [{"attributes": {"year": 2025}}],
    "/v1/vector_stores/{id}/file_batches": [{"file_ids": ["file-0"], "attributes": {"year": 2025}}],
    "/page/look": [{"language": "ja"}, {"theme": "dark"}],
}
SEARCH = {
    "model": "ask",
    "input": "Is tea green?",
    "tools": [{"type": "file_search", "vector_store_ids": ["teas"], "filters": FILTER}],
}
QUERY = (
    "q path node as after before tip session run purpose other in form filter by back limit order stream starting_after include edit"
).split()


class Log(logging.Handler):
    """Counts the answers by their status, and keeps the failures."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses: Counter[int] = Counter()
        self.failures: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        status = getattr(record, "status", None)
        if status is not None:
            self.statuses[status] += 1
        if record.exc_info or (status or 0) >= 500:
            self.failures.append(f"{getattr(record, 'method', '')} {getattr(record, 'path', '')} {self.format(record)}")


def inferred(value: Any) -> dict[str, Any]:
    """A schema of which a value is an example."""
    if isinstance(value, dict):
        return {
            "type": "object",
            "properties": {name: inferred(each) for name, each in value.items()},
            "additionalProperties": False,
        }
    if isinstance(value, list):
        return {"type": "array", "items": {"anyOf": [inferred(each) for each in value]} if value else {}, "maxItems": 4}
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    return {"anyOf": [{"const": value}, {"type": names[type(value)]}]}


def whole_document(known: Mapping[str, list[str]], *, own: bool) -> dict[str, Any]:
    """The document of all routes, or of the server's own API; `known` are ids that exist, by the constant beginning of their paths."""
    found = document(WIRES)
    bodies: Mapping[str, list[dict[str, Any]]] = {
        **BODIES,
        **FURTHER,
        "/v1/responses": [*BODIES["/v1/responses"], SEARCH],
    }
    for wire in () if own else WIRES:
        for route in wire.routes:
            path = PARAMETER.sub(r"{\1}", route.path)
            operations = found["paths"].setdefault(path, {})
            for method in route.methods:
                operations.setdefault(method.lower(), operation(path, method, route.takes_files, bodies.get(path, [])))
    for path in ENDLESS & found["paths"].keys():
        del found["paths"][path]
    for path, operations in found["paths"].items():
        ids = next((names for start, names in known.items() if path.startswith(start)), [])
        for each in operations.values():
            for parameter in each.get("parameters", ()):
                if parameter["in"] == "path" and ids:
                    parameter["schema"] = {"anyOf": [{"enum": ids}, {"type": "string", "minLength": 1}]}
    return found


def operation(path: str, method: str, takes_files: bool, bodies: list[dict[str, Any]]) -> dict[str, Any]:
    """What the document says of a route that the server's own document does not describe."""
    text = {"type": "string", "minLength": 1}
    made: dict[str, Any] = {"responses": {"default": {"description": "Any."}}}
    made["parameters"] = [
        {"name": name, "in": "path", "required": True, "schema": text} for name in re.findall(r"{(\w+)}", path)
    ]
    if method == "GET":
        made["parameters"] += [{"name": name, "in": "query", "schema": {"type": "string"}} for name in QUERY]
    if takes_files:
        parts = {"file": {"type": "string", "format": "binary"}, "purpose": {"enum": ["assistants", "user_data", "x"]}}
        made["requestBody"] = {"content": {"multipart/form-data": {"schema": {"type": "object", "properties": parts}}}}
    elif method == "POST":
        schema = {"anyOf": [inferred(each) for each in bodies]} if bodies else {"type": "object"}
        made["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return made


def make_objects(served: Serving) -> dict[str, list[str]]:
    """Make objects that requests can name, and return their ids by the beginning of the paths that name them."""
    post, models = served.client.post, ["served", "order", "ask"]
    responses = [
        post("/v1/responses", json={"model": "served", "input": f"Tea {n}?"}).json()["id"] for n in range(MADE)
    ]
    conversations = [post("/v1/conversations", json=FURTHER["/v1/conversations"][0]).json()["id"] for _ in range(MADE)]
    form = {"file": ("tea.md", b"# Tea\n\nTea is green.\n")}
    files = [post("/v1/files", files=form, data={"purpose": "assistants"}).json()["id"] for _ in range(MADE)]
    stores = [post("/v1/vector_stores", json={"name": f"teas-{n}"}).json()["id"] for n in range(MADE)]
    for store in stores:
        post(
            f"/v1/vector_stores/{store}/files", json={"file_id": files[0], "attributes": {"year": 2025}}
        ).raise_for_status()
    sessions = [f"talk-{n}" for n in range(MADE)]
    runs = [
        post("/api/conversations", json={"app": "chat", "text": "Tea?", "name": name}).json()["run"]
        for name in sessions
    ]
    for run in runs:
        served.client.get(f"/api/runs/{run}/events")
    nodes = [
        entry["node"]
        for name in sessions
        for entry in served.client.get(f"/api/conversations/{name}").json()
        if "node" in entry
    ]
    for n in range(MADE):
        post(f"/api/persons/ann-{n}", json={"facts": {"floor": "3"}}).raise_for_status()
    return {
        "/v1/responses": responses, "/v1/conversations": conversations, "/v1/files": files,
        "/v1/vector_stores": [*stores, *files], "/api/conversations": sessions, "/api/nodes": nodes, "/api/runs": runs,
        "/api/indexes": [*stores, "tea.md"], "/api/persons": [f"ann-{n}" for n in range(MADE)], "/ag-ui/agents": models,
        "/c/": sessions, "/page/": [*sessions, *nodes, "state", "tree"], "/documents": [*stores, "tea.md"],
    }  # fmt: skip


@contextmanager
def listening() -> Iterator[Log]:
    """Read what the server logs."""
    log, loggers = (
        Log(),
        [logging.getLogger(name) for name in ("taiwa.server", "taiwa.server.requests", "uvicorn.error")],
    )
    for each in loggers:
        each.addHandler(log)
        each.setLevel(logging.INFO)
        each.propagate = False
    yield log


UNDESCRIBED = "positive_data_acceptance"
"""What a schema cannot say: which parameters an app has, which bytes are a file, and which letters are no characters."""


def run(program: str, cases: int, seed: int | None, *, own: bool = False, only: str = "") -> int:
    """Send about so many requests to each route, or to `only` those of some paths; return the exit code."""
    model = function_model(lambda _: "Green.", name="served")
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddingServer() as vectors,
        serving(model=model, store=f"{folder}/store.db", embeddings=f"{vectors.base_url}#m") as served,
    ):
        found = whole_document(make_objects(served), own=own)
        found["paths"] = {path: each for path, each in found["paths"].items() if re.search(only, path)}
        Path(folder, "openapi.json").write_text(json.dumps(found), encoding="utf-8")
        count = sum(len(each) for each in found["paths"].values())
        with listening() as log:
            words = [
                program, "run", f"{folder}/openapi.json", "--url", served.server.url, "--header", f"Authorization: Bearer {KEY}",
                *(("--exclude-checks", UNDESCRIBED) if own else ("--phases", "coverage,fuzzing", "--checks", "not_a_server_error")), "--max-examples", str(max(cases // count, 1)),
                "--request-timeout", str(SECONDS), "--continue-on-failure", "--warnings", "off", "--suppress-health-check", "all",
                *(("--seed", str(seed)) if seed is not None else ()),
            ]  # fmt: skip
            code = subprocess.run(words, check=False, cwd=folder).returncode
    statuses = ", ".join(f"{status}: {number:,}" for status, number in sorted(log.statuses.items()))
    print(f"{log.statuses.total():,} requests to {count} operations ({statuses})")  # noqa: T201  (a program)
    print(f"{len(log.failures)} failures in the log of the server", *log.failures[:20], sep="\n")  # noqa: T201
    return 1 if code or log.failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="schemathesis", help="the program of Schemathesis (4 or newer)")
    parser.add_argument("--cases", type=int, default=10_000, help="requests, about")
    parser.add_argument("--seed", type=int, help="repeats a run")
    parser.add_argument("--own", action="store_true", help="check the server's own document")
    parser.add_argument("--only", default="", help="a regular expression that the paths contain")
    given = parser.parse_args()
    sys.exit(run(given.program, given.cases, given.seed, own=given.own, only=given.only))
