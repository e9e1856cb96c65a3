"""What a conversation that looks things up needs beside a model: indexes, who asks, and what the passages' words come to."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from taiwa.apps.catalog import HANDBOOK
from taiwa.ask.conversation_step import ask_turn
from taiwa.ask.decide_search_or_clarify import policy_named
from taiwa.ask.dialogue_step import AssessBy, ClarifyOptions
from taiwa.ask.extractive import TermWeights
from taiwa.ask.result import AskTurnOptions
from taiwa.ask.types import ANONYMOUS_USER, UserProfile
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.flows.chat import Reply
from taiwa.i18n import dialogue_version, user_language
from taiwa.kernel.effects import Effect, Program, Step, notify
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.messages import Capability, Chunk, Message, Request
from taiwa.kernel.records import Json
from taiwa.kernel.runtime import Handler
from taiwa.sessions.users import People, load_profile
from taiwa.sql import PostgresUrl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from taiwa.retrieval import Index, Library, ScopedRetriever
    from taiwa.sessions.checkout import Repository
    from taiwa.store import Store

__all__ = [
    "BUNDLED_HANDBOOK",
    "NoModel",
    "RagResources",
    "open_rag_resources",
    "person_of",
    "reader_of",
    "reopen_rag_resources",
]


BUNDLED_HANDBOOK = "taiwa:handbook"
"""What the handbook that comes with this program is called where an index is named."""

NOTICE = "there is no index yet: this is from the handbook of a made-up company. Name a folder with --in, or `taiwa index` one"

ASSESS_BY: tuple[AssessBy, ...] = ("auto", "typed", "functions", "labels", "decisions", "no-model")

NEEDING = ("article", "functions")
"""Policies that decide nothing without the scores of a model."""

EARLIER = 3
"""Earlier dialogues of the same person that are shown to who assesses."""

GIVEN = 8
"""Passages that an answer is taken from, and options."""

WAIT = 600.0


class NoModel:
    """The model that is not there: what needs none goes on without."""

    name = ""
    capabilities: frozenset[Capability] = frozenset()

    def stream(self, request: Request) -> Iterator[Chunk]:  # noqa: ARG002  (a model's signature)
        """Refuse."""
        raise ConfigError("no model is set; pass -m, or `taiwa config set model NAME`")

    def astream(self, request: Request) -> "AsyncIterator[Chunk]":
        """Refuse."""
        self.stream(request)
        raise AssertionError  # pragma: no cover


@dataclass(slots=True)
class RagResources:
    """The edges of a turn that looks things up, and how it asks; `close` when it is over."""

    options: AskTurnOptions
    retriever: "ScopedRetriever"
    handlers: Mapping[type[Effect[Any]], Handler]
    stack: ExitStack

    def program(self, text: str) -> Step[Conversation, Reply]:
        """The turn."""
        turn = ask_turn(text, self.options, reader_of(self.options.terms))

        def step(conversation: Conversation) -> Program[tuple[Reply, Conversation]]:
            done = yield from turn(conversation)
            for trouble in self.retriever.troubles:
                yield from notify(trouble, code="words_alone", warning=True)
            return done

        return step

    def claim(self, store: "Store", session: str) -> None:
        """Say whose a conversation is, if the store knows who asks."""
        name = self.options.profile.name
        if name and People(store).has(name):
            store.users.assign_session(session, name)

    def close(self) -> None:
        """Let go of the indexes."""
        self.stack.close()


def open_rag_resources(app: App, repository: "Repository", *, modelless: bool, first: bool = False) -> RagResources:
    """Open what a turn of an app looks into; at the first one it is said if nobody chose where.

    Raises:
        InputError: an index, a folder, a person, a policy or a judge is not there.
        ConfigError: the policy needs a model and there is none, or the profile of the person has a fault.
    """
    options = _options(app, repository, modelless=modelless)
    with ExitStack() as stack:
        indexes = _indexes(_words(app.values.get("in")), repository.place, stack)
        shipped = indexes[0].name == BUNDLED_HANDBOOK and not app.values.get("in")
        options = replace(options, terms=indexes[0].analyzer.name, notice=NOTICE if shipped and first else "")
        return _looking(app, repository, options, indexes, stack)


def reopen_rag_resources(app: App, repository: "Repository", options: AskTurnOptions) -> RagResources:
    """Open what a turn looked into that was cut off, to go on as it began."""
    with ExitStack() as stack:
        return _looking(
            app, repository, options, _indexes(_words(app.values.get("in")), repository.place, stack), stack
        )


def _looking(
    app: App, repository: "Repository", options: AskTurnOptions, indexes: "list[Index]", stack: ExitStack
) -> RagResources:
    from taiwa.retrieval import ScopedRetriever

    if (settings := repository.settings) is not None:
        from taiwa.models.http_api.embeddings import with_embeddings

        indexes = [with_embeddings(index, settings) for index in indexes]
    within = ScopedRetriever(indexes, _words(app.values.get("as")))
    return RagResources(options, within, People(repository.store).handlers, stack.pop_all())


def _options(app: App, repository: "Repository", *, modelless: bool) -> AskTurnOptions:
    """Read the parameters of an app as options of its turns."""
    given = app.values
    policy = str(given.get("policy") or "look_first")
    policy_named(policy)
    named = str(given.get("assess_by") or "auto")
    assess_by: dict[str, AssessBy] = {each: each for each in ASSESS_BY}
    if named not in assess_by:
        raise InputError(f"unknown method of assessment {named!r}; choose one of {', '.join(ASSESS_BY)}")
    method: AssessBy = "no-model" if modelless else assess_by[named]
    if policy in NEEDING and method == "no-model":
        raise ConfigError(f"policy {policy!r} requires the scores of a model; pass -m, or use look_first")
    most = given.get("max_questions")
    clarify = ClarifyOptions(
        policy,
        most if isinstance(most, int) else None,
        method,
        GIVEN,
        earlier_sessions=EARLIER,
        catalogue_version=dialogue_version(),
        locale=user_language(),
    )
    return AskTurnOptions(clarify, person_of(str(given.get("user") or ""), repository.store), app.instructions)


def person_of(word: str, store: "Store") -> UserProfile:
    """Return who asks: a person of the store by name, else the profile in a file; nobody without a word.

    Raises:
        InputError: there is neither. ConfigError: the profile has a fault.
    """
    people = People(store)
    if not word:
        return ANONYMOUS_USER
    if people.has(word):
        return people.get(word)
    if not Path(word).is_file():
        raise InputError(
            f"{word!r} is neither a person of the store nor the file of a profile: see `taiwa person --help`"
        )
    person = load_profile(Path(word))
    return people.get(person.name) if person.name and people.has(person.name) else person


def reader_of(terms: str) -> TermWeights:
    """What counts as a term where an analyzer of that name is used.

    >>> list(reader_of("pairs-1/english").terms("leaves"))
    ['leav']
    """
    from taiwa.retrieval.analyzer import Analyzer
    from taiwa.retrieval.index import weight_terms

    analyzer = Analyzer.named(terms)

    def weighed(query: str, history: Sequence[Message]) -> Mapping[str, float]:
        return weight_terms(analyzer, query, history)

    return TermWeights(weighed, analyzer.terms)


def _indexes(names: Sequence[str], place: Path | PostgresUrl | None, stack: ExitStack) -> "list[Index]":
    """The indexes of names, all without any; the handbook where that is none."""
    wanted = [name for name in dict.fromkeys(names) if name != BUNDLED_HANDBOOK]
    beside = place.with_name(f"{place.stem}-library.db") if isinstance(place, Path) else place
    there = beside.exists() if isinstance(beside, Path) else beside is not None
    found: list[Index] = []
    if wanted or (there and not names):
        library = _library(beside, stack)
        found = [_index(library, name) for name in (wanted or library.names())]
    if found and BUNDLED_HANDBOOK not in names:
        return found
    return [*found, _handbook(place.with_name(f"{place.stem}-handbook.db") if isinstance(place, Path) else None, stack)]


def _library(place: Path | PostgresUrl | None, stack: ExitStack) -> "Library":
    """The library of a place; for one that is kept nowhere, in a folder that is removed again."""
    from taiwa.retrieval import Library

    if place is None:
        place = Path(stack.enter_context(TemporaryDirectory(prefix="taiwa-"))) / "library.db"
    return stack.enter_context(Library.open(place))


def _index(library: "Library", name: str) -> "Index":
    """The index of a name, or of a folder, which is read first."""
    if name in library.names():
        return library.index(name)
    if not Path(name).is_dir():
        raise InputError(f"{name!r} is neither an index nor a folder: see `taiwa index list`")
    index = library.find_by_folder(name) or library.create(name)
    index.refresh(WAIT)
    return index


def _handbook(place: Path | None, stack: ExitStack) -> "Index":
    """The handbook that comes along, in a library of its own, so that it stands in no list of the user's."""
    library = _library(place, stack)
    index = library.find_by_folder(HANDBOOK)
    if index is None:
        for name in library.names():  # of a program that lay elsewhere
            library.drop(name)
        index = library.create(HANDBOOK, BUNDLED_HANDBOOK)
    index.refresh(WAIT)
    return index


def _words(held: Json) -> tuple[str, ...]:
    return tuple(str(each) for each in held) if isinstance(held, list) else ()
