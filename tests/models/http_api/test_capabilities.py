import pytest

from taiwa.kernel.errors import ConfigError, UnsupportedError
from taiwa.kernel.messages import Capability
from taiwa.models.http_api.capabilities import Capabilities, capabilities


def can(provider: str, model: str) -> set[str]:
    known = capabilities(provider, model)
    return set(known.capabilities) | ({"sampling"} if known.sampling else set())


@pytest.mark.parametrize(
    "model", ["claude-3-opus-20240229", "claude-3-7-sonnet-latest", "claude-opus-4-20250514", "claude-opus-4-1-20250805", "claude-sonnet-4-0"]
)  # fmt: skip
def test_claude_before_4_5_continues_answers_and_takes_no_schema(model: str) -> None:
    assert can("anthropic", model) == {"stop", "tools", "cache", "prefix", "sampling"}


@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-5", "claude-haiku-4-5-20251001", "claude-opus-4-5-20251101", "claude-sonnet-4.5"]
)
def test_claude_4_5_continues_answers_and_takes_schemas(model: str) -> None:
    assert can("anthropic", model) == {"stop", "tools", "cache", "prefix", "json_schema", "sampling"}


@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-sonnet-4-6"])
def test_claude_4_6_continues_no_answer(model: str) -> None:
    assert can("anthropic", model) == {"stop", "tools", "cache", "json_schema", "sampling"}


@pytest.mark.parametrize(
    "model", ["claude-opus-4-7", "claude-opus-4-10", "claude-sonnet-5", "claude-fable-5", "claude-unheard-of"]
)
def test_claude_from_4_7_on_takes_no_sampling_and_what_is_unheard_of_counts_as_newest(model: str) -> None:
    assert can("anthropic", model) == {"stop", "tools", "cache", "json_schema"}


def test_the_first_claudes_could_do_little() -> None:
    assert can("anthropic", "claude-2.1") == can("anthropic", "claude-instant-1.2") == {"stop", "sampling"}


@pytest.mark.parametrize(
    "model",
    ["o1", "o3", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5-nano", "gpt-5.6-luna", "gpt-12", "unheard-of"],
)
def test_a_reasoning_model_of_openai_takes_neither_stop_nor_sampling(model: str) -> None:
    assert can("openai", model) == {"tools", "json_schema"}


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-4o-mini-2024-07-18", "gpt-4.1-nano", "ft:gpt-4o-mini:me::x", "gpt-4.5-preview"]
)
def test_a_chat_model_of_openai_takes_both(model: str) -> None:
    assert can("openai", model) == {"stop", "tools", "json_schema", "logprobs", "seed", "sampling"}


@pytest.mark.parametrize("model", ["gpt-3.5-turbo", "gpt-4", "gpt-4-turbo-2024-04-09", "gpt-4o-2024-05-13"])
def test_an_older_model_of_openai_takes_no_schema(model: str) -> None:
    assert can("openai", model) == {"stop", "tools", "logprobs", "seed", "sampling"}


@pytest.mark.parametrize(
    ("provider", "model", "capability", "has"),
    [
        ("llamacpp", "x", "prefix", True),
        ("llamacpp", "x", "grammar", True),
        ("llamacpp", "x", "json_schema", True),
        ("vllm", "x", "grammar", True),
        ("vllm", "x", "regex", True),
        ("sglang", "x", "regex", True),
        ("sglang", "x", "grammar", True),
        ("ollama", "x", "prefix", False),
        ("ollama", "x", "json_schema", True),
        ("mistral", "x", "prefix", True),
        ("mistral", "x", "logprobs", False),
        ("deepseek", "deepseek-chat", "prefix", True),
        ("deepseek", "deepseek-reasoner", "prefix", False),
        ("deepseek", "deepseek-chat", "json_schema", False),
        ("groq", "x", "json_schema", False),
        ("openrouter", "openai/gpt-4o", "json_schema", True),
        ("openrouter", "openai/gpt-4o", "logprobs", False),
        ("openrouter", "openai/o3:free", "stop", False),
        ("openrouter", "anthropic/claude-sonnet-4.5", "prefix", False),
        ("openrouter", "anthropic/claude-sonnet-4.5", "json_schema", True),
        ("openrouter", "meta-llama/llama-4", "json_schema", False),
        ("openrouter", "meta-llama/llama-4", "tools", True),
    ],
)
def test_a_server_can_do_what_its_line_in_the_table_says(
    provider: str, model: str, capability: Capability, has: bool
) -> None:
    assert (capability in capabilities(provider, model).capabilities) is has


def test_an_unknown_server_is_trusted_with_stop_strings_only() -> None:
    assert can("plain", "whatever") == {"stop", "sampling"}


def test_a_person_s_word_counts_more_than_the_table() -> None:
    known = capabilities("openai", "gpt-4o", {"prefix": True, "stop": False, "sampling": False})

    assert "prefix" in known.capabilities
    assert "stop" not in known.capabilities
    assert "tools" in known.capabilities
    assert not known.sampling


def test_an_override_of_no_ability_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="unknown capability 'json_shema': did you mean 'json_schema'"):
        capabilities("plain", "x", {"json_shema": True})


def test_a_missing_ability_is_told_with_the_way_out() -> None:
    with pytest.raises(UnsupportedError, match=r"'m' cannot end at stop strings; .*`stop: true`") as caught:
        Capabilities(frozenset()).require("stop", "m")

    assert caught.value.capability == "stop"
