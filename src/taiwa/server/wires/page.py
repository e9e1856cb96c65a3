"""The page: HTML, its assets, and the events of a run as rendered blocks."""

import asyncio
from collections.abc import AsyncGenerator, Callable

from starlette.requests import Request
from starlette.responses import Response

from taiwa.i18n import LANGUAGES
from taiwa.kernel.messages import Notice, TextDelta, ThinkingDelta
from taiwa.operations.markdown_html import MarkdownStream
from taiwa.server.conversations import FollowedRun, interrupted_turn
from taiwa.server.errors import ApiError
from taiwa.server.page.page import POLICY, STATIC, Page, Place, asset
from taiwa.server.responses import EventStream, event, json_response
from taiwa.server.state import caller_of, read_body, repository_of, state_of
from taiwa.server.wire import Route, Wire
from taiwa.server.wires.api import error_to_json
from taiwa.sessions.durable_turn import TurnResult
from taiwa.sessions.repository import Repository

LANGUAGE_COOKIE = "taiwa-language"
PANELS = ("state", "tree", "turn", "bill")


def language_of(request: Request) -> str:
    """Return the language of a browser: the chosen one, else the first of its own that there is.

    >>> language_of(Request({"type": "http", "headers": [(b"accept-language", b"fr, ja-JP;q=0.8")]}))
    'ja'
    """
    wanted = [request.cookies.get(LANGUAGE_COOKIE, ""), *request.headers.get("accept-language", "").split(",")]
    short = (each.strip()[:2].lower() for each in wanted)
    return next((each for each in short if each in LANGUAGES), "en")


async def _render(request: Request, render: Callable[[Page], str]) -> Response:
    """Answer with HTML over the conversations of the caller, rendered in a thread."""
    page = Page(repository_of(request), language_of(request))
    headers = {"content-security-policy": POLICY, "cache-control": "no-store", "vary": "cookie, accept-language"}
    return Response(await asyncio.to_thread(render, page), headers=headers, media_type="text/html")


def _place(request: Request, repository: Repository) -> Place:
    name, panel = str(request.path_params["name"]), request.query_params.get("panel", "")
    if not repository.store.refs.has(name):
        raise ApiError(404, f"conversation {name[:80]!r} not found", code="conversation_not_found")
    tip = repository.store.refs.tip(name)
    at = request.query_params.get("at", "")
    at = repository.store.resolve(at) if at else ""
    end = request.query_params.get("end", "")
    end = repository.store.resolve(end) if end else at or tip
    return Place(name, end, at or end, panel if panel in PANELS else "state")


async def start(request: Request) -> Response:
    """Show the page that begins a conversation, or what was found."""
    catalogue, query = state_of(request).catalogue, request.query_params.get("q", "")
    return await _render(request, lambda page: page.start(catalogue.load_apps(), catalogue.models, query))


async def conversation(request: Request) -> Response:
    """Show a conversation."""
    running = await state_of(request).followed.of_session(str(request.path_params["name"]), caller_of(request))
    everything, run = "all" in request.query_params, running.id if running else ""
    said = running.runs[-1].completions[0].text if isinstance(running, FollowedRun) else ""

    def render(page: Page) -> str:
        place = _place(request, page.repository)
        left = None if run else interrupted_turn(page.repository, place.session)
        text = "" if left is None else left.text
        return page.conversation(place, run=run, said=said, interrupted=text, everything=everything)

    return await _render(request, render)


async def side(request: Request) -> Response:
    """Return the panels for a node."""
    return await _render(request, lambda page: page.side(_place(request, page.repository)))


async def why(request: Request) -> Response:
    """Return where a value came from."""
    path = request.query_params.get("path", "")
    return await _render(request, lambda page: page.why(_place(request, page.repository), path))


async def difference(request: Request) -> Response:
    """Return what differs from another conversation."""
    other = request.query_params.get("other", "")
    return await _render(request, lambda page: page.difference(_place(request, page.repository), other))


async def static(request: Request) -> Response:
    """Return an asset."""
    name = str(request.path_params["name"])
    if name not in STATIC:
        raise ApiError(404, "there is no such asset", code="not_found")
    headers = {"cache-control": "no-cache", "content-security-policy": POLICY}
    return Response(asset(name), headers=headers, media_type=STATIC[name])


async def language(request: Request) -> Response:
    """Choose the language of the page."""
    chosen = (await read_body(request)).choice("language", LANGUAGES, "en")
    response = json_response({"language": chosen})
    response.set_cookie(LANGUAGE_COOKIE, chosen, max_age=365 * 86400, httponly=True, samesite="strict", path="/")
    return response


async def run(request: Request) -> Response:
    """Follow a run: closed blocks once, and the open block each time that it grows. A reader who comes back starts anew."""
    followed = await state_of(request).followed.get(str(request.path_params["name"]), caller_of(request))

    async def write() -> AsyncGenerator[bytes]:
        yield event({}, "reset")
        text = MarkdownStream()
        async for each in followed.follow():
            match each.event:
                case TextDelta():
                    closed = text.feed(each.event.text)
                    if closed:
                        yield event({"html": closed}, "block")
                    yield event({"html": text.open_html}, "tail")
                case Notice():
                    yield event({"text": each.event.text}, "notice")
                case ApiError():
                    yield event({"text": each.event.message}, "failed")
                    return
                case TurnResult():
                    text = MarkdownStream()
                case ThinkingDelta():
                    pass
        yield event({"session": followed.session}, "done")

    return EventStream(write())


GET = ("GET",)
wire = Wire(
    "page",
    (
        Route("/", start, GET),
        Route("/c/{name}", conversation, GET),
        Route("/page/side/{name}", side, GET),
        Route("/page/why/{name}", why, GET),
        Route("/page/difference/{name}", difference, GET),
        Route("/page/runs/{name}", run, GET),
        Route("/page/language", language, ("POST",)),
        Route("/page/{name}", static, GET),
    ),
    error_to_json,
)
