from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ConfigError, UnsupportedError
from taiwa.kernel.messages import Capability
from taiwa.kernel.usage_limits import Prices
from taiwa.models.http_api.anthropic import AnthropicMessages
from taiwa.models.http_api.capabilities import Capabilities, Finding, ProbeReport, save_report
from taiwa.models.http_api.errors import error_from_status
from taiwa.models.http_api.openai_chat import ChatCompletions, OpenAICodec, held_so
from taiwa.models.http_api.provider_interface import add_options, split_options
from taiwa.models.providers import PROVIDERS, find_prices, resolve, resolve_probed
from taiwa.sessions.session import open_priced_model
from taiwa.settings import load


@pytest.mark.parametrize(
    ("name", "base_url", "model", "key_variable"),
    [
        ("openai:gpt-4o", "https://api.openai.com/v1", "gpt-4o", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", "https://api.anthropic.com/v1", "claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("openrouter:qwen/qwen3:free", "https://openrouter.ai/api/v1", "qwen/qwen3:free", "OPENROUTER_API_KEY"),
        ("mistral:mistral-large-latest", "https://api.mistral.ai/v1", "mistral-large-latest", "MISTRAL_API_KEY"),
        ("deepseek:deepseek-chat", "https://api.deepseek.com", "deepseek-chat", "DEEPSEEK_API_KEY"),
        ("groq:openai/gpt-oss-20b", "https://api.groq.com/openai/v1", "openai/gpt-oss-20b", "GROQ_API_KEY"),
        ("ollama:llama3:8b", "http://127.0.0.1:11434/v1", "llama3:8b", "OLLAMA_API_KEY"),
        ("llamacpp:qwen", "http://127.0.0.1:8080/v1", "qwen", "LLAMACPP_API_KEY"),
        ("http://127.0.0.1:8080/v1#qwen", "http://127.0.0.1:8080/v1", "qwen", ""),
        ("http://127.0.0.1:8080/v1/#org/qwen:1", "http://127.0.0.1:8080/v1", "org/qwen:1", ""),
        ("http://127.0.0.1:8080#qwen", "http://127.0.0.1:8080/v1", "qwen", ""),
        ("https://[::1]:8443/api#m", "https://[::1]:8443/api", "m", ""),
        ("https://api.deepseek.com#deepseek-chat", "https://api.deepseek.com", "deepseek-chat", "DEEPSEEK_API_KEY"),
        ("https://api.groq.com#m", "https://api.groq.com/openai/v1", "m", "GROQ_API_KEY"),
        ("https://api.openai.com/v1#gpt-4o", "https://api.openai.com/v1", "gpt-4o", "OPENAI_API_KEY"),
    ],
)
def test_a_name_leads_to_an_address_a_model_and_a_key(name: str, base_url: str, model: str, key_variable: str) -> None:
    target = resolve(name)

    assert (target.name, target.base_url, target.model, target.key_variable) == (name, base_url, model, key_variable)


def test_the_provider_chooses_how_it_is_spoken_to() -> None:
    claude, gpt = resolve("anthropic:claude-sonnet-4-5").codec, resolve("https://api.openai.com/v1#gpt-4o").codec
    plain = resolve("http://127.0.0.1:8080/v1#gpt-4o").codec

    assert isinstance(claude, AnthropicMessages)
    assert isinstance(gpt, ChatCompletions)
    assert isinstance(plain, ChatCompletions)
    assert (gpt.dialect.label, plain.dialect.label) == ("OpenAI", "the server at 127.0.0.1:8080")


@pytest.mark.parametrize(
    "name",
    ["http://api.openai.com/v1#m", "https://api.openai.com:8443/v1#m", "https://api.openai.com.evil.example/v1#m"],
)
def test_a_key_goes_to_its_own_host_over_tls_only(name: str) -> None:
    assert resolve(name).key_variable not in {resolve("https://api.openai.com/v1#m").key_variable, "OPENAI_API_KEY"}


def test_a_provider_can_be_moved() -> None:
    target = resolve("ollama:qwen", base_urls={"ollama": "http://gpu.example:11434/v1/"})

    assert target.base_url == "http://gpu.example:11434/v1"
    assert isinstance(target.codec, ChatCompletions)
    assert target.codec.dialect.label == "the Ollama server at gpu.example:11434"


def test_a_provider_can_be_added_and_has_a_key_of_its_own() -> None:
    target = resolve("my-box:qwen", base_urls={"my-box": "https://box.example"})

    assert (target.base_url, target.model, target.key_variable) == ("https://box.example/v1", "qwen", "MY_BOX_API_KEY")
    assert target.capabilities == {"stop"}


def test_overrides_are_found_by_the_whole_name() -> None:
    name = "http://127.0.0.1:8080/v1#qwen"

    target = resolve(name, overrides={name: {"tools": True}, "openai:gpt-4o": {"stop": False}})

    assert target.capabilities == {"stop", "tools"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("opnai:gpt-4o", "did you mean 'openai:gpt-4o'?"),
        ("OpenAI:gpt-4o", "did you mean 'openai:gpt-4o'?"),
        ("mybx:m", "did you mean 'mybox:m'?"),
        ("gpt-4o", "did you mean 'openai:gpt-4o'?"),
        ("o3", "did you mean 'openai:o3'?"),
        ("claude-sonnet-4-5", "did you mean 'anthropic:claude-sonnet-4-5'?"),
        ("meta/llama", "did you mean 'openrouter:meta/llama'?"),
        ("qwen", "use PROVIDER:MODEL"),
        ("openai:", "add one after the colon, as in 'openai:MODEL'"),
        ("http://127.0.0.1:8080/v1", "add '#MODEL' at its end"),
        ("http://127.0.0.1:8080/v1#", "add '#MODEL' at its end"),
        ("http://:8080/v1#m", "not a web address"),
        ("http:127.0.0.1#m", "not a web address"),
        ("ftp://127.0.0.1/v1#m", "not a web address"),
        ("http://127.0.0.1:99999/v1#m", "invalid URL"),
        ("http://127.0.0.1:x/v1#m", "invalid URL"),
        ("http://[::1/v1#m", "invalid URL"),
        ("http://127.0.0.1/v1?key=1#m", "contains a query"),
        ("", "one word"),
        ("openai:gpt 4o", "one word"),
        ("openai:gpt\n4o", "one word"),
    ],
)
def test_a_name_that_cannot_be_used_is_told_with_the_nearest_that_can(name: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(name, base_urls={"mybox": "http://127.0.0.1:1/v1"})

    assert hint in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "name", ["http://me:hunter2@127.0.0.1/v1#m", "https://hunter2@127.0.0.1/v1#m", "htp://me:hunter2@127.0.0.1/v1#m", "http://127.0.0.1/v1?key=hunter2#m", "http://me:hunter2@[/v1#m"]
)  # fmt: skip
def test_a_password_in_a_name_is_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(name)

    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("http://me:hunter2@h/v1", "user name or password"),
        ("127.0.0.1:8080", "not a web address"),
        ("", "not a web address"),
        ("http://h/v1#m", "ends in the name of a model"),
    ],
)
def test_a_base_url_that_cannot_be_used_is_told_by_its_provider(url: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"the base URL of 'ollama'.*{hint}") as caught:
        resolve("ollama:m", base_urls={"ollama": url})

    assert "hunter2" not in caught.value.message


def test_every_provider_can_be_resolved_and_none_has_a_slash_at_its_end() -> None:
    azure = {"azure": "https://acme.openai.azure.com/openai/v1"}
    targets = [resolve(f"{prefix}:some-model", base_urls=azure) for prefix in PROVIDERS]

    assert all(not target.base_url.endswith("/") for target in targets)
    assert all("stop" in target.capabilities or target.name.startswith(("openai:", "azure:")) for target in targets)
    assert all(target.key_variable or target.base_url.startswith("http://127.0.0.1:") for target in targets)


def test_a_target_shows_no_headers_and_no_codec() -> None:
    assert "codec" not in repr(resolve("openai:gpt-4o"))


@given(st.text(max_size=30) | st.from_regex(r"(https?|ftp)://[a-z@:0-9\[\]./?#%]{0,20}", fullmatch=True))
def test_any_name_is_resolved_or_refused_in_one_line(name: str) -> None:
    try:
        said = resolve(name).model
    except ConfigError as error:
        said = error.message

    assert said
    assert said.isprintable()


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("127.0.0.1:9101", "http://127.0.0.1:9101/v1#MODEL"),
        ("localhost:9101", "http://localhost:9101/v1#MODEL"),
        ("[::1]:9101", "http://[::1]:9101/v1#MODEL"),
        ("gpu.example:8000/v1", "http://gpu.example:8000/v1#MODEL"),
        ("127.0.0.1:9101/v1#qwen", "http://127.0.0.1:9101/v1#qwen"),
    ],
)
def test_an_address_without_http_is_told_how_it_is_written(name: str, suggestion: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(name)

    assert f"did you mean '{suggestion}'?" in caught.value.message


@pytest.mark.parametrize("wire", ["chat", "responses", "completions"])
def test_a_server_s_wires_differ_in_their_path_and_in_nothing_around_it(wire: str) -> None:
    """Keys, errors and the treatment of constraints belong to the server."""
    target = resolve(f"https://acme.openai.azure.com/openai/v1#prod?wire={wire}")
    codec = target.codec
    assert isinstance(codec, OpenAICodec)

    assert codec.auth("secret") == (("api-key", "secret"),)
    assert error_from_status(401, {}, b"", codec.server).message.startswith(
        "Azure OpenAI at acme.openai.azure.com does not accept the key"
    )
    held = held_so(target, "strict").codec
    assert isinstance(held, OpenAICodec)
    assert held.enforce == "strict"


@pytest.mark.parametrize("wire", ["chat", "completions"])
def test_a_probe_counts_on_every_wire_of_its_server(wire: str, tmp_path: Path) -> None:
    settings = load({}, {"HOME": str(tmp_path)}, tmp_path / "config.yaml")
    name = f"http://127.0.0.1:8080/v1#m?wire={wire}"
    save_report(settings, ProbeReport("m", "http://127.0.0.1:8080/v1", (Finding("schema.enum", "enforced"),)))

    codec = resolve_probed(name, settings).codec

    assert isinstance(codec, OpenAICodec)
    assert codec.capabilities.verdicts == (("enum", "enforced"),)


def test_settings_of_a_model_hold_with_options_behind_its_name() -> None:
    overrides = {"mine:m": {"tools": True}}
    base_urls = {"mine": "http://127.0.0.1:8080/v1"}

    assert "tools" in resolve("mine:m?effort=low", base_urls=base_urls, overrides=overrides).capabilities
    prices = {"openai:gpt-x": {"input": Decimal(1), "output": Decimal(2)}}
    assert find_prices(prices, "openai:gpt-x?effort=low") == Prices("1", "2")


def test_azure_without_an_address_says_how_to_give_one() -> None:
    with pytest.raises(ConfigError, match="taiwa config set base_urls"):
        resolve("azure:prod")


@given(st.text(max_size=20), st.sampled_from(["", "?effort=low", "?wire=chat&effort=max"]))
def test_options_are_split_from_a_name_and_put_back(name: str, options: str) -> None:
    bare, split = split_options(f"http://h/v1#{name.replace('?', '').replace('#', '')}{options}")

    assert f"?{split}" == options or split == options == ""
    assert add_options(bare, split) == bare + options


@pytest.mark.parametrize("name", ["fast", "openai:gpt-x"])
@pytest.mark.parametrize("key", ["fast", "openai:gpt-x"])
def test_an_alias_means_its_model_in_every_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "config.yaml").write_text(
        f"aliases: {{fast: 'openai:gpt-x?effort=low'}}\ncapabilities: {{'{key}': {{logprobs: true}}}}\n"
        f"prices: {{'{key}': {{input: 1, output: 2}}}}\n"
    )
    settings = load(environ={"TAIWA_CONFIG": str(tmp_path / "config.yaml")})

    opened = open_priced_model(None, settings, last=name)

    assert "logprobs" in resolve_probed(name, settings).capabilities
    assert opened.rates == Prices("1", "2")


@pytest.mark.parametrize("name", ["openai:gpt-x?wire=completions", "anthropic:claude-sonnet-4-5"])
def test_an_error_hints_at_no_setting_that_does_nothing(name: str) -> None:
    known = getattr(resolve(name, overrides={name: {"tools": True, "grammar": True}}).codec, "capabilities", None)
    lacking: Capability = "grammar" if name.startswith("anthropic") else "tools"

    assert isinstance(known, Capabilities)
    with pytest.raises(UnsupportedError) as caught:
        known.require(lacking, name)

    assert "config" not in str(caught.value)
