"""Fetching: from a hub that breaks, lies and redirects; continued, verified, and never half-written under the final name."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.models.weights.fetch import CONTINUATIONS, FetchEvent, fetch
from taiwa.models.weights.sources import HubSource, LocalSource, MirrorSource, Source
from tests.peers.hub import CONTENT, Hub, tiny_model

OTHER = CONTENT[:-1] + b"?"
HALF = len(CONTENT) // 2


class Pull:
    """Fetches the file of the tests and keeps the events."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tiny.Q4.gguf"
        self.part = folder / "tiny.Q4.gguf.part"
        self.events: list[FetchEvent] = []
        self.on_event: Callable[[FetchEvent], None] = lambda _: None

    def __call__(self, *sources: Source, replaces: bool = True) -> str:
        def listener(event: FetchEvent) -> None:
            self.events.append(event)
            self.on_event(event)

        path, label = fetch(tiny_model(), sources or (HubSource(),), listener, replaces=replaces)
        assert path == self.path
        assert path.read_bytes() == CONTENT
        assert list(path.parent.iterdir()) == [path]
        return label

    def refused(self, problem: str, *sources: Source) -> None:
        with pytest.raises(ConfigError, match=problem) as caught:
            self(*sources)
        assert "\n" not in str(caught.value)
        assert not self.path.exists()

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events if event.kind != "progress"]


@pytest.fixture
def pull(folder: Path) -> Pull:
    return Pull(folder)


def test_a_file_comes_from_the_hub_with_its_progress(hub: Hub, pull: Pull) -> None:
    assert pull() == hub.url.removeprefix("http://")

    assert pull.events[0].kind == "source"
    assert (pull.events[-1].done, pull.events[-1].total) == (len(CONTENT), len(CONTENT))
    # huggingface_hub asks once for a list of programs, which it names in its user agent
    assert [each.method for each in hub.asked if "/resolve/" in each.path] == ["HEAD", "GET"]


def test_a_file_that_is_here_is_verified_and_not_fetched_again(hub: Hub, pull: Pull) -> None:
    pull()
    hub.asked.clear()

    assert pull() == ""

    assert not hub.asked


def test_redirects_are_followed_without_the_token(hub: Hub, pull: Pull, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    hub.redirects = True

    pull()

    assert {each.authorization for each in hub.asked if not each.is_elsewhere} == {"Bearer hf_canary"}
    assert [each.authorization for each in hub.downloads] == [""]


def test_redirects_in_a_circle_end(hub: Hub, pull: Pull) -> None:
    hub.circles = True

    pull.refused("redirect")


def test_a_download_that_breaks_is_continued_where_it_stopped(hub: Hub, pull: Pull) -> None:
    hub.cuts = [1000, 5000]

    pull()

    assert [each.range for each in hub.downloads] == ["", "bytes=1000-", "bytes=6000-"]


def test_a_server_without_ranges_sends_the_beginning_again(hub: Hub, pull: Pull) -> None:
    hub.cuts, hub.ignores_range = [1000], True

    pull()

    assert len(hub.downloads) == 2


def test_a_hub_that_always_breaks_is_given_up_and_the_bytes_are_kept(hub: Hub, pull: Pull) -> None:
    hub.cuts = [100] * 20

    pull.refused("breaks off")

    assert len(hub.downloads) == CONTINUATIONS + 1
    assert pull.part.read_bytes() == CONTENT[: 100 * (CONTINUATIONS + 1)]


def test_the_next_call_continues_an_interrupted_one(hub: Hub, pull: Pull) -> None:
    def interrupt(event: FetchEvent) -> None:
        if event.done:
            raise KeyboardInterrupt

    pull.on_event = interrupt
    hub.cuts, hub.without_length = [HALF], True
    with pytest.raises(KeyboardInterrupt):
        pull()
    assert 0 < len(kept := pull.part.read_bytes()) < len(CONTENT)
    assert CONTENT.startswith(kept)

    pull.on_event, hub.without_length = lambda _: None, False
    pull()

    assert hub.downloads[-1].range == f"bytes={len(kept)}-"


def test_another_source_continues_what_one_began(hub: Hub, pull: Pull, tmp_path: Path) -> None:
    (tmp_path / "tiny.Q4.gguf").write_bytes(CONTENT[:HALF])

    assert pull(LocalSource(tmp_path, "disk"), HubSource()) == hub.url.removeprefix("http://")

    assert hub.downloads[0].range == f"bytes={HALF}-"
    assert pull.kinds() == ["source", "failed", "source"]


def test_another_file_of_the_same_size_is_thrown_away(hub: Hub, pull: Pull) -> None:
    hub.sends = OTHER

    pull.refused("sends another file")

    assert not pull.part.exists()


def test_a_hub_that_states_another_hash_is_not_asked_for_the_file(hub: Hub, pull: Pull) -> None:
    hub.files["owner/tiny-GGUF/tiny.Q4.gguf"] = OTHER

    pull.refused("has another file under the name tiny.Q4.gguf")

    assert not hub.downloads


def test_what_a_liar_began_does_not_spoil_an_honest_source(hub: Hub, pull: Pull) -> None:
    pull.part.parent.mkdir(parents=True)
    pull.part.write_bytes(b"x" * HALF)

    pull()

    assert [each.range for each in hub.downloads] == [f"bytes={HALF}-", ""]


@pytest.mark.parametrize("without_length", [False, True])
def test_a_file_that_is_longer_than_stated_ends_there(hub: Hub, pull: Pull, without_length: bool) -> None:
    hub.sends, hub.without_length = CONTENT + bytes(1 << 22), without_length

    pull.refused("sends more than the")

    assert not pull.part.exists()


def test_a_file_that_is_shorter_than_stated_is_not_complete(hub: Hub, pull: Pull) -> None:
    hub.sends = CONTENT[:HALF]

    pull.refused("sends .* of .* bytes|HTTP|breaks off|cannot be reached")


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_hub_that_refuses_is_one_line(hub: Hub, pull: Pull, status: int) -> None:
    hub.status = status

    pull.refused(f"tiny cannot be fetched: {hub.url.removeprefix('http://')} ")


def test_a_hub_that_cannot_be_reached_is_left_for_the_next_source(
    pull: Pull, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (tmp_path / "tiny.Q4.gguf").write_bytes(CONTENT)

    assert pull(HubSource(), LocalSource(tmp_path, "disk")) == "disk"

    failed = next(event for event in pull.events if event.kind == "failed")
    assert failed.source == "127.0.0.1:9"
    assert failed.reason.startswith("cannot be reached")


def test_a_mirror_has_files_by_their_own_names(hub: Hub, pull: Pull) -> None:
    hub.files["mirror/tiny.Q4.gguf"] = CONTENT

    pull(MirrorSource(f"{hub.url}/mirror"))

    assert hub.asked[0].path == "/mirror/tiny.Q4.gguf"


def test_a_damaged_file_is_replaced_and_the_user_told(hub: Hub, pull: Pull) -> None:
    pull.path.parent.mkdir(parents=True)
    pull.path.write_bytes(OTHER)

    pull()

    assert pull.kinds() == ["damaged", "source"]


def test_a_file_of_the_user_is_not_replaced(hub: Hub, pull: Pull) -> None:
    pull.path.parent.mkdir(parents=True)
    pull.path.write_bytes(OTHER)

    with pytest.raises(ConfigError, match=r"is another file; remove it with: taiwa models remove tiny.Q4.gguf"):
        pull(replaces=False)

    assert pull.path.read_bytes() == OTHER


def test_the_second_of_two_pulls_waits_and_finds_the_file(hub: Hub, pull: Pull) -> None:
    pull.part.parent.mkdir(parents=True)
    first = pull.part.open("a+b")
    fcntl.flock(first, fcntl.LOCK_EX)

    def finish(event: FetchEvent) -> None:
        if event.kind == "waiting":
            first.write(CONTENT)
            first.flush()
            pull.part.replace(pull.path)
            first.close()

    pull.on_event = finish

    assert pull() == ""

    assert pull.kinds() == ["waiting"]
    assert not hub.asked


def test_a_full_disk_is_noticed_before_anything_is_fetched(
    hub: Hub, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))

    pull.refused("has 1,000 bytes free, and .* are missing")

    assert not hub.asked


def test_a_folder_that_cannot_be_written_is_one_line(pull: Pull) -> None:
    pull.path.parent.parent.mkdir(parents=True)
    pull.path.parent.write_text("a file where the folder should be")

    with pytest.raises(ConfigError, match="cannot write"):
        pull()


def test_without_a_source_nothing_is_left(pull: Pull) -> None:
    with pytest.raises(ConfigError, match="no source is known"):
        fetch(tiny_model(), (), lambda _: None, replaces=True)

    assert not list(pull.path.parent.iterdir())
