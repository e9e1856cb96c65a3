"""Contamination filter: a draw that shares an n-gram with an evaluation text is dropped.

The measure is the one common for training corpora: eight words in a row (Brown et al. 2020 used thirteen, others eight), ignoring
case and punctuation; for Japanese and Chinese, which have no spaces, twenty characters.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from unicodedata import normalize

from training.builtin.samples import Sample

__all__ = ["KEYS", "Overlap"]

KEYS = Path(__file__).with_name("keys")
"""The folder of the hand-written evaluation questions."""
WORDS, CHARACTERS = 8, 20
WORD = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff]+")
NUMBERS = re.compile(r"[0-9 ]*")
"""N-grams of numbers alone are ignored: different questions can share a calculation."""
WRITTEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff々ー]+")


class Overlap:
    """Return all n-grams of some texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._runs = frozenset(run for text in texts for run in _runs(text))

    def __len__(self) -> int:
        return len(self._runs)

    @classmethod
    def of_folders(cls, *folders: Path) -> "Overlap":
        """Read the n-grams of every text in the JSON Lines files below some folders; a missing folder has none."""
        return cls(text for folder in folders for path in sorted(folder.rglob("*.jsonl")) for text in _texts(path))

    def shared(self, sample: Sample) -> tuple[str, ...]:
        """Return the n-grams that the prompt or answer of a sample shares with these texts."""
        return tuple(run for text in (sample.prompt, sample.text) for run in _runs(text) if run in self._runs)


def _runs(text: str) -> Iterator[str]:
    plain = normalize("NFKC", text).casefold()
    words = WORD.findall(plain)
    for start in range(len(words) - WORDS + 1):
        run = " ".join(words[start : start + WORDS])
        if not NUMBERS.fullmatch(run):
            yield run
    written = "".join(WRITTEN.findall(plain))
    for start in range(len(written) - CHARACTERS + 1):
        yield written[start : start + CHARACTERS]


def _texts(path: Path) -> Iterator[str]:
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            yield from _strings(json.loads(line))


def _strings(found: object) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif isinstance(found, dict):
        for part in found.values():
            yield from _strings(part)
    elif isinstance(found, list):
        for part in found:
            yield from _strings(part)
