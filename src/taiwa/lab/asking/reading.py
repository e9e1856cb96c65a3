"""From files to sets: which format a file has, what it is looked up in, and which passages answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from taiwa.apps.catalogue import HANDBOOK
from taiwa.kernel.errors import InputError
from taiwa.kernel.values import Passage
from taiwa.lab.asking.formats import SIMPLE
from taiwa.lab.asking.gathered import once, piece
from taiwa.lab.asking.published import PUBLISHED
from taiwa.lab.asking.rows import Fields, load
from taiwa.lab.asking.sample import ReadSet, Sample
from taiwa.retrieval.ingest import Folder
from taiwa.retrieval.readers import IsolatedReader, document_format, split_into_chunks

__all__ = ["SHIPPED", "digest_of", "read_passages", "read_sets"]

SHIPPED = "taiwa:handbook"
"""The questions to the handbook that comes with this program."""
QUESTIONS = HANDBOOK.parent / "worked" / "handbook.jsonl"
ENDINGS = ("_questions", "_dialogs", "_tasks", "_rewrites")
FORMATS = (*PUBLISHED, *SIMPLE)


def read_sets(
    paths: Sequence[Path], passages: Sequence[Path] = (), judgements: Sequence[Path] = ()
) -> tuple[ReadSet, ...]:
    """Read files of dialogues or questions, each a set of its own.

    A set is looked up in the given passages; without them in those beside its file (`NAME_passages.jsonl`), in those that it
    brings along, and where there are none, in those of all sets together.

    Raises:
        InputError: a file cannot be used; the message names file, row and field.
    """
    given = once(passage for path in passages for passage in read_passages(path))
    told = _judged(judgements)
    sets = [_read(path, given, told) for path in paths]
    names = [each.name for each in sets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two files are called {twice}: rows could not be told apart, so rename one")
    pool = once(passage for each in sets for passage in each.passages)
    return tuple(_lent(each, pool) for each in sets)


def read_passages(path: Path) -> tuple[Passage, ...]:
    """Read passages: rows with `id` or `_id`, `text` and perhaps `title`, or a folder of documents.

    Raises:
        InputError: there is nothing to be read.
    """
    if path.is_dir():
        return _of_folder(path)
    _, rows = load(path)
    return once(_passage(row) for row in rows)


def _passage(row: Fields) -> Passage:
    name = next((name for name in ("id", "_id", "document_id") if name in row), "id")
    return piece(row.text(name), row.text("text"), row.text("title", ""))


def _of_folder(path: Path) -> tuple[Passage, ...]:
    folder = Folder(path)
    found: list[Passage] = []
    with IsolatedReader() as apart:
        for file in folder.files():
            kind = document_format(file.path)
            if kind is None:
                continue
            reading = apart.read(folder.read(file.path), kind)
            for each in split_into_chunks(reading):
                name = f"{file.path}#{each.start}"
                found.append(Passage(name, each.text, 0.0, 0, each.heading, each.page, reading.title, name))
    if not found:
        raise InputError(f"{path} holds no document that can be read")
    return tuple(found)


def _judged(paths: Sequence[Path]) -> Mapping[str, tuple[str, ...]]:
    """Which passages answer which question: lines of `q`, `d` and `s`, or a table as BEIR and TREC have it."""
    found: dict[str, list[str]] = {}
    for path in paths:
        _, rows = load(path)
        for row in rows:
            question = next((name for name in ("q", "query-id", "query_id") if name in row), "q")
            passage = next((name for name in ("d", "corpus-id", "corpus_id") if name in row), "d")
            grade = next((name for name in ("s", "score") if name in row), "s")
            if row.number(grade) > 0:
                found.setdefault(row.text(question), []).append(row.text(passage))
    return {name: tuple(dict.fromkeys(each)) for name, each in found.items()}


def _read(path: Path, given: tuple[Passage, ...], told: Mapping[str, tuple[str, ...]]) -> ReadSet:
    if str(path) == SHIPPED:
        return _shipped()
    digest, rows = load(path)
    kind = next((each for each in FORMATS if each.fits(rows[0])), None)
    if kind is None:
        names = ", ".join(sorted(rows[0].row)[:12])
        known = ", ".join(dict.fromkeys(each.name for each in FORMATS))
        raise InputError(f"{rows[0].where}: no known format has the fields {names}; there are {known}")
    if strange := next((row for row in rows if not kind.fits(row)), None):
        lacking = next(name for name in sorted(kind.marks) if name not in strange.row)
        strange.fault(lacking, "is not there")
    found = kind.read(rows)
    beside = _beside(path)
    looked_in = given or found.passages or (read_passages(beside) if beside is not None else ())
    judged = told or _judged([each for each in [_beside(path, "_qrels.jsonl")] if each is not None])
    samples = tuple(_with(sample, judged) for sample in found.samples)
    _distinct(path, samples)
    return ReadSet(path.stem.removesuffix("_questions"), kind.name, digest, samples, looked_in, found.notes)


def _shipped() -> ReadSet:
    digest, rows = load(QUESTIONS)
    found = next(each for each in FORMATS if each.fits(rows[0])).read(rows)
    passages = _of_folder(HANDBOOK)
    samples = tuple(replace(sample, relevant=tuple(_places(sample.relevant, passages))) for sample in found.samples)
    note = "handbook: without the questions to what not everybody may see"
    return ReadSet("handbook", "handbook", digest, samples, passages, (note,))


def _places(gold: Iterable[str], passages: Sequence[Passage]) -> Iterable[str]:
    """The passages of a source that hold some words."""
    for each in gold:
        source, _, words = each.partition("\n")
        wanted = _plain(words)
        fitting = (one.id for one in passages if one.id.startswith(f"{source}#") and wanted in _plain(one.text))
        yield from fitting


def _plain(text: str) -> str:
    return "".join(text.replace("*", "").replace("`", "").split())


def _beside(path: Path, ending: str = "_passages.jsonl") -> Path | None:
    """The file beside a file that holds its passages or its judgements."""
    stems = {path.stem, *(path.stem.removesuffix(each) for each in ENDINGS)}
    return next((each for stem in sorted(stems) if (each := path.with_name(f"{stem}{ending}")).is_file()), None)


def _with(sample: Sample, judged: Mapping[str, tuple[str, ...]]) -> Sample:
    return replace(sample, relevant=judged[sample.id]) if sample.id in judged else sample


def _distinct(path: Path, samples: Sequence[Sample]) -> None:
    seen: set[str] = set()
    for sample in samples:
        if sample.id in seen:
            raise InputError(f"{path}: two rows have the id {sample.id!r}")
        seen.add(sample.id)


def _lent(one: ReadSet, pool: tuple[Passage, ...]) -> ReadSet:
    """A set without passages looks into those of the others; relevant ones that are not there count for nothing."""
    notes = one.notes
    passages = one.passages
    if not passages and pool:
        passages = pool
        notes = (*notes, f"{one.name}: it brings no documents, so those of the other sets stand in")
    there = {passage.id for passage in passages}
    samples = tuple(
        replace(each, relevant=tuple(name for name in each.relevant if name in there)) for each in one.samples
    )
    return replace(one, samples=samples, passages=passages, notes=notes)


def digest_of(sets: Sequence[ReadSet]) -> str:
    """The SHA-256 that names the data of several sets: that of the file where there is one."""
    if len(sets) == 1:
        return sets[0].digest
    return sha256("".join(each.digest for each in sets).encode()).hexdigest()
