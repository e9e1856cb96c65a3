"""`taiwa eval`: how good the tools are, the looking up and asking back, and a model with them, on questions with known answers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.evalasking import answer_, clarify_, retrieve_, rewrite_
from taiwa.cli.evaloptions import FILE, running
from taiwa.cli.evalorder import order_
from taiwa.cli.options import Flags, flags
from taiwa.i18n import ngettext
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taiwa.lab.evaluation.ablation import Grid
    from taiwa.lab.evaluation.items import DataSet
    from taiwa.lab.evaluation.reasoning import Reasoning

__all__ = ["eval_"]

MOST_ORDERS = 20
PROTOCOLS = ("tagged", "inline", "gsm", "react", "fence")


@click.group("eval")
def eval_() -> None:
    """Measure tools and models on questions with known answers.

    \b
    taiwa eval tools --data exercises.jsonl
    taiwa eval reason --data numglue.json --only Type_2 -m ollama:qwen3 --out runs/qwen3
    taiwa eval clarify --data qulac.json --data abg-coqa.json
    taiwa eval retrieve --data jsquad.json
    taiwa eval order --data requests.jsonl --key key.yaml -m ollama:qwen3
    """


for _command in (clarify_, rewrite_, retrieve_, answer_, order_):
    eval_.add_command(_command)


@eval_.command("tools", short_help="Ask the tools alone; no model is needed.")
@click.option("--data", type=FILE, required=True, metavar="FILE", help="Exercises, or questions with their answers.")
@flags("json")
def tools_(shared: Flags, data: Path) -> None:
    """Ask the tools alone; no model is needed.

    A row is an exercise with kind, input and gold; a question with its answer, which a formula may decide (NumGLUE); or a
    solution with recorded calculations such as <<48/2=24>> (GSM8K). What needs a model is left out of n.

    \b
    taiwa eval tools --data chemistry.jsonl --json
    taiwa eval tools --data numglue.json
    """
    from taiwa.cli.output import emit, say_line, table
    from taiwa.lab.evaluation.report import percent
    from taiwa.lab.evaluation.toolscore import score

    found = score(data)
    told = found.told()
    if shared.as_json:
        emit({"evaluation": "tools", "data": data.name, **told})
        return
    share = found.share
    between = "" if share.interval is None else f" [{percent(share.interval[0], 1)}, {percent(share.interval[1], 1)}]"
    say_line(f"{share.count} of {share.of} right: {percent(share.share)} %{between}", "bold")
    if undecided := len(found.of("undecided")):
        say_line(ngettext("{n} more needs a model", "{n} more need a model", undecided))
    for one in found.of("label_error"):
        say_line(f"wrong label: {one.id} says {one.gold}, and {one.got} is right")
    misses = [(one.id, one.kind, one.got or one.error, one.gold) for one in found.of("wrong")]
    if misses:
        table(("miss", "kind", "got", "gold"), misses)


@dataclass(frozen=True, slots=True)
class Given:
    """What was said of an evaluation of reasoning."""

    shots: str | None
    ablate: str | None
    mode: str
    orders: int
    tools: str
    protocol: str
    way: str
    weights: str
    on_error: Any
    shots_file: Path | None
    calls: int
    tokens: int


@eval_.command("reason", short_help="Measure how well a model reasons with tools and without.")
@click.option("--data", type=FILE, required=True, metavar="FILE", help="Questions: NumGLUE's, GSM8K's, or JSON lines.")
@click.option("--shots", metavar="COUNTS", help="Numbers of worked examples, as in 0,5,10,20.")
@click.option(
    "--ablate", metavar="TOOLS", help="What is switched on: none, cal, crp, mml, cal+mml …, all; commas between."
)
@click.option(
    "--mode", default="execution", metavar="MODES", help="How it is switched off: execution, exposure, or both."
)
@click.option(
    "--seeds", "orders", type=click.IntRange(1, MOST_ORDERS), default=1, help="Orders of examples; 1 if not said."
)
@click.option(
    "--tools", default="calculator,stoichiometry,molar_mass", metavar="NAMES", help="The tools that `all` means."
)
@click.option("--protocol", type=click.Choice(PROTOCOLS), default="tagged", help="How calls stand in the text.")
@click.option(
    "--way", type=click.Choice(("auto", "prefill", "stop", "native")), default="auto", help="How a model goes on."
)
@click.option("--weights", type=click.Choice(("auto", "integer", "iupac")), default="auto", help="Atomic weights.")
@click.option(
    "--on-error",
    type=click.Choice(("report", "let_model_answer", "stop")),
    default="report",
    help="After a failed call.",
)
@click.option("--shots-file", type=FILE, metavar="FILE", help="Your own worked examples.")
@click.option("--calls", type=click.IntRange(0), default=10, metavar="N", help="At most so many calls; 10 if not said.")
@click.option(
    "--tokens", type=click.IntRange(1), default=2000, metavar="N", help="At most so many tokens of rationale."
)
@running
@flags("model", "json", "verbose", "dry_run", "max_cost")
def reason_(shared: Flags, data: Path, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure how well a model reasons with tools, without, and with some of them, as MultiTool-CoT did.

    Without --shots and --ablate the settings are those of the paper's two tables; with them, all their combinations. In the
    mode execution the prompt stays as it is, and the model writes the results of tools that are switched off; in exposure
    they are not shown at all. Weights are integer for NumGLUE, whose answers were made so, and IUPAC's otherwise.

    Every answer is a row in DIR/rows.jsonl as soon as it is there; the same command goes on after any kind of end, and
    asks rows that failed once more. The exit code is 1 where a row failed or a limit was reached.

    \b
    taiwa eval reason --data numglue.json --only Type_2 --out run1
    taiwa eval reason --data numglue.json --only Type_2 --shots 0,5,10,20 --ablate none,cal,crp,mml,all -j 16 --out run2
    taiwa eval reason --data numglue.json --mode execution,exposure --seeds 3 --max-cost 5 --out run3
    taiwa eval reason --data gsm8k.jsonl --shots 0,5 --ablate none,all --limit 100 --json
    taiwa eval reason --data large.jsonl --on ray://head:10001 -j 64 --out run4
    """
    from taiwa.cli.evaluating import Asked, conclude, conduct_of, run
    from taiwa.cli.output import bill_line, tell
    from taiwa.lab.evaluation.conduct import Evaluation
    from taiwa.lab.evaluation.reasoned import chart_of, report_of

    asked = Asked(given.pop("width"), given.pop("on"), given.pop("out"), given.pop("resume"))
    items = _read(data, given.pop("limit"), given.pop("only"))
    grid, work = _work(shared, Given(**given), items)
    work.check()
    if shared.dry_run:
        _foretell(shared, work, items)
        return
    with Evaluation(work, items, conduct_of(shared, asked)) as evaluation:
        ended = run(evaluation, quiet=shared.as_json)
        if shared.verbose:
            tell(bill_line(evaluation.spent))
        report = report_of(evaluation, grid, _warnings(work, items))
        conclude(evaluation, report, chart_of(report), ended, as_json=shared.as_json)


def _read(path: Path, limit: int | None, only: str | None) -> "DataSet":
    from dataclasses import replace

    from taiwa.lab.evaluation.readers import read_questions

    kinds = frozenset(word.strip() for word in (only or "").split(",") if word.strip())
    found = read_questions(path, kinds)
    return replace(found, items=found.items[:limit])


def _work(shared: Flags, given: Given, items: "DataSet") -> "tuple[Grid, Reasoning]":
    from taiwa.apps.shots import read_shots
    from taiwa.flows.rationale import Bounds
    from taiwa.lab.evaluation.ablation import Grid, read_ablations, read_counts, read_modes
    from taiwa.lab.evaluation.reasoning import Manner, Reasoning
    from taiwa.tools import builtin

    tools = tuple(dict.fromkeys(name.strip() for name in given.tools.split(",") if name.strip()))
    strange = next((name for name in tools if name not in builtin()), None)
    if strange is not None or not tools:
        raise InputError(f"--tools: there is no tool {strange or ''!r}; there are {', '.join(builtin())}")
    grid = Grid(
        tools, None if given.shots is None else read_counts(given.shots),
        None if given.ablate is None else read_ablations(given.ablate, tools), read_modes(given.mode), given.orders,
    )  # fmt: skip
    weights: Any = given.weights if given.weights != "auto" else "integer" if items.numbered else "iupac"
    way: Any = None if given.way == "auto" else given.way
    manner = Manner(
        tools, given.protocol, way, weights, given.on_error, Bounds(given.calls, given.tokens),
        examples=None if given.shots_file is None else read_shots(given.shots_file),
    )  # fmt: skip
    return grid, Reasoning(manner, grid.settings(), shared.settings())


def _warnings(work: "Reasoning", items: "DataSet") -> "Sequence[str]":
    from taiwa.lab.evaluation.scoring import number

    found: list[str] = []
    if same := work.overlap(items.items):
        found.append(
            ngettext(
                "{n} question is a worked example as well ({some}): its answer may be seen in the prompt.",
                "{n} questions are worked examples as well ({some}): their answers may be seen in the prompt.",
                len(same),
                some=_some(same),
            )
        )
    if words := [item.gold for item in items.items if number(item.gold) is None]:
        found.append(
            ngettext(
                "{n} of {all} answers is not a number ({some}): only numbers are read from what models say, so it is never right; --only chooses among the types.",
                "{n} of {all} answers are not numbers ({some}): only numbers are read from what models say, so these are never right; --only chooses among the types.",
                len(words),
                all=len(items.items),
                some=_some(tuple(dict.fromkeys(words))),
            )
        )
    return tuple(found)


def _some(names: "Sequence[str]") -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def _foretell(shared: Flags, work: "Reasoning", items: "DataSet") -> None:
    """Say what would be asked; nothing is called."""
    from taiwa.cli.output import emit, say_line, table
    from taiwa.kernel.records import record
    from taiwa.lab.evaluation.running import Job
    from taiwa.operations.say import request_text, request_tokens

    first = [(name, work.first_request(Job(name, items.items[0]))) for name in work.settings]
    if shared.as_json:
        rows: list[Json] = [
            {"setting": name, "tokens": request_tokens(one), "request": record(one)} for name, one in first
        ]
        emit({"items": len(items.items), "rows": len(items.items) * len(first), "settings": rows})
        return
    table(
        ("setting", "tokens of the first request"),
        [(name, f"{request_tokens(one):,}") for name, one in first],
        frozenset({1}),
    )
    questions = ngettext("{n} question", "{n} questions", len(items.items))
    say_line(f"{questions}, " + ngettext("{n} row", "{n} rows", len(items.items) * len(first)))
    if shared.verbose:
        for name, one in first:
            say_line(f"\n{name}", "bold")
            say_line(request_text(one))
