"""Open the page in a browser: ui."""

import os
import sys
import webbrowser
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.options import CommonOptions, common_options
from taiwa.cli.output import print_line
from taiwa.i18n import _

if TYPE_CHECKING:
    from taiwa.server.serve import TaiwaServer
    from taiwa.sessions.repository import Repository
    from taiwa.settings import Settings

PORT = 7474


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help=f"Listen on this port; by default {PORT}, or a free one where that is in use.",
)
@click.option(
    "--app", "apps", metavar="APP", multiple=True, help="Offer this app, by name or file; without it all apps."
)
@click.option(
    "-m", "--model", "models", metavar="MODEL", multiple=True, help="Offer this model; the first one is chosen."
)
@click.option(
    "--in",
    "indexes",
    metavar="INDEX|FOLDER",
    multiple=True,
    help="Offer the documents of this index; a folder is indexed first.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@common_options("max_cost", "retry_paid", "store")
def ui(
    common: CommonOptions,
    *,
    port: int | None,
    indexes: tuple[str, ...],
    no_browser: bool,
    **values: Any,  # noqa: ANN401  (what click parsed)
) -> None:
    """Talk in the browser: conversations with every branch, the state after each turn, and where each value came from.

    It serves only this machine, and opens the page at an address that can be used once; without a browser it prints it.
    Ctrl-C ends it.

    \b
    taiwa ui
    taiwa ui -m ollama:qwen3 --in ~/handbook
    """
    from taiwa.cli.serve import check_installed, read_indexes

    check_installed()
    settings = common.settings()
    values |= {"indexes": read_indexes(settings, indexes)}
    server = page_server(common.repository(settings), settings, port, **values)
    print_page(server, opens=not no_browser and has_browser())
    server.run(opener(server) if not no_browser else None)


def page_server(
    repository: "Repository",
    settings: "Settings",
    port: int | None,
    **values: Any,  # noqa: ANN401  (the other options of a server)
) -> "TaiwaServer":
    """Return a server with a new key, on the given port, else the usual or a free one.

    Raises:
        ConfigError: the given port is in use.
    """
    from secrets import token_urlsafe

    from taiwa.kernel.errors import ConfigError
    from taiwa.server.options import ServerOptions
    from taiwa.server.serve import TaiwaServer, start_log

    key = token_urlsafe(24)
    try:
        server = TaiwaServer(
            repository, settings, ServerOptions(port=PORT if port is None else port, token=key, **values)
        )
    except ConfigError:
        if port is not None:
            raise
        server = TaiwaServer(repository, settings, ServerOptions(port=0, token=key, **values))
    start_log(as_json=False, requests=False)
    return server


def print_page(server: "TaiwaServer", *, opens: bool) -> None:
    """Print where the page is."""
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
    """Return what opens the page when the server listens; None without a browser."""
    if not has_browser():
        return None
    # A browser in the foreground ends when it is closed, so it has a thread of its own.
    return Thread(target=webbrowser.open, args=(server.login_url,), daemon=True).start
