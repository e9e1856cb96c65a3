"""Vectors from an endpoint: a server on this machine that fails in the usual ways, and a genuine llama.cpp."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from taiwa.kernel.errors import AuthenticationError, ConfigError, ModelError, ProtocolError
from taiwa.models.http_api.client import Clock, HttpModel, RetryPolicy
from taiwa.models.http_api.embeddings import (
    EmbeddingEndpoint,
    add_missing_vectors,
    open_embedder,
    open_endpoint,
    with_embeddings,
)
from taiwa.models.providers import resolve
from taiwa.retrieval import Index, Library
from taiwa.retrieval.hybrid import HybridIndex
from taiwa.retrieval.types import EmbedderChoice
from taiwa.settings import Settings, load
from tests.peers.embedder import EmbeddingServer, topics_of
from tests.peers.llama import KEY, LlamaServer


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as made:
        yield made


@pytest.fixture
def settings() -> Settings:
    return load({}, {"HOME": "/", "TAIWA_ATTEMPTS": "1"}, Path("/none/config.yaml"))


@pytest.fixture
def endpoint(server: EmbeddingServer, settings: Settings) -> EmbeddingEndpoint:
    return open_endpoint(f"{server.base_url}#topics", settings)


def test_texts_become_vectors_of_length_one_in_their_order(
    server: EmbeddingServer, endpoint: EmbeddingEndpoint
) -> None:
    for server.shuffled in (False, True):
        for server.packed in (False, True):
            rows = endpoint.embed(["my salary", "休暇 and holiday", ""], "passage")

            for row, text in zip(rows, ("my salary", "休暇 and holiday", ""), strict=True):
                right = np.array(topics_of(text))
                assert np.allclose(row, right / np.linalg.norm(right), atol=1e-6)


def test_many_texts_go_in_several_requests_and_none_in_none(
    server: EmbeddingServer, endpoint: EmbeddingEndpoint
) -> None:
    assert len(endpoint.embed([f"text {number}" for number in range(70)], "passage")) == 70
    assert [len(texts) for texts in server.asked] == [1, 32, 32, 6]
    assert len(endpoint.embed([], "passage")) == 0
    assert len(server.asked) == 4


def test_a_server_that_takes_fewer_texts_gets_fewer(server: EmbeddingServer, endpoint: EmbeddingEndpoint) -> None:
    server.most = 5

    assert len(endpoint.embed([f"text {number}" for number in range(11)], "passage")) == 11
    assert max(len(texts) for texts in server.asked) <= 5


def test_of_a_text_that_is_too_long_the_beginning_counts(server: EmbeddingServer, endpoint: EmbeddingEndpoint) -> None:
    server.longest = 100

    long, short = endpoint.embed(["salary " * 50, "train"], "passage")

    assert long.argmax() == 1
    assert short.argmax() == 2
    assert max(map(len, server.texts)) <= 100


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"[]", "sent 0 vectors for 1 text"),
        (b"nothing", "sent invalid JSON"),
        (b'{"data": [{"index": 0, "embedding": ["a"]}]}', "sent 0 vectors for 1 text"),
        (b'{"data": [{"index": 0, "embedding": "!"}]}', "sent 0 vectors for 1 text"),
        (b'{"data": [{"index": 0, "embedding": [1, NaN]}]}', "not finite"),
        (b'{"data": [{"index": 0, "embedding": [0, 0]}]}', "vector of zeros"),
        (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]}', "sent 2 vectors for 1 text"),
    ],
)
def test_what_is_no_vector_is_refused(
    server: EmbeddingServer, endpoint: EmbeddingEndpoint, answer: bytes, said: str
) -> None:
    server.answer = answer

    with pytest.raises(ProtocolError, match=said):
        endpoint.embed(["a"], "question")


def test_vectors_of_another_length_are_refused(server: EmbeddingServer, endpoint: EmbeddingEndpoint) -> None:
    endpoint.embed(["a"], "passage")
    server.answer = b'{"data": [{"index": 0, "embedding": [1, 2]}]}'

    with pytest.raises(ProtocolError, match="vectors of 2 numbers, and of 3 before"):
        endpoint.embed(["a"], "passage")


def test_a_server_that_is_out_of_order_is_asked_again_and_then_says_so(server: EmbeddingServer) -> None:
    server.status = 503
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    target = resolve(f"{server.base_url}#topics")
    broken = EmbeddingEndpoint(HttpModel(target, retry=RetryPolicy(attempts=3), clock=Clock(sleep=sleep)))
    with pytest.raises(ModelError, match="tried 3 times"):
        broken.embed(["a"], "passage")
    assert len(slept) == 2


def test_a_key_goes_along_and_never_stands_in_an_error(server: EmbeddingServer, settings: Settings) -> None:
    server.key = "canary-0123456789"
    target = resolve(f"{server.base_url}#topics")

    assert len(EmbeddingEndpoint(HttpModel(target, server.key)).embed(["a"], "passage")) == 1
    with pytest.raises(AuthenticationError) as error:
        EmbeddingEndpoint(HttpModel(target, "wrong-canary-98765")).embed(["a"], "passage")
    assert "canary" not in str(error.value)


def test_another_model_behind_the_same_name_is_noticed(server: EmbeddingServer, settings: Settings) -> None:
    place = f"{server.base_url}#topics"
    first = open_endpoint(place, settings)
    first.identify()
    known = EmbedderChoice(place, first.name, first.probe)

    again = open_endpoint(place, settings)
    again.identify(known)
    server.turned = True
    other = open_endpoint(place, settings)
    other.identify(known)

    assert first.name.startswith(f"topics@{server.base_url[7:-3]}-")
    assert again.name == first.name
    assert other.name != first.name
    with pytest.raises(ConfigError, match="is not the model of the stored vectors"):
        open_endpoint(place, settings, known).embed(["a"], "question")


def test_an_address_without_a_name_is_its_only_model(server: EmbeddingServer, settings: Settings) -> None:
    assert open_endpoint(server.base_url, settings).model.target.model == "topics"
    server.models = ["one", "two"]
    with pytest.raises(ConfigError, match=r"has 2 models \(one, two\); name one"):
        open_endpoint(server.base_url, settings)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("no/such/folder", "folder no/such/folder not found"),
        ("anthropic:claude-x", "this provider does not offer embeddings"),
        ("local:folder", "name the folder of a sentence model"),
        ("minilm", "does not name a provider"),
        ("http://user:secret@host/v1#m", "contains a user name or password"),
    ],
)
def test_a_place_that_cannot_be_one_says_so(settings: Settings, place: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_embedder(place, settings)


@pytest.fixture
def index(tmp_path: Path, server: EmbeddingServer, settings: Settings) -> Iterator[Index]:
    """An index that is asked by meaning, whatever a check says."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.md").write_text("ten days of vacation")
    (folder / "b.md").write_text("the wage is paid in May")
    with Library.open(tmp_path / "library.db") as library:
        made = library.create(folder)
        made.refresh()
        embedder = open_endpoint(f"{server.base_url}#topics", settings)
        embedder.identify()
        made.backend.set_embedder(EmbedderChoice(f"{server.base_url}#topics", embedder.name, embedder.probe))
        HybridIndex(made, embedder).make_vectors()
        yield made


def test_an_index_is_asked_as_it_was_chosen_to_be(index: Index, settings: Settings, server: EmbeddingServer) -> None:
    server.asked.clear()
    found = with_embeddings(index, settings)
    assert server.asked == []

    assert [each.source for each in found.find("holiday", 1)] == ["a.md"]
    index.backend.set_embedder(None)
    assert with_embeddings(index, settings) is index


def test_a_question_whose_vector_fails_is_answered_by_words_and_says_why(
    index: Index, settings: Settings, server: EmbeddingServer
) -> None:
    found = with_embeddings(index, settings)
    server.status = 401

    assert found.find("wage", 3) == index.find("wage", 3)
    assert "docs" not in found.trouble
    assert found.trouble.startswith("documents: found by words alone, as its embedder fails: ")
    asked = len(server.asked)
    assert found.find("holiday") == ()
    assert len(server.asked) == asked


def test_missing_vectors_are_added_or_the_failure_is_reported(
    index: Index, settings: Settings, server: EmbeddingServer
) -> None:
    (Path(index.root) / "c.md").write_text("a journey by rail")
    index.refresh()
    found = with_embeddings(index, settings)
    server.status = 401
    assert "new passages do not have vectors yet" in add_missing_vectors(found)
    server.status = 200

    assert add_missing_vectors(with_embeddings(index, settings)) == ""
    assert [each.source for each in with_embeddings(index, settings).find("train", 1)] == ["c.md"]
    assert add_missing_vectors(index) == ""


def test_a_genuine_server_embeds(tmp_path: Path) -> None:
    settings = load({}, {"HOME": "/"}, Path("/none/config.yaml"))
    with LlamaServer(tmp_path, embeddings=True) as llama:
        made = EmbeddingEndpoint(HttpModel(resolve(f"{llama.base_url}#tiny"), KEY))
        texts = ["the cat", "有給休暇", "the cat", "", "in the " * 2_000]

        rows = made.embed(texts, "passage")

        assert rows.shape == (5, 64)
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        assert rows[0] @ rows[2] > 0.999
        assert rows[0] @ rows[1] < 0.99
        with pytest.raises(AuthenticationError):
            open_endpoint(f"{llama.base_url}#tiny", settings).embed(["a"], "question")
