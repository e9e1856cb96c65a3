"""Data sets in the form in which their makers publish them, each told by its fields."""

from collections.abc import Iterator, Sequence

from taiwa.kernel.values import Passage
from taiwa.lab.asking.formats import ANSWERED, NEEDED, UNCLEAR, format_of, of_operator
from taiwa.lab.asking.gathered import Gathered, exchanged, once, piece, pieces, turned
from taiwa.lab.asking.rows import Fields
from taiwa.lab.asking.sample import Sample

__all__ = ["PUBLISHED"]

UNANSWERED = frozenset({"CANNOTANSWER", ""})


def _qulac(rows: Sequence[Fields]) -> Gathered:
    """qulac.json has a row for each topic, facet, question and answer."""
    topics: dict[str, Sample] = {}
    for row in rows:
        name = row.text("topic_id")
        if name not in topics:
            ask = row.text("topic_type") == "ambiguous"
            topics[name] = Sample(name, (("user", row.text("topic")),), ask, replies=(row.text("answer", ""),))
    return Gathered(tuple(topics.values()), notes=("qulac: to be asked back are ambiguous topics, not faceted ones",))


def _clariq(rows: Sequence[Fields]) -> Gathered:
    topics: dict[str, Sample] = {}
    for row in rows:
        name, ask = row.text("topic_id"), row.number("clarification_need") >= NEEDED
        if name not in topics:
            said = (("user", row.text("initial_request")),)
            topics[name] = Sample(name, said, ask, replies=tuple(filter(None, (row.text("answer", ""),))))
    return Gathered(tuple(topics.values()), notes=(f"clariq: to be asked back is a need of {NEEDED} or 4",))


def _clamber(rows: Sequence[Fields]) -> Gathered:
    samples: list[Sample] = []
    for number, row in enumerate(rows, 1):
        context = row.text("context", "")
        said = (("user", context), ("user", row.text("question"))) if context else (("user", row.text("question")),)
        samples.append(Sample(str(number), said, row.flag("require_clarification")))
    return Gathered(tuple(samples))


def _abg_coqa(rows: Sequence[Fields]) -> Gathered:
    samples: list[Sample] = []
    stories: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        target, text = row.part("target_turn"), row.text("story")
        story = stories.setdefault(text, f"story-{len(stories)}")
        before = [(turn.text("question"), turn.text("answer", "")) for turn in row.parts("history_turns")]
        ask = row.text("ambiguity") == "ambiguous"
        told = row.part("clarification_turn").parts("answers") if ask and "clarification_turn" in row else ()
        name = f"{row.text('id')}|{target.text('turn_id', str(number))}|{number}"
        samples.append(
            Sample(
                name, turned(before, target.text("question")), ask,
                relevant=tuple(each.id for each in pieces(story, text)),
                answers=tuple(filter(None, (target.text("answer", ""),))), answerable=None if ask else True,
                replies=tuple(each.text("clr_ans") for each in told[:1]),
            )
        )  # fmt: skip
    return Gathered(tuple(samples), tuple(each for text, name in stories.items() for each in pieces(name, text)))


def _pacific(rows: Sequence[Fields]) -> Gathered:
    samples: list[Sample] = []
    passages: list[Passage] = []
    for row in rows:
        uid = row.part("table").text("uid")
        table = row.part("table").array("table")
        lines = [" | ".join(map(str, line)) for line in table if isinstance(line, list)]
        passages += [piece(f"{uid}/table", "\n".join(lines))]
        passages += [piece(f"{uid}/{each.text('order')}", each.text("text")) for each in row.parts("paragraphs")]
        before: list[tuple[str, str]] = []
        for turn in sorted(row.parts("questions"), key=lambda each: each.number("order")):
            words, answer = turn.text("question"), turn.row.get("answer")
            samples.append(Sample(f"{uid}/{turn.text('order')}", turned(before, words), turn.flag("req_clari")))
            before.append((words, ", ".join(map(str, answer)) if isinstance(answer, list) else str(answer or "")))
    return Gathered(tuple(samples), once(passages))


def _canard(rows: Sequence[Fields]) -> Gathered:
    """Each row holds what was said before it, title and section first; so an answer stands in the row after it."""
    answers: dict[tuple[str, int], str] = {}
    titles: dict[str, tuple[str, ...]] = {}
    for row in rows:
        name, history = row.text("QuAC_dialog_id"), row.texts("History")
        titles[name] = history[:2]
        for number, answer in enumerate(history[3::2], 1):
            if answer not in UNANSWERED:
                answers[name, number] = answer
    samples: list[Sample] = []
    for row in rows:
        name, number, history = row.text("QuAC_dialog_id"), int(row.number("Question_no")), row.texts("History")[2:]
        if number > 1 and (name, number) in answers:
            said = turned([*zip(history[::2], history[1::2], strict=False)], row.text("Question"))
            told = tuple(f"{name}/{earlier}" for earlier in range(1, number) if (name, earlier) in answers)
            place = f"{name}/{number}"
            samples.append(Sample(place, said, None, row.text("Rewrite"), (place,), told=told))
    passages = [
        piece(f"{name}/{number}", text, titles[name][0], titles[name][1:]) for (name, number), text in answers.items()
    ]
    return Gathered(tuple(samples), tuple(passages))


def _cast(rows: Sequence[Fields]) -> Gathered:
    samples, passages = list[Sample](), dict[str, Passage]()
    for row in rows:
        topic, before, told = row.text("number"), list[tuple[str, str]](), list[str]()
        for turn in row.parts("turn"):
            words, text, name = turn.text("raw_utterance"), turn.text("passage", ""), f"{topic}_{turn.text('number')}"
            canonical = turn.text("manual_canonical_result_id", "") or turn.text("canonical_result_id", "") or name
            if text:
                passages.setdefault(canonical, piece(canonical, text))
            rewrite = turn.text("manual_rewritten_utterance", "")
            samples.append(Sample(name, turned(before, words), None, rewrite, (canonical,), told=(*told,)))
            before.append((words, text))
            told.append(canonical)
    return Gathered(tuple(samples), tuple(passages.values()))


def _mtrag_tasks(rows: Sequence[Fields]) -> Gathered:
    def sample(row: Fields) -> Sample:
        turns = [(turn.text("speaker"), turn.text("text")) for turn in row.parts("input")]
        kinds = row.texts("Answerability") if "Answerability" in row else ()
        kind = kinds[0] if kinds else ""
        return Sample(
            row.text("task_id"), exchanged(turns, frozenset({"user"})), UNCLEAR.get(kind),
            relevant=tuple(each.text("document_id") for each in row.parts("contexts")),
            answers=tuple(each.text("text") for each in row.parts("targets")) if "targets" in row else (),
            answerable=ANSWERED.get(kind),
        )  # fmt: skip

    passages = [
        piece(each.text("document_id"), each.text("text"), each.text("title", ""))
        for row in rows
        for each in row.parts("contexts")
        if "text" in each
    ]
    return Gathered(tuple(map(sample, rows)), once(passages))


def _asdc(rows: Sequence[Fields]) -> Gathered:
    samples = tuple(
        sample
        for row in rows
        for sample in of_operator(
            row.part("meta").text("id"), [(turn.text("name"), turn.text("text")) for turn in row.parts("utterances")]
        )
    )
    return Gathered(samples, notes=("asdc: that it is to be asked back is read off the operator's next turn",))


def _squad(rows: Sequence[Fields]) -> Gathered:
    """SQuAD's form, which JSQuAD and JaQuAD have: paragraphs with questions; the context may begin with its title."""
    samples: list[Sample] = []
    passages: list[Passage] = []
    for number, row in enumerate(rows):
        for at, paragraph in enumerate(row.parts("paragraphs")):
            title, _, text = paragraph.text("context").rpartition(" [SEP] ")
            name = f"{number}-{at}"
            passages.append(piece(name, text, title or row.text("title", "")))
            samples += _asked(paragraph, name)
    return Gathered(tuple(samples), tuple(passages))


def _asked(paragraph: Fields, name: str) -> Iterator[Sample]:
    for question in paragraph.parts("qas"):
        answers = tuple(dict.fromkeys(each.text("text") for each in question.parts("answers")))
        impossible = question.row.get("is_impossible") is True
        relevant = () if impossible else (name,)
        said = (("user", question.text("question")),)
        yield Sample(question.text("id"), said, None, relevant=relevant, answers=answers, answerable=not impossible)


PUBLISHED = (
    format_of("qulac", "topic_id facet_id topic_facet_id topic topic_type question answer", _qulac),
    format_of("clariq", "topic_id initial_request", _clariq),
    format_of("clamber", "question require_clarification", _clamber),
    format_of("abg_coqa", "story target_turn history_turns ambiguity", _abg_coqa),
    format_of("pacific", "table paragraphs questions", _pacific),
    format_of("canard", "History Question Rewrite QuAC_dialog_id", _canard),
    format_of("cast", "number turn", _cast),
    format_of("mtrag_tasks", "task_id contexts input targets", _mtrag_tasks),
    format_of("asdc", "meta utterances", _asdc),
    format_of("squad", "title paragraphs", _squad),
)
