"""Answer a request of a client that resends its history: the turn in its place, and the session that performs it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import NO_OPTIONS, App, RequestOptions
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Sampling
from taiwa.kernel.records import Json
from taiwa.sessions.async_session import AsyncSession
from taiwa.sessions.durable_turn import PricedModel, TurnInput, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.resent_history import place_turn


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    """A request of a client: its app with parameters, the messages without the leading system text, and its options.

    - `request`: what is added to the request; its sampling has the values that the client gave, the others are None.
    """

    app: str
    messages: tuple[Message, ...]
    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    request: RequestOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class Completion:
    """A turn that can be performed: `session.stream_turn(turn_input)`."""

    session: AsyncSession
    turn_input: TurnInput


def begin_completion(
    repository: Repository, priced_model: PricedModel, options: CompletionOptions, turns: TurnOptions
) -> Completion:
    """Find the place of a turn in the store, and open the session that performs it; nothing is sent yet.

    Raises:
        ConfigError: the app is not found or has an error.
        InputError: a parameter is missing or unknown, or there is nothing to answer.
    """
    app = app_with_options(load_app(options.app), options.params, options.request)
    repository.trust(app.hash)  # the operator of the server serves it
    placed = place_turn(repository, app, options.messages)
    session = AsyncSession(repository, placed.session, placed.turn_input.base, priced_model, options=turns)
    return Completion(session, placed.turn_input)


def app_with_options(app: App, params: Mapping[str, Json], request: RequestOptions) -> App:
    """Return an app with its parameters and the options of a request.

    Raises:
        InputError: a parameter is missing, unknown or of another type.
    """
    app = app.with_params(params)
    given = request.sampling
    if given is not None:
        own = app.sampling
        merged = Sampling(
            own.temperature if given.temperature is None else given.temperature,
            own.top_p if given.top_p is None else given.top_p,
            own.max_tokens if given.max_tokens is None else given.max_tokens,
            own.seed if given.seed is None else given.seed,
        )
        given = None if merged == own else merged
    return app.with_request(
        RequestOptions(
            request.system,
            request.tools,
            request.tool_choice,
            request.constraint,
            request.stop,
            request.top_logprobs,
            given,
        )
    )


def split_system(messages: Sequence[Message]) -> tuple[str, tuple[Message, ...]]:
    """Return the text of the system messages that a history begins with, and the messages behind them."""
    count = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    if count == len(messages):
        raise InputError("the messages must contain one of the user")
    return "\n\n".join(message.text for message in messages[:count]), tuple(messages[count:])
