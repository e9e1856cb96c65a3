"""The commands of the evaluations on real models."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click

from evals.real.task import RealModel, RealTask, open_real_model, way_names
from taiwa.cli.eval import FILE, FOLDER, EvalOptions, evaluate
from taiwa.cli.options import CommonOptions, common_options
from taiwa.evals.data import DataSet
from taiwa.evals.report import SetReport, set_chart, set_report
from taiwa.evals.run import RunOptions

OPTIONS = (
    click.option("--data", type=FILE, required=True, multiple=True, metavar="FILE", help="Rows of the data."),
    click.option("--limit", type=click.IntRange(1), metavar="N", help="Use N items only, drawn by the seed."),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw and of the model."),
    click.option("--way", multiple=True, metavar="NAMES", help="Measure these ways only, comma-separated."),
    click.option("--threads", type=click.IntRange(1), default=2, show_default=True, help="Threads of llama.cpp."),
    click.option("--max-tokens", type=click.IntRange(1), default=400, show_default=True, help="Output tokens per call."),
    click.option("--out", type=FOLDER, metavar="DIR", help="Write rows, table and chart to DIR; continue its rows."),
)  # fmt: skip


def real_options(command: Callable[..., Any], options: Sequence[Callable[..., Any]] = OPTIONS) -> Callable[..., Any]:
    """Add the options of an evaluation on a real model."""
    for option in reversed(options):
        command = option(command)
    return common_options("model", "as_json", "verbose", "max_cost")(command)


def measure(
    common: CommonOptions,
    given: dict[str, Any],
    data: DataSet,
    task: Callable[[RealModel, tuple[str, ...]], RealTask],
    ways: tuple[Sequence[str], Sequence[str]],
    form: SetReport,
) -> None:
    """Run and report an evaluation; `ways` are those that can be measured, and the default ones."""
    names, settings = way_names(given["way"], *ways), common.settings()
    with open_real_model(
        settings, threads=given["threads"], max_tokens=given["max_tokens"], seed=given["seed"]
    ) as real:
        # One row at a time: a second one would share the server, and neither time would mean anything.
        options = RunOptions(1, settings.limits.cost, given["out"])
        with closing(task(real, names)) as measured:
            evaluate(
                common,
                options,
                measured,
                data,
                lambda run: set_report(run, form),
                lambda report: set_chart(report, form),
            )


@click.command("extract", short_help="Measure typed answers beside the openai client, instructor and pydantic-ai.")
@real_options
def extract_(common: CommonOptions, data: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure typed answers on TypeChat's requests: valid, right, calls, tokens, seconds.

    Give the requests and the schemas. Ways: taiwa (all defaults; taiwa:NAME with a style of the prompt or a mode), openai (the
    server's json_schema), instructor (JSON mode), pydantic-ai (native output), pydantic-ai:tool (its default).

    \b
    python -m evals extract -m model.gguf --data typechat_inputs.jsonl --data typechat_schemas.jsonl --limit 30
    """
    from evals.real.extract import DEFAULT_WAYS, REPORT, WAYS, ExtractTask, read_requests

    found = read_requests(data, given["limit"], given["seed"])
    measure(
        common, given, found, lambda real, ways: ExtractTask(real=real, settings=ways), (WAYS, DEFAULT_WAYS), REPORT
    )


@click.command("state", short_help="Measure dialogue state beside the openai client and instructor.")
@real_options
def state_(common: CommonOptions, data: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure the state after each turn of dialogues: joint goal accuracy, slot F1, silent losses, tokens, seconds.

    --limit counts turns of each file. Ways: taiwa (an app with the default reply mode), taiwa:MODE, openai (the whole state by
    the server's json_schema), instructor (the whole state in its JSON mode).

    \b
    python -m evals state -m model.gguf --data sgd.jsonl --data crosswoz.jsonl --limit 30
    python -m evals state -m model.gguf --data sgd.jsonl --way taiwa,taiwa:json --out runs/state
    """
    from evals.real.state import DEFAULT_WAYS, REPORT, WAYS, StateTask, read_dialogues

    found = read_dialogues(data, given["limit"], given["seed"])
    measure(common, given, found, lambda real, ways: StateTask(real=real, settings=ways), (WAYS, DEFAULT_WAYS), REPORT)


@click.command("solve", short_help="Measure word problems beside the openai client and pydantic-ai.")
@real_options
def solve_(common: CommonOptions, data: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure word problems with a number as the answer: right, calls, tokens, seconds.

    --limit counts questions of each file. Ways: taiwa (its tools, all defaults), taiwa:no-tools (its chain of thought),
    taiwa:MODE (a tool mode), openai (a chain of thought), pydantic-ai (an agent with a calculator).

    \b
    python -m evals solve -m model.gguf --data numglue_task2.jsonl --data chemistry.jsonl --limit 30
    """
    from evals.real.solve import DEFAULT_WAYS, REPORT, WAYS, SolveTask, read_problems

    found = read_problems(data, given["limit"], given["seed"])
    measure(common, given, found, lambda real, ways: SolveTask(real=real, settings=ways), (WAYS, DEFAULT_WAYS), REPORT)


def measure_answers(common: CommonOptions, options: EvalOptions, way: tuple[str, ...], given: dict[str, Any]) -> None:
    """Run and report the evaluation of answers from documents on a real model."""
    from evals.dialogue.corpora import read_corpora
    from evals.real.answer import DEFAULT_WAYS, REPORT, WAYS, AnswerTask, answer_data
    from taiwa.evals.retrieval import Corpora

    sets = read_corpora(given["data"], given["passages"], given["qrels"])
    corpora = Corpora.of(sets, given["language"])
    try:
        measure(
            common, {**given, "way": way, "out": options.out}, answer_data(sets, options.limit, given["seed"]),
            lambda real, ways: AnswerTask(real=real, settings=ways, corpora=corpora), (WAYS, DEFAULT_WAYS), REPORT,
        )  # fmt: skip
    finally:
        corpora.close()


@click.command("constrain", short_help="Measure constrained output beside the server's own json_schema.")
@real_options
def constrain_(common: CommonOptions, data: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure the share of valid answers under JSON Schemas, patterns and choices, and the seconds for each.

    --limit counts constraints of each file. Ways: taiwa, openai (the server's own json_schema), openai:free (no constraint).

    \b
    python -m evals constrain -m model.gguf --data maskbench.jsonl --limit 30
    """
    from evals.real.constrain import DEFAULT_WAYS, REPORT, WAYS, ConstrainTask, read_constraints

    found = read_constraints(data, given["limit"], given["seed"])
    measure(
        common, given, found, lambda real, ways: ConstrainTask(real=real, settings=ways), (WAYS, DEFAULT_WAYS), REPORT
    )


@click.command("turn", short_help="Measure a turn with state, tools and documents beside the openai client.")
@partial(real_options, options=OPTIONS[1:])
def turn_(common: CommonOptions, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure questions at bundled desks: right, state kept, tool calls, tokens, seconds.

    --limit counts questions of each language. Ways: taiwa (recorded state, a calculator, retrieved passages), taiwa:no-tools,
    openai (the whole documents in one call).

    \b
    python -m evals turn -m model.gguf --limit 30
    """
    from evals.real.turn import BUNDLED, DEFAULT_WAYS, REPORT, WAYS, TurnTask, corpora_of, read_desks

    found = read_desks(BUNDLED, given["limit"], given["seed"])
    measure(
        common, given, found, lambda real, ways: TurnTask(real=real, settings=ways, corpora=corpora_of(found.items)),
        (WAYS, DEFAULT_WAYS), REPORT,
    )  # fmt: skip


@click.command("real", short_help="Run all evaluations of a real model, and write one table.")
@click.option(
    "--data", type=FOLDER, required=True, metavar="FOLDER", help="The folder with the data of all evaluations."
)
@click.option("--limit", type=click.IntRange(1), default=30, show_default=True, help="Items of each file.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws and of the model.")
@click.option("--only", metavar="NAMES", help="Run these evaluations only, comma-separated.")
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True, help="Threads of llama.cpp.")
@click.option("--max-tokens", type=click.IntRange(1), default=400, show_default=True, help="Output tokens per call.")
@click.option(
    "--out", type=FOLDER, default=Path("evals/results/real"), show_default=True, metavar="DIR",
    help="Write MODEL.json and MODEL.md to DIR, and rows to DIR/MODEL, from which an interrupted run goes on.",
)  # fmt: skip
@common_options("model", "as_json", "verbose", "max_cost")
def real_(common: CommonOptions, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Run all evaluations of a real model beside the ways without taiwa, and write one table.

    \b
    python -m evals real -m model.gguf --data data --limit 30
    """
    from evals.real.table import measure_all

    measure_all(common, given)


COMMANDS = (extract_, state_, solve_, constrain_, turn_, real_)
