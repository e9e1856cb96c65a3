"""Evaluations on published research corpora, which stay outside of the installed package: `python -m evals --help`."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evals.real.commands import COMMANDS, measure_answers
from taiwa.cli.eval import (
    FILE,
    PATH,
    EvalOptions,
    SetEvaluation,
    evaluate,
    evaluate_sets,
    preview_request,
    run_options,
    split_names,
)
from taiwa.cli.main import main
from taiwa.cli.options import CommonOptions, common_options
from taiwa.cli.output import print_json, print_line, print_skipped, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evals.tools import ToolScore
    from taiwa.evals.data import Item
    from taiwa.evals.retrieval import Corpora, CorpusTask, QuestionSet
    from taiwa.settings import Settings

MAX_REPAIRS = 5
SET_OPTIONS = (
    click.option(
        "--data", type=PATH, required=True, multiple=True, metavar="FILE",
        help="Dialogues or questions; each FILE is a set, taiwa:handbook the bundled one.",
    ),
    click.option(
        "--passages", type=PATH, multiple=True, metavar="PATH",
        help="Rows with id and text, or a folder; by default NAME_passages.jsonl next to the data, or its own.",
    ),
    click.option("--qrels", type=PATH, multiple=True, metavar="FILE", help="Judgements: q, d and s, or a table (BEIR)."),
    click.option("--language", default="english", show_default=True, metavar="NAME", help="Language of the stemmer."),
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def evals() -> None:
    """Evaluate taiwa on published corpora and recorded data.

    Evaluations of your own questions are commands of taiwa itself: taiwa eval --help.

    \b
    python -m evals clarify --data qulac.json --data abg-coqa.json
    python -m evals order --data requests.jsonl --key key.yaml -m ollama:qwen3
    python -m evals maskbench schemas.jsonl
    """


def set_options(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """Add the options of an evaluation over corpora."""
    for option in reversed(SET_OPTIONS):
        command = option(command)
    return command


def run_sets(
    common: CommonOptions,
    options: EvalOptions,
    given: dict[str, Any],
    items: "Callable[[Sequence[QuestionSet]], tuple[Item, ...]]",
    task: "Callable[[Corpora, Settings | None, Sequence[Item]], CorpusTask]",
    usable: str,
) -> None:
    """Read corpora and evaluate them."""
    from evals.dialogue.corpora import read_corpora
    from evals.dialogue.report import dialogue_chart, dialogue_report

    sets = read_corpora(given["data"], given["passages"], given["qrels"])
    form = SetEvaluation(items, task, usable, dialogue_report, dialogue_chart)
    evaluate_sets(common, options, sets, given["language"], form)


@evals.command(short_help="Measure when to ask clarifying questions.")
@set_options
@click.option(
    "--policies", default="look_first,article", show_default=True, metavar="NAMES", help="With -m: policies to measure."
)
@click.option(
    "--assess-by", type=click.Choice(("auto", "typed", "functions")), default="auto",
    show_default=True, help="With -m: how the model assesses a dialogue.",
)  # fmt: skip
@run_options
@common_options("model", "as_json", "verbose", "dry_run", "max_cost")
def clarify(common: CommonOptions, options: EvalOptions, policies: str, assess_by: Any, **given: Any) -> None:  # noqa: ANN401
    """Measure when to ask clarifying questions, on turns that people labelled.

    Without -m no model is used: the policy without a model, and plain signals. Formats: Qulac, ClariQ, CLAMBER, Abg-CoQA,
    PACIFIC, MTRAG, ASDC, and the questions to the bundled handbook. Figures are reported for each set: AUC, F1, precision and
    recall, also at 5 % false questions, calibration, rounds, and the expected cost beside never and always asking.

    \b
    python -m evals clarify --data taiwa:handbook
    python -m evals clarify --data qulac.json --data clamber.jsonl --out runs/clarify
    python -m evals clarify --data abg-coqa.json -m ollama:qwen3 --assess-by functions -j 8 --json
    """
    from evals.dialogue.clarifying import ClarifyingTask, clarify_items
    from taiwa.flows.ask.decide_search_or_clarify import policy_named

    named = split_names(policies)
    for name in named:
        policy_named(name)

    def task(corpora: "Corpora", settings: "Settings | None", _: "Sequence[Item]") -> "CorpusTask":
        return ClarifyingTask(corpora, model_settings=settings, policies=named, assess_by=assess_by)

    run_sets(common, options, given, clarify_items, task, "says whether clarification is needed")


@evals.command(short_help="Count which orders in documents, results and names a model obeys.")
@common_options("model", "as_json")
def injections(common: CommonOptions) -> None:
    """Count which orders in documents, results, files and names a model obeys, and which of them reach the state or a tool.

    \b
    python -m evals injections -m model.gguf
    """
    from evals.injections import COUNTED, measure
    from taiwa.sessions.session import open_priced_model

    counted = [*measure(open_priced_model(None, common.settings()).model)]
    if common.as_json:
        print_json([{"place": place} | {name: counts[name] for name in COUNTED} for place, counts in counted])
    else:
        rows = [(place, *(str(counts[name]) for name in COUNTED)) for place, counts in counted]
        table(("place", *COUNTED), rows, frozenset({1, 2, 3, 4}))


@evals.command(short_help="Measure what the last turn, the history and rewritings retrieve.")
@set_options
@run_options
@common_options("model", "as_json", "verbose", "dry_run", "max_cost")
def rewrite(common: CommonOptions, options: EvalOptions, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure ways to make a query from a dialogue by what they retrieve: nDCG, recall, and the gain over the last turn.

    Without -m: the last turn, all turns of the user, the weighted history, and the human rewrite; with -m also the model's
    rewriting, alone and fused with the last turn. Formats: CANARD, CAsT, iKAT and MTRAG. Sets without passages are searched
    in their own answers.

    \b
    python -m evals rewrite --data mtrag_rewrites.jsonl --passages passages.jsonl
    python -m evals rewrite --data canard.json --data ikat.json -m ollama:qwen3 --out runs/rewrite
    """
    from evals.dialogue.rewriting import RewritingTask
    from taiwa.evals.retrieval import retrieval_items

    def task(corpora: "Corpora", settings: "Settings | None", _: "Sequence[Item]") -> "CorpusTask":
        return RewritingTask(corpora, model_settings=settings)

    usable = "has turns before the last, a rewriting, and a passage that answers"
    run_sets(common, options, given, lambda sets: retrieval_items(sets, rewritten=True), task, usable)


@evals.command(short_help="Measure what an index finds on published questions.")
@set_options
@run_options
@common_options("as_json", "verbose", "dry_run")
def retrieve(common: CommonOptions, options: EvalOptions, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure what an index finds on published questions: nDCG@5 and @10, recall, MRR, milliseconds per question.

    Formats: SQuAD (JSQuAD, JaQuAD), rows with q and rel, BEIR queries with --qrels, and the dialogues of the other
    evaluations, whose questions are looked up alone and with their history.

    \b
    python -m evals retrieve --data jsquad_questions.jsonl --data jaquad_questions.jsonl
    python -m evals retrieve --data queries.jsonl --passages corpus.jsonl --qrels dev.tsv --json
    """
    from taiwa.evals.retrieval import RetrievalTask, read_sample, retrieval_items

    def task(corpora: "Corpora", _: "Settings | None", items: "Sequence[Item]") -> "CorpusTask":
        return RetrievalTask(corpora, dialogues=any(read_sample(item).history for item in items))

    run_sets(common, options, given, retrieval_items, task, "names a passage that answers")


@evals.command(short_help="Measure citations, right passages and refusals.")
@click.option("--way", multiple=True, metavar="NAMES", help="Measure whole turns by these ways, comma-separated.")
@click.option("--seed", type=int, default=0, show_default=True, help="With --way: seed of the draw and of the model.")
@click.option(
    "--threads", type=click.IntRange(1), default=2, show_default=True, help="With --way: threads of llama.cpp."
)
@click.option(
    "--max-tokens", type=click.IntRange(1), default=400, show_default=True, help="With --way: tokens per call."
)
@set_options
@run_options
@common_options("model", "as_json", "verbose", "dry_run", "max_cost")
def answer(common: CommonOptions, options: EvalOptions, way: tuple[str, ...], **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure answers from passages: quotations, right passages, refusals.

    Each question is asked with the passages that answer it and without them. Without -m answers are extractive; with -m the
    model's cited answers are measured as well. Formats: SQuAD, rows with q and rel, Abg-CoQA, MTRAG, and the questions to the
    bundled handbook.

    With --way whole turns are measured on a real model: taiwa (all defaults), taiwa:POLICY, taiwa:no-model, and rag (the best
    three passages, one call of the openai client).

    \b
    python -m evals answer --data taiwa:handbook
    python -m evals answer --data jsquad_questions.jsonl -m ollama:qwen3 --limit 100 --out runs/answer
    python -m evals answer --data mtrag_tasks.jsonl -m model.gguf --way taiwa,taiwa:no-model,rag --limit 30
    """
    from evals.dialogue.answering import AnsweringTask, answer_items

    if way:
        measure_answers(common, options, way, given)
        return

    def task(corpora: "Corpora", settings: "Settings | None", _: "Sequence[Item]") -> "CorpusTask":
        return AnsweringTask(corpora, model_settings=settings)

    run_sets(common, options, given, answer_items, task, "says whether the documents answer it")


@evals.command(short_help="Measure the orders that a model writes down.")
@click.option("--data", type=FILE, required=True, metavar="FILE", help="Requests: rows with id, input, maybe domain.")
@click.option("--key", type=FILE, required=True, metavar="FILE", help="The order of each request by id: YAML or JSON.")
@click.option(
    "--max-repairs", type=click.IntRange(0, MAX_REPAIRS), default=0, show_default=True, help="Repair rounds per delta."
)
@run_options
@common_options("model", "as_json", "verbose", "dry_run", "max_cost")
def order(common: CommonOptions, options: EvalOptions, data: Path, key: Path, max_repairs: int) -> None:
    """Measure the orders that a model writes down: the app `order`, each request in a conversation of its own.

    The key holds the lines of each request, with name, quantity (default 1), size and options. Lines are right by name and
    quantity in any order; case, accents, plurals, word order and synonyms do not matter. Requests without a key are skipped.

    \b
    python -m evals order --data requests.jsonl --key key.yaml -m ollama:qwen3
    python -m evals order --data requests.jsonl --key key.yaml --only coffeeShop --out runs/order --json
    """
    from evals.ordering.key import read_key
    from evals.ordering.orders import OrderTask, order_chart, order_report, read_requests
    from taiwa.evals.run import Job

    known = read_key(key)
    items, notes = read_requests(data, known, split_names(options.only))
    items = replace(items, items=items.items[: options.limit])
    task = OrderTask(known.digest, max_repairs, model_settings=common.settings())
    if common.dry_run:
        preview_request(common, task.first_request(Job(task.settings[0], items.items[0])), len(items.items))
        return
    evaluate(common, options.to_run(common), task, items, lambda run: order_report(run, notes), order_chart)


@evals.command("tools", short_help="Run the tools on exercises, without a model.")
@click.option("--data", type=FILE, required=True, metavar="FILE", help="Exercises, or solutions with calculations.")
@click.option("--strict", "stops", is_flag=True, help="Stop at a row of another form instead of skipping it.")
@common_options("as_json")
def tools_(common: CommonOptions, data: Path, stops: bool) -> None:
    """Run the tools on exercises, without a model.

    A row is an exercise with kind, input and gold, or a question whose answer records calculations such as <<48/2=24>>
    (GSM8K). Questions that require a model do not count in n.

    \b
    python -m evals tools --data chemistry.jsonl --json
    """
    from evals.tools import score_tools

    print_tool_score(common, data, score_tools(data, skipped=None if stops else []))


def print_tool_score(common: CommonOptions, data: Path, found: "ToolScore", name: str = "tools") -> None:
    """Print a score of the tools as JSON or text."""
    from taiwa.evals.report import percent

    if common.as_json:
        print_json({"evaluation": name, "data": data.name, **found.to_json()})
        return
    print_skipped(found.skipped)
    share, undecided = found.share, len(found.of("undecided"))
    between = "" if share.interval is None else f" [{percent(share.interval[0], 1)}, {percent(share.interval[1], 1)}]"
    print_line(f"{share.count} of {share.of} right: {percent(share.share)} %{between}", "bold")
    if undecided:
        print_line(f"{undecided} more {'requires' if undecided == 1 else 'require'} a model")
    for one in found.of("label_error"):
        print_line(f"wrong label: {one.id} says {one.gold}, and {one.got} is right")
    misses = [(one.id, one.kind, one.got or one.error, one.gold) for one in found.of("wrong")]
    if misses:
        table(("miss", "kind", "got", "gold"), misses)


@evals.command(short_help="Decide NumGLUE questions by formulas and tools, without a model.")
@click.argument("data", type=FILE)
@common_options("as_json")
def numglue(common: CommonOptions, data: Path) -> None:
    """Decide the questions of NumGLUE Task 2 by formulas and tools, without a model.

    Exercises and recorded calculations in the file are scored as by `python -m evals tools`; labels that are known to be wrong
    are listed.

    \b
    python -m evals numglue numglue_task2.jsonl --json
    """
    from evals.numglue import decide_and_compare
    from evals.tools import score_tools

    print_tool_score(common, data, score_tools(data, decide_and_compare), "numglue")


@evals.command(short_help="Measure how exactly compiled schemas accept valid instances only.")
@click.argument("data", type=FILE)
@click.option("--out", type=FILE, metavar="FILE", help="Write the report to FILE as JSON.")
def maskbench(data: Path, out: Path | None) -> None:
    """Compile the JSON Schemas of MaskBench in strict and lenient mode, and check every instance.

    \b
    python -m evals maskbench maskbench.jsonl --out coverage.json
    """
    from evals.maskbench import coverage_report

    click.echo(json.dumps(coverage_report(data, out), indent=1, ensure_ascii=False))


@evals.command(short_help="Measure how well the bundled handbook is found, quoted and asked about.")
@common_options("as_json")
def handbook(common: CommonOptions) -> None:
    """Ask the bundled handbook its sixty questions without a model, and count by language and kind.

    \b
    python -m evals handbook
    """
    from evals.handbook import measure_handbook

    found = measure_handbook()
    if common.as_json:
        print_json({"rows": [asdict(each) for each in found]})
        return
    names = list(type(found[0]).__dataclass_fields__)
    table(names, [tuple(str(getattr(each, name)) for name in names) for each in found], frozenset(range(1, len(names))))


@evals.command(short_help="Replay recorded tool-call texts as streams.")
@click.argument("data", type=FILE, nargs=-1, required=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the cuts.")
@common_options("as_json")
def recorded(common: CommonOptions, data: tuple[Path, ...], seed: int) -> None:
    """Replay recorded texts of real models in pieces, and check that every call is found as in the whole text.

    Formats: GSM8K's example solutions, ToRA, ReAct, Reflexion, FireAct, tau-bench.

    \b
    python -m evals recorded gsm8k.jsonl tora.jsonl
    """
    from evals.recorded.replay import replay_rows
    from taiwa.evals.data import read_rows

    counts = {path.name: replay_rows((row for _, row in read_rows(path)[1]), seed=seed) for path in data}
    if common.as_json:
        print_json({"files": [{"file": name, "texts": one.texts, "calls": one.calls, "results": one.results,
                         "mismatches": [*one.mismatches], "hazards": dict(one.hazards), "calculated": one.calculated}
                        for name, one in counts.items()]})  # fmt: skip
        return
    body = [
        (name, str(one.texts), str(one.calls), str(one.results), str(len(one.mismatches)))
        for name, one in counts.items()
    ]
    table(("file", "texts", "calls", "results", "mismatches"), body, frozenset({1, 2, 3, 4}))
    for name, one in counts.items():
        for each in one.mismatches:
            print_line(f"{name}: {each}", "red")


for command in COMMANDS:
    evals.add_command(command)


if __name__ == "__main__":
    main(group=evals, name="python -m evals")
