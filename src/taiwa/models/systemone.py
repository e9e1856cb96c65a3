"""The decision wire, `POST …/systemone`: typed questions about a state, answered by probabilities and not by words.

`{"model", "state", "questions": {name: {"type": "noul" | "choice" | "score", "instructions", "criteria"}}}` is answered by
`{"answers": {name: {…}}, "usage"}`. Decision models speak it, and so do several servers for any chat model.
"""

from json import dumps

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.kernel.values import Choice, Message, Question, Questions, Request, Usage, YesNo
from taiwa.models.body import written
from taiwa.models.loose import count_at, item_at
from taiwa.models.wire import Call

__all__ = ["answers_in", "bill_in", "encode_questions"]

PATH = "systemone"
MOST_QUESTIONS = 128
MOST_OPTIONS = 255
FEWEST_LEVELS, MOST_LEVELS = 2, 10


def encode_questions(model: str, request: Request, asked: Questions) -> Call:
    """Write a request; what was said is the state.

    Raises:
        InputError: the wire has no room for the questions, or the text is not valid Unicode.
    """
    if not 1 <= len(asked.asked) <= MOST_QUESTIONS:
        raise InputError(f"a request asks 1 to {MOST_QUESTIONS} questions, not {len(asked.asked)}")
    questions: dict[str, Json] = {name: _question(name, each) for name, each in asked.asked}
    body: dict[str, Json] = {"model": model, "state": _state(request.messages), "questions": questions}
    return Call(PATH, written(body), (("content-type", "application/json"),))


def _question(name: str, question: Question) -> dict[str, Json]:
    if isinstance(question, YesNo):
        meanings: dict[str, Json] = {"true": question.yes, "false": question.no}
        criteria: dict[str, Json] = {side: words for side, words in meanings.items() if words}
        asked: dict[str, Json] = {"type": "noul", "instructions": question.instructions}
        if criteria:
            asked["criteria"] = criteria
        return asked
    if isinstance(question, Choice):
        if not 1 <= len(question.options) <= MOST_OPTIONS:
            raise InputError(f"the question {name!r} offers {len(question.options)} options, not 1 to {MOST_OPTIONS}")
        options: dict[str, Json] = {option: words or None for option, words in question.options}
        return {"type": "choice", "instructions": question.instructions, "criteria": options}
    if not FEWEST_LEVELS <= len(question.levels) <= MOST_LEVELS:
        raise InputError(f"the scale {name!r} has {len(question.levels)} levels, not {FEWEST_LEVELS} to {MOST_LEVELS}")
    return {"type": "score", "instructions": question.instructions, "criteria": list(question.levels)}


def _state(messages: tuple[Message, ...]) -> Json:
    if len(messages) == 1:
        return messages[0].text
    return [{"role": message.role, "content": message.text} for message in messages]


def answers_in(data: Json) -> str | None:
    """Give the answers of a reply as JSON text; None where it is no reply of this wire."""
    answers = item_at(data, "answers")
    return dumps(answers, ensure_ascii=False, separators=(",", ":")) if isinstance(answers, dict) else None


def bill_in(data: Json) -> Usage | None:
    """Read the bill of a reply; None where it does not say."""
    read = count_at(data, "usage", "input_tokens")
    if read is None:
        return None
    return Usage(
        read, count_at(data, "usage", "output_tokens") or 0, count_at(data, "usage", "cached_input_tokens") or 0
    )
