"""Tool-interrupted reasoning: `[Complete] → call → [CallTool] → splice → [Complete …] → … → answer`.

After MultiTool-CoT (Inaba et al., ACL 2023): the model writes a rationale, is interrupted where it asks for a tool, and goes
on behind the result. Text and splices joined are the transcript, byte for byte.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack, get_args

from taiwa.flows.answers import NO_ANSWER, Finding, answer_of
from taiwa.flows.course import TextCourse, Track
from taiwa.flows.demands import Calls, Policy
from taiwa.flows.native import NativeCourse
from taiwa.flows.protocol import Protocol
from taiwa.flows.rationale import AnsweredBy, Bounds, OnTrouble, Rationale, Way
from taiwa.flows.tagged import Tagged
from taiwa.kernel.effects import Abilities, Program, perform, tell
from taiwa.kernel.errors import InputError, LimitError, UnsupportedError
from taiwa.kernel.values import Ability, Message, Request, Sampling, ToolSpec, system, user
from taiwa.shape import Shape

__all__ = ["How", "course_of", "reason", "ways_for"]

STEPS = "Solve the problem step by step. End with a line that states the answer; its number comes last."
NATIVE = """\
Use the tools for whatever they can work out; never make up a result of a tool yourself. Calls that do not need each other's \
results can be made together."""
NEEDS: dict[Way, Ability] = {"continue": "prefix", "native": "tools"}
ANSWERED = ("end", "calls")
"""The endings after which there is an answer to be read."""
TYPABLE = frozenset[Ability](("json_schema", "tools"))
USUAL = Bounds()


class How(TypedDict, total=False):
    """How `reason` goes about it; what is left out is as written here.

    - `protocol`: how calls stand in the text (`Tagged()`); `way`: how the model goes on (None: by what its server can do).
    - `shots`: worked examples, as messages in turn. `system`: first words in place of our own; '' for none. How calls are
      written follows them.
    - `on_error`, `on_unknown`: what follows a failed call and one of a tool that is not there ("tell").
    - `withheld`: tools that are shown and never called: the model writes their results. `guarded`: whether the instructions
      forbid it to (True).
    - `bounds`: what it may use. `sampling`: how tokens are drawn.
    - `answer`: a type for the answer. `answer_by`: the ways to find one ("typed", "line", "prompt").
    """

    protocol: Protocol
    way: Way | None
    shots: Sequence[Message]
    system: str | None
    on_error: OnTrouble
    on_unknown: OnTrouble
    withheld: Collection[str]
    guarded: bool
    bounds: Bounds
    sampling: Sampling
    answer: "type[Any] | Shape[Any] | None"
    answer_by: Collection[AnsweredBy]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that `How` may say, filled in."""

    protocol: Protocol = field(default_factory=Tagged)
    way: Way | None = None
    shots: Sequence[Message] = ()
    system: str | None = None
    on_error: OnTrouble = "tell"
    on_unknown: OnTrouble = "tell"
    withheld: Collection[str] = ()
    guarded: bool = True
    bounds: Bounds = USUAL
    sampling: Sampling = Sampling()
    answer: "type[Any] | Shape[Any] | None" = None
    answer_by: Collection[AnsweredBy] = ("typed", "line", "prompt")

    def check(self) -> None:
        """See that it can be meant.

        Raises:
            InputError: it cannot.
        """
        chosen = (
            ("on_error", self.on_error, get_args(OnTrouble)), ("on_unknown", self.on_unknown, get_args(OnTrouble)),
            ("way", self.way, (None, *get_args(Way))), *(("answer_by", each, get_args(AnsweredBy)) for each in self.answer_by),
        )  # fmt: skip
        for name, given, known in chosen:
            if given not in known:
                raise InputError(f"{given!r} is no {name}: choose {', '.join(str(each) for each in known if each)}")
        bounds = self.bounds
        low = {"calls": bounds.calls, "repeats": bounds.repeats - 1, "false_stops": bounds.false_stops}
        for name, number in (*low.items(), ("tokens", 0 if bounds.tokens is None else bounds.tokens - 1)):
            if number < 0:
                raise InputError(f"the bound on {name} is too small")

    def finding(self, abilities: frozenset[Ability]) -> Finding:
        """How the answer is looked for."""
        shape = self.answer if isinstance(self.answer, Shape) or self.answer is None else Shape(self.answer)
        return Finding(shape, self.answer_by, self.sampling, bool(TYPABLE & abilities))

    def request(self, question: str, tools: Sequence[ToolSpec], way: Way) -> Request:
        """What is asked first."""
        parts = [STEPS if self.system is None else self.system]
        if tools:
            parts.append(NATIVE if way == "native" else self.protocol.instructions(tools, guarded=self.guarded))
        head = "\n\n".join(part for part in parts if part)
        messages = (*((system(head),) if head else ()), *self.shots, user(question))
        # With instructions of the caller it is another task than the one that the built-in model learned.
        return Request(messages, sampling=self.sampling, task="solve" if self.system is None else "")


def reason(question: str, tools: Iterable[ToolSpec], **how: Unpack[How]) -> Program[Rationale]:
    """Answer a question in words, with the results of tools put in where the text asks for them.

    The model goes on in one of three ways, by what its server can do: its text is continued; or, without worked examples
    and where it takes tools, it calls functions; or its text is cut at a call and it is asked to go on. Where a server can
    stop at a string it is asked to, which spares tokens; nothing depends on it, because the text is watched and cut here.

    Raises (when run):
        InputError: something in `how` cannot be meant.
        UnsupportedError: `way` is set, and the model cannot.
        RefusalError: the model refused at once.
    """
    plan, known = Plan(**how), tuple(tools)
    plan.check()
    abilities = yield from perform(Abilities())
    track, way = yield from _gone(question, known, plan, abilities)
    ending = track.ending or "end"
    answer = NO_ANSWER
    if ending in ANSWERED:
        answer = yield from answer_of(user(question), track.text, plan.finding(abilities), track.final)
    parts, calls = tuple(track.parts), tuple(track.calls.made)
    return Rationale(parts, calls, ending, way, answer.text, answer.by, answer.value)


def ways_for(way: Way | None, abilities: frozenset[Ability], *, natively: bool) -> tuple[Way, ...]:
    """List the ways to try, best first; `natively` says whether function calls may be chosen.

    Raises:
        UnsupportedError: the way that is asked for needs what the model cannot do.
    """
    if way is not None:
        if way in NEEDS and NEEDS[way] not in abilities:
            able = ", ".join(each for each in get_args(Way) if each not in NEEDS or NEEDS[each] in abilities)
            raise UnsupportedError(f"the model cannot go the way {way!r}; it can: {able}", ability=NEEDS[way])
        return (way,)
    ways: list[Way] = ["continue"] if "prefix" in abilities else []
    if natively and "tools" in abilities:
        ways.append("native")
    return (*ways, "cut")


def course_of(
    request: Request, tools: Sequence[ToolSpec], plan: Plan, way: Way, *, stops: bool
) -> TextCourse | NativeCourse:
    """Make the course of a rationale."""
    calls = Calls(tools, Policy(plan.on_error, plan.on_unknown, plan.withheld, plan.bounds))
    if way == "native":
        return NativeCourse(request, calls, plan.bounds, plan.protocol)
    course = TextCourse(request, calls, plan.bounds, plan.protocol)
    course.enable(in_place=way == "continue", stops=stops)
    return course


def _gone(
    question: str, tools: Sequence[ToolSpec], plan: Plan, abilities: frozenset[Ability]
) -> Program[tuple[Track, Way]]:
    """Go the first way that the server does not refuse after all."""
    ways = ways_for(plan.way, abilities, natively=not plan.shots and bool(tools))
    for place, way in enumerate(ways):
        course = course_of(plan.request(question, tools, way), tools, plan, way, stops="stop" in abilities)
        yield from tell(f"way: {way}", code="way")
        try:
            yield from course.run()
        except UnsupportedError as error:
            if course.parts or place + 1 == len(ways):
                raise
            yield from tell(f"{way} is refused, {ways[place + 1]} is tried: {error.message}", code="downgrade")
            continue
        except LimitError as error:
            if not course.parts:
                raise
            yield from tell(f"{error.message}; the rationale ends here", code="limit", warning=True)
            course.ending = "limit"
        return course, way
    raise AssertionError("the last way returns or raises")
