"""Settings and keys: where each value comes from, and that no key is ever shown."""

import re

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.cli.terminal import Terminal
from tests.peers.faults import status

CANARY = "sk-canary-7d1f0a5c93b24e68"


# --- settings ---------------------------------------------------------------------------------------------------------


def test_every_setting_says_where_it_comes_from(taiwa: Taiwa, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.set(model="ollama:one", timeout=5)
    monkeypatch.setenv("TAIWA_TIMEOUT", "7")

    data = taiwa.ok("config", "show", "--json", "-m", "ollama:two").json

    assert data["model"] == {"value": "ollama:two", "origin": "--model"}
    assert data["timeout"] == {"value": "7", "origin": "TAIWA_TIMEOUT"}
    assert data["attempts"]["origin"] == "default"
    assert re.search(r"model +ollama:one +.*config\.yaml:1", taiwa.ok("config", "show").out)


@pytest.mark.parametrize("flag", ["--model", "--store"])
def test_the_error_of_a_value_names_its_flag(taiwa: Taiwa, flag: str) -> None:
    assert taiwa("ask", "Hi", flag, "").err == f"taiwa: {flag} must be text on one line, not ''\n"


def test_what_is_set_is_used_until_it_is_removed(taiwa: Taiwa, place: Place) -> None:
    taiwa.ok("config", "set", "model", "ollama:one")
    taiwa.ok("config", "set", "prices.ollama:one.input", "0.25")

    assert taiwa.ok("config", "show", "--json").json["model"]["value"] == "ollama:one"
    taiwa.ok("config", "remove", "model")
    assert taiwa.ok("config", "show", "--json").json["model"]["value"] == ""
    assert taiwa.ok("config", "path").out == f"{place.config}\n"


def test_a_price_that_is_set_names_the_one_that_is_required_too(taiwa: Taiwa) -> None:
    first = taiwa.ok("config", "set", "prices.ollama:one.input", "0.25")
    second = taiwa.ok("config", "set", "prices.ollama:one.output", "1")

    assert (
        first.err == "set the other price too, per million tokens: taiwa config set prices.ollama:one.output AMOUNT\n"
    )
    assert second.err == ""


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("set", "modle", "x"), "unknown key 'modle'; did you mean 'model'?"),
        (
            ("set", "capabilities.http://127.0.0.1:8080/v1", "true"),
            "unknown key '1:8080/v1' at the end of capabilities.http://127.0.0.1:8080/v1; the keys are stop, ",
        ),
        (("set", "timeout", "soon"), "timeout must be a number such as 0.25, not 'soon'"),
        (("remove", "timeout"), "timeout"),
    ],
)
def test_an_invalid_setting_is_an_error_of_one_line(taiwa: Taiwa, command: tuple[str, ...], line: str) -> None:
    done = taiwa("config", *command)

    assert done.code == 2
    assert line in done.err


def test_a_broken_config_file_names_its_line(taiwa: Taiwa, place: Place) -> None:
    place.config.parent.mkdir(parents=True)
    place.config.write_text("model: ollama:x\nmodle: y\n")

    done = taiwa("log")

    assert done.code == 2
    assert f"{place.config}:2: unknown key 'modle'" in done.err


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def provider(model_server: ModelServer, place: Place) -> ModelServer:
    """OpenAI, moved to this machine."""
    model_server(delta("Hello!"), base_urls={"openai": model_server.url})
    return model_server


def test_a_key_is_kept_and_tried_and_never_shown(taiwa: Taiwa, provider: ModelServer, place: Place) -> None:
    kept = taiwa.ok("keys", "set", "openai", input=f"{CANARY}\n")
    listed = taiwa.ok("keys", "list")
    shown = taiwa.ok("config", "show")
    taiwa.ok("keys", "list", "--json")

    file = place.config.with_name("keys.json")
    assert file.stat().st_mode & 0o077 == 0
    assert provider.seen[0].headers["authorization"] == f"Bearer {CANARY}"
    assert kept.out.splitlines()[0] == "it works"
    assert listed.lines[1].split() == [provider.url.removesuffix("/v1"), "stored"]
    for result in (kept, listed, shown):
        assert CANARY not in result.out + result.err


def test_a_key_never_reaches_the_store_a_log_or_an_error(taiwa: Taiwa, provider: ModelServer, place: Place) -> None:
    taiwa.ok("keys", "set", "openai", "--no-check", input=f"{CANARY}\n")
    refused = status(401, f'{{"error": {{"message": "Incorrect API key provided: {CANARY}"}}}}'.encode())
    provider(delta("Hello!"), refused, base_urls={"openai": provider.url})

    output = taiwa.ok("say", "chat", "-m", "openai:gpt-x", "-v", "Hi")
    failed = taiwa("say", "-m", "openai:gpt-x", "-c", "Hi")
    shown = [taiwa("show"), taiwa("cost"), taiwa("export"), taiwa("models", "show", "openai:gpt-x")]

    assert failed.code == 1
    for result in (output, failed, *shown):
        assert CANARY not in result.out + result.err
    files = [path for path in place.folder.rglob("*") if path.is_file() and path.name != "keys.json"]
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("named", ["openai", "URL"])
def test_a_wrong_key_is_refused_and_not_stored(taiwa: Taiwa, provider: ModelServer, named: str) -> None:
    provider(status(401, b'{"error": {"message": "no"}}'), base_urls={"openai": provider.url})

    done = taiwa("keys", "set", provider.url if named == "URL" else named, input=f"{CANARY}\n")

    assert done.code == 1
    assert "does not accept this key; it is not stored" in done.err
    assert CANARY not in done.err
    assert taiwa.ok("keys", "list").err == "no keys are stored; a local server needs none\n"


def test_a_key_is_typed_unseen(provider: ModelServer, place: Place) -> None:
    with Terminal(place.environment(), "keys", "set", "openai") as shown:
        shown.see(f"key for {provider.url.removesuffix('/v1')} (not shown)")
        shown.type(f"{CANARY}\n")
        shown.see("it works")
        assert shown.end() == 0

    assert CANARY not in shown.text


def test_a_key_can_be_taken_out_again(taiwa: Taiwa, provider: ModelServer) -> None:
    taiwa.ok("keys", "set", "openai", "--no-check", input=CANARY)

    assert taiwa.ok("keys", "remove", "openai").out == f"the key for {provider.url.removesuffix('/v1')} is deleted\n"
    assert taiwa.ok("keys", "list").err == "no keys are stored; a local server needs none\n"
    assert taiwa("keys", "remove", "openai").code == 2


@pytest.mark.parametrize(
    ("command", "given", "line"),
    [
        (("set", "opnai"), CANARY, "did you mean 'openai'?"),
        (("set", "openai"), " \n", "no key given for https://api.openai.com"),
        (("set", "openai"), CANARY * 2_000, "the key for https://api.openai.com is longer than 16,384 characters"),
    ],
)
def test_a_key_that_cannot_be_kept_is_one_line(taiwa: Taiwa, command: tuple[str, ...], given: str, line: str) -> None:
    done = taiwa("keys", *command, input=given)

    assert done.code == 2
    assert line in done.err
    assert CANARY not in done.err


def test_removing_a_setting_says_what_holds_instead(taiwa: Taiwa, place: Place) -> None:
    taiwa.ok("config", "set", "attempts", "2")

    removed = taiwa.ok("config", "remove", "attempts")

    assert removed.out == f"attempts is removed from {place.config}\n"
    assert removed.err == "it is 3 now (default)\n"


def test_the_name_of_an_alias_may_stand_in_quotes(taiwa: Taiwa) -> None:
    taiwa.ok("config", "set", 'aliases."my.model"', "ollama:one")

    assert taiwa.ok("config", "show", "--json").json["aliases.my.model"]["value"] == "ollama:one"
