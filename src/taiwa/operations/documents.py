"""Index folders of documents, choose embeddings for an index, find passages, and open the app that answers questions."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from taiwa.kernel.attachments import path_kind, read_regular_text
from taiwa.kernel.errors import ConflictError, InputError, NotFoundError, StoreError, TaiwaError, file_errors
from taiwa.kernel.messages import Found, Passage, passage_key
from taiwa.kernel.serialization import Json, items_at
from taiwa.models.http_api.embeddings import EmbeddingEndpoint, add_missing_vectors, open_embedder, with_embeddings
from taiwa.operations.results import AskTurn, DocumentText, EmbeddingsResult, FindResult, MarkedPassage
from taiwa.plugins import names_retriever
from taiwa.retrieval import Index, Library, ScopedRetriever
from taiwa.retrieval.index import Fits
from taiwa.retrieval.types import EmbedderChoice, IndexSummary
from taiwa.settings import Settings

if TYPE_CHECKING:
    from taiwa.conversation.app import App
    from taiwa.retrieval.hybrid import Embedder
    from taiwa.retrieval.ingest import Progress, RefreshReport
    from taiwa.sessions.repository import Repository
    from taiwa.sql import PostgresUrl


EMBEDDINGS_OFF = "off"
WAIT = 600.0
"""Seconds to wait for another process that is indexing the same folder."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """The receiver of indexing reports: `notice` and `warning` get lines, `progress` opens a progress bar."""

    notice: Callable[[str], None]
    warning: Callable[[str], None]
    progress: "Callable[[], AbstractContextManager[Progress]]"


SILENT = Reporter(lambda _: None, lambda _: None, lambda: nullcontext(lambda _done, _whole, _what: None))


@dataclass(frozen=True, slots=True)
class FindOptions:
    """What to find, and where.

    - `indexes`: names of indexes, or folders and files, which are indexed first; all indexes without any.
    - `audience`: the principals for whom passages are shown (`user:ann`, `group:hr`); without any, what everyone may see.
    - `limit`: the maximum of passages. `near_misses`: further ones, which came next.
    - `fits`: whether a document, given by its index and its path, is searched; None searches all.
    """

    query: str
    indexes: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()
    limit: int = 5
    near_misses: int = 0
    fits: Fits | None = None


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """What to index, and how.

    - `folder`: a folder, a file, or the name of an index. `name`: of a new index ("": the folder's own name).
    - `language`: the language for stemming ("": that of the index, or English).
    - `embeddings`: the folder of a model, an endpoint (http://HOST:PORT/v1#NAME), `off`, or "" to keep those of the index.
    """

    folder: str
    name: str = ""
    language: str = ""
    embeddings: str = ""

    @property
    def embedder(self) -> str:
        """The embedder; the path of a folder is absolute."""
        folder = Path(self.embeddings).expanduser()
        is_folder = self.embeddings not in ("", EMBEDDINGS_OFF) and folder.is_dir()
        return str(folder.resolve()) if is_folder else self.embeddings


def _place(settings: Settings) -> "Path | PostgresUrl":
    store = settings.store
    return store.with_name(f"{store.stem}-library.db") if isinstance(store, Path) else store


@contextmanager
def open_library(
    settings: Settings, *, reading: bool = False, writing: bool = False, creating: bool = True
) -> Generator[Library]:
    """Open the library next to the store, or on the same server.

    Opening for reading writes nothing, nor does opening one that does not exist without `creating` it; a read-only library is opened
    for reading too, unless writing was requested.
    """
    place = _place(settings)
    reads = isinstance(place, Path) and (reading or not (creating or place.exists()))
    try:
        library = Library.open(place, readonly=reads)
    except StoreError:
        if reads or writing or not isinstance(place, Path):
            raise
        library = Library.open(place, readonly=True)
    with library:
        yield library


def find(library: Library, settings: Settings, options: FindOptions, reporter: Reporter = SILENT) -> FindResult:
    """Find the passages that fit a query best. No model is called.

    Raises:
        InputError: the query is empty, or an index is not found.
    """
    if not options.query.strip():
        raise InputError("the query is empty; give at least one word")
    indexes = find_indexes(library, options.indexes, settings, reporter)
    within = ScopedRetriever(indexes, options.audience, fits=options.fits)
    found = within.find(options.query, options.limit + options.near_misses)
    analyzer = indexes[0].analyzer
    terms = frozenset(term for index in indexes for term in index.analyzer.asked(options.query))
    marked = tuple(MarkedPassage(passage, tuple(analyzer.marks(passage.text, terms))) for passage in found)
    return FindResult(marked[: options.limit], tuple(within.troubles), marked[options.limit :])


def split_source(source: str, indexes: Sequence[str]) -> tuple[str, str]:
    """Return the index and the path of a passage; its source has both unless only one index was searched.

    >>> split_source("guide.md", ["shop"]), split_source("shop/guide.md", ["shop", "handbook"])
    (('shop', 'guide.md'), ('shop', 'guide.md'))
    """
    if len(indexes) == 1:
        return indexes[0], source
    index, slash, path = source.partition("/")
    return (index, path) if slash else ("", source)


def document_text(
    index: Index, path: str, principals: Iterable[str] | None = (), start: int = 0, end: int | None = None
) -> DocumentText:
    """Return the plain text of a document, or a range of its characters.

    Raises:
        InputError: the principals see no document at the path; None stands for the owner of the index.
    """
    listed = next((each for each in index.documents(principals) if each.path == path), None)
    if listed is None:
        raise NotFoundError(f"document {path[-80:]!r} not found in {index.name!r}")
    passages = index.backend.passages(path)
    whole = max((each.end for each in passages), default=0)
    start = min(max(start, 0), whole)
    end = whole if end is None else min(max(end, start), whole)
    shown = tuple(each for each in passages if each.start < end and each.end > start)
    parts, at = list[str](), start
    for each in shown:
        parts.append("\n" * (each.start - at))
        parts.append(each.text[max(start - each.start, 0) : end - each.start])
        at = min(each.end, end)
    text = "".join(parts) + "\n" * (end - at)
    return DocumentText(index.name, path, listed.title, listed.known.digest[:12], whole, start, text, shown)


def find_indexes(
    library: Library, names: Iterable[str], settings: Settings, reporter: Reporter = SILENT
) -> list[Index]:
    """Return the indexes of names and folders, all if none are given; new folders are indexed, and changes are read first.

    Embeddings are used too if an index has them and they improve its ranking.

    Raises:
        InputError: a name is neither an index nor a folder, or no index exists.
    """
    wanted = dict.fromkeys(names)
    indexes = [_named(library, name, reporter) for name in wanted] or [
        _known(library, name, reporter) for name in library.names()
    ]
    found = [_with_vectors(index, settings, reporter) for index in indexes]
    if not found:
        raise InputError("no index found; create one with `taiwa index FOLDER`, or name a folder or file to search")
    return found


def _named(library: Library, name: str, reporter: Reporter) -> Index:
    if name and path_kind(name):  # first, since the index of that name may be of a folder elsewhere
        index = library.of_folder(name)
        try:
            for problem in _refresh(index, reporter).problems:
                reporter.notice(f"{problem.path}: {problem.why}")
        except StoreError as error:  # a library that cannot be written can be searched
            reporter.warning(f"{index.name}: searched as it was indexed before, since {error.message}")
        return index
    if name in library.names(None):
        return _known(library, name, reporter)
    from taiwa.sessions.ask_resources import not_found

    raise not_found(name)


def _known(library: Library, name: str, reporter: Reporter) -> Index:
    index = library.index(name)
    with reporter.progress() as moved:
        if trouble := index.catch_up(progress=moved):
            reporter.warning(trouble)
    return index


def _with_vectors(index: Index, settings: Settings, reporter: Reporter) -> Index:
    found = with_embeddings(index, settings)
    if trouble := add_missing_vectors(found):
        reporter.warning(trouble)
    return found


def index_folder(
    library: Library, settings: Settings, options: IndexOptions, reporter: Reporter = SILENT
) -> "Iterator[tuple[IndexSummary, RefreshReport] | EmbeddingsResult | None]":
    """Index a folder, or refresh an index; return the summary of the index with the changes, then its embeddings (or None).

    Raises:
        ConflictError: the name belongs to the index of another folder.
        InputError: the folder has an index of another name or language.
        TaiwaError: the embedder cannot be opened; a new index is removed again.
    """
    before = library.names(None)
    folder = options.folder
    if not folder:
        raise InputError("the folder has no name; write . for the present one")
    is_name = not path_kind(folder) and folder in before
    known = library.index(folder) if is_name else library.find_by_folder(folder)
    index = _new_index(library, options) if known is None else _matching(known, options)
    try:
        embedder = _choose_embedder(index, options, settings)
    except TaiwaError:
        if index.name not in before:
            library.drop(index.name)
        raise
    done = _refresh(index, reporter)
    yield index.summary(None), done
    made = _embed(index, embedder, settings, reporter)
    yield embeddings_of(index, made=made)


def _new_index(library: Library, options: IndexOptions) -> Index:
    language = options.language.lower() or "english"
    if options.name:
        return library.create(options.folder, options.name, language)
    return library.of_folder(options.folder, language)


def _matching(known: Index, options: IndexOptions) -> Index:
    language = options.language.lower()
    for what, wanted, own in (("name", options.name, known.name), ("language", language, known.analyzer.language)):
        if wanted not in ("", own):
            raise InputError(
                f"the index of {known.root} has the {what} {own!r}; remove it to change that: taiwa index remove {known.name}"
            )
    return known


def _refresh(index: Index, reporter: Reporter) -> "RefreshReport":
    try:
        with index.backend.write_lock(0.0):
            pass
    except ConflictError:
        reporter.notice(f"another process is indexing {index.name!r}; waiting for it")
    with reporter.progress() as moved:
        return index.refresh(WAIT, moved)


def _choose_embedder(index: Index, options: IndexOptions, settings: Settings) -> "Embedder | None":
    """Open the embedder of the options and store it for the index; None if the index keeps its own."""
    before, place = index.backend.embedder_choice(), options.embedder
    if place == EMBEDDINGS_OFF:
        index.backend.set_embedder(None)
        return None
    return _open_embedder(index, place, before, settings) if place else None


def _embed(index: Index, embedder: "Embedder | None", settings: Settings, reporter: Reporter) -> int:
    """Compute missing vectors; return their number."""
    before = index.backend.embedder_choice()
    if before is None:
        return 0
    from taiwa.retrieval.hybrid import HybridIndex

    embedder = embedder or _open_embedder(index, before.place, before, settings)
    fused = HybridIndex(index, embedder)
    missing = index.summary(None).passages - index.backend.vectors(embedder.name)
    with reporter.progress() as moved:
        made = fused.make_vectors(lambda done: moved(done, missing, "vectors"))
    index.backend.keep_vectors(embedder.name)
    return made


def _open_embedder(index: Index, place: str, before: "EmbedderChoice | None", settings: Settings) -> "Embedder":
    embedder = open_embedder(place, settings)
    probe: tuple[float, ...] = ()
    if isinstance(embedder, EmbeddingEndpoint):
        embedder.identify(before if before is not None and before.place == place else None)
        probe = embedder.probe
    index.backend.set_embedder(EmbedderChoice(place, embedder.name, probe))
    return embedder


def embeddings_of(index: Index, *, is_owner: bool = True, made: int = 0) -> EmbeddingsResult | None:
    """Return the embeddings of an index; None if it has none. The number of vectors is for its owner."""
    meaning = index.backend.embedder_choice()
    if meaning is None:
        return None
    vectors = index.backend.vectors(meaning.model) if is_owner else None
    return EmbeddingsResult(meaning, vectors, made)


# --- questions --------------------------------------------------------------------------------------------------------
# Questions to documents: the app that answers them, with its parameters.


def read_policy_file(policy: str) -> str:
    """Return the text of a policy file, which the conversation keeps; a name is returned unchanged.

    Raises:
        ConfigError: the file is malformed or cannot be read.
    """
    from taiwa.flows.ask.prompts import read_policy

    if not policy.endswith(".md"):
        return policy
    with file_errors(f"read the policy {policy}"):
        text = read_regular_text(Path(policy))
    read_policy(text, policy)
    return text


def open_ask_app(settings: Settings, params: Mapping[str, Json], reporter: Reporter = SILENT) -> "App":
    """Open the app `ask` with parameters, of which empty ones are left out; folders are indexed first, and the text of a policy file is
    kept.

    Raises:
        InputError: an index or a parameter is not found or not valid, or none of the indexes named holds a passage.
    """
    from taiwa.apps.catalog import load_app

    values: dict[str, Json] = {name: each for name, each in params.items() if each not in (None, "", [])}
    names = [str(name) for name in items_at(values, "in")]
    if names and not names_retriever(names):
        values["in"] = list[Json](index_documents(settings, names, reporter))
    if isinstance(policy := values.get("policy"), str):
        values["policy"] = read_policy_file(policy)
    return load_app("ask").with_params(values)


def index_documents(settings: Settings, names: Sequence[str], reporter: Reporter = SILENT) -> list[str]:
    """Index the folders and files among some names, and return the names of all indexes.

    Raises:
        InputError: an index is not found, or none of them holds a passage.
    """
    from taiwa.sessions.ask_resources import BUNDLED_HANDBOOK, refuse_empty

    own = [name for name in names if name != BUNDLED_HANDBOOK]
    if not own:
        return list(names)
    with open_library(settings) as library:
        before = library.names(None)
        indexes = find_indexes(library, own, settings, reporter)
        found = [index.name for index in indexes]
        if BUNDLED_HANDBOOK not in names:
            refuse_empty(library, before, own, indexes)
    return found + [BUNDLED_HANDBOOK] * (BUNDLED_HANDBOOK in names)


def find_ask_turn(repository: "Repository", node: str) -> AskTurn | None:
    """Return what the documents stage of a turn did, from its records; None for every other node."""
    from taiwa.flows.ask.ask_result import AskResult

    result = AskResult.of(repository.store.nodes.get(node).findings)
    if result is None:
        return None
    found: dict[str, Passage] = {}
    answers = (entry.answer for entry in repository.store.runs.journal_of(node))
    for passage in chain.from_iterable(answer.passages for answer in answers if isinstance(answer, Found)):
        key = passage_key(passage)
        found[key] = max(found.get(key, passage), passage, key=lambda each: each.score)
    used = {each.id: each for each in result.passages}
    passages = tuple(replace(each, score=used[key].score) for key in used if (each := found.get(key)) is not None)
    misses = sorted((each for key, each in found.items() if key not in used), key=lambda passage: -passage.score)
    candidates = tuple(tuple(found[key] for key in option.passages if key in found) for option in result.options)
    return AskTurn(result, passages, tuple(misses), candidates)
