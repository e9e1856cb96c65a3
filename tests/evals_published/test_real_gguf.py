"""A GGUF file of random weights: one server in a process of its own, for taiwa and for the openai client."""

import json
from pathlib import Path

import pytest

from evals.real.llama_server import llama_server
from taiwa.kernel.errors import InputError
from tests.cli.conftest import Place
from tests.evals_published.conftest import Evals
from tests.peers.llama import write_model


def test_one_server_is_started_for_all_ways_and_its_file_is_named_by_its_hash(evals: Evals, place: Place) -> None:
    path, data = place.folder / "tiny.gguf", place.folder / "ways.jsonl"
    write_model(path)
    data.write_text('{"id": "way", "prompt": "Left or right?", "choices": ["left", "right"]}\n')
    out = place.folder / "run"
    found = evals.ok(
        "constrain", "--data", str(data), "-m", str(path), "--threads", "1", "--out", str(out), "--json",
        "--way", "taiwa,taiwa-gguf,openai",
    ).json  # fmt: skip
    assert {row["setting"]: row["valid"] for row in found["rows"]} == {"taiwa": 1.0, "taiwa-gguf": 1.0, "openai": 1.0}
    assert found["model"] == "tiny.gguf"
    assert len(found["options"]["sha256"]) == 64
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text("utf-8").splitlines()]
    cached = {row["setting"]: row["usage"]["cache_read_tokens"] for row in rows if "setting" in row}
    assert cached == {"taiwa": 0, "taiwa-gguf": 0, "openai": 0}  # no way finds a prompt that another one has read


def test_a_file_that_is_not_a_model_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(20))
    with pytest.raises(InputError, match=r"broken\.gguf: llama\.cpp cannot load it"), llama_server(path):
        pass
