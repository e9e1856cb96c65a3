"""`taiwa index --embeddings`: an index that is asked by meaning too, where a check shows that it helps."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from taiwa.retrieval import Library
from taiwa.retrieval.types import PassageFeedback
from tests.cli.conftest import ModelServer, Place, Taiwa
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


def helped(place: Place) -> None:
    """Questions of people whose words stand in no document."""
    with Library.open(place.store.with_name("taiwa-library.db")) as library:
        index = library.index("handbook")
        right = {each.source: each.id for each in index.find("vacation wage journey", 9)}
        for number in range(24):
            word, source = (("holiday", "leave.md"), ("salary", "pay.md"), ("train", "trip.md"))[number % 3]
            index.add_feedback(PassageFeedback(f"{word} {number}", right[source], True))


def test_a_gain_on_what_people_asked_switches_it_on(
    taiwa: Taiwa, place: Place, folder: Path, server: EmbeddingServer
) -> None:
    taiwa.ok("index", str(folder))
    assert taiwa.ok("find", "holiday", "--json").json == []
    helped(place)

    result = taiwa.ok("index", "handbook", "--embeddings", f"{server.base_url}#topics")

    assert result.lines[1].startswith("embeddings: topics@127.0.0.1:")
    assert "3 vectors (3 new), from http://127.0.0.1:" in result.lines[1]
    assert result.lines[2].startswith("fused: nDCG@10 0.000 by words, ")
    assert "on 24 questions of users: a gain (+" in result.lines[2]
    assert [row["path"] for row in taiwa.ok("find", "holiday", "--json", "-k", "1").json] == ["leave.md"]
    assert taiwa.ok("find", "holiday", "-k", "1").lines[0].startswith("1. leave.md  0.0")
    shown = taiwa.ok("index", "show", "handbook")
    assert result.lines[2] in shown.lines
    assert "vectors" not in shown.out
    dense = taiwa.ok("index", "show", "handbook", "--all", "--json").json["embeddings"]
    assert (dense["vectors"], dense["fused"], dense["forced"], dense["gain"]["of"]) == (3, True, False, "people")


def test_without_a_gain_words_alone_are_asked_unless_it_is_forced(
    taiwa: Taiwa, folder: Path, server: EmbeddingServer
) -> None:
    result = taiwa.ok("index", str(folder), "--embeddings", server.base_url)

    assert result.lines[2].startswith("not fused: not checked: too few documents")
    assert taiwa.ok("find", "holiday", "--json").json == []
    forced = taiwa.ok("index", "handbook", "--force-embeddings", "--json").json
    assert (forced["embeddings"]["fused"], forced["embeddings"]["forced"], forced["vectors_made"]) == (True, True, 0)
    assert [row["path"] for row in taiwa.ok("find", "holiday", "--json", "-k", "1").json] == ["leave.md"]
    assert taiwa.ok("index", "handbook", "--json").json["embeddings"]["forced"]
    assert taiwa.ok("index", "handbook", "--embeddings", "off", "--json").json["embeddings"] is None
    assert taiwa.ok("find", "holiday", "--json").json == []


def test_only_what_is_new_is_embedded(taiwa: Taiwa, folder: Path, server: EmbeddingServer) -> None:
    taiwa.ok("index", str(folder), "--embeddings", server.base_url, "--force-embeddings")
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
    taiwa.ok("index", str(folder), "--embeddings", server.base_url, "--force-embeddings")
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
    taiwa.ok("index", str(folder), "--embeddings", server.base_url, "--force-embeddings")
    server.turned = True

    assert "is not the model of the stored vectors" in taiwa.ok("find", "wage").err
    again = taiwa.ok("index", str(folder), "--json").json
    assert (again["vectors_made"], again["embeddings"]["vectors"]) == (3, 3)
    assert "another model" not in taiwa.ok("find", "wage").err


def test_ask_looks_by_meaning_too(taiwa: Taiwa, folder: Path, server: EmbeddingServer) -> None:
    taiwa.ok("index", str(folder), "--embeddings", server.base_url, "--force-embeddings")

    taiwa("ask", "holiday", "--in", "handbook", "--policy", "never", "--json")

    assert "holiday" in server.texts


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--embeddings", "no/such"), "folder no/such not found"),
        (("--embeddings", "{folder}"), "is .* the folder of a sentence model"),
        (("--embeddings", ""), "--embeddings requires the folder of a model"),
        (("--embeddings", "off", "--force-embeddings"), "contradict each other"),
        (("--force-embeddings",), "--force-embeddings requires --embeddings"),
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
    taiwa: Taiwa, folder: Path, server: EmbeddingServer, model_server: ModelServer, place: Place
) -> None:
    model_server(written(1, 5, 5, 1, 5))
    place.set(model=None)
    taiwa.ok("index", str(folder), "--embeddings", f"{server.base_url}#topics", "--force-embeddings")

    found = taiwa(
        "ask", "holiday", "--in", "handbook", "--policy", "article", "--judge-model", model_server.model, "--json"
    ).json

    assert (found["policy"], found["passages"][0]["path"]) == ("article", "leave.md")
    assert "holiday" not in (folder / "leave.md").read_text()


def test_a_server_of_several_models_asks_for_the_name(taiwa: Taiwa, folder: Path, server: EmbeddingServer) -> None:
    server.models = ["a", "b"]

    assert "name one" in taiwa("index", str(folder), "--embeddings", server.base_url).err
