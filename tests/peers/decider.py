"""A server of the decision wire on this machine: it takes what the wire allows, refuses the rest, and answers by softmax.

    with DecisionServer({"clarity": (0.0, 3.0, 1.0, 0.0, 0.0)}) as server:
        resolve(f"{server.base_url}#decider", overrides=…)

The numbers are the logits of each answer of a question, in its order; a question without numbers is answered evenly.
"""

import json
import math
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

__all__ = ["KEY", "DecisionServer"]

KEY = "canary-decider-0123456789"


class WrongError(Exception):
    """A request that the wire does not allow."""


def softmax(logits: Sequence[float]) -> list[float]:
    weights = [math.exp(each - max(logits)) for each in logits]
    return [weight / sum(weights) for weight in weights]


def confidence(chances: Sequence[float]) -> float:
    """1 where one answer holds everything, 0 where all are alike."""
    if len(chances) < 2:
        return 1.0
    return 1 + sum(each * math.log(each) for each in chances if each > 0) / math.log(len(chances))


def answered(name: str, question: Any, logits: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Answer a question of the wire, or say what is wrong with it."""
    if not isinstance(question, dict) or not question.get("instructions"):
        raise WrongError('"instructions" must be provided')
    kind, criteria = question.get("type"), question.get("criteria")
    if kind == "noul":
        if criteria is not None and not (isinstance(criteria, dict) and set(criteria) <= {"true", "false"}):
            raise WrongError('"criteria" must be an object')
        return {"type": "noul", "noul": softmax(logits.get(name, (0, 0)))[1]}
    if kind == "choice":
        if not isinstance(criteria, dict) or not criteria:
            raise WrongError('"criteria" must be a non-empty object')
        chances = softmax(logits.get(name, (0,) * len(criteria)))
        told = dict(zip(criteria, chances, strict=True))
        best = max(told, key=lambda option: told[option])
        return {"type": "choice", "choice": best, "confidence": confidence(chances), "probabilities": told}
    if kind == "score":
        if not isinstance(criteria, list) or not 2 <= len(criteria) <= 10:
            raise WrongError('"criteria" must be an array of 2 to 10 levels')
        chances = softmax(logits.get(name, (0,) * len(criteria)))
        return {
            "type": "score",
            "score": sum(level * each for level, each in enumerate(chances)),
            "confidence": confidence(chances),
            "legend": {str(level): words for level, words in enumerate(criteria)},
            "probabilities": {str(level): each for level, each in enumerate(chances)},
        }
    raise WrongError('"type" must be one of: choice, score, noul')


class DecisionServer:
    """The server, from entering to leaving; `seen` holds the bodies of what it was asked."""

    def __init__(self, logits: Mapping[str, Sequence[float]] | None = None) -> None:
        self.logits = dict(logits or {})
        self.seen: list[dict[str, Any]] = []
        self.raw: bytes | None = None
        """What to send instead of an answer."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, reply = outer.reply(self.path, self.headers.get("authorization", ""), body)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name in the base class)
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def reply(self, path: str, key: str, body: bytes) -> tuple[int, bytes]:
        if path != "/v1/systemone":
            return 404, b'{"error": {"message": "not found", "type": "not_found_error"}}'
        if key != f"Bearer {KEY}":
            return 401, b'{"error": {"message": "no", "type": "authentication_error"}}'
        asked = json.loads(body)
        self.seen.append(asked)
        if self.raw is not None:
            return 200, self.raw
        try:
            if set(asked) != {"model", "state", "questions"} or not asked["questions"]:
                raise WrongError('"questions" must be a non-empty object')
            answers = {name: answered(name, each, self.logits) for name, each in asked["questions"].items()}
        except WrongError as wrong:
            error = {"code": 400, "message": str(wrong), "type": "invalid_request_error"}
            return 400, json.dumps({"error": error}).encode()
        usage = {"input_tokens": len(body), "output_tokens": 0}
        return 200, json.dumps({"model": asked["model"], "answers": answers, "usage": usage}).encode()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
