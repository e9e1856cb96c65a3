"""Vectors of texts from an endpoint, `POST …/embeddings`, or from a folder: what an index that is asked by meaning needs."""

import base64
import hashlib
import struct
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Literal

from taiwa.kernel.errors import ConfigError, ModelError, ProtocolError, TaiwaError
from taiwa.kernel.records import Json, count_at, item_at, items_at, text_at
from taiwa.models.http_api.anthropic import AnthropicMessages
from taiwa.models.http_api.api_keys import find_key
from taiwa.models.http_api.base_url import parse_base_url
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.provider_interface import WireRequest, parse, written
from taiwa.models.http_api.retries import RequestLimits, RetryPolicy
from taiwa.models.registry import resolve
from taiwa.retrieval import Index
from taiwa.retrieval.embedding import Embedder, Vectors, unit_rows
from taiwa.retrieval.hybrid import HybridIndex
from taiwa.retrieval.types import EmbedderChoice
from taiwa.settings import Settings

__all__ = ["EmbeddingEndpoint", "by_meaning", "caught_up", "open_embedder", "open_endpoint"]

PATH = "embeddings"
TOGETHER = 32
"""Texts in one request; servers that take fewer get fewer."""
SHORTEST = 40
"""A text of so few characters is not cut any more, whatever a server says of its length."""
PROBE = "The same words, always: 同じ言葉を、いつも。"
SAME = 0.99
"""Two vectors of one text whose cosine is lower are of two models; a model that runs elsewhere differs by far less."""
QUESTION = RequestLimits(connect=5.0, first_byte=25.0, between=10.0, total=30.0)
"""How long a question waits for its vector; it can be answered without."""
LISTED = 5
MOST_NAMED = 80


class EmbeddingEndpoint:
    """An embedder behind HTTP, which OpenAI, llama.cpp, vLLM, Ollama and many others serve.

    What stands behind an address can change, and vectors of two models are of no use to each other: so the first call
    has a fixed sentence embedded too, and its vector is compared with that of the vectors that are kept.
    """

    def __init__(self, model: HttpModel, known: EmbedderChoice | None = None) -> None:
        self.model = model
        self.name = known.model if known is not None else ""
        self.probe = known.probe if known is not None else ()
        self.read = 0
        """Tokens that the server says it read."""
        self._met = False

    def __repr__(self) -> str:
        return f"EmbeddingEndpoint({self.model.name!r})"

    def embed(self, texts: Sequence[str], what: Literal["passage", "question"]) -> Vectors:
        """Return one vector of length 1 for each text; the end of a text that is too long for the model is left out.

        Raises:
            ModelError: the server failed, has no embeddings, or does not answer with vectors.
            ConfigError: it is another model than before.
        """
        del what  # the protocol has no word for it
        if not self._met:
            self.meet()
        made = self._rows(
            [row for start in range(0, len(texts), TOGETHER) for row in self._asked(texts[start : start + TOGETHER])]
        )
        if len(made) and made.shape[1] != len(self.probe):
            raise self._broken(f"sends vectors of {made.shape[1]} numbers, and sent {len(self.probe)} before")
        return made

    def meet(self, known: EmbedderChoice | None = None) -> None:
        """Have the fixed sentence embedded; the model is new unless it is the one that is known.

        Raises:
            ModelError: the server failed, has no embeddings, or does not answer with vectors.
            ConfigError: it is another model than the one that it was made for.
        """
        probe = tuple(float(each) for each in self._rows(self._asked([PROBE]))[0])
        if not any(probe):
            raise self._broken("sends a vector of zeros")
        if self.probe and not _same(self.probe, probe):
            raise ConfigError(
                f"behind {self.model.name} is another model than the one whose vectors are kept: run `taiwa index` again"
            )
        if known is not None and _same(known.probe, probe):
            self.name, self.probe = known.model, known.probe
        if not self.name:
            digest = hashlib.sha256(struct.pack(f"<{len(probe)}f", *probe)).hexdigest()
            target = self.model.target
            self.name = f"{target.model[:MOST_NAMED]}@{parse_base_url(target.base_url).authority}-{digest[:12]}"
            self.probe = probe
        self._met = True

    def _rows(self, found: Sequence[Sequence[float]]) -> Vectors:
        try:
            return unit_rows(found)
        except ValueError as error:
            raise self._broken(f"sends {error}") from None

    def _asked(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Ask for some texts; fewer at once, or the beginning of one, where these are too many or it is too long."""
        try:
            return self._once(texts)
        except ModelError as error:
            if error.status not in (400, 413, 422, 500):
                raise
            if len(texts) > 1:
                half = len(texts) // 2
                return [*self._asked(texts[:half]), *self._asked(texts[half:])]
            if len(texts[0]) <= SHORTEST or not _too_long(error):
                raise
            return self._asked([texts[0][: len(texts[0]) // 2]])

    def _once(self, texts: Sequence[str]) -> list[Sequence[float]]:
        # A server takes an empty text for a mistake.
        given: list[Json] = [text or " " for text in texts]
        body = written({"model": self.model.target.model, "input": given})
        raw = self.model.send(WireRequest(PATH, body, (("content-type", "application/json"),)))
        try:
            data = parse(raw)
        except ValueError:
            raise self._broken("sends no JSON") from None
        self.read += count_at(data, "usage", "prompt_tokens") or 0
        items = items_at(data, "data")
        places = [count_at(each, "index") for each in items]
        if sorted(place for place in places if place is not None) == list(range(len(items))):
            items = [each for _, each in sorted(zip(places, items, strict=True), key=lambda pair: pair[0] or 0)]
        found = [_vector(item_at(each, "embedding")) for each in items]
        if len(found) != len(texts) or not all(found):
            raise self._broken(f"sends {sum(map(bool, found))} vectors for {len(texts)} texts")
        return found

    def _broken(self, what: str) -> ProtocolError:
        return ProtocolError(f"{self.model.name} {what}: is a model for embeddings there, and not one for chats?")


class LazyEmbedder:
    """An embedder that is opened at the first question; until then it is only a name."""

    def __init__(self, meaning: EmbedderChoice, opened: Callable[[EmbedderChoice], Embedder]) -> None:
        self.name = meaning.model
        self._meaning = meaning
        self._opening = opened
        self._opened: Embedder | None = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str], what: Literal["passage", "question"]) -> Vectors:
        """Return one vector of length 1 for each text.

        Raises:
            ConfigError: the embedder is not there any more, or another one.
        """
        with self._lock:
            if self._opened is None:
                self._opened = self._opening(self._meaning)
        if self._opened.name != self.name:
            raise ConfigError(f"{self._meaning.place} is another model than before: run `taiwa index` again")
        return self._opened.embed(texts, what)


def by_meaning(index: Index, chosen: Settings) -> Index:
    """Return an index as it was chosen to be asked: by words alone, or by meaning too where that was shown to help.

    Nothing is loaded or called before the first question.
    """
    meaning = index.backend.embedder_choice()
    if meaning is None:
        return index
    embedder = LazyEmbedder(meaning, lambda known: open_embedder(known.place, chosen, known, limits=QUESTION))
    fused = HybridIndex(index, embedder, always=meaning.always)
    return fused if fused.fuses else index


def caught_up(index: Index) -> str:
    """Make the vectors that are missing where an index is asked by meaning; return why that failed, or nothing."""
    if isinstance(index, HybridIndex):
        try:
            index.make_vectors()
        except TaiwaError as error:
            return f"{index.name}: what is new has no vectors yet: {error.message}"
    return ""


def open_embedder(
    place: str, chosen: Settings, known: EmbedderChoice | None = None, *, limits: RequestLimits | None = None
) -> Embedder:
    """Open an embedder: the folder of a model, or an endpoint as models are named (`openai:…`, `http://host:port/v1#name`).

    Of an address without a name it is the server's only model. `known` is what it was before.

    Raises:
        ConfigError: there is none of that name, its key is missing, or the extra `dense` is not installed.
        ModelError: the server does not tell its models.
    """
    if Path(place).expanduser().is_dir():
        from taiwa.retrieval.embedding import BertEncoder

        return BertEncoder(Path(place).expanduser())
    return open_endpoint(place, chosen, known, limits=limits)


def open_endpoint(
    place: str, chosen: Settings, known: EmbedderChoice | None = None, *, limits: RequestLimits | None = None
) -> EmbeddingEndpoint:
    """Open an endpoint.

    Raises:
        ConfigError: there is none of that name, or its key is missing.
        ModelError: the server does not tell its models.
    """
    if "/" in place and "://" not in place and ":" not in place.partition("/")[0]:
        raise ConfigError(f"there is no folder {place}: is the disk there, and the name right?")
    unnamed = place.startswith(("http://", "https://")) and "#" not in place
    target = resolve(f"{place}#-" if unnamed else place, base_urls=chosen.base_urls)
    if target.inside:
        raise ConfigError(f"{place!r} runs no embeddings: give the folder of a sentence model itself, without `local:`")
    if isinstance(target.codec, AnthropicMessages):
        raise ConfigError(f"{place!r}: this provider has no embeddings; another provider, a server or a folder may")
    retry = RetryPolicy(attempts=2 if limits else chosen.attempts)
    limits = limits or RequestLimits(total=chosen.timeout)
    key = find_key(target, chosen)
    if unnamed:
        with HttpModel(target, key, limits=limits, retry=retry) as asking:
            target = resolve(f"{place}#{_only_model(asking)}", base_urls=chosen.base_urls)
    return EmbeddingEndpoint(HttpModel(target, key, limits=limits, retry=retry), known)


def _only_model(server: HttpModel) -> str:
    place = server.target.base_url
    try:
        names = [text_at(each, "id") for each in items_at(parse(server.fetch("models")), "data")]
    except ValueError:
        names = []
    if len(names) == 1 and names[0]:
        return names[0]
    some = ", ".join(names[:LISTED])
    there = f"has {len(names)} models ({some}{', …' if len(names) > LISTED else ''})" if names else "lists no model"
    raise ConfigError(f"{place} {there}: say which, as in {place}#NAME")


def _vector(held: Json) -> Sequence[float]:
    """Read a vector: numbers, or the bytes of float32 in base64; nothing where it is neither."""
    if isinstance(held, str):
        try:
            raw = base64.b64decode(held, validate=True)
            return struct.unpack(f"<{len(raw) // 4}f", raw)
        except (Base64Error, struct.error, ValueError):
            return ()
    if not isinstance(held, list):
        return ()
    numbers = [each for each in held if isinstance(each, (int, float)) and not isinstance(each, bool)]
    return numbers if len(numbers) == len(held) else ()


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and sum(a * b for a, b in zip(one, other, strict=True)) > SAME


def _too_long(error: ModelError) -> bool:
    return error.status == 413 or "longer than" in error.message or "too long" in error.message
