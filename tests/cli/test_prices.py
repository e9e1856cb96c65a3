"""`taiwa prices`: a table with its date and source, from a file or an address, so that costs and limits work at once."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from taiwa.models.price_table import MAX_AGE_DAYS, utc_today
from tests.cli.conftest import Taiwa

TODAY = utc_today().isoformat()
OLD = (utc_today() - timedelta(days=MAX_AGE_DAYS + 1)).isoformat()
PRICES = {"openai:gpt-a": {"input": "1.25", "output": "10"}, "anthropic:claude-b": {"input": "3", "output": "15"}}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"source": "a list", "date": TODAY, "prices": PRICES}))
    return path


@pytest.fixture
def address(table: Path) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = table.read_bytes()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name in the base class)
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/prices.json"
        server.shutdown()


def test_a_table_is_shown_with_its_date_and_source(taiwa: Taiwa, table: Path) -> None:
    assert "there is no table of prices; taiwa prices update fetches one" in taiwa.ok("prices").err

    assert f"2 models have prices of {TODAY}" in taiwa.ok("prices", "update", str(table)).out
    shown = taiwa.ok("prices", "show", "claude")

    assert "anthropic:claude-b" in shown.out
    assert "gpt-a" not in shown.out
    assert f"the table is of {TODAY}, from a list" in shown.err
    assert taiwa.ok("prices", "show", "gpt", "--json").json == {
        "table": {"source": "a list", "date": TODAY, "outdated": False},
        "settings": {},
        "prices": {"openai:gpt-a": PRICES["openai:gpt-a"]},
    }
    taiwa.ok("prices", "remove")
    assert taiwa("prices", "remove").code == 2


def test_a_table_is_fetched_from_an_address(taiwa: Taiwa, address: str) -> None:
    taiwa.ok("prices", "update", address)

    assert "openai:gpt-a" in taiwa.ok("prices").out


def test_an_old_table_is_said_and_not_used(taiwa: Taiwa, table: Path) -> None:
    table.write_text(json.dumps({"source": "a list", "date": OLD, "prices": PRICES}))
    taiwa.ok("prices", "update", str(table))

    assert f"it is not used, because it is {MAX_AGE_DAYS + 1} days old" in taiwa.ok("prices").err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(("none.json",), "none.json: No such file"), (("{table}", "--date", "soon"), "soon"), (("http://127.0.0.1:9/x",), "cannot be reached")],
)  # fmt: skip
def test_what_cannot_be_read_changes_nothing(
    arguments: tuple[str, ...], complaint: str, taiwa: Taiwa, table: Path
) -> None:
    taiwa.ok("prices", "update", str(table))

    done = taiwa("prices", "update", *(each.format(table=table) for each in arguments))

    assert done.code in (1, 2)
    assert complaint in done.err
    assert "openai:gpt-a" in taiwa.ok("prices").out


def test_prices_of_the_future_are_refused(taiwa: Taiwa, table: Path) -> None:
    table.write_text(json.dumps({"date": "2999-01-01", "prices": PRICES}))

    assert "which is in the future; correct the date" in taiwa("prices", "update", str(table)).err


def test_a_limit_on_cost_works_with_a_model_of_the_table(
    taiwa: Taiwa, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    say = ("say", "-m", "openai:gpt-a", "--max-cost", "0.000001", "Hi")
    unknown = taiwa(*say).err

    taiwa.ok("prices", "update", str(table))

    assert "the price of openai:gpt-a is unknown" in unknown
    assert "taiwa prices update" in unknown
    assert "the limit on cost would be exceeded: 0 of 0.000001 is used" in taiwa(*say).err
