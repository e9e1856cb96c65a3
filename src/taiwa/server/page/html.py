"""The pages and their fragments, rendered by templates in the language of the browser."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from taiwa.conversation.app import App
from taiwa.conversation.state import format_path, parse_path
from taiwa.flows.ask.ask_result import format_source
from taiwa.flows.ask.provenance import ValueSource
from taiwa.flows.program_turn import question_of
from taiwa.i18n import LANGUAGES, catalogue, dialogue_catalogue, translated, translator
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from taiwa.operations.documents import find_ask_turn
from taiwa.operations.log import said, sessions, title_of
from taiwa.operations.markdown_html import render_together, shown_text, visible
from taiwa.operations.result_json import to_json
from taiwa.operations.results import UntrustedApp
from taiwa.operations.state_values import format_value
from taiwa.operations.traces import TokensResult
from taiwa.server.page.assets import address, icon
from taiwa.server.page.panels import Place, difference, fitting_panels, value_story
from taiwa.server.page.start import EXAMPLES
from taiwa.server.page.text import (
    FUNCTIONS,
    LABELS,
    chooses_person,
    is_asked,
    marked,
    model_names,
    money,
    nano,
    pretty,
    short,
    spans_of,
    worded,
)
from taiwa.server.page.transcript import CountBreaks, Transcript, count_breaks, transcript, unfinished_view
from taiwa.sessions.repository import Repository
from taiwa.store import Hit, Ref
from taiwa.store.search import excerpt, fold
from taiwa.tools.registry import BUILT_IN

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["POLICY", "Page", "Place"]

LANGUAGE_NAMES = {"en": "English", "ja": "日本語", "zh": "中文"}
LISTED = 100
"""Conversations that are listed at first; as many more each time that more are wanted."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types taiwa"
)


def _count(singular: str, plural: str) -> tuple[str, str]:
    """Mark the two forms of a count for the catalogues."""
    return singular, plural


COUNTS = {
    "turns": _count("{n} turn", "{n} turns"),
    "elsewhere": _count("{n} turn continues elsewhere", "{n} turns continue elsewhere"),
    "count_documents": _count("{n} document", "{n} documents"),
    "count_breaks": _count("{n} break of the prompt cache", "{n} breaks of the prompt cache"),
}
"""The functions by which templates write counts."""


def _source_view(source: ValueSource, language: str) -> Mapping[str, str]:
    """Return the source of a part of a value as texts that are safe to show."""
    cited = source.citation
    place = "" if cited is None else format_source(cited, dialogue_catalogue(language))
    return {
        "path": source.path, "kind": source.kind, "words": short(visible(source.words)), "tool": source.tool,
        "input": short(visible(source.input)), "place": visible(place),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """The pages over the conversations of one caller, in one language."""

    repository: Repository
    language: str
    count_breaks: CountBreaks = count_breaks
    models: Sequence[str] = ()
    """The served models."""
    theme: str = "auto"
    currency: str = ""
    tag: str = ""
    """The tag of the listed conversations, "" for all."""

    def start(
        self, apps: Sequence[App], query: str, indexes: Json, app: str = "", index: str = "", *, owns: bool = False
    ) -> str:
        """Render the page that starts a conversation, with an app and an index chosen if they are named, or shows search results."""
        refs = {ref.name: ref for ref in self.repository.store.refs.list()} if query.split() else {}
        hits_ = self.repository.store.search(query) if query.split() else ()
        found = [(hit, names[0]) for hit in hits_ if (names := hit.refs or hit.left)]
        render_together(self.repository.store.nodes.get(hit.hash).answer or "" for hit, _ in found)
        hits = [
            {"session": name, "hash": hit.hash, "at": hit.at_us, "title": self._title(refs[name]),
             "parts": self._excerpt(hit, query)}
            for hit, name in found
        ]  # fmt: skip
        return self.render("start.html", title=self._("Found") if query else self._("New conversation"), session="", at="", query=query, hits=hits,
                            apps=apps, owns=owns, wanted=app, index=index, examples=self._examples(apps), tools=BUILT_IN, indexes=indexes, persons=self._persons(),
                            model="", tip="", end="", **self._list())  # fmt: skip

    def _excerpt(self, hit: Hit, query: str) -> list[tuple[str, bool]]:
        """Return the part of a turn around a word of a query as a reader sees it; a word of an address only, as it is written."""
        node = self.repository.store.nodes.get(hit.hash)
        found = excerpt(f"{node.user or ''}\n{shown_text(node.answer or '')}", fold(query).split())
        found = found if found.marks else hit.excerpt
        return marked(found.text, found.marks)

    def conversation(
        self, place: Place, model: str, tip: str, untrusted: UntrustedApp | None = None, *, owns: bool = False
    ) -> str:
        """Render a conversation, whose newest branch ends at `tip`, with the current model."""
        window = transcript(self.repository, place.session, place.tip)
        app = self.repository.app(self.repository.store.nodes.get(tip).app)
        persons = self._persons() if chooses_person(app) else ()
        given = app.answer_options
        options = {
            "system": given.system,
            "temperature": given.sampling.temperature,
            "max_tokens": given.sampling.max_tokens,
        }
        store = self.repository.store
        ref = next(each for each in store.refs.list() if each.name == place.session)
        return self.render("conversation.html", title=self._title(ref), ref=ref, options={key: "" if value is None else value for key, value in options.items()}, query="", window=window, persons=persons,
                            model=model, tip=tip, untrusted=untrusted, owns=owns, person=app.document_settings.get("user") or app.values.get("user") or "", end=place.tip,
                            pending=self.pending(place.session) if place.tip == tip else "",
                            **self._panel(place), **self._list(session=place.session))  # fmt: skip

    def _title(self, ref: Ref, text: str | None = None) -> str:
        return short(title_of(self.repository, ref, text), 80)

    def turns(self, window: Transcript, at: str) -> str:
        """Render turns of a transcript."""
        return self.render("turns.html", window=window, at=at)

    def list(self, session: str, answering: Mapping[str, tuple[str, str]], limit: int = LISTED) -> str:
        """Render the list of conversations; those with an active run show its message and client."""
        return self.render("list.html", session=session, **self._list(answering, limit, session))

    def panel(self, place: Place) -> str:
        """Render the panel for a position."""
        values = self._panel(place)
        return self.render(f"panels/{values['panel']}.html", **values)

    def why(self, place: Place, path: str) -> str:
        """Render the provenance of a value of the state."""
        try:
            story = value_story(self.repository, path, place.at, place.tip)
        except InputError:
            return self.render("why.html", path=path, problem=True)
        node, value = story.entry.node, story.origin.after
        user = marked(node.user or "", spans_of(node.user or "", value))
        answer = marked(node.answer or "", spans_of(node.answer or "", value))
        bill = self.repository.store.runs.bill_of(story.origin.hash)
        origin = self.repository.find_origin(place.at, parse_path(path))
        sources = () if origin is None else (_source_view(each, self.language) for each in origin.sources)
        return self.render(
            "why.html", path=path, problem=False, story=story, sources=tuple(sources), user=user, delta=pretty(node.delta) if node.delta else "", bill=bill,
            answer=[] if any(hit for _, hit in user) or not any(hit for _, hit in answer) else answer,
            json="" if repr(value) == "(nothing)" else format_value(cast("Any", value)), author=node.answer if node.kind == "edit" else "",
        )  # fmt: skip

    def pending(self, session: str) -> str:
        """Render what is open at the end of a conversation: the turn that failed or was interrupted, and the options of the
        clarifying question at which it pauses, or of its last answer.
        """
        tip = self.repository.store.refs.tip(session)
        turn, asked = find_ask_turn(self.repository, tip), question_of(self.repository.store.nodes.get(tip).findings)
        options: list[Mapping[str, str]] = [{"text": each, "passage": ""} for each in (asked.options if asked else ())]
        if turn is not None and asked is None:
            for option, passages in zip(turn.result.options, turn.candidates, strict=True):
                options.append({"text": option.label, "passage": passages[0].text if passages else ""})
        return self.render("pending.html", options=options, unfinished=unfinished_view(self.repository, session))

    def tokens(self, found: TokensResult) -> str:
        """Render the tokens of the answers of a turn; the conversation can continue with another token at each position of the
        reply.
        """
        answers = cast("dict[str, Any]", to_json(found))["answers"]
        conversation = self.repository.checkout(found.node)
        is_chat = conversation.app.documents is None
        for index, answer in enumerate(answers):
            # A later answer that does not continue the first one is a repair.
            answer["branches"] = is_chat and not answer["role"] and (index == 0 or bool(answer["prefix"]))
            at, rest = len(answer["prefix"]), b""
            for token in answer["tokens"]:
                token["at"] = None if rest else at  # a text cannot end within a character
                rest += bytes(token.get("bytes", b"")) or token["text"].encode("utf-8", "replace")
                whole = rest.decode("utf-8", "ignore")
                at, rest = at + len(whole), rest[len(whole.encode()) :]
        node = self.repository.store.nodes.get(found.node)
        return self.render("tokens.html", answers=answers, number=conversation.count, user=node.user or "")

    def index(
        self, index: "dict[str, Any]", wanted: str, found: "dict[str, Any] | None", audience: Sequence[str] = ()
    ) -> str:
        """Render an index as an audience sees it, with the results of a query."""
        passages = found["passages"] if found else []
        render_together(each["text"] for each in passages)
        for each in passages:
            words = [fold(each["text"][start:end]) for start, end in each["marks"]]
            shown = excerpt(shown_text(each["text"]), words, len(each["text"]))
            each["parts"] = marked(shown.text, shown.marks)
        return self.framed(
            "index.html", title=index["name"], index=index, wanted=wanted, found=found, audience=audience
        )

    def document(self, index: str, document: "dict[str, Any]") -> str:
        """Render the text of a document, with the cited quotation."""
        text, at = document["text"], document.get("offset", 0)
        spans = [(document["start"] - at, document["end"] - at)] if "start" in document else []
        return self.framed(
            "text.html", title=document["path"], index=index, document=document, parts=marked(text, spans)
        )

    def _examples(self, apps: Sequence[App]) -> Sequence[dict[str, Any]]:
        served = {app.name for app in apps}
        return [
            {"title": self._(each.title), "text": self._(each.text), "panel": each.panel,
             "body": {"app": each.app, "text": self._(each.text), "options": dict(each.options), "params": dict(each.params)}}
            for each in EXAMPLES
            if each.app in served and (self.models or not each.needs_model)
        ]  # fmt: skip

    def _persons(self) -> Sequence[str]:
        return [each.name for each in self.repository.store.users.list()]

    def _frame(self) -> dict[str, Any]:
        return {"session": "", "at": "", "query": "", "tip": "", "end": "", **self._list()}

    def framed(self, template: str, **values: Any) -> str:  # noqa: ANN401
        """Render a template that has the list of conversations beside it."""
        return self.render(template, **self._frame(), **values)

    def difference(self, place: Place, other: str) -> str:
        """Render the differences between two nodes, and the turns after their common ancestor."""
        store = self.repository.store
        theirs = store.resolve(other)
        named = other if store.refs.has(other) else short(said(store.nodes.get(theirs)), 40)
        return self.render(
            "difference.html", found=difference(self.repository, place.at, theirs), mine=place.session, other=named
        )

    def _panel(self, place: Place) -> Mapping[str, Any]:
        app = self.repository.app(self.repository.store.nodes.get(place.at).app)
        panels = fitting_panels(app)
        default = "state" if app.fields else "turn"
        panel = next((each for wanted in (place.panel, default) for each in panels if each.id == wanted), panels[0])
        return {
            "session": place.session,
            "at": place.at,
            "panel": panel.id,
            "panels": [(each.id, self._(each.title)) for each in panels],
            "folded": not (place.panel or app.fields or app.documents),
            **panel.values(self.repository, place),
        }

    def _list(
        self,
        answering: "Mapping[str, tuple[str, str]]" = MappingProxyType({}),
        limit: int = LISTED,
        session: str = "",
    ) -> dict[str, Any]:
        repository, tags = self.repository, self.repository.store.refs.tags()
        tag = self.tag if self.tag in tags else ""
        moves = repository.store.refs.moves()
        *listed, more = (*sessions(repository, limit + 1, placed=True, tag=tag, shown=session), None)
        if len(listed) > limit:
            more = listed.pop()
        breaks = {
            each.ref.name: self.count_breaks(repository, each.ref.name, each.ref.tip)
            for each in listed
            if each.ref.client
        }
        begun = {name: text for name, text in answering.items() if not repository.store.refs.has(name)}
        return {
            "tags": tags,
            "tag": tag,
            "conversations": [(each, self._title(each.ref, each.text)) for each in listed],
            "more": more is not None,
            "breaks": breaks,
            "answering": answering,
            "begun": begun,
            "moves": moves[0],
        }

    def _(self, message: str, /, **values: object) -> str:
        return translator("page", self.language)(message, **values)

    def _named(self, kind: str, name: str) -> str:
        """Return the label of an item of a kind of `LABELS`; unlisted items are shown unchanged."""
        known = LABELS[kind].get(name)
        return visible(name) if known is None else self._(known)

    def _about(self, text: str) -> str:
        """Translate the descriptions of a built-in app and its parameters."""
        return translator("cli", self.language)(text)

    def _counted(self, singular: str, plural: str, n: int) -> str:
        return catalogue("page", self.language).ngettext(singular, plural, n).format(n=f"{n:,}")

    def render(self, template: str, **values: Any) -> str:  # noqa: ANN401
        """Render a template."""
        shared: dict[str, Any] = {
            "_": self._,
            "named": self._named,
            "worded": partial(worded, language=self.language),
            "problem_in": lambda message: translated(message, self.language),
            "about": self._about,
            **{name: partial(self._counted, *forms) for name, forms in COUNTS.items()},
            "language": self.language,
            "languages": [(code, LANGUAGE_NAMES[code]) for code in LANGUAGES],
            "models": self.models,
            "called": model_names(self.models),
            "theme": self.theme,
            "currency": self.currency,
            "money": partial(money, currency=self.currency),
            "nano": partial(nano, currency=self.currency),
        }
        return _templates().get_template(template).render(shared | values)


def entry_page(language: str, *, used: bool = False, code: str = "", message: str = "") -> str:
    """Render the page that asks for the key of the server, after a link that was `used` before or without a cookie; with the `code` of
    an error, the page for an address that leads nowhere.
    """
    said = LABELS["error"].get(code, LABELS["error"]["not_found"]) if code else ""
    shared = {
        "_": translator("page", language),
        "language": language,
        "used": used,
        "said": said,
        "message": visible(message),
    }
    return _templates().get_template("enter.html").render(shared)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment: Any = Environment(
        loader=PackageLoader("taiwa.server.page"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals |= {each.__name__: each for each in FUNCTIONS} | {
        "path": format_path,
        "address": address,
        "icon": icon,
    }
    environment.tests["asked"] = is_asked
    environment.filters["urlencode"] = partial(quote, safe="")  # a name with a slash is one path segment
    return cast("Environment", environment)
