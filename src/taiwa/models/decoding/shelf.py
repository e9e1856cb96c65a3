"""Tracks that were written on, kept so that the next text that begins alike need not be read again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from threading import Lock

from taiwa.models.decoding.source import Source, Track
from taiwa.models.decoding.splicing import Divide, shared, spliced

__all__ = ["Opened", "Shelf"]

TRACKS = 4
LEAST = 8
"""What begins alike with fewer tokens than this is no continuation."""


@dataclass(frozen=True, slots=True)
class _Kept:
    track: Track
    prompt: tuple[int, ...]
    """The tokens up to where the answer began."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A track to write on, and what of the text it must still read; `answer` are the tokens of the answer so far."""

    track: Track
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    unread: tuple[int, ...]

    @property
    def length(self) -> int:
        """How many tokens the text has."""
        return len(self.prompt) + len(self.answer)

    @property
    def reused(self) -> int:
        """How many of them were read before."""
        return self.length - len(self.unread)


class Shelf:
    """Keeps the last few tracks of a source, in all no more tokens than one text may have."""

    def __init__(self, source: Source, divide: Divide) -> None:
        self._source = source
        self._divide = divide
        self._kept: list[_Kept] = []
        self._lock = Lock()

    def open(self, prompt: tuple[int, ...], prefix: str) -> Opened:
        """Find the track that has read the most of a text, and take it off the shelf.

        The text is a prompt and the beginning of an answer. Behind an answer that was interrupted, the prefix is what was
        said with a result put behind it: the tokens that the model drew stay as they are, as far as the prefix repeats them.
        """
        with self._lock:
            written = self._answer(prompt, prefix)
            text = (*prompt, *written)
            best = max(self._kept, key=lambda kept: shared(kept.track.tokens, text), default=None)
            common = shared(best.track.tokens, text) if best is not None else 0
            if best is None or common < min(LEAST, len(text)):
                return Opened(self._source.start(), prompt, written, text)
            common = min(common, len(text) - 1)  # the logits behind the last token are not kept, so it is read again
            track = best.track
            if self._branches(track, common):
                track = track.fork()
            else:
                self._kept.remove(best)
        track.rollback(len(track.tokens) - common)
        return Opened(track, prompt, written, text[common:])

    def keep(self, track: Track, prompt: tuple[int, ...]) -> None:
        """Put a track back that nobody writes on any more."""
        with self._lock:
            self._kept.append(_Kept(track, prompt))
            while len(self._kept) > 1 and (
                len(self._kept) > TRACKS or sum(len(kept.track.tokens) for kept in self._kept) > self._source.context
            ):
                del self._kept[0]

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._kept.clear()

    def _branches(self, track: Track, common: int) -> bool:
        """Whether the track goes on elsewhere by so much that it is worth keeping beside the new one."""
        return len(track.tokens) - common > common and len(self._kept) < TRACKS

    def _answer(self, prompt: tuple[int, ...], prefix: str) -> tuple[int, ...]:
        """The tokens of the beginning of an answer, by those that an earlier track has for it."""
        spell = self._spell()
        if not prefix:
            return ()
        wanted = prefix.encode("utf-8", "replace")
        best: tuple[int, ...] = ()
        length = 0
        for kept in self._kept:
            tokens = kept.track.tokens
            if kept.prompt == prompt and tuple(tokens[: len(prompt)]) == prompt:
                drawn = tuple(tokens[len(prompt) :])
                known = _repeated(drawn, wanted, spell)
                size = sum(len(spell(token)) for token in drawn[:known])
                if size > length:
                    best, length = drawn[:known], size
        while best and not _cuts(wanted, length):
            length -= len(spell(best[-1]))
            best = best[:-1]
        rest = wanted[length:].decode("utf-8", "replace")
        whole = spliced((*prompt, *best), rest, spell, self._divide)
        if tuple(whole[: len(prompt)]) != prompt:  # the prompt is not ours to divide anew
            return (*best, *self._divide(rest))
        return tuple(whole[len(prompt) :])

    def _spell(self) -> Callable[[int], bytes]:
        vocabulary = self._source.vocabulary
        return lambda token: b"" if token in vocabulary.special else vocabulary.tokens[token]


def _repeated(drawn: Sequence[int], wanted: bytes, spell: Callable[[int], bytes]) -> int:
    """How many of the tokens that were drawn write the beginning of the text that is wanted."""
    ends = list(accumulate(len(spell(token)) for token in drawn))
    for place, token in enumerate(drawn):
        written = spell(token)
        start = ends[place] - len(written)
        if not written or wanted[start : ends[place]] != written:
            return place
    return len(drawn)


def _cuts(text: bytes, place: int) -> bool:
    """Whether a text can be cut there: not within a character."""
    return place >= len(text) or text[place] & 0xC0 != 0x80
