"""From a request to what the built-in model is told: it never sees the long instructions that our flows write for large ones."""

from taiwa.kernel.values import Request
from taiwa.models.builtin.reading.asking import asking
from taiwa.models.builtin.reading.desk import desk
from taiwa.models.builtin.reading.solving import number, solve
from taiwa.models.builtin.reading.told import ANSWER, Told, unsupported

__all__ = ["Told", "read"]

REFUSED = frozenset({"assess", "answer_with_citations", "advise"})
"""Tasks of our flows that the model cannot do; the flows have another way, and are told so at once."""


def read(request: Request) -> Told | None:
    """Recognise a request of one of our flows by its task; None where it is another.

    Raises:
        UnsupportedError: it is one, and asks for what the model did not learn.
    """
    if not request.messages or request.messages[0].role != "system":
        return None
    if request.task == "solve":
        return solve(request)
    if request.task == "extract_number":
        return number(request)
    if request.task == "chat":
        order = desk(request)
        return None if order is None else Told("desk", order[0], grammar=order[1])
    if request.task in REFUSED:
        raise unsupported()
    if found := asking(request):
        name, _, score = found[0].partition(".")
        return Told(name, found[1], score or ANSWER)
    return None
