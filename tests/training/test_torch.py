"""What needs torch: the iteration of the optimiser, a training and its files, and that an exported model reckons in numpy as in torch."""

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taiwa.models.builtin.network import Network, load_weights
from taiwa.models.builtin.tokenizer import Tokens
from tests.lazily import Lazily
from training.builtin.corpus import Corpus
from training.builtin.vocabulary import SPECIAL, write

torch: Any = Lazily("torch")
exporting: Any = Lazily("training.builtin.export")
networks: Any = Lazily("training.builtin.model")
optimise: Any = Lazily("training.builtin.optimise")
trainer: Any = Lazily("training.builtin.train")
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TOKENS = Tokens(SPECIAL, ("Na", " mol"))


@cache
def small() -> Any:
    return networks.Config(dim=16, layers=2, heads=2, hidden=24, vocab=len(TOKENS), context=64)


def model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    made = networks.Transformer(small())
    with torch.no_grad():
        for each in made.parameters():
            each.add_(torch.randn_like(each) * 0.1)
    return made.eval()


@pytest.mark.parametrize("shape", [(12, 12), (40, 8), (8, 40)])
def test_singular_values_are_drawn_near_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(1)
    values = torch.linalg.svdvals(optimise.orthogonal(torch.randn(shape) * 7))
    assert values.min() > 0.4
    assert values.max() < 1.4


def test_the_directions_stay_what_they_were() -> None:
    torch.manual_seed(2)
    given = torch.randn(10, 6)
    left, _, right = torch.linalg.svd(given, full_matrices=False)
    turned = left.T @ optimise.orthogonal(given) @ right.T
    assert torch.allclose(turned, torch.diag(turned.diagonal()), atol=1e-3)


def test_the_optimiser_learns_and_goes_on_from_a_record() -> None:
    learning, ids = model(), torch.arange(20).view(2, 10)
    optimiser = optimise.Optimiser(learning, matrix_rate=0.02, other_rate=0.003, decay=0.0)

    def loss():
        states = learning(ids[:, :-1])
        return torch.nn.functional.cross_entropy(learning.logits(states).flatten(0, 1), ids[:, 1:].flatten())

    before = loss().item()
    for _ in range(15):
        loss().backward()
        assert optimiser.step(1.0) > 0
    kept, weights = deepcopy(optimiser.record()), {name: each.clone() for name, each in learning.state_dict().items()}
    loss().backward()
    optimiser.step(0.5)
    after = loss().item()

    other = model(1)
    other.load_state_dict(weights)
    again = optimise.Optimiser(other, matrix_rate=0.02, other_rate=0.003, decay=0.0)
    again.restore(kept)
    learning = other
    loss().backward()
    again.step(0.5)

    assert after < before * 0.8
    assert loss().item() == pytest.approx(after, rel=1e-3)


def test_an_exported_model_reckons_in_numpy_as_it_did_in_torch(tmp_path: Path) -> None:
    made, checkpoint, vocabulary = model(), tmp_path / "checkpoint.pt", tmp_path / "vocabulary.json"
    with torch.no_grad():
        for each in made.parameters():
            each.copy_(each.half().float())
    torch.save({"config": small().record(), "model": made.state_dict()}, checkpoint)
    write(TOKENS, vocabulary)

    size = exporting.export(checkpoint, vocabulary, tmp_path / "shipped")

    assert (tmp_path / "shipped" / "weights.safetensors").stat().st_mode & 0o777 == 0o644
    weights = load_weights(tmp_path / "shipped" / "weights.safetensors")
    assert set(weights.tensors) == set(weights.config.shapes())
    assert size == (tmp_path / "shipped" / "weights.safetensors").stat().st_size
    tokens = trainer.read_tokens(tmp_path / "shipped" / "vocabulary.json")
    ids = [tokens.special["<solve>"], *tokens.encode("3 mol of Na"), tokens.special["<answer>"]]
    with torch.no_grad():
        wanted = made.logits(made(torch.tensor([ids])))[0, -1].numpy()
    found = Network(weights, tokens.vocabulary).start().read(ids)
    assert np.allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_what_comes_later_changes_nothing_before() -> None:
    made = model()
    with torch.no_grad():
        one, other = made(torch.tensor([[1, 2, 3, 4]])), made(torch.tensor([[1, 2, 9, 9]]))
    assert torch.allclose(one[:, :2], other[:, :2], atol=1e-5)
    assert not torch.allclose(one[:, 2], other[:, 2], atol=1e-3)


def test_a_training_begins_with_exported_weights_and_spells_a_new_token_by_its_parts(tmp_path: Path) -> None:
    kept, checkpoint, vocabulary = model(), tmp_path / "checkpoint.pt", tmp_path / "vocabulary.json"
    torch.save({"config": small().record(), "model": kept.state_dict()}, checkpoint)
    write(TOKENS, vocabulary)
    exporting.export(checkpoint, vocabulary, tmp_path)
    more = Tokens(SPECIAL, ("NaNa", "Na", " mol"))
    begun = networks.Transformer(replace(small(), vocab=len(more)))

    exporting.begin_from(tmp_path, begun, more)

    before, after = kept.embed.weight.half().float(), begun.embed.weight
    for written in ("Na", " mol", "x"):
        assert torch.equal(after[more.encode(written)[0]], before[TOKENS.encode(written)[0]])
    assert torch.equal(after[more.pieces["NaNa"]], before[TOKENS.pieces["Na"]])
    assert torch.allclose(
        begun.state_dict()["layers.1.down.weight"], kept.state_dict()["layers.1.down.weight"], atol=1e-3
    )


def test_products_in_bfloat16_give_nearly_the_same_direction() -> None:
    torch.manual_seed(3)
    given = torch.randn(24, 40)
    assert torch.allclose(optimise.orthogonal(given, fast=True), optimise.orthogonal(given), atol=0.05)


def test_a_training_draws_into_files_and_does_nothing_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.builtin.train.HELD_OUT", 16)  # to draw as many as a training does takes a while
    write(TOKENS, tmp_path / "vocabulary.json")
    plan = trainer.Plan(
        tmp_path, 1e-9, workers=1, batch=512, shard=8, compiled=False, config=replace(small(), context=512)
    )
    for _ in range(2):
        trainer.train(plan)

    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["steps"] for row in logged] == [1, 1]
    assert logged[0]["tokens"] == logged[1]["tokens"] > 0
    assert len(Corpus.read(tmp_path / "drawn" / "000000.npz")) == 8
