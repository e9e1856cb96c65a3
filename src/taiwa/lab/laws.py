"""The laws behind `taiwa laws`: generated programs, states, deltas and oracles, tried on everybody's reducers and apps."""

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from taiwa.apps.catalogue import find
from taiwa.conversation.app import App, ReplyMode
from taiwa.conversation.derive import DERIVED
from taiwa.conversation.fields import Field
from taiwa.conversation.node import AppSource
from taiwa.conversation.reducers import LAST, Reducer, known_reducers, reducer
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.records import Json
from taiwa.shape import Shape, parse_notation

if TYPE_CHECKING:
    from taiwa.lab.law import Law, LawResult

__all__ = ["check_laws"]

Subject: TypeAlias = str | App | Reducer
MODES: tuple[ReplyMode, ...] = ("text+delta", "json", "environment")
SAMPLE = (
    Field("topics", "list[str]", reduce="union"),
    Field("dictionary", "dict[str, str | null]", reduce="table"),
    Field("mood", "str"),
    Field("notes", "list[str]", reduce="last(3)"),
    Field("score", "float", reduce="sum"),
    Field("words", "dict[str, int]", reduce="count"),
    Field("story", "list[str]", reduce="log"),
    *(Field(name, derive=name) for name in DERIVED),
)


def check_laws(names: Iterable[Subject] = (), *, examples: int = 100, seed: int = 0) -> "tuple[LawResult, ...]":
    """Try the laws of apps, of reducers, or, without names, of programs, conversations and all reducers that are known.

    A name is that of an app or the path of its file, of a reducer, or of an installed package that offers reducers. The same
    seed tries the same `examples` for each law.

    Raises:
        ConfigError: nothing has that name, or Hypothesis is not installed.
    """
    _prepare()
    from taiwa.lab.law import tried

    return tuple(tried(law, examples, seed) for law in _laws(tuple(names)))


def _prepare() -> None:
    """Hypothesis keeps files where it is used; here that is a cache, unless somebody uses it already."""
    if find_spec("hypothesis") is None:
        raise ConfigError("examples of laws are made by Hypothesis, which is not installed: pip install 'taiwa[laws]'")
    if "hypothesis" not in sys.modules:
        from hypothesis.configuration import set_hypothesis_home_dir

        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        set_hypothesis_home_dir(Path(cache) / "taiwa" / "hypothesis")


def _laws(subjects: tuple[Subject, ...]) -> "Iterator[Law]":
    from taiwa.lab.folding import reducer_laws
    from taiwa.lab.stepping import step_laws
    from taiwa.lab.talking import conversation_laws

    if not subjects:
        yield from step_laws()
        for mode in MODES:
            yield from conversation_laws(App(AppSource("sample", mode), "Talk.", SAMPLE, reply=mode))
        subjects = (*known_reducers().values(), reducer("last(2)"))
    for subject in subjects:
        for found in _found(subject):
            yield from reducer_laws(found) if isinstance(found, Reducer) else _app_laws(found)


def _app_laws(app: App) -> "Iterator[Law]":
    from taiwa.lab.folding import field_laws
    from taiwa.lab.talking import conversation_laws

    opened = _opened(app)
    yield from conversation_laws(opened)
    for field in opened.written:
        yield from field_laws(field, opened.name)


def _found(subject: Subject) -> Iterable[App | Reducer]:
    if not isinstance(subject, str):
        return (subject,)
    if subject in known_reducers() or LAST.fullmatch(subject):
        return (reducer(subject),)
    offered = [
        point.load() for point in entry_points(group="taiwa.reducers") if point.dist and point.dist.name == subject
    ]
    return [made for made in offered if isinstance(made, Reducer)] or (find(subject),)


def _opened(app: App) -> App:
    """An app whose parameters have some value or other of their type."""
    return app.opened(
        {param.name: _any_of(param.type) for param in app.params if param.default is None and param.required}
    )


def _any_of(notation: str) -> Json:
    from hypothesis import Phase, Verbosity, find, settings

    from taiwa.lab.generated import values

    quiet = settings(database=None, verbosity=Verbosity.quiet, phases=(Phase.generate,), derandomize=True)
    shape = Shape.fields("Param", {"x": parse_notation(notation)}, required=frozenset("x"))
    return find(values(shape), lambda _: True, settings=quiet)["x"]
