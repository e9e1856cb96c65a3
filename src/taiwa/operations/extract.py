"""Extract a value of a type from one text."""

from taiwa.flows.extract import plain_json
from taiwa.operations.results import ExtractResult, RequestPreview
from taiwa.operations.say import request_tokens
from taiwa.settings import Settings
from taiwa.talk.desk import Desk
from taiwa.talk.opening import open_voice
from taiwa.talk.turn import TurnOptions
from taiwa.talk.typed import Typing, extract_one, first_request

__all__ = ["extract", "preview"]


def extract(desk: Desk, settings: Settings, turns: TurnOptions, typing: Typing, text: str) -> ExtractResult:
    """Extract a value; its calls are stored as they are answered.

    Raises:
        ExtractError: no attempt was valid; it holds the attempts and their bill.
    """
    done = extract_one(desk, open_voice(None, settings), turns, typing, text)
    return ExtractResult(plain_json(typing.shape, done.value.value), done.value.attempts, done.spent)


def preview(settings: Settings, typing: Typing, text: str) -> RequestPreview:
    """Return the request that an extraction would send first; nothing is sent.

    Raises:
        InputError: the text is empty.
    """
    request = first_request(typing, text, open_voice(None, settings).model)
    return RequestPreview(request, request_tokens(request))
