"""No text from outside breaks what reads it: those that once did, and new ones.

`make explore` draws with a fresh seed and more rounds (`EXPLORE_SEED`, `EXPLORE_ROUNDS`).
"""

import json
import os
from collections.abc import Iterator

import pytest

from tests.fuzz.targets import SERVERS, TARGETS, Entry, corpus, mutations, play

SEED = int(os.environ.get("EXPLORE_SEED", "20261122"))
ROUNDS = int(os.environ.get("EXPLORE_ROUNDS", "60"))
ENTRIES = tuple(corpus())


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    """Close the server of the targets behind the last test."""
    with SERVERS:
        yield


@pytest.mark.parametrize("entry", ENTRIES, ids=[f"{entry.target}: {entry.why}" for entry in ENTRIES])
def test_a_text_of_the_corpus_is_answered_or_refused(entry: Entry) -> None:
    play(entry.target, entry.text)


def test_each_target_has_a_text_in_the_corpus() -> None:
    assert {entry.target for entry in ENTRIES} == set(TARGETS)


@pytest.mark.fuzz
@pytest.mark.parametrize("target", TARGETS)
def test_a_changed_text_is_answered_or_refused(target: str) -> None:
    for text in mutations(target, SEED, ROUNDS):
        try:
            play(target, text)
        except Exception as error:  # noqa: BLE001  (whatever it broke)
            line = json.dumps({"target": target, "text": text, "why": "what it broke"}, ensure_ascii=True)
            pytest.fail(f"{type(error).__name__}: {error}\nadd to tests/fuzz/corpus.jsonl:\n{line}")
