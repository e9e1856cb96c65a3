"""Extract a value of a type from one text."""

from taiwa.operations.results import ExtractResult, RequestPreview
from taiwa.operations.say import request_tokens
from taiwa.sessions.durable_turn import TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import open_priced_model
from taiwa.sessions.stored_extract import ExtractRun, extract_one, first_request
from taiwa.settings import Settings


def extract(
    repository: Repository, settings: Settings, turns: TurnOptions, extract_run: ExtractRun, text: str
) -> ExtractResult:
    """Extract a value; its calls are stored as they are answered.

    Raises:
        ExtractError: no attempt was valid; it holds the attempts and their bill.
    """
    done = extract_one(repository, open_priced_model(None, settings), turns, extract_run, text)
    return ExtractResult(extract_run.output_type.dump(done.value.value), done.value.attempts, done.spent)


def preview(settings: Settings, extract_run: ExtractRun, text: str) -> RequestPreview:
    """Return the request that an extraction would send first; nothing is sent.

    Raises:
        InputError: the text is empty.
    """
    request = first_request(extract_run, text, open_priced_model(None, settings).model)
    return RequestPreview(request, request_tokens(request))
