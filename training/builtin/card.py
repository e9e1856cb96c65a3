"""The model card, built from the outputs of the other steps."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

from taiwa.evals.report import Proportion
from taiwa.safetensors_file import read_header
from training.builtin.headline import headline
from training.builtin.origin import FILE, program

__all__ = ["FORMAT", "card_of", "size_of", "training_of", "write"]

FORMAT = 1
Found: TypeAlias = dict[str, Any]
BENCH = Path(__file__).resolve().parents[2] / "benches" / "results" / "builtin.json"
MOST_POINTS = 80
LIMITS = (
    "It does what it was trained for and nothing else: quantities and chemistry with tools, the order desk, and the questions"
    " before a look-up. Everything else is refused in words.",
    "It reads at most 1,200 characters of a question, of a longer one the end.",
    "Chemistry and stories with numbers are asked in English; units and everyday sums also in Japanese and Chinese, the order desk also"
    " in Japanese.",
    "It learned from texts that a program wrote. How well it does on words that people wrote is what the evaluations show,"
    " and it is less than on held-out texts of that program.",
    "A substance whose English name is not in its table of about 1,600 is refused; how often a number is given all the same was measured.",
    "The scores of a dialogue are those that its generator gives to a scene, such as a bare topic or a plan; people who judge differ more.",
    "It has no knowledge of the world, and gives none.",
)


def write(folder: Path, shipped: Path) -> Found:
    """Write the model card beside the weights. Parts that no step has produced again are copied from the existing card.

    Raises:
        OSError: the training left no output to describe.
    """
    card = card_of(folder, shipped)
    before = _read(shipped / "card.json") or {}
    if not card["made"]:  # the model was not trained again
        kept = ("made", "data", "training") if card["held_out"] else ("made", "data", "training", "held_out")
        card |= {name: before[name] for name in kept if name in before}
        card["headline"] = headline(card["held_out"], card["evaluation"])
    (shipped / "card.json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return card


def card_of(folder: Path, shipped: Path) -> Found:
    """Build the card as a JSON object."""
    held_out = _held_out(_read(folder / "held_out.json") or {})
    evaluation = _read(folder / "evaluation.json")
    return {
        "format": FORMAT,
        "name": "builtin",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "written_by": dict(program()),
        "made": _read(folder / FILE) or [],
        "size": size_of(shipped),
        "data": _data(),
        "training": training_of(_lines(folder / "log.jsonl")),
        "headline": headline(held_out, evaluation),
        "held_out": held_out,
        "evaluation": evaluation,
        "speed": _speed(_read(BENCH)),
        "limits": [*LIMITS],
    }


def size_of(shipped: Path) -> Found:
    """Return the header of the weights and the file sizes."""
    path = shipped / "weights.safetensors"
    header = read_header(path)
    config = json.loads(header.metadata["config"])
    table = json.loads((shipped / "vocabulary.json").read_text("utf-8"))
    parameters = sum(prod(info.shape) for info in header.tensors.values())
    return {
        "parameters": parameters, "bytes": path.stat().st_size, "pieces": len(table["pieces"]), **config,
    }  # fmt: skip


def training_of(log: Sequence[Mapping[str, Any]]) -> Found:
    """Return the last entry of the log and a thinned learning curve."""
    if not log:
        return {"curve": []}
    last = log[-1]
    step = max(1, len(log) // MOST_POINTS)
    points = [*log[::step], *([last] if (len(log) - 1) % step else [])]
    curve = [[row["minutes"], row["loss"], row["held_out"]] for row in points]
    kept = {name: last[name] for name in ("minutes", "steps", "tokens", "samples", "dropped", "loss", "held_out")}
    return {**kept, "curve": curve}


def _data() -> Found:
    """Return the share of samples by domain and kind."""
    from training.builtin.corpus import DOMAINS

    shares: Found = {}
    for name, (weight, kinds) in DOMAINS.items():
        whole = sum(share.weight for share in kinds.values())
        shares[name] = {
            "share": weight, "kinds": {kind: round(weight * share.weight / whole, 5) for kind, share in kinds.items()},
        }  # fmt: skip
    return {"shares": shares}


def _held_out(table: Mapping[str, Mapping[str, tuple[int, int, int]]]) -> Found:
    """Return the exact-match and final-line rates on held-out samples by domain, task and kind, with confidence intervals."""
    found: Found = {
        domain: {kind: _counted(*counts) for kind, counts in kinds.items() if counts[1]}
        for domain, kinds in table.items()
    }
    every = [kinds["all"] for kinds in table.values() if "all" in kinds]
    if every:
        found["all"] = {"all": _counted(*map(sum, zip(*every, strict=True)))}
    return found


def _counted(exact: int, of: int, right: int) -> Found:
    """Return one measured rate."""
    return {"exact": exact, "right": right, "of": of, "share": exact / of, "interval": _interval(exact, of)}


def _interval(count: int, of: int) -> list[float] | None:
    bounds = Proportion(count, of).interval
    return None if bounds is None else [round(bound, 6) for bound in bounds]


def _speed(bench: Found | None) -> Found | None:
    """Return the results of the model benchmark and their conditions."""
    if bench is None:
        return None
    rows = [
        {"name": row["what"], "value": row["value"], "unit": row["unit"], "note": row["note"]}
        | ({"tokens_a_second": row["value"]} if row["unit"].startswith("token") else {})
        for row in bench["rows"]
    ]
    return {"rows": rows, **{name: bench[name] for name in ("machine", "date", "commit", "load") if name in bench}}


def _read(path: Path) -> Any:  # noqa: ANN401  (whatever a step left)
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def _lines(path: Path) -> list[Found]:
    return [*_rows(path)] if path.is_file() else []


def _rows(path: Path) -> Iterator[Found]:
    """Read the rows of a log, ignoring a partial last line."""
    for line in path.read_text("utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue
