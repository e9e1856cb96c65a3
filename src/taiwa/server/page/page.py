"""The pages and their fragments, rendered by templates in the language of the browser."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from taiwa.conversation.app import App
from taiwa.conversation.state_paths import diff_states, format_path
from taiwa.i18n import LANGUAGES, catalogue
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.messages import Response
from taiwa.kernel.records import Json, restore
from taiwa.kernel.usage_limits import currency_units
from taiwa.operations.inspect import format_value, sessions, show, value_history, why
from taiwa.operations.markdown_html import visible
from taiwa.operations.say import request_text
from taiwa.server.page.views import branch_map, state_view, transcript
from taiwa.sessions.replay import recorded_requests
from taiwa.sessions.repository import Repository
from taiwa.store import CallRecord

if TYPE_CHECKING:
    from jinja2 import Environment

LANGUAGE_NAMES = {"en": "English", "ja": "日本語", "zh": "中文"}
LAST_TURNS = 100
SHORT = 80
STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
"""The assets, by their names: no path of a request is looked up in a folder."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types taiwa"
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a page shows: a session, the end of the branch in its transcript, the selected node, and the open panel."""

    session: str
    tip: str
    at: str
    panel: str = "state"


@cache
def asset(name: str) -> bytes:
    """Return an asset of `STATIC`."""
    return (files("taiwa.server.page") / "static" / name).read_bytes()


@dataclass(frozen=True, slots=True)
class Page:
    """The pages over the conversations of one caller, in one language."""

    repository: Repository
    language: str

    def start(self, apps: Sequence[App], models: Sequence[str], query: str = "") -> str:
        """Render the page that begins a conversation, or finds one."""
        hits = [
            {"session": hit.refs[0] if hit.refs else "", "hash": hit.hash, "text": visible(hit.excerpt.text)}
            for hit in (self.repository.store.search(query) if query else ())
            if hit.refs
        ]
        return self._render("start.html", title=self._("New conversation"), session="", at="", query=query, hits=hits,
                            apps=apps, models=models, run="", said="", behind=False, **self._list())  # fmt: skip

    def conversation(
        self, place: Place, *, run: str = "", said: str = "", interrupted: str = "", everything: bool = False
    ) -> str:
        """Render a conversation; `interrupted` is what the user said in the turn that can be resumed."""
        turns = transcript(self.repository, place.session, place.tip, 1_000_000 if everything else LAST_TURNS)
        behind = self.repository.store.refs.tip(place.session) != place.tip
        count = self.repository.at(place.tip).count
        return self._render("conversation.html", title=place.session, query="", transcript=turns, behind=behind, run=run, said=said,
                            interrupted=visible(interrupted),
                            earlier=bool(turns) and count > turns[-1].number - turns[0].number + 1 and not everything,
                            **self._side(place), **self._list())  # fmt: skip

    def side(self, place: Place) -> str:
        """Render the panels for a selected node."""
        return self._render("side.html", **self._side(place))

    def why(self, place: Place, path: str) -> str:
        """Render where a value of the state came from."""
        try:
            found = why(self.repository, path, place.at)
        except InputError as error:
            return self._render("why.html", path=path, problem=error.message)
        node = found.origin.node
        entries = value_history(self.repository, path, place.tip)
        history = [(entry.hash, self.repository.at(entry.hash).count, short(entry.value)) for entry in entries]
        marked = tuple(_marked(visible(node.user or ""), found.origin.after))
        return self._render(
            "why.html", path=path, problem="", origin=found.origin, user=marked, json=format_value(found.origin.after),
            by={"edit": self._("by hand"), "turn": self._("by the model")}.get(node.kind, node.kind),
            delta=pretty(node.delta) if node.delta else "",
            history=history,
        )  # fmt: skip

    def difference(self, place: Place, other: str) -> str:
        """Render what differs between a node and the end of another session, and the turn after which they part."""
        mine, theirs = self.repository.at(place.at), self.repository.at(other)
        path = {name for name, _ in self.repository.store.nodes.path(mine.tip)}
        common = next((name for name, _ in self.repository.store.nodes.path(theirs.tip) if name in path), None)
        fork = self.repository.at(common).count if common else 0
        changes = tuple(diff_states(dict(mine.state), dict(theirs.state)))
        return self._render("difference.html", changes=changes, fork=fork)

    def _side(self, place: Place) -> dict[str, Any]:
        repository = self.repository
        path = [name for name, node in repository.store.nodes.path(place.tip) if node.parent is not None]
        shown = show(repository, place.at)
        costs = repository.store.costs
        return {
            "session": place.session,
            "at": place.at,
            "panel": place.panel,
            "panels": (
                ("state", self._("State")),
                ("tree", self._("Branches")),
                ("turn", self._("Turn")),
                ("bill", self._("Bill")),
            ),
            "number": shown.conversation.count,
            "path_length": max(len(path), 1),
            "place": len(path) - 1 - path.index(place.at) if place.at in path else 0,
            "state": state_view(repository, place.at),
            "names": [ref.name for ref in repository.store.refs.list()[:LAST_TURNS]],
            "map": branch_map(repository, place.session, place.tip),
            "calls": [(call, answer_text(call)) for call in shown.calls],
            "requests": [request_text(request) for request in recorded_requests(repository, place.at)],
            "bill": (
                (self._("Conversations"), [line for line in costs("session") if line.name == place.session]),
                (self._("Models"), costs("model")),
                (self._("Days"), costs("day")),
            ),
        }

    def _list(self) -> dict[str, Any]:
        return {"conversations": sessions(self.repository, LAST_TURNS)}

    def _(self, message: str, /, **values: object) -> str:
        text = catalogue("page", self.language).gettext(message)
        return text.format(**values) if values else text

    def _count(self, singular: str, plural: str, n: int) -> str:
        return catalogue("page", self.language).ngettext(singular, plural, n).format(n=f"{n:,}")

    def _turns(self, n: int) -> str:
        return self._count("{n} turn", "{n} turns", n)

    def _elsewhere(self, n: int) -> str:
        return self._count("{n} turn continues elsewhere", "{n} turns continue elsewhere", n)

    def _render(self, template: str, **values: Any) -> str:  # noqa: ANN401
        words = {
            "waiting": self._("waiting for the model …"),
            "copied": self._("copied"),
            "checking": self._("checking …"),
            "verified": self._("verified: {n} nodes", n="{n}"),
            "name": self._("Name of the new branch"),
            "link": self._("This link carries a long query. Open it?"),
            "after": self._("After turn {n} it was: {value}", n="{n}", value="{value}"),
            "since": self._("Wrong since turn {n}."),
            "never": self._("It was right in every turn."),
        }
        keys = (
            ("Enter", self._("send")), ("Shift+Enter", self._("new line")), ("/", self._("to the message field")),
            ("Esc", self._("leave the message field")), ("j k", self._("next and previous turn")),
            ("[ ]", self._("previous and next branch")), ("e", self._("edit the selected turn")),
            ("r", self._("answer the last message again")), ("u U", self._("undo and redo")), ("f", self._("fork here")),
            ("v", self._("verify")), ("s t d b", self._("state, branches, turn, bill")), ("n", self._("new conversation")),
        )  # fmt: skip
        shared: dict[str, Any] = {
            "_": self._,
            "turns": self._turns,
            "elsewhere": self._elsewhere,
            "language": self.language,
            "languages": [(code, LANGUAGE_NAMES[code]) for code in LANGUAGES],
            "texts": words,
            "keys": keys,
        }
        return _templates().get_template(template).render(shared | values)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment: Any = Environment(
        loader=PackageLoader("taiwa.server.page"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals |= {"path": format_path, "short": short, "money": money, "nano": nano, "pretty": pretty}
    environment.filters["urlencode"] = partial(quote, safe="")  # a name with a slash is one part of a path
    return cast("Environment", environment)


def answer_text(call: CallRecord) -> str:
    """Write the answer of a call: the text of a model with the calls that it asked for, or a record."""
    try:
        answer = restore(call.answer) if call.answer is not None and call.error is None else None
    except CorruptError:
        answer = None
    if not isinstance(answer, Response):
        return pretty(call.error or call.answer)
    thoughts = [part.text for part in answer.message.thinking]
    calls = [f"{each.name} {each.arguments}" for each in answer.message.tool_calls]
    return visible("\n\n".join(text for text in (*thoughts, answer.text, *calls) if text))


def short(value: Json) -> str:
    """Write a value on one short line."""
    text = visible(value if isinstance(value, str) else format_value(value))
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def pretty(value: Json) -> str:
    """Write a value as indented JSON."""
    return visible(json.dumps(value, ensure_ascii=False, indent=1))


def money(cost: Decimal) -> str:
    """Write a cost in currency units."""
    return f"{cost:f}".rstrip("0").rstrip(".") or "0"


def nano(cost: int | None) -> str:
    """Write a cost in billionths of a currency unit; "?" where it is unknown."""
    units = currency_units(cost)
    return "?" if units is None else money(units)


def _marked(text: str, value: Json) -> "list[tuple[str, bool]]":
    """Cut a text at the words that a value repeats."""
    words = [value] if isinstance(value, str) else [str(value)] if isinstance(value, (int, float)) else []
    lowered = text.lower()
    for word in filter(None, words):
        start = lowered.find(word.lower())
        if start >= 0 and len(lowered) == len(text):
            end = start + len(word)
            return [(text[:start], False), (text[start:end], True), (text[end:], False)]
    return [(text, False)]
