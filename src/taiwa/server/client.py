"""A typed client of the server's own API: a method for each route of its OpenAPI document, with which a test compares it."""

import json
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Literal, Self, Unpack, cast
from urllib.parse import quote

import httpx2

from taiwa.kernel.errors import InputError, ModelError
from taiwa.kernel.records import Json
from taiwa.server.api_types import (
    AppEntry,
    BranchEnd,
    Cancelled,
    Cause,
    ConversationEntry,
    CostEntry,
    Deleted,
    Difference,
    FoundNode,
    FoundPassages,
    IndexEntry,
    IndexRunStarted,
    JsonObject,
    Moved,
    NewConversation,
    NewTurn,
    NodeEntry,
    Person,
    PersonChange,
    PersonEntry,
    QuestionBack,
    Rating,
    Renamed,
    RunStarted,
    ShownIndex,
    ShownNode,
    StateAt,
    StateSet,
    TurnEstimate,
    Verified,
)

Query = Mapping[str, str | int | None]
SECONDS = 60.0


class ApiClient:
    """A client of `taiwa serve`: `ApiClient("http://127.0.0.1:7474", key)`. It is a context manager, and safe for threads.

    An answer has the types of `taiwa.server.api_types`. Every method raises `InputError` for what the server refuses (4xx), and
    `ModelError` for what fails there (5xx), with its message.
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

    def conversations(self, limit: int = 100) -> list[ConversationEntry]:
        """List conversations, the last one first."""
        return cast("list[ConversationEntry]", self._call("GET", "/api/conversations", query={"limit": limit}))

    def search(self, words: str, limit: int = 100) -> list[FoundNode]:
        """Find nodes with some words."""
        return cast("list[FoundNode]", self._call("GET", "/api/conversations", query={"q": words, "limit": limit}))

    def begin(self, **turn: Unpack[NewConversation]) -> RunStarted:
        """Begin a conversation with its first turn; see `events`."""
        return cast("RunStarted", self._call("POST", "/api/conversations", dict(turn)))

    def history(self, name: str, limit: int = 1000) -> list[NodeEntry]:
        """Return the nodes of a conversation, oldest first."""
        return cast(
            "list[NodeEntry]", self._call("GET", "/api/conversations/{name}", query={"limit": limit}, name=name)
        )

    def delete(self, name: str) -> Deleted:
        """Delete a conversation."""
        return cast("Deleted", self._call("DELETE", "/api/conversations/{name}", name=name))

    def say(self, name: str, **turn: Unpack[NewTurn]) -> RunStarted:
        """Begin a turn; see `events`."""
        return cast("RunStarted", self._call("POST", "/api/conversations/{name}/turns", dict(turn), name=name))

    def rewrite(self, name: str, text: str, edit: int) -> Moved:
        """Change the text of a turn in a new branch; no model is called."""
        body = {"text": text, "edit": edit}
        return cast("Moved", self._call("POST", "/api/conversations/{name}/rewrite", body, name=name))

    def estimate(self, name: str, turn: int = 1) -> TurnEstimate:
        """Estimate what it costs to answer a turn again."""
        query = {"turn": turn}
        return cast("TurnEstimate", self._call("GET", "/api/conversations/{name}/estimate", query=query, name=name))

    def set_params(self, name: str, params: JsonObject) -> Moved:
        """Go on with other parameters of the app."""
        body = {"params": params}
        return cast("Moved", self._call("POST", "/api/conversations/{name}/params", body, name=name))

    def question(self, name: str) -> QuestionBack:
        """Return the question back at which a conversation pauses."""
        return cast("QuestionBack", self._call("GET", "/api/conversations/{name}/question", name=name))

    def resume(self, name: str) -> RunStarted:
        """Complete the interrupted turn; see `events`."""
        return cast("RunStarted", self._call("POST", "/api/conversations/{name}/resume", {}, name=name))

    def undo(self, name: str, turns: int = 1) -> Moved:
        """Go back some turns."""
        return cast("Moved", self._call("POST", "/api/conversations/{name}/undo", {"turns": turns}, name=name))

    def redo(self, name: str, turns: int = 1) -> Moved:
        """Go forward over undone turns."""
        return cast("Moved", self._call("POST", "/api/conversations/{name}/redo", {"turns": turns}, name=name))

    def fork(self, name: str, new: str, node: str | None = None) -> Moved:
        """Give a node a second name."""
        body = {"name": new, "node": node}
        return cast("Moved", self._call("POST", "/api/conversations/{name}/fork", body, name=name))

    def rename(self, name: str, new: str) -> Renamed:
        """Rename a conversation."""
        return cast("Renamed", self._call("POST", "/api/conversations/{name}/rename", {"name": new}, name=name))

    def state(self, name: str, node: str | None = None) -> StateAt:
        """Return the state of a conversation, at its end or after a node."""
        return cast("StateAt", self._call("GET", "/api/conversations/{name}/state", query={"node": node}, name=name))

    def set_state(self, name: str, path: str, value: Json) -> StateSet:
        """Set a value of the state by hand."""
        body = {"path": path, "value": value}
        return cast("StateSet", self._call("POST", "/api/conversations/{name}/state", body, name=name))

    def why(self, name: str, path: str, node: str | None = None) -> Cause:
        """Return the node that set a value last."""
        query = {"path": path, "node": node}
        return cast("Cause", self._call("GET", "/api/conversations/{name}/why", query=query, name=name))

    def end(self, name: str, node: str) -> BranchEnd:
        """Return the end of the branch that continues a node."""
        return cast("BranchEnd", self._call("GET", "/api/conversations/{name}/end", query={"node": node}, name=name))

    def verify(self, name: str) -> Verified:
        """Do every turn again from its records, without a call of a model."""
        return cast("Verified", self._call("GET", "/api/conversations/{name}/verify", name=name))

    def export(self, name: str, form: Literal["jsonl", "md", "html", "verifiable"] = "jsonl") -> str:
        """Export a conversation."""
        return self._send("GET", "/api/conversations/{name}/export", {"name": name}, {"form": form}).text

    def node(self, name: str) -> ShownNode:
        """Return a node with its calls."""
        return cast("ShownNode", self._call("GET", "/api/nodes/{name}", name=name))

    def trace(self, node: str) -> JsonObject:
        """Return the calls, tools, searches and scores that made a node."""
        return cast("JsonObject", self._call("GET", "/api/nodes/{name}/trace", name=node))

    def tokens(self, node: str, top: int = 5) -> Json:
        """Return the tokens of the answers that made a node."""
        return self._call("GET", "/api/nodes/{name}/tokens", query={"top": top}, name=node)

    def tree(self) -> list[NodeEntry]:
        """Return all histories that names point to."""
        return cast("list[NodeEntry]", self._call("GET", "/api/tree"))

    def diff(self, before: str, after: str) -> Difference:
        """Return what differs between two places."""
        return cast("Difference", self._call("GET", "/api/diff", query={"before": before, "after": after}))

    def cost(self, by: Literal["app", "model", "day", "session"] = "session") -> list[CostEntry]:
        """Return the bill."""
        return cast("list[CostEntry]", self._call("GET", "/api/cost", query={"by": by}))

    def apps(self) -> list[AppEntry]:
        """List the served apps with their parameters."""
        return cast("list[AppEntry]", self._call("GET", "/api/apps"))

    def events(self, run: str, after: int = -1) -> Iterator[tuple[str, JsonObject]]:
        """Follow a run from its first event, or from behind one: yield the kind of each event, and its data."""
        path = f"/api/runs/{quote(run, safe='')}/events"
        with self._http.stream("GET", path, headers={"last-event-id": str(after)}) as response:
            _check(response)
            kind = ""
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)

    def cancel(self, run: str) -> Cancelled:
        """Stop a run."""
        return cast("Cancelled", self._call("POST", "/api/runs/{name}/cancel", name=run))

    def indexes(self) -> list[IndexEntry]:
        """List the indexes."""
        return cast("list[IndexEntry]", self._call("GET", "/api/indexes"))

    def create_index(self, name: str, language: str | None = None) -> IndexEntry:
        """Create an index for uploads."""
        return cast("IndexEntry", self._call("POST", "/api/indexes", {"name": name, "language": language}))

    def index(self, name: str) -> ShownIndex:
        """Return an index with its documents."""
        return cast("ShownIndex", self._call("GET", "/api/indexes/{name}", name=name))

    def delete_index(self, name: str) -> Deleted:
        """Delete an index."""
        return cast("Deleted", self._call("DELETE", "/api/indexes/{name}", name=name))

    def refresh(self, name: str) -> IndexRunStarted:
        """Read what changed in the folder of an index; see `events`."""
        return cast("IndexRunStarted", self._call("POST", "/api/indexes/{name}/refresh", {}, name=name))

    def upload(self, index: str, path: str, content: bytes) -> IndexRunStarted:
        """Upload a document, and index it; see `events`."""
        answer = self._send("POST", "/api/indexes/{name}/documents", {"name": index}, {"path": path}, content=content)
        return cast("IndexRunStarted", answer.json())

    def document(self, index: str, path: str, start: int | None = None, end: int | None = None) -> JsonObject:
        """Return the text of a document, whole or around a quotation."""
        query = {"start": start, "end": end}
        answer = self._call("GET", "/api/indexes/{name}/documents/{path}", query=query, name=index, path=path)
        return cast("JsonObject", answer)

    def delete_document(self, index: str, path: str) -> Deleted:
        """Delete an uploaded document."""
        return cast("Deleted", self._call("DELETE", "/api/indexes/{name}/documents/{path}", name=index, path=path))

    def find(self, query: str, index: str | None = None, limit: int = 5) -> FoundPassages:
        """Find the passages that fit a query best, in all indexes or in one."""
        words: Query = {"q": query, "limit": limit}
        if index is None:
            return cast("FoundPassages", self._call("GET", "/api/find", query=words))
        return cast("FoundPassages", self._call("GET", "/api/indexes/{name}/find", query=words, name=index))

    def passage(self, name: str) -> JsonObject:
        """Return a passage by its id, and the text around it."""
        return cast("JsonObject", self._call("GET", "/api/passages/{id}", id=name))

    def persons(self) -> list[PersonEntry]:
        """List the persons."""
        return cast("list[PersonEntry]", self._call("GET", "/api/persons"))

    def person(self, name: str) -> Person:
        """Return a person."""
        return cast("Person", self._call("GET", "/api/persons/{name}", name=name))

    def set_person(self, name: str, **values: Unpack[PersonChange]) -> Person:
        """Set facts, language and thresholds of a person."""
        return cast("Person", self._call("POST", "/api/persons/{name}", dict(values), name=name))

    def delete_person(self, name: str) -> Deleted:
        """Delete a person."""
        return cast("Deleted", self._call("DELETE", "/api/persons/{name}", name=name))

    def rate(self, name: str, **rating: Unpack[Rating]) -> Person:
        """Store how a person rates the last turn."""
        return cast("Person", self._call("POST", "/api/persons/{name}/feedback", dict(rating), name=name))

    def forget(self, name: str) -> Person:
        """Delete the feedback of a person."""
        return cast("Person", self._call("DELETE", "/api/persons/{name}/feedback", name=name))

    def _call(
        self, method: str, path: str, body: object = None, /, *, query: Query | None = None, **names: str
    ) -> Json:
        """Send a request to a path of the document, and return the answer."""
        found: Json = self._send(method, path, names, query or {}, body).json()
        return found

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
