"""The recorded cases, and how a result is scored."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from taiwa.kernel.errors import OutputValidationError
from taiwa.structured import OutputType

__all__ = ["outcome", "rows", "same", "score"]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 and 1.0 are the same number, 1 and true are not the same value."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return (type(left) in (int, float) and type(right) in (int, float) and left == right) or left == right


def outcome(row: dict[str, Any]) -> str:
    """Return right, wrong (another value, complete and without a guess), guessed wrong, or refused."""
    try:
        result = OutputType.from_json_schema(row["schema"]).parse(row["input"])
    except OutputValidationError:
        return "refused"
    if same(result.value, row.get("expected", ...)):
        return "right"
    return "guessed wrong" if result.guessed or not result.complete else "wrong"


def score(cases: list[dict[str, Any]]) -> Counter[str]:
    return Counter(map(outcome, cases))
