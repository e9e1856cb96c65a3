"""The bytes of a request: the same request gives the same bytes on every machine."""

import json

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

__all__ = ["written"]


def written(data: Json) -> bytes:
    """Write JSON as compact UTF-8 with every key in its own place.

    Keys are not sorted as in a digest: servers make a constrained answer field by field in the order of its schema, and
    a shape that asks for the reason before the verdict means it.

    Raises:
        InputError: the text holds a lone surrogate, or a number that JSON cannot say.
    """
    try:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise InputError(f"the request holds half a character ({half}); give valid Unicode") from None
    except ValueError as error:
        raise InputError(f"the request holds what JSON cannot say: {error}") from None
