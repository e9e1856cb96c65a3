"""A batch of typed answers from the command line."""

from dataclasses import dataclass
from typing import Any

from taiwa.apps.render import request_tokens
from taiwa.cli.batching import Batch
from taiwa.cli.hear import usage_of
from taiwa.cli.opening import manner_of
from taiwa.cli.screen import emit, say_line, tell
from taiwa.cli.values import told_attempt
from taiwa.i18n import ngettext
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.talk.opening import open_voice
from taiwa.talk.typed import Typed, TypedRow, Typing, first_request

__all__ = ["TypedBatch"]


@dataclass
class TypedBatch(Batch):
    """One run of a batch of texts, of which each gives a value."""

    def extract(self, typing: Typing, width: int) -> None:
        """Extract from each row, so many at a time."""
        chosen = self.shared.settings()
        voice, desk = open_voice(None, chosen), self.shared.desk(chosen)
        job = Typed(desk, voice, manner_of(self.shared, chosen), typing=typing, width=width, resume=self.again)
        self._side_by_side(job)

    def told(self, row: TypedRow) -> dict[str, Json]:
        """A row as it is written."""
        spent = row.spent
        return {
            "index": row.given.index,
            "id": row.given.id,
            "text": row.given.text,
            "value": row.value,
            "attempts": [told_attempt(each) for each in row.attempts] if self.shared.verbose else len(row.attempts),
            "usage": usage_of(spent),
            "cost": None if spent.cost is None else spent.cost / 1e9,
            "error": row.error,
        }

    def foretell_types(self, typing: Typing) -> None:
        """Say what the batch would send; nothing is called."""
        model: Any = open_voice(None, self.shared.settings()).model
        good = bad = tokens = 0
        for given in self.rows:
            try:
                if given.error:
                    raise InputError(given.error)
                tokens += request_tokens(first_request(typing, given.text, model))
                good += 1
            except InputError as error:
                bad += 1
                tell(f"{given.index}: {error.message}", "yellow")
        if self.shared.as_json:
            emit({"rows": good, "bad": bad, "tokens": tokens})
        else:
            say_line(
                ngettext(
                    "{n} row can be sent, {bad} cannot; about {tokens} tokens to read",
                    "{n} rows can be sent, {bad} cannot; about {tokens} tokens to read",
                    good,
                    bad=bad,
                    tokens=f"{tokens:,}",
                )
            )
