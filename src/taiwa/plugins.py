"""Plug-ins: extensions that installed packages declare as entry points, found by name and imported when they are used.

| group | name | value |
|---|---|---|
| `taiwa.apps` | name of an app | the module whose folder contains `NAME.md`; it is not imported |
| `taiwa.models` | prefix of model names | a function from the whole name (`PREFIX:MODEL`) to a model |
| `taiwa.readers` | suffix of files without its dot | a function from bytes to text, or to a `ParsedDocument` |
| `taiwa.reducers` | name of a reducer | a `Reducer` of that name |
| `taiwa.retrievers` | name for `Client(retriever=…)` | a class or function without arguments that makes a retriever |
| `taiwa.tools` | name of a tool | a function with `@taiwa.tool` of that name |

Built-in names take precedence. A name that two packages offer is refused, until one of them is disabled in the settings
(`plugins: {PACKAGE: off}`).
"""

import os
import re
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import Literal, TypeAlias, TypeVar, get_args

from taiwa import settings
from taiwa.kernel.attachments import path_kind
from taiwa.kernel.errors import ConfigError, TaiwaError

T = TypeVar("T")

PluginKind: TypeAlias = Literal["apps", "models", "readers", "reducers", "retrievers", "tools"]
KINDS: tuple[PluginKind, ...] = get_args(PluginKind)
FAILURES = (Exception, SystemExit, GeneratorExit)
"""What code of others may raise: a module may be a script that ends its process."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of an installed package; `package` is its distribution, `version` that of the distribution."""

    kind: PluginKind
    name: str
    value: str
    package: str
    version: str
    is_on: bool = True

    def __str__(self) -> str:
        return f"{self.kind.removesuffix('s')} {self.name!r} of {self.package} {self.version}"

    def load(self) -> object:
        """Import the value.

        Raises:
            ConfigError: it cannot be imported; the message names the package.
        """
        from importlib.metadata import EntryPoint

        try:
            with redirect_stdout(sys.stderr):  # standard output is that of the command
                return EntryPoint(self.name, self.value, f"taiwa.{self.kind}").load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as of a test that is skipped
            raise ConfigError(f"the {self} cannot be loaded: {one_line(error)}") from error

    def make(self, *arguments: object) -> object:
        """Import the value and call it.

        Raises:
            ConfigError: it cannot be imported or called, or it failed; the message names the package.
        """
        found = self.load()
        if not callable(found):
            raise ConfigError(f"the {self} must be a function or a class, not {self.value} ({type(found).__name__})")
        with self.blamed(ConfigError):
            return found(*arguments)

    @contextmanager
    def blamed(self, kind: type[TaiwaError]) -> Generator[None]:
        """Raise what the code of the plug-in raises inside as this kind of error; a `yield` inside must not be part of it."""
        try:
            yield
        except (TaiwaError, KeyboardInterrupt):
            raise
        except BaseException as error:
            if _is_cancelled():
                raise
            raise kind(f"the {self} failed: {one_line(error)}") from error


def installed() -> tuple[Plugin, ...]:
    """Return all plug-ins by kind and name, including disabled ones."""
    off = {_normal(name) for name, is_on in settings.load().plugins.items() if not is_on}
    found = _installed(tuple(sys.path))
    return tuple(Plugin(*each, is_on=_normal(each[3]) not in off) for each in found)


@cache
def _installed(_path: tuple[str, ...]) -> tuple[tuple[PluginKind, str, str, str, str], ...]:
    from importlib.metadata import entry_points

    everything = entry_points()  # asked for one group, it would read every package again for each
    points: set[tuple[PluginKind, str, str, str, str]] = {
        (
            kind,
            point.name,
            point.value,
            (point.dist and point.dist.name) or "?",  # None where what names the package was deleted
            (point.dist and point.dist.version) or "?",
        )
        for kind in KINDS
        for point in everything.select(group=f"taiwa.{kind}")
    }
    return tuple(sorted(points))


def one_line(error: BaseException) -> str:
    """Return the type and the text of an error of code of others."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _is_cancelled() -> bool:
    """Return whether the task that runs this code was cancelled, so that what it raises is not a failure."""
    asyncio = sys.modules.get("asyncio")  # no task without it
    try:
        task = None if asyncio is None else asyncio.current_task()
    except RuntimeError:  # no event loop in this thread
        return False
    return task is not None and task.cancelling() > 0


def _normal(name: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def package_of(error: BaseException) -> str | None:
    """Return the package with plug-ins in whose code an error was raised, with its version; None for other code."""
    packages = {
        value.split(":")[0].split(".")[0]: f"{name} {version}"
        for _, _, value, name, version in _installed(tuple(sys.path))
    }
    modules = [str(frame.f_globals.get("__name__")).split(".")[0] for frame, _ in walk_tb(error.__traceback__)]
    return next((packages[each] for each in reversed(modules) if each in packages), None)


def plugin_names(kind: PluginKind) -> tuple[str, ...]:
    """Return the enabled names of a kind."""
    return tuple(dict.fromkeys(each.name for each in installed() if each.kind == kind and each.is_on))


def find_plugin(kind: PluginKind, name: str) -> Plugin | None:
    """Return the plug-in of a name, None without one.

    Raises:
        ConfigError: two packages offer the name.
    """
    found = [each for each in installed() if (each.kind, each.name) == (kind, name) and each.is_on]
    if len(found) > 1:
        raise ConfigError(clash(found))
    return found[0] if found else None


def clash(found: Iterable[Plugin]) -> str:
    """Return the message that several packages offer the same name."""
    first, *_, last = found
    return (
        f"{first.package} and {last.package} both offer the {first.kind.removesuffix('s')} {first.name!r}; switch one off: "
        f"taiwa config set plugins.{last.package} off"
    )


def load_plugin(kind: PluginKind, name: str, expected: type[T], what: str) -> T | None:
    """Load the plug-in of a name, None without one; `what` says in an error what it must be.

    Raises:
        ConfigError: two packages offer the name, it cannot be loaded, or it is something else.
    """
    plugin = find_plugin(kind, name)
    if plugin is None:
        return None
    found = plugin.load()
    if not isinstance(found, expected):
        raise ConfigError(f"the {plugin} must be {what}, not {plugin.value} ({type(found).__name__})")
    return found


def plugin_app(plugin: Plugin) -> Path:
    """Return the file of an app, without importing its package.

    Raises:
        ConfigError: the package has no such file.
    """
    module = plugin.value.partition(":")[0]
    try:
        spec = find_spec(module)
    except FAILURES as error:  # a parent package of the module, which is imported
        raise ConfigError(f"the {plugin} cannot be found: {one_line(error)}") from error
    folder = os.path.dirname((spec.origin if spec is not None else None) or "")  # noqa: PTH120
    path = Path(folder, f"{plugin.name}.md")
    if not folder or not path.is_file():
        raise ConfigError(f"the {plugin} has no file {plugin.name}.md beside the module {module}")
    return path


def names_retriever(names: Sequence[str]) -> bool:
    """Whether documents are named by the retriever of a plug-in; an existing path of that name precedes it."""
    return len(names) == 1 and not path_kind(names[0]) and names[0] in plugin_names("retrievers")


def make_retriever(name: str) -> object:
    """Return a retriever by the name of its plug-in.

    Raises:
        ConfigError: the name is unknown, or loading it failed.
    """
    plugin = find_plugin("retrievers", name)
    if plugin is None:
        known = ", ".join(plugin_names("retrievers")) or "none"
        raise ConfigError(f"no package offers the retriever {name!r} (installed: {known})")
    return plugin.make()
