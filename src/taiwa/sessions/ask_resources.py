"""The resources of a turn of an app with documents: indexes, the user profile, and the weights of terms."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from taiwa.apps.catalog import HANDBOOK
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.flows.ask.ask_result import AskTurnOptions
from taiwa.flows.ask.decide_search_or_clarify import policy_named
from taiwa.flows.ask.prompts import read_policy
from taiwa.flows.ask.quote import TermWeights
from taiwa.flows.ask.types import ANONYMOUS_USER, ASSESS_BY, NOT_ASSESSED, AssessBy, ClarifyOptions, UserProfile
from taiwa.flows.turn import Reply
from taiwa.i18n import dialogue_version, user_language
from taiwa.kernel.attachments import path_kind
from taiwa.kernel.effects import Program, Step, notify
from taiwa.kernel.errors import ConfigError, InputError, NotFoundError
from taiwa.kernel.messages import Capability, Chunk, Request
from taiwa.kernel.runtime import AnyModel, Retriever
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import plural
from taiwa.plugins import make_retriever, names_retriever
from taiwa.sessions.users import UserProfiles
from taiwa.settings import NoModelError
from taiwa.sql import PostgresUrl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from taiwa.retrieval import Index, Library
    from taiwa.sessions.repository import Repository
    from taiwa.store import Store

BUNDLED_HANDBOOK = "taiwa:handbook"
"""The name of the built-in handbook as an index."""

NOTICE = (
    "nothing is indexed yet; searching the example handbook of a fictional company "
    "(use --in FOLDER or `taiwa index FOLDER` for your own)"
)

SMALL = (
    "a model of less than a billion parameters answers worse than the passages themselves, which are quoted "
    "(--assess-by documents lets it answer)"
)

POLICIES_WITH_MODEL = ("article", "functions")
"""Policies that require the scores of a model."""

MAX_PASSAGES = 8
"""The number of passages for an answer and options."""

REFRESH_SECONDS = 600.0

MAX_CAUSES = 3
"""The maximum of reasons why files could not be read in one message."""


class NoModel:
    """The model if none is set; every call fails."""

    name = ""
    capabilities: frozenset[Capability] = frozenset()

    def stream(self, request: Request) -> Iterator[Chunk]:  # noqa: ARG002  (a model's signature)
        """Raise, because no model is set."""
        raise NoModelError

    def astream(self, request: Request) -> "AsyncIterator[Chunk]":
        """Raise, because no model is set."""
        self.stream(request)
        raise AssertionError  # pragma: no cover


@dataclass(slots=True)
class RagResources:
    """The retriever and the options of the documents stage of a turn; `close` them after it."""

    options: AskTurnOptions
    retriever: Retriever
    stack: ExitStack

    @property
    def term_weights(self) -> TermWeights:
        """The analyzer of its documents."""
        from taiwa.retrieval.analyzer import Analyzer

        return Analyzer.named(self.options.terms)

    def reporting(self, turn: Step[Conversation, Reply]) -> Step[Conversation, Reply]:
        """Return a turn that reports the troubles of the retriever at its end."""

        def step(conversation: Conversation) -> Program[tuple[Reply, Conversation]]:
            done = yield from turn(conversation)
            for trouble in getattr(self.retriever, "troubles", ()):
                yield from notify(trouble, code="words_alone", warning=True)
            return done

        return step

    def assign_session(self, store: "Store", session: str) -> None:
        """Assign a session to its user, if the store has their profile."""
        name = self.options.profile.name
        if name and UserProfiles(store).has(name):
            store.users.assign_session(session, name)

    def close(self) -> None:
        """Close the indexes."""
        self.stack.close()


def open_rag_resources(
    app: App,
    repository: "Repository",
    recorded: AskTurnOptions | None = None,
    *,
    model: AnyModel,
    is_first_turn: bool = False,
) -> RagResources:
    """Open the indexes of a turn, with the `recorded` options if it was interrupted; the first turn has a notice if the
    handbook substitutes for an index.

    Raises:
        InputError: an index, folder, user, policy or method of assessment does not exist.
        ConfigError: the policy requires a model and there is none, or the user profile is invalid.
    """
    options = recorded or _options(app, repository, model)
    with ExitStack() as stack:
        names = _strings(app.document_settings.get("in"))
        if (retriever := _plug_in(app, names, repository) if names else repository.retriever) is not None:
            if recorded is None:
                from taiwa.retrieval.analyzer import Analyzer

                options = replace(options, terms=Analyzer().name)
            return RagResources(options, retriever, stack.pop_all())
        from taiwa.retrieval import ScopedRetriever
        from taiwa.retrieval.index import documents_that_fit

        indexes = _indexes(app, repository, stack)
        if recorded is None:
            shipped = indexes[0].name == BUNDLED_HANDBOOK and not app.document_settings.get("in")
            notice = NOTICE if shipped else SMALL if options.is_extractive and "small" in model.capabilities else ""
            notice = notice if is_first_turn else ""
            options = replace(options, terms=indexes[0].analyzer.name, notice=notice)
        if (settings := repository.settings) is not None:
            from taiwa.models.http_api.embeddings import with_embeddings

            indexes = [with_embeddings(index, settings) for index in indexes]
        principals = frozenset[str]() if repository.scope is None else repository.scope.principals
        filters = app.answer_options.filters
        fits = None if filters is None else documents_that_fit(filters, repository.store.served.attributes)
        within = ScopedRetriever(indexes, principals.union(_strings(app.document_settings.get("as"))), fits=fits)
        return RagResources(options, within, stack.pop_all())


def _options(app: App, repository: "Repository", model: AnyModel) -> AskTurnOptions:
    """Read the parameters of an app as options of its turns.

    By default a model assesses the dialogue only for a policy that needs its scores; see
    `default_assessment`.
    """
    values = app.document_settings
    name = str(values.get("policy") or "look_first")
    table = read_policy(name) if name.startswith("---\n") else None
    if table is None:
        policy_named(name)
    else:
        name = table.name
    needs_scores = name in POLICIES_WITH_MODEL or table is not None
    quotes = values.get("quote") is True
    default = "auto" if needs_scores else default_assessment(model, is_written=quotes or not app.only_answers)
    named = str(values.get("assess_by") or default)
    known: dict[str, AssessBy] = {each: each for each in ASSESS_BY}
    if named not in known:
        raise InputError(f"unknown method of assessment {named!r}; choose one of {', '.join(ASSESS_BY)}")
    method: AssessBy = "no-model" if isinstance(model, NoModel) else known[named]
    if needs_scores and method in NOT_ASSESSED:
        raise ConfigError(
            f"policy {name!r} requires the scores of a model; pass -m and no --assess-by, or use look_first"
        )
    most, k = values.get("max_questions"), values.get("k")
    clarify = ClarifyOptions(
        name, most if isinstance(most, int) else None, method, k if isinstance(k, int) else MAX_PASSAGES,
        catalogue_version=dialogue_version(), locale=user_language(), table=table,
    )  # fmt: skip
    profile = profile_of(str(values.get("user") or ""), repository.store)
    return AskTurnOptions(clarify, profile, quote=quotes)


def default_assessment(model: AnyModel, *, is_written: bool = False) -> AssessBy:
    """Return how a dialogue is assessed by default; `is_written`: whether a model writes the reply in any case."""
    # Measured on 0.5 billion parameters: its answers are right less often than the passages that it answers from.
    return "no-model" if "small" in model.capabilities and not is_written else "documents"


def profile_of(name: str, store: "Store") -> UserProfile:
    """Return the profile of a user of the store, an anonymous one for an empty name; an app never names a file.

    Raises:
        InputError: the store has no such user.
    """
    users = UserProfiles(store)
    if not name:
        return ANONYMOUS_USER
    if not users.has(name):
        raise InputError(f"{name!r} is not a user of the store; see `taiwa user --help`")
    return users.get(name)


def _plug_in(app: App, names: tuple[str, ...], repository: "Repository") -> Retriever | None:
    """Return the retriever of a plug-in that an app names in place of indexes; a request to a server cannot name one, and a
    principal has no meaning for it.
    """
    may_name = (repository.scope is None or _names_documents(app)) and not app.document_settings.get("as")
    return cast("Retriever", make_retriever(names[0])) if may_name and names_retriever(names) else None


def _names_documents(app: App) -> bool:
    """Whether the file of an app names the documents that it searches."""
    own = app.documents is not None and isinstance(app.documents.settings, dict) and "in" in app.documents.settings
    return own or any(param.name == "in" and param.default for param in app.params)


def _indexes(app: App, repository: "Repository", stack: ExitStack) -> "list[Index]":
    """Open the indexes that an app names, by default all that may be searched; the handbook if there are none.

    Raises:
        InputError: a name is neither an index nor a folder, or may not be searched (any more); or none of them holds a passage.
    """
    names, place, scope = _strings(app.document_settings.get("in")), repository.place, repository.scope
    wanted = [name for name in dict.fromkeys(names) if name != BUNDLED_HANDBOOK]
    beside = place.with_name(f"{place.stem}-library.db") if isinstance(place, Path) else place
    there = beside.exists() if isinstance(beside, Path) else beside is not None
    found: list[Index] = []
    if wanted or (there and not names):
        library = _library(beside, stack)
        listed = library.names() if scope is None else scope.names(library)
        unserved = next((name for name in wanted if name not in listed), None)
        if scope is not None and not scope.is_whole and not _names_documents(app) and unserved is not None:
            raise NotFoundError(f"index {unserved!r} not found; begin a conversation with another one")
        before = library.names(None)
        found = [_index(library, name) for name in (wanted or listed)]
        if wanted and BUNDLED_HANDBOOK not in names and all(index.name not in before for index in found):
            refuse_empty(library, before, wanted, found)  # folders that this turn has indexed
    if found and BUNDLED_HANDBOOK not in names:
        return found
    return [*found, _handbook(place.with_name(f"{place.stem}-handbook.db") if isinstance(place, Path) else None, stack)]


def refuse_empty(library: "Library", before: Iterable[str], names: Iterable[str], indexes: "Sequence[Index]") -> None:
    """Delete indexes, given by a name or folder, that were not there before, if none of them holds a passage.

    Raises:
        InputError: none does.
    """
    if any(index.summary(None).passages for index in indexes):
        return
    reasons = "; ".join(_why_empty(name, index) for name, index in zip(dict.fromkeys(names), indexes, strict=True))
    for name in {index.name for index in indexes}.difference(before):
        library.drop(name)  # an empty index would be searched instead of the handbook
    raise InputError(reasons)


def _why_empty(name: str, index: "Index") -> str:
    """Return why an index holds no passage: the number of its files, and what happened to them."""
    from taiwa.retrieval.ingest import count_unsupported

    listed = index.documents(None)
    unread = [each for each in listed if each.known.problem]
    others = count_unsupported(index.root) if index.root else dict[str, int]()
    if not unread and not others:
        return f"{name} holds no documents ({plural(len(listed), 'file')} read); add documents, or name another folder"
    kinds = [f"{plural(count, 'file')} of an unsupported type, {suffix}" for suffix, count in sorted(others.items())]
    causes = [f"{each.path}: {each.known.problem}" for each in unread] + kinds
    more = [f"and {len(causes) - MAX_CAUSES} more"] if len(causes) > MAX_CAUSES else []
    number = len(unread) + sum(others.values())
    whole = len(listed) + sum(others.values())
    return f"{name} holds no documents: cannot read {number} of {plural(whole, 'file')} ({'; '.join(causes[:MAX_CAUSES] + more)})"


def _library(place: Path | PostgresUrl | None, stack: ExitStack) -> "Library":
    """Open the library at a place, or a temporary one."""
    from taiwa.retrieval import Library

    if place is None:
        place = Path(stack.enter_context(TemporaryDirectory(prefix="taiwa-"))) / "library.db"
    return stack.enter_context(Library.open(place))


def not_found(name: str) -> InputError:
    """Return the error of a name that is not that of documents."""
    hint = "save standard input to a file, and name that" if name == "-" else "see `taiwa index list`"
    return InputError(f"{name!r} is neither an index nor a folder or file; {hint}")


def _index(library: "Library", name: str) -> "Index":
    """Open the index of a name, or of a folder; changes in its folder are read first, if possible."""
    if name in library.names(None):
        index = library.index(name)
        index.catch_up()
        return index
    if not path_kind(name):
        raise not_found(name)
    index = library.of_folder(name)
    index.refresh(REFRESH_SECONDS)
    return index


def _handbook(place: Path | None, stack: ExitStack) -> "Index":
    """Open the built-in handbook in a separate library, so that it is not listed among the user's indexes."""
    library = _library(place, stack)
    index = library.find_by_folder(HANDBOOK)
    if index is None:
        for name in library.names():  # of an installation at another path
            library.drop(name)
        index = library.create(HANDBOOK, BUNDLED_HANDBOOK)
    index.refresh(REFRESH_SECONDS)
    return index


def _strings(data: Json) -> tuple[str, ...]:
    return tuple(str(each) for each in data) if isinstance(data, list) else ()
