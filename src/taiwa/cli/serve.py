"""Serve apps and models to clients of other APIs, and the page that is opened in a browser: serve, ui."""

import os
import re
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from secrets import token_urlsafe
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.options import C, CommonOptions, Group, add_options, common_options, principal_option
from taiwa.cli.output import print_item, print_line, print_notice, print_rows
from taiwa.extras import missing_extra
from taiwa.i18n import _
from taiwa.kernel.attachments import read_regular_text
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.text import plural
from taiwa.kernel.usage_limits import format_cost

if TYPE_CHECKING:
    from taiwa.server.access import Served
    from taiwa.server.serve import TaiwaServer
    from taiwa.sessions.repository import Repository
    from taiwa.settings import Settings


CALLER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
MOST_COST, MOST_RATE = 10**9, 10**6
TOKEN_VARIABLE = "TAIWA_SERVE_TOKEN"  # noqa: S105  (the name of a variable)


KEY_FILE = "server.key"
"""The file beside the config file that keeps the key of the server, so that clients and browsers know it after a restart."""


def kept_key(settings: "Settings") -> str:
    """Return the key of the server from its file, which is made at the first start.

    Raises:
        ConfigError: the file cannot be read.
    """
    from taiwa.yamlfile import write_private

    path = settings.path.with_name(KEY_FILE)
    try:
        kept = read_regular_text(path).strip()
    except FileNotFoundError:
        kept = ""
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path}: cannot be read; delete it to get a new key") from None
    key = kept or token_urlsafe(24)
    if not kept:
        with suppress(ConfigError):  # a read-only folder, as in a container: the key is new at each start
            write_private(path, f"{key}\n")
    return key


def served_options(verb: str, first_model: str, to: str = "") -> Callable[[C], C]:
    """Add the options of what is served: apps, models and documents."""
    return add_options(
        click.option("--app", "apps", metavar="APP", multiple=True, help=f"{verb} this app, by name or file; without it all apps."),
        click.option("-m", "--model", "models", metavar="MODEL", multiple=True, help=f"{verb} this model; the first one {first_model}."),
        click.option(
            "--in", "indexes", metavar="INDEX|FOLDER", multiple=True,
            help=f"{verb} the documents of this index{to}; a folder is indexed first.",
        ),
    )  # fmt: skip


@click.group(cls=Group, invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=7474,
    show_default=True,
    help="Listen on this port; 0 is a free one.",
)
@served_options("Serve", "answers requests for apps", " to every caller")
@click.option(
    "--embeddings",
    metavar="FOLDER|MODEL",
    default="",
    help="Use this model for /v1/embeddings: a folder, or a model on a server.",
)
@click.option(
    "--token",
    metavar="TOKEN",
    help=f"Accept this key from clients; by default ${TOKEN_VARIABLE}, else that of the file {KEY_FILE}.",
)
@click.option("--no-token", is_flag=True, help="Allow every program on this machine, without a key.")
@click.option("--allow-host", "hosts", metavar="NAME", multiple=True, help="Accept requests to this host name too.")
@click.option(
    "--allow-origin", "origins", metavar="ORIGIN", multiple=True, help="Allow pages of this origin to call the server."
)
@click.option(
    "--otel",
    metavar="URL",
    default="",
    help="Send the spans of each turn to this OpenTelemetry collector, without texts.",
)
@click.option(
    "--approve",
    type=click.Choice(["ask", "always", "never"]),
    default="ask",
    show_default=True,
    help="Decide on calls of tools that need approval; `ask` asks on the page, and those clients that support it.",
)
@click.option(
    "--strict-fields",
    is_flag=True,
    help="Refuse fields of requests that the protocol does not define; do not pass them on.",
)
@click.option("--json-log", is_flag=True, help="Write the log as JSON lines.")
@common_options("max_cost", "retry_paid", "store")
@click.pass_context
def serve(
    context: click.Context,
    /,
    common: CommonOptions,
    host: str,
    port: int,
    apps: tuple[str, ...],
    models: tuple[str, ...],
    indexes: tuple[str, ...],
    embeddings: str,
    token: str | None,
    *,
    no_token: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    json_log: bool,
    **values: Any,  # noqa: ANN401  (what click parsed)
) -> None:
    """Serve apps and models over the APIs of OpenAI, Anthropic, Ollama, AG-UI and MCP, with state, branches and a store.

    Clients use the address as their base URL, with /v1, and the printed key as their API key. `model` names an app, a model,
    or APP@MODEL.

    \b
    taiwa serve -m ollama:qwen3
    taiwa serve --app order --app plain -m openai:gpt-5 --max-cost 0.10
    taiwa serve --in ~/handbook -m ollama:qwen3
    curl localhost:7474/v1/chat/completions -H "Authorization: Bearer $KEY" \\
         -H "Content-Type: application/json" \\
         -d '{"model": "order", "messages": [{"role": "user", "content": "two teas"}]}'
    """
    if context.invoked_subcommand is not None:
        return
    check_installed()
    from taiwa.server.access import Address, Served, ServerOptions
    from taiwa.server.serve import TaiwaServer, start_log

    if token is not None and no_token:
        raise InputError("--token and --no-token exclude each other")
    settings = common.settings()
    given = "" if no_token else token or os.environ.get(TOKEN_VARIABLE) or ""
    key = given or ("" if no_token else kept_key(settings))
    served = Served(apps, models, read_indexes(settings, indexes), embeddings)
    options = ServerOptions(Address(host, port, hosts, origins), served, key, **values)
    server = TaiwaServer(common.repository(settings), settings, options)
    found = server.state.served
    print_line(
        f"taiwa serves {', '.join(found.models) or 'no model'} and {plural(len(found.apps), 'app')} at {server.url}"
    )
    print_line(f"base URL  {server.url}/v1")
    if key:
        print_line(f"API key   {'as given' if given else key}")
        print_line(f"browser   {server.login_url}  (once)")
    else:
        print_notice(_("no key is needed: every program on this machine can use the server"))
    print_line("Ctrl-C stops it; open answers may finish, and can be resumed otherwise.")
    sys.stdout.flush()  # flush for a program that reads the key from a pipe
    start_log(as_json=json_log)
    server.run()


def check_installed() -> None:
    """Check that what the server needs is installed.

    Raises:
        ConfigError: it is not.
    """
    from importlib.util import find_spec

    if not (find_spec("starlette") and find_spec("uvicorn")):
        raise missing_extra("the server", "serve")


def read_indexes(settings: "Settings", names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the indexes to serve; folders, and what changed in them, are read first."""
    if not names:
        return ()
    from taiwa.cli.index import reporter
    from taiwa.operations.documents import find_indexes, open_library

    with open_library(settings) as library:
        return tuple(index.name for index in find_indexes(library, names, settings, reporter()))


@serve.group(cls=Group)
def keys() -> None:
    """Manage the keys of named callers, each with its own conversations, documents, bill and limits.

    Adding and revoking a key take effect at once on every running server of the store.

    \b
    taiwa serve keys add ann --max-cost 5/day --rate 60/min
    taiwa serve keys list
    taiwa serve keys revoke ann
    taiwa cost --caller ann --by day
    """


@keys.command("add")
@click.argument("name")
@click.option("--max-cost", metavar="AMOUNT/day", help="Limit the cost of the caller per day (UTC).")
@click.option("--rate", metavar="N/min", help="Limit the number of answers per minute.")
@principal_option
@common_options("as_json", "store")
def add_(common: CommonOptions, name: str, max_cost: str | None, rate: str | None, audience: tuple[str, ...]) -> None:
    """Create a key for the caller NAME, and print it. Only its hash is stored, so it is printed only once.

    \b
    taiwa serve keys add ann --max-cost 5/day --as user:ann --as group:sales
    """
    from taiwa.store.server_records import Caller

    if not CALLER_NAME.fullmatch(name):
        raise InputError(f"invalid name {name[:80]!r}; use letters, digits, - _ and . (at most 60)")
    key = f"taiwa-{token_urlsafe(32)}"
    caller = Caller(name, _amount(max_cost), _rate(rate), audience)
    common.repository().store.callers.add(caller, key)
    print_item({"caller": name, "key": key}, key, as_json=common.as_json)
    if not common.as_json:
        print_notice(_("the key is printed only once; clients send it as their API key"))


def _amount(text: str | None) -> int | None:
    from decimal import Decimal, InvalidOperation

    if text is None:
        return None
    number, _, unit = text.partition("/")
    try:
        found = Decimal(number)
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or not 0 <= found <= MOST_COST or unit not in ("", "day"):
        raise InputError(f"--max-cost must be an amount for a day, such as 5/day, got {text[:40]!r}")
    return int(found * 10**9)


def _rate(text: str | None) -> int | None:
    if text is None:
        return None
    number, _, unit = text.partition("/")
    if not number.isascii() or not number.isdigit() or not 0 < int(number[:7]) <= MOST_RATE or unit not in ("", "min"):
        raise InputError(f"--rate must be a number of answers for a minute, such as 60/min, got {text[:40]!r}")
    return int(number)


@keys.command("list")
@common_options("as_json", "store")
def list_(common: CommonOptions) -> None:
    """List the callers with their limits, and what they spent today.

    \b
    taiwa serve keys list
    """
    from taiwa.operations.result_json import cost_of, format_time
    from taiwa.sessions.budgets import start_of_day

    store = common.repository(reading=True).store
    callers = store.callers.list()
    today = start_of_day(store.now())
    spent = [store.owned_by(each.name).runs.spent_since(today) for each in callers]
    item = [
        {
            "caller": each.name, "max_cost_per_day": cost_of(each.max_cost), "rate_per_minute": each.rate,
            "as": [*each.principals], "spent_today": cost_of(cost), "created": format_time(each.at_us),
        }
        for each, cost in zip(callers, spent, strict=True)
    ]  # fmt: skip
    rows = [
        (
            each.name, "" if each.max_cost is None else f"{format_cost(each.max_cost)}/day", format_cost(cost),
            "" if each.rate is None else f"{each.rate}/min", " ".join(each.principals), format_time(each.at_us),
        )
        for each, cost in zip(callers, spent, strict=True)
    ]  # fmt: skip
    heads = (_("caller"), _("limit"), _("today"), _("rate"), _("as"), _("since"))
    none = _("there are no callers yet; create a key with taiwa serve keys add NAME")
    print_rows(item, heads, rows, frozenset({1, 2, 3}), as_json=common.as_json, none=none)


@keys.command("revoke")
@click.argument("name")
@common_options("as_json", "store")
def revoke_(common: CommonOptions, name: str) -> None:
    """Revoke the key of the caller NAME at once; its conversations stay in the store.

    \b
    taiwa serve keys revoke ann
    """
    common.repository().store.callers.revoke(name)
    print_item({"revoked": name}, f"revoked the key of {name}", as_json=common.as_json)


# --- the page ---------------------------------------------------------------------------------------------------------

PORT = 7474


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help=f"Listen on this port; by default {PORT}, or a free one if that is in use.",
)
@served_options("Offer", "is chosen")
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
@common_options("max_cost", "retry_paid", "store")
def ui(
    common: CommonOptions,
    *,
    port: int | None,
    apps: tuple[str, ...],
    models: tuple[str, ...],
    indexes: tuple[str, ...],
    no_browser: bool,
) -> None:
    """Chat in the browser: conversations with every branch, the state after each turn, and the origin of each value.

    It serves only this machine, and opens the page at a one-time address, or prints it if there is no browser.
    Ctrl-C ends it.

    \b
    taiwa ui
    taiwa ui -m ollama:qwen3 --in ~/handbook
    """
    check_installed()
    from taiwa.server.access import Served

    settings = common.settings()
    served = Served(apps, models, read_indexes(settings, indexes))
    server = page_server(common.repository(settings), settings, port, served)
    print_page(server, opens=not no_browser and has_browser())
    server.run(opener(server) if not no_browser else None)


def page_server(
    repository: "Repository", settings: "Settings", port: int | None, served: "Served | None" = None
) -> "TaiwaServer":
    """Return a server on the given port, else the usual or a free one; over a store in memory it has a new key.

    Raises:
        ConfigError: the given port is in use.
    """
    from taiwa.server.access import Address, Served, ServerOptions
    from taiwa.server.serve import TaiwaServer, start_log

    key = token_urlsafe(24) if repository.store.path is None else kept_key(settings)
    options = ServerOptions(Address(port=PORT if port is None else port), served or Served(), key)
    try:
        server = TaiwaServer(repository, settings, options)
    except ConfigError:
        if port is not None:
            raise
        server = TaiwaServer(repository, settings, replace(options, address=Address(port=0)))
    start_log(as_json=False, requests=False)
    return server


def print_page(server: "TaiwaServer", *, opens: bool) -> None:
    """Print the address of the page."""
    print_line(
        _("the page opens in your browser; if it does not, open this address, which works once:")
        if opens
        else _("open this address in a browser; it works once:")
    )
    print_line(f"  {server.login_url}", "cyan")
    print_line(_("Ctrl-C ends it."))
    sys.stdout.flush()


def has_browser() -> bool:
    """Report whether this machine has a browser with a window."""
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def opener(server: "TaiwaServer") -> Callable[[], None] | None:
    """Return the function that opens the page when the server listens; None without a browser."""
    if not has_browser():
        return None
    # A foreground browser blocks until it is closed, so it has its own thread.
    return Thread(target=webbrowser.open, args=(server.login_url,), daemon=True).start
