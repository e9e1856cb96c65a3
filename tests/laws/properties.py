"""Properties of programs, apps and reducers, checked on generated examples, and their counterexamples.

Programs form a monad, keep their log after a failure, and run again from their journal. Conversations can be undone, forked,
replayed and summarized, and keep the prompt prefix that caches need. A reducer is a pure, typed step whose `combine` agrees with it.
"""

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce
from hashlib import blake2b
from inspect import signature
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

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
from taiwa.conversation.replies import find_delta, parse_reply, reply_watcher
from taiwa.conversation.state import StateField, delta_output_type, shorten_delta, value_output_type
from taiwa.conversation.turn_prompt import format_reply, stable_bytes, turn_request
from taiwa.flows.turn import say
from taiwa.kernel.effects import (
    Complete,
    GetCapabilities,
    Program,
    Step,
    bind,
    gather,
    join,
    map,
    notify,
    perform,
    unit,
)
from taiwa.kernel.errors import InputError, ModelError, OutputValidationError, TaiwaError
from taiwa.kernel.execution import DeltaStarted, EffectStarted, Entry, Event, Execution, Journal, PendingEffect, replay
from taiwa.kernel.messages import (
    Capability,
    HiddenDelta,
    Notice,
    Request,
    StreamEnd,
    TextDelta,
    ThinkingDelta,
    Usage,
    user,
)
from taiwa.kernel.serialization import Json, canonical, digest, record, restore, value
from taiwa.kernel.text import plural
from taiwa.kernel.usage_limits import UsageLedger, UsageLimits
from taiwa.structured import OutputType, ir, parse_notation

MAX_COUNTEREXAMPLE = 2_000
LAW_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, HypothesisException, LookupError, NameError, OSError, RuntimeError, TaiwaError, TypeError,
    ValueError,
)  # fmt: skip
"""Errors that a reducer or an app may raise; each of them breaks the checked law."""
TOO_COSTLY = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)
JsonStep: TypeAlias = Step[Json, Json]
JsonProgram: TypeAlias = Program[tuple[Json, Json]]
Arrow: TypeAlias = Callable[[Json], JsonStep]
Arguments: TypeAlias = tuple[SearchStrategy[Any], ...]
T = TypeVar("T")
USAGE = Usage(1, 1)


# --- small programs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProgramTerm:
    """A step over a JSON state, or a function from an answer to such a step, that a counterexample can show.

    `make` is called with the parts and then the state or the answer.
    """

    make: Callable[..., Any]
    parts: tuple[Any, ...] = ()

    def __call__(self, argument: Json) -> Any:
        """Return the program from a state, or the step after an answer."""
        return self.make(*self.parts, argument)

    def __repr__(self) -> str:
        return f"{self.make.__name__}({', '.join(repr(part) for part in self.parts)})"


def ask(text: str, state: Json) -> JsonProgram:
    """Send a request to the model; the text of the response is the answer."""
    response = yield from perform(Complete(Request((user(text),))))
    return response.text, state


def tell(text: str, state: Json) -> JsonProgram:
    """Send a notice to the observers."""
    yield from notify(text)
    return None, state


def pure(answer: Json, state: Json) -> JsonProgram:
    """Return an answer without an effect."""
    return (yield from unit(answer)(state))


def put(new: Json, _: Json) -> JsonProgram:
    """Replace the state."""
    return (yield from unit(None)(new))


def get(state: Json) -> JsonProgram:
    """Return the state as the answer."""
    return (yield from unit(state)(state))


def fail(message: str, _: Json) -> JsonProgram:
    """Raise an `InputError`."""
    yield from ()
    raise InputError(message)


def catch(body: JsonStep, instead: JsonStep, state: Json) -> JsonProgram:
    """If `body` fails, run `instead` from the previous state."""
    try:
        return (yield from body(state))
    except TaiwaError:
        return (yield from instead(state))


def parallel(bodies: tuple[JsonStep, ...], state: Json) -> JsonProgram:
    """Run several steps in parallel from the same state; return the list of answers, discard their states."""
    pairs = yield from gather([body(state) for body in bodies])
    return [answer for answer, _ in pairs], state


def then(first: JsonStep, arrow: Arrow, state: Json) -> JsonProgram:
    """Run a step, then the step that an arrow returns for its answer."""
    return (yield from bind(first, arrow)(state))


def always(step: JsonStep, _: Json) -> JsonStep:
    """Return the same step for every answer."""
    return step


def ask_about(text: str, answer: Json) -> JsonStep:
    """Return the step that sends a request containing the answer."""
    return ProgramTerm(ask, (f"{text} {canonical(answer).decode()}",))


def put_answer(answer: Json) -> JsonStep:
    """Return the step that stores the answer as the state and returns it."""
    return bind(ProgramTerm(put, (answer,)), lambda _: unit(answer))


def choose(steps: tuple[JsonStep, ...], answer: Json) -> JsonStep:
    """Return one of several steps, by the digest of the answer."""
    return steps[int(digest(answer), 16) % len(steps)]


@dataclass(slots=True)
class Oracle:
    """A model whose answer is a function of seed and request, and of the number of the call if `counting`.

    It answers with one of `words`, or with a generated word if there are none. One in `failing` calls fails (0: none).
    """

    seed: int = 0
    counting: bool = False
    failing: int = 0
    words: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = frozenset()
    asked: int = 0

    def answer(self, request: Request) -> str:
        """Return the answer to a request.

        Raises:
            ModelError: this call is one of those that fail.
        """
        self.asked += 1
        key = f"{self.seed} {self.asked if self.counting else ''} {request.digest}"
        chance = int.from_bytes(blake2b(key.encode(), digest_size=8).digest())
        if self.failing and chance % self.failing == 0:
            raise ModelError("the oracle failed", request=request.digest)
        chance //= max(self.failing, 1)
        return self.words[chance % len(self.words)] if self.words else f"word {chance % 1000}"


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The result of a program: its value or error, and the log of effects, answers and notices in order.

    Two runs of a program are equal if they end with the same value and state, or the same error, and yield the same requests
    and notices in the same order.
    """

    value: Any
    error: TaiwaError | None
    log: tuple[str, ...] = ()
    journal: Journal = field(compare=False, repr=False, default_factory=Journal)

    @property
    def outcome(self) -> str:
        """The value or error as text, equal for equal results."""
        return f"fails: {self.error}" if self.error is not None else f"gives: {canonical_text(record(self.value))}"


def run_program(program: Program[T], oracle: Oracle, recorded: Iterable[Entry] = ()) -> ProgramRun:
    """Run a program to its end, one effect after the other, in the order in which they were yielded."""
    log: list[str] = []
    journal = Journal(recorded)
    ledger = UsageLedger(UsageLimits(None, None))
    session = Execution(program, ledger, journal, (lambda event: log.extend(_log_lines(event)),))
    while not session.done:
        for wish in session.take_pending():
            if wish.active:
                _perform(session, wish, oracle)
    try:
        return ProgramRun(session.result(), None, tuple(log), journal)
    except TaiwaError as error:
        return ProgramRun(None, error, tuple(log), journal)


def _perform(session: Execution[T], wish: PendingEffect, oracle: Oracle) -> None:
    if isinstance(wish.effect, GetCapabilities):
        session.answer(wish, oracle.capabilities)
        return
    assert isinstance(wish.effect, Complete)
    wish.begin()
    try:
        text = oracle.answer(wish.effect.request)
    except ModelError as error:
        session.fail(wish, error)
        return
    session.feed(wish, TextDelta(text))
    session.feed(wish, StreamEnd(usage=USAGE, model="oracle"))
    session.complete(wish)


def _log_lines(event: Event) -> Iterator[str]:
    if isinstance(event, Notice):
        yield f"notice: {event.text}"
    elif not isinstance(event, (DeltaStarted, TextDelta, HiddenDelta, ThinkingDelta)):
        at, what = (event, event.effect) if isinstance(event, EffectStarted) else (event.entry, event.entry.answer)
        error = None if isinstance(event, EffectStarted) else event.entry.error
        kind = type(event).__name__
        yield f"{kind} {(*at.strand, at.index)}: {canonical_text(record(what))} {error or ''}"


# --- what is drawn ----------------------------------------------------------------------------------------------------

letters = st.characters(exclude_categories=["Cs"])
_few = st.sampled_from(["a", "b", "ab"])
_alike = st.sampled_from(["Ａ", "A ", "が", "か\u3099", "abc", ""])
texts = st.one_of(_few, _few, _few, _alike, st.text(letters, max_size=8))
"""Short texts, many of which equal or contain another, to exercise reducers."""
small_values: SearchStrategy[Json] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(["", "a", "b"]),
    st.lists(st.integers(0, 2), max_size=2),
)  # a list of JSON, which is invariant
any_values: SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
MAX_ITEMS = 3
MAX_NUMBER = 10**6


def oracles(*, counting: bool) -> SearchStrategy[Callable[[], Oracle]]:
    """Draw factories that make the same oracle at every call; with `counting`, also oracles that count their calls."""
    counts = st.booleans() if counting else st.just(False)
    drawn = st.tuples(st.integers(0, 99), counts, st.sampled_from([0, 0, 3]))
    return drawn.map(lambda arguments: partial(Oracle, *arguments))


def _terms(make: Callable[..., Any], *parts: SearchStrategy[Any]) -> SearchStrategy[ProgramTerm]:
    return st.builds(ProgramTerm, st.just(make), st.tuples(*parts))


def _tuples(inner: SearchStrategy[ProgramTerm], min_size: int = 0) -> SearchStrategy[tuple[ProgramTerm, ...]]:
    return st.lists(inner, min_size=min_size, max_size=3).map(tuple)


def _arrows(inner: SearchStrategy[ProgramTerm]) -> SearchStrategy[ProgramTerm]:
    about = _terms(ask_about, st.sampled_from("pq"))
    return st.one_of(_terms(always, inner), about, _terms(put_answer), _terms(choose, _tuples(inner, 1)))


_words = st.sampled_from("xyz")
terms: SearchStrategy[ProgramTerm] = st.recursive(
    st.one_of(
        *(_terms(make, _words) for make in (ask, tell, fail)),
        *(_terms(make, small_values) for make in (pure, put)),
        _terms(get),
    ),
    lambda inner: st.one_of(
        _terms(catch, inner, inner), _terms(parallel, _tuples(inner)), _terms(then, inner, _arrows(inner))
    ),
    max_leaves=6,
)
arrows = _arrows(terms)


def values(output_type: OutputType[dict[str, Json]]) -> SearchStrategy[dict[str, Json]]:
    """Draw values of a type, as its validator returns them."""

    def fits(data: Json) -> bool:
        try:
            output_type.validate(data)
        except OutputValidationError:
            return False
        return True

    return _values(output_type.type_ir.root, output_type.type_ir).filter(fits).map(output_type.validate)


def _values(node: ir.Node, form: ir.TypeIR) -> SearchStrategy[Json]:
    def inside(inner: ir.Node) -> SearchStrategy[Json]:
        return st.deferred(lambda: _values(inner, form))

    match ir.resolve(node, form):
        case ir.NullNode():
            return st.none()
        case ir.BoolNode():
            return st.booleans()
        case ir.NumberNode(integer, minimum, maximum):
            low, high = -MAX_NUMBER if minimum is None else minimum, MAX_NUMBER if maximum is None else maximum
            if integer:
                return st.integers(int(low), int(high))
            written = st.integers(int(low * 100), int(high * 100)).map(lambda number: number / 100)
            return written | st.floats(low, high, allow_nan=False, allow_infinity=False)
        case ir.StringNode(shortest, longest, pattern):
            if pattern:
                return st.from_regex(pattern)
            return texts if shortest == 0 and longest is None else st.text(letters, min_size=shortest, max_size=longest)
        case ir.LiteralNode(options):
            return st.sampled_from(options)
        case ir.ArrayNode(items, prefix, least, longest):
            most = max(least, MAX_ITEMS) if longest is None else min(longest, least + MAX_ITEMS)
            rest = st.lists(inside(items), min_size=max(least - len(prefix), 0), max_size=most)
            first = st.tuples(*(_values(part, form) for part in prefix))
            return st.tuples(first, rest).map(lambda pair: [*pair[0], *pair[1]])
        case ir.ObjectNode(properties, extra, least):
            if not properties and extra is not None:
                return st.dictionaries(texts, inside(extra), min_size=least, max_size=least + MAX_ITEMS)
            required = {each.name: inside(each.node) for each in properties if each.required}
            optional = {each.name: inside(each.node) for each in properties if not each.required}
            return cast("SearchStrategy[Json]", st.fixed_dictionaries(required, optional=optional))
        case ir.UnionNode(options):
            return st.one_of([_values(option, form) for option in options])
        case _:
            return any_values


# --- laws -------------------------------------------------------------------------------------------------------------


class BrokenLawError(AssertionError):
    """A law does not hold; the message names the property that failed."""


@dataclass(frozen=True, slots=True)
class Law:
    """A law of a subject. `holds` is called with each tuple of arguments from `examples` and raises if the law is broken."""

    name: str
    subject: str
    examples: SearchStrategy[tuple[Any, ...]]
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


def require_same(left: JsonStep, right: JsonStep, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Check that two steps run alike from a state with an oracle."""
    ours, theirs = run_program(left(state), oracle()), run_program(right(state), oracle())
    require_equal(ours.outcome, theirs.outcome, "the results differ")
    require_equal(ours.log, theirs.log, "the effects differ")


def left_identity(answer: Json, arrow: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Check that bind(unit(a), f) equals f(a)."""
    require_same(bind(unit(answer), arrow), arrow(answer), state, oracle)


def right_identity(step: JsonStep, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Check that bind(step, unit) equals step."""
    require_same(bind(step, unit), step, state, oracle)


def associativity(step: JsonStep, one: Arrow, two: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Binding is associative."""
    require_same(bind(bind(step, one), two), bind(step, lambda answer: bind(one(answer), two)), state, oracle)


def join_of_joins(step: JsonStep, one: Arrow, two: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Joining three layers does not depend on which two are joined first."""
    layers = map(step, lambda answer: map(one(answer), two))
    require_same(join(map(layers, join)), join(join(layers)), state, oracle)


def join_of_units(step: JsonStep, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Join removes a layer added by unit, inside or outside."""
    require_same(join(unit(step)), step, state, oracle)
    require_same(join(map(step, unit)), step, state, oracle)


def bind_is_join_of_map(step: JsonStep, arrow: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Bind equals join after map."""
    require_same(bind(step, arrow), join(map(step, arrow)), state, oracle)


def puts_and_gets(one: Json, two: Json, state: Json, oracle: Callable[[], Oracle]) -> None:
    """The state is the value that was put last, and reading does not change it."""
    put_one, put_two = partial(put, one), partial(put, two)
    require_same(bind(put_one, lambda _: put_two), put_two, state, oracle)
    require_same(bind(put_one, lambda _: get), bind(put_one, lambda _: unit(one)), state, oracle)
    require_same(bind(get, lambda answer: partial(put, answer)), unit(None), state, oracle)


def log_survives_failure(step: JsonStep, state: Json, oracle: Callable[[], Oracle]) -> None:
    """A failure keeps the log of the effects and answers before it."""
    whole = run_program(step(state), oracle())
    failed = run_program(bind(step, lambda _: partial(fail, "afterwards"))(state), oracle())
    require_equal(failed.log, whole.log, "the log")
    require_equal(failed.error is not None, True, "the failure")


def replays(step: JsonStep, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Replaying a stored journal gives the same result without a call."""
    first = run_program(step(state), oracle())
    try:
        again = ProgramRun(replay(step(state), Journal(reload_entries(first.journal))), None)
    except TaiwaError as error:
        again = ProgramRun(None, error)
    require_equal(again.outcome, first.outcome, "the replay differs")


def resumes(step: JsonStep, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Resuming from any prefix of the journal gives the same result and performs only the remaining effects."""
    first = run_program(step(state), oracle())
    entries = reload_entries(first.journal)
    for count in range(len(entries) + 1):
        again = run_program(step(state), oracle(), entries[:count])
        after = f"resumed after {plural(count, 'answer')}"
        require_equal(again.outcome, first.outcome, f"{after} the result differs")
        require_equal(len(again.journal.entries), len(entries), f"{after} the journal has another length")


def reload_entries(journal: Journal) -> tuple[Entry, ...]:
    """Return the entries as a store returns them."""
    return tuple(Entry.restore(json.loads(canonical(entry.record()))) for entry in journal.entries)


def program_laws() -> Iterator[Law]:
    """Yield the laws of programs."""
    counting, steady = oracles(counting=True), oracles(counting=False)
    laws: tuple[tuple[str, Arguments, Callable[..., None]], ...] = (
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
    )
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
    """Return everything that a later turn may depend on, including the exact next request."""
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
        follow = text if isinstance(move, EditMove) else "and then"
        for constrained in (False, True):
            sent = stable_bytes(turn_request(before, text, constrained=constrained))
            follow_up = stable_bytes(turn_request(after, follow, constrained=constrained))
            require_equal(follow_up[: len(sent)], sent, "the beginning of the next request")


def summary_idempotence(app: App, moves: list[Move], leaving: int, summary: str) -> None:
    """A summary keeps the typed state, is idempotent, and does not change a window that is not full."""
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
        for each in app.fields:
            value_output_type(each).validate({each.name: here.state[each.name]})


def reply_roundtrip(app: App, answer: str, delta: dict[str, Json], cuts: list[int]) -> None:
    """A reply is parsed back, and streaming it in any pieces shows exactly its answer, unless that ends with a delta itself."""
    if answer.rstrip().endswith(("}", "`")) and find_delta(answer, ()) is not None:
        return
    for layout in dict.fromkeys((app.layout(), app.layout(enforces_schemas=True))):
        text = format_reply(app, answer, delta, layout)
        read = parse_reply(app, text, layout)
        spoken = answer.rstrip() if layout == "text+delta" and app.model_fields else answer
        require_equal(read.answer, spoken, "the answer")
        parsed = {name: part for name, part in (read.delta or {}).items() if name != "response"}
        written = {} if layout == "record" else delta  # a request of its own asks for the delta
        require_equal(canonical_text(parsed), canonical_text(written), "the delta")
        require_equal((read.problems, read.missing), ((), False), "the problems of the delta")
        make = reply_watcher(app, layout=layout)
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
        require_equal(bool(list(first.journal.requests())), True, "a failed turn records its requests")


def _turn_outcome(program: Program[tuple[str, Conversation]]) -> Program[tuple[str, ...]]:
    text, after = yield from program
    return text, after.tip, after.state_hash, after.summary


def conversation_laws(app: App) -> Iterator[Law]:
    """Yield the laws of conversations with an app."""
    words = texts.filter(lambda text: bool(text.strip()))
    answers = texts | st.sampled_from(["@@delta\n{}", "```json\n{}\n```", "<state>", '"', "a\n\n@@del", "{", " x"])
    deltas: SearchStrategy[dict[str, Json]] = st.just({})
    edits = deltas
    if app.model_fields:
        deltas = values(app.environment_type if app.reply == "environment" else app.delta_type)
        if app.reply == "environment":
            deltas = deltas.map(lambda data: {name: part for name, part in data.items() if name != "response"})
        else:
            deltas = deltas.map(partial(shorten_delta, app.fields))
        each = [values(value_output_type(field)) for field in app.model_fields]
        edits = st.lists(st.one_of(each), max_size=2).map(
            lambda parts: {name: part[name] for part in parts for name in part}
        )
    turn = st.builds(TurnMove, words, answers, deltas)
    move = st.one_of(turn, turn, st.builds(EditMove, edits), st.builds(SummaryMove, st.integers(0, 3), texts))
    moves, cuts = st.lists(move, max_size=4), st.lists(st.integers(0, 99), max_size=5)
    replies = st.builds(partial(format_reply, app), answers, deltas, st.just(app.layout(enforces_schemas=True)))
    said = st.lists(replies | answers, min_size=1, max_size=3).map(tuple)
    replying = st.tuples(st.integers(0, 99), st.just(False), st.sampled_from([0, 0, 4]), said).map(
        lambda arguments: partial(Oracle, *arguments, frozenset({"json_schema"}))
    )
    laws: tuple[tuple[str, Arguments, Callable[..., None]], ...] = (
        ("undo after a commit", (moves,), undo_redo),
        ("recorded deltas give the recorded states", (moves,), deltas_give_states),
        ("a fork leaves the other branch unchanged", (moves, moves, moves), fork_independence),
        ("the prompt prefix is stable", (moves,), prefix_stability),
        ("a summary keeps the state and is idempotent", (moves, st.integers(0, 3), texts), summary_idempotence),
        ("edits of the state", (moves, edits, edits), edit_laws),
        ("the state keeps its types", (moves,), state_types),
        ("a reply is parsed back and shown", (answers, deltas, cuts), reply_roundtrip),
        ("a turn is replayed or rolled back", (moves, words, replying, st.booleans()), turn_replay),
    )
    for name, arguments, holds in laws:
        yield Law(name, f"{app.name} ({app.reply})", st.tuples(*arguments), partial(holds, app))


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
    def deltas(self) -> SearchStrategy[Json]:
        """Deltas that the model may write."""
        return values(self.delta).filter(lambda data: self.name in data).map(lambda data: data[self.name])

    @property
    def origins(self) -> SearchStrategy[Json]:
        """The initial value, and values that the user may set."""
        return st.just(self.start) | values(self.value_type).map(lambda data: data[self.name])

    def after(self, start: Json, deltas: list[Json]) -> list[Json]:
        """Return the start and the value after each delta."""
        states = [start]
        for turn, delta in enumerate(deltas, 1):
            states.append(self.step(states[-1], delta, turn))
        return states

    def step(self, now: Json, delta: Json, turn: int = 1) -> Json:
        """Apply one delta to copies, so that a reducer that mutates its arguments affects only this step."""
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
