"""`taiwa eval`: measure tools, models and retrieval on known answers."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.extract import MODES
from taiwa.cli.options import CommonOptions, Group, common_options, filled_by_options, option
from taiwa.cli.output import (
    bill_line,
    print_item,
    print_json,
    print_line,
    print_notice,
    print_skipped,
    progress_bar,
    progress_text,
    table,
)
from taiwa.cli.solve import TOOL_FORMATS, answer_by_option, on_error_option, tool_mode_option
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import ConfigError, InputError, LimitError, file_errors
from taiwa.kernel.serialization import Json, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taiwa.evals.data import DataSet, Item, Skipped
    from taiwa.evals.reasoning import Grid, ReasoningTask
    from taiwa.evals.report import Chart, Report
    from taiwa.evals.retrieval import Corpora, QuestionSet
    from taiwa.evals.run import Evaluation, RunOptions
    from taiwa.kernel.messages import Request
    from taiwa.settings import Settings

FAILED, INTERRUPTED = 1, 130
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
PATH = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """The options of every evaluation that writes rows."""

    width: int = option("-j", type=click.IntRange(1, 256), default=4, show_default=True, help="Rows at a time.")
    ray: str | None = option("--ray", metavar="ADDRESS", help="Run on Ray: local, local:N or ray://HOST:PORT.")
    out: Path | None = option(
        "--out", type=FOLDER, metavar="DIR", help="Write rows, table and chart to DIR; continue its rows."
    )
    resume: bool = option("--resume", is_flag=True, help="Require DIR to hold rows of this evaluation.")
    limit: int | None = option("--limit", type=click.IntRange(1), metavar="N", help="Use the first N questions only.")
    only: str | None = option(
        "--only", metavar="KINDS", help="Use questions of these types, classes or sets only (comma-separated)."
    )
    strict: bool = option("--strict", is_flag=True, help="Stop at a row of another form instead of skipping it.")

    @property
    def kinds(self) -> frozenset[str]:
        """The types, classes or sets of `only`."""
        return frozenset(split_names(self.only))

    def skipped(self) -> "Skipped":
        """Return the list that collects messages about rows of another form; None if the first one stops."""
        return None if self.strict else []

    def to_run(self, common: CommonOptions) -> "RunOptions":
        """Return the options of the run.

        Raises:
            InputError: an option cannot be used.
        """
        from taiwa.evals.run import RunOptions, parse_ray_address, start_workers

        workers = None if self.ray is None else partial(start_workers, address=parse_ray_address(self.ray))
        return RunOptions(self.width, common.settings().limits.cost, self.out, self.resume, workers)


run_options = filled_by_options(EvalOptions, tuple(each.name for each in fields(EvalOptions)), {})
"""Add the options of every evaluation that writes rows to a command, which gets them as its first argument."""


def split_names(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated option into unique names."""
    return tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))


@click.group("eval", cls=Group)
def eval_() -> None:
    """Measure tools, models and retrieval on questions with known answers.

    \b
    taiwa eval reason --data questions.jsonl -m ollama:qwen3 --out runs/qwen3
    taiwa eval extract shop:Order --data orders.jsonl -m ollama:qwen3
    taiwa eval retrieve --data questions.jsonl --passages ~/handbook
    """


@eval_.command("reason", short_help="Measure how well a model reasons with and without tools.")
@click.option("--data", type=FILE, required=True, metavar="FILE", help="Questions: NumGLUE, GSM8K, or JSON lines.")
@click.option("--shots", metavar="COUNTS", help="Numbers of worked examples, such as 0,5,10,20.")
@click.option("--tools-on", "ablate", metavar="TOOLS", help="Enabled tools: none, cal, crp, mml, cal+mml, …, all.")
@click.option("--mode", default="execution", metavar="MODES", help="How tools are disabled: execution, exposure.")
@click.option(
    "--seeds", "orders", type=click.IntRange(1, 20), default=1, show_default=True, help="Orders of the examples."
)
@click.option(
    "--tools", default="calculator,stoichiometry,molar_mass", metavar="NAMES", help="The tools that `all` stands for."
)
@click.option(
    "--tool-format",
    type=click.Choice(TOOL_FORMATS[:-1]),
    default="tagged",
    show_default=True,
    help="Format of tool calls.",
)
@tool_mode_option
@click.option(
    "--weights", type=click.Choice(("auto", "integer", "iupac")), default="auto", show_default=True,
    help="Atomic weights; auto is integer for NumGLUE.",
)  # fmt: skip
@on_error_option
@answer_by_option
@click.option("--examples", type=FILE, metavar="FILE", help="Read the worked examples from FILE.")
@click.option(
    "--max-tool-calls", type=click.IntRange(0), default=10, show_default=True, help="Tool calls per question."
)
@click.option("--max-tokens", type=click.IntRange(1), default=2000, show_default=True, help="Tokens per rationale.")
@run_options
@common_options("model", "as_json", "verbose", "dry_run", "max_cost", "retry_paid")
def reason_(common: CommonOptions, options: EvalOptions, data: Path, **values: Any) -> None:  # noqa: ANN401  (click's)
    """Measure how well a model reasons with all tools, without tools, and with some of them, as MultiTool-CoT did.

    Without --shots and --tools-on the settings are those of the paper's two tables; with them, all combinations. In
    mode execution the prompt stays the same and the model writes the results of disabled tools; in mode exposure the
    prompt does not mention disabled tools.

    Each answer is written to DIR/rows.jsonl at once. After an interruption the same command continues and retries rows that
    failed. The exit code is 1 if a row failed or a limit was reached.

    \b
    taiwa eval reason --data numglue.json --only Type_2 --out run1
    taiwa eval reason --data numglue.json --only Type_2 --shots 0,5,10,20 --tools-on none,cal,crp,mml,all -j 16 --out run2
    taiwa eval reason --data numglue.json --mode execution,exposure --seeds 3 --max-cost 5 --out run3
    taiwa eval reason --data gsm8k.jsonl --shots 0,5 --tools-on none,all --limit 100 --json
    taiwa eval reason --data large.jsonl --ray ray://head:10001 -j 64 --out run4
    """
    from taiwa.evals.data import read_questions
    from taiwa.evals.reasoning import reasoning_chart, reasoning_report
    from taiwa.evals.run import Job

    found = read_questions(data, options.kinds, options.skipped())
    if not common.as_json:
        print_skipped(found.skipped)
    found = replace(found, items=found.items[: options.limit])
    grid, task = _reasoning(common, values, found)
    task.check()
    if not common.dry_run:
        notes = _reasoning_warnings(task, found)
        evaluate(
            common, options.to_run(common), task, found, lambda run: reasoning_report(run, grid, notes), reasoning_chart
        )
        return
    first = [(name, task.first_request(Job(name, found.items[0]))) for name in task.settings]
    count = len(found.items)
    from taiwa.operations.request_preview import request_text, request_tokens

    if common.as_json:
        rows: list[Json] = [
            {"setting": name, "tokens": request_tokens(one), "request": record(one)} for name, one in first
        ]
        print_json({"items": count, "rows": count * len(first), "skipped": [*found.skipped], "settings": rows})
        return
    body = [(name, f"{request_tokens(one):,}") for name, one in first]
    table(("setting", "tokens of the first request"), body, frozenset({1}))
    questions = ngettext("{n} question", "{n} questions", count)
    print_line(f"{questions}, " + ngettext("{n} row", "{n} rows", count * len(first)))
    if common.verbose:
        for name, one in first:
            print_line(f"\n{name}", "bold")
            print_line(request_text(one))


def _reasoning(common: CommonOptions, values: dict[str, Any], items: "DataSet") -> "tuple[Grid, ReasoningTask]":
    from taiwa.apps.examples import read_shots
    from taiwa.evals.reasoning import Grid, ReasoningOptions, ReasoningTask, parse_ablations, parse_modes, parse_shots
    from taiwa.flows.solve.rationale import SolveLimits
    from taiwa.tools.registry import builtin_tools

    tools = split_names(values["tools"])
    unknown = next((name for name in tools if name not in builtin_tools()), None)
    if unknown is not None or not tools:
        raise InputError(f"--tools: unknown tool {unknown or ''!r}; choose among {', '.join(builtin_tools())}")
    grid = Grid(
        tools, None if values["shots"] is None else parse_shots(values["shots"]),
        None if values["ablate"] is None else parse_ablations(values["ablate"], tools), parse_modes(values["mode"]),
        values["orders"],
    )  # fmt: skip
    weights: Any = values["weights"] if values["weights"] != "auto" else "integer" if items.numbered else "iupac"
    tool_mode: Any = None if values["tool_mode"] == "auto" else values["tool_mode"]
    chosen = ReasoningOptions(
        tools, values["tool_format"], tool_mode, weights, values["on_error"].replace("-", "_"),
        SolveLimits(values["max_tool_calls"], values["max_tokens"]),
        examples=None if values["examples"] is None else read_shots(values["examples"]),
        answer_by=("line", "prompt") if values["answer_by"] == "auto" else (values["answer_by"],),
    )  # fmt: skip
    return grid, ReasoningTask(chosen, grid.settings(), model_settings=common.settings())


def _reasoning_warnings(task: "ReasoningTask", items: "DataSet") -> "Sequence[str]":
    from taiwa.evals.report import parse_number

    def some(names: "Sequence[str]") -> str:
        return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")

    found: list[str] = []
    if same := task.overlap(items.items):
        found.append(
            ngettext(
                "{n} question is also a worked example ({some}): the prompt may contain its answer.",
                "{n} questions are also worked examples ({some}): the prompt may contain their answers.",
                len(same),
                some=some(same),
            )
        )
    if texts := [item.gold for item in items.items if parse_number(item.gold) is None]:
        found.append(
            ngettext(
                "{n} of {all} answers is not a number ({some}): only numbers are read from the model's text, so it is never right; choose types with --only.",
                "{n} of {all} answers are not numbers ({some}): only numbers are read from the model's text, so these are never right; choose types with --only.",
                len(texts),
                all=len(items.items),
                some=some(tuple(dict.fromkeys(texts))),
            )
        )
    return tuple(found)


@eval_.command("extract", short_help="Measure typed extraction from your own texts.")
@click.argument("target", metavar="TYPE")
@click.option("--data", type=FILE, required=True, metavar="FILE", help="Rows with text and expected.")
@click.option("--max-repairs", type=click.IntRange(0, 3), default=1, show_default=True, help="Repair rounds per text.")
@click.option("--mode", type=click.Choice(MODES), default="auto", show_default=True, help="How to request a type.")
@run_options
@common_options("model", "as_json", "verbose", "dry_run", "max_cost", "retry_paid")
def extract_(
    common: CommonOptions,
    options: EvalOptions,
    target: str,
    data: Path,
    max_repairs: int,
    mode: Any,  # noqa: ANN401  (click's)
) -> None:
    """Measure typed extraction from your own texts: exact matches, F1 of fields, and valid values.

    TYPE is module:Type, FILE.ts:Type, or a JSON Schema in a file that ends in .json. A row has text and the expected value as
    JSON; with a field kind, figures are reported for each kind.

    \b
    taiwa eval extract shop:Order --data orders.jsonl -m ollama:qwen3
    taiwa eval extract order.json --data orders.jsonl --mode prompt --out runs/order
    """
    from taiwa.apps.output_types import load_output_type
    from taiwa.evals.extraction import EXTRACTION_REPORT, ExtractionTask, read_extractions
    from taiwa.evals.report import set_chart, set_report
    from taiwa.evals.run import Job
    from taiwa.flows.extract import RepairPolicy

    found = read_extractions(data, options.kinds, options.skipped())
    found = replace(found, items=found.items[: options.limit])
    if not common.as_json:
        print_skipped(found.skipped)
    output_type, repair = load_output_type(target), RepairPolicy(max_repairs)
    task = ExtractionTask(output_type, repair, mode, model_settings=common.settings())
    if common.dry_run:
        preview_request(common, task.first_request(Job(task.settings[0], found.items[0])), len(found.items))
        return
    evaluate(
        common, options.to_run(common), task, found, lambda run: set_report(run, EXTRACTION_REPORT),
        lambda report: set_chart(report, EXTRACTION_REPORT),
    )  # fmt: skip


@eval_.command("retrieve", short_help="Measure the ranking quality and the latency of an index.")
@click.option("--data", type=FILE, required=True, multiple=True, metavar="FILE", help="Questions; each FILE is a set.")
@click.option(
    "--passages", type=PATH, multiple=True, metavar="PATH",
    help="Rows with id and text, or a folder; by default NAME_passages.jsonl next to the data.",
)  # fmt: skip
@click.option("--language", default="english", show_default=True, metavar="NAME", help="Language of the stemmer.")
@run_options
@common_options("as_json", "verbose", "dry_run")
def retrieve_(
    common: CommonOptions, options: EvalOptions, data: tuple[Path, ...], passages: tuple[Path, ...], language: str
) -> None:
    """Measure retrieval from an index: nDCG@5 and @10, recall, MRR, and milliseconds per question.

    A row has id, question and relevant, a list of passage ids. With history, a list of messages with role and content,
    the question is searched twice: alone, and with its history.

    \b
    taiwa eval retrieve --data questions.jsonl
    taiwa eval retrieve --data questions.jsonl --passages passages.jsonl --json
    taiwa eval retrieve --data questions.jsonl --passages ~/handbook
    """
    from taiwa.evals.report import set_chart
    from taiwa.evals.retrieval import (
        RETRIEVAL_REPORT,
        RetrievalTask,
        read_question_sets,
        read_sample,
        retrieval_items,
        retrieval_report,
    )

    def task(corpora: "Corpora", _: "Settings | None", items: "Sequence[Item]") -> RetrievalTask:
        return RetrievalTask(corpora, dialogues=any(read_sample(item).history for item in items))

    evaluate_sets(
        common, options, read_question_sets(data, passages, only=split_names(options.only), strict=options.strict), language,
        SetEvaluation(
            retrieval_items, task, "names a passage that answers", retrieval_report,
            lambda report: set_chart(report, RETRIEVAL_REPORT),
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SetEvaluation:
    """An evaluation over sets of questions: its items, its task, the fields of a usable row, its report and its chart."""

    items: "Callable[[Sequence[QuestionSet]], tuple[Item, ...]]"
    task: "Callable[[Corpora, Settings | None, Sequence[Item]], Any]"
    usable: str
    report: "Callable[[Evaluation, Sequence[str]], Report]"
    chart: "Callable[[Report], Chart]"


def evaluate_sets(
    common: CommonOptions, options: EvalOptions, sets: "tuple[QuestionSet, ...]", language: str, form: SetEvaluation
) -> None:
    """Run and report an evaluation over sets; a model is used only if it is named on the command line.

    Raises:
        InputError: a set has no usable row.
    """
    from taiwa.evals.data import DataSet
    from taiwa.evals.retrieval import Corpora, digest_of_sets

    names, only = [one.name for one in sets], split_names(options.only)
    if unknown := next((name for name in only if name not in names), None):
        raise InputError(f"--only: unknown set {unknown!r}; choose among {', '.join(names)}")
    kept: list[Item] = []
    for one in sets:
        if not only or one.name in only:
            found = form.items((one,))
            if not found:
                raise InputError(f"{one.name}: no row {form.usable} (read as {one.format})")
            kept += found[: options.limit]
    skipped = tuple(line for one in sets if not only or one.name in only for line in one.skipped)
    data = DataSet(", ".join(names), digest_of_sets(sets), tuple(kept), skipped=skipped)
    if not common.as_json:
        print_skipped(skipped)
    corpora = Corpora.of(sets, language)
    task = form.task(corpora, common.settings() if common.model else None, data.items)
    if not common.dry_run:
        notes = [note for one in sets for note in one.notes]
        try:
            evaluate(common, options.to_run(common), task, data, lambda run: form.report(run, notes), form.chart)
        finally:
            corpora.close()
        return
    counts, rows = Counter(item.kind for item in data.items), len(data.items) * len(task.settings)
    if common.as_json:
        print_json({
            "settings": [*task.settings], "rows": rows, "skipped": [*skipped],
            "sets": [
                {"set": one.name, "format": one.format, "n": counts[one.name], "passages": len(one.passages)} for one in sets
            ],
        })  # fmt: skip
        return
    body = [(one.name, one.format, f"{counts[one.name]:,}", f"{len(one.passages):,}") for one in sets]
    table(("set", "format", "n", "passages"), body, frozenset({2, 3}))
    print_line(f"settings: {', '.join(task.settings)}")
    print_line(ngettext("{n} turn", "{n} turns", len(data.items)) + ", " + ngettext("{n} row", "{n} rows", rows))


def preview_request(common: CommonOptions, first: "Request", count: int) -> None:
    """Print the first request and the number of rows; nothing is sent."""
    from taiwa.operations.request_preview import request_text, request_tokens

    tokens = request_tokens(first)
    line = ngettext(
        "{n} request, the first of {tokens} tokens", "{n} requests, the first of {tokens} tokens", count, tokens=f"{tokens:,}"
    )  # fmt: skip
    print_item({"rows": count, "tokens": tokens, "request": record(first)}, line, as_json=common.as_json)
    if common.verbose and not common.as_json:
        print_line(request_text(first))


def evaluate(
    common: CommonOptions,
    options: "RunOptions",
    task: Any,  # noqa: ANN401  (a Task; a protocol with properties would refuse dataclass fields)
    data: "DataSet",
    report_of: "Callable[[Evaluation], Report]",
    chart_of: "Callable[[Report], Chart]",
) -> None:
    """Run an evaluation, print its report, write its files, and exit with 1 or 130 if it did not complete.

    Raises:
        TaiwaError: every row would fail.
        Exit: the evaluation did not complete, or a row failed.
    """
    import asyncio

    from taiwa.evals.report import table_cells
    from taiwa.evals.run import Evaluation, UnansweredError

    why, code = "", 0
    with Evaluation(task, data, options) as evaluation:
        if evaluation.kept and not common.as_json:
            print_notice(
                ngettext(
                    "{n} row is already finished, {left} remain",
                    "{n} rows are already finished, {left} remain",
                    evaluation.kept,
                    left=f"{evaluation.left:,}",
                )
            )
        with progress_bar(evaluation.left) as update:

            async def run() -> None:
                async with aclosing(evaluation.run()) as rows:
                    failed = 0
                    async for row in rows:
                        failed += row.error is not None
                        update(advance=1, description=progress_text(row.setting, failed, evaluation.spent.max_cost))

            try:
                asyncio.run(run())
            except KeyboardInterrupt:
                why, code = _("interrupted"), INTERRUPTED
            except UnansweredError as error:
                why, code = error.message, FAILED
            except LimitError as error:
                why, code = _("the cost limit was reached ({why})", why=error.message), FAILED
        if common.verbose and task.model:
            print_notice(bill_line(evaluation.spent))
        report = report_of(evaluation)
        files = [] if options.folder is None else _write_files(options.folder, report, chart_of(report))
        failed = sum(row.error is not None for row in evaluation.measured)
    if common.as_json:
        end: dict[str, Json] = {
            "failed": failed, "skipped": [*data.skipped], "stopped": why or None, "files": [str(path) for path in files],
        }  # fmt: skip
        print_json(report.to_json() | end)
    else:
        heads, rows = table_cells(report, narrow=True)
        table(heads, rows, frozenset(range(1, len(heads))))
        for note in report.without_scripted_figures().notes:
            print_line(note)
        for path in files:
            print_notice(f"written: {path}")
    if why:
        again = f"; the same command continues in {options.folder}" if options.folder is not None else ""
        print_notice(f"stopped: {why}{again}", "yellow")
    if code or failed:
        raise click.exceptions.Exit(code or FAILED)


def _write_files(folder: Path, report: "Report", chart: "Chart") -> list[Path]:
    from taiwa.evals.report import draw, to_markdown
    from taiwa.evals.run import ROWS_FILE

    summary = json.dumps(report.to_json(), ensure_ascii=False, indent=2)
    written = [folder / ROWS_FILE]
    for name, text in (("table.md", to_markdown(report)), ("summary.json", f"{summary}\n")):
        written.append(folder / name)
        with file_errors(f"write {written[-1]}", InputError):
            written[-1].write_text(text, encoding="utf-8", errors="backslashreplace")
    if chart.bars:
        try:
            written += draw(chart, folder)
        except ConfigError as error:  # the table has the same figures
            print_notice(error.message, "yellow")
    return written
