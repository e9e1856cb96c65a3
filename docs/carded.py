"""Generated parts of the documents on the built-in model: tables from its card, which `make builtin` writes."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["data", "evaluations", "held_out", "made", "quality"]

CARD = Path(__file__).parents[1] / "src" / "taiwa" / "models" / "builtin" / "data" / "card.json"
CURVE = "\n![The loss over the minutes of the training, also on held-out samples](pictures/builtin-curve.png)\n"
NONE = "`make builtin` has written no card yet.\n"
SHORT = (
    "held-out samples, written exactly", "NumGLUE Task 2, all tools, exactly", "coffee-shop requests: items",
    "coffee-shop requests: replies", "numglue:", "outside", "unknown compounds:", "answers that have",
)  # fmt: skip
"""The rows that the front page shows."""


def quality(*picks: str) -> str:
    """Return the accuracy figures whose names begin with a pick, or those of the front page."""
    card = _card()
    if not card:
        return NONE
    rows = [row for row in card["headline"] if row["what"].startswith(picks or SHORT)]
    return _table(("measured", "is", "95 %", "of"), ((row["what"], *_figure(row), f"{row['of']:,}") for row in rows))


def made() -> str:
    """Return the facts about the model and its training."""
    card = _card()
    if not card:
        return NONE
    size, training, starts = card["size"], card["training"], card["made"]
    rows = [
        ("parameters", f"{size['parameters']:,}"),
        ("file", f"{size['bytes'] / 1e6:.2f} MB"),
        ("layers, width, heads, gated width", f"{size['layers']}, {size['dim']}, {size['heads']}, {size['hidden']}"),
        ("tokens it knows, reads at most", f"{size['vocab']:,}, {size['context']:,}"),
        ("learned from", f"{training['tokens'] / 1e6:,.1f} million tokens in {training['steps']:,} steps"),
        ("samples drawn", f"{training['samples']:,}"),
        ("left out for a run of words in common with a test", f"{training['dropped']:,}"),
        ("time", f"{training['minutes']:,.0f} minutes"),
        ("loss at the end, held out", f"{training['loss']:.4f}, {training['held_out']:.4f}"),
    ]
    for start in starts[-1:]:
        tree = "as committed" if start["clean"] else "with changes that were not committed"
        rows += [
            (
                "made on",
                f"{start['workers']} of {start['cores']} cores, {start['machine']}, {start['device']}, {start['products']}",
            ),
            ("began with", _begun(start["began_with"])),
            ("seed", str(start["seed"])),
            (
                "program",
                f"{start['commit'][:12]}, {tree}" if start["commit"] else "not known: it ran outside a checkout",
            ),
        ]
    curve = CURVE if (Path(__file__).parent / "pictures" / "builtin-curve.png").is_file() else ""
    return _table(("", ""), rows) + curve


def _begun(before: dict[str, float]) -> str:
    if not before:
        return "nothing"
    return f"the weights of the version before: {before['tokens'] / 1e6:,.1f} million tokens in {before['minutes']:,.0f} minutes"


def data() -> str:
    """Return the composition of the training data by kind."""
    card = _card()
    if not card:
        return NONE
    rows = [
        (name, f"{domain['share']:.0%}", ", ".join(f"{kind} {share:.1%}" for kind, share in domain["kinds"].items()))
        for name, domain in card["data"]["shares"].items()
    ]
    return _table(("domain", "share", "kinds"), rows)


def held_out() -> str:
    """Return the exact-match rates on held-out samples, by task."""
    card = _card()
    if not card:
        return NONE
    rows = [
        (
            domain,
            kind.removeprefix("all ") if kind != "all" else "**all**",
            *_figure(found),
            f"{found['right'] / found['of']:.1%}",
            f"{found['of']:,}",
        )
        for domain, kinds in card["held_out"].items()
        for kind, found in kinds.items()
        if kind.startswith("all")
    ]
    return _table(("domain", "task", "exact", "95 %", "right", "of"), rows)


def evaluations() -> str:
    """Return the commands of all evaluations, with their figures and what was left out."""
    card = _card()
    if not card or not card["evaluation"]:
        return NONE
    found = card["evaluation"]
    parts: dict[str, Any] = found["parts"]
    lines = [quality(*(row["what"] for row in card["headline"])), "\n", _ablation(parts), "\n"]
    lines += [f"    {part['command']}\n" for part in parts.values()]
    lines += [f"\nLeft out: {name}, {why}.\n" for name, why in found["left_out"].items()]
    return "".join([*lines, f"\n{found['date'][:10]}, taiwa {found['program']}.\n"])


def _ablation(parts: dict[str, Any]) -> str:
    """Return the effect of each tool on NumGLUE; without a tool the model writes the results itself."""
    rows = [("no tool", row) for row in _rows_of(parts, "numglue, no tool") if "CoT" in row["setting"]]
    rows += [(row["setting"].partition("+")[2] or row["setting"], row) for row in _rows_of(parts, "numglue")]
    body = [
        (
            name, *_figure({"value": row["accuracy"], "interval": row["interval"]}), f"{row['accuracy_tolerant']:.2%}",
            f"{row['calls']:,}", f"{row['ms_per_item']:,.0f}", f"{row['n']:,}",
        )
        for name, row in rows
    ]  # fmt: skip
    return _table(("NumGLUE Task 2", "exact", "95 %", "within 0.5 %", "calls", "ms", "of"), body)


def _rows_of(parts: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return parts[name]["rows"] if name in parts else []


def _figure(row: dict[str, Any]) -> tuple[str, str]:
    value = row["value"] if "value" in row else row["share"]
    bounds, shown = row["interval"], "{:.3f}" if row.get("unit") == "AUC" else "{:.1%}"
    between = "–" if bounds is None else " to ".join(map(shown.format, bounds))
    return shown.format(value) if row.get("unit") == "AUC" else f"{value:.2%}", between


def _card() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(CARD.read_text(encoding="utf-8")) if CARD.is_file() else {}
    return found


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
