"""The journal of a turn is written as it happens, and outlives the process that wrote it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taiwa.kernel.effects import CallTool, Program, perform
from taiwa.kernel.errors import ConflictError, InputError, RateLimitError, StoreError
from taiwa.kernel.execution import Entry, Journal
from taiwa.kernel.messages import Response, ToolResult, Usage, assistant
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import Price
from taiwa.store import Run, Store
from tests.store.turns import APP, USAGE, answered, begin, turn


def test_a_run_remembers_how_it_was_begun(store: Store) -> None:
    tip = begin(store, "main", "a")

    number = store.runs.begin("main", tip, APP.hash, "何か", {"strict": True})

    run = store.runs.run(number)
    assert (run.ref, run.base, run.app, run.status, run.calls) == ("main", tip, APP.hash, "open", 0)
    assert (run.text, run.options) == ("何か", {"strict": True})


def test_a_run_may_belong_to_no_session(store: Store) -> None:
    run = store.runs.begin("", None, None, "extract this")

    store.runs.sink(run)(answered("extract this", "{}"))

    assert [line.requests for line in store.costs("session")] == [1]


def test_a_journal_comes_back_as_it_was_written(store: Store) -> None:
    begin(store)
    run = store.runs.begin("main", None, APP.hash, "x")
    partial = Response(assistant("so fa"), "interrupted")
    entries = [
        answered("x", "はい"),
        Entry((0, 1), 0, CallTool("calculator", {"expression": "1+1"}), ToolResult("2", "calculator", value=[2])),
        Entry(
            (0, 1), 1, answered("y", "").effect or "", partial, RateLimitError("slow down", retry_after=2.0, status=429)
        ),
    ]
    entries[0].seconds = 1.25

    for entry in entries:
        store.runs.sink(run)(entry)
    found = store.runs.journal(run)

    assert [entry.record() for entry in found] == [entry.record() for entry in entries]
    assert [entry.answer for entry in found] == [entry.answer for entry in entries]
    assert found[0].seconds == 1.25
    assert isinstance(found[2].error, RateLimitError)
    assert found[2].error.retry_after == 2.0


def test_a_journal_from_the_store_answers_a_program_without_asking_again(store: Store) -> None:
    begin(store)
    run = store.runs.begin("main", None, APP.hash, "x")
    store.runs.sink(run)(answered("x", "paid once"))

    def program() -> Program[str]:
        effect = answered("x", "").effect
        assert effect is not None
        response = yield from perform(effect)
        return str(response.text)

    assert Runtime().run(program(), Journal(store.runs.journal(run))) == "paid once"


def test_the_last_entry_of_a_position_counts_and_all_are_on_the_bill(store: Store) -> None:
    begin(store)
    run = store.runs.begin("main", None, APP.hash, "x")
    store.runs.sink(run)(Entry((), 0, answered("x", "").effect or "", None, RateLimitError("slow down")))
    store.runs.sink(run)(answered("x", "second try"))

    journal = Journal(store.runs.journal(run))

    found = journal.find((), 0)
    assert found is not None
    assert isinstance(found.answer, Response)
    assert found.answer.text == "second try"
    assert store.costs("session")[0].requests == 2


def test_calls_report_usage_and_cost(store: Store) -> None:
    tip = begin(store)
    run = store.runs.begin("main", tip, APP.hash, "x")

    price: Price = lambda name, usage: usage.output_tokens * 7 if name == "given-name" else None  # noqa: E731
    store.runs.sink(run, model="given-name", price=price, price_id="prices-1")(answered("x", "one"))
    store.runs.sink(run, price=price, price_id="prices-1")(answered("x", "two", place=1))
    store.runs.sink(run, price=price)(answered("x", "three", usage=None, place=2))
    tip = store.commit("main", [turn(tip, "x")], expected=tip, run=run)

    calls = store.runs.calls(tip)
    assert [(call.model, call.usage, call.cost_nano, call.price) for call in calls] == [
        ("given-name", USAGE, 140, "prices-1"),
        ("served-model", USAGE, None, ""),
        ("served-model", None, None, ""),
    ]
    assert store.runs.calls(tip, together=False) == calls


def test_the_time_of_reasoning_is_stored_with_its_call(store: Store) -> None:
    tip, entry = begin(store), answered("x", "one")
    entry.seconds, entry.thought = 4.2, 1.25
    run = store.runs.begin("main", tip, APP.hash, "x")

    store.runs.sink(run)(entry)
    tip = store.commit("main", [turn(tip, "x")], expected=tip, run=run)

    assert [(call.time.ms, call.time.thought_ms) for call in store.runs.calls(tip)] == [(4200, 1250)]


def test_the_last_model_is_found_behind_turns_that_no_model_answered(store: Store) -> None:
    tip = begin(store, "main", "before")
    for model in ("first", "second"):
        run = store.runs.begin("main", tip, APP.hash, model)
        store.runs.count_request(run, model)
        tip = store.commit("main", [turn(tip, model)], expected=tip, run=run)
    answered_here = tip
    for number in range(5):
        tip = store.commit("main", [turn(tip, f"imported {number}")], expected=tip)

    assert store.runs.last_model(tip, "main") == "second"
    assert store.runs.last_model(store.nodes.get(answered_here).parent or "") == "first"
    assert store.runs.last_model(begin(store, "other", "alone")) == ""


def test_the_last_model_of_a_long_imported_history_takes_two_statements() -> None:
    store = Store.open(":memory:")
    tip = begin(store, "main", *map(str, range(300)))
    ran: list[str] = []

    store._db._sql.set_trace_callback(ran.append)  # type: ignore[attr-defined]
    found = store.runs.last_model(tip)

    assert (found, len(ran)) == ("", 2)


def test_a_run_of_a_living_process_is_not_offered_for_resuming(store: Store) -> None:
    begin(store)
    run = store.runs.begin("main", None, APP.hash, "x")

    assert store.runs.open_runs() == ()
    with pytest.raises(ConflictError, match="nothing is left to resume"):
        store.runs.claim(run)


def test_a_run_ends_once(store: Store) -> None:
    begin(store)
    run = store.runs.begin("main", None, APP.hash, "x")

    store.runs.end(run, "failed", InputError("first"))
    store.runs.end(run, "abandoned")
    store.runs.end(run, "conflict")

    assert store.runs.run(run).status == "failed"
    assert store.runs.run(run).text == "x"


def test_an_unknown_run_is_reported(store: Store) -> None:
    begin(store)

    with pytest.raises(StoreError, match="run 99 not found"):
        store.runs.run(99)
    with pytest.raises(StoreError, match="run 99 not found"):
        store.runs.sink(99)(answered("x", "y"))
    with pytest.raises(StoreError, match=r"app .* not found"):
        store.runs.begin("main", None, "ab" * 16, "x")


def test_a_run_that_is_deleted_while_it_is_written_is_reported(store: Store) -> None:
    tip = begin(store)
    write = store.runs.sink(store.runs.begin("main", tip, APP.hash, "x"))
    store.delete_session("main")

    with pytest.raises(StoreError, match="run 1 not found"):
        write(answered("x", "y"))


def test_the_journal_of_a_node_is_that_of_the_run_that_made_it(store: Store) -> None:
    tip = begin(store)
    run = store.runs.begin("main", tip, APP.hash, "x")
    store.runs.sink(run)(answered("x", "paid"))

    made = store.commit("main", [turn(tip, "x")], expected=tip, run=run)

    assert [entry.record() for entry in store.runs.journal_of(made)] == [answered("x", "paid").record()]
    assert store.runs.journal_of(tip) == ()


CUT_OFF = """
import sys, time
from taiwa.kernel.effects import Complete, perform
from taiwa.kernel.execution import Journal
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.messages import Request, StreamEnd, TextDelta, Usage, user
from taiwa.store import Store

class Slow:
    name = "slow"
    abilities = frozenset()
    def stream(self, request):
        said = request.messages[-1].text
        if said == "2":
            print("in the third call", flush=True)
            time.sleep(600)
        yield TextDelta("answer " + said)
        yield StreamEnd(usage=Usage(10, 5))

def program():
    for number in range(3):
        yield from perform(Complete(Request((user(str(number)),))))

store = Store.open(sys.argv[1])
tip = store.refs.tip("main")
run = store.runs.begin("main", tip, store.nodes.get(tip).app, "three calls")
Runtime(Slow()).run(program(), Journal(sink=store.runs.sink(run)))
"""


def cut_off(place: str) -> int:
    """Kill a process in the third call of a turn and return its id."""
    with subprocess.Popen([sys.executable, "-c", CUT_OFF, place], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "in the third call\n"
        child.send_signal(signal.SIGKILL)
    return child.pid


def test_answers_before_a_kill_are_stored_and_the_run_can_be_resumed(place: str) -> None:
    with Store.open(place) as store:
        tip = begin(store, "main", "a")

        cut_off(place)

        (run,) = gone(store)
        assert store.runs.open_runs("other") == ()
        assert (run.text, run.base, run.calls) == ("three calls", tip, 2)
        answers = [entry.answer for entry in store.runs.journal(run.id)]
        assert [answer.text for answer in answers if isinstance(answer, Response)] == ["answer 0", "answer 1"]
        claimed = store.runs.claim(run.id)
        assert claimed == run
        assert store.runs.open_runs() == ()
        assert store.refs.tip("main") == tip
        assert store.fsck() == ()


def gone(store: Store) -> tuple[Run, ...]:
    """The runs that were cut off; a server needs a moment to see that its client is gone."""
    deadline = time.monotonic() + 300
    while not (found := store.runs.open_runs("main")) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_a_run_of_a_living_process_cannot_be_claimed(place: str) -> None:
    with Store.open(place) as one, Store.open(place) as two:
        tip = begin(one, "main", "a")
        run = one.runs.begin("main", tip, APP.hash, "b")

        assert two.runs.open_runs() == ()
        with pytest.raises(ConflictError, match="resumed or ended by another program"):
            two.runs.claim(run)
        one.runs.release(run)
        assert two.runs.claim(run).text == "b"
        with pytest.raises(ConflictError):
            one.runs.claim(run)


OWNER = """
import sys
from taiwa.store import Store
print(Store.open(sys.argv[1])._db.owner(), flush=True)
input()
"""


def test_the_number_of_a_process_is_locked_until_the_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.open(path) as store, Store.open(path) as again:
        own = store._db.owner()
        assert store._db.is_alive(own)
        assert again._db.owner() == own
        again.close()
        command = [sys.executable, "-c", OWNER, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            other = int(child.stdout.readline())
            assert other != own
            assert store._db.is_alive(other)
            child.kill()
        assert not store._db.is_alive(other)
        assert store._db.is_alive(own)
    assert not any(store._db.is_alive(number) for number in (0, -1, own + 1))


@pytest.mark.skipif(
    subprocess.run(["unshare", "--pid", "--fork", "true"], check=False, capture_output=True).returncode != 0,
    reason="this account cannot make a PID namespace",
)
def test_a_process_in_another_pid_namespace_is_known_to_live(tmp_path: Path) -> None:
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", OWNER, str(tmp_path / "s.db")]
    with Store.open(tmp_path / "s.db") as store:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            owner = int(child.stdout.readline())
            assert store._db.is_alive(owner)
            child.communicate("\n")
        assert not store._db.is_alive(owner)


def test_zero_usage_is_not_unknown_usage(store: Store) -> None:
    tip = begin(store)
    run = store.runs.begin("main", tip, APP.hash, "x")
    store.runs.sink(run)(answered("x", "free", usage=Usage()))
    tip = store.commit("main", [turn(tip, "x")], expected=tip, run=run)

    assert store.runs.calls(tip)[0].usage == Usage()
