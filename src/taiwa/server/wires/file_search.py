"""`file_search` of Responses, and the vector stores that it searches: indexes of documents under their names."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass, replace
from typing import cast

from starlette.requests import Request

from taiwa.kernel.messages import Passage
from taiwa.kernel.records import Json
from taiwa.operations.ask import find_ask_turn
from taiwa.operations.documents import FindOptions, find
from taiwa.retrieval import Index
from taiwa.server.catalogue import Catalogue, Choice
from taiwa.server.errors import ApiError, invalid
from taiwa.server.fields import Fields
from taiwa.server.state import read_body
from taiwa.server.wire import Route, Wire
from taiwa.server.wires.chat_completions import error
from taiwa.server.wires.conversations import page_for
from taiwa.server.wires.documents import Documents, with_documents
from taiwa.server.wires.response_events import Body, searches
from taiwa.sessions.durable_turn import TurnResult
from taiwa.sessions.repository import Repository

TYPE = "file_search"
APP = "ask"
"""The app that searches documents and cites them."""
MOST_RESULTS = 50
RESULTS = "file_search_call.results"


@dataclass(frozen=True, slots=True)
class FileSearch:
    """What a request wants to be searched: the names of indexes, and how many results it shows."""

    indexes: tuple[str, ...]
    most: int = MOST_RESULTS

    def choice(self, catalogue: Catalogue, chosen: Choice) -> Choice:
        """Return the app that searches, with the chosen model.

        Raises:
            ApiError: the chosen app does something else, or the one that searches is not served.
        """
        app = chosen.app
        if app == catalogue.apps.get(APP):
            return chosen
        if app != catalogue.apps[catalogue.default_app] or APP not in catalogue.apps:
            raise invalid("tools", f"file_search needs a model, or the app {APP!r}", "unsupported_parameter")
        return replace(chosen, app=catalogue.apps[APP])


def read_file_search(body: Fields) -> FileSearch | None:
    """Read the tool `file_search` of a request; None without one.

    Raises:
        ApiError: it stands beside other tools, or a field is invalid.
    """
    listed = list(body.objects("tools"))
    found = [item for item in listed if item.text("type") == TYPE]
    if not found:
        return None
    if len(listed) > 1:
        raise invalid("tools", "file_search stands alone: it cannot be used with other tools", "unsupported_parameter")
    (tool,) = found
    tool.check_names({"type", "vector_store_ids", "max_num_results", "ranking_options"}, {"filters"})
    indexes = tool.texts("vector_store_ids")
    if not indexes:
        raise invalid(tool.at("vector_store_ids"), "vector_store_ids must name at least one index", "invalid_value")
    return FileSearch(indexes, tool.count("max_num_results", 1, MOST_RESULTS) or MOST_RESULTS)


def with_searches(
    final: Body, result: object, repository: Repository, *, results: bool = False, most: int = 50
) -> Body:
    """Return the body of a response with what its file search found, and with the citations of its text."""
    if not searches(final) or not isinstance(result, TurnResult) or result.ask is None:
        return final
    turn = find_ask_turn(repository, result.node)
    passages = () if turn is None else turn.passages[:most]
    (tool,) = cast("list[Body]", final["tools"])
    stores = cast("list[str]", tool["vector_store_ids"])
    index = stores[0] if len(stores) == 1 else ""
    output: list[Json] = []
    for item in cast("list[Body]", final["output"]):
        more: Body = {}
        if item["type"] == "file_search_call":
            found: list[Json] = [_result(each, index) for each in passages]
            more = {"queries": list[Json](result.ask.queries), "results": found if results else None}
        elif item["type"] == "message":
            (part,) = cast("list[Body]", item["content"])
            more = {"content": [{**part, "annotations": _annotations(result, index)}]}
        output.append({**item, **more})
    return {**final, "output": output}


def _annotations(result: TurnResult, index: str) -> list[Json]:
    """Return a citation of a file for each number in the text of an answer, where it stands first."""
    found: list[Json] = []
    for citation in dict.fromkeys(result.citations):
        at = result.text.find(f"[{citation.number}]")
        file, name = file_of(citation.source, index)
        found.append({"type": "file_citation", "index": max(at, 0), "file_id": file, "filename": name})
    return found


def _result(passage: Passage, index: str) -> Json:
    file, name = file_of(passage.source, index)
    return {"file_id": file, "filename": name, "score": score_of(passage), "text": passage.text, "attributes": {}}


def score_of(passage: Passage) -> float:
    """Return a score from 0 to 1, as the protocol has it, in the order of the scores of the ranking."""
    return round(passage.score / (1 + passage.score), 6)


def file_of(source: str, index: str) -> tuple[str, str]:
    """Return the id of a document and its path; the source begins with the name of its index where `index` is empty.

    >>> file_of("guide.md", "shop"), file_of("shop/guide.md", "")
    (('file-c2hvcC9ndWlkZS5tZA', 'guide.md'), ('file-c2hvcC9ndWlkZS5tZA', 'guide.md'))
    """
    whole = f"{index}/{source}" if index else source
    return f"file-{urlsafe_b64encode(whole.encode()).decode().rstrip('=')}", whole.partition("/")[2]


def place_of(file: str) -> tuple[str, str]:
    """Return the index and the path of a document by its id.

    Raises:
        ApiError: it is not the id of one.
    """
    text = file.removeprefix("file-")
    try:
        index, _, path = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition("/")
    except (Base64Error, ValueError):
        index, path = "", ""
    if not path or not file.startswith("file-"):
        raise ApiError(404, f"file {file[:80]!r} not found", code="not_found", param="file_id")
    return index, path


# --- vector stores ----------------------------------------------------------------------------------------------------


def _store(documents: Documents, index: Index) -> Body:
    summary = index.summary(documents.principals(index))
    counts: Json = {
        "in_progress": 0, "completed": summary.documents, "failed": summary.problems, "cancelled": 0,
        "total": summary.documents + summary.problems,
    }  # fmt: skip
    return {
        "id": index.name, "object": "vector_store", "created_at": summary.at_us // 1_000_000,
        "name": documents.named(index.name), "usage_bytes": summary.characters, "file_counts": counts,
        "status": "completed", "expires_after": None, "expires_at": None,
        "last_active_at": summary.at_us // 1_000_000, "metadata": {},
    }  # fmt: skip


def _id(request: Request) -> str:
    return str(request.path_params["id"])


async def list_stores(request: Request) -> Json:
    """List the indexes of the caller."""

    def read(documents: Documents) -> list[Json]:
        return [_store(documents, documents.library.index(name)) for name in documents.names]

    return page_for(request, await with_documents(request, read))


async def get_store(request: Request) -> Json:
    """Return an index."""
    name = _id(request)
    return await with_documents(request, lambda documents: _store(documents, documents.index(name)))


def _files(documents: Documents, index: Index) -> list[Json]:
    found: list[Json] = []
    for each in index.documents(documents.principals(index)):
        problem = each.known.problem
        found.append(
            {
                "id": file_of(each.path, index.name)[0], "object": "vector_store.file", "created_at": each.known.at_us // 1_000_000,
                "usage_bytes": each.known.size, "vector_store_id": index.name, "status": "failed" if problem else "completed",
                "last_error": {"code": "invalid_file", "message": problem} if problem else None, "attributes": {},
                "chunking_strategy": {"type": "other"},
            }
        )  # fmt: skip
    return found


async def list_files(request: Request) -> Json:
    """List the documents of an index."""
    name = _id(request)
    return page_for(request, await with_documents(request, lambda found: _files(found, found.index(name))))


async def get_file(request: Request) -> Json:
    """Return what is known of a document: its name and size."""
    index_name, path = place_of(_id(request))

    def read(documents: Documents) -> Json:
        index = documents.index(index_name)
        for each in index.documents(documents.principals(index)):
            if each.path == path:
                return {
                    "id": file_of(path, index.name)[0], "object": "file", "bytes": each.known.size,
                    "created_at": each.known.at_us // 1_000_000, "filename": path, "purpose": "user_data",
                    "status": "error" if each.known.problem else "processed", "expires_at": None,
                    "status_details": each.known.problem or None,
                }  # fmt: skip
        raise ApiError(404, f"file {path[-80:]!r} not found", code="not_found", param="file_id")

    return await with_documents(request, read)


async def search_store(request: Request) -> Json:
    """Find the passages of an index that fit a query best."""
    name, body = _id(request), await read_body(request)
    body.check_names({"query", "max_num_results", "rewrite_query", "ranking_options"}, {"filters"})
    query, most = " ".join(body.texts("query")), body.count("max_num_results", 1, MOST_RESULTS) or 10

    def read(documents: Documents) -> Json:
        index = documents.index(name)
        audience = tuple(documents.scope.principals)
        found = find(documents.library, documents.settings, FindOptions(query, (index.name,), audience, most))
        data: list[Json] = []
        for each in found.passages:
            file, path = file_of(each.passage.source, index.name)
            text: Json = [{"type": "text", "text": each.passage.text}]
            score = score_of(each.passage)
            data.append({"file_id": file, "filename": path, "score": score, "attributes": {}, "content": text})
        return {
            "object": "vector_store.search_results.page", "search_query": [query], "data": data, "has_more": False,
            "next_page": None,
        }  # fmt: skip

    return await with_documents(request, read, writes=True)


async def check_indexes(request: Request, search: FileSearch | None) -> FileSearch | None:
    """Return a search with the whole names of its indexes.

    Raises:
        ApiError: the caller sees no index of a name.
    """
    if search is None:
        return None
    names = await with_documents(request, lambda found: tuple(found.index(name).name for name in search.indexes))
    return replace(search, indexes=names)


GET = ("GET",)
HERE = "/v1/vector_stores/{id}"
wire = Wire(
    "file_search",
    (
        Route("/v1/vector_stores", list_stores, GET),
        Route(HERE, get_store, GET),
        Route(f"{HERE}/search", search_store),
        Route(f"{HERE}/files", list_files, GET),
        Route("/v1/files/{id}", get_file, GET),
    ),
    error,
)
