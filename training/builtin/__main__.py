"""`python -m training.builtin STEP`: make the built-in model, step by step or all of it."""

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taiwa.models.builtin.tokens import Tokens
    from training.builtin.model import Transformer

FOLDER = Path("build/builtin")
SHIPPED = Path("src/taiwa/models/builtin/data")
MEASURED_BY = Path("../shared/data")
PIECES, TEXTS = 2_400, 60_000


def main() -> None:
    """Read the command line and go."""
    parser = argparse.ArgumentParser(prog="python -m training.builtin", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the work is kept")
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("vocabulary", help="train the tokenizer")
    training = steps.add_parser("train", help="train the model, or go on")
    training.add_argument("--minutes", type=float, default=120)
    training.add_argument("--workers", type=int, default=2)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--device", default="cpu")
    training.add_argument("--eager", action="store_true", help="do not compile the model")
    steps.add_parser("export", help="write the files that the package ships")
    measuring = steps.add_parser("measure", help="how often held-out samples are written exactly")
    measuring.add_argument("--count", type=int, default=1_000)
    measuring.add_argument("--mistakes", type=int, default=0)
    measuring.add_argument("--domain", default="")
    given = parser.parse_args()
    {"vocabulary": _vocabulary, "train": _train, "export": _export, "measure": _measure}[given.step](given)


def _vocabulary(given: argparse.Namespace) -> None:
    from training.builtin.corpus import samples
    from training.builtin.vocabulary import train, write

    given.folder.mkdir(parents=True, exist_ok=True)
    drawn = (text for _, sample in islice(samples(-1), TEXTS) for text in (sample.prompt, sample.text))
    found = train(drawn, PIECES)
    write(found, given.folder / "vocabulary.json")
    print(f"{len(found)} tokens")


def _train(given: argparse.Namespace) -> None:
    from training.builtin.model import Config
    from training.builtin.train import Plan, read_tokens, train

    size = len(read_tokens(given.folder / "vocabulary.json"))
    forbidden = MEASURED_BY if MEASURED_BY.is_dir() else None
    plan = Plan(
        given.folder,
        given.minutes,
        given.seed,
        given.workers,
        compiled=not given.eager,
        device=given.device,
        config=Config(vocab=size),
        forbidden=forbidden,
    )
    train(plan)


def _export(given: argparse.Namespace) -> None:
    from training.builtin.export import export

    size = export(given.folder / "checkpoint.pt", given.folder / "vocabulary.json", SHIPPED)
    print(f"{size / 1e6:.2f} MB of weights")


def _measure(given: argparse.Namespace) -> None:
    from training.builtin.corpus import DOMAINS
    from training.builtin.measure import measure, mistakes

    model, tokens = _trained(given.folder)
    names = [given.domain] if given.domain else list(DOMAINS)
    if given.mistakes:
        for name in names:
            for sample, found in islice(mistakes(model, tokens, name, given.count), given.mistakes):
                print(f"[{sample.task}: {sample.kind}] {sample.prompt}\n  wanted {sample.text!r}\n  wrote  {found!r}\n")
        return
    table = {
        name: {kind: [each.exact, each.count] for kind, each in measure(model, tokens, name, given.count).items()}
        for name in names
    }
    (given.folder / "held_out.json").write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    for name, kinds in table.items():
        for kind, (exact, count) in kinds.items():
            print(f"{name:12} {kind:44} {exact:5} of {count:5} {exact / count:7.1%}")


def _trained(folder: Path) -> "tuple[Transformer, Tokens]":
    import torch

    from training.builtin.model import Config, Transformer
    from training.builtin.train import read_tokens

    kept = torch.load(folder / "checkpoint.pt", map_location="cpu", weights_only=True)
    model = Transformer(Config(**kept["config"]))
    model.load_state_dict(kept["model"])
    return model.eval(), read_tokens(folder / "vocabulary.json")


if __name__ == "__main__":
    main()
