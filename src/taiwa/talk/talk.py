"""An open conversation with a model: say, stream, undo, fork, and the asynchronous twins of what talks."""

from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import TypeAlias

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.conversation.state import State
from taiwa.flows.chat import Reply
from taiwa.kernel.arun import AsyncRuntime
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError
from taiwa.kernel.ledger import Limits, Spent
from taiwa.kernel.run import Runtime
from taiwa.kernel.session import Done, Observer
from taiwa.kernel.values import Note, TextDelta, Usage
from taiwa.talk.desk import Desk
from taiwa.talk.turn import Turn, TurnOptions, TurnResult, Utterance, Voice, begin_turn, resume_turn

__all__ = ["Talk"]

Heard: TypeAlias = TextDelta | Note | TurnResult
Turned: TypeAlias = tuple[Reply, Conversation]


class Talk:
    """One session of a store with a model to talk to. A failed turn leaves the conversation where it was.

    A new session that was given no name takes a free one when its first turn begins; until then `session` is a guess.
    """

    def __init__(
        self,
        desk: Desk,
        session: str,
        conversation: Conversation,
        voice: Voice,
        *,
        options: TurnOptions | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        self.desk = desk
        self.session = session or desk.new_name(conversation.app)
        self._given = session
        self.conversation = conversation
        self.voice = voice
        self.options = options or TurnOptions()
        desk.tools.update({tool.spec.name: tool for tool in self.options.tools})
        self.spent = Spent()
        """The bill of this talk, failed turns included."""
        self._observers = tuple(observers)

    @property
    def state(self) -> State:
        """The dialogue state after the last turn."""
        return self.conversation.state

    @property
    def app(self) -> App:
        """The app of the conversation."""
        return self.conversation.app

    def say(self, text: str) -> TurnResult:
        """Have one turn.

        Raises:
            TaiwaError: the turn failed; the conversation has not moved, what was paid for stays in the store.
        """
        turn = self._turn(Utterance(self.conversation, text))
        with self._billed(turn):
            done = self._runtime(turn).done(turn.program, turn.journal)
        return self._settle(turn, done)

    def stream(self, text: str) -> Iterator[Heard]:
        """Have one turn and give out the answer as it comes, last the committed turn."""
        return self._play(self._turn(Utterance(self.conversation, text)))

    async def asay(self, text: str) -> TurnResult:
        """As `say`, on an event loop."""
        turn = self._turn(Utterance(self.conversation, text))
        with self._billed(turn):
            done = await self._async_runtime(turn).done(turn.program, turn.journal)
        return self._settle(turn, done)

    def astream(self, text: str) -> AsyncIterator[Heard]:
        """As `stream`, on an event loop."""
        return self._aplay(self._turn(Utterance(self.conversation, text)))

    def retry(self) -> Iterator[Heard]:
        """Say the last utterance again from the same state; the new answer takes the place of the old one.

        Raises:
            InputError: there is no turn yet.
        """
        return self.edit(self.said(1), turns=1, why="retry")

    def said(self, turns: int = 1) -> str:
        """What was said so many turns ago; 1 is the last turn.

        Raises:
            InputError: there are not so many turns.
        """
        if self.conversation.fresh:
            raise InputError("there is no turn yet")
        return self.desk.turn(self.conversation.tip, turns)[1].user or ""

    def edit(self, text: str, *, turns: int = 1, why: str = "edit") -> Iterator[Heard]:
        """Go back some turns and say something else; the old branch stays in the log.

        Raises:
            InputError: there are not so many turns.
        """
        if self.conversation.fresh:
            raise InputError("there is no turn yet")
        base = self.desk.checkout(self.desk.before_turn(self.conversation.tip, turns))
        return self._play(self._turn(Utterance(base, text, why, self.conversation.tip)))

    def resume(self) -> Iterator[Heard] | None:
        """Finish a turn of this session that was cut off, or return None when there is none."""
        runs = self.desk.store.runs.open_runs(self.session)
        if not runs:
            return None
        for stale in runs[:-1]:
            self.desk.store.runs.abandon(stale.id)
        return self._play(resume_turn(self.desk, runs[-1], self.voice))

    def undo(self, turns: int = 1) -> Conversation:
        """Go back; message, state and window move together."""
        return self._to(self.desk.store.undo(self.session, turns))

    def redo(self, turns: int = 1) -> Conversation:
        """Go forward again to where `undo` came from."""
        return self._to(self.desk.store.redo(self.session, turns))

    def set_state(self, values: State) -> Conversation:
        """Change the state by hand."""
        self._begun()
        self.conversation = self.desk.set_state(self.session, values)
        return self.conversation

    def change_app(self, app: App) -> Conversation:
        """Go on with another app, or an edited one; values that still fit stay."""
        self._begun()
        self.conversation = self.desk.change_app(self.session, app)
        return self.conversation

    def _begun(self) -> None:
        if self.conversation.fresh:
            with self.desk.store.transaction():
                self.session = self._given or self.desk.new_name(self.app)
                self.conversation = self.desk.commit(self.session, self.conversation, expected=None, why="begin")

    def fork(self, name: str) -> "Talk":
        """Go on from here under a second name; neither branch can change the other."""
        self._begun()
        self.desk.fork(self.conversation.tip, name)
        options, observers = self.options, self._observers
        return Talk(self.desk, name, self.conversation, self.voice, options=options, observers=observers)

    def _to(self, tip: str) -> Conversation:
        self.conversation = self.desk.checkout(tip)
        return self.conversation

    def _turn(self, said: Utterance) -> Turn:
        self._limits()
        name = self._given if said.base.fresh else self.session
        turn = begin_turn(self.desk, name, said, self.voice, self.options)
        self.session = turn.session
        return turn

    def _limits(self) -> Limits:
        """What is left for the next turn.

        Raises:
            ConfigError: the model never says what was used, so nothing would ever reach the limit of cost.
        """
        limits = self.options.limits
        if limits.cost is None:
            return limits
        known = self.spent.cost
        if self.spent.unmetered > 1 and self.spent.usage == Usage():
            raise ConfigError(f"{self.voice.model.name} reported the usage of no call, so a cost limit cannot hold")
        if known is None:  # what an answer that was cut cost at most
            known = self.spent.cost_at_most
        if known is None:  # an answer that was stopped has no bill; what the others cost is known all the same
            known = self.voice.price("", self.spent.usage) or 0
        return replace(limits, cost=max(limits.cost - known, 0))

    def _runtime(self, turn: Turn) -> Runtime:
        observers, interrupts = (*self._observers, turn.observe), self.options.interrupts
        return Runtime(
            self.voice.model,
            tools=turn.tools,
            observers=observers,
            limits=self._limits(),
            price=self.voice.price,
            interrupts=interrupts,
            **turn.edges,
        )

    def _async_runtime(self, turn: Turn) -> AsyncRuntime:
        observers, limits = (*self._observers, turn.observe), self._limits()
        model, price = self.voice.model, self.voice.price
        return AsyncRuntime(model, tools=turn.tools, observers=observers, limits=limits, price=price, **turn.edges)

    def _play(self, turn: Turn) -> Iterator[Heard]:
        done: list[Done[Turned]] = []
        with self._billed(turn):
            for event in self._runtime(turn).stream(turn.program, turn.journal):
                if isinstance(event, Done):
                    done.append(event)
                else:
                    yield event
        yield self._settle(turn, done[0])

    async def _aplay(self, turn: Turn) -> AsyncIterator[Heard]:
        done: list[Done[Turned]] = []
        with self._billed(turn):
            # Closed here and not when it is collected: who stops listening stops the call.
            async with aclosing(self._async_runtime(turn).stream(turn.program, turn.journal)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        done.append(event)
                    else:
                        yield event
        yield self._settle(turn, done[0])

    def _settle(self, turn: Turn, done: "Done[Turned]") -> TurnResult:
        self.spent = self.spent + done.spent
        reply, after = done.value
        said, self.conversation = turn.commit(reply, after, done.spent)
        return said

    @contextmanager
    def _billed(self, turn: Turn) -> Generator[None]:
        try:
            with turn.kept():
                yield
        except TaiwaError as error:
            if isinstance(error.spent, Spent):
                self.spent = self.spent + error.spent
            raise
