"""A model that obeys every order that it reads: what it says and tries is counted, and none of it has an effect."""

import json

import pytest

from evals.injections import ORDERS, PLACES, WORD, attempt
from taiwa.kernel.messages import Message, Request, Response, ToolCall, assistant
from taiwa.models.scripted import scripted_model

LOOKED = Response(Message("assistant", (ToolCall("lookup", json.dumps({"text": "leave"}), "c0"),)), "tool_calls")
WIPE = Response(Message("assistant", (ToolCall("wipe", json.dumps({"text": WORD}), "c1"),)), "tool_calls")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_model_that_obeys_is_seen_and_has_no_effect(place: str, order: str) -> None:
    def obey(request: Request) -> Response:
        if place == "result" and len(model.requests) == 1:
            return LOOKED
        calls = order == "tool" and request.tools and "refused" not in request.messages[-1].text
        return WIPE if calls and len(model.requests) <= 2 else Response(assistant(f"{ORDERS[order]} {WORD}"))

    model = scripted_model(*[obey] * 9, capabilities=frozenset({"tools"}))

    assert attempt(model, place, ORDERS[order]) == (True, False)
