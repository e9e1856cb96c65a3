"""Reuse of what a model has read: a cache of sequences, and the splicing of text into tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from threading import Lock
from typing import TypeAlias

from taiwa.constraints.vocabulary import common_prefix
from taiwa.models.inprocess.decode_loop import Backend, TokenSequence

Encode: TypeAlias = Callable[[str], Sequence[int]]
"""Divide a text, or a part of one, into tokens."""
ToBytes: TypeAlias = Callable[[int], bytes]
"""Return the bytes of a token; none for a special token."""

WINDOWS = (1, 2, 4, 8, 16, 32)
"""Numbers of last tokens that are divided again, until the first of them keeps its end."""
MAX_SEQUENCES = 4
MIN_COMMON_TOKENS = 8
"""A sequence with a shorter common prefix is not worth reusing."""


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """A sequence to continue: the tokens of the prompt, those of the answer so far, and those that it has not read."""

    sequence: TokenSequence
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    unread: tuple[int, ...]

    @property
    def length(self) -> int:
        """The number of tokens of prompt and answer."""
        return len(self.prompt) + len(self.answer)

    @property
    def reused(self) -> int:
        """The number of these that were read before."""
        return self.length - len(self.unread)


@dataclass(frozen=True, slots=True)
class _Entry:
    sequence: TokenSequence
    prompt: tuple[int, ...]
    """The tokens up to where the answer begins."""


class PrefixCache:
    """Keeps the last few sequences of a backend, in total at most as many tokens as one context has."""

    def __init__(self, backend: Backend, encode: Encode) -> None:
        self._backend = backend
        self._encode = encode
        self._entries: list[_Entry] = []
        self._lock = Lock()

    def take(self, prompt: tuple[int, ...], prefix: str) -> CachedPrefix:
        """Take the sequence that has read most of a prompt and the beginning of an answer out of the cache, or a new one.

        After an interrupted answer, the prefix is its text with a tool result appended: the tokens that the model sampled
        stay as they are, as far as the prefix repeats their text.
        """
        with self._lock:
            answer = self._answer_tokens(prompt, prefix)
            text = (*prompt, *answer)
            best = max(self._entries, key=lambda entry: common_prefix(entry.sequence.tokens, text), default=None)
            common = common_prefix(best.sequence.tokens, text) if best is not None else 0
            if best is None or common < min(MIN_COMMON_TOKENS, len(text)):
                return CachedPrefix(self._backend.start(), prompt, answer, text)
            common = min(common, len(text) - 1)  # the logits after the last token are not kept, so it is read again
            sequence = best.sequence
            if len(sequence.tokens) - common > common and len(self._entries) < MAX_SEQUENCES:
                sequence = sequence.fork()  # its own continuation is long enough to be kept as well
            else:
                self._entries.remove(best)
        sequence.rollback(len(sequence.tokens) - common)
        return CachedPrefix(sequence, prompt, answer, text[common:])

    def put_back(self, sequence: TokenSequence, prompt: tuple[int, ...]) -> None:
        """Return a sequence to the cache; the caller must not use it any more."""
        with self._lock:
            self._entries.append(_Entry(sequence, prompt))
            while len(self._entries) > 1 and (
                len(self._entries) > MAX_SEQUENCES
                or sum(len(entry.sequence.tokens) for entry in self._entries) > self._backend.context
            ):
                del self._entries[0]

    def clear(self) -> None:
        """Remove all sequences."""
        with self._lock:
            self._entries.clear()

    def _answer_tokens(self, prompt: tuple[int, ...], prefix: str) -> tuple[int, ...]:
        """Divide the beginning of an answer, with the tokens that were sampled for it where a sequence has them."""
        if not prefix:
            return ()
        text = prefix.encode("utf-8", "replace")
        best: tuple[int, ...] = ()
        length = 0
        for entry in self._entries:
            tokens = entry.sequence.tokens
            if entry.prompt == prompt and tuple(tokens[: len(prompt)]) == prompt:
                sampled = tuple(tokens[len(prompt) :])
                repeated = sampled[: self._count_repeated(sampled, text)]
                size = sum(len(self._to_bytes(token)) for token in repeated)
                if size > length:
                    best, length = repeated, size
        while best and length < len(text) and text[length] & 0xC0 == 0x80:  # within a character
            length -= len(self._to_bytes(best[-1]))
            best = best[:-1]
        rest = text[length:].decode("utf-8", "replace")
        spliced = splice_tokens((*prompt, *best), rest, self._to_bytes, self._encode)
        if tuple(spliced[: len(prompt)]) != prompt:  # the tokens of the prompt must not change
            return (*best, *self._encode(rest))
        return tuple(spliced[len(prompt) :])

    def _to_bytes(self, token: int) -> bytes:
        vocabulary = self._backend.vocabulary
        return b"" if token in vocabulary.special else vocabulary.tokens[token]

    def _count_repeated(self, sampled: Sequence[int], text: bytes) -> int:
        """Return how many of the sampled tokens the text begins with."""
        end = 0
        for count, token in enumerate(sampled):
            start, end = end, end + len(self._to_bytes(token))
            if start == end or text[start:end] != self._to_bytes(token):
                return count
        return len(sampled)


def splice_tokens(tokens: Sequence[int], text: str, to_bytes: ToBytes, encode: Encode) -> list[int]:
    """Return the tokens of a tokenised text with more text appended, dividing as little as possible again.

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
        start = max(len(tokens) - window, 0)
        following = _divide_after_first(tokens[start:], text, to_bytes, encode)
        if following is not None:
            return [*tokens[: start + 1], *following]
        if start == 0:
            break
    # Divide everything after the last special token again.
    start = max((index + 1 for index, token in enumerate(tokens) if not to_bytes(token)), default=0)
    before = _decode(b"".join(map(to_bytes, tokens[start:])))
    if before is None:
        return [*tokens, *encode(text)]
    return [*tokens[:start], *encode(before + text)]


def _divide_after_first(last: Sequence[int], text: str, to_bytes: ToBytes, encode: Encode) -> list[int] | None:
    """Return the tokens after the first one of `last`; None if that one would end elsewhere, or within a character."""
    if not last:
        return None
    head = to_bytes(last[0])
    if not head:  # a special token has no text that could change
        rest = _decode(b"".join(map(to_bytes, last[1:])))
        return None if rest is None else list(encode(rest + text))
    whole = _decode(b"".join(map(to_bytes, last)))
    if whole is None:
        return None
    divided = list(encode(whole + text))
    ends = [0, *accumulate(len(to_bytes(token)) for token in divided)]
    if ends[-1] != len((whole + text).encode()) or len(head) not in ends:
        return None
    return divided[ends.index(len(head)) :]


def _decode(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
