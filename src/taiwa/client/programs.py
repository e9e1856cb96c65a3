"""The programs that the methods of a client run, and the events that a stream shows of them."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any, Generic, TypeAlias, TypeVar, cast

from taiwa.apps.catalog import DEFAULT_APP, load_app
from taiwa.client.arguments import Attachments, Prompt, constraint_of, question
from taiwa.client.results import Generation
from taiwa.flows import extract as extracting
from taiwa.flows.ask.ask_result import AskResult
from taiwa.flows.extract import RepairPolicy
from taiwa.flows.solve.rationale import Rationale
from taiwa.flows.solve.solve import SolveOptions
from taiwa.kernel.effects import Complete, GetCapabilities, HideOutput, Program, Watcher, WatchResult, perform
from taiwa.kernel.errors import InputError, OutputValidationError, RefusalError, check_argument
from taiwa.kernel.execution import RunResult
from taiwa.kernel.messages import Constraint, Request, ShownEvent, TextDelta
from taiwa.kernel.runtime import Done, Tool
from taiwa.kernel.serialization import Json
from taiwa.sessions.commit_turn import TurnResult
from taiwa.structured import OutputType, PartialParser

T = TypeVar("T")
E = TypeVar("E")
R = TypeVar("R")


View: TypeAlias = "Callable[[ShownEvent | RunResult[R]], Iterator[E | Done[T]]]"
"""What a stream shows of one event of a run."""


def generate_program(request: Request, constraint: object, tools: tuple[Tool, ...] = ()) -> Program[Generation[Any]]:
    """Answer a request, under a constraint or with tools that the model may call, and check the answer.

    Raises:
        InputError: the constraint is not valid, or tools are given beside one.

    Raises (when run):
        RefusalError: the model refused to answer.
        OutputValidationError: the answer does not fit the constraint, or was cut off before its end.
    """
    if tools and (constraint is not None or request.prefix):
        raise InputError("give tools or a constraint or prefix; session(tools=[…], schema=…) takes tools and a type")
    return _answer(request, tools, *constraint_of(constraint))


def _answer(
    request: Request, tools: tuple[Tool, ...], wire: "Constraint | None", read: "Callable[[str], Any]"
) -> Program[Generation[Any]]:
    if tools:
        from taiwa.flows.solve.loops import complete_with_tools

        app = load_app(DEFAULT_APP)
        specs = [tool.spec for tool in tools]
        response, _ = yield from complete_with_tools(request, specs, app, app.layout(), None)
    else:
        response = yield from perform(Complete(replace(request, constraint=wire)))
    if response.finish == "refusal":
        raise RefusalError("the model refused to answer", request=request.digest)
    text = request.prefix + response.text
    if wire is not None and response.finish in ("length", "cut", "interrupted", "repetition"):
        raise OutputValidationError("the answer was cut off before it fitted the constraint", text=text)
    return Generation(text, read(text), response.finish)


def extract_program(
    output: object, text: Prompt, attachments: Attachments, system_text: str, temperature: float | None,
    max_tokens: int | None, repair: RepairPolicy, watch: "Callable[[], Watcher]" = HideOutput,
) -> "Program[extracting.TypedAnswer[Any]]":  # fmt: skip
    """Extract a value of a type; the attachments are read now.

    Raises:
        InputError: an argument is not valid.
    """
    request = question(text, attachments, system_text, "", (), temperature, max_tokens, None)
    return extracting.extract(
        cast("Any", output), request.messages, repair=repair, sampling=request.sampling, watch=watch
    )


def with_error_as_value(
    program: "Program[extracting.TypedAnswer[Any]]",
) -> "Program[extracting.TypedAnswer[Any] | extracting.ExtractError]":
    """Return a program that returns the error of an extraction instead of raising it."""
    try:
        return (yield from program)
    except extracting.ExtractError as error:
        return error


def solve_program(question: str, tools: tuple[Tool, ...], options: SolveOptions) -> Program[Rationale]:
    """Solve a question with tools and worked examples that fit the model.

    Raises (when run):
        InputError: the question is empty, or an option is not valid.
    """
    from taiwa.sessions.turn_programs import Solving

    check_argument("question", question, str, "a text")
    capabilities = yield from perform(GetCapabilities())
    return (yield from Solving(tools, options).program(question, capabilities))


def asked(turn: TurnResult) -> AskResult:
    """Return the result of the documents of a turn of the app `ask`."""
    assert turn.ask is not None, "a turn of the app `ask` has a result"
    return turn.ask


def as_it_is(event: "ShownEvent | RunResult[R]") -> "Iterator[ShownEvent | Done[R]]":
    """Yield an event of a run, or its end with the value of the program."""
    yield Done(event.value) if isinstance(event, RunResult) else event


class Partials(Generic[T]):
    """The partial values of an extraction's first attempt while it streams; a repaired answer is not followed."""

    def __init__(self, output_type: OutputType[T]) -> None:
        self.output_type = output_type
        self._parser: PartialParser[T] | None = None

    def watch(self) -> Watcher:
        """Return the watcher of the next attempt."""
        if self._parser is not None:
            return HideOutput()
        self._parser = PartialParser(self.output_type)
        return _PartialWatcher(self._parser)

    def view(self, event: "ShownEvent | RunResult[extracting.TypedAnswer[T]]") -> "Iterator[Json | Done[T]]":
        """Yield the partial values that an event of the run adds."""
        if isinstance(event, RunResult):
            value = event.value.value
            yield self.output_type.dump(value)
            yield Done(value)
        elif isinstance(event, TextDelta) and self._parser is not None:
            yield deepcopy(self._parser.view)


class _PartialWatcher:
    """A watcher that passes on text that changes the partial value."""

    def __init__(self, parser: PartialParser[Any]) -> None:
        self._parser = parser

    def feed(self, text: str) -> WatchResult:
        """Read the next text."""
        return WatchResult(text if self._parser.feed(text) else "")

    def close(self) -> WatchResult:
        """Return an empty text: nothing is held back."""
        return WatchResult()
