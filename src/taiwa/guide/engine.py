"""The mask engine: llguidance behind our own words. The one place that imports it.

A state holds a place on a track: one matcher, and the tokens that it has consumed. The state at the end of the track moves
the matcher itself; a state further back takes a copy and rolls it back when it is used. So states are values, and a loop
that goes straight on copies nothing.
"""

from collections import OrderedDict
from collections.abc import Mapping
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from taiwa.guide.bits import address, indices
from taiwa.guide.protocol import LIMIT, Coverage, Explanation, words
from taiwa.guide.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, DeadEndError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from llguidance import LLMatcher, LLTokenizer

    from taiwa.guide.protocol import Mask

    Explain = Callable[["EngineState", int | None], Explanation]

__all__ = ["EngineGuide", "EngineState", "library", "matcher_of", "merging_tokenizer"]

TOKENIZERS = 4
"""How many vocabularies keep their tables: each takes about 60 MB at 131,072 tokens."""
ITEMS = 20_000
"""How many ways a text may go on at once: an object of some thousand optional keys has as many."""
SHOWN = 60

_tokenizers: "OrderedDict[str, LLTokenizer]" = OrderedDict()
_lock = Lock()


def library() -> Any:  # noqa: ANN401  (a module)
    """The engine's module.

    Raises:
        ConfigError: the extra is not installed.
    """
    try:
        import_module("numpy")  # masks are its arrays
        return import_module("llguidance")
    except ImportError:
        raise ConfigError("constraints for local models need an extra: pip install 'taiwa[guide]'") from None


class _Tokenizer:
    """A vocabulary as the engine wants it."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.eos_token_id = vocabulary.end[0]
        self.tokens = list(vocabulary.tokens)
        self.special_token_ids = sorted(vocabulary.special)

    def __call__(self, text: str) -> list[int]:
        """Divide a forced text. What comes back is all that the mask lets through, so it must be able to write the text."""
        try:
            return list(self._vocabulary.encode(text))
        except InputError:
            return []


def tokenizer_of(vocabulary: Vocabulary) -> "LLTokenizer":
    """The engine's tables for a vocabulary; kept for the next time."""
    with _lock:
        found = _tokenizers.get(vocabulary.digest)
        if found is None:
            module = library()
            found = module.LLTokenizer(_Tokenizer(vocabulary), eos_token=list(vocabulary.end))
            _tokenizers[vocabulary.digest] = found
            while len(_tokenizers) > TOKENIZERS:
                _tokenizers.popitem(last=False)
        _tokenizers.move_to_end(vocabulary.digest)
    return found


def merging_tokenizer(ranks: Mapping[bytes, int], pattern: str) -> "LLTokenizer":
    """A tokenizer of merges that the engine runs itself."""
    top = len(ranks)
    build = library().LLTokenizer.from_tiktoken
    return cast(
        "LLTokenizer",
        build(
            encoder=dict(ranks), special_tokens={"": top}, pattern=pattern, eos_token=top, n_vocab=top + 1, slices=[]
        ),
    )


def matcher_of(vocabulary: Vocabulary, grammar: str) -> "LLMatcher":
    """Compile a grammar in the engine's own notation; a fault is told by the matcher, not raised."""
    module = library()
    limits = module.LLParserLimits(max_items_in_row=ITEMS, verbose_errors=False)
    return cast("LLMatcher", module.LLMatcher(tokenizer_of(vocabulary), grammar, log_level=0, limits=limits))


class _Track:
    __slots__ = ("matcher", "tokens")

    def __init__(self, matcher: "LLMatcher", tokens: list[int]) -> None:
        self.matcher = matcher
        self.tokens = tokens


class EngineGuide:
    """A constraint that the engine enforces; see `taiwa.guide.protocol.Guide`."""

    __slots__ = ("_explain", "_matcher", "_size", "coverage", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, matcher: "LLMatcher", coverage: Coverage, explain: "Explain") -> None:
        self.vocabulary = vocabulary
        self.coverage = coverage
        self._matcher = matcher
        self._explain = explain
        self._size = words(vocabulary)

    def start(self) -> "EngineState":
        """The state of the empty text."""
        return EngineState(self, _Track(self._matcher.deep_copy(), []), 0)

    def explanation(self, state: "EngineState", token: int | None) -> Explanation:
        """Say where a state stands; see `State.explain`."""
        return self._explain(state, token)

    def again(self, tokens: list[int]) -> _Track:
        """A fresh track that has taken these tokens."""
        matcher = self._matcher.deep_copy()
        matcher.try_consume_tokens(tokens)
        return _Track(matcher, list(tokens))

    @property
    def size(self) -> int:
        """How many words a mask has."""
        return self._size


class EngineState:
    """A text so far; see `taiwa.guide.protocol.State`."""

    __slots__ = ("_ended", "_guide", "_length", "_track")

    def __init__(self, guide: EngineGuide, track: _Track, length: int, ended: int | None = None) -> None:
        self._guide = guide
        self._track = track
        self._length = length
        self._ended = ended

    def __repr__(self) -> str:
        text = self.text[-SHOWN:].decode("utf-8", "backslashreplace")
        return f"EngineState(…{text!r})" if len(self.text) > SHOWN else f"EngineState({text!r})"

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens it speaks about."""
        return self._guide.vocabulary

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens that led here."""
        taken = tuple(self._track.tokens[: self._length])
        return taken if self._ended is None else (*taken, self._ended)

    @property
    def text(self) -> bytes:
        """What they write."""
        return self._guide.vocabulary.decode(self._track.tokens[: self._length])

    @property
    def is_final(self) -> bool:
        """Say whether the text may end here."""
        return self._ended is not None or self._matcher().is_accepting()

    @property
    def is_complete(self) -> bool:
        """Say whether nothing but the end may come."""
        if self._ended is not None:
            return False
        matcher = self._matcher()
        return matcher.is_stopped() and matcher.is_accepting() and not matcher.is_error()

    @property
    def is_ended(self) -> bool:
        """Say whether an end token was taken."""
        return self._ended is not None

    @property
    def is_dead(self) -> bool:
        """Say whether no token may come next although the text may not end here."""
        if self._ended is not None or self.is_final:
            return False
        try:
            return self.allowed(1) == ()
        except DeadEndError:
            return True

    def mask(self, out: "Mask") -> None:
        """Write which tokens may come next; shape ((V+31)//32,), 32-bit.

        Raises:
            DeadEndError: the constraint is too complex to go on, or the vocabulary cannot write what must come.
            InputError: `out` has another shape.
        """
        if self._ended is not None:
            out[:] = 0
            return
        matcher = self._matcher()
        size = self._guide.size
        matcher.unsafe_compute_mask_ptr(address(out, size), size * 4)
        if matcher.is_error():
            raise self._dead(matcher)

    def allowed(self, limit: int = LIMIT) -> tuple[int, ...] | None:
        """The tokens that may come next, in order; None when there are more than `limit`."""
        import numpy as np

        out = np.empty(self._guide.size, dtype=np.uint32)
        self.mask(out)
        found = indices(out, limit)
        return None if found is None else tuple(found.tolist())

    def forced(self) -> tuple[int, ...]:
        """The tokens that must come next and that the tokenizer itself would choose."""
        if self._ended is not None:
            return ()
        matcher = self._matcher()
        found = tuple(matcher.compute_ff_tokens())
        if matcher.is_error():
            raise self._dead(matcher)
        return found

    def advance(self, token: int) -> "EngineState":
        """The state after one more token.

        Raises:
            DeadEndError: the constraint is too complex to go on.
            InputError: there is no such token, or it may not come here.
        """
        if self._ended is not None:
            raise InputError(f"the text has ended: token {token} cannot follow")
        if not 0 <= token < len(self._guide.vocabulary):
            raise InputError(f"there is no token {token}: the vocabulary has {len(self._guide.vocabulary)}")
        matcher = self._matcher()
        if token in self._guide.vocabulary.end:
            if not matcher.is_accepting():
                raise InputError(self._refusal(token))
            return EngineState(self._guide, self._track, self._length, token)
        if matcher.try_consume_tokens([token]) == 1:
            self._track.tokens.append(token)
            return EngineState(self._guide, self._track, self._length + 1)
        if matcher.is_error():
            raise self._dead(matcher)
        raise InputError(self._refusal(token))

    def rollback(self, count: int) -> "EngineState":
        """The state before the last `count` tokens.

        Raises:
            InputError: there are fewer tokens.
        """
        taken = self._length + (self._ended is not None)
        if not 0 <= count <= taken:
            raise InputError(f"{count} tokens cannot be taken back: there are {taken}")
        if count == 0:
            return self
        return EngineState(self._guide, self._track, taken - count)

    def fork(self) -> "EngineState":
        """The same state on a track of its own."""
        matcher = self._matcher().deep_copy()
        track = _Track(matcher, self._track.tokens[: self._length])
        return EngineState(self._guide, track, self._length, self._ended)

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """The named parts of the text that are complete, in the order they were written."""
        return tuple(self._matcher().get_captures())

    def explain(self, token: int | None = None) -> Explanation:
        """Say where the text stands, and why `token` may not come, if it may not."""
        return self._guide.explanation(self, token)

    def _matcher(self) -> "LLMatcher":
        """The matcher at this place: the track's own at its end, else a copy that goes back."""
        track = self._track
        behind = len(track.tokens) - self._length
        if behind == 0 and not track.matcher.is_error():
            return track.matcher
        matcher = track.matcher.deep_copy()
        if matcher.is_error() or not matcher.rollback(behind):
            self._track = self._guide.again(track.tokens[: self._length])
        else:
            self._track = _Track(matcher, track.tokens[: self._length])
        return self._track.matcher

    def _refusal(self, token: int) -> str:
        told = self.explain(token)
        return told.why or f"token {token} {self.vocabulary.show(token)} may not come here"

    def _dead(self, matcher: "LLMatcher") -> DeadEndError:
        place = self.text[-SHOWN:].decode("utf-8", "backslashreplace")
        reason = matcher.stop_reason()
        what = WHY_DEAD.get(reason, "no token of the vocabulary can write what must come")
        return DeadEndError(f"{what} after {place!r} (engine: {reason})", state=place)


WHY_DEAD: Mapping[str, str] = {
    "ParserTooComplex": "the constraint leaves too many ways to go on",
    "LexerTooComplex": "a pattern of the constraint needs too much memory",
}
