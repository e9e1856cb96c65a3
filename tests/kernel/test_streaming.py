"""What a run streams, and what happens when the stream is closed."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from taiwa.kernel.effects import Complete, HideOutput, Program, Watcher, WatchResult, gather, notify, perform
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.execution import EffectFinished, EffectStarted, Event, Journal, RunResult
from taiwa.kernel.messages import (
    Chunk,
    Message,
    Notice,
    Request,
    Response,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    Usage,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import Billing, UsageLimits
from taiwa.models.scripted import scripted_model
from tests.kernel.fakes import Clock, Double, Drive, Echo, ask, shown


def watched(text: str, watch: Callable[[], Watcher]) -> Program[Response]:
    return (yield from perform(Complete(Request((user(text),)), watch)))


@dataclass
class CutAt:
    """Shows all words and cuts the answer before a word; holds back what may be its beginning."""

    word: str
    held: str = ""
    kept: int = 0

    def feed(self, text: str) -> WatchResult:
        self.held += text
        at = self.held.find(self.word)
        if at >= 0:
            return WatchResult(self.held[:at], self.kept + at)
        keep = max(len(self.held) - len(self.word) + 1, 0)
        show, self.held = self.held[:keep], self.held[keep:]
        self.kept += keep
        return WatchResult(show)

    def close(self) -> WatchResult:
        return WatchResult(self.held)


class Upper:
    """Shows nothing until the end, then that there was an answer."""

    def feed(self, text: str) -> WatchResult:
        return WatchResult()

    def close(self) -> WatchResult:
        return WatchResult("(answered)")


def test_text_streams_as_it_arrives_and_the_result_comes_last(drive: Drive) -> None:
    def program() -> Program[str]:
        first = yield from ask("one")
        yield from notify("between")
        return first + (yield from ask("two"))

    streamed = drive.stream(program(), model=Echo(chunk=2))

    words = [TextDelta("on"), TextDelta("e!"), Notice("between"), TextDelta("tw"), TextDelta("o!")]
    assert streamed[:-1] == words
    done = streamed[-1]
    assert isinstance(done, RunResult)
    assert done.value == "one!two!"
    assert done.spent.requests == 2
    assert len(done.journal.entries) == 2


def test_who_only_waits_for_the_end_gets_the_value_the_bill_and_the_journal(drive: Drive) -> None:
    def program() -> Program[str]:
        yield from notify("nobody hears this")
        return (yield from ask("one"))

    done = drive.run_result(program(), model=Echo())

    assert done.value == "one!"
    assert done.spent.requests == 1
    assert [entry.kind for entry in done.journal.entries] == ["complete"]


def test_a_notice_is_streamed_before_the_next_effect(drive: Drive) -> None:
    order: list[str] = []

    def slow(_: Double) -> int:
        order.append("performed")
        return 1

    def program() -> Program[int]:
        yield from notify("looking it up")
        return (yield from perform(Double(1)))

    drive.stream(program(), most=1, handlers={Double: slow})

    assert order == []


def test_notices_of_a_program_without_other_effects_are_streamed(drive: Drive) -> None:
    def program() -> Program[str]:
        yield from notify("a")
        yield from notify("b")
        return "done"

    streamed = drive.stream(program())

    assert streamed[:-1] == [Notice("a"), Notice("b")]


def test_thinking_is_recorded_and_not_shown(drive: Drive) -> None:
    response = Response(user("").__class__("assistant", (Thinking("hm"), *user("yes").parts)))

    streamed = drive.stream(perform(Complete(Request((user("?"),)))), model=scripted_model(response))

    assert shown(streamed) == "yes"
    assert isinstance(streamed[-1], RunResult)
    assert streamed[-1].value.message.parts[0] == Thinking("hm")


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100])
def test_a_watcher_cuts_an_answer_wherever_its_chunks_end(drive: Drive, chunk: int) -> None:
    model = Echo(chunk=chunk)

    streamed = drive.stream(watched("say <stop> never said", lambda: CutAt("<stop>")), model=model)

    assert shown(streamed) == "say "
    assert isinstance(streamed[-1], RunResult)
    response = streamed[-1].value
    assert (response.text, response.finish) == ("say ", "cut")
    assert model.closed == ["say <stop> never said"]


def test_an_answer_that_was_cut_is_of_unknown_cost(drive: Drive) -> None:
    streamed = drive.stream(watched("a <stop> b", lambda: CutAt("<stop>")), model=Echo(chunk=2))

    assert isinstance(streamed[-1], RunResult)
    assert streamed[-1].spent.calls_without_usage == 1
    assert streamed[-1].spent.cost is None


def test_text_behind_a_cut_in_the_same_chunk_is_discarded_separately(drive: Drive) -> None:
    streamed = drive.stream(watched("a <stop> b", lambda: CutAt("<stop>")), model=Echo())

    assert isinstance(streamed[-1], RunResult)
    assert (streamed[-1].value.text, streamed[-1].value.discarded) == ("a ", "<stop> b!")


def test_what_a_cut_answer_used_at_most_is_bounded_by_what_was_sent_and_received(drive: Drive) -> None:
    streamed = drive.stream(
        watched("問い <stop> b", lambda: CutAt("<stop>")), model=Echo(), billing=Billing(lambda _, u: u.output_tokens)
    )

    assert isinstance(streamed[-1], RunResult)
    max_usage = streamed[-1].value.max_usage
    assert max_usage.input_tokens > len("問い <stop> b".encode())
    assert max_usage.output_tokens == len("問い <stop> b!".encode())
    spent = streamed[-1].spent
    assert (spent.estimated, spent.max_cost, spent.cost) == (max_usage, max_usage.output_tokens, None)


def test_what_a_watcher_held_back_is_shown_at_the_end(drive: Drive) -> None:
    streamed = drive.stream(watched("say <st", lambda: CutAt("<stop>")), model=Echo(chunk=1))

    assert shown(streamed) == "say <st!"


def test_a_watcher_decides_what_is_shown_and_not_what_was_answered(drive: Drive) -> None:
    streamed = drive.stream(watched("secret", Upper), model=Echo())

    assert shown(streamed) == "(answered)"
    assert isinstance(streamed[-1], RunResult)
    assert streamed[-1].value.text == "secret!"


def test_each_answer_has_its_own_watcher(drive: Drive) -> None:
    def program() -> Program[str]:
        one = yield from watched("a<stop>b", lambda: CutAt("<stop>"))
        two = yield from watched("c<stop>d", lambda: CutAt("<stop>"))
        return one.text + two.text

    assert drive.run(program(), model=Echo(chunk=1)) == "ac"


@pytest.mark.parametrize("side_by_side", [False, True])
def test_the_error_of_a_watcher_is_thrown_into_the_program(drive: Drive, side_by_side: bool) -> None:
    class Broken(Upper):
        def feed(self, text: str) -> WatchResult:
            raise KeyError(text)

    def program() -> Program[str]:
        asking = watched("hi", Broken)
        try:
            yield from gather([asking, watched("ho", Upper)]) if side_by_side else asking
        except KeyError:
            return "caught"
        return "missed"

    assert drive.run(program(), model=Echo()) == "caught"


def test_words_of_programs_side_by_side_are_all_shown(drive: Drive) -> None:
    streamed = drive.stream(gather([ask("a"), ask("b"), ask("c")]), model=Echo())

    assert sorted(event.text for event in streamed if isinstance(event, TextDelta)) == ["a!", "b!", "c!"]


@pytest.mark.parametrize("side_by_side", [False, True])
def test_closing_the_iterator_closes_the_stream_and_the_program(drive: Drive, side_by_side: bool) -> None:
    closed: list[str] = []
    model = Echo(chunk=1)

    def careful() -> Program[str]:
        try:
            return (yield from ask("a long answer"))
        finally:
            closed.append("program")

    drive.stream(gather([careful()]) if side_by_side else careful(), most=1, model=model)

    assert closed == ["program"]
    assert model.closed == ["a long answer"]


def test_an_iterator_that_is_never_begun_asks_nothing(drive: Drive) -> None:
    model = Echo()

    drive.stream(ask("a"), most=0 if drive.kind == "blocking" else 1, model=model)
    gc.collect()

    assert model.asked == ([] if drive.kind == "blocking" else ["a"])


def test_an_error_comes_after_the_text_before_it(drive: Drive) -> None:
    streamed: list[object] = []

    with pytest.raises(ValueError, match="will fail"):
        drive.run(ask("will fail"), model=Echo(chunk=4), observers=[streamed.append])

    assert shown(streamed) == "will fail!"


def test_observers_receive_every_event_in_their_order(drive: Drive) -> None:
    streamed: list[tuple[str, str]] = []

    def observer(name: str) -> Callable[[Event], None]:
        return lambda event: streamed.append((name, type(event).__name__))

    def program() -> Program[str]:
        yield from notify("hello")
        return (yield from ask("hi"))

    drive.run(program(), model=Echo(), observers=[observer("first"), observer("second")])

    kinds = ["Notice", "EffectStarted", "TextDelta", "EffectFinished"]
    assert streamed == [(name, kind) for kind in kinds for name in ("first", "second")]


def test_observers_receive_the_reasoning_of_answers_that_are_shown(drive: Drive) -> None:
    def program() -> Program[None]:
        yield from perform(Complete(Request((user("a"),))))
        yield from perform(Complete(Request((user("b"),)), HideOutput))

    seen: list[Event] = []
    block = Thinking("Hm.", {"type": "thinking", "signature": "x"}, "o")
    answer = Response(Message("assistant", (block, Text("Yes."))))
    drive.run(program(), model=scripted_model(answer, answer), observers=[seen.append])
    assert [event for event in seen if isinstance(event, ThinkingDelta)] == [
        ThinkingDelta("Hm."),
        ThinkingDelta("", block),
    ]


def test_observers_receive_the_position_and_the_result_of_an_effect(drive: Drive) -> None:
    streamed: list[Event] = []

    drive.run(gather([ask("a")]), model=Echo(), observers=[streamed.append])

    asked, got = streamed[0], streamed[-1]
    assert isinstance(asked, EffectStarted)
    assert isinstance(got, EffectFinished)
    assert (asked.strand, asked.index) == (got.entry.strand, got.entry.index) == ((0, 0), 0)
    assert isinstance(got.entry.answer, Response)


@pytest.mark.parametrize("kind", [EffectStarted, EffectFinished, TextDelta, Notice])
def test_an_observer_that_refuses_ends_the_run_and_no_program_catches_it(drive: Drive, kind: type) -> None:
    def observer(event: Event) -> None:
        if isinstance(event, kind):
            raise InputError("the observer says no")

    def program() -> Program[str]:
        try:
            yield from notify("hello")
            yield from ask("a")
        except InputError:
            pass
        return (yield from ask("b"))

    model = Echo()
    with pytest.raises(InputError, match="the observer says no"):
        drive.run(program(), model=model, observers=[observer])

    assert "b" not in model.asked


@dataclass
class Thinker(Echo):
    """Thinks for two seconds, says something, thinks for three more, or only writes, and writes for five."""

    clock: Clock = field(default_factory=Clock)
    tagged: bool = False

    def stream(self, request: Request) -> Iterator[Chunk]:
        del request
        pieces = (
            ("<think>Hm.</think>", "So: ") if self.tagged else (ThinkingDelta("Hm."), "So: ", ThinkingDelta("And?"))
        )
        for piece, seconds in zip((*pieces, "tea.", StreamEnd()), (2, 0, 3, 5, 0), strict=False):
            yield TextDelta(piece) if isinstance(piece, str) else piece
            self.clock.seconds += seconds


@pytest.mark.parametrize(("tagged", "thought"), [(False, 5), (True, 2)])
def test_the_time_of_reasoning_is_measured_until_the_text_after_it(tagged: bool, thought: int) -> None:
    model, journal = Thinker(tagged=tagged), Journal()

    Drive("blocking").run(ask("a"), journal, model.clock, model=model, limits=UsageLimits())

    assert [(entry.thought, entry.seconds) for entry in journal.entries] == [(thought, 10)]


class Interrupted(Echo):
    """A model at which a person interrupts in mid-answer."""

    def stream(self, request: Request) -> Iterator[Chunk]:
        try:
            yield TextDelta("half ")
            yield ThinkingDelta("an")
            raise KeyboardInterrupt
        finally:
            self.closed.append("interrupted")


def interrupted() -> Program[tuple[Response, str]]:
    first = yield from perform(Complete(Request((user("go"),))))
    return first, (yield from perform(Double(1))) * "so it goes on"


def test_an_interrupt_ends_the_answer_and_the_program_goes_on_with_what_it_has() -> None:
    model, journal = Interrupted(), Journal()
    runtime = Runtime(model, handlers={Double: lambda _: 1}, interrupts="keep")

    first, rest = runtime.run(interrupted(), journal)

    assert (first.text, first.finish, first.usage) == ("half ", "interrupted", None)
    assert rest == "so it goes on"
    assert model.closed == ["interrupted"]
    assert journal.entries[0].answer == first


def test_an_interrupt_ends_the_run_by_default() -> None:
    model, closed = Interrupted(), list[str]()

    def program() -> Program[object]:
        try:
            return (yield from interrupted())
        finally:
            closed.append("program")

    with pytest.raises(KeyboardInterrupt):
        Runtime(model).run(program())

    assert closed == ["program"]
    assert model.closed == ["interrupted"]


def test_an_interrupt_between_answers_ends_the_run_in_any_case() -> None:
    def interrupt(_: Double) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Runtime(Echo(), handlers={Double: interrupt}, interrupts="keep").run(perform(Double(1)))


def test_a_model_that_cannot_even_begin_is_an_error_of_its_effect(drive: Drive) -> None:
    @dataclass
    class Dead(Echo):
        seen: list[str] = field(default_factory=list[str])

        def stream(self, request: Request) -> Iterator[Chunk]:
            raise ConfigError("no key")

        astream = stream  # type: ignore[assignment]

    def program() -> Program[str]:
        try:
            return (yield from ask("a"))
        except ConfigError as error:
            return error.message

    assert drive.run(program(), model=Dead()) == "no key"


def test_the_usage_of_a_whole_answer_is_on_the_bill(drive: Drive) -> None:
    streamed = drive.stream(
        ask("a"), model=Echo(usage=Usage(2, 3)), billing=Billing(lambda _, usage: usage.input_tokens)
    )

    done = streamed[-1]
    assert isinstance(done, RunResult)
    assert (done.spent.usage, done.spent.cost, done.spent.calls_without_usage) == (Usage(2, 3), 2, 0)


def test_what_comes_after_the_end_of_an_answer_is_not_lost(drive: Drive) -> None:
    class Late(Upper):
        def close(self) -> WatchResult:
            return WatchResult("last words")

    streamed = drive.stream(watched("x", Late), model=Echo(finish=False))

    assert shown(streamed) == "last words"
    assert isinstance(streamed[-1], RunResult)
    assert streamed[-1].value.finish == "interrupted"


def test_chunks_without_words_show_nothing(drive: Drive) -> None:
    streamed = drive.stream(ask(""), model=scripted_model(""))

    assert [type(event) for event in streamed] == [RunResult]
    assert StreamEnd() == StreamEnd("stop")
