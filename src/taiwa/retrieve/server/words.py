"""Finding passages by their words: PostgreSQL's inverted index (GIN) gives candidates, and BM25 ranks them here.

Only passages with at least one of the rarer terms are looked at. What the commoner ones could add at most is known, so it is
known too when nothing that was not looked at can be among the best; until then more terms are taken in, to a bound.
What may not be seen never leaves the server.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from taiwa.kernel.errors import ConfigError
from taiwa.postgres import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Holding", "ServerWords"]

K1, B = 1.2, 0.75
ENOUGH_AT_FIRST = 250
"""Holders of the rarest terms that are looked at before it is known what the best are worth."""
MOST_HOLDERS = 2_000
"""Holders that are looked at however long a question is; beyond these, what holds common terms only is left out."""
HOLDERS = """
SELECT text, term.seq, CAST(sum(holders) AS bigint) FROM term JOIN tally ON tally.term = term.seq
WHERE term.shelf = ? AND text = ANY(CAST(? AS text[])) AND audience = ANY(CAST(? AS bigint[]))
GROUP BY text, term.seq HAVING sum(holders) > 0"""
CANDIDATES = """
SELECT passage, length, numbers, counts FROM words
WHERE terms && CAST(? AS integer[]) AND audience = ANY(CAST(? AS bigint[]))"""


class Holding(NamedTuple):
    """What somebody may see: how many passages, and how many terms these have in all."""

    passages: int
    terms: int


class _Term(NamedTuple):
    seq: int
    holders: int
    most: float
    """What it can add to a score at most."""


class _Scored(NamedTuple):
    passages: "NDArray[np.int64]"
    scores: "NDArray[np.float64]"


class ServerWords:
    """The words of one index."""

    def __init__(self, db: Connection, shelf: int) -> None:
        self._db = db
        self._shelf = shelf

    def holders(self, terms: Collection[str], audiences: Sequence[int]) -> dict[str, tuple[int, int]]:
        """Return the number of each term, and of the passages that hold it and may be seen, where there are any."""
        rows = self._db.rows(HOLDERS, self._shelf, [each for each in terms if "\0" not in each], audiences)
        return {text: (seq, count) for text, seq, count in rows}

    def search(
        self, weights: Mapping[str, float], k: int, audiences: Sequence[int], holding: Holding
    ) -> dict[int, float]:
        """Return the k best passages with their scores, best first."""
        found = self.holders(weights, audiences)
        terms = sorted(
            (
                _Term(seq, count, weights[text] * _idf(holding.passages, count) * (K1 + 1))
                for text, (seq, count) in found.items()
                if weights[text] > 0
            ),
            key=lambda term: (term.holders, term.seq),
        )
        if not terms or k < 1:
            return {}
        best = _Scored(*_none())
        asked, wanted = 0, _reach(terms, max(ENOUGH_AT_FIRST, k))
        most = max(_reach(terms, max(MOST_HOLDERS, 4 * k)), wanted)
        while asked < wanted:
            best = _best(best, self._scored(terms, (asked, wanted), audiences, holding), k)
            bar = float(best.scores[-1]) if len(best.scores) >= k else 0.0
            asked, wanted = wanted, min(_enough(terms, bar), most)
        return dict(zip(best.passages.tolist(), best.scores.tolist(), strict=True))

    def _scored(
        self, terms: Sequence[_Term], part: tuple[int, int], audiences: Sequence[int], holding: Holding
    ) -> _Scored:
        """Score the passages that hold one of a part of the terms, by all of them."""
        rows = self._db.rows(CANDIDATES, [term.seq for term in terms[part[0] : part[1]]], audiences)
        if not rows:
            return _Scored(*_none())
        np = _numpy()
        passages, lengths, numbers, counts = zip(*rows, strict=True)
        held, times = np.frombuffer(b"".join(numbers), "<i4"), np.frombuffer(b"".join(counts), np.uint8)
        owner = np.repeat(np.arange(len(rows)), [len(each) for each in counts])
        highest = max(term.seq for term in terms)
        places = np.zeros(highest + 2, np.int16)
        places[[term.seq for term in terms]] = np.arange(1, len(terms) + 1)
        place = places[np.minimum(held, highest + 1)]
        hits = np.flatnonzero(place)
        owner, place, times = owner[hits], place[hits] - 1, times[hits]
        norm = K1 * (1 - B + B * np.array(lengths) * holding.passages / holding.terms)[owner]
        parts = np.array([term.most for term in terms])[place] * (times / (times + norm))
        return _Scored(np.array(passages), np.bincount(owner, parts, len(rows)))


def _best(one: _Scored, two: _Scored, k: int) -> _Scored:
    """The k best of both, best first; of equals the older. The same passage may be in both, with the same score."""
    np = _numpy()
    passages, first = np.unique(np.concatenate((one.passages, two.passages)), return_index=True)
    scores = np.concatenate((one.scores, two.scores))[first]
    order = np.lexsort((passages, -scores))[:k]
    return _Scored(passages[order], scores[order])


def _none() -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
    np = _numpy()
    return np.empty(0, np.int64), np.empty(0, np.float64)


def _idf(passages: int, holders: int) -> float:
    return math.log1p((max(passages - holders, 0) + 0.5) / (holders + 0.5))


def _reach(terms: Sequence[_Term], most: int) -> int:
    """How many of the terms, rarest first, have so many holders together; one at least."""
    held = 0
    for count, term in enumerate(terms):
        held += term.holders
        if held > most:
            return max(count, 1)
    return len(terms)


def _enough(terms: Sequence[_Term], bar: float) -> int:
    """How many of the terms, rarest first, must be looked at so that the others together stay below the bar."""
    rest, count = 0.0, len(terms)
    while count > 0 and rest + terms[count - 1].most < bar:
        count -= 1
        rest += terms[count].most
    return count


def _numpy() -> Any:  # noqa: ANN401  (the module, which need not be there)
    try:
        import numpy as np
    except ImportError:
        raise ConfigError("an index on a server needs the extra postgres: pip install 'taiwa[postgres]'") from None
    return np
