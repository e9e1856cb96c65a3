"""Models and servers: which are known, what each can do, and what a genuine server really enforces."""

import json
import signal
import threading
from collections.abc import Iterator

import pytest

from taiwa.models.weights.model_files import MODEL_FILES
from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.cli.terminal import Terminal
from tests.peers.faults import head, raw, status
from tests.peers.hub import CONTENT, Hub, tiny_model
from tests.peers.llama import KEY, LlamaServer


def listing(*names: str) -> bytes:
    body = json.dumps({"data": [{"id": name, "owned_by": "somebody"} for name in names]}).encode()
    return head(len(body), "application/json") + body


def test_every_provider_says_how_it_is_named_and_whether_its_key_is_there(
    taiwa: Taiwa, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1")

    shown = taiwa.ok("models", "providers").out

    rows = {line.split()[0]: line for line in shown.splitlines()}
    assert rows["openai:MODEL"].endswith("OPENAI_API_KEY (set)")
    assert rows["anthropic:MODEL"].endswith("ANTHROPIC_API_KEY (not set)")
    assert "http://127.0.0.1:11434/v1" in rows["ollama:MODEL"]
    assert "sk-canary-1" not in shown


def test_capabilities_of_a_model_are_shown(taiwa: Taiwa) -> None:
    data = taiwa.ok("models", "show", "openai:gpt-4o", "--json").json

    assert data["capabilities"]["json_schema"] is True
    assert data["capabilities"]["grammar"] is False
    assert data["probed"] is None
    assert "from the table; `taiwa probe` measures them" in taiwa.ok("models", "show", "openai:gpt-4o").err
    assert "the decode loop of taiwa" in taiwa.ok("models", "show", "gguf:model.gguf").err  # which no probe measures


@pytest.mark.parametrize(
    ("name", "wire", "fields"),
    [
        ("openai:gpt-5", "  wire=responses", {"wire": "responses"}),
        ("openai:gpt-4o", "  wire=chat", {}),
        ("anthropic:claude-opus-5", "  wire=messages", {"wire": "messages"}),
        ("local:./model", "", {}),
    ],
)
def test_the_wire_of_a_model_is_shown_and_recorded_unless_it_is_chat(
    taiwa: Taiwa, name: str, wire: str, fields: dict[str, str]
) -> None:
    record = taiwa.ok("models", "show", name, "--json").json
    line = taiwa.ok("models", "show", name).lines[0]

    assert {key: record[key] for key in ("wire",) if key in record} == fields
    assert line.partition("  wire=")[1:] == wire.partition("  wire=")[1:]


def test_a_server_lists_its_own_models(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(raw(listing("b", "a"), close=False))

    assert taiwa.ok("models", "remote").lines == ["a", "b"]
    assert model_server.seen[0].path == "/v1/models"


def test_the_models_of_a_provider_without_a_key_name_the_provider(taiwa: Taiwa) -> None:
    assert taiwa("models", "remote", "openai").err.startswith("taiwa: no key for openai: run `taiwa keys set openai`")


@pytest.mark.parametrize("words", [("show",), ("remote",)])
def test_without_a_model_there_is_none_to_show(taiwa: Taiwa, words: tuple[str, ...]) -> None:
    done = taiwa("models", *words)

    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "no model is set" in done.err


NESTED = b"[" * 200_000


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        NESTED,
        b'{"data": ' + NESTED,
        b'{"data": [{"id": 5}]}',
        b'{"data": [{"id": "\\n"}]}',
        b'{"data": {}}',
    ],
)
def test_a_server_that_lists_nothing_that_is_known_is_one_line(
    taiwa: Taiwa, model_server: ModelServer, body: bytes
) -> None:
    model_server(raw(head(len(body), "application/json") + body, close=False))

    done = taiwa("models", "remote")

    assert done.code == 1
    assert "returned an unknown list of models" in done.err


def test_a_server_that_refuses_the_key_is_an_error_of_one_line(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(*[status(401, b"no")] * 3)

    done = taiwa("probe")

    assert done.code == 1
    assert done.err.count("\n") == 1


@pytest.mark.slow
def test_a_genuine_server_is_probed_and_what_it_enforces_is_used_from_then_on(
    taiwa: Taiwa, place: Place, llama: LlamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "llamacpp:tiny"
    place.set(model=name, base_urls={"llamacpp": llama.base_url})
    monkeypatch.setenv("LLAMACPP_API_KEY", KEY)

    data = taiwa.ok("probe", "--json").json

    assert data["findings"]["schema.enum"]["verdict"] == "enforced"
    assert data["findings"]["usage"]["verdict"] == "enforced"
    assert data["requests"] > 20
    shown = taiwa.ok("models", "show", "--json").json
    assert shown["probed"]
    assert shown["capabilities"]["json_schema"] is True
    assert KEY not in place.config.with_name("probes.json").read_text()


@pytest.fixture
def hub(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub, and a model `tiny` that it has; no other program has models."""
    monkeypatch.setenv("HOME", str(place.folder))
    for name in ("HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(MODEL_FILES, "tiny", tiny_model())  # type: ignore[arg-type]
    with Hub({"owner/tiny-GGUF/tiny.Q4.gguf": CONTENT}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def test_a_model_is_fetched_once_with_plain_lines_of_progress(taiwa: Taiwa, hub: Hub, place: Place) -> None:
    done = taiwa.ok("models", "pull", "tiny")

    path = place.folder / "cache/taiwa/models/tiny.Q4.gguf"
    assert path.read_bytes() == CONTENT
    assert done.lines == [f"{path} (307,204 bytes, verified); use it with -m tiny"]
    assert done.err.splitlines()[0] == f"tiny from {hub.url.removeprefix('http://')}"
    assert done.err.splitlines()[-1] == "tiny: 100 % (307,204 bytes)"
    assert taiwa.ok("models", "pull", "tiny").err == ""
    assert taiwa.ok("models", "pull", "tiny", "--json").json == {
        "model": "tiny", "path": str(path), "bytes": len(CONTENT), "sha256": tiny_model().sha256, "source": None,
    }  # fmt: skip


@pytest.mark.usefixtures("hub")
def test_a_fetched_model_can_be_set_as_the_one_to_use(taiwa: Taiwa) -> None:
    taiwa.ok("models", "pull", "tiny", "--use")

    assert taiwa.ok("config", "show", "--json").json["model"]["value"] == "tiny"


def test_every_source_that_fails_is_one_line(taiwa: Taiwa, hub: Hub, place: Place) -> None:
    hub.status = 503

    done = taiwa("models", "pull", "tiny", "--from", str(place.folder))

    assert done.code == 2
    host = hub.url.removeprefix("http://")
    assert done.err.splitlines() == [
        f"tiny from {place.folder}",
        f"{place.folder} has no tiny.Q4.gguf",
        f"tiny from {host}",
        f"{host} answers HTTP 503",
        f"taiwa: tiny cannot be fetched: {place.folder} has no tiny.Q4.gguf; {host} answers HTTP 503",
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("huge",), "unknown model 'huge'; choose one of smollm2-135m"),
        (("hf:owner/repo/../../x.gguf",), "is not a path within a repository"),
        (("tiny", "--from", "ftp://host"), "--from must be an address"),
        (("tiny", "--from", "http://user:secret@host"), "--from must not contain a user name or password"),
    ],
)
def test_a_bad_name_or_source_is_one_line(taiwa: Taiwa, hub: Hub, arguments: tuple[str, ...], problem: str) -> None:
    done = taiwa("models", "pull", *arguments)

    assert done.code == 2
    assert problem in done.err
    assert "secret" not in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("name", ["tiny", "hf:owner/tiny-GGUF/tiny.Q4.gguf"])
@pytest.mark.parametrize("endpoint", ["http://[", "http://user:secret@host", "host:80"])
def test_an_address_of_the_hub_that_is_none_is_one_line(
    taiwa: Taiwa, hub: Hub, monkeypatch: pytest.MonkeyPatch, name: str, endpoint: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)

    done = taiwa("models", "pull", name)

    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("taiwa: HF_ENDPOINT ")
    assert "secret" not in done.err


def test_an_interrupted_pull_keeps_its_bytes_and_says_how_to_continue(taiwa: Taiwa, hub: Hub, place: Place) -> None:
    sent, goes_on = threading.Event(), threading.Event()
    hub.cuts = [1000]
    hub.on_cut = lambda: (sent.set(), goes_on.wait(60))[0]
    part = place.folder / "cache/taiwa/models/tiny.Q4.gguf.part"
    command = taiwa.start("models", "pull", "hf:owner/tiny-GGUF/tiny.Q4.gguf")
    assert sent.wait(60)
    command.send_signal(signal.SIGINT)

    _, err = command.communicate(timeout=60)
    goes_on.set()

    assert command.returncode == 130
    assert err.decode().splitlines()[-1] == (
        "taiwa: interrupted; to continue: taiwa models pull hf:owner/tiny-GGUF/tiny.Q4.gguf"
    )
    assert not part.with_suffix("").exists()
    assert taiwa.ok("models", "pull", "hf:owner/tiny-GGUF/tiny.Q4.gguf").err.startswith("hf:owner")
    assert part.with_suffix("").read_bytes() == CONTENT


def test_models_are_listed_within_eighty_columns(taiwa: Taiwa, hub: Hub, place: Place) -> None:
    other = place.folder / ".lmstudio/models/owner/repo/other.gguf"
    other.parent.mkdir(parents=True)
    other.write_bytes(CONTENT)

    shown = taiwa.ok("models", "list")

    assert max(map(len, shown.lines)) <= 80
    rows = {line.split()[0]: line for line in shown.lines if line}
    assert rows["qwen2.5-coder-0.5b"].split() == [
        "qwen2.5-coder-0.5b", "491", "MB", "750", "MB", "en", "zh", "ja", "Apache-2.0", "to", "fetch",
    ]  # fmt: skip
    assert shown.lines[-1].endswith("gguf:~/.lmstudio/models/owner/repo/other.gguf")
    taiwa.ok("models", "pull", "tiny")
    assert [each["status"] for each in taiwa.ok("models", "list", "--json").json["known"]][-1] == "here"


def test_a_model_is_removed_after_a_confirmation(taiwa: Taiwa, hub: Hub, place: Place) -> None:
    taiwa.ok("models", "pull", "tiny")
    path = place.folder / "cache/taiwa/models/tiny.Q4.gguf"

    refused = taiwa("models", "remove", "tiny")
    assert refused.code == 2
    assert refused.err == f"taiwa: nothing was removed; add --yes to remove {path}\n"
    assert taiwa.ok("models", "remove", "tiny", "--yes").out == f"removed {path}\n"

    assert not path.exists()
    assert taiwa("models", "remove", "tiny", "--yes").code == 2


def test_a_terminal_shows_a_bar_and_asks_before_a_model_is_removed(hub: Hub, place: Place) -> None:
    name = "hf:owner/tiny-GGUF/tiny.Q4.gguf"
    with Terminal(place.environment(), "models", "pull", name) as terminal:
        terminal.see("307.2/307.2 kB")
        terminal.see("verified")
    assert "100 %" not in terminal.text
    path = place.folder / "cache/taiwa/models/tiny.Q4.gguf"

    with Terminal(place.environment(), "models", "remove", path.name) as terminal:
        terminal.see("[y/N]")
        terminal.type("n\n")
        terminal.see("interrupted")
    assert path.exists()


def test_a_model_that_is_not_here_says_how_to_fetch_it(taiwa: Taiwa) -> None:
    done = taiwa("say", "-m", "qwen2.5-coder-0.5b", "hi")

    assert done.code == 2
    assert done.err == (
        "taiwa: model qwen2.5-coder-0.5b is not on this machine; run: taiwa models pull qwen2.5-coder-0.5b (491 MB)\n"
    )
