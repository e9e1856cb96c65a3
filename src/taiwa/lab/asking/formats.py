"""Rows of dialogues, one format for each: when it was asked back, and what else is known of a turn.

These are the simple rows of slices; `published` has the files as their makers publish them. A format is told by its fields.
"""

from collections.abc import Callable, Iterator, Sequence

from taiwa.kernel.records import Json, value
from taiwa.kernel.values import Passage
from taiwa.lab.asking.gathered import Gathered, asks, exchanged, marked, piece, pieces, turned
from taiwa.lab.asking.rows import Fields
from taiwa.lab.asking.sample import Sample

__all__ = ["ANSWERED", "NEEDED", "SIMPLE", "UNCLEAR", "Format", "format_of", "of_operator"]

Read = Callable[[Sequence[Fields]], Gathered]
USERS = frozenset({"user", "customer"})
NEEDED = 3
"""ClariQ's need of clarification, 1 to 4, from which on it is to be asked back."""
ANSWERED = {"ANSWERABLE": True, "PARTIAL": True, "UNANSWERABLE": False}
UNCLEAR = {"UNDERSPECIFIED": True, "ANSWERABLE": False, "PARTIAL": False}
FROM_TURNS = (
    "asdc: that it is to be asked back is read off the operator's next turn, which ends as a question or does not"
)
OWN_ANSWERS = (
    "{}: what is looked up are the answers of the dialogues themselves, without those that a dialogue has given already"
)


@value
class Format:
    """A format: its name, the fields that tell it, and how its rows are read."""

    name: str
    marks: frozenset[str]
    read: Read

    def fits(self, row: Fields) -> bool:
        """Whether a row has the fields of this format."""
        return self.marks <= row.row.keys()


def _qulac(rows: Sequence[Fields]) -> Gathered:
    def sample(row: Fields) -> Sample:
        pairs: Sequence[Json] = row.array("qa") if "qa" in row else ()
        replies = [str(each[2]) for each in pairs if isinstance(each, list) and len(each) > 2]
        ask = row.text("topic_type") == "ambiguous"
        return Sample(row.text("topic_id"), (("user", row.text("topic")),), ask, replies=tuple(replies[:1]))

    return Gathered(tuple(map(sample, rows)), notes=("qulac: to be asked back are ambiguous topics, not faceted ones",))


def _abg_coqa(rows: Sequence[Fields]) -> Gathered:
    samples: list[Sample] = []
    stories: dict[str, str] = {}
    for row in rows:
        story = stories.setdefault(row.text("story"), f"story-{len(stories)}")
        clarification = row.part("clarification") if "clarification" in row else None
        replies = [] if clarification is None else [each.text("clr_ans") for each in clarification.parts("answers")]
        samples.append(
            Sample(
                row.text("id"), turned(row.pairs("history"), row.text("question")), row.flag("ambiguous"),
                relevant=tuple(each.id for each in pieces(story, row.text("story"))), answers=(row.text("answer"),),
                answerable=None if row.flag("ambiguous") else True, replies=tuple(replies[:1]),
            )
        )  # fmt: skip
    return Gathered(tuple(samples), tuple(each for text, name in stories.items() for each in pieces(name, text)))


def _pacific(rows: Sequence[Fields]) -> Gathered:
    documents: dict[str, list[Fields]] = {}
    for row in rows:
        documents.setdefault(row.text("doc"), []).append(row)
    samples: list[Sample] = []
    for doc, found in documents.items():
        before: list[tuple[str, str]] = []
        for row in sorted(found, key=lambda each: each.number("order")):
            question, answer = row.text("question"), _worded(row)
            samples.append(Sample(f"{doc}/{row.text('order')}", turned(before, question), row.flag("req_clari")))
            before.append((question, answer))
    return Gathered(tuple(samples))


def _worded(row: Fields) -> str:
    found = row.row.get("answer")
    return ", ".join(map(str, found)) if isinstance(found, list) else "" if found is None else str(found)


def _canard(rows: Sequence[Fields]) -> Gathered:
    return Gathered(
        tuple(sample for row in rows for sample in _of_canard(row)),
        tuple(
            piece(f"{row.text('id')}/{number}", answer, row.text("title"), (row.text("section"),))
            for row in rows
            for number, answer in enumerate(row.texts("history")[1::2], 1)
        ),
        (OWN_ANSWERS.format("canard"),),
    )


def _of_canard(row: Fields) -> Iterator[Sample]:
    """Every turn that has turns before it and an answer, which is what is to be found."""
    history, name = row.texts("history"), row.text("id")
    pairs = [*zip(history[::2], history[1::2], strict=False)]
    for number, turn in enumerate(row.parts("turns")[: len(pairs)]):
        if number:
            told = tuple(f"{name}/{earlier}" for earlier in range(1, number + 1))
            said = turned(pairs[:number], turn.text("q"))
            yield Sample(f"{name}/{number + 1}", said, None, turn.text("rewrite"), (f"{name}/{number + 1}",), told=told)


def _cast(rows: Sequence[Fields]) -> Gathered:
    samples, passages = list[Sample](), dict[str, Passage]()
    for row in rows:
        topic, before, told = f"{row.text('year')}-{row.text('topic')}", list[tuple[str, str]](), list[str]()
        for turn in row.parts("turns"):
            words, text = turn.text("utterance"), turn.text("passage", "")
            name = turn.text("canonical", "") or f"{topic}/{turn.text('n')}"
            said = turned(before, words)
            if text:
                passages.setdefault(name, piece(name, text))
            found = Sample(f"{topic}/{turn.text('n')}", said, None, turn.text("rewrite"), (name,), told=(*told,))
            samples.append(found)
            before.append((words, text))
            told.append(name)
    return Gathered(tuple(samples), tuple(passages.values()), (OWN_ANSWERS.format("cast"),))


def _ikat(rows: Sequence[Fields]) -> Gathered:
    samples, passages = list[Sample](), list[Passage]()
    for row in rows:
        topic, before, told = row.text("number"), list[tuple[str, str]](), list[str]()
        for turn in row.parts("turns"):
            name, words, answer = f"{topic}/{turn.text('turn_id')}", turn.text("utterance"), turn.text("response", "")
            said = turned(before, words)
            if answer:
                passages.append(piece(name, answer))
                samples.append(Sample(name, said, None, turn.text("resolved_utterance"), (name,), told=(*told,)))
                told.append(name)
            before.append((words, answer))
    return Gathered(tuple(samples), tuple(passages), (OWN_ANSWERS.format("ikat"),))


def _mtrag_tasks(rows: Sequence[Fields]) -> Gathered:
    def sample(row: Fields) -> Sample:
        kind = row.text("answerability")
        answers = (row.text("target"),) if "target" in row else ()
        return Sample(
            row.text("task_id"), exchanged(row.pairs("input"), USERS), UNCLEAR.get(kind),
            relevant=row.texts("contexts") if "contexts" in row else (), answers=answers, answerable=ANSWERED.get(kind),
        )  # fmt: skip

    return Gathered(tuple(map(sample, rows)))


def _mtrag_rewrites(rows: Sequence[Fields]) -> Gathered:
    def sample(row: Fields) -> Sample:
        said = exchanged(marked(row.text("user_turns")), USERS)
        (_, rewrite), *_rest = marked(row.text("rewrite"))
        return Sample(row.text("id"), said, None, rewrite, row.texts("rel"))

    return Gathered(tuple(map(sample, rows)))


def _asdc(rows: Sequence[Fields]) -> Gathered:
    return Gathered(
        tuple(sample for row in rows for sample in of_operator(row.text("id"), row.pairs("utterances"))),
        notes=(FROM_TURNS,),
    )


def of_operator(name: str, turns: Sequence[tuple[str, str]]) -> Iterator[Sample]:
    """Every turn of a customer that an operator replies to."""
    spoken = [("user" if who.startswith(("customer", "user")) else "assistant", words) for who, words in turns]
    for at, (who, _) in enumerate(spoken[:-1]):
        following = spoken[at + 1]
        if who == "user" and following[0] == "assistant":
            yield Sample(f"{name}/{at}", tuple(spoken[: at + 1]), asks(following[1]))


def _questions(rows: Sequence[Fields]) -> Gathered:
    def sample(row: Fields) -> Sample:
        answers = row.texts("answers") if "answers" in row else ()
        said = (("user", row.text("q")),)
        return Sample(
            row.text("id"), said, None, relevant=row.texts("rel"), answers=answers, answerable=bool(row.texts("rel"))
        )

    return Gathered(tuple(map(sample, rows)))


def _handbook(rows: Sequence[Fields]) -> Gathered:
    """Questions whose passages are named by a source and words that stand there; what not everybody may see is left out."""
    samples: list[Sample] = []
    for row in rows:
        if "who" in row:
            continue
        turns, gold = row.texts("turns"), row.parts("gold")
        said = tuple(
            ("user" if at % 2 == (len(turns) - 1) % 2 else "assistant", words) for at, words in enumerate(turns)
        )
        places = tuple(f"{each.text('source')}\n{each.text('words')}" for each in gold)
        ask = row.flag("ask")
        samples.append(
            Sample(
                row.text("id"), said, ask, relevant=places, answers=tuple(each.text("words") for each in gold),
                answerable=None if ask else bool(gold),
            )
        )  # fmt: skip
    return Gathered(tuple(samples))


def _beir(rows: Sequence[Fields]) -> Gathered:
    """Queries of BEIR's form, with dialogues in them as MTRAG has them; their passages are named by judgements."""
    return Gathered(tuple(Sample(row.text("_id"), exchanged(marked(row.text("text")), USERS)) for row in rows))


def format_of(name: str, marks: str, read: Read) -> Format:
    """A format that is told by the fields of these names."""
    return Format(name, frozenset(marks.split()), read)


SIMPLE = (
    format_of("qulac", "topic_id topic topic_type facets", _qulac),
    format_of("abg_coqa", "story history question ambiguous", _abg_coqa),
    format_of("pacific", "doc order question req_clari", _pacific),
    format_of("canard", "title section turns history", _canard),
    format_of("cast", "year topic turns", _cast),
    format_of("ikat", "number ptkb turns", _ikat),
    format_of("mtrag_tasks", "task_id answerability input", _mtrag_tasks),
    format_of("mtrag_rewrites", "user_turns last rewrite rel", _mtrag_rewrites),
    format_of("asdc", "id conditions utterances", _asdc),
    format_of("questions", "id q rel", _questions),
    format_of("handbook", "turns ask gold", _handbook),
    format_of("beir", "_id text", _beir),
)
