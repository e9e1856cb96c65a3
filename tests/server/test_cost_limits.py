"""The limits of a whole server, of its conversations and of its days; what is abandoned counts with its reservation."""

from pathlib import Path

import pytest

from taiwa.kernel.messages import Response, Usage, assistant
from taiwa.kernel.usage_limits import ANSWER_TOKENS, UsageLimits
from tests.server.serving import Serving, serving
from tests.server.test_callers import called, priced, say

DEAR = Response(assistant("Tea and cake."), usage=Usage(400_000, 100_000))
"""Half a unit at the prices of `priced`."""


def limited(server: Serving, limits: UsageLimits) -> None:
    priced(server)
    server.repository.limit_all_runs(limits)


def test_all_turns_of_all_callers_share_the_limit_of_the_server(tmp_path: Path) -> None:
    with serving(*[DEAR] * 9, store=str(tmp_path / "store.db")) as server:
        limited(server, UsageLimits(cost=900_000_000))
        with called(server, "ann") as ann:
            say(ann, "one")
            say(server.client, "two")
            for client in (ann, server.client):
                refused = client.post("/v1/responses", json={"model": "scripted", "input": "three"})
                assert refused.status_code == 429
                assert "the limit on cost is reached: 1 of 0.9" in refused.text
        assert len(server.model.requests) == 2


def test_a_conversation_has_a_limit_over_all_its_requests(tmp_path: Path) -> None:
    with serving(*[DEAR] * 9, store=str(tmp_path / "store.db")) as server:
        limited(server, UsageLimits(conversation_cost=900_000_000))
        last = say(server.client, "one")["id"]
        last = say(server.client, "two", previous_response_id=last)["id"]
        body = {"model": "scripted", "input": "three", "previous_response_id": last}
        refused = server.client.post("/v1/responses", json=body)
        assert refused.status_code == 429
        assert "the limit on cost of the conversation is reached: 1 of 0.9" in refused.text
        say(server.client, "another conversation")


def test_hanging_up_does_not_pass_a_budget_of_a_day(tmp_path: Path) -> None:
    served = 0
    with serving(*["Once upon a time there was tea." * 50] * 30, store=str(tmp_path / "store.db")) as server:
        priced(server)
        with called(server, "ann", max_cost=3 * ANSWER_TOKENS * 1000) as ann:
            for _ in range(30):
                body = {"model": "scripted", "messages": [{"role": "user", "content": "A story"}], "stream": True}
                with ann.stream("POST", "/v1/chat/completions", json=body) as response:
                    if response.status_code == 200:
                        served += 1
                        next(response.iter_raw())
        spent = server.repository.store.owned_by("ann").runs.spent_since(0)
    assert served <= 4
    assert len(server.model.requests) <= 4
    assert 0 < spent <= 3 * ANSWER_TOKENS * 1000


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_does_not_count_for_a_rate(text: str, tmp_path: Path) -> None:
    with serving("Tea.", store=str(tmp_path / "store.db")) as server, called(server, "ann", rate=1) as ann:
        for _ in range(3):
            assert ann.post("/api/conversations", json={"app": "plain", "text": text}).status_code == 400
        say(ann, "one")
