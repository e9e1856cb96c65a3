"""What the model must never have seen: the texts it is measured by. A draw that shares a run of words with one is thrown away.

The measure is the one common for training corpora: eight words in a row (Brown et al. 2020 took thirteen, others eight), counted
without case and signs; of Japanese and Chinese, which write no blanks, twenty characters.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from unicodedata import normalize

from training.builtin.samples import Sample

__all__ = ["KEYS", "Overlap"]

KEYS = Path(__file__).with_name("keys")
"""Where the questions lie that were written by hand to measure by."""
WORDS, CHARACTERS = 8, 20
WORD = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff]+")
NUMBERS = re.compile(r"[0-9 ]*")
"""Numbers alone are not wording: those of one calculation stand in others, too."""
WRITTEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff々ー]+")


class Overlap:
    """All runs of some texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._runs = frozenset(run for text in texts for run in _runs(text))

    def __len__(self) -> int:
        return len(self._runs)

    @classmethod
    def of_folders(cls, *folders: Path) -> "Overlap":
        """The runs of every text in the JSON lines below some folders; of none where one is not there."""
        return cls(text for folder in folders for path in sorted(folder.rglob("*.jsonl")) for text in _texts(path))

    def shared(self, sample: Sample) -> tuple[str, ...]:
        """The runs that a sample's prompt or answer has in common with these texts."""
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
