"""Several servers over one PostgreSQL database: a run of one is followed, ended and taken over through another."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.extract import Attempt
from taiwa.flows.solve.rationale import ExecutedCall, Rationale
from taiwa.flows.turn import Findings, Reply
from taiwa.kernel.messages import Notice, Request, Response, TextDelta, ToolResult, Usage, assistant
from taiwa.kernel.usage_limits import RunUsage
from taiwa.server.access import COOKIE_SECONDS, Access
from taiwa.server.conversation_turns import FollowedRuns
from taiwa.server.http_responses import ApiError
from taiwa.server.runs import RunEvent
from taiwa.server.shared_store import event_from_json, event_to_json
from taiwa.sessions.commit_turn import LEFT_OUT, TurnResult
from taiwa.store import Store
from tests.database import Database
from tests.server.processes import ROOT, ServerProcess, server_processes
from tests.server.serving import serving
from tests.server.test_stopping import APP, FIRST, REPAIR

Two = list[ServerProcess]


@pytest.fixture
def own_two(database: Database) -> Iterator[Two]:
    """Two servers that a test may end."""
    with server_processes(database.url, 2) as servers:
        yield servers


def test_after_kill_9_another_server_completes_the_response_without_paying_twice(
    database: Database, tmp_path: Path
) -> None:
    app = tmp_path / "cafe.md"
    app.write_text(APP)
    with server_processes(database.url, 2, str(app)) as (killed, other), Store.open(database.url) as store:
        name = killed.begin("Two teas", model="cafe")
        killed.wait_until_asked()
        killed.dictate(FIRST)
        killed.wait_until_asked()  # its state delta is wrong, and the model is asked again
        with other.events(f"/v1/responses/{name}", stream="true") as events:
            killed.kill()
            other.wait_until_asked()
            other.dictate(REPAIR)
            assert [*events][-1]["type"] == "response.completed"
        assert other.client.get(f"/v1/responses/{name}").json()["output"][0]["content"][0]["text"] == "Two teas."
        (run,) = store.refs.list()
        assert [call.kind for call in store.runs.calls(run.tip)].count("complete") == 2
        assert store.fsck() == ()


def test_what_a_server_leaves_unfinished_when_it_is_stopped_is_completed_by_another(own_two: Two) -> None:
    stopped, other = own_two
    name = stopped.begin("Count.")
    stopped.wait_until_asked()
    stopped.kill(signal.SIGTERM)

    other.wait_until_asked()
    other.dictate("One.")

    with other.events(f"/v1/responses/{name}", stream="true") as events:
        assert [*events][-1]["type"] == "response.completed"
    assert stopped.line() == "ended"


def test_the_run_of_a_killed_server_ends_for_its_readers_and_is_resumed_through_another(own_two: Two) -> None:
    killed, other = own_two
    body = {"app": "plain", "text": "Count.", "name": "counting"}
    run = killed.client.post("/api/conversations", json=body).json()["run"]
    killed.wait_until_asked()
    with other.events(f"/api/runs/{run}/events") as events:
        killed.kill()
        error, end = events
    assert (error["error"]["code"], end) == ("stopping", {})
    again = other.client.post("/api/conversations/counting/resume", json={}).json()["run"]
    other.wait_until_asked()
    other.dictate("One.")
    with other.events(f"/api/runs/{again}/events") as events:
        assert [each.get("text") for each in events][-2] == "One."


@pytest.fixture(scope="module")
def two(postgres_server: Database) -> Iterator[Two]:
    """Two servers over one database, which outlive a test, and would take over what those of another test leave."""
    postgres_server.empty()
    with server_processes(postgres_server.url, 2) as servers:
        yield servers


def test_a_response_that_one_server_writes_is_followed_and_taken_up_again_through_another(two: Two) -> None:
    writer, other = two
    name = writer.begin("Count.")
    writer.wait_until_asked()
    writer.dictate("One ", end=False)
    seen: list[dict[str, Any]] = []
    with other.events(f"/v1/responses/{name}", stream="true") as events:
        for each in events:
            seen.append(each)
            if each["type"] == "response.output_text.delta":
                break
        assert other.client.get(f"/v1/responses/{name}").json()["status"] == "in_progress"
        writer.dictate("two.")
        seen += events
    assert [each["delta"] for each in seen if "delta" in each] == ["One ", "two."]
    assert seen[-1]["type"] == "response.completed"
    for server in two:
        with server.events(f"/v1/responses/{name}", stream="true", starting_after=3) as events:
            assert list(events) == seen[4:]


def test_a_response_that_one_server_writes_is_cancelled_through_another(two: Two) -> None:
    writer, other = two
    name = writer.begin("Count.")
    writer.wait_until_asked()

    cancelled = other.client.post(f"/v1/responses/{name}/cancel").json()

    assert cancelled["status"] == "cancelled"
    assert writer.client.get(f"/v1/responses/{name}").json() == cancelled


def test_a_response_that_one_server_writes_is_deleted_through_another(two: Two) -> None:
    writer, other = two
    name = writer.begin("Count.")
    writer.wait_until_asked()

    with writer.events(f"/v1/responses/{name}", stream="true") as events:
        assert other.client.delete(f"/v1/responses/{name}").json()["deleted"]
        *_, last = events

    assert (last["type"], last["response"]["status"]) == ("response.failed", "cancelled")
    assert [server.client.get(f"/v1/responses/{name}").status_code for server in two] == [404, 404]


def test_a_conversation_that_one_server_answers_in_is_locked_for_the_others(
    two: Two, postgres_server: Database
) -> None:
    first, second = two
    name = str(first.client.post("/v1/conversations", json={}).json()["id"])
    response = first.begin("I am first", conversation=name)
    first.wait_until_asked()
    body = {"model": "dictated", "input": "I am second", "conversation": name}
    locked = second.client.post("/v1/responses", json=body)
    assert (locked.status_code, locked.json()["error"]["code"]) == (409, "conversation_locked")
    first.dictate("The first answer.")
    with second.events(f"/v1/responses/{response}", stream="true") as events:
        assert [*events][-1]["type"] == "response.completed"
    response = second.begin("I am second", conversation=name)
    second.wait_until_asked()
    second.dictate("The second answer.")
    with first.events(f"/v1/responses/{response}", stream="true") as events:
        assert [*events][-1]["type"] == "response.completed"
    with Store.open(postgres_server.url) as store:
        turns = [node.answer for _, node in store.nodes.path(store.refs.tip(name)) if node.kind == "turn"]
        assert turns == ["The second answer.", "The first answer."]
        assert store.fsck() == ()


def test_of_two_servers_that_look_at_once_one_answers_in_a_conversation(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def wait(_: Request) -> str:
        asked.set()
        assert may_answer.wait(300)
        return "One."

    def none_yet(*_: object) -> None:
        """What both see before either has begun."""

    monkeypatch.setattr(FollowedRuns, "of_session", none_yet)
    with serving(wait, store=database.url) as one, serving("Two.", store=database.url) as other:
        name = one.client.post("/v1/conversations", json={}).json()["id"]
        body = {"model": "scripted", "input": "Tea.", "conversation": name}
        with ThreadPoolExecutor() as pool:
            first = pool.submit(one.client.post, "/v1/responses", json=body)
            assert asked.wait(300)
            second = other.client.post("/v1/responses", json=body)
            may_answer.set()

        assert (second.status_code, second.json()["error"]["code"]) == (409, "conversation_locked")
        assert first.result().json()["status"] == "completed"
        assert one.repository.at(name).turns[-1].answer == "One."
        assert one.turns() == [["Tea."]]


def test_a_run_of_the_page_is_followed_and_stopped_through_another_server(two: Two) -> None:
    writer, other = two
    body = {"app": "plain", "text": "Count.", "name": "counting"}
    run = writer.client.post("/api/conversations", json=body).json()["run"]
    writer.wait_until_asked()
    writer.dictate("One ", end=False)
    with other.events(f"/api/runs/{run}/events") as events:
        assert next(events) == {"text": "One "}
        busy = other.client.post("/api/conversations/counting/turns", json={"text": "Go on."})
        assert (busy.status_code, busy.json()["error"]["code"]) == (409, "conflict")
        assert other.client.post(f"/api/runs/{run}/cancel", json={}).json() == {"cancelled": True}
        *_, turn, end = events
    assert (turn["text"].strip(), end) == ("One", {})
    assert other.client.get("/api/conversations/counting").json()[-1]["answer"].strip() == "One"


def test_a_browser_that_logged_in_at_one_server_is_known_to_the_others(two: Two) -> None:
    writer, other = two
    with httpx.Client(timeout=300) as browser:
        assert browser.get(writer.login_url).status_code == 303
        assert browser.get(writer.login_url.replace("code=", "code=x")).status_code == 303  # it has its cookie
        assert browser.get(other.client.base_url.join("/api/apps")).status_code == 200
        ((name, value),) = browser.cookies.items()
    forged = {"cookie": f"{name}=9{value}"}
    assert httpx.get(other.client.base_url.join("/api/apps"), timeout=300, headers=forged).status_code == 401


def test_a_cookie_expires() -> None:
    now = 1_000_000.0
    access = Access("key", 1, lambda _: None, clock=lambda: now)
    cookie = {"cookie": f"{access.cookie}={access.exchange(access.new_code())}"}
    assert asyncio.run(access.authenticate(cookie)) == ""
    now += COOKIE_SECONDS
    with pytest.raises(ApiError, match="the key is wrong"):
        asyncio.run(access.authenticate(cookie))


def test_a_deleted_conversation_leaves_no_events_behind(two: Two, postgres_server: Database) -> None:
    writer, _ = two
    run = writer.client.post("/api/conversations", json={"text": "Count.", "name": "deleted"}).json()["run"]
    writer.wait_until_asked()
    writer.dictate("One.")
    with writer.events(f"/api/runs/{run}/events") as events:
        list(events)

    with Store.open(postgres_server.url) as store:
        assert store.shared_runs.find(run) is not None
        assert store.owned_by("eve").shared_runs.find(run) is None

        assert writer.client.delete("/api/conversations/deleted").status_code == 200

        assert store.shared_runs.find(run) is None


def test_a_file_is_served_by_one_process_at_a_time(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    command = [sys.executable, "-m", "taiwa", "serve", "--port", "0", "--store", place]
    with server_processes(place, 1) as (first,):
        refused = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
        first.kill()
        first.child.wait()
    with server_processes(place, 1) as (again,):
        assert again.client.get("/health").json() == {"status": "ok"}

    assert refused.returncode == 2
    assert f"another `taiwa serve` uses the store {place}; stop it" in refused.stderr


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
RESULTS = st.builds(
    lambda text, warning, number: TurnResult(
        Reply(
            text, {"items": [text]}, (warning,), value={"n": number}, response=Response(assistant(text), usage=Usage(3, number)),
            findings=Findings(
                calls=(ExecutedCall("tool", text, ToolResult(text)),), rationale=Rationale(answer=text), attempts=(Attempt(text),),
            ),
        ),
        "main", "0" * 32, "1" * 32, RunUsage(requests=number), {"a": [text]}, (ToolResult(text, "tool", "call-1"),), prefix=text,
    ),
    TEXTS, TEXTS, st.integers(0, 9),
)  # fmt: skip
ERRORS = st.builds(ApiError, st.sampled_from([429, 502]), TEXTS, TEXTS, TEXTS | st.none(), st.none(), st.integers(0, 9))


@given(st.integers(0, 15), TEXTS.map(TextDelta) | TEXTS.map(Notice) | RESULTS | ERRORS)
def test_events_are_read_by_other_servers_as_they_were_written(index: int, event: object) -> None:
    written = RunEvent(index, event)  # type: ignore[arg-type]

    read = event_from_json(event_to_json(written))

    assert read == written
    if isinstance(event, TurnResult) and isinstance(read.event, TurnResult):
        for path in LEFT_OUT:  # which do not count when replies are compared
            assert attrgetter(path)(read.event) == attrgetter(path)(event)
