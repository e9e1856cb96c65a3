"""Solve a question step by step, with tools; the run itself is `taiwa.talk.solving.solve`."""

from taiwa.operations.results import RequestPreview
from taiwa.operations.say import request_tokens
from taiwa.settings import Settings
from taiwa.talk.opening import open_voice
from taiwa.talk.solving import Solving

__all__ = ["preview"]


def preview(settings: Settings, solving: Solving, question: str) -> RequestPreview:
    """Return the request that would be sent first; nothing is sent.

    Raises:
        TaiwaError: the question is empty, or the model does not support the tool mode.
    """
    request = solving.first_request(question, open_voice(None, settings).model.abilities)
    return RequestPreview(request, request_tokens(request))
