"""Where no model is set: what is within reach is shown, asked about once, and remembered."""

import json
from pathlib import Path

import pytest

from taiwa.models.providers import SERVERS
from taiwa.models.weights.model_files import FIRST_MODEL, MODEL_FILES, models_folder
from taiwa.settings import NO_MODEL
from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.cli.terminal import Terminal
from tests.peers.faults import head, raw, speech

LISTING = json.dumps({"data": [{"id": "qwen3:8b", "owned_by": "library"}]}).encode()


@pytest.fixture
def ollama(model_server: ModelServer, place: Place) -> ModelServer:
    """An Ollama server with one model, and no other one."""
    model_server(raw(head(len(LISTING), "application/json") + LISTING, close=False), speech("Hello from Ollama!"))
    nowhere = dict.fromkeys(SERVERS, "http://127.0.0.1:9/v1")
    place.set(base_urls=nowhere | {"ollama": model_server.url}, attempts=1)
    return model_server


def test_a_model_is_chosen_once_and_remembered(ollama: ModelServer, place: Place, taiwa: Taiwa) -> None:
    with Terminal(place.environment(), "say", "Hi") as shown:
        shown.see("no model is set; these are available:")
        shown.see("ollama:qwen3:8b")
        shown.see("[1]")
        shown.type("\r")
        shown.see("the model is set to ollama:qwen3:8b")
        shown.see("Hello from Ollama!")
        assert shown.end() == 0

    assert taiwa.ok("config", "show", "--json").json["model"]["value"] == "ollama:qwen3:8b"


def test_any_name_may_be_typed_and_a_wrong_one_is_asked_again(ollama: ModelServer, place: Place, taiwa: Taiwa) -> None:
    with Terminal(place.environment(OPENAI_API_KEY="canary"), "say", "Hi") as shown:
        shown.see("OPENAI_API_KEY")
        shown.see("[1]")
        shown.type("gpt-5\r")
        shown.see("did you mean 'openai:gpt-5'?")
        shown.see("[1]")
        shown.type("2\r")
        shown.see("the model is set to ollama:qwen3:8b")
        assert shown.end() == 0
        assert "canary" not in shown.text

    assert taiwa.ok("config", "show", "--json").json["model"]["value"] == "ollama:qwen3:8b"


@pytest.mark.parametrize(
    "words", [("say", "Hi"), ("solve", "1+1"), ("generate", "Hi"), ("chat",), ("solve", "1+1", "--json")]
)
def test_in_a_pipe_nothing_is_asked_and_no_server_is_looked_for(
    ollama: ModelServer, taiwa: Taiwa, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")

    said = taiwa(*words)

    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "ANTHROPIC_API_KEY is set: use -m anthropic:claude-sonnet-5, or taiwa config set model" in said.err
    assert "canary" not in said.err
    assert ollama.seen == []


def test_without_a_key_a_pipe_hears_how_to_set_a_model(taiwa: Taiwa) -> None:
    said = taiwa("say", "What is a monad?")

    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "taiwa: no model is set; use -m NAME or TAIWA_MODEL=NAME, or fetch a small one: taiwa models pull qwen2.5-coder-1.5b --use\n"
    )


def test_with_nothing_within_reach_a_small_model_is_offered(place: Place) -> None:
    place.set(base_urls=dict.fromkeys(SERVERS, "http://127.0.0.1:9/v1"), attempts=1)

    with Terminal(place.environment(), "say", "Hi") as shown:
        shown.see("fetch qwen2.5-coder-1.5b (1.1 GB, Apache-2.0)")
        shown.type("n\r")
        shown.see("no model is set")
        assert shown.end() == 2


def test_a_file_of_another_program_is_offered_before_one_is_fetched(place: Place, taiwa: Taiwa, tmp_path: Path) -> None:
    place.set(base_urls=dict.fromkeys(SERVERS, "http://127.0.0.1:9/v1"), attempts=1)
    (tmp_path / "own.gguf").write_bytes(b"none")

    with Terminal(place.environment(LLAMA_CACHE=str(tmp_path)), "say", "Hi") as shown:
        shown.see("own.gguf")
        shown.see("llama.cpp")
        shown.type("\r")
        shown.see("the model is set to")
        assert shown.end() == 2

    assert taiwa.ok("config", "show", "--json").json["model"]["value"].endswith("own.gguf")


@pytest.mark.parametrize("names", [("smollm2-135m",), (FIRST_MODEL, "smollm2-135m")])
def test_a_pipe_is_referred_to_a_fetched_model_the_suggested_one_first(
    taiwa: Taiwa, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: tuple[str, ...]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    models_folder().mkdir(parents=True)
    for name in names:
        with (models_folder() / MODEL_FILES[name].file).open("wb") as made:
            made.truncate(MODEL_FILES[name].size)

    said = taiwa("say", "Hi")

    assert (said.code, said.err) == (
        2, f"taiwa: no model is set; use -m {names[0]}, or taiwa config set model {names[0]}\n",
    )  # fmt: skip


def test_the_model_that_messages_suggest_can_be_fetched() -> None:
    assert f"taiwa models pull {FIRST_MODEL} --use" in NO_MODEL
    assert FIRST_MODEL in MODEL_FILES


def test_an_app_that_names_its_model_needs_no_other(model_server: ModelServer, taiwa: Taiwa, place: Place) -> None:
    model_server("Hello!")
    place.set(model=None)
    app = place.folder / "mine.md"
    app.write_text(f"---\ntaiwa: 1\nmodel: {model_server.model}\n---\nBe brief.\n")

    assert taiwa.ok("say", str(app), "Hi").out == "Hello!\n"


def test_a_model_that_is_set_is_not_asked_about(
    model_server: ModelServer, taiwa: Taiwa, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    model_server("Hello!")

    assert taiwa.ok("say", "Hi").err == ""


# --- aliases ------------------------------------------------------------------------------------------------------------


def test_an_alias_stands_for_its_model_wherever_one_is_named(model_server: ModelServer, taiwa: Taiwa) -> None:
    model_server("Hello!", "Hello again!")

    assert taiwa.ok("models", "alias", "fast", f"{model_server.model}?effort=low").out.startswith("fast = http://")
    assert taiwa.ok("say", "-m", "fast", "Hi").out == "Hello!\n"
    assert model_server.requests[0]["reasoning_effort"] == "low"
    taiwa.ok("models", "alias", "quick", "fast?effort=high")
    assert taiwa.ok("generate", "-m", "quick", "Hi").out == "Hello again!\n"
    assert model_server.requests[1]["reasoning_effort"] == "high"
    assert taiwa.ok("models", "alias", "--json").json["quick"] == "fast?effort=high"
    taiwa.ok("models", "alias", "quick", "--remove")
    assert taiwa("models", "alias", "quick").code == 2


def test_a_conversation_keeps_the_model_and_not_the_word_for_it(model_server: ModelServer, taiwa: Taiwa) -> None:
    model_server("Hello!")
    taiwa.ok("models", "alias", "fast", model_server.model)
    taiwa.ok("say", "-m", "fast", "-s", "s", "Hi")

    assert taiwa.ok("log", "s", "--json").json[-1]["model"] == model_server.model


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("openai", "openai:gpt-5"), "'openai' is the name of a provider; choose another word"),
        (("a:b", "openai:gpt-5"), "an alias must be one word"),
        (("me", "me"), "the alias 'me' refers to itself: me → me"),
        (("slow", "openai:gpt-5?effort=lots"), "unknown effort 'lots'"),
        (("x", "opnai:gpt-5"), "did you mean 'openai:gpt-5'?"),
        (("nope", "--remove"), "aliases.nope is not set"),
    ],
)
def test_an_alias_that_misleads_is_refused_in_one_line(taiwa: Taiwa, arguments: tuple[str, ...], error: str) -> None:
    done = taiwa("models", "alias", *arguments)

    assert (done.code, done.err.count("\n")) == (2, 1)
    assert error in done.err
    assert taiwa.ok("models", "alias", "--json").json == {}


def test_a_server_lists_its_models_without_the_name_of_one(model_server: ModelServer, taiwa: Taiwa) -> None:
    model_server(raw(head(len(LISTING), "application/json") + LISTING, close=False))

    assert taiwa.ok("models", "remote", model_server.url).lines == ["qwen3:8b"]
