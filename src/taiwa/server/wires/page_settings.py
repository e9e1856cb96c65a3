"""The settings of a server on its page: its models, servers with their keys, and the limit on cost, for its owner only."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from taiwa.kernel.errors import ConfigError, ModelError
from taiwa.kernel.runtime import start_in_thread
from taiwa.kernel.usage_limits import UsageLimits, format_cost_limits
from taiwa.kernel.wording import Wording
from taiwa.models.http_api.api_keys import Secret, list_keys, remove_key, set_key
from taiwa.models.providers import PROVIDERS, FoundModel, key_variables, list_models, name_at, resolve_server, try_key
from taiwa.server.http_responses import ApiError, error_to_json, invalid, json_response
from taiwa.server.page.start import Fetching, found_models, offered_model
from taiwa.server.request import Fields, repository_of, state_of
from taiwa.server.wire_interface import GET, Route, Wire
from taiwa.server.wires.page import is_owner, page_of, respond
from taiwa.settings import Settings, parse_setting, set_value

FETCHING = "fetching a model"
"""The key of the fetch in `ServerState.live`."""


def _check_owner(request: Request) -> None:
    if not is_owner(request):
        what = (
            "models, keys and limits are set by the owner of a server that has a token and is used on this machine only"
        )
        raise ApiError(403, what, "permission_error", "forbidden")


@contextmanager
def _as_invalid() -> Generator[None]:
    """Make what is said about the settings an error of the request."""
    try:
        yield
    except ConfigError as error:
        raise invalid(None, error.message, "invalid_value") from None


def show(request: Request) -> Response:
    """Show the settings."""
    served, owns = state_of(request).served, is_owner(request)
    listed = [(name, served.server_of(name)) for name in served.models]
    keys = list_keys(served.settings, key_variables(served.settings)) if owns else ()
    settings = {
        "served": listed, "key_rows": keys, "providers": tuple(PROVIDERS), "path": str(served.settings.path), "owns": owns,
        "limits": format_cost_limits(served.settings.limits),
    }  # fmt: skip
    return respond(request, page_of(request).framed("settings.html", **settings))


def models(request: Request) -> Response:
    """Return the models that were found here, and the one that can be fetched, or those of a server that is named."""
    _check_owner(request)
    state, server = state_of(request), request.query_params.get("server", "")
    if server:
        with _as_invalid():
            listed, problem = _listed(server, state.served.settings)
        offered, fetching = "", None
    else:
        listed, problem = found_models(state.served.settings), ""
        offered, fetching = offered_model(), state.live.get(FETCHING)
    page = page_of(request)
    new = [each for each in listed if each.name not in page.models]
    found = {"found": new, "offered": offered, "fetching": fetching, "server": server, "problem": problem}
    return respond(request, page.render("found.html", **found))


def _listed(server: str, settings: Settings) -> tuple[tuple[FoundModel, ...], str]:
    """Return the models that a server lists, or why it lists none."""
    target = resolve_server(server, settings)
    try:
        return list_models(target, settings), ""
    except ModelError as error:
        return (), error.message


def change_models(request: Request, body: Fields) -> Response:
    """Serve one more model: one that was found here, one of a server that lists it or that is `named`, or the offered one, which is
    fetched first; or let a served one be the first, or serve it no longer.
    """
    _check_owner(request)
    state = state_of(request)
    served = state.served

    def use(name: str) -> None:
        served.offer(name)
        served.serve(served.models)

    if body.flag("fetch"):
        if (now := state.live.get(FETCHING)) is None or now.ended:
            fetching = state.live[FETCHING] = Fetching(served.settings, use)
            start_in_thread(fetching.run, "fetch-model")
        return json_response({})
    with _as_invalid():
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
    return json_response({})


def change_keys(request: Request, body: Fields) -> Response:
    """Try a key of a server and store it, as `taiwa keys set` does, or delete it; a key that is not accepted is not stored, and one
    that could not be tested is, with the reason.
    """
    _check_owner(request)
    served, problem = state_of(request).served, ""
    with _as_invalid():
        target = resolve_server(body.text("server"), served.settings)
        if body.flag("remove"):
            remove_key(served.settings, target.origin)
        else:
            key = Secret(body.text("key"), Wording("the key for {server}", server=target.origin))
            problem = try_key(target, key)
            set_key(served.settings, target.origin, key)
        served.reopen()
    return json_response({"untested": problem})


def set_limits(request: Request, body: Fields) -> Response:
    """Set the limits on cost of all runs from now on, and in the config file."""
    _check_owner(request)
    served, text = state_of(request).served, body.text("max_cost").strip() or "none"
    with _as_invalid():
        limits = cast("UsageLimits", parse_setting("max_cost", text, "the page"))
        set_value(served.settings.path, "max_cost", text)
    served.settings = replace(served.settings, limits=limits)
    repository_of(request).limit_all_runs(limits)
    return json_response({})


def trust(request: Request, body: Fields) -> Response:
    """Trust the imported app of a conversation."""
    _check_owner(request)
    repository = repository_of(request)
    repository.trust(repository.at(body.text("session")).app.hash)
    return json_response({})


wire = Wire(
    "settings",
    (
        Route("/settings", show, GET),
        Route("/page/models", models, GET),
        Route("/page/models", change_models, body=("model", "named", "server", "fetch", "first", "remove")),
        Route("/page/keys", change_keys, body=("server", "key", "remove")),
        Route("/page/limits", set_limits, body=("max_cost",)),
        Route("/page/trust", trust, body=("session",)),
    ),
    error_to_json,
)
