"""A model in this process has no wire: a request is written as a record, for people who want to see it."""

import json
from collections.abc import Mapping

from taiwa.kernel.errors import ModelError
from taiwa.kernel.records import record
from taiwa.kernel.values import Request
from taiwa.models.wire import Call, Decoder

__all__ = ["Inside"]


class Inside:
    """Stands in the place of a codec; see `taiwa.models.wire.Codec`."""

    def encode(self, request: Request) -> Call:
        """Write a request as it is."""
        return Call("", json.dumps(record(request), ensure_ascii=False).encode())

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:  # noqa: ARG002  (the seam's)
        """There are no bytes to decode."""
        raise _none()

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:  # noqa: ARG002  (the seam's)
        """There is no status."""
        return _none()

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:  # noqa: ARG002  (the seam's)
        """There is no key."""
        return ()


def _none() -> ModelError:
    return ModelError("a model in this process is asked without a server")
