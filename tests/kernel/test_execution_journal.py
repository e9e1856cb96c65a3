"""A journal makes a run repeatable: replayed without a call, or resumed without paying twice."""

import json
from collections.abc import Callable

import pytest

from taiwa.kernel.effects import CallTool, Complete, GetCapabilities, Program, WatchResult, gather, notify, perform
from taiwa.kernel.errors import InputError, ReplayError, StoreError, TaiwaError, ToolError
from taiwa.kernel.execution import Entry, Journal, RunResult, replay
from taiwa.kernel.messages import Request, Response, ToolResult, user
from taiwa.kernel.serialization import canonical
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.scripted import scripted_model
from tests.kernel.fakes import Double, Drive, Echo, ask, call, shown

TOOLS = {CallTool: lambda effect: ToolResult(effect.name.upper())}


def dialogue() -> Program[str]:
    """Effects of several kinds in one strand and in others."""
    able = yield from perform(GetCapabilities())
    first = yield from ask("one")
    yield from notify("told")
    pair = yield from gather([ask("two"), branch()])
    result = yield from call("tool", text=first)
    last = yield from ask("three")
    return "|".join([*sorted(able), first, *pair, result.text, last])


def branch() -> Program[str]:
    inner = yield from gather([ask("four"), ask("five")])
    return "+".join(inner)


SAID = "stop|one!|two!|four!+five!|TOOL|three!"


def stored(journal: Journal) -> tuple[Entry, ...]:
    """The entries as they come out of a store."""
    return tuple(Entry.restore(json.loads(canonical(entry.record()))) for entry in journal.entries)


def recorded(drive: Drive) -> Journal:
    journal = Journal()
    assert drive.run(dialogue(), journal, model=Echo(), handlers=TOOLS) == SAID
    return journal


def test_each_strand_has_its_own_place_in_the_journal(drive: Drive) -> None:
    journal = recorded(drive)

    places = {(entry.strand, entry.index): entry.effect for entry in journal.entries}
    assert sorted(places) == [
        ((), 0),
        ((), 1),
        ((), 3),
        ((), 4),
        ((2, 0), 0),
        ((2, 1, 0, 0), 0),
        ((2, 1, 0, 1), 0),
    ]
    assert isinstance(places[(2, 1, 0, 1), 0], Complete)


def test_a_replay_gives_the_same_value_without_any_edge(drive: Drive) -> None:
    journal = recorded(drive)

    assert replay(dialogue(), journal) == SAID
    assert replay(dialogue(), Journal(stored(journal))) == SAID


def test_a_journal_names_its_model_calls_and_tool_calls(drive: Drive) -> None:
    journal = recorded(drive)

    assert sorted(ask.request.messages[0].text for ask in journal.requests()) == ["five", "four", "one", "three", "two"]
    assert [each.effect.name for each in journal.entries if isinstance(each.effect, CallTool)] == ["tool"]
    assert sorted({entry.kind for entry in journal.entries}) == ["call-tool", "complete", "get-capabilities"]


def test_a_run_can_be_resumed_from_any_prefix_of_its_journal(drive: Drive) -> None:
    entries = stored(recorded(drive))

    for kept in range(len(entries) + 1):
        model, called = Echo(), list[str]()
        handlers = {CallTool: lambda effect, called=called: called.append("x") or TOOLS[CallTool](effect)}  # type: ignore[misc]
        written: list[Entry] = []
        journal = Journal(entries[:kept], written.append)

        assert drive.run(dialogue(), journal, model=model, handlers=handlers) == SAID
        assert len(model.asked) + len(called) + (kept == 0) == len(entries) - kept
        assert len(written) == len(entries) - kept


def test_the_sink_hears_of_an_answer_before_the_program_goes_on(drive: Drive) -> None:
    order: list[str] = []

    def program() -> Program[str]:
        answer = yield from ask("a")
        order.append("program")
        return answer

    drive.run(program(), Journal(sink=lambda entry: order.append("sink")), model=Echo())

    assert order == ["sink", "program"]


def test_a_sink_that_fails_ends_the_run_and_no_program_catches_it(drive: Drive) -> None:
    def full(_: Entry) -> None:
        raise StoreError("the disk is full")

    closed: list[str] = []

    def program() -> Program[str]:
        try:
            return (yield from ask("a"))
        except TaiwaError:
            return (yield from ask("b"))
        finally:
            closed.append("program")

    model = Echo()
    with pytest.raises(StoreError, match="the disk is full") as caught:
        drive.run(program(), Journal(sink=full), model=model)

    assert model.asked == ["a"]
    assert closed == ["program"]
    assert caught.value.spent is not None


@pytest.mark.parametrize("side_by_side", [False, True])
def test_a_sink_that_fails_ends_all_that_runs_side_by_side(drive: Drive, side_by_side: bool) -> None:
    def full(_: Entry) -> None:
        raise StoreError("the disk is full")

    program = gather([ask("a"), ask("b")]) if side_by_side else ask("a")

    with pytest.raises(StoreError, match="the disk is full"):
        drive.run(program, Journal(sink=full), model=Echo())


def test_an_answer_that_cannot_be_recorded_ends_the_run(drive: Drive) -> None:
    def write(entry: Entry) -> None:
        entry.record()

    journal = Journal(sink=write)

    with pytest.raises(InputError, match="a complex cannot be recorded"):
        drive.run(perform(Double(1)), journal, handlers={Double: lambda _: 1j})


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (lambda: ask("other"), r"the journal holds another Complete at 0; the app, the code or the text before it has"),
        (lambda: gather([ask("one"), ask("other")]), "the journal ends before Complete at 0.0.0"),
        (lambda: two("one", "other"), "the journal ends before Complete at 1"),
    ],
)
@pytest.mark.parametrize("form", [lambda journal: journal, lambda journal: Journal(stored(journal))])
def test_a_replay_of_another_program_names_the_place(
    drive: Drive, changed: Callable[[], Program[object]], complaint: str, form: Callable[[Journal], Journal]
) -> None:
    journal = Journal()
    drive.run(ask("one"), journal, model=Echo())

    with pytest.raises(ReplayError, match=complaint):
        replay(changed(), form(journal))


def two(first: str, second: str) -> Program[str]:
    yield from ask(first)
    return (yield from ask(second))


def test_a_program_cannot_catch_that_it_is_not_the_one_that_was_recorded(drive: Drive) -> None:
    def careless() -> Program[str]:
        try:
            return (yield from ask("changed"))
        except TaiwaError:
            return "never mind"

    journal = Journal()
    drive.run(ask("one"), journal, model=Echo())

    with pytest.raises(ReplayError, match="another Complete at 0"):
        replay(careless(), journal)
    with pytest.raises(ReplayError, match="another Complete at 0"):
        drive.run(careless(), Journal(stored(journal)), model=Echo())


def test_a_recorded_error_is_thrown_again(drive: Drive) -> None:
    def program() -> Program[str]:
        try:
            yield from call("broken")
        except ToolError as error:
            return f"{error.code}: {error.message} {(yield from ask('and now'))}"
        return "no error"

    def broken(_: CallTool) -> ToolResult:
        raise ToolError("it broke", code="broken")

    journal = Journal()
    said = drive.run(program(), journal, model=Echo(), handlers={CallTool: broken})

    assert said == "broken: it broke and now!"
    assert replay(program(), journal) == said
    assert replay(program(), Journal(stored(journal))) == said


def test_an_error_that_is_none_of_ours_is_still_an_error_when_it_comes_from_a_store(drive: Drive) -> None:
    def program() -> Program[str]:
        try:
            return (yield from ask("will fail"))
        except (ValueError, TaiwaError) as error:
            return str(error)

    journal = Journal()
    assert drive.run(program(), journal, model=Echo()) == "will fail"

    assert replay(program(), Journal(stored(journal))) == "ValueError: will fail"


def test_a_partial_answer_is_recorded_with_its_error(drive: Drive) -> None:
    journal = Journal()
    with pytest.raises(ValueError, match="will fail"):
        drive.run(ask("will fail"), journal, model=Echo(chunk=4))

    (entry,) = stored(journal)

    assert isinstance(entry.answer, Response)
    assert (entry.answer.text, entry.answer.finish) == ("will fail!", "interrupted")
    assert isinstance(entry.error, TaiwaError)


def test_an_error_before_the_first_chunk_has_no_answer(drive: Drive) -> None:
    journal = Journal()
    with pytest.raises(StoreError):
        drive.run(ask("a"), journal, model=scripted_model(StoreError("down")))

    (entry,) = journal.entries
    assert entry.answer is None


def test_a_resumed_run_shows_again_what_had_been_answered(drive: Drive) -> None:
    entries = stored(recorded(drive))

    streamed = drive.stream(dialogue(), Journal(entries[:2]), model=Echo(), handlers=TOOLS)

    assert shown(streamed).startswith("one!")
    assert isinstance(streamed[-1], RunResult)
    assert streamed[-1].value == SAID


def test_a_resumed_run_shows_an_answer_as_its_watcher_would(drive: Drive) -> None:
    class Quiet:
        def feed(self, text: str) -> WatchResult:
            return WatchResult(text.replace("secret", "..."))

        def close(self) -> WatchResult:
            return WatchResult(".")

    def program() -> Program[str]:
        response = yield from perform(Complete(Request((user("a secret"),)), Quiet))
        return response.text

    journal = Journal()
    drive.run(program(), journal, model=Echo())

    assert shown(drive.stream(program(), Journal(stored(journal)), model=Echo())) == "a ...!."


def test_a_replay_shows_nothing_and_notifies_no_observer(drive: Drive) -> None:
    journal = recorded(drive)
    before = len(journal.entries)

    replay(dialogue(), journal)

    assert len(journal.entries) == before


def test_a_resumed_run_counts_what_was_asked_before(drive: Drive) -> None:
    entries = stored(recorded(drive))

    streamed = drive.stream(
        dialogue(), Journal(entries[:4]), model=Echo(), handlers=TOOLS, limits=UsageLimits(requests=5)
    )

    assert isinstance(streamed[-1], RunResult)
    assert streamed[-1].spent.requests == 5
    assert streamed[-1].spent.tool_calls == 1


def test_an_entry_from_a_store_knows_its_effect_by_its_digest() -> None:
    entry = Entry((), 0, CallTool("a", {"x": [1]}), ToolResult("r"))
    revived = Entry.restore(json.loads(canonical(entry.record())))

    assert revived.answers(CallTool("a", {"x": [1]}))
    assert not revived.answers(CallTool("a", {"x": [2]}))
    assert (revived.kind, entry.kind) == ("effect", "call-tool")
    assert revived.answer == ToolResult("r")
