"""From rows to one line for each setting: what every evaluation counts in the same way."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json
from taiwa.lab.evaluation.intervals import Paired, Share
from taiwa.lab.evaluation.rows import Row

__all__ = ["added", "bill", "by_setting", "counted", "failures", "interval_of", "paired", "paired_of", "right"]


def by_setting(rows: Iterable[Row], settings: Sequence[str]) -> dict[str, list[Row]]:
    """Group rows, the settings in their order; a setting without a row is left out."""
    groups: dict[str, list[Row]] = {name: [] for name in settings}
    for row in rows:
        groups.setdefault(row.setting, []).append(row)
    return {name: group for name, group in groups.items() if group}


def right(rows: Iterable[Row], mark: str) -> Share:
    """The share of rows that bear a mark; one that failed bears none, and counts."""
    marks = [row.found.get(mark) is True for row in rows]
    return Share(sum(marks), len(marks))


def interval_of(share: Share) -> Json:
    """A Wilson interval for JSON."""
    return None if share.interval is None else [round(bound, 6) for bound in share.interval]


def paired(these: Iterable[Row], those: Iterable[Row], mark: str) -> Paired:
    """Compare two settings on the items that both of them measured."""
    other = {row.id: row.found.get(mark) is True for row in those if row.error is None}
    both = [(row.found.get(mark) is True, other[row.id]) for row in these if row.error is None and row.id in other]
    return Paired(
        sum(this and not that for this, that in both), sum(that and not this for this, that in both), len(both)
    )


def paired_of(found: Paired, against: str) -> Json:
    """A paired test for JSON."""
    return {
        "against": against, "pairs": found.pairs, "only_this": found.only_this, "only_that": found.only_that, "p": found.p,
    }  # fmt: skip


def added(rows: Iterable[Row], name: str) -> int:
    """The sum of a number that rows found."""
    return sum(number for row in rows if isinstance(number := row.found.get(name), int))


def counted(rows: Iterable[Row], name: str) -> dict[str, Json]:
    """How often each word of what rows found occurs: a word, or counts by word; the most frequent first."""
    counts: Counter[str] = Counter()
    for row in rows:
        found = row.found.get(name)
        if isinstance(found, str) and found:
            counts[found] += 1
        elif isinstance(found, Mapping):
            counts.update({word: number for word, number in found.items() if isinstance(number, int)})
    return dict(counts.most_common())


def failures(rows: Iterable[Row]) -> dict[str, Json]:
    """Why rows hold no measurement: how often each error, the most frequent first."""
    return dict(Counter(row.error.code for row in rows if row.error is not None).most_common())


def bill(rows: Sequence[Row], replaced: Iterable[Row] = ()) -> dict[str, Json]:
    """What the rows of a setting used, those included that a later row replaced. What a server did not tell is null."""
    spent = sum((row.spent for row in (*rows, *replaced)), Spent())
    known = not spent.unmetered
    usage, most = spent.usage, spent.estimated
    return {
        "requests": spent.requests,
        "input_tokens": usage.input_tokens if known else None,
        "cached_tokens": usage.cache_read_tokens if known else None,
        "output_tokens": usage.output_tokens if known else None,
        "tokens_at_most": None if spent.cost_at_most is None else usage.input_tokens + usage.output_tokens + most.input_tokens + most.output_tokens,
        "cost": None if spent.cost is None else spent.cost / 1e9,
        "cost_at_most": None if spent.cost_at_most is None else spent.cost_at_most / 1e9,
        "wall_ms": round(sum(row.spent.seconds for row in rows) * 1000),
        "ms_per_item": round(sum(row.spent.seconds for row in rows) * 1000 / len(rows), 1) if rows else None,
    }  # fmt: skip
