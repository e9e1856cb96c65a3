"""`python -m training.builtin STEP`: run one step of the training pipeline, or all of them."""

import argparse
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from taiwa.models.builtin.model import Loaded
    from training.builtin.model import Transformer

    Parsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  (it has no public name)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("build/builtin")
SHIPPED = Path("src/taiwa/models/builtin/data")
MEASURED_BY = ROOT.parent / "shared" / "data"
"""Evaluation texts that must stay out of the training data. The folder lies beside the checkout and may be absent."""
PIECES, TEXTS = 3_072, 60_000
MINUTES = 100
"""Training time of the shipped model in minutes, on two cores."""


def main() -> int:
    """Parse the command line, run the step and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m training.builtin", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="working folder")
    steps = parser.add_subparsers(dest="step", required=True)
    _making(steps)
    _measuring(steps)
    whole = steps.add_parser("all", help="run every step that is not done yet")
    whole.add_argument("--minutes", type=float, default=MINUTES)
    whole.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    return STEPS[given.step](given) or 0


def _making(steps: "Parsers") -> None:
    steps.add_parser("vocabulary", help="train the tokenizer")
    steps.add_parser("wordings", help="write the lexicon of the order app and the solution templates")
    training = steps.add_parser("train", help="train the model, or resume training")
    training.add_argument("--minutes", type=float, default=MINUTES)
    training.add_argument("--workers", type=int, default=2)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--device", default="cpu")
    training.add_argument("--from", dest="start", type=Path, help="folder of exported files to start from")
    training.add_argument("--matrix-rate", type=float, default=0.02)
    training.add_argument("--other-rate", type=float, default=0.003)
    training.add_argument("--eager", action="store_true", help="do not compile the model")
    steps.add_parser("export", help="write the files that ship with the package")


def _measuring(steps: "Parsers") -> None:
    measuring = steps.add_parser("measure", help="measure exact match on held-out samples")
    measuring.add_argument("--count", type=int, default=500)
    measuring.add_argument("--mistakes", type=int, default=0)
    measuring.add_argument("--domain", default="")
    evaluating = steps.add_parser("evaluate", help="run `taiwa eval` on data that we did not write")
    evaluating.add_argument("--model", default="builtin")
    evaluating.add_argument("--data", type=Path, default=MEASURED_BY)
    evaluating.add_argument("--limit", type=int, default=300, help="number of questions per data set, and of orders")
    evaluating.add_argument("--dialogues", type=int, default=100, help="number of turns per dialogue data set")
    evaluating.add_argument("--unknown", type=int, default=200, help="number of made-up compounds")
    evaluating.add_argument("--only", default="", metavar="PARTS", help="comma-separated parts to run")
    steps.add_parser("card", help="write the model card and plot the learning curve")
    checking = steps.add_parser("check", help="check that no evaluation text occurs in the training data")
    checking.add_argument("--count", type=int, default=20_000)
    checking.add_argument("--data", type=Path, default=MEASURED_BY)


def _vocabulary(given: argparse.Namespace) -> None:
    from training.builtin.corpus import samples
    from training.builtin.vocabulary import train, write

    given.folder.mkdir(parents=True, exist_ok=True)
    drawn = (text for _, sample in islice(samples(-1), TEXTS) for text in (sample.prompt, sample.text))
    found = train(drawn, PIECES)
    write(found, given.folder / "vocabulary.json")
    print(f"{len(found)} tokens")


def _wordings(_: argparse.Namespace) -> None:
    from training.builtin.desk.lexicon import write
    from training.builtin.solutions import write as write_solutions

    write(SHIPPED / "wordings.json")
    write_solutions(SHIPPED.with_name("solutions.tsv"))


def _train(given: argparse.Namespace) -> None:
    from training.builtin.model import Config
    from training.builtin.origin import note
    from training.builtin.train import Plan, has_bfloat16, read_tokens, train

    size = len(read_tokens(given.folder / "vocabulary.json"))
    forbidden = MEASURED_BY if MEASURED_BY.is_dir() else None
    plan = Plan(
        given.folder,
        given.minutes,
        given.seed,
        given.workers,
        matrix_rate=given.matrix_rate,
        other_rate=given.other_rate,
        start=given.start,
        compiled=not given.eager,
        device=given.device,
        config=Config(vocab=size),
        forbidden=forbidden,
    )
    before = json.loads((given.start / "card.json").read_text("utf-8"))["training"] if given.start is not None else {}
    note(
        given.folder, seed=given.seed, minutes=given.minutes, workers=given.workers, device=given.device,
        products="bfloat16" if has_bfloat16(given.device) else "float32", began_with={name: before[name] for name in ("minutes", "tokens") if name in before},
    )  # fmt: skip
    train(plan)


def _export(given: argparse.Namespace) -> None:
    from training.builtin.export import export

    size = export(given.folder / "checkpoint.pt", given.folder / "vocabulary.json", SHIPPED)
    print(f"{size / 1e6:.2f} MB of weights")


def _measure(given: argparse.Namespace) -> None:
    from training.builtin.corpus import DOMAINS
    from training.builtin.measure import measure, mistakes

    loaded, model = _trained(given.folder)
    names = [given.domain] if given.domain else list(DOMAINS)
    if given.mistakes:
        for name in names:
            for sample, found in islice(mistakes(loaded, model, name, given.count), given.mistakes):
                print(f"[{sample.task}: {sample.kind}] {sample.prompt}\n  wanted {sample.text!r}\n  wrote  {found!r}\n")
        return
    table = {
        name: {
            kind: [each.exact, each.count, each.right]
            for kind, each in measure(loaded, model, name, given.count).items()
        }
        for name in names
    }
    (given.folder / "held_out.json").write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    for name, kinds in table.items():
        for kind, (exact, count, right) in kinds.items():
            shares = f"{exact / count:7.1%}  {right / count:7.1%}"
            print(f"{name:12} {kind:44} {exact:5} of {count:5} {shares}")


def _trained(folder: Path) -> "tuple[Loaded, Transformer]":
    """Load the model from the newest checkpoint, or the shipped model if there is no checkpoint."""
    from taiwa.models.builtin.model import Loaded
    from taiwa.models.builtin.network import Network, load_weights
    from training.builtin.export import export, load_exported

    exported = SHIPPED
    if (folder / "checkpoint.pt").exists():
        exported = folder / "measured"
        export(folder / "checkpoint.pt", folder / "vocabulary.json", exported)
    model, tokens = load_exported(exported)
    return Loaded(Network(load_weights(exported / "weights.safetensors"), tokens.vocabulary), tokens), model


def _evaluate(given: argparse.Namespace) -> None:
    from training.builtin.evaluating import Plan, evaluate

    only = frozenset(filter(None, map(str.strip, given.only.split(","))))
    plan = Plan(given.folder, given.data, given.model, given.limit, given.dialogues, given.unknown, only=only)
    evaluate(plan)


def _card(given: argparse.Namespace) -> None:
    from training.builtin.card import write
    from training.builtin.curve import draw

    card = write(given.folder, SHIPPED)
    draw(card["training"]["curve"], ROOT / "docs" / "pictures" / "builtin-curve.png")


def _check(given: argparse.Namespace) -> int:
    from training.builtin.check import entered, look
    from training.builtin.overlap import KEYS, Overlap
    from training.builtin.train import read_tokens

    if not given.data.is_dir():
        print(f"nothing to compare with: no folder {given.data.name}")
        return 0
    forbidden = Overlap.of_folders(given.data, KEYS)
    found = look(forbidden, given.count)
    vocabulary = given.folder / "vocabulary.json"
    path = vocabulary if vocabulary.exists() else SHIPPED / "vocabulary.json"
    found.left = entered(read_tokens(path), forbidden, given.count)
    for line in found.told():
        print(line)
    return 0 if found.passed else 1


def _all(given: argparse.Namespace) -> int:
    """Run each remaining step in its own process."""
    here = [sys.executable, "-m", "training.builtin", "--folder", str(given.folder)]
    steps = [] if (given.folder / "vocabulary.json").exists() else [["vocabulary"]]
    training = ["train", "--minutes", str(given.minutes), "--workers", str(given.workers)]
    for step in (*steps, training, ["export"], ["measure"], ["evaluate"], ["card"]):
        print(f"== {step[0]}", flush=True)
        code = subprocess.run([*here, *step], check=False).returncode
        if code:
            return code
    return 0


STEPS: "dict[str, Callable[[argparse.Namespace], int | None]]" = {
    "vocabulary": _vocabulary, "wordings": _wordings, "train": _train, "export": _export, "measure": _measure, "evaluate": _evaluate,
    "card": _card, "check": _check, "all": _all,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
