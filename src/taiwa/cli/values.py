"""Typed values and how they were got, for people and for programs."""

import json
from collections.abc import Iterable, Sequence
from itertools import groupby

from taiwa.cli.screen import inert
from taiwa.flows.repair import Attempt
from taiwa.kernel.records import Json
from taiwa.kernel.values import Enforcement
from taiwa.shape import Fix

__all__ = ["attempt_lines", "enforcement_lines", "fix_lines", "pretty", "told_attempt", "told_enforcement", "told_fix"]

MOST_PLACES = 5
MOST_CLAUSES = 6
SHOWN_CHARS = 200


def pretty(value: Json) -> str:
    """Write a value as JSON on several lines; what a terminal would obey is written as its escape.

    >>> pretty(["a\\x9b", 1])
    '[\\n  "a\\\\u009b",\\n  1\\n]'
    """
    return inert(json.dumps(value, ensure_ascii=False, indent=2))


def fix_lines(fixes: Iterable[Fix]) -> list[str]:
    """Say what was mended: one line for each kind."""
    lines: list[str] = []
    kinds = sorted(fixes, key=lambda fix: (fix.level, fix.code, fix.position))
    for (level, code), group in groupby(kinds, key=lambda fix: (fix.level, fix.code)):
        places = [f"{fix.position:,}" for fix in group]
        more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
        lines.append(f"mended ({level}): {code} at character {', '.join(places[:MOST_PLACES])}{more}")
    return lines


def attempt_lines(attempts: Sequence[Attempt]) -> list[str]:
    """Say what came of each attempt: how it was asked for, what it used, what was mended and what was wrong."""
    lines: list[str] = []
    for number, each in enumerate(attempts, 1):
        usage = each.usage
        tokens = "tokens not reported" if usage is None else f"{usage.input_tokens:,} in + {usage.output_tokens:,} out"
        asked = each.mode if each.form == "whole" else f"{each.mode}, {each.form}"
        lines += [f"gave up {why}" for why in each.downgrades]
        lines.append(f"attempt {number} ({asked}): {'not read' if each.diagnostics else 'read'} · {tokens}")
        lines += [f"  {line}" for line in enforcement_lines(each.enforcement)]
        lines += [f"  {line}" for line in fix_lines(each.fixes)]
        if each.diagnostics:
            text = " ".join(each.text.split())
            lines.append(f"  said: {text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + '…'}")
            lines += [f"  {line}" for line in each.diagnostics]
    return lines


def told_attempt(attempt: Attempt) -> dict[str, Json]:
    """An attempt for programs."""
    usage = attempt.usage
    return {
        "text": attempt.text,
        "mode": attempt.mode,
        "form": attempt.form,
        "finish": attempt.finish,
        "diagnostics": list(attempt.diagnostics),
        "fixes": [told_fix(fix) for fix in attempt.fixes],
        "usage": None if usage is None else {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        "downgrades": list(attempt.downgrades),
        "enforcement": told_enforcement(attempt.enforcement),
    }


def enforcement_lines(enforcement: Enforcement | None) -> list[str]:
    """Say what of a constraint the decoder held, and what was left to a check: by JSON pointer and keyword."""
    if enforcement is None:
        return []
    told = f"told by {enforcement.way}" if enforcement.way else "the server was not told of it"
    lines = [f"held by the decoder: {_listed(enforcement.enforced)} · {told}"]
    if enforcement.promised:
        lines.append(f"promised by the server, not probed: {_listed(enforcement.promised)}")
    if enforcement.checked:
        lines.append(f"only checked: {_listed(enforcement.checked)}")
    if enforcement.broken:
        lines.append(f"broken by the answer: {_listed(enforcement.broken)}")
    return lines


def _listed(clauses: Sequence[str]) -> str:
    more = f" and {len(clauses) - MOST_CLAUSES} more" if len(clauses) > MOST_CLAUSES else ""
    return (", ".join(clauses[:MOST_CLAUSES]) or "nothing") + more


def told_enforcement(enforcement: Enforcement | None) -> dict[str, Json] | None:
    """The same for programs."""
    if enforcement is None:
        return None
    return {
        "way": enforcement.way,
        "enforced": list(enforcement.enforced),
        "promised": list(enforcement.promised),
        "checked": list(enforcement.checked),
        "broken": list(enforcement.broken),
    }


def told_fix(fix: Fix) -> dict[str, Json]:
    """A mend for programs."""
    return {"code": fix.code, "position": fix.position, "level": fix.level}
