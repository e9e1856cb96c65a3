"""Settings, API keys and plug-ins: config, keys, plugins."""

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import click

from taiwa.cli.options import CommonOptions, Group, common_options
from taiwa.cli.output import print_json, print_line, print_notice, print_rows, table
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import ConfigError, InputError, TaiwaError
from taiwa.kernel.serialization import Json
from taiwa.kernel.wording import Wording
from taiwa.plugins import Plugin, clash, installed, plugin_app
from taiwa.settings import load, missing_prices, parse_setting, remove_value, set_value, show, unquoted

if TYPE_CHECKING:
    from datetime import datetime

    from taiwa.models.http_api.api_keys import KeyRow, Secret
    from taiwa.models.http_api.provider_interface import Target
    from taiwa.settings import Settings


LONGEST_KEY = 16_384
"""Characters of an API key; a token of a cloud has some thousands."""

PluginState: TypeAlias = Literal["on", "off", "hidden", "broken"]


@click.group(cls=Group)
def config() -> None:
    """Show and change settings. Precedence: argument, TAIWA_* variable, config file, default.

    \b
    taiwa config show
    taiwa config set model http://127.0.0.1:8080/v1#qwen
    taiwa config set prices.openai:gpt-x.input 0.25
    taiwa config remove model
    """


@config.command("show")
@common_options("as_json", "model", "store")
def show_(common: CommonOptions) -> None:
    """Show every setting with its source.

    \b
    taiwa config show
    """
    settings = common.settings()
    rows = show(settings)
    if common.as_json:
        print_json({row.key: {"value": row.value, "origin": row.origin} for row in rows})
        return
    table((_("setting"), _("value"), _("from")), [(row.key, row.value, row.origin) for row in rows])
    print_notice(f"the config file is {settings.path}")


@config.command("set")
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set KEY in the config file. The name within a KEY may hold dots, with or without quotes.

    \b
    taiwa config set model ollama:qwen3
    taiwa config set capabilities.http://127.0.0.1:8080/v1#qwen.tools true
    """
    from taiwa.sql.base import hide_password

    settings = load()
    path = settings.path
    _check_models(key, value, settings)
    set_value(path, key, value)
    print_line(f"{key} = {hide_password(value)}")
    for missing in missing_prices(path, key):
        print_notice(f"set the other price too, per million tokens: taiwa config set {shlex.quote(missing)} AMOUNT")


def _check_models(key: str, value: str, settings: "Settings") -> None:
    """Check that each name of a model in the value of a setting can be resolved.

    Raises:
        ConfigError: one cannot.
    """
    from taiwa.models.providers import resolve_probed

    if key in ("model", "served_models"):
        names = parse_setting(key, value, "config")
        for name in [names] if isinstance(names, str) else cast("tuple[str, ...]", names):
            resolve_probed(name, settings)
    elif key.startswith("aliases."):
        alias = unquoted(key.removeprefix("aliases."))
        models = replace(settings.models, aliases={**settings.models.aliases, alias: value})
        resolve_probed(alias, replace(settings, models=models))


@config.command("remove")
@click.argument("key")
def remove_(key: str) -> None:
    """Remove KEY from the config file.

    \b
    taiwa config remove model
    """
    path = load().path
    remove_value(path, key)
    print_line(f"{key} is removed from {path}")
    now = next((row for row in show(load()) if row.key == key), None)
    if now is not None and now.value:
        print_notice(f"it is {now.value} now ({now.origin})")


@config.command("path")
def path_() -> None:
    """Print the path of the config file.

    \b
    taiwa config path
    """
    click.echo(load().path)


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def prices(context: click.Context) -> None:
    """Show what models cost, and fetch a table of prices. Prices of the settings precede those of the table.

    \b
    taiwa prices                    the table, its date and its source
    taiwa prices show gpt-5
    taiwa prices update             from LiteLLM, with the date of today
    taiwa prices update prices.json --date 2026-01-31
    taiwa prices remove
    """
    if context.invoked_subcommand is None:
        _show_prices(load(), "", as_json=False)


@prices.command("show")
@click.argument("model", default="")
@common_options("as_json")
def show_prices_(common: CommonOptions, model: str) -> None:
    """Show the prices of the models whose names contain MODEL, per million tokens.

    \b
    taiwa prices show claude
    """
    _show_prices(load(), model, as_json=common.as_json)


def _show_prices(settings: "Settings", part: str, *, as_json: bool) -> None:
    from taiwa.models.price_table import MAX_AGE_DAYS, load_table, rates_of, utc_today

    found, today = load_table(settings.price_table_path), utc_today()
    own: dict[str, dict[str, Json]] = {
        name: {rate: str(number) for rate, number in each.items()}
        for name, each in settings.models.prices.items()
        if part in name
    }
    listed = {} if found is None else {name: rates_of(each) for name, each in found.prices.items() if part in name}
    if as_json:
        where: dict[str, Json] | None = None
        if found is not None:
            where = {"source": found.source, "date": found.day.isoformat(), "outdated": found.is_outdated(today)}
        print_json({"table": where, "settings": dict(own), "prices": dict(listed)})
        return
    rows = [(name, each, "the settings") for name, each in own.items()]
    rows += [(name, each, "the table") for name, each in listed.items() if name not in own]
    if rows:
        rates = ("input", "output", "cache_read")
        table((_("model"), _("input"), _("output"), _("cache read"), _("from")),
              [(name, *(str(each.get(rate, "")) for rate in rates), place) for name, each, place in rows])  # fmt: skip
    elif part and (found is not None or settings.models.prices):
        print_line(_("no price of a model whose name contains {name}", name=part))
    if found is None:
        print_notice(_("there is no table of prices; taiwa prices update fetches one"))
        return
    place = _("the table is of {date}, from {source}", date=found.day.isoformat(), source=found.source)
    print_notice(place)
    if found.is_outdated(today):
        age = ngettext("{n} day", "{n} days", found.age(today))
        print_notice(
            _(
                "it is not used, because it is {age} old, more than {most}; taiwa prices update",
                age=age,
                most=MAX_AGE_DAYS,
            ),
            "yellow",
        )


@prices.command("update")
@click.argument("source", default="")
@click.option("--date", "day", type=click.DateTime(["%Y-%m-%d"]), help="Set the date of prices in a file without one.")
def update_prices_(source: str, day: "datetime | None") -> None:
    """Replace the table of prices by SOURCE: a file or an address, by default the list that LiteLLM maintains.

    \b
    taiwa prices update
    taiwa prices update https://intranet.example/prices.json
    """
    from taiwa.kernel.attachments import read_file
    from taiwa.models.price_table import SOURCE, fetch_table, parse_table, save_table, utc_today

    settings, given = load(), None if day is None else day.date()
    if not source or "://" in source:
        found = fetch_table(source or SOURCE, given or utc_today())
    else:
        found = parse_table(read_file(Path(source)).encode(), source, given)
    if found.day > utc_today():
        raise InputError(f"the prices are of {found.day.isoformat()}, which is in the future; correct the date")
    save_table(found, settings.price_table_path)
    print_line(
        ngettext(
            "{n} model has a price of {date}",
            "{n} models have prices of {date}",
            len(found.prices),
            date=found.day.isoformat(),
        )
    )


@prices.command("remove")
def remove_prices_() -> None:
    """Delete the table of prices; those of the settings stay.

    \b
    taiwa prices remove
    """
    path = load().price_table_path
    if not path.exists():
        raise InputError("there is no table of prices")
    path.unlink()
    print_line(_("the table of prices is deleted"))


@click.group(cls=Group)
def keys() -> None:
    """Store the API keys of providers in a file that only you can read. A key in the environment takes precedence.

    \b
    taiwa keys set openai          read the key without echo, and test it
    taiwa keys list
    taiwa keys remove openai
    """


@keys.command("set")
@click.argument("provider")
@click.option("--no-check", is_flag=True, help="Do not test the key.")
def set_key_(provider: str, no_check: bool) -> None:
    """Store the API key of PROVIDER, and test it with one cheap call; from a pipe one line is read.

    \b
    taiwa keys set openai < key.txt
    """
    from taiwa.models.http_api.api_keys import Secret, set_key
    from taiwa.models.providers import resolve_server

    settings = load()
    target = resolve_server(provider, settings)
    origin = target.origin
    if sys.stdin.isatty():
        text: str = click.prompt(f"key for {origin} (not shown)", hide_input=True, err=True)
    else:
        text = sys.stdin.readline(LONGEST_KEY + 1)
        if len(text) > LONGEST_KEY:
            raise InputError(f"the key for {origin} is longer than {LONGEST_KEY:,} characters")
    if not text.strip():
        raise InputError(f"no key given for {origin}")
    key = Secret(text, Wording("the key for {server}", server=origin))
    if not no_check:
        _try(target, key)
    set_key(settings, origin, key)
    print_line(f"the key for {origin} is stored in {settings.keys_path}")


def _try(target: "Target", key: "Secret") -> None:
    """Try a key; a wrong key is an error and is not stored, an unreachable server a warning."""
    from taiwa.models.providers import try_key

    if problem := try_key(target, key):
        print_notice(f"the key could not be tested: {problem}", "yellow")
    else:
        print_line("it works")


@keys.command("list")
@common_options("as_json")
def list_(common: CommonOptions) -> None:
    """List which keys are stored, without the keys themselves.

    \b
    taiwa keys list
    """
    from taiwa.models.http_api.api_keys import list_keys
    from taiwa.models.providers import key_variables

    settings = load()
    rows = list_keys(settings, key_variables(settings))
    item = [{"origin": row.origin, "variable": row.variable, "stored": row.is_stored} for row in rows]
    shown, none = [(row.origin, _place(row)) for row in rows], _("no keys are stored; a local server needs none")
    print_rows(item, (_("server"), _("key")), shown, as_json=common.as_json, none=none)


def _place(row: "KeyRow") -> str:
    if not row.variable:
        return "stored"
    return f"{row.variable} in the environment" + (" (one is stored too)" if row.is_stored else "")


@keys.command("remove")
@click.argument("provider")
def remove(provider: str) -> None:
    """Delete the key of PROVIDER.

    \b
    taiwa keys remove openai
    """
    from taiwa.models.http_api.api_keys import remove_key
    from taiwa.models.providers import resolve_server

    settings = load()
    origin = resolve_server(provider, settings).origin
    remove_key(settings, origin)
    print_line(f"the key for {origin} is deleted")


@click.command()
@common_options("as_json")
def plugins(common: CommonOptions) -> None:
    """List the plug-ins of installed packages: apps, models, readers, reducers, retrievers and tools.

    A plug-in is imported when it is used. One that cannot be used is listed with the reason; the others still work.

    \b
    taiwa plugins
    taiwa plugins --json
    taiwa config set plugins.SOME-PACKAGE off        disable a package
    """
    found = list_plugins()
    if common.as_json:
        print_json(
            [
                {"kind": each.plugin.kind, "name": each.plugin.name, "value": each.plugin.value,
                 "package": each.plugin.package, "version": each.plugin.version, "state": each.state,
                 "problem": each.problem or None}
                for each in found
            ]
        )  # fmt: skip
        return
    if not found:
        print_notice("no installed package offers a plug-in; docs/library.md#plug-ins shows how to write one")
        return
    table(
        (_("kind"), _("name"), _("package"), _("state")),
        [
            (each.plugin.kind, each.plugin.name, f"{each.plugin.package} {each.plugin.version}", each.state)
            for each in found
        ],
    )
    for problem in dict.fromkeys(each.problem for each in found if each.state in ("hidden", "broken")):
        print_notice(problem)


@dataclass(frozen=True, slots=True)
class PluginListing:
    """A plug-in and whether it can be used; `problem` says why it cannot (`hidden`: by something of the same name)."""

    plugin: Plugin
    state: PluginState
    problem: str = ""


def list_plugins() -> tuple[PluginListing, ...]:
    """Return all plug-ins by kind and name; enabled ones are loaded, so that broken ones are found.

    Raises:
        ConfigError: the settings cannot be read.
    """
    found = installed()
    return tuple(_listing(each, found) for each in found)


def _listing(plugin: Plugin, found: tuple[Plugin, ...]) -> PluginListing:
    if not plugin.is_on:
        return PluginListing(plugin, "off", f"switched off: plugins.{plugin.package}")
    if plugin.name in _built_in(plugin):
        return PluginListing(plugin, "hidden", f"the {plugin} is hidden by an existing one")
    same = [each for each in found if (each.kind, each.name, each.is_on) == (plugin.kind, plugin.name, True)]
    if len(same) > 1:
        return PluginListing(plugin, "hidden", clash(same))
    try:
        _load(plugin)
    except TaiwaError as error:
        return PluginListing(plugin, "broken", error.message)
    return PluginListing(plugin, "on")


def _built_in(plugin: Plugin) -> set[str]:
    from taiwa.apps import catalog
    from taiwa.conversation import reducers
    from taiwa.models.providers import IN_PROCESS, PROVIDERS
    from taiwa.retrieval.readers import FORMATS
    from taiwa.tools.registry import builtin_tools

    match plugin.kind:
        case "apps":
            return {each.name for each in catalog.apps() if each.origin != "plug-in"}
        case "models":
            return {*PROVIDERS, *IN_PROCESS}
        case "readers":
            return {suffix.removeprefix(".") for suffix in FORMATS}
        case "reducers":
            return set(reducers.BUILT_IN)
        case "tools":
            return set(builtin_tools())
        case "retrievers":
            return set()


def _load(plugin: Plugin) -> None:
    """Load a plug-in as its users do, but without creating models and retrievers."""
    from taiwa.apps import catalog
    from taiwa.conversation import reducers
    from taiwa.tools.registry import named_tool

    match plugin.kind:
        case "apps":
            catalog.load(plugin_app(plugin))
        case "reducers":
            reducers.reducer(plugin.name)
        case "tools":
            named_tool(plugin.name)
        case "models" | "readers" | "retrievers":
            found = plugin.load()
            if not callable(found):
                raise ConfigError(f"the {plugin} must be a function or a class, not {plugin.value}")
