"""Reuse of computed prefixes; token splicing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from threading import Lock
from typing import TypeAlias

from taiwa.models.inprocess.decode_loop import Backend, TokenSequence

__all__ = ["CachedPrefix", "Divide", "PrefixCache", "shared", "splice_tokens"]


Divide: TypeAlias = Callable[[str], Sequence[int]]

WINDOWS = (1, 2, 4, 8, 16, 32)
"""How many of the last tokens are divided again, until one of them keeps its end."""


def splice_tokens(tokens: Sequence[int], text: str, spell: Callable[[int], bytes], divide: Divide) -> list[int]:
    """The tokens of what `tokens` write with `text` behind it; `spell` gives the bytes of a token, none for a special one.

    >>> words = ["1", "12", "123", "2", "3", " "]
    >>> def longest(text: str) -> list[int]:
    ...     found = []
    ...     while text:
    ...         found.append(max((i for i, word in enumerate(words) if text.startswith(word)), key=lambda i: len(words[i])))
    ...         text = text[len(words[found[-1]]):]
    ...     return found
    >>> splice_tokens([0, 5, 1], "3 1", lambda token: words[token].encode(), longest)
    [0, 5, 2, 5, 0]
    """
    if not text:
        return list(tokens)
    for window in WINDOWS:
        kept = max(len(tokens) - window, 0)
        found = _behind(tokens[kept:], text, spell, divide)
        if found is not None:
            return [*tokens[: kept + 1], *found]
        if kept == 0:
            break
    return _anew(tokens, text, spell, divide)


def _behind(last: Sequence[int], text: str, spell: Callable[[int], bytes], divide: Divide) -> list[int] | None:
    """The tokens behind the first one of `last`, if that one keeps its end; None if it does not, or is half a character."""
    if not last:
        return None
    head = spell(last[0])
    if not head:  # a special token has no text that could grow
        found = _decoded(b"".join(map(spell, last[1:])))
        return None if found is None else list(divide(found + text))
    whole = _decoded(b"".join(map(spell, last)))
    if whole is None:
        return None
    divided = list(divide(whole + text))
    ends = [0, *accumulate(len(spell(token)) for token in divided)]
    if ends[-1] != len((whole + text).encode()) or len(head) not in ends:
        return None
    return divided[ends.index(len(head)) :]


def _anew(tokens: Sequence[int], text: str, spell: Callable[[int], bytes], divide: Divide) -> list[int]:
    """Divide everything behind the last special token again."""
    start = max((place + 1 for place, token in enumerate(tokens) if not spell(token)), default=0)
    before = _decoded(b"".join(map(spell, tokens[start:])))
    if before is None:
        return [*tokens, *divide(text)]
    return [*tokens[:start], *divide(before + text)]


def _decoded(written: bytes) -> str | None:
    try:
        return written.decode()
    except UnicodeDecodeError:
        return None


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts begin with in common."""
    most = min(len(one), len(other))
    return next((place for place in range(most) if one[place] != other[place]), most)


TRACKS = 4

LEAST = 8
"""What begins alike with fewer tokens than this is no continuation."""


@dataclass(frozen=True, slots=True)
class _Kept:
    track: TokenSequence
    prompt: tuple[int, ...]
    """The tokens up to where the answer began."""


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """A track to write on, and what of the text it must still read; `answer` are the tokens of the answer so far."""

    track: TokenSequence
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


class PrefixCache:
    """Keeps the last few tracks of a source, in all no more tokens than one text may have."""

    def __init__(self, source: Backend, divide: Divide) -> None:
        self._source = source
        self._divide = divide
        self._kept: list[_Kept] = []
        self._lock = Lock()

    def open(self, prompt: tuple[int, ...], prefix: str) -> CachedPrefix:
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
                return CachedPrefix(self._source.start(), prompt, written, text)
            common = min(common, len(text) - 1)  # the logits behind the last token are not kept, so it is read again
            track = best.track
            if self._branches(track, common):
                track = track.fork()
            else:
                self._kept.remove(best)
        track.rollback(len(track.tokens) - common)
        return CachedPrefix(track, prompt, written, text[common:])

    def keep(self, track: TokenSequence, prompt: tuple[int, ...]) -> None:
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

    def _branches(self, track: TokenSequence, common: int) -> bool:
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
        whole = splice_tokens((*prompt, *best), rest, spell, self._divide)
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
