"""Imported conversations whose content lies under hashes that are right: each is refused in one line, or shown, exported and gone on with.

`make explore` draws others, and more of them.
"""

import json
import os
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from taiwa.conversation.app import AppSource
from taiwa.kernel.errors import InputError
from taiwa.store.store import Store, _node
from tests.server.serving import Serving, serving

ROUNDS = int(os.environ.get("EXPLORE_ROUNDS", "40"))
SEED = os.environ.get("EXPLORE_SEED", "20261129")
FRONT = "---\ntaiwa: 1\nname: plain\n{}\n---\nTalk.\n"
BOMB = {"properties": {"a" * 40 + "!": {}}, "additionalProperties": False, "propertyNames": {"pattern": "^(a+)+$"}}
TEXTS = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>", "\x1b]52;c;aGk=\x07\x1b[2J\r\x08", "\u202etxt\u2066", "$" + "\\frac{" * 300,
    "![x](http://127.0.0.1:9/x.png) [a](javascript:alert(1))", "```systemd\n" + " " * 900, "\0", '@@delta {"a": 1}', "../../x", "", "x" * 9_000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, [], {}, -1, [[]], {"a": 1}, {"calls": 1}, {"calls": [{"name": "x", "attachments": ["x"]}]}, {"asked": 1}, 10**400,
    {"documents": {"act": "search", "passages": [1]}}, [{"~": "message", "role": "evil", "parts": []}], [{"~": "thinking", "text": "x"}],
    [{"sha256": "../../etc/passwd", "name": "../../x", "size": -1, "type": "image/png"}], {"~": "nope"}, {"~": "usage", "input_tokens": -1},
    {"~": "answer-options", "tool_files": ["type:../../x@1"], "schema": {"~": "json-schema", "schema": BOMB}}, {"~": "answer-options", "stop": 3},
)  # fmt: skip
SOURCES = (
    f"answer: {json.dumps(BOMB)}", 'answer: {"$ref": "file:///etc/passwd"}', "documents: {in: /etc, as: group:root}", "tools: [calculator, evil]",
    "tools: [x.py:run]", f"flow: desk.py@{'a' * 32}:turn", "flow: os:system", 'model: "http://127.0.0.1:9/v1#x"', "model: evil:x", "a: &a [*a]",
    "state: {" + ", ".join(f"f{n}: str" for n in range(900)) + "}", "state: {a: {type: int, compute: '9**9**9'}}", "[" * 900,
)  # fmt: skip
FIELDS = {
    "app": ("name", "source", "params", "options"),
    "turn": ("user", "answer", "delta", "findings", "messages", "thinking", "attachments", "base", "kind", "state", "prefix", "model", "host"),
}  # fmt: skip
PAGES = (
    "/", "/c/{name}", "/page/steps/{name}?at={tip}", "/api/conversations", "/api/conversations/{name}", "/api/conversations/{name}/state", "/api/tree",
    "/api/conversations/{name}/verify", "/api/conversations/{name}/waiting", "/api/nodes/{tip}/trace", "/api/nodes/{tip}/tokens",
    *(f"/api/conversations/{{name}}/export?form={form}" for form in ("jsonl", "md", "html", "verifiable")),
)  # fmt: skip


def rehashed(lines: list[dict[str, Any]]) -> list[str]:
    """Give each line the hash of what it says now, and name it so in the others."""
    named: dict[str, str] = {}
    for line in lines[1:]:
        key = "node" if "node" in line else "app"
        before = str(line[key])
        for other in {"of", "parent"} & line.keys():
            line[other] = named.get(str(line[other]), line[other])
        try:
            made = (
                _node(line)
                if key == "node"
                else AppSource(line["name"], line["source"], line["params"], line.get("options"))
            )
            line[key] = made.hash
        except InputError:
            pass  # it is refused anyway
        named[before] = str(line[key])
    lines[0]["tip"] = named[lines[0]["tip"]]
    return list(map(json.dumps, lines))


def crafted(honest: list[dict[str, Any]], draw: Random) -> list[str]:
    """Change the texts of an exported turn, and one more field of it or of its app."""
    lines = deepcopy(honest)
    lines[-1] |= {"user": draw.choice(TEXTS), "answer": draw.choice(TEXTS)}
    kind = draw.choice(sorted(FIELDS))
    line = next(each for each in lines[::-1] if (each.get("kind") == kind if kind != "app" else "source" in each))
    name = draw.choice(FIELDS[kind])
    line[name] = FRONT.format(draw.choice(SOURCES)) if name == "source" else draw.choice((*TEXTS, *VALUES))
    return rehashed(lines)


@pytest.mark.fuzz
def test_a_crafted_import_is_refused_or_shown_and_gone_on_with(tmp_path: Path) -> None:
    draw, shown = Random(SEED), 0
    place = str(tmp_path / "store.db")
    with serving(*["Hello."] * (ROUNDS + 2), store=place) as server:
        run = server.client.post("/api/conversations", json={"app": "plain", "text": "Hi", "name": "own"}).json()["run"]
        server.client.get(f"/api/runs/{run}/events")
        honest = [json.loads(line) for line in Store.open(place).export("own")]
        for number in range(ROUNDS):
            lines = crafted(honest, draw)
            try:
                server.repository.import_lines(lines, f"gift-{number}")
            except InputError as error:
                assert "\n" not in error.message  # noqa: PT017  (some are refused, and some are not)
                continue
            shown += 1
            check(server, f"gift-{number}", json.loads(lines[0])["tip"])
        assert not server.repository.fsck()
    assert 0 < shown < ROUNDS


def check(server: Serving, name: str, tip: str) -> None:
    """Ask for all that shows a conversation, and go on with it."""
    for page in PAGES:
        response = server.client.get(page.format(name=name, tip=tip))
        assert response.status_code < 500, (page, response.text[:300])
        assert "verifiable" in page or "\x1b" not in response.text
        if page.startswith(("/c/", "/page")) or page == "/":
            assert not {"<script>alert", "<img src=x"} & set(response.text.split())
    begun = server.client.post(f"/api/conversations/{name}/turns", json={"text": "And?"})
    assert begun.status_code < 500, begun.text[:300]
    if begun.status_code == 202:
        server.client.get(f"/api/runs/{begun.json()['run']}/events")
    server.client.delete(f"/api/conversations/{name}")
