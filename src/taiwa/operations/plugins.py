"""The plug-ins of installed packages, each with what keeps it from being used."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from taiwa.apps import catalog
from taiwa.conversation import reducers
from taiwa.kernel.errors import ConfigError, TaiwaError
from taiwa.models.registry import IN_PROCESS, PROVIDERS
from taiwa.plugins import Plugin, clash, installed, plugin_app
from taiwa.retrieval.readers import FORMATS
from taiwa.settings import BUILTIN
from taiwa.tools.registry import builtin_tools, named_tool

PluginState: TypeAlias = Literal["on", "off", "hidden", "broken"]


@dataclass(frozen=True, slots=True)
class PluginListing:
    """A plug-in and whether it can be used; `problem` says why it cannot (`hidden`: by something of the same name)."""

    plugin: Plugin
    state: PluginState
    problem: str = ""


def list_plugins() -> tuple[PluginListing, ...]:
    """Return all plug-ins by kind and name; those that are switched on are loaded, so that a broken one is found.

    Raises:
        ConfigError: the settings cannot be read.
    """
    found = installed()
    return tuple(_listing(each, found) for each in found)


def _listing(plugin: Plugin, found: tuple[Plugin, ...]) -> PluginListing:
    if not plugin.is_on:
        return PluginListing(plugin, "off", f"switched off: plugins.{plugin.package}")
    if plugin.name in _built_in(plugin):
        return PluginListing(plugin, "hidden", f"the {plugin} is hidden by one that was there before")
    same = [each for each in found if (each.kind, each.name, each.is_on) == (plugin.kind, plugin.name, True)]
    if len(same) > 1:
        return PluginListing(plugin, "hidden", clash(same))
    try:
        _load(plugin)
    except TaiwaError as error:
        return PluginListing(plugin, "broken", error.message)
    return PluginListing(plugin, "on")


def _built_in(plugin: Plugin) -> set[str]:
    match plugin.kind:
        case "apps":
            return {each.name for each in catalog.apps() if each.origin != "plug-in"}
        case "models":
            return {*PROVIDERS, *IN_PROCESS, BUILTIN}
        case "readers":
            return {suffix.removeprefix(".") for suffix in FORMATS}
        case "reducers":
            return set(reducers.BUILT_IN)
        case "tools":
            return set(builtin_tools())
        case "retrievers":
            return set()


def _load(plugin: Plugin) -> None:
    """Load a plug-in as its users do, except that no model and no retriever is made."""
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
