"""The mask engine: llguidance behind `Guide`, its Lark notation and its error messages.

`MatcherState.mask` computes the allowed tokens of each step for `taiwa.models.inprocess.decode_loop`. The guides of `readable_guides`
do the same in Python.

A state is a position on a track: one matcher, and the tokens that it has consumed. The state at the end of the track moves
the matcher itself; a state further back copies the matcher and rolls the copy back when it is used. So states are values,
and a loop that only advances copies nothing.

The engine leaves the numbers of a JSON text unbounded: digits, decimals, exponent. Without bounds `58347E+3496` is allowed,
which no parser reads. With the bounds used here every number is finite, and every 64-bit integer and every `float` up to
1e99 can be written. The patterns of `taiwa.constraints.schema_regex` have the same bounds.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock, stack_size
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from taiwa.constraints.guide import (
    LIMIT,
    Coverage,
    Explanation,
    empty_mask,
    fill_mask,
    mask_address,
    mask_markdown,
    mask_tokens,
)
from taiwa.constraints.vocabulary import Vocabulary, import_llguidance, split_text
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.runtime import start_in_thread
from taiwa.kernel.serialization import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from llguidance import LLMatcher, LLTokenizer

    from taiwa.constraints.guide import Mask

    Describe = Callable[["MatcherState", int | None], Explanation]

SIGNS = frozenset(r".^$*+?{}[]\|()/-&~#")


def lark_string(text: str) -> str:
    """Return a text as a string of a Lark grammar."""
    return json.dumps(text, ensure_ascii=False)


def lark_pattern(text: str) -> str:
    """Return a text as part of a `/pattern/` of a Lark grammar.

    >>> lark_pattern("a/b?")
    'a\\\\/b\\\\?'
    """
    return "".join(f"\\{char}" if char in SIGNS else {"\n": "\\n", "\r": "\\r"}.get(char, char) for char in text)


ESCAPES = 'nrbtf\\"'
"""The escapes that a JSON string may contain. No `\\u`: a key spelled with it would be another key to the engine."""


def engine_error(schema: Mapping[str, Json]) -> str:
    """Return why the engine refuses a schema; '' if it accepts it."""
    matcher = import_llguidance().LLMatcher
    grammar = matcher.grammar_from_json_schema(json.dumps(schema), overrides={"json_allowed_escapes": ESCAPES})
    return error_line(matcher.validate_grammar(grammar))


def error_line(message: str) -> str:
    """Return the line of an engine message that states the error."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    wrong = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (wrong or lines or [""])[0][:200]


MOST_DIGITS = 20
"""The maximum number of digits before the point."""
MOST_DECIMALS = 24
EXPONENT = r"([eE]\+?[0-9]{1,2}|[eE]-[0-9]{1,3})?"
BEGINNING = re.compile(
    rb"(?:-?(?:(?:0|[1-9][0-9]{0,%d})(?:\.[0-9]{0,%d})?(?:[eE](?:\+?[0-9]{0,2}|-[0-9]{0,3}))?)?)?"
    % (MOST_DIGITS - 1, MOST_DECIMALS)
)
"""The beginning of a number within the bounds."""
UNBOUNDED = re.compile(rb"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?)?")
"""The beginning of any number; the engine itself excludes everything else."""
REST = re.compile(rb"[-+.0-9eE]+")
TOO_LONG = re.compile(rb"[0-9]{%d}|[eE]\+?[0-9]{3}|[eE]-[0-9]{4}" % (MOST_DIGITS + 1))
"""A pattern in every token that exceeds the bounds by itself."""
FIRST = frozenset(bytes((byte,)) for byte in b"-+.0123456789eE")
DIGIT = re.compile(rb"[0-9]")
SHAPES = 512
"""The masks that are kept for a vocabulary, each for numbers of the same length."""


class JsonScan(NamedTuple):
    """The end of an unfinished JSON text: whether it is inside a string, after a backslash, and the number that has begun."""

    in_string: bool = False
    is_escaped: bool = False
    number: bytes = b""

    def follow(self, text: bytes) -> "JsonScan | None":
        """Return the scan after more text; None if a number in it exceeds the bounds."""
        in_string, is_escaped, number = self
        if in_string and not is_escaped and b'"' not in text and b"\\" not in text:
            return self
        for byte in text:
            if in_string:
                in_string = is_escaped or byte != 0x22
                is_escaped = not is_escaped and byte == 0x5C
            elif byte in (b"-+.0123456789eE" if number else b"-0123456789"):
                number += bytes((byte,))
            elif BEGINNING.fullmatch(number) is None:
                return None
            else:
                in_string, number = byte == 0x22, b""
        return None if BEGINNING.fullmatch(number) is None else JsonScan(in_string, is_escaped, number)


class NumberBounds:
    """The tokens of a vocabulary that would exceed the bounds after a scan."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._size = len(vocabulary)
        self._by_rest: dict[bytes, list[int]] = {}
        """The tokens that may continue a number, by the form of the part that does."""
        self._too_long: dict[int, bytes] = {}
        """The tokens that may exceed the bounds by themselves."""
        for token, text in enumerate(vocabulary.tokens):
            if text[:1] in FIRST and token not in vocabulary.special and (rest := REST.match(text)):
                self._by_rest.setdefault(DIGIT.sub(b"1", rest[0]), []).append(token)
        if TOO_LONG.search(b"\n".join(vocabulary.tokens)):
            tokens = ((token, text) for token, text in enumerate(vocabulary.tokens) if token not in vocabulary.special)
            self._too_long = {token: text for token, text in tokens if TOO_LONG.search(text)}
        self._mask_of_shape = lru_cache(SHAPES)(self._mask)

    def mask(self, scan: JsonScan) -> "Mask | None":
        """Return the mask of the tokens within the bounds; None if all are."""
        if scan.number:
            scan = scan._replace(number=DIGIT.sub(b"1", scan.number))
        elif not self._too_long:
            return None
        return self._mask_of_shape(scan)

    def _mask(self, scan: JsonScan) -> "Mask | None":
        excluded = {token for token, text in self._too_long.items() if scan.follow(text) is None}
        if scan.number:
            for rest, tokens in self._by_rest.items():
                number = scan.number + rest
                if UNBOUNDED.fullmatch(number) and not BEGINNING.fullmatch(number):
                    excluded.update(tokens)
        if not excluded:
            return None
        mask = empty_mask(self._size)
        fill_mask(mask, excluded)
        return ~mask


number_bounds = lru_cache(maxsize=4)(NumberBounds)
"""Return the bounds for a vocabulary; cached."""

TOKENIZERS = 4
"""The number of vocabularies whose tables are kept; each takes about 60 MB at 131,072 tokens."""
ITEMS = 20_000
"""The number of continuations at one place; an object of some thousand optional keys has as many."""
LONGEST = 2_000
"""The number of characters of a forced text that are tokenised at once."""
SHOWN = 60
T = TypeVar("T")


class _Tokenizer:
    """A vocabulary in the form that the engine expects."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.eos_token_id = vocabulary.end[0]
        self.tokens = list(vocabulary.tokens)
        self.special_token_ids = sorted(vocabulary.special)

    def __call__(self, text: str) -> list[int]:
        """Tokenise a forced text, a part at a time. The mask allows only the result, so the result must write the text."""
        try:
            return [token for part in split_text(text, LONGEST) for token in self._vocabulary.encode(part)]
        except InputError:
            return []


@lru_cache(maxsize=TOKENIZERS)
def tokenizer_of(vocabulary: Vocabulary) -> "LLTokenizer":
    """Return the engine's tables for a vocabulary; cached."""
    made = import_llguidance().LLTokenizer(_Tokenizer(vocabulary), eos_token=list(vocabulary.end))
    return cast("LLTokenizer", made)


def matcher_of(vocabulary: Vocabulary, grammar: str) -> "LLMatcher":
    """Compile a grammar in the engine's notation; errors are reported by the matcher, not raised."""
    module = import_llguidance()
    limits = module.LLParserLimits(max_items_in_row=ITEMS, verbose_errors=False)
    tokenizer = tokenizer_of(vocabulary)

    def make() -> "LLMatcher":
        return cast("LLMatcher", module.LLMatcher(tokenizer, grammar, log_level=0, limits=limits))

    return make() if len(grammar) <= SHALLOW else _with_deep_stack(make)


SHALLOW = 10_000
"""Characters of a grammar within which its rules are not nested too deep for the stack of any thread."""
DEEP_STACK = 512 << 20
"""Bytes of stack for the deepest nesting of a grammar, of which the system gives only those in use."""
_stack_size = Lock()


def _with_deep_stack(call: "Callable[[], T]") -> T:
    """Make a call of the engine, which recurses through references and ends the process where the stack does."""
    with _stack_size:
        before = stack_size(DEEP_STACK)
        try:
            made = start_in_thread(call, "compile")
        except RuntimeError:  # the thread cannot be started
            raise InputError("the schema or grammar is too large for the memory of this process; divide it") from None
        finally:
            stack_size(before)
    return made.result()


@dataclass(slots=True, eq=False)
class _Track:
    matcher: "LLMatcher"
    tokens: list[int]


class MatcherGuide:
    """A constraint that the engine enforces; see `taiwa.constraints.Guide`.

    `json_after` are the texts after which JSON follows, "" if it is the whole; its numbers are bounded.

    All matchers of a guide share tables that the engine builds while texts are written, and those have a limit. When it is reached
    every copy fails, so the guide builds a new matcher and the state replays its tokens.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        grammar: str,
        coverage: Coverage,
        describe: "Describe",
        json_after: tuple[str, ...] = (),
    ) -> None:
        self.vocabulary = vocabulary
        self.coverage = coverage
        self.size = (len(vocabulary) + 31) // 32
        self._grammar = grammar
        self.describe = describe
        self._json_start = re.compile("|".join(map(re.escape, json_after)).encode()) if json_after else None
        self.lookback = max(map(len, map(str.encode, json_after)), default=0)
        self._matcher = matcher_of(vocabulary, grammar)

    @property
    def fault(self) -> str:
        """The engine's error message for the grammar; '' if there is none."""
        return self._matcher.get_error()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the engine does not enforce although the grammar asks for it."""
        return tuple(self._matcher.get_grammar_warnings())

    def start(self) -> "MatcherState":
        """Return the state of the empty text."""
        return MatcherState(self, _Track(self._matcher.deep_copy(), []), 0, self.scan(b""))

    @cached_property
    def bounds(self) -> NumberBounds:
        """The bounds of numbers for the vocabulary."""
        return number_bounds(self.vocabulary)

    def scan(self, text: bytes) -> JsonScan | None:
        """Return where a text ends in its JSON; None before that begins, or if a number in it is too long."""
        start = None if self._json_start is None else self._json_start.search(text)
        return None if start is None else JsonScan().follow(text[start.end() :])

    def accepts(self, text: bytes) -> bool:
        """Return whether a whole text is allowed, in any tokenisation.

        Raises:
            NoValidTokenError: the constraint is too complex to continue.
        """
        state = self.start()
        tokens = self.vocabulary.divide(text)
        return state.takes(tokens) and state.go(tokens).is_final

    def again(self, tokens: list[int], *, anew: bool = False) -> _Track:
        """Return a new track that has consumed these tokens; `anew` also builds new tables."""
        if anew:
            self._matcher = matcher_of(self.vocabulary, self._grammar)
        matcher = self._matcher.deep_copy()
        matcher.try_consume_tokens(tokens)
        return _Track(matcher, list(tokens))


class MatcherState:
    """A text so far; see `taiwa.constraints.GuideState`."""

    __slots__ = ("_ended", "_guide", "_length", "_scan", "_track")

    def __init__(
        self, guide: MatcherGuide, track: _Track, length: int, scan: JsonScan | None, ended: int | None = None
    ) -> None:
        self._guide = guide
        self._track = track
        self._length = length
        self._scan = scan
        self._ended = ended

    def __repr__(self) -> str:
        text = self.text[-SHOWN:].decode("utf-8", "backslashreplace")
        return f"MatcherState(…{text!r})" if len(self.text) > SHOWN else f"MatcherState({text!r})"

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the guide."""
        return self._guide.vocabulary

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens so far."""
        taken = tuple(self._track.tokens[: self._length])
        return taken if self._ended is None else (*taken, self._ended)

    @property
    def text(self) -> bytes:
        """The bytes so far."""
        return self._guide.vocabulary.decode(self._track.tokens[: self._length])

    @property
    def is_final(self) -> bool:
        """Whether the text may end here."""
        return self._ended is not None or self._matcher().is_accepting()

    @property
    def is_complete(self) -> bool:
        """Whether only an end token is allowed."""
        if self._ended is not None:
            return False
        matcher = self._matcher()
        if matcher.is_error() or not matcher.is_accepting():
            return False
        ends = self._guide.vocabulary.end  # the mask shows earlier than the matcher that nothing can follow
        return matcher.is_stopped() or self.allowed(len(ends)) == tuple(sorted(ends))

    @property
    def is_ended(self) -> bool:
        """Whether an end token was taken."""
        return self._ended is not None

    @property
    def is_dead(self) -> bool:
        """Whether no token is allowed although the text may not end here."""
        if self._ended is not None or self.is_final:
            return False
        try:
            return self.allowed(1) == ()
        except NoValidTokenError:
            return True

    def mask(self, out: "Mask") -> None:
        """Write the allowed tokens; shape ((V+31)//32,), 32-bit.

        Raises:
            NoValidTokenError: the constraint is too complex to continue, or the vocabulary cannot write what must follow.
            InputError: `out` has another shape.
        """
        if self._ended is not None:
            out[:] = 0
            return
        size = self._guide.size
        where = mask_address(out, size)
        self._do(lambda matcher: matcher.unsafe_compute_mask_ptr(where, size * 4))
        bounds = None if self._scan is None else self._guide.bounds.mask(self._scan)
        if bounds is not None:
            bounded = out.view(bounds.dtype) & bounds
            if bounded.any():  # a constant, or a range close to a number, may need more digits
                out[:] = bounded.view(out.dtype)

    def allowed(self, limit: int = LIMIT) -> tuple[int, ...] | None:
        """Return the allowed tokens in order; None if there are more than `limit`."""
        import numpy as np

        out = np.empty(self._guide.size, dtype=np.uint32)
        self.mask(out)
        tokens = mask_tokens(out, limit)
        return None if tokens is None else tuple(tokens.tolist())

    def forced(self) -> tuple[int, ...]:
        """Return the tokens that must follow, as the tokenizer divides them."""
        if self._ended is not None:
            return ()
        return tuple(self._do(lambda matcher: matcher.compute_ff_tokens()))

    def advance(self, token: int) -> "MatcherState":
        """Return the state after one more token.

        Raises:
            NoValidTokenError: the constraint is too complex to continue.
            InputError: the token does not exist, or is not allowed here.
        """
        following = self.try_advance(token)
        if following is None:
            raise InputError(
                self.explain(token).why or f"token {token} {self.vocabulary.show(token)} may not come here"
            )
        return following

    def try_advance(self, token: int) -> "MatcherState | None":
        """Return the state after one more token; None if it is not allowed."""
        if self._ended is not None or not 0 <= token < len(self.vocabulary):
            return None
        matcher = self._matcher()
        if token in self.vocabulary.end:
            ended = MatcherState(self._guide, self._track, self._length, self._scan, token)
            return ended if matcher.is_accepting() else None
        scan = self._scan
        if scan is not None and token not in self.vocabulary.special:
            scan = scan.follow(self.vocabulary.tokens[token])
        elif self._guide.lookback:
            scan = self._follow([token])
        if scan is None and self._scan is not None:
            # A number beyond the usual bounds is allowed where a constant needs it, which the mask knows.
            scan = self._scan if token in (self.allowed(len(self.vocabulary)) or ()) else None
            if scan is None:
                return None
        # The second try is for a matcher whose tables were full, and not for a token that is not allowed.
        if matcher.try_consume_tokens([token]) == 1 or self._do(lambda again: again.try_consume_tokens([token])) == 1:
            self._track.tokens.append(token)
            return MatcherState(self._guide, self._track, self._length + 1, scan)
        return None

    def go(self, tokens: "Iterable[int]") -> "MatcherState":
        """Return the state after more tokens; raises as `advance`."""
        wanted, state = list(tokens), self
        # Plain tokens are consumed at once; `advance` reports the first that is special or not allowed.
        scan = self._follow(wanted)
        is_bounded = scan is not None or self._scan is None
        if is_bounded and self._ended is None and not self._guide.vocabulary.special.intersection(wanted):
            taken = self._matcher().try_consume_tokens(wanted)
            self._track.tokens += wanted[:taken]
            scan = scan if taken == len(wanted) else self._follow(wanted[:taken])
            state, wanted = MatcherState(self._guide, self._track, self._length + taken, scan), wanted[taken:]
        for token in wanted:
            state = state.advance(token)
        return state

    def takes(self, tokens: tuple[int, ...]) -> bool:
        """Return whether all these tokens are allowed, one after the other."""
        if self._ended is not None:
            return False
        wanted = list(tokens)
        if self._scan is not None and self._follow(wanted) is None:
            state: MatcherState | None = self.fork()
            for token in wanted:
                state = None if state is None else state.try_advance(token)
            return state is not None
        return self._do(lambda matcher: matcher.validate_tokens(wanted)) == len(wanted)

    def _follow(self, tokens: "Iterable[int]") -> JsonScan | None:
        """Return where more tokens lead in a JSON text; None before that begins, or if a number in it would be too long."""
        text = self.vocabulary.decode(tokens)
        if self._scan is not None:
            return self._scan.follow(text)
        # A text after which JSON follows may be split over tokens; none is longer than this many tokens.
        before = self._track.tokens[max(0, self._length - self._guide.lookback) : self._length]
        return self._guide.scan(self.vocabulary.decode(before) + text) if self._guide.lookback else None

    def rollback(self, count: int) -> "MatcherState":
        """Return the state before the last `count` tokens.

        Raises:
            InputError: there are fewer tokens.
        """
        taken = self._length + (self._ended is not None)
        if not 0 <= count <= taken:
            raise InputError(f"cannot roll back {count} tokens; there are {taken}")
        if count == 0:
            return self
        length = taken - count
        text = self.vocabulary.decode(self._track.tokens[:length])
        return MatcherState(self._guide, self._track, length, self._guide.scan(text))

    def fork(self) -> "MatcherState":
        """Return the same state on a track of its own."""
        matcher = self._matcher().deep_copy()
        track = _Track(matcher, self._track.tokens[: self._length])
        return MatcherState(self._guide, track, self._length, self._scan, self._ended)

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """Return the named parts that are complete, in the order of the text."""
        return tuple(self._matcher().get_captures())

    def _repr_markdown_(self) -> str:
        return mask_markdown(self, self._guide.vocabulary)

    def explain(self, token: int | None = None) -> Explanation:
        """Return where the text stands, and why `token` is not allowed, if it is not."""
        return self._guide.describe(self, token)

    def _do(self, work: "Callable[[LLMatcher], T]") -> "T":
        """Call the matcher, or a new one if its tables are full."""
        matcher = self._matcher()
        result = work(matcher)
        if matcher.is_error():
            self._track = self._guide.again(self._track.tokens[: self._length], anew=True)
            matcher = self._track.matcher
            result = work(matcher)
            if matcher.is_error():
                end = self.text[-SHOWN:].decode("utf-8", "backslashreplace")
                reason = matcher.stop_reason()
                what = WHY_DEAD.get(reason, "no token of the vocabulary can write what must come")
                raise NoValidTokenError(f"{what} after {end!r} (engine: {reason})", state=end)
        return result

    def _matcher(self) -> "LLMatcher":
        """Return the matcher at this position: the track's own at its end, otherwise a copy that is rolled back."""
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


WHY_DEAD: Mapping[str, str] = {
    "ParserTooComplex": "the constraint leaves too many ways to go on",
    "LexerTooComplex": "a pattern of the constraint needs too much memory",
}
