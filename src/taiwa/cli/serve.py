"""Serve apps and models to clients of other APIs: serve."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.options import CommonOptions, common_options
from taiwa.cli.output import print_line, print_notice

if TYPE_CHECKING:
    from taiwa.settings import Settings

TOKEN_VARIABLE = "TAIWA_SERVE_TOKEN"  # noqa: S105  (the name of a variable)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=7474,
    show_default=True,
    help="Listen on this port; 0 is a free one.",
)
@click.option(
    "--app", "apps", metavar="APP", multiple=True, help="Serve this app, by name or file; without it all apps."
)
@click.option(
    "-m",
    "--model",
    "models",
    metavar="MODEL",
    multiple=True,
    help="Serve this model; the first one answers where a request names an app.",
)
@click.option(
    "--in",
    "indexes",
    metavar="INDEX|FOLDER",
    multiple=True,
    help="Serve the documents of this index to every caller; a folder is indexed first.",
)
@click.option(
    "--embeddings",
    metavar="FOLDER|MODEL",
    default="",
    help="Make the vectors of /v1/embeddings with this model: a folder, or a model on a server.",
)
@click.option(
    "--token", metavar="TOKEN", help=f"Let clients in with this key; by default ${TOKEN_VARIABLE}, else a new one."
)
@click.option("--no-token", is_flag=True, help="Let every program on this machine in.")
@click.option("--allow-host", "hosts", metavar="NAME", multiple=True, help="Answer requests to this host name too.")
@click.option(
    "--allow-origin", "origins", metavar="ORIGIN", multiple=True, help="Let pages of this origin call the server."
)
@click.option("--json-log", is_flag=True, help="Write the log as JSON lines.")
@common_options("max_cost", "retry_paid", "store")
def serve(
    common: CommonOptions,
    token: str | None,
    *,
    no_token: bool,
    indexes: tuple[str, ...],
    **values: Any,  # noqa: ANN401  (what click parsed)
) -> None:
    """Serve apps and models to clients of the OpenAI API, with state, branches and the store behind them.

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
    from importlib.util import find_spec
    from secrets import token_urlsafe

    from taiwa.kernel.errors import ConfigError, InputError

    if not (find_spec("starlette") and find_spec("uvicorn")):
        raise ConfigError("the server needs the extra: pip install 'taiwa[serve]'")
    from taiwa.server.options import ServerOptions
    from taiwa.server.serve import TaiwaServer, start_log

    if token is not None and no_token:
        raise InputError("--token and --no-token exclude each other")
    given = "" if no_token else token or os.environ.get(TOKEN_VARIABLE) or ""
    key = given or ("" if no_token else token_urlsafe(24))
    settings = common.settings()
    options = ServerOptions(token=key, indexes=_read_indexes(settings, indexes), **values)
    server = TaiwaServer(common.repository(settings), settings, options)
    print_line(
        f"taiwa serves {', '.join(server.state.catalogue.models)} and {len(server.state.catalogue.apps)} apps at {server.url}"
    )
    print_line(f"base URL  {server.url}/v1")
    if key:
        print_line(f"API key   {'as given' if given else key}")
        print_line(f"browser   {server.login_url}  (once)")
    else:
        print_notice("no key is needed: every program on this machine can use the server")
    print_line("Ctrl-C stops it; answers that are being written may end, and can be resumed otherwise.")
    sys.stdout.flush()  # for a reader of a pipe, who waits for the key
    start_log(as_json=options.json_log)
    server.run()


def _read_indexes(settings: "Settings", names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the indexes to serve; folders, and what changed in them, are read first."""
    if not names:
        return ()
    from taiwa.cli.index import reporter
    from taiwa.operations.documents import find_indexes, open_library

    with open_library(settings) as library:
        return tuple(index.name for index in find_indexes(library, names, settings, reporter()))
