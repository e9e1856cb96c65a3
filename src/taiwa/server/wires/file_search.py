"""`file_search` of Responses: the app that searches documents and cites them, with indexes as vector stores."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from starlette.requests import Request

from taiwa.kernel.messages import Passage
from taiwa.kernel.serialization import Json
from taiwa.operations.documents import find_ask_turn
from taiwa.retrieval.index import COMPARISONS, ORDERS, file_of
from taiwa.server.catalogue import Catalogue, Choice
from taiwa.server.errors import invalid
from taiwa.server.fields import Fields, kind_of
from taiwa.server.wires.documents import with_documents
from taiwa.server.wires.response_events import Body, searches
from taiwa.sessions.commit_turn import TurnResult
from taiwa.sessions.repository import Repository

TYPE = "file_search"
APP = "ask"
"""The app that searches documents and cites them."""
MOST_RESULTS = 50
RESULTS = "file_search_call.results"
DEEPEST = 8
MOST_FILTERS, MOST_VALUES = 100, 1_000


@dataclass(frozen=True, slots=True)
class FileSearch:
    """What a request wants to be searched: the names of indexes, which of their files, and how many results it shows."""

    indexes: tuple[str, ...]
    most: int = MOST_RESULTS
    filters: Json = None

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
    tool.check_names({"type", "vector_store_ids", "max_num_results", "ranking_options", "filters"})
    indexes = tool.texts("vector_store_ids")
    if not indexes:
        raise invalid(tool.at("vector_store_ids"), "vector_store_ids must name at least one index", "invalid_value")
    return FileSearch(indexes, tool.count("max_num_results", 1, MOST_RESULTS) or MOST_RESULTS, read_filters(tool))


def read_filters(body: Fields) -> Json:
    """Read the field `filters`: a comparison of an attribute, or `and` and `or` of several; None without one.

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
    """Check a filter, and count the values that it compares with."""
    kind = given.choice("type", (*COMPARISONS, "and", "or"), "")
    if kind in ("and", "or"):
        given.check_names({"type", "filters"})
        if depth == DEEPEST:
            raise invalid(given.path, f"filters are nested more than {DEEPEST} deep", "invalid_value")
        if not 0 < len(given.items("filters")) <= MOST_FILTERS:
            at = given.at("filters")
            raise invalid(at, f"{at} must have from 1 to {MOST_FILTERS} filters", "invalid_value")
        return sum(_check_filter(each, depth + 1) for each in given.objects("filters"))
    given.check_names({"type", "key", "value"})
    given.text("key")
    value, at = given.data.get("value"), given.at("value")
    if value is None:
        raise invalid(at, f"missing required parameter: {at!r}", "missing_required_parameter")
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


def with_searches(
    final: Body, result: object, repository: Repository, *, results: bool = False, most: int = 50
) -> Body:
    """Return the body of a response with what its file search found, and with the citations of its text."""
    if not searches(final) or not isinstance(result, TurnResult) or result.ask is None:
        return final
    turn = find_ask_turn(repository, result.node)
    passages = () if turn is None else turn.passages[:most]
    app = repository.app(repository.store.nodes.get(result.node).app)
    stores = list(dict.fromkeys(cast("list[str]", app.values["in"])))  # with their whole names
    index = stores[0] if len(stores) == 1 else ""
    found: list[Json] | None = None
    if results:
        attributes = {store: repository.store.served.attributes(store) for store in stores}
        found = [_result(each, index, attributes) for each in passages]
    output: list[Json] = []
    for item in cast("list[Body]", final["output"]):
        more: Body = {}
        if item["type"] == "file_search_call":
            more = {"queries": list[Json](result.ask.queries), "results": found}
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


def _result(passage: Passage, index: str, attributes: Mapping[str, Mapping[str, Body]]) -> Json:
    file, name = file_of(passage.source, index)
    known = attributes[index or passage.source.partition("/")[0]].get(file, {})
    return {"file_id": file, "filename": name, "score": score_of(passage), "text": passage.text, "attributes": known}


def score_of(passage: Passage) -> float:
    """Return a score from 0 to 1, as the protocol has it, in the order of the scores of the ranking."""
    return round(passage.score / (1 + passage.score), 6)


async def check_indexes(request: Request, search: FileSearch | None) -> FileSearch | None:
    """Return a search with the whole names of its indexes.

    Raises:
        ApiError: the caller sees no index of a name.
    """
    if search is None:
        return None
    names = await with_documents(request, lambda found: tuple(found.index(name).name for name in search.indexes))
    return replace(search, indexes=names)
