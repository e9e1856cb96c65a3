"""Files of what a model in this process has read of the messages with which the conversations of an app begin.

A process reads the instructions and examples of an app, several hundred tokens, before its first answer; the next process loads them.
A file holds the tokens and the keys and values that llama.cpp computed of them (28 KB a token for Qwen2.5-Coder 1.5B), nothing that a user
wrote. It is named by its tokens, in a folder named by the model: another file, or another build of llama.cpp, reads it anew.
"""

import os
import shutil
from array import array
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex

from taiwa.kernel.errors import ModelError
from taiwa.models.inprocess.gguf_backend import GgufNetwork, GgufSequence, file_key
from taiwa.settings import cache_folder, check_own

DIGEST_BYTES = 16
MOST_BYTES = 1 << 30
"""Bytes of all files; those that were not used for longest are removed. With less than that free on the disk, none is written."""


class Openings:
    """The openings of one model, in a folder beside those of other models. What cannot be read or written is read by the model."""

    def __init__(self, network: GgufNetwork, file: Path, layers: int) -> None:
        self._network = network
        try:
            cache = cache_folder()
        except RuntimeError:  # this user has no home; nothing can be made below a file
            cache = Path(os.devnull)
        self._folder = cache / "openings" / file_key(file, layers, version("xllamacpp"))

    def load(self, tokens: Sequence[int]) -> GgufSequence | None:
        """Return a sequence that has read these tokens; None if there is none."""
        place = self._place(tokens)
        with suppress(OSError):
            check_own(place.parent)
            os.utime(place)
            if _is_whole(place) and (sequence := self._network.load(tokens, place)) is not None:
                return sequence
            place.unlink()
        return None

    def save(self, sequence: GgufSequence, tokens: Sequence[int]) -> None:
        """Write what a sequence has read of these tokens, which it begins with."""
        place = self._place(tokens)
        part = place.with_suffix(f".{token_hex(8)}")  # containers that share the folder have equal process ids
        with suppress(OSError, ModelError):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_own(place.parent)
            if shutil.disk_usage(place.parent).free < MOST_BYTES:
                return
            try:
                if self._network.save(sequence, len(tokens), part):
                    digest = _digest(part.read_bytes())
                    with part.open("ab") as file:
                        file.write(digest)
                    part.replace(place)
            finally:
                part.unlink(missing_ok=True)
            self._tidy()

    def _tidy(self) -> None:
        """Remove the files that were not used for longest, of any model, until the others are within `MOST_BYTES`."""
        found = [(path.stat(), path) for path in self._folder.parent.glob("*/*")]
        left = MOST_BYTES
        for facts, path in sorted(found, key=lambda each: each[0].st_mtime, reverse=True):
            left -= facts.st_size
            if left < 0:
                path.unlink(missing_ok=True)

    def _place(self, tokens: Sequence[int]) -> Path:
        return self._folder / f"{blake2b(array('q', tokens).tobytes(), digest_size=16).hexdigest()}.kv"


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def _is_whole(place: Path) -> bool:
    """Return whether a file is as it was written; llama.cpp would abort on one that is cut."""
    data = place.read_bytes()
    return _digest(data[:-DIGEST_BYTES]) == data[-DIGEST_BYTES:]
