"""`--json` of every command: standard output is JSON and nothing else, with these keys; an error leaves it empty."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ModelServer, Result, Taiwa
from tests.cli.test_help_examples import ALL, RUN, examples, home, run_example, world

__all__ = ["home", "world"]

WITH_JSON = {
    path: command
    for path, command in ALL.items()
    if len(path) > 1 and any("--json" in parameter.opts for parameter in command.params)
}
ELSEWHERE = {
    "resume": "needs a turn that was cut off; tests/cli/test_retry_edit_replay.py",
    "models pull": "fetches hundreds of megabytes; tests/cli/test_models.py",
    "models remote": "needs a server that lists models; tests/cli/test_models.py",
    "models remove": "needs a fetched model; tests/cli/test_models.py",
    "probe": "tests/cli/test_models.py",
    "serve keys add": "test_serve_keys.py",
    "serve keys list": "test_serve_keys.py",
    "serve keys revoke": "test_serve_keys.py",
    "eval extract": "tests/cli/test_eval.py",
    "eval reason": "tests/cli/test_eval.py",
    "eval retrieve": "tests/cli/test_eval.py",
}
EXAMPLES = {
    "chat": "echo Hello | taiwa chat",
    "rerun": "taiwa rerun chat-1 -o other",
    "generate": "taiwa generate Hello",
    "solve": "taiwa solve Hello",
    "apps save": "taiwa apps save leave",
    "index": "taiwa index handbook",
    "plugins": "taiwa plugins",
    "search": "taiwa search turn",
}
"""What is run where the help has no example that runs here alone."""
TURN = "cost delta findings node parent seconds session state_read text usage value warnings"
PLACE = "node session state turn"
KEYS = {
    "say": TURN,
    "rerun": TURN,
    "generate": "enforcement finish fits stop text usage why",
    "solve": " ".join(sorted(f"answer answered_by calls ending max_cost tool_mode {TURN}".split())),
    "index": "added analyzer changed characters documents embeddings folder index not_read others passages problems removed same seconds vectors_made",
    "chat": TURN,
    "batch": "cost done failed kept refused session stopped usage",
    "apps save": "path",
    "undo": PLACE,
    "redo": PLACE,
    "retry": TURN,
    "edit": TURN,
    "fork": PLACE,
    "switch": PLACE,
    "rename": PLACE,
    "replay": "calls kind node problem turn",
    "log": "answer app archived at client cost model node pinned session tags text title turns",
    "show": "answer app attachments calls delta findings kind model node options parent state state_hash turn user",
    "diff": "after after_models before before_models state text",
    "why": "after answer before delta findings kind models node path sources turn user",
    "state": "app node state turn",
    "state history": "by node value",
    "state set": "node parent session state",
    "search": "excerpt node sessions",
    "cost": "cache_read_tokens calls_without_usage cost failed input_tokens known_cost model output_tokens requests tool_calls",
    "import": "node sessions trusted turns",
    "fsck": "nodes problems",
    "gc": "apps attachments dry_run moves nodes",
    "delete": "log_emptied nodes runs session shared",
    "extract": f"attempts {TURN}",
    "parse": "fixes guessed value",
    "schema": "relaxed style text tokens unsupported",
    "explain": "about accepted engine refused source steps vocabulary",
    "tools call": "text tool value",
    "tools list": "about tool",
    "tools show": "description parameters tool",
    "ask": "act answer assumption case citations claims cost documented evidence is_uncertain language missing node numbers options parent passages policy queries query question reasons scores seconds session source text usage warnings",
    "index remove": "index removed",
    "index folder": "added analyzer changed characters documents embeddings folder index not_read others passages problems removed same seconds vectors_made",
    "index show": "analyzer characters documents embeddings files folder index not_read passages",
    "find": "end heading id marks page path score start text title",
    "user export": "facts feedback language sessions thresholds user",
    "user list": "feedback sessions user",
    "user rate": "learned user verdict",
    "user remove": "removed user",
    "user reset": "deleted user",
    "user set": "facts language thresholds user",
    "user show": "facts feedback language learned thresholds user",
    "apps check": "path problems",
    "apps list": "about app origin problem",
    "apps render": "cached_tokens digest messages tokens",
    "apps update": "changed session",
    "models list": "found known",
    "models providers": "base_url key name",
    "models show": "base_url capabilities model name probed",
}
"""The keys of an object, or of the first one of a list."""


def example_of(path: tuple[str, ...]) -> str:
    """What runs a command here."""
    name = " ".join(path[1:])
    lines = (line for line in examples(WITH_JSON[path]) if line in RUN and line.startswith(f"taiwa {name}"))
    return EXAMPLES.get(name) or next((line for line in lines if "&&" not in line), "")


def values_of(done: Result) -> list[Any]:
    """The values on standard output: one, a list, or one on each line."""
    lines = done.out.splitlines()
    found = [json.loads(line) for line in lines]
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


RUNNABLE = [path for path in WITH_JSON if " ".join(path[1:]) not in ELSEWHERE]


@pytest.mark.parametrize("path", RUNNABLE, ids=" ".join)
def test_standard_output_is_json_alone(
    path: tuple[str, ...], taiwa: Taiwa, model_server: ModelServer, home: Path
) -> None:
    ((_, done),) = run_example(example_of(path), taiwa, model_server, home, "--json")

    values, name = values_of(done), " ".join(path[1:])
    if name in KEYS:
        assert " ".join(sorted(values[0])) == KEYS[name]


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in RUNNABLE
        if path[1] not in ("config", "doctor", "index", "find")
        and any("--store" in parameter.opts for parameter in WITH_JSON[path].params)
    ],
    ids=" ".join,
)
def test_an_error_is_one_line_and_leaves_standard_output_empty(
    path: tuple[str, ...], taiwa: Taiwa, model_server: ModelServer, home: Path
) -> None:
    ((_, done),) = run_example(example_of(path), taiwa, model_server, home, "--json", "--store", str(home / "shop.py"))

    assert (done.code, done.out) == (2, ""), done.err
    assert done.err.startswith("taiwa: ")
    assert len(done.err.splitlines()) == 1


def test_what_is_listed_here_is_still_a_command() -> None:
    assert set(ELSEWHERE) | set(EXAMPLES) | set(KEYS) <= {" ".join(path[1:]) for path in WITH_JSON}
