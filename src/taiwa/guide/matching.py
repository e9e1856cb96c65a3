"""The mask engine: llguidance behind our own words. The one place that imports it.

A state holds a place on a track: one matcher, and the tokens that it has consumed. The state at the end of the track moves
the matcher itself; a state further back takes a copy and rolls it back when it is used. So states are values, and a loop
that goes straight on copies nothing.
"""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, TypeVar, cast

from taiwa.guide.bits import address, indices
from taiwa.guide.library import library
from taiwa.guide.protocol import LIMIT, Coverage, Explanation, words
from taiwa.guide.vocabulary import Vocabulary, parts
from taiwa.kernel.errors import DeadEndError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from llguidance import LLMatcher, LLTokenizer

    from taiwa.guide.protocol import Mask

    Explain = Callable[["MatcherState", int | None], Explanation]

__all__ = ["MatcherGuide", "MatcherState", "matcher_of", "merging_tokenizer"]

TOKENIZERS = 4
"""How many vocabularies keep their tables: each takes about 60 MB at 131,072 tokens."""
ITEMS = 20_000
"""How many ways a text may go on at once: an object of some thousand optional keys has as many."""
LONGEST = 2_000
"""So many characters of a forced text are divided at once."""
SHOWN = 60
T = TypeVar("T")

_tokenizers: "OrderedDict[str, LLTokenizer]" = OrderedDict()
_lock = Lock()


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
        """Divide a forced text. What comes back is all that the mask lets through, so it must be able to write the text.

        It is divided again at each step, so not in one piece where it is long.
        """
        try:
            return [token for part in parts(text, LONGEST) for token in self._vocabulary.encode(part)]
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


class MatcherGuide:
    """A constraint that the engine enforces; see `taiwa.guide.protocol.Guide`.

    All matchers of a guide share the tables that the engine builds as texts are written, and those have a limit. When it is
    reached every copy fails, so the guide makes its matcher anew and the state goes on from its tokens.
    """

    __slots__ = ("_explain", "_grammar", "_matcher", "coverage", "size", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, grammar: str, coverage: Coverage, explain: "Explain") -> None:
        self.vocabulary = vocabulary
        self.coverage = coverage
        self.size = words(vocabulary)
        self._grammar = grammar
        self._explain = explain
        self._matcher = matcher_of(vocabulary, grammar)

    @property
    def fault(self) -> str:
        """What the engine has against the grammar; '' if nothing."""
        return self._matcher.get_error()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the engine does not enforce although it was asked to."""
        return tuple(self._matcher.get_grammar_warnings())

    def start(self) -> "MatcherState":
        """The state of the empty text."""
        return MatcherState(self, _Track(self._matcher.deep_copy(), []), 0)

    def accepts(self, text: bytes) -> bool:
        """Say whether a whole text may be written, divided in any way.

        Raises:
            DeadEndError: the constraint is too complex to go on.
        """
        state = self.start()
        tokens = self.vocabulary.divide(text)
        return state.takes(tokens) and state.go(tokens).is_final

    def explanation(self, state: "MatcherState", token: int | None) -> Explanation:
        """Say where a state stands; see `State.explain`."""
        return self._explain(state, token)

    def again(self, tokens: list[int], *, anew: bool = False) -> _Track:
        """A fresh track that has taken these tokens; `anew` with tables of its own."""
        if anew:
            self._matcher = matcher_of(self.vocabulary, self._grammar)
        matcher = self._matcher.deep_copy()
        matcher.try_consume_tokens(tokens)
        return _Track(matcher, list(tokens))


class MatcherState:
    """A text so far; see `taiwa.guide.protocol.State`."""

    __slots__ = ("_ended", "_guide", "_length", "_track")

    def __init__(self, guide: MatcherGuide, track: _Track, length: int, ended: int | None = None) -> None:
        self._guide = guide
        self._track = track
        self._length = length
        self._ended = ended

    def __repr__(self) -> str:
        text = self.text[-SHOWN:].decode("utf-8", "backslashreplace")
        return f"MatcherState(…{text!r})" if len(self.text) > SHOWN else f"MatcherState({text!r})"

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
        if matcher.is_error() or not matcher.is_accepting():
            return False
        ends = (
            self._guide.vocabulary.end
        )  # where the matcher has not noticed yet that nothing can follow, the mask knows
        return matcher.is_stopped() or self.allowed(len(ends)) == tuple(sorted(ends))

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
        size = self._guide.size
        where = address(out, size)
        self._do(lambda matcher: matcher.unsafe_compute_mask_ptr(where, size * 4))

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
        return tuple(self._do(lambda matcher: matcher.compute_ff_tokens()))

    def advance(self, token: int) -> "MatcherState":
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
            return MatcherState(self._guide, self._track, self._length, token)
        if matcher.try_consume_tokens([token]) == 1 or self._do(lambda again: again.try_consume_tokens([token])) == 1:
            self._track.tokens.append(token)
            return MatcherState(self._guide, self._track, self._length + 1)
        raise InputError(self._refusal(token))

    def go(self, tokens: "Iterable[int]") -> "MatcherState":
        """The state after more tokens; as `advance`."""
        wanted, state = list(tokens), self
        # All at once as far as they are plain; the first that is not, or may not come, is told of by `advance`.
        if self._ended is None and not self._guide.vocabulary.special.intersection(wanted):
            taken = self._matcher().try_consume_tokens(wanted)
            self._track.tokens += wanted[:taken]
            state, wanted = MatcherState(self._guide, self._track, self._length + taken), wanted[taken:]
        for token in wanted:
            state = state.advance(token)
        return state

    def takes(self, tokens: tuple[int, ...]) -> bool:
        """Say whether all these tokens may come next, one after the other."""
        if self._ended is not None:
            return False
        wanted = list(tokens)
        return self._do(lambda matcher: matcher.validate_tokens(wanted)) == len(wanted)

    def rollback(self, count: int) -> "MatcherState":
        """The state before the last `count` tokens.

        Raises:
            InputError: there are fewer tokens.
        """
        taken = self._length + (self._ended is not None)
        if not 0 <= count <= taken:
            raise InputError(f"{count} tokens cannot be taken back: there are {taken}")
        if count == 0:
            return self
        return MatcherState(self._guide, self._track, taken - count)

    def fork(self) -> "MatcherState":
        """The same state on a track of its own."""
        matcher = self._matcher().deep_copy()
        track = _Track(matcher, self._track.tokens[: self._length])
        return MatcherState(self._guide, track, self._length, self._ended)

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """The named parts of the text that are complete, in the order they were written."""
        return tuple(self._matcher().get_captures())

    def explain(self, token: int | None = None) -> Explanation:
        """Say where the text stands, and why `token` may not come, if it may not."""
        return self._guide.explanation(self, token)

    def _do(self, work: "Callable[[LLMatcher], T]") -> "T":
        """Ask the matcher; where its tables are full, ask a new one."""
        matcher = self._matcher()
        found = work(matcher)
        if matcher.is_error():
            self._track = self._guide.again(self._track.tokens[: self._length], anew=True)
            matcher = self._track.matcher
            found = work(matcher)
            if matcher.is_error():
                raise self._dead(matcher)
        return found

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
