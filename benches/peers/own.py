"""taiwa: a whole turn, from the state to the committed node in SQLite on disk."""

import os
import tempfile
from itertools import count
from pathlib import Path

from benches.peers import Begin
from taiwa.apps.catalog import load_app
from taiwa.models.http_api.client import HttpModel
from taiwa.models.providers import resolve
from taiwa.sessions.commit_turn import PricedModel
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import AsyncSession
from taiwa.store import Store

MODEL = os.environ.get("BENCH_MODEL", "with-delta")


class Own:
    """A session in a store; many conversations share the store, the model and the app."""

    def __init__(self, talk: AsyncSession) -> None:
        self._talk = talk

    async def say(self, text: str) -> str:
        said = await self._talk.say(text)
        assert said.delta, said.warnings
        return said.text


def open_talks(address: str, opening: str) -> Begin:  # noqa: ARG001  (the app brings the same words)
    folder = tempfile.TemporaryDirectory()
    repository, app = Repository(Store.open(Path(folder.name) / "store.db")), load_app("chat").with_params({})
    priced_model, numbers = PricedModel(HttpModel(resolve(f"{address}#{MODEL}"))), count()

    def begin() -> Own:
        assert folder.name
        return Own(AsyncSession(repository, f"chat-{next(numbers)}", repository.start(app), priced_model))

    return begin
