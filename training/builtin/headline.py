"""The headline figures of a model card, on held-out samples and on data that we did not write."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

__all__ = ["headline"]

Found: TypeAlias = dict[str, Any]
ALL_TOOLS, NO_TOOL = "Zero-Shot+ALL", "Few-Shot+CoT@1"
"""The settings of `taiwa eval reason` to include."""
POLICY = "look_first"


def headline(held_out: Mapping[str, Any], evaluation: Mapping[str, Any] | None) -> list[Found]:
    """Return rows with `what`, `value` (a share, except for AUC), `interval`, `of` and `unit`."""
    return [*_held_out(held_out), *(_evaluated(evaluation) if evaluation else ())]


def _held_out(table: Mapping[str, Any]) -> Iterator[Found]:
    for name in sorted(table, key=lambda each: each != "all"):
        whole = table[name].get("all")
        if whole is not None:
            what = "held-out samples" if name == "all" else f"held-out samples, {name}"
            yield _row(f"{what}, written exactly", whole["share"], whole["interval"], whole["of"])


def _evaluated(evaluation: Mapping[str, Any]) -> Iterator[Found]:
    parts: Mapping[str, Any] = evaluation["parts"]
    for part, name, wanted in (
        ("numglue", "NumGLUE Task 2, all tools", ALL_TOOLS), ("numglue, no tool", "NumGLUE Task 2, no tool", NO_TOOL),
        ("chemistry", "textbook chemistry, all tools", ALL_TOOLS),
    ):  # fmt: skip
        for row in _of(parts, part):
            if row["setting"] == wanted:
                yield _row(f"{name}, exactly", row["accuracy"], row["interval"], row["n"])
                yield _row(f"{name}, within 0.5 %", row["accuracy_tolerant"], row["interval_tolerant"], row["n"])
    for row in _of(parts, "orders"):
        for name, what in (
            ("items", "items with the right name and quantity"), ("precision", "items that were ordered so"),
            ("whole", "requests wholly right"), ("structure", "replies that can be read"),
        ):  # fmt: skip
            if row[name] is not None:
                yield _row(f"coffee-shop requests: {what}", row[name], row[f"{name}_interval"], row["counts"][name][1])
    for row in _of(parts, "asking back"):
        if row["setting"] == POLICY and row["auc"] is not None:
            yield _row(f"when to ask back, {row['set']}: AUC", row["auc"], row["auc_interval"], row["n"], unit="AUC")
    for name, what in (("refused", "said not to be known"), ("number", "given a number all the same")):
        share = (evaluation.get("refusals") or {}).get(name)
        if share is not None:
            yield _row(f"made-up compounds: {what}", share["share"], share["interval"], share["of"])
    for name, rates in (evaluation.get("confidence") or {}).items():
        yield _row(
            f"{name}: answered", rates["answered"]["share"], rates["answered"]["interval"], rates["answered"]["of"]
        )
        if rates["right"]["of"] and "unanswerable" not in name:
            yield _row(
                f"{name}: right of the answers",
                rates["right"]["share"],
                rates["right"]["interval"],
                rates["right"]["of"],
            )
    if evaluation.get("validity"):
        whole = evaluation["validity"]["all"]
        yield _row("answers that have their form, over all evaluations", whole["share"], whole["interval"], whole["of"])


def _of(parts: Mapping[str, Any], part: str) -> list[Mapping[str, Any]]:
    return parts[part]["rows"] if part in parts else []


def _row(what: str, value: float, interval: object, of: int, unit: str = "share") -> Found:
    return {"what": what, "value": value, "interval": interval, "of": of, "unit": unit}
