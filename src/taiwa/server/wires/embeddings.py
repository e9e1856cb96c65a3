"""Embeddings (`POST /v1/embeddings`), computed by the model that `--embeddings` names."""

from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from starlette.requests import Request

from taiwa.kernel.serialization import Json
from taiwa.kernel.text import estimate_tokens
from taiwa.server.http_responses import ApiError, error_to_json, invalid
from taiwa.server.request import Fields, repository_of, state_of
from taiwa.server.wire_interface import Route, Wire

if TYPE_CHECKING:
    from taiwa.retrieval.hybrid import Vectors

MOST_TEXTS = 2_048


def create(request: Request, body: Fields) -> Json:
    """Return the vectors of some texts."""
    name, texts = body.text("model"), _read_input(body)
    form, dimensions = body.choice("encoding_format", ("float", "base64"), "float"), body.count("dimensions", 1)
    vectors = vectors_of(request, name, texts, dimensions)
    data: list[Json] = [
        {"object": "embedding", "index": index, "embedding": _write(row, form)} for index, row in enumerate(vectors)
    ]
    usage: Json = {"prompt_tokens": tokens_of(texts), "total_tokens": tokens_of(texts)}
    return {"object": "list", "data": data, "model": name, "usage": usage}


def tokens_of(texts: Sequence[str | list[int]]) -> int:
    """Estimate the tokens of some texts, and count those of others."""
    return sum(estimate_tokens(each) if isinstance(each, str) else len(each) for each in texts)


def vectors_of(
    request: Request, name: str, texts: Sequence[str | list[int]], dimensions: int | None = None
) -> "Vectors":
    """Return a row of length 1 for each text; with `dimensions`, the first ones, normalised again.

    Raises:
        ApiError: the model does not exist, has other tokens, or fewer dimensions. TaiwaError: the call failed, or the caller has reached a
        limit.
    """
    model = state_of(request).embeddings
    if model is None or name not in model.names:
        named = "start `taiwa serve` with --embeddings" if model is None else f"choose {model.names[-1]}"
        raise ApiError(
            404,
            f"the embedding model {name[:80]!r} does not exist here; {named}",
            code="model_not_found",
            param="model",
        )
    vectors = model.embed(texts, repository_of(request), state_of(request).served.settings)
    if dimensions is None or dimensions == vectors.shape[1]:
        return vectors
    if dimensions > vectors.shape[1]:
        raise invalid("dimensions", f"dimensions must be at most {vectors.shape[1]}, got {dimensions}", "invalid_value")
    from taiwa.retrieval.hybrid import unit_rows

    return unit_rows(vectors[:, :dimensions].tolist())


def _read_input(body: Fields) -> Sequence[str | list[int]]:
    """Read texts, or the tokens of texts: one array, or several."""
    given = body.data.get("input")
    one = isinstance(given, list) and bool(given) and isinstance(given[0], int)
    tokens = [given] if one else given
    texts: Sequence[str | list[int]]
    if isinstance(tokens, list) and tokens and isinstance(tokens[0], list):
        if not all(isinstance(each, list) and all(type(token) is int for token in each) for each in tokens):
            raise invalid("input", "input must be texts, or arrays of integers", "invalid_type")
        texts = cast("list[list[int]]", tokens)
    else:
        texts = body.texts("input", or_one=True)
    if not texts or not all(texts):
        raise invalid("input", "input must have at least one text, and no empty one", "invalid_value")
    if len(texts) > MOST_TEXTS:
        raise invalid("input", f"there are more than {MOST_TEXTS:,} texts", "invalid_value")
    return texts


def _write(row: "Vectors", form: str) -> Json:
    """Encode a vector: as numbers, or as little-endian float32 bytes."""
    if form == "base64":
        return b64encode(row.astype("<f4").tobytes()).decode()
    numbers: list[Json] = row.tolist()
    return numbers


BODY = ("model", "input", "encoding_format", "dimensions", "user")
wire = Wire("embeddings", (Route("/v1/embeddings", create, body=BODY),), error_to_json)
