"""`file_search` of Responses over an index, with openai-python, and the vector stores that indexes are."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any, NamedTuple

import pytest

from taiwa.kernel.attachments import Attachment
from taiwa.retrieval import Index
from taiwa.server.wires import vector_stores
from taiwa.server.wires.documents import Documents
from taiwa.store.server_records import Caller
from tests.lazily import Lazily
from tests.server.serving import KEY, Serving, serving

openai: Any = Lazily("openai")

GUIDE = """# Paid leave

Everybody has ten days of paid leave in a year.

# Travel

Trains are booked by the office in Galway.
"""
QUESTION = "how many days of paid leave does everybody have"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server with one index, whose answers are quotations."""
    store = str(tmp_path_factory.mktemp("search") / "store.db")
    with serving(quotes=True, store=store) as started:
        parts = {"files": ("hr/leave.md", GUIDE)}
        run = started.client.post("/api/indexes/handbook/documents", files=parts).json()["run"]
        started.client.get(f"/api/runs/{run}/events")
        yield started


@pytest.fixture
def client(server: Serving) -> Iterator[Any]:
    with openai.OpenAI(base_url=server.url, api_key=KEY, max_retries=0) as made:
        yield made


class Teas(NamedTuple):
    """A vector store of four files, three of them with attributes."""

    client: Any
    store: str
    files: list[str]


@pytest.fixture(scope="module")
def teas(server: Serving) -> Iterator[Teas]:
    known: list[Any] = [
        {"year": 2024, "region": "de"},
        {"year": 2025, "region": "jp"},
        {"year": 2026, "region": "cn", "draft": True},
        {},
    ]
    with openai.OpenAI(base_url=server.url, api_key=KEY, max_retries=0) as client:
        files = [
            client.files.create(
                file=(f"tea{number}.md", f"# Tea {number}\n\nGreen tea {number} is good.".encode()),
                purpose="assistants",
            ).id
            for number in range(len(known))
        ]
        store = client.vector_stores.create(name="filtered").id
        pairs: Any = [{"file_id": file, "attributes": each} for file, each in zip(files, known, strict=True)]
        client.vector_stores.file_batches.create_and_poll(store, files=pairs, poll_interval_ms=5)
        yield Teas(client, store, files)


TOOL: Any = {"type": "file_search", "vector_store_ids": ["handbook"]}


def test_an_answer_cites_the_files_that_were_searched(client: Any) -> None:
    include: Any = ["file_search_call.results"]
    response = client.responses.create(model="ask", input=QUESTION, tools=[TOOL], include=include)

    call, message = response.output
    assert call.type == "file_search_call"
    assert message.type == "message"
    assert (call.status, bool(call.queries)) == ("completed", True)
    assert call.results
    assert (call.results[0].filename, "ten days" in str(call.results[0].text)) == ("hr/leave.md", True)
    assert 0 < float(call.results[0].score or 0) < 1
    (part,) = message.content
    assert part.type == "output_text"
    (annotation,) = part.annotations
    assert annotation.type == "file_citation"
    assert annotation.filename == "hr/leave.md"
    assert part.text[annotation.index :].startswith("[1]")
    assert client.files.retrieve(annotation.file_id).filename == "hr/leave.md"
    assert client.responses.retrieve(response.id).output == response.output


def test_results_are_shown_only_if_they_are_asked_for(client: Any) -> None:
    call = client.responses.create(model="ask", input=QUESTION, tools=[TOOL]).output[0]
    assert call.type == "file_search_call"
    assert call.results is None


def test_a_stream_announces_the_search_before_the_text(client: Any) -> None:
    events = list(client.responses.create(model="ask", input=QUESTION, tools=[TOOL], stream=True))
    kinds = [each.type for each in events]

    assert kinds[:5] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
    ]
    assert "response.output_text.annotation.added" in kinds
    assert [each.sequence_number for each in events] == list(range(len(events)))
    done: Any = events[-1]
    assert done.type == "response.completed"
    assert [item.type for item in done.response.output] == ["file_search_call", "message"]
    again = list(client.responses.retrieve(done.response.id, stream=True))
    assert [each.type for each in again] == kinds
    with client.responses.stream(model="ask", input=QUESTION, tools=[TOOL]) as stream:
        assert "ten days" in stream.get_final_response().output_text


def test_a_conversation_goes_on_with_a_search(client: Any) -> None:
    first = client.responses.create(model="ask", input=QUESTION, tools=[TOOL])
    second = client.responses.create(model="ask", input="who books trains", tools=[TOOL], previous_response_id=first.id)
    assert "booked by the office in Galway" in second.output_text


def test_indexes_are_vector_stores(client: Any) -> None:
    (store,) = client.vector_stores.list()
    assert (store.id, store.name, store.file_counts.completed) == ("handbook", "handbook", 1)
    assert client.vector_stores.retrieve("handbook").status == "completed"
    (file,) = client.vector_stores.files.list("handbook")
    assert file.status == "completed"
    found = client.vector_stores.search("handbook", query="paid leave", max_num_results=1)
    (hit,) = found.data
    assert (hit.filename, hit.file_id) == ("hr/leave.md", file.id)
    assert "ten days" in hit.content[0].text


@pytest.mark.parametrize(
    ("tools", "status"),
    [
        ([{"type": "file_search", "vector_store_ids": ["nowhere"]}], 404),
        ([{"type": "file_search", "vector_store_ids": ["/etc"]}], 404),
        ([{"type": "file_search", "vector_store_ids": []}], 400),
        ([{"type": "file_search"}], 400),
        ([{"type": "file_search", "vector_store_ids": [3]}], 400),
        ([{**TOOL, "max_num_results": 0}], 400),
        ([TOOL, TOOL], 400),
        ([TOOL, {"type": "function", "name": "f", "parameters": {}}], 400),
        ([{"type": "web_search"}], 400),
    ],
)
def test_a_search_that_cannot_be_done_is_refused(server: Serving, tools: list[Any], status: int) -> None:
    response = server.client.post("/v1/responses", json={"model": "ask", "input": "hi", "tools": tools})

    assert response.status_code == status, response.text
    assert response.json()["error"]["message"]


def test_a_file_is_kept_listed_read_and_deleted(client: Any) -> None:
    made = client.files.create(file=("notes/tea.md", b"# Tea"), purpose="assistants")
    picture = client.files.create(file=("a.png", b"\x89PNG"), purpose="vision")
    assert (made.filename, made.bytes, made.purpose, made.status) == ("tea.md", 5, "assistants", "processed")
    assert [each.id for each in client.files.list()] == [picture.id, made.id]
    assert [each.id for each in client.files.list(purpose="assistants")] == [made.id]
    assert client.files.retrieve(made.id) == made
    assert client.files.content(made.id).read() == b"# Tea"
    assert client.files.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.content(made.id)
    with pytest.raises(openai.BadRequestError, match="purpose"):
        client.files.create(file=("a", b"a"), purpose="other")  # type: ignore[arg-type]


def test_a_file_that_is_read_while_files_are_listed_is_one_of_them(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = vector_stores._waiting

    def when_all_is_read(documents: Documents, index: Index) -> set[str]:
        while found := waiting(documents, index):
            sleep(0.01)
        return found

    monkeypatch.setattr(vector_stores, "_waiting", when_all_is_read)
    store = client.vector_stores.create(name="listed")
    file = client.files.create(file=("tea.md", b"# Tea"), purpose="assistants")

    assert client.vector_stores.files.create(store.id, file_id=file.id).status == "completed"


def test_files_are_attached_to_a_store_searched_by_their_attributes_and_cited(client: Any) -> None:
    store = client.vector_stores.create(name="teas", metadata={"a": "b"})
    assert (store.id, store.name, store.metadata, store.file_counts.total) == ("teas", "teas", {"a": "b"}, 0)
    assert client.vector_stores.create(name="teas").id.startswith("vs_")
    files = [
        client.files.create(
            file=("tea.md", f"# Tea of {year}\n\nThe tea of {year} is green.\n".encode()), purpose="assistants"
        )
        for year in (2024, 2025)
    ]
    for file, year in zip(files, (2024, 2025), strict=True):
        done = client.vector_stores.files.create_and_poll(
            file.id, vector_store_id=store.id, attributes={"year": year}, poll_interval_ms=5
        )
        assert (done.id, done.status, done.attributes) == (file.id, "completed", {"year": year})
    later: Any = {"type": "and", "filters": [{"type": "gt", "key": "year", "value": 2024}]}
    (hit,) = client.vector_stores.search(store.id, query="green tea", filters=later).data
    assert (hit.file_id, hit.filename, hit.attributes) == (files[1].id, "tea.md", {"year": 2025})
    assert len(client.vector_stores.search(store.id, query="green tea").data) == 2
    changed = client.vector_stores.files.update(files[0].id, vector_store_id=store.id, attributes={"year": 2026})
    assert changed.attributes == {"year": 2026}
    found = client.vector_stores.search(store.id, query="green tea", filters=later).data
    assert sorted(each.attributes["year"] for each in found if each.attributes) == [2025, 2026]
    (text,) = client.vector_stores.files.content(files[0].id, vector_store_id=store.id).data
    assert "The tea of 2024 is green." in str(text.text)
    tool: Any = {"type": "file_search", "vector_store_ids": [store.id]}
    message = client.responses.create(model="ask", input="Is the tea of 2025 green?", tools=[tool]).output[1]
    assert message.type == "message"
    assert message.content[0].type == "output_text"
    assert {each.file_id for each in message.content[0].annotations if each.type == "file_citation"} <= {
        file.id for file in files
    }
    assert client.vector_stores.files.delete(files[0].id, vector_store_id=store.id).deleted
    assert [each.id for each in client.vector_stores.files.list(store.id)] == [files[1].id]
    assert client.vector_stores.update(store.id, name="Teas").name == "Teas"
    batch = client.vector_stores.file_batches.create_and_poll(
        store.id, file_ids=[file.id for file in files], poll_interval_ms=5
    )
    assert (batch.status, batch.file_counts.completed) == ("completed", 2)
    assert client.vector_stores.delete(store.id).deleted
    assert client.files.retrieve(files[0].id).filename == "tea.md"


def test_a_result_has_the_attributes_that_its_file_has_in_the_store_where_it_was_found(server: Serving) -> None:
    server.repository.store.callers.add(Caller("ann"), "key-of-ann")
    with openai.OpenAI(base_url=server.url, api_key="key-of-ann", max_retries=0) as client:
        content = b"# Oolong\n\nOolong tea is half fermented.\n"
        file = client.files.create(file=("oolong.md", content), purpose="assistants").id
        for name in ("one", "two"):
            store = client.vector_stores.create(name=name).id
            files = client.vector_stores.files
            files.create_and_poll(file, vector_store_id=store, attributes={"of": name}, poll_interval_ms=5)

        def found(stores: Any) -> list[Any]:
            tool: Any = {"type": "file_search", "vector_store_ids": stores}
            include: Any = ["file_search_call.results"]
            call, message = client.responses.create(
                model="ask", input="is oolong tea fermented", tools=[tool], include=include
            ).output
            assert call.type == "file_search_call"
            assert message.type == "message"
            assert message.content[0].type == "output_text"
            assert {each.file_id for each in message.content[0].annotations if each.type == "file_citation"} == {file}
            assert {each.file_id for each in call.results or []} == {file}
            return [(each.attributes or {}).get("of") for each in call.results or []]

        for alike in (["one"], ["one@ann"], ["one", "one@ann"]):
            assert found(alike) == ["one"]
        assert found(["one", "two"]) == ["one", "two"]
        assert found(["two@ann", "one"]) == ["two", "one"]


WRONG_FILTERS = [
    ("year", "filters must be an object"),
    ({"key": "year", "value": 1}, "missing required parameter: 'filters.type'"),
    ({"type": "like", "key": "year", "value": 1}, "unknown filters.type 'like'"),
    ({"type": "eq", "value": 1}, "missing required parameter: 'filters.key'"),
    ({"type": "eq", "key": "year"}, "missing required parameter: 'filters.value'"),
    ({"type": "eq", "key": "year", "value": [1]}, "filters.value must be a string, a number or a boolean"),
    ({"type": "gt", "key": "year", "value": True}, "filters.value must be a string or a number"),
    ({"type": "in", "key": "year", "value": 1}, "filters.value must be an array"),
    ({"type": "in", "key": "year", "value": [1, None]}, "filters.value[1] must be a string, a number or a boolean"),
    ({"type": "eq", "key": "year", "value": 1, "x": 1}, "unknown parameter: 'filters.x'"),
    ({"type": "and", "filters": []}, "filters.filters must have from 1 to 100 filters"),
    ({"type": "or", "filters": [{"type": "eq"}]}, "missing required parameter: 'filters.filters[0].key'"),
    (
        json.loads('{"type": "and", "filters": [' * 9 + '{"type": "eq", "key": "a", "value": 1}' + "]}" * 9),
        "nested more than 8 deep",
    ),
]


@pytest.mark.parametrize(("filters", "problem"), WRONG_FILTERS)
def test_a_filter_that_cannot_be_read_is_refused_by_both_searches(server: Serving, filters: Any, problem: str) -> None:
    tool = {**TOOL, "filters": filters}
    answers = [
        server.client.post("/v1/responses", json={"model": "ask", "input": "hi", "tools": [tool]}),
        server.client.post("/v1/vector_stores/handbook/search", json={"query": "leave", "filters": filters}),
    ]
    for answer in answers:
        error = answer.json()["error"]
        assert (answer.status_code, error["type"], error["code"] is None) == (400, "invalid_request_error", False)
        assert problem in error["message"].replace("tools[0].filters", "filters")


@pytest.mark.parametrize(
    ("filters", "years"),
    [
        ({"type": "eq", "key": "year", "value": 2024}, {2024}),
        ({"type": "ne", "key": "year", "value": 2024}, {2025, 2026, None}),
        ({"type": "gt", "key": "year", "value": 2024}, {2025, 2026}),
        ({"type": "gte", "key": "year", "value": 2025.0}, {2025, 2026}),
        ({"type": "lt", "key": "year", "value": 2025}, {2024}),
        ({"type": "lte", "key": "region", "value": "de"}, {2024, 2026}),
        ({"type": "in", "key": "region", "value": ["de", "jp"]}, {2024, 2025}),
        ({"type": "nin", "key": "region", "value": ["de", "jp"]}, {2026, None}),
        ({"type": "eq", "key": "draft", "value": True}, {2026}),
        ({"type": "eq", "key": "draft", "value": 1}, set()),
        ({"type": "eq", "key": "year", "value": "2024"}, set()),
        (
            {
                "type": "or",
                "filters": [
                    {"type": "eq", "key": "region", "value": "jp"},
                    {
                        "type": "and",
                        "filters": [
                            {"type": "gt", "key": "year", "value": 2024},
                            {"type": "eq", "key": "draft", "value": True},
                        ],
                    },
                ],
            },
            {2025, 2026},
        ),
    ],
)
def test_file_search_finds_only_in_files_whose_attributes_fit(teas: Teas, filters: Any, years: set[int | None]) -> None:
    tool: Any = {"type": "file_search", "vector_store_ids": [teas.store], "filters": filters}
    include: Any = ["file_search_call.results"]
    call, message = teas.client.responses.create(
        model="ask", input="is the green tea of the year good", tools=[tool], include=include
    ).output
    assert call.type == "file_search_call"
    assert message.type == "message"
    assert message.content[0].type == "output_text"
    shown = {each.filename: each.attributes for each in call.results or []}
    assert {(attributes or {}).get("year") for attributes in shown.values()} <= years
    assert {each.filename for each in message.content[0].annotations if each.type == "file_citation"} <= shown.keys()
    assert bool(shown) == bool(years)
    found = teas.client.vector_stores.search(teas.store, query="green tea", filters=filters).data
    assert {(each.attributes or {}).get("year") for each in found} == years


def test_a_filter_is_one_of_a_request_and_changes_no_app_without_it(teas: Teas, server: Serving) -> None:
    def apps(**more: Any) -> list[str]:
        tool: Any = {"type": "file_search", "vector_store_ids": [teas.store], **more}
        unfiltered: Any = {**tool, "filters": None}
        first = teas.client.responses.create(model="ask", input="green tea", tools=[tool])
        later = teas.client.responses.create(
            model="ask", input="green tea", previous_response_id=first.id, tools=[unfiltered]
        )
        nodes = [server.repository.store.served.find(each.id) for each in (first, later)]
        return [server.repository.store.nodes.get(each.node).app for each in nodes if each is not None and each.node]

    plain = apps()
    assert apps(filters={"type": "gt", "key": "year", "value": 2024})[1:] == plain[1:]
    assert apps(filters={"type": "gt", "key": "year", "value": 2024})[0] != plain[0]


def test_attributes_that_are_set_at_the_same_time_are_all_kept(teas: Teas) -> None:
    files = teas.client.vector_stores.files

    def change(number: int) -> None:
        known: Any = files.retrieve(teas.files[number], vector_store_id=teas.store).attributes
        files.update(teas.files[number], vector_store_id=teas.store, attributes={**(known or {}), "seen": number})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(4)))

    found = {each.id: each.attributes for each in files.list(teas.store)}
    assert [(found[file] or {}).get("seen") for file in teas.files] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({str(number): 1 for number in range(17)}, "attributes has more than 16 entries"),
        ({"a": ["b"]}, "attributes.a must be a string, a number or a boolean"),
        ({"a": None}, "attributes.a must be a string, a number or a boolean"),
        ({"a" * 65: 1}, "a key has at most 64 characters"),
        ({"a": "b" * 513}, "a value 512"),
    ],
)
def test_attributes_that_cannot_be_kept_are_refused(teas: Teas, attributes: Any, problem: str) -> None:
    with pytest.raises(openai.BadRequestError, match=problem):
        teas.client.vector_stores.files.update(teas.files[0], vector_store_id=teas.store, attributes=attributes)


@pytest.fixture
def scripted() -> Iterator[Serving]:
    with serving("One.", "Two.") as started:
        yield started


def test_a_message_names_a_file_by_its_id(scripted: Serving) -> None:
    server, client = scripted, openai.OpenAI(base_url=scripted.url, api_key=KEY, max_retries=0)
    file = client.files.create(file=("tea.txt", b"green"), purpose="user_data").id
    part: Any = {"type": "input_file", "file_id": file}
    client.responses.create(model="scripted", input=[{"role": "user", "content": [part]}])
    assert [each.name for each in attachments(server)] == ["tea.txt"]
    inner: Any = {"type": "file", "file": {"file_id": file}}
    client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": [inner]}])
    assert [each.name for each in attachments(server)] == ["tea.txt"]
    part["file_id"] = "file-nothing"
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="scripted", input=[{"role": "user", "content": [part]}])


def attachments(server: Serving) -> list[Attachment]:
    """The files of the last message that the scripted model read."""
    return [part for part in server.model.requests[-1].messages[-1].parts if isinstance(part, Attachment)]


@pytest.mark.parametrize(
    "path",
    ["vector_stores/nowhere", "files/file-x", "files/%00", "files/file-Li4vLi4vZXRj", "vector_stores/nowhere/files"],
)
def test_a_forged_id_does_not_exist(server: Serving, path: str) -> None:
    assert server.client.get(f"/v1/{path}").status_code == 404


def test_an_app_that_does_something_else_is_not_searched_with(server: Serving) -> None:
    body = {"model": "order", "input": "hi", "tools": [TOOL]}
    assert server.client.post("/v1/responses", json=body).status_code == 400
