"""What a process has read of the beginning of an app's conversations is there for the next one."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from taiwa.kernel.messages import Request, RequestHints, Response, Sampling, assistant, collect_response, system, user
from taiwa.models.inprocess import openings
from taiwa.models.inprocess.gguf import GgufModel
from taiwa.models.inprocess.gguf_backend import GgufNetwork, GgufSequence

OPENING = (system("Answer as a bird would. " * 20), user("Who?"), assistant("The owl."))
SECRET = "my own words, which no other conversation has"
ASK = Request((*OPENING, user(SECRET)), sampling=Sampling(0.0, max_tokens=8), hints=RequestHints(opening=len(OPENING)))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def ask(gguf_file: Path, cache: Path) -> Callable[[Request], Response]:
    """Ask a process that has read nothing."""

    def answer(request: Request) -> Response:
        with GgufModel(f"gguf:{gguf_file}?threads=1&context=2048") as model:
            return collect_response(model.stream(request))

    return answer


def kept(cache: Path) -> list[Path]:
    return sorted(cache.glob("taiwa/openings/*/*"))


def cached(response: Response) -> int:
    assert response.usage is not None
    return response.usage.cache_read_tokens


def test_the_next_process_reads_only_what_is_new_and_answers_the_same(
    ask: Callable[[Request], Response], cache: Path, gguf_file: Path
) -> None:
    first = ask(ASK)
    again = ask(ASK)
    other = ask(replace(ASK, messages=(*OPENING, user("Another conversation"))))

    assert cached(first) == 0
    assert cached(again) == cached(other) > 400
    assert again.text == first.text
    [file] = kept(cache)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    with GgufModel(str(gguf_file)) as model:
        said = model.generator().loaded.encode(SECRET)
    assert b"".join(token.to_bytes(4, "little") for token in said[1:-1]) not in file.read_bytes()


@pytest.mark.parametrize("request_", [replace(ASK, hints=RequestHints()), replace(ASK, messages=(user("Who?"), user("Why?")), hints=RequestHints(opening=1))], ids=["unmarked", "short"])  # fmt: skip
def test_what_no_other_conversation_begins_with_and_what_is_short_is_not_kept(
    ask: Callable[[Request], Response], cache: Path, request_: Request
) -> None:
    ask(request_)

    assert not kept(cache)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:11],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: b"\xff" * len(data),
        lambda data: data[:12] + b"\xff" * (len(data) - 12),
        lambda data: data[:200] + b"\xff" * 4_000 + data[4_200:],
        lambda data: data[:12] + bytes([data[12] ^ 1]) + data[13:],
    ],
    ids=["empty", "header", "half", "last byte", "no header", "no tokens", "other tokens", "one token"],
)
def test_a_file_that_is_damaged_is_replaced(
    ask: Callable[[Request], Response], cache: Path, damage: Callable[[bytes], bytes]
) -> None:
    first = ask(ASK)
    [file] = kept(cache)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))

    assert (cached(again := ask(ASK)), again.text) == (0, first.text)
    assert file.read_bytes() == whole


def test_files_that_were_not_used_for_longest_give_way(
    ask: Callable[[Request], Response], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(ASK)
    [first] = kept(cache)
    monkeypatch.setattr(openings, "MOST_BYTES", first.stat().st_size * 3 // 2)
    ask(replace(ASK, messages=(system("Answer as a fish would. " * 20), *ASK.messages[1:])))

    [left] = kept(cache)
    assert left != first


def test_a_disk_that_is_nearly_full_is_left_alone(
    ask: Callable[[Request], Response], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=openings.MOST_BYTES - 1))
    ask(ASK)

    assert not kept(cache)


def test_an_answer_does_not_need_a_place_for_its_opening(ask: Callable[[Request], Response], cache: Path) -> None:
    (cache / "taiwa").write_text("not a folder", encoding="utf-8")

    assert ask(ASK).text


def test_writers_of_one_opening_do_not_share_a_file(cache: Path, gguf_file: Path) -> None:
    written: list[Path] = []

    def save(sequence: object, count: int, path: Path) -> bool:
        written.append(path)
        path.write_bytes(b"state")
        return True

    kept_openings = openings.Openings(cast("GgufNetwork", SimpleNamespace(save=save)), gguf_file, 0)
    for _ in range(2):
        kept_openings.save(cast("GgufSequence", None), [1, 2, 3])

    assert len(set(written)) == 2
    assert len(kept(cache)) == 1
