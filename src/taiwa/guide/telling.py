"""Where a text stands under the engine, in words. Advisory: for people, never for masks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from taiwa.guide.position import placed
from taiwa.guide.protocol import Explanation
from taiwa.guide.vocabulary import Vocabulary
from taiwa.kernel.errors import DeadEndError, InputError

if TYPE_CHECKING:
    from taiwa.guide.matching import MatcherState
    from taiwa.kernel.records import Json

__all__ = ["Tell", "tell_json", "telling"]

Tell: TypeAlias = "Callable[[MatcherState, int | None], Explanation]"

EXAMPLES = 8
LOOKED_THROUGH = 400


def telling(keyword: str, expected: str) -> Tell:
    """Tell the state of a text under a constraint that has no places of its own: a regex, a grammar, a choice, tools."""

    def tell(state: "MatcherState", token: int | None) -> Explanation:
        return replace(_plain(state, token), keyword=keyword, expected=_expected(state) or expected)

    return tell


def tell_json(schema: Mapping[str, "Json"]) -> Tell:
    """Tell the state of a JSON text: its JSON pointer, and the keyword of the schema that speaks of it."""

    def tell(state: "MatcherState", token: int | None) -> Explanation:
        here = replace(_plain(state, token), expected=_expected(state))
        told = placed(dict(schema), state.text, here)
        if told.why and told.expected:
            return replace(told, why=f"{told.why}; expected: {told.expected}")
        return told

    return tell


def _expected(state: "MatcherState") -> str:
    if state.is_ended:
        return "nothing: the text has ended"
    return "the end" if state.is_complete else ""


def _plain(state: "MatcherState", token: int | None) -> Explanation:
    try:
        tokens = state.allowed(len(state.vocabulary)) or ()
    except DeadEndError as error:
        return Explanation(why=error.message)
    examples = tuple(map(state.vocabulary.show, _clear(state.vocabulary, tokens)))
    why = "" if token is None or token in tokens else _why(state, token, tokens)
    return Explanation(count=len(tokens), examples=examples, why=why)


def _clear(vocabulary: Vocabulary, tokens: tuple[int, ...]) -> Iterator[int]:
    """A few tokens that a person can read, the ends among them."""
    ends = [token for token in tokens if token in vocabulary.end]
    step = max(1, len(tokens) // LOOKED_THROUGH)
    for token in tokens[::step]:
        if len(ends) >= EXAMPLES:
            break
        if token not in ends and vocabulary.tokens[token].decode("utf-8", "replace").isprintable():
            ends.insert(0, token)
    yield from sorted(ends or tokens[:EXAMPLES])


def _why(state: "MatcherState", token: int, allowed: tuple[int, ...]) -> str:
    vocabulary = state.vocabulary
    if not 0 <= token < len(vocabulary):
        return f"there is no token {token}: the vocabulary has {len(vocabulary)}"
    if state.is_ended:
        return "the text has ended"
    if token in vocabulary.end:
        return "the text cannot end here"
    written = vocabulary.tokens[token]
    if token in vocabulary.special or not written:
        return f"token {token} writes nothing"
    fitting = _fitting(state, written)
    if fitting == len(written):
        best = ", ".join(map(vocabulary.show, allowed[:3]))
        return f"{vocabulary.show(token)} fits, but the text is certain here and the tokenizer divides it otherwise: {best}"
    read = f"after {_readable(written[:fitting])}, " if fitting else ""
    return f"{read}{_readable(written[fitting:])} is not expected"


def _fitting(state: "MatcherState", written: bytes) -> int:
    """How many bytes of a token may come here."""
    for length in range(len(written), 0, -1):
        try:
            if state.takes(state.vocabulary.divide(written[:length])):
                return length
        except InputError:
            continue
    return 0


def _readable(text: bytes) -> str:
    return repr(text.decode("utf-8", "backslashreplace"))
