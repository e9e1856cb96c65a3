"""Keys of the callers of a server: made, listed, revoked, and their bills."""

import httpx
import pytest

from tests.cli.conftest import Place, Taiwa
from tests.server.serving import serving

LIMITS = ("--max-cost", "5/day", "--rate", "60/min", "--as", "user:ann")


def test_a_key_is_shown_once_and_opens_the_server_until_it_is_revoked(taiwa: Taiwa, place: Place) -> None:
    key = taiwa.ok("serve", "keys", "add", "ann", "--rate", "60", "--json").json["key"]
    with serving("Tea.", store=str(place.store)) as server:
        url, headers = f"{server.url}/responses", {"x-api-key": key}
        said = {"model": "scripted", "input": "hi"}
        assert httpx.post(url, timeout=300, headers=headers, json=said).status_code == 200
        taiwa.ok("serve", "keys", "revoke", "ann")
        assert httpx.post(url, timeout=300, headers=headers, json=said).status_code == 401
    assert key.encode() not in place.store.read_bytes()
    (line,) = taiwa.ok("cost", "--caller", "ann", "--json").json
    assert (line["model"], line["requests"]) == ("scripted", 1)
    assert taiwa.ok("cost", "--json").json == []


def test_callers_are_listed_with_their_limits(taiwa: Taiwa) -> None:
    assert (
        taiwa.ok("serve", "keys", "list").err
        == "there are no callers yet; create a key with taiwa serve keys add NAME\n"
    )
    assert taiwa.ok("serve", "keys", "list", "--json").json == []
    shown = taiwa.ok("serve", "keys", "add", "ann", *LIMITS)
    assert shown.out.startswith("taiwa-")
    assert len(shown.lines) == 1
    taiwa.ok("serve", "keys", "add", "ben")
    ann, ben = taiwa.ok("serve", "keys", "list", "--json").json
    assert (ann["max_cost_per_day"], ann["rate_per_minute"], ann["as"], ann["spent_today"]) == (
        5.0,
        60,
        ["user:ann"],
        0,
    )
    assert (ben["max_cost_per_day"], ben["rate_per_minute"]) == (None, None)
    assert taiwa.ok("serve", "keys", "list").lines[1].split()[:3] == ["ann", "5", "USD/day"]
    again = taiwa("serve", "keys", "add", "ann")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert taiwa.ok("index", "list", "--caller", "ann", "--json").json == []


@pytest.mark.parametrize("name", ["a/b", "", "x" * 61, "a@b", "ann ", "é"])
def test_a_name_that_is_no_word_is_refused(taiwa: Taiwa, name: str) -> None:
    refused = taiwa("serve", "keys", "add", "--", name)
    assert (refused.code, refused.out) == (2, "")
    assert taiwa("serve", "keys", "revoke", "--", name).code == 2


@pytest.mark.parametrize(
    "limit",
    [
        "--max-cost=much",
        "--max-cost=-1",
        "--max-cost=5/week",
        "--max-cost=inf",
        "--rate=0",
        "--rate=60/hour",
        "--rate=1.5",
    ],
)
def test_a_bad_limit_makes_no_key(taiwa: Taiwa, limit: str) -> None:
    refused = taiwa("serve", "keys", "add", "ann", limit)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert taiwa.ok("serve", "keys", "list", "--json").json == []
