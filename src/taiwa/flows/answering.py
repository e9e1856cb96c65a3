"""An answer from passages by whoever can word one: the model, or, where it did not learn to, the passages themselves."""

from collections.abc import Sequence

from taiwa.flows.cited import cite
from taiwa.flows.extractive import PLAIN, Reader, extractive
from taiwa.flows.sourced import Answer
from taiwa.kernel.effects import Program, tell
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.values import Message, Passage

__all__ = ["answer", "wordless"]

WORDS = "words"
"""The ability that a model names as missing which judges dialogues and writes no prose."""


def wordless(error: UnsupportedError) -> bool:
    """Whether a model says that it writes no words of its own, rather than that its server lacks something."""
    return error.ability == WORDS


def answer(
    query: str,
    passages: Sequence[Passage],
    *,
    language: str = "",
    manner: str = "",
    history: Sequence[Message] = (),
    reader: Reader = PLAIN,
) -> Program[Answer]:
    """Answer by `cite`; where the model writes no words, by quoting, which `history` and `reader` guide.

    Raises (when run):
        ShapeError: the answer could not be read. RefusalError: the model refused to answer.
    """
    try:
        return (yield from cite(query, passages, language=language, manner=manner))
    except UnsupportedError as error:
        if not wordless(error):
            raise
        yield from tell("the model words no answers, so the passages are quoted", code="answer")
    return extractive(query, passages, history, reader)
