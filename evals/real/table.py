"""All evaluations of a real model in one run, their results as JSON, and the tables of the documents from them."""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from evals.dialogue.corpora import read_corpora
from evals.real import answer, constrain, extract, solve, state, turn
from evals.real.task import IN_PROCESS, TAIWA, RealModel, RealTask, conditions, open_real_model
from taiwa.cli.options import CommonOptions
from taiwa.cli.output import print_json, print_line, print_notice, progress_bar
from taiwa.evals.data import DataSet
from taiwa.evals.report import Line, SetReport, set_report
from taiwa.evals.retrieval import Corpora
from taiwa.evals.run import Evaluation, RunOptions
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json

RESULTS = Path(__file__).parents[1] / "results" / "real"
CONDITIONS = ("date", "threads", "context", "cores", "machine", "load", "versions")
"""What can differ between the evaluations of one model."""
BUNDLED_HANDBOOK = Path("taiwa:handbook")


@dataclass(frozen=True, slots=True)
class Planned:
    """One evaluation of the run: its data, its task, its ways, and how it is reported.

    Ways that take long and say little are left to the evaluation itself: all of them together are half an hour of a small model.
    """

    data: DataSet
    task: Callable[[RealModel, tuple[str, ...]], RealTask]
    ways: tuple[str, ...]
    form: SetReport
    close: Callable[[], None] = lambda: None


def _extract(folder: Path, limit: int, seed: int) -> Planned:
    paths = [folder / "typechat_inputs.jsonl", folder / "typechat_schemas.jsonl"]
    return Planned(
        extract.read_requests(paths, limit, seed), lambda real, ways: extract.ExtractTask(real=real, settings=ways),
        (TAIWA, "openai", "pydantic-ai", IN_PROCESS), extract.REPORT,
    )  # fmt: skip


def _state(folder: Path, limit: int, seed: int) -> Planned:
    paths = [folder / "state" / "sgd.jsonl", folder / "state" / "crosswoz.jsonl"]
    return Planned(
        state.read_dialogues(paths, limit, seed), lambda real, ways: state.StateTask(real=real, settings=ways),
        (TAIWA, "openai", IN_PROCESS), state.REPORT,
    )  # fmt: skip


def _solve(folder: Path, limit: int, seed: int) -> Planned:
    paths = [folder / "numglue_task2.jsonl", folder / "chemistry.jsonl"]
    return Planned(
        solve.read_problems(paths, limit, seed), lambda real, ways: solve.SolveTask(real=real, settings=ways),
        (*solve.DEFAULT_WAYS, IN_PROCESS), solve.REPORT,
    )  # fmt: skip


def _answer(folder: Path, limit: int, seed: int) -> Planned:
    sets = read_corpora(
        [BUNDLED_HANDBOOK, folder / "rag" / "mtrag_tasks.jsonl", folder / "rag" / "jsquad_questions.jsonl"]
    )
    corpora = Corpora.of(sets)
    return Planned(
        answer.answer_data(sets, limit, seed),
        lambda real, ways: answer.AnswerTask(real=real, settings=ways, corpora=corpora),
        (*answer.DEFAULT_WAYS, IN_PROCESS), answer.REPORT, corpora.close,
    )  # fmt: skip


def _constrain(folder: Path, limit: int, seed: int) -> Planned:
    paths = [folder / "maskbench.jsonl", constrain.BUNDLED]
    return Planned(
        constrain.read_constraints(paths, limit, seed),
        lambda real, ways: constrain.ConstrainTask(real=real, settings=ways), (*constrain.DEFAULT_WAYS, IN_PROCESS), constrain.REPORT,
    )  # fmt: skip


def _turn(_: Path, limit: int, seed: int) -> Planned:
    found = turn.read_desks(turn.BUNDLED, limit, seed)
    return Planned(
        found, lambda real, ways: turn.TurnTask(real=real, settings=ways, corpora=turn.corpora_of(found.items)),
        (*turn.DEFAULT_WAYS, IN_PROCESS), turn.REPORT,
    )  # fmt: skip


PLAN = {
    "extract": _extract, "state": _state, "solve": _solve, "answer": _answer, "constrain": _constrain, "turn": _turn,
}  # fmt: skip
FORMS = {
    "extract": extract.REPORT, "state": state.REPORT, "solve": solve.REPORT, "answer": answer.REPORT, "constrain": constrain.REPORT,
    "turn": turn.REPORT,
}  # fmt: skip


def measure_all(common: CommonOptions, given: dict[str, Any]) -> None:
    """Run all evaluations one after the other, and write their results after each.

    Raises:
        TaiwaError: data or model cannot be used; what was measured is kept, and the same command continues.
    """
    names = tuple(name for name in (given["only"] or ",".join(PLAN)).split(",") if name)
    if unknown := next((name for name in names if name not in PLAN), None):
        raise InputError(f"--only: unknown evaluation {unknown!r}; choose among {', '.join(PLAN)}")
    settings, folder = common.settings(), given["out"]
    with open_real_model(
        settings, threads=given["threads"], max_tokens=given["max_tokens"], seed=given["seed"]
    ) as real:
        stem = real.name.replace("/", "-").removesuffix(".gguf")
        path = folder / f"{stem}.json"
        found: dict[str, Json] = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"), "limit": given["limit"], **conditions(real), "evaluations": {},
        }  # fmt: skip
        if path.exists():  # what --only leaves out stays, with the conditions under which it was measured
            before = json.loads(path.read_text(encoding="utf-8"))
            if all(before[name] == found[name] for name in ("limit", "model_sha256", "seed", "max_tokens")):
                measured = {"conditions": {name: before[name] for name in CONDITIONS}}
                found["evaluations"] = {name: measured | report for name, report in before["evaluations"].items()}
        for name in names:
            planned = PLAN[name](given["data"], given["limit"], given["seed"])
            try:
                options = RunOptions(1, settings.limits.cost, folder / stem / name)
                with closing(planned.task(real, _usable(planned.ways, real))) as task:
                    report = _run(planned, task, options, quiet=common.as_json)
            finally:
                planned.close()
            cast("dict[str, Json]", found["evaluations"])[name] = report
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{json.dumps(found, ensure_ascii=False, indent=1)}\n", encoding="utf-8")
            path.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    if common.as_json:
        print_json(found)
        return
    print_line(markdown(found))
    print_notice(f"written: {path}")


def _usable(ways: tuple[str, ...], real: RealModel) -> tuple[str, ...]:
    """Return the ways that a model has: others need its server, and the loop in this process its file."""
    return tuple(
        way for way in ways
        if (way.startswith(TAIWA) or real.endpoint is not None) and (way != IN_PROCESS or real.file is not None)
    )  # fmt: skip


def _run(planned: Planned, task: RealTask, options: RunOptions, *, quiet: bool) -> dict[str, Json]:
    with Evaluation(task, planned.data, options) as evaluation:
        if not quiet:
            print_notice(f"{task.name}: {evaluation.left} rows")
        with progress_bar(evaluation.left) as update:

            async def run() -> None:
                async with aclosing(evaluation.run()) as rows:
                    async for row in rows:
                        update(advance=1, description=f"{task.name}, {row.setting}")

            asyncio.run(run())
        return set_report(evaluation, planned.form).to_json()


def read_results(folder: Path = RESULTS) -> list[dict[str, Json]]:
    """Return the results of all models."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def markdown(found: dict[str, Json]) -> str:
    """Return the tables of one model."""
    lines = [
        f"## {found['model']}", "",
        f"SHA-256 {str(found['model_sha256'])[:16]}… · {found['max_tokens']} tokens per call, temperature 0, seed {found['seed']}",
    ]  # fmt: skip
    for name, report in cast("dict[str, dict[str, Any]]", found["evaluations"]).items():
        lines += [
            "",
            f"### {name}",
            "",
            _conditions(report.get("conditions", found)),
            "",
            *_table(FORMS[name], report["rows"]),
            "",
            *(f"- {note}" for note in report["notes"]),
        ]
    return "\n".join([*lines, ""])


def _conditions(measured: dict[str, Any]) -> str:
    parts = [f"{name} {version}" for name, version in measured["versions"].items() if version]
    load = ", ".join(map(str, measured["load"]))
    return (
        f"{measured['date'][:10]} · {measured['threads']} threads of {measured['cores']} cores, load {load} at the start · "
        f"context {measured['context']} · {', '.join(parts)}"
    )


def _table(form: SetReport, rows: Sequence[Line]) -> list[str]:
    columns = form.columns
    heads = [column.head for column in columns]
    body = [
        heads,
        ["---", "---", *("---:" for _ in heads[2:])],
        *([column.show(row) for column in columns] for row in rows),
    ]
    return [f"| {' | '.join(line)} |" for line in body]
