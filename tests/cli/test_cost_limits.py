"""`--max-cost` on the command line: what cannot fit is not sent, and every period has its own amount."""

import json

import pytest

from taiwa.store import Store
from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.peers.faults import status

DEAR = {"*": {"input": "1000", "output": "2000"}}
CHEAP = {"*": {"input": "1", "output": "1"}}
"""An answer of the server costs 0.00001."""


@pytest.mark.parametrize("command", [("say",), ("generate",), ("extract", "cups: int"), ("solve",)])
def test_a_text_that_costs_more_than_the_limit_is_not_sent(
    command: tuple[str, ...], taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server("A", prices=DEAR)

    done = taiwa(*command, "--max-cost", "0.01", "word " * 9_000)

    assert done.code == 1
    assert "the limit on cost would be exceeded: 0 of 0.01 is used, and the next call may need" in done.err
    assert model_server.requests == []


def test_max_tokens_is_lowered_to_what_the_limit_leaves(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("A", "B", prices=DEAR)

    taiwa.ok("say", "--max-cost", "1", "Hi")
    taiwa.ok("say", "--max-cost", "1", "--max-tokens", "5", "Hi")

    assert [100 < request["max_tokens"] < 500 for request in model_server.requests] == [True, False]
    assert model_server.requests[1]["max_tokens"] == 5


@pytest.mark.parametrize(
    "refusal",
    [
        "max_tokens is too large: 16384. This model supports at most 8192 completion tokens.",
        "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for this model",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "This model's maximum context length is 8193 tokens. However, you requested 16392 tokens (8 in the messages, 16384 in "
        "the completion). Please reduce the length of the messages or completion.",
    ],
)
def test_a_server_that_writes_fewer_tokens_is_asked_for_half(
    refusal: str, taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server(status(400, json.dumps({"error": {"message": refusal}}).encode()), "A", prices=CHEAP)

    assert taiwa.ok("say", "--max-cost", "1", "Hi").out == "A\n"
    assert [request["max_tokens"] for request in model_server.requests] == [16_384, 8_192]


def test_several_answers_share_one_limit(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(*"ABCDE", prices={"*": {"input": "1000", "output": "1000"}})

    done = taiwa("generate", "--count", "5", "--max-cost", "0.1", "Hi")

    assert done.code == 1
    assert 1 <= len(model_server.requests) < 5


def test_a_conversation_and_a_day_have_limits_of_their_own(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(*"ABCDEFGHI", prices={"*": {"input": "1000", "output": "1000"}}, max_cost="0.08/conversation, 0.1/day")

    first, second, other = [taiwa("say", "-s", name, "Hi") for name in ("one", "one", "two")]
    last = [taiwa("say", "-s", f"s{number}", "Hi") for number in range(6)][-1]

    assert [done.code for done in (first, second, other, last)] == [0, 1, 0, 1]
    assert "the limit on cost of the conversation would be exceeded: 0.0" in second.err
    assert "the limit on cost per day would be exceeded: 0.0" in last.err


def test_what_is_not_stored_is_refused_under_a_limit_of_a_day(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("A", prices=DEAR, max_cost="5/day")

    assert "generate stores none; give an amount without a period" in taiwa("generate", "Hi").err
    assert taiwa.ok("generate", "--max-cost", "5", "Hi").out == "A\n"


@pytest.mark.parametrize("given", ["5/week", "1,2", "1/day,2/day", "x/day", "-1"])
def test_an_amount_that_cannot_be_read_is_refused(given: str, taiwa: Taiwa) -> None:
    done = taiwa("say", f"--max-cost={given}", "Hi")

    assert done.code == 2
    assert "--max-cost must be" in done.err


def test_the_limits_of_the_settings_are_shown_as_they_are_written(taiwa: Taiwa) -> None:
    taiwa.ok("config", "set", "max_cost", "0.50,5/day")

    assert "0.5, 5/day" in taiwa.ok("config", "show").out


def test_a_refused_text_leaves_no_run(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server("A")
    file = place.folder / "long.txt"
    file.write_text("x" * 2_000_001)

    assert taiwa("say", "-s", "a", "  ").code == 2
    assert taiwa("say", "-s", "a", input=file.read_bytes()).code == 2

    taiwa.ok("say", "-s", "a", "Hi")
    with Store.open(place.store) as store:
        assert store.runs.run(1).status == "done"
