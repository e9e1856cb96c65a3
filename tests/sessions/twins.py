"""One conversation, blocking and on an event loop."""

import asyncio
from collections.abc import Callable

from taiwa.sessions.commit_turn import TurnResult
from taiwa.sessions.session import AsyncSession, Session

Face = Callable[[Session, str], TurnResult]


def blocking(session: Session, text: str) -> TurnResult:
    return session.say(text)


def awaited(session: Session, text: str) -> TurnResult:
    twin = twin_of(session)
    twin.spent = session.spent
    try:
        return asyncio.run(twin.say(text))
    finally:
        session.conversation, session.spent, session.name = twin.conversation, twin.spent, twin.name


def twin_of(session: Session) -> AsyncSession:
    """The same conversation on an event loop."""
    name = session._requested_name if session.conversation.new_nodes else session.name
    return AsyncSession(
        session.repository, name, session.conversation, session.priced_model, options=session.options,
        observers=session._observers,
    )  # fmt: skip
