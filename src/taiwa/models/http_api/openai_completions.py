"""The Completions protocol (`/v1/completions`), as a codec (no I/O): one text goes out, and its continuation comes back.

For models without a chat format, and for prompts that must be sent as they are written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import Message, Request, Text, TokenLogprob
from taiwa.kernel.records import Json, item_at, items_at, text_at, to_json
from taiwa.kernel.text import join_surrogates
from taiwa.models.attachments import fit_attachments
from taiwa.models.http_api.errors import protocol_error
from taiwa.models.http_api.openai_chat import MOST_LOGPROBS, ChatReader, clean_logprob, read_logprobs
from taiwa.models.http_api.openai_dialects import JSON_HEADERS, OpenAICodec
from taiwa.models.http_api.provider_interface import Decoder, WireRequest
from taiwa.models.http_api.stream_decoder import ResponseBuilder, StreamDecoder

DEFAULT_MAX_TOKENS = 1024
"""Servers end an answer after 16 tokens if a request does not say otherwise."""
LABELS: Mapping[str, str] = {"system": "", "user": "User: ", "assistant": "Assistant: ", "tool": "Result: "}
TURN_STOP = "\nUser:"
"""Ends an answer where the model goes on to write the next turn of the user."""


@dataclass(frozen=True, slots=True)
class TextCompletions(OpenAICodec):
    """The codec for one model on one kind of server; see `prompt` for the text that is sent."""

    def encode(self, request: Request) -> WireRequest:
        """Encode a request; sampling and seed are omitted if the model does not accept them.

        Raises:
            UnsupportedError: the server or the model cannot express it, or it has an image or a PDF.
            InputError: the text is not valid Unicode.
        """
        request = fit_attachments(request, f"{self.model}?wire=completions", fixed=True)
        dialect, sampling = self.dialect, request.sampling
        if request.tools:
            raise UnsupportedError("the completions protocol has no function calls", capability="tools")
        if sampling.effort not in ("", "none"):
            raise UnsupportedError("the completions protocol has no effort of reasoning", capability="effort")
        stops = [*request.stop]
        if _is_dialogue(request.messages) and len(stops) < dialect.stops:
            stops.append(TURN_STOP)
        if len(stops) > dialect.stops:
            raise UnsupportedError(
                f"{dialect.label} accepts at most {dialect.stops} stop strings, got {len(stops)}", capability="stop"
            )
        body: dict[str, Json] = {"model": self.model, "prompt": prompt(request), "stream": True}
        if dialect.usage:
            body["stream_options"] = {"include_usage": True}
        body["max_tokens"] = sampling.max_tokens or DEFAULT_MAX_TOKENS
        body |= self.sampling(sampling)
        if sampling.seed is not None:
            body[dialect.seed] = sampling.seed
        if stops:
            body["stop"] = list[Json](stops)
        if request.top_logprobs:
            self.capabilities.require("logprobs", self.model)
            body["logprobs"] = min(request.top_logprobs, MOST_LOGPROBS)
        enforcement = None
        if request.constraint is not None:
            from taiwa.models.http_api.constraint_encoding import KINDS, ConstraintEncoder

            if type(request.constraint) not in KINDS:
                raise UnsupportedError("the completions protocol has no typed questions", capability="decisions")
            encoder = ConstraintEncoder(
                dialect.label, self.model, dialect.constraints, self.capabilities, enforce=self.enforce
            )
            encoded = encoder.encode(request.constraint, request.prefix)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # one of KINDS
            body |= encoded.fields
            enforcement = encoded.enforcement
        return WireRequest("completions", to_json(body), JSON_HEADERS, enforcement)

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:  # noqa: ARG002  (no server repeats the prompt unasked)
        """Create a decoder."""
        response = ResponseBuilder()
        return StreamDecoder(CompletionReader(response, self.server), response, self.server, content_type)


def prompt(request: Request) -> str:
    """Return the text that a request sends: without turns of the model, its texts as they are, between them a blank line.

    In a dialogue each turn begins with the name of its role. The prefix of the answer ends the prompt.

    >>> from taiwa.kernel.messages import assistant, system, user
    >>> prompt(Request((user("Q: 2 + 2 = ?"),), prefix="A: 4"))
    'Q: 2 + 2 = ?A: 4'
    >>> prompt(Request((system("Be brief."), user("Hi"), assistant("Hello."), user("Bye"))))
    'Be brief.\\n\\nUser: Hi\\n\\nAssistant: Hello.\\n\\nUser: Bye\\n\\nAssistant:'
    """
    if not request.messages:
        raise InputError("the request has no message; add one of the user")
    if not _is_dialogue(request.messages):
        return "\n\n".join(map(_text, request.messages)) + request.prefix
    turns = [LABELS[message.role] + _text(message) for message in request.messages]
    answer = f" {request.prefix}" if request.prefix else ""
    return "\n\n".join((*turns, f"Assistant:{answer}"))


def _is_dialogue(messages: tuple[Message, ...]) -> bool:
    return any(message.role in ("assistant", "tool") for message in messages)


def _text(message: Message) -> str:
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text]
    return "\n\n".join(texts) or "\n".join(getattr(part, "text", "") for part in message.parts)


class CompletionReader(ChatReader):
    """Reads events of the Completions protocol into a `ResponseBuilder`."""

    def read_event(self, data: Json) -> None:
        """Read one event of a stream."""
        self.read_head(data)
        for choice in items_at(data, "choices"):
            if item_at(choice, "index") in (0, None):
                self.response.add_text(text_at(choice, "text"))
                self.response.logprobs += _read_logprobs(choice)
                self.read_finish(choice)

    def read_whole(self, data: Json) -> None:
        """Read a response of one piece."""
        if not isinstance(item_at(next(iter(items_at(data, "choices")), None), "text"), str):
            raise protocol_error("sent a response without a text", str(data), self.server)
        self.read_event(data)


def _read_logprobs(choice: Json) -> Iterator[TokenLogprob]:
    """Read the log probabilities of a choice: of this protocol, or of Chat Completions, which some servers send in its place."""
    yield from read_logprobs(choice)
    tokens, numbers = items_at(choice, "logprobs", "tokens"), items_at(choice, "logprobs", "token_logprobs")
    tops = items_at(choice, "logprobs", "top_logprobs")
    for place, (token, number) in enumerate(zip(tokens, numbers, strict=False)):
        logprob = clean_logprob(number)
        if isinstance(token, str) and logprob is not None:
            row = tops[place] if place < len(tops) else None
            pairs = (
                ((join_surrogates(name), clean_logprob(each)) for name, each in row.items())
                if isinstance(row, dict)
                else ()
            )
            yield TokenLogprob(
                join_surrogates(token), logprob, tuple((name, each) for name, each in pairs if each is not None)
            )
