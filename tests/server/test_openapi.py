"""The OpenAPI document of the server's own API: every route is in it, real answers fit it, and the client has all of it."""

import inspect
import os
import re
from collections.abc import Iterator
from typing import Any, cast, get_type_hints
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Usage
from taiwa.models.scripted import scripted_model
from taiwa.server.serve import WIRES
from taiwa.server.wire_interface import OWN, PARAMETER, api_routes, document
from tests.server.api_client import ApiClient
from tests.server.serving import KEY, Serving, serving

DOCUMENT = document(WIRES)
OPERATIONS = {(method.upper(), path) for path, each in DOCUMENT["paths"].items() for method in each}
STREAMS = {("GET", "/api/runs/{name}/events"), ("GET", "/api/events")}


class CheckedClient(ApiClient):
    """A client that compares every answer with the document."""

    def _call(
        self, kind: Any, method: str, path: str, body: object = None, /, *, query: Any = None, **names: str
    ) -> Any:
        answer = super()._call(kind, method, path, body, query=query, **names)
        described = DOCUMENT["paths"][path][method.lower()]
        (status,) = set(described["responses"]) - {"default"}
        check(described["responses"][status]["content"]["application/json"]["schema"], answer)
        if body is not None:
            given = {name: each for name, each in cast("dict[str, object]", body).items() if each is not None}
            check(described["requestBody"]["content"]["application/json"]["schema"], given)
        return answer


def check(schema: dict[str, Any], value: object) -> None:
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(value)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    store = str(tmp_path_factory.mktemp("served") / "store.db")
    answers = [f'Answer {n}\n@@delta\n{{"topics": ["tea {n}"], "summary": "about tea"}}' for n in range(9)]
    with serving(model=scripted_model(*answers, usage=Usage(9, 3)), store=store) as started:
        yield started


@pytest.fixture
def client(served: Serving) -> Iterator[CheckedClient]:
    with CheckedClient(served.server.url, KEY) as opened:
        yield opened


def test_every_route_of_the_api_is_described() -> None:
    routes = {(method, PARAMETER.sub(r"{\1}", route.path)) for route in api_routes(WIRES) for method in route.methods}

    assert routes == OPERATIONS
    assert {wire.name for wire in WIRES if any("/api/" in route.path for route in wire.routes)} - OWN == {"ollama"}


def test_the_document_is_served_and_its_schemas_are_valid(served: Serving) -> None:
    assert served.client.get("/api/openapi.json").json() == DOCUMENT
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_the_client_has_a_method_for_every_operation_with_the_type_of_its_answer() -> None:
    found: dict[tuple[str, str], set[Any]] = {}
    for _, method in inspect.getmembers(ApiClient, inspect.isfunction):
        source, hints = inspect.getsource(method), get_type_hints(method)
        for verb, path in re.findall(r'self\._(?:call|send)\(\s*(?:[\w.\[\]]+, )?"(\w+)",\s*"(/api/[^"]+)"', source):
            found.setdefault((verb, path), set()).add(str(hints["return"]))
    for stream in STREAMS:
        found.setdefault(stream, set()).add(str(str))
    described = {
        (method, PARAMETER.sub(r"{\1}", route.path)): route.api.answer
        for route in api_routes(WIRES) if route.api is not None for method in route.methods
    }  # fmt: skip

    assert found.keys() == OPERATIONS
    del found["GET", "/api/conversations"]  # two methods: a list, and what was found
    wrong = {each: (types, described[each]) for each, types in found.items() if types != {str(described[each])}}
    assert {each for each in wrong if "Json" not in str(wrong[each])} == set()


def test_a_conversation_through_the_client_fits_the_document(client: CheckedClient) -> None:
    started = client.begin(app="chat", text="one", name="talk")
    assert [kind for kind, _ in client.events(started["run"])][-2:] == ["turn", "end"]
    run = client.say("talk", text="two")["run"]
    *_, (_, turn), _ = client.events(run)
    node = str(turn["node"])
    assert client.cancel(run) == {"cancelled": True}
    assert [entry["user"] for entry in client.history("talk")][-2:] == ["one", "two"]
    assert client.conversations()[0]["session"] == "talk"
    assert client.search("two")[0]["sessions"] == ["talk"]
    assert client.node(node)["calls"][0]["input_tokens"] == 9
    assert client.undo("talk")["node"] != client.redo("talk")["node"] == node
    assert client.fork("talk", "other")["node"] == node
    assert client.rename("other", "another") == {"session": "another"}
    assert client.state("talk")["state"] == client.state("talk", node)["state"]
    assert client.why("talk", "summary")["node"]
    assert client.end("talk", node) == {"node": node}
    assert client.verify("talk")["verified"]
    assert client.question("talk")["ask"] is None
    assert client.waiting("talk") == {"id": "", "calls": []}
    assert client.estimate("talk", 1)["following"] == 1
    assert client.set_state("another", "summary", "about coffee")["state"]["summary"] == "about coffee"
    assert client.diff("talk", "another")["state"][0]["path"] == "summary"
    assert client.rewrite("another", "zwei", 2)["session"] == "another"
    assert {entry["node"] for entry in client.tree()} >= {node}
    assert client.cost()[0]["requests"] == 2
    assert client.trace(node)
    assert client.export("talk", "md").count("Answer") == 2
    assert {app["name"] for app in client.apps()} > {"chat", "plain"}
    again = client.import_file(client.export("talk", "jsonl"))
    assert (again["sessions"], again["trusted"]) == (["talk"], True)
    assert client.delete("another") == {"deleted": "another"}
    with pytest.raises(InputError, match="conversation 'nothing' not found"):
        client.history("nothing")


def test_documents_and_persons_through_the_client_fit_the_document(client: CheckedClient) -> None:
    assert client.indexes() == []
    assert client.create_index("notes")["documents"] == 0
    run = client.upload("notes", "tea.md", b"# Tea\n\nGreen tea is steeped for two minutes.\n")["run"]
    assert [kind for kind, _ in client.events(run)][-1] == "end"
    assert client.index("notes")["documents"] == 1
    passage = client.find("green tea")["passages"][0]
    assert client.find("green tea", "notes")["passages"][0]["id"] == passage["id"]
    assert "Green tea" in str(client.passage(str(passage["id"]))["text"])
    assert "Green tea" in str(client.document("notes", "tea.md")["text"])
    list(client.events(client.refresh("notes")["run"]))
    assert client.delete_document("notes", "tea.md")["deleted"] == "tea.md"
    assert client.delete_index("notes")["deleted"]
    assert client.set_person("ann", facts={"floor": "3"})["facts"] == {"floor": "3"}
    assert client.rate("ann", verdict="good")["feedback"] == {"good": 1}
    assert client.forget("ann")["feedback"] == {}
    assert [person["user"] for person in client.persons()] == ["ann"]
    assert client.person("ann")["user"] == "ann"
    assert client.delete_person("ann") == {"deleted": "ann"}


TEXTS = st.text(max_size=12) | st.sampled_from(
    ["talk", "plain", "talk~1", "a" * 300, "../..", "%2f", "@", "0" * 32, "-1", "1e9"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
PATHS = st.sampled_from(sorted(OPERATIONS - STREAMS))
PARTS = st.text("abcdefgh-_.~ é東%/?#", min_size=1, max_size=10) | st.sampled_from(["talk", "0" * 32, "notes"])


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, dict[str, str], Any]:
    """A request of the document: its parameters and its body, mostly of the described names, and of any values."""
    method, path = draw(PATHS)
    described = DOCUMENT["paths"][path][method.lower()]
    for name in re.findall(r"\{(\w+)\}", path):
        path = path.replace(f"{{{name}}}", quote(draw(PARTS), safe=""))
    names = [each["name"] for each in described.get("parameters", ()) if each["in"] == "query"]
    query = {name: draw(TEXTS | st.integers(-9, 1200).map(str)) for name in names if draw(st.booleans())}
    content = described.get("requestBody", {}).get("content", {}).get("application/json")
    body: Any = None
    if content is not None:
        schema = DOCUMENT["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        body = {name: draw(VALUES) for name in schema["properties"] if draw(st.booleans())}
        body = draw(st.just(body) | VALUES)
    return method, path, query, body


def described_body(method: str, url: str) -> dict[str, Any]:
    """The schema of the body of a request; an empty one if it has none."""
    forms = {re.sub(r"\{\w+\}", "[^/]+", path): path for verb, path in OPERATIONS if verb == method}
    path = next(path for form, path in forms.items() if re.fullmatch(form, url))
    content = DOCUMENT["paths"][path][method.lower()].get("requestBody", {}).get("content", {})
    return cast("dict[str, Any]", content.get("application/json", {}).get("schema", {}))


@pytest.mark.parametrize(
    "query", ["state?node=nothing", "why?path=topics&node=nothing", "end?node=nothing", "estimate?turn=9"]
)
def test_what_does_not_exist_is_not_found(client: CheckedClient, served: Serving, query: str) -> None:
    refused = served.client.post("/api/conversations", json={"app": "chat", "name": "lone"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "text")
    client.begin(app="chat", text="Hi", name="lone")
    found = served.client.get(f"/api/conversations/lone/{query}")
    client.delete("lone")

    assert (found.status_code, found.json()["error"]["type"]) == (404, "not_found_error")


@settings(max_examples=int(os.environ.get("EXPLORE_ROUNDS", "10")))  # by `make explore` 2,000, of up to ten requests
@given(st.lists(requests(), min_size=1, max_size=10))
def test_whatever_is_sent_is_answered_as_described(
    served: Serving, sent: list[tuple[str, str, dict[str, str], Any]]
) -> None:
    for method, path, query, body in sent:
        response = served.client.request(method, path, params=query, json=body)
        answer = response.text if "json" not in response.headers["content-type"] else response.json()
        assert response.status_code < 500 or response.status_code == 502, (method, path, query, body, answer)
        if response.status_code >= 400:
            check({"$ref": "#/components/schemas/ErrorAnswer"}, answer)
        elif described := described_body(method, path):
            check(described, body)
