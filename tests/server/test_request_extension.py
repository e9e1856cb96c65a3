"""The extension of the stateless protocols: `include: taiwa:…` and the object `taiwa`, whole and as a stream."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.models.inprocess.stub_model import StubModel
from tests.orders import TEAS
from tests.server.serving import Serving, serving, sse

Body = dict[str, Any]
SAID = [{"role": "user", "content": "Two green teas, please."}]
ASKED: dict[str, Body] = {
    "/v1/chat/completions": {"model": "order", "messages": SAID},
    "/v1/messages": {"model": "order", "max_tokens": 1000, "messages": SAID},
    "/api/chat": {"model": "order", "messages": SAID},
    "/api/generate": {"model": "order", "prompt": SAID[0]["content"]},
}
PARTS = ("state", "trace", "masks")
ALWAYS = {"session", "node", "parent", "delta", "cost", "warnings", "state_read"}
PATHS = pytest.mark.parametrize("path", ASKED)
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving(model=StubModel(TEAS)) as running:
        yield running


def post(served: Serving, path: str, *, stream: bool, **more: object) -> httpx.Response:
    answer = served.client.post(path, json={**ASKED[path], "stream": stream, **more})
    assert answer.status_code == 200, answer.text
    return answer


def objects(path: str, answer: httpx.Response, *, stream: bool) -> list[Body]:
    """The objects of an answer: the only one, or those of its stream in order."""
    if not stream:
        return [answer.json()]
    lines = answer.text.splitlines() if path.startswith("/api/") else [each for each in sse(answer) if each != "[DONE]"]
    return [json.loads(line) for line in lines]


def shape(data: Any) -> Any:
    """The names and kinds of a value, without what differs from one run to the next."""
    if isinstance(data, dict):
        return {name: shape(each) for name, each in data.items()}
    return [shape(each) for each in data] if isinstance(data, list) else type(data).__name__


@PATHS
@STREAMS
def test_what_is_included_stands_once_in_the_answer_and_says_what_the_node_says(
    served: Serving, path: str, stream: bool
) -> None:
    answer = post(served, path, stream=stream, include=[f"taiwa:{part}" for part in PARTS])

    (found,) = (each["taiwa"] for each in objects(path, answer, stream=stream) if "taiwa" in each)
    trace, listed = (served.client.get(f"/api/nodes/{found['node']}/{part}").json() for part in ("trace", "tokens"))
    assert found.keys() == ALWAYS | set(PARTS)
    assert found["state"]["items"]["1"] == {"name": "green tea", "options": [], "quantity": 2}
    assert found["trace"] == {name: part for name, part in trace.items() if name != "node"}
    assert found["masks"] == listed["answers"]
    assert found["masks"][0]["tokens"]


@PATHS
@STREAMS
def test_one_part_comes_without_the_others(served: Serving, path: str, stream: bool) -> None:
    part = PARTS[(len(path) + stream) % len(PARTS)]
    answer = post(served, path, stream=stream, include=[f"taiwa:{part}"])

    (found,) = (each["taiwa"] for each in objects(path, answer, stream=stream) if "taiwa" in each)
    assert found.keys() == ALWAYS | {part}


@PATHS
@STREAMS
def test_an_answer_has_nothing_more_unless_it_was_asked_for(served: Serving, path: str, stream: bool) -> None:
    plain = objects(path, post(served, path, stream=stream), stream=stream)
    asked = objects(path, post(served, path, stream=stream, taiwa={}), stream=stream)

    assert not any("taiwa" in each for each in plain)
    assert {type(each.pop("taiwa")) for each in asked if "taiwa" in each} == {dict}
    if path != "/v1/chat/completions" or not stream:  # there the extension stands in a chunk of its own
        assert [shape(each) for each in asked] == [shape(each) for each in plain]


@PATHS
@STREAMS
@pytest.mark.parametrize("include", [["taiwa:secrets"], ["state"], [1], "taiwa:", {"taiwa:state": True}])
def test_an_unknown_part_is_refused_in_the_form_of_the_protocol(
    served: Serving, path: str, stream: bool, include: Any
) -> None:
    answer = served.client.post(path, json={**ASKED[path], "stream": stream, "include": include})

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert "include" in (error if path.startswith("/api/") else error["message"])
