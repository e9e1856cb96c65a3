"""`taiwa eval clarify`, `rewrite`, `retrieve` and `answer`: the dialogue before retrieval, and retrieval, on recorded dialogues."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.evaloptions import PLACE, running
from taiwa.cli.options import Flags, flags
from taiwa.i18n import ngettext
from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    from taiwa.lab.asking.corpora import Corpora
    from taiwa.lab.asking.sample import ReadSet
    from taiwa.lab.asking.works import Modelled
    from taiwa.lab.evaluation.items import DataSet, Item
    from taiwa.lab.evaluation.running import Work
    from taiwa.settings import Settings

__all__ = ["answer_", "clarify_", "retrieve_", "rewrite_"]

GIVEN = (
    click.option(
        "--data", type=PLACE, required=True, multiple=True, metavar="FILE",
        help="Dialogues or questions, each FILE a set; taiwa:handbook is the one that ships.",
    ),
    click.option(
        "--passages", type=PLACE, multiple=True, metavar="FILE",
        help="What is looked up: rows with id and text, or a folder; else NAME_passages.jsonl beside the data, or its own.",
    ),
    click.option(
        "--qrels", type=PLACE, multiple=True, metavar="FILE", help="Which passages answer: q, d and s, or a table (BEIR)."
    ),
    click.option("--language", default="english", metavar="NAME", help="What words are stemmed for; english if not said."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """What was said of an evaluation over sets."""

    data: tuple[Path, ...]
    passages: tuple[Path, ...]
    qrels: tuple[Path, ...]
    language: str
    limit: int | None
    only: str | None


def over_sets(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of what is evaluated."""
    for option in reversed(GIVEN):
        command = option(command)
    return command


@click.command("clarify", short_help="Measure when to ask back: without a model, and with one.")
@over_sets
@click.option(
    "--policies", default="look_first,article", metavar="NAMES", help="With -m: what is made of the model's scores."
)
@click.option(
    "--judge", type=click.Choice(("auto", "typed", "functions", "labels", "decisions")), default="auto",
    help="With -m: how the model scores.",
)  # fmt: skip
@running
@flags("model", "json", "verbose", "dry_run", "max_cost")
def clarify_(shared: Flags, policies: str, judge: Any, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure when to ask back, on turns of which people said whether they had to be asked about.

    Without -m no model is asked: the policy that needs none, and plain signals. Read are Qulac, ClariQ, CLAMBER, Abg-CoQA,
    PACIFIC, MTRAG, ASDC and the shipped handbook's questions. Figures are told for each set: AUC, F1, precision and recall, at
    5 % false questions too, calibration, rounds, and the expected cost beside never and always asking.

    \b
    taiwa eval clarify --data taiwa:handbook
    taiwa eval clarify --data qulac.json --data clamber.jsonl --out runs/clarify
    taiwa eval clarify --data abg-coqa.json -m ollama:qwen3 --judge labels -j 8 --json
    """
    from taiwa.flows.policies import policy_named
    from taiwa.lab.asking.clarifying import Clarifying, clarify_items

    named = tuple(dict.fromkeys(name.strip() for name in policies.split(",") if name.strip()))
    for name in named:
        policy_named(name)

    def work(corpora: "Corpora", chosen: "Settings | None", _: "Sequence[Item]") -> "Modelled":
        return Clarifying(corpora, chosen, policies=named, judge=judge)

    _evaluate(shared, given, clarify_items, work, "says whether it must be asked back")


@click.command("rewrite", short_help="Measure what a dialogue finds: its last turn, its history, rewritings.")
@over_sets
@running
@flags("model", "json", "verbose", "dry_run", "max_cost")
def rewrite_(shared: Flags, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure ways from a dialogue to a query by what they find: nDCG, recall, and the gain over the last turn alone.

    Without -m: the last turn, all turns of the user, the weighted history, and what a person wrote instead; with -m the model's
    rewriting too, alone and fused with the user's own words. Read are CANARD, CAsT, iKAT and MTRAG. Sets without passages
    are looked up in the answers that they hold, without those that the dialogue has given already.

    \b
    taiwa eval rewrite --data mtrag_rewrites.jsonl --passages passages.jsonl
    taiwa eval rewrite --data canard.json --data ikat.json -m ollama:qwen3 --out runs/rewrite
    """
    from taiwa.lab.asking.looking import Rewriting, found_items

    def work(corpora: "Corpora", chosen: "Settings | None", _: "Sequence[Item]") -> "Modelled":
        return Rewriting(corpora, chosen)

    _evaluate(
        shared, given, lambda sets: found_items(sets, rewritten=True), work,
        "has turns before the last, a rewriting, and a passage that answers",
    )  # fmt: skip


@click.command("retrieve", short_help="Measure what an index finds, and how long it takes.")
@over_sets
@running
@flags("json", "verbose", "dry_run")
def retrieve_(shared: Flags, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure what an index with our analyzer finds: nDCG@5 and @10, recall, MRR, and milliseconds for a question.

    Questions of dialogues are looked up twice: alone, and with what was said before. Read are SQuAD's form (JSQuAD, JaQuAD),
    lines with q and rel, BEIR's queries with --qrels, and the dialogues of the other evaluations.

    \b
    taiwa eval retrieve --data jsquad_questions.jsonl --data jaquad_questions.jsonl
    taiwa eval retrieve --data queries.jsonl --passages corpus.jsonl --qrels dev.tsv --json
    taiwa eval retrieve --data questions.jsonl --passages ~/handbook
    """
    from taiwa.lab.asking.looking import Retrieving, found_items

    def work(corpora: "Corpora", _: "Settings | None", items: "Sequence[Item]") -> "Modelled":
        said = (item.more.get("said") for item in items)
        return Retrieving(corpora, dialogues=any(isinstance(turns, list) and len(turns) > 1 for turns in said))

    _evaluate(shared, given, lambda sets: found_items(sets, rewritten=False), work, "names a passage that answers")


@click.command("answer", short_help="Measure answers: quotations, right passages, refusals.")
@over_sets
@running
@flags("model", "json", "verbose", "dry_run", "max_cost")
def answer_(shared: Flags, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure answers from passages: whether what is quoted stands there, in a right passage, and what is refused.

    Each question is asked twice, with the passages that answer it and without, where the right answer is that it is not there.
    Without -m answers are words of the passages; with -m the model's, with its citations, too. Read are SQuAD's form, lines
    with q and rel, Abg-CoQA, MTRAG, and the shipped handbook's questions.

    \b
    taiwa eval answer --data taiwa:handbook
    taiwa eval answer --data jsquad_questions.jsonl -m ollama:qwen3 --limit 100 --out runs/answer
    """
    from taiwa.lab.asking.answering import Answering, answer_items

    def work(corpora: "Corpora", chosen: "Settings | None", _: "Sequence[Item]") -> "Modelled":
        return Answering(corpora, chosen)

    _evaluate(shared, given, answer_items, work, "says whether the documents answer it")


def _evaluate(
    shared: Flags,
    given: dict[str, Any],
    items_of: "Callable[[Sequence[ReadSet]], tuple[Item, ...]]",
    work_of: "Callable[[Corpora, Settings | None, Sequence[Item]], Any]",
    wanted: str,
) -> None:
    """Read, measure, report. A model is one that was named here: none that is merely configured is paid for."""
    from taiwa.cli.evaluating import Asked, conclude, conduct_of, run
    from taiwa.cli.output import bill_line, tell
    from taiwa.lab.asking.corpora import Corpora
    from taiwa.lab.asking.reports import chart_of, report_of
    from taiwa.lab.evaluation.conduct import Evaluation

    asked = Asked(given.pop("width"), given.pop("on"), given.pop("out"), given.pop("resume"))
    told = Told(**given)
    sets, data = _asked_of(told, items_of, wanted)
    corpora = Corpora.of(sets, told.language)
    work: Work = work_of(corpora, shared.settings() if shared.model else None, data.items)
    if shared.dry_run:
        _foretell(shared, work, sets, data)
        return
    notes = [note for one in sets for note in one.notes]
    try:
        with Evaluation(work, data, conduct_of(shared, asked)) as evaluation:
            ended = run(evaluation, quiet=shared.as_json)
            if shared.verbose and work.model:
                tell(bill_line(evaluation.spent))
            report = report_of(evaluation, notes)
            conclude(evaluation, report, chart_of(report), ended, as_json=shared.as_json)
    finally:
        corpora.close()


def _asked_of(
    told: Told, items_of: "Callable[[Sequence[ReadSet]], tuple[Item, ...]]", wanted: str
) -> "tuple[tuple[ReadSet, ...], DataSet]":
    from taiwa.lab.asking.reading import digest_of, read_sets
    from taiwa.lab.evaluation.items import DataSet

    sets = read_sets(told.data, told.passages, told.qrels)
    only = {word.strip() for word in (told.only or "").split(",") if word.strip()}
    if strange := sorted(only - {one.name for one in sets}):
        raise InputError(f"--only: there is no set {strange[0]!r}; there are {', '.join(one.name for one in sets)}")
    kept: list[Item] = []
    for one in sets:
        if not only or one.name in only:
            found = items_of((one,))
            if not found:
                raise InputError(f"{one.name}: no row {wanted} (read as {one.format})")
            kept += found[: told.limit]
    return sets, DataSet(", ".join(one.name for one in sets), digest_of(sets), tuple(kept))


def _foretell(shared: Flags, work: "Work", sets: "Sequence[ReadSet]", data: "DataSet") -> None:
    """Say what would be measured."""
    from collections import Counter

    from taiwa.cli.output import emit, say_line, table

    counts = Counter(item.kind for item in data.items)
    rows = len(data.items) * len(work.settings)
    if shared.as_json:
        emit({
            "settings": [*work.settings], "rows": rows,
            "sets": [
                {"set": one.name, "format": one.format, "n": counts[one.name], "passages": len(one.passages)} for one in sets
            ],
        })  # fmt: skip
        return
    body = [(one.name, one.format, f"{counts[one.name]:,}", f"{len(one.passages):,}") for one in sets]
    table(("set", "format", "n", "passages"), body, frozenset({2, 3}))
    say_line(f"settings: {', '.join(work.settings)}")
    say_line(ngettext("{n} turn", "{n} turns", len(data.items)) + ", " + ngettext("{n} row", "{n} rows", rows))
