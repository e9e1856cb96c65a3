"""Property tests for your own apps and reducers: undo restores, forks are independent, reducers keep their types.

A law is an equation that must hold for every conversation, program or reducer, such as `step(step(s, a), b) == step(s, combine(a, b))`;
Hypothesis (extra `laws`) searches generated examples for a counterexample. `taiwa laws NAME` and `check_laws` run them.
Importing this package does not import Hypothesis.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import App, AppSource, ReplyMode
from taiwa.conversation.reducers import NUMBERED, Reducer, known_reducers, reducer
from taiwa.conversation.state import COMPUTED_FIELDS, StateField
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.serialization import Json
from taiwa.plugins import installed
from taiwa.structured import OutputType, parse_notation

if TYPE_CHECKING:
    from taiwa.laws.properties import Law, LawResult

Subject: TypeAlias = str | App | Reducer
REPLY_MODES: tuple[ReplyMode, ...] = ("auto", "text+delta", "record", "json", "environment")
SAMPLE_FIELDS = (
    StateField("topics", "list[str]", reduce="union"),
    StateField("dictionary", "dict[str, str | null]", reduce="table"),
    StateField("mood", "str"),
    StateField("notes", "list[str]", reduce="last(3)"),
    StateField("score", "float", reduce="sum"),
    StateField("words", "dict[str, int]", reduce="count"),
    StateField("story", "list[str]", reduce="log"),
    *(StateField(name, computed=name) for name in COMPUTED_FIELDS),
)


def check_laws(names: Iterable[Subject] = (), *, examples: int = 100, seed: int = 0) -> "tuple[LawResult, ...]":
    """Check the laws of apps and reducers, or, without names, of programs, conversations and all registered reducers.

    A name is that of an app, the path of an app file, the name of a reducer, or the name of an installed distribution with
    entry points for reducers. Each law is checked on at most `examples` examples; the same seed generates the same ones.

    Raises:
        ConfigError: the name is unknown, or Hypothesis is not installed.
    """
    _prepare_hypothesis()
    from taiwa.laws.properties import check_law

    return tuple(check_law(law, examples, seed) for law in _laws(tuple(names)))


def _prepare_hypothesis() -> None:
    """Point Hypothesis to a cache folder before its first import; by default it writes to the working directory."""
    if find_spec("hypothesis") is None:
        raise ConfigError("checking laws requires Hypothesis; install it with: pip install 'taiwa[laws]'")
    if "hypothesis" not in sys.modules:
        from hypothesis.configuration import set_hypothesis_home_dir

        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        set_hypothesis_home_dir(Path(cache) / "taiwa" / "hypothesis")


def _laws(subjects: tuple[Subject, ...]) -> "Iterator[Law]":
    from taiwa.laws.properties import conversation_laws, field_laws, program_laws, reducer_laws

    if not subjects:
        yield from program_laws()
        for mode in REPLY_MODES:
            yield from conversation_laws(App(AppSource("sample", mode), "Talk.", SAMPLE_FIELDS, reply=mode))
        subjects = (*known_reducers().values(), reducer("last(2)"), reducer("summary(9)"))
    for subject in subjects:
        for resolved in _resolve(subject):
            if isinstance(resolved, Reducer):
                yield from reducer_laws(resolved)
                continue
            required = [param for param in resolved.params if param.default is None and param.required]
            app = resolved.with_params({param.name: _example_of(param.type) for param in required})
            yield from conversation_laws(app)
            for field in app.model_fields:
                yield from field_laws(field, app.name)


def _resolve(subject: Subject) -> Iterable[App | Reducer]:
    if not isinstance(subject, str):
        return (subject,)
    if subject in known_reducers() or NUMBERED.fullmatch(subject):
        return (reducer(subject),)
    offered = [reducer(each.name) for each in installed() if (each.kind, each.package) == ("reducers", subject)]
    return offered or (load_app(subject),)


def _example_of(notation: str) -> Json:
    from hypothesis import Phase, Verbosity, find, settings

    from taiwa.laws.properties import values

    quiet = settings(database=None, verbosity=Verbosity.quiet, phases=(Phase.generate,), derandomize=True)
    output_type = OutputType.fields("Param", {"x": parse_notation(notation)}, required=frozenset("x"))
    return find(values(output_type), lambda _: True, settings=quiet)["x"]
