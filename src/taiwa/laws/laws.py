"""Properties that programs, apps and reducers must have, each checked on generated examples, and what a counterexample is.

Programs form a monad, keep their log after a failure, and run again from their journal. Conversations can be undone, forked,
replayed and summarized, and keep the prompt prefix that caches need. A reducer is a pure, typed step whose `combine` agrees with it.
"""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from inspect import signature
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from taiwa.conversation.app import App
from taiwa.conversation.history import (
    Conversation,
    Node,
    add_turn,
    apply_nodes,
    begin,
    edit_state,
    summarize_window,
    turns_to_keep,
)
from taiwa.conversation.reducers import NUMBERED, Reducer, known_reducers
from taiwa.conversation.replies import parse_reply, reply_watcher
from taiwa.conversation.state import StateField, delta_output_type, value_output_type
from taiwa.conversation.turn_prompt import ENVIRONMENT, format_reply, stable_bytes, turn_request
from taiwa.flows.chat import say
from taiwa.kernel.effects import Program, Step, bind, join, map, unit
from taiwa.kernel.errors import OutputValidationError, TaiwaError
from taiwa.kernel.execution import replay
from taiwa.kernel.journal import Entry, Journal
from taiwa.kernel.records import Json, canonical, record, restore, value
from taiwa.kernel.text import plural
from taiwa.laws.programs import Arrow, Fail, Oracle, ProgramRun, ProgramTerm, arrow_of, get, put, run_program, step_of
from taiwa.laws.strategies import arrows, oracles, small_values, terms, texts, values
from taiwa.structured import OutputType, parse_notation

MAX_COUNTEREXAMPLE = 2_000
LAW_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, HypothesisException, LookupError, NameError, OSError, RuntimeError, TaiwaError, TypeError,
    ValueError,
)  # fmt: skip
"""Errors that a reducer or an app may raise; each of them breaks the law that was being checked."""
TOO_COSTLY = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)
LawLine: TypeAlias = tuple[str, tuple[st.SearchStrategy[Any], ...], Callable[..., None]]


class BrokenLawError(AssertionError):
    """A law does not hold; the message names the property that failed."""


@dataclass(frozen=True, slots=True)
class Law:
    """A law of a subject. `holds` is called with each tuple of arguments from `examples` and raises if the law is broken."""

    name: str
    subject: str
    examples: st.SearchStrategy[tuple[Any, ...]]
    holds: Callable[..., None]


@value
class LawResult:
    """The result of checking a law: the number of examples tried, and the smallest counterexample found."""

    law: str
    subject: str
    ok: bool
    examples: int
    counterexample: str = ""


def require_equal(left: object, right: object, what: str) -> None:
    """Check that two values are equal.

    Raises:
        BrokenLawError: the values differ.
    """
    if left != right:
        raise BrokenLawError(f"{what}: expected {right}, got {left}")


def canonical_text(item: Json) -> str:
    """Return JSON as canonical text, in which 1, 1.0 and true differ and the order of keys does not matter."""
    return canonical(item).decode()


def check_law(law: Law, examples: int, seed: int) -> LawResult:
    """Check a law on at most `examples` examples; the same seed generates the same examples."""
    count, broken = 0, ""
    names = tuple(signature(law.holds).parameters)

    @seeded(seed)
    @settings(
        max_examples=examples, database=None, deadline=None, derandomize=False, verbosity=Verbosity.quiet,
        print_blob=False, report_multiple_bugs=False, suppress_health_check=TOO_COSTLY,
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(law.examples)
    def check(arguments: tuple[Any, ...]) -> None:
        nonlocal count, broken
        count += not broken
        try:
            law.holds(*arguments)
        except LAW_ERRORS as error:
            reason = error if isinstance(error, BrokenLawError) else f"{type(error).__name__}: {error}"
            drawn = ", ".join(f"{name}={part!r}" for name, part in zip(names, arguments, strict=True))
            broken = f"{drawn}; {reason}"
            raise

    try:
        check()
    except LAW_ERRORS as error:
        broken = broken or f"{type(error).__name__}: {error}"
    return LawResult(law.name, law.subject, not broken, count, broken[:MAX_COUNTEREXAMPLE])


def require_same(left: Step[Json, Any], right: Step[Json, Any], state: Json, oracle: Callable[[], Oracle]) -> None:
    """Check that two steps run alike from a state with an oracle."""
    ours, theirs = run_program(left(state), oracle()), run_program(right(state), oracle())
    require_equal(ours.outcome, theirs.outcome, "the results differ")
    require_equal(ours.log, theirs.log, "the effects differ")


def left_identity(answer: Json, arrow: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Check that bind(unit(a), f) equals f(a)."""
    follow = arrow_of(arrow)
    require_same(bind(unit(answer), follow), follow(answer), state, oracle)


def right_identity(phrase: ProgramTerm, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Check that bind(step, unit) equals step."""
    require_same(bind(step_of(phrase), unit), step_of(phrase), state, oracle)


def associativity(phrase: ProgramTerm, one: Arrow, two: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Binding is associative."""
    step, first, second = step_of(phrase), arrow_of(one), arrow_of(two)
    require_same(bind(bind(step, first), second), bind(step, lambda answer: bind(first(answer), second)), state, oracle)


def join_of_joins(phrase: ProgramTerm, one: Arrow, two: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Joining three layers does not depend on which two are joined first."""
    first, second = arrow_of(one), arrow_of(two)
    layers = map(step_of(phrase), lambda answer: map(first(answer), second))
    require_same(join(map(layers, join)), join(join(layers)), state, oracle)


def join_of_units(phrase: ProgramTerm, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Join removes a layer added by unit, inside or outside."""
    step = step_of(phrase)
    require_same(join(unit(step)), step, state, oracle)
    require_same(join(map(step, unit)), step, state, oracle)


def bind_is_join_of_map(phrase: ProgramTerm, arrow: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Bind equals join after map."""
    step, follow = step_of(phrase), arrow_of(arrow)
    require_same(bind(step, follow), join(map(step, follow)), state, oracle)


def puts_and_gets(one: Json, two: Json, state: Json, oracle: Callable[[], Oracle]) -> None:
    """The state is the value that was put last, and reading does not change it."""
    require_same(bind(put(one), lambda _: put(two)), put(two), state, oracle)
    require_same(bind(put(one), lambda _: get), bind(put(one), lambda _: unit(one)), state, oracle)
    require_same(bind(get, put), unit(None), state, oracle)


def log_survives_failure(phrase: ProgramTerm, state: Json, oracle: Callable[[], Oracle]) -> None:
    """A failure keeps the log of the effects and answers before it."""
    whole = run_program(step_of(phrase)(state), oracle())
    failed = run_program(bind(step_of(phrase), lambda _: step_of(Fail("afterwards")))(state), oracle())
    require_equal(failed.log, whole.log, "the log")
    require_equal(failed.error is not None, True, "the failure")


def replays(phrase: ProgramTerm, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Replaying a stored journal gives the same result without a call."""
    first = run_program(step_of(phrase)(state), oracle())
    try:
        again = ProgramRun(replay(step_of(phrase)(state), Journal(reload_entries(first.journal))), None, ())
    except TaiwaError as error:
        again = ProgramRun(None, error, ())
    require_equal(again.outcome, first.outcome, "the replay differs")


def resumes(phrase: ProgramTerm, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Resuming from any prefix of the journal gives the same result and performs only the remaining effects."""
    first = run_program(step_of(phrase)(state), oracle())
    entries = tuple(reload_entries(first.journal))
    for count in range(len(entries) + 1):
        again = run_program(step_of(phrase)(state), oracle(), entries[:count])
        after = f"resumed after {plural(count, 'answer')}"
        require_equal(again.outcome, first.outcome, f"{after} the result differs")
        require_equal(len(again.journal.entries), len(entries), f"{after} the journal has another length")


def reload_entries(journal: Journal) -> Iterator[Entry]:
    """Yield the entries as a store returns them."""
    for entry in journal.entries:
        yield Entry.restore(json.loads(canonical(entry.record())))


def program_laws() -> Iterator[Law]:
    """Yield the laws of programs."""
    counting, steady = oracles(counting=True), oracles(counting=False)
    laws: list[LawLine] = [
        ("left identity", (small_values, arrows, small_values, counting), left_identity),
        ("right identity", (terms, small_values, counting), right_identity),
        ("associativity", (terms, arrows, arrows, small_values, counting), associativity),
        ("join of joins", (terms, arrows, arrows, small_values, counting), join_of_joins),
        ("join of units", (terms, small_values, counting), join_of_units),
        ("bind is join of map", (terms, arrows, small_values, counting), bind_is_join_of_map),
        ("puts and gets", (small_values, small_values, small_values, counting), puts_and_gets),
        ("the log survives a failure", (terms, small_values, counting), log_survives_failure),
        ("replay", (terms, small_values, counting), replays),
        ("resume", (terms, small_values, steady), resumes),
    ]
    for name, drawn, holds in laws:
        yield Law(name, "programs", st.tuples(*drawn), holds)


class TurnMove(NamedTuple):
    """A turn: the text of the user, the answer, and the state delta."""

    user: str
    answer: str
    delta: dict[str, Json]


class EditMove(NamedTuple):
    """The user edits the state."""

    changes: dict[str, Json]


class SummaryMove(NamedTuple):
    """The oldest `leaving` turns leave the window and are replaced by a summary."""

    leaving: int
    summary: str


Move: TypeAlias = TurnMove | EditMove | SummaryMove


def apply_move(before: Conversation, move: Move) -> Conversation:
    """Apply a move to a conversation."""
    match move:
        case TurnMove(user, answer, delta):
            return add_turn(before, user, answer, delta)
        case EditMove(changes):
            return edit_state(before, changes)
        case SummaryMove(leaving, summary):
            return summarize_window(before, [past.hash for past in before.turns[leaving:]], summary)


def conversations_after(app: App, moves: list[Move]) -> list[Conversation]:
    """Return a new conversation and its state after each move."""
    return list(accumulate(moves, apply_move, initial=begin(app)))


def reload(app: App, nodes: tuple[Node, ...]) -> Conversation:
    """Rebuild a conversation from nodes as a store returns them."""
    stored: list[Node] = [restore(json.loads(canonical(record(node)))) for node in nodes[1:]]
    return apply_nodes(begin(app), ((node.hash, node) for node in stored), {app.hash: app}.__getitem__)


def observe(here: Conversation) -> tuple[object, ...]:
    """Return everything that a later turn may depend on, the exact next request included."""
    return here.tip, here.state_hash, here.turns, here.summary, here.count, repr(turn_request(here, "next"))


def undo_redo(app: App, moves: list[Move]) -> None:
    """Undo after a commit restores the conversation before it, redo the one after it."""
    for before, after in pairwise(conversations_after(app, moves)):
        require_equal(observe(reload(app, after.new_nodes[:-1])), observe(before), "undone")
        require_equal(observe(reload(app, after.new_nodes)), observe(after), "redone")


def deltas_give_states(app: App, moves: list[Move]) -> None:
    """Applying the recorded deltas gives each recorded state without a call."""
    for here in conversations_after(app, moves):
        require_equal(reload(app, here.new_nodes).state_hash, here.new_nodes[-1].state_hash, "the state")


def fork_independence(app: App, moves: list[Move], ours: list[Move], theirs: list[Move]) -> None:
    """Turns on a fork do not change the other branch."""
    here = conversations_after(app, moves)[-1]
    before = observe(here)
    left = reduce(apply_move, ours, here)
    branch = observe(left), canonical_text(record(left.new_nodes))
    reduce(apply_move, theirs, here)
    require_equal((observe(left), canonical_text(record(left.new_nodes))), branch, "the first branch")
    require_equal(observe(here), before, "the fork point")


def prefix_stability(app: App, moves: list[Move]) -> None:
    """The next request begins with the bytes of this one, unless a summary lies between."""
    for (before, after), move in zip(pairwise(conversations_after(app, moves)), moves, strict=True):
        text = move.user if isinstance(move, TurnMove) else "next"
        if isinstance(move, SummaryMove):
            continue
        sent = stable_bytes(turn_request(before, text))
        follow_up = stable_bytes(turn_request(after, text if isinstance(move, EditMove) else "and then"))
        require_equal(follow_up[: len(sent)], sent, "the beginning of the next request")


def summary_idempotence(app: App, moves: list[Move], leaving: int, summary: str) -> None:
    """A summary keeps the typed state, is idempotent, and leaves a window that is not full."""
    here = conversations_after(app, moves)[-1]
    fixed = turns_to_keep(here)
    staying = here.turns[leaving:] if fixed is None else fixed
    names = [past.hash for past in staying]
    once = summarize_window(here, names, summary)
    twice = summarize_window(once, names, summary)
    require_equal((once.state, once.count), (here.state, here.count), "the state after a summary")
    require_equal((twice.turns, twice.summary, twice.state), (once.turns, once.summary, once.state), "summarized twice")
    if fixed is not None:
        require_equal(turns_to_keep(once), None, "the window is full after a summary")


def edit_laws(app: App, moves: list[Move], one: dict[str, Json], two: dict[str, Json]) -> None:
    """An edit sets its values, the last edit wins, and setting the present values changes nothing."""
    here = conversations_after(app, moves)[-1]
    require_equal({name: edit_state(here, one).state[name] for name in one}, one, "the edited values")
    both = one | two
    require_equal(edit_state(edit_state(here, one), both).state_hash, edit_state(here, both).state_hash, "edited twice")
    unchanged = edit_state(here, {name: here.state[name] for name in one})
    require_equal(unchanged.state_hash, here.state_hash, "restored values")


def state_types(app: App, moves: list[Move]) -> None:
    """Each field always holds a value of its type."""
    for here in conversations_after(app, moves):
        for field in app.fields:
            value_output_type(field).validate({field.name: here.state[field.name]})


def reply_roundtrip(app: App, answer: str, delta: dict[str, Json], cuts: list[int]) -> None:
    """A reply is parsed back, and streaming it in any pieces shows exactly its answer."""
    text = _reply_text(app, answer, delta)
    read = parse_reply(app, text)
    spoken = answer.rstrip() if app.reply == "text+delta" and app.model_fields else answer
    require_equal(read.answer, spoken, "the answer")
    parsed = {name: part for name, part in (read.delta or {}).items() if name != "response"}
    require_equal(canonical_text(parsed), canonical_text(delta), "the delta")
    make = reply_watcher(app)
    if make is not None:
        watching, edges = make(), [0, *sorted(min(place, len(text)) for place in cuts), len(text)]
        shown = [watching.feed(text[start:end]).show for start, end in pairwise(edges)]
        require_equal("".join([*shown, watching.close().show]), spoken, "the text shown")


def turn_replay(app: App, moves: list[Move], text: str, oracle: Callable[[], Oracle], strict: bool) -> None:
    """A turn replays from its journal; a failed turn does not change the conversation and keeps its cost."""
    here = conversations_after(app, moves)[-1]
    before = observe(here)
    step: Step[Conversation, str] = map(say(text, strict=strict), lambda reply: reply.text)
    first = run_program(_turn_outcome(step(here)), oracle())
    require_equal(observe(here), before, "the conversation before the turn")
    if first.error is None:
        again = replay(_turn_outcome(step(here)), Journal(reload_entries(first.journal)))
        require_equal(again, first.value, "the replay")
    else:
        require_equal(len(first.requests) > 0, True, "a failed turn records its requests")


def _turn_outcome(program: Program[tuple[str, Conversation]]) -> Program[tuple[str, ...]]:
    text, after = yield from program
    return text, after.tip, after.state_hash, after.summary


def _reply_text(app: App, answer: str, delta: dict[str, Json]) -> str:
    if app.reply == "environment" and app.model_fields:
        return f"{ENVIRONMENT[0]}\n{json.dumps({'response': answer} | delta)}\n{ENVIRONMENT[1]}"
    return format_reply(app, answer, delta)


def conversation_laws(app: App) -> Iterator[Law]:
    """Yield the laws of conversations with an app."""
    drawn = _ConversationStrategies(app)
    moves, cuts = st.lists(drawn.moves, max_size=4), st.lists(st.integers(0, 99), max_size=5)
    subject = f"{app.name} ({app.reply})"
    laws: list[LawLine] = [
        ("undo after a commit", (moves,), undo_redo),
        ("recorded deltas give the recorded states", (moves,), deltas_give_states),
        ("a fork leaves the other branch unchanged", (moves, moves, moves), fork_independence),
        ("the prompt prefix is stable", (moves,), prefix_stability),
        ("a summary keeps the state and is idempotent", (moves, st.integers(0, 3), texts), summary_idempotence),
        ("edits of the state", (moves, drawn.edits, drawn.edits), edit_laws),
        ("the state keeps its types", (moves,), state_types),
        ("a reply is parsed back and shown", (drawn.answers, drawn.deltas, cuts), reply_roundtrip),
        ("a turn is replayed or rolled back", (moves, drawn.words, drawn.oracles, st.booleans()), turn_replay),
    ]
    for name, arguments, holds in laws:
        yield Law(name, subject, st.tuples(*arguments), partial(holds, app))


class _ConversationStrategies:
    """Strategies for the moves, replies and oracles of conversations with an app."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.words = texts.filter(lambda text: bool(text.strip()))
        self.answers = texts | st.sampled_from(
            ["@@delta\n{}", "```json\n{}\n```", "<state>", '"', "a\n\n@@del", "{", " x"]
        )

    @property
    def deltas(self) -> st.SearchStrategy[dict[str, Json]]:
        """Deltas that the model may write; whole environments for apps with such replies."""
        if not self.app.model_fields:
            return st.just({})
        if self.app.reply != "environment":
            return values(self.app.delta_type)
        return values(self.app.environment_type).map(
            lambda data: {name: data[name] for name in data if name != "response"}
        )

    @property
    def edits(self) -> st.SearchStrategy[dict[str, Json]]:
        """Values that the user may set."""
        if not self.app.model_fields:
            return st.just({})
        each = [values(value_output_type(field)) for field in self.app.model_fields]
        return st.lists(st.one_of(each), max_size=2).map(
            lambda parts: {name: part[name] for part in parts for name in part}
        )

    @property
    def moves(self) -> st.SearchStrategy[Move]:
        """Moves, most of them turns."""
        turn = st.builds(TurnMove, self.words, self.answers, self.deltas)
        return st.one_of(turn, turn, st.builds(EditMove, self.edits), st.builds(SummaryMove, st.integers(0, 3), texts))

    @property
    def oracles(self) -> st.SearchStrategy[Callable[[], Oracle]]:
        """Oracles that sometimes answer in the reply format."""
        good = st.builds(partial(_reply_text, self.app), self.answers, self.deltas)
        words = st.lists(good | self.answers, min_size=1, max_size=3).map(tuple)
        return st.builds(_oracle_with_words, st.integers(0, 99), words, st.sampled_from([0, 0, 4]))


def _oracle_with_words(seed: int, words: tuple[str, ...], failing: int) -> Callable[[], Oracle]:
    return lambda: Oracle(seed, False, failing, words, frozenset({"json_schema"}))


FIELD_TYPES = {
    "items": ("list[str]", "list[int]", "list[any]"),
    "table": ("dict[str, str | null]", "dict[str, any]"),
    "words": ("dict[str, int]",),
    "list": ("list[str]", "list[any]"),
    "dict": ("dict[str, int]",),
}
SCALAR_TYPES = ("str", "any")


@dataclass(frozen=True, slots=True)
class ReducerCase:
    """A reducer on a type: the types of value and delta, and the initial value."""

    reducer: Reducer
    subject: str
    value_type: OutputType[dict[str, Json]]
    delta: OutputType[dict[str, Json]]
    start: Json
    name: str = "x"

    @property
    def deltas(self) -> st.SearchStrategy[Json]:
        """Deltas that the model may write."""
        return values(self.delta).filter(lambda data: self.name in data).map(lambda data: data[self.name])

    @property
    def origins(self) -> st.SearchStrategy[Json]:
        """The initial value, and values that the user may set."""
        return st.just(self.start) | values(self.value_type).map(lambda data: data[self.name])

    def after(self, start: Json, deltas: list[Json]) -> list[Json]:
        """Return the start and the value after each delta."""
        states = [start]
        for turn, delta in enumerate(deltas, 1):
            states.append(self.step(states[-1], delta, turn))
        return states

    def step(self, now: Json, delta: Json, turn: int = 1) -> Json:
        """Apply one delta to copies, so that a reducer that mutates its arguments affects this step only."""
        return self.reducer.step(copy.deepcopy(now), copy.deepcopy(delta), turn)

    def require_type(self, now: Json, what: str) -> None:
        """Check that a value has the type of the field.

        Raises:
            BrokenLawError: the value does not fit the type.
        """
        try:
            self.value_type.validate({self.name: now})
        except OutputValidationError as error:
            raise BrokenLawError(f"{what} {now!r}, which does not fit the type: {error.diagnostics[0]}") from None


def step_is_pure(case: ReducerCase, origin: Json, earlier: list[Json], delta: Json) -> None:
    """A step is deterministic and does not mutate its arguments."""
    now = case.after(origin, earlier)[-1]
    state, change = copy.deepcopy(now), copy.deepcopy(delta)
    first = canonical_text(case.reducer.step(state, change, 1))
    require_equal(canonical_text(state), canonical_text(now), "the step changed its state argument")
    require_equal(canonical_text(change), canonical_text(delta), "the step changed its delta argument")
    require_equal(canonical_text(case.step(now, delta)), first, "the same step gave another result")


def step_keeps_type(case: ReducerCase, origin: Json, deltas: list[Json]) -> None:
    """The initial value and the result of each step have the type of the field."""
    case.require_type(case.start, "the initial value is")
    for now in case.after(origin, deltas)[1:]:
        case.require_type(now, "the step returned")


def combine_agrees(case: ReducerCase, origin: Json, earlier: list[Json], first: Json, second: Json) -> None:
    """Applying two deltas in turn equals applying their combination."""
    assert case.reducer.combine is not None
    now = case.after(origin, earlier)[-1]
    one_by_one = case.step(case.step(now, first), second, 2)
    pressed = case.reducer.combine(copy.deepcopy(first), copy.deepcopy(second))
    what = f"{canonical_text(first)} and {canonical_text(second)} were combined to {canonical_text(pressed)}"
    require_equal(canonical_text(case.step(now, pressed)), canonical_text(one_by_one), what)


def _case_laws(case: ReducerCase) -> Iterator[Law]:
    subject, delta = case.subject, case.deltas
    origin, deltas = case.origins, st.lists(delta, max_size=2)
    yield Law("a step is pure", subject, st.tuples(origin, deltas, delta), partial(step_is_pure, case))
    yield Law("a step keeps the type", subject, st.tuples(origin, deltas), partial(step_keeps_type, case))
    if case.reducer.combine is not None:
        yield Law("combine", subject, st.tuples(origin, deltas, delta, delta), partial(combine_agrees, case))


def field_laws(field: StateField, app: str) -> Iterator[Law]:
    """Yield the laws of the reducer of a field, on values of the field's type."""
    subject = f"{app}.{field.name} ({field.reduce})"
    case = ReducerCase(
        field.reducer, subject, value_output_type(field), delta_output_type((field,)), field.start, field.name
    )
    yield from _case_laws(case)


def reducer_laws(reducer: Reducer) -> Iterator[Law]:
    """Yield the laws of a reducer, on the types that it supports."""
    for notation in _types_of(reducer):
        field = StateField("x", notation, reduce=reducer.name)
        if known_reducers().get(reducer.name) is reducer or NUMBERED.fullmatch(reducer.name):
            value_notation = field.value_notation
        else:  # a field cannot name it
            value_notation = f"{notation} | null" if reducer.empty is None else notation
        delta = "list[str]" if reducer.delta_kind == "words" else notation
        subject = f"{reducer.name} of {notation}"
        yield from _case_laws(
            ReducerCase(reducer, subject, _value_type(value_notation), _value_type(delta), reducer.empty)
        )


def _value_type(notation: str) -> OutputType[dict[str, Json]]:
    return OutputType.fields("Value", {"x": parse_notation(notation)}, required=frozenset("x"))


def _types_of(reducer: Reducer) -> tuple[str, ...]:
    """Return the types that a field with this reducer may have."""
    if reducer.delta_kind != "value":
        return FIELD_TYPES[reducer.delta_kind]
    return tuple(notation for kind in reducer.types for notation in FIELD_TYPES.get(kind, (kind,))) or SCALAR_TYPES
