"""Vector stores (`/v1/vector_stores`): indexes of documents by name, the files attached to them, and `file_search` of Responses,
with which the app that cites documents searches them.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import cast

from starlette.requests import Request

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.kernel.messages import Passage
from taiwa.kernel.serialization import Json
from taiwa.operations.documents import FindOptions, document_text, find, find_ask_turn
from taiwa.retrieval import Index
from taiwa.retrieval.index import COMPARISONS, ORDERS, documents_that_fit, file_of
from taiwa.server.http_responses import ApiError, error_to_json, invalid
from taiwa.server.indexing import IndexRun, create_upload_index, delete_upload, drop_upload_index, room_for_uploads
from taiwa.server.request import Fields, caller_of, kind_of, name_of, page_for, repository_of, state_of
from taiwa.server.served import Choice, ServedModels
from taiwa.server.wire_interface import DELETE, GET, Route, Wire
from taiwa.server.wires.conversations import read_metadata
from taiwa.server.wires.documents import Documents, checked_path, documents_of, keep
from taiwa.server.wires.files import find_file, not_found
from taiwa.server.wires.response_items import Body, searches
from taiwa.sessions.commit_turn import TurnResult
from taiwa.sessions.repository import Repository
from taiwa.store.server_records import ServedObject

TYPE = "file_search"
APP = "ask"
"""The app that searches documents and cites them."""
MOST_RESULTS = 50
RESULTS = "file_search_call.results"
DEEPEST = 8
MOST_FILTERS, MOST_VALUES = 100, 1_000


@dataclass(frozen=True, slots=True)
class FileSearch:
    """What a request wants to search: the names of indexes, a filter of their files, and the number of results to show."""

    indexes: tuple[str, ...]
    most: int = MOST_RESULTS
    filters: Json = None

    def choice(self, served: ServedModels, chosen: Choice) -> Choice:
        """Return the app that searches, with the chosen model.

        Raises:
            ApiError: the chosen app has another purpose, or the app that searches is not served.
        """
        app = chosen.app
        if app == served.apps.get(APP):
            return chosen
        if app != served.apps[served.default_app] or APP not in served.apps:
            raise invalid("tools", f"file_search needs a model, or the app {APP!r}", "unsupported_parameter")
        return replace(chosen, app=served.apps[APP])


def read_file_search(body: Fields) -> FileSearch | None:
    """Read the tool `file_search` of a request, or None.

    Raises:
        ApiError: the request has other tools too, or a field is invalid.
    """
    listed = list(body.objects("tools"))
    found = [item for item in listed if item.text("type") == TYPE]
    if not found:
        return None
    if len(listed) > 1:
        raise invalid("tools", "file_search stands alone: it cannot be used with other tools", "unsupported_parameter")
    (tool,) = found
    tool.check_names({"type", "vector_store_ids", "max_num_results", "ranking_options", "filters"})
    indexes = tool.texts("vector_store_ids")
    if not indexes:
        raise invalid(tool.at("vector_store_ids"), "vector_store_ids must name at least one index", "invalid_value")
    return FileSearch(indexes, tool.count("max_num_results", 1, MOST_RESULTS) or MOST_RESULTS, read_filters(tool))


def read_filters(body: Fields) -> Json:
    """Read the field `filters`: a comparison of an attribute, or `and` and `or` of several; None if missing.

    Raises:
        ApiError: it is malformed, or too deep.
    """
    given = body.object("filters")
    if given is None:
        return None
    if _check_filter(given, 0) > MOST_VALUES:
        raise invalid(given.path, f"filters have more than {MOST_VALUES:,} values", "invalid_value")
    return given.data


def _check_filter(given: Fields, depth: int) -> int:
    """Check a filter, and count the values that it compares."""
    kind = given.choice("type", (*COMPARISONS, "and", "or"), "")
    if kind in ("and", "or"):
        given.check_names({"type", "filters"})
        if depth == DEEPEST:
            raise invalid(given.path, f"filters are nested more than {DEEPEST} deep", "invalid_value")
        if not 0 < len(given.items("filters")) <= MOST_FILTERS:
            raise given.error("filters", f"must have from 1 to {MOST_FILTERS} filters", "invalid_value")
        return sum(_check_filter(each, depth + 1) for each in given.objects("filters"))
    given.check_names({"type", "key", "value"})
    given.text("key")
    value, at = given.data.get("value"), given.at("value")
    if value is None:
        raise given.missing("value")
    if kind in ("in", "nin"):
        for index, item in enumerate(given.items("value")):
            _check_value(item, f"{at}[{index}]")
        return len(given.items("value"))
    _check_value(value, at, ordered=kind in ORDERS)
    return 1


def _check_value(data: Json, at: str, *, ordered: bool = False) -> None:
    if not isinstance(data, (str, int, float)) or (ordered and isinstance(data, bool)):
        wanted = "a string or a number" if ordered else "a string, a number or a boolean"
        raise invalid(at, f"{at} must be {wanted}, got {kind_of(data)}", "invalid_type")


def with_searches(final: Body, result: object, repository: Repository, most: int | None) -> Body:
    """Return the body of a response with the citations of its text, and the first results of its file search (None: no results)."""
    if not searches(final) or not isinstance(result, TurnResult) or result.ask is None:
        return final
    app = repository.app(repository.store.nodes.get(result.node).app)
    stores = list(dict.fromkeys(cast("list[str]", app.values["in"])))  # by their full names
    index = stores[0] if len(stores) == 1 else ""
    found: list[Json] | None = None
    if most is not None:
        turn = find_ask_turn(repository, result.node)
        attributes = {store: repository.store.served.attributes(store) for store in stores}
        found = [_result(each, index, attributes) for each in (() if turn is None else turn.passages[:most])]
    output: list[Json] = []
    for item in cast("list[Body]", final["output"]):
        more: Body = {}
        if item["type"] == "file_search_call":
            more = {"queries": list[Json](result.ask.look_up.queries), "results": found}
        elif item["type"] == "message":
            (part,) = cast("list[Body]", item["content"])
            more = {"content": [{**part, "annotations": _annotations(result, index)}]}
        output.append({**item, **more})
    return {**final, "output": output}


def _annotations(result: TurnResult, index: str) -> list[Json]:
    """Return a citation of a file for each number in the text of an answer, at its first position."""
    found: list[Json] = []
    for citation in dict.fromkeys(result.citations):
        at = result.text.find(f"[{citation.number}]")
        file, name = file_of(citation.source, index)
        found.append({"type": "file_citation", "index": max(at, 0), "file_id": file, "filename": name})
    return found


def _result(passage: Passage, index: str, attributes: Mapping[str, Mapping[str, Body]]) -> Json:
    file, name = file_of(passage.source, index)
    known = attributes[index or passage.source.partition("/")[0]].get(file, {})
    return {"file_id": file, "filename": name, "score": score_of(passage), "text": passage.text, "attributes": known}


def score_of(passage: Passage) -> float:
    """Return a score from 0 to 1, as the protocol requires, in the order of the ranking."""
    return round(passage.score / (1 + passage.score), 6)


def check_indexes(request: Request, search: FileSearch | None) -> FileSearch | None:
    """Return a search with the full names of its indexes.

    Raises:
        ApiError: the caller can see no index of that name.
    """
    if search is None:
        return None
    with documents_of(request) as documents:
        return replace(search, indexes=tuple(documents.index(name).name for name in search.indexes))


MOST_ATTRIBUTES, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512
MOST_FILES = 500
IGNORED = frozenset({"chunking_strategy", "expires_after", "description"})


def _id(request: Request) -> str:
    return name_of(request, "id")


def _file(request: Request) -> str:
    return name_of(request, "file")


def _record(repository: Repository, name: str) -> ServedObject:
    """Return the server's data about an index: its name and metadata, and the attributes of its files."""
    found = repository.store.served.find(f"vector_store/{name}")
    return found or ServedObject(f"vector_store/{name}", "vector_store", "", None, {"metadata": {}, "attributes": {}})


def _change_record(repository: Repository, name: str, change: Callable[[], Body]) -> None:
    """Change fields of the server's data about an index; `change` is called within a transaction."""
    with repository.store.transaction(f"vector_store/{name}"):
        found = _record(repository, name)
        repository.store.served.put(replace(found, body={**found.body, **change()}))


def _set_attributes(repository: Repository, name: str, changed: Mapping[str, Body | None]) -> None:
    """Set the attributes of files; None removes those of a file."""

    def change() -> Body:
        known = {**repository.store.served.attributes(name), **changed}
        return {"attributes": cast("Json", {file: each for file, each in known.items() if each})}

    _change_record(repository, name, change)


def _store(request: Request, documents: Documents, index: Index) -> Body:
    running = _is_read_now(request, index)
    summary, body = index.summary(documents.principals(index)), _record(repository_of(request), index.name).body
    counts: Json = {
        "in_progress": 0, "completed": summary.documents, "failed": summary.problems, "cancelled": 0,
        "total": summary.documents + summary.problems,
    }  # fmt: skip
    if running:  # counted in one list: a file that is read meanwhile would be counted twice, or not at all
        counts = _counts(_files(request, documents, index).values())
    return {
        "id": index.name, "object": "vector_store", "created_at": body.get("created_at") or summary.at_us // 1_000_000,
        "name": body.get("name") or documents.named(index.name), "usage_bytes": summary.characters, "file_counts": counts,
        "status": "in_progress" if running else "completed", "expires_after": None, "expires_at": None,
        "last_active_at": summary.at_us // 1_000_000, "metadata": body["metadata"],
    }  # fmt: skip


def _counts(files: Iterable[Body]) -> Body:
    """Count files by status."""
    kinds = [str(each["status"]) for each in files]
    counts = {kind: kinds.count(kind) for kind in ("in_progress", "completed", "failed", "cancelled")}
    return {**counts, "total": len(kinds)}


def _is_read_now(request: Request, index: Index) -> bool:
    """Report whether a run is reading an index; call this before listing its files, so that a file finished meanwhile counts as
    read.
    """
    return state_of(request).indexing.of_index(index.name) is not None


def _waiting(documents: Documents, index: Index) -> set[str]:
    """Return the paths of uploaded files that are not in the index yet."""
    if not (documents.is_own(index) and documents.scope.has_uploads(index.root)):
        return set()
    root = Path(index.root)
    known = {each.path for each in index.documents(None)}
    return {
        path for file in root.rglob("*") if file.is_file() and (path := file.relative_to(root).as_posix()) not in known
    }


def list_all(request: Request) -> Json:
    """List the indexes of the caller."""
    with documents_of(request) as documents:
        return page_for(
            request, [_store(request, documents, documents.library.index(name)) for name in documents.names]
        )


def get(request: Request) -> Json:
    """Return an index."""
    with documents_of(request) as documents:
        return _store(request, documents, documents.index(_id(request)))


async def create(request: Request, body: Fields) -> Json:
    """Create an index for files, under the given name if it is free."""
    name, metadata, files = body.optional_text("name"), read_metadata(body), body.texts("file_ids")

    def make() -> Body:
        with documents_of(request, writes=True) as documents:
            library, settings, owner = documents.library, documents.settings, documents.scope.owner
            try:
                index = create_upload_index(library, settings, name or "", owner=owner)
            except (InputError, ConflictError):
                index = create_upload_index(library, settings, f"vs_{token_hex(12)}", owner=owner)
            known: Body = {"name": name, "metadata": metadata, "created_at": int(time.time())}
            _change_record(repository_of(request), index.name, lambda: known)
            return _store(request, documents, index)

    shown = await asyncio.to_thread(make)
    if files:
        await _attach(request, str(shown["id"]), {file: {} for file in files})
        return {**shown, "status": "in_progress"}
    return shown


def update(request: Request, body: Fields) -> Json:
    """Change the display name and the metadata of an index."""
    name, metadata = body.optional_text("name"), read_metadata(body)
    with documents_of(request) as documents:
        index = documents.to_upload(documents.index(_id(request)))
        known: Body = {} if name is None else {"name": name}
        known |= {} if body.data.get("metadata") is None else {"metadata": metadata}
        _change_record(repository_of(request), index.name, lambda: known)
        return _store(request, documents, index)


async def delete(request: Request) -> Json:
    """Delete an index with its copies of files; an index of a server folder is deleted on the command line."""

    def find_run() -> IndexRun | None:
        with documents_of(request) as documents:
            index = documents.to_upload(documents.index(_id(request)))
            return state_of(request).indexing.of_index(index.name)

    def remove() -> None:
        with documents_of(request, writes=True) as documents:
            index = documents.to_upload(documents.index(_id(request)))
            drop_upload_index(documents.library, index)
            repository_of(request).store.served.delete(f"vector_store/{index.name}")

    if (run := await asyncio.to_thread(find_run)) is not None:
        run.cancel()
        async for _ in run.follow():
            pass
    await asyncio.to_thread(remove)
    return {"id": _id(request), "object": "vector_store.deleted", "deleted": True}


# --- files ------------------------------------------------------------------------------------------------------------


def read_attributes(body: Fields) -> Body:
    """Read the attributes of a file: up to 16 texts, numbers and booleans by name."""
    given = body.object("attributes")
    if given is None:
        return {}
    if len(given.data) > MOST_ATTRIBUTES:
        raise invalid(given.path, f"{given.path} has more than {MOST_ATTRIBUTES} entries", "invalid_value")
    for name, each in given.data.items():
        at = given.at(name)[:100]
        if not isinstance(each, (str, int, float)):
            raise invalid(at, f"{at} must be a string, a number or a boolean", "invalid_type")
        if len(name) > LONGEST_KEY or (isinstance(each, str) and len(each) > LONGEST_VALUE):
            limits = f"a key has at most {LONGEST_KEY} characters, a value {LONGEST_VALUE}"
            raise invalid(at, f"{at} is too long: {limits}", "invalid_value")
    return given.data


async def _attach(request: Request, name: str, files: Mapping[str, Body]) -> None:
    """Copy uploaded files into the folder of an index, and start to index it."""
    if len(files) > MOST_FILES:
        raise invalid("file_ids", f"there are more than {MOST_FILES} files", "invalid_value")

    def copy() -> Index:
        with documents_of(request, writes=True) as documents:
            index = documents.to_upload(documents.index(name))
            found = {file: find_file(request, file) for file in files}
            paths = {file: checked_path(f"{file}/{shown['filename']}") for file, (shown, _) in found.items()}
            room = room_for_uploads(documents.settings, documents.scope.owner)
            for file, (_, place) in found.items():
                with place.open("rb") as source:
                    room -= keep(documents.settings, Path(index.root) / paths[file], paths[file], source, room)
            _set_attributes(repository_of(request), index.name, files)
            return index

    index = await asyncio.to_thread(copy)
    state_of(request).indexing.start(caller_of(request), index.name, index.root)


async def attach(request: Request, body: Fields) -> Json:
    """Attach an uploaded file to an index, which is updated in the background."""
    await _attach(request, _id(request), {body.text("file_id"): read_attributes(body)})
    return await asyncio.to_thread(_shown, request, body.text("file_id"))


def _files(request: Request, documents: Documents, index: Index) -> dict[str, Body]:
    """Return the files of an index by id, including those not read yet."""
    running = _is_read_now(request, index)
    waiting = _waiting(documents, index)  # before the documents: a file that is read meanwhile is one of them
    attributes = repository_of(request).store.served.attributes(index.name)
    shared: Body = {
        "object": "vector_store.file",
        "vector_store_id": index.name,
        "chunking_strategy": {"type": "other"},
    }
    found: dict[str, Body] = {}
    for each in index.documents(documents.principals(index)):
        name, problem = file_of(each.path, index.name)[0], each.known.problem
        found[name] = {
            "id": name, **shared, "created_at": each.known.at_us // 1_000_000, "usage_bytes": each.known.size,
            "status": "failed" if problem else "completed",
            "last_error": {"code": "invalid_file", "message": problem} if problem else None,
            "attributes": attributes.get(name, {}),
        }  # fmt: skip
    for name in sorted({file_of(path, index.name)[0] for path in waiting} - found.keys()):
        gone: Body = {"code": "server_error", "message": "the file was not read; attach it again"}
        found[name] = {
            "id": name, **shared, "created_at": 0, "usage_bytes": 0, "status": "in_progress" if running else "failed",
            "last_error": None if running else gone, "attributes": attributes.get(name, {}),
        }  # fmt: skip
    return found


def _shown(request: Request, file: str) -> Body:
    with documents_of(request) as documents:
        found = _files(request, documents, documents.index(_id(request))).get(file)
    if found is None:
        raise not_found(file)
    return found


def list_files(request: Request) -> Json:
    """List the files of an index."""
    status = request.query_params.get("filter")
    with documents_of(request) as documents:
        found = _files(request, documents, documents.index(_id(request))).values()
    return page_for(request, [each for each in found if status in (None, each["status"])])


def get_file(request: Request) -> Json:
    """Return a file of an index."""
    return _shown(request, _file(request))


def update_file(request: Request, body: Fields) -> Json:
    """Replace the attributes of a file."""
    attributes, file = read_attributes(body), _file(request)
    _shown(request, file)
    with documents_of(request) as documents:
        index = documents.to_upload(documents.index(_id(request)))
        _set_attributes(repository_of(request), index.name, {file: attributes})
    return _shown(request, file)


def _path(request: Request, documents: Documents, index: Index) -> str:
    paths = (each.path for each in index.documents(documents.principals(index)))
    found = next((path for path in paths if file_of(path, index.name)[0] == _file(request)), None)
    if found is None:
        raise not_found(_file(request))
    return found


def file_content(request: Request) -> Json:
    """Return the text that was read from a file."""
    with documents_of(request) as documents:
        index = documents.index(_id(request))
        text = document_text(index, _path(request, documents, index), documents.principals(index)).text
    data: list[Json] = [{"type": "text", "text": text}]
    return {"object": "vector_store.file_content.page", "data": data, "has_more": False, "next_page": None}


def delete_file(request: Request) -> Json:
    """Remove a file from an index; the uploaded file stays."""
    with documents_of(request, writes=True) as documents:
        index = documents.to_upload(documents.index(_id(request)))
        delete_upload(index, _path(request, documents, index))
        index.refresh(60.0)
        _set_attributes(repository_of(request), index.name, {_file(request): None})
    return {"id": _file(request), "object": "vector_store.file.deleted", "deleted": True}


async def create_batch(request: Request, body: Fields) -> Json:
    """Attach several files."""
    shared = read_attributes(body)
    files = dict.fromkeys(body.texts("file_ids"), shared)
    files |= {each.text("file_id"): read_attributes(each) for each in body.objects("files")}
    if not files:
        raise invalid("file_ids", "file_ids must name at least one file", "empty_array")
    await _attach(request, _id(request), files)

    def store() -> Body:
        name = f"vsfb_{token_hex(12)}"
        made: Body = {"store": _id(request), "files": [*files], "created_at": int(time.time())}
        repository_of(request).store.served.put(ServedObject(name, "file_batch", "", None, made))
        return _batch(request, name)[0]

    return await asyncio.to_thread(store)


def _batch(request: Request, name: str) -> tuple[Body, list[Body]]:
    """Return a batch, and its files."""
    found = repository_of(request).store.served.find(name)
    if found is None or found.kind != "file_batch" or found.body["store"] != _id(request):
        raise ApiError(404, f"file batch {name[:80]!r} not found", code="not_found", param="batch_id")
    with documents_of(request) as documents:
        there = _files(request, documents, documents.index(_id(request)))
    files = [there[file] for file in cast("list[str]", found.body["files"]) if file in there]
    status = "in_progress" if any(each["status"] == "in_progress" for each in files) else "completed"
    return {
        "id": name, "object": "vector_store.files_batch", "created_at": found.body["created_at"],
        "vector_store_id": _id(request), "status": status, "file_counts": _counts(files),
    }, files  # fmt: skip


def get_batch(request: Request) -> Json:
    """Return the progress of a batch."""
    return _batch(request, name_of(request, "batch"))[0]


def list_batch(request: Request) -> Json:
    """List the files of a batch."""
    return page_for(request, [*_batch(request, name_of(request, "batch"))[1]])


# --- search -----------------------------------------------------------------------------------------------------------


def search(request: Request, body: Fields) -> Json:
    """Find the best passages of an index for a query."""
    query, most = " ".join(body.texts("query", or_one=True)), body.count("max_num_results", 1, MOST_RESULTS) or 10
    filters = read_filters(body)
    with documents_of(request, writes=True) as documents:
        index = documents.index(_id(request))
        attributes, audience = repository_of(request).store.served.attributes, tuple(documents.scope.principals)
        fits = None if filters is None else documents_that_fit(filters, attributes)
        options, shown = FindOptions(query, (index.name,), audience, most, fits=fits), attributes(index.name)
        found = find(documents.library, documents.settings, options)
    data: list[Json] = []
    for each in found.passages:
        file, path = file_of(each.passage.source, index.name)
        text: Json = [{"type": "text", "text": each.passage.text}]
        score, known = score_of(each.passage), shown.get(file, {})
        data.append({"file_id": file, "filename": path, "score": score, "attributes": known, "content": text})
    return {
        "object": "vector_store.search_results.page", "search_query": [query], "data": data, "has_more": False,
        "next_page": None,
    }  # fmt: skip


HERE = "/v1/vector_stores/{id}"
FILE = f"{HERE}/files/{{file}}"
SEARCH = ("query", "max_num_results", "rewrite_query", "ranking_options", "filters")
wire = Wire(
    "vector_stores",
    (
        Route("/v1/vector_stores", list_all, GET),
        Route("/v1/vector_stores", create, body={"name", "file_ids", "metadata"} | IGNORED),
        Route(HERE, get, GET),
        Route(HERE, update, body=("name", "metadata", "expires_after")),
        Route(HERE, delete, DELETE),
        Route(f"{HERE}/search", search, body=SEARCH),
        Route(f"{HERE}/files", list_files, GET),
        Route(f"{HERE}/files", attach, body={"file_id", "attributes"} | IGNORED),
        Route(FILE, get_file, GET),
        Route(FILE, update_file, body=("attributes",)),
        Route(FILE, delete_file, DELETE),
        Route(f"{FILE}/content", file_content, GET),
        Route(f"{HERE}/file_batches", create_batch, body={"file_ids", "files", "attributes"} | IGNORED),
        Route(f"{HERE}/file_batches/{{batch}}", get_batch, GET),
        Route(f"{HERE}/file_batches/{{batch}}/files", list_batch, GET),
    ),
    error_to_json,
)
