"""Replays of recorded texts of real models: calls found by the codecs, and the calculator's results for their calculations.

The recordings are not part of the project; without them nothing is measured, and the last results stay.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from benches.measure import ROOT, Subject, timed
from evals.recorded.replay import ReplayCounts, replay_rows
from taiwa.kernel.serialization import Json

FOLDER = ROOT.parent / "shared" / "data" / "replay_tools"
CORPORA = {
    "GSM8K, GPT-3": ("gsm8k_gpt3_calculator",),
    "ToRA": ("tora_tora-70b-v1.0_gsm8k", "tora_tora-code-34b-v1.0_gsm8k"),
    "ReAct, FEVER": ("react_fever_text-davinci-002",),
    "Reflexion": ("reflexion_react_hotpotqa",),
    "FireAct": ("fireact_ft-gpt-3.5_hotpotqa",),
    "tau-bench, native calls": ("taubench_gpt-4o_airline",),
}
FAIR = 4
"""Every fourth row of GSM8K's is a fair sample; the folder also holds every row with an anomaly."""


def main() -> None:
    if not FOLDER.is_dir():
        print(f"  no recordings at {FOLDER}: left out")
        return
    subject = Subject(
        "replays", "recorded texts of real models replayed, cut at tokens, at random and at every character"
    )
    for corpus, files in CORPORA.items():
        played(subject, corpus, [row for name in files for row in rows(FOLDER / f"{name}.jsonl")])
    subject.write()


def played(subject: Subject, corpus: str, given: list[Mapping[str, Json]]) -> None:
    tallies = list[ReplayCounts]()
    taken = timed(lambda: tallies.append(replay_rows(given)))
    (tally,) = tallies
    counted(subject, corpus, tally)
    if tally.calculated > 1_000:
        calculated(subject, corpus, tally, replay_rows(row for row in given if int(str(row["row"])) % FAIR == 0))
    subject.row(f"{corpus}: time per text, cut in three ways", taken / tally.texts * 1e3, "ms")


def rows(path: Path) -> Iterator[Mapping[str, Json]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def counted(subject: Subject, corpus: str, tally: ReplayCounts) -> None:
    subject.row(f"{corpus}: texts", tally.texts, "")
    odd = ", ".join(f"{count} {name}" for name, count in tally.hazards.items())
    subject.row(f"{corpus}: calls", tally.calls, "", odd)
    subject.target(f"{corpus}: differences", len(tally.mismatches), 0, "")


def calculated(subject: Subject, corpus: str, tally: ReplayCounts, fair: ReplayCounts) -> None:
    listed = {
        kind: [each for each in tally.sums if each.agreement == kind] for kind in ("refused", "differs", "unreadable")
    }
    subject.row(f"{corpus}: calculations", tally.calculated, "")
    for kind, found in listed.items():
        subject.row(
            f"{corpus}: {kind}", len(found), "", "; ".join(f"{each.expression}={each.recorded}" for each in found)
        )
    subject.row(f"{corpus}: calculations in every fourth row", fair.calculated, "")
    subject.target(f"{corpus}: refused in every fourth row", (1 - fair.parsed) * 100, 0.2, "%")
