"""Embeddings (`POST /v1/embeddings`): the vectors of the model that `--embeddings` names."""

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING

from starlette.requests import Request

from taiwa.kernel.records import Json
from taiwa.kernel.text import estimate_tokens
from taiwa.server.errors import ApiError, invalid
from taiwa.server.fields import Fields
from taiwa.server.state import read_body, repository_of, state_of
from taiwa.server.wire import Route, Wire
from taiwa.server.wires.chat_completions import error

if TYPE_CHECKING:
    from taiwa.retrieval.embedding import Vectors

MOST_TEXTS = 2_048


async def create(request: Request) -> Json:
    """Return the vectors of some texts."""
    model = state_of(request).embeddings
    body = await read_body(request)
    body.check_names({"model", "input", "encoding_format", "dimensions", "user"})
    name, texts = body.text("model"), _read_input(body)
    if model is None or name not in model.names:
        named = "start `taiwa serve` with --embeddings" if model is None else f"choose {model.names[-1]}"
        raise ApiError(
            404,
            f"the embedding model {name[:80]!r} does not exist here; {named}",
            code="model_not_found",
            param="model",
        )
    form = body.choice("encoding_format", ("float", "base64"), "float")
    dimensions = body.count("dimensions", 1)
    if (quota := repository_of(request).quota) is not None:
        await asyncio.to_thread(quota.check)
    vectors = await asyncio.to_thread(model.embed, texts)
    if dimensions is not None and dimensions != vectors.shape[1]:
        if dimensions > vectors.shape[1]:
            raise invalid(
                "dimensions", f"dimensions must be at most {vectors.shape[1]}, got {dimensions}", "invalid_value"
            )
        vectors = await asyncio.to_thread(_shorten, vectors, dimensions)
    data: list[Json] = [
        {"object": "embedding", "index": index, "embedding": _write(row, form)} for index, row in enumerate(vectors)
    ]
    tokens = sum(map(estimate_tokens, texts))
    usage: Json = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": name, "usage": usage}


def _read_input(body: Fields) -> tuple[str, ...]:
    given = body.data.get("input")
    if isinstance(given, list) and given and isinstance(given[0], (int, list)):
        raise invalid("input", "arrays of tokens are not supported; send texts", "unsupported_parameter")
    texts = body.texts("input")
    if not texts or not all(texts):
        raise invalid("input", "input must have at least one text, and no empty one", "invalid_value")
    if len(texts) > MOST_TEXTS:
        raise invalid("input", f"there are more than {MOST_TEXTS:,} texts", "invalid_value")
    return texts


def _shorten(vectors: "Vectors", dimensions: int) -> "Vectors":
    from taiwa.retrieval.embedding import unit_rows

    return unit_rows(vectors[:, :dimensions].tolist())


def _write(row: "Vectors", form: str) -> Json:
    """Write a vector: as numbers, or as the bytes of its float32, least significant first."""
    if form == "base64":
        return b64encode(row.astype("<f4").tobytes()).decode()
    numbers: list[Json] = row.tolist()
    return numbers


wire = Wire("embeddings", (Route("/v1/embeddings", create),), error)
