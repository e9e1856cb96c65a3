"""Embeddings for hybrid search: from a server (`POST …/embeddings`) or from a model folder."""

import base64
import hashlib
import struct
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Literal, cast

from taiwa.kernel.attachments import path_kind
from taiwa.kernel.errors import ConfigError, ModelError, ProtocolError, TaiwaError
from taiwa.kernel.serialization import Json, count_at, is_number, item_at, items_at, parse_json, text_at, to_json
from taiwa.kernel.text import plural
from taiwa.models.http_api.anthropic import AnthropicMessages
from taiwa.models.http_api.api_keys import find_key
from taiwa.models.http_api.client import HttpModel, RetryPolicy
from taiwa.models.http_api.provider_interface import RequestLimits, WireRequest, parse_base_url
from taiwa.models.providers import expand_alias, resolve
from taiwa.retrieval import Index
from taiwa.retrieval.hybrid import Embedder, HybridIndex, Vectors, unit_rows
from taiwa.retrieval.types import EmbedderChoice
from taiwa.settings import Settings

PATH = "embeddings"
BATCH = 32
"""Texts in one request; a server that accepts fewer gets fewer."""
SHORTEST = 40
"""A text of this many characters or fewer is not cut."""
PROBE = "The same words, always: 同じ言葉を、いつも。"
SAME_MODEL = 0.99
"""The minimum cosine of two vectors of the same text and model; the same model on other hardware differs far less."""
QUESTION_LIMITS = RequestLimits(connect=5.0, first_byte=25.0, between=10.0, total=30.0)
"""The limits for the vector of a question, which is optional."""
MOST_LISTED = 5
LONGEST_NAME = 80


class EmbeddingEndpoint:
    """An embedder behind HTTP, which OpenAI, llama.cpp, vLLM, Ollama and many others serve.

    The model behind an address can change, and vectors of two models cannot be compared. So the first call also embeds a fixed
    sentence, whose vector is compared with the stored one.
    """

    def __init__(self, model: HttpModel, known: EmbedderChoice | None = None) -> None:
        self.model = model
        self.name = known.model if known is not None else ""
        self.probe = known.probe if known is not None else ()
        self._is_identified = False

    def __repr__(self) -> str:
        return f"EmbeddingEndpoint({self.model.name!r})"

    @property
    def reads_tokens(self) -> bool:
        """Whether the tokens of the clients of OpenAI are those of the model."""
        return self.model.target.provider == "openai"

    def embed(self, texts: Sequence[str | list[int]], what: Literal["passage", "question"]) -> Vectors:
        """Return one vector of length 1 for each text, or its tokens; a text that is too long for the model is cut.

        Raises:
            ModelError: the call failed, or the response does not contain vectors.
            ConfigError: the model is not the one of the stored vectors.
        """
        del what  # not in the protocol
        return self.embed_counted(texts)[0]

    def embed_counted(self, texts: Sequence[str | list[int]]) -> tuple[Vectors, int | None]:
        """As `embed`; also return the tokens that the server counted, None if it did not.

        Raises:
            ModelError, ConfigError: as `embed`; earlier requests for the same texts may be charged.
        """
        if not self._is_identified:
            self.identify()
        rows: list[Sequence[float]] = []
        counted: list[int | None] = []
        try:
            for start in range(0, len(texts), BATCH):
                rows += self._request(texts[start : start + BATCH], counted)
        except ModelError as error:
            error.may_be_charged = error.may_be_charged or bool(counted)
            raise
        vectors = self._unit_rows(rows)
        if len(vectors) and vectors.shape[1] != len(self.probe):
            raise self._invalid(f"sent vectors of {vectors.shape[1]} numbers, and of {len(self.probe)} before")
        return vectors, None if None in counted else sum(each or 0 for each in counted)

    def identify(self, known: EmbedderChoice | None = None) -> None:
        """Embed the fixed sentence, and name the model; it keeps the name of `known` if it is the same model.

        Raises:
            ModelError: the call failed, or the response does not contain a vector.
            ConfigError: the model is not the one of the stored vectors.
        """
        probe = tuple(float(each) for each in self._unit_rows(self._request([PROBE], []))[0])
        if not any(probe):
            raise self._invalid("sent a vector of zeros")
        if self.probe and not _is_same_model(self.probe, probe):
            raise ConfigError(f"{self.model.name} is not the model of the stored vectors; run `taiwa index` again")
        if known is not None and _is_same_model(known.probe, probe):
            self.name, self.probe = known.model, known.probe
        if not self.name:
            digest = hashlib.sha256(struct.pack(f"<{len(probe)}f", *probe)).hexdigest()
            target = self.model.target
            self.name = f"{target.model[:LONGEST_NAME]}@{parse_base_url(target.base_url).authority}-{digest[:12]}"
            self.probe = probe
        self._is_identified = True

    def _unit_rows(self, rows: Sequence[Sequence[float]]) -> Vectors:
        try:
            return unit_rows(rows)
        except ValueError as error:
            raise self._invalid(f"sent {error}") from None

    def _request(self, texts: Sequence[str | list[int]], counted: list[int | None]) -> list[Sequence[float]]:
        """Request the vectors of some texts, and add the tokens that the server counted; split the list if it is too long, and
        cut a text that is too long.
        """
        try:
            return self._post(texts, counted)
        except ModelError as error:
            if error.status not in (400, 413, 422, 500):
                raise
            if len(texts) > 1:
                half = len(texts) // 2
                return [*self._request(texts[:half], counted), *self._request(texts[half:], counted)]
            is_too_long = error.status == 413 or "longer than" in error.message or "too long" in error.message
            if len(texts[0]) <= SHORTEST or not is_too_long:
                raise
            return self._request([texts[0][: len(texts[0]) // 2]], counted)

    def _post(self, texts: Sequence[str | list[int]], counted: list[int | None]) -> list[Sequence[float]]:
        inputs: list[Json] = [cast("Json", text) or " " for text in texts]  # servers refuse an empty text
        body = to_json({"model": self.model.target.model, "input": inputs})
        raw = self.model.send(WireRequest(PATH, body, (("content-type", "application/json"),)))
        try:
            data = parse_json(raw)
        except ValueError:
            raise self._invalid("sent invalid JSON") from None
        counted.append(count_at(data, "usage", "prompt_tokens"))
        items = items_at(data, "data")
        indices = [count_at(each, "index") for each in items]
        if sorted(index for index in indices if index is not None) == list(range(len(items))):
            items = [each for _, each in sorted(zip(indices, items, strict=True), key=lambda pair: pair[0] or 0)]
        vectors = [_parse_vector(item_at(each, "embedding")) for each in items]
        if len(vectors) != len(texts) or not all(vectors):
            raise self._invalid(f"sent {plural(sum(map(bool, vectors)), 'vector')} for {plural(len(texts), 'text')}")
        return vectors

    def _invalid(self, what: str) -> ProtocolError:
        return ProtocolError(f"{self.model.name} {what}; check that it is a model for embeddings, not for chat")


class LazyEmbedder:
    """An embedder that is opened at the first question."""

    def __init__(self, choice: EmbedderChoice, open_: Callable[[EmbedderChoice], Embedder]) -> None:
        self.name = choice.model
        self._choice = choice
        self._open = open_
        self._opened: Embedder | None = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str], what: Literal["passage", "question"]) -> Vectors:
        """Return one vector of length 1 for each text.

        Raises:
            ConfigError: the embedder no longer exists, or is another one.
        """
        with self._lock:
            if self._opened is None:
                self._opened = self._open(self._choice)
        if self._opened.name != self.name:
            raise ConfigError(f"{self._choice.place} is not the model of the stored vectors; run `taiwa index` again")
        return self._opened.embed(texts, what)


def with_embeddings(index: Index, settings: Settings) -> Index:
    """Return the index with embeddings if it has them, else the plain index.

    Nothing is loaded or called before the first question.
    """
    choice = index.backend.embedder_choice()
    if choice is None:
        return index
    embedder = LazyEmbedder(choice, lambda known: open_embedder(known.place, settings, known, limits=QUESTION_LIMITS))
    return HybridIndex(index, embedder)


def add_missing_vectors(index: Index) -> str:
    """Add the missing vectors of an index with embeddings; return why that failed, or an empty text."""
    if isinstance(index, HybridIndex):
        try:
            index.make_vectors()
        except TaiwaError as error:
            return f"{index.name}: new passages do not have vectors yet: {error.message}"
    return ""


def open_embedder(
    place: str, settings: Settings, known: EmbedderChoice | None = None, *, limits: RequestLimits | None = None
) -> Embedder:
    """Open the embedder at `place`: the folder of a model, or the name of a model on a server; see `open_endpoint`.

    `known` is the embedder of the stored vectors.

    Raises:
        ConfigError: it does not exist, its key is missing, or the extra `dense` is not installed.
        ModelError: the list of models of the server cannot be read.
    """
    if path_kind(Path(place).expanduser()) == "folder":
        from taiwa.retrieval.hybrid import BertEncoder

        return BertEncoder(Path(place).expanduser())
    return open_endpoint(place, settings, known, limits=limits)


def open_endpoint(
    place: str, settings: Settings, known: EmbedderChoice | None = None, *, limits: RequestLimits | None = None
) -> EmbeddingEndpoint:
    """Open an endpoint by the name of its model (`openai:…`, `http://host:port/v1#name`).

    A URL without a name stands for the only model of the server.

    Raises:
        ConfigError: it does not exist, or its key is missing.
        ModelError: the list of models of the server cannot be read.
    """
    if "/" in place and "://" not in place and ":" not in place.partition("/")[0]:
        raise ConfigError(f"folder {place} not found; check the name, and that its disk is mounted")
    place = expand_alias(place, settings.models.aliases)
    unnamed = place.startswith(("http://", "https://")) and "#" not in place
    target = resolve(f"{place}#-" if unnamed else place, base_urls=settings.models.base_urls)
    if target.inside:
        raise ConfigError(f"{place!r} is not an embedder; name the folder of a sentence model, without `local:`")
    if isinstance(target.codec, AnthropicMessages):
        raise ConfigError(
            f"{place!r}: this provider does not offer embeddings; use another provider, a server or a folder"
        )
    retry = RetryPolicy(2 if limits else settings.calls.attempts, settings.calls.retry_paid)
    limits = limits or RequestLimits(total=settings.calls.timeout)
    key = find_key(target, settings)
    if unnamed:
        with HttpModel(target, key, limits=limits, retry=retry) as opened:
            target = resolve(f"{place}#{_only_model(opened)}", base_urls=settings.models.base_urls)
    return EmbeddingEndpoint(HttpModel(target, key, limits=limits, retry=retry), known)


def _only_model(server: HttpModel) -> str:
    place = server.target.base_url
    try:
        names = [text_at(each, "id") for each in items_at(parse_json(server.fetch("models")), "data")]
    except ValueError:
        names = []
    if len(names) == 1 and names[0]:
        return names[0]
    some = ", ".join(names[:MOST_LISTED]) + (", …" if len(names) > MOST_LISTED else "")
    listed = f"has {plural(len(names), 'model')} ({some})" if names else "does not list a model"
    raise ConfigError(f"{place} {listed}; name one, as in {place}#NAME")


def _parse_vector(data: Json) -> Sequence[float]:
    """Parse a vector: numbers, or the bytes of float32 in base64; empty if it is neither."""
    if isinstance(data, str):
        try:
            raw = base64.b64decode(data, validate=True)
            return struct.unpack(f"<{len(raw) // 4}f", raw)
        except (Base64Error, struct.error, ValueError):
            return ()
    if not isinstance(data, list):
        return ()
    try:
        numbers = [float(each) for each in data if is_number(each)]
    except OverflowError:  # a whole number of hundreds of digits
        return ()
    return numbers if len(numbers) == len(data) else ()


def _is_same_model(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and sum(a * b for a, b in zip(one, other, strict=True)) > SAME_MODEL
