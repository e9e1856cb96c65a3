"""The part of `taiwa index` that has an index asked by meaning too: an embedder, vectors, and whether they help."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from taiwa.cli.indexing import bar
from taiwa.cli.screen import say_line
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.retrieval import Index
    from taiwa.retrieval.embedding import Embedder
    from taiwa.retrieval.hybrid import HybridIndex
    from taiwa.retrieval.types import EmbedderChoice, Gain
    from taiwa.settings import Settings

__all__ = ["OFF", "Wish", "choose", "dense_row", "learn", "print_dense", "wished"]

OFF = "off"
PART = 0.1
"""The part of an index that is new when a check is made again without being asked for."""


class Wish(NamedTuple):
    """What was asked for: where the embedder is, `off`, or nothing new; and whether to fuse whatever a check finds."""

    place: str
    force: bool


def wished(dense: str | None, force: bool) -> Wish:
    """Read the options; the path of a folder is made whole."""
    place = (dense or "").strip()
    if dense is not None and not place:
        raise InputError(f"--dense takes the folder of a model, an endpoint (http://HOST:PORT/v1#NAME), or {OFF}")
    if force and place == OFF:
        raise InputError(f"--dense {OFF} and --dense-force contradict each other: give one of them")
    folder = Path(place).expanduser()
    return Wish(str(folder.resolve()) if place and place != OFF and folder.is_dir() else place, force)


def choose(index: "Index", wish: Wish, settings: "Settings") -> "Embedder | None":
    """Open the embedder that is asked for, and have the index remember it; None where the index keeps its own.

    Raises:
        TaiwaError: it cannot be opened; the index stays as it was.
    """
    before = index.backend.meaning()
    if wish.place == OFF:
        index.backend.choose(None)
        return None
    if not wish.place:
        if wish.force and before is None:
            raise InputError("--dense-force needs an embedder: give --dense too")
        return None
    return _opened(index, wish.place, before, settings, always=wish.force)


def learn(index: "Index", opened: "Embedder | None", wish: Wish, settings: "Settings") -> int:
    """Make the vectors that are missing, and check whether they help; return how many were made.

    Raises:
        TaiwaError: the embedder failed; what it made so far is kept.
    """
    before = index.backend.meaning()
    if before is None:
        return 0
    always = wish.force or (before.always and not wish.place)
    embedder = opened or _opened(index, before.place, before, settings, always=always)
    from taiwa.retrieval.hybrid import HybridIndex

    fused = HybridIndex(index, embedder, always=always)
    whole = index.summary(None).passages
    missing = whole - index.backend.vectors(embedder.name)
    with bar() as moved:
        made = fused.make_vectors(lambda done: moved(done, missing, "vectors"))
    index.backend.keep_vectors(embedder.name)
    if whole and (wish.place or made >= PART * whole or _unchecked(fused)):
        _check(fused)
    return made


def _opened(
    index: "Index", place: str, before: "EmbedderChoice | None", settings: "Settings", *, always: bool
) -> "Embedder":
    from taiwa.models.http_api.embeddings import Endpoint, open_embedder
    from taiwa.retrieval.types import EmbedderChoice

    embedder = open_embedder(place, settings)
    probe: tuple[float, ...] = ()
    if isinstance(embedder, Endpoint):
        embedder.meet(before if before is not None and before.place == place else None)
        probe = embedder.probe
    index.backend.choose(EmbedderChoice(place, embedder.name, probe, always))
    return embedder


def _unchecked(fused: "HybridIndex") -> bool:
    """Whether nothing was checked yet, or people have meanwhile said enough to ask with their questions."""
    from taiwa.retrieval.types import ENOUGH

    gain = fused.backend.gain(fused.embedder.name)
    if gain is None:
        return True
    return gain.of != "people" and len({each.query for each in fused.backend.told() if each.good}) >= ENOUGH


def _check(fused: "HybridIndex") -> None:
    from taiwa.retrieval.hybrid import gain_of, own_sentences

    try:
        gain_of(fused, asked=own_sentences(fused.backend))
    except InputError:
        return  # too few questions; what was known stays, and `verdict` tells


def dense_row(index: "Index", *, keeper: bool = True) -> dict[str, Json] | None:
    """Tell by what an index is asked beside words, for programs; counts are for the keeper of the index."""
    meaning = index.backend.meaning()
    if meaning is None:
        return None
    gain = index.backend.gain(meaning.model)
    checked: dict[str, Json] | None = None
    if gain is not None:
        checked = {
            "questions": gain.questions, "of": gain.of, "words": round(gain.words, 4), "fused": round(gain.fused, 4),
            "low": round(gain.low, 4), "high": round(gain.high, 4),
        }  # fmt: skip
    return {
        "place": meaning.place, "model": meaning.model, "vectors": index.backend.vectors(meaning.model) if keeper else None,
        "fused": meaning.always or (gain is not None and gain.helps), "forced": meaning.always, "gain": checked,
    }  # fmt: skip


def print_dense(index: "Index", made: int = 0, *, keeper: bool = True) -> None:
    """Print by what an index is asked beside words, and why; counts are for the keeper of the index."""
    meaning = index.backend.meaning()
    if meaning is None:
        return
    new = f" ({made:,} new)" if made else ""
    vectors = f", {index.backend.vectors(meaning.model):,} vectors{new}" if keeper else ""
    say_line(f"by meaning: {meaning.model}{vectors}, from {meaning.place}")
    say_line(_verdict(meaning, index.backend.gain(meaning.model)))


def _verdict(meaning: "EmbedderChoice", gain: "Gain | None") -> str:
    """Say whether both rankings are fused, and why.

    >>> from taiwa.retrieval.types import EmbedderChoice, Gain
    >>> _verdict(EmbedderChoice("m", "m-1"), Gain(50, 0.5, 0.52, -0.01, 0.05))
    'not fused: nDCG@10 0.500 by words, 0.520 by both, on 50 questions of people: no gain beyond chance (+0.020; 95 %: -0.010 to +0.050)'
    """
    if gain is None:
        figures = (
            "not checked: too few documents of several passages, and too few questions that people called well answered"
        )
    else:
        whose = "questions of people" if gain.of == "people" else "sentences of the documents"
        change = f"({gain.fused - gain.words:+.3f}; 95 %: {gain.low:+.3f} to {gain.high:+.3f})"
        figures = (
            f"nDCG@10 {gain.words:.3f} by words, {gain.fused:.3f} by both, on {gain.questions} {whose}:"
            f" {'a gain' if gain.helps else 'no gain beyond chance'} {change}"
        )
    if gain is not None and gain.helps:
        return f"fused: {figures}"
    return f"fused, because --dense-force said so; {figures}" if meaning.always else f"not fused: {figures}"
