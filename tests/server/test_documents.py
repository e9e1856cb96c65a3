"""Documents over the server: uploads, indexes with progress, passages with near misses, and the text of a citation."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, strategies

from taiwa.kernel.errors import InputError
from taiwa.server.access import BodyLimits, ServerLimits
from taiwa.server.indexing import upload_path, uploads_folder
from tests.server.serving import Serving, serving

Json = dict[str, Any]
HANDBOOK = (
    "# Leave\n\nEmployees in Galway have 25 days of annual leave.\n\n# Travel\n\nTrains are booked by the office.\n"
)
HR = "---\naccess: [group:hr]\n---\n# Pay\n\nThe pay of a director is 9,000 a month.\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with serving("An answer.", store=str(tmp_path / "store.db")) as started:
        yield started


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server with one document, which stays as it is."""
    with serving(store=str(tmp_path_factory.mktemp("filled") / "store.db")) as started:
        uploaded(started, guide_md=HANDBOOK)
        yield started


def upload(server: Serving, index: str, files: dict[str, str | bytes], status: int = 202) -> Json:
    parts = [("files", (name, content)) for name, content in files.items()]
    response = server.client.post(f"/api/indexes/{index}/documents", files=parts)
    assert response.status_code == status, response.text
    found: Json = response.json()
    return found


def events(server: Serving, run: str) -> list[tuple[str, Json]]:
    text = server.client.get(f"/api/runs/{run}/events").text
    fields = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n") if block]
    return [(each["event"], json.loads(each["data"])) for each in fields]


def uploaded(server: Serving, index: str = "handbook", **files: str | bytes) -> Json:
    """Upload documents, `__` for a slash and `_` for a dot in their names, and return the last event of their run."""
    named = {name.replace("__", "/").replace("_", "."): content for name, content in files.items()}
    happened = events(server, upload(server, index, named)["run"])
    assert happened[-1][0] == "end"
    indexed = [data for kind, data in happened if kind == "indexed"]
    assert len(indexed) == 1, happened
    return indexed[0]


def get(server: Serving, path: str, status: int = 200, /, **query: Any) -> Any:
    response = server.client.get(f"/api/{path}", params=query)
    assert response.status_code == status, response.text
    return response.json()


def test_uploaded_documents_are_indexed_and_found(server: Serving) -> None:
    done = uploaded(server, guide_md=HANDBOOK, more__prices_csv="item,price\ntea,3\n")

    assert (done["added"], done["problems"], "folder" in done) == (2, [], False)
    assert [(each["index"], each["documents"], each["uploads"]) for each in get(server, "indexes")] == [
        ("handbook", 2, True)
    ]
    found = get(server, "indexes/handbook/find", q="annual leave in Galway", limit=1)
    (passage,) = found["passages"]
    assert (passage["index"], passage["path"]) == ("handbook", "guide.md")
    assert "25 days" in passage["text"]
    assert passage["score"] > 0
    assert passage["marks"]


def test_progress_is_told_while_documents_are_read(server: Serving) -> None:
    run = upload(server, "handbook", {f"{n}.md": f"# Tea {n}\n" for n in range(5)})["run"]
    happened = events(server, run)

    assert [data["done"] for kind, data in happened if kind == "progress"] == [0, 1, 2, 3, 4, 5]
    again = server.client.get(f"/api/runs/{run}/events", headers={"last-event-id": "3"}).text
    assert again.startswith("id: 4\n")


def test_what_came_next_is_a_near_miss(server: Serving) -> None:
    uploaded(server, **{f"n{n}_md": f"# {n}\n\nThe tea number {n} is green.\n" for n in range(8)})
    found = get(server, "find", q="green tea", limit=2)

    assert [len(found["passages"]), len(found["near_misses"])] == [2, 5]
    scores = [each["score"] for each in (*found["passages"], *found["near_misses"])]
    assert scores == sorted(scores, reverse=True)


def test_a_document_that_cannot_be_read_is_listed_with_the_reason(server: Serving) -> None:
    done = uploaded(server, guide_md=HANDBOOK, broken_pdf=b"%PDF-1.7 nothing")

    assert [each["path"] for each in done["problems"]] == ["broken.pdf"]
    assert done["problems"][0]["why"]
    files = {each["path"]: each for each in get(server, "indexes/handbook")["files"]}
    assert files["broken.pdf"]["problem"] == done["problems"][0]["why"]
    assert files["guide.md"]["problem"] == ""


def test_some_files_of_an_upload_are_refused_and_the_others_indexed(server: Serving) -> None:
    answer = upload(server, "handbook", {"guide.md": HANDBOOK, "virus.exe": b"MZ", "../../up.md": "# Up\n"})

    assert answer["documents"] == ["guide.md"]
    assert [each["path"] for each in answer["refused"]] == ["virus.exe", "../../up.md"]
    events(server, answer["run"])
    assert [each["path"] for each in get(server, "indexes/handbook")["files"]] == ["guide.md"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("", 400),
        ("../up.md", 400),
        ("/etc/../etc/passwd.md", 400),
        ("a/./b.md", 400),
        (".hidden.md", 400),
        (".taiwa-access.yaml", 400),
        ("a/.git/b.md", 400),
        ("node_modules/a.md", 400),
        ("x.exe", 415),
        ("x", 415),
        ("a\x00.md", 400),
        ("a\u202etxt.md", 400),
        ("a\n.md", 400),
        ("é" * 150 + ".md", 400),
        ("a/" * 20 + "b.md", 400),
    ],
)
def test_a_name_that_leads_elsewhere_or_is_not_read_is_refused(filled: Serving, path: str, status: int) -> None:
    folder = uploads_folder(filled.server.state.served.settings)
    before = sorted(folder.parent.rglob("*.md"))
    response = filled.client.post("/api/indexes/handbook/documents", params={"path": path}, content=b"# Tea\n")

    assert response.status_code == status, response.text
    assert response.json()["error"]["message"]
    assert sorted(folder.parent.rglob("*.md")) == before


@given(strategies.text())
def test_an_accepted_name_stays_below_the_folder(name: str) -> None:
    for tried in (name, f"{name}.md", f"a/{name}/b.md", f"..{name}/x.md"):
        try:
            path = upload_path(tried)
        except InputError:
            continue
        assert not path.startswith("/")
        assert not {"", ".", ".."} & set(path.split("/"))
        assert not any(part.startswith(".") for part in path.split("/"))
        assert upload_path(path) == path


def test_the_bytes_of_one_document_can_be_the_body(server: Serving) -> None:
    response = server.client.post(
        "/api/indexes/handbook/documents",
        params={"path": "guide.md"},
        content=HANDBOOK.encode(),
        headers={"content-type": "text/markdown"},
    )
    assert response.status_code == 202, response.text
    assert events(server, response.json()["run"])[-2][1]["added"] == 1


def test_a_citation_opens_its_document_at_the_quotation(server: Serving) -> None:
    uploaded(server, guide_md=HANDBOOK)
    (passage,) = get(server, "find", q="annual leave", limit=1)["passages"]
    start, end = passage["start"], passage["end"]

    opened = get(server, f"passages/{passage['id']}")
    assert opened["text"][opened["start"] - opened["offset"] : opened["end"] - opened["offset"]] == passage["text"]
    assert (opened["index"], opened["path"], opened["heading"]) == ("handbook", "guide.md", ["Leave"])
    whole = get(server, "indexes/handbook/documents/guide.md")
    assert whole["text"][start:end] == passage["text"]
    assert whole["characters"] == len(whole["text"])
    narrow = get(server, "indexes/handbook/documents/guide.md", start=start, end=end, context=0)
    assert (narrow["offset"], narrow["text"]) == (start, passage["text"])


def test_a_changed_document_replaces_the_one_of_its_name(server: Serving) -> None:
    uploaded(server, guide_md=HANDBOOK)
    (old,) = get(server, "find", q="annual leave", limit=1)["passages"]
    done = uploaded(server, guide_md=HANDBOOK.replace("25", "30"))

    assert (done["changed"], done["documents"]) == (1, 1)
    (new,) = get(server, "find", q="annual leave", limit=1)["passages"]
    assert "30 days" in new["text"]
    assert get(server, f"passages/{old['id']}", 404)["error"]["code"] == "passage_not_found"


def test_a_deleted_document_is_found_no_more(server: Serving) -> None:
    uploaded(server, guide_md=HANDBOOK, b__tea_md="# Tea\n\nGreen tea is hot.\n")
    assert server.client.delete("/api/indexes/handbook/documents/b/tea.md").status_code == 200

    assert [each["path"] for each in get(server, "indexes/handbook")["files"]] == ["guide.md"]
    assert get(server, "find", q="green tea")["passages"] == []
    assert server.client.delete("/api/indexes/handbook/documents/b/tea.md").status_code == 404


def test_a_deleted_index_takes_its_uploads_with_it(server: Serving, tmp_path: Path) -> None:
    uploaded(server, guide_md=HANDBOOK)
    assert server.client.delete("/api/indexes/handbook").json() == {"deleted": "handbook"}

    assert get(server, "indexes") == []
    assert list(tmp_path.rglob("guide.md")) == []
    assert uploaded(server, guide_md=HANDBOOK)["added"] == 1


def test_who_may_see_a_document_is_shown_and_asked_for(server: Serving) -> None:
    uploaded(server, guide_md=HANDBOOK, pay_md=HR)

    files = {each["path"]: each["audience"] for each in get(server, "indexes/handbook")["files"]}
    assert files == {"guide.md": [], "pay.md": [["group:hr"]]}
    assert get(server, "find", q="pay of a director")["passages"] == []
    (found,) = get(server, "find", q="pay of a director", **{"as": "group:hr"})["passages"]
    assert found["path"] == "pay.md"
    seen = get(server, "indexes/handbook", **{"as": "group:sales"})["files"]
    assert [each["path"] for each in seen] == ["guide.md"]
    assert get(server, f"passages/{found['id']}")["path"] == "pay.md"
    assert get(server, f"passages/{found['id']}", 404, **{"as": "group:sales"})


def test_documents_of_a_folder_of_the_server_are_read_and_not_changed(server: Serving, tmp_path: Path) -> None:
    from taiwa.operations.documents import IndexOptions, index_folder, open_library

    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(HANDBOOK)
    settings = server.server.state.served.settings
    with open_library(settings) as library:
        list(index_folder(library, settings, IndexOptions(str(folder))))
    shown = get(server, "indexes/docs")
    assert (shown["uploads"], shown["folder"]) == (False, str(folder))
    assert upload(server, "docs", {"new.md": "# New\n"}, 403)["error"]["code"] == "index_read_only"
    assert server.client.delete("/api/indexes/docs/documents/guide.md").status_code == 403
    (folder / "tea.md").write_text("# Tea\n\nGreen tea.\n")
    run = server.client.post("/api/indexes/docs/refresh", json={}).json()["run"]
    assert dict(events(server, run))["indexed"]["added"] == 1
    assert server.client.delete("/api/indexes/docs").status_code == 200
    assert (folder / "guide.md").exists()


def test_only_the_named_indexes_are_served(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with serving(store=store) as first:
        settings = first.server.state.served.settings
        from taiwa.operations.documents import IndexOptions, index_folder, open_library

        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "a.md").write_text(HANDBOOK)
            with open_library(settings) as library:
                list(index_folder(library, settings, IndexOptions(str(tmp_path / name))))
        uploaded(first, "mine", a_md=HANDBOOK)
    with serving(store=store, indexes=("one",)) as served:
        assert [each["index"] for each in get(served, "indexes")] == ["one", "mine"]
        assert get(served, "indexes/two", 404)["error"]["code"] == "index_not_found"
        assert {each["index"] for each in get(served, "find", q="leave")["passages"]} == {"one", "mine"}


def test_an_upload_that_is_too_large_leaves_nothing(tmp_path: Path) -> None:
    with serving(store=str(tmp_path / "store.db"), limits=ServerLimits(upload=BodyLimits(1000, 600.0))) as served:
        parts = {"files": ("a.md", b"x" * 2000)}
        whole = served.client.post("/api/indexes/a/documents", files=parts)

        def pieces() -> Iterator[bytes]:
            yield b"x" * 800
            yield b"x" * 800

        raw = served.client.post("/api/indexes/a/documents", params={"path": "a.md"}, content=pieces())
        assert [whole.status_code, raw.status_code] == [413, 413]
        assert get(served, "indexes") == []
        assert not [each for each in uploads_folder(served.server.state.served.settings).rglob("*") if each.is_file()]


@pytest.mark.parametrize(
    ("method", "path", "more", "status"),
    [
        ("GET", "/api/indexes/nowhere", {}, 404),
        ("DELETE", "/api/indexes/nowhere", {}, 404),
        ("GET", "/api/indexes/nowhere/find?q=tea", {}, 404),
        ("GET", "/api/indexes/handbook/documents/nowhere.md", {}, 404),
        ("GET", "/api/indexes/handbook/documents/..%2F..%2Fstore.db", {}, 404),
        ("DELETE", "/api/indexes/handbook/documents/..%2F..%2Fstore.db", {}, 404),
        ("GET", "/api/indexes/handbook/documents/guide.md?start=x", {}, 400),
        ("GET", "/api/indexes/handbook/documents/guide.md?start=-1", {}, 400),
        ("GET", "/api/passages/12-abcdefabcdef-0", {}, 404),
        ("GET", "/api/passages/%00", {}, 404),
        ("GET", "/api/find", {}, 400),
        ("GET", "/api/find?q=tea&limit=0", {}, 400),
        ("GET", "/api/find?q=tea&in=nowhere", {}, 404),
        ("POST", "/api/indexes", {"json": {"name": "a/b"}}, 400),
        ("POST", "/api/indexes", {"json": {"name": "../a"}}, 400),
        ("POST", "/api/indexes", {"json": {"name": "a@b"}}, 400),
        ("POST", "/api/indexes", {"json": {"name": "é" * 101}}, 400),
        ("POST", "/api/indexes", {"json": {"name": "x", "language": "klingon"}}, 400),
        ("POST", "/api/indexes", {"json": {"name": "handbook"}}, 409),
        ("POST", "/api/indexes", {"json": {"name": "x", "folder": "/etc"}}, 400),
        ("POST", "/api/indexes/handbook/documents", {"files": []}, 400),
        ("POST", "/api/indexes/handbook/documents", {"data": {"a": "b"}}, 400),
        (
            "POST",
            "/api/indexes/handbook/documents",
            {"content": b"--x\r\nnothing", "headers": {"content-type": "multipart/form-data; boundary=x"}},
            400,
        ),
        (
            "POST",
            "/api/indexes/handbook/documents",
            {"content": b"--x\r\nnothing", "headers": {"content-type": "multipart/form-data"}},
            400,
        ),
        ("POST", "/v1/files", {"content": b"# A"}, 415),
        ("POST", "/v1/files", {"json": {"file": "a.md"}}, 415),
    ],
)
def test_bad_input_gets_one_line_and_its_status(
    filled: Serving, method: str, path: str, more: dict[str, Any], status: int
) -> None:
    response = filled.client.request(method, path, **more)

    assert response.status_code == status, response.text
    assert response.json()["error"]["message"]
    assert "Traceback" not in response.text
    assert [each["path"] for each in get(filled, "indexes/handbook")["files"]] == ["guide.md"]


def test_a_page_of_another_origin_cannot_upload(filled: Serving) -> None:
    files = {"files": ("a.md", b"# A\n")}
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        response = filled.client.post("/api/indexes/a/documents", files=files, headers=headers)
        assert response.status_code == 403
    assert httpx.post(f"{filled.server.url}/api/indexes/a/documents", timeout=300, files=files).status_code == 401
    assert [each["index"] for each in get(filled, "indexes")] == ["handbook"]


@pytest.mark.parametrize("folder", [".", "/etc", "../store"])
def test_a_request_cannot_name_a_folder_of_the_server(filled: Serving, folder: str) -> None:
    body = {"app": "ask", "text": "What is there?", "params": {"in": [folder]}}
    response = filled.client.post("/api/conversations", json=body)

    assert response.status_code == 404
    assert response.json()["error"]["message"].startswith(f"index {folder!r} not found")
