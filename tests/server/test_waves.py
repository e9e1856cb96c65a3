"""Many requests at once, wave after wave, of every kind of caller: each is answered or refused, and each answer is billed."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from random import Random

import httpx
import pytest

from taiwa.kernel.messages import Request, Response, Usage, assistant
from taiwa.kernel.usage_limits import ANSWER_TOKENS
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel
from taiwa.store.server_records import Caller
from tests.server.serving import KEY, Serving, serving
from tests.server.test_callers import priced

WAVES = 160 if "EXPLORE_SEED" in os.environ else 3
TOGETHER = 64
TOKENS = 100
BUDGET = (40 * TOKENS + ANSWER_TOKENS) * 1_000
"""What about forty answers cost, in billionths, at the prices of `priced`."""
HELLO = [{"role": "user", "content": "Hello"}]
WIRES: dict[str, dict[str, object]] = {
    "/v1/chat/completions": {"messages": HELLO},
    "/v1/responses": {"input": "Hello"},
    "/v1/messages": {"messages": HELLO, "max_tokens": 50},
    "/api/chat": {"messages": HELLO},
}
CALLERS = {"": KEY, "ann": "key-of-ann", "ben": "key-of-ben", "nobody": "wrong"}
STATUSES = {"": {200}, "ann": {200, 429}, "ben": {200}, "nobody": {401}}
pytestmark = pytest.mark.fuzz


class Counting(ScriptedModel):
    """A model that keeps what it was paid only, so that what grows is the server's."""

    paid = 0

    def _next(self, request: Request) -> Response:
        usage = Usage(1, min(TOKENS, request.sampling.max_tokens or TOKENS))
        self.paid += 1_000 * (usage.input_tokens + usage.output_tokens)
        return Response(assistant("Hello."), usage=usage)


def test_of_many_requests_at_once_each_is_answered_or_refused_and_each_answer_billed(tmp_path: Path) -> None:
    model = Counting((), "scripted", ALL_CAPABILITIES, 7, None)
    with serving(model=model, store=str(tmp_path / "store.db")) as server:
        priced(server)
        server.repository.store.callers.add(Caller("ann", max_cost=BUDGET), CALLERS["ann"])
        server.repository.store.callers.add(Caller("ben"), CALLERS["ben"])

        statuses = asyncio.run(waves(server))

        store = server.repository.store
        owned = {name: store.owned_by(name) for name in CALLERS}
        assert sum(each.runs.spent_since(0) for each in owned.values()) == model.paid
        assert owned["ann"].runs.spent_since(0) <= BUDGET
        for name, each in owned.items():
            assert sum(line.requests for line in each.costs("session")) == statuses[name, 200]
            assert {status for caller, status in statuses if caller == name} == STATUSES[name]
            assert each.runs.open_runs() == ()
        assert store.fsck() == ()


async def waves(server: Serving) -> Counter[tuple[str, int]]:
    """Send requests of random callers over random wires, a wave of them at once, and count their statuses."""
    draw, statuses = Random(os.environ.get("EXPLORE_SEED", "20261129")), Counter[tuple[str, int]]()
    limits = httpx.Limits(max_connections=TOGETHER)
    async with httpx.AsyncClient(base_url=server.server.url, limits=limits, timeout=300) as client:

        async def send() -> None:
            name, path, streams = draw.choice(list(CALLERS)), draw.choice(list(WIRES)), draw.random() < 0.5
            headers = {"authorization": f"Bearer {CALLERS[name]}"}
            body = {"model": "scripted", "stream": streams} | WIRES[path]
            response = await client.post(path, json=body, headers=headers)
            refused = "the limit on cost" in response.text  # in a stream of Responses, an event
            assert response.status_code != 200 or refused != ("Hello." in response.text)
            statuses[name, 429 if refused else response.status_code] += 1

        for _ in range(WAVES):
            await asyncio.gather(*(send() for _ in range(TOGETHER)))
    return statuses
