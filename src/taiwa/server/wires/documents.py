"""Documents in the server's own API: indexes, uploads, passages, and the text around a citation."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from hashlib import file_digest, sha256
from io import BytesIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from taiwa.i18n import translated
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from taiwa.operations.documents import (
    FindOptions,
    document_text,
    embeddings_of,
    find,
    open_library,
    split_source,
)
from taiwa.operations.result_json import JsonObject, format_time, to_json
from taiwa.operations.results import MarkedPassage
from taiwa.retrieval import Index, Library
from taiwa.retrieval.index import IndexScope
from taiwa.retrieval.types import UnreadableError
from taiwa.server import api_types
from taiwa.server.http_responses import ApiError, error_to_json, invalid
from taiwa.server.indexing import (
    UploadedFile,
    create_upload_index,
    delete_upload,
    drop_upload_index,
    room_for_uploads,
    upload_path,
    without_folder,
)
from taiwa.server.request import (
    PAGE_HEADER,
    Fields,
    body_parts,
    caller_of,
    language_of,
    name_of,
    query_number,
    repository_of,
    state_of,
)
from taiwa.server.wire_interface import COUNT, DELETE, GET, NAME, OFFSET, POST, TEXT, Described, Route, Wire
from taiwa.settings import Settings

MOST_FOUND = 100
NEAR_MISSES = 5
MOST_FILES = 1_000
"""Files per upload."""
MOST_CHARACTERS = 200_000
"""Characters of a document's text in one response."""
CONTEXT = 2_000
"""Characters before and after a quotation."""
FARTHEST = 1 << 40
IN_MEMORY = 1 << 20


class Documents:
    """The indexes that the caller of a request can see, while the library is open."""

    def __init__(self, request: Request, library: Library) -> None:
        repository = repository_of(request)
        self.library = library
        self.caller = caller_of(request)
        self.settings = settings_of(request)
        self.scope = repository.scope or IndexScope()
        self.audience = _audience(request, self.scope)
        self.names = self.scope.names(library)

    def index(self, name: str) -> Index:
        """Return an index by name; the caller's own may be named without `@CALLER`.

        Raises:
            ApiError: the caller can see no index of that name.
        """
        whole = next((each for each in (name, f"{name}@{self.scope.owner}") if each in self.names), None)
        if whole is None:
            raise ApiError(404, f"index {name[:80]!r} not found", code="index_not_found")
        return self.library.index(whole)

    def own_index(self, name: str) -> Index:
        """Return an index of the caller by name.

        Raises:
            ApiError: the caller can see no index of that name, or it is not the caller's.
        """
        index = self.index(name)
        if not self.is_own(index):
            raise ApiError(403, f"{index.name!r} is an index of the server", "permission_error", "index_read_only")
        return index

    def is_own(self, index: Index) -> bool:
        """Whether the caller may see and change everything in an index."""
        return index.name in self.library.names(self.scope.owner)

    def principals(self, index: Index) -> frozenset[str] | None:
        """Return the principals for whom an index is shown; None for its owner, who may see all."""
        return None if self.is_own(index) and not self.audience else self.scope.principals | self.audience

    def to_upload(self, index: Index) -> Index:
        """Return an index that accepts uploads and deletions.

        Raises:
            ApiError: it belongs to a folder of the server.
        """
        if not (self.is_own(index) and self.scope.has_uploads(index.root)):
            raise ApiError(
                403, f"the documents of {index.name!r} are in a folder of the server; change them there, and refresh it",
                "permission_error", "index_read_only",
            )  # fmt: skip
        return index

    def named(self, name: str) -> str:
        """Return the name of an index without its caller."""
        return name.removesuffix(f"@{self.scope.owner}") if self.scope.owner else name


def settings_of(request: Request) -> Settings:
    """Return the settings of the server, which locate the library."""
    return state_of(request).served.settings


def _audience(request: Request, scope: IndexScope) -> frozenset[str]:
    """Return the principals that a request names; only the holder of the server's token may name any."""
    given = frozenset(name for name in request.query_params.getlist("as") if name)
    if given and scope.owner:
        raise ApiError(403, "the principals of a key are those it was made with", "permission_error", "not_permitted")
    return given


@contextmanager
def documents_of(request: Request, *, writes: bool = False) -> Generator[Documents]:
    """Open the indexes of the caller."""
    with open_library(settings_of(request), creating=writes) as library:
        yield Documents(request, library)


def list_indexes(request: Request) -> Json:
    """List the indexes that the caller can see."""
    with documents_of(request) as documents:
        return [_summary(request, documents, documents.library.index(name)) for name in documents.names]


def _summary(request: Request, documents: Documents, index: Index) -> dict[str, Json]:
    run = state_of(request).indexing.of_index(index.name)
    summary = index.summary(documents.principals(index))
    shown: dict[str, Json] = to_json(summary)
    own = documents.is_own(index)
    return {
        "index": index.name,
        "name": documents.named(index.name),
        **(shown if own and not documents.scope.owner else without_folder(shown)),
        "changed": format_time(summary.at_us),
        "own": own,
        "uploads": own and documents.scope.has_uploads(index.root),
        "run": None if run is None else run.id,
    }


def create(request: Request, body: Fields) -> Json:
    """Create an empty index for uploads."""
    name, language = body.text("name"), body.text("language", "english")
    with documents_of(request, writes=True) as documents:
        owner = documents.scope.owner
        index = create_upload_index(documents.library, documents.settings, name, language, owner)
        return _summary(request, documents, index)


def show(request: Request) -> dict[str, Json]:
    """Return an index: its documents, the unreadable files with reasons, and the audience."""
    with documents_of(request) as documents:
        index = documents.index(name_of(request))
        own = documents.is_own(index)
        files: Json = to_json(index.documents(documents.principals(index)))
        embeddings = to_json(embeddings_of(index, is_owner=own))
        shown = _summary(request, documents, index)
        return {**shown, "embeddings": embeddings, "rules": _rules(index) if own else [], "files": files}


def _rules(index: Index) -> list[Json]:
    try:
        rules = index.rules()
    except InputError:  # its folder is missing: the index answers from what was read before
        return []
    return [{**to_json(each), "rule": each.where.rpartition("/")[2]} for each in rules]


def delete(request: Request) -> Json:
    """Delete an index. Uploaded documents are deleted with it; those in a folder of the server stay."""
    with documents_of(request, writes=True) as documents:
        index = documents.own_index(name_of(request))
        if documents.scope.has_uploads(index.root):
            drop_upload_index(documents.library, index)
        else:
            documents.library.drop(index.name)
        return {"deleted": index.name}


async def refresh(request: Request, _: Fields) -> Json:
    """Index the changes in the folder of an index; the response names its run."""

    def find_index() -> Index:
        with documents_of(request) as documents:
            index = documents.own_index(name_of(request))
            if not index.root:
                raise invalid(None, f"{index.name!r} has no folder; its documents come from elsewhere")
            return index

    index = await asyncio.to_thread(find_index)
    run = state_of(request).indexing.start(caller_of(request), index.name, index.root)
    return {"run": run.id, "index": index.name}


async def upload(request: Request) -> Json:
    """Upload documents and index them; a missing index is created.

    The body is a form (`multipart/form-data`) with any number of files, or the bytes of one document, whose name is in the query
    as `path`. The response names the run that reads them, and the rejected files with reasons.
    """
    name = name_of(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form: FormData | None = None
    try:
        if kind == "multipart/form-data":
            form = await read_form(request)
            files = [(each.filename or "", each.file) for _, each in form.multi_items() if isinstance(each, UploadFile)]
        else:
            files = [(request.query_params.get("path", ""), await _read_bytes(request))]
        if not files:
            raise invalid(None, "the form has no file", "missing_file")
        return await once_with_files(request, "", files, partial(_index, request, name, files))
    finally:
        if form is not None:
            await form.close()


Files = list[tuple[str, BinaryIO]]


async def _index(request: Request, name: str, files: Files) -> Json:
    index, root, accepted, refused = await asyncio.to_thread(_store, request, name, files)
    run = state_of(request).indexing.start(caller_of(request), index, root)
    language = language_of(request) if PAGE_HEADER in request.headers else "en"
    shown: list[Json] = [{"path": path, "why": translated(why, language)} for path, why in refused]
    return {"run": run.id, "index": index, "documents": list[Json](accepted), "refused": shown}


async def once_with_files(request: Request, about: str, files: Files, make: Callable[[], Awaitable[Json]]) -> Json:
    """Make once what a request with files makes, as `Repeats.once`; the bytes of a form differ with each attempt.

    Raises:
        ApiError: the `Idempotency-Key` was used for other files.
    """

    def digest() -> bytes:
        found = sha256(f"{request.scope['path']}\0{about}".encode(errors="replace"))
        for name, file in files:
            found.update(b"\0%b\0" % name.encode(errors="replace"))
            found.update(file_digest(cast("BytesIO", file), "sha256").digest())
            file.seek(0)
        return found.digest()

    if not request.headers.get("idempotency-key"):
        return await make()
    request.state.digest, request.state.size = await asyncio.to_thread(digest), 0
    return await state_of(request).repeats.once(request, make)


def _store(request: Request, name: str, files: Files) -> tuple[str, str, list[str], list[tuple[str, str]]]:
    """Store files in the folder of an index; return its name, its folder, the accepted and the rejected files."""
    accepted, refused = list[tuple[str, BinaryIO]](), list[tuple[str, str]]()
    for given, file in files:
        try:
            accepted.append((checked_path(given), file))
        except ApiError as error:
            if len(files) == 1:
                raise
            refused.append((given[-200:].encode(errors="replace").decode(), error.message))
    if not accepted:
        raise invalid("path", refused[0][1], "invalid_file")
    kept = list[str]()
    with documents_of(request, writes=True) as documents:
        index = index_for_uploads(documents, name)
        room = room_for_uploads(documents.settings, documents.scope.owner)
        for path, file in accepted:
            try:
                room -= keep(documents.settings, Path(index.root) / path, path, file, room)
            except InputError as error:
                refused.append((path, error.message))
            else:
                kept.append(path)
    if not kept:
        raise ApiError(413, refused[0][1], code="request_too_large", param="path")
    return index.name, index.root, kept, refused


def checked_path(name: str) -> str:
    """Return the path of a file within the folder of its index.

    Raises:
        ApiError: its name leads outside the folder, or its type is not supported.
    """
    try:
        return upload_path(name)
    except InputError as error:
        status = 415 if isinstance(error, UnreadableError) else 400
        raise ApiError(status, error.message, code="invalid_file", param="path") from None


def index_for_uploads(documents: Documents, name: str) -> Index:
    """Return an index of the caller for uploads; create it if necessary."""
    try:
        return documents.to_upload(documents.index(name))
    except ApiError as error:
        if error.status != 404:
            raise
    return create_upload_index(documents.library, documents.settings, name, owner=documents.scope.owner)


def keep(settings: Settings, target: Path, path: str, file: BinaryIO, room: int) -> int:
    """Copy a file to its destination; return its size.

    Raises:
        InputError: it is too large, or the space is exhausted.
    """
    received = UploadedFile(settings, target, path, room)
    try:
        while piece := file.read(IN_MEMORY):
            received.write(piece)
        received.keep()
    finally:
        received.close()
    return received.size


def _upload_parts(request: Request) -> AsyncGenerator[bytes]:
    return body_parts(request, state_of(request).options.limits.upload)


async def read_form(request: Request) -> FormData:
    """Read a form with files, which are stored on disk; the caller closes it.

    Raises:
        ApiError: it is too large, too slow, malformed, or not a form.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise ApiError(415, "the Content-Type must be multipart/form-data", code="unsupported_media_type")
    parser = MultiPartParser(request.headers, _upload_parts(request), max_files=MOST_FILES, max_fields=MOST_FILES)
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise invalid(None, f"the form cannot be read: {error.message}", "invalid_form") from None


async def _read_bytes(request: Request) -> BinaryIO:
    checked_path(request.query_params.get("path", ""))  # before receiving anything
    received = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  (closed with its last reference)
    async for part in _upload_parts(request):
        await asyncio.to_thread(received.write, part)
    received.seek(0)
    return cast("BinaryIO", received)


def open_document(request: Request) -> dict[str, Json]:
    """Return the text of a document, complete or around a quotation; another method of this path deletes it."""
    start, end, context = (query_number(request, each, -1, 0, FARTHEST) for each in ("start", "end", "context"))
    around = CONTEXT if context < 0 else context
    first = max(start - around, 0)
    last = (end if end >= 0 else start) + around if start >= 0 else MOST_CHARACTERS
    with documents_of(request) as documents:
        index, path = documents.index(name_of(request)), name_of(request, "path")
        return _text(documents, index, path, first, min(last, first + MOST_CHARACTERS), (start, end))


def _text(
    documents: Documents, index: Index, path: str, first: int, last: int, quoted: tuple[int, int]
) -> dict[str, Json]:
    try:
        found = document_text(index, path, documents.principals(index), first, last)
    except InputError as error:
        raise ApiError(404, error.message, code="document_not_found") from None
    start, end = quoted
    at: dict[str, Json] = {"start": start, "end": max(end, start)} if start >= 0 else {}
    return {**cast("dict[str, Json]", to_json(found)), **at}


def open_passage(request: Request) -> Json:
    """Return a passage by its id, as in citations, with the text around it."""
    name, context = name_of(request, "id"), query_number(request, "context", CONTEXT, 0, FARTHEST)
    with documents_of(request) as documents:
        for index in map(documents.library.index, documents.names):
            found = index.backend.passage(name, documents.principals(index))
            if found is not None:
                first = max(found.start - context, 0)
                last = min(found.end + context, first + MOST_CHARACTERS)
                shown = _text(documents, index, found.source, first, last, (found.start, found.end))
                return {**shown, "id": name, "heading": list[Json](found.heading), "page": found.page or None}
    raise ApiError(404, f"passage {name[:80]!r} not found; its document has changed", code="passage_not_found")


def delete_document(request: Request) -> Json:
    """Delete an uploaded document, which is removed from the index."""
    path = name_of(request, "path")
    with documents_of(request, writes=True) as documents:
        index = documents.to_upload(documents.index(name_of(request)))
        try:
            delete_upload(index, path)
        except InputError as error:
            raise ApiError(404, error.message, code="document_not_found") from None
        index.refresh(60.0)
        return {"deleted": path, "index": index.name}


def find_passages(request: Request) -> dict[str, Json]:
    """Find the best passages for a query, and the next best."""
    query, limit = request.query_params.get("q", ""), query_number(request, "limit", 5, 1, MOST_FOUND)
    if not query.strip():
        raise invalid("q", "the query is empty; give at least one word as q")
    wanted = [name_of(request)] if "name" in request.path_params else request.query_params.getlist("in")
    with documents_of(request, writes=True) as documents:
        names = tuple(documents.index(name).name for name in wanted) or documents.names
        if not names:
            return {"query": query, "passages": [], "near_misses": [], "warnings": []}
        audience = tuple(documents.scope.principals | documents.audience)
        options = FindOptions(query, names, audience, limit, NEAR_MISSES)
        found = find(documents.library, documents.settings, options)

    def shown(each: MarkedPassage) -> dict[str, Json]:
        index, path = split_source(each.passage.source, names)
        return {"index": index, **cast("dict[str, Json]", to_json(each)), "path": path}

    return {
        "query": query,
        "passages": list(map(shown, found.passages)),
        "near_misses": list(map(shown, found.near_misses)),
        "warnings": list[Json](found.warnings),
    }


HERE = "/api/indexes/{name}"
wire = Wire(
    "documents",
    (
        Route("/api/indexes", list_indexes, GET, api=Described(list[api_types.IndexEntry])),
        Route("/api/indexes", create, POST, api=Described(api_types.IndexEntry, api_types.NewIndex, status=201)),
        Route(HERE, show, GET, api=Described(api_types.ShownIndex)),
        Route(HERE, delete, DELETE, api=Described(api_types.Deleted)),
        Route(
            f"{HERE}/refresh", refresh, POST, api=Described(api_types.IndexRunStarted, api_types.Nothing, status=202)
        ),
        Route(
            f"{HERE}/find",
            find_passages,
            GET,
            api=Described(api_types.FoundPassages, query={"q!": NAME, "limit": COUNT}),
        ),
        Route(
            f"{HERE}/documents",
            upload,
            POST,
            takes_files=True,
            api=Described(api_types.IndexRunStarted, query={"path": TEXT}, status=202),
        ),
        Route(
            f"{HERE}/documents/{{path:path}}",
            open_document,
            GET,
            api=Described(JsonObject, query={"start": OFFSET, "end": OFFSET, "context": OFFSET}),
        ),
        Route(f"{HERE}/documents/{{path:path}}", delete_document, DELETE, api=Described(api_types.Deleted)),
        Route(
            "/api/find",
            find_passages,
            GET,
            api=Described(api_types.FoundPassages, query={"q!": NAME, "in": TEXT, "limit": COUNT}),
        ),
        Route("/api/passages/{id}", open_passage, GET, api=Described(JsonObject, query={"context": OFFSET})),
    ),
    error_to_json,
)
