"""The page: HTML, its assets, and the events of a conversation with rendered blocks."""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from html import escape
from itertools import islice
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from taiwa.flows.turn import FINISH_WARNINGS
from taiwa.i18n import LANGUAGES, translated
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.messages import Notice, TextDelta, ThinkingDelta
from taiwa.kernel.serialization import Json, to_json
from taiwa.operations.apps import untrusted_apps
from taiwa.operations.markdown_html import MarkdownStream, visible
from taiwa.operations.resent_history import Completion
from taiwa.operations.traces import tokens
from taiwa.server.access import LOCAL_CALLER
from taiwa.server.conversation_turns import FollowedRun, unfinished_turn
from taiwa.server.http_responses import (
    NO_STORE,
    ApiError,
    EventStream,
    error_to_json,
    event,
    invalid,
    json_response,
)
from taiwa.server.page.assets import Body, asset
from taiwa.server.page.html import LISTED, POLICY, Page, entry_page
from taiwa.server.page.panels import PANELS, Place, steps_of
from taiwa.server.page.text import labelled, worded
from taiwa.server.page.transcript import LAST_TURNS, common_node, transcript
from taiwa.server.page.transcript import beside as turns_beside
from taiwa.server.request import (
    LANGUAGE_COOKIE,
    Fields,
    caller_of,
    language_of,
    name_of,
    query_number,
    repository_of,
    state_of,
)
from taiwa.server.runs import InsertedDelta
from taiwa.server.wire_interface import GET, Route, Wire
from taiwa.server.wires import documents
from taiwa.server.wires.persons import shown_person
from taiwa.sessions.commit_turn import TurnResult
from taiwa.sessions.users import UserProfiles

MOST_STEPS = 10**9
THEME_COOKIE, TAG_COOKIE = "taiwa-theme", "taiwa-tag"
THEMES = ("auto", "light", "dark")
STATIC = {"page.js": "text/javascript", "enter.js": "text/javascript", "page.css": "text/css"}
SHA256 = re.compile("[0-9a-f]{64}")


HTML = "text/html; charset=utf-8"
FOREVER = "private, max-age=31536000, immutable"
AGAIN = "private, no-cache"
"""A browser keeps what it was sent, and asks whether it has changed."""


def _packed(request: Request, body: Body, media_type: str, cache_control: str = AGAIN) -> Response:
    """Respond with a body, compressed if the browser reads that, or with the news that the browser has it already."""
    headers = {
        "content-security-policy": POLICY, "cache-control": cache_control, "etag": f'"{body.tag}"',
        "vary": "accept-encoding, cookie, accept-language",
    }  # fmt: skip
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if body.packed and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(body.packed, headers=headers | {"content-encoding": "gzip"}, media_type=media_type)
    return Response(body.data, headers=headers, media_type=media_type)


def page_of(request: Request) -> Page:
    """Return the page over the conversations of the caller, in the language of the browser."""
    state, theme = state_of(request), request.cookies.get(THEME_COOKIE, "")
    return Page(repository_of(request), language_of(request), state.count_breaks, state.served.models,
                theme if theme in THEMES else THEMES[0], state.served.currency,
                unquote(request.cookies.get(TAG_COOKIE, "")))  # fmt: skip


def entry(request: Request, *, used: bool = False) -> Response:
    """Respond to a browser that has no key with the page that asks for it."""
    headers = {"content-security-policy": POLICY, "cache-control": "no-store"}
    return Response(entry_page(language_of(request), used=used), 401, headers, HTML)


def problem(request: Request, error: ApiError) -> Response:
    """Respond with a page that says what is wrong with its address."""
    body = entry_page(language_of(request), code=error.code or error.type, message=error.message)
    return Response(body, error.status, {"content-security-policy": POLICY, **NO_STORE, **error.headers}, HTML)


def respond(request: Request, body: str) -> Response:
    """Respond with HTML."""
    return _packed(request, Body.of(body.encode("utf-8", "replace")), HTML)


def _name(request: Request) -> str:
    name = name_of(request)
    if not repository_of(request).store.refs.has(name):
        raise ApiError(404, f"conversation {name[:80]!r} not found", code="conversation_not_found")
    return name


def _node(request: Request, name: str) -> str:
    """Return the node named by a query parameter, or ""."""
    given = request.query_params.get(name, "")
    return repository_of(request).store.resolve(given) if given else ""


def _place(request: Request, panel: str = "") -> Place:
    panel = panel or request.query_params.get("panel", "")
    panel = panel if panel in {each.id for each in PANELS} else ""
    name, at, end = _name(request), _node(request, "at"), _node(request, "end")
    end = end or at or repository_of(request).store.refs.tip(name)
    return Place(name, end, at or end, panel)


def is_owner(request: Request) -> bool:
    """Return whether a request comes from the owner of a private server: the holder of its token, on this machine, of a server
    that has no other callers and no other names.

    Anybody else could send the conversations and the keys of the owner elsewhere.
    """
    state = state_of(request)
    address = state.options.address
    is_private = address.is_local and state.options.token and not (address.names or address.origins)
    return bool(is_private) and caller_of(request) == LOCAL_CALLER and not repository_of(request).store.callers.list()


def start(request: Request) -> Response:
    """Show the page that starts a conversation, or search results."""
    apps, indexes = state_of(request).served.load_apps(), documents.list_indexes(request)
    query, app, index = (request.query_params.get(name, "") for name in ("q", "app", "in"))
    return respond(request, page_of(request).start(apps, query, indexes, app, index, owns=is_owner(request)))


def conversation(request: Request) -> Response:
    """Show a conversation; the address that it had before it was renamed leads to it."""
    state, repository, name = state_of(request), repository_of(request), name_of(request)
    refs = repository.store.refs
    if not refs.has(name) and (now := refs.renamed(name)):
        return RedirectResponse(f"/c/{quote(now, safe='')}?{request.url.query}", headers=NO_STORE)
    tip = refs.tip(_name(request))  # a turn that ends after this is an event
    place = _place(request)
    models = state.served.models
    written = [run for run in state.followed.of(place.session, caller_of(request)) if not run.ended]
    last = (
        written[-1].runs[-1].completions[0].session.priced_model.model.name
        if written
        else repository.last_model(place.tip, place.session)
    )
    app, untrusted = repository.store.nodes.get(place.tip).app, None
    if not repository.store.nodes.is_trusted(app):
        untrusted = next(iter(untrusted_apps(repository, state.served.settings, app)), None)
    model = last if last in models else next(iter(models), "")
    owns = untrusted is not None and is_owner(request)
    return respond(request, page_of(request).conversation(place, model, tip, untrusted, owns=owns))


def window(request: Request) -> Response:
    """Return turns of a branch: before or after a node, or from the last one that the page has."""
    repository, place = repository_of(request), _place(request)
    before, after, have = (_node(request, each) for each in ("before", "after", "have"))
    keep, tip = "", repository.store.refs.tip(place.session)
    if have:
        last = [name for name, _ in islice(repository.store.nodes.path(place.tip), LAST_TURNS)]
        keep = have if have in last else common_node(repository, have, place.tip)
        keep = keep if keep in last and repository.store.nodes.get(keep).kind != "root" else ""
    found = transcript(repository, place.session, place.tip, before=before, after=after or keep)
    html = page_of(request).turns(found, place.at)
    data: Json = {
        "html": html, "keep": keep, "earlier": found.earlier, "later": found.later, "end": place.tip, "tip": tip
    }  # fmt: skip
    return _packed(request, Body.of(to_json(data)), "application/json")


def step(request: Request) -> Response:
    """Return the node a number of nodes before the end of a branch."""
    back = query_number(request, "back", 0, 0, MOST_STEPS)
    path = repository_of(request).store.nodes.path(_place(request).tip)
    name = next(islice((name for name, node in path if node.kind != "root"), back, None), None)
    if name is None:
        raise invalid("back", "the conversation has fewer turns")
    return json_response({"node": name})


def names(request: Request) -> Response:
    """Return the list of conversations."""
    answering = {run.session: (run.text, run.client) for run in state_of(request).followed.open(caller_of(request))}
    limit, session = query_number(request, "limit", LISTED, 1, MOST_STEPS), request.query_params.get("session", "")
    return respond(request, page_of(request).list(session, answering, limit))


def panel(request: Request) -> Response:
    """Return a panel for a position."""
    which = str(request.path_params["panel"])
    if which not in {panel.id for panel in PANELS}:
        raise ApiError(404, f"unknown panel {which[:40]!r}", code="not_found")
    return respond(request, page_of(request).panel(_place(request, which)))


def why(request: Request) -> Response:
    """Return the provenance of a value."""
    return respond(request, page_of(request).why(_place(request), request.query_params.get("path", "")))


def beside(request: Request) -> Response:
    """Return the answers of the branches at a position beside each other."""
    place = _place(request)
    turns = turns_beside(repository_of(request), place.session, place.at)
    return respond(request, page_of(request).render("beside.html", turns=turns))


def difference(request: Request) -> Response:
    """Return the differences from another conversation."""
    return respond(request, page_of(request).difference(_place(request), request.query_params.get("other", "")))


async def static(request: Request) -> Response:
    """Return an asset."""
    name = name_of(request)
    found = asset(name)
    if found is None:
        raise ApiError(404, "asset not found", code="not_found")
    return _packed(request, found, STATIC[name], FOREVER if request.url.query == found.tag else AGAIN)


def file(request: Request) -> Response:
    """Return an attachment: images inline, everything else as a download."""
    name = name_of(request)
    data = repository_of(request).store.blobs.data(name) if SHA256.fullmatch(name) else b""
    if not data:
        raise ApiError(404, "the bytes of the attachment are not stored here", code="not_found")
    found = Attachment.from_bytes(data)
    headers = {
        "content-security-policy": "default-src 'none'; sandbox",
        "cache-control": FOREVER,
        "content-disposition": "inline" if found.kind == "images" else "attachment",
    }
    return Response(data, headers=headers, media_type=found.media_type)


async def look(_: Request, body: Fields) -> Response:
    """Set the language or the theme of the page in this browser."""
    response = json_response({})
    for name, cookie, choices in (("language", LANGUAGE_COOKIE, LANGUAGES), ("theme", THEME_COOKIE, THEMES)):
        if name in body.data:
            chosen = body.choice(name, choices, choices[0])
            response.set_cookie(cookie, chosen, max_age=365 * 86400, httponly=True, samesite="strict", path="/")
    return response


async def follow(request: Request) -> Response:
    """Follow a conversation while the page is open: the answer in progress, and the position of the conversation.

    `tip` is the position that the page knows, `run` the first run that it wants to see; a reconnecting page names the last run
    that it has seen completely (`Last-Event-ID`).
    """
    state, caller, repository = state_of(request), caller_of(request), repository_of(request)
    shown, first = request.query_params.get("tip", ""), request.query_params.get("run", "")
    # A page that knows a position gets the one to which the conversation has moved while it was in the background.
    session = name_of(request) if shown else await asyncio.to_thread(_name, request)
    last = request.headers.get("last-event-id", "")

    def look() -> tuple[object, str]:
        return repository.store.refs.moves(), repository.store.refs.find_tip(session) or ""

    def is_left() -> bool:
        return bool(look()[1]) and unfinished_turn(repository, session) is not None

    language = language_of(request)

    async def write() -> AsyncGenerator[bytes]:
        nonlocal shown
        known = state.followed.of(session, caller)
        names = [run.id for run in known]
        if last in names:
            seen = set(names[: names.index(last) + 1])
        elif first in names:
            seen = set(names[: names.index(first)])
        else:
            seen = {run.id for run in known if run.ended}
        yield b"retry: 1000\n\n"
        if len(seen) == len(names) and await asyncio.to_thread(is_left):
            yield event({}, "left")
        ready = False
        while not state.followed.stopping:
            version = state.followed.version
            for run in state.followed.of(session, caller):
                if run.id not in seen:
                    seen.add(run.id)
                    async for part in _written(run, language):
                        yield part
            moves, tip = await asyncio.to_thread(look)
            if tip != shown:
                shown = tip
                if tip:
                    yield event({"tip": tip}, "tip")
                else:
                    yield event({"renamed": await asyncio.to_thread(repository.store.refs.renamed, session)}, "gone")
                    return
            if not ready:
                ready = True
                yield event({}, "ready")
            await state.followed.wait(caller, version, moves, repository.store.refs.moves)

    return EventStream(write())


async def _written(run: FollowedRun, language: str) -> AsyncGenerator[bytes]:
    """Write the events of a run: each closed block once, and the open block now and then, with the text after it."""
    text, count, ended = _begun_with(run.runs[0].completions[0]), 0, False

    def say(message: str) -> str:
        return worded("", message, language)[1]

    yield _begun(run, run.runs[0].completions[0])
    async for each in run.follow():
        if ended:
            count, ended = count + 1, False
            text = _begun_with(run.runs[count].completions[0])
            yield _begun(run, run.runs[count].completions[0])
        match each.event:
            case InsertedDelta():
                pass
            case TextDelta():
                if not text.add(each.event.text):
                    yield event({"more": escape(visible(each.event.text))}, "tail")
                    continue
                html = await asyncio.to_thread(text.render)
                if html.closed:
                    yield event({"html": html.closed}, "block")
                yield event({"html": html.open}, "tail")
            case Notice(code="state"):
                yield event({}, "state")
            case Notice(code="waiting"):
                yield event({"text": say(each.event.text), "seconds": round(each.event.seconds)}, "waits")
            case Notice():
                is_said = each.event.text in FINISH_WARNINGS.values()  # by the turn itself
                if each.event.level == "warning" and not is_said:
                    yield event({"text": say(each.event.text)}, "notice")
            case ApiError():
                yield _numbered(run, event(_failed(each.event, language), "failed"))
                return
            case TurnResult():
                ended = True
                yield event({"tip": each.event.node}, "tip")
            case ThinkingDelta():
                yield event({"text": each.event.text}, "thinking")
    yield _numbered(run, event({}, "done"))


def _failed(error: ApiError, language: str) -> Json:
    """Return the error of a turn in a language as the page shows it."""
    type_ = error.type.replace("authentication_error", "model_authentication")
    return {"error": {"message": in_language(replace(error, type=type_), language).message}}


def in_language(error: ApiError, language: str) -> ApiError:
    """Return an error with its message in a language as the page shows it."""
    sentence, details = worded(labelled(error.code or "", error.type), error.message, language)
    whole = language == "en" or not sentence or translated(error.message, language) != error.message
    return replace(error, message=details if whole else f"{sentence} ({details})")


def _begun_with(completion: Completion) -> MarkdownStream:
    """Return the stream of an answer, with its prefilled beginning."""
    text = MarkdownStream()
    if completion.turn_input is not None and completion.turn_input.prefix:
        text.add(completion.turn_input.prefix)
    return text


def _begun(run: FollowedRun, completion: Completion) -> bytes:
    given = completion.turn_input
    parent = "" if given is None else given.follows or ""
    files = [] if given is None else [each.label for each in given.attachments]
    return event({"run": run.id, "said": completion.text, "files": [*files], "parent": parent}, "run")


def _numbered(run: FollowedRun, written: bytes) -> bytes:
    return f"id: {run.id}\n".encode() + written


def steps(request: Request) -> Response:
    """Return a turn step by step, with its requests."""
    found = steps_of(repository_of(request), _place(request).at)
    return respond(request, page_of(request).render("steps.html", **found))


def pending(request: Request) -> Response:
    """Return what is open at the end of a conversation: an unfinished turn, a clarifying question."""
    return respond(request, page_of(request).pending(_name(request)))


def token_view(request: Request) -> Response:
    """Return the tokens of the answers of a turn: forced tokens, chosen tokens, and alternatives."""
    found = tokens(repository_of(request), _place(request).at, state_of(request).served.model_named)
    return respond(request, page_of(request).tokens(found))


def document_list(request: Request) -> Response:
    """Show the indexes that the caller can see, and accept uploads."""
    indexes = documents.list_indexes(request)
    return respond(request, page_of(request).framed("documents.html", indexes=indexes, index=None))


def person_list(request: Request) -> Response:
    """Show the user profiles of the caller."""
    store = repository_of(request).store
    persons = [shown_person(UserProfiles(store), each.name) for each in store.users.list()]
    indexes = documents.list_indexes(request)
    return respond(request, page_of(request).framed("persons.html", persons=persons, indexes=indexes))


def document_index(request: Request) -> Response:
    """Show an index: its documents, unreadable files, audience, and query results."""
    wanted, index = request.query_params.get("q", "").strip(), documents.show(request)
    found = documents.find_passages(request) if wanted else None
    return respond(request, page_of(request).index(index, wanted, found, request.query_params.getlist("as")))


def document_text(request: Request) -> Response:
    """Show a document, at a quotation if the query contains one."""
    return respond(request, page_of(request).document(name_of(request), documents.open_document(request)))


wire = Wire(
    "page",
    (
        Route("/", start, GET),
        Route("/c/{name}", conversation, GET),
        Route("/page/follow/{name}", follow, GET),
        Route("/page/transcript/{name}", window, GET),
        Route("/page/step/{name}", step, GET),
        Route("/page/list", names, GET),
        Route("/page/panel/{panel}/{name}", panel, GET),
        Route("/page/why/{name}", why, GET),
        Route("/page/beside/{name}", beside, GET),
        Route("/page/difference/{name}", difference, GET),
        Route("/page/files/{name}", file, GET),
        Route("/page/pending/{name}", pending, GET),
        Route("/page/steps/{name}", steps, GET),
        Route("/page/tokens/{name}", token_view, GET),
        Route("/documents", document_list, GET),
        Route("/persons", person_list, GET),
        Route("/documents/{name}", document_index, GET),
        Route("/documents/{name}/text/{path:path}", document_text, GET),
        Route("/page/look", look, body=("language", "theme")),
        Route("/page/{name}", static, GET),
    ),
    error_to_json,
)
