import copy
import json
import pickle
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import AuthenticationError, ConfigError, ModelError, ProtocolError
from taiwa.models.http_api.api_keys import (
    KeyRow,
    Secret,
    find_key,
    list_keys,
    mask_error,
    mask_text,
    remove_key,
    set_key,
)
from taiwa.models.http_api.client import HttpModel
from taiwa.models.providers import check_key, key_variables, resolve, resolve_server
from taiwa.settings import ModelSettings, Settings, load
from tests.peers.faults import Act, FaultServer, speech, status

KEY = "sk-canary-0123456789"
OPENAI = resolve("openai:gpt-4.1")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({}, {"HOME": str(tmp_path)}, tmp_path / "config" / "config.yaml")


# --- where keys are kept ----------------------------------------------------------------------------------------------


def test_a_key_that_was_set_is_found_and_a_removed_one_is_not(settings: Settings) -> None:
    set_key(settings, OPENAI.origin, Secret(f" {KEY}\n"))
    found = find_key(OPENAI, settings, {})

    assert found is not None
    assert found.reveal() == KEY
    remove_key(settings, OPENAI.origin)
    with pytest.raises(ConfigError, match="taiwa keys set openai"):
        find_key(OPENAI, settings, {})


def test_the_environment_wins_over_the_file(settings: Settings) -> None:
    set_key(settings, OPENAI.origin, Secret(KEY))

    found = find_key(OPENAI, settings, {"OPENAI_API_KEY": "sk-from-outside"})

    assert found == Secret("sk-from-outside")


def test_a_model_that_needs_no_key_gets_none(settings: Settings) -> None:
    set_key(settings, OPENAI.origin, Secret(KEY))

    assert find_key(resolve("ollama:qwen"), settings, {}) is None
    assert find_key(resolve("http://127.0.0.1:8080/v1#m"), settings, {}) is None


def test_a_providers_model_that_was_moved_to_this_machine_needs_no_key(settings: Settings) -> None:
    target = resolve("openai:m", base_urls={"openai": "http://127.0.0.1:8080/v1"})

    assert find_key(target, settings, {}) is None


def test_a_place_of_ones_own_may_have_a_key(settings: Settings) -> None:
    mine = replace(settings, models=ModelSettings(base_urls={"my-lab": "https://lab.example/v1"}))
    target = resolve("my-lab:m", base_urls=mine.models.base_urls)

    assert find_key(target, mine, {}) is None
    assert find_key(target, mine, {"MY_LAB_API_KEY": KEY}) == Secret(KEY)
    set_key(mine, resolve_server("my-lab", mine).origin, Secret(KEY))
    assert find_key(target, mine, {}) == Secret(KEY)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://llm-acme.com/v1#m", "https://llm.acme.com/v1#m"),
        ("https://llm.acme.com/v1#m", "https://llm.acme.com:8443/v1#m"),
        ("https://llm.acme.com/v1#m", "https://llm.acme.com.evil.example/v1#m"),
        ("https://127.0.0.1:8443/v1#m", "http://127.0.0.1:8443/v1#m"),
        ("http://127.0.0.1:8080/v1#m", "http://127.0.0.1:8081/v1#m"),
        ("http://127.0.0.1:8080/v1#m", "http://[::1]:8080/v1#m"),
        ("openai:m", "https://api.openai.com.evil.example/v1#m"),
        ("openai:m", "http://api.openai.com/v1#m"),
    ],
)
def test_a_stored_key_is_bound_to_one_origin(settings: Settings, one: str, other: str) -> None:
    set_key(settings, resolve(one).origin, Secret(KEY))

    assert find_key(resolve(one), settings, {}) == Secret(KEY)
    assert find_key(resolve(other), settings, {"OPENAI_API_KEY": KEY}) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://llm.acme.com/v1#m", "https://LLM.acme.com:443/other/v1#n"),
        ("openai:m", "https://api.openai.com/v1#n"),
    ],
)
def test_a_stored_key_serves_its_whole_origin(settings: Settings, one: str, other: str) -> None:
    set_key(settings, resolve(one).origin, Secret(KEY))

    assert find_key(resolve(other), settings, {}) == Secret(KEY)


def test_a_provider_that_is_moved_leaves_its_stored_key_behind(settings: Settings) -> None:
    set_key(settings, OPENAI.origin, Secret(KEY))
    moved = resolve("openai:m", base_urls={"openai": "https://proxy.example/v1"})

    with pytest.raises(ConfigError, match="no key for openai:m"):
        find_key(moved, settings, {})


@pytest.mark.parametrize("url", ["http://gpu.example/v1", "http://10.0.0.5:8000/v1", "http://api.openai.com/v1"])
def test_a_key_is_not_sent_over_plain_http(url: str) -> None:
    with pytest.raises(ConfigError, match=r"a key is not sent over plain HTTP to http://") as caught:
        HttpModel(replace(OPENAI, base_url=url), KEY)

    assert KEY not in caught.value.message
    HttpModel(replace(OPENAI, base_url=url))


def test_a_key_that_could_never_be_sent_is_not_stored(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="plain HTTP"):
        set_key(settings, "http://gpu.example", Secret(KEY))

    assert not settings.keys_path.exists()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1", "https://gpu.example/v1"]
)
def test_a_key_is_sent_over_tls_and_to_this_machine(url: str) -> None:
    HttpModel(replace(OPENAI, base_url=url), KEY)


def test_the_file_is_its_owners_alone(settings: Settings) -> None:
    set_key(settings, OPENAI.origin, Secret(KEY))

    assert stat.S_IMODE(settings.keys_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(settings.keys_path.parent.stat().st_mode) == 0o700
    assert [item.name for item in settings.keys_path.parent.iterdir()] == ["keys.json"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_may_read_is_refused_with_its_mend(settings: Settings, mode: int) -> None:
    set_key(settings, OPENAI.origin, Secret(KEY))
    settings.keys_path.chmod(mode)

    with pytest.raises(ConfigError, match=rf"mode {mode:o}.*chmod 600"):
        find_key(OPENAI, settings, {})


@pytest.mark.parametrize(
    "text", [f'{{"OPENAI_API_KEY": {KEY}', f'["{KEY}"]', f'{{"OPENAI_API_KEY": ["{KEY}"]}}', "\xff", "[" * 100_000]
)
def test_a_broken_file_is_named_and_nothing_of_it_shown(settings: Settings, text: str) -> None:
    set_key(settings, OPENAI.origin, Secret("old"))
    settings.keys_path.write_text(text, encoding="latin-1")

    with pytest.raises(ConfigError, match=r"keys\.json") as caught:
        find_key(OPENAI, settings, {})

    assert KEY not in str(caught.value)


def test_the_list_names_keys_and_their_places_and_shows_nothing_of_them(settings: Settings) -> None:
    set_key(settings, OPENAI.origin, Secret(KEY))
    set_key(settings, "https://api.anthropic.com", Secret(KEY))

    rows = list_keys(
        settings, key_variables(settings), {"OPENAI_API_KEY": KEY, "MISTRAL_API_KEY": KEY, "GROQ_API_KEY": ""}
    )

    assert rows == (
        KeyRow("https://api.anthropic.com", "", True),
        KeyRow("https://api.mistral.ai", "MISTRAL_API_KEY", False),
        KeyRow("https://api.openai.com", "OPENAI_API_KEY", True),
    )
    assert "canary" not in repr(rows)


def test_a_misspelt_provider_is_named_with_the_nearest(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="'opnai': did you mean 'openai'"):
        resolve_server("opnai", settings)
    assert resolve_server("ollama", settings).origin == "http://127.0.0.1:11434"
    assert resolve_server("HF_TOKEN", settings).origin == "https://router.huggingface.co"


@pytest.mark.parametrize("text", ["", "  ", "two words", "two\nlines", "鍵"])
def test_a_text_that_cannot_be_a_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        Secret(text, "OPENAI_API_KEY")


# --- how a key hides --------------------------------------------------------------------------------------------------


def test_a_key_has_no_form_but_the_one_that_is_asked_for() -> None:
    secret = Secret(KEY)

    shown = [repr(secret), str(secret), f"{secret}", f"{secret:>5}", f"{[secret]}", f"{secret!s}", str({"key": secret})]

    assert not [text for text in shown if "canary" in text]
    assert secret.reveal() == KEY
    for leak in (pickle.dumps, copy.copy, json.dumps):
        with pytest.raises(TypeError, match=r"pickled|serializable"):
            leak(secret)


@given(st.text("ab", min_size=6, max_size=12), st.text("abc ", max_size=30), st.text("abc ", max_size=30))
def test_nothing_of_a_key_is_left_in_a_text_even_where_the_text_cuts_it_off(key: str, before: str, after: str) -> None:
    whole = mask_text(f"{before}{key}{after}", [key])
    cut = mask_text(f"{before}{key[:-1]}", [key])

    assert key not in whole
    assert not cut.endswith(key[:-1]) or len(key) == 6


def test_a_key_of_one_letter_leaves_the_words_of_an_error_readable() -> None:
    assert mask_text("unknown key k, or 'k'", ["k"]) == "unknown key •••, or '•••'"


def test_an_error_is_rid_of_the_key_in_all_its_parts() -> None:
    error = ProtocolError(f"odd: {KEY}", body=f"… {KEY[:12]}…")

    mask_error(error, [KEY])

    assert "canary" not in f"{error!r} {error} {error.args} {error.record()}"


# --- whether a key is right -------------------------------------------------------------------------------------------


def test_a_key_is_checked_by_the_list_of_models(faults: FaultServer) -> None:
    faults.plays(status(200, b'{"data": []}'))

    check_key(replace(OPENAI, base_url=faults.base_url), Secret(KEY))

    assert [(seen.method, seen.path) for seen in faults.seen] == [("GET", "/v1/models")]
    assert faults.seen[0].headers["authorization"] == f"Bearer {KEY}"


def test_the_messages_protocol_is_checked_with_its_version(faults: FaultServer) -> None:
    faults.plays(status(200, b'{"data": []}'))

    check_key(replace(resolve("anthropic:claude-sonnet-4-5"), base_url=faults.base_url), Secret(KEY))

    assert faults.seen[0].headers["x-api-key"] == KEY
    assert "anthropic-version" in faults.seen[0].headers


def test_where_there_is_no_list_of_models_one_token_is_asked_for(faults: FaultServer) -> None:
    faults.plays(status(404), speech("h"))

    check_key(resolve(f"{faults.base_url}#m"), Secret(KEY))

    assert [seen.method for seen in faults.seen] == ["GET", "POST"]
    assert json.loads(faults.seen[1].body)["max_tokens"] == 1


def test_a_server_that_lists_its_models_to_everybody_is_asked_for_one_token(faults: FaultServer) -> None:
    listing = status(200, b'{"data": [{"id": "qwen"}]}')
    faults.plays(listing, listing, status(401))

    with pytest.raises(AuthenticationError):
        check_key(resolve_server(faults.url, load({}, {"HOME": "/"}, Path("/none/config.yaml"))), Secret(KEY))

    assert [seen.method for seen in faults.seen] == ["GET", "GET", "POST"]
    assert "authorization" not in faults.seen[1].headers
    assert json.loads(faults.seen[2].body)["model"] == "qwen"


def test_a_server_that_wants_a_key_for_its_list_is_not_asked_for_a_token(faults: FaultServer) -> None:
    faults.plays(status(200, b'{"data": [{"id": "qwen"}]}'), status(401))

    check_key(resolve(f"{faults.base_url}#m"), Secret(KEY))

    assert [seen.method for seen in faults.seen] == ["GET", "GET"]


@pytest.mark.parametrize("acts", [(status(401),), (status(404), status(401))])
def test_a_wrong_key_is_told(faults: FaultServer, acts: tuple[Act, ...]) -> None:
    faults.plays(*acts)

    with pytest.raises(AuthenticationError, match="taiwa keys set") as caught:
        check_key(replace(OPENAI, base_url=faults.base_url), Secret(KEY))

    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "stored", "told"),
    [
        ("OPENAI_API_KEY", True, "the key in OPENAI_API_KEY for 'gpt-4.1' (401); set another in the environment"),
        ("", True, "the key that is stored for 'gpt-4.1' (401); set another with `taiwa keys set openai`"),
        ("", False, "the key for 'gpt-4.1' (401); no key is set: run `taiwa keys set openai`"),
    ],
)
def test_the_place_of_a_wrong_key_is_told(
    faults: FaultServer, settings: Settings, variable: str, stored: bool, told: str
) -> None:
    target = replace(OPENAI, base_url=faults.base_url)
    if stored:
        set_key(settings, faults.url, Secret(KEY))
    key = find_key(target, settings, {variable: f"{KEY}-outside"} if variable else {})
    faults.plays(status(401))

    with HttpModel(target, key) as opened, pytest.raises(AuthenticationError) as caught:
        opened.fetch("models")

    assert caught.value.message == f"OpenAI does not accept {told}"


def test_a_key_that_cannot_be_checked_is_not_called_wrong(faults: FaultServer) -> None:
    faults.plays(status(400, b'{"error": {"message": "no"}}'))

    with pytest.raises(ModelError) as caught:
        check_key(replace(OPENAI, base_url=faults.base_url), Secret(KEY))

    assert not isinstance(caught.value, AuthenticationError)


def test_a_server_of_ones_own_may_have_a_key_and_does_without_one(settings: Settings) -> None:
    name = "http://127.0.0.1:8080/v1#qwen"

    before = find_key(resolve(name), settings, {})
    set_key(settings, resolve_server("http://127.0.0.1:8080", settings).origin, Secret("canary-own"))
    after = find_key(resolve(name), settings, {})

    assert before is None
    assert after is not None
    assert after.reveal() == "canary-own"
    assert find_key(resolve("http://127.0.0.1:8081/v1#qwen"), settings, {}) is None
    assert find_key(resolve("llamacpp:qwen", base_urls={"llamacpp": "http://gpu.example/v1"}), settings, {}) is None
