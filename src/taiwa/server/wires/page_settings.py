"""The settings of a server on its page: its models, servers with their keys, and the limit on cost, for its owner only."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response

from taiwa.kernel.errors import ConfigError, ModelError
from taiwa.kernel.runtime import start_in_thread
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.kernel.wording import Wording
from taiwa.models.http_api.api_keys import Secret, list_keys, remove_key, set_key
from taiwa.models.providers import PROVIDERS, FoundModel, key_variables, list_models, name_at, resolve_server, try_key
from taiwa.server.http_responses import ApiError, error_to_json, invalid, json_response
from taiwa.server.page.start import Fetching, found_models, offered_model
from taiwa.server.request import read_body, repository_of, state_of
from taiwa.server.wire_interface import GET, POST, Route, Wire
from taiwa.server.wires.page import is_owner, respond
from taiwa.settings import Settings, parse_setting, set_value

T = TypeVar("T")
FETCHING = "fetching a model"
"""The key of the fetch in `ServerState.live`."""


def _check_owner(request: Request) -> None:
    if not is_owner(request):
        what = (
            "models, keys and limits are set by the owner of a server that has a token and is used on this machine only"
        )
        raise ApiError(403, what, "permission_error", "forbidden")


async def _do(action: Callable[[], T]) -> T:
    """Run an action of the owner in a thread; what it says about the settings is an error of the request."""
    try:
        return await asyncio.to_thread(action)
    except ConfigError as error:
        raise invalid(None, error.message, "invalid_value") from None


async def show(request: Request) -> Response:
    """Show the settings."""
    served, owns = state_of(request).served, await asyncio.to_thread(is_owner, request)
    listed = [(name, served.server_of(name)) for name in served.models]
    keys = list_keys(served.settings, key_variables(served.settings)) if owns else ()
    limits, path = served.settings.limits, str(served.settings.path)
    return await respond(request, lambda page: page.settings(listed, keys, tuple(PROVIDERS), limits, path, owns=owns))


async def models(request: Request) -> Response:
    """Return the models that were found here, and the one that can be fetched, or those of a server that is named."""
    await asyncio.to_thread(_check_owner, request)
    state, server = state_of(request), request.query_params.get("server", "")
    if server:
        settings = state.served.settings
        listed, problem = await _do(lambda: _listed(server, settings))
        return await respond(request, lambda page: page.found(listed, server=server, problem=problem))
    found = await asyncio.to_thread(found_models, state.served.settings)
    offered = await asyncio.to_thread(offered_model)
    return await respond(request, lambda page: page.found(found, offered, state.live.get(FETCHING)))


def _listed(server: str, settings: Settings) -> tuple[tuple[FoundModel, ...], str]:
    """Return the models that a server lists, or why it lists none."""
    target = resolve_server(server, settings)
    try:
        return list_models(target, settings), ""
    except ModelError as error:
        return (), error.message


async def change_models(request: Request) -> Response:
    """Serve one more model: one that was found here, one of a server that lists it or that is `named`, or the offered one, which is
    fetched first; or let a served one be the first, or serve it no longer.
    """
    await asyncio.to_thread(_check_owner, request)
    state, body = state_of(request), await read_body(request, ("model", "named", "server", "fetch", "first", "remove"))
    served = state.served

    def use(name: str) -> None:
        served.offer(name)
        served.serve(served.models)

    def change() -> None:
        if first := body.text("first", ""):
            served.serve((first, *(name for name in served.models if name != first)))
        elif removed := body.text("remove", ""):
            served.serve([name for name in served.models if name != removed])
        elif named := body.text("named", "").strip():
            use(name_at(resolve_server(body.text("server"), served.settings), named))
        else:
            name, server, settings = body.text("model"), body.text("server", ""), served.settings
            known = list_models(resolve_server(server, settings), settings) if server else found_models(settings)
            if name not in {each.name for each in known}:
                absent = Wording("the model {name!r} was not found on this machine", name=name[:80])
                unlisted = Wording("the model {name!r} is not listed by {server!r}", name=name[:80], server=server[:80])
                raise invalid("model", unlisted if server else absent, "invalid_value")
            use(name)

    if not body.flag("fetch"):
        await _do(change)
    elif (now := state.live.get(FETCHING)) is None or now.ended:
        fetching = state.live[FETCHING] = Fetching(served.settings, use)
        start_in_thread(fetching.run, "fetch-model")
    return json_response({})


async def change_keys(request: Request) -> Response:
    """Try a key of a server and store it, as `taiwa keys set` does, or delete it; a key that is not accepted is not stored, and one
    that could not be tested is, with the reason.
    """
    await asyncio.to_thread(_check_owner, request)
    served, body = state_of(request).served, await read_body(request, ("server", "key", "remove"))

    def change() -> str:
        target, problem = resolve_server(body.text("server"), served.settings), ""
        if body.flag("remove"):
            remove_key(served.settings, target.origin)
        else:
            key = Secret(body.text("key"), Wording("the key for {server}", server=target.origin))
            problem = try_key(target, key)
            set_key(served.settings, target.origin, key)
        served.reopen()
        return problem

    return json_response({"untested": await _do(change)})


async def set_limits(request: Request) -> Response:
    """Set the limits on cost of all runs from now on, and in the config file."""
    await asyncio.to_thread(_check_owner, request)
    state, text = state_of(request), (await read_body(request, ("max_cost",))).text("max_cost").strip() or "none"
    limits = cast("UsageLimits", await _do(lambda: parse_setting("max_cost", text, "the page")))
    await _do(lambda: set_value(state.served.settings.path, "max_cost", text))
    state.served.settings = replace(state.served.settings, limits=limits)
    repository_of(request).limit_all_runs(state.served.settings.limits)
    return json_response({})


async def trust(request: Request) -> Response:
    """Trust the imported app of a conversation."""
    await asyncio.to_thread(_check_owner, request)
    name, repository = (await read_body(request, ("session",))).text("session"), repository_of(request)
    await _do(lambda: repository.trust(repository.at(name).app.hash))
    return json_response({})


wire = Wire(
    "settings",
    (
        Route("/settings", show, GET),
        Route("/page/models", models, GET),
        Route("/page/models", change_models, POST),
        Route("/page/keys", change_keys, POST),
        Route("/page/limits", set_limits, POST),
        Route("/page/trust", trust, POST),
    ),
    error_to_json,
)
