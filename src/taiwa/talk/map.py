"""A batch of turns, each the first of a conversation of its own."""

from collections.abc import Callable
from dataclasses import dataclass, field

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, begin
from taiwa.flows.chat import Reply, say
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json, record, revive
from taiwa.kernel.session import Done
from taiwa.store import item_key
from taiwa.talk.rows import Given, Row, failed
from taiwa.talk.sidebyside import Asking, SideBySide

__all__ = ["Map"]


@dataclass
class Map(SideBySide[tuple[Reply, Conversation], Row]):
    """Rows that know nothing of each other. `opened` gives the app with the params of a row.

    With `resume` a row that was answered before, with the same app, model and params, is not asked again.
    """

    opened: Callable[[Json], App] = field(kw_only=True)

    def asking(self, given: Given) -> Asking[tuple[Reply, Conversation]]:
        """Say what a row says, to its app."""
        app = self.opened(given.params)
        options = self.options.to_json()
        name = item_key(given.text, app.hash, self.voice.model.name, options)
        self.desk.store.nodes.put_app(app.source)
        tools = self.desk.tools_of(app)
        specs = [tool.spec for tool in tools]
        program = say(given.text, strict=self.options.strict, repairs=self.options.repairs, tools=specs)(begin(app))
        return Asking(name, program, app.hash, options, tools)

    def answered(self, given: Given, done: Done[tuple[Reply, Conversation]]) -> Row:
        """Make a row of a turn."""
        reply, after = done.value
        return Row(given, reply.text, reply.delta, dict(after.state), reply.warnings, spent=done.spent)

    def failed(self, given: Given, error: TaiwaError) -> Row:
        """Make a row of its error."""
        return failed(given, error)

    def recorded(self, row: Row) -> Json:
        """Give what is kept of a row that was answered; its place in the file is not."""
        return {
            "answer": row.answer,
            "delta": row.delta,
            "state": row.state,
            "warnings": list(row.warnings),
            "spent": record(row.spent),
        }

    def restored(self, given: Given, held: dict[str, Json]) -> Row:
        """Make a row again of what was kept of it."""
        warnings = held.get("warnings")
        spent = revive(held.get("spent"))
        return Row(
            given,
            str(held.get("answer")),
            held.get("delta"),
            held.get("state"),
            tuple(map(str, warnings)) if isinstance(warnings, list) else (),
            spent=spent if isinstance(spent, Spent) else Spent(),
            kept=True,
        )
