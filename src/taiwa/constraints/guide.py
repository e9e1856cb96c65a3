"""Which tokens may come next: a guide is a constraint compiled for a vocabulary, and its states give the masks.

States are immutable: `advance` and `rollback` return another state and leave the old one unchanged, so a state can be kept
and continued in two ways. A guide may share work between its states; `fork` returns a state that shares nothing and may be
used in another thread.

Masks are packed: bit `token % 32` of word `token // 32` says whether the token is allowed; shape ((V+31)//32,), uint32.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.extras import require_modules
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Choice, Grammar, JsonSchema, Regex, ToolCallsInText
from taiwa.kernel.serialization import value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask: TypeAlias = NDArray[np.uint32]

LIMIT = 4096
"""The most tokens that `allowed` lists by default; beyond it, the mask is the better form."""


@value(tag="schema-clause")
class SchemaClause:
    """One keyword of a schema: the JSON pointer of the schema that contains it, and the reason for its handling."""

    pointer: str
    keyword: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.keyword}" + (f" ({self.reason})" if self.reason else "")


@value(tag="coverage")
class Coverage:
    """How much of a source a guide enforces.

    `relaxed` is enforced in part or not at all, so the answer must be validated afterwards; a strict compilation refuses it.
    `ignored` are keywords without a meaning in JSON Schema. A regex, a grammar or a choice is enforced completely.
    """

    enforced: tuple[SchemaClause, ...] = ()
    relaxed: tuple[SchemaClause, ...] = ()
    ignored: tuple[SchemaClause, ...] = ()

    @property
    def whole(self) -> bool:
        """Return whether a text that the guide allows needs no further validation."""
        return not self.relaxed


class UnsupportedConstraintError(InputError):
    """A strict compilation found keywords that cannot be enforced; `clauses` has one line for each."""

    tag = "unsupported-constraint"
    details: ClassVar[tuple[str, ...]] = ("clauses",)

    def __init__(self, message: str, *, clauses: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.clauses = clauses


@value(tag="explanation")
class Explanation:
    """The position of a text under its constraint. Advisory: for display, never for masks.

    `pointer` is the JSON pointer of the value that is being written, `keyword` and `expected` what the source requires there.
    `count` tokens are allowed, `examples` are some of them, and `why` says why the token that was asked about is not. `accepts`
    are the terminals of a grammar that may begin here, as Lark's incremental parser names them, `$END` for the end of the text.
    """

    pointer: str = ""
    keyword: str = ""
    expected: str = ""
    count: int = 0
    examples: tuple[str, ...] = ()
    why: str = ""
    accepts: tuple[str, ...] = ()


@runtime_checkable
class GuideState(Protocol):
    """A text so far under a guide; immutable."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens so far."""

    @property
    def is_final(self) -> bool:
        """Whether the text may end here."""

    @property
    def is_complete(self) -> bool:
        """Whether only an end token is allowed, so that a decode loop need not run the model."""

    @property
    def is_ended(self) -> bool:
        """Whether an end token was taken; no token may follow."""

    @property
    def is_dead(self) -> bool:
        """Whether no token is allowed although the text may not end here."""

    def mask(self, out: "Mask") -> None:
        """Write the allowed tokens, end tokens included where the text may end; shape ((V+31)//32,), uint32."""

    def allowed(self, limit: int = LIMIT) -> tuple[int, ...] | None:
        """Return the allowed tokens in order; None if there are more than `limit`."""

    def forced(self) -> tuple[int, ...]:
        """Return the tokens that must follow, as the tokenizer divides them; empty if there is a choice, or ended."""

    def advance(self, token: int) -> "GuideState":
        """Return the state after one more token.

        Raises:
            InputError: the token does not exist, or is not allowed here.
            NoValidTokenError: the constraint is too complex to continue.
        """

    def rollback(self, count: int) -> "GuideState":
        """Return the state before the last `count` tokens.

        Raises:
            InputError: there are fewer tokens.
        """

    def fork(self) -> "GuideState":
        """Return the same state, sharing nothing with this one."""

    def captures(self) -> tuple[tuple[str, bytes], ...]:
        """Return the name and bytes of each named part that is complete, in the order of the text."""

    def explain(self, token: int | None = None) -> Explanation:
        """Return where the text stands, and why `token` is not allowed, if it is not."""


@runtime_checkable
class Guide(Protocol):
    """A constraint compiled for one vocabulary; immutable, and cheap to start from."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary it was compiled for."""

    @property
    def coverage(self) -> Coverage:
        """How much of the source it enforces."""

    def start(self) -> GuideState:
        """Return the state of the empty text."""


SHOWN = 24
"""The most tokens of a mask that a notebook shows."""


def mask_markdown(state: GuideState, vocabulary: Vocabulary) -> str:
    """Return what a notebook shows of a state: the text so far, and the tokens that may follow."""
    text = vocabulary.decode(state.tokens).decode("utf-8", "backslashreplace")
    allowed = state.allowed(len(vocabulary)) or ()
    more = f" and {len(allowed) - SHOWN:,} more" if len(allowed) > SHOWN else ""
    tokens = " ".join(f"`` {vocabulary.show(token)} ``" for token in allowed[:SHOWN])
    written = f"`` {text} ``\n\n" if text else ""
    return f"{written}{len(allowed):,} of {len(vocabulary):,} tokens may follow: {tokens or 'none'}{more}"


def check_unicode(text: str, what: str) -> None:
    """Check that a text is valid Unicode: lone surrogates, and bytes that are not UTF-8, cannot be written.

    Raises:
        InputError: it is not; the message names the first of them.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        wrong = f"the byte 0x{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else f"half a character (U+{code:04X})"
        raise InputError(f"{what} contains {wrong} at character {error.start + 1}; give valid Unicode") from None


def check_json(data: object, what: str) -> None:
    """Check that JSON can represent data.

    Raises:
        InputError: it contains lone surrogates, numbers that JSON does not have, or too many levels.
    """
    try:
        check_unicode(json.dumps(data, ensure_ascii=False, allow_nan=False), what)
    except RecursionError:
        raise InputError(f"{what} is nested too deeply; move parts of it into $defs") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is not JSON: {error}") from None


def fill_mask(out: "Mask", tokens: Iterable[int]) -> None:
    """Write a mask from token ids, for guides that list their tokens."""
    out[:] = 0
    bits: dict[int, int] = {}
    for token in tokens:
        bits[token >> 5] = bits.get(token >> 5, 0) | 1 << (token & 31)
    for word, setting in bits.items():
        out[word] = setting


Whitespace: TypeAlias = Literal["bounded", "compact", "spaced", "free"] | Regex
"""Between the parts of a JSON text: one space, or a line break and at most 24 spaces · nothing · one space after a comma and a colon, as
most JSON on one line has it (in readable guides at most one space anywhere) · what JSON allows · nothing, or what a custom pattern matches."""


Source: TypeAlias = JsonSchema | Regex | Grammar | Choice | ToolCallsInText
"""What can be compiled, besides a type or a `Shape`."""


def empty_mask(size: int) -> "Mask":
    """Return an empty mask for a vocabulary of `size` tokens; shape ((size+31)//32,), uint32.

    Raises:
        ConfigError: numpy is not installed.
    """
    require_modules("a mask of tokens", "constraints", "numpy")
    import numpy as np

    return np.zeros((size + 31) // 32, dtype=np.uint32)


def unpack_mask(mask: "Mask", size: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return whether a mask allows each of the first `size` tokens; shape (size,), bool."""
    import numpy as np

    return np.unpackbits(mask.view(np.uint8), bitorder="little")[:size].view(np.bool_)


def mask_address(mask: "Mask", size: int) -> int:
    """Return the address of the words of a mask in memory.

    Raises:
        InputError: it is not one writable row of `size` 32-bit words.
    """
    array = mask.__array_interface__
    address, is_read_only = array["data"]
    if array["shape"] != (size,) or array["typestr"][1:] not in ("u4", "i4") or array.get("strides") or is_read_only:
        raise InputError(f"a mask must be one row of {size} 32-bit words, got {mask.shape} of {mask.dtype}")
    return int(address)


def count_allowed(mask: "Mask") -> int:
    """Return the number of tokens in a mask."""
    import numpy as np

    return int(np.bitwise_count(mask).sum())


def mask_tokens(mask: "Mask", limit: int) -> "NDArray[np.intp] | None":
    """Return the tokens of a mask in order; None if there are more than `limit`. Empty words are skipped."""
    import numpy as np

    words = np.flatnonzero(mask)
    if len(words) > limit:
        return None
    if len(words) == 0:
        return words
    bits = np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(len(words), 32)
    rows, columns = np.nonzero(bits)
    if len(rows) > limit:
        return None
    return words[rows] * 32 + columns


def refusal(state: GuideState, vocabulary: Vocabulary, token: int) -> str:
    """Return why a token without text is not allowed here; '' for a token of text."""
    if not 0 <= token < len(vocabulary):
        return f"unknown token {token}; the vocabulary has {len(vocabulary)}"
    if state.is_ended:
        return "the text has ended"
    if token in vocabulary.end:
        return "the text cannot end here"
    return f"token {token} writes nothing" if token in vocabulary.special or not vocabulary.tokens[token] else ""


def unexpected(text: bytes, length: int) -> str:
    """Return that only the first `length` bytes of a token's text are allowed."""
    allowed, rest = (repr(part.decode("utf-8", "backslashreplace")) for part in (text[:length], text[length:]))
    return f"{f'after {allowed}, ' if length else ''}{rest} is not expected"
