"""`taiwa index --embeddings`: an index that is asked by meaning too, where a check shows that it helps."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Taiwa
from tests.flows.ask.scored import written
from tests.peers.embedder import EmbeddingServer


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "handbook"
    made.mkdir()
    (made / "leave.md").write_text("ten days of vacation for everybody")
    (made / "pay.md").write_text("the wage is paid in May")
    (made / "trip.md").write_text("journey by rail")
    return made


def test_both_rankings_are_fused_until_embeddings_are_off(taiwa: Taiwa, folder: Path, server: EmbeddingServer) -> None:
    taiwa.ok("index", str(folder))
    assert taiwa.ok("find", "holiday", "--json").json == []

    result = taiwa.ok("index", "handbook", "--embeddings", f"{server.base_url}#topics")

    assert result.lines[1].startswith("embeddings: topics@127.0.0.1:")
    assert "3 vectors (3 new), from http://127.0.0.1:" in result.lines[1]
    assert [row["path"] for row in taiwa.ok("find", "holiday", "--json", "-k", "1").json] == ["leave.md"]
    assert taiwa.ok("find", "holiday", "-k", "1").lines[0].startswith("1. leave.md  0.0")
    assert "vectors" not in taiwa.ok("index", "show", "handbook").out
    assert taiwa.ok("index", "show", "handbook", "--all", "--json").json["embeddings"]["vectors"] == 3
    assert taiwa.ok("index", "handbook", "--json").json["vectors_made"] == 0
    assert taiwa.ok("index", "handbook", "--embeddings", "off", "--json").json["embeddings"] is None
    assert taiwa.ok("find", "holiday", "--json").json == []


def test_only_what_is_new_is_embedded(taiwa: Taiwa, folder: Path, server: EmbeddingServer) -> None:
    taiwa.ok("index", str(folder), "--embeddings", server.base_url)
    server.asked.clear()
    (folder / "new.md").write_text("holidays by train")

    assert taiwa.ok("index", str(folder), "--json").json["vectors_made"] == 1
    assert [text for text in server.texts if "train" in text] == ["holidays by train"]
    assert "the wage is paid in May" not in server.texts
    (folder / "newer.md").write_text("another vacation")
    found = taiwa.ok("find", "holiday", "--in", str(folder), "--json").json
    assert "newer.md" in [row["path"] for row in found]


def test_an_endpoint_that_fails_leaves_documents_indexed_and_questions_answered(
    taiwa: Taiwa, folder: Path, server: EmbeddingServer
) -> None:
    taiwa.ok("index", str(folder), "--embeddings", server.base_url)
    (folder / "new.md").write_text("a rule about umbrellas")
    server.status = 401

    failed = taiwa("index", str(folder))
    found = taiwa.ok("find", "umbrellas")

    assert failed.code == 1
    assert failed.lines[0].startswith("handbook: 4 documents")
    assert "does not accept the key" in failed.err
    assert found.lines[0].startswith("1. new.md")
    assert "found by words alone, as its embedder fails" in found.err
    asked = taiwa("ask", "umbrellas", "--in", "handbook")
    assert "found by words alone, as its embedder fails" in asked.err
    assert "umbrellas" in asked.out


def test_another_model_behind_the_address_has_its_vectors_made_anew(
    taiwa: Taiwa, folder: Path, server: EmbeddingServer
) -> None:
    taiwa.ok("index", str(folder), "--embeddings", server.base_url)
    server.turned = True

    assert "is not the model of the stored vectors" in taiwa.ok("find", "wage").err
    again = taiwa.ok("index", str(folder), "--json").json
    assert (again["vectors_made"], again["embeddings"]["vectors"]) == (3, 3)
    assert "another model" not in taiwa.ok("find", "wage").err


def test_ask_looks_by_meaning_too(taiwa: Taiwa, folder: Path, server: EmbeddingServer) -> None:
    taiwa.ok("index", str(folder), "--embeddings", server.base_url)

    taiwa("ask", "holiday", "--in", "handbook", "--policy", "never", "--json")

    assert "holiday" in server.texts


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--embeddings", "no/such"), "folder no/such not found"),
        (("--embeddings", "{folder}"), "is .* the folder of a sentence model"),
        (("--embeddings", ""), "--embeddings requires the folder of a model"),
        (("--embeddings", "anthropic:claude-x"), "does not offer embeddings"),
    ],
)
def test_an_invalid_embedder_is_refused_before_any_document_is_read(
    taiwa: Taiwa, folder: Path, arguments: tuple[str, ...], expected: str
) -> None:
    result = taiwa("index", str(folder), *(each.format(folder=folder) for each in arguments))

    assert result.code == 2
    assert result.out == ""
    assert re.search(expected, result.err)
    assert taiwa.ok("index", "list", "--json").json == []


def test_the_article_s_policy_searches_the_chunks_by_their_vectors(
    taiwa: Taiwa, folder: Path, server: EmbeddingServer, model_server: ModelServer
) -> None:
    model_server(written(1, 5, 5, 1, 5), "Ten days.")
    taiwa.ok("index", str(folder), "--embeddings", f"{server.base_url}#topics")

    found = taiwa("ask", "holiday", "--in", "handbook", "--policy", "article", "--json").json

    assert (found["policy"], found["passages"][0]["path"]) == ("article", "leave.md")
    assert "holiday" not in (folder / "leave.md").read_text()


def test_a_server_of_several_models_asks_for_the_name(taiwa: Taiwa, folder: Path, server: EmbeddingServer) -> None:
    server.models = ["a", "b"]

    assert "name one" in taiwa("index", str(folder), "--embeddings", server.base_url).err
