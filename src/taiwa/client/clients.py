"""`Client` and `AsyncClient`, which have the same methods, and the functions of the package, which are methods of a client."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack, cast, overload

from taiwa.client.arguments import (
    Attachments,
    ExtractArguments,
    GenerateArguments,
    OpenArguments,
    Prompt,
    SessionArguments,
    TextConstraint,
    Tools,
    answer_options,
    checked,
    checked_limits,
    question,
    solve_options,
    solve_tools,
    targets_of,
    tools_of,
)
from taiwa.client.base import BaseClient
from taiwa.client.programs import (
    Partials,
    View,
    as_it_is,
    asked,
    extract_program,
    generate_program,
    solve_program,
    with_error_as_value,
)
from taiwa.client.results import Extraction, Generation, SessionInfo
from taiwa.conversation.app import App
from taiwa.flows.ask.ask_result import AskResult
from taiwa.flows.extract import DEFAULT_REPAIR, OutputSpec, RepairPolicy, Schema
from taiwa.flows.route import RouteResult
from taiwa.flows.route import route as route_program
from taiwa.flows.solve.rationale import Rationale
from taiwa.flows.solve.solve import SolveOptions
from taiwa.kernel.approval import Approve
from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Program
from taiwa.kernel.execution import RunResult, check_program
from taiwa.kernel.messages import JsonSchema, Passage, ShownEvent
from taiwa.kernel.runtime import AnyModel, AsyncStream, Done, Runtime, Stream
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import Limits, Prices
from taiwa.sessions.commit_turn import TurnOptions
from taiwa.sessions.session import AsyncSession, Session
from taiwa.store import Store
from taiwa.structured import OutputType

T = TypeVar("T")
E = TypeVar("E")
R = TypeVar("R")


class Client(BaseClient):
    """Generate, stream, extract, solve, find, ask, run programs and open sessions with one model; see `BaseClient`.

    >>> import taiwa
    >>> with taiwa.Client(taiwa.scripted_model("Hello!")) as client:
    ...     client.generate("Hi").text
    'Hello!'
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of the models and the store, if this client opened them."""
        while self._opened:
            close = getattr(self._opened.popitem()[1], "close", None)
            if close is not None:
                close()
        self._close_store()

    def run(
        self,
        program: Program[R],
        *,
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> R:
        """Run a program and return its value.

        Raises:
            InputError: it is not a program, for example the function that creates it.
            TaiwaError: what the program raised; `spent` holds the usage of the run.
        """
        return self._run(program, self._arguments(tools, limits, model)).value

    def stream_run(
        self,
        program: Program[R],
        *,
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> "Stream[ShownEvent, R]":
        """Run a program; yield text and notices as they arrive."""
        check_program(program)
        return Stream(self._events(program, as_it_is, self._arguments(tools, limits, model)))

    @overload
    def generate(
        self, text: Prompt, constraint: TextConstraint | None = None, **more: Unpack[GenerateArguments]
    ) -> Generation[str]: ...
    @overload
    def generate(
        self, text: Prompt, constraint: JsonSchema | Mapping[str, Json], **more: Unpack[GenerateArguments]
    ) -> Generation[Json]: ...
    @overload
    def generate(
        self, text: Prompt, constraint: type[T] | OutputType[T], **more: Unpack[GenerateArguments]
    ) -> Generation[T]: ...
    def generate(
        self, text: Prompt, constraint: object = None, *, attachments: Attachments = (), system: str = "", prefix: str = "",
        tools: Tools | None = None, stop: Sequence[str] = (), temperature: float | None = 0.0, max_tokens: int | None = None, seed: int | None = None,
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Generation[Any]:  # fmt: skip
        """Answer one question, without a conversation.

        A constraint is a type, `JsonSchema`, `Regex`, `Choice` or `Grammar`: a model in this process cannot violate it, a
        server is asked to enforce it, and the answer is checked. `prefix` is how the answer begins. `attachments` are
        images, PDFs and text files, as paths, bytes or `Attachment` objects. The model may call `tools`, by default those of
        the client; a constraint or a prefix excludes them.

        Raises:
            InputError: the text is empty, an attachment cannot be read, or the constraint is not valid.
            UnsupportedError: the server does not support the constraint, or the model cannot read an attachment.
            OutputValidationError: the answer does not fit the constraint.
            ModelError: the call failed; its subclass says why.
        """
        request = question(text, attachments, system, prefix, stop, temperature, max_tokens, seed)
        used = self._tools_of_answer(tools, constraint, prefix)
        return self._billed(
            self._run(generate_program(request, constraint, used), self._arguments(used, limits, model))
        )

    def stream(
        self, text: Prompt, constraint: object = None, *, attachments: Attachments = (), system: str = "", prefix: str = "",
        tools: Tools | None = None, stop: Sequence[str] = (), temperature: float | None = 0.0, max_tokens: int | None = None, seed: int | None = None,
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Stream[str, Generation[Any]]:  # fmt: skip
        """As `generate`; yield the text as it arrives."""
        request = question(text, attachments, system, prefix, stop, temperature, max_tokens, seed)
        used = self._tools_of_answer(tools, constraint, prefix)
        program = generate_program(request, constraint, used)
        return Stream(self._events(program, self._text, self._arguments(used, limits, model)))

    @overload
    def extract(self, output: type[T] | OutputSpec[T], text: Prompt, **more: Unpack[ExtractArguments]) -> T: ...
    @overload
    def extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Json: ...
    def extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Any:  # fmt: skip
        """Extract a value of a type from a text; an invalid answer is sent back with diagnostics.

        `output` is a type, a JSON Schema (a dict, or a `JsonSchema`), or fields: `"name, age int"`.

        Raises:
            ExtractError: no attempt was valid; the error contains the attempts.
            RefusalError: the model refused to answer.
        """
        program = extract_program(output, text, attachments, system, temperature, max_tokens, repair)
        return self._run(program, self._arguments(None, limits, model)).value.value

    @overload
    def try_extract(
        self, output: type[T] | OutputSpec[T], text: Prompt, **more: Unpack[ExtractArguments]
    ) -> Extraction[T]: ...
    @overload
    def try_extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Extraction[Json]: ...
    def try_extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Extraction[Any]:  # fmt: skip
        """As `extract`, with attempts, repairs and bill; return an `Extraction` without a value instead of raising."""
        program = extract_program(output, text, attachments, system, temperature, max_tokens, repair)
        return self._extraction(self._run(with_error_as_value(program), self._arguments(None, limits, model)))

    @overload
    def stream_extract(
        self, output: type[T] | OutputType[T], text: Prompt, **more: Unpack[ExtractArguments]
    ) -> Stream[Json, T]: ...
    @overload
    def stream_extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Stream[Json, Json]: ...
    def stream_extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Stream[Json, Any]:  # fmt: skip
        """As `extract`; yield the certain part of the value as it grows, as JSON, and finally the complete value."""
        partials = Partials(OutputType.of(output))
        program = extract_program(
            partials.output_type, text, attachments, system, temperature, max_tokens, repair, partials.watch
        )
        return Stream(self._events(program, partials.view, self._arguments(None, limits, model)))

    def route(
        self,
        text: Prompt,
        *targets: object,
        repair: RepairPolicy = DEFAULT_REPAIR,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> RouteResult:
        """Choose one of several types or APIs and read a value of it, or ask a clarifying question; targets are named by their classes."""
        program = route_program(targets_of(targets), checked(text), repair=repair)
        return self._run(program, self._arguments(None, limits, model)).value

    def solve(
        self, question: str, *, tools: Tools | None = None, system: str | None = None, temperature: float | None = None,
        max_tokens: int | None = None, options: SolveOptions | None = None, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Rationale:  # fmt: skip
        """Solve a question step by step with tools, by default those of this client, and else the built-in ones.

        `system` replaces the built-in instructions; `options` sets more.

        Raises:
            InputError: the question is empty, or an option is not valid.
        """
        used = solve_tools(self.tools if tools is None else tools_of(tools))
        program = solve_program(question, used, solve_options(options, system, temperature, max_tokens))
        return self._run(program, self._arguments(used, limits, model)).value

    def find(
        self, query: str, *, documents: Sequence[str | Path] = (), audience: Sequence[str] = (), limit: int = 5
    ) -> tuple[Passage, ...]:
        """Find the passages that fit a query best: by the retriever of this client, or in folders and indexes.

        `documents` are folders or files, which are indexed first, or names of indexes; all indexes without any. `audience` are the
        principals for whom documents are searched (`user:ann`, `group:hr`).

        Raises:
            InputError: the query is empty, or there is neither an index nor a folder of that name.
        """
        return self._find(query, documents, audience, limit)

    def ask(
        self, question: str, *, documents: Sequence[str | Path] = (), audience: Sequence[str] = (), user: str = "",
        policy: str = "", temperature: float | None = None, max_tokens: int | None = None, session: str = "",
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> AskResult:  # fmt: skip
        """Answer a question from documents with citations, or ask a clarifying question; see `find` for `documents` and `audience`.

        `session` names the dialogue: pass the same name to reply to a clarifying question.

        Raises:
            InputError: the question is empty, or an index is not found.
        """
        opened = self.session(
            self._ask_app(session, documents, audience, user, policy), session, temperature=temperature, max_tokens=max_tokens,
            options=TurnOptions(limits=(checked_limits(limits) or self.limits).usage_limits, approve=self.approve), model=model,
        )  # fmt: skip
        return asked(opened.say(question))

    @overload
    def session(
        self, app: str | App | None = None, name: str = "", *, schema: None = None, **more: Unpack[SessionArguments]
    ) -> Session[Json]: ...
    @overload
    def session(
        self,
        app: str | App | None = None,
        name: str = "",
        *,
        schema: type[T] | OutputType[T],
        **more: Unpack[SessionArguments],
    ) -> Session[T]: ...
    @overload
    def session(
        self, app: str | App | None = None, name: str = "", *, schema: Schema, **more: Unpack[SessionArguments]
    ) -> Session[Json]: ...
    def session(
        self, app: str | App | None = None, name: str = "", *, params: Mapping[str, Json] | None = None,
        system: str | None = None, tools: Tools | None = None, temperature: float | None = None,
        max_tokens: int | None = None, schema: object = None, limits: Limits | None = None,
        options: TurnOptions | None = None, model: str | AnyModel | None = None,
    ) -> Session[Any]:  # fmt: skip
        """Open the conversation of that name, or create one with an app (default: `plain`).

        `system` sets instructions for an app without any, such as `plain`. The model may call `tools`; without them, those of
        the client in `plain`, and in other apps those that they name. `schema` is a type: answers are then JSON of this
        type, and the `value` of a turn is one of its values. `limits` apply to all turns of the object together. The conversation keeps these, `temperature` and
        `max_tokens`, until you pass others; `Limits()` removes limits.

        Raises:
            ConfigError: the app or its model cannot be opened.
            InputError: a parameter is not valid, or the session exists with another app.
        """
        changes = answer_options(system, temperature, max_tokens, schema, limits)
        return self._open_session(Session, app, name, params, changes, schema, tools, options, model)

    def sessions(self) -> tuple[SessionInfo, ...]:
        """List the conversations of the store, most recent first."""
        return self._sessions()

    def delete(self, name: str) -> None:
        """Delete a conversation permanently, with its calls and its bill.

        Raises:
            InputError: there is no conversation of that name.
        """
        self.store.delete_session(name)

    def _run(self, program: Program[R], arguments: dict[str, Any]) -> RunResult[R]:
        runtime = Runtime(**arguments)
        with self._counting():
            done = runtime.run_result(program)
        self._count(done.spent)
        return done

    def _events(self, program: Program[R], view: "View[R, E, T]", arguments: dict[str, Any]) -> "Generator[E, None, T]":
        with self._counting():
            for event in Runtime(**arguments).stream(program):
                if isinstance(event, RunResult):
                    self._count(event.spent)
                for shown in view(event):
                    if isinstance(shown, Done):
                        return cast("Done[T]", shown).result
                    yield shown
        raise AssertionError("a run ends with its result")


class AsyncClient(BaseClient):
    """As `Client`, with coroutines; see `BaseClient`. Blocking tools and retrievers run in threads.

    >>> import asyncio, taiwa
    >>> async def both() -> list[str]:
    ...     async with taiwa.AsyncClient(taiwa.scripted_model("Hello!", "Bye!")) as client:
    ...         return [answer.text for answer in await asyncio.gather(client.generate("Hi"), client.generate("Ciao"))]
    >>> asyncio.run(both())
    ['Hello!', 'Bye!']
    """

    _calls_model_by = "astream"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """As `Client.close`."""
        while self._opened:
            model = self._opened.popitem()[1]
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()
            else:
                await asyncio.to_thread(getattr(model, "close", int))
        await asyncio.to_thread(self._close_store)

    async def run(
        self,
        program: Program[R],
        *,
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> R:
        """As `Client.run`."""
        return (await self._run(program, self._arguments(tools, limits, model))).value

    def stream_run(
        self,
        program: Program[R],
        *,
        tools: Tools | None = None,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> "AsyncStream[ShownEvent, R]":
        """As `Client.stream_run`."""
        check_program(program)
        return AsyncStream(self._events(program, as_it_is, self._arguments(tools, limits, model)))

    @overload
    async def generate(
        self, text: Prompt, constraint: TextConstraint | None = None, **more: Unpack[GenerateArguments]
    ) -> Generation[str]: ...
    @overload
    async def generate(
        self, text: Prompt, constraint: JsonSchema | Mapping[str, Json], **more: Unpack[GenerateArguments]
    ) -> Generation[Json]: ...
    @overload
    async def generate(
        self, text: Prompt, constraint: type[T] | OutputType[T], **more: Unpack[GenerateArguments]
    ) -> Generation[T]: ...
    async def generate(
        self, text: Prompt, constraint: object = None, *, attachments: Attachments = (), system: str = "", prefix: str = "",
        tools: Tools | None = None, stop: Sequence[str] = (), temperature: float | None = 0.0, max_tokens: int | None = None, seed: int | None = None,
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Generation[Any]:  # fmt: skip
        """As `Client.generate`."""
        request = await asyncio.to_thread(
            question, text, attachments, system, prefix, stop, temperature, max_tokens, seed
        )
        used = self._tools_of_answer(tools, constraint, prefix)
        return self._billed(
            await self._run(generate_program(request, constraint, used), self._arguments(used, limits, model))
        )

    def stream(
        self, text: Prompt, constraint: object = None, *, attachments: Attachments = (), system: str = "", prefix: str = "",
        tools: Tools | None = None, stop: Sequence[str] = (), temperature: float | None = 0.0, max_tokens: int | None = None, seed: int | None = None,
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> AsyncStream[str, Generation[Any]]:  # fmt: skip
        """As `Client.stream`."""
        request = question(text, attachments, system, prefix, stop, temperature, max_tokens, seed)
        used = self._tools_of_answer(tools, constraint, prefix)
        program = generate_program(request, constraint, used)
        return AsyncStream(self._events(program, self._text, self._arguments(used, limits, model)))

    @overload
    async def extract(self, output: type[T] | OutputSpec[T], text: Prompt, **more: Unpack[ExtractArguments]) -> T: ...
    @overload
    async def extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Json: ...
    async def extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Any:  # fmt: skip
        """As `Client.extract`."""
        program = await asyncio.to_thread(
            extract_program, output, text, attachments, system, temperature, max_tokens, repair
        )
        return (await self._run(program, self._arguments(None, limits, model))).value.value

    @overload
    async def try_extract(
        self, output: type[T] | OutputSpec[T], text: Prompt, **more: Unpack[ExtractArguments]
    ) -> Extraction[T]: ...
    @overload
    async def try_extract(self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]) -> Extraction[Json]: ...
    async def try_extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Extraction[Any]:  # fmt: skip
        """As `Client.try_extract`."""
        program = await asyncio.to_thread(
            extract_program, output, text, attachments, system, temperature, max_tokens, repair
        )
        return self._extraction(await self._run(with_error_as_value(program), self._arguments(None, limits, model)))

    @overload
    def stream_extract(
        self, output: type[T] | OutputType[T], text: Prompt, **more: Unpack[ExtractArguments]
    ) -> AsyncStream[Json, T]: ...
    @overload
    def stream_extract(
        self, output: Schema, text: Prompt, **more: Unpack[ExtractArguments]
    ) -> AsyncStream[Json, Json]: ...
    def stream_extract(
        self, output: object, text: Prompt, *, attachments: Attachments = (), system: str = "", temperature: float | None = 0.0,
        max_tokens: int | None = None, repair: RepairPolicy = DEFAULT_REPAIR, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> AsyncStream[Json, Any]:  # fmt: skip
        """As `Client.stream_extract`."""
        partials = Partials(OutputType.of(output))
        program = extract_program(
            partials.output_type, text, attachments, system, temperature, max_tokens, repair, partials.watch
        )
        return AsyncStream(self._events(program, partials.view, self._arguments(None, limits, model)))

    async def route(
        self,
        text: Prompt,
        *targets: object,
        repair: RepairPolicy = DEFAULT_REPAIR,
        limits: Limits | None = None,
        model: str | AnyModel | None = None,
    ) -> RouteResult:
        """As `Client.route`."""
        program = route_program(targets_of(targets), checked(text), repair=repair)
        return (await self._run(program, self._arguments(None, limits, model))).value

    async def solve(
        self, question: str, *, tools: Tools | None = None, system: str | None = None, temperature: float | None = None,
        max_tokens: int | None = None, options: SolveOptions | None = None, limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> Rationale:  # fmt: skip
        """As `Client.solve`."""
        used = solve_tools(self.tools if tools is None else tools_of(tools))
        program = solve_program(question, used, solve_options(options, system, temperature, max_tokens))
        return (await self._run(program, self._arguments(used, limits, model))).value

    async def find(
        self, query: str, *, documents: Sequence[str | Path] = (), audience: Sequence[str] = (), limit: int = 5
    ) -> tuple[Passage, ...]:
        """As `Client.find`."""
        return await asyncio.to_thread(self._find, query, documents, audience, limit)

    async def ask(
        self, question: str, *, documents: Sequence[str | Path] = (), audience: Sequence[str] = (), user: str = "",
        policy: str = "", temperature: float | None = None, max_tokens: int | None = None, session: str = "",
        limits: Limits | None = None, model: str | AnyModel | None = None,
    ) -> AskResult:  # fmt: skip
        """As `Client.ask`."""
        app = await asyncio.to_thread(self._ask_app, session, documents, audience, user, policy)
        opened = await self.session(
            app, session, temperature=temperature, max_tokens=max_tokens,
            options=TurnOptions(limits=(checked_limits(limits) or self.limits).usage_limits, approve=self.approve), model=model,
        )  # fmt: skip
        return asked(await opened.say(question))

    @overload
    async def session(
        self, app: str | App | None = None, name: str = "", *, schema: None = None, **more: Unpack[SessionArguments]
    ) -> AsyncSession[Json]: ...
    @overload
    async def session(
        self,
        app: str | App | None = None,
        name: str = "",
        *,
        schema: type[T] | OutputType[T],
        **more: Unpack[SessionArguments],
    ) -> AsyncSession[T]: ...
    @overload
    async def session(
        self, app: str | App | None = None, name: str = "", *, schema: Schema, **more: Unpack[SessionArguments]
    ) -> AsyncSession[Json]: ...
    async def session(
        self, app: str | App | None = None, name: str = "", *, params: Mapping[str, Json] | None = None,
        system: str | None = None, tools: Tools | None = None, temperature: float | None = None,
        max_tokens: int | None = None, schema: object = None, limits: Limits | None = None,
        options: TurnOptions | None = None, model: str | AnyModel | None = None,
    ) -> AsyncSession[Any]:  # fmt: skip
        """As `Client.session`."""
        changes = answer_options(system, temperature, max_tokens, schema, limits)
        return await asyncio.to_thread(
            self._open_session, AsyncSession, app, name, params, changes, schema, tools, options, model
        )

    async def sessions(self) -> tuple[SessionInfo, ...]:
        """As `Client.sessions`."""
        return await asyncio.to_thread(self._sessions)

    async def delete(self, name: str) -> None:
        """As `Client.delete`."""
        await asyncio.to_thread(lambda: self.store.delete_session(name))

    async def _run(self, program: Program[R], arguments: dict[str, Any]) -> RunResult[R]:
        runtime = AsyncRuntime(**arguments)
        with self._counting():
            done = await runtime.run_result(program)
        self._count(done.spent)
        return done

    async def _events(
        self, program: Program[R], view: "View[R, E, T]", arguments: dict[str, Any]
    ) -> "AsyncGenerator[E | Done[T]]":
        with self._counting():
            async with aclosing(AsyncRuntime(**arguments).stream(program)) as events:
                async for event in events:
                    if isinstance(event, RunResult):
                        self._count(event.spent)
                    for shown in view(event):
                        yield shown


# --- the client of the functions of `taiwa` ---------------------------------------------------------------------------

default_client = Client()
"""The client with the configured model, which `taiwa.generate` and the other functions of the package use."""

generate = default_client.generate
stream = default_client.stream
extract = default_client.extract
try_extract = default_client.try_extract
stream_extract = default_client.stream_extract
route = default_client.route
solve = default_client.solve
find = default_client.find
ask = default_client.ask
run = default_client.run


@overload
def open(app: str | App | None = None, *, schema: None = None, **more: Unpack[OpenArguments]) -> Session[Json]: ...
@overload
def open(
    app: str | App | None = None, *, schema: type[T] | OutputType[T], **more: Unpack[OpenArguments]
) -> Session[T]: ...
@overload
def open(app: str | App | None = None, *, schema: Schema, **more: Unpack[OpenArguments]) -> Session[Json]: ...
def open(
    app: str | App | None = None, *, model: str | AnyModel | None = None, session: str = "",
    store: str | Path | Store | None = None, params: Mapping[str, Json] | None = None, system: str | None = None,
    tools: Tools | None = None, temperature: float | None = None, max_tokens: int | None = None, schema: object = None,
    limits: Limits | None = None, prices: Prices | None = None, options: TurnOptions | None = None,
    retry_paid: bool | None = None, approve: Approve | None = None,
) -> Session[Any]:  # fmt: skip
    """Open the session of that name, or create one with an app (default: `plain`); see `Client.session`.

    The session has its own client, which `Session.close` closes.
    """
    client = Client(model, store=store, prices=prices, retry_paid=retry_paid, approve=approve)
    opened: Session[Any] = cast("Any", client).session(
        app, session, params=params, system=system, tools=tools, temperature=temperature, max_tokens=max_tokens,
        schema=schema, limits=limits, options=options,
    )  # fmt: skip
    opened.client = client
    return opened
