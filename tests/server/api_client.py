"""A typed client of the server's own API for tests: one method per route of its OpenAPI document; a test compares the two."""

import json
from collections.abc import Generator, Iterator, Mapping
from types import TracebackType
from typing import Literal, Self, TypeVar, Unpack, cast
from urllib.parse import quote

import httpx2

from taiwa.kernel.errors import InputError, ModelError
from taiwa.kernel.serialization import Json
from taiwa.operations import result_json
from taiwa.server import api_types as api

__all__ = ["ApiClient"]

T = TypeVar("T")
Query = Mapping[str, str | int | None]
SECONDS = 60.0


class ApiClient:
    """A client of `taiwa serve`: `ApiClient("http://127.0.0.1:7474", key)`. It is a context manager, and safe for threads.

    Answers have the types that the routes declare. Every method raises `InputError` if the server refuses the request (4xx)
    and `ModelError` if it fails (5xx), with the server's message.
    """

    def __init__(self, url: str, key: str = "", *, seconds: float = SECONDS) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def conversations(self, limit: int = 100) -> list[result_json.ConversationEntry]:
        """List conversations, most recent first."""
        return self._call(list[result_json.ConversationEntry], "GET", "/api/conversations", query={"limit": limit})

    def search(self, words: str, limit: int = 100) -> list[result_json.FoundNode]:
        """Search nodes for words."""
        return self._call(list[result_json.FoundNode], "GET", "/api/conversations", query={"q": words, "limit": limit})

    def begin(self, **turn: Unpack[api.NewConversation]) -> api.RunStarted:
        """Start a conversation with its first turn; see `events`."""
        return self._call(api.RunStarted, "POST", "/api/conversations", dict(turn))

    def history(self, name: str, limit: int = 1000) -> list[result_json.NodeEntry]:
        """Return the nodes of a conversation, oldest first."""
        return self._call(
            list[result_json.NodeEntry], "GET", "/api/conversations/{name}", query={"limit": limit}, name=name
        )

    def delete(self, name: str) -> api.Deleted:
        """Delete a conversation."""
        return self._call(api.Deleted, "DELETE", "/api/conversations/{name}", name=name)

    def say(self, name: str, **turn: Unpack[api.NewTurn]) -> api.RunStarted:
        """Start a turn; see `events`."""
        return self._call(api.RunStarted, "POST", "/api/conversations/{name}/turns", dict(turn), name=name)

    def rewrite(self, name: str, text: str, edit: int) -> api.Moved:
        """Change the text of a turn on a new branch; no model is called."""
        body = {"text": text, "edit": edit}
        return self._call(api.Moved, "POST", "/api/conversations/{name}/rewrite", body, name=name)

    def estimate(self, name: str, turn: int = 1) -> api.TurnEstimate:
        """Estimate the cost of answering a turn again."""
        query = {"turn": turn}
        return self._call(api.TurnEstimate, "GET", "/api/conversations/{name}/estimate", query=query, name=name)

    def set_params(self, name: str, params: result_json.JsonObject) -> api.Moved:
        """Continue with other parameters of the app."""
        body = {"params": params}
        return self._call(api.Moved, "POST", "/api/conversations/{name}/params", body, name=name)

    def question(self, name: str) -> api.QuestionBack:
        """Return the clarifying question at which a conversation pauses."""
        return self._call(api.QuestionBack, "GET", "/api/conversations/{name}/question", name=name)

    def waiting(self, name: str) -> api.WaitingCalls:
        """Return the tool calls for whose approval the interrupted turn waits."""
        return self._call(api.WaitingCalls, "GET", "/api/conversations/{name}/waiting", name=name)

    def resume(self, name: str, *, approve: bool | None = None) -> api.RunStarted:
        """Complete the interrupted turn; see `events`. `approve` says whether the tool calls for which it waits are made."""
        body: api.ResumeTurn = {} if approve is None else {"approve": approve}
        return self._call(api.RunStarted, "POST", "/api/conversations/{name}/resume", body, name=name)

    def undo(self, name: str, turns: int = 1) -> api.Moved:
        """Undo some turns."""
        return self._call(api.Moved, "POST", "/api/conversations/{name}/undo", {"turns": turns}, name=name)

    def redo(self, name: str, turns: int = 1) -> api.Moved:
        """Redo undone turns."""
        return self._call(api.Moved, "POST", "/api/conversations/{name}/redo", {"turns": turns}, name=name)

    def fork(self, name: str, new: str, node: str | None = None) -> api.Moved:
        """Name a branch that begins at a node."""
        body = {"name": new, "node": node}
        return self._call(api.Moved, "POST", "/api/conversations/{name}/fork", body, name=name)

    def label(self, name: str, **label: Unpack[api.NewLabel]) -> api.Renamed:
        """Give a conversation a title in free words or tags, pin it, or archive it."""
        return self._call(api.Renamed, "POST", "/api/conversations/{name}/label", dict(label), name=name)

    def keep(self, name: str, node: str, expected: str = "") -> api.Moved:
        """Continue on the branch of a node, which becomes the end of the conversation; the other branches stay."""
        body = {"node": node, "expected": expected}
        return self._call(api.Moved, "POST", "/api/conversations/{name}/keep", body, name=name)

    def import_file(self, text: str, **name: str) -> api.Imported:
        """Import the text of a file, all or nothing."""
        return self._call(api.Imported, "POST", "/api/import", {"text": text, **name})

    def rename(self, name: str, new: str) -> api.Renamed:
        """Rename a conversation."""
        return self._call(api.Renamed, "POST", "/api/conversations/{name}/rename", {"name": new}, name=name)

    def state(self, name: str, node: str | None = None) -> result_json.StateAt:
        """Return the state of a conversation, at its end or after a node."""
        return self._call(
            result_json.StateAt, "GET", "/api/conversations/{name}/state", query={"node": node}, name=name
        )

    def set_state(self, name: str, path: str, value: Json) -> result_json.StateSet:
        """Set a value of the state manually."""
        body = {"path": path, "value": value}
        return self._call(result_json.StateSet, "POST", "/api/conversations/{name}/state", body, name=name)

    def why(self, name: str, path: str, node: str | None = None) -> result_json.Cause:
        """Return the node that last set a value."""
        query = {"path": path, "node": node}
        return self._call(result_json.Cause, "GET", "/api/conversations/{name}/why", query=query, name=name)

    def end(self, name: str, node: str) -> api.BranchEnd:
        """Return the end of the branch that continues a node."""
        return self._call(api.BranchEnd, "GET", "/api/conversations/{name}/end", query={"node": node}, name=name)

    def verify(self, name: str) -> api.Verified:
        """Replay every turn from its records, without a model call."""
        return self._call(api.Verified, "GET", "/api/conversations/{name}/verify", name=name)

    def export(self, name: str, form: Literal["jsonl", "md", "html", "verifiable"] = "jsonl") -> str:
        """Export a conversation."""
        return self._send("GET", "/api/conversations/{name}/export", {"name": name}, {"form": form}).text

    def node(self, name: str) -> api.ShownNode:
        """Return a node with its calls."""
        return self._call(api.ShownNode, "GET", "/api/nodes/{name}", name=name)

    def trace(self, node: str) -> result_json.JsonObject:
        """Return the calls, tools, searches and scores of a node."""
        return self._call(result_json.JsonObject, "GET", "/api/nodes/{name}/trace", name=node)

    def tokens(self, node: str, top: int = 5) -> Json:
        """Return the tokens of the answers of a node."""
        return cast("Json", self._call(object, "GET", "/api/nodes/{name}/tokens", query={"top": top}, name=node))

    def tree(self) -> list[result_json.NodeEntry]:
        """Return all histories that names refer to."""
        return self._call(list[result_json.NodeEntry], "GET", "/api/tree")

    def diff(self, before: str, after: str) -> result_json.Difference:
        """Return the differences between two revisions."""
        return self._call(result_json.Difference, "GET", "/api/diff", query={"before": before, "after": after})

    def cost(self, by: Literal["app", "model", "day", "session"] = "session") -> list[api.CostEntry]:
        """Return the bill."""
        return self._call(list[api.CostEntry], "GET", "/api/cost", query={"by": by})

    def apps(self) -> list[api.AppEntry]:
        """List the served apps with their parameters."""
        return self._call(list[api.AppEntry], "GET", "/api/apps")

    def events(self, run: str, after: int = -1) -> Iterator[tuple[str, result_json.JsonObject]]:
        """Follow a run from its first event, or after a given one; yield the kind and data of each event."""
        return self._follow(f"/api/runs/{quote(run, safe='')}/events", {"last-event-id": str(after)})

    def changes(self, after: int | None = None) -> Generator[tuple[str, result_json.JsonObject]]:
        """Follow all conversations from now on, or after a given event; yield the kind and data of each event, without end."""
        return self._follow("/api/events", {} if after is None else {"last-event-id": str(after)})

    def _follow(self, path: str, headers: dict[str, str]) -> Generator[tuple[str, result_json.JsonObject]]:
        with self._http.stream("GET", path, headers=headers) as response:
            _check(response)
            kind = ""
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)

    def cancel(self, run: str) -> api.Cancelled:
        """Stop a run."""
        return self._call(api.Cancelled, "POST", "/api/runs/{name}/cancel", name=run)

    def indexes(self) -> list[api.IndexEntry]:
        """List the indexes."""
        return self._call(list[api.IndexEntry], "GET", "/api/indexes")

    def create_index(self, name: str, language: str | None = None) -> api.IndexEntry:
        """Create an index for uploads."""
        return self._call(api.IndexEntry, "POST", "/api/indexes", {"name": name, "language": language})

    def index(self, name: str) -> api.ShownIndex:
        """Return an index with its documents."""
        return self._call(api.ShownIndex, "GET", "/api/indexes/{name}", name=name)

    def delete_index(self, name: str) -> api.Deleted:
        """Delete an index."""
        return self._call(api.Deleted, "DELETE", "/api/indexes/{name}", name=name)

    def refresh(self, name: str) -> api.IndexRunStarted:
        """Index the changes in the folder of an index; see `events`."""
        return self._call(api.IndexRunStarted, "POST", "/api/indexes/{name}/refresh", {}, name=name)

    def upload(self, index: str, path: str, content: bytes) -> api.IndexRunStarted:
        """Upload and index a document; see `events`."""
        answer = self._send("POST", "/api/indexes/{name}/documents", {"name": index}, {"path": path}, content=content)
        return cast("api.IndexRunStarted", answer.json())

    def document(
        self, index: str, path: str, start: int | None = None, end: int | None = None
    ) -> result_json.JsonObject:
        """Return the text of a document, complete or around a quotation."""
        query = {"start": start, "end": end}
        return self._call(
            result_json.JsonObject, "GET", "/api/indexes/{name}/documents/{path}", query=query, name=index, path=path
        )

    def delete_document(self, index: str, path: str) -> api.Deleted:
        """Delete an uploaded document."""
        return self._call(api.Deleted, "DELETE", "/api/indexes/{name}/documents/{path}", name=index, path=path)

    def find(self, query: str, index: str | None = None, limit: int = 5) -> api.FoundPassages:
        """Find the best passages for a query, in all indexes or in one."""
        words: Query = {"q": query, "limit": limit}
        if index is None:
            return self._call(api.FoundPassages, "GET", "/api/find", query=words)
        return self._call(api.FoundPassages, "GET", "/api/indexes/{name}/find", query=words, name=index)

    def passage(self, name: str) -> result_json.JsonObject:
        """Return a passage by its id, with the text around it."""
        return self._call(result_json.JsonObject, "GET", "/api/passages/{id}", id=name)

    def persons(self) -> list[result_json.PersonEntry]:
        """List the user profiles."""
        return self._call(list[result_json.PersonEntry], "GET", "/api/persons")

    def person(self, name: str) -> result_json.Person:
        """Return a user profile."""
        return self._call(result_json.Person, "GET", "/api/persons/{name}", name=name)

    def set_person(self, name: str, **values: Unpack[api.PersonChange]) -> result_json.Person:
        """Set facts, language and thresholds of a user profile."""
        return self._call(result_json.Person, "POST", "/api/persons/{name}", dict(values), name=name)

    def delete_person(self, name: str) -> api.Deleted:
        """Delete a user profile."""
        return self._call(api.Deleted, "DELETE", "/api/persons/{name}", name=name)

    def rate(self, name: str, **rating: Unpack[api.Rating]) -> result_json.Person:
        """Store a verdict on the last turn."""
        return self._call(result_json.Person, "POST", "/api/persons/{name}/feedback", dict(rating), name=name)

    def forget(self, name: str) -> result_json.Person:
        """Delete the feedback of a user profile."""
        return self._call(result_json.Person, "DELETE", "/api/persons/{name}/feedback", name=name)

    def _call(
        self,
        _answer: type[T],
        method: str,
        path: str,
        body: object = None,
        /,
        *,
        query: Query | None = None,
        **names: str,
    ) -> T:
        """Send a request to a path of the document and return the answer, whose type the document specifies."""
        return cast("T", self._send(method, path, names, query or {}, body).json())

    def _send(
        self,
        method: str,
        path: str,
        names: Mapping[str, str],
        query: Query,
        body: object = None,
        content: bytes | None = None,
    ) -> httpx2.Response:
        for name, value in names.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        params = {name: value for name, value in query.items() if value is not None}
        headers = {} if content is None else {"content-type": "application/octet-stream"}
        response = self._http.request(method, path, params=params, json=body, content=content, headers=headers)
        _check(response)
        return response


def _check(response: httpx2.Response) -> None:
    if response.status_code < 400:
        return
    response.read()
    try:
        message = str(response.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        message = f"the server answered {response.status_code}"
    raise InputError(message) if response.status_code < 500 else ModelError(message)
