"""Readers of published corpora of dialogues and questions, as their makers publish them and as simple slices.

Files are JSON lines, JSON arrays, objects around them, columns, tables with tabs, or folders of these. The format is recognised
by the fields of the first row; an error names file, row and field.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import cast

from taiwa.apps.catalog import HANDBOOK, read_bounded
from taiwa.evals.data import MAX_FILE_BYTES, read_rows
from taiwa.evals.data import Fields as RowFields
from taiwa.evals.retrieval import (
    DialogueSample,
    QuestionSet,
    named_sets,
    passage_of,
    read_folder,
    read_passages,
    set_name,
    sibling_file,
    unique_passages,
)
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Passage
from taiwa.kernel.serialization import Json, value
from taiwa.retrieval.chunks import split_into_chunks
from taiwa.retrieval.types import ParsedDocument

__all__ = ["BUNDLED", "CorpusContent", "CorpusFormat", "load_rows", "read_corpora"]

WRAPPING_KEYS = ("data", "questions")
"""The keys of objects that wrap an array of rows."""
MAX_FIELD_LENGTH = 2**24


class Fields(RowFields):
    """A row and its position, with the kinds of fields that corpora have beside texts."""

    def flag(self, name: str) -> bool:
        """Read true or false, also as 1 or 0."""
        part = self.row.get(name)
        if not isinstance(part, bool) and part not in (0, 1):
            self.invalid(name, "must be true or false")
        return bool(part)

    def number(self, name: str) -> float:
        """Read a number, also written as text."""
        try:
            return float(self.text(name))
        except ValueError:
            self.invalid(name, "must be a number")

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """Read a list of pairs of texts."""
        pairs: list[tuple[str, str]] = []
        for each in self.array(name):
            match each:
                case [str(first), str(second), *_]:
                    pairs.append((first, second))
                case _:
                    self.invalid(name, "must be a list of pairs of texts")
        return tuple(pairs)

    def part(self, name: str) -> "Fields":
        """Read an object."""
        part = self.row.get(name)
        if not isinstance(part, dict):
            self.invalid(name, "must be an object")
        return Fields(f"{self.where}: {name}", part)


def load_rows(path: Path) -> tuple[str, tuple[Fields, ...]]:
    """Read a file or a folder of files: the SHA-256 of all bytes, and the rows.

    Raises:
        InputError: a file cannot be read, or there is no row.
    """
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix in (".json", ".jsonl") and each.is_file())
        read = [_load_file(each) for each in files]
        digest = sha256(b"".join(sha256(raw).digest() for raw, _ in read)).hexdigest()
        rows = tuple(row for _, rows in read for row in rows)
    else:
        raw, rows = _load_file(path)
        digest = sha256(raw).hexdigest()
    if not rows:
        raise InputError(f"{path} holds no row")
    return digest, rows


def _load_file(path: Path) -> tuple[bytes, tuple[Fields, ...]]:
    if path.suffix.lower() in (".tsv", ".qrel", ".qrels"):
        return _load_table(path)
    whole = _whole_object(path)
    if whole is None:
        raw, rows = read_rows(path)
        return raw, tuple(Fields(f"{path}:{line}", row) for line, row in rows)
    raw, found = whole
    return raw, tuple(_rows_of_object(path, found))


def _whole_object(path: Path) -> tuple[bytes, Mapping[str, Json]] | None:
    """Read a file that is one object; None for anything else, which is read by rows."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return None
        raw = path.read_bytes()
        if raw.lstrip()[:1] != b"{":
            return None
        found: object = json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return None  # reading by rows reports it with its line
    return (raw, cast("Mapping[str, Json]", found)) if isinstance(found, dict) else None


def _rows_of_object(path: Path, found: Mapping[str, Json]) -> Iterator[Fields]:
    name = next((name for name in WRAPPING_KEYS if isinstance(found.get(name), list)), None)
    if name == "data":
        yield from Fields(str(path), found).parts(name)
    elif found and all(isinstance(column, dict) for column in found.values()):
        columns = cast("Mapping[str, Mapping[str, Json]]", found)
        for key in next(iter(columns.values())):
            yield Fields(f"{path}: row {key!r}", {head: column.get(key) for head, column in columns.items()})
    else:
        yield Fields(f"{path}:1", found)


def _load_table(path: Path) -> tuple[bytes, tuple[Fields, ...]]:
    """Read a table with tabs; the first line names its columns."""
    raw, text = read_bounded(path, MAX_FILE_BYTES, f"is larger than {MAX_FILE_BYTES >> 20} MB; divide it")
    csv.field_size_limit(MAX_FIELD_LENGTH)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t")
    try:
        rows = tuple(
            Fields(f"{path}:{reader.line_num}", {str(head): cell for head, cell in row.items()}) for row in reader
        )
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: invalid table: {error}") from None
    return raw, rows


SPEAKER_MARK = re.compile(r"\|(user|agent|assistant)\|:")
QUESTION_END = re.compile(r"[?？]\s*$|(?:か|かね|かしら)。\s*$")


@value
class CorpusContent:
    """Samples, the passages in the same file, and notes for the report."""

    samples: tuple[DialogueSample, ...]
    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()


def passages_of(name: str, text: str) -> tuple[Passage, ...]:
    """Return a document as passages, split as an index splits it."""
    return tuple(passage_of(f"{name}#{each.start}", each.text) for each in split_into_chunks(ParsedDocument(text)))


def turns_of_pairs(pairs: Sequence[tuple[str, str]], last: str) -> tuple[tuple[str, str], ...]:
    """Return questions with answers and a last question as turns; empty answers are left out."""
    before = [
        turn for question, answer in pairs for turn in (("user", question), ("assistant", answer)) if turn[1].strip()
    ]
    return (*before, ("user", last))


def turns_by_speaker(turns: Iterable[tuple[str, str]], users: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return turns by role; every speaker that is not a user is the assistant."""
    return tuple(("user" if who in users else "assistant", words) for who, words in turns if words.strip())


def split_marked_turns(text: str) -> Iterator[tuple[str, str]]:
    """Split a text with speaker marks such as `|user|: …` into turns; a text without marks is one turn of the user.

    >>> list(split_marked_turns("|user|: A leave?\\n|user|: Which one?"))
    [('user', 'A leave?'), ('user', 'Which one?')]
    """
    places = [*SPEAKER_MARK.finditer(text)]
    if not places:
        yield "user", text.strip()
    for mark, following in zip(places, [*places[1:], None], strict=True):
        yield mark[1], text[mark.end() : None if following is None else following.start()].strip()


def ends_as_question(text: str) -> bool:
    """Return whether a line of a text ends as a question.

    >>> ends_as_question("かしこまりました。ご予算はいかがでしょうか?"), ends_as_question("こちらの宿がございます。")
    (True, False)
    """
    return any(QUESTION_END.search(line) for line in text.splitlines())


ReadCorpus = Callable[[Sequence[Fields]], CorpusContent]
USERS = frozenset({"user", "customer"})
CLARIQ_NEED = 3
"""ClariQ's need for clarification, 1 to 4, from which a clarifying question is expected."""
ANSWERABILITY = {"ANSWERABLE": True, "PARTIAL": True, "UNANSWERABLE": False}
UNDERSPECIFIED = {"UNDERSPECIFIED": True, "ANSWERABLE": False, "PARTIAL": False}
FROM_TURNS = "asdc: a clarifying question is expected where the next turn of the operator ends as a question"
OWN_ANSWERS = "{}: the passages are the answers of the dialogues themselves, without those already given in a dialogue"


@value
class CorpusFormat:
    """A format: its name, the fields by which it is recognised, and its reader."""

    name: str
    marks: frozenset[str]
    read: ReadCorpus

    def fits(self, row: Fields) -> bool:
        """Return whether a row has the fields of this format."""
        return self.marks <= row.row.keys()


def _qulac_slice(rows: Sequence[Fields]) -> CorpusContent:
    def sample(row: Fields) -> DialogueSample:
        pairs: Sequence[Json] = row.array("qa") if "qa" in row else ()
        replies = [str(each[2]) for each in pairs if isinstance(each, list) and len(each) > 2]
        ask = row.text("topic_type") == "ambiguous"
        return DialogueSample(row.text("topic_id"), (("user", row.text("topic")),), ask, replies=tuple(replies[:1]))

    return CorpusContent(
        tuple(map(sample, rows)),
        notes=("qulac: a clarifying question is expected for ambiguous topics, not for faceted ones",),
    )


def _abg_coqa_slice(rows: Sequence[Fields]) -> CorpusContent:
    samples: list[DialogueSample] = []
    stories: dict[str, str] = {}
    for row in rows:
        story = stories.setdefault(row.text("story"), f"story-{len(stories)}")
        clarification = row.part("clarification") if "clarification" in row else None
        replies = [] if clarification is None else [each.text("clr_ans") for each in clarification.parts("answers")]
        samples.append(
            DialogueSample(
                row.text("id"), turns_of_pairs(row.pairs("history"), row.text("question")), row.flag("ambiguous"),
                relevant=tuple(each.id for each in passages_of(story, row.text("story"))), answers=(row.text("answer"),),
                answerable=None if row.flag("ambiguous") else True, replies=tuple(replies[:1]),
            )
        )  # fmt: skip
    return CorpusContent(
        tuple(samples), tuple(each for text, name in stories.items() for each in passages_of(name, text))
    )


def _pacific_slice(rows: Sequence[Fields]) -> CorpusContent:
    documents: dict[str, list[Fields]] = {}
    for row in rows:
        documents.setdefault(row.text("doc"), []).append(row)
    samples: list[DialogueSample] = []
    for doc, found in documents.items():
        before: list[tuple[str, str]] = []
        for row in sorted(found, key=lambda each: each.number("order")):
            question, answer = row.text("question"), _answer_text(row)
            samples.append(
                DialogueSample(f"{doc}/{row.text('order')}", turns_of_pairs(before, question), row.flag("req_clari"))
            )
            before.append((question, answer))
    return CorpusContent(tuple(samples))


def _answer_text(row: Fields) -> str:
    found = row.row.get("answer")
    return ", ".join(map(str, found)) if isinstance(found, list) else "" if found is None else str(found)


def _canard_slice(rows: Sequence[Fields]) -> CorpusContent:
    return CorpusContent(
        tuple(sample for row in rows for sample in _canard_slice_samples(row)),
        tuple(
            passage_of(f"{row.text('id')}/{number}", answer, row.text("title"), (row.text("section"),))
            for row in rows
            for number, answer in enumerate(row.texts("history")[1::2], 1)
        ),
        (OWN_ANSWERS.format("canard"),),
    )


def _canard_slice_samples(row: Fields) -> Iterator[DialogueSample]:
    """Yield each turn with a history and an answer; the answer is the relevant passage."""
    history, name = row.texts("history"), row.text("id")
    pairs = [*zip(history[::2], history[1::2], strict=False)]
    for number, turn in enumerate(row.parts("turns")[: len(pairs)]):
        if number:
            returned = tuple(f"{name}/{earlier}" for earlier in range(1, number + 1))
            turns = turns_of_pairs(pairs[:number], turn.text("q"))
            yield DialogueSample(
                f"{name}/{number + 1}", turns, None, turn.text("rewrite"), (f"{name}/{number + 1}",), returned=returned
            )


def _cast_slice(rows: Sequence[Fields]) -> CorpusContent:
    samples, passages = list[DialogueSample](), dict[str, Passage]()
    for row in rows:
        topic, before, given = f"{row.text('year')}-{row.text('topic')}", list[tuple[str, str]](), list[str]()
        for turn in row.parts("turns"):
            words, text = turn.text("utterance"), turn.text("passage", "")
            name = turn.text("canonical", "") or f"{topic}/{turn.text('n')}"
            turns = turns_of_pairs(before, words)
            if text:
                passages.setdefault(name, passage_of(name, text))
            found = DialogueSample(
                f"{topic}/{turn.text('n')}", turns, None, turn.text("rewrite"), (name,), returned=(*given,)
            )
            samples.append(found)
            before.append((words, text))
            given.append(name)
    return CorpusContent(tuple(samples), tuple(passages.values()), (OWN_ANSWERS.format("cast"),))


def _ikat(rows: Sequence[Fields]) -> CorpusContent:
    samples, passages = list[DialogueSample](), list[Passage]()
    for row in rows:
        topic, before, given = row.text("number"), list[tuple[str, str]](), list[str]()
        for turn in row.parts("turns"):
            name, words, answer = f"{topic}/{turn.text('turn_id')}", turn.text("utterance"), turn.text("response", "")
            turns = turns_of_pairs(before, words)
            if answer:
                passages.append(passage_of(name, answer))
                samples.append(
                    DialogueSample(name, turns, None, turn.text("resolved_utterance"), (name,), returned=(*given,))
                )
                given.append(name)
            before.append((words, answer))
    return CorpusContent(tuple(samples), tuple(passages), (OWN_ANSWERS.format("ikat"),))


def _mtrag_tasks_slice(rows: Sequence[Fields]) -> CorpusContent:
    def sample(row: Fields) -> DialogueSample:
        kind = row.text("answerability")
        answers = (row.text("target"),) if "target" in row else ()
        return DialogueSample(
            row.text("task_id"), turns_by_speaker(row.pairs("input"), USERS), UNDERSPECIFIED.get(kind),
            relevant=row.texts("contexts") if "contexts" in row else (), answers=answers, answerable=ANSWERABILITY.get(kind),
        )  # fmt: skip

    return CorpusContent(tuple(map(sample, rows)))


def _mtrag_rewrites(rows: Sequence[Fields]) -> CorpusContent:
    def sample(row: Fields) -> DialogueSample:
        turns = turns_by_speaker(split_marked_turns(row.text("user_turns")), USERS)
        (_, rewrite), *_rest = split_marked_turns(row.text("rewrite"))
        return DialogueSample(row.text("id"), turns, None, rewrite, row.texts("rel"))

    return CorpusContent(tuple(map(sample, rows)))


def _asdc_slice(rows: Sequence[Fields]) -> CorpusContent:
    return CorpusContent(
        tuple(sample for row in rows for sample in operator_samples(row.text("id"), row.pairs("utterances"))),
        notes=(FROM_TURNS,),
    )


def operator_samples(name: str, turns: Sequence[tuple[str, str]]) -> Iterator[DialogueSample]:
    """Yield each turn of a customer that is followed by an operator's."""
    spoken = [("user" if who.startswith(("customer", "user")) else "assistant", words) for who, words in turns]
    for at, (who, _) in enumerate(spoken[:-1]):
        following = spoken[at + 1]
        if who == "user" and following[0] == "assistant":
            yield DialogueSample(f"{name}/{at}", tuple(spoken[: at + 1]), ends_as_question(following[1]))


def _questions(rows: Sequence[Fields]) -> CorpusContent:
    def sample(row: Fields) -> DialogueSample:
        answers = row.texts("answers") if "answers" in row else ()
        turns = (("user", row.text("q")),)
        return DialogueSample(
            row.text("id"), turns, None, relevant=row.texts("rel"), answers=answers, answerable=bool(row.texts("rel"))
        )

    return CorpusContent(tuple(map(sample, rows)))


def _handbook(rows: Sequence[Fields]) -> CorpusContent:
    """Read questions whose passages are named by source and words, with the answers that are `accepted`; restricted documents are
    left out.
    """
    samples: list[DialogueSample] = []
    for row in rows:
        if "who" in row:
            continue
        texts, gold = row.texts("turns"), row.parts("gold")
        turns = tuple(
            ("user" if at % 2 == (len(texts) - 1) % 2 else "assistant", words) for at, words in enumerate(texts)
        )
        places = tuple(f"{each.text('source')}\n{each.text('words')}" for each in gold)
        ask = row.flag("ask")
        answers = row.texts("accepted") if "accepted" in row else tuple(each.text("words") for each in gold)
        samples.append(
            DialogueSample(
                row.text("id"), turns, ask, relevant=places, answers=answers, answerable=None if ask else bool(gold)
            )
        )
    return CorpusContent(tuple(samples))


def _beir(rows: Sequence[Fields]) -> CorpusContent:
    """Read BEIR queries, with marked dialogues as in MTRAG; judgements name their passages."""
    return CorpusContent(
        tuple(
            DialogueSample(row.text("_id"), turns_by_speaker(split_marked_turns(row.text("text")), USERS))
            for row in rows
        )
    )


def corpus_format(name: str, marks: str, read: ReadCorpus) -> CorpusFormat:
    """Return a format recognised by these fields."""
    return CorpusFormat(name, frozenset(marks.split()), read)


SLICE_FORMATS = (
    corpus_format("qulac", "topic_id topic topic_type facets", _qulac_slice),
    corpus_format("abg_coqa", "story history question ambiguous", _abg_coqa_slice),
    corpus_format("pacific", "doc order question req_clari", _pacific_slice),
    corpus_format("canard", "title section turns history", _canard_slice),
    corpus_format("cast", "year topic turns", _cast_slice),
    corpus_format("ikat", "number ptkb turns", _ikat),
    corpus_format("mtrag_tasks", "task_id answerability input", _mtrag_tasks_slice),
    corpus_format("mtrag_rewrites", "user_turns last rewrite rel", _mtrag_rewrites),
    corpus_format("asdc", "id conditions utterances", _asdc_slice),
    corpus_format("questions", "id q rel", _questions),
    corpus_format("handbook", "turns ask gold", _handbook),
    corpus_format("beir", "_id text", _beir),
)


NO_ANSWER = frozenset({"CANNOTANSWER", ""})


def _qulac(rows: Sequence[Fields]) -> CorpusContent:
    """Read qulac.json: a row for each topic, facet, question and answer."""
    topics: dict[str, DialogueSample] = {}
    for row in rows:
        name = row.text("topic_id")
        if name not in topics:
            ask = row.text("topic_type") == "ambiguous"
            topics[name] = DialogueSample(name, (("user", row.text("topic")),), ask, replies=(row.text("answer", ""),))
    return CorpusContent(
        tuple(topics.values()),
        notes=("qulac: a clarifying question is expected for ambiguous topics, not for faceted ones",),
    )


def _clariq(rows: Sequence[Fields]) -> CorpusContent:
    topics: dict[str, DialogueSample] = {}
    for row in rows:
        name, ask = row.text("topic_id"), row.number("clarification_need") >= CLARIQ_NEED
        if name not in topics:
            turns = (("user", row.text("initial_request")),)
            topics[name] = DialogueSample(name, turns, ask, replies=tuple(filter(None, (row.text("answer", ""),))))
    return CorpusContent(
        tuple(topics.values()), notes=(f"clariq: a clarifying question is expected for a need of {CLARIQ_NEED} or 4",)
    )


def _clamber(rows: Sequence[Fields]) -> CorpusContent:
    samples: list[DialogueSample] = []
    for number, row in enumerate(rows, 1):
        context = row.text("context", "")
        turns = (("user", context), ("user", row.text("question"))) if context else (("user", row.text("question")),)
        samples.append(DialogueSample(str(number), turns, row.flag("require_clarification")))
    return CorpusContent(tuple(samples))


def _abg_coqa(rows: Sequence[Fields]) -> CorpusContent:
    samples: list[DialogueSample] = []
    stories: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        target, text = row.part("target_turn"), row.text("story")
        story = stories.setdefault(text, f"story-{len(stories)}")
        before = [(turn.text("question"), turn.text("answer", "")) for turn in row.parts("history_turns")]
        ask = row.text("ambiguity") == "ambiguous"
        given = row.part("clarification_turn").parts("answers") if ask and "clarification_turn" in row else ()
        name = f"{row.text('id')}|{target.text('turn_id', str(number))}|{number}"
        samples.append(
            DialogueSample(
                name, turns_of_pairs(before, target.text("question")), ask,
                relevant=tuple(each.id for each in passages_of(story, text)),
                answers=tuple(filter(None, (target.text("answer", ""),))), answerable=None if ask else True,
                replies=tuple(each.text("clr_ans") for each in given[:1]),
            )
        )  # fmt: skip
    return CorpusContent(
        tuple(samples), tuple(each for text, name in stories.items() for each in passages_of(name, text))
    )


def _pacific(rows: Sequence[Fields]) -> CorpusContent:
    samples: list[DialogueSample] = []
    passages: list[Passage] = []
    for row in rows:
        uid = row.part("table").text("uid")
        table = row.part("table").array("table")
        lines = [" | ".join(map(str, line)) for line in table if isinstance(line, list)]
        passages += [passage_of(f"{uid}/table", "\n".join(lines))]
        passages += [passage_of(f"{uid}/{each.text('order')}", each.text("text")) for each in row.parts("paragraphs")]
        before: list[tuple[str, str]] = []
        for turn in sorted(row.parts("questions"), key=lambda each: each.number("order")):
            words, answer = turn.text("question"), turn.row.get("answer")
            samples.append(
                DialogueSample(f"{uid}/{turn.text('order')}", turns_of_pairs(before, words), turn.flag("req_clari"))
            )
            before.append((words, ", ".join(map(str, answer)) if isinstance(answer, list) else str(answer or "")))
    return CorpusContent(tuple(samples), unique_passages(passages))


def _canard(rows: Sequence[Fields]) -> CorpusContent:
    """Read CANARD: a row holds title, section and the turns before it, so its answer is in the next row."""
    answers: dict[tuple[str, int], str] = {}
    titles: dict[str, tuple[str, ...]] = {}
    for row in rows:
        name, history = row.text("QuAC_dialog_id"), row.texts("History")
        titles[name] = history[:2]
        for number, answer in enumerate(history[3::2], 1):
            if answer not in NO_ANSWER:
                answers[name, number] = answer
    samples: list[DialogueSample] = []
    for row in rows:
        name, number, history = row.text("QuAC_dialog_id"), int(row.number("Question_no")), row.texts("History")[2:]
        if number > 1 and (name, number) in answers:
            turns = turns_of_pairs([*zip(history[::2], history[1::2], strict=False)], row.text("Question"))
            returned = tuple(f"{name}/{earlier}" for earlier in range(1, number) if (name, earlier) in answers)
            place = f"{name}/{number}"
            samples.append(DialogueSample(place, turns, None, row.text("Rewrite"), (place,), returned=returned))
    passages = [
        passage_of(f"{name}/{number}", text, titles[name][0], titles[name][1:])
        for (name, number), text in answers.items()
    ]
    return CorpusContent(tuple(samples), tuple(passages))


def _cast(rows: Sequence[Fields]) -> CorpusContent:
    samples, passages = list[DialogueSample](), dict[str, Passage]()
    for row in rows:
        topic, before, given = row.text("number"), list[tuple[str, str]](), list[str]()
        for turn in row.parts("turn"):
            words, text, name = turn.text("raw_utterance"), turn.text("passage", ""), f"{topic}_{turn.text('number')}"
            canonical = turn.text("manual_canonical_result_id", "") or turn.text("canonical_result_id", "") or name
            if text:
                passages.setdefault(canonical, passage_of(canonical, text))
            rewrite = turn.text("manual_rewritten_utterance", "")
            samples.append(
                DialogueSample(name, turns_of_pairs(before, words), None, rewrite, (canonical,), returned=(*given,))
            )
            before.append((words, text))
            given.append(canonical)
    return CorpusContent(tuple(samples), tuple(passages.values()))


def _mtrag_tasks(rows: Sequence[Fields]) -> CorpusContent:
    def sample(row: Fields) -> DialogueSample:
        turns = [(turn.text("speaker"), turn.text("text")) for turn in row.parts("input")]
        kinds = row.texts("Answerability") if "Answerability" in row else ()
        kind = kinds[0] if kinds else ""
        return DialogueSample(
            row.text("task_id"), turns_by_speaker(turns, frozenset({"user"})), UNDERSPECIFIED.get(kind),
            relevant=tuple(each.text("document_id") for each in row.parts("contexts")),
            answers=tuple(each.text("text") for each in row.parts("targets")) if "targets" in row else (),
            answerable=ANSWERABILITY.get(kind),
        )  # fmt: skip

    passages = [
        passage_of(each.text("document_id"), each.text("text"), each.text("title", ""))
        for row in rows
        for each in row.parts("contexts")
        if "text" in each
    ]
    return CorpusContent(tuple(map(sample, rows)), unique_passages(passages))


def _asdc(rows: Sequence[Fields]) -> CorpusContent:
    samples = tuple(
        sample
        for row in rows
        for sample in operator_samples(
            row.part("meta").text("id"), [(turn.text("name"), turn.text("text")) for turn in row.parts("utterances")]
        )
    )
    return CorpusContent(samples, notes=(FROM_TURNS,))


def _squad(rows: Sequence[Fields]) -> CorpusContent:
    """Read SQuAD's form (JSQuAD, JaQuAD): paragraphs with questions; the context may begin with its title."""
    samples: list[DialogueSample] = []
    passages: list[Passage] = []
    for number, row in enumerate(rows):
        for at, paragraph in enumerate(row.parts("paragraphs")):
            title, _, text = paragraph.text("context").rpartition(" [SEP] ")
            name = f"{number}-{at}"
            passages.append(passage_of(name, text, title or row.text("title", "")))
            samples += _squad_questions(paragraph, name)
    return CorpusContent(tuple(samples), tuple(passages))


def _squad_questions(paragraph: Fields, name: str) -> Iterator[DialogueSample]:
    for question in paragraph.parts("qas"):
        answers = tuple(dict.fromkeys(each.text("text") for each in question.parts("answers")))
        impossible = question.row.get("is_impossible") is True
        relevant = () if impossible else (name,)
        turns = (("user", question.text("question")),)
        yield DialogueSample(
            question.text("id"), turns, None, relevant=relevant, answers=answers, answerable=not impossible
        )


PUBLISHED_FORMATS = (
    corpus_format("qulac", "topic_id facet_id topic_facet_id topic topic_type question answer", _qulac),
    corpus_format("clariq", "topic_id initial_request", _clariq),
    corpus_format("clamber", "question require_clarification", _clamber),
    corpus_format("abg_coqa", "story target_turn history_turns ambiguity", _abg_coqa),
    corpus_format("pacific", "table paragraphs questions", _pacific),
    corpus_format("canard", "History Question Rewrite QuAC_dialog_id", _canard),
    corpus_format("cast", "number turn", _cast),
    corpus_format("mtrag_tasks", "task_id contexts input targets", _mtrag_tasks),
    corpus_format("asdc", "meta utterances", _asdc),
    corpus_format("squad", "title paragraphs", _squad),
)


BUNDLED = "taiwa:handbook"
"""The questions to the handbook that is bundled with this program."""
QUESTIONS = Path(__file__).parents[1] / "handbook.jsonl"
FORMATS = (*PUBLISHED_FORMATS, *SLICE_FORMATS)


def read_corpora(
    paths: Sequence[Path], passages: Sequence[Path] = (), judgements: Sequence[Path] = ()
) -> tuple[QuestionSet, ...]:
    """Read files of dialogues or questions, each a set; `taiwa:handbook` is the bundled one.

    A set is searched in the given passages; without them in `NAME_passages.jsonl` beside its file, in the passages that the
    file contains, or else in those of all sets together.

    Raises:
        InputError: a file cannot be used; the message names file, row and field.
    """
    given = unique_passages(passage for path in passages for passage in read_passages(path))
    judged = read_judgements(judgements)
    sets = [_bundled_set() if str(path) == BUNDLED else _read_set(path, given, judged) for path in paths]
    pool = unique_passages(passage for each in sets for passage in each.passages)
    return named_sets(
        each if each.passages or not pool else replace(
            each, passages=pool,
            notes=(*each.notes, f"{each.name}: the set has no documents; those of the other sets are searched"),
        )
        for each in sets
    )  # fmt: skip


def read_judgements(paths: Sequence[Path]) -> Mapping[str, tuple[str, ...]]:
    """Read which passages answer which question: rows of `q`, `d` and `s`, or a table as in BEIR and TREC."""
    found: dict[str, list[str]] = {}
    for path in paths:
        _, rows = load_rows(path)
        for row in rows:
            question = next((name for name in ("q", "query-id", "query_id") if name in row), "q")
            passage = next((name for name in ("d", "corpus-id", "corpus_id") if name in row), "d")
            grade = next((name for name in ("s", "score") if name in row), "s")
            if row.number(grade) > 0:
                found.setdefault(row.text(question), []).append(row.text(passage))
    return {name: tuple(dict.fromkeys(each)) for name, each in found.items()}


def _read_set(path: Path, given: tuple[Passage, ...], judged: Mapping[str, tuple[str, ...]]) -> QuestionSet:
    digest, rows = load_rows(path)
    form = next((each for each in FORMATS if each.fits(rows[0])), None)
    if form is None:
        names = ", ".join(sorted(rows[0].row)[:12])
        known = ", ".join(dict.fromkeys(each.name for each in FORMATS))
        raise InputError(f"{rows[0].where}: no known format has the fields {names}; choose one of {known}")
    if other := next((row for row in rows if not form.fits(row)), None):
        other.invalid(next(name for name in sorted(form.marks) if name not in other.row), "is missing")
    found = form.read(rows)
    beside = sibling_file(path)
    passages = given or found.passages or (read_passages(beside) if beside is not None else ())
    qrels = sibling_file(path, "_qrels.jsonl")
    relevant = judged or read_judgements([] if qrels is None else [qrels])
    samples = tuple(
        replace(sample, relevant=relevant[sample.id]) if sample.id in relevant else sample for sample in found.samples
    )
    return QuestionSet(set_name(path), form.name, digest, samples, passages, found.notes)


def _bundled_set() -> QuestionSet:
    digest, rows = load_rows(QUESTIONS)
    found = next(each for each in FORMATS if each.fits(rows[0])).read(rows)
    passages = read_folder(HANDBOOK)
    samples = tuple(
        replace(sample, relevant=tuple(_passages_with(sample.relevant, passages))) for sample in found.samples
    )
    note = "handbook: without the questions to restricted documents"
    return QuestionSet("handbook", "handbook", digest, samples, passages, (note,))


def _passages_with(gold: Iterable[str], passages: Sequence[Passage]) -> Iterator[str]:
    """Yield the ids of the passages of a source that contain some words."""
    for each in gold:
        source, _, words = each.partition("\n")
        wanted = _without_spaces(words)
        for one in passages:
            if one.id.startswith(f"{source}#") and wanted in _without_spaces(one.text):
                yield one.id


def _without_spaces(text: str) -> str:
    return "".join(text.replace("*", "").replace("`", "").split())
