"""Options of a question back: what could be meant, from the titles and headings of the passages found, without a model.

Retrieval has applied access control to the passages, so an option shows nothing that the user may not see.
"""

from collections.abc import Iterable, Sequence
from unicodedata import normalize

from taiwa.ask.types import Option
from taiwa.kernel.messages import Passage, passage_key

MAX_OPTIONS = 4

PREVIEW_CHARACTERS = 80

DOMINANT = 0.8
"""Share of all scores from which one group of passages counts as what is meant, without a choice."""


def group_options(found: Sequence[Passage], limit: int = MAX_OPTIONS) -> tuple[Option, ...]:
    """Group passages by the first title or heading in which they differ; the best group comes first.

    There are at least two options, or none: passages with the same text, or all under one heading, leave no choice.

    >>> leave = [Passage("leave.md", "a", 2.0, heading=("Paid",)), Passage("leave.md", "b", 1.5, 9, heading=("Sick",))]
    >>> [option.label for option in group_options(leave)]
    ['Paid', 'Sick']
    """
    distinct = _distinct(found)
    paths = [_path(passage) for passage in distinct]
    depth = _common_depth(paths)
    groups: dict[str, list[Passage]] = {}
    labels: dict[str, str] = {}
    for passage, path in zip(distinct, paths, strict=True):
        label = path[min(depth, len(path) - 1)]
        folded = _folded(label)
        labels.setdefault(folded, label)
        groups.setdefault(folded, []).append(passage)
    if len(groups) < 2:
        return ()
    ranked = sorted(groups, key=lambda name: -sum(passage.score for passage in groups[name]))
    return tuple(_option(labels[name], groups[name]) for name in ranked[:limit])


def narrow_options(found: Sequence[Passage], options: Sequence[Option]) -> tuple[Option, ...]:
    """Return the options within the best one if it has at least half of the passages; else the options themselves.

    >>> leave = [Passage("leave.md", "a", 3.0, heading=("Paid",)), Passage("leave.md", "b", 2.0, 9, heading=("Sick",))]
    >>> found = [*leave, Passage("pay.md", "c", 1.0)]
    >>> [option.label for option in group_options(found)], [option.label for option in narrow_options(found, group_options(found))]
    (['leave.md', 'pay.md'], ['Paid', 'Sick'])
    """
    inner = [passage for passage in found if options and passage_key(passage) in options[0].passages]
    return (len(inner) * 2 >= len(found) and group_options(inner)) or tuple(options)


def top_share(found: Sequence[Passage], options: Sequence[Option]) -> float:
    """Return the share of all scores that the best option has, 0 to 1; 1 if there are no options."""
    # Of several passages with one key the first counts.
    scores = {passage_key(passage): max(passage.score, 0.0) for passage in reversed(found)}
    whole = sum(scores.values())
    if not options or whole <= 0:
        return 1.0
    return max(sum(scores.get(name, 0.0) for name in option.passages) for option in options) / whole


def _distinct(found: Iterable[Passage]) -> list[Passage]:
    """Return the passages without repeated texts and keys, so that every option has passages of its own."""
    seen: set[object] = set()
    distinct: list[Passage] = []
    for passage in found:
        names = {("text", _folded(passage.text)), ("key", passage_key(passage))}
        if not names & seen:
            distinct.append(passage)
        seen |= names
    return distinct


def _path(passage: Passage) -> tuple[str, ...]:
    """Return the title and headings of a passage, outermost first; a heading that repeats the title is omitted."""
    title = passage.title or passage.source
    headings = [each for each in passage.heading if each.strip() and _folded(each) != _folded(title)]
    return (title, *headings)


def _common_depth(paths: Sequence[tuple[str, ...]]) -> int:
    """Return the number of steps that all paths have in common."""
    depth = 0
    for steps in zip(*paths, strict=False):
        if len({_folded(step) for step in steps}) > 1:
            break
        depth += 1
    return depth


def _option(label: str, passages: Sequence[Passage]) -> Option:
    words = " ".join(passages[0].text.split())
    preview = words if len(words) <= PREVIEW_CHARACTERS else words[: PREVIEW_CHARACTERS - 1] + "…"
    return Option(
        " ".join(label.split())[:PREVIEW_CHARACTERS], len(passages), preview, tuple(map(passage_key, passages))
    )


def _folded(text: str) -> str:
    return " ".join(normalize("NFKC", text).casefold().split())
