"""What could be meant, read off what was found: titles and headings as options, without a model.

The passages were filtered by who may see them before they came here, so that no option shows what somebody may not see.
"""

from collections.abc import Iterable, Sequence
from unicodedata import normalize

from taiwa.ask.types import Option
from taiwa.kernel.messages import Passage, passage_key

__all__ = ["DOMINANT", "MOST_OPTIONS", "group_options", "narrow_options", "top_share"]


MOST_OPTIONS = 4

PREVIEW = 80

DOMINANT = 0.8
"""From which part of all scores on one group of passages is what is meant, and nothing is left to choose."""


def group_options(found: Sequence[Passage], most: int = MOST_OPTIONS) -> tuple[Option, ...]:
    """Group passages by the first title or heading in which they differ; the best group comes first.

    There are at least two options, or none: passages that say the same, or all stand under one heading, leave no choice.

    >>> leave = [Passage("leave.md", "a", 2.0, heading=("Paid",)), Passage("leave.md", "b", 1.5, 9, heading=("Sick",))]
    >>> [option.label for option in group_options(leave)]
    ['Paid', 'Sick']
    """
    told = _told(found)
    paths = [_path(passage) for passage in told]
    depth = _shared(paths)
    groups: dict[str, list[Passage]] = {}
    labels: dict[str, str] = {}
    for passage, path in zip(told, paths, strict=True):
        label = path[min(depth, len(path) - 1)]
        folded = _folded(label)
        labels.setdefault(folded, label)
        groups.setdefault(folded, []).append(passage)
    if len(groups) < 2:
        return ()
    ranked = sorted(groups, key=lambda name: -sum(passage.score for passage in groups[name]))
    return tuple(_option(labels[name], groups[name]) for name in ranked[:most])


def narrow_options(found: Sequence[Passage], options: Sequence[Option]) -> tuple[Option, ...]:
    """What could be meant within the best option, where that holds at least half of what was found; else the options.

    >>> leave = [Passage("leave.md", "a", 3.0, heading=("Paid",)), Passage("leave.md", "b", 2.0, 9, heading=("Sick",))]
    >>> found = [*leave, Passage("pay.md", "c", 1.0)]
    >>> [option.label for option in group_options(found)], [option.label for option in narrow_options(found, group_options(found))]
    (['leave.md', 'pay.md'], ['Paid', 'Sick'])
    """
    inner = [passage for passage in found if options and passage_key(passage) in options[0].passages]
    return (len(inner) * 2 >= len(found) and group_options(inner)) or tuple(options)


def top_share(found: Sequence[Passage], options: Sequence[Option]) -> float:
    """Return how much of all scores lies on the best option, 0 to 1; 1 where there is nothing to choose."""
    scores = {
        passage_key(passage): max(passage.score, 0.0) for passage in reversed(found)
    }  # the first one of a key counts
    whole = sum(scores.values())
    if not options or whole <= 0:
        return 1.0
    return max(sum(scores.get(name, 0.0) for name in option.passages) for option in options) / whole


def _told(found: Iterable[Passage]) -> list[Passage]:
    """The first of the passages that say the same or have the same key, so that every option covers passages of its own."""
    seen: set[object] = set()
    kept: list[Passage] = []
    for passage in found:
        names = {("text", _folded(passage.text)), ("key", passage_key(passage))}
        if not names & seen:
            kept.append(passage)
        seen |= names
    return kept


def _path(passage: Passage) -> tuple[str, ...]:
    """Where a passage stands, outermost first; a heading that repeats the title is no step."""
    title = passage.title or passage.source
    headings = [each for each in passage.heading if each.strip() and _folded(each) != _folded(title)]
    return (title, *headings)


def _shared(paths: Sequence[tuple[str, ...]]) -> int:
    """How many steps all paths have in common."""
    depth = 0
    for steps in zip(*paths, strict=False):
        if len({_folded(step) for step in steps}) > 1:
            break
        depth += 1
    return depth


def _option(label: str, passages: Sequence[Passage]) -> Option:
    words = " ".join(passages[0].text.split())
    preview = words if len(words) <= PREVIEW else words[: PREVIEW - 1] + "…"
    return Option(" ".join(label.split())[:PREVIEW], len(passages), preview, tuple(map(passage_key, passages)))


def _folded(text: str) -> str:
    return " ".join(normalize("NFKC", text).casefold().split())
