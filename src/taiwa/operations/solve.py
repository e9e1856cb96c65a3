"""Solve a question step by step, with tools; the run itself is `taiwa.sessions.stored_solve.solve_and_store`."""

from taiwa.operations.results import RequestPreview
from taiwa.operations.say import request_tokens
from taiwa.sessions.session import open_priced_model
from taiwa.sessions.stored_solve import ReasonRun
from taiwa.settings import Settings


def preview(settings: Settings, reason_run: ReasonRun, question: str) -> RequestPreview:
    """Return the request that would be sent first; nothing is sent.

    Raises:
        TaiwaError: the question is empty, or the model does not support the tool mode.
    """
    request = reason_run.first_request(question, open_priced_model(None, settings).model.capabilities)
    return RequestPreview(request, request_tokens(request))
