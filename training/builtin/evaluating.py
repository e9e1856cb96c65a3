"""Evaluation of a trained model through the command line, on data that we did not write.

Each part is a `taiwa eval …` or `python -m evals …` command in a process with one thread. An interrupted part resumes: its rows
are stored under a digest of the package, so rows of other weights or other code are never reused. Parts whose data is missing are
skipped, and the result says so.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from taiwa.evals.report import Proportion, parse_number
from taiwa.evals.run import program_version
from training.builtin.headline import ALL_TOOLS
from training.builtin.unknown import refused, write

__all__ = ["Part", "Plan", "digest_of", "evaluate", "parts"]

Found: TypeAlias = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "taiwa"
KEY = Path(__file__).with_name("keys") / "coffee_shop.yaml"
OUTSIDE = Path(__file__).with_name("keys") / "outside.jsonl"
"""Questions written by hand, with words and kinds that no generator draws; 74 of them have no answer."""
EVERYDAY = OUTSIDE.with_name("everyday.jsonl")
"""The same for everyday quantities in three languages: 60 questions with an answer and 40 without."""
TOOLS = "calculator,stoichiometry,molar_mass,unit_conversion"
CARD = "card.json"
LEFT_OUT = frozenset(
    "requests input_tokens cached_tokens output_tokens tokens_at_most cost cost_at_most wall_ms shots mode order tools memo "
    "faithful_next faithful_used faithful_last faithful_next_of faithful_last_of false_stops why ways".split()
)
"""Members of a report that the result omits."""
CALL = re.compile(r"<<[^<>:\n]{1,64}:(?:(?!<<).)*?>>")
MALFORMED = frozenset({"bad_arguments", "unknown_tool"})
"""Errors that mean a malformed call."""
DONE = frozenset({0, 1})
"""Exit codes of an evaluation that wrote its report; 1 means that some rows failed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to evaluate: model, working folder, shared data, size of each set, and time limit of a part."""

    folder: Path
    data: Path
    model: str = "builtin"
    limit: int = 300
    dialogues: int = 100
    unknown: int = 200
    seconds: float = 900
    only: frozenset[str] = frozenset()

    @property
    def work(self) -> Path:
        """Return the folder with the rows of this state of the package."""
        return self.folder / "evaluation" / digest_of(PACKAGE)[:12]


@dataclass(frozen=True, slots=True)
class Part:
    """One evaluation: its arguments, its input files, and a short description."""

    name: str
    about: str
    words: tuple[str, ...]
    needs: tuple[Path, ...]
    passed: tuple[str, ...] = field(default=())

    def missing(self) -> str:
        """Return the first missing file, or ""."""
        return next((path.name for path in self.needs if not path.is_file()), "")


def digest_of(package: Path) -> str:
    """Return a digest of everything that can change an answer: all files of the package except the card."""
    total = sha256()
    for path in sorted(package.rglob("*")):
        if (
            path.is_file()
            and path.suffix in {".py", ".md", ".json", ".safetensors", ".lark", ".tsv"}
            and path.name != CARD
        ):
            total.update(f"{path.relative_to(package)}\n".encode())
            total.update(sha256(path.read_bytes()).digest())
    return total.hexdigest()


def parts(plan: Plan) -> Iterator[Part]:
    """Return all evaluations, most informative first."""
    limit, dialogues = str(plan.limit), str(plan.dialogues)
    numglue, chemistry = plan.data / "numglue_task2.jsonl", plan.data / "chemistry.jsonl"
    orders, rag = plan.data / "typechat_inputs.jsonl", plan.data / "rag"
    one = ("--shots", "0", "--limit", limit)
    yield Part(
        "numglue", "NumGLUE Task 2, all tools and each alone", ("reason", "--data", str(numglue), *one),
        (numglue,), ("--tools-on", "all,cal,crp,mml", "--weights", "integer"),
    )  # fmt: skip
    yield Part(
        # Without tools the prompt of the evaluation differs, and the model does not read examples.
        "numglue, no tool", "the same, and the model writes all results",
        ("reason", "--data", str(numglue), "--shots", "1", "--limit", limit), (numglue,),
        ("--tools-on", "none", "--weights", "integer"),
    )  # fmt: skip
    yield Part(
        "chemistry", "exercises of textbooks whose answer is a number", ("reason", "--data", str(chemistry), *one),
        (chemistry,), ("--tools-on", "all", "--weights", "iupac", "--only", ",".join(_numbered(chemistry)) or "none"),
    )  # fmt: skip
    yield Part(
        "orders", "requests at a coffee shop", ("order", "--data", str(orders), "--key", str(KEY)),
        (orders, KEY), ("--only", "coffeeShop", "--limit", limit),
    )  # fmt: skip
    unknown = plan.work / "unknown.jsonl"
    yield Part(
        "unknown compounds", "made-up names: is it said that the formula is not known?",
        ("reason", "--data", str(unknown), "--shots", "0", "--tools-on", "all"), (unknown,),
    )  # fmt: skip
    yield Part(
        "outside", "everyday questions in other words, and ones that cannot be answered: right or silent?",
        ("reason", "--data", str(OUTSIDE), "--shots", "0", "--tools-on", "all", "--tools", TOOLS), (OUTSIDE,),
    )  # fmt: skip
    yield Part(
        "everyday", "prices, units, times and solutions in three languages, and what cannot be answered: right or silent?",
        ("reason", "--data", str(EVERYDAY), "--shots", "0", "--tools-on", "all", "--tools", TOOLS), (EVERYDAY,),
    )  # fmt: skip
    sets = [rag / f"{name}.jsonl" for name in ("qulac", "abg_coqa", "pacific")]
    yield Part(
        "asking back", "when to ask back, in recorded dialogues",
        ("clarify", *(word for path in sets for word in ("--data", str(path))), "--limit", dialogues),
        tuple(sets), ("--policies", "look_first,article"),
    )  # fmt: skip


def _numbered(path: Path) -> Sequence[str]:
    """The kinds of exercises with numeric answers; balanced equations come from the tool itself."""
    if not path.is_file():
        return ()
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return sorted(
        {str(row["kind"]) for row in rows}
        - {str(row["kind"]) for row in rows if parse_number(str(row["gold"])) is None}
    )


def evaluate(plan: Plan) -> Found:
    """Run or resume all parts, and return the content of `evaluation.json`."""
    plan.work.mkdir(parents=True, exist_ok=True)
    write(plan.work / "unknown.jsonl", plan.unknown)
    path = plan.folder / "evaluation.json"
    found: Found = {
        "model": plan.model, "date": datetime.now(UTC).isoformat(timespec="seconds"), "program": program_version(),
        "state": plan.work.name, "parts": {}, "left_out": {},
    }  # fmt: skip
    before: Found = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    if all(before.get(name) == found[name] for name in ("model", "state")):
        found |= {name: before[name] for name in ("parts", "left_out")}
    for part in parts(plan):
        if plan.only and part.name not in plan.only:
            continue
        missing = part.missing()
        result = {"error": f"there is no {missing} here"} if missing else _run(plan, part)
        if "error" in result:
            found["left_out"][part.name] = result["error"]
            print(f"{part.name}: left out: {result['error']}", flush=True)
            continue
        found["parts"][part.name] = result
        found["left_out"].pop(part.name, None)
        print(f"{part.name}: {result['seconds']:.0f} s", flush=True)
    found["refusals"] = _refusals(plan.work / "unknown compounds")
    found["validity"] = _validity(plan.work)
    found["confidence"] = _confidence(plan.work)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return found


def _run(plan: Plan, part: Part) -> Found:
    """Run one part; an error is returned as one line."""
    program = ("taiwa", "eval") if part.words[0] == "reason" else ("evals",)
    words = [*program[1:], *part.words, *part.passed, "--model", plan.model]
    command = [sys.executable, "-m", program[0], *words, "-j", "1", "--json", "--out", str(plan.work / part.name)]
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TAIWA_STORE": str(plan.work / "store.db")}
    alone["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))  # for evals/
    since = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=plan.seconds, check=False, env={**os.environ, **alone}
        )
    except subprocess.TimeoutExpired:
        return {"error": f"it took more than {plan.seconds:.0f} s; the same step goes on with it"}
    if done.returncode not in DONE or not done.stdout.strip():
        return {"error": (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:300]}
    result: Found = json.loads(done.stdout.splitlines()[-1])
    rows = [{name: each for name, each in row.items() if name not in LEFT_OUT} for row in result["rows"]]
    command_line = " ".join(
        ["taiwa" if program[0] == "taiwa" else "python -m evals", *(_plain(plan, word) for word in words)]
    )
    return {
        "about": part.about, "command": command_line, "seconds": round(time.monotonic() - since, 1),
        "data_hash": result["data_hash"], "failed": result["failed"], "stopped": result["stopped"], "rows": rows,
    }  # fmt: skip


def _plain(plan: Plan, word: str) -> str:
    """Return a word of a command without local paths."""
    for folder in (plan.data, plan.work, KEY.parent):
        word = word.replace(f"{folder}/", "")
    return word


def _rows(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Return the newest row of each setting and item."""
    path = folder / "rows.jsonl"
    if not path.is_file():
        return
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if "setting" in row:
            found[row["setting"], row["id"]] = row
    yield from found.values()


def _refusals(folder: Path) -> Found | None:
    """Return how often the model recognises a made-up compound as unknown, and how often it gives a number anyway."""
    rows = [row["found"] for row in _rows(folder)]
    if not rows:
        return None
    honest = sum(refused(str(row.get("text", "")), str(row.get("answer", ""))) for row in rows)
    return {
        "refused": _shared(honest, len(rows)),
        "number": _shared(sum(bool(row.get("answer")) for row in rows), len(rows)),
    }


def _confidence(work: Path) -> Found:
    """Return per set the number of answered questions, and of answers within 0.5 % of the correct value."""
    found: Found = {}
    for name in ("numglue", "chemistry", "outside", "everyday", "unknown compounds"):
        kinds: dict[str, list[Mapping[str, Any]]] = {}
        for row in _rows(work / name):
            if row["setting"] == ALL_TOOLS and row["error"] is None:
                is_unknown = str(row["found"]["gold"]) == "unknown"
                kinds.setdefault(f"{name}: unanswerable" if is_unknown else name, []).append(row["found"])
        for kind, rows in kinds.items():
            answered = [row for row in rows if row["answer"]]
            found[kind] = {
                "answered": _shared(len(answered), len(rows)),
                "right": _shared(sum(row["near"] for row in answered), len(answered)),
            }
    return found


def _validity(work: Path) -> Found | None:
    """Return the share of well-formed answers."""
    counts: dict[str, list[int]] = {}
    for folder in sorted(path for path in work.iterdir() if path.is_dir()):
        for row in _rows(folder):
            if row["requests"]:
                sound = counts.setdefault(folder.name, [0, 0])
                sound[0] += row["error"] is None and _sound(row["found"])
                sound[1] += 1
    if not counts:
        return None
    whole = _shared(sum(good for good, _ in counts.values()), sum(all_ for _, all_ in counts.values()))
    return {"all": whole, "parts": {name: _shared(*each) for name, each in counts.items()}}


def _sound(found: Mapping[str, Any]) -> bool:
    """Return true for a complete rationale with parsable calls, a reply with a valid delta, or any row of scores or queries."""
    if "ending" in found:
        stray = any(mark in CALL.sub("", found["text"]) for mark in ("<<", ">>"))
        return found["ending"] in ("end", "unsure") and not stray and not MALFORMED & {*found["tool_errors"]}
    return found.get("sound", True) is True


def _shared(count: int, of: int) -> Found:
    share = Proportion(count, of)
    return {"count": count, "of": of, "share": share.share, "interval": share.interval and [*share.interval]}
