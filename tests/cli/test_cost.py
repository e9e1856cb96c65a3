"""The bill: what is known is added up, what is not is said, and a limit holds."""

from typing import get_args

import pytest

from taiwa import open as open_conversation
from taiwa.cli.store import AXES
from taiwa.store import Axis, Store
from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.peers.faults import event, head, raw, speech, words

PRICES = {"*": {"input": "2", "cache_read": "0.5", "output": "10"}}
ONE_CALL = (3 * 2 + 4 * 0.5 + 3 * 10) / 1e6
"""A test answer: seven tokens in, four of them cached, and three out."""


def test_the_axes_are_those_of_the_store() -> None:
    assert get_args(Axis) == AXES


def test_nothing_was_spent_yet(taiwa: Taiwa) -> None:
    assert taiwa.ok("cost").err == "nothing was spent yet\n"
    assert taiwa.ok("cost", "--json").json == []


def test_the_cost_of_one_conversation_is_shown(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("a"), delta("b"), prices=PRICES)
    taiwa.ok("say", "-s", "one", "Hi")
    taiwa.ok("say", "-s", "two", "Hi")

    assert [row["session"] for row in taiwa.ok("cost", "one", "--json").json] == ["one"]
    assert "cannot be grouped by day" in taiwa("cost", "one", "--by", "day").err
    assert "'three' not found" in taiwa("cost", "three").err


def test_a_call_costs_what_its_tokens_cost(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("a"), prices=PRICES)

    assert taiwa.ok("say", "chat", "--json", "Hi").json["cost"] == pytest.approx(ONE_CALL)

    (line,) = taiwa.ok("cost", "--json").json
    assert (line["model"], line["requests"], line["cost"]) == (model_server.model, 1, pytest.approx(ONE_CALL))
    assert taiwa.ok("cost").lines[1].endswith("0.000038 USD")


def test_a_bill_is_cut_by_session_app_and_day(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(*[delta(answer) for answer in "abc"])
    taiwa.ok("say", "chat", "one")
    taiwa.ok("say", "chat", "two")
    taiwa.ok("say", "code", "three")

    def names(by: str) -> list[tuple[str, int]]:
        return [(line[by], line["requests"]) for line in taiwa.ok("cost", "--by", by, "--json").json]

    assert names("session") == [("chat-1", 1), ("chat-2", 1), ("code-1", 1)]
    assert names("app") == [("chat", 2), ("code", 1)]
    assert len(names("day")) == 1


def test_the_bills_of_all_owners_stand_side_by_side(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("a"), delta("b"), prices=PRICES)
    taiwa.ok("say", "chat", "one")
    with Store.open(place.store, owner="ann") as store:
        open_conversation("chat", model=model_server.model, store=store).say("two")

    assert [line.split("  ")[0] for line in taiwa.ok("cost", "--by", "owner").lines[1:]] == ["(command line)", "ann"]
    lines = taiwa.ok("cost", "--by", "owner", "--json").json
    assert [(line["owner"], line["requests"]) for line in lines] == [("", 1), ("ann", 1)]
    assert [line["requests"] for line in taiwa.ok("cost", "--json").json] == [1]


def test_usage_that_a_server_does_not_report_is_unknown_and_not_zero(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("a"), speech(delta("b"), usage=False), prices=PRICES)
    taiwa.ok("say", "chat", "one")
    result = taiwa.ok("say", "-c", "--json", "two").json

    assert (result["usage"], result["cost"]) == (None, None)
    (line,) = taiwa.ok("cost", "--json").json
    assert (line["cost"], line["calls_without_usage"]) == (None, 1)
    assert line["known_cost"] == pytest.approx(ONE_CALL)
    shown = taiwa.ok("cost")
    assert shown.lines[1].endswith("unknown")
    assert "1 call reported no usage" in shown.err


def test_the_cost_of_a_model_without_a_price_is_unknown(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("a"))
    place.set(model=model_server.model.replace("127.0.0.1", "0.0.0.0"))

    assert taiwa.ok("say", "chat", "--json", "Hi").json["cost"] is None


WRITTEN = {"*": {"input": 0, "output": 1}}
"""An answer costs 0.000003, and one of 16 tokens, fewer than which are not asked for, 0.000016."""


def test_a_limit_stops_the_call_that_would_pass_it_and_keeps_what_was_paid_for(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server(delta("a", topics="wrong"), '{"topics": []}', prices=WRITTEN)

    result = taiwa.ok("say", "chat", "--max-cost", "0.000018", "Hi")

    assert result.out == "a\n"
    assert "the limit on cost would be exceeded: 0.000003 of 0.000018 is used" in result.err
    assert len(model_server.requests) == 1
    assert taiwa.ok("cost", "--json").json[0]["requests"] == 1


def test_a_cost_limit_holds_over_the_turns_of_a_session(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("a"), delta("b"), delta("c"), prices=WRITTEN)

    talked = taiwa("chat", "chat", "--max-cost", "0.00002", input="one\ntwo\nthree\n")

    assert talked.code == 1
    assert len(model_server.requests) == 2
    assert talked.err.count("the limit on cost would be exceeded: 0.000006 of 0.00002 is used") == 1


def test_reasoning_tokens_and_cached_ones_are_on_the_bill(model_server: ModelServer, taiwa: Taiwa) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 500,
        "prompt_tokens_details": {"cached_tokens": 800},
        "completion_tokens_details": {"reasoning_tokens": 300},
    }
    answer = raw(head() + words("Hello!") + event({}, finish="stop") + event(usage=usage))
    model_server(answer, prices={model_server.model: {"input": 2, "output": 8, "cache_read": 0.5}})

    said = taiwa.ok("say", "-v", "Hi")
    table = taiwa.ok("cost").lines

    assert "1,000 in (800 cached) + 500 out (300 reasoning) tokens" in said.err
    assert "0.0048 USD" in said.err  # 200 at 2, 800 at 0.5 and 500 at 8 a million
    assert table[0].split()[1:] == ["requests", "failed", "input", "cached", "output", "reasoning", "cost"]
    assert "300" in table[1].split()
