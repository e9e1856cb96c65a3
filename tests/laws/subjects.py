"""The laws of apps and reducers, or of all programs, conversations and reducers, checked on generated examples."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from hypothesis import Phase, Verbosity, find, settings

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import App, AppSource, ReplyMode
from taiwa.conversation.reducers import NUMBERED, Reducer, known_reducers, reducer
from taiwa.conversation.state import COMPUTED_FIELDS, StateField
from taiwa.kernel.serialization import Json
from taiwa.structured import OutputType, parse_notation
from tests.laws.properties import (
    Law,
    LawResult,
    check_law,
    conversation_laws,
    field_laws,
    program_laws,
    reducer_laws,
    values,
)

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
    *(StateField(name, reduce=name) for name in COMPUTED_FIELDS),
)


def check_laws(subjects: Iterable[Subject] = (), *, examples: int = 100, seed: int = 0) -> tuple[LawResult, ...]:
    """Check the laws of apps and reducers, or, without subjects, of programs, conversations and all registered reducers.

    A name is that of a reducer, else of an app. Each law is checked on at most `examples` examples; the same seed generates
    the same ones.
    """
    return tuple(check_law(law, examples, seed) for law in _laws(tuple(subjects)))


def _laws(subjects: tuple[Subject, ...]) -> Iterator[Law]:
    if not subjects:
        yield from program_laws()
        for mode in REPLY_MODES:
            yield from conversation_laws(App(AppSource("sample", mode), "Talk.", SAMPLE_FIELDS, reply=mode))
        subjects = (*known_reducers().values(), reducer("last(2)"), reducer("summary(9)"))
    for subject in subjects:
        resolved = _resolve(subject)
        if isinstance(resolved, Reducer):
            yield from reducer_laws(resolved)
            continue
        required = [param for param in resolved.params if param.default is None and param.required]
        app = resolved.with_params({param.name: _example_of(param.type) for param in required})
        yield from conversation_laws(app)
        for field in app.model_fields:
            yield from field_laws(field, app.name)


def _resolve(subject: Subject) -> App | Reducer:
    if not isinstance(subject, str):
        return subject
    return reducer(subject) if subject in known_reducers() or NUMBERED.fullmatch(subject) else load_app(subject)


def _example_of(notation: str) -> Json:
    quiet = settings(database=None, verbosity=Verbosity.quiet, phases=(Phase.generate,), derandomize=True)
    output_type = OutputType.fields("Param", {"x": parse_notation(notation)}, required=frozenset("x"))
    return find(values(output_type), lambda _: True, settings=quiet)["x"]
