"""Small models of chance numbers, files of weights, and the same model reckoned slowly, number by number."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import cos, exp, sin, sqrt

import numpy as np

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.models.builtin.model import BuiltinModel, Loaded
from taiwa.models.builtin.network import Config, Network, Weights
from taiwa.models.builtin.tokenizer import Tokens

SMALL = Config(dim=16, layers=2, heads=2, hidden=12, vocab=40, context=600, theta=100.0, eps=1e-6)


def weights(config: Config = SMALL, seed: int = 0) -> Weights:
    random = np.random.default_rng(seed)
    return Weights(
        config,
        {
            name: (random.normal(size=shape) * 0.5 + (len(shape) == 1)).astype(np.float32)
            for name, shape in config.shapes().items()
        },
    )


def vocabulary(size: int = SMALL.vocab) -> Vocabulary:
    return Vocabulary([b"<end>", *(b"t%d" % number for number in range(1, size))], 0)


def file_of(
    config: Config, tensors: Mapping[str, np.ndarray], *, told: Mapping[str, object] | None = None, kind: str = "F16"
) -> bytes:
    """A file as the training writes it; `told` goes before what the header says."""
    body, header = b"", {}
    for name, each in tensors.items():
        numbers = each.astype({"F16": "<f2", "F32": "<f4"}[kind]).tobytes()
        header[name] = {"dtype": kind, "shape": list(each.shape), "data_offsets": [len(body), len(body) + len(numbers)]}
        body += numbers
    metadata = {"format": "taiwa-builtin-1", "config": json.dumps(asdict(config))} | dict(told or {})
    written = json.dumps({"__metadata__": metadata} | header).encode()
    return len(written).to_bytes(8, "little") + written + body


def slowly(model: Weights, tokens: Sequence[int]) -> list[float]:
    """The logits behind a text, by the words of the format and with no trick."""
    config, tensors = model.config, {name: each.astype(float) for name, each in model.tensors.items()}
    states = [list(tensors["embed"][token]) for token in tokens]
    for at in range(config.layers):
        part = {name: tensors[f"{at}.{name}"] for name in ("norm1", "qkv", "out", "norm2", "up", "down")}
        found = [_times(part["qkv"], _normal(state, part["norm1"], config.eps)) for state in states]
        for place, state in enumerate(states):
            seen = [number for head in range(config.heads) for number in _seen(found, place, head, config)]
            states[place] = _sum(state, _times(part["out"], seen))
        for place, state in enumerate(states):
            both = _times(part["up"], _normal(state, part["norm2"], config.eps))
            gates, ups = both[: config.hidden], both[config.hidden :]
            held = [gate / (1 + exp(-gate)) * up for gate, up in zip(gates, ups, strict=True)]
            states[place] = _sum(state, _times(part["down"], held))
    return _times(tensors["embed"], _normal(states[-1], tensors["norm"], config.eps))


def _seen(found: list[list[float]], place: int, head: int, config: Config) -> list[float]:
    def part(row: list[float], which: int) -> list[float]:
        start = which * config.dim + head * config.width
        return row[start : start + config.width]

    def turned(row: list[float], which: int, at: int) -> list[float]:
        one = _normal(part(row, which), [1.0] * config.width, config.eps)
        half = config.width // 2
        angles = [at * config.theta ** (-j / half) for j in range(half)]
        first = [one[j] * cos(angles[j]) - one[j + half] * sin(angles[j]) for j in range(half)]
        return first + [one[j + half] * cos(angles[j]) + one[j] * sin(angles[j]) for j in range(half)]

    query = turned(found[place], 0, place)
    scores = []
    for at in range(place + 1):
        key = turned(found[at], 1, at)
        scores.append(exp(sum(a * b for a, b in zip(query, key, strict=True)) / sqrt(config.width)))
    values = [part(found[at], 2) for at in range(place + 1)]
    return [
        sum(score * value[j] for score, value in zip(scores, values, strict=True)) / sum(scores)
        for j in range(config.width)
    ]


def _normal(state: Sequence[float], gain: Sequence[float], eps: float) -> list[float]:
    root = sqrt(sum(number * number for number in state) / len(state) + eps)
    return [number / root * each for number, each in zip(state, gain, strict=True)]


def _times(matrix: np.ndarray, state: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, state, strict=True)) for row in matrix.tolist()]


def _sum(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a + b for a, b in zip(one, other, strict=True)]


SPECIAL = (
    "<end>", "<answer>", *(f"<{name}>" for name in ("solve", "number", "desk", "assess")),
    *(f"<{name}>" for name in ("clarity", "is_question", "is_consultation", "in_internal_docs", "ask_person")),
)  # fmt: skip
WORDS = "calculator molar mass stoichiometry round min max Therefore << >> <<< he -> answer Na Cl He Fe )/( *( )*( ), latte".split()
SPACED = "is answer the He to << (".split()


def tokens() -> Tokens:
    """A small tokenizer of the kind that comes along."""
    return Tokens(SPECIAL, [*WORDS, *(f" {word}" for word in SPACED), "\n\n"])


class Tiny(BuiltinModel):
    """The built-in model with chance numbers: it says nothing that makes sense, and all else is real."""

    def load(self) -> Loaded:
        made = tokens()
        config = replace(SMALL, vocab=len(made))
        return Loaded(Network(weights(config, 3), made.vocabulary), made)
