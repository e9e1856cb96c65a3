"""taiwa: a whole turn, from the state to the committed node in SQLite on disk."""

import os
import tempfile
from itertools import count
from pathlib import Path

from benches.peers import Begin
from taiwa.apps.catalogue import find
from taiwa.models.http_api.client import HttpModel
from taiwa.models.names import resolve
from taiwa.store import Store
from taiwa.talk.desk import Desk
from taiwa.talk.talk import Talk
from taiwa.talk.turn import Voice

MODEL = os.environ.get("BENCH_MODEL", "with-delta")


class Own:
    """A session of a store; many conversations share the store, the model and the app."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def say(self, text: str) -> str:
        said = await self._talk.asay(text)
        assert said.delta, said.warnings
        return said.text


def open_talks(address: str, opening: str) -> Begin:  # noqa: ARG001  (the app brings the same words)
    folder = tempfile.TemporaryDirectory()
    desk, app = Desk(Store.open(Path(folder.name) / "store.db")), find("chat").opened({})
    voice, numbers = Voice(HttpModel(resolve(f"{address}#{MODEL}"))), count()

    def begin() -> Own:
        assert folder.name
        return Own(Talk(desk, f"chat-{next(numbers)}", desk.start(app), voice))

    return begin
