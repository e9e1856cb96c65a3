"""Requests that a client sends again because it has lost the answer: they attach to the run of the first attempt.

A request is a repeat of an earlier one of its caller, with the same path and body, if

- both have the same `Idempotency-Key`, or
- it is marked as a repeat (`x-stainless-retry-count`, as the SDKs of OpenAI and Anthropic do), or
- the client of the earlier one has disconnected, and its run continues or has ended with an answer; of a killed server, all have.

Other requests with the same body are answered again: so a client asks for several samples. What a request creates without a run is
made again, too, unless the keys are the same (`Repeats.once`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from starlette.requests import Request

from taiwa.server.http_responses import ApiError
from taiwa.server.runs import LiveRun

REPEAT_SECONDS = 20.0
"""How long the run of a client that repeats its requests continues without it, and how long its answer is kept."""
KEY_SECONDS = 600.0
"""How long an answer is kept for an `Idempotency-Key`."""
LARGE_BODY = 64 << 10
MAX_KEPT_BYTES = 64 << 20
"""What the kept answers of a caller hold: their requests and conversations, which are large behind a small request, too."""
LEAST_KEPT_BYTES = 4 << 10
"""What an answer holds besides."""
RETRY_COUNT = "x-stainless-retry-count"


class Started(Protocol):
    """What a request has started."""

    @property
    def run(self) -> LiveRun:
        """Its run."""
        ...


S = TypeVar("S", bound=Started)
T = TypeVar("T")


class _Made(NamedTuple):
    """What a request has made, with a run that ended when it was made."""

    run: LiveRun
    made: object


class Attempt(Generic[S]):
    """The run of a request, for the clients that wait for it."""

    __slots__ = (
        "_cancelling",
        "_is_patient",
        "clients",
        "digest",
        "has_failed",
        "kept",
        "run",
        "size",
        "started",
        "weight",
    )

    def __init__(self, digest: bytes, size: int, *, is_patient: bool, kept: float) -> None:
        self.digest, self.size, self._is_patient, self.kept = digest, size, is_patient, kept
        self.run: LiveRun | None = None
        self.has_failed = False
        """Whether it could not start."""
        self.weight = 0
        """The bytes that it holds, 0 while its run continues."""
        self.clients = 0
        self._cancelling: asyncio.TimerHandle | None = None
        self.started: asyncio.Future[S] = asyncio.get_running_loop().create_future()

    @property
    def can_answer(self) -> bool:
        """Whether its run continues, or has ended with an answer."""
        run = self.run
        if run is None:
            return not self.has_failed
        return not (run.abandoned or run.stopped or isinstance(run.last, ApiError))

    @property
    def is_open(self) -> bool:
        """Whether its run starts or continues."""
        return not self.has_failed and (self.run is None or self.run.ended is None)

    @property
    def ended(self) -> float | None:
        """When its run has ended with an answer; None if it has not."""
        return self.run.ended if self.run is not None and self.can_answer else None

    def start(self, started: S) -> None:
        """Let the clients that wait for it follow its run."""
        self.run = started.run
        self.started.set_result(started)

    def fail(self, error: Exception) -> None:
        """Let the clients that wait for it fail."""
        self.has_failed = True
        self.started.set_exception(error)
        self.started.exception()  # read, so that asyncio does not log it

    def weigh(self) -> int:
        """Find out what it holds, once its run has ended with an answer."""
        if not self.weight and self.ended is not None and self.run is not None:
            held = (each.session.conversation.size for each in self.run.completions)
            self.weight = LEAST_KEPT_BYTES + self.size + sum(held)
        return self.weight

    def is_over(self, now: float) -> bool:
        """Whether no request can attach to it any more."""
        return not self.can_answer or (self.ended is not None and now > self.ended + self.kept)

    def join(self) -> None:
        """Add a client."""
        self.clients += 1
        if self._cancelling is not None:
            self._cancelling.cancel()

    def leave(self, *, at_once: bool = False, cancels: bool = True) -> None:
        """Remove a client that has disconnected. Without any, the run is cancelled, but not `at_once` if the client may repeat
        the request.
        """
        self.clients -= 1
        if cancels and self._is_patient and not at_once:
            self._cancelling = asyncio.get_running_loop().call_later(REPEAT_SECONDS, self._cancel)
        elif cancels:
            self._cancel()

    def _cancel(self) -> None:
        if self.clients <= 0 and self.run is not None and self.can_answer:
            self.run.cancel(abandon=True)


class RequestKey(NamedTuple):
    """What repeats of a request have in common: the caller, the digest of path and body, and the `Idempotency-Key`, "" without one.

    `retries` is the number of earlier attempts that the client states, "" without one.
    """

    caller: str
    digest: bytes
    idempotency: str
    retries: str = ""

    @property
    def attempt(self) -> str:
        """The digest of a request with an `Idempotency-Key`, or whose client counts its attempts; "" of others."""
        return sha256(self.digest + self.idempotency.encode()).hexdigest() if self.idempotency or self.retries else ""

    @property
    def repeats_seconds(self) -> float:
        """How long ago the attempt that this request repeats may have ended; 0 if it does not say that it repeats one."""
        return KEY_SECONDS if self.idempotency else REPEAT_SECONDS if self.retries not in ("", "0") else 0.0


def attempt_of(name: str, answer: int = 0) -> str:
    """Return what the store finds the run of an answer by; "" without a name of its request."""
    return f"{name}/{answer}" if name else ""


def request_key(request: Request) -> RequestKey:
    """Return the key of a request whose body was read."""
    caller, digest = str(request.scope["caller"]), bytes(request.state.digest)
    return RequestKey(caller, digest, request.headers.get("idempotency-key", ""), request.headers.get(RETRY_COUNT, ""))


def _attempt(digest: bytes, key: str, size: int, *, is_patient: bool) -> Attempt[Any]:
    return Attempt(digest, size, is_patient=is_patient, kept=KEY_SECONDS if key else REPEAT_SECONDS)


class Repeats:
    """The attempts of all callers that a repeat may attach to."""

    def __init__(self) -> None:
        self._attempts: dict[tuple[str, str | bytes], list[Attempt[Any]]] = {}
        self._begun: list[Attempt[Any]] = []
        """Those that were open when the last one began."""
        self._next_sweep = 0.0

    async def attempt(self, request: Request, start: Callable[[], Awaitable[S]]) -> Attempt[S]:
        """Return the attempt that a request repeats, or a new one, for which `start` is called.

        Raises:
            ApiError: the `Idempotency-Key` was used with another body.
        """
        begun = self._begun
        self._begun = [each for each in begun if each.is_open]
        if len(self._begun) < len(begun) and any(each.weigh() > LARGE_BODY for each in begun):
            self._forget()
        self._sweep(asyncio.get_running_loop().time())
        caller, digest, key, retries = made_by = request_key(request)
        attempts = self._attempts.setdefault((caller, key or digest), [])
        if key and any(each.digest != digest for each in attempts):
            problem = "this Idempotency-Key was used for another request; send a new key with each request"
            raise ApiError(422, problem, code="idempotency_key_reused")
        # A failed attempt answers no repeat: the client repeats because it may succeed.
        usable = [each for each in attempts if each.can_answer]
        # Of equal requests, the one whose client has gone is the one that is repeated.
        left = [each for each in usable if not each.clients]
        found = next(iter(left), usable[-1] if usable and made_by.repeats_seconds else None)
        if found is not None:
            found.join()
            # This client may hang up, while the first one still waits for the same start.
            await asyncio.shield(found.started)
            return found
        made = _attempt(digest, key, request.state.size, is_patient=bool(key or retries))
        made.join()
        attempts.append(made)
        self._begun.append(made)
        try:
            made.start(await start())
        except BaseException as error:
            attempts.remove(made)
            # A cancellation of the first client must not cancel those that have joined it.
            made.fail(error if isinstance(error, Exception) else ConnectionError())
            raise
        return made

    def resume(self, key: RequestKey, started: Started) -> None:
        """Let the repeats of a request of a killed server attach to its run, which this one has resumed."""
        made = _attempt(key.digest, key.idempotency, 0, is_patient=True)
        made.start(started)
        self._attempts.setdefault((key.caller, key.idempotency or key.digest), []).append(made)

    async def once(self, request: Request, make: Callable[[], Awaitable[T]]) -> T:
        """Return what `make` returns, or has returned for an earlier request with the same `Idempotency-Key`.

        Raises:
            ApiError: as `attempt`.
        """
        if not request.headers.get("idempotency-key"):
            return await make()

        async def start() -> _Made:
            run = LiveRun(())
            made = await make()
            run.ended = asyncio.get_running_loop().time()
            return _Made(run, made)

        return cast("T", (await self.attempt(request, start)).started.result().made)

    def _forget(self) -> None:
        """Forget the oldest answers of each caller that hold too much, the large ones first."""
        kept: dict[str, list[tuple[list[Attempt[Any]], Attempt[Any]]]] = {}
        for (caller, _), attempts in self._attempts.items():
            kept.setdefault(caller, []).extend((attempts, each) for each in attempts if each.weigh())
        for pairs in kept.values():
            size = sum(each.weight for _, each in pairs)
            for attempts, each in sorted(pairs, key=lambda pair: pair[1].weight <= LARGE_BODY):
                if size <= MAX_KEPT_BYTES:
                    break
                attempts.remove(each)
                size -= each.weight

    def _sweep(self, now: float) -> None:
        if now < self._next_sweep:
            return
        self._next_sweep = now + REPEAT_SECONDS / 2
        for name, attempts in list(self._attempts.items()):
            kept = [each for each in attempts if not each.is_over(now)]
            if kept:
                self._attempts[name] = kept
            else:
                del self._attempts[name]
        self._forget()
