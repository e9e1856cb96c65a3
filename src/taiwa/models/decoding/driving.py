"""Driving a writing: one text on its track, or several side by side."""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from taiwa.models.decoding.source import Bundle, Track
from taiwa.models.decoding.writing import Ask, Ending, Job, Writing, writing

if TYPE_CHECKING:
    from taiwa.models.decoding.source import Logits

__all__ = ["decode", "decode_together"]


def decode(track: Track, job: Job) -> Generator[str | Ending]:
    """Write one text on its track: give it out piece by piece, and last how it was written.

    Closing the generator ends the writing before the next token. What was written last stays unread: `track.tokens` is what
    the model knows.

    Raises:
        DeadEndError: the constraint leaves no token.
    """
    course, answer = writing(job), None
    while True:
        wish = _next(course, answer)
        answer = None
        if isinstance(wish, Ask):
            answer = track.read(wish.tokens, wish.rows)
            continue
        yield wish
        if isinstance(wish, Ending):
            return


def decode_together(bundle: Bundle, jobs: Sequence[Job]) -> Generator[tuple[int, str | Ending]]:
    """Write several texts side by side; what is given out comes with the number of its text.

    Raises:
        DeadEndError: a constraint leaves no token.
    """
    courses = [writing(job) for job in jobs]
    answers: dict[int, Logits | None] = dict.fromkeys(range(len(jobs)))
    live = list(answers)
    while live:
        asked: dict[int, Ask] = {}
        for number in live:
            wish = _next(courses[number], answers[number])
            while isinstance(wish, str):
                yield number, wish
                wish = _next(courses[number], None)
            if isinstance(wish, Ask):
                asked[number] = wish
            else:
                yield number, wish
        if asked and len(asked) < len(live):
            bundle.keep([place for place, number in enumerate(live) if number in asked])
        live = list(asked)
        if live:
            wishes = asked.values()
            found = bundle.read([wish.tokens for wish in wishes], [wish.rows for wish in wishes])
            answers = dict(zip(live, found, strict=True))


def _next(course: Writing, answer: "Logits | None") -> Ask | str | Ending:
    try:
        return course.send(answer)
    except StopIteration as end:
        ending: Ending = end.value
        return ending
