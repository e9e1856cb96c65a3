"""Embeddings over the server: with the client of OpenAI, from a loopback server of vectors."""

import base64
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import numpy as np
import pytest

from taiwa.settings import ModelSettings
from taiwa.store.server_records import Caller
from tests.peers.embedder import EmbeddingServer, topics_of
from tests.server.serving import KEY, Serving, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with EmbeddingServer() as vectors, serving(embeddings=f"{vectors.base_url}#topics") as running:
        yield running


def name_of(served: Serving) -> str:
    assert served.server.options.served.embeddings
    return served.server.options.served.embeddings


def post(served: Serving, headers: dict[str, str] | None = None, **body: object) -> httpx.Response:
    sent = {"model": name_of(served), "input": "my salary", **body}
    return served.client.post("/v1/embeddings", json=sent, headers=headers)


def unit(text: str) -> np.ndarray:
    right = np.array(topics_of(text))
    return right / np.linalg.norm(right)


def test_the_client_of_openai_gets_vectors_in_the_order_of_its_texts(served: Serving) -> None:
    openai = pytest.importorskip("openai")
    texts = ["my salary", "休暇 and holiday"]
    with openai.OpenAI(base_url=served.url, api_key=KEY, max_retries=0) as client:
        made = client.embeddings.create(model=name_of(served), input=texts)
        assert [each.index for each in made.data] == [0, 1]
        for each, text in zip(made.data, texts, strict=True):
            assert np.allclose(each.embedding, unit(text), atol=1e-6)
        with pytest.raises(openai.NotFoundError, match="does not exist here"):
            client.embeddings.create(model="other", input=texts)


def test_the_bytes_in_base64_are_the_numbers(served: Serving) -> None:
    numbers = post(served).json()["data"][0]["embedding"]
    packed = post(served, encoding_format="base64").json()["data"][0]["embedding"]
    assert np.allclose(np.frombuffer(base64.b64decode(packed), "<f4"), numbers)


def test_fewer_dimensions_are_the_first_ones_at_length_one(served: Serving) -> None:
    whole = post(served).json()["data"][0]["embedding"]
    short = post(served, dimensions=2).json()["data"][0]["embedding"]
    assert np.allclose(short, np.array(whole[:2]) / np.linalg.norm(whole[:2]), atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"input": [1, 2]}, "send texts (LangChain: check_embedding_ctx_length=False)"),
        ({"input": [[1, 2], [3]]}, "send texts (LangChain: check_embedding_ctx_length=False)"),
        ({"input": [[1, 2], "a"]}, "input must be texts, or arrays of integers"),
        ({"input": [1, True]}, "input must be texts, or arrays of integers"),
        ({"input": [[]]}, "at least one text"),
        ({"input": []}, "at least one text"),
        ({"input": ""}, "at least one text"),
        ({"input": ["a", None]}, "input[1] must be a string"),
        ({"input": ["a"] * 2_049}, "more than 2,048 texts"),
        ({"dimensions": 10_000}, "dimensions must be at most"),
        ({"encoding_format": "int8"}, "encoding_format"),
        ({"nonsense": 1}, "unknown parameter"),
    ],
)
def test_a_wrong_field_is_named_in_the_error(served: Serving, fields: dict[str, object], words: str) -> None:
    answer = post(served, **fields)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_the_models_of_openai_read_the_tokens_that_langchain_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingServer() as vectors:
        monkeypatch.setenv("OPENAI_BASE_URL", vectors.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-own")
        with serving(embeddings="openai:text-embedding-3-small") as served:
            answers = [post(served, input=tokens) for tokens in ([2_465, 16_107], [[2_465], [40_209, 7]])]

    assert [len(answer.json()["data"]) for answer in answers] == [1, 2]
    assert [answer.json()["usage"]["prompt_tokens"] for answer in answers] == [2, 3]
    assert vectors.texts[1:] == [[2_465, 16_107], [2_465], [40_209, 7]]


def test_a_server_without_an_embedding_model_says_how_to_get_one() -> None:
    with serving() as served:
        answer = served.client.post("/v1/embeddings", json={"model": "m", "input": "a"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
        assert "--embeddings" in answer.json()["error"]["message"]


def test_the_clients_of_ollama_get_the_same_vectors(served: Serving) -> None:
    ollama = pytest.importorskip("ollama")
    client = ollama.Client(served.server.url, headers={"Authorization": f"Bearer {KEY}"})
    made = client.embed(name_of(served), ["my salary", "holiday"])
    assert np.allclose(made.embeddings, [unit("my salary"), unit("holiday")], atol=1e-6)
    assert np.allclose(client.embeddings(name_of(served), "holiday").embedding, made.embeddings[1])
    assert client.embed(name_of(served), []).embeddings == []
    tagged = f"{name_of(served)}:latest"
    assert client.embed(tagged, "holiday").model == tagged
    assert np.allclose(client.embeddings(tagged, "holiday").embedding, made.embeddings[1])
    with pytest.raises(ollama.ResponseError, match="does not exist here"):
        client.embed("other", "a")


def test_a_key_that_may_begin_no_more_answers_gets_no_vectors(served: Serving) -> None:
    served.repository.store.callers.add(Caller("ann", rate=0), "key-of-ann")
    headers = {"authorization": "Bearer key-of-ann"}
    refused = served.client.post("/v1/embeddings", json={"model": name_of(served), "input": "a"}, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")


def test_embeddings_are_on_the_bill_and_within_the_budget_of_their_caller() -> None:
    with EmbeddingServer() as vectors, serving(embeddings=f"{vectors.base_url}#topics") as server:
        catalogue, store = server.server.state.served, server.repository.store
        catalogue.settings = replace(
            catalogue.settings, models=ModelSettings(prices={"*topics": {"input": 1_000, "output": 0}})
        )
        store.callers.add(Caller("ann", max_cost=100_000_000), "key-of-ann")
        ann = store.owned_by("ann")

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: post(server, headers={"authorization": "Bearer key-of-ann"}), range(40)))

        statuses = Counter(each.status_code for each in answers)
        assert set(statuses) == {200, 429}
        assert {each.json()["error"]["code"] for each in answers if each.status_code == 429} == {"insufficient_quota"}
        (line,) = ann.costs("model")
        assert (line.requests, line.usage.input_tokens) == (statuses[200], 9 * statuses[200])
        assert ann.runs.spent_since(0) == line.known_nano == 9 * statuses[200] * 1_000_000 <= 100_000_000
        assert len(vectors.asked) == statuses[200] + 1  # with the fixed sentence


def test_embeddings_beyond_a_budget_are_not_requested_and_failed_ones_count_if_a_part_may_be_charged() -> None:
    with EmbeddingServer() as vectors, serving(embeddings=f"{vectors.base_url}#topics") as server:
        catalogue, store = server.server.state.served, server.repository.store
        store.callers.add(Caller("ann", max_cost=1_000_000_000, rate=4), "key-of-ann")
        headers = {"authorization": "Bearer key-of-ann"}
        catalogue.settings = replace(
            catalogue.settings, models=ModelSettings(prices={"*topics": {"input": 1_000, "output": 0}})
        )
        assert post(server, headers=headers, input="a").status_code == 200
        spent, vectors.longest = store.owned_by("ann").runs.spent_since(0), 3

        dear = post(server, headers=headers, input="word " * 2_000)
        failed = post(server, headers=headers, input=["a"] * 32 + ["word"])  # the second of two requests

        assert (dear.status_code, dear.json()["error"]["code"]) == (429, "insufficient_quota")
        assert failed.status_code >= 400
        assert vectors.texts[2:] == ["a"] * 32
        assert store.owned_by("ann").runs.spent_since(0) > spent + 32_000_000
        assert post(server, headers=headers, input="a").status_code == 200
        assert post(server, headers=headers, input="a").json()["error"]["code"] == "rate_limit_exceeded"
